"""Messages that wait for those of other producers, where the disk is slow."""

from __future__ import annotations

from collections import deque

import pytest

from tests.tmqp_server.shell.desk import Desk, fetch
from tmqp_server.engine.effects import StoreQueue
from tmqp_server.engine.options import QueueOptions
from tmqp_server.shell.saving import LINGERING, WRITING


@pytest.fixture
def crowded() -> Desk:
    """The last batch had sixteen messages, and the disk took twelve milliseconds for it."""
    desk = Desk()
    for _ in range(16):
        desk.push()
    desk.wake()
    desk.begin()
    desk.now += 0.012
    desk.write()
    return desk


def test_the_first_of_many_producers_had_a_slow_sync_for_itself(crowded: Desk) -> None:
    for _ in range(15):
        crowded.push()
        crowded.wake()
    assert crowded.saving.state == LINGERING
    assert crowded.work() == []
    crowded.push()
    crowded.wake()
    assert crowded.begin().count == 16


@pytest.mark.parametrize("count", [4, 64])
def test_producers_that_wait_for_each_answer_had_every_other_sync_of_a_slow_disk(
    count: int,
) -> None:
    """They are answered, and send again, one after another; the one that was too late for the first
    sync stays one sync behind the others."""
    desk = Desk()
    apart_s, sync_s = 0.00002, 0.01
    arrivals = deque([place * apart_s for place in range(count)])
    sizes: list[int] = []
    while len(sizes) < 20:
        while desk.saving.state != WRITING:
            desk.now = max(desk.now, min(arrivals[0], desk.saving.due()))
            if arrivals[0] <= desk.now:
                arrivals.popleft()
                desk.push()
                desk.wake()
            else:
                desk.saving.on_deadline(desk.now)
        sizes.append(desk.begin().count)
        done = desk.now + sync_s
        while arrivals and arrivals[0] <= done:
            arrivals.popleft()
            desk.push()
        desk.now = done
        desk.write()
        arrivals.extend([done + (place + 1) * apart_s for place in range(sizes[-1])])
        desk.wake()
    assert sizes[5:] == [count - 1] * 15


def test_nobody_waits_for_others_longer_than_for_a_quarter_of_a_write(crowded: Desk) -> None:
    crowded.push()
    crowded.wake()
    assert crowded.saving.due() == pytest.approx(crowded.now + 0.003)
    crowded.pass_time()
    assert crowded.begin().count == 1
    crowded.now += 0.012
    crowded.write()
    crowded.push()
    crowded.wake()
    assert crowded.saving.state == LINGERING, "the one before the last one had sixteen"
    crowded.pass_time()
    crowded.write()
    crowded.push()
    crowded.wake()
    assert crowded.saving.state == WRITING, "its producer is alone"


def test_what_is_more_urgent_does_not_wait_for_others(crowded: Desk) -> None:
    crowded.push()
    crowded.wake()
    assert crowded.saving.state == LINGERING
    crowded.ask(fetch())
    crowded.wake()
    assert crowded.begin().count == 1
    crowded.write()
    assert crowded.read(1) == ["Fetched"]
    crowded.push()
    crowded.change(StoreQueue(1, "c", 1, QueueOptions(), 0))
    crowded.wake()
    assert crowded.saving.state == WRITING


def test_on_a_quick_disk_nobody_waits_for_others() -> None:
    desk = Desk()
    for _ in range(16):
        desk.push()
    desk.wake()
    desk.begin()
    desk.now += 0.0039
    desk.write()
    desk.push()
    desk.wake()
    assert desk.saving.state == WRITING
