"""The plain codec: a second implementation of the frame layout, for comparisons and invalid frames.

It reads a whole byte string at once, keeps nothing between calls and proceeds step by step, so that
a reader can compare it with the specification (F1-F10).  It shares no code with :mod:`tmqp.codec`;
a test compares the two on the same bytes.  Its writer refuses nothing: lengths and texts may be
wrong on purpose.
"""

from __future__ import annotations

from typing import Final

from tmqp.limits import Limits

__all__ = ["Fields", "Reading", "header_block_bytes", "read_frames", "write_frame"]

#: What :meth:`tmqp.Frame.fields` returns: type, first acquirer, high priority, pending response,
#: pending acknowledge, time to live, message id, source, target, content type, headers, payload.
Fields = tuple[int, bool, bool, bool, bool, int, str, str, str, int, list[tuple[str, str]], bytes]

_PING_AND_PONG: Final = (0x09, 0x0A)
#: Which extended length follows the head (F4): tier -> bytes.
_WIDTH_OF_TIER: Final = {253: 2, 254: 4, 255: 8}


class Reading:
    """The contents of a byte string.

    ``frames`` are the fields of the complete frames, ``spans`` the beginning and end of each,
    ``rule`` the slug of the rule that the bytes after them break, or None; ``rest`` the number of
    bytes of an incomplete frame at the end (0 after a broken rule).
    """

    __slots__ = ("frames", "rest", "rule", "spans")

    def __init__(
        self, frames: list[Fields], spans: list[tuple[int, int]], rest: int, rule: str | None
    ) -> None:
        self.frames = frames
        self.spans = spans
        self.rest = rest
        self.rule = rule


class _BrokenRule(Exception):  # noqa: N818 - never leaves this module
    """A frame breaks a rule; has the rule's slug."""


def header_block_bytes(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """Write a header block without its length, from any pairs (F7)."""
    return b"".join(key + b":" + value + b"\r\n" for key, value in pairs)


def write_frame(
    message_type: int = 0x11,
    *,
    first_acquirer: bool = False,
    high_priority: bool = False,
    pending_response: bool = False,
    pending_acknowledge: bool = False,
    ttl: int = 16,
    message_id: bytes = b"",
    source: bytes = b"",
    target: bytes = b"",
    content_type: int = 0,
    header_block: bytes | None = None,
    payload: bytes = b"",
    tier: int | None = None,
    announced_payload_bytes: int | None = None,
    announced_block_bytes: int | None = None,
) -> bytes:
    """Write a frame field by field, valid or not.

    :param ttl: taken into the low bits of the second byte as it is, so 32..63 sets the bit that
        means "has header" on everything but ping and pong.
    :param header_block: None for no block; ``b""`` for the flag with an empty one (F9).
    :param tier: which length form to use: 0 (in the head), 253, 254 or 255; the smallest if None.
    :param announced_payload_bytes: the payload length to claim; the true one if None.
    :param announced_block_bytes: the header block length to claim; the true one if None.
    """
    size = len(payload) if announced_payload_bytes is None else announced_payload_bytes
    if tier is None:
        tier = 0 if size < 253 else 253 if size < 1 << 16 else 254 if size < 1 << 32 else 255
    first = message_type
    second = ttl
    for flag, bit in ((first_acquirer, 0x80), (high_priority, 0x40)):
        if flag:
            first |= bit
    for flag, bit in (
        (pending_response, 0x80),
        (pending_acknowledge, 0x40),
        (header_block is not None, 0x20),
    ):
        if flag:
            second |= bit
    parts = [
        bytes([first, second, len(message_id), len(source), len(target)]),
        content_type.to_bytes(2, "little"),
    ]
    if tier == 0:
        parts.append(bytes([size]))
    else:
        parts.append(bytes([tier]))
        parts.append(size.to_bytes(_WIDTH_OF_TIER[tier], "little"))
    parts += [message_id, source, target]
    if header_block is not None:
        claimed = len(header_block) if announced_block_bytes is None else announced_block_bytes
        parts += [claimed.to_bytes(2, "little"), header_block]
    parts.append(payload)
    return b"".join(parts)


def read_frames(data: bytes, limits: Limits | None = None) -> Reading:
    """Read all frames of ``data``; check every rule as soon as the bytes allow it."""
    bounds = Limits() if limits is None else limits
    frames: list[Fields] = []
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(data):
        try:
            one = _read_frame(data[start:], bounds)
        except _BrokenRule as broken:
            return Reading(frames, spans, 0, str(broken))
        if one is None:
            break
        fields, size = one
        frames.append(fields)
        spans.append((start, start + size))
        start += size
    return Reading(frames, spans, len(data) - start, None)


def _read_frame(data: bytes, limits: Limits) -> tuple[Fields, int] | None:
    """Read the frame at the beginning of ``data``: its fields and size, None if incomplete."""
    if len(data) < 8:
        return None
    message_type = data[0] & 0x3F
    at = 8
    size = data[7]
    if size in _WIDTH_OF_TIER:
        width = _WIDTH_OF_TIER[size]
        if len(data) < at + width:
            return None
        size = int.from_bytes(data[at : at + width], "little")
        at += width
    if size > limits.max_payload_bytes:
        raise _BrokenRule("payload-limit")
    if max(data[2:5]) > limits.max_name_bytes:
        raise _BrokenRule("name-limit")
    names = []
    for length in data[2:5]:
        names.append(data[at : at + length])
        at += length
    block = b""
    if message_type not in _PING_AND_PONG and data[1] & 0x20:
        if len(data) < at + 2:
            return None
        block_bytes = int.from_bytes(data[at : at + 2], "little")
        if block_bytes > limits.max_header_bytes:
            raise _BrokenRule("header-limit")
        at += 2
        block = data[at : at + block_bytes]
        at += block_bytes
    if len(data) < at + size:
        return None
    try:
        message_id, source, target = (name.decode("utf-8") for name in names)
        headers = _read_headers(block)
    except UnicodeDecodeError:
        raise _BrokenRule("utf8") from None
    fields = (
        message_type,
        data[0] >= 0x80,
        data[0] & 0x40 == 0x40,
        data[1] >= 0x80,
        data[1] & 0x40 == 0x40,
        data[1] % (64 if message_type in _PING_AND_PONG else 32),
        message_id,
        source,
        target,
        data[5] + 256 * data[6],
        headers,
        data[at : at + size],
    )
    return fields, at + size


def _read_headers(block: bytes) -> list[tuple[str, str]]:
    """Split a block at CRLF and each line at its first colon, on the bytes (F7)."""
    block.decode("utf-8")
    pairs = []
    for line in block.split(b"\r\n"):
        key, colon, value = line.partition(b":")
        if key and colon:
            pairs.append((key.decode("utf-8"), value.decode("utf-8")))
    return pairs
