"""The names and commands that the cases of ``filling.py`` are made of."""

from __future__ import annotations

from typing import Final

from tmqp.constants import STATUS_PULL, STATUS_PUSH, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp_server.engine import commands as c
from tmqp_server.engine.options import QueueChanges

__all__ = ["DURABLE", "ME", "PULLED", "YEARS_MS", "frame", "name", "push", "queue"]

ME: Final = 1
DURABLE: Final = QueueChanges(durable=True, status=STATUS_PUSH)
PULLED: Final = QueueChanges(status=STATUS_PULL)
YEARS_MS: Final = 300_000_000_000


def name(number: int, length: int = 10) -> str:
    """A name that no other number has."""
    return f"n{number:0{length - 1}}"


def frame(number: int, size: int = 10) -> Frame:
    """A message as a client sends it."""
    return Frame.build(
        TYPE_QUEUE_MESSAGE, "ch", 1, bytes(size), message_id=f"{number:032x}", source="me"
    )


def push(
    number: int,
    queue_id: int = 1,
    session: int = ME,
    channel: str = "ch",
    ttl_ms: int = 0,
    delay_ms: int = 0,
) -> c.Push:
    """A push as the door makes it."""
    made = frame(number)
    extras = None
    if ttl_ms or delay_ms:
        extras = c.PushExtras(expires_in_ms=ttl_ms, delay_ms=delay_ms)
    size = len(made.raw)
    return c.Push(session, made.message_id, channel, queue_id, False, False, size, made, extras)


def queue(queue_id: int = 1, changes: QueueChanges | None = None, channel: str = "ch") -> c.Command:
    """Create a queue."""
    return c.CreateQueue(ME, "r", channel, queue_id, changes)
