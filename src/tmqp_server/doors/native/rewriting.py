"""Adds headers to received messages, or removes headers, if the bytes cannot be forwarded
unchanged.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import HEADER_REQUEST_ID
from tmqp.frames import Frame
from tmqp_server.doors.letter_frames import OF_DEAD_LETTERS
from tmqp_server.doors.rewriting import rewritten, writable_headers

__all__ = ["with_header", "without_dead_letter_headers", "without_ours"]

_REQUEST_ID: Final = HEADER_REQUEST_ID.lower()
_REQUEST_ID_BYTES: Final = _REQUEST_ID.encode()
#: As their names begin.
_DEAD_LETTER_BYTES: Final = b"dead-letter-"
_THE_REQUEST_ID: Final = frozenset([_REQUEST_ID])
_OURS: Final = _THE_REQUEST_ID | OF_DEAD_LETTERS


def without_ours(frame: Frame, *, is_dead_letter: bool) -> Frame:
    """The frame without headers that only this server may write: the header that marks the results
    of a pull (F107) and, unless it is a dead letter, those of dead letters.

    A producer could write them too, and a client that pulls would take the message for a result.
    """
    block = frame.header_block.lower()
    if block.find(_REQUEST_ID_BYTES) < 0 and (is_dead_letter or block.find(_DEAD_LETTER_BYTES) < 0):
        return frame
    return _without(frame, _THE_REQUEST_ID if is_dead_letter else _OURS)


def without_dead_letter_headers(frame: Frame) -> Frame:
    """The frame without the headers that the server writes only into dead letters."""
    if frame.header_block.lower().find(_DEAD_LETTER_BYTES) < 0:
        return frame
    return _without(frame, OF_DEAD_LETTERS)


def _without(frame: Frame, names: frozenset[str]) -> Frame:
    """The frame without the headers of these names; the same frame if it has none of them."""
    said = writable_headers(frame)
    kept = [pair for pair in said if pair[0].lower() not in names]
    return frame if len(kept) == len(said) else rewritten(frame, kept)


def with_header(frame: Frame, name: str, value: str) -> Frame:
    """The frame with this header instead of its headers of the same name."""
    others = [pair for pair in writable_headers(frame) if pair[0].lower() != name.lower()]
    return rewritten(frame, [*others, (name, value)])
