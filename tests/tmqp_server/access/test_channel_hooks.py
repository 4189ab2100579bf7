"""Channels' own authenticators and event handlers, on real sockets and on both event loops."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.tmqp_server.peers import ack, push
from tests.tmqp_server.wires import Wire, wire
from tmqp.address import Address
from tmqp.constants import MessageType, Operation
from tmqp.extensions import ExtensionOperation
from tmqp_server import (
    Access,
    Admission,
    Answer,
    Applicant,
    ChannelChanges,
    ChannelEventHandler,
    ChannelFact,
    ConfigError,
    Identity,
    MessageFact,
    QueueFact,
    Server,
    ServerConfig,
    StoreError,
    SubscriptionFact,
    parse_config,
    running,
)
from tmqp_server.shell.calls import MOST_EVENTS

pytestmark = pytest.mark.anyio


class Recorder(Access):
    """Notes what it is asked and answers as it is told; answers hold."""

    keep_s = 3_600.0

    def __init__(self, allows: bool = True) -> None:
        self.allows = allows
        self.asked: list[tuple[str, str]] = []
        self.gate = anyio.Event()
        self.gate.set()

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        return Admission(data="known")

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        self.asked.append((right, subject))
        await self.gate.wait()
        return self.allows


class Listener(ChannelEventHandler):
    """Notes everything."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def channel_created(self, event: ChannelFact) -> None:
        self.told.append(f"created {event.name}")

    async def channel_removed(self, event: ChannelFact) -> None:
        self.told.append(f"removed {event.name}")

    async def client_joined(self, event: SubscriptionFact) -> None:
        self.told.append(f"{event.client_id} joined {event.channel}")

    async def client_left(self, event: SubscriptionFact) -> None:
        self.told.append(f"{event.client_id} left {event.channel}")

    async def queue_created(self, event: QueueFact) -> None:
        self.told.append(f"created {event.channel}/{event.queue_id}")

    async def queue_updated(self, event: QueueFact) -> None:
        self.told.append(f"updated {event.channel}/{event.queue_id}")

    async def queue_removed(self, event: QueueFact) -> None:
        self.told.append(f"removed {event.channel}/{event.queue_id}")

    async def message_produced(self, event: MessageFact) -> None:
        self.told.append(f"{event.producer_id} produced {event.message_id}")


@asynccontextmanager
async def hooked(
    access: Access | None = None,
    own: dict[str, Access] | None = None,
    listeners: dict[str, ChannelEventHandler] | None = None,
    config: ServerConfig | None = None,
) -> AsyncIterator[Server]:
    config = config or ServerConfig(listen=(Address("127.0.0.1", 0),))
    with anyio.fail_after(20):
        async with running(
            config, access=access, authenticators=own, event_handlers=listeners
        ) as server:
            yield server


def body(**options: object) -> bytes:
    return json.dumps(options).encode()


async def create(client: Wire, name: str, **options: object) -> int:
    return (await client.ask(Operation.CREATE_CHANNEL, name, body(**options))).content_type


QUEUE = [("Queue-Id", "1")]


# --- Authenticators ------------------------------------------------------------------------------


