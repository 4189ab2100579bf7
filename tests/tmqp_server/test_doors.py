"""A server with several doors, over real sockets: their tables, their limits, who may connect.

What becomes of messages between doors is in doors/test_matrix.py, without sockets.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
import anyio.abc
import httpx
import pytest
from anyio.streams.tls import TLSStream

from tests.tmqp_server.toy_door import FIELDS, ToyKind
from tmqp.address import Address
from tmqp.constants import TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client import Client, connect
from tmqp_server import ConfigError, Server, ServerConfig, parse_config, running
from tmqp_server.access.roles import AccessConfig, parse_access
from tmqp_server.access.tokens import hash_token
from tmqp_server.config import read_config
from tmqp_server.doors.kinds import DoorKind
from tmqp_server.doors.letter import Letter, Property
from tmqp_server.doors.letter_frames import frame_of_letter, letter_of_frame
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.settings.doors import door_settings
from tmqp_server.settings.options import DeclaredChannel, DeclaredQueue

QUEUE = "/api/v1/channels/letters/queues/1"
TOY = {"protocol": "toy", "listen": ["127.0.0.1:0"]}
HTTP = {"protocol": "http", "listen": ["127.0.0.1:0"]}


def config(*doors: dict[str, Any], data: Path | None = None, **more: Any) -> ServerConfig:
    values = read_config({"doors": list(doors)})
    where = None if data is None else str(data)
    return ServerConfig(**{**values, "listen": (Address("127.0.0.1", 0),), "data": where, **more})


@asynccontextmanager
async def serving(
    *doors: dict[str, Any], data: Path | None = None, **more: Any
) -> AsyncIterator[Server]:
    async with running(config(*doors, data=data, **more), doors=[ToyKind()]) as server:
        yield server


class ToyClient:
    """Speaks the tests' protocol."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._buffer = b""

    @classmethod
    async def dial(cls, address: str, name: str = "toy") -> ToyClient:
        host, _, port = address.removeprefix("toy://").partition(":")
        client = cls(await anyio.connect_tcp(host, int(port)))
        assert (await client.ask(do="connect", id=name))["is"] == "accepted"
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stream.aclose()

    async def secure(self, context: ssl.SSLContext) -> None:
        assert not self._buffer, "nothing comes in the clear behind the answer"
        self._stream = await TLSStream.wrap(
            self._stream, hostname="localhost", ssl_context=context, standard_compatible=False
        )

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def say(self, **asked: Any) -> None:
        await self.send(json.dumps(asked).encode() + b"\n")

    async def ask(self, **asked: Any) -> dict[str, Any]:
        await self.say(**asked)
        return await self.line()

    async def line(self) -> dict[str, Any]:
        with anyio.fail_after(20):
            while b"\n" not in self._buffer:
                self._buffer += await self._stream.receive()
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found


# --- Clients -------------------------------------------------------------------------------------


def _of_headers(headers: list[tuple[str, str]], body: bytes, *, high: bool) -> Letter:
    frame = Frame.build(TYPE_QUEUE_MESSAGE, "c", 1, body, headers=headers, high_priority=high)
    return letter_of_frame(frame)


class Speaker(Protocol):
    """A client of one protocol."""

    async def push(self, name: str, letter: Letter) -> None:
        """Push a message and wait until the server has it."""

    async def take(self, count: int) -> dict[str, Letter]:
        """Take so many messages, and what they say."""


class Native:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def push(self, name: str, letter: Letter) -> None:
        high = letter.high_priority
        headers = frame_of_letter(letter, high_priority=high).headers
        await self._client.push(
            "letters", 1, letter.body, headers=headers, high_priority=high, message_id=name
        )

    async def take(self, count: int) -> dict[str, Letter]:
        await self._client.join("letters")
        ours = ("request-id", "count", "index")
        found: dict[str, Letter] = {}
        async for message in self._client.pull("letters", 1, count):
            headers = [pair for pair in message.headers if pair[0].lower() not in ours]
            letter = _of_headers(headers, message.payload, high=message.frame.high_priority)
            assert message.message_id is not None
            found[message.message_id] = letter
        return found


