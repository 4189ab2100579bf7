"""Custom messages from end to end: the client's calls, the server's hook, and a server without."""

from __future__ import annotations

import anyio
import pytest

from tmqp.address import Address
from tmqp.errors import LocalProtocolError
from tmqp.events import CustomMessageReceived
from tmqp_client import (
    AlreadyListening,
    Client,
    ConnectRefused,
    OperationFailed,
    OperationTimeout,
    connect,
)
from tmqp_server import CustomMessage, Server, ServerConfig, parse_access, running

pytestmark = pytest.mark.anyio

LOCAL = ServerConfig(listen=(Address("127.0.0.1", 0),))


def client_of(server: Server, client_id: str = "me", token: str = "") -> Client:
    return connect(server.addresses[0], client_id=client_id, token=token)


async def shout(message: CustomMessage) -> None:
    """Answers in capital letters, with the headers it got; 3 is what it does not like."""
    if message.content_type == 3:
        raise RuntimeError("three")
    if message.content_type == 4:
        await message.respond(1_000, b"four")
    elif message.wants_response:
        await message.respond(0, message.payload.upper())
    else:
        await message.reply(message.payload.upper(), content_type=8, headers=message.frame.headers)


async def test_a_custom_message_goes_to_the_hook_and_its_answer_comes_back() -> None:
    with anyio.fail_after(10):
        async with running(LOCAL, custom_messages=shout) as server, client_of(server) as client:
            async with client.custom_messages() as messages:
                sent = await client.send_custom("hello", target="t", headers={"K": "v"})
                message = await anext(messages)
                assert (message.text, message.content_type) == ("HELLO", 8)
                assert (message.message_id, message.header("k")) == (sent, "v")
                assert sent in repr(message)
                with pytest.raises(AlreadyListening, match="custom messages already"):
                    await client.custom_messages()._open()
            assert client.statistics().customs == 1


async def test_a_request_is_answered_and_many_may_be_under_way() -> None:
    with anyio.fail_after(10):
        async with running(LOCAL, custom_messages=shout) as server, client_of(server) as client:
            answers: dict[int, str] = {}

            async def ask(number: int) -> None:
                answers[number] = (await client.request_custom(f"r{number}")).text

            async with anyio.create_task_group() as tasks:
                for number in range(50):
                    tasks.start_soon(ask, number)
            assert answers == {number: f"R{number}" for number in range(50)}


async def test_what_the_hook_refuses_is_told() -> None:
    with anyio.fail_after(10):
        async with running(LOCAL, custom_messages=shout) as server, client_of(server) as client:
            for content_type, code in ((3, 500), (4, 1_000)):
                with pytest.raises(OperationFailed) as caught:
                    await client.request_custom("x", content_type=content_type)
                assert caught.value.code == code
            with pytest.raises(LocalProtocolError):
                await client.send_custom("x", content_type=65_536)
            assert (await client.request_custom("x")).ok


async def test_a_server_without_a_hook_ignores_them() -> None:
    """F17."""
    with anyio.fail_after(10):
        async with running(LOCAL) as server, client_of(server) as client:
            await client.send_custom("x")
            with pytest.raises(OperationTimeout):
                await client.request_custom("x", timeout_s=0.05)
            await client.ping()


async def test_what_comes_while_nobody_listens_is_unclaimed() -> None:
    with anyio.fail_after(10):
        async with running(LOCAL, custom_messages=shout) as server, client_of(server) as client:
            await client.send_custom("x")
            event = await anext(client.unclaimed())
            assert isinstance(event, CustomMessageReceived)
            assert event.frame.payload == b"X"
            assert client.statistics().customs == 0


async def test_a_client_brings_its_token() -> None:
    tokens = [{"token": "open sesame", "roles": ["admin"]}]
    access = parse_access({"tokens": tokens})
    config = ServerConfig(listen=LOCAL.listen, access=access)
    with anyio.fail_after(10):
        async with running(config, custom_messages=shout) as server:
            async with client_of(server, token="open sesame") as client:
                assert (await client.request_custom("x")).text == "X"
            for token in ("", "close sesame"):
                with pytest.raises(ConnectRefused) as caught:
                    async with client_of(server, token=token):
                        raise AssertionError("it must not connect")
                assert caught.value.code == 401
