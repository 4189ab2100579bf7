"""What the grammars of packs have in common: the oracle, the fence, and pieces to draw from.

A pack says how its messages are cut, named and written, and gives a *reader*: how a right server
reads the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from tmqp.testing import Seeded
from tmqp_conformance.grammar import Grammar, Oracle, Tally

__all__ = [
    "ID_MARK",
    "LineGrammar",
    "LineReader",
    "PackGrammar",
    "Reader",
    "choice",
    "of_size",
]

_Value = TypeVar("_Value")
#: Stands in a piece for the id of the message that was delivered last on its line; it has the 16
#: bytes of an id of NSQ.
ID_MARK: Final = b"$id_____________"
_NEWLINE: Final = b"\n"
#: What is held of a message that is not whole, to tell its kind.
_HELD_BYTES: Final = 1_048_576


class Reader(Protocol):
    """How a right server reads a line.

    ``rule``: the rule that was broken, or a request to close; empty for none.  ``state``: one of
    the grammar's states.  ``doubtful``: from here on this reader does not know.
    """

    rule: str
    state: str
    doubtful: bool

    def read(self, data: bytes) -> None:
        """The client sends these bytes."""

    @property
    def inside(self) -> bool:
        """What was sent ends inside a message."""

    @property
    def illegible(self) -> bool:
        """The server may have gone on in a form that its ear cannot read."""


class _Holds(Protocol):
    @property
    def held_bytes(self) -> int:
        """What is held of a line that is not whole."""


class LineReader:
    """What readers of lines have in common: a line stays a line, whatever is in it.

    :param decoder: the codec's own, which tells what it holds.
    :param state: the first of the grammar's states.
    """

    def __init__(self, decoder: _Holds, state: str) -> None:
        self.rule = ""
        self.state = state
        self.doubtful = False
        self._held = decoder

    @property
    def inside(self) -> bool:
        """See :class:`Reader`."""
        return self._held.held_bytes > 0

    @property
    def illegible(self) -> bool:
        """See :class:`Reader`."""
        return False


class PackGrammar(Grammar):
    """The grammar of one address of a pack's server."""

    #: What a client says first.
    greeting: bytes = b""

    def reader(self) -> Reader:
        """How a right server reads a new line."""
        raise NotImplementedError

    def kind_of(self, message: bytes) -> str:
        """The kind of a message: one of ``kinds``."""
        raise NotImplementedError

    def fields_of(self, message: bytes) -> Iterable[str]:
        """The fields of a message with their classes of values: some of ``fields``."""
        raise NotImplementedError

    def fence(self, name: str) -> bytes:
        """A question to which an answer comes behind all other answers.

        :param name: letters and digits that no other fence has.
        """
        raise NotImplementedError

    def passes(self, unit: object, name: str) -> bool:
        """Whether this is the answer to the fence."""
        raise NotImplementedError

    def ends_others(self, data: bytes) -> bool:
        """Whether a line on which this is said may end other lines."""
        return False

    def refuses(self, unit: object) -> bool:
        """Whether the server may close behind this answer for a reason of its own."""
        return False

    def newest_id(self, units: Sequence[object]) -> bytes:
        """The id of the message that was delivered last; empty where messages have none."""
        return b""

    def oracle(self, tally: Tally) -> Oracle:
        """See :class:`Grammar`."""
        return _PackOracle(self, tally)


class _PackOracle:
    """Judges a line by the grammar's reader, and counts what was tried."""

    def __init__(self, grammar: PackGrammar, tally: Tally) -> None:
        self.rule = ""
        self._grammar = grammar
        self._tally = tally
        self._reader = grammar.reader()
        self._held = b""

    def read(self, data: bytes) -> None:
        """See :class:`Oracle`."""
        if not self.rule:
            _, messages, self._held = self._grammar.split(self._held + data)
            for message in messages:
                self._tally.kinds[self._grammar.kind_of(message)] += 1
                self._tally.fields.update(self._grammar.fields_of(message))
            if len(self._held) > _HELD_BYTES:
                self._held = b""
            self._reader.read(data)
            self.rule = self._reader.rule
            if self.rule:
                self._tally.rules[self.rule] += 1
        self._tally.states["closed" if self.rule else self._reader.state] += 1

    @property
    def open(self) -> bool:
        """See :class:`Oracle`."""
        return not (self.rule or self._reader.doubtful or self._reader.inside)

    @property
    def must_close(self) -> bool:
        """See :class:`Oracle`."""
        return bool(self.rule) and not self._reader.doubtful

    @property
    def doubtful(self) -> bool:
        """See :class:`Oracle`."""
        return self._reader.doubtful

    @property
    def illegible(self) -> bool:
        """See :class:`Oracle`."""
        return self._reader.illegible


def choice(draw: Seeded, values: Sequence[_Value]) -> _Value:
    """One of these values."""
    return values[draw.below(len(values))]


def of_size(size: int, small: int, *, most: int) -> str:
    """The class of a size: ``0``, ``some`` (up to ``small``), ``long``, or ``over`` ``most``."""
    if size > most:
        return "over"
    return "0" if size == 0 else "some" if size <= small else "long"


class LineGrammar(PackGrammar):
    """The grammar of an address where a message is a line, and nothing comes before the first."""

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """See :class:`Grammar`."""
        *lines, rest = data.split(_NEWLINE)
        return b"", [line + _NEWLINE for line in lines], rest
