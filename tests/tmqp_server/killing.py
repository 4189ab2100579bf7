"""Servers that are killed without warning while they are busy, again and again, at any door.

Each cycle clients keep a server busy until enough messages are confirmed, then its process is
killed.  The next one must have everything that was confirmed and not answered for, and nothing
that nobody has pushed.  :class:`KilledDoor` says how the clients of a protocol do that.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import anyio
import anyio.abc
import httpx

from tmqp.models import QueueOptions
from tmqp_client import Client, ClientError, OperationError, connect
from tmqp_wires.goms import Dialect
from tmqp_wires.goms.codec import request_line
from tmqp_wires.nsq import ClientConnection, writing
from tmqp_wires.nsq.events import Event, MessageReceived, ResponseReceived
from tmqp_wires.smq.codec import consume_line, done_line, publish_line
from tmqp_wires.stomp import ClientConnection as StompConnection
from tmqp_wires.stomp import StompFrame
from tmqp_wires.zmtp.frames import command_frame, message_frames, metadata_bytes

__all__ = [
    "FOREIGN",
    "KilledDoor",
    "Ledger",
    "Process",
    "Speaker",
    "kill_again_and_again",
]

#: What is pushed last, so that whoever takes everything knows the end.
END: Final = b"0"
#: What clients find when a server is killed.
GONE: Final = (
    ClientError,
    OperationError,
    OSError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    httpx.HTTPError,
)
#: Messages that are pushed at once.
PORTION: Final = 20


class Ledger:
    """What the clients know."""

    def __init__(self) -> None:
        self.next = 1
        self.confirmed: set[int] = set()
        self.seen: set[int] = set()
        self.repeated = 0

    def take(self, count: int) -> list[int]:
        """Numbers for further messages."""
        self.next += count
        return list(range(self.next - count, self.next))

    def receive(self, payload: bytes) -> bool:
        """Note a message that came; whether it came before."""
        number = int(payload)
        assert 0 < number < self.next, "invented"
        repeated = number in self.seen
        self.repeated += repeated
        self.seen.add(number)
        return repeated

    def check(self) -> None:
        """All that was confirmed has come."""
        lost = self.confirmed - self.seen
        assert not lost, f"{len(lost)} confirmed messages are lost: {sorted(lost)[:10]}"


class Process:
    """A server process; ``options`` are further words of its command.

    TMQP is spoken at ``socket`` in its folder, whatever else it listens to.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.address = f"unix:{folder}/socket"
        command = [sys.executable, "-m", "tmqp_server", "-l", self.address]
        command += ["--data", str(folder / "data"), "--log-level", "error", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert " ready on " in ready, ready

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()


class KilledDoor:
    """How the clients of one protocol keep a server busy, and take what is there afterwards."""

    name = "tmqp"
    #: Its table of the configuration, ``{folder}`` for where its sockets are; empty for none.
    table = ""
    #: So many messages must be confirmed in each life.
    confirmed = 100

    def start(self, folder: Path) -> Process:
        """A server with this door."""
        if not self.table:
            return Process(folder)
        file = folder / "server.toml"
        file.write_text(self.table.format(folder=folder))
        return Process(folder, "--config", str(file))

    async def prepare(self, process: Process) -> None:
        """Make what the messages go into."""
        raise NotImplementedError

    async def work(
        self, process: Process, ledger: Ledger, enough: anyio.Event, chance: random.Random
    ) -> None:
        """Push, and perhaps consume, until the server is gone."""
        raise NotImplementedError

    async def drain(self, process: Process, ledger: Ledger) -> None:
        """Take everything there is."""
        raise NotImplementedError


async def _cycle(door: KilledDoor, process: Process, ledger: Ledger, chance: random.Random) -> None:
    """Keep the server busy, and kill it in the middle."""
    enough = anyio.Event()

    async def busy() -> None:
        try:
            await door.work(process, ledger, enough, chance)
        except* GONE:
            pass
        assert enough.is_set(), "the clients ended before the server did"

    with anyio.fail_after(60):
        async with anyio.create_task_group() as work:
            work.start_soon(busy)
            await enough.wait()
            await anyio.sleep(chance.random() * 0.05)
            process.kill()


async def kill_again_and_again(door: KilledDoor, folder: Path, cycles: int, seed: int) -> str:
    """So many cycles; what happened, in a line."""
    chance = random.Random(seed)
    ledger = Ledger()
    process = door.start(folder)
    began = time.monotonic()
    try:
        await door.prepare(process)
        for _ in range(cycles):
            await _cycle(door, process, ledger, chance)
            process = door.start(folder)
            with anyio.fail_after(60):
                await door.drain(process, ledger)
            ledger.check()
    finally:
        process.kill()
    return (
        f"{door.name}: {cycles} kills in {time.monotonic() - began:.0f} s:"
        f" {len(ledger.confirmed)} confirmed, {ledger.next - 1} pushed, {len(ledger.seen)} seen,"
        f" {ledger.repeated} of them again, 0 lost"
    )


# --- Doors of other protocols --------------------------------------------------------------------


class Speaker(Protocol):
    """A connection."""

    async def push(self, payloads: list[bytes]) -> None:
        """Push messages; they are confirmed when this returns."""

    async def take(self) -> list[bytes]:
        """Take and answer for some messages, one at least."""


class _Foreign(KilledDoor):
    """A door whose clients push a portion after the other, and consume after a kill only."""

    connections = 4

    def speaking(self, process: Process) -> object:
        """A connection, as a context manager."""
        raise NotImplementedError

    async def work(
        self, process: Process, ledger: Ledger, enough: anyio.Event, chance: random.Random
    ) -> None:
        start = len(ledger.confirmed)

        async def one() -> None:
            async with self.speaking(process) as speaker:  # type: ignore[attr-defined]
                while True:
                    numbers = ledger.take(chance.randint(1, PORTION))
                    await speaker.push([b"%d" % number for number in numbers])
                    ledger.confirmed.update(numbers)
                    if len(ledger.confirmed) >= start + self.confirmed:
                        enough.set()

        async with anyio.create_task_group() as tasks:
            for _ in range(self.connections):
                tasks.start_soon(one)

    async def drain(self, process: Process, ledger: Ledger) -> None:
        async with self.speaking(process) as speaker:  # type: ignore[attr-defined]
            await speaker.push([END])
            while True:
                for payload in await speaker.take():
                    if payload == END:
                        return
                    ledger.receive(payload)


class _Web:
    """Speaks HTTP."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def push(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            answer = await self._client.post("/messages", content=payload)
            assert answer.status_code == 201, answer.text

    async def take(self) -> list[bytes]:
        answer = await self._client.post("/deliveries", params={"max": 100, "wait": 10})
        return [item["text"].encode() for item in answer.json()["items"]]


class HttpDoor(_Foreign):
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


class NsqDoor(_Foreign):
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


class _LineDoor(_Foreign):
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


class _Stomp:
    """Speaks STOMP: a receipt is the confirm."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._stomp = StompConnection()
        self._sent = 0
        self._consumes = False

    async def flush(self) -> None:
        """Send what is queued."""
        await self._stream.send(self._stomp.data_to_send())

    async def _hear(self) -> list[StompFrame]:
        """One frame at least."""
        frames: list[StompFrame] = []
        while not frames:
            for event in self._stomp.receive(await self._stream.receive(), 0.0):
                assert isinstance(event, StompFrame), event
                assert event.command != "ERROR", event
                frames.append(event)
        return frames

    async def begin(self) -> None:
        """Be let in."""
        self._stomp.send_connect()
        await self.flush()
        (answer,) = await self._hear()
        assert answer.command == "CONNECTED"

    async def push(self, payloads: list[bytes]) -> None:
        """Half of the portions in a transaction, whose COMMIT has the receipt."""
        self._sent += 1
        name = str(self._sent)
        together = self._sent % 2 == 0
        more = [("transaction", name)] if together else [("receipt", name)]
        if together:
            self._stomp.send("BEGIN", [("transaction", name)])
        for payload in payloads:
            self._stomp.send("SEND", [("destination", "/queue/c"), *more], payload)
        if together:
            self._stomp.send("COMMIT", [("transaction", name), ("receipt", name)])
        await self.flush()
        missing = 1 if together else len(payloads)
        while missing:
            frames = await self._hear()
            assert all(each.command == "RECEIPT" for each in frames), frames
            missing -= len(frames)
        assert missing == 0

    async def take(self) -> list[bytes]:
        if not self._consumes:
            self._consumes = True
            headers = [("id", "1"), ("destination", "/queue/c"), ("ack", "client")]
            self._stomp.send("SUBSCRIBE", headers)
            await self.flush()
        frames = await self._hear()
        self._stomp.send("ACK", [("id", frames[-1].get("ack"))])
        await self.flush()
        return [each.body for each in frames]


class StompDoor(_Foreign):
    """STOMP, whose queues are durable by themselves."""

    name = "stomp"
    table = '[[doors]]\nprotocol = "stomp"\nlisten = ["unix:{folder}/door"]\n'

    async def prepare(self, process: Process) -> None:
        """The first SEND makes the queue."""

    @asynccontextmanager
    async def speaking(self, process: Process) -> AsyncIterator[Speaker]:
        async with await anyio.connect_unix(f"{process.folder}/door") as stream:
            found = _Stomp(stream)
            await found.begin()
            yield found


#: Every door but TMQP's own.
FOREIGN: Final[tuple[KilledDoor, ...]] = (
    HttpDoor(),
    NsqDoor(),
    NsqHttpDoor(),
    SmqDoor(),
    GomsDoor(),
    ZmtpDoor(),
    StompDoor(),
)
