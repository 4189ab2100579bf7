"""Conversations for the wire fuzzer: those of the suite, and what becomes of them.

A conversation is what up to three clients send, piece by piece.  Mutations work on messages (drop,
repeat, swap, splice), on fields (boundary lengths, lies, flags, types), on bytes, and on the cuts.
Most of them leave the beginning alone, or everything would end in the hello.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tmqp import Frame, FrameDecoder, Limits, MessageType
from tmqp.testing import Seeded, damage, odd_frame, pieces, plain_frame, write_frame
from tmqp.testing.conformance import Case
from tmqp.testing.conformance.patterns import Names
from tmqp.testing.conformance.steps import Say

__all__ = ["MUTATIONS", "Piece", "as_pieces", "mutated", "seeds", "with_names"]

_MARK: Final = re.compile(rb"\$([a-z][a-z0-9])_{5}")
_READER: Final = Limits(max_payload_bytes=268_435_456)
_LINES: Final = 3
#: Longer conversations are no seeds: they cost time and teach nothing.
_SEED_BYTES: Final = 20_000
_SIZES: Final = (0, 1, 252, 253, 254, 255, 65_535, 65_536, 1 << 20, 1 << 31, (1 << 32) - 1, 1 << 63)
_NAMES: Final = (b"", b"a", b"x" * 255, b"\xff", b"\xc3", b"@name:n", b"@type:t", b"a b", b"\0")
_BLOCKS: Final = (
    *(None, b"", b"k:v\r\n", b"no colon\r\n", b":\r\n", b"k:\xff\r\n", b"Count:1\r\n"),
    *(b"Count:-1\r\n", b"Queue-Id:70000\r\n", b"Queue-Status:push\r\n", b"CC:$ch;1\r\n"),
    b"Queue-Id:1\r\nQueue-Status:pull\r\n",
)


@dataclass(frozen=True, slots=True)
class Piece:
    """What one client sends in one write."""

    line: int
    data: bytes


def seeds(cases: Iterable[Case]) -> list[list[Piece]]:
    """The conversations of cases for servers, with ``$name`` where a name is."""
    found = []
    for case in cases:
        lines: dict[str, int] = {}
        conversation: list[Piece] = []
        for step in case.steps:
            if not isinstance(step, Say):
                continue
            line = lines.setdefault(step.line, len(lines))
            parts = [
                item if isinstance(item, bytes) else item.encode(_Same(), f"m{len(conversation)}")
                for item in step.items
            ]
            conversation.append(Piece(line, b"".join(parts)))
        size = sum(len(piece.data) for piece in conversation)
        if conversation and len(lines) <= _LINES and size <= _SEED_BYTES:
            found.append(conversation)
    return found


def with_names(data: bytes, number: int) -> bytes:
    """The bytes of a conversation with names that no other of a million has."""
    if b"$" not in data:
        return data
    return _MARK.sub(rb"\g<1>x" + f"{number & 0xFFFFF:05x}".encode(), data)


class _Same(Names):
    """Names that stay as they are written, so that each run can have its own."""

    def __init__(self) -> None:
        super().__init__("")

    def value(self, word: str) -> str:
        """A mark of eight characters: the length of a name is in its frame."""
        return f"${word[0]}{word[-1]}_____"


def _messages(data: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Preamble, whole messages, and the rest."""
    begin = data[:8] if data.startswith((b"TMQP/2.0", b"TMQ/1.01")) else b""
    decoder = FrameDecoder(_READER)
    found = [frame.raw for frame in decoder.feed(data[len(begin) :])]
    used = len(begin) + sum(len(raw) for raw in found)
    return begin, found, data[used:]


def mutated(
    draw: Seeded, conversation: list[Piece], others: list[list[Piece]]
) -> tuple[list[Piece], list[str]]:
    """A conversation with one to four mutations, and their names."""
    found = list(conversation)
    names = []
    for _ in range(1 + draw.below(4)):
        name = _NAMES_OF_MUTATIONS[draw.below(len(_NAMES_OF_MUTATIONS))]
        place = draw.below(len(found))
        # The first piece of a line is its hello: three times in four another one is taken.
        if place == 0 and len(found) > 1 and not draw.one_in(4):
            place = 1 + draw.below(len(found) - 1)
        change = MUTATIONS[name](draw, found[place].data, others)
        found[place] = Piece(found[place].line, change)
        names.append(name)
    return found, names


def as_pieces(draw: Seeded, conversation: list[Piece]) -> list[Piece]:
    """The conversation, now and then cut into smaller pieces."""
    if not draw.one_in(3):
        return conversation
    return [
        Piece(piece.line, part)
        for piece in conversation
        for part in pieces(draw, piece.data, 1 + draw.below(6))
    ]