async def test_an_authenticator_is_asked_about_its_channel_only_and_instead_of_the_server() -> None:
    """F70: every right about the channel; creating it is the server's matter."""
    everybody, own = Recorder(), Recorder()
    async with hooked(everybody, {"own": own}) as server, wire(server, "a") as client:
        assert await create(client, "private", Authenticator="own") == 0
        assert everybody.asked == [("create-channel", "private")]
        assert own.asked == []
        everybody.asked.clear()
        for number, more in (
            (Operation.CREATE_QUEUE, QUEUE),
            (Operation.UPDATE_QUEUE, QUEUE),
            (ExtensionOperation.UPDATE_CHANNEL, []),
            (Operation.JOIN, []),
            (Operation.CHANNEL_INFORMATION, []),
            (Operation.CHANNEL_CONSUMERS, []),
            (Operation.CLEAR_MESSAGES, QUEUE),
        ):
            answer = await client.ask(number, "PRIVATE", b"{}", headers=more)
            assert answer.content_type == 0, number
        await client.say(push("private", 1, "m"))
        delivery = await client.hear()
        await client.say(ack(delivery))
        for number, more in ((Operation.REMOVE_QUEUE, QUEUE), (Operation.REMOVE_CHANNEL, [])):
            answer = await client.ask(number, "private", headers=more)
            assert answer.content_type == 0, number
        assert everybody.asked == []
        assert [right for right, _ in own.asked] == [
            "create-queue",
            "update-queue",
            "update-channel",
            "join",
            "see-channel",
            "see-consumers",
            "clear-messages",
            "push",
            "remove-queue",
            "remove-channel",
        ]
        own.asked.clear()
        await client.join("public")
        await client.ask(Operation.JOIN, "private")
        assert [right for right, _ in everybody.asked] == ["join", "join"]
        assert own.asked == [], "the channel is gone, and its authenticator with it"


@pytest.mark.parametrize("open_server", [True, False])
async def test_an_authenticator_refuses_what_the_server_allows(open_server: bool) -> None:
    """On a server where everybody may do everything else, too."""
    everybody = None if open_server else Recorder()
    async with hooked(everybody, {"no": Recorder(False)}) as server, wire(server, "a") as client:
        assert await create(client, "closed", Authenticator="no") == 0
        assert (await client.ask(Operation.JOIN, "closed")).content_type == 401
        await client.say(push("closed", 1, "m", pending_acknowledge=True))
        refused, nack = await client.hear(), await client.hear()
        assert (refused.type, refused.content_type) == (MessageType.RESPONSE, 401)
        assert nack.headers == [("Nack-Reason", "unauthorized")]
        await client.join("open")
        seen = json.loads((await client.ask(Operation.CHANNEL_LIST)).payload)
        assert [each["Name"] for each in seen] == ["open"]
        assert (await client.ask(Operation.CLIENT_LIST)).content_type == 0


async def test_a_channels_authenticator_cannot_be_taken_away_by_whom_it_refuses() -> None:
    """F20: not even where everybody may do everything else."""
    picky, lenient = Recorder(False), Recorder()
    update = ExtensionOperation.UPDATE_CHANNEL
    async with hooked(None, {"no": picky, "yes": lenient}) as server, wire(server, "a") as client:
        assert await create(client, "c", Authenticator="no") == 0
        for name in ("", "yes"):
            answer = await client.ask(update, "c", body(Authenticator=name))
            assert answer.content_type == 401
        assert (await client.ask(Operation.JOIN, "c")).content_type == 401


async def test_another_authenticator_is_asked_from_the_next_question_on() -> None:
    """F20: no answer of the one before is remembered."""
    first, second = Recorder(), Recorder(False)
    update = ExtensionOperation.UPDATE_CHANNEL
    own: dict[str, Access] = {"one": first, "two": second}
    async with hooked(Recorder(), own) as server, wire(server, "a") as client:
        assert await create(client, "c", Authenticator="one") == 0
        await client.join("c")
        answer = await client.ask(update, "c", body(Authenticator="nobody's"))
        assert answer.content_type == 406
        assert (await client.ask(update, "c", body(Authenticator="two"))).content_type == 0
        assert (await client.ask(Operation.JOIN, "c")).content_type == 401
        assert (await client.ask(update, "c", body(Authenticator="one"))).content_type == 401


async def test_who_may_not_list_sees_what_authenticators_show() -> None:
    """F52: the list is put together; it is refused only when all refuse it."""
    nobody, some = Recorder(False), Recorder()

    async def may_create(who: Identity, channel: str) -> bool | Answer:
        return True

    nobody.may_create_channel = may_create  # type: ignore[method-assign]
    async with hooked(nobody, {"some": some}) as server, wire(server, "a") as client:
        assert (await client.ask(Operation.CHANNEL_LIST)).content_type == 401
        assert await create(client, "hidden") == 0
        assert await create(client, "shown", Authenticator="some") == 0
        seen = json.loads((await client.ask(Operation.CHANNEL_LIST)).payload)
        assert [each["Name"] for each in seen] == ["shown"]
        some.allows = False
        some.forget_answers()
        assert (await client.ask(Operation.CHANNEL_LIST)).content_type == 401


