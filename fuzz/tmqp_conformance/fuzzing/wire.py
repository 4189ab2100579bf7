"""The wire fuzzer: sends invalid traffic, and checks what the server does.

It knows a protocol by its :class:`~tmqp_conformance.grammar.Subject`.  If the oracle finds no
broken rule, the server must continue to answer; if a rule was broken, it must close the connection.
In any case, it must not crash, must serve others, and must send only valid bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tmqp.testing import Seeded
from tmqp.testing.conformance import Patience, Stage, UnreachableError
from tmqp.testing.conformance.lines import Log, Stream
from tmqp.testing.conformance.steps import Fence
from tmqp_conformance.fuzzing.mutate import as_pieces, mutated
from tmqp_conformance.fuzzing.shrinking import smaller_pieces, smallest
from tmqp_conformance.grammar import Coverage, Oracle, Piece, Subject, Watch

__all__ = ["CRASH", "Finding", "WireFuzzer", "shrink"]

#: The kind of a finding that explains all others.
CRASH = "crash"
_MOST_INTERESTING = 2_000
_SHOWN = 240


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a server: its kind, what happened, and what was sent."""

    kind: str
    message: str
    conversation: tuple[Piece, ...]


class WireFuzzer:
    """Fuzzes one server.

    ``gone``: whether it has crashed and could not be restarted.  ``learnt``: conversations that
    caused new behaviour; they are mutated, too.

    :param stage: the stage that connects to it.
    :param subject: its protocol, and the conversations to mutate.
    :param seed: the same seed gives the same conversations.
    :param corpus: the conversations that earlier runs have learnt.
    """

    def __init__(
        self,
        stage: Stage,
        subject: Subject,
        seed: int,
        patience: Patience,
        corpus: Sequence[list[Piece]] = (),
    ) -> None:
        self.coverage = Coverage()
        for place in subject.grammars:
            self.coverage.at(place)
        self.played = 0
        self.gone = False
        # Names begin at another place for each seed.
        self._first = Seeded(seed).below(1 << 20)
        self._stage = stage
        self.subject = subject
        self.learnt: list[list[Piece]] = []
        self._interesting = [*corpus[:_MOST_INTERESTING]]
        self._draw = Seeded(seed)
        self._patience = patience
        self._watch: Watch | None = None

    def run(self, go_on: Callable[[], bool]) -> Iterator[Finding]:
        """Play conversations while ``go_on`` returns True; yield the findings."""
        while go_on():
            pool = self.subject.seeds
            if self._interesting and self._draw.one_in(3):
                pool = self._interesting
            chosen = pool[self._draw.below(len(pool))]
            conversation, names = mutated(self._draw, chosen, self.subject)
            self.coverage.mutations.update(names)
            played = as_pieces(self._draw, conversation)
            seen = len(self.coverage.signatures)
            finding = self.play(tuple(played))
            is_new = len(self.coverage.signatures) > seen
            if is_new and len(self._interesting) < _MOST_INTERESTING:
                self._interesting.append(conversation)
                self.learnt.append(conversation)
            if finding is not None:
                yield finding

    def play(self, conversation: tuple[Piece, ...]) -> Finding | None:
        """Play one conversation; return the finding, if there is one.

        :raises UnreachableError: if the server no longer listens.
        """
        self.played += 1
        if self._watch is None:
            self._begin_watch()
        lines: dict[int, Stream] = {}
        oracles: dict[int, Oracle] = {}
        log = Log(self._stage)
        wrong = None
        try:
            for piece in conversation:
                if piece.line not in lines:
                    lines[piece.line] = self.subject.open(self._stage, piece, log)
                    grammar = self.subject.grammars[piece.place]
                    oracles[piece.line] = grammar.oracle(self.coverage.at(piece.place))
                line = lines[piece.line]
                number = self._first + self.played
                data = self.subject.filled(piece, line, number, self._patience.quiet)
                oracles[piece.line].read(data)
                line.send(data, None)
            for key, line in lines.items():
                wrong = wrong or self._judge(line, oracles[key], conversation)
        except UnreachableError:
            wrong = None  # it may have crashed: another session finds out
        finally:
            for line in lines.values():
                line.release()
        # A crash explains all other faults.
        crash = self._others_are_served(conversation)
        if crash is None and wrong is not None:
            return Finding(wrong[0], wrong[1], conversation)
        return crash

    def again(self, finding: Finding, times: int) -> int:
        """Play a finding so many times again; how often the same was wrong."""
        count = 0
        for _ in range(times):
            try:
                found = self.play(finding.conversation)
            except UnreachableError:
                break  # it has crashed and was not restarted
            count += found is not None and found.kind == finding.kind
        return count

    def _judge(
        self, line: Stream, oracle: Oracle, conversation: tuple[Piece, ...]
    ) -> tuple[str, str] | None:
        """Return the fault in the answers on a line."""
        fenced = oracle.open
        deadline = self._stage.now() + self._patience.answer
        if fenced:
            line.put_fence(Fence.PING)
            while line.fenced and line.receive(deadline - self._stage.now()):
                if line.complaint:
                    break
        elif oracle.must_close:
            while line.receive(min(deadline - self._stage.now(), self._patience.answer)):
                pass
        elif oracle.doubtful:
            while line.receive(self._patience.quiet) and self._stage.now() < deadline:
                pass
        else:
            line.receive(0.0)
        self._sign(line, oracle)
        cut_short = line.complaint.startswith("the stream ended")
        if line.complaint and not cut_short and not oracle.illegible:
            return "undecodable", line.complaint
        if fenced and line.fenced:
            if line.ended and self.subject.excused(line, conversation):
                return None
            if line.ended:
                last = f"; it said last: {line.seen[-1]!r}"[:_SHOWN] if line.seen else ""
                return "closed", f"the server closed, although no rule was broken{last}"
            return "hang", "the server stopped answering, although no rule was broken"
        if oracle.must_close and not line.ended:
            return "open", f"the server did not close, although {oracle.rule} was broken"
        return None

    def _sign(self, line: Stream, oracle: Oracle) -> None:
        """Remember how the server behaved."""
        parts = [oracle.rule, "ended" if line.ended else "open", *self.subject.words(line)]
        self.coverage.signatures.add(tuple(parts))

    def _others_are_served(self, conversation: tuple[Piece, ...]) -> Finding | None:
        """Others beside the conversations are served, and new clients are taken."""
        assert self._watch is not None
        try:
            self._watch.check()
        except UnreachableError as error:
            self.close()
            self._revive()
            return Finding(CRASH, f"another session is not served: {error}", conversation)
        return None

    def _begin_watch(self) -> None:
        """Check that other clients are served before anything is sent.

        :raises UnreachableError: if they are not, because then nothing can be tested.
        """
        try:
            watch = self.subject.watch(self._stage, self._first + self.played, self._patience)
            watch.check()
        except UnreachableError:
            self.gone = True
            raise
        self._watch = watch

    def _revive(self) -> None:
        """Restart a crashed server, if possible."""
        try:
            self._stage.restart()
        except UnreachableError:
            self.gone = True

    def close(self) -> None:
        """Leave."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def shrink(
    fuzzer: WireFuzzer, finding: Finding, go_on: Callable[[], bool] = lambda: True
) -> Finding:
    """Minimise a finding while the server still behaves in the same way: first fewer pieces, then
    fewer bytes.

    A crashed server is not used again, unless it was restarted.
    """

    def same(candidate: Finding) -> bool:
        # Twice: what an earlier conversation has left may answer the first time.
        for _ in range(1 if finding.kind == CRASH else 2):
            try:
                found = fuzzer.play(candidate.conversation)
            except UnreachableError:
                return False
            if found is None or found.kind != finding.kind:
                return False
        return True

    def smaller(best: Finding) -> Iterator[Finding]:
        for fewer in smaller_pieces(best.conversation, fuzzer.subject.grammars):
            yield Finding(finding.kind, finding.message, fewer)

    return smallest(finding, smaller, same, lambda: go_on() and not fuzzer.gone)
