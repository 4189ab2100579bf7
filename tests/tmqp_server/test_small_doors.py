"""Simple MQ and goMS over real sockets, beside TMQP: one queue for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from click.testing import CliRunner

from tmqp.address import Address
from tmqp.models import QueueOptions
from tmqp_client import connect
from tmqp_server import ConfigError, Server, ServerConfig, running
from tmqp_server.__main__ import main
from tmqp_server.config import read_config

SMQ = {"protocol": "smq", "listen": ["127.0.0.1:0"]}
GOMS = {
    "protocol": "goms",
    "listen": ["127.0.0.1:0", "udp://127.0.0.1:0"],
    "options": {"topics": ["news"]},
}


def config(*doors: dict[str, Any], data: Path | None = None) -> ServerConfig:
    values = read_config({"doors": list(doors)})
    where = None if data is None else str(data)
    return ServerConfig(**{**values, "listen": (Address("127.0.0.1", 0),), "data": where})


def port_of(server: Server, protocol: str) -> int:
    """The TCP port of a door."""
    (address,) = [each for each in server.door_addresses() if each.startswith(f"{protocol}://")]
    return int(address.rpartition(":")[2])


class Lines:
    """A connection that speaks lines."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._buffer = b""

    @classmethod
    async def dial(cls, port: int) -> Lines:
        return cls(await anyio.connect_tcp("127.0.0.1", port))

    async def say(self, data: bytes) -> None:
        await self._stream.send(data)

    async def line(self) -> bytes:
        with anyio.fail_after(20):
            while b"\n" not in self._buffer:
                self._buffer += await self._stream.receive()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    async def close(self) -> None:
        await self._stream.aclose()


async def test_a_queue_is_reached_by_simple_mq_and_tmqp() -> None:
    async with running(config(SMQ)) as server:
        lines = await Lines.dial(port_of(server, "smq"))
        async with connect(str(server.addresses[0])) as client:
            await lines.say(b'M:jobs:{"id":1}\n')
            await lines.say(b"S\n")
            assert await lines.line() == b'{"jobs":1}'
            async with client.consume("jobs") as consumer:
                with anyio.fail_after(20):
                    message = await anext(aiter(consumer))
                assert message.payload == b'{"id":1}'
                await message.ack()
            await lines.say(b"C:jobs\n")
            await client.push("jobs", 0, b'{\n"id": 2\n}')
            assert await lines.line() == b'{"id":2}'
        await lines.close()


async def test_durable_queues_of_simple_mq_survive(tmp_path: Path) -> None:
    door = {**SMQ, "options": {"durable": True}}
    async with running(config(door, data=tmp_path)) as server:
        lines = await Lines.dial(port_of(server, "smq"))
        await lines.say(b"M:jobs:1\nM:jobs:2\nS\n")
        assert await lines.line() == b'{"jobs":2}'
        await lines.close()
    async with running(config(door, data=tmp_path)) as server:
        lines = await Lines.dial(port_of(server, "smq"))
        await lines.say(b"C:jobs\n")
        assert [await lines.line(), await lines.line()] == [b"1", b"2"]
        await lines.close()


async def test_a_topic_is_reached_by_goms_in_both_dialects_and_tmqp() -> None:
    async with running(config(GOMS)) as server:
        port = port_of(server, "goms")
        old, new = await Lines.dial(port), await Lines.dial(port)
        await old.say(b'{"type":"register","topics":["NEWS","nope"]}\n')
        assert json.loads(await old.line())["error-code"] == "001001"
        await new.say(b'{"messagetype":"register","topics":["news","nix"]}\n')
        assert json.loads(await new.line())["errorcode"] == "001001"
        await new.say(b'{"messagetype":"send","topics":["news"],"data":"x"}\n')
        assert await old.line() == b'{"type":"message","data":"x"}'
        async with connect(str(server.addresses[0])) as client:
            await client.push("news", 0, b"y")
            assert await old.line() == b'{"type":"message","data":"y"}'
            assert json.loads(await new.line())["data"] == "y"
        await old.close()
        await new.close()