async def test_answers_end_with_the_channel_they_were_given_for() -> None:
    """A push that was allowed into one channel of a name is asked about in the next one."""
    everybody, first, second = Recorder(), Recorder(), Recorder(False)
    own: dict[str, Access] = {"first": first, "second": second}
    async with hooked(everybody, own) as server, wire(server, "a") as client:
        for name, asked, result in (("first", first, 1), ("second", second, 1)):
            assert await create(client, "c", Authenticator=name) == 0
            for number in range(3):
                await client.say(push("c", 1, f"m{number}", pending_response=True))
                answer = await client.hear() if name == "second" else None
                assert answer is None or answer.content_type == 401
            async with wire(server, "admin") as admin:
                assert (await admin.ask(Operation.CLIENT_LIST)).content_type == 0
            assert asked.asked.count(("push", "c")) == result, "the answer holds"
            second.allows = True
            assert (await client.ask(Operation.REMOVE_CHANNEL, "c")).content_type == 0
            second.allows = False


async def test_an_answer_that_comes_after_the_channel_is_not_the_channels() -> None:
    """The server says yes to a push into a channel that is missing; meanwhile it is created."""
    everybody, own = Recorder(), Recorder(False)
    async with (
        hooked(everybody, {"own": own}) as server,
        wire(server, "slow") as slow,
        wire(server, "quick") as quick,
    ):
        await quick.ask(Operation.CREATE_CHANNEL, "warm-up")
        everybody.gate = anyio.Event()
        await slow.say(push("c", 1, "m", pending_acknowledge=True))
        while ("push", "c") not in everybody.asked:  # noqa: ASYNC110 - bounded by the server's
            await anyio.sleep(0.001)
        held, everybody.gate = everybody.gate, anyio.Event()
        everybody.gate.set()
        assert await create(quick, "c", Authenticator="own") == 0
        held.set()
        refused = await slow.hear()
        assert (refused.type, refused.content_type) == (MessageType.RESPONSE, 401)
        assert own.asked == [("push", "c")]


async def test_channels_that_come_by_use_have_the_servers_default() -> None:
    """``[channel] authenticator``: it is asked about a channel that is still missing, as well."""
    own = Recorder(False)
    config = ServerConfig(
        listen=(Address("127.0.0.1", 0),), channel=ChannelChanges(authenticator="own")
    )
    async with (
        hooked(None, {"own": own}, config=config) as server,
        wire(server, "a") as client,
    ):
        assert (await client.ask(Operation.JOIN, "c")).content_type == 401
        assert server.broker.statistics().channels == 0
        assert await create(client, "c") == 0
        assert (await client.ask(Operation.JOIN, "c")).content_type == 401
        own.allows = True
        own.forget_answers()
        assert (await client.ask(Operation.JOIN, "c")).content_type == 0


@pytest.mark.parametrize("option", ["Authenticator", "EventHandler", "ChannelEventHandler"])
async def test_a_name_that_nobody_registered_is_not_accepted(option: str) -> None:
    """F71: 406, as for a delivery handler, and nothing is created."""
    async with hooked() as server, wire(server, "a") as client:
        assert await create(client, "c", **{option: "nope"}) == 406
        answer = await client.ask(
            Operation.CREATE_QUEUE, "c", body(**{option: "nope"}), headers=QUEUE
        )
        assert answer.content_type == 406
        assert server.broker.statistics().channels == 0
        assert await create(client, "c", **{option: None}) == 0
        assert await create(client, "d", **{option: ""}) == 0


