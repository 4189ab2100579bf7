"""The player of cases: sends a script's messages, and compares the answers with the acceptable
ones.

The player has no I/O: it reaches the peer through a :class:`~tmqp.testing.conformance.lines.Stage`,
so the same case runs over sockets and in memory.  It does not wait for silence if a fence can show
it: it sends a ping after a script's messages, and once the pong has arrived, so has everything that
was sent before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

from tmqp.codec import FrameDecoder
from tmqp.constants import RESULT_NOT_IMPLEMENTED, TYPE_RESPONSE
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp.testing.conformance.cases import Case
from tmqp.testing.conformance.lines import (
    Entry,
    Kind,
    Line,
    Log,
    Stage,
    Stream,
    UnreachableError,
    Wire,
)
from tmqp.testing.conformance.patterns import Names
from tmqp.testing.conformance.steps import (
    Answer,
    Close,
    End,
    Fence,
    Hear,
    Message,
    Open,
    Restart,
    Say,
    Step,
    Wait,
)
from tmqp.testing.conformance.verdicts import Verdict, worst

__all__ = ["Patience", "Result", "Speaks", "play", "speaks_tmqp"]

_WRITER: Final = Limits(max_payload_bytes=268_435_456)
_NOT_MORE: Final = Answer(end=End.EITHER)

#: Makes the line that an Open step opens, of what its connection is logged to.
Speaks: TypeAlias = "Callable[[Open, Case, Wire, Log], Stream]"


def speaks_tmqp(step: Open, case: Case, wire: Wire, log: Log) -> Stream:
    """Make the line of a case about TMQP."""
    return Line(step.line, wire, log, pongs=case.pongs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the player waits, in seconds, until silence counts as the answer.

    ``slow`` multiplies all of them, for peers on slow machines.  ``ready_s`` is the time for an
    accepted client to begin its task, because its program may be notified a little later.
    """

    answer_s: float = 3.0
    quiet_s: float = 0.15
    close_s: float = 5.0
    ready_s: float = 0.0
    slow: float = 1.0

    @property
    def answer(self) -> float:
        """The time for an answer, or for a pong."""
        return self.answer_s * self.slow

    @property
    def quiet(self) -> float:
        """The time of silence if no fence can show that nothing more arrives."""
        return self.quiet_s * self.slow

    @property
    def ready(self) -> float:
        """The time for a client to begin its task."""
        return self.ready_s * self.slow

    @property
    def close(self) -> float:
        """The time for the end of a connection."""
        return self.close_s * self.slow


