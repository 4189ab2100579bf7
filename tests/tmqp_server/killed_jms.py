"""The doors of STOMP and OpenWire, as servers that are killed have them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Final

import anyio
import anyio.abc

from tests.tmqp_server.killing import END, ForeignDoor, Ledger, Process
from tmqp_wires.openwire import ClientConnection, Message, MessageAck, MessageDispatch
from tmqp_wires.openwire import Command as OpenwireCommand
from tmqp_wires.openwire.commands import (
    BEGIN,
    COMMIT,
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    Response,
    TransactionInfo,
)
from tmqp_wires.openwire.ids import (
    QUEUE,
    TOPIC,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
)
from tmqp_wires.openwire.messages import ACK_STANDARD, BYTES_MESSAGE
from tmqp_wires.stomp import ClientConnection as StompConnection
from tmqp_wires.stomp import StompFrame

__all__ = [
    "OpenwireDoor",
    "OpenwireMovingDoor",
    "OpenwireTopicDoor",
    "StompDoor",
    "StompTopicDoor",
]


class _Stomp:
    """Speaks STOMP: a receipt is the confirm.

    :param subscription: headers of what is consumed.
    """

    def __init__(
        self,
        stream: anyio.abc.ByteStream,
        destination: str,
        subscription: Mapping[str, str],
    ) -> None:
        self._stream = stream
        self._destination = destination
        self._subscription = subscription
        self._stomp = StompConnection()
        #: Messages that came before somebody asked.
        self._early: list[StompFrame] = []
        self._sent = 0
        self._consumes = False

    @property
    def together(self) -> bool:
        """Half of the portions are transactions."""
        return self._sent % 2 == 1

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

    async def begin(self, headers: list[tuple[str, str]]) -> None:
        """Be let in."""
        self._stomp.send_connect(headers)
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
            self._stomp.send("SEND", [("destination", self._destination), *more], payload)
        if together:
            self._stomp.send("COMMIT", [("transaction", name), ("receipt", name)])
        await self.flush()
        missing = 1 if together else len(payloads)
        while missing:
            frames = await self._hear()
            assert all(each.command == "RECEIPT" for each in frames), frames
            missing -= len(frames)
        assert missing == 0

    async def subscribe(self) -> None:
        """Begin to consume."""
        headers = [("id", "1"), ("destination", self._destination), ("ack", "client")]
        headers.append(("receipt", "subscribed"))
        self._stomp.send("SUBSCRIBE", [*headers, *self._subscription.items()])
        await self.flush()
        while not any(each.command == "RECEIPT" for each in self._early):
            self._early += await self._hear()
        self._early = [each for each in self._early if each.command != "RECEIPT"]

    async def take(self) -> list[bytes]:
        if not self._consumes:
            self._consumes = True
            await self.subscribe()
        frames, self._early = self._early or await self._hear(), []
        self._stomp.send("ACK", [("id", frames[-1].get("ack"))])
        await self.flush()
        return [each.body for each in frames]


class StompDoor(ForeignDoor):
    """STOMP, whose queues are durable by themselves."""

    name = "stomp"
    table = '[[doors]]\nprotocol = "stomp"\nlisten = ["unix:{folder}/door"]\n'
    destination = "/queue/c"
    subscription: Mapping[str, str] = {}
    #: Headers of CONNECT of who consumes.
    consumer: Mapping[str, str] = {}

    async def prepare(self, process: Process) -> None:
        """The first SEND makes the queue."""

    @asynccontextmanager
    async def _connection(
        self, process: Process, headers: Mapping[str, str]
    ) -> AsyncIterator[_Stomp]:
        async with await anyio.connect_unix(f"{process.folder}/door") as stream:
            found = _Stomp(stream, self.destination, self.subscription)
            await found.begin(list(headers.items()))
            yield found

    def speaking(self, process: Process) -> AbstractAsyncContextManager[_Stomp]:
        return self._connection(process, {})

    def taking(self, process: Process) -> AbstractAsyncContextManager[_Stomp]:
        return self._connection(process, self.consumer)


class StompTopicDoor(StompDoor):
    """The same with a topic, and a durable subscription that has what is sent meanwhile."""

    name = "stomp-topic"
    destination = "/topic/c"
    subscription: Mapping[str, str] = {"activemq.subscriptionName": "s"}
    consumer: Mapping[str, str] = {"client-id": "me"}

    async def prepare(self, process: Process) -> None:
        async with self.taking(process) as speaker:
            await speaker.subscribe()


# --- OpenWire -------------------------------------------------------------------------------------


_VERSION: Final = 12
_NAMES: Final = count(1)


class _Openwire:
    """Speaks OpenWire: the response to a persistent message, or to a commit, is the confirm.

    :param subscription: the name of a durable subscription, None for none.
    """

    def __init__(
        self, stream: anyio.abc.ByteStream, destination: Destination, subscription: str | None
    ) -> None:
        self._stream = stream
        self._destination = destination
        self._subscription = subscription
        self._wire = ClientConnection()
        self._name = f"ID:killed-{next(_NAMES)}:1"
        self._sequences = count(1)
        self._sent = 0
        self._consumes = False
        self._responses: set[int] = set()
        self._dispatches: list[MessageDispatch] = []

    @property
    def together(self) -> bool:
        """Half of the portions are transactions."""
        return self._sent % 2 == 1

    async def flush(self) -> None:
        """Send what is queued."""
        await self._stream.send(self._wire.data_to_send())

    async def _hear(self) -> None:
        for event in self._wire.receive(await self._stream.receive(), 0.0):
            assert not isinstance(event, ExceptionResponse), event.exception
            if isinstance(event, Response):
                self._responses.add(event.correlation_id)
            elif isinstance(event, MessageDispatch):
                self._dispatches.append(event)

    async def _ask(self, *commands: OpenwireCommand) -> None:
        """Have commands carried out; each is answered when this returns."""
        for each in commands:
            each.response_required = True
            self._wire.send(each)
        wanted = {each.command_id for each in commands}
        await self.flush()
        while not wanted <= self._responses:
            await self._hear()
        self._responses -= wanted

    async def begin(self, client_id: str) -> None:
        """Be let in."""
        await self.flush()
        while not self._wire.version:
            await self._hear()
        assert self._wire.version == _VERSION
        await self._ask(ConnectionInfo(self._name, client_id or self._name))

    def _message(self, payload: bytes) -> Message:
        producer = ProducerId(self._name, 1, 1)
        name = MessageId(producer, next(self._sequences))
        message = Message(BYTES_MESSAGE, name, self._destination)
        message.content = payload
        message.persistent = True
        return message

    async def push(self, payloads: list[bytes]) -> None:
        """Half of the portions in a transaction, whose commit is answered."""
        together = self.together
        self._sent += 1
        messages = [self._message(payload) for payload in payloads]
        if not together:
            await self._ask(*messages)
            return
        transaction = LocalTransactionId(self._name, self._sent)
        self._wire.send(TransactionInfo(self._name, transaction, BEGIN))
        for each in messages:
            each.transaction = transaction
            self._wire.send(each)
        await self._ask(TransactionInfo(self._name, transaction, COMMIT))

    async def subscribe(self) -> None:
        """Begin to consume."""
        info = ConsumerInfo(ConsumerId(self._name, 1, 1), self._destination)
        info.subscription = self._subscription
        await self._ask(info)

    async def _received(self) -> list[MessageDispatch]:
        """One message at least."""
        if not self._consumes:
            self._consumes = True
            await self.subscribe()
        while not self._dispatches:
            await self._hear()
        found, self._dispatches = self._dispatches, []
        return found

    async def take(self) -> list[bytes]:
        found = await self._received()
        self._wire.send(_ack_of(found))
        await self.flush()
        return _bodies_of(found)

    async def move(self, to: Destination) -> None:
        """Take what is there and send it on, in one transaction."""
        found = await self._received()
        self._sent += 1
        transaction = LocalTransactionId(self._name, self._sent)
        self._wire.send(TransactionInfo(self._name, transaction, BEGIN))
        for body in _bodies_of(found):
            message = self._message(body)
            message.destination = to
            message.transaction = transaction
            self._wire.send(message)
        ack = _ack_of(found)
        ack.transaction = transaction
        self._wire.send(ack)
        await self._ask(TransactionInfo(self._name, transaction, COMMIT))


def _ack_of(found: list[MessageDispatch]) -> MessageAck:
    """What acknowledges messages, which are all that a consumer has."""
    last = found[-1]
    assert last.message is not None
    name = last.message.message_id
    return MessageAck(ACK_STANDARD, last.consumer, last.destination, None, name, len(found))


def _bodies_of(found: list[MessageDispatch]) -> list[bytes]:
    return [each.message.content or b"" for each in found if each.message is not None]


class OpenwireDoor(ForeignDoor):
    """OpenWire, whose queues are durable by themselves."""

    name = "openwire"
    table = '[[doors]]\nprotocol = "openwire"\nlisten = ["unix:{folder}/door"]\n'
    destination = Destination(QUEUE, "c")
    subscription: str | None = None
    client_id = ""

    async def prepare(self, process: Process) -> None:
        """The first message makes the queue."""

    @asynccontextmanager
    async def _connection(
        self, process: Process, client_id: str, destination: Destination | None = None
    ) -> AsyncIterator[_Openwire]:
        async with await anyio.connect_unix(f"{process.folder}/door") as stream:
            found = _Openwire(stream, destination or self.destination, self.subscription)
            await found.begin(client_id)
            yield found

    def speaking(self, process: Process) -> AbstractAsyncContextManager[_Openwire]:
        return self._connection(process, "")

    def taking(self, process: Process) -> AbstractAsyncContextManager[_Openwire]:
        return self._connection(process, self.client_id)


class OpenwireTopicDoor(OpenwireDoor):
    """The same with a topic, and a durable subscription that has what is sent meanwhile."""

    name = "openwire-topic"
    destination = Destination(TOPIC, "c")
    subscription: str | None = "s"
    client_id = "me"

    async def prepare(self, process: Process) -> None:
        async with self.taking(process) as speaker:
            await speaker.subscribe()


class OpenwireMovingDoor(OpenwireDoor):
    """The same, and clients that take messages and send them on in one transaction: each message is
    in one of the two queues, and never in both."""

    name = "openwire-moving"
    connections = 2
    moved = Destination(QUEUE, "moved")

    async def work(
        self, process: Process, ledger: Ledger, enough: anyio.Event, chance: random.Random
    ) -> None:
        async def move() -> None:
            async with self.taking(process) as mover:
                while True:
                    await mover.move(self.moved)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(super().work, process, ledger, enough, chance)
            for _ in range(2):
                tasks.start_soon(move)

    async def drain(self, process: Process, ledger: Ledger) -> None:
        for destination in (self.destination, self.moved):
            async with self._connection(process, "", destination) as speaker:
                await speaker.push([END])
                bodies: list[bytes] = []
                while END not in bodies:
                    bodies += await speaker.take()
                for body in bodies:
                    if body != END:
                        assert not ledger.receive(body), "it was moved, and is still there"
