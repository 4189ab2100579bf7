"""The client against a scripted server, on each loop: operations, pushes, batches, closing."""

# ruff: noqa: ASYNC110, SIM117 - nested blocks tell a story; some things can only be polled

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.tmqp_client.peer import Peer, ack_of, broker, connect, delivery, response_to, serve
from tmqp import (
    DirectMessageReceived,
    Frame,
    LocalProtocolError,
    MessageType,
    Operation,
    PingReceived,
    QueueMessageReceived,
    ResponseReceived,
    TerminateReceived,
)
from tmqp.address import Address, parse_address
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client import (
    BatchFailed,
    Client,
    ClientClosed,
    ClientLimits,
    ConnectFailed,
    ConnectionLost,
    NegativeAcknowledge,
    OperationFailed,
    OperationTimeout,
)

# --- Connecting and closing ----------------------------------------------------------------------


async def test_who_the_client_says_it_is() -> None:
    async def script(peer: Peer) -> None:
        hello = await peer.accept()
        seen.append(hello.information)
        await peer.until_closed()

    seen: list[object] = []
    async with serve(script) as address:
        async with connect(
            f"{address}/eu",
            client_id="shop-1",
            name="shop",
            type="web",
            token="secret",
            properties={"Region": "north"},
        ) as client:
            assert client.connected
            assert client.client_id == "shop-1"
        assert not client.connected
    (information,) = seen
    assert repr(information) == (
        "<ConnectionInformation 'shop-1' name='shop' type='web' token='...' properties=['Region']>"
    )
    assert information.path == "/eu"  # type: ignore[attr-defined]
    assert information.token == "secret"  # type: ignore[attr-defined]


async def test_a_unix_socket(tmp_path: Path) -> None:
    async with serve(broker, path=tmp_path / "s") as address, connect(address) as client:
        await client.push("orders", 1, b"x")
        assert len(client.client_id) == 32


async def test_the_server_may_give_another_id() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept("given")
        assert (await peer.pushed()).source == "given"
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        assert client.client_id == "given"
        await client.push("orders", 1, b"x", wait=False)


async def test_closing_sends_what_is_queued_then_terminate_and_waits_for_the_server() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.expect(TerminateReceived)
        kinds.extend(type(event) for event in peer.connection.receive_eof())
        received.append(bytes(peer.received).count(b"late"))
        await anyio.sleep(0.1)
        closed.append("server")

    kinds: list[object] = []
    received: list[int] = []
    closed: list[str] = []
    async with serve(script) as address:
        async with connect(address) as client:
            for _ in range(500):
                await client.push("orders", 1, b"late", wait=False)
        closed.append("client")
    assert received == [500]
    assert kinds == [], "Terminate has ended the connection already"
    assert closed == ["server", "client"]


async def test_a_server_that_does_not_close_is_left_in_time() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await anyio.sleep_forever()

    async with serve(script) as address:
        with anyio.fail_after(3):
            async with connect(address, limits=ClientLimits(close_timeout_s=0.05)):
                pass


async def test_an_exception_leaves_the_block_as_it_is() -> None:
    async with serve(broker) as address:
        with pytest.raises(KeyError, match="mine") as caught:
            async with connect(address):
                raise KeyError("mine")
        assert caught.value.__cause__ is None


async def test_a_client_is_entered_once() -> None:
    async with serve(broker) as address:
        client = connect(address)
        with pytest.raises(ClientClosed, match="async with"):
            await client.ping()
        await client.aclose()  # nothing to close
        async with client:
            with pytest.raises(ClientClosed, match="once"):
                await client.__aenter__()
        with pytest.raises(ClientClosed, match="was closed"):
            await client.push("orders", 1, b"x")


async def test_closing_from_another_task_ends_what_waits() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.until_closed()

    async def wait(client: Client) -> None:
        with pytest.raises(ClientClosed):
            await client.push("orders", 1, b"x")
        ended.append("push")

    ended: list[str] = []
    async with serve(script) as address, connect(address) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, client)
            await anyio.wait_all_tasks_blocked()
            await client.aclose()
            await client.aclose()
    assert ended == ["push"]


@pytest.mark.parametrize(
    ("address", "words"),
    [("http://host", "must begin with tmq://"), ("tmq://", "host is missing"), ([], "missing")],
)
def test_an_address_that_is_none_is_refused_at_once(address: str, words: str) -> None:
    with pytest.raises(LocalProtocolError, match=words):
        connect(address)


