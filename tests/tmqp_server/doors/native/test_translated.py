"""What is kept of messages of other doors, as readers of TMQP get it: it was in their own form."""

from __future__ import annotations

import json

from tests.tmqp_server.doors.door_world import DoorWorld
from tests.tmqp_server.doors.openwire.talk import Client, world_with
from tmqp import Frame, FrameDecoder, Limits
from tmqp.block_columns import COLUMN_VALUE, is_columns
from tmqp.block_writing import encode_block
from tmqp.blocks import (
    AS_COLUMNS,
    DOOR_NATIVE,
    FLAG_DOOR_SHIFT,
    FLAG_HIGH,
    StoredMessage,
    others_in,
    split_blocks,
)
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.translated import translated
from tmqp_server.doors.openwire.message import NUMBER, OpenwireBodies
from tmqp_server.engine.commands import Blocks
from tmqp_server.storage.records import in_form
from tmqp_wires.openwire.data import INTEGER, STRING, encode_map
from tmqp_wires.openwire.messages import MAP_MESSAGE

_TEA = [("name", STRING, "tea"), ("n", INTEGER, 3)]


def kept(world: DoorWorld, flags: int = 0) -> StoredMessage:
    """The one message of a server as it is kept, in the 7th place."""
    (queue,) = world.broker.queues()
    (message,) = [*queue.high.messages(), *queue.regular.messages()]
    body, at, size = world.door.stored(message)
    door = NUMBER << FLAG_DOOR_SHIFT
    return StoredMessage(7, 1_000, 0, 0, door | flags, 2, 1, 0, at, size, body)


def map_message(flags: int = 0) -> StoredMessage:
    """A map with a property, as it is kept."""
    world = world_with()
    client = Client(world, "me")
    properties = encode_map([("colour", STRING, "red"), ("n", INTEGER, 7)])
    client.send(
        type=MAP_MESSAGE, content=encode_map(_TEA), properties=properties, priority=7,
        correlation_id="c-1",
    )  # fmt: skip
    return kept(world, flags)


def read(block: bytes) -> tuple[StoredMessage, Frame]:
    (found,) = split_blocks(block)
    (stored,) = found.messages()
    (frame,) = FrameDecoder(Limits()).feed(stored.body)
    assert isinstance(frame, Frame)
    return stored, frame


def test_a_map_of_openwire_is_json_and_has_its_headers() -> None:
    block = encode_block(5, [map_message(FLAG_HIGH)])
    (piece,) = translated(Blocks([block]), Letters([OpenwireBodies()])).pieces
    stored, frame = read(piece)
    assert (stored.sequence, stored.timestamp_us, stored.attempts, stored.put_backs) == (
        7, 1_000, 2, 1,
    )  # fmt: skip
    assert stored.flags == DOOR_NATIVE << FLAG_DOOR_SHIFT | FLAG_HIGH
    assert json.loads(stored.payload) == {"name": "tea", "n": 3}
    assert frame.high_priority
    assert (frame.source, frame.target) == ("jms:me", "q")
    said = dict(frame.headers)
    assert (said["colour"], said["n"], said["Property-Types"]) == ("red", "7", "n=i")
    assert (said["Correlation-Id"], said["Priority"]) == ("c-1", "7")
    assert said["Content-Type"] == "application/json"


def test_blocks_without_others_are_not_touched_and_what_nobody_reads_stays() -> None:
    own = StoredMessage(1, 0, 0, 0, DOOR_NATIVE << FLAG_DOOR_SHIFT, 0, 0, 0, 0, 1, b"x")
    blocks = Blocks([encode_block(5, [own])])
    assert translated(blocks, Letters([OpenwireBodies()])) is blocks
    foreign = map_message()
    mixed = encode_block(5, [own, foreign])
    assert others_in(mixed)
    (piece,) = translated(Blocks([mixed]), Letters()).pieces
    assert piece == mixed
    foreign.body = foreign.body[:20]
    foreign.payload_offset = foreign.payload_size = 0
    cut = encode_block(5, [foreign])
    assert translated(Blocks([cut]), Letters([OpenwireBodies()])).pieces == [cut]
    damaged = mixed[:-1] + b"?"
    assert translated(Blocks([damaged]), Letters([OpenwireBodies()])).pieces == [damaged]


def test_columns_of_messages_of_other_protocols_had_untranslated_payloads() -> None:
    own = StoredMessage(1, 0, 0, 0, DOOR_NATIVE << FLAG_DOOR_SHIFT, 0, 0, 0, 0, 1, b"x")
    values = AS_COLUMNS | COLUMN_VALUE
    columns = in_form(encode_block(5, [own]), 1, values)
    assert is_columns(memoryview(columns), 0)
    assert not others_in(columns)
    mixed = encode_block(5, [own, map_message()])
    whole = in_form(mixed, 2, values)
    assert whole == mixed, "whoever knows the other protocol translates it"
    (piece,) = translated(Blocks([whole]), Letters([OpenwireBodies()])).pieces
    found = [message.payload for block in split_blocks(piece) for message in block.messages()]
    assert [found[0], json.loads(found[1])] == [b"x", {"name": "tea", "n": 3}]
