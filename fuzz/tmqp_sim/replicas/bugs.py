"""The bugs that are planted in replication, to see that the simulated groups find them."""

from __future__ import annotations

import math
from typing import Any, Final

from tmqp_server.replication.appending import DONE, Appending
from tmqp_server.replication.effects import Lead
from tmqp_server.replication.life import COMPLETING, Life
from tmqp_server.replication.members import MemberTable
from tmqp_server.replication.rebuilding import READY, Rebuilding
from tmqp_server.storage import logged
from tmqp_server.storage.log import AppendEntry, Fenced, ReadEntries, Report
from tmqp_server.storage.logged import LogReader
from tmqp_server.storage.replicated import ReplicatedWrites
from tmqp_sim.mutants import Mutant
from tmqp_sim.replicas.group import run_group
from tmqp_sim.replicas.log_server import LogServer
from tmqp_sim.replicas.nodes import Node
from tmqp_sim.replicas.stores import SimStore
from tmqp_sim.world import Violation

__all__ = ["BUGS", "caught_at"]


def _anybody_appends(_original: Any) -> Any:
    def stands(self: LogServer, _epoch: int) -> bool:
        return self.leader() is not None

    return stands


def _done_at_once(original: Any) -> Any:
    def begin(self: Appending, *arguments: Any) -> None:
        original(self, *arguments)
        self.state = DONE

    return begin


def _promotes_early(original: Any) -> Any:
    def claimed(self: Life, leader: Any, now: float) -> None:
        original(self, leader, now)
        self._out.append(Lead(leader))

    return claimed


def _next_number(original: Any) -> Any:
    def unanswered(self: Appending) -> Any:
        request = self.request
        self.request = AppendEntry(request.epoch, request.number + 1, request.data)
        return original(self)

    return unanswered


def _takes_it_for_lost(_original: Any) -> Any:
    def attempt(self: Node, append: Appending, epoch: int, left: Any, done: Any) -> None:
        """What is not answered is taken for not written, and its number for used."""
        life = self.lives

        def answered(answer: Any) -> None:
            append.answered(answer)
            self._settled(append, epoch, left, done)

        def unanswered() -> None:
            self._writing = None
            self.store.writes._reader.wrote(append.request.number)

        self.link.ask(
            append.request,
            lambda answer: self.hear(life, lambda: answered(answer)),
            lambda: self.hear(life, unanswered),
        )

    return attempt


def _needs_nothing(_original: Any) -> Any:
    def needed(_self: MemberTable, _node: str, own: int, _now: float) -> int:
        return own + 1

    return needed


def _leads_for_ever(_original: Any) -> Any:
    def kept_in_time(self: Life, now: float) -> bool:
        self._kept_at = now
        return True

    return kept_in_time


def _forgets_parts(original: Any) -> Any:
    def read(self: LogReader, entry: Any) -> Any:
        found = original(self, entry)
        self.applied = self.number
        return found

    return read


def _keeps_parts(original: Any) -> Any:
    def read(self: LogReader, entry: Any) -> Any:
        parts = list(self._parts)
        found = original(self, entry)
        if found is not None and found.kind == logged.BEGIN:
            self._parts = parts
        return found

    return read


def _forgets_used(original: Any) -> Any:
    def blocks(key: int, messages: Any, _used: Any) -> Any:
        return original(key, messages, {})

    return blocks


def _reports_what_is_read(original: Any) -> Any:
    def report_now(self: Life, now: float) -> None:
        self._carried, carried = self.read, self._carried
        original(self, now)
        self._carried = carried

    return report_now


def _own_time(_original: Any) -> Any:
    def time(_self: ReplicatedWrites, now_us: int) -> int:
        return now_us

    return time


def _time_too_early(original: Any) -> Any:
    def time(self: ReplicatedWrites, now_us: int) -> int:
        self.now_us = found = original(self, now_us)
        return found  # type: ignore[no-any-return]

    return time


def _loses_a_change(original: Any) -> Any:
    def decode(data: bytes) -> Any:
        found = original(data)
        return found[: max(1, len(found) - 1)]

    return decode


def _loses_notes(original: Any) -> Any:
    def decode(data: bytes, place: int, count: int, _notes: Any) -> Any:
        return original(data, place, count, [])

    return decode


def _never_adopts(_original: Any) -> Any:
    def adopt(_self: SimStore, _identity: str) -> None:
        """It stays what it was."""

    return adopt


def _leads_unapplied(original: Any) -> Any:
    def has_appended(self: Life, answer: Any) -> None:
        original(self, answer)
        if self.leader is not None and self.state == COMPLETING:
            self._out.insert(-1, Lead(self.leader))

    return has_appended


def _reports_once(_original: Any) -> Any:
    def report_later(_self: Life, _now: float) -> None:
        """Once is enough."""

    return report_later


