"""Random histories of producers and consumers of NSQ against a plain account of what must hold.

Each channel gets each message; what was finished never comes again; nobody has more than it was
ready for; the number of attempts is that of the deliveries; nothing is lost.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from tests.tmqp_server.doors.nsq.server import Client, Server
from tmqp_server.doors.nsq.consuming import ConsumingSession
from tmqp_server.doors.nsq.door import NsqDoor
from tmqp_server.doors.nsq.session import _HANDLERS
from tmqp_server.engine.commands import AcknowledgeRun
from tmqp_server.engine.effects import Deliver
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import (
    ErrorReceived,
    Event,
    Heartbeat,
    MessageReceived,
    Ready,
    ResponseReceived,
)

TIMEOUT_S: Final = 1.0
STEPS: Final = 150
#: Time passes in such portions, after each of which the account is made.
STEP_S: Final = 0.05


class Consumer:
    """A client, how many messages it is ready for, and which it has since when."""

    def __init__(self, client: Client, channel: str) -> None:
        self.client = client
        self.channel = channel
        self.ready = 0
        self.most = 0
        self.has: dict[bytes, float] = {}


class History:
    """One server, what was published, and what became of it in each channel."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.server = Server(msg_timeout_ms=int(TIMEOUT_S * 1000))
        self.channels = ("x", "y#ephemeral", "z")
        self.consumers = [self._consumer(name) for name in self.channels]
        self.producer = self.server.connect()
        self.published: list[bytes] = []
        self.finished: set[tuple[str, bytes]] = set()
        self.attempts: dict[tuple[str, bytes], int] = {}
        self.bodies: dict[bytes, bytes] = {}

    def _consumer(self, channel: str) -> Consumer:
        return Consumer(self.server.subscriber("t", channel), channel)

    # -- what happens ---------------------------------------------------------------------------

    def publish(self) -> None:
        first = len(self.published)
        bodies = [b"%d" % (first + each) for each in range(1 + self.draw.randrange(6))]
        kind = self.draw.randrange(4)
        if kind == 0:
            self.producer.send(writing.mpub(b"t", bodies))
        elif kind == 1:
            self.producer.send(b"".join([writing.pub(b"t", body) for body in bodies]))
        elif kind == 2:
            delay_ms = self.draw.randrange(3_000)
            self.producer.send(*[writing.dpub(b"t", delay_ms, body) for body in bodies])
        else:
            self.producer.send(*[writing.pub(b"t", body) for body in bodies])
        count = 1 if kind == 0 else len(bodies)
        answers = [event for event in self.producer.take() if not isinstance(event, Heartbeat)]
        assert answers == [ResponseReceived(b"OK")] * count
        self.published += bodies

    def be_ready(self) -> None:
        consumer = self.draw.choice(self.consumers)
        consumer.ready = self.draw.randrange(8)
        consumer.most = max(consumer.ready, len(consumer.has))
        consumer.client.send(writing.rdy(consumer.ready))

    def answer(self) -> None:
        consumer = self.draw.choice(self.consumers)
        self.look()
        names = [name for name in consumer.has if self.draw.randrange(3)]
        commands: list[bytes] = []
        for name in names:
            kind = self.draw.randrange(5)
            if kind == 0:
                commands.append(writing.req(name, self.draw.choice((0, 0, 700))))
                del consumer.has[name]
            elif kind == 1:
                commands.append(writing.touch(name))
                consumer.has[name] = self.server.now
            else:
                commands.append(writing.fin(name))
                self.finished.add((consumer.channel, name))
                del consumer.has[name]
        consumer.client.send(b"".join(commands))

    def leave(self) -> None:
        place = self.draw.randrange(len(self.consumers))
        consumer = self.consumers[place]
        others = [each for each in self.consumers if each.channel == consumer.channel]
        if consumer.channel.endswith("#ephemeral") and len(others) == 1:
            return  # its messages would be gone
        self.look()
        consumer.client.close()
        self.consumers[place] = self._consumer(consumer.channel)

    def come(self) -> None:
        if len(self.consumers) < 6:
            self.consumers.append(self._consumer(self.draw.choice(self.channels)))

    def wait(self) -> None:
        for _ in range(self.draw.choice((1, 6, 12, 22))):
            self.server.pass_s(STEP_S)
            self.look()
        for client in (self.producer, *[each.client for each in self.consumers]):
            client.send(writing.NOP)

    # -- what must hold -------------------------------------------------------------------------

    def look(self) -> None:
        """Take what came, and compare it with the account."""
        now = self.server.now
        for consumer in self.consumers:
            for name, since in [*consumer.has.items()]:
                if now >= since + TIMEOUT_S - STEP_S:  # it came since the look before
                    del consumer.has[name]
        for consumer in self.consumers:
            for event in consumer.client.take():
                assert not isinstance(event, ErrorReceived), event
                if isinstance(event, MessageReceived):
                    self._took(consumer, event)
            assert len(consumer.has) <= consumer.most
            consumer.most = max(consumer.ready, len(consumer.has))

    def _took(self, consumer: Consumer, message: MessageReceived) -> None:
        key = (consumer.channel, message.message_id)
        assert key not in self.finished, "a finished message came again"
        self.attempts[key] = self.attempts.get(key, 0) + 1
        assert message.attempts == self.attempts[key]
        assert self.bodies.setdefault(message.message_id, message.body) == message.body
        for each in self.consumers:
            assert each.channel != consumer.channel or message.message_id not in each.has
        consumer.has[message.message_id] = self.server.now

    def run(self) -> None:
        steps = (
            *[self.publish] * 3,
            *[self.be_ready] * 3,
            *[self.answer] * 5,
            *[self.wait] * 2,
            self.leave,
            self.come,
        )
        for _ in range(STEPS):
            self.draw.choice(steps)()
            self.look()
        for _ in range(200):
            for consumer in self.consumers:
                consumer.ready = consumer.most = 50
                consumer.client.send(writing.rdy(50))
            self.look()
            for consumer in self.consumers:
                consumer.client.send(b"".join([writing.fin(name) for name in consumer.has]))
                self.finished |= {(consumer.channel, name) for name in consumer.has}
                consumer.has.clear()
            if len(self.finished) == 3 * len(self.published):
                break
            self.wait()
        for channel in self.channels:
            got = [self.bodies[name] for of, name in self.finished if of == channel]
            assert sorted(got) == sorted(self.published), channel
            queue = self.server.queue("t", channel)
            assert queue is not None
            assert (queue.messages, queue.in_flight, queue.deferred) == (0, 0, 0)
        assert [each for each in self.server.broker.queues() if each.imbalance()] == []


