"""Subscriptions to events: who is told of what, in which spelling, and until when."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Block,
    CreateChannel,
    RemoveChannel,
    RemoveQueue,
    SubscribeEvent,
    Unblock,
)
from tmqp_server.engine.effects import EventsEnded, Inform, TellHandler
from tmqp_server.engine.events import (
    ALL_EVENTS,
    CHANNEL_CREATED,
    CHANNEL_REMOVED,
    CLIENT_CONNECTED,
    CLIENT_DISCONNECTED,
    CLIENT_JOINED,
    CLIENT_LEFT,
    MESSAGE_PRODUCED,
    NO_EVENTS,
    QUEUE_CREATED,
    QUEUE_REMOVED,
    QUEUE_UPDATED,
    event_name,
)
from tmqp_server.engine.options import BrokerOptions, ChannelChanges, ChannelOptions, QueueChanges

OF_A_CHANNEL = [CLIENT_JOINED, CLIENT_LEFT, QUEUE_CREATED, QUEUE_UPDATED, QUEUE_REMOVED]
OF_THE_SERVER = [CLIENT_CONNECTED, CLIENT_DISCONNECTED, CHANNEL_CREATED, CHANNEL_REMOVED]


def world_with(*events: int, channel: str = "Ch") -> World:
    """Queue 1 of the channel Ch, and a listener to these events."""
    world = World()
    world.create(channel="Ch")
    world.connect("ear")
    for event in events:
        assert listen(world, event, channel) == ["ear r: 0"]
    return world


def listen(
    world: World,
    event: int,
    channel: str = "Ch",
    queue_id: int | None = 1,
    wanted: bool = True,
    who: str = "ear",
) -> list[str]:
    number = world.numbers[who]
    return world.step(SubscribeEvent(number, "r", event, channel, queue_id, wanted))


def test_events_of_the_server() -> None:
    world = world_with(*OF_THE_SERVER)
    assert world.connect("x") == ["ear told ClientConnected", "x accepted"]
    assert world.disconnect("x") == ["ear told ClientDisconnected"]
    told = world.step(CreateChannel(1, "c", "other"))
    assert told == ["ear told ChannelCreated", "admin c: 0"]
    told = world.step(RemoveChannel(1, "c", "other"))
    assert told == ["ear told ChannelRemoved", "admin c: 0"]


def test_events_of_a_channel_in_the_subscribers_spelling() -> None:
    world = world_with(*OF_A_CHANNEL, channel="CH")
    assert world.join("x", "ch")[-2:] == ["ear told ClientJoined in CH", "x join: 0"]
    assert world.leave("x", "cH") == ["ear told ClientLeft in CH", "x leave: 0"]
    assert world.create(channel="ch", queue_id=2)[0] == "ear told QueueCreated in CH"
    told = world.update(QueueChanges(tag="t"), channel="ch", queue_id=2)
    assert told[0] == "ear told QueueUpdated in CH"
    assert world.step(RemoveQueue(1, "q", "ch", 2))[0] == "ear told QueueRemoved in CH"
    assert world.join("x", "other") == ["x join: 0"]  # another channel


def test_a_message_produced_is_told_of_one_queue_only() -> None:
    world = world_with(MESSAGE_PRODUCED)
    assert world.push("m1", channel="CH") == ["ear told MessageProduced in Ch"]
    inform = world.last[0]
    assert isinstance(inform, Inform)
    assert "channel='CH', queue_id=1, message_id='m1', saved=False" in repr(inform.fact)
    assert world.push("m2", channel="ch", queue_id=2) == []


def test_what_nobody_listens_to_makes_no_fact() -> None:
    world = world_with(MESSAGE_PRODUCED, CLIENT_JOINED)
    notices = world.broker._core.notices
    assert notices.mask == MESSAGE_PRODUCED | CLIENT_JOINED
    listen(world, MESSAGE_PRODUCED, wanted=False)
    listen(world, CLIENT_JOINED, "CH", wanted=False)
    assert notices.mask == NO_EVENTS
    assert (notices._places, notices._channels) == ({}, {})
    assert world.push("m", channel="ch") == []


@pytest.mark.parametrize("event", [*OF_A_CHANNEL, MESSAGE_PRODUCED])
def test_what_an_event_needs_must_be_there(event: int) -> None:
    world = world_with()
    for wanted in (True, False):
        for channel in ("", "nowhere"):
            assert listen(world, event, channel, wanted=wanted) == ["ear r: 1"]
    if event == MESSAGE_PRODUCED:
        assert listen(world, event, queue_id=None) == ["ear r: 1"]
        assert listen(world, event, queue_id=9) == ["ear r: 1"]


@pytest.mark.parametrize("event", OF_THE_SERVER)
def test_events_of_the_server_need_nothing(event: int) -> None:
    world = world_with()
    assert listen(world, event, "nowhere", queue_id=None) == ["ear r: 0"]
    assert [
        each.channel for each in world.broker._core.notices._places[event, "", -1].values()
    ] == [""]


def test_subscribing_again_tells_once_in_the_last_spelling() -> None:
    world = world_with(CLIENT_JOINED)
    assert listen(world, CLIENT_JOINED, "CH") == ["ear r: 0"]
    assert world.join("x", "ch")[-2:] == ["ear told ClientJoined in CH", "x join: 0"]
    assert listen(world, CLIENT_JOINED, "ch", wanted=False) == ["ear r: 0"]
    assert world.join("y", "ch")[-1:] == ["y join: 0"]
    assert not any(isinstance(each, Inform) for each in world.last)


def test_unsubscribing_what_was_not_subscribed_is_no_mistake() -> None:
    assert listen(world_with(), CLIENT_CONNECTED, wanted=False) == ["ear r: 0"]


def test_listeners_are_told_in_groups_of_one_spelling() -> None:
    world = world_with(CLIENT_JOINED)
    world.connect("b", "c", "d")
    for who, channel in (("b", "CH"), ("c", "Ch"), ("d", "CH")):
        listen(world, CLIENT_JOINED, channel, who=who)
    told = world.join("b", "ch")
    assert told == ["ear c told ClientJoined in Ch", "b d told ClientJoined in CH", "b join: 0"]


def test_a_listener_that_does_not_read_misses_events_and_that_is_counted() -> None:
    world = world_with(CLIENT_CONNECTED)
    number = world.numbers["ear"]
    world.step(Block(number))
    assert world.connect("x") == ["x accepted"]
    world.step(Unblock(number))
    assert world.connect("y") == ["ear told ClientConnected", "y accepted"]
    assert world.broker.statistics().events_skipped == 1


def test_a_subscription_ends_with_its_session() -> None:
    world = world_with(*OF_A_CHANNEL, *OF_THE_SERVER, MESSAGE_PRODUCED)
    assert world.disconnect("ear") == []
    assert world.broker._core.notices.mask == NO_EVENTS
    assert world.connect("x") == ["x accepted"]


def test_a_subscription_ends_with_its_channel() -> None:
    world = world_with(QUEUE_REMOVED, CHANNEL_REMOVED, MESSAGE_PRODUCED)
    told = world.step(RemoveChannel(1, "c", "Ch"))
    assert told == [
        "ear told QueueRemoved in Ch",
        "ear hears no more MessageProduced in Ch",
        "ear told ChannelRemoved",
        "ear hears no more QueueRemoved in Ch",
        "admin c: 0",
    ]
    world.create(channel="Ch")
    assert world.step(RemoveQueue(1, "q", "ch", 1)) == ["admin q: 0"]
    assert world.broker._core.notices.mask == CHANNEL_REMOVED


def test_a_subscription_ends_with_its_queue() -> None:
    world = world_with(MESSAGE_PRODUCED, QUEUE_REMOVED)
    world.step(RemoveQueue(1, "q", "ch", 1))
    world.create(channel="Ch")
    assert world.push("m", channel="ch") == []
    assert world.step(RemoveQueue(1, "q", "ch", 1))[0] == "ear told QueueRemoved in Ch"


def test_every_event_can_be_subscribed() -> None:
    events = [*OF_THE_SERVER, *OF_A_CHANNEL, MESSAGE_PRODUCED]
    assert sum(events) == (1 << 10) - 1
    assert len({event_name(event) for event in events}) == 10
    world_with(*events)


def hooked_world(mask: int) -> World:
    options = BrokerOptions(
        events=NO_EVENTS, authenticators=("own",), event_handlers={"log": mask, "deaf": 0}
    )
    world = World(options=options)
    world.connect("a")
    return world


def create_with_handler(world: World, handler: str) -> list[str]:
    changes = ChannelChanges(event_handler=handler)
    return world.step(CreateChannel(world.numbers["a"], "r", "Ch", changes))


def test_a_channels_event_handler_is_told_what_it_wants_and_of_no_other_channel() -> None:
    world = hooked_world(ALL_EVENTS)
    assert create_with_handler(world, "log") == ["log handles ChannelCreated", "a r: 0"]
    world.create(channel="cH")
    assert world.last[0].__class__ is TellHandler
    assert world.join("a", "other") == ["a join: 0"]
    assert world.join("a", "ch") == ["log handles ClientJoined", "a join: 0"]
    assert world.push("m1", channel="CH", producer="a")[0] == "log handles MessageProduced"
    assert "log handles MessageProduced" not in world.push("m2", channel="other", producer="a")
    number = world.numbers["a"]
    assert world.step(RemoveChannel(number, "r", "ch")) == [
        "log handles QueueRemoved",
        "log handles ChannelRemoved",
        "a left Ch",
        "a r: 0",
    ]
    assert world.join("a", "ch") == ["a join: 0"], "the next channel has no handler"


def test_what_an_event_handler_does_not_want_costs_nothing() -> None:
    world = hooked_world(CLIENT_JOINED)
    notices = world.broker._core.notices
    assert notices.mask == NO_EVENTS
    assert create_with_handler(world, "deaf") == ["a r: 0"]
    assert notices.mask == NO_EVENTS
    world.step(RemoveChannel(world.numbers["a"], "r", "ch"))
    assert create_with_handler(world, "log") == ["a r: 0"]
    assert notices.mask == CLIENT_JOINED
    world.step(RemoveChannel(world.numbers["a"], "r", "ch"))
    assert notices.mask == NO_EVENTS


def test_authenticators_are_known_by_channel_and_changes_are_counted() -> None:
    world = hooked_world(NO_EVENTS)
    broker = world.broker
    assert (broker.has_authenticators, broker.authenticator_of("c")) == (True, "")
    number = world.numbers["a"]
    world.step(CreateChannel(number, "r", "plain"))
    assert broker.authenticator_changes() == 0
    world.step(CreateChannel(number, "r", "c", ChannelChanges(authenticator="own")))
    assert (broker.authenticator_of("C"), broker.authenticator_changes()) == ("own", 1)
    world.step(RemoveChannel(number, "r", "c"))
    assert (broker.authenticator_of("c"), broker.authenticator_changes()) == ("", 2)
    for bad in (ChannelChanges(authenticator="no"), ChannelChanges(event_handler="no")):
        assert world.step(CreateChannel(number, "r", "c", bad)) == ["a r: 406"]


def test_a_broker_does_not_start_with_hooks_that_are_not_there() -> None:
    for channel in (ChannelOptions(authenticator="no"), ChannelOptions(event_handler="no")):
        with pytest.raises(ValueError, match="no such authenticator or event handler"):
            Broker(options=BrokerOptions(channel=channel))


def test_a_listener_is_told_that_what_it_listened_to_is_gone() -> None:
    world = world_with(MESSAGE_PRODUCED, CLIENT_JOINED)
    world.connect("other")
    assert listen(world, CLIENT_JOINED, "CH", None, who="other") == ["other r: 0"]
    said = world.step(RemoveQueue(world.numbers["other"], "r", "Ch", 1))
    assert said == ["ear hears no more MessageProduced in Ch", "other r: 0"]
    said = world.step(RemoveChannel(world.numbers["other"], "r", "Ch"))
    assert [each for each in said if "no more" in each] == [
        "ear hears no more ClientJoined in Ch",
        "other hears no more ClientJoined in CH",
    ]


def test_who_ended_its_subscription_is_told_nothing_more() -> None:
    world = world_with(MESSAGE_PRODUCED)
    listen(world, MESSAGE_PRODUCED, wanted=False)
    effects = world.broker.step(RemoveChannel(world.numbers["ear"], "r", "Ch"), world.now)
    assert not [each for each in effects if isinstance(each, EventsEnded)]
