"""Messages that are settled before they are written need no disk."""

from __future__ import annotations

import pytest

from tests.tmqp_server.shell.desk import Desk
from tmqp_server.engine.effects import StoreRouter
from tmqp_server.engine.model.message import MARK_DONE_CONFIRMS
from tmqp_server.shell.saving import IDLE, LINGERING, WRITING
from tmqp_server.storage.port import KeepRouter


def push(desk: Desk, marks: int = MARK_DONE_CONFIRMS) -> None:
    desk.push(marks)
    desk.wake()


def done(desk: Desk) -> None:
    """The last message is settled."""
    desk.erase(desk.sequence, ticket=desk.ticket)
    desk.wake()


@pytest.fixture
def desk() -> Desk:
    """One whose queue is hasty: the consumer was done before the disk was."""
    desk = Desk()
    push(desk)
    desk.begin()
    done(desk)
    assert desk.write() == ["saved 1+1"]
    desk.wake()
    desk.pass_time()
    desk.write()
    return desk


def test_the_next_message_is_not_written_if_it_is_done_soon(desk: Desk) -> None:
    push(desk)
    assert desk.saving.state == LINGERING
    done(desk)
    desk.pass_time()
    assert desk.told() == ["saved 2+1"]
    assert desk.work() == []
    assert desk.saving.state == IDLE


def test_what_else_is_to_be_kept_is_written_with_a_message_that_is_done(desk: Desk) -> None:
    push(desk)
    done(desk)
    desk.journal.change(StoreRouter("router", 0, []))
    desk.wake()
    assert desk.saving.state == WRITING
    assert [type(each) for each in desk.begin().batch.changes] == [KeepRouter]


def test_a_consumer_that_is_slow_for_once_makes_its_queue_wait_once(desk: Desk) -> None:
    push(desk)
    began = desk.now
    desk.pass_time()
    assert desk.now - began == pytest.approx(0.001)
    assert desk.write() == ["saved 2+1"]
    push(desk)
    assert desk.saving.state == WRITING


def test_while_messages_come_and_go_none_is_written_for_five_milliseconds(desk: Desk) -> None:
    push(desk)
    began = desk.now
    for _ in range(20):
        if desk.saving.state != LINGERING:
            break
        done(desk)
        push(desk)
        desk.pass_time()
    assert desk.now - began == pytest.approx(0.005)
    assert list(desk.begin().batch.appended) == [1]


def test_a_message_whose_producer_waits_for_the_disk_is_written_at_once(desk: Desk) -> None:
    push(desk)
    push(desk, 0)
    assert desk.saving.state == WRITING


def test_another_queue_does_not_wait_for_the_consumers_of_a_hasty_one(desk: Desk) -> None:
    push(desk)
    desk.append(1, key=2, marks=MARK_DONE_CONFIRMS)
    desk.wake()
    assert desk.saving.state == WRITING


def test_what_lingers_at_the_end_is_in_the_last_batch(desk: Desk) -> None:
    push(desk)
    assert desk.saving.state == LINGERING
    desk.saving.stop()
    desk.saving.finish([])
    assert list(desk.begin().batch.appended) == [1]
