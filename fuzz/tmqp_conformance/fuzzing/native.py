"""TMQP for the fuzzers: its messages and their fields, and the oracle, which is the protocol's own
connection: it reads the same bytes as the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from tmqp import (
    Connection,
    Event,
    Frame,
    FrameDecoder,
    HandshakeReceived,
    Limits,
    MessageDropped,
    MessageReceived,
    MessageType,
    ProtocolViolated,
    Role,
    State,
)
from tmqp.testing import Seeded, odd_frame, plain_frame, write_frame
from tmqp.testing.conformance import Case, Patience, Stage
from tmqp.testing.conformance.lines import Line, Log, Stream
from tmqp_conformance.fuzzing.mutate import seeds, with_names
from tmqp_conformance.grammar import Grammar, Oracle, Piece, Tally
from tmqp_conformance.keeper import PROBE, Keeper

__all__ = [
    "FIELDS",
    "NATIVE_GRAMMARS",
    "NativeGrammar",
    "NativeOracle",
    "NativeSubject",
    "seen_fields",
]

_READER: Final = Limits(max_payload_bytes=268_435_456)
_PREAMBLES: Final = (b"TMQP/2.0", b"TMQ/1.01")
_TYPES: Final = 64
#: Rules that a server may apply with another limit, or not at all.
_LIMITS_OF_SERVERS: Final = frozenset(
    {"payload-limit", "header-limit", "name-limit", "early-limit", "hello-limit"}
)
#: The type of a refusal or another message of the server to a client that is not accepted.
_SERVER: Final = 0x10
_SIZES: Final = (0, 1, 252, 253, 254, 255, 65_535, 65_536, 1 << 20, 1 << 31, (1 << 32) - 1, 1 << 63)
_NAMES: Final = (b"", b"a", b"x" * 255, b"\xff", b"\xc3", b"@name:n", b"@type:t", b"a b", b"\0")
_BLOCKS: Final = (
    *(None, b"", b"k:v\r\n", b"no colon\r\n", b":\r\n", b"k:\xff\r\n", b"Count:1\r\n"),
    *(b"Count:-1\r\n", b"Queue-Id:70000\r\n", b"Queue-Status:push\r\n", b"CC:$ch;1\r\n"),
    b"Queue-Id:1\r\nQueue-Status:pull\r\n",
)

#: Fields of a message with the values that matter, as :func:`seen_fields` names them.
FIELDS: Final = (
    *("F=0", "F=1", "H=0", "H=1", "R=0", "R=1", "A=0", "A=1"),
    *("header=no", "header=empty", "header=some"),
    *("ttl=0", "ttl=1", "ttl=16", "ttl=other"),
    *(f"{name}={size}" for name in ("id", "source", "target") for size in ("0", "some", "255")),
    *("content-type=0", "content-type=byte", "content-type=word"),
    *("payload=0", "payload=byte", "payload=word", "payload=long"),
    *("length=1", "length=2", "length=4", "length=8"),
)


def seen_fields(frame: Frame) -> list[str]:
    """The fields of a message, each with its class of values."""
    found = [
        f"{flag}={int(value)}"
        for flag, value in (
            ("F", frame.first_acquirer),
            ("H", frame.high_priority),
            ("R", frame.pending_response),
            ("A", frame.pending_acknowledge),
        )
    ]
    block = "some" if frame.header_block else "empty" if frame.has_header else "no"
    found += [f"header={block}", f"ttl={frame.ttl if frame.ttl in (0, 1, 16) else 'other'}"]
    raw = frame.raw
    sizes = zip(("id", "source", "target"), raw[2:5], strict=True)
    found += [f"{name}={size if size in (0, 255) else 'some'}" for name, size in sizes]
    number = frame.content_type
    found.append(f"content-type={0 if not number else 'byte' if number < 256 else 'word'}")
    size = frame.payload_size
    kind = 0 if not size else "byte" if size < 253 else "word" if size < 65_536 else "long"
    return [*found, f"payload={kind}", f"length={ {253: 2, 254: 4, 255: 8}.get(raw[7], 1) }"]


class NativeOracle:
    """What a right server makes of one line's bytes (:class:`tmqp_conformance.grammar.Oracle`)."""

    def __init__(self, tally: Tally) -> None:
        self.rule = ""
        self._forged = False
        self._client_id = ""
        self._tally = tally
        self._connection = Connection(Role.SERVER)

    def read(self, data: bytes) -> None:
        """The client sends these bytes."""
        self._take(self._connection.receive(data, 0.0))
        self._tally.states[self._connection.state.name] += 1

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, HandshakeReceived):
                self._client_id = event.information.client_id
                self._take(self._connection.accept(self._client_id or "generated"))
            elif isinstance(event, ProtocolViolated):
                self.rule = event.error.rule
                self._tally.rules[self.rule] += 1
            elif isinstance(event, MessageReceived):
                self._tally.kinds[str(event.frame.type)] += 1
                self._tally.fields.update(seen_fields(event.frame))
                source = event.frame.source
                if not isinstance(event, MessageDropped) and source not in ("", self._client_id):
                    self._forged = True

    @property
    def open(self) -> bool:
        """A ping now must have a pong."""
        flows = self._connection.state == State.OPEN
        return flows and not self._connection.buffered and not self._forged

    @property
    def must_close(self) -> bool:
        """A rule was broken, and none that a server may have otherwise."""
        return bool(self.rule) and self.rule not in _LIMITS_OF_SERVERS

    @property
    def doubtful(self) -> bool:
        """Never: what this oracle does not know ends inside a message, and has no answer."""
        return False

    @property
    def illegible(self) -> bool:
        """Never: a connection of TMQP does not change its form."""
        return False


