"""The bugs that are planted in the shell and the hub's way to it; see ``mutants.py``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from tmqp_server.access.gate import Gate, Question, Verdict
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.questions import Fault
from tmqp_server.hub.traced import Traced
from tmqp_server.shell.connections import Connections
from tmqp_server.shell.judged import Judged
from tmqp_server.shell.lines import Line
from tmqp_server.shell.log_ins import LogIns
from tmqp_server.shell.outbound import BEHIND, BLOCK, CUT, KEPT, OPEN, UNBLOCK, Outbound
from tmqp_server.shell.saving import IDLE, WRITING, Saving
from tmqp_server.shell.steps import READ, WAIT
from tmqp_server.shell.timers import Timers
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import Ask
from tmqp_server.storage.journal import Writing
from tmqp_server.storage.port import StoreBatch
from tmqp_sim.audit_bugs import AUDIT_BUGS
from tmqp_sim.datagram_bugs import DATAGRAM_BUGS
from tmqp_sim.drain_bugs import DRAIN_BUGS

__all__ = ["SHELL_BUGS"]


def _nothing(_original: Any) -> Any:
    def nothing(*_: Any) -> None:
        return None

    return nothing


def _sends_nothing(original: Any) -> Any:
    def take(self: Hub) -> Any:
        original(self)
        return []

    return take


# --- Saving --------------------------------------------------------------------------------------


def _failure_is_success(_original: Any) -> Any:
    def failed(self: Saving, writing: Any, _error: Exception) -> None:
        self._answers.extend(self._journal.answers(writing, True, 1_000))

    return failed


def _confirms_before(original: Any) -> Any:
    def take(self: Saving) -> Writing:
        writing: Writing = original(self)
        self._answers.extend(self._journal.answers(writing, True, 1_000))
        writing.count = 0
        return writing

    return take


def _two_at_once(original: Any) -> Any:
    def enter(self: Saving, state: int, *due: float) -> None:
        original(self, IDLE if state == WRITING else state, *due)

    return enter


def _anything_is_proof(_original: Any) -> Any:
    def brings(_self: StoreBatch) -> bool:
        return True

    return brings


def _never_urgent(_original: Any) -> Any:
    def urgent(_self: Saving) -> bool:
        return False

    return urgent


def _forgets_fetches(_original: Any) -> Any:
    def refuse(self: Saving) -> None:
        self._reads.clear()

    return refuse


def _waits_for_a_write(original: Any) -> Any:
    def on_deadline(self: Saving, now: float) -> None:
        if self.state == WRITING:
            self._due = math.inf
        else:
            original(self, now)

    return on_deadline


def _pauses_for_good(original: Any) -> Any:
    def rest(self: Saving, now: float) -> None:
        self._read_failed = self._read_failed or self.__dict__.get("once", False)
        self.__dict__["once"] = self._read_failed
        original(self, now)

    return rest


def _always_clean(original: Any) -> Any:
    def close(self: Saving, _error: Exception | None) -> None:
        original(self, None)

    return close


# --- Outbound ------------------------------------------------------------------------------------


def _overtakes(original: Any) -> Any:
    def keep(self: Outbound, *rest: Any) -> int:
        outcome: int = original(self, *rest)
        if self.state == BEHIND and self.bytes < 1_000:
            self.state = OPEN
        return outcome

    return keep


def _from_the_start(original: Any) -> Any:
    def taken(self: Outbound, *rest: Any) -> int:
        found: int = original(self, *rest)
        self.offset = 0
        return found

    return taken


def _never_unblocks(original: Any) -> Any:
    def taken(self: Outbound, *rest: Any) -> int:
        found: int = original(self, *rest)
        return found & ~UNBLOCK

    return taken


def _never_blocks(original: Any) -> Any:
    def keep(self: Outbound, *rest: Any) -> int:
        outcome: int = original(self, *rest)
        self.blocked = False
        return KEPT if outcome == BLOCK else outcome

    return keep


def _no_hard_limit(original: Any) -> Any:
    def keep(self: Outbound, *rest: Any) -> int:
        outcome: int = original(self, *rest)
        return KEPT if outcome == CUT else outcome

    return keep


def _progress_does_not_count(original: Any) -> Any:
    def taken(self: Outbound, *rest: Any) -> int:
        before = self._progress_at
        found: int = original(self, *rest)
        self._progress_at = before
        return found

    return taken


def _waits_for_ever(original: Any) -> Any:
    def due(self: Outbound) -> float:
        at: float = original(self)
        return float("inf") if self.state == BEHIND else at

    return due


def _no_flush(original: Any) -> Any:
    def finish(self: Outbound, *rest: Any) -> bool:
        original(self, *rest)
        return True

    return finish


# --- Turn ----------------------------------------------------------------------------------------


def _ends_too_soon(original: Any) -> Any:
    def take(self: Hub) -> Any:
        pieces = list(original(self))
        ended = {number for number, data in pieces if not data}
        for number in dict.fromkeys(number for number, _ in pieces):
            if number not in ended and self.close_reason(number):
                pieces.append((number, b""))
        return pieces

    return take


def _reads_on(original: Any) -> Any:
    def following(self: Turn, *rest: Any) -> int:
        step: int = original(self, *rest)
        return READ if step & ~4 == WAIT else step

    return following


def _never_nearer(_original: Any) -> Any:
    def due(_self: Timers, _number: int) -> float:
        return float("-inf")

    return due


def _blames_the_first(original: Any) -> Any:
    def blame(self: Turn, fault: Fault, now: float) -> None:
        others = [number for number in self._outs if number != fault.session]
        original(self, Fault(others[0], fault.error) if others else fault, now)

    return blame


# --- Gate, admitting, lines ----------------------------------------------------------------------


def _any_answer_will_do(original: Any) -> Any:
    def decided(self: Turn, ask: Ask, *rest: Any) -> None:
        asked = self._asking._asked.get(ask.question.session)
        original(self, ask if asked is None else asked, *rest)

    return decided


def _keeps_for_good(original: Any) -> Any:
    def decided(self: Gate, question: Question, decision: Verdict, now: float) -> Any:
        if decision.keep_s > 0.0:
            decision.keep_s = 1_000.0
        return original(self, question, decision, now)

    return decided


def _no_pause(_original: Any) -> Any:
    def following(*_: Any) -> float:
        return 0.0

    return following


def _late_is_fine(original: Any) -> Any:
    def done(self: Line[Any], item: Any) -> bool:
        original(self, item)
        return True

    return done


def _all_at_once(original: Any) -> Any:
    def start(self: Line[Any], now: float) -> Any:
        self._at_once = 1_000
        return original(self, now)

    return start


def _leaves_unwritten(_original: Any) -> Any:
    def end_round(self: Connections, _now: float) -> bool:
        self._in_round = False
        return False

    return end_round


#: Name, what it comes to in words, what is replaced, and by what.
SHELL_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    *AUDIT_BUGS,
    *DATAGRAM_BUGS,
    *DRAIN_BUGS,
    ("hub-is-silent", "the hub has nothing to send", Traced, "take_outbound", _sends_nothing),
    (
        "failed-write-saved", "a failed write is reported as saved",
        Saving, "_failed", _failure_is_success,
    ),
    (
        "confirmed-before-written", "what is being written is confirmed",
        Saving, "take", _confirms_before,
    ),
    ("two-batches", "a batch is written while one is out", Saving, "_enter", _two_at_once),
    (
        "heals-without-proof", "the storage is said to save again, and no message was saved",
        StoreBatch, "brings", _anything_is_proof,
    ),
    (
        "slow-write-unnoticed", "a batch that takes for ever is no failure",
        Saving, "on_deadline", _waits_for_a_write,
    ),
    ("urgent-lingers", "what somebody waits for is held back", Saving, "_is_urgent", _never_urgent),
    (
        "fetch-dropped", "a failed read forgets what the broker wanted",
        Saving, "_refuse_readers", _forgets_fetches,
    ),
    ("pause-stays", "the pause of a failed read stays for ever", Saving, "_rest", _pauses_for_good),
    ("unclean-is-clean", "a failed last batch is a clean stop", Saving, "_close", _always_clean),
    ("overtaken-bytes", "bytes are sent although others wait", Outbound, "keep", _overtakes),
    (
        "offset-forgotten", "a half-sent piece is sent again from its start",
        Outbound, "taken", _from_the_start,
    ),
    ("never-unblocked", "who has read is still held back", Outbound, "taken", _never_unblocks),
    ("never-blocked", "who does not read is delivered to", Outbound, "keep", _never_blocks),
    ("no-hard-limit", "any number of bytes may wait for a peer", Outbound, "keep", _no_hard_limit),
    (
        "progress-ignored", "a peer that reads is cut for reading nothing",
        Outbound, "taken", _progress_does_not_count,
    ),
    ("stall-allowed", "a peer that reads nothing is kept", Outbound, "due", _waits_for_ever),
    ("no-flush", "a connection is closed with bytes to send", Outbound, "finish", _no_flush),
    (
        "last-words-lost", "what a client said before its Terminate is dropped",
        Traced, "take_outbound", _ends_too_soon,
    ),
    (
        "round-unwritten", "what chunks that came together lead to is not written",
        Connections, "end_round", _leaves_unwritten,
    ),
    ("reads-on", "a session with work left is read from", Connections, "_next", _reads_on),
    (
        "portion-lost", "what is left of a chunk is not gone on with",
        Connections, "_keep_going", _nothing,
    ),
    ("deadline-missed", "a nearer deadline is not watched", Timers, "due", _never_nearer),
    ("wrong-session-blamed", "a fault ends another session", Turn, "_blame", _blames_the_first),
    (
        "any-answer", "a late answer is taken for that to the next question",
        Judged, "decided", _any_answer_will_do,
    ),
    ("kept-for-good", "an answer is kept beyond its time", Gate, "decided", _keeps_for_good),
    (
        "answers-outlive", "answers that are to be forgotten are kept",
        Gate, "forget_answers", _nothing,
    ),
    ("no-pause", "a refused client hears of it at once", LogIns, "refused", _no_pause),
    ("answered-twice", "a call that was given up is answered again", Line, "done", _late_is_fine),
    ("all-at-once", "any number of calls is made at one time", Line, "start", _all_at_once),
)  # fmt: skip