def test_properties_that_cannot_be_sent_are_refused_at_once() -> None:
    with pytest.raises(LocalProtocolError, match="Client-Id"):
        connect("tmq://host", properties={"Client-Id": "x"})


@pytest.mark.parametrize("field", ["connect_timeout_s", "max_outstanding", "outbound_bytes"])
def test_limits_are_positive(field: str) -> None:
    given: dict[str, Any] = {field: 0}
    with pytest.raises(LocalProtocolError, match=field):
        ClientLimits(**given)
    with pytest.raises(LocalProtocolError, match="overflow_factor"):
        ClientLimits(overflow_factor=0.5)


# --- Operations ----------------------------------------------------------------------------------


async def test_creating_says_whether_it_was_there() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        frame = await peer.operation(Operation.CREATE_CHANNEL)
        assert frame.headers == [("Channel-Name", "orders")]
        assert b'"ClientLimit":3' in frame.payload
        await peer.operation(Operation.CREATE_CHANNEL, 481)
        await peer.operation(Operation.CREATE_CHANNEL, 481)
        frame = await peer.operation(Operation.CREATE_QUEUE)
        assert frame.header("Queue-Status") == "round-robin"
        assert b'"MessageLimit":7' in frame.payload
        await peer.operation(Operation.CREATE_QUEUE, 481)
        await peer.operation(Operation.CREATE_QUEUE, 482)
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        assert await client.create_channel("orders", ChannelOptions(client_limit=3)) is True
        assert await client.create_channel("orders") is False
        with pytest.raises(OperationFailed, match=r"create channel 'orders'.*481 duplicate"):
            await client.create_channel("orders", exist_ok=False)
        options = QueueOptions(message_limit=7)
        assert await client.create_queue("orders", 1, options, status="round-robin") is True
        assert await client.create_queue("orders", 1) is False
        with pytest.raises(OperationFailed) as caught:
            await client.create_queue("orders", 2)
        assert caught.value.code == 482
        assert caught.value.asked == "create queue 'orders'/2"


async def test_the_other_operations() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        for number, code in (
            (Operation.JOIN, 0),
            (Operation.LEAVE, 0),
            (Operation.LEAVE, 404),
            (Operation.REMOVE_QUEUE, 0),
            (Operation.REMOVE_CHANNEL, 0),
        ):
            assert (await peer.operation(number, code)).target == "orders"
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        await client.join("orders")
        await client.leave("orders")
        with pytest.raises(OperationFailed, match="404 not found"):
            await client.leave("orders")
        await client.remove_queue("orders", 1)
        await client.remove_channel("orders")


async def test_what_cannot_be_sent_is_refused_and_the_client_goes_on() -> None:
    async with serve(broker) as address, connect(address) as client:
        with pytest.raises(LocalProtocolError, match="channel name"):
            await client.join("two words")
        with pytest.raises(LocalProtocolError, match="queue id"):
            await client.push("orders", 70_000, b"x")
        with pytest.raises(LocalProtocolError, match="header"):
            await client.push("orders", 1, b"x", headers={"A": "b\r\nC:d"})
        with pytest.raises(LocalProtocolError, match="255"):
            await client.push("ü" * 200, 1, b"x")
        await client.push("orders", 1, b"x")


async def test_a_ping_measures_its_own_time() -> None:
    async with serve(broker) as address, connect(address) as client:
        assert 0 < await client.ping() < 5


async def test_a_ping_that_is_not_answered_times_out() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        data = await peer.stream.receive()
        assert data[:1] == b"\x89"
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        with pytest.raises(OperationTimeout, match="ping: no answer within"):
            await client.ping(timeout_s=0.05)


# --- Pushing -------------------------------------------------------------------------------------