class NativeGrammar(Grammar):
    """The messages of clients."""

    states: tuple[str, ...] = tuple(state.name for state in State)
    kinds: tuple[str, ...] = tuple(str(number) for number in range(_TYPES))
    fields: tuple[str, ...] = FIELDS

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """Preamble, whole messages, and the rest."""
        begin = data[:8] if data.startswith(_PREAMBLES) else b""
        decoder = FrameDecoder(_READER)
        found = [frame.raw for frame in decoder.feed(data[len(begin) :])]
        used = len(begin) + sum(len(raw) for raw in found)
        return begin, found, data[used:]

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        (frame,) = FrameDecoder(_READER).feed(message)
        return _with_a_field(draw, frame)

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        kind = (None, *MessageType)[draw.below(1 + len(MessageType))]
        return plain_frame(draw, None if kind is None else int(kind)).raw

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        return odd_frame(draw)

    def oracle(self, tally: Tally) -> Oracle:
        """See :class:`Grammar`."""
        return NativeOracle(tally)


#: The grammar of a server's only address.
NATIVE_GRAMMARS: Final[Mapping[str, Grammar]] = {"": NativeGrammar()}


class _Watch:
    """A session beside the conversations, which must live on."""

    def __init__(self, stage: Stage, number: int, patience: Patience) -> None:
        self._keeper = Keeper(stage, f"health{number}", patience)

    def check(self) -> None:
        """See :class:`tmqp_conformance.grammar.Watch`."""
        self._keeper.ping()

    def close(self) -> None:
        """See :class:`tmqp_conformance.grammar.Watch`."""
        self._keeper.close()


class NativeSubject:
    """A server of TMQP (:class:`tmqp_conformance.grammar.Subject`).

    :param cases: whose conversations are mutated.
    """

    pack = ""

    def __init__(self, cases: tuple[Case, ...]) -> None:
        self.grammars = NATIVE_GRAMMARS
        self._cases = cases

    @cached_property
    def seeds(self) -> list[list[Piece]]:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        return seeds(self._cases)

    def open(self, stage: Stage, piece: Piece, log: Log) -> Stream:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        name = f"l{piece.line}"
        return Line(name, stage.open(name, PROBE), log, pongs=True)

    def filled(self, piece: Piece, line: Stream, number: int, wait_s: float) -> bytes:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        return with_names(piece.data, number)

    def watch(self, stage: Stage, number: int, patience: Patience) -> _Watch:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        return _Watch(stage, number, patience)

    def words(self, line: Stream) -> list[str]:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        return [
            f"{each.type}:{each.content_type if each.type in (16, 20, 8) else ''}"
            for each in line.seen[:12]
            if isinstance(each, Frame)
        ]

    def excused(self, line: Stream, conversation: Sequence[Piece]) -> bool:
        """See :class:`tmqp_conformance.grammar.Subject`."""
        told = any(isinstance(each, Frame) and each.type == _SERVER for each in line.seen)
        return told and not line.accepted


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
