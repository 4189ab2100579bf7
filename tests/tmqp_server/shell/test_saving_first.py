"""A lone message that is to be synced: the store begins before the message is sent to anybody."""

from __future__ import annotations

import pytest

from tests.tmqp_server.shell.stage import Stage
from tmqp.constants import STATUS_ROUND_ROBIN
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions
from tmqp_server.shell.saving import IDLE, WRITING
from tmqp_server.shell.world import WriteBatch, WriteOut


class DurableStage(Stage):
    """One whose queues are durable, with a producer, 1, and a consumer, 2."""

    def __init__(self) -> None:
        queue = QueueOptions(status=STATUS_ROUND_ROBIN, durable=True)
        options = BrokerOptions(channel=ChannelOptions(queue=queue), storage=True)
        super().__init__(broker=Broker(options=options))
        self.open(1, "push ch m0")
        self.open(2, "join ch")
        self.save()
        self.forget()

    def push(self, *ids: str) -> None:
        """The producer sends messages, each in a chunk of its own."""
        for each in ids:
            self.hear(1, f"push ch {each}")

    def forget(self) -> None:
        """What was sent so far does not count."""
        self.wires[2].sent.clear()

    def save(self) -> None:
        """The store writes all that there is."""
        saving = self.turn.saving
        assert saving is not None
        while saving.state != IDLE:
            if saving.state == WRITING:
                self.turn.take_batch()
                self.turn.written(None, self.now)
            else:
                self.pass_time(0.01)
            self.attend()
        self.others.clear()


@pytest.fixture
def stage() -> DurableStage:
    return DurableStage()


def kinds(stage: DurableStage) -> list[type]:
    return [type(each) for each in stage.others]


def test_a_lone_message_is_given_to_the_store_before_it_is_sent(stage: DurableStage) -> None:
    stage.push("m1")
    stage.save()
    stage.forget()
    stage.turn.received(1, b"push ch m2", stage.now)
    effects = stage.turn.take_effects()
    assert [type(each) for each in effects] == [WriteBatch, WriteOut]
    assert not stage.wires[2].sent, "the store begins first"
    stage.turn.take_batch()
    stage.turn.write_out(stage.now)
    assert bytes(stage.wires[2].sent) == b"line:m2\n", "it is sent while the disk works"


def test_what_comes_while_the_disk_works_is_sent_at_once(stage: DurableStage) -> None:
    stage.push("m1")
    stage.save()
    stage.forget()
    stage.push("m2", "m3")
    assert bytes(stage.wires[2].sent) == b"line:m2\nline:m3\n"
    assert kinds(stage) == [WriteBatch]


def test_behind_a_batch_of_several_messages_nothing_is_put_off(stage: DurableStage) -> None:
    stage.push("m1", "m2", "m3")
    stage.save()
    stage.save()
    stage.push("m4")
    stage.save()
    stage.push("m5", "m6")
    stage.save()
    assert stage.turn.saving is not None
    stage.forget()
    stage.turn.received(1, b"push ch m7", stage.now)
    assert bytes(stage.wires[2].sent) == b"line:m7\n"


def test_chunks_of_a_round_are_written_together(stage: DurableStage) -> None:
    stage.push("m1")
    stage.save()
    stage.forget()
    stage.turn.begin_round()
    stage.turn.received(1, b"push ch m2", stage.now)
    stage.turn.received(1, b"push ch m3", stage.now)
    assert stage.turn.take_effects() == []
    stage.turn.end_round(stage.now)
    assert bytes(stage.wires[2].sent) == b"line:m2\nline:m3\n"


def test_a_failing_session_ends_and_the_message_is_kept(stage: DurableStage) -> None:
    stage.push("m1")
    stage.save()
    stage.door.sessions[2].fault = "send"
    stage.push("m2")
    assert stage.closed, "whose bytes cannot be had is over"
    assert stage.turn.saving is not None
    assert stage.turn.saving.state == WRITING
    stage.save()
