"""NSQ's door over real sockets: between all doors, over restarts, with the makers' own client."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import anyio.to_thread
import httpx
import pytest
from anyio.streams.tls import TLSStream

from tests.certificates import make_certificate
from tests.interop.nsq.clients import CLIENTS
from tests.interop.nsq.talking import talking
from tests.tmqp_server.test_doors import HTTP, TOY, ToyClient, serving
from tmqp.models import QueueOptions
from tmqp_client import connect
from tmqp_server import Server
from tmqp_server.access.roles import parse_access
from tmqp_server.settings.tls import TlsSettings
from tmqp_wires.nsq import ClientConnection, writing
from tmqp_wires.nsq.events import ErrorReceived, Event, MessageReceived, ResponseReceived

NSQ: Final = {"protocol": "nsq", "listen": ["127.0.0.1:0"]}


def trusting_all() -> ssl.SSLContext:
    """A client's TLS that takes any certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class NsqClient:
    """A client of NSQ over a socket."""

    def __init__(
        self,
        stream: anyio.abc.ByteStream,
        fields: Mapping[str, object],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._stream = stream
        self._tls = tls
        self.connection = ClientConnection(fields)
        self._events: list[Event] = []

    async def ask(self, *commands: bytes) -> Event:
        """Send commands, and wait for what comes next."""
        for command in commands:
            self.connection.send(command)
        return await self.next()

    async def next(self) -> Event:
        """What the server says next."""
        with anyio.fail_after(20):
            while not self._events:
                if data := self.connection.data_to_send():
                    await self._stream.send(data)
                self._events += self.connection.receive(await self._stream.receive())
                if self.connection.wants_tls:
                    self._stream = await TLSStream.wrap(
                        self._stream,
                        hostname="localhost",
                        ssl_context=self._tls or trusting_all(),
                        server_side=False,
                    )
                    self.connection.secured()
                if data := self.connection.data_to_send():
                    await self._stream.send(data)
        return self._events.pop(0)

    async def messages(self, count: int) -> list[tuple[int, bytes]]:
        """So many messages, each of which is finished: attempts and bodies."""
        found: list[tuple[int, bytes]] = []
        while len(found) < count:
            event = await self.next()
            assert isinstance(event, MessageReceived), event
            found.append((event.attempts, event.body))
            self.connection.send(writing.fin(event.message_id))
        await self._stream.send(self.connection.data_to_send())
        return found


@asynccontextmanager
async def nsq(server: Server, **fields: object) -> AsyncIterator[NsqClient]:
    host, _, port = server.door_addresses("nsq")[0].removeprefix("nsq://").partition(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        yield NsqClient(stream, fields)


async def publish_by_every_door(server: Server) -> list[bytes]:
    """One message by each, into the topic ``letters``."""
    async with connect(str(server.addresses[0])) as client:
        await client.push("letters", 0, b"by tmqp", headers=[("Mine", "1")], wait=True)
    (url,) = server.door_addresses("http")
    async with httpx.AsyncClient(base_url=url) as web:
        answer = await web.post("/api/v1/channels/letters/queues/0/messages", content=b"by http")
        assert answer.status_code == 201
    (address,) = server.door_addresses("toy")
    async with await ToyClient.dial(address) as toy:
        body = base64.b64encode(b"by toy").decode()
        confirm = await toy.ask(do="push", channel="letters", queue=0, id="t1", body=body)
        assert confirm["positive"]
    async with nsq(server) as client:
        for command in (
            writing.pub(b"letters", b"by nsq"),
            writing.mpub(b"letters", [b"by nsq 1", b"by nsq 2"]),
        ):
            assert await client.ask(command) == ResponseReceived(b"OK")
    return [b"by tmqp", b"by http", b"by toy", b"by nsq", b"by nsq 1", b"by nsq 2"]


@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "after a restart"])
async def test_messages_of_every_door_reach_clients_of_nsq(restarts: bool, tmp_path: Path) -> None:
    doors = (HTTP, TOY, NSQ)
    async with serving(*doors, data=tmp_path) as server:
        for channel in (b"c", b"d"):
            async with nsq(server) as client:
                assert await client.ask(writing.sub(b"letters", channel)) == ResponseReceived(b"OK")
        bodies = await publish_by_every_door(server)
        async with nsq(server) as client:
            assert await client.ask(writing.sub(b"letters", b"c")) == ResponseReceived(b"OK")
            event = await client.ask(writing.rdy(1))
            assert isinstance(event, MessageReceived)
            assert event.body == bodies[0]  # it stays unanswered, and comes again
        if not restarts:
            async with nsq(server) as client:
                await client.ask(writing.sub(b"letters", b"c"))
                client.connection.send(writing.rdy(100))
                expected = [(2, bodies[0]), *[(1, body) for body in bodies[1:]]]
                assert await client.messages(len(bodies)) == expected
            return
    async with serving(*doors, data=tmp_path) as server:
        for channel in (b"c", b"d"):
            async with nsq(server) as client:
                await client.ask(writing.sub(b"letters", channel))
                client.connection.send(writing.rdy(100))
                got = await client.messages(len(bodies))
                assert [body for _, body in got] == bodies
                assert got[0][0] == (2 if channel == b"c" else 1)


