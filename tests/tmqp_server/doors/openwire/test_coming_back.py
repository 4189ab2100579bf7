"""Servers of OpenWire that stop, and clients that come back."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.openwire.talk import Client, fine, world_with
from tmqp_server.doors.port import SERVER_STOPS
from tmqp_wires.openwire.commands import ConnectionControl, ConnectionError_


def test_failover_says_that_it_is_fault_tolerant_before_it_introduces_itself_again() -> None:
    world = world_with()
    client = Client(world, before=[ConnectionControl()])
    assert fine(client.answers)
    assert client.tell(ConnectionControl()) == []
    assert client.closed == ""


@pytest.mark.parametrize("reason", ["it is too slow", SERVER_STOPS])
def test_a_server_says_why_it_closes_unless_it_stops(reason: str) -> None:
    client = Client(world_with())
    client.world.hub.close(client.connection.number, reason, client.world.now)
    told = [each for each in client.hear() if isinstance(each, ConnectionError_)]
    assert len(told) == (reason != SERVER_STOPS)
    assert client.closed == reason
