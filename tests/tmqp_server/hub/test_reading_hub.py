"""Readers through hub and door: questions for the storage go out, its answers come back as said."""

from __future__ import annotations

import json

import pytest

from tests.tmqp_server.guarded import QUEUE, GuardedWorld, asks
from tests.tmqp_server.outputs import asked_of_storage, faults, touched, wants_storage
from tests.tmqp_server.peers import Peer
from tests.tmqp_server.world import World
from tmqp.block_columns import COLUMN_TIMESTAMP, COLUMN_VALUE
from tmqp.blocks import AS_BLOCKS, AS_COLUMNS, AS_REFERENCES
from tmqp.constants import Operation
from tmqp.extensions import OP_COMMIT_CURSOR, OP_LIST_CURSORS, OP_OFFSETS, OP_READ_RANGE
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.access.gate import Verdict
from tmqp_server.engine.commands import Blocks, Command, NameStore, OffsetsFound, RangeRead
from tmqp_server.engine.effects import FindOffsets, ReadStored
from tmqp_server.engine.model.snapshots import KeptOffsets
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.storage.port import KeepCursor


def written(world: World) -> list[object]:
    """Let what was gathered be written; what the changes were."""
    journal = world.hub.journal
    assert journal is not None
    writing = journal.take()
    synced = journal.finished(writing, True)
    if synced is not None:
        world.hub.perform(synced, world.now)
    return list(writing.batch.changes)


def ready(world: World) -> Peer:
    """A client, and channels ``c`` and ``d`` with queue 1."""
    world.hub.perform(NameStore("disk"), world.now)
    peer = Peer(world, "me")
    for channel in ("c", "d"):
        peer.say(asks(Operation.CREATE_QUEUE, channel, headers=QUEUE))
        written(world)
    assert [answer.content_type for answer in peer.take()] == [0, 0]
    return peer


def told(world: World, peer: Peer, command: Command) -> Frame:
    """The storage answers; what the client hears."""
    world.hub.perform(command, world.now)
    (answer,) = peer.take()
    return answer


def test_a_range_is_answered_with_the_bytes_of_the_storage() -> None:
    world = World(BrokerOptions(storage=True), Limits(max_payload_bytes=1_000))
    peer = ready(world)
    # Behind the last sequence there is nothing to ask for.
    peer.say(asks(OP_READ_RANGE, "c", headers=[*QUEUE, ("From", "1")]))
    (answer,) = peer.take()
    assert (answer.content_type, answer.payload) == (0, b"")
    peer.say(asks(OP_READ_RANGE, "c", headers=[*QUEUE, ("Max-Bytes", "999999")]))
    assert peer.take() == []
    assert wants_storage(world.hub)
    (asked,) = asked_of_storage(world.hub)
    assert isinstance(asked, ReadStored)
    assert asked.max_bytes == 999_999, "the client says what it can take"
    answer = told(world, peer, RangeRead(asked.number, 0, Blocks([b"\x00opa", b"que\xff"])))
    assert (answer.content_type, answer.payload) == (0, b"\x00opaque\xff")
    peer.say(asks(OP_READ_RANGE, "c", headers=QUEUE))
    (asked,) = asked_of_storage(world.hub)
    assert isinstance(asked, ReadStored)
    assert asked.max_bytes == 1_000, "and else it is to take no more than we do"
    answer = told(world, peer, RangeRead(2, 0, Blocks([bytes(1_001)])))
    assert (answer.content_type, answer.payload) == (482, b"")


@pytest.mark.parametrize(
    ("headers", "form"),
    [
        ([], AS_BLOCKS),
        ([("Form", "References")], AS_REFERENCES),
        ([("Columns", "value")], AS_COLUMNS + COLUMN_VALUE),
        ([("Columns", "sequence")], AS_COLUMNS),
        ([("Columns", "Value, timestamp")], AS_COLUMNS + COLUMN_VALUE + COLUMN_TIMESTAMP),
    ],
)
def test_a_range_is_asked_for_in_a_form(headers: list[tuple[str, str]], form: int) -> None:
    world = World(BrokerOptions(storage=True))
    peer = ready(world)
    peer.say(asks(OP_READ_RANGE, "c", headers=[*QUEUE, *headers]))
    (asked,) = asked_of_storage(world.hub)
    assert isinstance(asked, ReadStored)
    assert asked.form == form


