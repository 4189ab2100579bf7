"""The doors of other protocols, as servers that are killed have them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.abc
import httpx

from tests.tmqp_server.killed_jms import (
    OpenwireDoor,
    OpenwireMovingDoor,
    OpenwireTopicDoor,
    StompDoor,
    StompTopicDoor,
)
from tests.tmqp_server.killing import END, ForeignDoor, KilledDoor, Process, Speaker
from tmqp.models import QueueOptions
from tmqp_client import Client, connect
from tmqp_wires.goms import Dialect
from tmqp_wires.goms.codec import request_line
from tmqp_wires.nsq import ClientConnection, writing
from tmqp_wires.nsq.events import Event, MessageReceived, ResponseReceived
from tmqp_wires.smq.codec import consume_line, done_line, publish_line
from tmqp_wires.throttr import Request
from tmqp_wires.throttr.requests import encode_request
from tmqp_wires.throttr.words import PUBLISH
from tmqp_wires.zmtp.frames import command_frame, message_frames, metadata_bytes

__all__ = ["FOREIGN"]


class _Web:
    """Speaks HTTP."""

    together = False

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def push(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            answer = await self._client.post("/messages", content=payload)
            assert answer.status_code == 201, answer.text

    async def take(self) -> list[bytes]:
        answer = await self._client.post("/deliveries", params={"max": 100, "wait": 10})
        return [item["text"].encode() for item in answer.json()["items"]]


class HttpDoor(ForeignDoor):
    """HTTP: 201 is the confirm."""

    name = "http"
    confirmed = 50
    table = '[[doors]]\nprotocol = "http"\nlisten = ["unix:{folder}/door"]\n'

    async def prepare(self, process: Process) -> None:
        async with connect(process.address, reconnect=None) as client:
            await client.create_queue("c", 1, QueueOptions(durable=True), status="pull")

    @asynccontextmanager
    async def speaking(self, process: Process) -> AsyncIterator[Speaker]:
        transport = httpx.AsyncHTTPTransport(uds=f"{process.folder}/door")
        url = "http://localhost/api/v1/channels/c/queues/1"
        async with httpx.AsyncClient(transport=transport, base_url=url) as client:
            yield _Web(client)


class _Nsq:
    """Speaks NSQ's TCP protocol."""

    together = False

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._connection = ClientConnection({})
        self._consumes = False

    async def _ask(self, *commands: bytes) -> list[Event]:
        for command in commands:
            self._connection.send(command)
        events: list[Event] = []
        while not events:
            if data := self._connection.data_to_send():
                await self._stream.send(data)
            events += self._connection.receive(await self._stream.receive())
        return events

    async def push(self, payloads: list[bytes]) -> None:
        one = len(payloads) == 1
        command = writing.pub(b"t", payloads[0]) if one else writing.mpub(b"t", payloads)
        assert await self._ask(command) == [ResponseReceived(b"OK")]

    async def subscribe(self) -> None:
        """Consume the channel, which is made if there is none."""
        assert await self._ask(writing.sub(b"t", b"c")) == [ResponseReceived(b"OK")]

    async def take(self) -> list[bytes]:
        if not self._consumes:
            self._consumes = True
            await self.subscribe()
            self._connection.send(writing.rdy(100))
        found: list[bytes] = []
        for event in await self._ask():
            assert isinstance(event, MessageReceived), event
            found.append(event.body)
            self._connection.send(writing.fin(event.message_id))
        await self._stream.send(self._connection.data_to_send())
        return found


class NsqDoor(ForeignDoor):
    """NSQ: OK is the confirm."""

    name = "nsq"
    table = '[[doors]]\nprotocol = "nsq"\nlisten = ["unix:{folder}/door"]\n'

    async def prepare(self, process: Process) -> None:
        async with self.speaking(process) as speaker:
            await speaker.subscribe()

    @asynccontextmanager
    async def speaking(self, process: Process) -> AsyncIterator[_Nsq]:
        async with await anyio.connect_unix(f"{process.folder}/door") as stream:
            yield _Nsq(stream)


class _NsqWeb(_Nsq):
    """Publishes by nsqd's HTTP, and consumes by its TCP protocol."""

    def __init__(self, stream: anyio.abc.ByteStream, client: httpx.AsyncClient) -> None:
        super().__init__(stream)
        self._client = client

    async def push(self, payloads: list[bytes]) -> None:
        body = b"\n".join(payloads)
        answer = await self._client.post("/mpub", params={"topic": "t"}, content=body)
        assert (answer.status_code, answer.text) == (200, "OK")