class Toy:
    def __init__(self, client: ToyClient) -> None:
        self._client = client

    async def push(self, name: str, letter: Letter) -> None:
        message = {field: getattr(letter, field) for field in FIELDS}
        body = base64.b64encode(letter.body).decode()
        properties = [[each.name, each.kind, each.value] for each in letter.properties]
        answer = await self._client.ask(
            do="push",
            channel="letters",
            queue=1,
            id=name,
            body=body,
            headers=letter.headers,
            properties=properties,
            **message,
        )
        assert (answer["is"], answer["positive"]) == ("confirm", True)

    async def take(self, count: int) -> dict[str, Letter]:
        assert (await self._client.ask(do="join", channel="letters"))["code"] == 0
        await self._client.say(do="pull", channel="letters", queue=1, count=count)
        found: dict[str, Letter] = {}
        while (line := await self._client.line())["is"] == "pulled":
            letter = Letter(base64.b64decode(line["body"]))
            for field in FIELDS:
                setattr(letter, field, line.get(field, getattr(letter, field)))
            letter.headers = [(key, value) for key, value in line.get("headers", [])]
            letter.properties = [Property(*each) for each in line.get("properties", [])]
            found[line["id"]] = letter
        assert line == {"is": "end", "reason": "End"}
        return found


@asynccontextmanager
async def speaking(protocol: str, server: Server) -> AsyncIterator[Speaker]:
    if protocol == "tmqp":
        async with connect(str(server.addresses[0])) as client:
            yield Native(client)
    else:
        (address,) = server.door_addresses("toy")
        async with await ToyClient.dial(address) as toy:
            yield Toy(toy)


# --- Several doors -------------------------------------------------------------------------------


async def test_two_doors_of_one_protocol_have_limits_of_their_own() -> None:
    small = {**HTTP, "limits": {"max_body_bytes": 10}}
    async with serving(HTTP, small) as server:
        async with connect(str(server.addresses[0])) as admin:
            await admin.create_queue("letters", 1, status="pull")
        large_url, small_url = server.door_addresses("http")
        assert server.web_addresses == [large_url, small_url]
        codes: list[int] = []
        for url in (large_url, small_url):
            async with httpx.AsyncClient(base_url=url) as web:
                codes.append((await web.post(f"{QUEUE}/messages", content=b"x" * 11)).status_code)
        assert codes == [201, 413]


async def test_tmqp_itself_may_have_a_second_door() -> None:
    second = {
        "protocol": "tmqp",
        "listen": ["127.0.0.1:0"],
        "limits": {"max_payload_bytes": 5_000},
    }
    async with serving(second) as server:
        (address,) = server.door_addresses()
        assert address.startswith("tmqp://127.0.0.1:")
        async with (
            connect(address.replace("tmqp", "tmq", 1)) as client,
            connect(str(server.addresses[0])) as other,
        ):
            await other.create_queue("letters", 1, status="pull")
            await client.push("letters", 1, b"x" * 100)
            await other.join("letters")
            pulled = [message async for message in other.pull("letters", 1, 1)]
            assert [message.payload for message in pulled] == [b"x" * 100]


async def test_a_live_consumer_gets_what_others_push_by_other_doors() -> None:
    async with serving(TOY) as server:
        (address,) = server.door_addresses("toy")
        async with (
            await ToyClient.dial(address) as toy,
            connect(str(server.addresses[0])) as client,
        ):
            await client.create_queue("letters", 1, QueueOptions(request_acknowledge=True))
            await toy.ask(do="join", channel="letters")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.push, "letters", 1, b"native")
                line = await toy.line()
                assert base64.b64decode(line["body"]) == b"native"
                await toy.say(do="ack", channel="letters", queue=1, id=line["id"])
            await toy.ask(do="leave", channel="letters")
            body = base64.b64encode(b"toy").decode()
            async with client.consume("letters", 1) as messages:
                await toy.say(do="push", channel="letters", queue=1, id="t1", body=body)
                async for message in messages:
                    assert (message.message_id, message.payload) == ("t1", b"toy")
                    assert message.source == "toy"
                    break
            assert (await toy.line())["positive"] is True
            found = server.broker.statistics()
            assert (found.sessions, found.in_flight, found.messages) == (2, 0, 0)


# --- Doors that are switched off, and doors that nobody knows ------------------------------------


