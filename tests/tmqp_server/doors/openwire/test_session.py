"""Conversations of OpenWire clients: how they come, send, consume and answer."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.openwire.talk import (
    Client,
    Q,
    T,
    brokers,
    dispatches,
    error,
    failed,
    fine,
    kept,
    text_of,
    texts,
    world_with,
)
from tmqp_server.doors.openwire.options import OpenwireLimits, OpenwireOptions
from tmqp_server.engine.commands import ClearMessages
from tmqp_wires.openwire import ClientConnection, WireFormat
from tmqp_wires.openwire.commands import (
    LAST_UNKNOWN,
    ConnectionError_,
    ConnectionInfo,
    ConsumerControl,
    MessagePull,
    ProducerAck,
    ProducerInfo,
    RemoveInfo,
    SessionInfo,
    ShutdownInfo,
    Throwable,
)
from tmqp_wires.openwire.data import LONG, STRING, encode_map, read_map
from tmqp_wires.openwire.ids import (
    QUEUE,
    ConnectionId,
    ConsumerId,
    Destination,
    ProducerId,
    SessionId,
)
from tmqp_wires.openwire.messages import (
    ACK_DELIVERED,
    ACK_EXPIRED,
    ACK_INDIVIDUAL,
    ACK_POISON,
    ACK_REDELIVERED,
    ACK_UNMATCHED,
)

# --- The beginning and the end -------------------------------------------------------------------


@pytest.mark.parametrize("version", [9, 10, 11, 12])
def test_a_client_is_let_in_and_says_goodbye(version: int) -> None:
    client = Client(world_with(broker_name="b"), version=version)
    assert brokers(client.answers) == ["b"]
    assert fine(client.answers)
    assert client.wire.version == version
    assert fine(client.ask(SessionInfo(SessionId(client.name, 1))))
    assert fine(client.ask(RemoveInfo(ConnectionId(client.name))))
    client.tell(ShutdownInfo())
    assert client.closed == "the client has disconnected"
    assert client.world.broker.statistics().sessions == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request"),
        (b"CONNECT\naccept-version:1.2\n\n\0", "a STOMP client's greeting"),
        (b"\0\0\0\7\2Active", "does not begin with WireFormatInfo"),
    ],
)
def test_strangers_are_cut_off_without_a_word(data: bytes, reason: str) -> None:
    world = world_with()
    stranger = world.client()
    stranger.say(data)
    assert stranger.hear() == b""
    assert reason in stranger.closed
    assert world.broker.statistics().sessions == 0


def test_a_version_that_nobody_speaks_is_refused_by_name() -> None:
    world = world_with()
    old = world.client()
    client = ClientConnection(0.0, WireFormat(8, max_frame_bytes=1 << 20))
    old.say(client.data_to_send())
    assert "version 8 of OpenWire is not supported, 9 to 12 are" in old.closed
    assert b"version 8 of OpenWire" in old.hear()


def test_who_says_nothing_is_closed() -> None:
    world = world_with(OpenwireLimits(connect_s=5.0))
    stranger = world.client()
    world.settle(4.9)
    assert not stranger.closed
    world.settle(5.0)
    assert "did not introduce itself in time" in stranger.closed


def test_a_command_before_the_introduction() -> None:
    world = world_with()
    stranger = world.client()
    client = ClientConnection()
    stranger.say(client.data_to_send())
    client.receive(stranger.hear(), 0.0)
    client.send(ShutdownInfo())
    stranger.say(client.data_to_send())
    assert "came before ConnectionInfo" in stranger.closed


def test_a_client_id_is_for_one_at_a_time() -> None:
    world = world_with()
    first = Client(world, "mine")
    second = Client(world, "mine")
    assert failed(second.answers)[0] == "javax.jms.InvalidClientIDException"
    assert second.closed
    assert not first.closed
    third = Client(world, "mine", provider="6.1.7")
    assert failed(third.answers)[0] == "jakarta.jms.InvalidClientIDException"
    assert fine(Client(world, "mine", failover_reconnect=True).answers)
    assert first.closed, "the same client has come back"


def test_who_introduces_itself_twice() -> None:
    client = Client(world_with())
    assert error(client.ask(ConnectionInfo(client.name, None))) == "JMSException"


def test_what_cannot_be_read_ends_the_connection_with_a_reason() -> None:
    client = Client(world_with(OpenwireLimits(max_frame_bytes=2_000)))
    client.wire.send(client.message("x" * 3_000))
    client.connection.say(client.wire.data_to_send())
    (told,) = client.hear()
    assert isinstance(told, ConnectionError_)
    assert "is too long, at most 2000 are allowed" in (told.exception.message or "")
    assert client.closed


def test_a_server_does_not_take_what_servers_say() -> None:
    client = Client(world_with())
    client.tell(ProducerAck(None, 1))
    assert "is not for a server" in client.closed


def test_signs_of_life_and_silence() -> None:
    world = world_with(inactivity_ms=3_000)
    client = Client(world)
    world.settle(1.1)
    assert client.hear() == []
    world.settle(9.0)
    assert "nothing was heard for 4.5 seconds" in client.closed


@pytest.mark.parametrize(
    "values", [{"inactivity_ms": -1}, {"send_wait_ms": -2}, {"broker_name": ""}]
)
def test_options_that_make_no_sense(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        OpenwireOptions(**values)  # type: ignore[arg-type]


# --- Sending and receiving -----------------------------------------------------------------------


@pytest.mark.parametrize("version", [9, 10, 12])
def test_a_message_comes_as_it_was_sent(version: int) -> None:
    world = world_with()
    client = Client(world, version=version)
    assert fine(client.consume())
    properties = encode_map([("n", LONG, 7), ("s", STRING, "\u00e4")])
    sent = client.message("text", correlation_id="c", jms_type="k", properties=properties)
    found = client.ask(sent)
    assert fine(found)
    (dispatch,) = dispatches(found)
    message = dispatch.message
    assert message is not None
    assert message.destination is not None
    assert (message.destination.name, text_of(dispatch)) == ("q", "text")
    assert (message.correlation_id, message.jms_type) == ("c", "k")
    assert message.properties == properties
    assert str(message.message_id) == str(sent.message_id)
    assert dispatch.redelivery_counter == 0
    client.ack(dispatch)
    assert kept(world) == 0


def test_a_queue_gives_each_message_to_one_and_keeps_what_nobody_wants() -> None:
    world = world_with()
    one, two = Client(world), Client(world)
    one.send("before")
    assert texts(one.consume()) == ["before"]
    two.consume()
    for number in range(4):
        one.tell(one.message(str(number)))
    found = texts(one.hear()), texts(two.hear())
    world.settle()
    assert [len(each) for each in found] == [0, 2] or sum(map(len, found)) == 4


def test_a_topic_gives_each_message_to_all_who_are_there() -> None:
    world = world_with()
    one, two = Client(world), Client(world)
    one.send("before", T)
    one.consume(T)
    two.consume(T)
    assert texts(one.send("now", T)) == ["now"]
    (dispatch,) = dispatches(two.hear())
    assert text_of(dispatch) == "now"
    assert two.ack(dispatch) == []
    assert kept(world) == 0


def test_no_local() -> None:
    world = world_with()
    one, two = Client(world), Client(world)
    one.consume(T, no_local=True)
    assert texts(one.send("own", T)) == []
    two.send("other", T)
    assert texts(one.hear()) == ["other"]


def test_a_selector_and_one_that_cannot_be_read() -> None:
    client = Client(world_with())
    assert error(client.consume(selector="n = = 1")) == "InvalidSelectorException"
    assert fine(client.consume(selector="n > 1"))
    for number in range(3):
        client.tell(client.message(str(number), properties=encode_map([("n", LONG, number)])))
    client.send("none")
    client.end()
    assert texts(client.consume(selector="n IS NULL", number=2)) == ["none"]


@pytest.mark.parametrize("to", [None, Destination(QUEUE, ""), Destination(QUEUE, ",")])
def test_a_destination_that_is_none(to: Destination | None) -> None:
    client = Client(world_with())
    assert error(client.consume(to)) == "InvalidDestinationException"
    assert error(client.send("x", to)) == "InvalidDestinationException"


def test_a_message_needs_an_id_and_one_name_of_destinations() -> None:
    client = Client(world_with(OpenwireLimits(max_destinations=2)))
    assert error(client.send("x", message_id=None)) == "JMSException"
    assert error(client.send("x", Destination(QUEUE, "a,b,c"))) == "ResourceAllocationException"
    assert error(client.send("x", Destination(QUEUE, "a.*"))) == "InvalidDestinationException"


def test_what_is_refused_without_a_response_is_told_once() -> None:
    client = Client(world_with())
    for _ in range(3):
        client.wire.send(client.message("x", Destination(QUEUE, "a.>")))
    client.connection.say(client.wire.data_to_send())
    (told,) = client.hear()
    assert isinstance(told, ConnectionError_)
    assert told.exception.class_name == "javax.jms.InvalidDestinationException"


def test_a_window_of_a_producer_is_opened_again() -> None:
    client = Client(world_with())
    producer = ProducerId(client.name, 1, 1)
    assert fine(client.ask(ProducerInfo(producer, Q, 10_000)))
    (ack,) = client.tell(client.message("text"))
    assert isinstance(ack, ProducerAck)
    assert ack.size == 1_024 + 4 + 4
    assert fine(client.send("answered")), "a response opens it, too"
    client.tell(RemoveInfo(producer))
    assert client.tell(client.message("x")) == []


def test_expired_messages_do_not_come_and_become_dead_letters() -> None:
    world = world_with()
    client = Client(world)
    client.send("old", expiration=1)
    world.settle(1.0)
    assert texts(client.consume()) == []
    (letter,) = dispatches(client.consume(Destination(QUEUE, "ActiveMQ.DLQ"), number=2))
    assert text_of(letter) == "old"
    assert letter.message is not None
    assert letter.message.destination is not None
    assert letter.message.destination.name == "ActiveMQ.DLQ"


def test_a_delayed_message() -> None:
    world = world_with()
    client = Client(world)
    client.consume()
    delayed = encode_map([("AMQ_SCHEDULED_DELAY", LONG, 2_000)])
    assert texts(client.send("later", properties=delayed)) == []
    world.settle(2.1)
    assert texts(client.hear()) == ["later"]
    for name, value in (("AMQ_SCHEDULED_DELAY", -1), ("AMQ_SCHEDULED_REPEAT", 3)):
        assert (
            error(client.send("x", properties=encode_map([(name, LONG, value)]))) == "JMSException"
        )
    assert error(client.send("x", properties=b"AMQ_SCHEDULED_")) == "JMSException"


# --- Answers -------------------------------------------------------------------------------------


def test_an_answer_for_a_range_and_for_one() -> None:
    world = world_with()
    client = Client(world)
    client.consume()
    found = [dispatches(client.send(str(number)))[0] for number in range(6)]
    client.ack(*found[1:3])
    assert kept(world) == 4
    client.ack(found[4], kind=ACK_INDIVIDUAL)
    client.ack(*found[:4], first=None, count=3)
    assert kept(world) == 1
    client.ack(*found[:4])
    assert kept(world) == 1, "an answer that comes twice is none"
    assert error_of_kind(client, found[5]) == "JMSException"


def error_of_kind(client: Client, dispatch: object) -> str:
    """What is told about an answer of a kind that there is not."""
    (told,) = client.ack(dispatch, kind=9)  # type: ignore[arg-type]
    assert isinstance(told, ConnectionError_)
    return told.exception.class_name.rpartition(".")[2]


def test_the_prefetch_is_a_window_that_delivered_messages_do_not_fill() -> None:
    client = Client(world_with())
    client.consume(prefetch=2)
    found = [each for n in range(5) for each in dispatches(client.send(str(n)))]
    assert [text_of(each) for each in found] == ["0", "1"]
    found += dispatches(client.ack(*found, kind=ACK_DELIVERED))
    assert [text_of(each) for each in found] == ["0", "1", "2", "3"]
    assert client.ack(found[0], kind=ACK_DELIVERED) == [], "it is told already"
    assert client.ack(found[2], kind=ACK_REDELIVERED) == []
    more = client.ack(*found)
    assert texts(more) == ["4"]


def test_a_message_that_was_removed_does_not_make_the_window_wider_for_ever() -> None:
    world = world_with()
    client = Client(world)
    client.consume(prefetch=2)
    found = [each for n in range(2) for each in dispatches(client.send(str(n)))]
    client.ack(*found, kind=ACK_DELIVERED)
    (queue,) = world.broker.queues()
    number = client.connection.number
    world.run(number, ClearMessages(number, None, queue.channel_name, 0, True, True, True))
    assert kept(world) == 0
    assert texts([each for n in range(5) for each in client.send(str(n))]) == ["0", "1"]
    assert client.ack(*found) == [], "an answer for what has gone is not for what came since"
    assert kept(world) == 5


def test_another_prefetch() -> None:
    client = Client(world_with(OpenwireLimits(max_prefetch=3)))
    client.consume(prefetch=1)
    for number in range(5):
        client.send(str(number))
    control = ConsumerControl(ConsumerId(client.name, 1, 1), Q, 100)
    assert texts(client.tell(control)) == ["1", "2"]


def test_what_a_consumer_had_goes_back_in_order_and_counts_as_far_as_it_was_handed_out() -> None:
    client = Client(world_with())
    client.consume()
    found = [dispatches(client.send(str(number)))[0] for number in range(4)]
    message = found[1].message
    assert message is not None
    assert message.message_id is not None
    client.end(last=message.message_id.broker_sequence)
    again = dispatches(client.consume(number=2))
    assert [text_of(each) for each in again] == ["0", "1", "2", "3"]
    assert [each.redelivery_counter for each in again] == [1, 1, 0, 0]
    client.end(2, LAST_UNKNOWN)
    last = dispatches(client.consume(number=3))
    assert [each.redelivery_counter for each in last] == [2, 2, 1, 1]


def test_what_a_lost_connection_had_goes_to_others_and_counts() -> None:
    world = world_with()
    lost, other = Client(world), Client(world)
    lost.consume()
    for number in range(3):
        lost.send(str(number))
    other.consume()
    lost.connection.leave()
    found = dispatches(other.hear())
    assert [text_of(each) for each in found] == ["0", "1", "2"]
    assert {each.redelivery_counter for each in found} == {1}


def test_a_session_ends_with_its_consumers_and_producers() -> None:
    world = world_with()
    client = Client(world)
    client.consume()
    client.consume(T, number=2)
    client.tell(RemoveInfo(SessionId(client.name, 2)))
    client.send("1")
    client.tell(RemoveInfo(SessionId(client.name, 1)))
    assert world.broker.statistics().in_flight == 0


@pytest.mark.parametrize("kind", [ACK_POISON, ACK_EXPIRED])
def test_a_message_that_is_given_up_becomes_a_dead_letter_with_its_cause(kind: int) -> None:
    client = Client(world_with())
    client.consume()
    (bad,) = dispatches(client.send("bad", expiration=4_000_000_000_000))
    cause = Throwable("java.lang.Throwable", "too often")
    client.ack(bad, kind=kind, cause=cause)
    (letter,) = dispatches(client.consume(Destination(QUEUE, "ActiveMQ.DLQ"), number=2))
    message = letter.message
    assert message is not None
    said = {name: value for name, _, value in read_map(message.properties)}
    assert said["dlqDeliveryFailureCause"] == "java.lang.Throwable: too often"
    assert said["originalExpiration"] == 4_000_000_000_000
    assert message.expiration == 0
    assert message.original_destination is not None
    assert message.original_destination.name == "q"
    client.end()
    assert texts(client.consume(number=3)) == []


def test_what_is_not_persistent_is_no_dead_letter_and_without_a_queue_for_them_nothing_is() -> None:
    for world, persistent in ((world_with(), False), (world_with(dead_letters=""), True)):
        client = Client(world)
        client.consume()
        (bad,) = dispatches(client.send("bad", persistent=persistent))
        client.ack(bad, kind=ACK_POISON)
        assert kept(world) == 0


def test_what_a_client_did_not_want_goes_to_others() -> None:
    world = world_with()
    one, two = Client(world), Client(world)
    one.consume()
    (found,) = dispatches(one.send("x"))
    two.consume()
    again = dispatches(one.ack(found, kind=ACK_UNMATCHED)) + dispatches(two.hear())
    assert [text_of(each) for each in again] == ["x"]
    assert again[0].redelivery_counter == 0


# --- Pulls ---------------------------------------------------------------------------------------


def test_a_consumer_without_a_prefetch_pulls() -> None:
    world = world_with()
    client = Client(world)
    client.consume(prefetch=0)
    consumer = ConsumerId(client.name, 1, 1)
    assert texts(client.send("1")) == []
    client.send("2")
    assert texts(client.tell(MessagePull(consumer, Q, 0))) == ["1"]
    assert texts(client.tell(MessagePull(consumer, Q, 1_000))) == ["2"]
    assert client.tell(MessagePull(consumer, Q, 1_000)) == []
    world.settle(1.2)
    (nothing,) = dispatches(client.hear())
    assert nothing.message is None
    assert nothing.destination is None
    client.send("3")
    assert client.hear() == [], "a pull that is over gets nothing"
    assert texts(client.tell(MessagePull(consumer, Q, -1))) == ["3"]
    assert client.tell(MessagePull(consumer, Q, -1)) == []
    world.settle(1.4)
    assert dispatches(client.hear())[0].message is None


def test_a_pull_of_a_consumer_that_does_not_pull() -> None:
    client = Client(world_with())
    client.consume()
    assert fine(client.ask(MessagePull(ConsumerId(client.name, 1, 1), Q, 0)))
    assert fine(client.ask(MessagePull(None, Q, 0)))


# --- Transactions --------------------------------------------------------------------------------
