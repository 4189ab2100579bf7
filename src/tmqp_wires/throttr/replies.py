"""Encodes replies and pushes of Throttr, for servers.

A number that is too large for its bytes is written as the largest that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp_wires.throttr.words import (
    DIALECT_73,
    EVENT,
    ID_BYTES,
    INFO_FIELDS,
    PUSH_71,
    VERSION_BYTES,
    YES,
    most_of,
)

__all__ = [
    "CHANNEL_WEIGHT",
    "CONNECTION_WEIGHT",
    "LIST_WEIGHT",
    "STATS_WEIGHT",
    "Fragments",
    "channel_head",
    "channel_reply",
    "connection_entry",
    "get_reply",
    "info_reply",
    "list_head",
    "number",
    "push_bytes",
    "query_reply",
    "stat_reply",
    "stats_head",
    "subscriber_entry",
    "whoami_reply",
]

#: By how much an item of a listing fills its fragment, beside its name.
LIST_WEIGHT: Final = 9
STATS_WEIGHT: Final = 33
CHANNEL_WEIGHT: Final = 25
CONNECTION_WEIGHT: Final = 237
#: A fragment is not filled beyond this, unless by its only item.
_FULL: Final = 2_048

_MOST_64: Final = most_of(8)
_IP_BYTES: Final = 16
_PORT_BYTES: Final = 2


def number(value: int, width: int) -> bytes:
    """Encode a number; if it does not fit, the largest that does."""
    most = (1 << (8 * width)) - 1
    return (min(value, most)).to_bytes(width, "little")


def _u64(value: int) -> bytes:
    return (min(value, _MOST_64)).to_bytes(8, "little")


def query_reply(quota: int, ttl_type: int, ttl: int, width: int) -> bytes:
    """The reply to a QUERY that has found a counter."""
    return b"\x01%b%c%b" % (number(quota, width), ttl_type, number(ttl, width))


def get_reply(ttl_type: int, ttl: int, value: bytes, width: int) -> bytes:
    """The reply to a GET that has found a buffer.  A value that is too long for its size is cut
    off."""
    most = (1 << (8 * width)) - 1
    if len(value) > most:
        value = value[:most]
    return b"\x01%c%b%b%b" % (ttl_type, number(ttl, width), number(len(value), width), value)


def stat_reply(reads_per_minute: int, writes_per_minute: int, reads: int, writes: int) -> bytes:
    """The reply to a STAT that has found a key."""
    return YES + b"".join(
        [_u64(each) for each in (reads_per_minute, writes_per_minute, reads, writes)]
    )


def whoami_reply(identity: bytes) -> bytes:
    """The reply to a WHOAMI.

    :raises ValueError: when the id has not 16 bytes.
    """
    return YES + _checked_id(identity)


def info_reply(numbers: Sequence[int], version: str) -> bytes:
    """The reply to an INFO: the numbers of ``INFO_FIELDS``, and the server's version.

    :raises ValueError: when there are more or fewer.
    """
    if len(numbers) != len(INFO_FIELDS):
        raise ValueError(f"INFO has {len(INFO_FIELDS)} numbers, not {len(numbers)}")
    text = version.encode()[:VERSION_BYTES].ljust(VERSION_BYTES, b"\0")
    return YES + b"".join([_u64(each) for each in numbers]) + text


def list_head(
    key: bytes, kind: int, ttl_type: int, deadline_ns: int, size: int, width: int
) -> bytes:
    """A key in a LIST, without its name; the deadline is a time since 1970."""
    return b"%c%c%c%b%b" % (len(key), kind, ttl_type, _u64(deadline_ns), number(size, width))


def stats_head(
    key: bytes, reads_per_minute: int, writes_per_minute: int, reads: int, writes: int
) -> bytes:
    """A key in a STATS, without its name."""
    figures = [_u64(each) for each in (reads_per_minute, writes_per_minute, reads, writes)]
    return bytes((len(key),)) + b"".join(figures)


def channel_head(channel: bytes, read_bytes: int, write_bytes: int, subscribers: int) -> bytes:
    """A channel in a CHANNELS, without its name."""
    figures = _u64(read_bytes) + _u64(write_bytes) + _u64(subscribers)
    return bytes((len(channel),)) + figures


def subscriber_entry(
    identity: bytes, subscribed_ns: int, read_bytes: int, write_bytes: int
) -> bytes:
    """A subscriber in a CHANNEL."""
    figures = _u64(subscribed_ns) + _u64(read_bytes) + _u64(write_bytes)
    return _checked_id(identity) + figures


def channel_reply(entries: Sequence[bytes]) -> bytes:
    """The reply to a CHANNEL that has subscribers."""
    return YES + _u64(len(entries)) + b"".join(entries)


def connection_entry(
    identity: bytes,
    peer: str,
    port: int,
    figures: Sequence[int],
    requests: Sequence[int],
    dialect: str,
    *,
    unix: bool = False,
) -> bytes:
    """A connection, in a CONNECTIONS or as the reply to a CONNECTION.

    :param figures: since when, in nanoseconds since 1970, and bytes read, written, published,
        received, allocated, consumed.
    :param requests: counts in the order of ``ORDER_IN_CONNECTION``.
    :param unix: whether it comes from a Unix socket.
    """
    kind = bytes((0, int(unix))) if dialect == DIALECT_73 else b""
    version = 6 if ":" in peer else 4
    address = peer.encode("ascii", "replace")[:_IP_BYTES].ljust(_IP_BYTES, b"\0")
    head = _checked_id(identity) + kind + bytes((version,)) + address
    numbers = [_u64(each) for each in (*figures, *requests)]
    return head + number(port, _PORT_BYTES) + b"".join(numbers)


def push_bytes(dialect: str, channel: bytes, payload: bytes, width: int) -> bytes:
    """The push for a subscriber; empty if the payload is too long for its size."""
    if len(payload) > most_of(width):
        return b""
    size = len(payload).to_bytes(width, "little")
    if dialect == DIALECT_73:
        return b"%c%c%b%b%b" % (EVENT, len(channel), size, channel, payload)
    return b"%c%b%b" % (PUSH_71, size, payload)


def _checked_id(identity: bytes) -> bytes:
    if len(identity) != ID_BYTES:
        raise ValueError(f"an id has {ID_BYTES} bytes, not {len(identity)}")
    return identity


@final
class Fragments:
    """A list that is made item by item: the status, the number of fragments, and the fragments."""

    def __init__(self) -> None:
        self._done: list[bytes] = []
        self._heads: list[bytes] = []
        self._names: list[bytes] = []
        self._weight = 0
        self._count = 0
        #: Bytes of the whole reply, but for the heads of fragments.
        self.size = 9

    def add(self, head: bytes, name: bytes, weight: int) -> None:
        """Add an item.

        :param weight: how much it fills its fragment.
        """
        if self._weight + weight > _FULL:
            self._close()
        self._weight += weight
        self._heads.append(head)
        self._names.append(name)
        self.size += len(head) + len(name)

    def _close(self) -> None:
        if self._heads:
            self._count += 1
            self._done.append(_u64(self._count) + _u64(len(self._heads)))
            self._done += self._heads
            self._done += self._names
            self._heads = []
            self._names = []
            self._weight = 0

    def reply(self) -> bytes:
        """The complete reply."""
        self._close()
        return YES + _u64(self._count) + b"".join(self._done)
