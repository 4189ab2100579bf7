"""A server of NSQ in memory: hub, broker and door, with a clock that the test holds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from itertools import count
from typing import Any

from tmqp_server.access.gate import Question, Verdict
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.door import NsqDoor
from tmqp_server.doors.nsq.message import NsqBodies
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_server.doors.nsq_world import NsqNames
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, Connect, DescribeQueue
from tmqp_server.engine.effects import Fetch, Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.snapshots import QueueSnapshot
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.questions import Fault
from tmqp_server.storage.journal import Journal
from tmqp_wires.nsq import FrameDecoder, Layer, writing
from tmqp_wires.nsq.events import Event, MessageReceived, ResponseReceived

__all__ = ["EPOCH_S", "Client", "Server", "features", "name_of"]

#: What the clock reads in the beginning, and how far that is from the Unix epoch.
_BEGAN = 1_000.0
EPOCH_S = 1_795_000_000.0


def name_of(topic: str, channel: str = "") -> str:
    """The engine's name of a topic, or of a channel."""
    if channel:
        return NsqNames().channel(topic.encode(), channel.encode())
    return NsqNames().topic(topic.encode())


class Server:
    """Broker, hub and a door of NSQ; ``now`` is the clock, in seconds."""

    def __init__(
        self,
        limits: NsqLimits | None = None,
        *,
        has_tls: bool = False,
        policy: Callable[[Question], bool] | None = None,
        journal: Journal | None = None,
        engine_limits: EngineLimits | None = None,
        **options: Any,
    ) -> None:
        numbers = count(1)
        self.broker = Broker(engine_limits, BrokerOptions(storage=journal is not None))
        self.hub = Hub(self.broker, journal=journal, guarded=policy is not None)
        self.policy = policy
        letters = Letters((), EPOCH_S)
        letters.add(NsqBodies())
        self.context = NsqContext(
            lambda: f"{next(numbers):032x}",
            limits or NsqLimits(),
            dataclasses.replace(NsqOptions(), **options),
            EPOCH_S,
            has_tls=has_tls,
            durable=journal is not None,
        )
        self.door = NsqDoor(self.context, letters)
        self.now = _BEGAN
        self._sessions = 0
        self._operator = 0
        #: The session of somebody who speaks TMQP.
        self.native = 0
        #: What was sent to each session and nobody has taken.
        self.outbox: dict[int, bytes] = {}
        #: Those whose transport is closed after what was sent.
        self.ended: set[int] = set()

    def connect(self, magic: bytes = writing.MAGIC) -> Client:
        """A new connection."""
        self._sessions += 1
        self.hub.open(self._sessions, self.door, self.now, f"127.0.0.1:{40_000 + self._sessions}")
        return Client(self, self._sessions, magic)

    def subscriber(self, topic: str, channel: str, rdy: int = -1, **fields: Any) -> Client:
        """A client that has identified itself and joined."""
        client = self.connect()
        client.send(writing.identify({"feature_negotiation": True, **fields}))
        client.send(writing.sub(topic.encode(), channel.encode()))
        client.take()
        if rdy >= 0:
            client.send(writing.rdy(rdy))
        return client

    def publish(self, topic: str, *bodies: bytes) -> None:
        """By a client that comes and goes."""
        client = self.connect()
        client.send(writing.mpub(topic.encode(), bodies))
        assert client.take() == [ResponseReceived(b"OK")]
        client.close()

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while True:
            dues = [self.hub.session_deadline(number) for number in range(1, self._sessions + 1)]
            dues.append(self.hub.broker_deadline())
            due = min((each for each in dues if each is not None), default=until + 1)
            if due > until:
                break
            self.now = max(self.now, due)
            self.hub.on_broker_deadline(self.now)
            for number in range(1, self._sessions + 1):
                self.hub.on_session_deadline(number, self.now)
            self.settle()
        self.now = until

    def settle(self) -> None:
        """Do what is asked for without the peers."""
        for _ in range(1_000):
            while self.hub.woken:
                number = next(iter(self.hub.woken))
                del self.hub.woken[number]
                self.go_on(number)
            for number, data in self.hub.take_outbound():
                if not data:
                    self.ended.add(number)
                    continue
                assert number not in self.ended, f"nobody hears {data!r}"
                self.outbox[number] = self.outbox.get(number, b"") + data
            awaited = [*self.hub.awaited]
            for number in awaited:
                self.hub.written(number, self.now)
            outside = self.hub.take_outside()
            for each in outside:
                if isinstance(each, Fault):
                    raise each.error
                if isinstance(each, Question):
                    self._decide(each)
                if isinstance(each, Fetch):
                    self.fetch(each)
            due = self.hub.broker_deadline()
            if due is not None and due <= self.now:
                self.hub.on_broker_deadline(self.now)
            elif not awaited and not self.hub.woken and not outside:
                break

    def fetch(self, asked: Fetch) -> None:
        """Read what is on disk only."""
        raise AssertionError(f"nothing is on disk: {asked}")

    def _decide(self, question: Question) -> None:
        """Answer a question of the gate as the test wants it."""
        assert self.policy is not None, "somebody must decide"
        allowed = self.policy(question)
        connect = question.command if isinstance(question.command, Connect) else None
        verdict = Verdict(allowed, connect=connect)
        self.hub.decide(question.session, question.ticket, verdict, self.now)
        self.go_on(question.session)

    def go_on(self, number: int) -> None:
        """Work on what waits of a session, as far as nobody is asked."""
        while not self.hub.is_waiting(number) and self.hub.go_on(number, self.now):
            pass

    @property
    def operator(self) -> int:
        """The session of somebody who may command what clients of NSQ cannot."""
        if not self._operator:
            client = self.connect()
            client.send(writing.pub(b"made-by-the-operator", b"x"))
            self._operator = client.number
        return self._operator

    def perform(self, command: Command) -> None:
        """Carry out a command as a door beside this one does."""
        self.hub.perform(command, self.now)
        self.settle()

    def queue(self, topic: str, channel: str = "") -> QueueSnapshot | None:
        """A topic or channel as it is now; None when there is none."""
        name = name_of(topic, channel)
        command = DescribeQueue(self.operator, "ask", name, QUEUE)
        for effect in self.broker.step(command, self.now):
            if isinstance(effect, Reply) and effect.request == "ask":
                assert effect.body is None or isinstance(effect.body, QueueSnapshot)
                return effect.body
        raise AssertionError("nobody answers")


