"""A broker with a storage that is killed at any moment, against what its clients know.

Nothing reaches the store but what a rule lets through; a crash drops the rest, and any write may
fail.  The clients know what was confirmed, what they have had in hand, and what they answered for.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.tmqp_server.engine.kept import KeptWorld
from tmqp.constants import (
    RESULT_OK,
    STATUS_PAUSED,
    STATUS_PULL,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
)
from tmqp_server.engine.commands import ClearMessages, PushExtras, RemoveMessage
from tmqp_server.engine.effects import Confirm, Deliver, DeliverPulled, Effect, Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges, QueueOptions

#: A durable queue, one that spills, and one whose handler saves.
DURABLE, OVERFLOW, SAVING = 1, 2, 3
QUEUES = {
    DURABLE: QueueChanges(durable=True, memory_limit=2, delivery_handler="putback-end"),
    OVERFLOW: QueueChanges(overflow=True, memory_limit=1, delivery_handler="ack-if-asked"),
    SAVING: QueueChanges(delivery_handler="ack-ifsaved"),
}
DEFAULTS = QueueOptions(put_back_limit=1_000, acknowledge_timeout_ms=60_000)
LIMITS = EngineLimits(max_put_backs=1_000, max_work_per_step=5, max_queue_bytes=400)

queue_ids = st.sampled_from([DURABLE, DURABLE, OVERFLOW, SAVING])


class CrashMachine(RuleBasedStateMachine):
    """Pushes, deliveries, answers, writes that succeed or fail, crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.world = KeptWorld(LIMITS, queue=DEFAULTS)
        self.count = 0
        #: Message id to the queue it was pushed into.
        self.pushed: dict[str, int] = {}
        #: Positively confirmed by a queue that saves.
        self.owed: dict[str, None] = {}
        self.sent: dict[str, None] = {}
        #: Answered for, cleared, or otherwise nobody's any more; may come again, but flagged.
        self.over: dict[str, None] = {}
        #: Waits for its answer, as (message id, queue id).
        self.in_hand: dict[str, int] = {}
        self.high: dict[str, bool] = {}
        #: Removed by somebody who was told so.
        self.removed: dict[str, None] = {}

    # --- What is seen ----------------------------------------------------------------------------

    def see(self) -> None:
        for effect in self.world.last:
            self.see_one(effect)

    def see_one(self, effect: Effect) -> None:
        if isinstance(effect, Confirm):
            assert effect.message_id in self.pushed
            if effect.positive and effect.queue_id != OVERFLOW:
                self.owed[effect.message_id] = None
        elif isinstance(effect, (Deliver, DeliverPulled)):
            message_id = effect.message.message_id
            assert message_id in self.pushed, "invented"
            assert effect.message.queue_id == self.pushed[message_id], "in another queue"
            if message_id in self.sent:
                assert not effect.first_acquirer, "sent before, and not flagged"
            assert message_id not in self.in_hand, "in hand twice"
            assert message_id not in self.removed, "it was removed"
            self.sent[message_id] = None
            self.in_hand[message_id] = effect.message.queue_id
        elif isinstance(effect, Reply) and effect.code == RESULT_OK:
            what, _, message_id = str(effect.request).partition(" ")
            if what == "remove":
                self.removed[message_id] = None

    def watch(self) -> None:
        """See the effects of every step of the world."""
        world = self.world
        told = world.told

        def seeing(effects: list[Effect]) -> list[str]:
            words = told(effects)
            self.see()
            return words

        world.told = seeing  # type: ignore[method-assign]

    # --- Rules -----------------------------------------------------------------------------------

    @initialize(status=st.sampled_from([STATUS_PUSH, STATUS_ROUND_ROBIN, STATUS_PAUSED]))
    def begin(self, status: int) -> None:
        self.watch()
        for queue_id, changes in QUEUES.items():
            changes.status = status
            self.world.create(changes, queue_id=queue_id)
        self.world.sync()

    @rule(
        queue_id=queue_ids,
        high=st.sampled_from([False, False, True]),
        times=st.sampled_from([1, 1, 3, 8]),
        delay=st.sampled_from([0, 700]),
    )
    def push(self, queue_id: int, high: bool, times: int, delay: int) -> None:
        for each in range(times):
            # One in the middle is late: it is in memory, and its copy among those on disk only.
            extras = PushExtras(delay_ms=delay) if delay and each == times // 2 else None
            self.count += 1
            message_id = f"m{self.count}"
            self.pushed[message_id] = queue_id
            self.high[message_id] = high
            before = self.world.queue(queue_id=queue_id).disk_bytes
            self.world.push(message_id, high, True, queue_id=queue_id, extras=extras)
            queue = self.world.queue(queue_id=queue_id)
            limit = queue.options.disk_limit_bytes
            # What overflows has its place in memory when it comes.
            if limit and queue_id != OVERFLOW:
                assert queue.disk_bytes <= max(before, limit), "too much on disk"

    @rule(
        status=st.sampled_from([STATUS_PUSH, STATUS_ROUND_ROBIN, STATUS_PAUSED, STATUS_PULL]),
        queue_id=queue_ids,
    )
    def change(self, status: int, queue_id: int) -> None:
        self.world.update(QueueChanges(status=status), queue_id=queue_id)

    @rule(limit=st.sampled_from([0, 20, 50]), queue_id=queue_ids)
    def limit_the_disk(self, limit: int, queue_id: int) -> None:
        self.world.update(QueueChanges(disk_limit_bytes=limit), queue_id=queue_id)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """One that waits, in memory or on the disk, if it is there still."""
        somewhere = sorted(set(self.pushed) - set(self.in_hand) - set(self.over))
        number = self.world.numbers.get("admin")
        if not somewhere or number is None:
            return
        message_id = data.draw(st.sampled_from(somewhere))
        self.over[message_id] = None
        request = f"remove {message_id}"
        self.world.step(RemoveMessage(number, request, "ch", self.pushed[message_id], message_id))

    @rule(what=st.sampled_from(["join", "leave"]))
    def consumer(self, what: str) -> None:
        if what == "join":
            self.world.join("c")
        elif "c" in self.world.numbers:
            self.world.leave("c")

    @rule(queue_id=queue_ids, count=st.integers(1, 5), newest=st.booleans())
    def pull(self, queue_id: int, count: int, newest: bool) -> None:
        self.world.join("c")
        self.world.pull("c", count, queue_id=queue_id, newest_first=newest)

    @rule(data=st.data(), positive=st.booleans(), times=st.sampled_from([1, 3]))
    def answer(self, data: st.DataObject, positive: bool, times: int) -> None:
        for _ in range(times):
            if not self.in_hand or "c" not in self.world.numbers:
                return
            message_id = data.draw(st.sampled_from(sorted(self.in_hand)))
            queue_id = self.in_hand.pop(message_id)
            if positive or queue_id != DURABLE:
                self.over[message_id] = None
            if positive:
                self.world.ack("c", message_id, queue_id=queue_id)
            else:
                self.world.nack("c", message_id, queue_id=queue_id)

    @rule(queue_id=queue_ids, high=st.booleans(), really=st.sampled_from([False] * 5 + [True]))
    def clear(self, queue_id: int, high: bool, really: bool) -> None:
        if not really:
            return
        for message_id, place in self.pushed.items():
            waits = message_id not in self.in_hand
            if place == queue_id and waits and self.high[message_id] == high:
                self.over[message_id] = None
        number = self.world.numbers.get("admin")
        if number is not None:
            self.world.step(ClearMessages(number, "clear", "ch", queue_id, high, not high))

    @rule(fails=st.sampled_from([False, False, True]))
    def write(self, fails: bool) -> None:
        self.world.write("no space" if fails else "")

    @rule(data=st.data())
    def put_back_and_fail(self, data: st.DataObject) -> None:
        """The copy at the end cannot be written: the one at the old place is still owed."""
        held = sorted(each for each, place in self.in_hand.items() if place == DURABLE)
        if held and "c" in self.world.numbers:
            message_id = data.draw(st.sampled_from(held))
            del self.in_hand[message_id]
            self.world.nack("c", message_id, queue_id=DURABLE)
            self.world.write("no space")
            self.restart(clean=False)

    @rule()
    def fetch(self) -> None:
        self.world.fetch()

    @rule(ok=st.booleans())
    def state(self, ok: bool) -> None:
        self.world.state(ok)

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0]))
    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    @rule(clean=st.sampled_from([False, False, True]))
    def end(self, clean: bool) -> None:
        self.restart(clean)

    def restart(self, clean: bool) -> None:
        if clean:
            self.world.restart()
        else:
            self.world.crash()
        self.in_hand.clear()
        self.nothing_is_lost()

    # --- What must hold --------------------------------------------------------------------------

    def nothing_is_lost(self) -> None:
        """What was confirmed and is not over is there; sequences are used once."""
        world = self.world
        there: dict[str, int] = {}
        for queue in world.store._queues.values():
            for sequence in queue.owed:
                message_id = queue.messages[sequence].body.decode().split(" ")[0]
                there[message_id] = there.get(message_id, 0) + 1
        for message_id in self.owed:
            if message_id not in self.over:
                assert message_id in there, f"{message_id} is lost"

    @invariant()
    def the_books_balance(self) -> None:
        self.world.check([])

    def teardown(self) -> None:
        if not self.pushed:
            return
        self.world.state(True)
        self.world.sync()
        self.world.crash()
        self.in_hand.clear()
        self.nothing_is_lost()
        self.drain()

    def drain(self) -> None:
        """Everything owed is delivered; what was never sent before comes in order."""
        world = self.world
        for queue_id in QUEUES:
            world.update(QueueChanges(status=STATUS_PUSH), queue_id=queue_id)
        world.join("c")
        for _ in range(10_000):
            world.sync()
            world.wait(1.0)
            if not self.in_hand:
                break
            for message_id, queue_id in list(self.in_hand.items()):
                del self.in_hand[message_id]
                self.over[message_id] = None
                world.ack("c", message_id, queue_id=queue_id)
        else:
            raise AssertionError("it never ends")
        for message_id in self.owed:
            assert message_id in self.over, f"{message_id} was not delivered"
        for queue in world.broker.queues():
            assert queue.live() == 0, repr(queue)
        world.sync()
        for kept in world.store._queues.values():
            assert kept.owed == set(), "settled, and still owed on disk"


__all__ = ["CrashMachine", "TestCrashes"]

CrashMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestCrashes = pytest.mark.timeout(300)(CrashMachine.TestCase)
