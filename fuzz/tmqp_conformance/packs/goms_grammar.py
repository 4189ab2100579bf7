"""The grammar of goMS for the wire fuzzer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from tmqp.testing import Seeded
from tmqp_conformance.packs.grammar import LineGrammar, LineReader, choice
from tmqp_conformance.packs.units import Unit
from tmqp_wires.goms import ObjectDecoder
from tmqp_wires.goms.codec import Close, Logout, Register, Violation

__all__ = ["GomsGrammar"]

#: Longer objects are not sent: how long one may be is the server's to say.
_MOST_BYTES: Final = 1_048_576
_A: Final = "conformance-a"
_B: Final = "conformance-b"
_KINDS: Final = ("register", "send", "logout", "close", "what")
_TOPICS: Final[tuple[Any, ...]] = (
    *([_A], [_A, _B], [], ["nope"], [_A, "nope", _A], [_A.upper()], [1, None, _A], _A, 5),
    *(None, [""], ["x" * 300], ["nope"] * 50, [[_A]], {"a": _A}),
)
_DATA: Final[tuple[Any, ...]] = (
    *("x", "", "\x00\n\u2028", "é", "x" * 5_000),
    *(5, None, ["x"], {"a": 1}),
)
_KEYS: Final = ("type", "messagetype")


class _Reader(LineReader):
    """The codec's own decoder."""

    def __init__(self) -> None:
        self._decoder = ObjectDecoder(_MOST_BYTES)
        super().__init__(self._decoder, "unregistered")

    def read(self, data: bytes) -> None:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        for event in self._decoder.receive(data):
            if isinstance(event, Close):
                self.rule = "close"
                return
            if isinstance(event, Violation):
                self.doubtful = True  # a server may take longer objects
            elif isinstance(event, Register) and {_A, _B} & {*event.topics}:
                self.state = "registered"
            elif isinstance(event, Logout) and event.topics is None:
                self.state = "unregistered"


class GomsGrammar(LineGrammar):
    """JSON objects, one a line."""

    states: tuple[str, ...] = ("unregistered", "registered", "closed")
    kinds: tuple[str, ...] = (*_KINDS[:4], "another", "senseless")
    fields: tuple[str, ...] = (
        *("dialect=type", "dialect=messagetype", "dialect=both"),
        *("topics=known", "topics=unknown", "topics=none", "topics=both", "topics=no list"),
        *("data=text", "data=empty", "data=long", "data=no text", "data=none"),
    )

    def reader(self) -> _Reader:
        """See :class:`PackGrammar`."""
        return _Reader()

    def kind_of(self, message: bytes) -> str:
        """See :class:`PackGrammar`."""
        value = _parsed(message)
        if value is None:
            return "senseless"
        kind = value.get("type", value.get("messagetype"))
        return kind if isinstance(kind, str) and kind in _KINDS[:4] else "another"

    def fields_of(self, message: bytes) -> Iterable[str]:
        """See :class:`PackGrammar`."""
        value = _parsed(message)
        if value is None or not {*_KEYS} & {*value}:
            return
        keys = [key for key in _KEYS if key in value]
        yield "dialect=both" if len(keys) > 1 else f"dialect={keys[0]}"
        yield f"topics={_topics_class(value.get('topics'))}"
        data = value.get("data")
        if data is None:
            yield "data=none"
        elif not isinstance(data, str):
            yield "data=no text"
        else:
            yield "data=empty" if not data else "data=text" if len(data) < 100 else "data=long"

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        value = _parsed(message)
        if value is None:
            return message
        field = draw.below(5)
        if field == 0:
            value["topics"] = choice(draw, _TOPICS)
        elif field == 1:
            value["data"] = choice(draw, _DATA)
        elif field == 2:
            for key in [key for key in _KEYS if key in value]:
                value[choice(draw, _KEYS)] = value.pop(key)
        elif field == 3:
            value[choice(draw, _KEYS)] = choice(draw, (*_KINDS, 5, None, "", "REGISTER"))
        else:
            value.pop(choice(draw, tuple(value) or ("",)), None)
        return _written(draw, value)

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        kind = choice(draw, _KINDS[:3])
        value: dict[str, Any] = {choice(draw, _KEYS): kind, "topics": choice(draw, _TOPICS[:2])}
        if kind == "send":
            value["data"] = choice(draw, _DATA[:4])
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        value = {
            choice(draw, _KEYS): choice(draw, _KINDS),
            "topics": choice(draw, _TOPICS),
            "data": choice(draw, _DATA),
            "": choice(draw, (1e308, -0.0, 1 << 70, True, None)),
        }
        others = (b"[]\n", b"5\n", b"\n", b"{}\n", b"{\n", b"}\n", b'"\n', b"[" * 3_000 + b"\n")
        return _written(draw, value) if draw.one_in(2) else choice(draw, others)

    def fence(self, name: str) -> bytes:
        """A registration to a topic that nobody knows, which the error names."""
        value = {"type": "register", "topics": [f"fence{name}"]}
        return json.dumps(value).encode() + b"\n"

    def passes(self, unit: object, name: str) -> bool:
        """See :class:`PackGrammar`."""
        text = unit.fields.get("json") if isinstance(unit, Unit) else None
        return isinstance(text, bytes) and f'"fence{name}"'.encode() in text


def _parsed(message: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _written(draw: Seeded, value: dict[str, Any]) -> bytes:
    """An object, now and then over several lines, as the document shows it (G14)."""
    indent = 2 if draw.one_in(6) else None
    return json.dumps(value, indent=indent, ensure_ascii=draw.one_in(2)).encode() + b"\n"


def _topics_class(topics: object) -> str:
    if topics is None:
        return "none"
    if not isinstance(topics, list):
        return "no list"
    known = any(each in (_A, _B) for each in topics)
    unknown = any(each not in (_A, _B) for each in topics)
    return "both" if known and unknown else "known" if known else "unknown" if unknown else "none"
