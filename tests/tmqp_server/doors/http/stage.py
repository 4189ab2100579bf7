"""A hub with an HTTP door and a native door, for scripts of bytes and times."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import h11

from tests.tmqp_server.doors.hub_stage import HubStage, StagePeer
from tests.tmqp_server.peers import greeting, operation
from tmqp.codec import FrameDecoder
from tmqp.constants import OP_CREATE_QUEUE, PREAMBLE
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.doors.http.door import HttpDoor
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.routes import Route
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.storage.journal import Journal

__all__ = ["QUEUE", "Answer", "HttpPeer", "NativePeer", "Stage", "request"]

#: The queue that scripts use.
QUEUE = "/api/v1/channels/orders/queues/1"


def request(
    method: str, target: str, body: bytes | None = None, *fields: tuple[str, str], http: str = "1.1"
) -> bytes:
    """A request's bytes."""
    lines = [f"{method} {target} HTTP/{http}", "Host: here"]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{key}: {value}" for key, value in fields]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Answer:
    """One answer as a client reads it."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        self.headers = {key.decode(): value.decode() for key, value in headers}
        self.body = body

    @property
    def json(self) -> Any:
        """Its body as JSON."""
        return json.loads(self.body)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The messages in it."""
        found: list[dict[str, Any]] = self.json["items"]
        return found

    def __repr__(self) -> str:
        return f"<{self.status} {self.body!r}>"


class Stage(HubStage):
    """A server in memory."""

    def __init__(
        self,
        limits: HttpLimits | None = None,
        *,
        guarded: bool = False,
        portion_bytes: int = 0,
        routes: list[Route] | None = None,
        storage: bool = False,
        engine_limits: EngineLimits | None = None,
    ) -> None:
        numbers = count(1)

        def new_id() -> str:
            return f"id-{next(numbers)}"

        broker = Broker(engine_limits, BrokerOptions(storage=storage))
        self.native = NativeDoor(new_id, Limits())
        self.door = HttpDoor(new_id, limits, inner={"tmqp": self.native}, routes=routes)
        self.journal = Journal([self.native, self.door]) if storage else None
        hub = Hub(broker, portion_bytes, self.journal, guarded=guarded)
        super().__init__(broker, hub)

    def open(self) -> HttpPeer:
        """A new HTTP connection."""
        return HttpPeer(self, self.connect(self.door))

    def open_native(self, client_id: str = "") -> NativePeer:
        """A new TMQP client, accepted."""
        return NativePeer(self, self.connect(self.native), client_id)

    def save(self, *, good: bool = True) -> None:
        """The storage has written what it was given, or could not."""
        assert self.journal is not None, "this stage keeps nothing"
        answer = self.journal.finished(self.journal.take(), good)
        if answer is not None:
            self.hub.perform(answer, self.now)
        self.settle()

    def make_queue(
        self,
        channel: str,
        queue_id: int,
        status: str,
        *,
        durable: bool = False,
        handler: str = "",
        **more: object,
    ) -> None:
        """Have a TMQP client make a queue."""
        maker = self.open_native()
        headers = [("Queue-Id", str(queue_id)), ("Queue-Status", status)]
        if handler:
            headers.append(("Delivery-Handler", handler))
        body = json.dumps({"Durable": durable, **more}).encode() if durable or more else b""
        maker.say(operation(OP_CREATE_QUEUE, channel, body, headers=headers))
        if self.journal is not None:
            self.save()
        assert maker.frames()[-1].content_type == 0
        self.end(maker.number)
        self.settle()


class HttpPeer(StagePeer):
    """The client's end of an HTTP connection."""

    def ask(
        self, method: str, target: str, body: bytes | None = None, *fields: tuple[str, str]
    ) -> Answer:
        """Send a request and read its answer."""
        self.say(request(method, target, body, *fields))
        return self.answer(method)

    def answer(self, method: str = "GET") -> Answer:
        """Read the next answer.

        :raises AssertionError: when it is not complete.
        """
        found = self.answers(method, most=1)
        assert found, f"no answer in {self.raw()!r}"
        return found[0]

    def answers(self, method: str = "GET", most: int = 1_000) -> list[Answer]:
        """Read all complete answers."""
        found: list[Answer] = []
        while len(found) < most and self.raw():
            machine = h11.Connection(h11.CLIENT)
            machine.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
            machine.send(h11.EndOfMessage())
            machine.receive_data(self.raw())
            if self.over:
                machine.receive_data(b"")
            head, body = None, b""
            while True:
                event = machine.next_event()
                if isinstance(event, h11.Response):
                    head = event
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    break
                elif event is h11.NEED_DATA:
                    return found
                else:
                    assert isinstance(event, h11.InformationalResponse)
            assert head is not None
            left = len(machine.trailing_data[0])
            self._read = len(self.stage.sent[self.number]) - left
            found.append(Answer(head.status_code, list(head.headers), body))
        return found

    def is_over(self, reason: str) -> bool:
        """Whether it ended for this reason."""
        return self.over == reason


class NativePeer:
    """A TMQP client on the same hub."""

    def __init__(self, stage: HubStage, number: int, client_id: str) -> None:
        self.number = number
        self._peer = StagePeer(stage, number)
        self._decoder = FrameDecoder()
        self._peer.say(greeting(client_id))
        assert self._decoder.feed(self._peer.take().removeprefix(PREAMBLE))[0].content_type == 202

    def say(self, *frames: Frame) -> None:
        """Send messages, as one chunk."""
        self._peer.say(*[frame.raw for frame in frames])

    def frames(self) -> list[Frame]:
        """Everything received and not read."""
        return self._decoder.feed(self._peer.take())
