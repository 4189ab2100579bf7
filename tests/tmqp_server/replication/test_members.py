"""Which entries of the log a group still needs."""

from __future__ import annotations

from tmqp_server.replication.members import MemberTable
from tmqp_server.storage.log import Member


def member(node: str, applied: int, reports: int = 1) -> Member:
    return Member(node, f"tmqp://{node}", applied, reports)


def table(*members: Member, now: float = 0.0) -> MemberTable:
    made = MemberTable(600.0, 1_000)
    made.learn(list(members), now)
    return made


def test_a_group_needs_what_its_slowest_member_has_not_applied() -> None:
    assert table(member("a", 90), member("b", 40), member("c", 70)).needed("a", 90, 1.0) == 41


def test_a_leader_knows_about_itself_better_than_its_last_report() -> None:
    assert table(member("a", 10), member("b", 40)).needed("a", 30, 1.0) == 31


def test_a_member_that_was_silent_for_long_is_not_waited_for() -> None:
    made = table(member("b", 40), member("c", 70))
    made.learn([member("b", 40), member("c", 70, 2)], 500.0)
    assert made.needed("a", 90, 600.0) == 41
    assert made.needed("a", 90, 601.0) == 71
    made.learn([member("b", 41, 2)], 602.0)
    assert made.needed("a", 90, 602.0) == 42, "it has returned"


def test_the_log_does_not_fill_up_for_a_member_that_is_slow() -> None:
    assert table(member("b", 40)).needed("a", 5_000, 1.0) == 4_001


def test_a_log_that_is_nearly_full_waits_for_nobody() -> None:
    made = table(member("b", 40))
    made.learn([member("b", 40)], 1.0, is_full=True)
    assert made.needed("a", 90, 1.0) == 91
    made.learn([member("b", 40)], 2.0)
    assert made.needed("a", 90, 2.0) == 41