@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "after a restart"])
async def test_messages_of_nsq_reach_clients_of_every_door(restarts: bool, tmp_path: Path) -> None:
    async with serving(HTTP, TOY, NSQ, data=tmp_path) as server:
        async with connect(str(server.addresses[0])) as admin:
            await admin.create_queue("letters", 0, QueueOptions(durable=True), status="pull")
        async with nsq(server) as client:
            command = writing.mpub(b"letters", [b"one", b"two", b"three"])
            assert await client.ask(command) == ResponseReceived(b"OK")
        if not restarts:
            await take_by_every_other_door(server)
    if restarts:
        async with serving(HTTP, TOY, NSQ, data=tmp_path) as server:
            await take_by_every_other_door(server)


async def take_by_every_other_door(server: Server) -> None:
    (url,) = server.door_addresses("http")
    async with httpx.AsyncClient(base_url=url) as web:
        target = "/api/v1/channels/letters/queues/0/deliveries"
        answer = await web.post(target, params={"max": 1, "wait": 10})
        (item,) = answer.json()["items"]
        assert item.get("text") == "one" or base64.b64decode(item["base64"]) == b"one"
        assert len(item["id"]) == 16
    (address,) = server.door_addresses("toy")
    async with await ToyClient.dial(address) as toy:
        await toy.ask(do="join", channel="letters")
        line = await toy.ask(do="pull", channel="letters", queue=0, count=1)
        assert base64.b64decode(line["body"]) == b"two"
        assert line["timestamp_ms"] > 1_700_000_000_000
    async with connect(str(server.addresses[0])) as client:
        await client.join("letters")
        async for message in client.pull("letters", 0, 1):
            assert message.payload == b"three"


async def test_what_is_deferred_waits_over_a_restart(tmp_path: Path) -> None:
    """The original sends it at once then (N102)."""
    async with serving(NSQ, data=tmp_path) as server, nsq(server) as client:
        await client.ask(writing.sub(b"t", b"c"))
        delayed = writing.dpub(b"t", 1_500, b"later")
        assert await client.ask(delayed) == ResponseReceived(b"OK")
    async with serving(NSQ, data=tmp_path) as server, nsq(server) as client:
        await client.ask(writing.sub(b"t", b"c"))
        begun = anyio.current_time()
        await client.ask(writing.pub(b"t", b"now"))
        client.connection.send(writing.rdy(9))
        assert await client.messages(1) == [(1, b"now")]
        assert await client.messages(1) == [(1, b"later")]
        assert anyio.current_time() - begun > 0.2


async def test_without_a_token_nobody_gets_in(tmp_path: Path) -> None:
    door = {**NSQ, "options": {"auth_required": True}}
    async with serving(door, access=access()) as server, nsq(server) as client:
        event = await client.ask(writing.pub(b"t", b"x"))
        assert event == ErrorReceived(b"E_AUTH_FIRST", b"AUTH required before PUB")


def access() -> Any:
    role = {"rights": ["push", "join", "create-channel", "create-queue", "feed"], "channels": ["*"]}
    token = {"name": "machines", "token": "open sesame", "roles": ["machine"]}
    return parse_access({"roles": {"machine": role}, "tokens": [token]})


@pytest.mark.cold
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("compression", "secret"), [("snappy", ""), ("deflate", "open sesame")])
async def test_the_makers_own_client_works_as_ever(
    compression: str, secret: str, tmp_path: Path, anyio_backend: str
) -> None:
    """Over TLS, or with the token of an entry of ``[access]``; `make interop` runs all clients."""
    more: dict[str, Any] = {}
    options: dict[str, Any] = {"msg_timeout_ms": 1_000}
    given = {"lookupd": [], "ca": "", "compression": compression, "auth": secret}
    if secret:
        options["auth_required"] = True
        more["access"] = access()
    else:
        key, certificate = make_certificate(tmp_path)
        more["tls"] = TlsSettings(certificate=str(certificate), key=str(key))
        given["ca"] = str(certificate)
    words, folder = next(each for each in CLIENTS if each.name == "pynsq").command()
    wanted = [("again", 1), ("again", 2), ("fine", 1), ("forgotten", 1), ("forgotten", 2)]
    wanted += [("later", 1), ("slow", 1)]

    def play(address: str) -> None:
        command = [*words, json.dumps({**given, "nsqd": [address]})]
        with talking(command, folder, tmp_path / "client.log") as talk:
            talk.consume("t", "c")
            talk.do(do="defer", topic="t", bodies=["later"], ms=300)
            talk.publish("t", "fine")
            talk.publish("t", "again", "slow", "forgotten")
            talk.until(lambda: len(talk.messages) >= len(wanted))
            assert sorted(talk.messages) == wanted

    async with serving({**NSQ, "options": options}, **more) as server:
        address = server.door_addresses("nsq")[0].removeprefix("nsq://")
        await anyio.to_thread.run_sync(play, address)
