"""The life of a server in a group, state by state; whole groups are simulated elsewhere."""

from __future__ import annotations

import math
from typing import Final, TypeVar

from tmqp_server.replication.effects import Apply, AskLog, Begin, End, Lead, LifeEffect
from tmqp_server.replication.life import (
    CLAIMING,
    COMPLETING,
    ENDED,
    LEADER,
    STANDBY,
    Life,
    LifeSettings,
)
from tmqp_server.storage.log import (
    Appended,
    AppendEntry,
    Claim,
    Entries,
    Fenced,
    Keep,
    Leader,
    Led,
    ListMembers,
    LogAnswer,
    LogEntry,
    LogRequest,
    Member,
    Members,
    ReadEntries,
    Report,
    Reported,
    Resign,
    Seen,
    Trim,
    Trimmed,
    WatchLog,
)

MINE: Final = Leader("a", "tmqp://a", "token", 5, 1)
OTHER: Final = Leader("b", "tmqp://b", "another", 4, 1)
ENTRY: Final = LogEntry(8, b"begin")

_Kind = TypeVar("_Kind")


class Told:
    """A life, and what it wants."""

    def __init__(self, applied: int = 7) -> None:
        self.effects: list[LifeEffect] = []
        self.life = Life(LifeSettings("a", "tmqp://a"), "token", applied, self.effects)
        self.life.start(0.0)

    def take(self, kind: type[_Kind]) -> _Kind:
        """The next effect, or the next request, which is of a kind."""
        effect = self.effects.pop(0)
        found = effect.request if isinstance(effect, AskLog) else effect
        assert isinstance(found, kind), found
        return found

    def asked(self, kind: type[_Kind], answer: LogAnswer, now: float = 0.0) -> _Kind:
        """The next request, which is of a kind and is answered."""
        request = self.take(kind)
        self.life.answered(request, answer, now)  # type: ignore[arg-type]
        return request

    def joined(self, leader: Leader | None, last: int = 7) -> Told:
        """Let it join a group."""
        assert self.asked(ReadEntries, Entries(1, [])).after == 7
        self.asked(Report, Reported())
        self.asked(WatchLog, Seen(leader, last))
        return self

    def leading(self) -> Told:
        """Let it lead."""
        self.joined(None)
        self.asked(Claim, Led(MINE), 1.0)
        self.asked(ReadEntries, Entries(1, []), 1.0)
        self.take(Begin)
        self.life.begin(ENTRY, 1.0)
        self.asked(AppendEntry, Appended(), 1.0)
        self.take(Apply)
        self.life.applied(7, 1.0)
        self.take(Lead)
        return self


def test_a_standby_applies_what_others_append() -> None:
    told = Told().joined(OTHER, 9)
    told.asked(ReadEntries, Entries(1, [LogEntry(8, b"x"), LogEntry(9, b"y")]))
    assert [each.number for each in told.take(Apply).entries] == [8, 9]
    assert told.effects == [], "it waits for its store"
    told.life.applied(7, 0.0)
    watch = told.take(WatchLog)
    assert (watch.last, watch.epoch) == (9, 4)


def test_nothing_is_applied_before_the_group_knows_of_it() -> None:
    told = Told()
    told.asked(ReadEntries, Entries(1, [LogEntry(8, b"x")]))
    report = told.take(Report)
    assert (report.member.node, report.member.applied) == ("a", 7)
    assert told.effects == []


def test_who_finds_the_log_too_short_ends_without_keeping_others_from_trimming() -> None:
    told = Told()
    told.asked(ReadEntries, Entries(9, [LogEntry(9, b"x")]))
    end = told.take(End)
    assert end.needs_rebuild
    assert "begins with entry 9" in end.reason
    assert (told.effects, told.life.due()) == ([], math.inf)


def test_a_standby_claims_when_nobody_leads_and_it_has_all() -> None:
    told = Told().joined(None)
    claim = told.take(Claim)
    assert (claim.node, claim.token, told.life.state) == ("a", "token", CLAIMING)


def test_a_standby_that_is_behind_reads_before_it_claims() -> None:
    told = Told().joined(None, 8)
    told.asked(ReadEntries, Entries(1, [LogEntry(8, b"x")]))
    told.take(Apply)
    told.life.applied(7, 0.0)
    told.take(Claim)


def test_who_loses_a_claim_stands_by() -> None:
    told = Told().joined(None)
    told.asked(Claim, Led(OTHER))
    assert (told.life.state, told.take(WatchLog).epoch) == (STANDBY, 4)


def test_a_claim_that_was_carried_out_without_an_answer_is_ones_own() -> None:
    told = Told().joined(OTHER)
    told.asked(WatchLog, Seen(MINE, 7))
    assert told.life.state == COMPLETING
    told.take(ReadEntries)


def test_a_claim_that_is_noticed_late_counts_from_when_the_log_was_looked_at() -> None:
    """It counted from when the store had applied what was read, long after the lease was over."""
    told = Told().joined(OTHER)
    told.asked(WatchLog, Seen(MINE, 8), 1.0)
    told.asked(ReadEntries, Entries(1, [ENTRY]), 1.0)
    told.take(Apply)
    told.life.applied(8, 2.9)
    assert told.life.state == COMPLETING
    told.take(ReadEntries)
    told.life.on_deadline(3.0)
    assert told.take(End).reason == "the claim could not be kept for 2 s"