# --- Event handlers ------------------------------------------------------------------------------


async def told(listener: Listener, count: int) -> list[str]:
    while len(listener.told) < count:  # noqa: ASYNC110 - the server's time is bounded
        await anyio.sleep(0.001)
    return listener.told


async def test_an_event_handler_comes_and_goes_by_an_update_of_the_channel() -> None:
    """F20."""
    listener = Listener()
    update = ExtensionOperation.UPDATE_CHANNEL
    async with hooked(listeners={"log": listener}) as server, wire(server, "a") as client:
        assert await create(client, "c") == 0
        await client.join("c")
        assert (await client.ask(update, "c", body(EventHandler="log"))).content_type == 0
        await client.ask(Operation.LEAVE, "c")
        assert (await client.ask(update, "c", body(QueueLimit=2))).content_type == 0
        await client.join("c")
        assert (await client.ask(update, "c", body(EventHandler=""))).content_type == 0
        await client.ask(Operation.LEAVE, "c")
    assert listener.told == ["a left c", "a joined c"]


@pytest.mark.parametrize("option", ["EventHandler", "ChannelEventHandler"])
async def test_an_event_handler_is_told_of_its_channels_events_in_order(option: str) -> None:
    listener = Listener()
    async with hooked(listeners={"log": listener}) as server:
        async with wire(server, "a", "other") as client:
            assert await create(client, "c", **{option: "log"}) == 0
            await client.ask(Operation.CREATE_QUEUE, "c", headers=QUEUE)
            await client.join("C")
            await client.say(push("c", 1, "m"), push("other", 1, "not told"))
            await client.hear()
            await client.ask(Operation.UPDATE_QUEUE, "c", b"{}", headers=QUEUE)
            await client.ask(Operation.LEAVE, "c")
            await client.join("c")
        async with wire(server, "b") as client:
            await told(listener, 8)
            await client.ask(Operation.REMOVE_QUEUE, "c", headers=QUEUE)
            await client.ask(Operation.REMOVE_CHANNEL, "c")
            await client.join("c")
    assert listener.told == [
        "created c",
        "created c/1",
        "a joined c",
        "a produced m",
        "updated c/1",
        "a left c",
        "a joined c",
        "a left c",
        "removed c/1",
        "removed c",
    ]


async def test_a_faulty_or_slow_event_handler_hurts_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty(Listener):
        async def client_joined(self, event: SubscriptionFact) -> None:
            raise RuntimeError("a fault of the handler")

        async def queue_created(self, event: QueueFact) -> None:
            await anyio.sleep_forever()

    faulty = Faulty()
    config = ServerConfig(listen=(Address("127.0.0.1", 0),), hook_timeout_s=0.05)
    async with (
        hooked(listeners={"log": faulty}, config=config) as server,
        wire(server, "a") as client,
    ):
        assert await create(client, "c", EventHandler="log") == 0
        await client.join("c")
        await client.say(push("c", 1, "m"))
        assert (await client.hear()).message_id == "m"
        assert await told(faulty, 2) == ["created c", "a produced m"]
    assert "a fault of the handler" in caplog.text
    assert "queue_created took too long" in caplog.text


async def test_what_waits_for_an_event_handler_is_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go = anyio.Event()

    class Slow(ChannelEventHandler):
        count = 0

        async def message_produced(self, event: MessageFact) -> None:
            await go.wait()
            self.count += 1

    slow, extra = Slow(), 500
    async with hooked(listeners={"slow": slow}) as server, wire(server, "a") as client:
        assert await create(client, "c", EventHandler="slow", Status=0) == 0
        count = MOST_EVENTS + 1 + extra
        for start in range(0, count, 1_000):
            ids = range(start, min(start + 1_000, count))
            await client.say(*[push("c", 1, f"m{number}") for number in ids])
        await client.ask(Operation.CHANNEL_LIST)
        assert server.lost_events in (extra, extra + 1), "the first may be out of the queue"
        lost = server.lost_events
        go.set()
        while slow.count < count - lost:  # noqa: ASYNC110 - the server's time is bounded
            await anyio.sleep(0.001)
        await client.say(push("c", 1, "more"))
        while slow.count < count - lost + 1:  # noqa: ASYNC110
            await anyio.sleep(0.001)
    errors = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert errors == [
        "the event handler 'slow' is too slow: events are lost",
        f"the event handler 'slow' missed {lost} events",
    ]


