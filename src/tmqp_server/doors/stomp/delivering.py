"""Writes the part of a MESSAGE that is the same for all subscriptions."""

from __future__ import annotations

from typing import Final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.stomp.message import StompMessage, headers_of
from tmqp_server.engine.model.message import Message
from tmqp_wires.stomp.frames import V1_2, header_lines, read_header_lines

__all__ = ["delivery_bytes", "in_version"]

#: Headers that programs find in every message, with their defaults.
_USUAL: Final = {b"priority:": b"priority:4\n", b"expires:": b"expires:0\n"}


def delivery_bytes(
    letters: Letters, message: Message, channel: str, redelivered: bool, *, views: bool
) -> bytes:
    """The part of a MESSAGE after the subscription's own headers, in the form of 1.2, shared by all
    consumers.

    :param letters: reads messages that arrived through doors of other protocols.
    :param channel: the channel that it is delivered from.
    :param views: show bodies that were made for other protocols; else these are empty.
    """
    wire = message.wire
    if isinstance(wire, StompMessage):
        lines, body, came_ms = wire.lines, wire.body, wire.came_ms
    else:
        letter = letters.of(message, channel)
        if letter.is_view and not views:
            letter.body, letter.content_type = b"", ""
        lines = header_lines(headers_of(letter), V1_2)
        body, came_ms = letter.body, letter.timestamp_ms
    # Ours are in front: of repeated headers the first one counts.
    own = b"content-length:%d\n" % len(body)
    if came_ms:
        own += b"timestamp:%d\n" % came_ms
    for name, usual in _USUAL.items():
        if not lines.startswith(name) and b"\n" + name not in lines:
            own += usual
    if redelivered:
        own += b"redelivered:true\n"
    return b"%s%s\n%s\0" % (own, lines, body)


def in_version(shared: bytes, version: str) -> bytes:
    """Convert a message from the form of 1.2 to that of another version, whose escapes differ."""
    head, _, rest = shared.partition(b"\n\n")
    if version == V1_2 or b"\\" not in head:
        return shared
    headers = read_header_lines(head.decode("utf-8"), V1_2)
    return header_lines(headers, version) + b"\n" + rest
