"""Cases of OpenWire about messages: consumers, acknowledgements, transactions."""

from __future__ import annotations

from typing import Any, Final

from tmqp.testing.conformance import Case
from tmqp.testing.conformance.patterns import ANY
from tmqp.testing.conformance.steps import Answer, Close, Fence, Hear, Step
from tmqp_conformance.packs.openwire.words import (
    BROWSER,
    COMMIT,
    CONSUMER,
    INDIVIDUAL,
    ROLLBACK,
    STANDARD,
    ack,
    begin,
    connect,
    consumer,
    end_of,
    finish,
    local,
    message,
    numbered,
    pull,
    remove,
    response,
    send,
)
from tmqp_conformance.packs.words import hear, nothing, pack_case, say

__all__ = ["CASES"]

_BEGIN: Final = begin("a")


def _consumes(line: str, to: str = "queue:$q", **fields: Any) -> list[Step]:
    """A client that consumes."""
    return [*connect(line), say(line, consumer(line, to, **fields)), hear(line, response(2))]


def _in_hand(count: int) -> list[Step]:
    """The client ``a`` has so many messages, which are bound to ``m1`` and so on."""
    numbers = range(1, count + 1)
    sent = [send(b"%d" % number, 10 + number) for number in numbers]
    expected = [message(b"%d" % number, f"m{number}") for number in numbers]
    return [*_consumes("a"), say("a", *sent), hear("a", *expected)]


def _carried_out(*orders: Any) -> list[Step]:
    """What ``a`` says has been carried out, as the last of it tells."""
    *before, last = orders
    return [say("a", *before, numbered(last, 50)), hear("a", response(50))]


def _left_for_others(*bodies: bytes, redelivered: object = ANY) -> list[Step]:
    """When ``a`` is gone, ``b`` gets these messages, and no others."""
    return [Close("a"), *_found_by("b", *bodies, redelivered=redelivered)]


def _found_by(line: str, *bodies: bytes, redelivered: object = ANY) -> list[Step]:
    """A new client consumes these messages, and no others."""
    expected = [message(body, redelivered=redelivered) for body in bodies]
    return [
        *connect(line),
        say(line, consumer(line)),
        Hear(line, Answer(response(2), *expected, ordered=False), fence=Fence.QUIET),
    ]


