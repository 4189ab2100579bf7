"""The bugs that are planted in the door of NSQ; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tmqp_server.access import gate
from tmqp_server.access.needs import Need
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.door import NsqDoor
from tmqp_server.doors.nsq.measuring import MeasuringSession
from tmqp_server.doors.nsq.publishing import PublishingSession
from tmqp_server.doors.nsq.session import NsqSession
from tmqp_server.engine.commands import (
    Command,
    Extend,
    Push,
    Release,
    RemoveChannels,
    SetTerms,
)
from tmqp_server.engine.effects import Deliver
from tmqp_server.engine.model.removals import Removal
from tmqp_server.engine.operations.administration import Administration
from tmqp_wires.nsq.writing import retried

__all__ = ["NSQ_BUGS"]


def _always_the_first_attempt(original: Any) -> Any:
    def encode(self: NsqDoor, effect: Deliver) -> bytes:
        return retried(original(self, effect), 1)

    return encode


def _one_too_many(original: Any) -> Any:
    def commands(self: NsqSession, *rest: Any) -> Sequence[Command]:
        found: Sequence[Command] = original(self, *rest)
        for command in found:
            if isinstance(command, SetTerms) and command.terms.window:
                command.terms.window += 1
        return found

    return commands


def _requeues_at_once(original: Any) -> Any:
    def commands(self: NsqSession, *rest: Any) -> Sequence[Command]:
        found: Sequence[Command] = original(self, *rest)
        for command in found:
            if isinstance(command, Release):
                command.delay_ms = 0
        return found

    return commands


def _touch_too_short(original: Any) -> Any:
    def commands(self: NsqSession, *rest: Any) -> Sequence[Command]:
        found: Sequence[Command] = original(self, *rest)
        for command in found:
            if isinstance(command, Extend):
                command.timeout_ms //= 10
        return found

    return commands


def _deferred_too_short(original: Any) -> Any:
    def commands(self: NsqSession, *rest: Any) -> Sequence[Command]:
        found: Sequence[Command] = original(self, *rest)
        for command in found:
            if isinstance(command, Push) and command.extras is not None:
                command.extras.delay_ms //= 10
        return found

    return commands


def _forgets_the_last(original: Any) -> Any:
    def push(
        self: PublishingSession, word: bytes, topic: bytes, bodies: list[bytes], *rest: Any
    ) -> None:
        original(self, word, topic, bodies[:-1] if word == b"MPUB" else bodies, *rest)

    return push


def _unknown_here(original: Any) -> Any:
    def message_id(self: NsqContext, session: int, name: bytes) -> str:
        return name.decode("latin-1")

    return message_id


def _never_beats(original: Any) -> Any:
    def next_deadline(self: NsqSession) -> float | None:
        return None

    return next_deadline


def _counts_what_failed(original: Any) -> Any:
    def answer_failed(self: MeasuringSession, word: bytes, name: bytes, code: int) -> None:
        self._finished.pop(name, None)
        original(self, word, name, code)

    return answer_failed


def _asks_about_the_first(original: Any) -> Any:
    def all_needs(command: Command) -> list[Need]:
        found: list[Need] = original(command)
        return found[:1] if isinstance(command, RemoveChannels) else found

    return all_needs


def _leaves_the_first(original: Any) -> Any:
    def remove_several(self: Administration, removals: list[Removal]) -> None:
        if len(removals) > 1:
            removals[0].over = True
            del removals[0]
        original(self, removals)

    return remove_several


#: What a mutant is made of.
NSQ_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "nsq-first-attempt", "every delivery says that it is the first attempt",
        NsqDoor, "encode_delivery", _always_the_first_attempt,
    ),
    (
        "nsq-one-too-many", "a consumer gets one message more than it is ready for",
        NsqSession, "_commands", _one_too_many,
    ),
    (
        "nsq-requeued-at-once", "the delay of REQ is ignored",
        NsqSession, "_commands", _requeues_at_once,
    ),
    (
        "nsq-touch-too-short", "TOUCH gives a tenth of the time",
        NsqSession, "_commands", _touch_too_short,
    ),
    (
        "nsq-deferred-too-short", "DPUB defers for a tenth of its time",
        NsqSession, "_commands", _deferred_too_short,
    ),
    (
        "nsq-last-forgotten", "the last message of an MPUB is answered, and not taken in",
        PublishingSession, "_push", _forgets_the_last,
    ),
    (
        "nsq-foreign-for-ever", "messages of other protocols cannot be finished",
        NsqContext, "message_id", _unknown_here,
    ),
    (
        "nsq-no-heartbeat", "a client is neither asked for a sign of life nor given up",
        NsqSession, "next_deadline", _never_beats,
    ),
    (
        "nsq-late-measured", "the latency of a message is counted though its FIN failed",
        MeasuringSession, "_answer_failed", _counts_what_failed,
    ),
    (
        "removes-unasked", "who may remove the first of several channels removes all of them",
        gate, "all_needs", _asks_about_the_first,
    ),
    (
        "removes-all-but-one", "of several channels the first stays",
        Administration, "_remove_several", _leaves_the_first,
    ),
)  # fmt: skip
