"""The next batch begins before anybody hears of the last one, where the disk is quick."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.tmqp_server.line_door import LineDoor
from tests.tmqp_server.shell.desk import Desk, fetch
from tests.tmqp_server.shell.stage import StubWire, marks
from tmqp.constants import STATUS_PUSH
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, CreateQueue, Push
from tmqp_server.engine.options import BrokerOptions, QueueChanges
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.saving import IDLE, READING, WRITING
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import TellSaved, WriteBatch
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.port import StoreError


def _out(desk: Desk, took_s: float, error: Exception | None = None) -> list[str]:
    """A batch is written while two more messages come."""
    desk.push()
    desk.wake()
    desk.begin()
    desk.push()
    desk.push()
    desk.now += took_s
    return desk.write(error)


def test_the_disk_stood_still_while_producers_were_told() -> None:
    desk = Desk()
    assert _out(desk, 0.0003) == ["saved 1+1"]
    assert desk.saving.state == WRITING
    (work,) = desk.work()
    assert isinstance(work, WriteBatch)
    assert work.at_once
    assert desk.saving.take().count == 2


def test_on_a_slower_disk_those_who_were_told_send_again_first() -> None:
    desk = Desk()
    assert _out(desk, 0.001) == ["saved 1+1"]
    assert desk.saving.state == IDLE
    assert desk.work() == []


def test_after_a_failure_nothing_begins_before_the_broker_has_heard() -> None:
    desk = Desk()
    assert _out(desk, 0.0003, StoreError("no room")) == ["fails", "refused 1+1"]
    assert desk.saving.state != WRITING
    assert desk.work() == []


def test_what_is_only_settled_waits_for_company_behind_a_batch() -> None:
    desk = Desk()
    desk.push()
    desk.wake()
    desk.begin()
    desk.settle(7)
    assert desk.write() == ["saved 1+1"]
    assert desk.saving.state == IDLE


def test_a_read_that_was_asked_before_goes_first() -> None:
    desk = Desk()
    desk.push()
    desk.ask(fetch())
    desk.wake()
    desk.begin()
    desk.push()
    assert desk.write() == ["saved 1+1"]
    assert desk.saving.state == READING


# --- In a turn -----------------------------------------------------------------------------------


class _Server:
    """A turn with two clients: the first pushes into a durable queue, the second may consume."""

    def __init__(self, *lines: str, asks: bool) -> None:
        self.door = LineDoor()
        self.journal = Journal([self.door])
        hub = Hub(Broker(options=BrokerOptions(storage=True)), 0, self.journal)
        self.turn = Turn(hub, marks(), self.journal)
        for number in (1, 2):
            self.turn.opened(number, self.door, StubWire(), "host", 0.0)
            self.turn.received(number, f"connect n{number}".encode(), 0.0)
        changes = QueueChanges(durable=True, status=STATUS_PUSH, request_acknowledge=asks)
        self.perform(CreateQueue(1, "q", "c", 1, changes))
        for line in lines:
            self.turn.received(2, line.encode(), 0.0)
        self.write()
        self.told()

    def perform(self, *commands: Command) -> None:
        self.turn.perform(commands, 0.0)

    def push(self, message_id: str) -> None:
        size = len(f"line:{message_id}\n")
        self.perform(Push(1, message_id, "c", 1, False, True, size, None))

    def wanted(self) -> list[type]:
        """What the world is to do for the store."""
        wanted = (TellSaved, WriteBatch)
        return [type(each) for each in self.turn.take_effects() if isinstance(each, wanted)]

    def write(self) -> None:
        assert self.wanted() == [WriteBatch]
        self.turn.take_batch()
        self.turn.written(None, 0.0)

    def told(self) -> Sequence[str]:
        session = self.door.sessions[1]
        words = session.words()
        session.said.clear()
        return words


def test_producers_are_told_when_the_next_batch_has_begun() -> None:
    server = _Server(asks=True)
    server.push("a")
    assert server.wanted() == [WriteBatch]
    assert server.turn.take_batch().count == 1
    server.push("b")
    server.turn.written(None, 0.0)
    assert server.wanted() == [WriteBatch, TellSaved], "in this order"
    assert server.told() == []
    assert server.turn.take_batch().count == 1
    server.turn.tell_saved(0.0)
    assert server.told() == ["Confirm"], "of the first; rule 1 holds for the second"
    assert server.wanted() == []
    server.turn.written(None, 0.0)
    assert server.told() == ["Confirm"]


@pytest.mark.parametrize("asks", [False, True])
def test_a_batch_may_have_nothing_to_be_written(asks: bool) -> None:
    """A message that was settled before the store began; whoever carries it out calls at once."""
    server = _Server("join c", asks=asks)
    server.push("a")
    assert server.wanted() == [WriteBatch]
    writing = server.turn.take_batch()
    assert writing.count == 1
    assert writing.batch.is_empty() == (not asks)
    assert server.told() == []
    server.turn.written(None, 0.0)
    assert server.told() == ["Confirm"]