async def _fill(data: Path, *, destroy_when_empty: bool = False) -> None:
    async with serving(TOY, data=data) as server:
        async with connect(str(server.addresses[0])) as admin:
            options = ChannelOptions(destroy_when_empty=destroy_when_empty)
            await admin.create_channel("letters", options)
            await admin.create_queue("letters", 1, QueueOptions(durable=True), status="pull")
            await admin.push("letters", 1, b"native", message_id="n1")
        async with speaking("toy", server) as speaker:
            letter = Letter(b"toy")
            letter.kind = "order"
            await speaker.push("t1", letter)
            await speaker.push("t2", letter)


async def test_what_came_by_a_door_that_is_switched_off_is_delivered(tmp_path: Path) -> None:
    await _fill(tmp_path)
    async with serving(data=tmp_path) as server:
        assert server.door_addresses() == []
        async with speaking("tmqp", server) as speaker:
            found = await speaker.take(5)
    assert [(name, each.body, each.kind) for name, each in found.items()] == [
        ("n1", b"native", ""),
        ("t1", b"toy", "order"),
        ("t2", b"toy", "order"),
    ]


async def test_what_came_by_an_unknown_door_is_kept_counted_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # The queue is destroyed when it is empty; it must not take them along.
    await _fill(tmp_path, destroy_when_empty=True)
    expected = ["n1"]
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.ERROR, "tmqp_server.storage"):
            async with running(config(data=tmp_path)) as server:
                async with connect(str(server.addresses[0])) as client:
                    await client.join("letters")
                    pulled = [each async for each in client.pull("letters", 1, 5)]
                    for each in pulled:
                        await each.ack()
                assert server.broker.statistics().withheld == 2
        said = [record.getMessage() for record in caplog.records]
        assert len(said) == 1
        assert "2 messages of queue" in said[0]
        assert "number 250" in said[0]
        assert [each.message_id for each in pulled] == expected
        expected = []
    async with serving(TOY, data=tmp_path) as server:
        assert server.broker.statistics().withheld == 0
        async with speaking("toy", server) as speaker:
            found = await speaker.take(5)
    assert [(name, each.body, each.kind) for name, each in found.items()] == [
        ("t1", b"toy", "order"),
        ("t2", b"toy", "order"),
    ]


# --- Who clients are -----------------------------------------------------------------------------


def _access() -> AccessConfig:
    may_push = {"rights": ["push"], "channels": ["letters", "Exact"]}
    token = {"name": "machines", "token": hash_token("open sesame"), "roles": ["producer"]}
    node = {"name": "node", "token": hash_token("node"), "roles": ["admin"], "node": True}
    return parse_access({"roles": {"producer": may_push}, "tokens": [token, node]})


async def test_clients_without_credentials_are_whom_the_door_names() -> None:
    channel = DeclaredChannel("letters", ChannelChanges(), (DeclaredQueue(1, QueueChanges()),))
    more: dict[str, Any] = {"access": _access(), "channels": (channel,)}
    async with serving({**TOY, "as": "machines"}, TOY, **more) as server:
        named, nameless = server.door_addresses("toy")
        async with await ToyClient.dial(named) as toy:
            push = {"do": "push", "queue": 1, "body": "", "confirm": False}
            # Names differ by case there; rights see them as people write them.
            for at, name in enumerate(("letters", "other", "Exact", "exact")):
                await toy.say(**push, channel=name, id=f"m{at}")
            await toy.say(do="join", channel="letters")
            lines = [await toy.line() for _ in range(2)]
            assert [(line["to"], line["code"]) for line in lines] == [("push", 401), ("join", 401)]
        async with ToyClient(await anyio.connect_tcp(*_host_and_port(nameless))) as client:
            assert await client.ask(do="connect", id="nobody") == {"is": "refused", "code": 401}
        found = {queue.channel_name: queue.live() for queue in server.broker.queues()}
        assert found == {"letters": 1, "Exact": 1, "%65xact": 1}


async def test_a_door_refuses_networks_that_it_does_not_allow() -> None:
    near, far = {**TOY, "allow": ["127.0.0.0/8", "::1"]}, {**TOY, "allow": ["10.0.0.0/8"]}
    async with serving(near, far) as server:
        allowed, refused = server.door_addresses("toy")
        async with await ToyClient.dial(allowed):
            pass
        async with await anyio.connect_tcp(*_host_and_port(refused)) as stream:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("toy://").partition(":")
    return host, int(port)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("[::ffff:10.1.2.3]", True),
        ("11.1.2.3", False),
        ("fe80::1%eth0", True),
        ("::1", False),
        ("", True),
    ],
)
def test_which_hosts_a_door_allows(host: str, allowed: bool) -> None:
    table = {"protocol": "toy", "allow": ["10.0.0.0/8", "fe80::/10"]}
    (settings,) = door_settings([table])
    assert settings.allows(host) is allowed


