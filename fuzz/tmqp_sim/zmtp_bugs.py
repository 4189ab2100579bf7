"""The bugs that are planted in the door of ZeroMQ; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tmqp_server.doors.zmtp.filters import TopicFilter
from tmqp_server.doors.zmtp.message import ZmtpBodies
from tmqp_server.doors.zmtp.roles import PullRole, PushRole, SubscribingRole
from tmqp_server.doors.zmtp.services import AskingRole, WorkingRole
from tmqp_server.doors.zmtp.session import ZmtpSession
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Confirm, Deliver
from tmqp_server.engine.model.message import Message
from tmqp_wires.zmtp.connection import ZmtpConnection

__all__ = ["ZMTP_BUGS"]


def _gives_all_back(original: Any) -> Any:
    def take_back(self: PullRole, sent: int) -> tuple[int, Sequence[Command]]:
        self._ids, self._begins = [], []
        return -1, ()

    return take_back


def _forgets_the_last(original: Any) -> Any:
    def take(self: PushRole, raws: list[bytes]) -> Sequence[Command]:
        commands: Sequence[Command] = original(self, raws[:-1] if len(raws) > 2 else raws)
        return commands

    return take


def _drops_uncounted(original: Any) -> Any:
    def deliver(self: SubscribingRole, effect: Deliver, shared: bytes) -> None:
        missed = self._missed
        original(self, effect, shared)
        self._missed = missed

    return deliver


def _counts_since_it_was_empty(original: Any) -> Any:
    def left(self: SubscribingRole, sent: int) -> None:
        """What has left counts until nothing waits."""

    return left


def _looks_for_it_anywhere(original: Any) -> Any:
    def accepts(self: TopicFilter, message: Message) -> bool:
        topic = self._topic(message)
        return any(prefix in topic for prefix in self._prefixes)

    return accepts


def _stays_subscribed(original: Any) -> Any:
    def cancel(self: SubscribingRole, prefix: bytes) -> None:
        """Still want it."""

    return cancel


def _two_at_a_time(original: Any) -> Any:
    def init(self: WorkingRole, *arguments: Any) -> None:
        original(self, *arguments)
        self._window += 1

    return init


def _the_usual_envelope(original: Any) -> Any:
    def hear(self: AskingRole, data: bytes) -> None:
        self._envelopes.clear()
        original(self, data)

    return hear


def _deaf_to_the_disk(original: Any) -> Any:
    def confirmed(self: AskingRole, effect: Confirm) -> None:
        """Nobody tells who has asked."""

    return confirmed


def _first_part_only(original: Any) -> Any:
    def stored(self: ZmtpBodies, message: Message) -> tuple[bytes, int, int]:
        body, at, size = original(self, message)
        kind = body[0] & 2
        if kind == body[0]:
            return body, at, size
        end = at + 4
        first = int.from_bytes(body[at:end], "big")
        return bytes((kind,)) + body[1:at] + body[end : end + first], at, first

    return stored


def _never_looks(original: Any) -> Any:
    def next_deadline(self: ZmtpSession) -> float | None:
        return None

    return next_deadline


def _pings_the_silent(original: Any) -> Any:
    def receive(self: ZmtpConnection, data: bytes, now: float) -> Any:
        events = original(self, data, now)
        if self._config.as_server and self._ping_due < float("inf"):
            self._ping_due = now + self._config.heartbeat_s
        return events

    return receive


#: What a mutant is made of.
ZMTP_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "zmtp-sent-twice", "what a PULL socket may have goes to another when its connection ends",
        PullRole, "take_back", _gives_all_back,
    ),
    (
        "zmtp-last-forgotten", "the last of several messages of a PUSH socket is not taken in",
        PushRole, "take", _forgets_the_last,
    ),
    (
        "zmtp-uncounted-drop", "nobody counts what is dropped for a slow subscriber",
        SubscribingRole, "deliver", _drops_uncounted,
    ),
    (
        "zmtp-counts-on", "of a subscriber what has left counts for its mark until nothing waits",
        SubscribingRole, "left", _counts_since_it_was_empty,
    ),
    (
        "zmtp-anywhere", "a subscriber gets what has its prefix anywhere",
        TopicFilter, "accepts", _looks_for_it_anywhere,
    ),
    (
        "zmtp-stays-subscribed", "a subscription that is cancelled stays",
        SubscribingRole, "cancel", _stays_subscribed,
    ),
    (
        "zmtp-two-at-a-time", "a REP socket gets a request beside another",
        WorkingRole, "__init__", _two_at_a_time,
    ),
    (
        "zmtp-usual-envelope", "a reply comes without the envelope of its request",
        AskingRole, "hear", _the_usual_envelope,
    ),
    (
        "zmtp-deaf-to-the-disk", "who has asked is not told that the disk has lost the request",
        AskingRole, "confirmed", _deaf_to_the_disk,
    ),
    (
        "zmtp-first-part", "of a message of several parts only the first is kept",
        ZmtpBodies, "stored", _first_part_only,
    ),
    (
        "zmtp-no-heartbeat", "a peer is neither asked for a sign of life nor given up",
        ZmtpSession, "next_deadline", _never_looks,
    ),
    (
        "zmtp-pings-the-silent", "a peer that speaks hears nothing, and was told how long it may",
        ZmtpConnection, "receive", _pings_the_silent,
    ),
)  # fmt: skip
