"""The wire fuzzer: says what nobody should say, and watches what the server does.

The oracle is the protocol's own connection: it reads the same bytes as the server.  Where it finds
nothing wrong, the server must go on and answer a ping; whatever it finds, the server must live,
serve others, and send nothing that is no message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tmqp import (
    Connection,
    Event,
    Frame,
    HandshakeReceived,
    MessageDropped,
    MessageReceived,
    ProtocolViolated,
    Role,
    State,
)
from tmqp.testing import Seeded
from tmqp.testing.conformance import Patience, Stage, UnreachableError
from tmqp.testing.conformance.lines import Line, Log
from tmqp_conformance.fuzzing.mutate import Piece, as_pieces, mutated, with_names
from tmqp_conformance.fuzzing.shrinking import shorter, smallest
from tmqp_conformance.keeper import PROBE, Keeper

__all__ = ["Coverage", "Finding", "WireFuzzer", "shrink", "smaller_pieces"]

_PING: Final = Frame.build(0x09, ttl=16).raw
#: Rules that a server may apply with another limit, or not at all.
_LIMITS_OF_SERVERS: Final = frozenset(
    {"payload-limit", "header-limit", "name-limit", "early-limit", "hello-limit"}
)


@dataclass(slots=True)
class Coverage:
    """What was tried and seen: states of connections, types of messages, mutations, and the
    different behaviours (signatures) of the server."""

    states: Counter[str] = field(default_factory=Counter)
    types: Counter[int] = field(default_factory=Counter)
    mutations: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    signatures: set[tuple[str, ...]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a server must not do: its kind, what happened, and what was said to it."""

    kind: str
    message: str
    conversation: tuple[Piece, ...]


class _Oracle:
    """What a right server makes of one line's bytes."""

    def __init__(self, coverage: Coverage) -> None:
        self.rule = ""
        self.forged = False
        self.client_id = ""
        self._coverage = coverage
        self._connection = Connection(Role.SERVER)

    def read(self, data: bytes) -> None:
        """The client sends these bytes."""
        self._take(self._connection.receive(data, 0.0))
        self._coverage.states[self._connection.state.name] += 1

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, HandshakeReceived):
                self.client_id = event.information.client_id
                self._take(self._connection.accept(self.client_id or "generated"))
            elif isinstance(event, ProtocolViolated):
                self.rule = event.error.rule
                self._coverage.rules[self.rule] += 1
            elif isinstance(event, MessageReceived):
                self._coverage.types[event.frame.type] += 1
                source = event.frame.source
                if not isinstance(event, MessageDropped) and source not in ("", self.client_id):
                    self.forged = True

    @property
    def open(self) -> bool:
        """A ping now must have a pong."""
        flows = self._connection.state == State.OPEN
        return flows and not self._connection.buffered and not self.forged


