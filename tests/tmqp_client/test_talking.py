"""Clients that speak to each other and listen to the server, with the real server, on each loop."""

# ruff: noqa: SIM117, ASYNC110 - nested blocks tell the story, and some things can only be polled

from __future__ import annotations

import itertools
from collections.abc import Iterator

import anyio
import pytest

from tests.tmqp_client.peer import Peer, connect, serve
from tests.tmqp_client.server import running_server
from tmqp import (
    DirectMessageReceived,
    EventName,
    EventSubscriptionReceived,
    Frame,
    LocalProtocolError,
    MessageType,
)
from tmqp.models import ClientEvent, MessageEvent, QueueEvent, SubscriptionEvent
from tmqp_client import (
    AlreadyAcknowledged,
    AlreadyListening,
    ClientLimits,
    ConnectionLost,
    DirectMessages,
    NegativeAcknowledge,
    OperationFailed,
    OperationTimeout,
    Response,
    to_name,
    to_type,
)

COUNT = itertools.count(1)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_server() as (tcp, _unix):
        yield tcp


@pytest.fixture
def name() -> str:
    """A name no other test has."""
    return f"n{next(COUNT)}"


async def echo(messages: DirectMessages, count: int) -> None:
    """Answer so many requests with what they say."""
    for _ in range(count):
        message = await anext(messages)
        await message.respond(0, message.payload)


# --- Direct messages -----------------------------------------------------------------------------


async def test_a_message_by_id_name_and_type(address: str, name: str) -> None:
    async with connect(address, client_id=name, name="N" + name, type="T" + name) as receiver:
        async with receiver.direct_messages() as messages, connect(address) as sender:
            for target in (name, to_name("N" + name), to_type("T" + name)):
                sent = await sender.send_direct(
                    target, "größe", content_type=7, headers={"A": "1"}, high_priority=True
                )
                message = await anext(messages)
                assert message.message_id == sent
                assert (message.target, message.source) == (target, sender.client_id)
                assert (message.text, message.content_type) == ("größe", 7)
                assert (message.header("a"), message.headers) == ("1", [("A", "1")])
                assert message.frame.high_priority
                assert not message.requires_response
                assert not message.requires_acknowledge
                await message.respond()  # nobody waits: nothing is sent
                await message.ack()
            assert sender.statistics().unmatched_answers == 0
            assert receiver.statistics().directs == 3


async def test_all_of_a_type_or_the_oldest_of_it(address: str, name: str) -> None:
    async with connect(address, type=name) as old, connect(address, type=name) as young:
        async with old.direct_messages() as olds, young.direct_messages() as youngs:
            await old.send_direct(to_type(name), "all")
            await old.send_direct(to_type(name), "one", first_only=True)
            await old.send_direct(young.client_id, "last")
            assert [(await anext(olds)).text for _ in range(2)] == ["all", "one"]
            assert [(await anext(youngs)).text for _ in range(2)] == ["all", "last"]


async def test_acknowledges_come_back(address: str, name: str) -> None:
    async with connect(address, client_id=name) as receiver, connect(address) as sender:
        async with receiver.direct_messages() as messages:

            async def answer() -> None:
                first = await anext(messages)
                assert first.requires_acknowledge
                await first.ack()
                with pytest.raises(AlreadyAcknowledged):
                    await first.nack()
                await (await anext(messages)).nack("too busy")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer)
                await sender.send_direct(name, b"1", wait=True)
                with pytest.raises(NegativeAcknowledge) as caught:
                    await sender.send_direct(name, b"2", wait=True)
            assert caught.value.reason == "too busy"


@pytest.mark.parametrize("how", ["id", "name", "type"])
async def test_nobody_is_there(address: str, name: str, how: str) -> None:
    target = {"id": name, "name": to_name(name), "type": to_type(name)}[how]
    async with connect(address) as client:
        with pytest.raises(OperationFailed) as caught:
            await client.request(target, b"x")
        assert caught.value.code == 404
        with pytest.raises((OperationFailed, NegativeAcknowledge), match=r"not.found"):
            await client.send_direct(target, b"x", wait=True)
        await client.send_direct(target, b"x")
        await client.ping()
        refused = [] if client.statistics().unclaimed == 0 else [await anext(client.unclaimed())]
        assert len(refused) == (how == "id")  # by name or type, nobody asked to be told (F115)


# --- Requests ------------------------------------------------------------------------------------


async def test_a_request_and_its_response_whatever_the_code(address: str, name: str) -> None:
    async with connect(address, client_id=name) as server, connect(address) as client:
        async with server.direct_messages() as messages:

            async def answer() -> None:
                request = await anext(messages)
                assert request.requires_response
                await request.respond(0, "yes")
                with pytest.raises(AlreadyAcknowledged):
                    await request.respond()
                await (await anext(messages)).respond(404, b"\x00")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer)
                good = await client.request(name, "may I?")
                bad = await client.request(name, "where?")
            assert (good, good.ok, good.text) == (Response(0, b"yes", name), True, "yes")
            assert (bad, bad.ok) == (Response(404, b"\x00", name), False)


