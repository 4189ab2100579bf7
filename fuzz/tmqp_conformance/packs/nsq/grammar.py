"""The grammars of NSQ by TCP for the wire fuzzer: nsqd and its directory (nsqlookupd)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tmqp.testing import Seeded
from tmqp_conformance.packs.grammar import ID_MARK, PackGrammar, Reader, choice, of_size
from tmqp_conformance.packs.units import Unit
from tmqp_wires.nsq import CommandDecoder, ServerTerms, lookup, writing
from tmqp_wires.nsq import events as said
from tmqp_wires.nsq.names import is_name

__all__ = ["DAEMON", "DIRECTORY", "CommandGrammar"]

#: The defaults of the original, which takes an IDENTIFY as long as any other body.
_TERMS: Final = ServerTerms(max_identify_bytes=5_242_880, tls=True)
_MOST_BODY: Final = 5_242_880
_SMALL: Final = 100
_LONGEST_NAME: Final = 64
_SIZES: Final = (0, 1, 2, 255, 65_536, 1_048_576, 1_048_577, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_TOPICS: Final = (b"$tt_____#ephemeral", b"$uu_____#ephemeral")
_CHANNELS: Final = (b"c#ephemeral", b"d#ephemeral")
_NAMES: Final = (*_TOPICS, *_CHANNELS, b"x" * 64, b"x" * 65, b"a!b", b"", b"#ephemeral", b"\xff")
_NUMBERS: Final = (b"0", b"1", b"2500", b"2501", b"-1", b"", b"x", b"9" * 19, b"3600001", b"01")
_IDS: Final = (ID_MARK, b"0123456789abcdef", b"0123456789abcde", b"0" * 17, b"")
_BODIES: Final = (b"x", b"", b"{}", b"\x00\xff\n", b"0" * 5_000, b"[]", b'"', b"\x00\x00\x00\x01")
_ABOUT: Final[tuple[Mapping[str, object], ...]] = (
    {"client_id": "f"},
    {"feature_negotiation": True},
    {"feature_negotiation": True, "msg_timeout": 1_000, "heartbeat_interval": 1_000},
    {"heartbeat_interval": -1},
    {"heartbeat_interval": 60_001},
    {"heartbeat_interval": "1s"},
    {"output_buffer_size": 65, "output_buffer_timeout": 1},
    {"sample_rate": 100},
    {"snappy": True, "deflate": True, "feature_negotiation": True},
    {"broadcast_address": "h", "hostname": "h", "tcp_port": 1, "http_port": 2, "version": "1"},
    {"broadcast_address": "", "tcp_port": 65_536, "http_port": -1, "version": 1},
)
_Made = Callable[[Seeded], bytes]


class _DaemonReader:
    """The codec's own decoder of nsqd."""

    def __init__(self) -> None:
        self.rule = ""
        self.state = "greeting"
        self.doubtful = False
        self._is_changed = False
        self._read = 0
        self._decoder = CommandDecoder(_TERMS)

    def read(self, data: bytes) -> None:
        """See :class:`Reader`."""
        self._read += len(data)
        if self.state == "greeting" and self._read >= len(writing.MAGIC):
            self.state = "greeted"
        for event in self._decoder.feed(data):
            if isinstance(event, said.Violation):
                self.rule = _code(event)
                # How long a line may be is the server's to say.
                self.doubtful = not self.rule
                return
            if isinstance(event, said.Identify):
                self.state = "identified"
                if event.negotiated.changes_stream:
                    self.doubtful = self._is_changed = True
                    return
            elif isinstance(event, said.Subscribe):
                self.state = "subscribed"
            elif isinstance(event, said.Close):
                self.state = "closing"

    @property
    def inside(self) -> bool:
        """See :class:`Reader`."""
        return self.state == "greeting" or self._decoder.held_bytes > 0

    @property
    def illegible(self) -> bool:
        """See :class:`Reader`: what follows may be encrypted or compressed (N39)."""
        return self._is_changed


class _DirectoryReader:
    """The codec's own decoder of nsqlookupd."""

    def __init__(self) -> None:
        self.rule = ""
        self.state = "greeting"
        self.doubtful = False
        self._read = 0
        self._decoder = lookup.LookupDecoder()

    def read(self, data: bytes) -> None:
        """See :class:`Reader`."""
        self._read += len(data)
        if self.state == "greeting" and self._read >= len(lookup.MAGIC):
            self.state = "greeted"
        for event in self._decoder.feed(data):
            if isinstance(event, said.Violation):
                self.rule = _code(event)
                # How long a line or an IDENTIFY may be is the server's to say.
                self.doubtful = not self.rule or b"too big" in event.text
                if self.doubtful:
                    self.rule = ""
                return
            if isinstance(event, lookup.Announce):
                self.state = "identified"

    @property
    def inside(self) -> bool:
        """See :class:`Reader`."""
        return self.state == "greeting" or self._decoder.held_bytes > 0

    @property
    def illegible(self) -> bool:
        """See :class:`Reader`: answers keep their form."""
        return False


