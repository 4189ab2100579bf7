"""OpenWire at a real server: passwords, TLS, what outlives the server, and TMQP beside it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import pytest
from anyio.streams.tls import TLSStream

from tests.certificates import make_certificate
from tests.tmqp_server.test_doors import config
from tests.tmqp_server.test_small_doors import port_of
from tests.tmqp_server.test_stomp_door import ACCESS
from tmqp_client import connect
from tmqp_server import running
from tmqp_server.settings.tls import TlsSettings
from tmqp_wires.openwire import ClientConnection, Command, Message, MessageAck, MessageDispatch
from tmqp_wires.openwire.commands import (
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    Response,
)
from tmqp_wires.openwire.data import LONG, STRING, encode_map
from tmqp_wires.openwire.ids import (
    QUEUE,
    TOPIC,
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
)
from tmqp_wires.openwire.messages import ACK_STANDARD, TEXT_MESSAGE

Q: Final = Destination(QUEUE, "jobs")
T: Final = Destination(TOPIC, "t")
_PATIENCE_S: Final = 10.0
_Command = TypeVar("_Command", bound=Command)
_NAMES: Final = count(1)


class Program:
    """A JMS program, as the server sees it."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self.stream = stream
        self.wire = ClientConnection()
        self.name = f"ID:p-{next(_NAMES)}:1"
        self.sequences = count(1)
        self.heard: list[Command] = []

    async def next(self, kind: type[_Command]) -> _Command:
        """The next command of a kind."""
        with anyio.fail_after(_PATIENCE_S):
            while True:
                for each in self.heard:
                    if isinstance(each, kind):
                        self.heard.remove(each)
                        return each
                await self.hear()

    async def hear(self) -> None:
        events = self.wire.receive(await self.stream.receive(), 0.0)
        self.heard += [each for each in events if isinstance(each, Command)]

    async def flush(self) -> None:
        await self.stream.send(self.wire.data_to_send())

    async def ask(self, command: Command) -> Response:
        """What a command is answered."""
        command.response_required = True
        self.wire.send(command)
        await self.flush()
        return await self.next(Response)

    async def begin(self, user: str | None, password: str | None, client_id: str = "") -> Response:
        """Agree with the server, and introduce the client."""
        await self.flush()
        while not self.wire.version:
            await self.hear()
        return await self.ask(ConnectionInfo(self.name, client_id or self.name, user, password))

    async def send(self, text: str, to: Destination = Q, properties: bytes | None = None) -> None:
        name = MessageId(ProducerId(self.name, 1, 1), next(self.sequences))
        message = Message(TEXT_MESSAGE, name, to)
        message.content = len(text).to_bytes(4) + text.encode("ascii")
        message.persistent = True
        message.properties = properties
        assert not isinstance(await self.ask(message), ExceptionResponse)

    async def consume(self, to: Destination = Q, subscription: str | None = None) -> None:
        info = ConsumerInfo(ConsumerId(self.name, 1, 1), to)
        info.subscription = subscription
        info.selector = "n > 1" if subscription else None
        assert not isinstance(await self.ask(info), ExceptionResponse)

    async def take(self) -> str:
        """The text of the next message, which is acknowledged."""
        dispatch = await self.next(MessageDispatch)
        message = dispatch.message
        assert message is not None
        name = message.message_id
        ack = MessageAck(ACK_STANDARD, dispatch.consumer, dispatch.destination, name, name, 1)
        self.wire.send(ack)
        await self.flush()
        return (message.content or b"")[4:].decode()


@asynccontextmanager
async def program(
    port: int, *, tls: ssl.SSLContext | None = None, client_id: str = ""
) -> AsyncIterator[Program]:
    """A program that is let in."""
    async with await stream_to(port, tls) as stream:
        found = Program(stream)
        assert not isinstance(await found.begin(None, None, client_id), ExceptionResponse)
        yield found


async def stream_to(port: int, tls: ssl.SSLContext | None = None) -> anyio.abc.ByteStream:
    plain = await anyio.connect_tcp("127.0.0.1", port)
    if tls is None:
        return plain
    return await TLSStream.wrap(
        plain, hostname="localhost", ssl_context=tls, standard_compatible=False
    )


