"""What every replicated log must do: one suite for all adapters.

A test module has a fixture ``logs``, a :class:`Logs`, and imports the tests from here.
"""

from __future__ import annotations

from collections.abc import Callable

from tmqp_server.storage.log import (
    MOST_ENTRY_BYTES,
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
    Member,
    Members,
    Misplaced,
    ReadEntries,
    Report,
    Reported,
    Resign,
    Seen,
    SharedLog,
    Trim,
    Trimmed,
    WatchLog,
)

LEASE_S = 2.0
MUCH = 1 << 30


class Logs:
    """Two servers' ways to one log that is empty at first.

    :param wait: lets so many seconds pass for the log.
    """

    def __init__(self, one: SharedLog, two: SharedLog, wait: Callable[[float], None]) -> None:
        self.one = one
        self.two = two
        self.wait = wait


def claim(
    log: SharedLog,
    node: str,
    over: Leader | None = None,
    token: str = "",
    lease_s: float = LEASE_S,
) -> Leader:
    """Claim, once the claim of another one is given back behind its back, if there is one."""
    if over is not None:
        log.ask(Resign(over))
    answer = log.ask(Claim(node, f"tmqp://{node}", token or f"token of {node}", lease_s))
    assert isinstance(answer, Led)
    assert answer.leader is not None
    return answer.leader


def entries(answer: LogAnswer) -> list[tuple[int, bytes]]:
    assert isinstance(answer, Entries)
    return [(each.number, each.data) for each in answer.entries]


def append(log: SharedLog, leader: Leader, *data: bytes, first: int = 1) -> None:
    for number, each in enumerate(data, first):
        assert isinstance(log.ask(AppendEntry(leader.epoch, number, each)), Appended)


# --- Claims --------------------------------------------------------------------------------------


def test_an_empty_log_has_no_leader_and_no_entries(logs: Logs) -> None:
    seen = logs.one.ask(WatchLog(0, 0, 0.0))
    assert isinstance(seen, Seen)
    assert (seen.leader, seen.last) == (None, 0)
    read = logs.one.ask(ReadEntries(0, MUCH))
    assert isinstance(read, Entries)
    assert (read.first, read.entries) == (1, [])


def test_one_of_two_claims_is_the_leaders_and_both_hear_whose(logs: Logs) -> None:
    first, second = claim(logs.one, "a"), claim(logs.two, "b")
    assert (first.node, first.address, first.token) == ("a", "tmqp://a", "token of a")
    assert first.epoch > 0
    assert (second.node, second.epoch, second.token) == ("a", first.epoch, "token of a")


def test_a_claim_that_is_repeated_is_the_same_claim(logs: Logs) -> None:
    first, again = claim(logs.one, "a"), claim(logs.one, "a")
    assert first.epoch == again.epoch


def test_a_claim_after_one_that_was_given_back_has_a_higher_epoch(logs: Logs) -> None:
    first = claim(logs.one, "a")
    second = claim(logs.two, "b", over=first)
    assert second.node == "b"
    assert second.epoch > first.epoch
    third = claim(logs.one, "a", over=first)
    assert third.epoch == second.epoch, "what was given back is not given back again"


def test_a_claim_that_is_not_kept_ends_with_its_lease(logs: Logs) -> None:
    first = claim(logs.one, "a")
    logs.wait(LEASE_S + 1.5)
    answer = logs.one.ask(Keep(first))
    assert isinstance(answer, Led)
    assert answer.leader is None
    assert claim(logs.two, "b").node == "b"


def test_a_claim_that_is_kept_goes_on(logs: Logs) -> None:
    first = claim(logs.one, "a")
    for _ in range(3):
        logs.wait(LEASE_S / 2)
        answer = logs.one.ask(Keep(first))
        assert isinstance(answer, Led)
        assert answer.leader is not None
        assert answer.leader.epoch == first.epoch


