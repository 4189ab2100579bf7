"""The bugs that are planted in what answers HTTP clients; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from wsproto.events import Message

from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.doors.http.queues import _Publish
from tmqp_server.doors.http.websocket import WebSocketLayer
from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.engine.commands import Command

__all__ = ["WEB_BUGS"]


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


def _keeps_its_end_to_itself(_original: Any) -> Any:
    def end(self: WebSocketLayer, reason: str) -> Sequence[Command]:
        self.reason = reason
        return []

    return end


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
        "socket-ends-in-silence", "the session in a WebSocket does not learn that it is over",
        WebSocketLayer, "_end", _keeps_its_end_to_itself,
    ),
)  # fmt: skip
