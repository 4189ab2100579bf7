"""What clients of STOMP read of messages whose bodies are Java's."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.openwire.talk import Client, world_with
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.openwire.message import OpenwireBodies
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.options import StompOptions
from tmqp_server.engine.effects import Deliver
from tmqp_wires.openwire.data import INTEGER, STRING, encode_map
from tmqp_wires.openwire.messages import (
    BYTES_MESSAGE,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
)

_MAP = encode_map([("name", STRING, "tea"), ("n", INTEGER, 3)])
_STREAM = b"\x09\x00\x03tea"
_TEXT = b"\x00\x00\x00\x03tea"


def read(kind: int, content: bytes, maps: str) -> tuple[bytes, bool]:
    """The body that a subscriber gets, and whether its type is said."""
    world = world_with()
    client = Client(world, "me")
    client.send(type=kind, content=content)
    (queue,) = world.broker.queues()
    (message,) = [*queue.high.messages(), *queue.regular.messages()]
    letters = Letters([OpenwireBodies()])
    door = StompDoor(lambda: "id", options=StompOptions(maps=maps), letters=letters)
    data = door.encode_delivery(Deliver([1], message, "q", True, True, False, False))
    head, _, body = data.partition(b"\n\n")
    assert b"content-length:%d" % (len(body) - 1) in head.split(b"\n")
    return body.removesuffix(b"\0"), b"\ncontent-type:" in head


@pytest.mark.parametrize(
    ("kind", "content", "shown"),
    [
        (MAP_MESSAGE, _MAP, b'{"name":"tea","n":3}'),
        (STREAM_MESSAGE, _STREAM, b'["tea"]'),
        (OBJECT_MESSAGE, b"\xac\xed", b"\xac\xed"),
    ],
)
def test_maps_streams_and_objects_are_shown_or_empty(
    kind: int, content: bytes, shown: bytes
) -> None:
    assert read(kind, content, "json") == (shown, True)
    assert read(kind, content, "empty") == (b"", False)


@pytest.mark.parametrize(
    ("kind", "content", "shown"), [(TEXT_MESSAGE, _TEXT, b"tea"), (BYTES_MESSAGE, b"tea", b"tea")]
)
def test_texts_and_bytes_are_what_they_are_in_any_case(
    kind: int, content: bytes, shown: bytes
) -> None:
    assert read(kind, content, "empty") == (shown, True)


def test_another_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="maps must be 'json' or 'empty', got 'xml'"):
        StompOptions(maps="xml")
