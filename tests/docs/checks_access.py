"""The checks of docs/conformance.md about who may do what."""

from __future__ import annotations

import json

from tests.docs.cases import case
from tests.tmqp_server.guarded import GuardedWorld
from tests.tmqp_server.peers import Peer
from tmqp import Frame, MessageType, Operation
from tmqp_server.access.gate import Verdict

__all__: list[str] = []


@case(71)
def rights() -> None:
    world = GuardedWorld()
    client = Peer(world, "me")
    other = Peer(world, "other")
    for channel in ("seen", "secret"):
        assert client.ask(Operation.CREATE_CHANNEL, channel).content_type == 0
    world.policy = lambda _: Verdict(True, names=frozenset({"seen"}))
    listed = json.loads(client.ask(Operation.CHANNEL_LIST).payload)
    assert [each["Name"] for each in listed] == ["seen"]
    world.policy = lambda _: Verdict(False)
    for number in (Operation.CHANNEL_LIST, Operation.JOIN, Operation.CREATE_ROUTER):
        assert client.ask(number, "seen").content_type == 401
    client.say(Frame.build(MessageType.RESPONSE, "other", message_id="r"))
    assert (client.take(), other.take(), client.open) == ([], [], True)
