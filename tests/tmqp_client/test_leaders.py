"""Clients of a group: they go where the leader is, and notice soon that it has gone."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import anyio.to_thread
import pytest
from click.testing import CliRunner

from tmqp.address import Address, parse_address, parse_addresses
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
from tmqp_client.cli import cli
from tmqp_client.reconnect import leader_of
from tmqp_client.sync import connect as connect_blocking
from tmqp_server import ServerConfig, running
from tmqp_spark.errors import BrokerUnreachable, StandsBy
from tmqp_spark.options import ConnectionOptions, read_options
from tmqp_spark.transport import BrokerLink, first_contact

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
        with pytest.raises(ConnectRefused, match=r"the server is a standby$") as caught:
            async with connect(address, reconnect=None):
                raise AssertionError("nobody takes clients")
    assert (caught.value.code, caught.value.node_address) == (421, "")
    again = copy.copy(ConnectRefused("a", 421, "tmq://b"))
    assert (again.node_address, str(again)) == (
        "tmq://b",
        "cannot connect to a: the server is a standby, tmq://b leads",
    )


async def test_programs_without_async_commands_and_spark_go_to_the_leader_too() -> None:
    config = ServerConfig(listen=(Address("127.0.0.1", 0),))
    async with running(config) as server:
        leader = str(server.addresses[0])
        async with standby(leader) as (address, refused):
            both = f"{address},tmq://127.0.0.1:1"

            def blocking() -> str:
                with connect_blocking(both.split(","), reconnect=None) as client:
                    return str(client.address)

            def command() -> str:
                result = CliRunner().invoke(cli, ["ping", "--address", both])
                assert result.exit_code == 0, result.output
                return leader if "pong" in result.output else result.output

            def spark() -> str:
                with BrokerLink(read_options(ConnectionOptions, {"url": both})) as link:
                    link.open()
                    link.close()
                    link.open()  # at once where it was good last
                return leader

            for way in (blocking, command, spark):
                refused.clear()
                assert await anyio.to_thread.run_sync(way) == leader
                assert refused == [1]


async def test_spark_says_that_nobody_leads() -> None:
    async with standby("") as (address, refused):
        options = {"url": address, "retries": "1", "retryBackoffMs": "1"}
        with pytest.raises(BrokerUnreachable, match="the server is a standby, no server leads"):
            await anyio.to_thread.run_sync(first_contact, read_options(ConnectionOptions, options))
        assert refused == [1, 1]
    again = copy.copy(StandsBy("u", "tmq://b"))
    assert (again.leader, str(again)) == ("tmq://b", "u: the server is a standby, tmq://b leads")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", ["tmq://a:2622"]),
        ("tmq://a:1, tmqs://b:2", ["tmq://a:1", "tmqs://b:2"]),
        ("unix:/a,b", ["unix:/a,b"]),
        ("unix:/a,unix:/b", ["unix:/a", "unix:/b"]),
    ],
)
def test_addresses_with_commas_between(text: str, found: list[str]) -> None:
    assert [str(each) for each in parse_addresses(text)] == found


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
