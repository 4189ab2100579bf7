"""The threads of servers in a group, over a log in memory; real logs are tested elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tmqp_server.replication.shared_logs import Shared, Way
from tests.tmqp_server.storage.stores import NOW_US, batch, owed, push_each, queue
from tmqp_server.io.replica import Replica
from tmqp_server.replication.life import LifeSettings
from tmqp_server.storage.log import (
    Leader,
    LifeOverError,
)
from tmqp_server.storage.port import KeepChannel
from tmqp_server.storage.sqlite.replicated import ReplicatedStore

LEASE_S = 0.6


class Member:
    """A server of the group without sockets."""

    def __init__(self, log: Shared, folder: Path, name: str, lease_s: float) -> None:
        self.way = Way(log)
        self.store = ReplicatedStore(folder / name, floor_bytes=0)
        self.leads = threading.Event()
        self.is_over = threading.Event()
        self.reason = ""
        settings = LifeSettings(name, f"tmqp://{name}", lease_s, watch_s=0.2, report_s=0.05)
        self.replica = Replica(
            self.way, self.store, settings, f"token {id(self)}", self._lead, self._over
        )
        self.replica.start()

    def _lead(self, _leader: Leader) -> None:
        self.store.lead(self.replica.append, self.replica.fail, self.replica.kept)
        self.store.recover()
        self.leads.set()

    def _over(self, reason: str, _needs_rebuild: bool) -> None:
        self.reason = reason
        self.is_over.set()

    def close(self) -> None:
        self.way.is_cut = True
        self.replica.stop()
        self.store.close(clean=False)


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Callable[..., Member]]:
    log = Shared()
    made: list[Member] = []

    def make(name: str, lease_s: float = LEASE_S) -> Member:
        made.append(Member(log, tmp_path, name, lease_s))
        return made[-1]

    yield make
    for each in made:
        each.close()


def leading(member: Member) -> Member:
    assert member.leads.wait(10.0), member.reason
    return member


def test_a_standby_takes_over_with_all_that_was_written(
    member: Callable[..., Member],
) -> None:
    first = leading(member("a"))
    second = member("b")
    first.store.write(batch(KeepChannel("c", b"{}"), queue(1)), NOW_US)
    first.way.loses_answers = 2
    push_each(first.store, range(1, 6))
    first.way.is_cut = True
    assert leading(second).reason == ""
    assert owed(second.store) == [1, 2, 3, 4, 5]
    assert first.is_over.wait(10.0)
    assert first.reason == "the claim could not be kept for 0.6 s"


def test_who_was_replaced_while_it_was_cut_off_answers_nobody(
    member: Callable[..., Member],
) -> None:
    first = leading(member("a"))
    second = member("b")
    first.store.write(batch(KeepChannel("c", b"{}"), queue(1)), NOW_US)
    first.way.is_cut = True
    with pytest.raises(LifeOverError):
        push_each(first.store, [1])
    assert first.is_over.is_set(), "it is told before the storage thread can answer anybody"
    assert owed(leading(second).store) == []


def test_who_stops_in_order_hands_over_at_once(member: Callable[..., Member]) -> None:
    first = leading(member("a"))
    second = member("b")
    first.store.write(batch(KeepChannel("c", b"{}"), queue(1)), NOW_US)
    first.store.close(clean=True)
    first.replica.stop()
    assert leading(second).store.writes.clean
    assert first.reason == "the server stops"


def test_who_is_started_again_ends_its_earlier_life_and_lets_another_one_lead(
    member: Callable[..., Member],
) -> None:
    killed = leading(member("a", 600.0))
    standby = member("b", 600.0)
    killed.close()
    member("a", 600.0)
    assert leading(standby).reason == ""