@pytest.mark.parametrize("seed", range(12))
def test_what_is_promised_holds_in_any_history(seed: int) -> None:
    History(seed).run()


def _one_answer_less(original: Any) -> Any:
    def finish(self: ConsumingSession, events: list[Event], at: int, commands: list[Any]) -> int:
        after: int = original(self, events, at, commands)
        run = commands[-1]
        if isinstance(run, AcknowledgeRun):
            del run.message_ids[-1]
        return after

    return finish


def _always_the_first(original: Any) -> Any:
    def encode(self: NsqDoor, effect: Deliver) -> bytes:
        wire = effect.message.wire
        return wire if isinstance(wire, bytes) else b""

    return encode


def _one_more(original: Any) -> Any:
    def ready(self: ConsumingSession, event: Ready, commands: list[Any], now: float) -> None:
        original(self, Ready(event.count + 1), commands, now)

    return ready


BUGS: Final = {
    "the last of several FIN is forgotten": (ConsumingSession, "_finish", _one_answer_less),
    "every attempt is the first": (NsqDoor, "encode_delivery", _always_the_first),
    "a window is too large by one": (ConsumingSession, "_ready", _one_more),
}


@pytest.mark.cold
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, make = BUGS[bug]
    planted = make(getattr(owner, name))
    monkeypatch.setattr(owner, name, planted)
    if name == "_ready":
        monkeypatch.setitem(_HANDLERS, Ready, planted)
    for seed in range(20):
        try:
            History(seed).run()
        except AssertionError:
            return
    raise RuntimeError(f"nobody has noticed that {bug}")
