"""The grammar of Simple MQ for the wire fuzzer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tmqp.testing import Seeded
from tmqp_conformance.packs.grammar import LineGrammar, LineReader, choice, of_size
from tmqp_conformance.packs.units import Unit
from tmqp_wires.smq import LineDecoder
from tmqp_wires.smq.events import Consume, Violation

__all__ = ["SmqGrammar"]

#: Longer lines are not sent: how long one may be is the server's to say.
_MOST_BYTES: Final = 1_048_576
_SMALL: Final = 100
_QUEUES: Final = (
    b"$qq_____",
    b"$rr_____",
    b"",
    b"a b",
    b"\xff\x00",
    b"x" * 300,
    b"*",
    b"$qq_____;",
)
_BODIES: Final = (b"", b"x", b'{"id":1}', b"a:b::c", b"\x00\xff", b"\r", b"0" * 5_000, b"S::")
_COUNTS: Final = (b"1", b"2", b"0", b"-1", b"", b"x", b" 1", b"9" * 19, b"1.5", b"1:1", b"+1")
_COUNT_CLASSES: Final = ("0", "some", "over", "negative", "none")


class _Reader(LineReader):
    """The codec's own decoder; a line that is not ended may wait for ever."""

    def __init__(self) -> None:
        self._decoder = LineDecoder(_MOST_BYTES)
        super().__init__(self._decoder, "idle")

    def read(self, data: bytes) -> None:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        for event in self._decoder.receive(data, 0.0):
            if isinstance(event, Violation):
                self.doubtful = True  # a server may take longer lines
            elif isinstance(event, Consume):
                self.state = "consuming"


class SmqGrammar(LineGrammar):
    """Lines of a letter, a queue, and a body or a number."""

    states: tuple[str, ...] = ("idle", "consuming")
    kinds: tuple[str, ...] = ("M", "C", "D", "S", "unknown", "senseless")
    fields: tuple[str, ...] = (
        *(f"queue={size}" for size in ("0", "some", "long")),
        *(f"body={size}" for size in ("0", "some", "long")),
        *(f"count={value}" for value in _COUNT_CLASSES),
        *("colons=0", "colons=1", "colons=2", "colons=more"),
    )

    def reader(self) -> _Reader:
        """See :class:`PackGrammar`."""
        return _Reader()

    def kind_of(self, message: bytes) -> str:
        """See :class:`PackGrammar`."""
        line = message[:-1]
        if line in (b"S", b"S:") or line[:2] == b"S:":
            return "S"
        if line[1:2] == b":" and line[:1] in b"MCD":
            return line[:1].decode()
        return "unknown" if b":" in line else "senseless"

    def fields_of(self, message: bytes) -> Iterable[str]:
        """See :class:`PackGrammar`."""
        _, _, rest = message[:-1].partition(b":")
        queue, _, last = rest.partition(b":")
        colons = message.count(b":")
        yield f"colons={colons if colons < 3 else 'more'}"
        kind = self.kind_of(message)
        if kind in ("M", "C", "D"):
            yield f"queue={of_size(len(queue), _SMALL, most=_MOST_BYTES)}"
        if kind == "M":
            yield f"body={of_size(len(last), _SMALL, most=_MOST_BYTES)}"
        elif kind == "D":
            yield f"count={_count_class(last)}"

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        parts = message[:-1].split(b":", 2)
        place = draw.below(3)
        values: tuple[bytes, ...] = ((b"M", b"C", b"D", b"S", b"X", b""), _QUEUES, _BODIES)[place]
        if place == 2 and parts[0] == b"D":
            values = _COUNTS
        while len(parts) <= place:
            parts.append(b"")
        parts[place] = choice(draw, values)
        return b":".join(parts) + b"\n"

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        queue = choice(draw, _QUEUES[:2])
        lines = (
            b"M:%s:%s\n" % (queue, choice(draw, _BODIES)),
            b"C:%s:\n" % queue,
            b"D:%s:%s\n" % (queue, choice(draw, _COUNTS[:2])),
            b"S::\n",
        )
        return choice(draw, lines)

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        lines = (
            b"%s:%s:%s\n" % (draw.some_bytes(1), choice(draw, _QUEUES), choice(draw, _BODIES)),
            b"D:%s:%s\n" % (choice(draw, _QUEUES), choice(draw, _COUNTS)),
            b"C:%s\n" % choice(draw, _QUEUES),
            choice(draw, (b"\n", b"\r\n", b"S\n", b"S:\n", b":\n", b"::::\n", b"MM\n", b"M:\n")),
            draw.some_bytes(draw.below(40)).replace(b"\n", b"") + b"\n",
        )
        return choice(draw, lines)

    def fence(self, name: str) -> bytes:
        """Statistics: no other question is answered with an object."""
        return b"S::\n"

    def passes(self, unit: object, name: str) -> bool:
        """See :class:`PackGrammar`.

        A message that is an object, too, may be taken for the answer: then less is found.
        """
        text = unit.fields.get("text") if isinstance(unit, Unit) else None
        return isinstance(text, bytes) and text.startswith(b"{")


def _count_class(text: bytes) -> str:
    """The class of the number in a line ``D``."""
    text = text.strip()
    if text[:1] == b"-":
        return "negative"
    if not text.isdigit():
        return "none"
    return of_size(int(text[:20]), 1_000, most=1_000)