def _never_keeps(original: Any) -> Any:
    def claimed(self: Life, leader: Any, now: float) -> None:
        original(self, leader, now)
        self._keep.due = math.inf

    return claimed


def _gives_up(original: Any) -> Any:
    def unanswered(self: Life, request: Any, now: float) -> None:
        original(self, request, now)
        self._main.due = math.inf

    return unanswered


def _one_portion(original: Any) -> Any:
    def read_payload(payload: bytes, found: Any) -> None:
        original(payload, found)
        del found.batch.portions[1:]

    return read_payload


def _fenced_is_done(original: Any) -> Any:
    def answered(self: Appending, answer: Any) -> None:
        if isinstance(answer, Fenced):
            self.state = DONE
        else:
            original(self, answer)

    return answered


def _never_held(original: Any) -> Any:
    def request(self: Rebuilding) -> Any:
        found = original.fget(self)
        return ReadEntries(0, 1) if isinstance(found, Report) else found

    return property(request)


def _never_compared(original: Any) -> Any:
    def copied(self: Rebuilding, number: int) -> None:
        original(self, number)
        self.state = READY

    return copied


#: By name.
BUGS: Final[dict[str, Mutant]] = {
    bug.name: bug
    for bug in (
        Mutant(
            "anybody-appends", "the log does not compare the leader key",
            LogServer, "_stands", _anybody_appends,
        ),
        Mutant(
            "answered-before-appended", "an append counts as done before it is",
            Appending, "__init__", _done_at_once,
        ),
        Mutant(
            "promoted-early", "a leader serves before it has applied the end of the log",
            Life, "_claimed", _promotes_early,
        ),
        Mutant(
            "another-number", "what was not answered is tried again under the next number",
            Appending, "unanswered", _next_number,
        ),
        Mutant(
            "unknown-is-lost", "an append that was not answered is taken for not done",
            Node, "_attempt", _takes_it_for_lost,
        ),
        Mutant(
            "trims-too-much", "what a standby needs is trimmed",
            MemberTable, "needed", _needs_nothing,
        ),
        Mutant(
            "leads-for-ever", "a leader that cannot keep its claim goes on",
            Life, "_kept_in_time", _leads_for_ever,
        ),
        Mutant(
            "parts-forgotten", "a server that ends between two parts does not read the first again",
            LogReader, "read", _forgets_parts,
        ),
        Mutant(
            "parts-kept", "parts of a leader that has ended are put before another write",
            LogReader, "read", _keeps_parts,
        ),
        Mutant(
            "used-twice", "the sequences of transient messages are not in the log",
            logged, "_blocks", _forgets_used,
        ),
        Mutant(
            "reported-too-much", "a member reports what it has read and not what its disk has",
            Life, "_report_now", _reports_what_is_read,
        ),
        Mutant(
            "time-goes-back", "a leader writes the time of its own clock though it is behind",
            ReplicatedWrites, "_time", _own_time,
        ),
        Mutant(
            "time-too-early", "a leader goes by the time of a write that never reached the log",
            ReplicatedWrites, "_time", _time_too_early,
        ),
        Mutant(
            "change-lost", "the last of several changes is not read",
            logged, "decode_changes", _loses_a_change,
        ),
        Mutant(
            "notes-lost", "notes are not read",
            logged, "decode_notes", _loses_notes,
        ),
        Mutant(
            "stays-itself", "a new store does not take over the id of its group",
            SimStore, "adopt", _never_adopts,
        ),
        Mutant(
            "leads-unapplied", "a leader serves before its store has its own beginning",
            Life, "_has_appended", _leads_unapplied,
        ),
        Mutant(
            "reports-once", "a member reports only when it joins",
            Life, "_report_later", _reports_once,
        ),
        Mutant(
            "never-keeps", "a leader does not keep its claim",
            Life, "_claimed", _never_keeps,
        ),
        Mutant(
            "gives-up", "what is not answered on the main line is never asked again",
            Life, "unanswered", _gives_up,
        ),
        Mutant(
            "one-portion", "of several portions only the first is read",
            logged, "_read_payload", _one_portion,
        ),
        Mutant(
            "fenced-is-done", "an append that the log refused counts as done",
            Appending, "answered", _fenced_is_done,
        ),
        Mutant(
            "copied-unheld", "the log is trimmed while a server fetches a copy",
            Rebuilding, "request", _never_held,
        ),
        Mutant(
            "copy-not-compared", "a copy is used though the log has lost what follows it",
            Rebuilding, "copied", _never_compared,
        ),
    )
}  # fmt: skip


def caught_at(name: str, seeds: range) -> int:
    """The first seed that notices a planted bug; -1 when none does."""
    with BUGS[name].planted():
        for seed in seeds:
            try:
                run_group(seed)
            except Violation:
                return seed
    return -1