@pytest.mark.parametrize(
    "headers",
    [
        [("Form", "files")],
        [("Columns", "value,price")],
        [("Columns", "")],
        [("Columns", "value"), ("Form", "references")],
    ],
)
def test_a_form_that_is_not_known_is_refused(headers: list[tuple[str, str]]) -> None:
    world = World(BrokerOptions(storage=True))
    peer = ready(world)
    peer.say(asks(OP_READ_RANGE, "c", headers=[*QUEUE, *headers]))
    (answer,) = peer.take()
    assert answer.content_type == 400


def test_out_of_range_says_what_is_there() -> None:
    world = World(BrokerOptions(storage=True))
    peer = ready(world)
    peer.say(asks(OP_READ_RANGE, "c", headers=[*QUEUE, ("From", "5")]))
    (asked,) = asked_of_storage(world.hub)
    assert isinstance(asked, ReadStored)
    kept = KeptOffsets(7, 9, 3, 99, 1_700_000_000_123_456)
    answer = told(world, peer, RangeRead(asked.number, 416, None, kept))
    assert answer.content_type == 416
    assert json.loads(answer.payload) == {
        "Channel": "c",
        "Queue": 1,
        "Incarnation": "disk-1",
        "Earliest": 7,
        "Latest": 9,
        "Count": 3,
        "Bytes": 99,
        "Oldest": 1_700_000_000_123,
    }


def test_a_cursor_goes_to_the_journal_and_its_answer_waits() -> None:
    world = World(BrokerOptions(storage=True))
    peer = ready(world)
    peer.say(asks(OP_COMMIT_CURSOR, "c", headers=[*QUEUE, ("Cursor", "r"), ("Sequence", "0")]))
    assert peer.take() == []
    (change,) = written(world)
    assert isinstance(change, KeepCursor)
    assert (change.name, change.key, change.sequence) == ("r", 1, 0)
    (answer,) = peer.take()
    where = {"Name": "r", "Channel": "c", "Queue": 1, "Incarnation": "disk-1", "Sequence": 0}
    assert json.loads(answer.payload) == where
    peer.say(asks(OP_LIST_CURSORS, "C", headers=QUEUE))
    (answer,) = peer.take()
    assert json.loads(answer.payload) == [where]


def test_offsets_show_only_what_may_be_seen() -> None:
    world = GuardedWorld(
        lambda question: Verdict(True, names=frozenset(question.names[1:])),
        BrokerOptions(storage=True),
    )
    peer = ready(world)
    # Only lists are cut: other questions have no names.
    peer.say(asks(OP_OFFSETS, "*"))
    assert world.asked[-1].names == ("c", "d")
    (asked,) = asked_of_storage(world.hub)
    assert isinstance(asked, FindOffsets)
    assert asked.keys == [2]
    answer = told(world, peer, OffsetsFound(asked.number, 0, [KeptOffsets(0, 0, 0, 0, 0)]))
    (found,) = json.loads(answer.payload)
    assert (found["Channel"], found["Earliest"], found["Latest"]) == ("d", 1, 0)


def test_a_client_that_has_gone_is_not_answered() -> None:
    world = World(BrokerOptions(storage=True))
    peer = ready(world)
    peer.say(asks(OP_READ_RANGE, "c", headers=QUEUE))
    peer.link.close()
    (asked,) = asked_of_storage(world.hub)
    assert isinstance(asked, ReadStored)
    world.hub.perform(RangeRead(asked.number, 0, Blocks([b"late"])), world.now)
    assert faults(world.hub) == {}
    assert list(touched(world.hub)) == []