def test_who_keeps_a_claim_that_was_taken_over_hears_who_leads(logs: Logs) -> None:
    first = claim(logs.one, "a")
    claim(logs.two, "b", over=first)
    answer = logs.one.ask(Keep(first))
    assert isinstance(answer, Led)
    assert answer.leader is not None
    assert answer.leader.node == "b"


def test_who_resigns_leaves_nobody_and_only_ends_its_own_claim(logs: Logs) -> None:
    first = claim(logs.one, "a")
    second = claim(logs.two, "b", over=first)
    stays = logs.one.ask(Resign(first))
    assert isinstance(stays, Led)
    assert stays.leader is not None
    assert stays.leader.epoch == second.epoch
    gone = logs.two.ask(Resign(second))
    assert isinstance(gone, Led)
    assert gone.leader is None


# --- Appends -------------------------------------------------------------------------------------


def test_entries_are_read_as_they_were_appended(logs: Logs) -> None:
    append(logs.one, claim(logs.one, "a"), b"one", b"", bytes(range(256)))
    found = [(1, b"one"), (2, b""), (3, bytes(range(256)))]
    assert entries(logs.two.ask(ReadEntries(0, MUCH))) == found
    assert entries(logs.two.ask(ReadEntries(2, MUCH))) == found[2:]
    assert entries(logs.two.ask(ReadEntries(3, MUCH))) == []


def test_a_read_is_bounded_and_has_one_entry_at_least(logs: Logs) -> None:
    append(logs.one, claim(logs.one, "a"), b"x" * 10, b"y" * 10, b"z" * 10)
    assert [number for number, _ in entries(logs.two.ask(ReadEntries(0, 1)))] == [1]
    numbers = [number for number, _ in entries(logs.two.ask(ReadEntries(1, 1)))]
    assert numbers == [2]


