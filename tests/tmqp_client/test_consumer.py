"""Consuming on each event loop: order, answers by how the body ends, several tasks, leaving."""

# ruff: noqa: ASYNC110, PT012, SIM117 - nested blocks tell a story; some things can only be polled

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.tmqp_client.peer import Peer, connect, delivery, response_to, serve
from tmqp import (
    AcknowledgeReceived,
    ConnectionClosed,
    Frame,
    LocalProtocolError,
    Operation,
    ServerMessageReceived,
)
from tmqp_client import (
    AlreadyAcknowledged,
    AlreadyConsuming,
    ClientClosed,
    ConnectionLost,
    Message,
    OperationFailed,
)

JOIN, LEAVE = int(Operation.JOIN), int(Operation.LEAVE)


class Store:
    """A server that delivers some messages when a client joins, and writes down what it answers."""

    def __init__(self, *frames: Frame) -> None:
        self.frames = frames
        self.answers: list[tuple[str, str | None]] = []
        #: The headers of each.
        self.headers: list[list[tuple[str, str]]] = []
        self.operations: list[int] = []
        self.all_answered = anyio.Event()

    async def __call__(self, peer: Peer) -> None:
        await peer.accept()
        while True:
            event = await peer.next()
            if isinstance(event, ConnectionClosed):
                await peer.stream.aclose()
                return
            if isinstance(event, ServerMessageReceived):
                frame = event.frame
                self.operations.append(frame.content_type)
                if frame.content_type == JOIN:
                    await peer.send(*self.frames)  # before the answer, as the original (F48)
                if frame.pending_response:
                    await peer.send(response_to(frame))
            elif isinstance(event, AcknowledgeReceived):
                self.answers.append((event.frame.message_id, event.reason))
                self.headers.append(event.frame.headers)
                if len(self.answers) == len(self.frames):
                    self.all_answered.set()


def messages(count: int, *, acknowledge: bool = True) -> list[Frame]:
    return [
        delivery("orders", 1, b"%d" % n, message_id=f"m{n}", acknowledge=acknowledge)
        for n in range(count)
    ]


async def test_a_message_tells_all_about_itself() -> None:
    frame = Frame.build(
        0x11,
        "Orders",
        7,
        "größe".encode(),
        message_id="m1",
        source="p1",
        headers=[("A", "1"), ("a", "2")],
        first_acquirer=True,
        high_priority=True,
        pending_acknowledge=True,
    )
    async with serve(Store(frame)) as address, connect(address) as client:
        async with client.consume("orders", 7) as consumer:
            message = await consumer.get()
            assert (message.channel, message.queue_id) == ("Orders", 7)
            assert (message.message_id, message.source) == ("m1", "p1")
            assert message.payload == "größe".encode()
            assert message.text == "größe"
            assert message.headers == [("A", "1"), ("a", "2")]
            assert message.header("A") == message.header("a") == "1"
            assert message.header("b") is None
            assert message.high_priority
            assert message.first_acquirer
            assert not message.redelivered
            assert message.requires_acknowledge
            assert "m1" in repr(message)
            await message.ack()


async def test_the_next_message_acknowledges_the_one_before_and_leaving_the_last() -> None:
    store = Store(*messages(3))
    async with serve(store) as address, connect(address) as client:
        seen: list[bytes] = []
        async with client.consume("orders", 1) as consumer:
            async for message in consumer:
                assert len(store.answers) <= len(seen)
                seen.append(message.payload)
                if len(seen) == 3:
                    break
        await store.all_answered.wait()
    assert seen == [b"0", b"1", b"2"]
    assert store.answers == [("m0", None), ("m1", None), ("m2", None)]
    assert store.operations == [JOIN, LEAVE]


async def test_an_exception_answers_negatively_and_goes_through() -> None:
    store = Store(*messages(2))
    async with serve(store) as address:
        with pytest.raises(KeyError):
            async with connect(address) as client, client.consume("orders", 1) as consumer:
                async for message in consumer:
                    if message.message_id == "m1":
                        raise KeyError
    assert store.answers == [("m0", None), ("m1", "error")]
    assert store.operations == [JOIN, LEAVE]


async def test_without_a_block_the_client_answers_when_it_closes() -> None:
    store = Store(*messages(2))
    async with serve(store) as address:
        with pytest.raises(KeyError):
            async with connect(address) as client:
                async for message in client.consume("orders", 1):
                    if message.message_id == "m1":
                        raise KeyError
    assert store.answers == [("m0", None), ("m1", "error")]


