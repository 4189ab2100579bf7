"""Access on real sockets: who gets in, who may do what, and whom another's question delays."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.tmqp_server.peers import greeting, operation, push
from tests.tmqp_server.wires import Wire, dial, serving, settled, wire
from tests.waiting import until
from tmqp.address import Address
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server import (
    Access,
    Admission,
    Answer,
    Applicant,
    ClientGone,
    ConfigError,
    CustomMessage,
    Identity,
    Server,
    ServerConfig,
    parse_access,
    running,
)

pytestmark = pytest.mark.anyio

TABLE = parse_access(
    {
        "roles": {
            "clerk": {
                "rights": ["push", "join", "pull", "create-queue", "see-channel", "subscribe"],
                "channels": ["orders*"],
            }
        },
        "tokens": [
            {"token": "clerk", "roles": ["clerk"]},
            {"token": "boss", "roles": ["admin"]},
        ],
    }
)


def hello(client_id: str, token: str = "") -> bytes:
    return greeting(payload=ConnectionInformation(client_id, token=token).encode())


async def enter(server: Server, client_id: str, token: str) -> Wire:
    client = await dial(server.addresses[0])
    await client.say(hello(client_id, token))
    accepted = await client.hear()
    assert (accepted.content_type, accepted.target) == (202, client_id)
    return client


@pytest.mark.parametrize("token", ["", "wrong", "Clerk"])
async def test_who_has_no_token_is_refused_and_all_in_one_way(
    token: str, caplog: pytest.LogCaptureFixture
) -> None:
    """F33; and G6, no token is written down."""
    with caplog.at_level(logging.DEBUG):
        async with serving(access=TABLE) as server, wire(server) as client:
            await client.say(hello("x", token), push("orders", 1, "m"))
            (refused,) = await client.hear_to_the_end()
            assert (refused.type, refused.content_type) == (MessageType.SERVER, 401)
            assert (refused.target, refused.payload, refused.headers) == ("", b"", [])
            await settled(server, 0)
            assert server.broker.statistics().channels == 0
    if token:
        assert token not in caplog.text


async def test_the_table_says_who_may_do_what() -> None:
    async with serving(access=TABLE) as server:
        clerk, boss = await enter(server, "c", "clerk"), await enter(server, "b", "boss")
        async with clerk, boss:
            for channel in ("orders-1", "secret"):
                answer = await boss.ask(
                    Operation.CREATE_QUEUE, channel, headers=[("Queue-Id", "1")]
                )
                assert answer.content_type == 0
            await clerk.join("orders-1")
            await clerk.say(push("orders-1", 1, "m"))
            assert (await clerk.hear()).message_id == "m"
            await clerk.say(push("secret", 1, "s", pending_acknowledge=True))
            refused, nack = await clerk.hear(), await clerk.hear()
            assert (refused.type, refused.content_type) == (MessageType.RESPONSE, 401)
            assert nack.headers == [("Nack-Reason", "unauthorized")]
            for number in (Operation.JOIN, Operation.REMOVE_CHANNEL, Operation.CHANNEL_INFORMATION):
                assert (await clerk.ask(number, "secret")).content_type == 401
            assert (await clerk.ask(Operation.CLIENT_LIST)).content_type == 401
            seen = json.loads((await clerk.ask(Operation.CHANNEL_LIST)).payload)
            assert [each["Name"] for each in seen] == ["orders-1"]
            seen = json.loads((await boss.ask(Operation.CHANNEL_LIST)).payload)
            assert [each["Name"] for each in seen] == ["orders-1", "secret"]
            clients = json.loads((await boss.ask(Operation.CLIENT_LIST)).payload)
            assert [each["IsAuthenticated"] for each in clients] == [True, True]


async def test_a_thousand_pushes_are_asked_about_once() -> None:
    asked: list[tuple[str, int]] = []

    class Once(Access):
        keep_s = 60.0

        async def authenticate(self, applicant: Applicant) -> bool | Admission:
            return True

        async def may_push(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
            asked.append((channel, queue_id))
            return True

        async def may(
            self, who: Identity, right: str, subject: str, queue_id: int
        ) -> bool | Answer:
            return right == "join"

    access = Once()
    async with serving(asking=access) as server, wire(server, "a", "c") as client:
        for _ in range(2):
            await client.say(*[push("c", 1, f"m{n}") for n in range(1_000)])
            for n in range(1_000):
                assert (await client.hear()).message_id == f"m{n}"
        assert asked == [("c", 1)]
        access.forget_answers()
        await client.say(push("c", 1, "more"))
        assert (await client.hear()).message_id == "more"
        assert len(asked) == 2
    assert access._forgetters == (), "a server that has stopped is not told any more"


class Gatekeeper(Access):
    """Everybody may do everything, pushes into ``slow`` when ``ready``, and ``bad`` raises."""

    def __init__(self) -> None:
        self.ready = anyio.Event()
        self.waiting = 0
        self.cancelled = 0

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        return True

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        if subject == "bad":
            raise RuntimeError("a fault of the hook")
        if subject == "slow":
            self.waiting += 1
            try:
                await self.ready.wait()
            except BaseException:
                self.cancelled += 1
                raise
        return True


async def test_a_slow_hook_delays_nobody_else_and_keeps_the_order() -> None:
    access = Gatekeeper()
    async with (
        serving(asking=access, hook_timeout_s=15.0) as server,
        wire(server, "slow", "mine") as slow,
        wire(server, "quick", "yours") as quick,
    ):
        before = [push("mine", 1, f"a{n}") for n in range(3)]
        behind = [push("mine", 1, f"b{n}") for n in range(3)]
        await slow.say(*before, push("slow", 1, "s"), *behind)
        await slow.say(operation(Operation.JOIN, "slow", message_id="later"))
        for n in range(3):
            assert (await slow.hear()).message_id == f"a{n}"
        for n in range(50):
            await quick.say(push("yours", 1, f"q{n}"))
            assert (await quick.hear()).message_id == f"q{n}"
        with anyio.move_on_after(0.05) as nothing_more:
            await slow.hear()
        assert nothing_more.cancelled_caught
        assert access.waiting == 1
        access.ready.set()
        heard = [(await slow.hear()).message_id for _ in range(5)]
        assert heard == ["b0", "b1", "b2", "s", "later"]


async def test_a_hook_that_raises_refuses_and_the_session_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(asking=Gatekeeper()) as server, wire(server, "a", "c") as client:
        assert (await client.ask(Operation.JOIN, "bad")).content_type == 401
        await client.say(push("c", 1, "m"))
        assert (await client.hear()).message_id == "m"
    assert "a fault of the hook" in caplog.text


async def test_a_hook_that_does_not_answer_refuses_in_time() -> None:
    access = Gatekeeper()
    async with serving(asking=access, hook_timeout_s=0.05) as server, wire(server, "a") as client:
        assert (await client.ask(Operation.JOIN, "slow")).content_type == 401
        assert (await client.ask(Operation.JOIN, "c")).content_type == 0


async def test_a_question_ends_with_its_session() -> None:
    access = Gatekeeper()
    async with serving(asking=access, hook_timeout_s=15.0) as server:
        async with wire(server, "a") as client:
            client.reset()
            await client.say(push("slow", 1, "m"), *[push("c", 1, "n")] * 10)
            await until(lambda: access.waiting > 0)
        # Nobody reads from it; that it is gone is found when the server has something to say.
        async with wire(server, "b") as other:
            access.ready.set()
            await settled(server, 1)
            assert (await other.ask(Operation.CLIENT_LIST)).content_type == 0
        await settled(server, 0)
        hub = server._hub
        assert not hub._open
        assert not hub._rest
        assert hub.gate is not None
        assert not hub.gate._kept


async def test_who_pushes_and_says_good_bye_has_pushed() -> None:
    """However long the question about it takes."""
    access = Gatekeeper()
    async with (
        serving(asking=access, hook_timeout_s=15.0) as server,
        wire(server, "listener", "SLOW") as listener,
    ):
        async with wire(server, "hasty") as hasty:
            behind = push("slow", 1, "n")
            await hasty.say(push("slow", 1, "m"), behind, Frame.build(MessageType.TERMINATE))
            await until(lambda: access.waiting == 1)
            access.ready.set()
            assert [(await listener.hear()).message_id for _ in range(2)] == ["m", "n"]
            assert await hasty.hear_to_the_end() == []
        await settled(server, 1)


async def test_a_client_that_waits_is_not_taken_for_dead() -> None:
    """Nobody reads its pongs while a question is open."""
    access = Gatekeeper()
    limits = Limits(ping_interval_s=0.05, max_missed_pings=1)
    async with (
        serving(asking=access, hook_timeout_s=15.0, connection=limits) as server,
        wire(server, "a") as client,
    ):
        await client.say(operation(Operation.JOIN, "slow", message_id="j"))
        await until(lambda: access.waiting > 0)
        await anyio.sleep(0.5)
        access.ready.set()
        while (heard := await client.hear()).type == MessageType.PING:
            await client.say(Frame.build(MessageType.PONG))
        assert (heard.message_id, heard.content_type) == ("j", 0)


async def test_stopping_waits_for_no_hook() -> None:
    access = Gatekeeper()
    async with serving(within_s=5.0, asking=access, hook_timeout_s=60.0) as server:
        client = await (await dial(server.addresses[0])).greet("a")
        await client.say(push("slow", 1, "m"))
        await until(lambda: access.waiting > 0)
    assert access.cancelled == 1
    assert [each.type for each in await client.hear_to_the_end()] == [MessageType.TERMINATE]
    await client.stream.aclose()


async def test_a_client_that_waits_for_its_admission_has_the_handshakes_time() -> None:
    class Never(Access):
        async def authenticate(self, applicant: Applicant) -> bool | Admission:
            await anyio.sleep_forever()
            raise AssertionError

    async with serving(asking=Never(), hook_timeout_s=0.1) as server, wire(server) as client:
        await client.say(hello("x"))
        (refused,) = await client.hear_to_the_end()
        assert refused.content_type == 401


async def test_nobody_listens_to_other_machines_by_mistake(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """G1: who lets everybody in must be told that other machines may come."""

    class Anybody(Access):
        authenticates = False

    everywhere = (Address("0.0.0.0", 0),)
    with pytest.raises(ConfigError, match="clients are not authenticated"):
        async with running(ServerConfig(listen=everywhere, access=TABLE), access=Anybody()):
            raise AssertionError("it must not run")
    async with serving(listen=everywhere, access=TABLE):
        pass
    assert "tokens travel unencrypted" in caplog.text


# --- Custom messages -----------------------------------------------------------------------------

Hook = Callable[[CustomMessage], Awaitable[None]]


def custom(message_id: str, payload: bytes = b"", **more: Any) -> Frame:
    return Frame.build(MessageType.CUSTOM, "", 0, payload, message_id=message_id, **more)


async def test_custom_messages_are_taken_in_order_and_answered() -> None:
    async def hook(message: CustomMessage) -> None:
        await anyio.sleep(0.001 * len(message.payload))
        await message.reply(message.payload.upper())
        await message.respond(0, message.who.client_id.encode())

    async with serving(custom=hook) as server, wire(server, "a", "c") as client:
        await client.say(custom("1", b"slow one"), push("c", 1, "m"), custom("2", b"q"))
        await client.say(custom("3", pending_response=True))
        heard = [await client.hear() for _ in range(5)]
        assert [(each.type, each.message_id) for each in heard] == [
            (MessageType.CUSTOM, "1"),
            (MessageType.QUEUE_MESSAGE, "m"),
            (MessageType.CUSTOM, "2"),
            (MessageType.CUSTOM, "3"),
            (MessageType.RESPONSE, "3"),
        ]
        assert heard[0].payload == b"SLOW ONE"
        assert heard[-1].payload == b"a"


async def test_who_may_not_send_custom_messages_is_told() -> None:
    async def hook(message: CustomMessage) -> None:
        raise AssertionError("nobody may")

    async with serving(custom=hook, access=TABLE) as server:
        client = await enter(server, "c", "clerk")
        await client.say(custom("1"), custom("2", pending_response=True))
        answer = await client.hear()
        assert (answer.type, answer.content_type) == (MessageType.RESPONSE, 401)
        assert answer.message_id == "2"
        await client.stream.aclose()


async def test_a_hook_may_speak_later_and_waits_for_who_does_not_read() -> None:
    """What it sends is bounded like everything else that is sent to a client."""
    kept: list[CustomMessage] = []

    async def hook(message: CustomMessage) -> None:
        kept.append(message)

    size = 1 << 20
    async with serving(custom=hook) as server, wire(server, "a") as client:
        await client.say(custom("1"))
        await until(lambda: bool(kept))
        sent: list[int] = []

        async def speak() -> None:
            for number in range(40):
                await kept[0].reply(b"x" * size)
                sent.append(number)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(speak)
            await anyio.sleep(0.2)
            assert len(sent) < 30, "it waits"
            for _ in range(40):
                assert (await client.hear()).payload_size == size
        await client.stream.aclose()
        await settled(server, 0)
        with pytest.raises(ClientGone):
            await kept[0].reply(b"x")


async def test_who_waits_to_speak_is_told_when_the_client_goes() -> None:
    kept: list[CustomMessage] = []

    async def hook(message: CustomMessage) -> None:
        kept.append(message)

    async with serving(custom=hook) as server, wire(server, "a") as client:
        await client.say(custom("1"))
        await until(lambda: bool(kept))
        async with anyio.create_task_group() as tasks:
            gone = anyio.Event()

            async def speak() -> None:
                try:
                    while True:
                        await kept[0].reply(b"x" * 1_000_000)
                except ClientGone:
                    gone.set()

            tasks.start_soon(speak)
            await anyio.sleep(0.1)
            await client.stream.aclose()
            await gone.wait()


async def test_a_server_without_hooks_asks_nothing() -> None:
    async with serving() as server, wire(server, "a", "c") as client:
        hub = server._hub
        assert hub.gate is None
        await client.say(custom("1"), push("c", 1, "m"))
        assert (await client.hear()).message_id == "m"
        assert hub.customs_ignored == 1
