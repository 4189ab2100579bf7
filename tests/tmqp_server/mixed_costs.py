"""Messages that differ in their queue, size, headers and priority, for the works of ``costs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.codec import FrameDecoder
from tmqp.constants import TYPE_ACKNOWLEDGE, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame

__all__ = ["TURNS", "answer_to", "in_turn", "varied"]

#: Queues that one producer fills in turn.
TURNS: Final = 50


def varied(count: int, *, confirm: bool) -> list[bytes]:
    """Messages of 16 to 2,000 bytes with two headers of their own, every tenth with priority."""
    return [
        _message(
            number,
            1,
            b"x" * (16 + number * 619 % 1_985),
            confirm,
            headers=[("Customer", f"{number * 619 % 99_991}"), ("Trace", f"{number:016x}")],
        )
        for number in range(count)
    ]


def in_turn(count: int, *, confirm: bool) -> list[bytes]:
    """Messages into fifty queues in turn."""
    return [_message(number, 1 + number % TURNS, bytes(100), confirm) for number in range(count)]


def _message(
    number: int,
    queue_id: int,
    payload: bytes,
    confirm: bool,
    headers: Sequence[tuple[str, str]] = (),
) -> bytes:
    return Frame.build(
        TYPE_QUEUE_MESSAGE,
        "c",
        queue_id,
        payload,
        message_id=f"{number * 7919:032x}",
        source="client1",
        pending_acknowledge=confirm,
        high_priority=len(headers) > 0 and number % 10 == 0,
        headers=headers,
    ).raw


def answer_to(message: bytes) -> bytes:
    """The acknowledgement of a message."""
    (frame,) = FrameDecoder().feed(message)
    return Frame.build(
        TYPE_ACKNOWLEDGE, "c", frame.content_type, message_id=frame.message_id, source="client2"
    ).raw
