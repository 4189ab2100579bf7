"""Routing by the first part of a message: the option ``route = "first-frame"``.

The first part of a message from a PUSH, PUB, REQ or DEALER socket is then the name of a channel, or
a name, a semicolon and the number of a queue; the other parts are the message.  A SUB socket
subscribes to the name of a channel, and the messages that it gets have this name as their first
part.

Messages with an invalid name, or with more names than one socket may use, are dropped and counted;
requests are answered.  The right to push is checked for each message, as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from tmqp.constants import MAX_NAME_BYTES, MAX_QUEUE_ID
from tmqp_server.doors.zmtp.context import ZmtpContext
from tmqp_server.doors.zmtp.message import QUEUE
from tmqp_wires.zmtp.frames import bounds, is_multipart

__all__ = ["QUEUE_MARK", "Routes", "Target"]

#: Stands between the name of a channel and the number of a queue.
QUEUE_MARK: Final = b";"
_MOST_DIGITS: Final = len(str(MAX_QUEUE_ID))
_MOST_BYTES: Final = MAX_NAME_BYTES + len(QUEUE_MARK) + _MOST_DIGITS


@final
class Target:
    """A queue of a channel."""

    __slots__ = ("channel", "queue_id")

    def __init__(self, channel: str, queue_id: int) -> None:
        self.channel = channel
        self.queue_id = queue_id


@final
class Routes:
    """The names that one socket has used, with their targets."""

    def __init__(self, context: ZmtpContext) -> None:
        self._context = context
        self._known: dict[bytes, Target] = {}

    def find(self, name: bytes) -> Target | None:
        """The target of a name; None if the name is invalid, or one too many."""
        found = self._known.get(name) if len(name) <= _MOST_BYTES else None
        if found is not None:
            return found
        if len(self._known) >= self._context.limits.max_names:
            return None
        found = self.read(name)
        if found is not None:
            self._known[name] = found
        return found

    def read(self, name: bytes) -> Target | None:
        """The target of a name, without the limit on names; None if it is invalid."""
        if len(name) > _MOST_BYTES:
            return None
        spelt, mark, digits = name.partition(QUEUE_MARK)
        queue_id = QUEUE
        if mark:
            if not digits.isdigit() or len(digits) > _MOST_DIGITS:
                return None
            queue_id = int(digits)
        if not spelt or len(spelt) > MAX_NAME_BYTES or queue_id > MAX_QUEUE_ID:
            return None
        return Target(self._context.names.exact_channel(spelt), queue_id)

    def divided(self, raws: list[bytes]) -> Iterator[tuple[Target, list[bytes]]]:
        """Group consecutive messages for the same queue, without their first parts; messages
        without a target are counted."""
        target: Target | None = None
        row: list[bytes] = []
        for raw in raws:
            begin, end = bounds(raw, 0)
            found = self.find(raw[begin:end]) if is_multipart(raw) else None
            if found is None:
                self._context.refused += 1
                continue
            if target is not found and row:
                assert target is not None, "it is that of the row"
                yield target, row
                row = []
            target = found
            row.append(raw[end:])
        if target is not None and row:
            yield target, row
