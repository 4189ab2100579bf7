"""A server that breaks rules, lies, or goes away: a clear error at every stage, and no hanging."""

# ruff: noqa: ASYNC110, PT012, SIM117 - nested blocks tell a story; some things can only be polled

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from tests.tmqp_client.peer import Peer, ack_of, broker, connect, delivery, response_to, serve
from tmqp import Frame, HandshakeReceived, Limits, MessageReceived, MessageType
from tmqp.constants import PREAMBLE
from tmqp_client import (
    Client,
    ClientError,
    ClientLimits,
    ConnectFailed,
    ConnectionLost,
    ConnectRefused,
    OperationTimeout,
)

Script = Callable[[Peer], Awaitable[None]]
QUICK = ClientLimits(
    protocol=Limits(handshake_timeout_s=3.0, ping_interval_s=0.3),
    connect_timeout_s=3.0,
    close_timeout_s=0.2,
)


async def say(peer: Peer, data: bytes) -> None:
    await peer.stream.send(data)
    await anyio.sleep(0.05)


# --- Before the server has accepted --------------------------------------------------------------


async def hang_up_at_once(peer: Peer) -> None:
    await peer.stream.aclose()


async def hang_up_after_the_hello(peer: Peer) -> None:
    await peer.expect(HandshakeReceived)
    await peer.stream.aclose()


async def hang_up_after_the_preamble(peer: Peer) -> None:
    await peer.stream.receive()
    await say(peer, PREAMBLE)


async def half_a_preamble(peer: Peer) -> None:
    await peer.stream.receive()
    await say(peer, PREAMBLE[:4])


async def speak_http(peer: Peer) -> None:
    await peer.stream.receive()
    await say(peer, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def say_nothing(peer: Peer) -> None:
    await anyio.sleep(10)


async def half_a_frame(peer: Peer) -> None:
    await peer.stream.receive()
    await say(peer, PREAMBLE + b"\x90\x10\x20")


async def a_huge_frame(peer: Peer) -> None:
    await peer.stream.receive()
    await say(peer, PREAMBLE + b"\x11\x10\x00\x00\x00\x00\x00\xff" + b"\xff" * 8)


async def terminate(peer: Peer) -> None:
    await peer.stream.receive()
    await say(peer, PREAMBLE + Frame.build(MessageType.TERMINATE).raw)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (hang_up_at_once, "closed the connection before it accepted|reset"),
        (hang_up_after_the_hello, "closed the connection before it accepted"),
        (hang_up_after_the_preamble, "closed the connection before it accepted|reset"),
        (half_a_preamble, "ended inside a message|reset"),
        (speak_http, "not TMQP"),
        (half_a_frame, "ended inside a message|reset"),
        (a_huge_frame, "payload"),
        (terminate, "Terminate"),
    ],
)
async def test_no_connection_comes_about(script: Script, words: str) -> None:
    async with serve(script) as address:
        with anyio.fail_after(5), pytest.raises(ConnectFailed, match=words) as caught:
            async with connect(address, limits=QUICK):
                pytest.fail("it cannot be entered")
        assert caught.value.address == address
        assert not isinstance(caught.value, ConnectRefused)


async def test_a_server_that_says_nothing_is_given_up() -> None:
    limits = ClientLimits(protocol=Limits(handshake_timeout_s=0.2))
    async with serve(say_nothing) as address:
        with anyio.fail_after(5), pytest.raises(ConnectFailed, match=r"within 0\.2 seconds"):
            async with connect(address, limits=limits):
                pytest.fail("it cannot be entered")


@pytest.mark.parametrize("code", [401, 482, 503])
async def test_a_refusal_carries_its_code(code: int) -> None:
    async with serve(lambda peer: peer.refuse(code)) as address:
        with pytest.raises(ConnectRefused, match=f"refused: {code}") as caught:
            async with connect(address):
                pytest.fail("it cannot be entered")
    assert caught.value.code == code


# --- Afterwards ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason", "words"),
    [
        (b"", "end-of-stream", "closed the connection"),
        (b"\x14\x10\x05", "violation", "inside a message"),
        (b"\x14\x10\x01\x00\x00\x00\x00\x00\xff", "violation", "UTF-8"),
        (b"\x11\x10\x00\x00\x00\x00\x00\xfe\xff\xff\xff\xff", "violation", "payload"),
        (Frame.build(MessageType.TERMINATE).raw, "terminated", "Terminate"),
        (
            Frame.build(MessageType.TERMINATE).raw + b"\xff" * 100,
            "terminated",
            "Terminate",
        ),
    ],
)
async def test_an_end_reaches_everyone_who_waits(data: bytes, reason: str, words: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        for _ in range(4):
            await peer.expect(MessageReceived)  # an end with unread bytes would be a reset
        if data:
            await peer.stream.send(data)
        await peer.stream.aclose()

    async def fail(operation: Awaitable[object]) -> None:
        with pytest.raises(ConnectionLost, match=words) as caught:
            await operation
        reasons.append(caught.value.reason)

    reasons: list[str] = []
    async with serve(script) as address, connect(address) as client:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fail, client.push("orders", 1, b"x"))
                tasks.start_soon(fail, client.push("orders", 1, b"x"))
                tasks.start_soon(fail, client.consume("orders", 1).get())
                tasks.start_soon(fail, client.leave("orders"))
                tasks.start_soon(fail, client.unclaimed().__anext__())
        assert reasons == [reason] * 5
        with pytest.raises(ConnectionLost):
            await client.push("orders", 1, b"x", wait=False)


