"""The differential fuzzer: the same conversation with two servers, and the differences between
their answers.

A difference is not necessarily a fault: if two correct servers differ, the protocol leaves a
choice, or is unclear.  Ids that servers make, and long numbers (times, sizes), are not compared;
answers on one connection are compared without their order (F44).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tmqp import Frame
from tmqp.testing import Seeded
from tmqp.testing.conformance import Patience, Stage
from tmqp.testing.conformance.lines import Line, Log
from tmqp.testing.conformance.patterns import Preamble
from tmqp_conformance.fuzzing.mutate import mutated, with_names
from tmqp_conformance.fuzzing.native import NativeOracle, NativeSubject
from tmqp_conformance.fuzzing.shrinking import smaller_pieces, smallest
from tmqp_conformance.grammar import Piece, Tally
from tmqp_conformance.keeper import PROBE

__all__ = ["Differ", "Difference"]

_PING: Final = Frame.build(0x09, ttl=16).raw
_ID: Final = re.compile(r"[0-9a-f]{32}")
_NUMBER: Final = re.compile(r"\d{4,}")
_TIME: Final = re.compile(r'("[A-Za-z]*(?:Online|Time|Uptime|Age)[A-Za-z]*":)\d+')
_REPLAYS: Final = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """A conversation that two servers answer otherwise; ``again`` of three replays differed."""

    message: str
    conversation: tuple[Piece, ...]
    again: int = 0


class Differ:
    """Compares two servers; ``unsteady`` counts differences that were not reproduced.

    :param stages: the stages that connect to them.
    :param subject: the traffic to send, unchanged or mutated.
    :param seed: the same seed gives the same conversations.
    """

    def __init__(
        self,
        stages: tuple[Stage, Stage],
        subject: NativeSubject,
        seed: int,
        patience: Patience,
    ) -> None:
        self.played = 0
        self.unsteady = 0
        self._tally = Tally()
        self._stages = stages
        self._subject = subject
        self._draw = Seeded(seed)
        self._first = Seeded(seed).below(1 << 20)
        self._patience = patience

    def run(self, go_on: Callable[[], bool]) -> Iterator[Difference]:
        """Play conversations while ``go_on`` says so; yields what differs, made small.

        :raises UnreachableError: when one of the servers is not there.
        """
        draw = self._draw
        while go_on():
            chosen = self._subject.seeds[draw.below(len(self._subject.seeds))]
            if not draw.one_in(3):
                chosen = mutated(draw, chosen, self._subject)[0]
            message = self.play(tuple(chosen))
            if message:
                found = self._confirmed(Difference(message, tuple(chosen)))
                if found.again:
                    yield found
                else:
                    self.unsteady += 1

    def play(self, conversation: tuple[Piece, ...]) -> str:
        """Play one conversation with both; returns what differs, or an empty text.

        :raises UnreachableError: when one of the servers is not there.
        """
        self.played += 1
        one, other = [self._observe(stage, conversation) for stage in self._stages]
        for name, answers in one.items():
            if answers != other[name]:
                first = [each for each in answers if each not in other[name]]
                second = [each for each in other[name] if each not in answers]
                return f"connection {name}: {first or 'no more'} and {second or 'no more'}"
        return ""

    def _confirmed(self, found: Difference) -> Difference:
        again = sum(bool(self.play(found.conversation)) for _ in range(_REPLAYS))
        pieces = found.conversation
        if again:
            pieces = smallest(
                pieces,
                lambda best: smaller_pieces(best, self._subject.grammars),
                lambda candidate: bool(self.play(candidate)),
            )
        return Difference(self.play(pieces) or found.message, pieces, again)

    def _observe(self, stage: Stage, conversation: tuple[Piece, ...]) -> dict[int, list[str]]:
        """What a server answers on each connection."""
        lines: dict[int, Line] = {}
        oracles: dict[int, NativeOracle] = {}
        log = Log(stage)
        number = self._first + self.played
        try:
            for piece in conversation:
                if piece.line not in lines:
                    wire = stage.open(f"l{piece.line}", PROBE)
                    lines[piece.line] = Line(f"l{piece.line}", wire, log, pongs=True)
                    oracles[piece.line] = NativeOracle(self._tally)
                data = with_names(piece.data, number)
                oracles[piece.line].read(data)
                lines[piece.line].send(data, None)
                # The next piece may be for another connection: it must not overtake this one.
                self._fence(stage, lines[piece.line], oracles[piece.line])
            for name, line in lines.items():
                self._fence(stage, line, oracles[name])
            return {name: _normal(line) for name, line in lines.items()}
        finally:
            for line in lines.values():
                line.release()

    def _fence(self, stage: Stage, line: Line, oracle: NativeOracle) -> None:
        """Wait until the server has read everything, or has had the time for it."""
        if not oracle.open or line.ended:
            wait = self._patience.answer if oracle.rule else self._patience.quiet
            while line.receive(wait):
                pass
            return
        line.fenced_by_ping += 1
        line.send(_PING, None, "fence")
        deadline = stage.now() + self._patience.answer
        while line.fenced_by_ping > 0 and not line.complaint:
            if not line.receive(deadline - stage.now()):
                return


def _normal(line: Line) -> list[str]:
    """Return the answers of a connection, without the parts that may differ."""
    texts = [
        _text(each) if isinstance(each, Frame) else repr(each.data)
        for each in line.seen
        if isinstance(each, (Frame, Preamble))
    ]
    found = [_NUMBER.sub("#", _TIME.sub(r"\1#", _ID.sub("<id>", text))) for text in texts]
    complaint = [line.complaint] if line.complaint else []
    unanswered = ["a ping was not answered"] if line.fenced_by_ping and not line.ended else []
    return sorted([*found, *complaint, *unanswered, "closed" if line.ended else "open"])


def _text(frame: Frame) -> str:
    """A message in words, with all its payload."""
    flags = "".join(
        letter
        for letter, is_set in (
            ("F", frame.first_acquirer),
            ("H", frame.high_priority),
            ("R", frame.pending_response),
            ("A", frame.pending_acknowledge),
        )
        if is_set
    )
    return (
        f"type {frame.type} {flags} ttl={frame.ttl} content_type={frame.content_type}"
        f" id={frame.message_id!r} source={frame.source!r} target={frame.target!r}"
        f" headers={frame.headers} payload={frame.payload!r}"
    )
