"""Messages of several parts, sent as one: all of them arrive, or none.

The convention: the payload consists of the parts, one directly after the other, and the header
``Content-Parts`` has their lengths in bytes, in order, separated by commas:
``Content-Parts:5,0,12``.  One message is one frame, so nothing can come between its parts.  A
receiver that does not know the convention gets one payload.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from tmqp.errors import LocalProtocolError
from tmqp.frames import Frame
from tmqp_client._core.arguments import Headers, Payload, payload_bytes, to_pairs
from tmqp_client.errors import MalformedParts

__all__ = ["MAX_PARTS", "PARTS_HEADER", "Multipart", "parts_of", "with_parts"]

#: The header with the lengths of the parts.
PARTS_HEADER: Final = "Content-Parts"
#: The most parts of one message.
MAX_PARTS: Final = 4_096


class Multipart(bytes):
    """Several payloads as one.  Pass it as the payload to any method that also takes headers.

    ::

        await client.push("orders", 1, Multipart("envelope", picture))

    :raises LocalProtocolError: if there are no parts or too many, or one is not a payload.
    """

    lengths: tuple[int, ...]

    def __new__(cls, *parts: Payload) -> Self:
        """Join the parts."""
        if not 1 <= len(parts) <= MAX_PARTS:
            raise LocalProtocolError(f"a message has 1 to {MAX_PARTS} parts, got {len(parts)}")
        pieces = [payload_bytes(part) for part in parts]
        whole = super().__new__(cls, b"".join(pieces))
        whole.lengths = tuple(len(piece) for piece in pieces)
        return whole


def with_parts(payload: Payload, headers: Headers) -> Headers:
    """Return the headers, with ``Content-Parts`` added if the payload has parts."""
    if not isinstance(payload, Multipart):
        return headers
    lengths = ",".join(str(length) for length in payload.lengths)
    pairs: Iterable[tuple[str, str]] = to_pairs(headers)
    return (*pairs, (PARTS_HEADER, lengths))


def parts_of(frame: Frame) -> list[bytes]:
    """Return the parts of a message; the whole payload as one part if it has no ``Content-Parts``.

    :raises MalformedParts: if the header does not fit the payload.
    """
    payload = frame.payload
    value = frame.header(PARTS_HEADER)
    if value is None:
        return [payload]
    words = value.split(",", MAX_PARTS)
    if len(words) > MAX_PARTS or any(not _is_length(word) for word in words):
        raise MalformedParts(f"{PARTS_HEADER} is not a list of lengths: {value[:80]!r}")
    lengths = [int(word) for word in words]
    if sum(lengths) != len(payload):
        raise MalformedParts(f"the parts add up to {sum(lengths)} bytes, not {len(payload)}")
    parts: list[bytes] = []
    start = 0
    for length in lengths:
        parts.append(payload[start : start + length])
        start += length
    return parts


def _is_length(word: str) -> bool:
    # str.isdigit alone accepts digits of other alphabets, and int() signs and spaces.
    return word.isascii() and word.isdigit() and len(word) <= 12