def door(**values: Any) -> dict[str, Any]:
    return {"protocol": "openwire", "listen": ["127.0.0.1:0"], **values}


@pytest.mark.parametrize(
    ("user", "password", "refusal"),
    [
        ("ann", "pw", ""),
        ("ann", "other", "java.lang.SecurityException"),
        ("ann", None, "java.lang.SecurityException"),
        (None, None, "java.lang.SecurityException"),
    ],
)
async def test_user_and_password_are_those_of_the_access_table(
    user: str | None, password: str | None, refusal: str
) -> None:
    values = config(door(), access=access_of(ACCESS))
    async with (
        running(values) as server,
        await stream_to(port_of(server, "openwire")) as stream,
    ):
        found = Program(stream)
        answer = await found.begin(user, password)
        if not refusal:
            assert not isinstance(answer, ExceptionResponse)
            await found.send("x")
            return
        assert isinstance(answer, ExceptionResponse)
        assert answer.exception is not None
        assert answer.exception.class_name == refusal
        with pytest.raises(anyio.EndOfStream):
            await found.hear()


def access_of(table: dict[str, Any]) -> Any:
    """The setting of an access table."""
    from tmqp_server.config import read_config  # noqa: PLC0415

    return read_config({"access": table})["access"]


async def test_a_queue_and_a_durable_subscription_outlive_the_server(tmp_path: Path) -> None:
    wanted, other = encode_map([("n", LONG, 2)]), encode_map([("n", LONG, 1)])
    async with running(config(door(), data=tmp_path)) as server:
        port = port_of(server, "openwire")
        async with program(port, client_id="me") as away:
            await away.consume(T, "s")
        async with program(port) as sender:
            await sender.send("job")
            await sender.send("unwanted", T, other)
            await sender.send("before", T, wanted)
    async with running(config(door(), data=tmp_path)) as server:
        port = port_of(server, "openwire")
        async with program(port) as sender:
            await sender.send("after", T, wanted)
            await sender.consume()
            assert await sender.take() == "job"
        async with program(port, client_id="me") as back:
            await back.consume(T, "s")
            assert [await back.take(), await back.take()] == ["before", "after"]


async def test_a_program_of_jms_and_one_of_tmqp_share_a_queue() -> None:
    async with (
        running(config(door())) as server,
        program(port_of(server, "openwire")) as jms,
        connect(server.addresses[0]) as tmqp,
    ):
        properties = encode_map([("colour", STRING, "red"), ("n", LONG, 7)])
        await jms.send("from JMS", properties=properties)
        async with tmqp.consume("jobs") as messages:
            async for message in messages:
                assert message.payload == b"from JMS"
                said = dict(message.headers)
                assert (said["colour"], said["n"]) == ("red", "7")
                assert said["Content-Type"] == "text/plain"
                break
        await jms.consume()
        await tmqp.push("jobs", 0, b"from TMQP")
        assert await jms.take() == "from TMQP"


async def test_tls(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    settings = TlsSettings(certificate=str(certificate), key=str(key))
    trusting = ssl.create_default_context(cafile=str(certificate))
    values = config({**door(), "tls": True}, tls=settings)
    async with (
        running(values) as server,
        program(port_of(server, "openwire+tls"), tls=trusting) as found,
    ):
        await found.send("secret")
        await found.consume()
        assert await found.take() == "secret"


async def test_tls_with_certificates_of_clients(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    own_key, own = make_certificate(tmp_path, "client")
    settings = TlsSettings(certificate=str(certificate), key=str(key), client_authorities=str(own))
    stranger = ssl.create_default_context(cafile=str(certificate))
    known = ssl.create_default_context(cafile=str(certificate))
    known.load_cert_chain(own, own_key)
    values = config({**door(), "tls": True, "tls_client_auth": "require-verify"}, tls=settings)
    async with running(values) as server:
        port = port_of(server, "openwire+tls")
        async with program(port, tls=known) as found:
            await found.send("secret")
        with pytest.raises((ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream)):
            async with program(port, tls=stranger):
                pass