@pytest.mark.parametrize(
    ("door", "access", "reason"),
    [
        ({"as": "machines"}, False, "no meaning without"),
        ({"as": "nobody"}, True, "names no entry"),
        ({"as": "node"}, True, "cannot be nodes"),
        ({"as": "machines", "listen": ["0.0.0.0:0"]}, True, "list networks in allow"),
        ({"as": ""}, True, "must be a string"),
        ({"allow": ["10.0.0.1/8"]}, True, "not a network"),
        ({"allow": "10.0.0.1/8"}, True, "list of strings"),
    ],
)
def test_mistakes_about_clients(door: dict[str, Any], access: bool, reason: str) -> None:
    more: dict[str, Any] = {"access": _access()} if access else {}
    with pytest.raises(ConfigError, match=reason):
        config({"protocol": "toy", **door}, **more)


# --- Mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[[doors]]\nlisten = "127.0.0.1:0"', "protocol is missing"),
        ('[[doors]]\nprotocol = "toy"\nport = 1', "unknown key doors.port"),
        ('[[doors]]\nprotocol = ""', "must be a string"),
        ('[[doors]]\nprotocol = "toy"\nlisten = [1]', "an address must be a string"),
        ('[[doors]]\nprotocol = "toy"\nlisten = 1', "must be a list of addresses"),
        ('[[doors]]\nprotocol = "toy"\nlisten = "tmq://a:1"', "HOST:PORT"),
        ('[[doors]]\nprotocol = "toy"\nlisten = "127.0.0.1"', "HOST:PORT"),
        ('[[doors]]\nprotocol = "toy"\nlisten = "127.0.0.1:99999"', "port"),
        ('[[doors]]\nprotocol = "toy"\nlisten = "unix:/s"\ntls = true', "takes no tls"),
        ('[[doors]]\nprotocol = "toy"\ntls = true', "tls needs a certificate"),
        ('[[doors]]\nprotocol = "toy"\ntls = 1', "true or false"),
        ('[[doors]]\nprotocol = "toy"\nlisten = "0.0.0.0:0"', "allow_remote"),
        ('[[doors]]\nprotocol = "toy"\nlimits = 1', "must be a table"),
        ("[doors]\n", "list of tables"),
    ],
)
def test_mistakes_in_the_tables(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ServerConfig(**parse_config(text))


class _Copy(ToyKind):
    name = "copy"


class _Nameless(DoorKind):
    number = 5


@pytest.mark.parametrize(
    ("door", "kinds", "reason"),
    [
        ({"protocol": "amqp"}, [], "there is no door 'amqp'; the doors are tmqp, http"),
        ({**TOY, "limits": {"x": 1}}, [ToyKind()], "doors: toy: it has no limits"),
        ({**HTTP, "limits": {"max_bodi_bytes": 1}}, [], "did you mean max_body_bytes"),
        ({**HTTP, "limits": {"max_body_bytes": 1.5}}, [], "must be a whole number"),
        ({**HTTP, "limits": {"idle_timeout_s": "x"}}, [], "must be a number"),
        ({**HTTP, "limits": {"max_body_bytes": 0}}, [], "doors: http"),
        ({"protocol": "tmqp", "limits": {"max_payload_bytes": 0}}, [], "doors: tmqp"),
        ({**HTTP, "options": {"speed": 1}}, [], "doors: http: .* no options, such as 'speed'"),
        ({"protocol": "tmqp", "options": {"x": 1}}, [], "doors: tmqp: .* no options"),
        (TOY, [ToyKind(), ToyKind()], "the door 'toy' exists already"),
        (TOY, [ToyKind(), _Copy()], "'toy' and 'copy' have one number, 250"),
        (TOY, [_Nameless()], "needs a name"),
    ],
)
async def test_doors_that_cannot_be_opened(
    door: dict[str, Any], kinds: list[DoorKind], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        async with running(config(door), doors=kinds):
            pass
