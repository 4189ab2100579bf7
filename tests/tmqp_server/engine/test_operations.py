"""Operations on channels and queues, clients in and out, events: each answered once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import EventName
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    ClearMessages,
    Command,
    Connect,
    CreateChannel,
    CreateQueue,
    Disconnect,
    Grant,
    Join,
    Leave,
    Push,
    PushExtras,
    RemoveChannel,
    RemoveQueue,
    SessionCommand,
    UpdateQueue,
)
from tmqp_server.engine.effects import Deliver, Effect, Notify, Refuse
from tmqp_server.engine.events import (
    ALL_EVENTS,
    LIFECYCLE_EVENTS,
    MESSAGE_PRODUCED,
    NO_EVENTS,
    event_name,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import (
    BrokerOptions,
    ChannelChanges,
    ChannelOptions,
    QueueChanges,
    QueueOptions,
)


@pytest.fixture
def world() -> World:
    made = World()
    made.connect("admin")
    return made


def create_channel(
    world: World, name: str, changes: ChannelChanges | None = None, who: str = "admin"
) -> str:
    (word,) = world.step(CreateChannel(world.numbers[who], "channel", name, changes))
    return word


# --- Clients (F32, F33) --------------------------------------------------------------------------


def test_connecting(world: World) -> None:
    assert world.step(Connect(50, "r", "")) == ["session 50 refused 400"]
    assert world.step(Connect(51, "r", "x" * 256)) == ["session 51 refused 400"]
    assert world.step(Connect(52, "r", "é" * 128)) == ["session 52 refused 400"]
    assert world.step(Connect(53, "r", "admin")) == ["session 53 refused 503"]
    (refusal,) = world.last
    assert isinstance(refusal, Refuse)
    assert (refusal.session, refusal.request, refusal.code) == (53, "r", 503)
    world.connect("x" * 255, "Admin")  # ids are told apart by case
    assert world.disconnect("admin") == []
    assert world.connect("admin") == ["admin accepted"]


def test_the_number_of_sessions_is_bounded() -> None:
    world = World(EngineLimits(max_sessions=2))
    world.connect("a", "b")
    assert world.step(Connect(50, None, "c")) == ["session 50 refused 482"]
    world.disconnect("a")
    assert world.connect("c") == ["c accepted"]


def test_a_session_number_is_used_once(world: World) -> None:
    with pytest.raises(ValueError, match="session number 1 is in use"):
        world.step(Connect(1, None, "other"))


def test_taking_over(world: World) -> None:
    world.create(QueueChanges(acknowledge_timeout_ms=1000))
    world.join("a")
    world.push("m1")
    old = world.numbers["a"]
    world.names[50] = "a2"
    world.numbers["a2"] = 50
    words = world.step(Connect(50, "r", "a", take_over=True))
    assert words == ["close a", "a2 accepted"]
    assert world.step(Disconnect(old)) == []
    assert world.join("a2") == ["a2 join: 0"]
    assert world.ack("a2", "m1") == []  # not in its hands
    # In flight returns once.
    assert world.wait(1.1) == ["a2 <- m1 AR"]
    assert world.broker.statistics().stray_commands == 1


def test_taking_over_what_nobody_has(world: World) -> None:
    world.names[50] = "b"
    assert world.step(Connect(50, None, "b", take_over=True)) == ["b accepted"]


def test_taking_over_needs_no_room() -> None:
    world = World(EngineLimits(max_sessions=1))
    world.connect("a")
    world.names[50] = "again"
    assert world.step(Connect(50, None, "a", take_over=True)) == ["close a", "again accepted"]


@pytest.mark.parametrize(
    "command",
    [
        Disconnect(99),
        Join(99, "r", "ch"),
        Leave(99, "r", "ch"),
        CreateChannel(99, "r", "ch"),
        Grant(99, "ch", 1),
        Push(99, "m", "ch", 1, False, True, 1, "w"),
    ],
)
def test_commands_of_unknown_sessions_are_counted(world: World, command: Command) -> None:
    assert world.step(command) == []
    assert world.broker.statistics().stray_commands == 1


def test_what_is_no_command_is_an_error(world: World) -> None:
    with pytest.raises(TypeError, match="ommand"):  # a compiled build says it in its own words
        world.broker.step("push", 1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a command"):
        world.broker.step(SessionCommand(1), 1.0)


def test_impossible_options() -> None:
    with pytest.raises(ValueError, match="no delivery handler"):
        Broker(None, queue_defaults(delivery_handler="nope"))
    with pytest.raises(ValueError, match="not possible within the limits"):
        Broker(EngineLimits(max_put_backs=1), queue_defaults(put_back_limit=2))


# --- Channels (F46-F51) --------------------------------------------------------------------------


def test_creating_channels(world: World) -> None:
    assert create_channel(world, "Name") == "admin channel: 0"
    assert create_channel(world, "Name") == "admin channel: 481"
    assert create_channel(world, "nAME") == "admin channel: 481"
    for name in ("", "a b", "a;b", "a@b", "*", "a\x00", "a\r\nb", "a\x7fb", "x" * 256):
        assert create_channel(world, name) == "admin channel: 400", name
    for name in ("x" * 255, "çğü✓", "../up", "a:b", "a/b"):
        assert create_channel(world, name) == "admin channel: 0", name
    bad = ChannelChanges(queue=QueueChanges(delivery_handler="nope"))
    assert create_channel(world, "other", bad) == "admin channel: 406"
    assert create_channel(world, "other", ChannelChanges(client_limit=-1)) == "admin channel: 400"
    bad = ChannelChanges(allowed_queues=(1, 65_536))
    assert create_channel(world, "other", bad) == "admin channel: 400"


def test_without_a_request_there_is_no_answer(world: World) -> None:
    number = world.numbers["admin"]
    assert world.step(CreateChannel(number, None, "quiet")) == []
    assert world.step(CreateChannel(number, None, "quiet")) == []
    assert world.step(Join(number, None, "quiet")) == []


def test_the_number_of_channels_is_bounded() -> None:
    world = World(EngineLimits(max_channels=1))
    world.connect("admin")
    assert create_channel(world, "one") == "admin channel: 0"
    assert create_channel(world, "two") == "admin channel: 482"
    assert world.join("admin", "two") == ["admin join: 482"]
    assert world.push("m", channel="two") == ["p wire of m: 482"]


def test_joining_and_leaving(world: World) -> None:
    assert world.leave("admin") == ["admin leave: 404"]
    assert world.join("admin") == ["admin join: 0"]  # creates the channel
    assert world.join("admin", "CH") == ["admin join: 0"]
    assert world.join("admin", "no name") == ["admin join: 400"]
    assert world.leave("admin", "Ch") == ["admin leave: 0"]
    assert world.leave("admin") == ["admin leave: 404"]
    strict = World(options=BrokerOptions(auto_channel_creation=False, events=NO_EVENTS))
    assert strict.join("a") == ["a join: 404"]


def test_a_channels_client_limit(world: World) -> None:
    create_channel(world, "ch", ChannelChanges(client_limit=2))
    world.join("a")
    world.join("b")
    assert world.join("c") == ["c join: 482"]
    assert world.join("a") == ["a join: 0"]
    world.leave("a")
    assert world.join("c") == ["c join: 0"]


def test_joining_creates_a_channel_unless_the_join_says_no(world: World) -> None:
    number = world.numbers["admin"]
    assert world.step(Join(number, "join", "ch", creates=False)) == ["admin join: 404"]
    assert world.broker.statistics().channels == 0
    assert world.step(Join(number, "join", "ch")) == ["admin join: 0"]
    assert world.step(Join(number, "join", "ch", creates=False)) == ["admin join: 0"]


def test_subscriptions_of_a_session_are_bounded() -> None:
    world = World(EngineLimits(max_subscriptions_per_session=2))
    world.join("a", "one")
    world.join("a", "two")
    assert world.join("a", "three") == ["a join: 482"]
    assert world.join("a", "two") == ["a join: 0"]


def test_removing_a_channel(world: World) -> None:
    number = world.numbers["admin"]
    world.join("a")
    world.push("m1")
    world.push("m2", queue_id=2)
    assert world.step(RemoveChannel(number, "remove", "CH")) == [
        "a left ch",
        "admin remove: 0",
    ]
    assert world.step(RemoveChannel(number, "remove", "ch")) == ["admin remove: 404"]
    world.finish()
    statistics = world.broker.statistics()
    assert (statistics.channels, statistics.queues, statistics.bytes) == (0, 0, 0)
    assert world.ack("a", "m1") == []
    assert world.leave("a") == ["a leave: 404"]
    # A new channel of that name knows nothing of the old one.
    assert world.push("m3") == []
    assert world.wait(60) == []
    assert world.books() == {"messages": 1, "accepted": 1, "received_messages": 1}


def test_an_empty_channel_may_destroy_itself(world: World) -> None:
    create_channel(world, "ch", ChannelChanges(destroy_when_empty=True))
    world.join("a")
    world.join("b")
    world.push("m1")
    world.leave("a")
    world.leave("b")
    assert world.broker.statistics().channels == 1  # m1 is in flight
    world.join("a")
    world.ack("a", "m1")
    world.disconnect("a")
    assert world.broker.statistics().channels == 1
    world.join("b")
    world.ack("b", "m1")
    world.disconnect("b")
    assert world.broker.statistics().channels == 0


# --- Queues (F54-F58, F64, F73) ------------------------------------------------------------------


def test_creating_queues(world: World) -> None:
    assert world.create() == ["admin create: 0"]
    assert world.create() == ["admin create: 481"]
    assert world.create(channel="CH") == ["admin create: 481"]
    assert world.create(queue_id=65_535) == ["admin create: 0"]
    assert world.create(queue_id=65_536) == ["admin create: 400"]
    assert world.create(queue_id=-1) == ["admin create: 400"]
    assert world.create(QueueChanges(delivery_handler="nope"), queue_id=2) == ["admin create: 406"]
    assert world.create(QueueChanges(delivery_handler="Reject"), queue_id=2) == [
        "admin create: 406"
    ]
    assert world.create(channel="bad name") == ["admin create: 400"]
    for changes in (
        QueueChanges(status=7),
        QueueChanges(status=-1),
        QueueChanges(acknowledge_timeout_ms=-1),
        QueueChanges(message_timeout_ms=-1),
        QueueChanges(message_limit=-1),
        QueueChanges(message_size_limit=-1),
        QueueChanges(put_back_limit=-2),
        QueueChanges(dead_letter=("x", 70_000)),
    ):
        assert world.create(changes, queue_id=3) == ["admin create: 400"], changes
    assert world.create(QueueChanges(acknowledge_timeout_ms=3_600_001), queue_id=3) == [
        "admin create: 482"
    ]
    assert world.create(QueueChanges(put_back_limit=1_001), queue_id=3) == ["admin create: 482"]


def test_the_defaults(world: World) -> None:
    world.create()
    options = world.queue().options
    assert (options.status, options.request_acknowledge) == (1, True)
    assert (options.acknowledge_timeout_ms, options.message_timeout_ms) == (15_000, 0)
    assert (options.use_message_id, options.wait_for_acknowledge) == (True, False)
    assert (options.hide_client_names, options.send_only_first_acquirer) == (False, False)
    assert (options.message_limit, options.message_size_limit) == (0, 0)
    assert (options.put_back_limit, options.dead_letter, options.tag) == (20, None, None)


def test_a_queue_starts_from_its_channel_and_what_is_asked_for(world: World) -> None:
    changes = ChannelChanges(queue=QueueChanges(acknowledge_timeout_ms=33_000, status=3))
    create_channel(world, "ch", changes)
    world.create(QueueChanges(message_limit=3))
    options = world.queue().options
    assert (options.acknowledge_timeout_ms, options.status, options.message_limit) == (33_000, 3, 3)
    assert options.request_acknowledge


def test_the_handler_is_the_queues_or_the_channels_or_the_servers(world: World) -> None:
    create_channel(world, "ch", ChannelChanges(queue=QueueChanges(delivery_handler="reject-nack")))
    world.create(QueueChanges(delivery_handler="ack-received"))
    world.create(queue_id=2)
    world.create(channel="else")
    assert world.push("own") == ["p: own ok F"]
    assert world.push("channel's", queue_id=2) == ["p: channel's no none F"]
    assert world.push("server's", channel="else") == []
    assert world.push("asked", channel="else", wants=True) == ["p: asked ok F"]


def test_creating_a_queue_creates_its_channel_with_the_channels_changes(world: World) -> None:
    number = world.numbers["admin"]
    body = QueueChanges(acknowledge_timeout_ms=7_000, status=3)
    command = CreateQueue(number, "r", "qj", 1, body, ChannelChanges(queue=body))
    assert world.step(command) == ["admin r: 0"]
    # What the next queue inherits (seen in the recorded exchanges).
    assert world.step(CreateQueue(number, "r", "qj", 2)) == ["admin r: 0"]
    assert world.queue("qj", 2).options.acknowledge_timeout_ms == 7_000
    # The changes of a channel that is there already do not apply.
    again = ChannelChanges(queue=QueueChanges(status=0))
    assert world.step(CreateQueue(number, "r", "qj", 3, None, again)) == ["admin r: 0"]
    assert world.queue("qj", 3).options.status == 3


def test_nothing_is_created_halfway(world: World) -> None:
    assert world.create(QueueChanges(status=9), channel="new") == ["admin create: 400"]
    number = world.numbers["admin"]
    not_allowed = ChannelChanges(allowed_queues=(5,))
    command = CreateQueue(number, "r", "new", 1, None, not_allowed)
    assert world.step(command) == ["admin r: 406"]
    assert world.broker.statistics().channels == 0


def test_who_asks_for_a_queue_asks_for_its_channel() -> None:
    """F54: that is not automatic creation, and the original does it without that (seen)."""
    strict = World(options=BrokerOptions(auto_channel_creation=False, events=NO_EVENTS))
    assert strict.create() == ["admin create: 0"]


def test_rules_of_a_channel_about_its_queues(world: World) -> None:
    create_channel(world, "single", ChannelChanges(allow_multiple_queues=False))
    assert world.create(channel="single") == ["admin create: 0"]
    assert world.create(channel="single", queue_id=2) == ["admin create: 482"]
    assert world.push("m", channel="single", queue_id=2) == ["p wire of m: 482"]
    create_channel(world, "allowed", ChannelChanges(allowed_queues=(1, 5)))
    assert world.create(channel="allowed", queue_id=5) == ["admin create: 0"]
    assert world.create(channel="allowed", queue_id=2) == ["admin create: 406"]
    create_channel(world, "none", ChannelChanges(allowed_queues=()))
    assert world.create(channel="none", queue_id=2) == ["admin create: 0"]
    create_channel(world, "limited", ChannelChanges(queue_limit=2))
    assert world.create(channel="limited", queue_id=1) == ["admin create: 0"]
    assert world.create(channel="limited", queue_id=2) == ["admin create: 0"]
    assert world.create(channel="limited", queue_id=3) == ["admin create: 482"]


def test_the_number_of_queues_is_bounded() -> None:
    world = World(EngineLimits(max_queues_per_channel=2))
    assert world.create(queue_id=1) == ["admin create: 0"]
    assert world.create(queue_id=2) == ["admin create: 0"]
    assert world.create(queue_id=3) == ["admin create: 482"]
    assert world.push("m", queue_id=3) == ["p wire of m: 482"]


@pytest.mark.long
def test_a_channel_with_every_queue_it_can_have() -> None:
    """65,536 ids; the default limit is 1,000.  Times and memory: ``tmqp_bench overview``."""
    broker = Broker(EngineLimits(max_queues_per_channel=65_536))
    broker.step(Connect(1, None, "a"), 0.0)
    for queue_id in range(65_536):
        broker.step(CreateQueue(1, None, "ch", queue_id), 0.0)
    assert len(broker.queues()) == 65_536
    last = Push(1, "m", "ch", 65_535, False, False, 1, b"wire")
    broker.step(Join(1, None, "CH"), 0.0)
    assert [type(effect) for effect in broker.step(last, 0.0)] == [Deliver]
    broker.step(RemoveChannel(1, "remove", "ch"), 0.0)
    steps = 0
    while broker.queues():
        broker.on_deadline(0.0)
        steps += 1
    assert 60 < steps < 70  # in portions: no step is long


def test_updating(world: World) -> None:
    changes = QueueChanges(tag="t", message_limit=1, delivery_handler="ack-received")
    assert world.update(changes) == ["admin update: 404"]
    world.create()
    assert world.update(changes) == ["admin update: 0"]
    options = world.queue().options
    assert (options.tag, options.message_limit, options.status) == ("t", 1, 1)
    assert world.push("m1") == ["p: m1 ok F"]
    assert world.update(QueueChanges(delivery_handler="nope")) == ["admin update: 406"]
    assert world.update(QueueChanges(status=9)) == ["admin update: 400"]
    assert world.queue().options is options


def test_removing_queues(world: World) -> None:
    number = world.numbers["admin"]
    world.create()
    world.push("m1")
    queue = world.queue()
    assert world.step(RemoveQueue(number, "r", "ch", 1)) == ["admin r: 0"]
    assert world.step(RemoveQueue(number, "r", "ch", 1)) == ["admin r: 404"]
    assert world.step(RemoveQueue(number, "r", "nope", 1)) == ["admin r: 404"]
    world.finish()
    assert (queue.imbalance(), queue.counters.cleared, queue.bytes, queue.closed) == (0, 1, 0, True)
    assert world.join("a") == ["a join: 0"]
    assert world.wait(60) == []


@pytest.mark.parametrize(("high", "regular"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_clearing(world: World, high: bool, regular: bool) -> None:
    number = world.numbers["admin"]
    world.create()
    world.push("h1", high=True)
    world.push("h2", high=True, extras=PushExtras(delay_ms=1000))
    world.push("r1")
    world.push("r2", extras=PushExtras(delay_ms=1000, expires_in_ms=9000))
    world.push("r3", extras=PushExtras(expires_in_ms=9000))
    command = ClearMessages(number, "clear", "ch", 1, bool(high), bool(regular))
    assert world.step(command) == ["admin clear: 0"]
    assert world.books().get("cleared", 0) == 2 * high + 3 * regular
    world.finish()
    assert world.queue().bytes == 10 * (5 - 2 * high - 3 * regular)
    world.wait(2)
    left = [] if high else ["a <- h1 FA", "a <- h2 FA"]
    left += [] if regular else ["a <- r1 FA", "a <- r3 FA", "a <- r2 FA"]
    assert world.join("a") == [*left, "a join: 0"]
    assert world.wait(10) == []
    assert "expired" not in world.books()
    missing = ClearMessages(number, "clear", "ch", 9, True, True)
    assert world.step(missing) == ["admin clear: 404"]


def test_clearing_leaves_what_is_in_flight(world: World) -> None:
    world.create(QueueChanges(delivery_handler="putback-start"))
    world.join("a")
    world.push("m1")
    world.step(ClearMessages(world.numbers["admin"], None, "ch", 1, True, True))
    assert world.nack("a", "m1") == ["a <- m1 AR"]


def test_clearing_takes_what_is_in_flight_where_that_is_wanted(world: World) -> None:
    world.create(QueueChanges(delivery_handler="putback-start", wait_for_acknowledge=True))
    world.join("a")
    world.push("m1")
    world.push("m2", extras=PushExtras(delay_ms=1000))
    assert world.push("m3") == []
    command = ClearMessages(world.numbers["admin"], "clear", "ch", 1, True, True, True)
    assert world.step(command) == ["admin clear: 0"]
    world.finish()
    assert world.nack("a", "m1") == []
    assert world.queue().bytes == 0
    assert world.books()["cleared"] == 3
    assert world.push("m4") == ["a <- m4 FA"]


# --- Events (F36, F93, F102, F103) ---------------------------------------------------------------


def test_events_in_order() -> None:
    world = World(options=BrokerOptions(events=ALL_EVENTS))
    assert world.connect("a") == ["event ClientConnected", "a accepted"]
    assert world.create(owner="a") == [
        "event ChannelCreated",
        "event QueueCreated",
        "a create: 0",
    ]
    assert world.join("a") == ["event ClientJoined", "a join: 0"]
    assert world.push("m1", producer="a") == ["event MessageProduced", "a <- m1 FA"]
    command = UpdateQueue(world.numbers["a"], "update", "ch", 1, QueueChanges(tag="tg"))
    assert world.step(command) == ["event QueueUpdated", "a update: 0"]
    assert world.leave("a") == ["event ClientLeft", "a leave: 0"]
    world.join("a")
    assert world.step(RemoveChannel(world.numbers["a"], "remove", "ch")) == [
        "event QueueRemoved",
        "event ChannelRemoved",
        "a left ch",
        "a remove: 0",
    ]
    world.join("a", "other")
    world.join("a", "third")
    assert world.disconnect("a") == [
        "event ClientLeft",
        "event ClientLeft",
        "event ClientDisconnected",
    ]


def facts(effects: list[Effect]) -> list[str]:
    return [repr(effect.fact) for effect in effects if isinstance(effect, Notify)]


def test_what_events_are_about() -> None:
    world = World(options=BrokerOptions(events=ALL_EVENTS))
    world.connect("a")
    assert facts(world.last) == ["ClientFact(client_id='a', name='a-name', client_type='a-type')"]
    world.create(QueueChanges(tag="tg"), channel="Ev", queue_id=2, owner="a")
    assert facts(world.last) == [
        "ChannelFact(name='Ev', active_clients=0, client_limit=0)",
        "QueueFact(channel='Ev', queue_id=2, tag='tg', status=1, priority_messages=0, messages=0)",
    ]
    world.join("a", "ev")
    assert facts(world.last) == [
        "SubscriptionFact(channel='Ev', client_id='a', client_name='a-name', client_type='a-type')"
    ]
    world.push("m1", channel="EV", queue_id=2, producer="a")
    assert facts(world.last) == [
        (
            "MessageFact(channel='EV', queue_id=2, message_id='m1', saved=False,"
            " producer_id='a', producer_name='a-name', producer_type='a-type')"
        )
    ]
    world.leave("a", "ev")
    world.push("m2", channel="EV", queue_id=2, producer="a")
    world.step(RemoveQueue(world.numbers["a"], None, "ev", 2))
    # Stopped, with nothing left (F93).
    assert facts(world.last) == [
        "QueueFact(channel='Ev', queue_id=2, tag='tg', status=6, priority_messages=0, messages=0)"
    ]


def test_a_removed_channel_still_counts_its_clients() -> None:
    world = World(options=BrokerOptions(events=ALL_EVENTS))
    world.join("a")
    world.step(RemoveChannel(world.numbers["a"], None, "ch"))
    assert facts(world.last) == ["ChannelFact(name='ch', active_clients=1, client_limit=0)"]


def test_a_refused_push_is_not_produced() -> None:
    world = World(options=BrokerOptions(events=ALL_EVENTS))
    world.create(QueueChanges(delivery_handler="reject"))
    assert "event MessageProduced" not in world.push("m1")


def test_only_wanted_events_are_told() -> None:
    world = World(options=BrokerOptions(events=MESSAGE_PRODUCED))
    assert world.join("a") == ["a join: 0"]
    world = World(options=BrokerOptions())
    assert world.join("a") == ["event ChannelCreated", "event ClientJoined", "a join: 0"]
    assert world.push("m1") == ["event QueueCreated", "a <- m1 FA"]


def test_event_bits() -> None:
    names = [event_name(1 << bit) for bit in range(12)]
    assert names == [name.value for name in EventName]
    assert LIFECYCLE_EVENTS | MESSAGE_PRODUCED == ALL_EVENTS == (1 << 12) - 1
    assert LIFECYCLE_EVENTS & MESSAGE_PRODUCED == 0
    assert BrokerOptions().events == LIFECYCLE_EVENTS


def test_options_are_whole() -> None:
    values: dict[str, Any] = {
        "status": 0,
        "request_acknowledge": False,
        "acknowledge_timeout_ms": 1,
        "message_timeout_ms": 2,
        "use_message_id": False,
        "wait_for_acknowledge": True,
        "hide_client_names": True,
        "send_only_first_acquirer": True,
        "message_limit": 3,
        "message_size_limit": 4,
        "put_back_limit": 5,
        "dead_letter": ("dead", 6),
        "delivery_handler": "reject",
        "tag": "tag",
    }
    given = QueueOptions(**values)
    everything = QueueChanges(**values)
    assert repr(everything.applied_to(QueueOptions())) == repr(given)
    assert repr(QueueChanges().applied_to(given)) == repr(given)
    channel = ChannelOptions(
        False, (1,), 2, 3, True, queue=given, authenticator="who", event_handler="what"
    )
    changes = ChannelChanges(
        False, (1,), 2, 3, True, queue=everything, authenticator="who", event_handler="what"
    )
    assert repr(changes.applied_to(ChannelOptions())) == repr(channel)
    assert repr(ChannelChanges().applied_to(channel)) == repr(channel)
