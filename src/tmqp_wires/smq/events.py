"""The events of a client of Simple MQ, one class for each kind of line."""

from __future__ import annotations

from typing import TypeAlias, final

__all__ = ["Consume", "Done", "Event", "Publish", "Stats", "Unknown", "Violation"]


@final
class Publish:
    """``M:queue:body``, once or several consecutive times: put messages into a queue."""

    __slots__ = ("bodies", "queue")

    def __init__(self, queue: bytes, bodies: list[bytes]) -> None:
        self.queue = queue
        self.bodies = bodies

    def __repr__(self) -> str:
        return f"Publish({self.queue!r}, {self.bodies!r})"


@final
class Consume:
    """``C:queue``: consume the queue's messages."""

    __slots__ = ("queue",)

    def __init__(self, queue: bytes) -> None:
        self.queue = queue

    def __repr__(self) -> str:
        return f"Consume({self.queue!r})"


@final
class Done:
    """``D:queue:count``: so many messages have been processed."""

    __slots__ = ("count", "queue")

    def __init__(self, queue: bytes, count: int) -> None:
        self.queue = queue
        self.count = count

    def __repr__(self) -> str:
        return f"Done({self.queue!r}, {self.count})"


@final
class Stats:
    """``S``: how many messages are waiting or being processed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Stats()"


@final
class Unknown:
    """A line with an unknown letter; the answer is ``UNKNOWN_TYPE``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Unknown()"


@final
class Violation:
    """A line is too long: what follows cannot be understood.  ``text`` says what happened."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Violation({self.text!r})"


Event: TypeAlias = Publish | Consume | Done | Stats | Unknown | Violation
