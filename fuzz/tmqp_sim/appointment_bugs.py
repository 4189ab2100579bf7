"""The bugs that are planted in deferring, cancelling, counting receivers and looking into queues;
see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp.frames import Frame
from tmqp_server.doors.native import rewriting
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.delivery.deferring import Deferring
from tmqp_server.engine.delivery.intake import Intake
from tmqp_server.engine.model.deferrals import Deferrals
from tmqp_server.engine.model.message import MARK_SAVED, MARK_SAVING, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.waiting import WaitingList
from tmqp_server.engine.reading.browsing import Browsing
from tmqp_server.storage.forms import StoredForms

__all__ = ["APPOINTMENT_BUGS"]


def _impatient(original: Any) -> Any:
    def take(self: Deferrals, now: float) -> Message | None:
        found: Message | None = original(self, now + 0.2)
        return found

    return take


def _keeps_no_time(original: Any) -> Any:
    def head(self: StoredForms, *arguments: Any) -> Any:
        message = original(self, *arguments)
        message.due_us = 0
        return message

    return head


def _leaves_it_on_disk(original: Any) -> Any:
    def cancel(self: Deferring, queue: Queue, message: Message) -> None:
        message.marks &= ~(MARK_SAVED | MARK_SAVING)
        original(self, queue, message)

    return cancel


def _in_words_only(_original: Any) -> Any:
    def cancel(_self: Deferring, _queue: Queue, _message: Message) -> None:
        """It comes all the same."""

    return cancel


def _counts_nobody(_original: Any) -> Any:
    def receive(self: Intake, queue: Queue, message: Message, now: float) -> None:
        message.rarely().receivers = 0
        self._workflow.receive(queue, message, now)

    return receive


def _overlooks_flights(original: Any) -> Any:
    def begin(self: Browsing, look: Any) -> bool:
        flights, look.queue.flights = look.queue.flights, {}  # while it looks
        try:
            begun: bool = original(self, look)
            return begun
        finally:
            look.queue.flights = flights

    return begin


def _shows_any_kind(original: Any) -> Any:
    def consider(self: Browsing, look: Any, message: Message) -> None:
        chosen, look.command.filter = look.command.filter, None
        original(self, look, message)
        look.command.filter = chosen

    return consider


def _takes_what_it_shows(_original: Any) -> Any:
    def snapshot(self: WaitingList) -> list[Message]:
        return [message for messages in self.detach() for message in messages]

    return snapshot


def _says_nothing(_original: Any) -> Any:
    def with_reason(
        _self: LetterWires, message: Message, _reason: str, _queue_name: str
    ) -> tuple[object, int]:
        return message.wire, 0

    return with_reason


def _believes_producers(_original: Any) -> Any:
    def forwards(frame: Frame, names: frozenset[str]) -> Frame:
        """Every header is passed on."""
        assert names
        return frame

    return forwards


def _removed_in_words(_original: Any) -> Any:
    def remove(_self: Deferring, _queue: Queue, _message: Message) -> None:
        """It stays where it is."""

    return remove


#: What makes each of them: name, text, owner, attribute, and the change.
APPOINTMENT_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "deferred-too-short", "a deferred message goes before its time",
        Deferrals, "take", _impatient,
    ),
    (
        "deferred-in-memory-only", "a restart forgets for how long a message is deferred",
        StoredForms, "_head", _keeps_no_time,
    ),
    (
        "cancelled-in-memory-only", "a cancelled message is there again after a restart",
        Deferring, "_cancel", _leaves_it_on_disk,
    ),
    (
        "cancelled-in-words", "a cancelled message comes all the same",
        Deferring, "_cancel", _in_words_only,
    ),
    (
        "removed-in-words", "a message that was removed while it waited comes all the same",
        Deferring, "remove", _removed_in_words,
    ),
    (
        "counts-nobody", "a message's receivers are not counted",
        Intake, "_receive_counting", _counts_nobody,
    ),
    (
        "silent-letters", "dead letters do not say why they are",
        LetterWires, "with_reason", _says_nothing,
    ),
    (
        "believed-letters", "what a producer says of dead letters is passed on",
        rewriting, "_without", _believes_producers,
    ),
    (
        "look-overlooks", "who looks into a queue does not see what is in flight",
        Browsing, "_begin", _overlooks_flights,
    ),
    (
        "look-takes", "who looks into a queue takes away what waits",
        WaitingList, "snapshot", _takes_what_it_shows,
    ),
    (
        "look-shows-all", "who looks for some messages of a queue is shown others",
        Browsing, "_consider", _shows_any_kind,
    ),
)  # fmt: skip