def test_a_leader_completes_its_store_before_it_leads() -> None:
    told = Told().joined(None)
    told.asked(Claim, Led(MINE))
    told.asked(ReadEntries, Entries(1, [LogEntry(8, b"late")]))
    told.take(Apply)
    told.life.applied(7, 0.0)
    told.asked(ReadEntries, Entries(1, []))
    told.take(Begin)
    told.life.begin(LogEntry(9, b"begin"), 0.0)
    append = told.asked(AppendEntry, Appended())
    assert (append.epoch, append.number) == (5, 9)
    told.take(Apply)
    assert (told.life.state, told.effects) == (COMPLETING, [])
    told.life.applied(7, 0.0)
    assert told.take(Lead).leader is MINE
    assert told.life.state == LEADER


def test_who_is_fenced_while_it_begins_ends() -> None:
    told = Told().joined(None)
    told.asked(Claim, Led(MINE))
    told.asked(ReadEntries, Entries(1, []))
    told.take(Begin)
    told.life.begin(ENTRY, 0.0)
    told.asked(AppendEntry, Fenced(OTHER))
    assert told.take(End).reason == "the claim has ended and b leads"
    assert told.life.state == ENDED


def test_a_leader_keeps_its_claim_four_times_within_the_lease() -> None:
    told = Told().leading()
    assert told.life.due() == 1.5
    told.life.on_deadline(1.5)
    told.asked(Keep, Led(MINE), 1.6)
    assert told.life.due() == 2.1


def test_a_leader_that_cannot_keep_its_claim_for_the_lease_ends() -> None:
    told = Told().leading()
    told.life.on_deadline(1.5)
    told.life.unanswered(told.take(Keep), 2.9)
    told.life.on_deadline(2.95)
    told.take(Keep)
    told.life.on_deadline(3.0)
    assert told.take(End).reason == "the claim could not be kept for 2 s"


def test_a_leader_that_was_replaced_ends() -> None:
    told = Told().leading()
    told.life.on_deadline(1.5)
    told.asked(Keep, Led(OTHER), 1.6)
    assert told.take(End).reason == "the claim has ended and b leads"


def test_a_server_gives_back_the_claim_of_its_earlier_life_and_lets_others_claim_first() -> None:
    before = Leader("a", "tmqp://a", "token of an earlier life", 4, 1)
    told = Told().joined(before)
    assert told.asked(Resign, Led(None), 1.0).leader is before
    assert (told.life.state, told.effects, told.life.due()) == (STANDBY, [], 1.5)
    told.life.on_deadline(1.5)
    told.asked(WatchLog, Seen(OTHER, 7), 1.5)
    assert told.take(WatchLog).epoch == OTHER.epoch


def test_who_gave_a_claim_back_in_vain_claims_itself() -> None:
    told = Told().joined(Leader("a", "tmqp://a", "token of an earlier life", 4, 1))
    told.life.unanswered(told.take(Resign), 1.0)
    told.life.on_deadline(2.0)
    told.asked(Resign, Led(None), 2.0)
    told.life.on_deadline(2.5)
    told.asked(WatchLog, Seen(None, 7), 2.5)
    told.take(Claim)


def test_a_leader_trims_what_all_have() -> None:
    told = Told().leading()
    told.life.carried(8, 1.0)
    told.life.on_deadline(2.0)
    requests: list[LogRequest] = [e.request for e in told.effects if isinstance(e, AskLog)]
    keep, report = requests
    assert isinstance(keep, Keep)
    assert isinstance(report, Report)
    told.effects.clear()
    told.life.answered(keep, Led(MINE), 5.9)
    told.life.on_deadline(6.0)
    told.asked(ListMembers, Members([Member("b", "", 5, 1), Member("a", "", 7, 1)], 33), 6.0)
    trim = told.asked(Trim, Trimmed(6), 6.0)
    assert (trim.epoch, trim.before, trim.version) == (5, 6, 33)


def test_who_stops_in_order_gives_its_claim_back() -> None:
    told = Told().leading()
    told.life.stop()
    assert told.take(Resign).leader is MINE
    told.take(End)
    told.life.stop()
    assert told.effects == []


def test_an_answer_that_is_not_waited_for_any_more_changes_nothing() -> None:
    told = Told().joined(OTHER)
    watch = told.asked(WatchLog, Seen(OTHER, 7))
    told.life.answered(watch, Seen(None, 99), 0.0)
    told.take(WatchLog)
    assert (told.life.last, told.effects) == (7, [])


def test_who_has_ended_wants_nothing() -> None:
    told = Told().leading()
    told.life.on_deadline(1.5)
    keep = told.take(Keep)
    told.life.fenced("its store cannot go on")
    assert told.take(End).reason == "its store cannot go on"
    told.life.answered(keep, Led(MINE), 1.6)
    told.life.unanswered(keep, 1.6)
    told.life.on_deadline(9.0)
    assert told.effects == []
