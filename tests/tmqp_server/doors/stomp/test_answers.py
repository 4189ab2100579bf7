"""Conversations of STOMP clients: ACK and NACK, transactions, temporary destinations."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.stomp.talk import (
    Client,
    bodies,
    error,
    in_flight,
    receipts,
    subscribed,
    world_with,
)
from tmqp_server.doors.stomp.consuming import DeliveringSession
from tmqp_server.engine.commands import ClearMessages, UpdateQueue
from tmqp_server.engine.options import QueueChanges
from tmqp_wires.stomp.frames import V1_0, V1_1

# --- ACK and NACK --------------------------------------------------------------------------------


def test_an_ack_of_the_mode_client_counts_for_all_before_it() -> None:
    client, found = subscribed(world_with(), "client", 4)
    broker = client.world.broker
    assert in_flight(broker) == 4
    assert receipts(client.ack(found[2], receipt="a")) == ["a"]
    assert in_flight(broker) == 1
    assert client.ack(found[0]) == [], "it counts for nothing, and is no fault"
    client.ack(found[3])
    assert in_flight(broker) == 0


def test_an_ack_of_the_mode_client_individual_counts_for_itself() -> None:
    client, found = subscribed(world_with(), "client-individual", 3)
    client.ack(found[1])
    client.connection.leave()
    other = Client(client.world)
    again = other.subscribe(ack="client-individual")
    assert bodies(again) == [b"0", b"2"]
    assert [each.get("redelivered") for each in again] == ["true", "true"]


@pytest.mark.parametrize("version", [V1_0, V1_1])
def test_older_versions_name_the_message(version: str) -> None:
    client, found = subscribed(world_with(), "client", 3, (version,))
    named = {"subscription": "1"} if version == V1_1 else {}
    client.say("ACK", message_id=found[1].get("message-id"), **named)
    assert in_flight(client.world.broker) == 1
    client.say("ACK", message_id="another's", **named)
    client.say("ACK", message_id=found[2].get("message-id"), subscription="9")
    assert in_flight(client.world.broker) == 1
    assert "message-id is missing" in error(client.say("ACK"))


def test_auto_is_acknowledged_when_it_has_left() -> None:
    client, found = subscribed(world_with(), "auto", 2)
    assert len(found) == 2
    assert [each.find("ack") for each in found] == [None, None]
    assert in_flight(client.world.broker) == 2
    client.written()
    assert in_flight(client.world.broker) == 0


@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_no_more_than_the_prefetch_is_in_hand(mode: str) -> None:
    world = world_with(prefetch=3)
    client, found = subscribed(world, mode, 5)
    assert bodies(found) == [b"0", b"1", b"2"]
    assert bodies(client.ack(found[0])) == [b"3"]
    _, found = subscribed(world_with(prefetch=3), mode, 3, **{"activemq.prefetchSize": "1"})
    assert len(found) == 1


@pytest.mark.parametrize("text", ["", "1", "x-1", "1-x", "9-1", "1-9", "1-0"])
def test_an_ack_of_nothing_that_was_sent(text: str) -> None:
    client, _ = subscribed(world_with(), "client", 1)
    assert "no MESSAGE had the ack" in error(client.say("ACK", id=text))


def test_an_ack_after_unsubscribe_counts_for_nothing() -> None:
    client, found = subscribed(world_with(), "client", 2)
    client.say("UNSUBSCRIBE", id="1")
    assert client.ack(found[0]) == []
    assert client.world.broker.statistics().messages == 2


def test_an_ack_of_a_topic_is_no_fault() -> None:
    client = Client(world_with())
    client.subscribe("/topic/t", ack="client")
    (message,) = client.send(b"x", "/topic/t")
    assert receipts(client.ack(message, receipt="a")) == ["a"]
    assert receipts(client.nack(message, receipt="n")) == ["n"]


def test_a_refused_message_comes_again_and_ends_among_the_dead_letters() -> None:
    client, found = subscribed(world_with(redeliveries=2), "client-individual", 1)
    dead = Client(client.world)
    for _ in range(2):
        found = client.nack(found[0])
        assert bodies(found) == [b"0"]
        assert found[0].get("redelivered") == "true"
    assert client.nack(found[0]) == []
    (letter,) = dead.subscribe("/queue/ActiveMQ.DLQ")
    assert letter.body == b"0"


def test_leaving_does_not_count_as_refusing() -> None:
    world = world_with(redeliveries=1)
    for _ in range(4):
        client = Client(world)
        assert bodies(client.subscribe(ack="client") or client.send(b"x")) == [b"x"]
        client.connection.leave()
    assert world.broker.statistics().messages == 1
    for _ in range(4):
        client = Client(world)
        assert bodies(client.subscribe(ack="client")) == [b"x"]
        world.hub.forget(client.connection.number, world.now)  # its transport broke
        world.settle()
    client = Client(world)
    for _ in range(4):
        assert bodies(client.subscribe(ack="client")) == [b"x"]
        client.say("UNSUBSCRIBE", id="1")
    assert world.broker.statistics().messages == 1


def test_a_nack_of_the_mode_client_counts_for_all_before_it() -> None:
    client, found = subscribed(world_with(), "client", 3)
    assert bodies(client.nack(found[1])) == [b"0", b"1"]
    assert in_flight(client.world.broker) == 3


# --- transactions --------------------------------------------------------------------------------


def test_what_is_sent_in_a_transaction_is_seen_when_it_is_committed() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    other.subscribe()
    assert receipts(client.say("BEGIN", transaction="t", receipt="b")) == ["b"]
    assert receipts(client.send(b"1", transaction="t", receipt="1")) == ["1"]
    client.send(b"2", transaction="t")
    client.send(b"outside")
    assert bodies(other.hear()) == [b"outside"]
    assert receipts(client.say("COMMIT", transaction="t", receipt="c")) == ["c"]
    assert bodies(other.hear()) == [b"1", b"2"]
    assert "no such transaction" in error(client.say("COMMIT", transaction="t"))


def test_a_transaction_that_is_aborted_sends_nothing_and_has_its_messages_in_hand_again() -> None:
    client, found = subscribed(world_with(), "client", 3)
    client.say("BEGIN", transaction="t")
    client.send(b"never", "/queue/b", transaction="t")
    client.ack(found[1], transaction="t")
    assert receipts(client.say("ABORT", transaction="t", receipt="a")) == ["a"]
    assert in_flight(client.world.broker) == 3
    client.ack(found[2])
    assert in_flight(client.world.broker) == 0
    assert client.subscribe("/queue/b", id="2") == []


@pytest.mark.parametrize("staged", [False, True])
def test_a_message_that_was_removed_is_in_hand_no_more(staged: bool) -> None:
    client, found = subscribed(world_with(), "client-individual", 2)
    world, number = client.world, client.connection.number
    session = world.hub._sessions[number]
    assert isinstance(session, DeliveringSession)
    client.say("BEGIN", transaction="t")
    if staged:
        client.ack(found[0], transaction="t")
    (queue,) = world.broker.queues()
    world.run(number, ClearMessages(number, None, queue.channel_name, 0, True, True, True))
    assert receipts(client.say("ABORT", transaction="t", receipt="r")) == ["r"]
    (subscription,) = session._by_index.values()
    assert subscription.in_hand == {}
    assert client.ack(found[1]) == [], "an answer that comes too late is no fault"
    assert bodies(client.send(b"next")) == [b"next"]


def test_answers_of_a_transaction_take_effect_with_its_messages() -> None:
    client, found = subscribed(world_with(), "client-individual", 3)
    client.say("BEGIN", transaction="t")
    client.send(b"answer", "/queue/b", transaction="t")
    client.ack(found[0], transaction="t")
    client.nack(found[1], transaction="t")
    assert in_flight(client.world.broker) == 3
    assert client.ack(found[0]) == [], "it is answered for"
    frames = client.say("COMMIT", transaction="t", receipt="c")
    assert sorted(each.command for each in frames) == ["MESSAGE", "RECEIPT"]
    assert in_flight(client.world.broker) == 2
    assert bodies(client.subscribe("/queue/b", id="2")) == [b"answer"]


@pytest.mark.parametrize("ended", ["before the ACK", "before COMMIT"])
def test_a_transaction_was_committed_without_its_answers_when_their_subscription_had_ended(
    ended: str,
) -> None:
    client, found = subscribed(world_with(), "client", 1)
    client.say("BEGIN", transaction="t")
    client.send(b"sent", "/queue/b", transaction="t")
    if ended == "before the ACK":
        client.say("UNSUBSCRIBE", id="1")
        frames = client.ack(found[0], transaction="t")
    else:
        client.ack(found[0], transaction="t")
        client.say("UNSUBSCRIBE", id="1")
        frames = client.say("COMMIT", transaction="t", receipt="r")
    assert "has ended" in error(frames)
    assert client.closed
    other = Client(client.world)
    assert bodies(other.subscribe("/queue/b", id="2")) == []
    assert bodies(other.subscribe(ack="client")) == [b"0"]


def test_a_transaction_outlives_a_subscription_whose_messages_it_answers() -> None:
    client, found = subscribed(world_with(), "client", 1)
    client.say("BEGIN", transaction="t")
    client.ack(found[0], transaction="t")
    client.say("UNSUBSCRIBE", id="1")
    assert receipts(client.say("ABORT", transaction="t", receipt="r")) == ["r"]
    assert bodies(client.subscribe(ack="client")) == [b"0"]


@pytest.mark.parametrize("mode", ["auto", "client", "client-individual"])
def test_an_answer_in_a_transaction_for_what_was_answered_for(mode: str) -> None:
    client, found = subscribed(world_with(), mode, 1)
    client.written()
    if mode != "auto":
        client.ack(found[0])
    client.say("BEGIN", transaction="t")
    ack = found[0].get("ack") or "1-1"
    frames = client.say("ACK", id=ack, transaction="t", receipt="a")
    assert [each.command for each in frames] == ["RECEIPT" if mode == "auto" else "ERROR"]


def test_a_transaction_of_a_client_that_has_gone_comes_to_nothing() -> None:
    client, found = subscribed(world_with(), "client", 2)
    client.say("BEGIN", transaction="t")
    client.ack(found[1], transaction="t")
    client.connection.leave()
    assert bodies(Client(client.world).subscribe(ack="client")) == [b"0", b"1"]


def test_a_transaction_that_cannot_be_committed_does_nothing() -> None:
    client, found = subscribed(world_with(), "client", 1)
    world = client.world
    world.run(
        client.connection.number,
        UpdateQueue(client.connection.number, None, "\x01a", 0, QueueChanges(message_limit=2)),
    )
    client.say("BEGIN", transaction="t")
    client.ack(found[0], transaction="t")
    for number in range(3):
        client.send(b"%d" % number, transaction="t")
    frames = client.say("COMMIT", transaction="t", receipt="c")
    assert "nothing was done: a limit is reached" in error(frames)
    assert frames[0].get("receipt-id") == "c"
    assert world.broker.statistics().messages == 1, "what was in hand"


def test_an_empty_transaction() -> None:
    client = Client(world_with())
    client.say("BEGIN", transaction="t")
    assert receipts(client.say("COMMIT", transaction="t", receipt="c")) == ["c"]


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([("BEGIN", {})], "transaction is missing"),
        ([("BEGIN", {"transaction": "t"})] * 2, "has begun already"),
        ([("ABORT", {"transaction": "t"})], "no such transaction"),
        ([("COMMIT", {})], "no such transaction"),
    ],
)
def test_a_transaction_that_is_not_there(
    frames: list[tuple[str, dict[str, str]]], text: str
) -> None:
    client = Client(world_with())
    for command, headers in frames[:-1]:
        client.say(command, **headers)
    command, headers = frames[-1]
    assert text in error(client.say(command, **headers))


# --- temporary destinations ----------------------------------------------------------------------


def test_a_reply_to_a_temporary_queue() -> None:
    world = world_with()
    asker, worker = Client(world), Client(world)
    asker.subscribe("/temp-queue/answers", id="a")
    worker.subscribe("/queue/work", id="w")
    asker.send(b"6*7", "/queue/work", reply_to="/temp-queue/answers")
    (request,) = worker.hear()
    assert request.get("reply-to").startswith("/remote-temp-queue/")
    worker.send(b"42", request.get("reply-to"))
    (reply,) = asker.hear()
    assert (reply.body, reply.get("destination")) == (b"42", "/temp-queue/answers")
    asker.connection.leave()
    assert "not possible" in error(worker.send(b"late", request.get("reply-to")))


def test_a_reply_may_come_before_its_queue_is_subscribed_to() -> None:
    world = world_with()
    asker, worker = Client(world), Client(world)
    worker.subscribe("/queue/work", id="w")
    asker.send(b"6*7", "/queue/work", reply_to="/temp-queue/answers")
    (request,) = worker.hear()
    worker.send(b"42", request.get("reply-to"))
    assert bodies(asker.subscribe("/temp-queue/answers")) == [b"42"]


def test_only_its_owner_consumes_a_temporary_destination() -> None:
    world = world_with()
    owner, other = Client(world), Client(world)
    owner.subscribe("/temp-topic/t", id="t")
    assert bodies(owner.send(b"mine", "/temp-topic/t")) == [b"mine"]
    name = owner.connected.get("session")
    assert "not allowed" in error(other.subscribe(f"/remote-temp-topic/{name}/t"))


def test_two_clients_have_temporary_queues_of_one_name() -> None:
    world = world_with()
    one, two = Client(world), Client(world)
    for client in (one, two):
        client.subscribe("/temp-queue/q")
    assert bodies(one.send(b"1", "/temp-queue/q")) == [b"1"]
    assert two.hear() == []