def _code(event: said.Violation) -> str:
    """The code of an error that the server must answer; empty for none."""
    return event.text.split(b" ")[0].decode() if event.answer else ""


class CommandGrammar(PackGrammar):
    """Commands: a line of words, and behind some of them a size and a body.

    :param magic: what a connection begins with.
    :param bodies: the commands that have a body.
    :param makers: how each command is written.
    :param states: of the reader.
    """

    def __init__(
        self,
        magic: bytes,
        bodies: frozenset[bytes],
        makers: Mapping[str, _Made],
        states: tuple[str, ...],
        make_reader: Callable[[], Reader],
    ) -> None:
        self.states = (*states, "closed")
        self.kinds = (*makers, "another")
        self.fields = (
            *("end=LF", "end=CRLF", "words=1", "words=2", "words=3", "words=more"),
            *("name=good", "name=ephemeral", "name=64", "name=bad"),
            *("size=negative", "size=0", "size=some", "size=long", "size=over"),
        )
        if "FIN" in makers:
            self.fields += ("id=16", "id=another")
            self.fields += ("number=0", "number=some", "number=over", "number=none")
        self.greeting = magic
        self._bodies = bodies
        self._makers = makers
        self._make_reader = make_reader

    def reader(self) -> Reader:
        """See :class:`PackGrammar`."""
        return self._make_reader()

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """See :class:`Grammar`."""
        at = len(self.greeting) if data.startswith(self.greeting) else 0
        begin, messages = data[:at], []
        while (end := data.find(b"\n", at)) >= 0:
            after = end + 1
            if data[at:end].rstrip(b"\r").split(b" ")[0] in self._bodies:
                if len(data) < after + 4:
                    break
                size = int.from_bytes(data[after : after + 4], "big", signed=True)
                after += 4
                if 0 <= size <= _MOST_BODY:
                    if len(data) < after + size:
                        break
                    after += size
            messages.append(data[at:after])
            at = after
        return begin, messages, data[at:]

    def kind_of(self, message: bytes) -> str:
        """See :class:`PackGrammar`."""
        word = _words(message)[0].decode("latin-1")
        return word if word in self._makers else "another"

    def fields_of(self, message: bytes) -> Iterable[str]:
        """See :class:`PackGrammar`."""
        words = _words(message)
        line, _, rest = message.partition(b"\n")
        yield "end=CRLF" if line.endswith(b"\r") else "end=LF"
        yield f"words={len(words) if len(words) < 4 else 'more'}"
        kind = self.kind_of(message)
        if kind in ("SUB", "PUB", "MPUB", "DPUB", "REGISTER", "UNREGISTER"):
            for name in words[1:] if kind.endswith(("SUB", "REGISTER")) else words[1:2]:
                yield f"name={_name_class(name)}"
        if kind in ("FIN", "REQ", "TOUCH") and len(words) > 1:
            yield f"id={'16' if len(words[1]) == 16 else 'another'}"
        if kind == "RDY" or (kind in ("REQ", "DPUB") and len(words) > 2):
            yield f"number={_number_class(words[-1])}"
        if words[0] in self._bodies and len(rest) >= 4:
            size = int.from_bytes(rest[:4], "big", signed=True)
            kind = "negative" if size < 0 else of_size(size, _SMALL, most=1_048_576)
            yield f"size={kind}"

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        line, _, rest = message.partition(b"\n")
        end = b"\r\n" if line.endswith(b"\r") else b"\n"
        words = _words(message)
        field = draw.below(6)
        if field == 0:
            words[0] = choice(draw, (*(name.encode() for name in self._makers), b"pub", b"X", b""))
        elif field == 1:
            words.append(choice(draw, (*_NAMES, *_NUMBERS)))
        elif field == 2 and len(words) > 1:
            place = 1 + draw.below(len(words) - 1)
            words[place] = choice(draw, (*_NAMES, *_NUMBERS, *_IDS))
        elif field == 3 and rest:
            rest = choice(draw, _SIZES).to_bytes(4, "big") + rest[4:]
        elif field == 4 and rest:
            rest = _sized(choice(draw, _BODIES))
        else:
            end = b"\r\n" if end == b"\n" else b"\n"
        return b" ".join(words) + end + rest

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        return self._makers[choice(draw, tuple(self._makers))](draw)

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        word = choice(draw, (*(name.encode() for name in self._makers), b"pub", b"X", b""))
        words = [word, *(choice(draw, (*_NAMES, *_NUMBERS, *_IDS)) for _ in range(draw.below(4)))]
        line = b" ".join(words) + choice(draw, (b"\n", b"\r\n"))
        if word not in self._bodies:
            return line
        body = choice(draw, _BODIES)
        if draw.one_in(3):
            return line + choice(draw, _SIZES).to_bytes(4, "big") + body
        return line + _sized(body)

    def fence(self, name: str) -> bytes:
        """A command that there is not: it is answered behind all others (N7, N12, N137)."""
        return b"FENCE%s\n" % name.encode()

    def passes(self, unit: object, name: str) -> bool:
        """See :class:`PackGrammar`."""
        if not isinstance(unit, Unit) or unit.kind != "error":
            return False
        text = unit.fields.get("text")
        return isinstance(text, bytes) and b"FENCE" + name.encode() in text

    def newest_id(self, units: Sequence[object]) -> bytes:
        """See :class:`PackGrammar`."""
        for unit in reversed(units):
            found = unit.fields.get("id") if isinstance(unit, Unit) else None
            if isinstance(found, bytes):
                return found
        return b""


