"""The bugs that are planted in the hub and in the native door; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.doors.native.answers import ConfirmWriter
from tmqp_server.doors.native.door import NativeDoor, NativeSession
from tmqp_server.engine.commands import Acknowledge, Command
from tmqp_server.engine.effects import Confirm, Deliver
from tmqp_server.hub.coalescing import Coalescer
from tmqp_server.hub.outlets import Outlets

__all__ = ["DOOR_BUGS"]


def _skips_the_last(original: Any) -> Any:
    def hand_out(self: Outlets, effect: Any) -> None:
        sessions = effect.sessions
        if len(sessions) > 1:
            effect.sessions = sessions[:-1]
        original(self, effect)
        effect.sessions = sessions

    return hand_out


def _never(original: Any) -> Any:
    def never(*arguments: Any) -> bool:
        return False

    return never


def _drops_the_last(original: Any) -> Any:
    def take(self: Coalescer) -> Any:
        taken = original(self)
        for coalesced in taken:
            for share in coalesced.shares:
                if len(share.sessions) > 1:
                    share.sessions.pop()
        return taken

    return take


def _asks_no_answer(original: Any) -> Any:
    def encode(self: NativeDoor, effect: Deliver) -> bytes:
        wants = effect.wants_acknowledge
        effect.wants_acknowledge = wants and not effect.redelivered
        data: bytes = original(self, effect)
        effect.wants_acknowledge = wants
        return data

    return encode


def _always_first(original: Any) -> Any:
    def encode(self: NativeDoor, effect: Deliver) -> bytes:
        first = effect.first_acquirer
        effect.first_acquirer = True
        data: bytes = original(self, effect)
        effect.first_acquirer = first
        return data

    return encode


def _keeps_its_hops(original: Any) -> Any:
    def encode(self: NativeDoor, effect: Deliver) -> bytes:
        frame: Any = effect.message.wire
        data: bytes = frame.forwarded(effect.first_acquirer, effect.wants_acknowledge, frame.ttl)
        return data

    return encode


def _deaf_to_no(original: Any) -> Any:
    def acknowledge(self: NativeSession, event: Any, commands: list[Command]) -> None:
        original(self, event, commands)
        if commands and isinstance(commands[-1], Acknowledge):
            commands[-1].positive = True

    return acknowledge


def _only_positives(original: Any) -> Any:
    def write(self: ConfirmWriter, effect: Confirm) -> bytes:
        if not effect.positive:
            effect.positive = True
            effect.forwarded = None
        data: bytes = original(self, effect)
        return data

    return write


DOOR_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "skips-the-last", "the last of several recipients gets nothing",
        Outlets, "hand_out", _skips_the_last,
    ),
    (
        "overtaken-run", "what is for a session goes out before its coalesced deliveries",
        Coalescer, "meets_any", _never,
    ),
    (
        "short-run", "the last of several sessions gets no coalesced deliveries",
        Coalescer, "take", _drops_the_last,
    ),
    (
        "asks-no-answer", "a message that is sent again asks for no acknowledge",
        NativeDoor, "encode_delivery", _asks_no_answer,
    ),
    (
        "always-first", "every consumer is told to be the first",
        NativeDoor, "encode_delivery", _always_first,
    ),
    (
        "endless-hops", "the time to live is not counted down",
        NativeDoor, "encode_delivery", _keeps_its_hops,
    ),
    (
        "deaf-to-no", "a negative acknowledge is read as a positive one",
        NativeSession, "_acknowledge", _deaf_to_no,
    ),
    (
        "only-positive", "a negative confirm is written as a positive one",
        ConfirmWriter, "write", _only_positives,
    ),
)  # fmt: skip