async def test_a_confirmed_push() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        frame = await peer.pushed()
        assert frame.pending_acknowledge
        assert frame.high_priority
        assert frame.message_id == "own"
        assert frame.headers == [("A", "1"), ("A", "2")]
        assert frame.payload == "ü".encode()
        await peer.send(ack_of(frame))
        await peer.send(ack_of(await peer.pushed(), "no room"))
        await peer.send(response_to(await peer.pushed(), 401))
        await peer.pushed()
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        assert (
            await client.push(
                "orders",
                1,
                "ü",
                headers=[("A", "1"), ("A", "2")],
                high_priority=True,
                message_id="own",
            )
            == "own"
        )
        with pytest.raises(NegativeAcknowledge) as refused:
            await client.push("orders", 1, b"x")
        assert refused.value.reason == "no room"
        with pytest.raises(OperationFailed) as failed:
            await client.push("orders", 1, b"x")
        assert failed.value.code == 401
        assert failed.value.message_id != refused.value.message_id
        with pytest.raises(OperationTimeout):
            await client.push("orders", 1, b"x", timeout_s=0.05)
        numbers = client.statistics()
        assert (numbers.pushed, numbers.confirmed, numbers.refused, numbers.timed_out) == (
            4,
            1,
            2,
            1,
        )


async def test_the_refusal_of_a_push_nobody_waits_for_is_not_lost() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        frame = await peer.pushed()
        assert not frame.pending_acknowledge
        await peer.send(response_to(frame, 404))
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        message_id = await client.push("nowhere", 1, b"x", wait=False)
        event = await anext(client.unclaimed())
        assert isinstance(event, ResponseReceived)
        assert (event.code, event.frame.message_id) == (404, message_id)


async def test_many_pushes_in_flight_are_matched_in_any_order() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        frames = [await peer.pushed() for _ in range(300)]
        await peer.send(*[ack_of(frame) for frame in reversed(frames[:299])])
        await peer.send(ack_of(frames[299], "last"))
        await peer.until_closed()

    async def push(client: Client, number: int) -> None:
        try:
            await client.push("orders", 1, b"%d" % number)
        except NegativeAcknowledge:
            results.append((number, False))
        else:
            results.append((number, True))

    results: list[tuple[int, bool]] = []
    async with serve(script) as address, connect(address) as client:
        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(push, client, number)
        assert len(results) == 300
        assert [confirmed for _, confirmed in results].count(False) == 1
        assert client.statistics().outstanding == 0


async def test_no_more_than_max_outstanding_are_under_way() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        for _ in range(20):
            first = [await peer.pushed() for _ in range(5)]
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            assert not any(isinstance(event, QueueMessageReceived) for event in peer.events)
            await peer.send(*[ack_of(frame) for frame in first])
        await peer.until_closed()

    async def push(client: Client) -> None:
        await client.push("orders", 1, b"x")

    limits = ClientLimits(max_outstanding=5)
    async with serve(script) as address, connect(address, limits=limits) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(push, client)
        assert client.statistics().confirmed == 100


async def test_one_outstanding_and_one_that_cannot_be_sent_hold_nobody_up() -> None:
    async def bad(client: Client) -> None:
        with pytest.raises(LocalProtocolError):
            await client.push("orders", 1, b"x", headers={"": "x"})

    async def good(client: Client) -> None:
        await client.push("orders", 1, b"x")

    limits = ClientLimits(max_outstanding=1)
    async with serve(broker) as address, connect(address, limits=limits) as client:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(good, client)
                    tasks.start_soon(bad, client)
        assert client.statistics().confirmed == 10


# --- Batches -------------------------------------------------------------------------------------


async def test_a_batch_is_confirmed_as_a_whole() -> None:
    async with serve(broker) as address, connect(address) as client:
        report = await client.push_many("orders", 1, (b"%d" % n for n in range(5_000)))
        assert (report.sent, report.confirmed, report.failed) == (5_000, 5_000, 0)
        report = await client.push_many("orders", 1, ["a", b"b"], wait=False)
        assert (report.sent, report.confirmed) == (2, 0)
        assert (await client.push_many("orders", 1, [])).sent == 0


async def test_a_batch_keeps_its_order_and_its_bound() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        for start in range(0, 30, 3):
            frames = [await peer.pushed() for _ in range(3)]
            assert [frame.payload for frame in frames] == [
                b"%d" % n for n in range(start, start + 3)
            ]
            assert not peer.events
            await peer.send(*[ack_of(frame) for frame in frames])
        await peer.until_closed()

    async def numbers() -> AsyncIterator[bytes]:
        for number in range(30):
            yield b"%d" % number

    async with serve(script) as address, connect(address) as client:
        report = await client.push_many("orders", 1, numbers(), in_flight=3)
        assert report.confirmed == 30