async def test_a_cancelled_body_leaves_its_message_unanswered() -> None:
    store = Store(*messages(2))
    async with serve(store) as address, connect(address) as client:
        with anyio.CancelScope() as scope:
            async with client.consume("orders", 1) as consumer:
                async for message in consumer:
                    if message.message_id == "m1":
                        scope.cancel()
                        await anyio.sleep_forever()
        await client.ping()
        assert store.answers == [("m0", None)]
        assert store.operations == [JOIN, LEAVE]


async def test_a_message_as_a_block_answers_by_how_it_ends() -> None:
    store = Store(*messages(4))
    async with serve(store) as address, connect(address) as client:
        async with client.consume("orders", 1, acknowledge="manual") as consumer:
            async with await consumer.get():
                pass
            with pytest.raises(KeyError):
                async with await consumer.get():
                    raise KeyError
            async with await consumer.get() as message:
                await message.nack("later")
            with anyio.move_on_after(0.05):
                async with await consumer.get():
                    await anyio.sleep_forever()
        await client.ping()
    assert store.answers == [("m0", None), ("m1", "error"), ("m2", "later")]


async def test_answering_by_hand() -> None:
    store = Store(*messages(3))
    async with serve(store) as address, connect(address) as client:
        async with client.consume("orders", acknowledge="manual") as consumer:
            first, second, third = [await consumer.get() for _ in range(3)]
            await third.ack()
            await first.nack("broken")
            await second.nack()
            for message in (first, second, third):
                assert message.answered
                with pytest.raises(AlreadyAcknowledged, match=message.message_id):
                    await message.ack()
        with pytest.raises(LocalProtocolError, match="'auto' or 'manual'"):
            client.consume("orders", acknowledge="never")  # type: ignore[arg-type]
    assert store.answers == [("m2", None), ("m0", "broken"), ("m1", "none")]


async def test_giving_messages_back() -> None:
    store = Store(*messages(3))
    async with serve(store) as address, connect(address) as client:
        async with client.consume("orders", acknowledge="manual") as consumer:
            first, second, third = [await consumer.get() for _ in range(3)]
            for wrong in ({"delay_s": -1}, {"delay_s": float("nan")}, {"to": "middle"}):
                with pytest.raises(LocalProtocolError):
                    await first.release(**wrong)
            assert await first.release()
            assert await second.release(delay_s=1.5, to="front", counted=False)
            assert await third.release(delay_s=0.000_1)
            with pytest.raises(AlreadyAcknowledged):
                await first.release()
    assert store.answers == [("m0", "release"), ("m1", "release"), ("m2", "release")]
    assert [headers[1:] for headers in store.headers] == [
        [("Put-Back", "end")],
        [("Put-Back", "front"), ("Delay", "1500"), ("Counted", "0")],
        [("Put-Back", "end"), ("Delay", "1")],
    ]


async def test_a_reason_that_cannot_be_written_leaves_the_message_to_be_answered() -> None:
    store = Store(*messages(1))
    async with serve(store) as address, connect(address) as client:
        async with client.consume("orders", 1, acknowledge="manual") as consumer:
            message = await consumer.get()
            with pytest.raises(LocalProtocolError, match="CR or LF"):
                await message.nack("two\nlines")
            await message.nack("one line")
        await store.all_answered.wait()
    assert store.answers == [("m0", "one line")]


async def test_a_queue_that_asks_for_no_answer_gets_none() -> None:
    store = Store(*messages(2, acknowledge=False))
    async with serve(store) as address, connect(address) as client:
        async with client.consume("orders", 1) as consumer:
            async for message in consumer:
                assert not message.requires_acknowledge
                if message.message_id == "m1":
                    await message.ack()
                    break
        await client.ping()
    assert store.answers == []


async def test_an_answer_given_in_the_body_is_not_given_twice() -> None:
    store = Store(*messages(2))
    async with serve(store) as address, connect(address) as client:
        async with client.consume("orders", 1) as consumer:
            async for message in consumer:
                await message.nack("no")
                if message.message_id == "m1":
                    break
        await client.ping()
    assert store.answers == [("m0", "no"), ("m1", "no")]


async def test_several_tasks_share_a_consumer() -> None:
    store = Store(*messages(200))

    async def work(consumer: Any) -> None:
        async for message in consumer:
            taken.append(message.message_id)
            await anyio.lowlevel.checkpoint()
            if len(taken) == 200:
                await consumer.aclose()

    taken: list[str] = []
    async with serve(store) as address, connect(address) as client:
        consumer = client.consume("orders", 1)
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(work, consumer)
        await client.ping()
        assert sorted(taken) == sorted(f"m{n}" for n in range(200))
        assert len(taken) == 200
    assert sorted(name for name, reason in store.answers if reason is None) == sorted(taken)