def test_an_entry_may_be_as_large_as_the_port_says(logs: Logs) -> None:
    data = bytes(range(256)) * (MOST_ENTRY_BYTES // 256)
    append(logs.one, claim(logs.one, "a"), data, data, data)
    some = entries(logs.two.ask(ReadEntries(0, 2 * MOST_ENTRY_BYTES)))
    assert some[0] == (1, data)
    last = some[-1][0]
    assert last < 3 or len(some) == 3
    assert entries(logs.two.ask(ReadEntries(2, MUCH))) == [(3, data)]


def test_who_has_no_claim_appends_nothing(logs: Logs) -> None:
    assert isinstance(logs.one.ask(AppendEntry(1, 1, b"x")), Fenced)
    first = claim(logs.one, "a")
    second = claim(logs.two, "b", over=first)
    refused = logs.one.ask(AppendEntry(first.epoch, 1, b"x"))
    assert isinstance(refused, Fenced)
    assert refused.leader is not None
    assert (refused.leader.node, refused.leader.epoch) == ("b", second.epoch)
    assert entries(logs.one.ask(ReadEntries(0, MUCH))) == []


def test_a_number_is_given_once_and_who_repeats_it_hears_what_has_it(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    append(logs.one, leader, b"first", b"second")
    again = logs.one.ask(AppendEntry(leader.epoch, 1, b"other"))
    assert isinstance(again, Misplaced)
    assert (again.last, again.data) == (2, b"first")
    assert entries(logs.one.ask(ReadEntries(0, 1)))[0] == (1, b"first")


def test_there_is_no_gap_between_numbers(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    beyond = logs.one.ask(AppendEntry(leader.epoch, 2, b"x"))
    assert isinstance(beyond, Misplaced)
    assert (beyond.last, beyond.data) == (0, b"")
    assert entries(logs.one.ask(ReadEntries(0, MUCH))) == []


def test_numbers_go_on_under_the_next_leader(logs: Logs) -> None:
    first = claim(logs.one, "a")
    append(logs.one, first, b"one")
    second = claim(logs.two, "b", over=first)
    append(logs.two, second, b"two", first=2)
    assert entries(logs.one.ask(ReadEntries(0, MUCH))) == [(1, b"one"), (2, b"two")]


# --- Watching ------------------------------------------------------------------------------------


def test_who_watches_sees_the_last_number_and_the_leader(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    append(logs.one, leader, b"one", b"two")
    seen = logs.two.ask(WatchLog(1, leader.epoch, 5.0))
    assert isinstance(seen, Seen)
    assert seen.last == 2
    assert seen.leader is not None
    assert (seen.leader.node, seen.leader.epoch) == ("a", leader.epoch)
    gone = logs.two.ask(WatchLog(2, 0, 5.0))
    assert isinstance(gone, Seen)
    assert gone.leader is not None


def test_who_watches_for_what_does_not_come_is_answered_in_time(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    seen = logs.two.ask(WatchLog(0, leader.epoch, 0.05))
    assert isinstance(seen, Seen)
    assert seen.last == 0


# --- Members -------------------------------------------------------------------------------------


def members(log: SharedLog) -> Members:
    answer = log.ask(ListMembers())
    assert isinstance(answer, Members)
    return answer


def report(log: SharedLog, node: str, applied: int, reports: int) -> None:
    answer = log.ask(Report(Member(node, f"tmqp://{node}", applied, reports)))
    assert isinstance(answer, Reported)


def test_the_newest_report_of_each_member_is_known(logs: Logs) -> None:
    assert members(logs.one).members == []
    report(logs.one, "a", 3, 1)
    report(logs.two, "b", 5, 1)
    report(logs.one, "a", 7, 2)
    found = [(m.node, m.address, m.applied, m.reports) for m in members(logs.two).members]
    assert sorted(found) == [("a", "tmqp://a", 7, 2), ("b", "tmqp://b", 5, 1)]


def test_what_is_trimmed_is_gone_and_a_reader_hears_where_the_log_begins(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    append(logs.one, leader, b"one", b"two", b"three")
    trimmed = logs.one.ask(Trim(leader.epoch, 3, members(logs.one).version))
    assert isinstance(trimmed, Trimmed)
    assert trimmed.first == 3
    read = logs.two.ask(ReadEntries(0, MUCH))
    assert isinstance(read, Entries)
    assert (read.first, read.entries) == (3, [])
    assert entries(logs.two.ask(ReadEntries(2, MUCH))) == [(3, b"three")]
    append(logs.one, leader, b"four", first=4)
    again = logs.one.ask(Trim(leader.epoch, 2, members(logs.one).version))
    assert isinstance(again, Trimmed)
    assert again.first == 3, "what is gone does not come back"


def test_all_may_be_trimmed_and_the_numbers_go_on(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    append(logs.one, leader, b"one", b"two")
    assert isinstance(logs.one.ask(Trim(leader.epoch, 3, members(logs.one).version)), Trimmed)
    read = logs.two.ask(ReadEntries(2, MUCH))
    assert isinstance(read, Entries)
    assert (read.first, read.entries) == (3, [])
    append(logs.one, leader, b"three", first=3)
    assert entries(logs.two.ask(ReadEntries(2, MUCH))) == [(3, b"three")]


def test_who_has_no_claim_trims_nothing(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    append(logs.one, leader, b"one", b"two")
    claim(logs.two, "b", over=leader)
    refused = logs.one.ask(Trim(leader.epoch, 2, members(logs.one).version))
    assert isinstance(refused, Fenced)
    assert len(entries(logs.two.ask(ReadEntries(0, MUCH)))) == 2


def test_nothing_is_trimmed_when_a_member_has_reported_since(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    append(logs.one, leader, b"one", b"two")
    report(logs.one, "a", 2, 1)
    version = members(logs.one).version
    report(logs.two, "b", 0, 1)
    kept = logs.one.ask(Trim(leader.epoch, 3, version))
    assert isinstance(kept, Trimmed)
    assert kept.first == 1
    assert len(entries(logs.two.ask(ReadEntries(0, MUCH)))) == 2