async def test_a_batch_says_which_messages_failed() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        for number in range(10):
            frame = await peer.pushed()
            await peer.send(ack_of(frame, "odd" if number % 2 else None))
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        with pytest.raises(BatchFailed, match=r"5 of 10 .* reason 'odd'") as caught:
            await client.push_many("orders", 1, [b"x"] * 10)
        report = caught.value.report
        assert [failure.index for failure in report.failures] == [1, 3, 5, 7, 9]
        assert report.confirmed == 5
        with pytest.raises(LocalProtocolError, match="in_flight"):
            await client.push_many("orders", 1, [b"x"], in_flight=0)


async def test_a_batch_that_is_cut_off_says_how_far_it_came() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        for _ in range(4):
            await peer.send(ack_of(await peer.pushed()))
        await peer.pushed()
        await peer.stream.aclose()

    async with serve(script) as address, connect(address) as client:
        with pytest.raises(BatchFailed) as caught:
            await client.push_many("orders", 1, [b"x"] * 100, in_flight=5)
        report = caught.value.report
        assert report.confirmed <= 4 < report.sent <= 9
        assert report.sent == report.confirmed + report.failed
        assert isinstance(report.failures[0].error, ConnectionLost)
        with pytest.raises(ConnectionLost):
            await client.push_many("orders", 1, [b"x"])


async def test_an_error_in_the_callers_own_payloads_goes_through() -> None:
    async def payloads() -> AsyncIterator[bytes]:
        yield b"x"
        raise RuntimeError("mine")

    async with serve(broker) as address, connect(address) as client:
        with pytest.raises(RuntimeError, match="mine"):
            await client.push_many("orders", 1, payloads())
        with pytest.raises(LocalProtocolError):
            await client.push_many("orders", 1, [b"x", 7])  # type: ignore[list-item]
        assert client.statistics().outstanding == 0
        await client.push("orders", 1, b"x")


# --- What nobody asked for -----------------------------------------------------------------------


async def test_the_unclaimed_come_as_events_and_end_with_the_client() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept("c1")
        await peer.send(Frame.build(MessageType.DIRECT_MESSAGE, "c1", 5, b"hi", message_id="d"))
        await peer.expect(PingReceived)
        await peer.until_closed()

    async with serve(script) as address:
        async with connect(address) as client:
            stream = client.unclaimed()
            assert stream is client.unclaimed()
            event = await anext(stream)
            assert isinstance(event, DirectMessageReceived)
            assert event.frame.payload == b"hi"
            await client.ping()
        assert [event async for event in stream] == []


async def test_the_unclaimed_end_with_the_reason_when_the_connection_is_lost() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept("c1")
        await peer.send(Frame.build(MessageType.DIRECT_MESSAGE, "c1", message_id="d"))
        await peer.send(delivery("nobody", 1, b"x"))
        await peer.stream.aclose()

    async with serve(script) as address, connect(address) as client:
        while client.connected:
            await anyio.sleep(0.001)
        stream = client.unclaimed()
        assert (await anext(stream)).frame.message_id == "d"
        with pytest.raises(ConnectionLost):
            await anext(stream)
        assert client.statistics().dropped == 1


async def test_no_address_answers() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(ConnectFailed, match=f"127.0.0.1:{port}: connection refused"):
        async with connect(f"tmq://127.0.0.1:{port}"):
            pytest.fail("it cannot be entered")
    with pytest.raises(ConnectFailed, match=r"any address.*refused.*unix:/nowhere.*no such file"):
        async with connect([f"tmq://127.0.0.1:{port}", "unix:/nowhere"]):
            pytest.fail("it cannot be entered")


async def test_the_first_address_that_answers_is_taken() -> None:
    async def refuse(peer: Peer) -> None:
        await peer.refuse(503)

    async with serve(refuse) as busy, serve(broker) as address:
        async with connect(["unix:/nowhere", busy, address]) as client:
            await client.push("orders", 1, b"x")


async def test_an_address_whose_path_cannot_be_sent_leaves_nothing_open() -> None:
    async with serve(broker) as address:
        place = parse_address(address)
        bad = Address(place.host, place.port, path="/two words")
        with pytest.raises(LocalProtocolError, match="path"):
            async with connect(bad):
                pytest.fail("it cannot be entered")