async def test_a_task_that_is_cancelled_while_waiting_passes_its_message_on() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.operation(JOIN)
        await ready.wait()
        await peer.send(*messages(1))
        await peer.operation(LEAVE)
        await peer.until_closed()

    async def cancelled(consumer: Any, scope: anyio.CancelScope) -> None:
        with scope:
            got.append(await consumer.get())

    async def patient(consumer: Any) -> None:
        got.append(await consumer.get())

    got: list[Message] = []
    ready = anyio.Event()
    async with serve(script) as address, connect(address) as client:
        async with client.consume("orders", 1, acknowledge="manual") as consumer:
            scope = anyio.CancelScope()
            with anyio.fail_after(5):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cancelled, consumer, scope)
                    await anyio.wait_all_tasks_blocked()
                    tasks.start_soon(patient, consumer)
                    await anyio.wait_all_tasks_blocked()
                    # Whichever comes first, waking or cancelling: one of the two gets it.
                    ready.set()
                    while not client.statistics().delivered:
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
                    await anyio.wait_all_tasks_blocked()
                    tasks.cancel_scope.cancel()
            assert len(got) == 1


async def test_consumers_of_queues_and_of_the_rest_of_the_channel() -> None:
    store = Store(
        delivery("orders", 1, b"a", message_id="a"),
        delivery("orders", 2, b"b", message_id="b"),
        delivery("orders", 3, b"c", message_id="c"),
    )
    async with serve(store) as address, connect(address) as client:
        await client.join("orders")
        async with client.consume("orders", 2, join=False) as second:
            async with client.consume("orders", join=False) as rest:
                assert (await second.get()).payload == b"b"
                assert [(await rest.get()).payload for _ in range(2)] == [b"a", b"c"]
                with pytest.raises(AlreadyConsuming):
                    async with client.consume("Orders", 2):
                        pass
    assert store.operations == [JOIN]


async def test_the_channel_is_left_when_its_last_consumer_goes() -> None:
    store = Store()
    async with serve(store) as address, connect(address) as client:
        async with client.consume("orders", 1):
            async with client.consume("orders", 2):
                pass
            assert store.operations == [JOIN, JOIN]
        assert store.operations == [JOIN, JOIN, LEAVE]
        await client.join("orders")
        async with client.consume("orders", 1):
            pass
        assert store.operations[3:] == [JOIN, JOIN], "who joined by hand stays in"


async def test_joining_can_be_refused_and_tried_again() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.operation(JOIN, 401)
        await peer.operation(JOIN, 0)
        await peer.operation(LEAVE, 404)
        await peer.operation(JOIN, 0)
        await peer.operation(LEAVE, 500)
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        consumer = client.consume("orders", 1)
        with pytest.raises(OperationFailed, match="401"):
            await consumer.get()
        with pytest.raises(ClientClosed):
            await consumer.get()
        async with client.consume("orders", 1):
            pass
        with pytest.raises(OperationFailed, match="500"):
            async with client.consume("orders", 1):
                pass


async def test_a_lost_connection_ends_the_loop_with_its_reason() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.send(*messages(2), *messages(1, acknowledge=False))
        await peer.operation(JOIN)
        await ready.wait()
        await peer.stream.aclose()

    ready = anyio.Event()
    async with serve(script) as address, connect(address) as client:
        async with client.consume("orders", 1) as consumer:
            seen = []
            with pytest.raises(ConnectionLost) as caught:
                async for message in consumer:
                    seen.append(message)
                    ready.set()
                    while client.connected:
                        await anyio.sleep(0.001)
            # What can be answered no more is not handed out; acknowledging the first raises.
            assert len(seen) == 1
            assert caught.value.reason == "end-of-stream"
        with pytest.raises(ConnectionLost):
            await seen[0].ack()
        with pytest.raises(ConnectionLost):
            async with client.consume("other"):
                pass


async def test_what_needs_no_answer_is_handed_out_after_the_loss() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.operation(JOIN)
        await peer.send(*messages(3, acknowledge=False))
        await peer.stream.aclose()

    async with serve(script) as address, connect(address) as client:
        seen = []
        async with client.consume("orders", 1) as consumer:
            with pytest.raises(ConnectionLost):
                await client.push("orders", 1, b"x")
            with pytest.raises(ConnectionLost):
                async for message in consumer:
                    seen.append(message.payload)
        assert seen == [b"0", b"1", b"2"]


async def test_closing_the_client_ends_the_loop() -> None:
    async def loop() -> None:
        async for message in client.consume("orders", 1):
            seen.append(message)
        ended.append("loop")

    seen: list[Message] = []
    ended: list[str] = []
    store = Store(*messages(1))
    async with serve(store) as address, connect(address) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(loop)
            while not seen:
                await anyio.sleep(0.001)
            await client.aclose()
        with pytest.raises(ClientClosed):
            async with client.consume("orders"):
                pass
    assert ended == ["loop"]
    assert store.answers == [("m0", None)]
