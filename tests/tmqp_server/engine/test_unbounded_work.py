"""Case F8: no step works without end, whatever lies in wait for it.

What a step does is counted; the processor's time is looked at with a generous measure, because
the machine may be anybody's.  ``test_bounded_steps.py`` has the close looks.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.machine import Stopwatch, thrice
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Acknowledge,
    Command,
    Connect,
    CreateQueue,
    Disconnect,
    Join,
    ListChannels,
    ListQueues,
    Push,
)
from tmqp_server.engine.effects import Deliver, Effect, Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import QueueChanges

pytestmark = pytest.mark.alone

#: What a step may take, in machines (``tests/machine.py``): five times the aim of 20 ms.
PATIENCE = 4
#: Messages that expire at once; a soak has the million of the case.
EXPIRING = int(os.environ.get("TMQP_F8_MESSAGES", "50000"))


class Counting:
    """A broker whose steps are counted: effects, changes of one queue's counter, time."""

    def __init__(self, counter: Callable[[Queue], int], limits: EngineLimits | None = None) -> None:
        self.broker = Broker(limits)
        self.counter = counter
        self.most_effects = self.most_changes = self.steps = 0
        self.watch = Stopwatch()
        self.step(Connect(1, None, "p"))

    def step(self, command: Command | None, now: float = 0.0) -> list[Effect]:
        """One step, or one deadline."""
        before = sum(self.counter(queue) for queue in self.broker.queues()[:1])
        if command is None:
            effects = self.watch.run(self.broker.on_deadline, now)
        else:
            effects = self.watch.run(self.broker.step, command, now)
        after = sum(self.counter(queue) for queue in self.broker.queues()[:1])
        self.most_effects = max(self.most_effects, len(effects))
        self.most_changes = max(self.most_changes, after - before)
        self.steps += 1
        return effects

    def finish(self, now: float) -> None:
        """All that is due and all that was left over."""
        while (deadline := self.broker.next_deadline()) is not None and deadline <= now:
            self.step(None, now)

    def fill(self, count: int) -> None:
        """Push so many messages, without looking at each step."""
        for number in range(count):
            name = f"m{number}"
            self.broker.step(Push(1, name, "ch", 1, number % 9 == 0, False, 100, b""), 0.0)


@pytest.mark.parametrize("cause", ["silence", "gone", "refused"])
@thrice
def test_f8_a_put_back_storm_comes_in_portions(cause: str) -> None:
    counting = Counting(lambda queue: queue.counters.requeued)
    handler = "putback-start" if cause == "refused" else "putback-end"
    changes = QueueChanges(delivery_handler=handler, acknowledge_timeout_ms=1_000)
    counting.step(CreateQueue(1, None, "ch", 1, changes))
    counting.step(Connect(2, None, "c"))
    counting.step(Join(2, None, "ch"))
    counting.fill(8_000)
    if cause == "gone":
        counting.step(Disconnect(2))
        assert counting.most_changes == 0  # nothing comes back before its time
    if cause == "refused":
        for number in range(8_000):
            counting.step(Acknowledge(2, f"m{number}", "ch", 1, False, "no"))
    counting.finish(1.0)
    work = counting.broker.limits.max_work_per_step
    queue = counting.broker.queues()[0]
    assert queue.counters.requeued >= 8_000
    assert counting.most_changes <= work
    assert counting.most_effects <= work
    counting.watch.within(PATIENCE)
    assert queue.imbalance() == 0


@thrice
def test_f8_a_crowd_that_expires_at_once_goes_in_portions() -> None:
    limits = EngineLimits(max_messages_per_queue=2_000_000, max_queue_bytes=1_000_000_000)
    counting = Counting(lambda queue: queue.counters.expired, limits)
    counting.step(CreateQueue(1, None, "ch", 1, QueueChanges(message_timeout_ms=1_000)))
    counting.fill(EXPIRING)
    counting.finish(2.0)
    work = counting.broker.limits.max_work_per_step
    queue = counting.broker.queues()[0]
    assert queue.counters.expired == EXPIRING
    assert counting.most_changes <= work
    assert counting.steps >= EXPIRING / work
    counting.watch.within(PATIENCE)
    longest_ms = counting.watch.longest_s * 1e3
    print(f"{EXPIRING} expired in {counting.steps} steps, longest {longest_ms:.1f} ms")


@thrice
def test_f8_a_hundred_thousand_queues_are_listed_a_channel_at_a_time() -> None:
    counting = Counting(lambda _: 0)
    most = counting.broker.limits.max_queues_per_channel
    channels = 100_000 // most
    for channel in range(channels):
        for queue_id in range(most):
            counting.broker.step(CreateQueue(1, None, f"c{channel}", queue_id), 0.0)
    listed = 0
    for channel in range(channels):
        (reply,) = counting.step(ListQueues(1, "r", f"c{channel}"))
        assert isinstance(reply, Reply)
        assert isinstance(reply.body, list)
        assert len(reply.body) <= most
        listed += len(reply.body)
    (reply,) = counting.step(ListChannels(1, "r"))
    assert listed == 100_000
    counting.watch.within(PATIENCE)
    longest_ms = counting.watch.longest_s * 1e3
    print(f"{listed} queues in {counting.steps} steps, longest {longest_ms:.1f} ms")


@thrice
def test_f8_one_push_for_everybody_is_one_effect_or_two() -> None:
    counting = Counting(lambda _: 0)
    counting.step(CreateQueue(1, None, "ch", 1, QueueChanges(request_acknowledge=False)))
    for number in range(2, 5_000):
        counting.broker.step(Connect(number, None, f"c{number}"), 0.0)
        counting.broker.step(Join(number, None, "ch"), 0.0)
    effects = counting.step(Push(1, "m", "ch", 1, False, False, 10, b""))
    deliveries = [effect for effect in effects if isinstance(effect, Deliver)]
    assert len(deliveries) == len(effects) == 2
    assert sum(len(each.sessions) for each in deliveries) == 4_998
    counting.watch.within(PATIENCE)
