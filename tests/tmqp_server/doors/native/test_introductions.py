"""What a client says of itself in its hello, and what becomes of it (F29, F30)."""

from __future__ import annotations

import json
import re

from tests.tmqp_server.peers import Peer, greeting, operation
from tests.tmqp_server.world import World
from tmqp.codec import FrameDecoder
from tmqp.constants import Operation


def introduced(world: World, *lines: str) -> str:
    """Connect with these lines behind ``CONNECT /``; the id under which it is accepted."""
    payload = "\r\n".join(["CONNECT /", *lines, ""]).encode()
    link = world.open_link()
    link.send(greeting(payload=payload))
    data = link.receive()
    assert data[:8] == b"TMQP/2.0"
    (accepted,) = FrameDecoder().feed(data[8:])
    assert accepted.content_type == 202
    return accepted.target


def test_a_client_without_an_id_is_given_one_of_its_own() -> None:
    """F30: 32 lower-case hexadecimal digits."""
    world = World()
    ids = [
        introduced(world),
        introduced(world, "Client-Id:"),
        introduced(world, "Client-Name: somebody"),
    ]
    assert len(set(ids)) == 3
    for each in ids:
        assert re.fullmatch("[0-9a-f]{32}", each)


def test_name_and_type_are_shown_and_all_else_is_kept_for_user_code() -> None:
    """F29."""
    world = World()
    lines = ("Client-Id: me ", "Client-Name: Printer", "Client-Type: Worker", "Floor: 3")
    assert introduced(world, *lines) == "me"
    asker = Peer(world, "asker")
    asker.say(operation(Operation.CLIENT_LIST))
    (answer,) = asker.take()
    shown = {each["Id"]: (each["Name"], each["Type"]) for each in json.loads(answer.payload)}
    assert shown["me"] == ("Printer", "Worker")
    (session,) = [each for each in world.broker._core.sessions.values() if each.client_id == "me"]
    assert "Floor" in str(session.properties)