async def test_many_requests_in_flight_each_gets_its_own_answer(address: str, name: str) -> None:
    count = 300
    answers: dict[int, bytes] = {}
    async with connect(address, client_id=name) as server, connect(address) as client:

        async def ask(number: int) -> None:
            answers[number] = (await client.request(name, b"%d" % number)).payload

        async with server.direct_messages() as messages:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(echo, messages, count // 2)
                tasks.start_soon(echo, messages, count - count // 2)
                for number in range(count):
                    tasks.start_soon(ask, number)
        assert answers == {number: b"%d" % number for number in range(count)}
        assert client.statistics().outstanding == 0


async def test_a_client_may_ask_itself(address: str, name: str) -> None:
    async with connect(address, client_id=name) as client, client.direct_messages() as messages:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(echo, messages, 1)
            assert (await client.request(name, b"me")).payload == b"me"


async def test_a_request_that_comes_before_its_responder_listens_is_answered(
    address: str, name: str
) -> None:
    """A responder was known to others as soon as it had connected, and lost what came then."""
    async with connect(address, client_id=name) as server, connect(address) as client:
        with pytest.raises(OperationTimeout):
            await client.request(name, "early", timeout_s=0.1)
        assert server.statistics().unclaimed == 1
        async with server.direct_messages() as messages:
            early = await anext(messages)
            assert (early.text, early.requires_response) == ("early", True)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.request, name, "later")
                later = await anext(messages)
                await later.respond(0)
        found = server.statistics()
        assert (found.unclaimed, found.directs, found.dropped) == (0, 2, 0)


async def test_a_block_answers_what_is_still_owed(address: str, name: str) -> None:
    async with connect(address, client_id=name) as server, connect(address) as client:
        async with server.direct_messages() as messages:

            async def answer() -> None:
                async with await anext(messages):
                    pass
                for _ in range(2):
                    with pytest.raises(ZeroDivisionError):
                        async with await anext(messages):
                            raise ZeroDivisionError
                async with await anext(messages) as message:
                    await message.respond(0, b"mine")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer)
                assert (await client.request(name, b"1")).code == 204
                assert (await client.request(name, b"2")).code == 500
                with pytest.raises(NegativeAcknowledge, match="'error'"):
                    await client.send_direct(name, b"3", wait=True)
                assert (await client.request(name, b"4")).payload == b"mine"


async def test_a_request_nobody_answers_times_out(address: str, name: str) -> None:
    async with connect(address, client_id=name) as server, connect(address) as client:
        async with server.direct_messages() as messages:
            with pytest.raises(OperationTimeout) as caught:
                await client.request(name, b"x", 0.05)
            assert caught.value.asked == f"request to {name!r}"
            late = await anext(messages)
            await late.respond(0, b"too late")
            await server.ping()
            await client.ping()
            assert client.statistics().unmatched_answers == 1


async def test_arguments_that_cannot_be_sent(address: str) -> None:
    async with connect(address) as client:
        with pytest.raises(LocalProtocolError, match="needs a target"):
            await client.send_direct("", b"x")
        with pytest.raises(LocalProtocolError, match="content type"):
            await client.request("a", b"x", content_type=65_536)
        with pytest.raises(LocalProtocolError, match="positive"):
            await client.request("a", b"x", 0)
        assert client.statistics().outstanding == 0


async def test_one_iterator_at_a_time(address: str) -> None:
    async with connect(address) as client:
        async with client.direct_messages():
            with pytest.raises(AlreadyListening, match="direct messages"):
                await anext(client.direct_messages())
        async with client.direct_messages() as again:
            await client.send_direct(client.client_id, b"x")
            assert (await anext(again)).payload == b"x"
            await client.send_direct(client.client_id, b"left behind")
            await client.ping()
        assert client.statistics().dropped == 1


async def test_an_iterator_ends_with_its_client(address: str) -> None:
    async with connect(address) as client:
        messages = client.direct_messages()

        async def consume() -> None:
            ended.append([message async for message in messages])

        ended: list[object] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await anyio.wait_all_tasks_blocked()
            await client.aclose()
        assert ended == [[]]


async def test_a_lost_connection_is_raised_after_what_had_come() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.expect(DirectMessageReceived)
        await peer.send(Frame.build(MessageType.DIRECT_MESSAGE, "c", 1, b"x", source="s"))

    async with serve(script) as address, connect(address) as client:
        messages = client.direct_messages()
        await messages.__aenter__()
        await client.send_direct("x", b"go")
        assert (await anext(messages)).payload == b"x"
        with pytest.raises(ConnectionLost):
            await anext(messages)


