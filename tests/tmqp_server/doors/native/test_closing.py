"""How a native session ends: by whom, with which last words, and that nothing is said after it."""

from __future__ import annotations

import pytest

from tests.tmqp_server.peers import Peer, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame

TERMINATE = Frame.build(MessageType.TERMINATE)
GARBAGE = b"\x11\x10\xff\x00\x00\x00\x00\x00" + b"\xff" * 255
#: Terminate with the result code 400.
LAST_WORDS = bytes.fromhex("0810000000900100")
FORGED = push("c", 1, "m", source="another")

#: Messages the door answers by itself, without asking the broker.
ANSWERED = [
    operation(Operation.JOIN, "c", pending_acknowledge=True),
    operation(9_999, pending_acknowledge=True),
    operation(Operation.CREATE_QUEUE, "c", pending_acknowledge=True),
    push("c", 1, "m", headers=[("Queue-Status", "nonsense")], pending_acknowledge=True),
    Frame.build(MessageType.DIRECT_MESSAGE, "x", message_id="d", pending_response=True),
    Frame.build(MessageType.EVENT, "x", 1, message_id="e", pending_response=True),
    Frame.build(MessageType.ROUTER, "x", message_id="r", pending_acknowledge=True),
    Frame.build(MessageType.PULL_REQUEST, "c", 1, message_id="p", headers=[("Count", "1")]),
]


ENDS: dict[str, bytes | Frame] = {"terminate": TERMINATE, "garbage": GARBAGE, "forged": FORGED}


def _name(message: Frame) -> str:
    return f"{message.type:#x}-{message.content_type}"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("message", ANSWERED, ids=_name)
def test_a_message_that_is_answered_may_stand_before_the_end(message: Frame, end: str) -> None:
    """The connection may be closed when its answer is made: that must not raise."""
    peer = Peer(World(), "a")
    peer.say(message, ENDS[end])
    assert not peer.open
    words = peer.take()
    if end == "terminate":
        assert words == []
    else:
        assert words[-1].raw == LAST_WORDS
    if end == "garbage":
        assert len(words) == 1


@pytest.mark.parametrize("end", [b"", TERMINATE.raw, GARBAGE], ids=["", "terminate", "garbage"])
@pytest.mark.parametrize("message", ANSWERED, ids=_name)
def test_nothing_behind_a_forged_source_is_done_or_answered(message: Frame, end: bytes) -> None:
    world = World()
    other = Peer(world, "b")
    peer = Peer(world, "a")
    peer.say(FORGED, message, push("left-behind", 1, "m"), end)
    assert not peer.open
    assert [word.raw for word in peer.take()] == ([] if end == TERMINATE.raw else [LAST_WORDS])
    assert other.ask(Operation.CHANNEL_LIST).payload == b"[]"
    # The broker has let it go: the id is free before the transport is.
    assert Peer(world, "a").open


@pytest.mark.parametrize(
    "kind",
    [kind for kind in MessageType if kind.name not in ("PING", "PONG", "TERMINATE")],
    ids=lambda kind: kind.name,
)
def test_a_forged_source_in_any_message_ends_that_connection_only(kind: MessageType) -> None:
    """F42, and G5 of the reliability cases."""
    world = World()
    victim = Peer(world, "victim", ["c"])
    forger = Peer(world, "forger", ["c"])
    forger.say(Frame.build(kind, "c", 1, b"x", message_id="m", source="victim"))
    assert not forger.open
    assert [word.raw for word in forger.take()] == [LAST_WORDS]
    assert "source" in world.hub.close_reason(forger.link.number)
    assert victim.open
    assert victim.take() == []
    assert victim.ask(Operation.CHANNEL_LIST).content_type == 0


def test_ones_own_name_or_none_is_no_forgery() -> None:
    peer = Peer(World(), "a")
    for source in ("a", ""):
        peer.say(push("c", 1, "m", source=source))
        assert peer.open
    for source in ("A", "a ", "\uff41"):
        other = Peer(World(), "a")
        other.say(push("c", 1, "m", source=source))
        assert not other.open