async def test_events_of_a_server_that_stops_are_still_told() -> None:
    listener = Listener()
    async with hooked(listeners={"log": listener}) as server, wire(server, "a") as client:
        assert await create(client, "c", EventHandler="log") == 0
        await client.join("c")
    assert listener.told == ["created c", "a joined c", "a left c"]


# --- What is kept --------------------------------------------------------------------------------


async def test_channels_keep_their_hooks_over_a_restart(tmp_path: Path) -> None:
    """And no server serves a channel without those who guard it."""
    config = ServerConfig(listen=(Address("127.0.0.1", 0),), data=str(tmp_path / "data"))
    own: dict[str, Access] = {"no": Recorder(False)}
    async with (
        hooked(None, own, {"log": Listener()}, config) as server,
        wire(server, "a") as client,
    ):
        assert await create(client, "c", Authenticator="no", EventHandler="log") == 0
    listener = Listener()
    async with hooked(None, own, {"log": listener}, config) as server, wire(server, "a") as client:
        assert (await client.ask(Operation.JOIN, "c")).content_type == 401
        own["no"].allows = True  # type: ignore[attr-defined]
        own["no"].forget_answers()
        await client.join("c")
        assert await told(listener, 1) == ["a joined c"]
    with pytest.raises(StoreError, match="the channel c needs an authenticator or event handler"):
        async with hooked(config=config):
            pytest.fail("it must not start")


# --- Configuration -------------------------------------------------------------------------------

FILE = """
listen = ["tmq://127.0.0.1:0"]

[authenticators.closed]
class = "tests.tmqp_server.access.test_channel_hooks:Recorder"
arguments = { allows = false }

[event_handlers]
log = "tests.tmqp_server.access.test_channel_hooks:Listener"

[[channels]]
name = "c"
authenticator = "closed"
event_handler = "log"
queues = [{ id = 1 }]
"""


async def test_a_file_names_them_and_declares_channels_with_them() -> None:
    async with (
        hooked(config=ServerConfig(**parse_config(FILE))) as server,
        wire(server, "a") as client,
    ):
        assert (await client.ask(Operation.JOIN, "c")).content_type == 401
        assert server._shell._teller is not None
        (handler,) = server._shell._teller._handlers.values()
        assert isinstance(handler, Listener)
        assert await told(handler, 2) == ["created c", "created c/1"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            '"closed"\nevent',
            '"nope"\nevent',
            "channels.c: a delivery handler, .* is not registered",
        ),
        (
            'handler = "log"',
            'handler = "nope"',
            "channels.c: a delivery handler, .* is not registered",
        ),
        ("Listener", "Recorder", "not a ChannelEventHandler"),
        ("Recorder", "Listener", "cannot be created"),
        ("[[channels]]", '[channel]\nauthenticator = "nope"\n[[channels]]', "'nope'"),
        ('event_handler = "log"', "event_handler = 1", "event_handler must be a string"),
    ],
)
async def test_a_mistake_in_the_file_is_told(old: str, new: str, reason: str) -> None:
    assert old in FILE
    with pytest.raises(ConfigError, match=reason):
        async with hooked(config=ServerConfig(**parse_config(FILE.replace(old, new)))):
            pytest.fail("it must not start")


async def test_a_name_is_given_once() -> None:
    with pytest.raises(ConfigError, match="'log' was given as an argument too"):
        async with hooked(listeners={"log": Listener()}, config=ServerConfig(**parse_config(FILE))):
            pytest.fail("it must not start")