class Client:
    """The other end of a connection."""

    def __init__(self, server: Server, number: int, magic: bytes) -> None:
        self.server = server
        self.number = number
        self.layer: Layer | None = None
        self._frames = FrameDecoder()
        self._sent = b""
        if magic:
            self.send(magic)

    def send(self, *data: bytes) -> None:
        """The server reads these bytes, each as one chunk."""
        for chunk in data:
            if self.layer is not None:
                chunk = self.layer.encoded(chunk)  # noqa: PLW2901
            if self.server.hub.receive(self.number, chunk, self.server.now):
                self.server.go_on(self.number)
            self.server.settle()

    def raw(self) -> bytes:
        """The bytes that were sent and nobody has taken."""
        self.server.settle()
        return self.server.outbox.pop(self.number, b"")

    def take(self) -> list[Event]:
        """The frames that were sent and nobody has taken."""
        data = self.raw()
        if self.layer is not None:
            data = self.layer.decoded(data)
        return self._frames.feed(data)

    def messages(self) -> list[tuple[int, bytes]]:
        """Attempts and bodies of the messages that were sent; there must be nothing else."""
        found: list[tuple[int, bytes]] = []
        for event in self.take():
            assert isinstance(event, MessageReceived), event
            found.append((event.attempts, event.body))
        return found

    def message(self) -> MessageReceived:
        """The one message that was sent."""
        (event,) = self.take()
        assert isinstance(event, MessageReceived), event
        return event

    @property
    def closed(self) -> bool:
        """Whether the server has closed the connection."""
        return bool(self.server.hub.close_reason(self.number))

    def close(self) -> None:
        """The transport ends."""
        self.server.hub.receive_eof(self.number, self.server.now)
        self.server.hub.forget(self.number, self.server.now)
        self.server.settle()


def features(event: Event) -> dict[str, Any]:
    """What an answer to IDENTIFY says."""
    assert isinstance(event, ResponseReceived)
    found: dict[str, Any] = json.loads(event.data)
    return found