@dataclass(slots=True)
class Result:
    """The result of one case: the two verdicts, their reason, and the log of the wire.

    ``step`` is the number of the step that decided, from 1; 0 if all went well.
    """

    case: Case
    behaviour: Verdict = Verdict.PASS
    closing: Verdict = Verdict.PASS
    message: str = ""
    expected: str = ""
    seen: list[str] = field(default_factory=list)
    step: int = 0
    duration_s: float = 0.0
    log: list[Entry] = field(default_factory=list)
    suffix: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worse of the two."""
        return worst((self.behaviour, self.closing))


class _Over(Exception):  # noqa: N818 - never leaves this module
    """The case is decided."""

    def __init__(
        self, behaviour: Verdict, message: str, closing: Verdict = Verdict.PASS, expected: str = ""
    ) -> None:
        super().__init__(message)
        self.behaviour = behaviour
        self.closing = closing
        self.message = message
        self.expected = expected


def play(
    case: Case,
    stage: Stage,
    suffix: str,
    patience: Patience | None = None,
    token: str = "",
    speaks: Speaks = speaks_tmqp,
) -> Result:
    """Play a case.

    :param suffix: letters and digits that no other run's names end with.
    :param token: the token with which clients log in; it is masked in logs.
    :param speaks: makes lines that speak the protocol.
    :returns: the result; whatever the peer does, nothing is raised.
    """
    player = _Player(case, stage, Names(suffix), patience or Patience(), token, speaks)
    player.run()
    return player.result


class _Player:
    """One run of a case."""

    def __init__(
        self,
        case: Case,
        stage: Stage,
        names: Names,
        patience: Patience,
        token: str,
        speaks: Speaks,
    ) -> None:
        self.result = Result(case, suffix=names.suffix)
        self._case = case
        self._stage = stage
        self._names = names
        self._patience = patience
        self._token = token
        self._speaks = speaks
        self._log = Log(stage, token.encode())
        self._lines: dict[str, Stream] = {}
        self._all_lines: list[Stream] = []
        self._messages = 0
        self._opened = 0

    def run(self) -> None:
        result = self.result
        try:
            for number, step in enumerate(self._case.steps, 1):
                result.step = number
                self._take(step)
            if not self._case.loose:
                for line in self._lines.values():
                    if (line.accepted or line.quiet) and not line.ended:
                        self._hear(line, Hear(line.name, _NOT_MORE))
            result.step = 0
        except _Over as over:
            result.behaviour = worst((result.behaviour, over.behaviour))
            result.closing = over.closing
            result.message = over.message
            result.expected = over.expected
        except UnreachableError as error:
            result.behaviour = Verdict.HANG if self._opened else Verdict.CRASH
            result.message = str(error)
        finally:
            for line in self._all_lines:
                line.release()
        result.duration_s = self._log.elapsed_s
        result.log = self._log.entries

    # -- steps ----------------------------------------------------------------------------------

    def _take(self, step: Step) -> None:
        if self._log.elapsed_s > self._case.bounds.seconds * self._patience.slow:
            raise _Over(Verdict.HANG, f"the case takes more than {self._case.bounds.seconds:g} s")
        if isinstance(step, Wait):
            self._log.add("", Kind.NOTE, note=f"wait {step.seconds:g} s")
            self._stage.wait(step.seconds)
        elif isinstance(step, Open):
            self._open(step)
        elif isinstance(step, Restart):
            self._log.add("", Kind.NOTE, note="restart")
            for line in self._lines.values():
                line.release()
                line.ended = True
            self._stage.restart()
        else:
            line = self._lines[step.line]
            if isinstance(step, Say):
                self._say(line, step)
            elif isinstance(step, Hear):
                self._hear(line, step)
            else:
                assert isinstance(step, Close)
                line.close(step.how)

    def _open(self, step: Open) -> None:
        self._opened += 1
        assert self._opened <= self._case.bounds.connections, "the case opens too many connections"
        self._log.add(step.line, Kind.NOTE, note="open")
        wire = self._stage.open(step.line, self._case)
        line = self._speaks(step, self._case, wire, self._log)
        self._lines[step.line] = line
        self._all_lines.append(line)

    def _say(self, line: Stream, step: Say) -> None:
        parts: list[bytes] = []
        frame: Frame | None = None
        for item in step.items:
            if isinstance(item, bytes):
                data = item
            else:
                self._messages += 1
                data = item.encode(self._names, f"m{self._messages}", self._token)
                frame = _read(data) if isinstance(item, Message) else None
            parts.append(data)
        data = b"".join(parts)
        was_accepted = line.accepted
        for piece in [data] if step.chop is None else _pieces(data, step.chop):
            line.send(piece, frame)
        if self._case.task and line.accepted and not was_accepted:
            self._stage.wait(self._patience.ready)

    # -- hearing --------------------------------------------------------------------------------

    def _hear(self, line: Stream, step: Hear) -> None:
        try:
            answer = self._collect(line, step)
        except _Over as over:
            over.expected = over.expected or " | ".join(each.describe() for each in step.answers)
            raise
        finally:
            self.result.seen = [repr(each) for each in line.seen]
        if answer.verdict is not Verdict.PASS:
            self.result.behaviour = worst((self.result.behaviour, answer.verdict))
            self.result.message = answer.message
        if not answer.more:
            line.seen.clear()
            return
        # What was expected is done with; the rest may be expected later.
        used = _assign(answer, line.seen, self._names, line.last) or {}
        line.seen = [each for place, each in enumerate(line.seen) if place not in used]

    def _collect(self, line: Stream, step: Hear) -> Answer:
        fence = step.fence
        if fence is Fence.AUTO:
            ends = all(each.end is End.CLOSED for each in step.answers)
            fence = Fence.END if ends else Fence.PING if line.accepted else Fence.QUIET
        patience = self._patience.close if fence is Fence.END else self._patience.answer
        deadline = self._stage.now() + patience + (step.within or 0.0)
        if fence in (Fence.PING, Fence.ASK):
            self._pass_fence(line, fence, deadline)
        elif fence is Fence.QUIET:
            while self._receive(line, min(self._patience.quiet, self._left(deadline))):
                pass
        answer = self._match(line, step)
        if answer is not None and answer is not step.answers[0] and not line.ended:
            # Not the best one: what makes it better may still be on its way.
            self._receive(line, self._patience.quiet)
            answer = self._match(line, step)
        while answer is None and self._receive(line, self._left(deadline)):
            answer = self._match(line, step)
        if answer is None:
            answer = self._match(line, step)
        if answer is None:
            raise self._judge(line, step, fence)
        return answer

    def _left(self, deadline: float) -> float:
        return deadline - self._stage.now()

    def _receive(self, line: Stream, wait_s: float) -> bool:
        if wait_s < 0:
            return False
        if self._log.received_bytes > self._case.bounds.received_bytes:
            raise _Over(Verdict.FAIL, f"more than {self._case.bounds.received_bytes} bytes came")
        return line.receive(wait_s)

    def _pass_fence(self, line: Stream, fence: Fence, deadline: float) -> None:
        if line.ended:
            return
        line.put_fence(fence)
        while line.fenced:
            if line.complaint:
                return
            if not self._receive(line, self._left(deadline)):
                if line.wire.closed:
                    return
                raise _Over(Verdict.HANG, f"a {fence.name.lower()} was not answered in time")

    # -- judging --------------------------------------------------------------------------------

    def _match(self, line: Stream, step: Hear) -> Answer | None:
        if line.complaint and not line.ended:
            raise _Over(Verdict.FAIL, line.complaint)
        for answer in step.answers:
            if not _end_fits(answer, line):
                continue
            if _assign(answer, line.seen, self._names, line.last) is not None:
                return answer
        return None

    def _judge(self, line: Stream, step: Hear, fence: Fence) -> _Over:
        """Explain why no answer fits."""
        if line.complaint:
            return _Over(Verdict.FAIL, line.complaint)
        seen = line.seen
        for answer in step.answers:
            if _assign(answer, seen, self._names, line.last) is not None:
                message = (
                    "the connection ended, and must stay open"
                    if line.ended
                    else "the connection did not end"
                )
                return _Over(answer.verdict, message, closing=Verdict.UNCLEAN)
        for each in seen:
            if (
                isinstance(each, Frame)
                and each.type == TYPE_RESPONSE
                and each.content_type == RESULT_NOT_IMPLEMENTED
            ):
                return _Over(Verdict.UNIMPLEMENTED, "the peer answers 501, not implemented")
        for answer in step.answers:
            if _assign(answer, seen, self._names, line.last, codes=False) is not None:
                difference = _difference(answer, seen, self._names, line.last)
                return _Over(Verdict.WRONG_CODE, difference)
        unasked = fence in (Fence.QUIET, Fence.FIRST, Fence.END) and not line.quiet
        if not seen and not line.ended and unasked:
            if not line.accepted:
                return _Over(Verdict.HANG, "the peer did not answer")
            # Silence where an answer is due: a ping tells whether the peer lives.
            self._pass_fence(line, Fence.PING, self._stage.now() + self._patience.answer)
        return _Over(
            Verdict.FAIL, _difference(step.answers[0], seen, self._names, line.last, line.ended)
        )


def _read(data: bytes) -> Frame | None:
    """Read bytes as a message; None if they are not one."""
    decoder = FrameDecoder(_WRITER)
    frames = decoder.feed(data)
    return frames[0] if len(frames) == 1 and decoder.error is None else None


def _pieces(data: bytes, chop: int | tuple[int, ...]) -> list[bytes]:
    cuts = range(chop, len(data), chop) if isinstance(chop, int) else chop
    places = [0, *[cut for cut in cuts if 0 < cut < len(data)], len(data)]
    return [data[start:stop] for start, stop in pairwise(places)]


def _end_fits(answer: Answer, line: Stream) -> bool:
    if answer.end is End.EITHER:
        return True
    return line.ended is (answer.end is End.CLOSED)


def _assign(
    answer: Answer, seen: list[object], names: Names, sent: object, *, codes: bool = True
) -> dict[int, int] | None:
    """Assign the seen messages to the expected ones (index -> number); None if they do not fit.

    If the order does not matter, each expected message gets the first that fits it, so of
    overlapping patterns in one answer, the narrower one must be first.
    """
    if len(seen) < len(answer.expected) or (not answer.more and len(seen) > len(answer.expected)):
        return None
    used: dict[int, int] = {}
    begin = 0
    for number, expected in enumerate(answer.expected):
        for place in range(begin, len(seen)):
            if place in used:
                continue
            found = seen[place]
            fits = not expected.difference(found, names, sent)
            if fits or (not codes and expected.fits_but_for_its_code(found, names, sent)):
                used[place] = number
                if answer.ordered:
                    begin = place + 1
                break
            if answer.ordered and not answer.more:
                return None
        else:
            return None
    return used


def _difference(
    answer: Answer,
    seen: list[object],
    names: Names,
    sent: object,
    ended: bool = False,
) -> str:
    """Describe in a sentence how the received messages differ from an answer."""
    for number, expected in enumerate(answer.expected, 1):
        if number > len(seen):
            end = " before the connection ended" if ended else ""
            return f"{len(seen)} of {len(answer.expected)} expected messages came{end}"
        found = seen[number - 1]
        difference = expected.difference(found, names, sent)
        if difference:
            return f"message {number}: {difference}"
    if len(seen) > len(answer.expected):
        extra = seen[len(answer.expected)]
        return f"{len(seen) - len(answer.expected)} more came than expected: {extra!r}"
    return "the messages came in another order"