async def test_a_full_buffer_of_direct_messages_pauses_reading() -> None:
    total = 400

    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.expect(DirectMessageReceived)
        for number in range(total):
            await peer.send(
                Frame.build(MessageType.DIRECT_MESSAGE, "c", 1, b"%5d" % number * 2_000, source="s")
            )
        await peer.until_closed()

    limits = ClientLimits(consumer_messages=10)
    async with serve(script) as address, connect(address, limits=limits) as client:
        async with client.direct_messages() as messages:
            await client.send_direct("x", b"go")
            with anyio.fail_after(10):
                while client.statistics().pauses == 0:
                    await anyio.sleep(0.01)
            assert client.statistics().directs < total
            for number in range(total):
                assert (await anext(messages)).payload[:5] == b"%5d" % number


# --- Events --------------------------------------------------------------------------------------


async def test_events_of_the_server(address: str, name: str) -> None:
    async with connect(address) as client:
        async with client.events("ClientConnected") as arrivals:
            async with client.events(EventName.CLIENT_DISCONNECTED) as departures:
                async with connect(address, client_id=name, name="n", type="t"):
                    event = await anext(arrivals)
                    assert event == ClientEvent(id=name, name="n", type="t")
                assert await anext(departures) == ClientEvent(id=name, name="n", type="t")


async def test_events_of_a_channel_in_any_spelling(address: str, name: str) -> None:
    async with connect(address) as client, connect(address, client_id=name) as other:
        await client.create_queue(name, 1)
        async with client.events("ClientJoined", name.upper()) as joins:
            async with client.events("MessageProduced", name, 1) as pushes:
                async with client.events("QueueRemoved", name) as removals:
                    await other.join(name)
                    joined = await anext(joins)
                    assert joined == SubscriptionEvent(channel=name, client_id=name)
                    sent = await other.push(name.upper(), 1, b"x", wait=False)
                    produced = await anext(pushes)
                    assert isinstance(produced, MessageEvent)
                    assert (produced.channel, produced.id) == (name.upper(), sent)
                    await other.remove_queue(name, 1)
                    removed = await anext(removals)
                    assert isinstance(removed, QueueEvent)
                    assert (removed.id, removed.messages) == (1, 0)
        assert client.statistics().events == 3


async def test_a_subscription_that_is_refused(address: str, name: str) -> None:
    async with connect(address) as client:
        events = client.events("QueueCreated", name)
        with pytest.raises(OperationFailed) as caught:
            await anext(events)
        assert caught.value.code == 1
        await client.create_channel(name)
        async with client.events("QueueCreated", name) as again:
            await client.create_queue(name, 5)
            event = await anext(again)
            assert isinstance(event, QueueEvent)
            assert event.id == 5
        with pytest.raises(OperationFailed) as caught:
            await anext(client.events("MessageProduced", name, 6))
        assert caught.value.code == 1


async def test_leaving_the_block_ends_the_subscription(address: str, name: str) -> None:
    async with connect(address) as client:
        async with client.events("ClientConnected"):
            with pytest.raises(AlreadyListening, match="ClientConnected"):
                await anext(client.events("ClientConnected"))
        async with connect(address, client_id=name):
            pass
        await client.ping()
        assert client.statistics().unclaimed == 0
        assert client.statistics().events == 0


async def test_a_subscription_whose_channel_has_gone_ends_without_complaint(
    address: str, name: str
) -> None:
    async with connect(address) as client:
        await client.create_channel(name)
        async with client.events("QueueCreated", name):
            await client.remove_channel(name)
        async with client.events("ClientConnected"):
            await client.aclose()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Nothing",), "is not an event"),
        (("clientconnected",), "is not an event"),
        (("QueueCreated",), "needs a channel"),
        (("ClientConnected", "ch"), "no channel"),
        (("MessageProduced", "ch"), "needs a queue"),
        (("QueueCreated", "ch", 1), "no queue"),
        (("QueueCreated", "a b"), "channel name"),
        (("MessageProduced", "ch", 65_536), "queue id"),
    ],
)
async def test_subscriptions_that_make_no_sense(
    address: str, arguments: tuple[str, str | None, int | None], words: str
) -> None:
    async with connect(address) as client:
        with pytest.raises(LocalProtocolError, match=words):
            client.events(*arguments)


async def test_an_event_that_cannot_be_read_is_passed_over_and_counted() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        request = (await peer.expect(EventSubscriptionReceived)).frame
        await peer.send(
            Frame.build(MessageType.RESPONSE, "c", 0, message_id=request.message_id),
            *(
                Frame.build(MessageType.EVENT, "", 0, body, source="ClientConnected")
                for body in (b"", b"[]", b'{"Id":7}', b'{"id":"x","More":1}')
            ),
        )
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        events = client.events("ClientConnected")
        assert await anext(events) == ClientEvent(id="x")
        assert events.unreadable == 3


async def test_a_cancelled_wait_leaves_the_subscription(address: str, name: str) -> None:
    async with connect(address) as client, client.events("ClientConnected") as events:
        with anyio.move_on_after(0.02):
            await anext(events)
        async with connect(address, client_id=name):
            assert await anext(events) == ClientEvent(id=name)
