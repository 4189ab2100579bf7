"""A store's place in its log: following, leading, and what neither may do."""

from __future__ import annotations

import pytest

from tests.tmqp_server.storage.stores import NOW_US, batch, message
from tmqp_server.storage.log import LogEntry
from tmqp_server.storage.port import DamageError, StoreBatch, StoreError
from tmqp_server.storage.replicated import GroupError, Keeping, ReplicatedWrites


class Kept(Keeping):
    """Remembers what it was given."""

    def __init__(self, identity: str) -> None:
        self.own = identity
        self.given: list[tuple[dict[int, list[int]], int]] = []

    def identity(self) -> str:
        return self.own

    def adopt(self, identity: str) -> None:
        self.own = identity

    def keep(self, batch: StoreBatch, used: dict[int, int], now_us: int) -> None:
        self.given.append((batch.settled, now_us))


def new(identity: str = "s", number: int = 0, epoch: int = 0) -> tuple[Kept, ReplicatedWrites]:
    kept = Kept(identity)
    return kept, ReplicatedWrites(kept, number, epoch)


def leading(now_us: int = NOW_US) -> tuple[Kept, ReplicatedWrites, list[LogEntry]]:
    """A leader, and what is in the log."""
    kept, writes = new("of a")
    begin = writes.begin(1, "a", "tmqp://a", now_us)
    writes.take([begin])
    return kept, writes, [begin]


def test_a_follower_has_what_the_leader_has_written() -> None:
    kept, leader, log = leading()
    for place in (1, 2):
        made = batch(settled={1: [place]})
        entries = leader.prepare(made, NOW_US + place)
        leader.commit(made, entries)
        log += entries
    other, follower = new("of b")
    follower.take(log)
    assert (other.own, other.given) == ("of a", kept.given)
    assert (follower.number, follower.applied, follower.epoch) == (3, 3, 1)


def test_nothing_is_kept_before_it_is_in_the_log() -> None:
    kept, leader, _ = leading()
    leader.prepare(batch(settled={1: [1]}), NOW_US)
    assert (kept.given, leader.number) == ([], 1)


def test_a_write_that_never_reached_the_log_moves_no_clock() -> None:
    """A leader whose clock was an hour ahead was fenced, and kept that hour for itself."""
    _, leader, _ = leading()
    leader.prepare(batch(settled={1: [1]}), NOW_US + 3_600_000_000)
    leader.begin(2, "a", "tmqp://a", NOW_US + 3_600_000_000)
    leader.end(NOW_US + 3_600_000_000)
    assert leader.now_us == NOW_US


def test_time_in_the_log_does_not_go_back_with_a_leaders_clock() -> None:
    kept, leader, log = leading()
    made = batch(settled={1: [1]})
    entries = leader.prepare(made, NOW_US - 1_000)
    leader.commit(made, entries)
    other, follower = new()
    follower.take([*log, *entries])
    assert kept.given == other.given == [({1: [1]}, NOW_US)]


def test_a_leader_that_stopped_in_order_is_known_to_the_next_one_and_to_no_other() -> None:
    _, leader, log = leading()
    assert leader.clean, "there was none before"
    _, follower = new()
    follower.take([*log, leader.end(NOW_US)])
    assert follower.ended
    follower.take([follower.begin(2, "b", "tmqp://b", NOW_US)])
    assert (follower.clean, follower.ended) == (True, False)
    follower.take([follower.begin(3, "b", "tmqp://b", NOW_US)])
    assert not follower.clean


def test_a_store_of_another_group_is_refused() -> None:
    _, _, log = leading()
    _, stranger = new("of c", number=4, epoch=1)
    begin = ReplicatedWrites(Kept("of a"), 4, 1).begin(2, "a", "tmqp://a", NOW_US)
    with pytest.raises(GroupError, match="that of the store of a, and of c is kept here"):
        stranger.take([begin])
    with pytest.raises(DamageError):
        stranger.take(log)


def test_what_cannot_be_written_is_refused_before_it_is_in_the_log() -> None:
    _, leader, _ = leading()
    with pytest.raises(StoreError, match="a message cannot be kept"):
        leader.prepare(batch(appended={1: [message(2), message(1)]}), NOW_US)
    assert leader.number == 1
