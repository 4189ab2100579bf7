"""What is asked of the log while a server gets a copy."""

from __future__ import annotations

from tmqp_server.replication.rebuilding import COPYING, READY, Rebuilding
from tmqp_server.storage.log import (
    AppendEntry,
    Claim,
    Led,
    ListMembers,
    LogRequest,
    Member,
    Members,
    ReadEntries,
    Report,
    Trim,
    Trimmed,
)
from tmqp_sim.replicas.log_server import LogServer


def log_of(last: int, first: int) -> LogServer:
    """A log in which a server leads, and which has these entries."""
    log = LogServer(float)
    led = log.ask(Claim("a", "tmq://a", "token", 1e9))
    assert isinstance(led, Led)
    assert led.leader is not None
    for number in range(1, last + 1):
        log.ask(AppendEntry(led.leader.epoch, number, b"x"))
    log.first = first
    return log


def asked_until(run: Rebuilding, log: LogServer, state: int) -> list[LogRequest]:
    """Ask what is wanted until a state is reached."""
    asked: list[LogRequest] = []
    while run.state != state:
        asked.append(run.request)
        run.answered(log.ask(asked[-1]))
    return asked


def member(log: LogServer) -> Member:
    """The one that there is."""
    members = log.ask(ListMembers())
    assert isinstance(members, Members)
    (found,) = members.members
    return found


def trimmed(log: LogServer, before: int, version: int) -> int:
    """The first entry that the leader has left by a trim that it decided upon at a version."""
    leader = log.leader()
    assert leader is not None
    answer = log.ask(Trim(leader.epoch, before, version))
    assert isinstance(answer, Trimmed)
    return answer.first


def test_the_log_is_held_before_a_copy_is_fetched() -> None:
    log = log_of(20, 11)
    run = Rebuilding("b", "tmq://b")
    asked = asked_until(run, log, COPYING)
    assert [type(each) for each in asked] == [ListMembers, ReadEntries, Report, ReadEntries]
    held = member(log)
    assert (held.node, held.address, held.applied) == ("b", "tmq://b", 10)
    run.copied(15)
    asked_until(run, log, READY)


def test_what_was_trimmed_before_the_report_is_not_held() -> None:
    log = log_of(20, 11)
    run = Rebuilding("b", "tmq://b")
    while not isinstance(run.request, Report):
        run.answered(log.ask(run.request))
    assert trimmed(log, 14, version=1_000) == 14
    asked_until(run, log, COPYING)
    assert member(log).applied == 13
    assert trimmed(log, 18, version=0) == 14, "a trim of before the report comes too late"


def test_a_copy_that_the_log_does_not_continue_is_of_no_use() -> None:
    log = log_of(20, 11)
    run = Rebuilding("b", "tmq://b")
    asked_until(run, log, COPYING)
    run.copied(9)
    asked_until(run, log, COPYING)
    assert member(log).applied == 10
    log.first = 16  # it could not be held
    run.copied(12)
    asked_until(run, log, COPYING)
    assert member(log).applied == 15
    run.copied(15)
    asked_until(run, log, READY)


def test_each_report_is_a_new_one_to_the_leader() -> None:
    log = log_of(20, 11)
    log.ask(Report(Member("b", "tmq://b", 3, 41)))
    run = Rebuilding("b", "tmq://b")
    asked_until(run, log, COPYING)
    assert member(log).reports == 42
    run.hold_on()
    log.ask(run.request)
    assert (member(log).reports, member(log).applied) == (43, 10)
