"""Transactions of OpenWire clients: what takes effect with the commit, and what spoils one."""

from __future__ import annotations

from tests.tmqp_server.doors.openwire.talk import (
    Client,
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
from tmqp_server.engine.commands import ClearMessages
from tmqp_wires.openwire.commands import (
    COMMIT,
    PREPARE,
    ROLLBACK,
    TransactionInfo,
)
from tmqp_wires.openwire.ids import (
    QUEUE,
    Destination,
    XaTransactionId,
)

# --- The beginning and the end -------------------------------------------------------------------


def test_messages_and_answers_take_effect_with_the_commit() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    client.consume()
    other.consume(Destination(QUEUE, "out"))
    (found,) = dispatches(client.send("in"))
    client.begin()
    client.ack(found, transaction=1)
    client.tell(client.message("1", Destination(QUEUE, "out"), transaction=client.transaction()))
    assert texts(other.hear()) == []
    assert kept(world) == 1
    assert fine(client.transact(COMMIT))
    assert texts(other.hear()) == ["1"]
    assert kept(world) == 1


def test_a_rollback_undoes_all_and_the_client_keeps_what_it_has() -> None:
    world = world_with()
    client = Client(world)
    client.consume()
    (found,) = dispatches(client.send("in"))
    client.begin()
    client.ack(found, transaction=1)
    client.tell(client.message("1", transaction=client.transaction()))
    assert fine(client.transact(ROLLBACK))
    assert kept(world) == 1
    client.ack(found)
    assert kept(world) == 0


def test_a_transaction_may_have_more_answers_than_the_prefetch() -> None:
    client = Client(world_with())
    client.consume(prefetch=1)
    for number in range(3):
        client.send(str(number))
    client.end()
    client.begin()
    found = dispatches(client.consume(number=2, prefetch=1))
    for _ in range(2):
        found += dispatches(client.ack(found[-1], transaction=1))
    assert [text_of(each) for each in found] == ["0", "1", "2"]
    assert fine(client.transact(COMMIT))


def test_a_consumer_that_ends_before_the_commit_keeps_its_answers() -> None:
    world = world_with()
    client = Client(world)
    client.consume()
    one, _ = [dispatches(client.send(str(number)))[0] for number in range(2)]
    client.begin()
    client.ack(one, transaction=1)
    client.end()
    assert texts(client.consume(number=2)) == ["1"]
    assert fine(client.transact(COMMIT))
    assert kept(world) == 1
    client.end(2)
    client.begin(2)
    (found,) = dispatches(client.consume(number=3))
    client.ack(found, transaction=2)
    client.end(3)
    assert fine(client.transact(ROLLBACK, 2))
    assert texts(client.consume(number=4)) == ["1"]


def test_what_cannot_be_in_a_transaction_spoils_it() -> None:
    world = world_with(OpenwireLimits(max_transaction_commands=2, max_transactions=1))
    client = Client(world)
    mine = client.transaction()
    client.begin()
    client.begin()
    for _ in range(3):
        client.tell(client.message("x", transaction=mine))
    name, text = failed(client.transact(COMMIT))
    assert name == "javax.jms.TransactionRolledBackException"
    assert "at most 2 messages and answers" in text
    client.begin()
    client.tell(client.message("x", Destination(QUEUE, "a.*"), transaction=mine))
    assert error(client.transact(COMMIT)) == "TransactionRolledBackException"
    client.begin()
    over = client.ask(TransactionInfo(client.name, client.transaction(2), 0))
    assert error(over) == "ResourceAllocationException"
    assert kept(world) == 0


def test_a_transaction_that_is_too_large() -> None:
    client = Client(world_with(OpenwireLimits(max_transaction_bytes=500)))
    client.begin()
    client.tell(client.message("x" * 600, transaction=client.transaction()))
    assert "at most 500 bytes" in failed(client.transact(COMMIT))[1]


def test_transactions_that_there_are_not() -> None:
    client = Client(world_with())
    assert error(client.transact(COMMIT)) == "JMSException"
    assert fine(client.transact(ROLLBACK))
    assert error(client.transact(PREPARE)) == "JMSException"
    assert error(client.send("x", transaction=client.transaction(5))) == "JMSException"


def test_xa_is_refused_so_that_the_client_says_xaer_rmerr() -> None:
    client = Client(world_with())
    xid = XaTransactionId(1, b"a", b"b")
    name, text = failed(client.ask(TransactionInfo(client.name, xid, 0)))
    assert name == "javax.transaction.xa.XAException"
    assert "xaErrorCode:-3" in text
    assert error(client.send("x", transaction=xid)) == "XAException"


def test_an_answer_of_a_consumer_that_has_ended_is_not_missing_in_a_transaction() -> None:
    """Seed 954: what was sent in the place of a message stayed, and the message came again."""
    world = world_with()
    client = Client(world)
    client.consume()
    (one,) = dispatches(client.send("a"))
    client.begin()
    client.end()
    client.ack(one, transaction=1)
    client.tell(client.message("instead of a", transaction=client.transaction()))
    assert error(client.transact(COMMIT)) == "TransactionRolledBackException"
    assert texts(client.consume(number=2)) == ["a"]


def test_an_answer_about_a_message_that_was_removed_is_not_missing_in_a_transaction() -> None:
    world = world_with()
    client = Client(world)
    client.consume()
    (one,) = dispatches(client.send("a"))
    (queue,) = world.broker.queues()
    number = client.connection.number
    world.run(number, ClearMessages(number, None, queue.channel_name, 0, True, True, True))
    client.begin()
    client.ack(one, transaction=1)
    client.tell(client.message("instead of a", transaction=client.transaction()))
    assert error(client.transact(COMMIT)) == "TransactionRolledBackException"
    assert kept(world) == 0


def test_an_answer_about_a_message_of_a_topic_was_missing_in_a_transaction() -> None:
    world = world_with()
    client = Client(world)
    client.consume(T)
    (first,) = dispatches(client.send("1", T))
    client.begin()
    client.ack(first, transaction=1)
    assert fine(client.transact(COMMIT))
    both = Destination(QUEUE, "q,topic://t")
    client.consume(both, number=2)
    of_topic = dispatches(client.send("2", T))[-1]
    (of_queue,) = dispatches(client.send("3"))
    client.begin(2)
    client.ack(of_topic, of_queue, transaction=2)
    assert fine(client.transact(COMMIT, 2))
    assert kept(world) == 0