async def test_a_server_that_falls_silent_is_given_up() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await anyio.sleep(10)

    async with serve(script) as address, connect(address, limits=QUICK) as client:
        with anyio.fail_after(5), pytest.raises(ConnectionLost, match="nothing received") as caught:
            await client.push("orders", 1, b"x")
        assert caught.value.reason == "lifeless"
        assert caught.value.rule == "ping-timeout"


async def test_a_server_that_answers_pings_is_kept() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        frame = await peer.pushed()
        with anyio.move_on_after(1.0):
            while True:
                await peer.read()
        await peer.send(ack_of(frame))
        await peer.until_closed()

    async with serve(script) as address, connect(address, limits=QUICK) as client:
        await client.push("orders", 1, b"x", timeout_s=5)


async def test_answers_to_nothing_disturb_nothing() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        frame = await peer.pushed()
        wrong = Frame.build(MessageType.ACKNOWLEDGE, "orders", 1, message_id="wrong")
        anonymous = Frame.build(MessageType.ACKNOWLEDGE, "orders", 1)
        await peer.send(
            wrong,
            anonymous,
            response_to(wrong, 404),
            response_to(frame, 0),
            ack_of(frame),
            ack_of(frame),
            ack_of(frame, "changed my mind"),
        )
        peer.connection.send_bytes(b"\x8a\xff" + bytes(6))  # a pong nobody asked for
        await peer.send(delivery("nobody-joined", 9, b"x"))
        await peer.send(response_to(await peer.operation_frame(), 0))
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        await client.push("orders", 1, b"x")
        await client.join("orders")
        numbers = client.statistics()
        assert numbers.confirmed == 1
        assert numbers.unmatched_answers == 6
        assert numbers.unclaimed == 2


async def test_an_answer_after_the_time_out_changes_nothing() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        frame = await peer.pushed()
        await late.wait()
        await peer.send(ack_of(frame))
        await peer.until_closed()

    late = anyio.Event()
    async with serve(script) as address, connect(address) as client:
        with pytest.raises(OperationTimeout):
            await client.push("orders", 1, b"x", timeout_s=0.02)
        late.set()
        while not client.statistics().unmatched_answers:
            await anyio.sleep(0.001)
        assert client.statistics().confirmed == 0


async def test_a_server_that_closes_while_the_client_writes() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.pushed()
        await peer.stream.aclose()

    async with serve(script) as address, connect(address) as client:
        with anyio.fail_after(10), pytest.raises(ConnectionLost):
            while True:
                await client.push("orders", 1, b"x" * 10_000, wait=False)


async def test_the_reason_is_read_even_if_writing_fails_first() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.pushed()
        await peer.send(Frame.build(MessageType.TERMINATE))
        await peer.stream.aclose()

    async with serve(script) as address, connect(address) as client:
        await client.push("orders", 1, b"x", wait=False)
        await anyio.lowlevel.checkpoint()
        await anyio.sleep(0.05)
        with pytest.raises(ConnectionLost):
            for _ in range(100):
                await client.push("orders", 1, b"x" * 100_000, wait=False)
                await anyio.lowlevel.checkpoint()
        with pytest.raises(ConnectionLost) as caught:
            await client.ping()
        assert caught.value.reason in ("terminated", "transport")


@pytest.mark.parametrize("seed", range(20))
async def test_rubbish_at_any_moment_ends_in_a_documented_error(seed: int) -> None:
    dice = random.Random(seed)

    async def script(peer: Peer) -> None:
        await peer.accept()
        for _ in range(dice.randrange(4)):
            frame = await peer.pushed()
            await peer.send(ack_of(frame))
        kind = dice.randrange(3)
        data = dice.randbytes(dice.randrange(1, 200))
        if kind == 1:  # a frame with some bytes changed
            raw = bytearray(delivery("orders", 1, b"x" * 30).raw)
            for _ in range(3):
                raw[dice.randrange(len(raw))] = dice.randrange(256)
            data = bytes(raw)
        elif kind == 2:
            data = delivery("orders", 1, b"x" * 30).raw[: dice.randrange(1, 40)]
        await peer.stream.send(data)
        await anyio.sleep(0.02)

    async def use(client: Client) -> None:
        while True:
            await client.push("orders", 1, b"x", timeout_s=0.3)

    async with serve(script) as address, connect(address, limits=QUICK) as client:
        with anyio.fail_after(5), pytest.raises(ClientError):
            await use(client)


async def test_a_good_server_after_a_bad_one() -> None:
    async with serve(hang_up_at_once) as bad, serve(broker) as good:
        async with connect([bad, good], limits=QUICK) as client:
            await client.push("orders", 1, b"x")