def _words(message: bytes) -> list[bytes]:
    return message.partition(b"\n")[0].rstrip(b"\r").split(b" ")


def _sized(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def _name_class(name: bytes) -> str:
    if not is_name(name):
        return "bad"
    if name.endswith(b"#ephemeral"):
        return "ephemeral"
    return "64" if len(name) == _LONGEST_NAME else "good"


def _number_class(text: bytes) -> str:
    if not text.isdigit():
        return "none"
    number = int(text[:20])
    return "0" if number == 0 else "some" if number <= _TERMS.max_rdy_count else "over"


def _identify(draw: Seeded) -> bytes:
    return b"IDENTIFY\n" + _sized(json.dumps(choice(draw, _ABOUT)).encode())


def _mpub(draw: Seeded) -> bytes:
    bodies = [choice(draw, _BODIES[2:]) for _ in range(1 + draw.below(3))]
    return writing.mpub(choice(draw, _TOPICS), bodies)


def _of(pattern: bytes, *values: Sequence[bytes], body: bool = False) -> _Made:
    """Writes a command from a pattern and a list of values for each of its places."""

    def made(draw: Seeded) -> bytes:
        line = pattern % tuple([choice(draw, each) for each in values]) + b"\n"
        return line + _sized(choice(draw, _BODIES)) if body else line

    return made


_NAMED: Final = (*_TOPICS, b"plain_topic-1.x")
_COUNTS: Final = _NUMBERS[:3]

#: The commands of nsqd.
DAEMON: Final = CommandGrammar(
    writing.MAGIC,
    frozenset({b"IDENTIFY", b"AUTH", b"PUB", b"MPUB", b"DPUB"}),
    {
        "IDENTIFY": _identify,
        "SUB": _of(b"SUB %s %s", _TOPICS, _CHANNELS),
        "PUB": _of(b"PUB %s", _TOPICS, body=True),
        "MPUB": _mpub,
        "DPUB": _of(b"DPUB %s %s", _TOPICS, _COUNTS, body=True),
        "RDY": _of(b"RDY %s", _COUNTS),
        "FIN": _of(b"FIN %s", _IDS[:2]),
        "REQ": _of(b"REQ %s %s", _IDS[:2], _COUNTS),
        "TOUCH": _of(b"TOUCH %s", _IDS[:2]),
        "CLS": _of(b"CLS"),
        "NOP": _of(b"NOP"),
        "AUTH": _of(b"AUTH", body=True),
    },
    ("greeting", "greeted", "identified", "subscribed", "closing"),
    _DaemonReader,
)
#: The commands of nsqlookupd.
DIRECTORY: Final = CommandGrammar(
    lookup.MAGIC,
    frozenset({b"IDENTIFY"}),
    {
        "PING": _of(b"PING"),
        "IDENTIFY": _identify,
        "REGISTER": _of(b"REGISTER %s %s", _NAMED, (*_CHANNELS, b"")),
        "UNREGISTER": _of(b"UNREGISTER %s %s", _NAMED, (*_CHANNELS, b"")),
    },
    ("greeting", "greeted", "identified"),
    _DirectoryReader,
)
