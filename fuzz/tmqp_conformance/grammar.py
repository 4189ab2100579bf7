"""What a fuzzer knows about a protocol: how clients write it, what violates it, and what was tried.

A :class:`Grammar` is the language of one address of a server.  A :class:`Subject` is a server with
all its addresses.  The fuzzers know only these two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tmqp.testing import Seeded
from tmqp.testing.conformance import Patience, Stage
from tmqp.testing.conformance.lines import Log, Stream

__all__ = ["Coverage", "Grammar", "Oracle", "Piece", "Subject", "Tally", "Watch"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What one client sends in one write; ``place`` names the server's address (empty: the first).

    All pieces of a line have the same place.
    """

    line: int
    data: bytes
    place: str = ""


@dataclass(slots=True)
class Tally:
    """What was tried at one address: states of connections, kinds of messages, fields of messages
    with the values that matter, and rules that were broken."""

    states: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Coverage:
    """What was tried and seen: a tally for each address, mutations, and the different behaviours
    (signatures) of the server."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    mutations: Counter[str] = field(default_factory=Counter)
    signatures: set[tuple[str, ...]] = field(default_factory=set)

    def at(self, place: str) -> Tally:
        """The tally of an address."""
        return self.tallies.setdefault(place, Tally())


class Oracle(Protocol):
    """What a right server makes of one line's bytes.

    ``rule`` is the rule that the client has broken; empty for none.
    """

    rule: str

    def read(self, data: bytes) -> None:
        """The client sends these bytes."""

    @property
    def open(self) -> bool:
        """The server must answer requests now."""

    @property
    def must_close(self) -> bool:
        """The server must end the connection."""

    @property
    def doubtful(self) -> bool:
        """The server may answer in any way; its answers are awaited, and must be valid."""

    @property
    def illegible(self) -> bool:
        """The server may continue in another form (encrypted, compressed)."""


class Grammar:
    """How clients write at one address.

    ``states`` of a connection, ``kinds`` of messages and ``fields`` of messages with the values
    that matter are complete lists: those that were not tried are reported.
    """

    states: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """The greeting that a connection begins with, whole messages, and the rest."""
        raise NotImplementedError

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """A message with other values in some of its fields."""
        raise NotImplementedError

    def plain(self, draw: Seeded) -> bytes:
        """A message as clients write it."""
        raise NotImplementedError

    def odd(self, draw: Seeded) -> bytes:
        """A message that no careful client would write."""
        raise NotImplementedError

    def oracle(self, tally: Tally) -> Oracle:
        """Judges one line, and counts what was tried."""
        raise NotImplementedError


class Watch(Protocol):
    """Looks whether others are served."""

    def check(self) -> None:
        """Look.

        :raises UnreachableError: when they are not.
        """

    def close(self) -> None:
        """Leave."""


class Subject(Protocol):
    """A server that is fuzzed: its grammars by address, and the conversations that are mutated."""

    @property
    def pack(self) -> str:
        """The pack of its protocol; empty for TMQP."""

    @property
    def grammars(self) -> Mapping[str, Grammar]:
        """The grammar of each address that is fuzzed."""

    @property
    def seeds(self) -> list[list[Piece]]:
        """Conversations as clients have them."""

    def open(self, stage: Stage, piece: Piece, log: Log) -> Stream:
        """Open the line of a piece.

        :raises UnreachableError: if no server listens.
        """

    def filled(self, piece: Piece, line: Stream, number: int, wait_s: float) -> bytes:
        """The bytes of a piece, with names that no other conversation has.

        :param wait_s: how long to wait for what the piece answers.
        """

    def watch(self, stage: Stage, number: int, patience: Patience) -> Watch:
        """Return another client, which checks that it is served.

        :raises UnreachableError: if it is not served.
        """

    def words(self, line: Stream) -> list[str]:
        """Describe the answers on a line in words that are the same for the same behaviour."""

    def excused(self, line: Stream, conversation: Sequence[Piece]) -> bool:
        """Whether the server may have closed this line although no rule was broken on it: it has
        refused the client for a reason of its own, or another line has asked for it."""