async def test_goms_over_udp() -> None:
    async with running(config(GOMS)) as server:
        (address,) = [each for each in server.door_addresses() if "udp" in each]
        port = int(address.rpartition(":")[2])
        async with await anyio.create_connected_udp_socket("127.0.0.1", port) as sender:
            await sender.send(b'{"type":"register","topics":["news"]}')
            await sender.send(b'{"type":"send","topics":["news"],"data":"x"}')
            with anyio.fail_after(20):
                assert await sender.receive() == b'{"type":"message","data":"x"}\n'


@pytest.mark.parametrize(
    ("door", "reason"),
    [
        ({**SMQ, "options": {"durable": True}}, "need a data directory"),
        ({**SMQ, "options": {"durabel": True}}, "did you mean durable"),
        ({**SMQ, "limits": {"max_queues": 0}}, "must be positive"),
        ({**GOMS, "options": {}}, "must name the topics"),
        ({**GOMS, "options": {"topics": ["News"]}}, "lower case"),
        ({**GOMS, "options": {"topics": ["a"], "echo": "x"}}, "yes, no or dialect"),
    ],
)
async def test_doors_that_cannot_be_opened(door: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        async with running(config(door)):
            pass


def test_the_configuration_of_goms_is_converted(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_text('{"topics": ["Technology", "goms", "golang"]}')
    file = tmp_path / "server.json"
    file.write_text(
        json.dumps(
            {
                "topic-config": "path/to/topics.json",
                "connectors": [
                    {"protocoll": "tcp", "ip": "127.0.0.1", "port": 55545},
                    {"protocoll": "udp", "ip": "127.0.0.1", "port": 55546},
                ],
            }
        )
    )
    done = CliRunner().invoke(main, ["goms-config", str(file)])
    assert done.exit_code == 0, done.output
    (door,) = ServerConfig(**read_config(parse_table(done.stdout))).doors
    assert door.options == {"topics": ["technology", "goms", "golang"]}
    assert [str(each) for each in (*door.listen, *door.datagrams)] != []


def parse_table(text: str) -> dict[str, Any]:
    """The tables of a configuration file."""
    import tomllib  # noqa: PLC0415 - the only use

    return tomllib.loads(text)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "No such file"),
        ({"server.json": "{"}, "is not JSON"),
        ({"server.json": "[]"}, "must hold a JSON object"),
        ({"server.json": "{}"}, "topic-config must name"),
        ({"server.json": '{"topic-config": "t.json"}'}, "No such file"),
        (
            {"server.json": '{"topic-config": "t.json"}', "t.json": '{"topics": [1]}'},
            "a topic must",
        ),
        ({"server.json": '{"topic-config": "t.json"}', "t.json": '{"topics": []}'}, "connectors"),
        (
            {
                "server.json": '{"topic-config": "t.json", "connectors": [{"protocoll": "x"}]}',
                "t.json": '{"topics": []}',
            },
            "tcp or udp",
        ),
        (
            {
                "server.json": '{"topic-config": "t.json", "connectors": [{"port": 70000}]}',
                "t.json": '{"topics": []}',
            },
            "from 0 to 65535",
        ),
    ],
)
def test_a_configuration_that_cannot_be_converted(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = CliRunner().invoke(main, ["goms-config", str(tmp_path / "server.json")])
    assert done.exit_code == 2
    assert reason in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("door", "channel", "line"),
    [
        (SMQ, "jobs", b"M:jobs:%b\n"),
        (GOMS, "news", b'{"messagetype":"send","topics":["news"],"data":"%b"}\n'),
    ],
)
async def test_an_operator_sees_what_a_queue_refused(
    door: dict[str, Any], channel: str, line: bytes
) -> None:
    async with running(config(door)) as server:
        lines = await Lines.dial(port_of(server, door["protocol"]))
        async with connect(str(server.addresses[0])) as client:
            await client.create_queue(channel, 0, QueueOptions(message_size_limit=200))
            await lines.say(line % (b"x" * 1_000))
            with anyio.fail_after(20):
                while True:
                    queue = await client.queue_information(channel, 0)
                    if queue.refused_messages == 1:
                        break
                    await anyio.sleep(0.02)
        await lines.close()
