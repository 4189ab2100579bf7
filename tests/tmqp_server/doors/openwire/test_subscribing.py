"""Conversations of OpenWire clients: durable subscriptions, wildcards, temporary destinations,
browsers, and what other protocols have to do with them."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.openwire.talk import (
    Client,
    Q,
    T,
    dispatches,
    error,
    failed,
    fine,
    kept,
    text_of,
    texts,
    world_with,
)
from tmqp_server.doors.openwire.options import OpenwireLimits
from tmqp_server.doors.openwire.session import OpenwireSession
from tmqp_wires.openwire import Command, MessageDispatch
from tmqp_wires.openwire.commands import (
    ADD,
    REMOVE,
    DestinationInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from tmqp_wires.openwire.data import LONG, encode_map
from tmqp_wires.openwire.ids import (
    QUEUE,
    TEMP_QUEUE,
    TEMP_TOPIC,
    TOPIC,
    ConsumerId,
    Destination,
)

ADVISORIES = Destination(TOPIC, "ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")


def n(number: int) -> bytes:
    """Properties of a message."""
    return encode_map([("n", LONG, number)])


# --- Exclusive consumers -------------------------------------------------------------------------


def test_an_exclusive_consumer_gets_all_and_the_next_takes_over() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    client.consume(Q)
    other.consume(Q, exclusive=True)
    client.consume(Q, number=2, exclusive=True, priority=0)
    for number in range(3):
        client.send(str(number))
    assert texts(other.hear()) == ["0", "1", "2"]
    other.connection.leave()
    found = dispatches(client.hear())
    assert [text_of(each) for each in found] == ["0", "1", "2"]
    assert {each.consumer.value for each in found if each.consumer} == {2}
    assert texts(client.end(2) + client.send("3")) == ["0", "1", "2", "3"]


# --- Priorities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [True, False])
def test_the_order_of_priorities_where_it_is_configured(groups: bool) -> None:
    world = world_with(priorities=True, groups=groups)
    client = Client(world)
    for priority in (4, 1, 9, 0, 7, 9):
        client.send(str(priority), priority=priority)
    assert texts(client.consume(Q, prefetch=3)) == ["9", "9", "7"]
    found = dispatches(client.end() + client.consume(Q, number=2))
    assert [text_of(each) for each in found] == ["9", "9", "7", "4", "1", "0"]


def test_two_priorities_order_a_queue_where_nothing_is_configured() -> None:
    client = Client(world_with())
    for priority in (4, 1, 9, 0, 7):
        client.send(str(priority), priority=priority)
    assert texts(client.consume(Q)) == ["9", "7", "4", "1", "0"]


# --- Durable subscriptions -----------------------------------------------------------------------


def test_a_durable_subscription_keeps_what_is_sent_while_its_client_is_away() -> None:
    world = world_with()
    client, other = Client(world, "me"), Client(world)
    assert fine(client.consume(T, subscription="s"))
    (found,) = dispatches(client.send("1", T))
    client.ack(found)
    client.connection.leave()
    other.send("2", T)
    client = Client(world, "me")
    (found,) = dispatches(client.consume(T, subscription="s"))
    message = found.message
    assert message is not None
    assert message.destination is not None
    assert (text_of(found), message.destination.name) == ("2", "t")
    assert message.destination.type == TOPIC
    client.ack(found)
    assert kept(world) == 0


def test_a_durable_subscription_has_one_consumer_and_cannot_be_removed_under_it() -> None:
    world = world_with()
    client = Client(world, "me")
    client.consume(T, subscription="s")
    name, text = failed(client.consume(T, number=2, subscription="s"))
    assert name == "javax.jms.JMSException"
    assert "is in use" in text
    assert "in use" in failed(client.ask(RemoveSubscriptionInfo(client.name, "s", "me")))[1]
    client.end()
    assert fine(client.ask(RemoveSubscriptionInfo(client.name, "s", "me")))
    client.send("gone", T)
    assert texts(client.consume(T, number=3, subscription="s")) == []
    missing = client.ask(RemoveSubscriptionInfo(client.name, "missing", "me"))
    assert error(missing) == "InvalidDestinationException"


def test_a_durable_subscription_was_free_when_its_first_client_ended_a_second_time() -> None:
    world = world_with()
    first = Client(world, "me")
    first.consume(T, subscription="s")
    session = world.hub._sessions[first.connection.number]
    second = Client(world, "me", failover_reconnect=True)
    assert fine(second.consume(T, subscription="s"))
    session.receive_eof(world.now)
    assert "in use" in failed(second.consume(T, number=2, subscription="s"))[1]


def test_another_topic_or_selector_begins_a_durable_subscription_anew() -> None:
    client = Client(world_with(), "me")
    client.consume(T, subscription="s")
    client.end()
    client.send("old", T)
    client.consume(T, number=2, subscription="s", selector="n = 2")
    assert texts(client.send("1", T, properties=n(1))) == []
    assert texts(client.send("2", T, properties=n(2))) == ["2"]
    client.end(2)
    other = Destination(TOPIC, "u")
    client.consume(other, number=3, subscription="s")
    assert texts(client.send("t", T, properties=n(2))) == []
    assert texts(client.send("u", other)) == ["u"]
    bad = client.consume(T, number=4, subscription="x", selector="n = = 2")
    assert error(bad) == "InvalidSelectorException"
    both = Destination(TOPIC, "a,b")
    assert error(client.consume(both, number=4, subscription="x")) == "InvalidDestinationException"


def test_a_durable_subscription_without_what_its_own_connection_has_sent() -> None:
    world = world_with()
    client, other = Client(world, "me"), Client(world)
    client.consume(T, subscription="s", no_local=True)
    assert texts(client.send("own", T)) == []
    assert client.written() == []
    assert kept(world) == 0
    other.send("other", T)
    assert texts(client.hear()) == ["other"]


# --- Composite destinations, wildcards, virtual topics -------------------------------------------


def test_a_message_for_several_destinations_and_a_consumer_of_several() -> None:
    client = Client(world_with())
    topic = Destination(TOPIC, "b")
    client.consume(topic)
    found = client.send("x", Destination(QUEUE, "a,topic://b"))
    assert fine(found)
    assert texts(found) == ["x"]
    both = client.consume(Destination(QUEUE, "a?consumer.prefetch=1,c"), number=2)
    (dispatch,) = dispatches(both)
    assert dispatch.destination is not None
    assert dispatch.destination.name == "a"
    (dispatch,) = dispatches(client.send("y", Destination(QUEUE, "c")))
    assert dispatch.destination is not None
    assert dispatch.destination.name == "c"
    client.ack(dispatch)


def test_wildcards_join_what_is_there_and_what_comes() -> None:
    world = world_with(OpenwireLimits(max_matches=2))
    client, other = Client(world), Client(world)
    client.send("a", Destination(QUEUE, "w.a"))
    client.send("no", Destination(QUEUE, "v.a"))
    client.send("no", Destination(TOPIC, "w.a"))
    assert texts(client.consume(Destination(QUEUE, "w.>"))) == ["a"]
    client.written()
    other.send("B", Destination(QUEUE, "w.B.c"))
    assert texts(client.written()) == ["B"]
    (dispatch,) = dispatches(client.send("b", Destination(QUEUE, "w.B.c")))
    assert dispatch.destination is not None
    assert dispatch.destination.name == "w.B.c"
    assert client.ack(dispatch) == []
    other.send("too many", Destination(QUEUE, "w.d"))
    assert texts(client.written()) == []
    client.end()
    assert kept(world) == 4


def test_virtual_topics() -> None:
    client = Client(world_with())
    topic = Destination(TOPIC, "VirtualTopic.x.y")
    for number, name in enumerate(("A", "B"), 1):
        queue = Destination(QUEUE, f"Consumer.{name}.VirtualTopic.x.y")
        assert fine(client.consume(queue, number=number))
    found = dispatches(client.send("x", topic))
    assert [text_of(each) for each in found] == ["x", "x"]
    message = found[0].message
    assert message is not None
    assert message.destination is not None
    assert message.original_destination is not None
    assert message.destination.name == "Consumer.A.VirtualTopic.x.y"
    assert message.original_destination.name == "VirtualTopic.x.y"


def test_a_group_goes_to_one_consumer() -> None:
    world = world_with()
    one, two = Client(world), Client(world)
    one.consume()
    two.consume()
    for number in range(6):
        one.tell(one.message(str(number), group_id="g"))
    found = texts(two.hear())
    assert len(found) in (0, 6)


# --- Temporary destinations ----------------------------------------------------------------------


def temporary(client: Client, number: int = 1, type: int = TEMP_QUEUE) -> Destination:
    """A temporary destination of a client, made."""
    made = Destination(type, f"{client.name}:{number}")
    assert fine(client.ask(DestinationInfo(client.name, made, ADD)))
    return made


def news(commands: list[Command]) -> list[tuple[int, str]]:
    """What advisories tell."""
    found: list[tuple[int, str]] = []
    for each in dispatches(commands):
        message = each.message
        assert message is not None
        if isinstance(message.structure, DestinationInfo):
            assert message.jms_type == "Advisory"
            assert message.structure.destination is not None
            found.append((message.structure.operation, message.structure.destination.name))
    return found


def test_all_are_told_of_temporary_destinations() -> None:
    world = world_with()
    early, owner = Client(world), Client(world)
    assert news(early.consume(ADVISORIES)) == []
    queue = temporary(owner)
    assert news(early.hear()) == [(ADD, queue.name)]
    late = Client(world)
    assert news(late.consume(ADVISORIES)) == [(ADD, queue.name)]
    assert fine(owner.ask(DestinationInfo(owner.name, queue, REMOVE)))
    assert news(early.hear()) == news(late.hear()) == [(REMOVE, queue.name)]
    topic = temporary(owner, 2, TEMP_TOPIC)
    assert news(early.hear()) == [(ADD, topic.name)]
    late.tell(RemoveInfo(ConsumerId(late.name, 1, 1)))
    owner.connection.leave()
    assert news(early.hear()) == [(REMOVE, topic.name)]
    assert news(late.hear()) == []


def test_other_advisories_are_silent() -> None:
    client = Client(world_with())
    assert fine(client.consume(Destination(TOPIC, "ActiveMQ.Advisory.Connection")))
    temporary(client)
    assert client.hear() == []


def test_only_its_owner_consumes_from_a_temporary_queue_and_others_send_to_it() -> None:
    world = world_with()
    owner, other = Client(world), Client(world)
    queue = temporary(owner)
    assert fine(owner.consume(queue))
    assert error(other.consume(queue)) == "JMSSecurityException"
    assert fine(other.send("answer", queue))
    assert texts(owner.hear()) == ["answer"]
    owner.connection.leave()
    assert error(other.send("late", queue)) == "InvalidDestinationException"


def test_too_many_temporary_destinations_and_what_is_none() -> None:
    client = Client(world_with(OpenwireLimits(max_temporary=1)))
    queue = temporary(client)
    more = Destination(TEMP_QUEUE, f"{client.name}:2")
    assert (
        error(client.ask(DestinationInfo(client.name, more, ADD))) == "ResourceAllocationException"
    )
    assert fine(client.ask(DestinationInfo(client.name, queue, REMOVE)))
    assert error(client.ask(DestinationInfo(client.name, queue, REMOVE))).startswith("Invalid")
    assert error(client.ask(DestinationInfo(client.name, None, ADD))).startswith("Invalid")
    assert error(client.ask(DestinationInfo(client.name, more, 7))) == "JMSException"
    assert fine(client.ask(DestinationInfo(client.name, Q, ADD)))
    assert fine(client.ask(DestinationInfo(client.name, Q, ADD))), "it is there"


def test_who_must_answer_to_a_temporary_queue_is_told_of_it_first() -> None:
    world = world_with()
    asking, serving = Client(world), Client(world)
    queue = temporary(asking)
    serving.consume(ADVISORIES)
    serving.consume(number=2)
    assert fine(asking.ask(DestinationInfo(asking.name, queue, REMOVE)))
    serving.hear()
    asking.send("?", reply_to=queue)
    found = serving.hear()
    assert news(found) == [(ADD, queue.name)]
    assert len(dispatches(found)) == 2


# --- Browsers ------------------------------------------------------------------------------------


def looked(client: Client, commands: list[Command]) -> list[MessageDispatch]:
    """All that a browser is shown."""
    found = dispatches(commands)
    while found[-1:] == [] or found[-1].message is not None:
        more = dispatches(client.written())
        assert more, "it ends"
        found += more
    return found[:-1]


def test_a_browser_sees_what_waits_and_what_is_in_hand_and_changes_nothing() -> None:
    world = world_with()
    client = Client(world)
    for number in range(3):
        client.send(str(number), properties=n(number))
    client.consume(prefetch=1)
    found = looked(client, client.consume(number=2, browser=True, prefetch=1))
    assert [text_of(each) for each in found] == ["0", "1", "2"]
    client.ack(*found)
    client.end(2)
    found = looked(client, client.consume(number=3, browser=True, selector="n > 1"))
    assert [text_of(each) for each in found] == ["2"]
    assert looked(client, client.consume(Destination(QUEUE, "none"), 4, browser=True)) == []
    assert kept(world) == 3


def test_what_cannot_be_browsed() -> None:
    client = Client(world_with(OpenwireLimits(max_consumers=1)))
    assert error(client.consume(T, browser=True)) == "InvalidDestinationException"
    client.consume(browser=True)
    assert error(client.consume(number=2, browser=True)) == "ResourceAllocationException"


def test_a_browser_that_is_closed_while_another_waits() -> None:
    client = Client(world_with())
    client.send("x")
    for number in (1, 2):
        client.wire.send(client.info(number=number, browser=True))
    client.wire.send(RemoveInfo(ConsumerId(client.name, 1, 1)))
    client.connection.say(client.wire.data_to_send())
    found = looked(client, client.hear())
    assert "x" in [text_of(each) for each in found if each.message is not None]


# --- Limits --------------------------------------------------------------------------------------


def test_consumers_and_producers_have_bounds_and_ids() -> None:
    client = Client(world_with(OpenwireLimits(max_consumers=1, max_unanswered=1)))
    assert fine(client.consume())
    assert error(client.consume(number=2)) == "ResourceAllocationException"
    assert error(client.consume()) == "JMSException"
    assert client.connection.reads


@pytest.mark.parametrize("field", ["max_frame_bytes", "max_consumers", "connect_s"])
def test_limits_are_positive(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        OpenwireLimits(**{field: 0})


def test_a_connection_that_was_reset_kept_its_durable_subscription_and_temporary_queue() -> None:
    """Seed 4607: a transport that has gone is forgotten without a word to the session."""
    world = world_with()
    first = Client(world, "me")
    first.consume(T, subscription="s")
    queue = Destination(TEMP_QUEUE, f"{first.name}:1")
    assert fine(first.ask(DestinationInfo(first.name, queue, ADD)))
    number = first.connection.number
    session = world.hub._sessions[number]
    assert isinstance(session, OpenwireSession)
    shared = session._context
    assert (len(shared.in_use), len(shared.temporary)) == (1, 1)
    world.hub.take_back(number, 0, world.now)
    world.hub.forget(number, world.now)
    assert (len(shared.in_use), len(shared.temporary)) == (0, 0)
    second = Client(world, "me")
    assert fine(second.consume(T, subscription="s"))
    session.take_back(0)
    assert len(shared.in_use) == 1, "it is another's by now"