CASES: Final[tuple[Case, ...]] = (
    pack_case(
        "server.openwire.sent-then-consumed",
        "A message in a queue waits for its consumer",
        "A producer need not know whether there are subscribers.",
        "O17 O31",
        connect("a"),
        _carried_out(send(b"one", 11)),
        _left_for_others(b"one", redelivered=0),
    ),
    pack_case(
        "server.openwire.dispatch",
        "MessageDispatch names consumer and destination, and was not delivered before",
        "A client finds its consumer by the id.",
        "O20",
        _consumes("a"),
        say("a", send(b"x", 11)),
        hear(
            "a",
            message(b"x", destination="queue:$q", consumer=CONSUMER, redelivered=0),
        ),
    ),
    pack_case(
        "server.openwire.queue-serves-one",
        "A message in a queue goes to one consumer only",
        "Work must not be done twice.",
        "O30",
        _consumes("a"),
        _consumes("b"),
        say("b", send(b"x", 11, line="b")),
        Hear("a", Answer(message(b"x")), Answer(), fence=Fence.QUIET),
        # Whoever had it, now it is b's: twice, if both had it.
        Close("a"),
        Hear("b", Answer(message(b"x")), fence=Fence.QUIET),
    ),
    pack_case(
        "server.openwire.topic-serves-all",
        "A message of a topic goes to all subscribers, and to no later one",
        "Prices are for all current subscribers.",
        "O32 O33",
        _consumes("a", "topic:$t"),
        _consumes("b", "topic:$t"),
        say("b", send(b"x", 11, "topic:$t", line="b")),
        hear("a", message(b"x", destination="topic:$t")),
        hear("b", message(b"x")),
        connect("c"),
        say("c", consumer("c", "topic:$t")),
        Hear("c", Answer(response(2)), fence=Fence.QUIET),
    ),
    pack_case(
        "server.openwire.prefetch",
        "No more messages than the prefetch are unacknowledged",
        "A slow consumer would have what others could do.",
        "O21 O23",
        _consumes("a", prefetch=2),
        say("a", *[send(b"%d" % number, 10 + number) for number in range(1, 5)]),
        hear("a", message(b"1", "m1"), message(b"2", "m2")),
        nothing("a"),
        say("a", ack("a", STANDARD, "m1")),
        hear("a", message(b"3")),
        nothing("a"),
    ),
    pack_case(
        "server.openwire.pull",
        "A consumer with prefetch 0 gets a message for each MessagePull",
        "A program asks when it has time.",
        "O22",
        _consumes("a", prefetch=0),
        say("a", send(b"1", 11), send(b"2", 12)),
        nothing("a"),
        say("a", pull("a")),
        hear("a", message(b"1")),
        nothing("a"),
    ),
    pack_case(
        "server.openwire.standard",
        "A standard acknowledgement is for all from its first to its last",
        "A client acknowledges many with one command.",
        "O23",
        _in_hand(3),
        _carried_out(ack("a", STANDARD, "m1", "m2", count=2)),
        _left_for_others(b"3"),
    ),
    pack_case(
        "server.openwire.individual",
        "An individual acknowledgement is for its message alone",
        "Messages are done in another order than they came in.",
        "O24",
        _in_hand(3),
        _carried_out(ack("a", INDIVIDUAL, "m2")),
        _left_for_others(b"1", b"3"),
    ),
    pack_case(
        "server.openwire.unacknowledged",
        "What is not acknowledged comes to the next client",
        "A consumer that crashes must lose nothing.",
        "O25",
        _in_hand(2),
        _left_for_others(b"1", b"2"),
    ),
    pack_case(
        "server.openwire.redelivered",
        "What a consumer had that was removed counts as delivered once more",
        "The next program can look whether it was done already.",
        "O25 O26",
        _in_hand(2),
        _carried_out(remove("a")),
        _found_by("b", b"1", b"2", redelivered=1),
    ),
    pack_case(
        "server.openwire.never-handed",
        "Only what the program has had counts as delivered",
        "The program has not seen prefetched messages.",
        "O26",
        _in_hand(2),
        _carried_out(remove("a", "m1")),
        connect("b"),
        say("b", consumer("b")),
        Hear(
            "b",
            Answer(
                response(2),
                message(b"1", redelivered=1),
                message(b"2", redelivered=0),
                ordered=False,
            ),
            fence=Fence.FIRST,
        ),
    ),
    pack_case(
        "server.openwire.browser",
        "A browser sees what waits, then an empty dispatch, and takes nothing",
        "An operator inspects the queue.",
        "O27",
        connect("a"),
        _carried_out(send(b"1", 11), send(b"2", 12)),
        say("a", consumer("a", browser=True, id=BROWSER)),
        Hear(
            "a",
            # A server may begin to browse, and even end, before it has answered.
            Answer(response(2), message(b"1"), message(b"2"), end_of(BROWSER)),
            Answer(message(b"1"), response(2), message(b"2"), end_of(BROWSER)),
            Answer(message(b"1"), message(b"2"), response(2), end_of(BROWSER)),
            Answer(message(b"1"), message(b"2"), end_of(BROWSER), response(2)),
            fence=Fence.FIRST,
        ),
        _left_for_others(b"1", b"2", redelivered=0),
    ),
    # -- transactions ---------------------------------------------------------------------------
    pack_case(
        "server.openwire.commit",
        "Messages of a transaction come when it is committed, in order",
        "Half an order must not be shipped.",
        "O40",
        _consumes("a"),
        say(
            "a", _BEGIN, *[send(b"%d" % each, 10 + each, transaction=local("a")) for each in (1, 2)]
        ),
        say("a", send(b"0", 13)),
        hear("a", message(b"0")),
        nothing("a"),
        say("a", finish("a", COMMIT)),
        hear("a", message(b"1"), message(b"2")),
    ),
    pack_case(
        "server.openwire.rollback",
        "Messages of a transaction that is rolled back never come",
        "The program has changed its mind.",
        "O41",
        _consumes("a"),
        say("a", _BEGIN, send(b"1", 11, transaction=local("a"))),
        _carried_out(finish("a", ROLLBACK)),
        say("a", send(b"2", 12)),
        hear("a", message(b"2")),
        nothing("a"),
    ),
    pack_case(
        "server.openwire.lost-transaction",
        "A transaction ends with its connection, and nothing of it is done",
        "It can no longer be committed.",
        "O43",
        connect("a"),
        say("a", _BEGIN, send(b"1", 11, transaction=local("a"))),
        _carried_out(send(b"2", 12)),
        _left_for_others(b"2"),
    ),
    pack_case(
        "server.openwire.ack-committed",
        "Acknowledgements of a transaction take effect with the commit",
        "A message is settled together with its results.",
        "O42",
        _in_hand(2),
        say("a", _BEGIN, ack("a", STANDARD, "m1", transaction=local("a"))),
        _carried_out(finish("a", COMMIT)),
        _left_for_others(b"2"),
    ),
    pack_case(
        "server.openwire.ack-not-committed",
        "Acknowledgements of a transaction that is not committed have no effect",
        "The results of the message must not take effect either.",
        "O42 O43",
        _in_hand(2),
        say("a", _BEGIN),
        _carried_out(ack("a", STANDARD, "m1", "m2", count=2, transaction=local("a"))),
        _left_for_others(b"1", b"2"),
    ),
)
