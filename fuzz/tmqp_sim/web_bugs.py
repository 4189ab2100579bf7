"""The bugs that are planted in what answers HTTP clients; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from wsproto.events import BytesMessage, Message

from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.doors.http.queues import _Publish
from tmqp_server.doors.http.websocket import WebSocketLayer
from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.engine.commands import Command

__all__ = ["WEB_BUGS"]

#: Less than a server has to send at one time now and then.
_PIECE_BYTES: Final = 300


def _answers_as_they_come(original: Any) -> Any:
    def finish(self: OrderedAnswers, slot: Slot, data: bytes = b"") -> None:
        self._slots.remove(slot)
        self._slots.appendleft(slot)
        self._release(slot)
        original(self, slot, data)

    return finish


def _created_before_it_is_confirmed(original: Any) -> Any:
    def start(self: _Publish, now: float) -> Sequence[Command]:
        commands: Sequence[Command] = original(self, now)
        self._answer(HttpResponse.json(201, {"id": self._id}))
        return commands

    return start


def _forgets_all_but_the_last_frame(original: Any) -> Any:
    def part(self: WebSocketLayer, event: Message[Any], now: float) -> Sequence[Command]:
        if event.frame_finished and not event.message_finished:
            return ()
        commands: Sequence[Command] = original(self, event, now)
        return commands

    return part


def _sends_the_first_piece(_original: Any) -> Any:
    def gather(self: WebSocketLayer) -> None:
        while data := self.inner.next_to_send():
            self._out.append(self._machine.send(BytesMessage(data=data[:_PIECE_BYTES])))

    return gather


WEB_BUGS: Final = (
    (
        "answers-as-they-come", "a pipelined request gets the answer of another",
        OrderedAnswers, "finish", _answers_as_they_come,
    ),
    (
        "created-too-early", "a message is answered with 201 before it is confirmed",
        _Publish, "start", _created_before_it_is_confirmed,
    ),
    (
        "socket-forgets-frames", "of a WebSocket message in several frames only the last counts",
        WebSocketLayer, "_message_part", _forgets_all_but_the_last_frame,
    ),
    (
        "socket-sends-the-first-piece", "a WebSocket message holds the first piece of what is long",
        WebSocketLayer, "_gather", _sends_the_first_piece,
    ),
)  # fmt: skip