class NsqHttpDoor(NsqDoor):
    """nsqd's HTTP: its OK is the confirm."""

    name = "nsqd-http"
    table = NsqDoor.table + '[[doors]]\nprotocol = "nsqd-http"\nlisten = ["unix:{folder}/web"]\n'

    @asynccontextmanager
    async def speaking(self, process: Process) -> AsyncIterator[_Nsq]:
        transport = httpx.AsyncHTTPTransport(uds=f"{process.folder}/web")
        async with (
            super().speaking(process) as inner,
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            yield _NsqWeb(inner._stream, client)


class _Lines:
    """Speaks a protocol of lines that confirms nothing: what the queue says that it has saved is
    confirmed."""

    together = False

    def __init__(self, stream: anyio.abc.ByteStream, client: Client) -> None:
        self._stream = stream
        self._client = client
        self._sent = -1

    def line(self, payload: bytes) -> bytes:
        """The line that sends a message."""
        raise NotImplementedError

    async def push(self, payloads: list[bytes]) -> None:
        if self._sent < 0:
            self._sent = await self._saved()
        self._sent += len(payloads)
        await self._stream.send(b"".join([self.line(payload) for payload in payloads]))
        found = await self._saved()
        while found < self._sent:
            found = await self._saved()
        assert found == self._sent, "nobody else pushes"

    async def _saved(self) -> int:
        return (await self._client.queue_information("c", 0)).saved_messages

    async def take(self) -> list[bytes]:
        raise NotImplementedError


class _SmqLines(_Lines):
    """Speaks Simple MQ."""

    consumes = False

    def line(self, payload: bytes) -> bytes:
        return publish_line(b"c", payload)

    async def take(self) -> list[bytes]:
        if not self.consumes:
            self.consumes = True
            await self._stream.send(consume_line(b"c"))
        data = await self._stream.receive()
        while not data.endswith(b"\n"):
            data += await self._stream.receive()
        found = data.splitlines()
        await self._stream.send(done_line(b"c", len(found)))
        return found


class _GomsLines(_Lines):
    """Sends by goMS, and takes by TMQP: consumers of goMS answer for nothing."""

    def line(self, payload: bytes) -> bytes:
        return request_line(Dialect.MESSAGETYPE, "send", ["c"], payload.decode())

    async def take(self) -> list[bytes]:
        async with self._client.consume("c", 0) as messages:
            found: list[bytes] = []
            async for message in messages:
                found.append(message.payload)
                if message.payload == END:
                    break
        return found


class _ZmtpLines(_GomsLines):
    """Sends as a PUSH socket does, and takes by TMQP: PULL sockets answer for nothing."""

    _begun = False

    def line(self, payload: bytes) -> bytes:
        data = message_frames((payload,))
        if not self._begun:
            self._begun = True
            data = _HELLO_OF_PUSH + data
        return data


#: What a PUSH socket says first.
_HELLO_OF_PUSH: Final = b"".join(
    (
        b"\xff" + bytes(8) + b"\x7f\x03\x01",
        b"NULL".ljust(52, b"\0"),
        command_frame(b"READY", metadata_bytes([("Socket-Type", b"PUSH")])),
    )
)


class _ThrottrLines(_GomsLines):
    """Publishes by Throttr, and takes by TMQP: subscribers of Throttr answer for nothing."""

    def line(self, payload: bytes) -> bytes:
        return encode_request(Request(PUBLISH, b"c", payload), _VALUE_BYTES)


#: The size of numbers that the door of Throttr has by itself.
_VALUE_BYTES: Final = 2


class _LineDoor(ForeignDoor):
    """A door whose protocol confirms nothing."""

    #: One connection, so that what the queue has saved is the beginning of what was sent.
    connections = 1

    def lines(self, stream: anyio.abc.ByteStream, client: Client) -> _Lines:
        """The client's side of a connection."""
        raise NotImplementedError

    async def prepare(self, process: Process) -> None:
        async with connect(process.address, reconnect=None) as client:
            await client.create_queue("c", 0, QueueOptions(durable=True), status="push")

    @asynccontextmanager
    async def speaking(self, process: Process) -> AsyncIterator[Speaker]:
        async with (
            connect(process.address, reconnect=None) as client,
            await anyio.connect_unix(f"{process.folder}/door") as stream,
        ):
            yield self.lines(stream, client)


class SmqDoor(_LineDoor):
    """Simple MQ, whose queues may be durable."""

    name = "smq"
    table = (
        '[[doors]]\nprotocol = "smq"\nlisten = ["unix:{folder}/door"]\n'
        "options = {{ durable = true }}\n"
    )

    def lines(self, stream: anyio.abc.ByteStream, client: Client) -> _Lines:
        return _SmqLines(stream, client)


class GomsDoor(_LineDoor):
    """goMS, into a queue that was made durable for it."""

    name = "goms"
    table = (
        '[[doors]]\nprotocol = "goms"\nlisten = ["unix:{folder}/door"]\n'
        'options = {{ topics = ["c"] }}\n'
    )

    def lines(self, stream: anyio.abc.ByteStream, client: Client) -> _Lines:
        return _GomsLines(stream, client)


class ZmtpDoor(_LineDoor):
    """ZeroMQ, into a queue that was made durable for it."""

    name = "zmtp"
    table = (
        '[[doors]]\nprotocol = "zmtp"\nlisten = ["unix:{folder}/door"]\n'
        'options = {{ queue_channel = "c" }}\n'
    )

    def lines(self, stream: anyio.abc.ByteStream, client: Client) -> _Lines:
        return _ZmtpLines(stream, client)


class ThrottrDoor(_LineDoor):
    """Throttr, into a queue that was made durable for it; keys are in memory only."""

    name = "throttr"
    table = '[[doors]]\nprotocol = "throttr"\nlisten = ["unix:{folder}/door"]\n'

    def lines(self, stream: anyio.abc.ByteStream, client: Client) -> _Lines:
        return _ThrottrLines(stream, client)


#: Every door but TMQP's own.
FOREIGN: Final[tuple[KilledDoor, ...]] = (
    HttpDoor(),
    NsqDoor(),
    NsqHttpDoor(),
    SmqDoor(),
    GomsDoor(),
    ZmtpDoor(),
    ThrottrDoor(),
    StompDoor(),
    StompTopicDoor(),
    OpenwireDoor(),
    OpenwireTopicDoor(),
    OpenwireMovingDoor(),
)
