"""Receives one large answer: directly from the kernel into its final memory.

Theory of operation.  A protocol decoder collects the chunks of a message and joins them, which
copies a large payload once more than necessary.  The head of an answer has its length, so the
memory for all of it is allocated here at once, and the kernel writes the rest into it.  The
connection's decoder gets the same answer without its payload, so that its state is as usual.
"""

from __future__ import annotations

import socket
from typing import Final

import numpy as np

from tmqp.bits import HAS_HEADER, HEAD_BYTES, LARGEST_SHORT, TYPE_BITS
from tmqp.constants import TYPE_RESPONSE

__all__ = ["LargeAnswer", "begin"]

#: The smallest answer for which this is worthwhile.
_LEAST_BYTES: Final = 131_072


class LargeAnswer:
    """An answer that is being received.

    ``message_id`` is that of the request; ``data`` is the memory for the whole answer, whose
    payload begins at ``start``; ``short`` is the answer without its payload.
    """

    __slots__ = ("_have", "data", "message_id", "short", "start")

    def __init__(self, first: bytes, size: int, start: int, message_id: str, short: bytes) -> None:
        self.data = np.empty(size, np.uint8).data
        self.data[: len(first)] = first
        self._have = len(first)
        self.message_id = message_id
        self.start = start
        self.short = short

    @property
    def missing(self) -> int:
        """The number of bytes that are still missing."""
        return len(self.data) - self._have

    def receive(self, sock: socket.socket) -> int:
        """Receive bytes from the socket, with its timeout; return their number."""
        count = sock.recv_into(self.data[self._have :])
        self._have += count
        return count


def begin(first: bytes) -> LargeAnswer | None:
    """Prepare to receive the answer that begins with these bytes; None if they are no answer, or
    not a large one, or too few to tell.

    :param first: the first bytes of a single message.
    """
    if (
        len(first) < HEAD_BYTES
        or first[0] & TYPE_BITS != TYPE_RESPONSE
        or first[7] <= LARGEST_SHORT
    ):
        return None
    names = HEAD_BYTES + (1 << (first[7] - LARGEST_SHORT))
    ids_end = names + first[2]
    start = ids_end + first[3] + first[4]
    if first[1] & HAS_HEADER:
        if len(first) < start + 2:
            return None
        start += 2 + int.from_bytes(first[start : start + 2], "little")
    size = start + int.from_bytes(first[HEAD_BYTES:names], "little")
    if start > len(first) or size < max(_LEAST_BYTES, len(first)):
        return None
    short = first[:7] + b"\0" + first[names:start]
    try:
        message_id = first[names:ids_end].decode()
    except UnicodeDecodeError:
        return None
    return LargeAnswer(first, size, start, message_id, short)
