"""Hostile input through the whole server in memory, honest clients beside it (A3 and G9 of the
reliability cases, in small)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import load_exchanges
from tests.tmqp_server.outputs import faults, sent, touched
from tests.tmqp_server.peers import greeting
from tmqp.codec import FrameDecoder
from tmqp.constants import DocumentOperation, MessageType, Operation
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp.testing import CLIENT_TO_SERVER, Seeded, client_bytes, damage, pieces, plain_frame
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions
from tmqp_server.hub.hub import Hub

CONVERSATIONS = 20_000
#: Hostile sessions at one time.
CROWD = 20
PORTION_BYTES = 20_000


OPERATIONS = [*Operation, *DocumentOperation, 0, 9_999]


def recorded() -> Iterator[bytes]:
    """What each client of each recording said on its connection."""
    for exchange in load_exchanges():
        for connection in exchange.connections:
            said = [
                step.data
                for step in exchange.steps
                if step.connection == connection and step.direction == CLIENT_TO_SERVER
            ]
            if said and said[0].startswith(b"TMQ"):
                yield b"".join(said)


class Honest:
    """A session that never errs; ``frames`` is what it heard and did not take."""

    def __init__(self, arena: Arena, number: int, client_id: str) -> None:
        self._arena = arena
        self._number = number
        self._decoder = FrameDecoder(Limits())
        self._preamble = True
        self.frames: list[Frame] = []
        arena.honest[number] = self
        arena.hub.open(number, arena.door, arena.now)
        self.say(greeting(client_id))
        assert self.frames.pop().content_type == 202

    def say(self, data: bytes) -> None:
        self._arena.feed(self._number, data)
        self._arena.rest()

    def hear(self, data: bytes) -> None:
        if self._preamble and data:
            data, self._preamble = data[8:], False
        self.frames += self._decoder.feed(data)
        assert self._decoder.error is None


class Arena:
    """A hub in memory with honest and hostile sessions; output of the latter is thrown away."""

    def __init__(self, seed: int) -> None:
        self.now = 100.0
        self.draw = Seeded(seed)
        options = BrokerOptions(
            channel=ChannelOptions(queue=QueueOptions(acknowledge_timeout_ms=500))
        )
        limits = EngineLimits(
            max_channels=500, max_queue_bytes=1_000_000, max_total_bytes=20_000_000
        )
        self.hub = Hub(Broker(limits, options), PORTION_BYTES)
        self.door = NativeDoor(self._new_id, Limits(max_payload_bytes=100_000))
        self._ids = 0
        self._numbers = 10
        self._crowd: list[tuple[int, Iterator[bytes]]] = []
        self.honest: dict[int, Honest] = {}
        self.done = 0
        self._recorded = list(recorded())

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:032x}"

    def feed(self, number: int, data: bytes) -> None:
        """A chunk of one session, with all its portions."""
        more = self.hub.receive(number, data, self.now)
        self.flush()
        while more:
            more = self.hub.go_on(number, self.now)
            self.flush()

    def flush(self) -> None:
        for number in touched(self.hub):
            data = sent(self.hub, number)
            listener = self.honest.get(number)
            if listener is not None:
                listener.hear(data)
        assert faults(self.hub) == {}

    def rest(self) -> None:
        """Let the broker finish what is due."""
        while (due := self.hub.broker_deadline()) is not None and due <= self.now:
            self.hub.on_broker_deadline(self.now)
            self.flush()

    def step(self) -> None:
        """One hostile session says its next piece, or ends."""
        draw = self.draw
        if len(self._crowd) < CROWD:
            self._numbers += 1
            self.hub.open(self._numbers, self.door, self.now)
            self._crowd.append((self._numbers, iter(pieces(draw, self._conversation(), 5))))
        at = draw.below(len(self._crowd))
        number, rest = self._crowd[at]
        data = next(rest, None)
        if data is not None:
            self.feed(number, data)
        if data is None or self.hub.close_reason(number):
            del self._crowd[at]
            self.done += 1
            if draw.one_in(2):
                self.hub.receive_eof(number, self.now)
                self.flush()
            self.hub.forget(number, self.now)
            self.flush()
        if draw.one_in(50):
            self.now += 0.1
            self.hub.on_session_deadline(number, self.now)
            self.flush()
        self.rest()

    def _conversation(self) -> bytes:
        draw = self.draw
        kind = draw.below(3)
        if kind == 0:
            data = client_bytes(draw)
        elif kind == 1:
            data = self._recorded[draw.below(len(self._recorded))]
        else:
            # Anybody's frames without a foreign source, so that all of them are processed.
            data = greeting() + b"".join([self._message().raw for _ in range(draw.below(12))])
        if draw.one_in(3):
            return data
        head = 8 if draw.one_in(4) else min(len(data), 60)  # let most pass the hello
        return data[:head] + damage(draw, data[head:] or b"x")

    def _message(self) -> Frame:
        draw = self.draw
        frame = plain_frame(draw)
        number = frame.content_type
        target = ("orders", "a", "b", frame.target)[draw.below(4)]
        if frame.type == MessageType.SERVER:
            number = OPERATIONS[draw.below(len(OPERATIONS))]
        elif frame.type in (MessageType.QUEUE_MESSAGE, MessageType.ACKNOWLEDGE):
            number = draw.below(3)
        ttl = frame.ttl if draw.one_in(8) else 16
        headers = [("Queue-Id", str(draw.below(3)))] if draw.one_in(2) else []
        return frame.replace(
            target=target, content_type=number, source="", more_headers=headers, ttl=ttl
        )

    def end(self) -> None:
        """All hostile sessions vanish."""
        for number, _ in self._crowd:
            self.hub.forget(number, self.now)
        self.flush()
        self.rest()


@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_thousand_hostile_conversations_hurt_nobody_else(seed: int) -> None:
    arena = Arena(seed)
    producer = Honest(arena, 1, "honest-producer")
    consumer = Honest(arena, 2, "honest-consumer")
    join = Frame.build(
        MessageType.SERVER, "honest", Operation.JOIN, message_id="j", pending_response=True
    )
    consumer.say(join.raw)
    assert consumer.frames.pop().content_type == 0
    pushed = confirmed = 0
    received: list[str] = []
    while arena.done < CONVERSATIONS // 2:
        arena.step()
        if arena.draw.one_in(20):
            pushed += 1
            producer.say(
                Frame.build(
                    MessageType.QUEUE_MESSAGE,
                    "honest",
                    1,
                    b"work",
                    message_id=str(pushed),
                    pending_acknowledge=True,
                ).raw
            )
            for frame in producer.frames:
                assert frame.type == MessageType.ACKNOWLEDGE
                assert not frame.has_header
                confirmed += 1
            producer.frames.clear()
            for frame in consumer.frames:
                assert (frame.source, frame.payload) == ("honest-producer", b"work")
                received.append(frame.message_id)
                consumer.say(
                    Frame.build(
                        MessageType.ACKNOWLEDGE, "honest", 1, message_id=frame.message_id
                    ).raw
                )
            consumer.frames.clear()
    arena.end()
    assert pushed > 500
    assert confirmed == pushed
    assert received == [str(number + 1) for number in range(pushed)]
    statistics = arena.hub.broker.statistics()
    assert statistics.sessions == 2
    assert statistics.channels > 3  # they did get somewhere
    assert sorted(arena.hub._sessions) == [1, 2]
    assert not arena.hub._rest
