"""Clients of a group: they go where the leader is, and notice soon that it has gone."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import pytest

from tmqp.address import Address, parse_address
from tmqp.connection import Connection
from tmqp.events import HandshakeReceived
from tmqp.state import Role
from tmqp_client import (
    FAIL_OVER,
    ClientLimits,
    ConnectFailed,
    ConnectRefused,
    connect,
)
from tmqp_client.reconnect import leader_of
from tmqp_server import ServerConfig, running

HERE = "tmq://127.0.0.1:1"


@asynccontextmanager
async def standby(address: str) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that refuses everybody and names this address; where it is, and how often it did."""
    refused: list[int] = []

    async def serve(stream: anyio.abc.ByteStream) -> None:
        async with stream:
            connection = Connection(Role.SERVER, now=0.0)
            while True:
                events = connection.receive(await stream.receive(), 0.0)
                if any(isinstance(each, HandshakeReceived) for each in events):
                    break
            connection.refuse(421, "m", address)
            refused.append(1)
            await stream.send(connection.data_to_send())

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no database
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"tmq://127.0.0.1:{port}", refused
        tasks.cancel_scope.cancel()


async def test_a_client_goes_from_a_standby_to_the_leader() -> None:
    config = ServerConfig(listen=(Address("127.0.0.1", 0),))
    async with running(config) as server:
        leader = str(server.addresses[0])
        async with (
            standby(leader) as (address, refused),
            connect([address], reconnect=None) as client,
        ):
            assert str(client.address) == leader
            assert refused == [1]


async def test_servers_that_name_each_other_are_not_asked_for_ever() -> None:
    async with standby("tmq://127.0.0.1:1") as (end, _), standby(end) as (begin, refused):
        with pytest.raises(ConnectFailed):
            async with connect(begin, reconnect=None):
                raise AssertionError("nobody takes clients")
        assert refused == [1]


async def test_a_standby_that_knows_no_leader_is_an_error_that_says_so() -> None:
    async with standby("") as (address, _):
        with pytest.raises(ConnectRefused, match=r"the server stands by$") as caught:
            async with connect(address, reconnect=None):
                raise AssertionError("nobody takes clients")
    assert (caught.value.code, caught.value.node_address) == (421, "")
    again = copy.copy(ConnectRefused("a", 421, "tmq://b"))
    assert (again.node_address, str(again)) == (
        "tmq://b",
        "cannot connect to a: the server stands by, tmq://b leads",
    )


@pytest.mark.parametrize(
    ("told", "asked", "found"),
    [
        ("tmq://b:2", HERE, "tmq://b:2"),
        ("tmqs://b:2", HERE, "tmqs://b:2"),
        ("tmqs://b:2", "tmqs://a:1", "tmqs://b:2"),
        ("tmq://b:2", "tmqs://a:1", "None"),  # the token would be in the clear
        (HERE, HERE, "None"),
        ("", HERE, "None"),
        ("http://b", HERE, "None"),
    ],
)
def test_where_a_client_may_be_sent(told: str, asked: str, found: str) -> None:
    assert str(leader_of(told, parse_address(asked))) == found


def test_the_policy_for_groups_hurries_the_keep_alive_of_the_connection() -> None:
    client = connect(HERE, reconnect=FAIL_OVER)
    assert client.limits.protocol.ping_interval_s == 1.0
    assert client.limits.protocol.handshake_timeout_s == 1.0
    patient = ClientLimits()
    assert connect(HERE, limits=patient).limits is patient