class WireFuzzer:
    """Fuzzes one server.

    :param stage: where it is reached.
    :param conversations: what is mutated.
    :param seed: the same seed gives the same conversations.
    """

    def __init__(
        self, stage: Stage, conversations: list[list[Piece]], seed: int, patience: Patience
    ) -> None:
        self.coverage = Coverage()
        # Names begin at another place for each seed.
        self.played = 0
        self._first = Seeded(seed).below(1 << 20)
        self._stage = stage
        self._conversations = conversations
        self._interesting: list[list[Piece]] = []
        self._draw = Seeded(seed)
        self._patience = patience
        self._health: Keeper | None = None

    def run(self, go_on: Callable[[], bool]) -> Iterator[Finding]:
        """Play conversations while ``go_on`` says so; yields what is found."""
        while go_on():
            pool = self._conversations
            if self._interesting and self._draw.one_in(3):
                pool = self._interesting
            chosen = pool[self._draw.below(len(pool))]
            conversation, names = mutated(self._draw, chosen, self._conversations)
            self.coverage.mutations.update(names)
            played = as_pieces(self._draw, conversation)
            seen = len(self.coverage.signatures)
            finding = self.play(tuple(played))
            if len(self.coverage.signatures) > seen and len(self._interesting) < 2_000:
                self._interesting.append(conversation)
            if finding is not None:
                yield finding

    def play(self, conversation: tuple[Piece, ...]) -> Finding | None:
        """Play one conversation; returns what is wrong, if anything is.

        :raises UnreachableError: when nobody listens any more.
        """
        self.played += 1
        lines: dict[int, Line] = {}
        oracles: dict[int, _Oracle] = {}
        log = Log(self._stage)
        try:
            for piece in conversation:
                if piece.line not in lines:
                    wire = self._stage.open(f"l{piece.line}", PROBE)
                    lines[piece.line] = Line(f"l{piece.line}", wire, log, pongs=True)
                    oracles[piece.line] = _Oracle(self.coverage)
                data = with_names(piece.data, self._first + self.played)
                oracles[piece.line].read(data)
                lines[piece.line].send(data, None)
            wrong = None
            for number, line in lines.items():
                wrong = wrong or self._judge(line, oracles[number])
        finally:
            for line in lines.values():
                line.release()
        # A crash explains whatever else was wrong.
        crash = self._others_are_served(conversation)
        if crash is None and wrong is not None:
            return Finding(wrong[0], wrong[1], conversation)
        return crash

    def _judge(self, line: Line, oracle: _Oracle) -> tuple[str, str] | None:
        """What is wrong with what came on a line."""
        fenced = oracle.open
        deadline = self._stage.now() + self._patience.answer
        if fenced:
            line.fenced_by_ping += 1
            line.send(_PING, None, "fence")
            while line.fenced_by_ping > 0 and line.receive(deadline - self._stage.now()):
                if line.complaint:
                    break
        elif oracle.rule and oracle.rule not in _LIMITS_OF_SERVERS:
            while line.receive(min(deadline - self._stage.now(), self._patience.answer)):
                pass
        else:
            line.receive(0.0)
        self._sign(line, oracle)
        if line.complaint and not line.complaint.startswith("the stream ended"):
            return "undecodable", line.complaint
        if fenced and line.fenced_by_ping > 0:
            refused = any(isinstance(each, Frame) and each.type == 0x10 for each in line.seen)
            if line.ended and refused and not line.accepted:
                return None  # refused for a reason of the server's own
            if line.ended:
                return "closed", "the server closed, although no rule was broken"
            return "hang", "a ping was not answered, although no rule was broken"
        if oracle.rule and oracle.rule not in _LIMITS_OF_SERVERS and not line.ended:
            return "open", f"the server did not close, although {oracle.rule} was broken"
        return None

    def _sign(self, line: Line, oracle: _Oracle) -> None:
        """Remember how the server behaved."""
        parts = [oracle.rule, "ended" if line.ended else "open"]
        for each in line.seen[:12]:
            if isinstance(each, Frame):
                parts.append(f"{each.type}:{each.content_type if each.type in (16, 20, 8) else ''}")
        self.coverage.signatures.add(tuple(parts))

    def _others_are_served(self, conversation: tuple[Piece, ...]) -> Finding | None:
        """A session beside the conversations lives on, and new clients are taken."""
        try:
            if self._health is None:
                self._health = Keeper(
                    self._stage, f"health{self._first + self.played}", self._patience
                )
            self._health.ping()
        except UnreachableError as error:
            if self._health is not None:
                self._health.close()
            self._health = None
            return Finding("crash", f"another session is not served: {error}", conversation)
        return None

    def close(self) -> None:
        """Leave."""
        if self._health is not None:
            self._health.close()
            self._health = None


def shrink(
    fuzzer: WireFuzzer, finding: Finding, go_on: Callable[[], bool] = lambda: True
) -> Finding:
    """Make a finding smaller while the server still does the same: fewer pieces, then fewer bytes.

    A server that has crashed is not asked again, unless it was started again.
    """

    def same(candidate: Finding) -> bool:
        try:
            found = fuzzer.play(candidate.conversation)
        except UnreachableError:
            return False
        return found is not None and found.kind == finding.kind

    def smaller(best: Finding) -> Iterator[Finding]:
        for pieces in smaller_pieces(best.conversation):
            yield Finding(finding.kind, finding.message, pieces)

    return smallest(finding, smaller, same, go_on)


def smaller_pieces(pieces: tuple[Piece, ...]) -> Iterator[tuple[Piece, ...]]:
    """Smaller conversations, the smallest steps last."""
    for candidate in shorter(pieces):
        if candidate:
            yield candidate
    for place, piece in enumerate(pieces):
        for cut in shorter(tuple(piece.data)):
            smaller = Piece(piece.line, bytes(cut))
            yield (*pieces[:place], smaller, *pieces[place + 1 :])