def _drop(draw: Seeded, data: bytes, _others: list[list[Piece]]) -> bytes:
    begin, messages, rest = _messages(data)
    if messages:
        del messages[draw.below(len(messages))]
    return begin + b"".join(messages) + rest


def _repeat(draw: Seeded, data: bytes, _others: list[list[Piece]]) -> bytes:
    begin, messages, rest = _messages(data)
    if messages:
        place = draw.below(len(messages))
        messages[place:place] = [messages[place]] * (1 + draw.below(3))
    return begin + b"".join(messages) + rest


def _swap(draw: Seeded, data: bytes, _others: list[list[Piece]]) -> bytes:
    begin, messages, rest = _messages(data)
    if len(messages) > 1:
        one, other = draw.below(len(messages)), draw.below(len(messages))
        messages[one], messages[other] = messages[other], messages[one]
    return begin + b"".join(messages) + rest


def _splice(draw: Seeded, data: bytes, others: list[list[Piece]]) -> bytes:
    other = others[draw.below(len(others))]
    _, messages, _ = _messages(other[draw.below(len(other))].data)
    if not messages:
        return data
    return data + messages[draw.below(len(messages))]


def _field(draw: Seeded, data: bytes, _others: list[list[Piece]]) -> bytes:
    begin, messages, rest = _messages(data)
    if not messages:
        return data
    place = draw.below(len(messages))
    (frame,) = FrameDecoder(_READER).feed(messages[place])
    messages[place] = _with_a_field(draw, frame)
    return begin + b"".join(messages) + rest


def _with_a_field(draw: Seeded, frame: Frame) -> bytes:
    values: dict[str, object] = {
        "message_type": frame.type,
        "first_acquirer": frame.first_acquirer,
        "high_priority": frame.high_priority,
        "pending_response": frame.pending_response,
        "pending_acknowledge": frame.pending_acknowledge,
        "ttl": frame.ttl & 31,
        "message_id": frame.message_id.encode(),
        "source": frame.source.encode(),
        "target": frame.target.encode(),
        "content_type": frame.content_type,
        "header_block": frame.header_block if frame.has_header else None,
        "payload": frame.payload,
    }
    name = ("message_id", "source", "target")[draw.below(3)]
    changes: tuple[tuple[str, object], ...] = (
        ("message_type", draw.below(64)),
        ("ttl", draw.below(64)),
        ("content_type", (draw.below(1 << 16), draw.below(800))[draw.below(2)]),
        ("header_block", _BLOCKS[draw.below(len(_BLOCKS))]),
        ("tier", (253, 254, 255)[draw.below(3)]),
        ("announced_payload_bytes", _SIZES[draw.below(len(_SIZES))]),
        ("announced_block_bytes", draw.below(1 << 16)),
        ("payload", draw.some_bytes(draw.below(300))),
        (name, _NAMES[draw.below(len(_NAMES))]),
        *((flag, draw.one_in(2)) for flag in ("pending_response", "pending_acknowledge")),
        *((flag, draw.one_in(2)) for flag in ("first_acquirer", "high_priority")),
    )
    for _ in range(1 + draw.below(3)):
        key, value = changes[draw.below(len(changes))]
        values[key] = value
    if values.get("tier") == 253 and isinstance(size := values.get("announced_payload_bytes"), int):
        values["announced_payload_bytes"] = size & 0xFFFF
    if values.get("tier") == 254 and isinstance(size := values.get("announced_payload_bytes"), int):
        values["announced_payload_bytes"] = size & 0xFFFF_FFFF
    return write_frame(**values)  # type: ignore[arg-type]  # fields of a frame


def _bytes(draw: Seeded, data: bytes, _others: list[list[Piece]]) -> bytes:
    return damage(draw, data)


def _odd(draw: Seeded, data: bytes, _others: list[list[Piece]]) -> bytes:
    return data + odd_frame(draw)


def _plain(draw: Seeded, data: bytes, _others: list[list[Piece]]) -> bytes:
    kind = (None, *MessageType)[draw.below(1 + len(MessageType))]
    return data + plain_frame(draw, None if kind is None else int(kind)).raw


#: Every mutation by its name.
MUTATIONS: Final = {
    "drop": _drop,
    "repeat": _repeat,
    "swap": _swap,
    "splice": _splice,
    "field": _field,
    "fields": _field,
    "bytes": _bytes,
    "odd": _odd,
    "plain": _plain,
}
_NAMES_OF_MUTATIONS: Final = tuple(MUTATIONS)
