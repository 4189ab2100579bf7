"""Cases of STOMP about messages: receipts, subscriptions, acknowledgements, transactions."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance import Case, Level
from tmqp.testing.conformance.patterns import Bind, OneOf
from tmqp.testing.conformance.steps import Answer, Close, Fence, Hear, Step
from tmqp_conformance.packs.stomp.words import (
    Filled,
    connect,
    fails,
    frame,
    message,
    receipt,
    send,
    subscribe,
)
from tmqp_conformance.packs.words import hear, nothing, pack_case, say

__all__ = ["CASES"]


def _in_hand(mode: bytes, count: int, version: bytes = b"1.2") -> list[Step]:
    """The client ``a`` has so many messages; ``$m1`` and so on name them for ACK."""
    name = "ack" if version == b"1.2" else "message_id"
    bodies = [b"%d" % number for number in range(1, count + 1)]
    expected = [message(body, **{name: Bind(f"m{body.decode()}", Filled())}) for body in bodies]
    return [
        *connect("a", version),
        say("a", subscribe(b"ack:" + mode), *map(send, bodies)),
        hear("a", *expected),
    ]


def _answered(command: bytes, *lines: bytes) -> list[Step]:
    """An answer of ``a`` that has been carried out, as its receipt tells."""
    return [say("a", frame(command, *lines, b"receipt:done")), hear("a", receipt("done"))]


def _left_for_others(*bodies: bytes) -> list[Step]:
    """When ``a`` is gone, ``b`` gets these messages, and no others."""
    return [Close("a"), *connect("b"), say("b", subscribe()), hear("b", *map(message, bodies))]


def _without(
    name: str, title: str, why: str, facts: str, said: bytes, level: Level = Level.MUST
) -> Case:
    """A case about a frame that lacks something."""
    return pack_case(
        f"server.stomp.{name}",
        title,
        why,
        facts,
        connect("a"),
        say("a", said),
        fails("a"),
        level=level,
    )


CASES: Final[tuple[Case, ...]] = (
    # -- receipts -------------------------------------------------------------------------------
    pack_case(
        "server.stomp.receipts",
        "Every frame that asks for a receipt gets its own",
        "A client learns what the server has done.",
        "P20",
        connect("a"),
        say(
            "a",
            subscribe(b"receipt:1", to=b"/queue/$r"),
            send(b"x", b"receipt:2"),
            frame(b"BEGIN", b"transaction:t", b"receipt:3"),
            send(b"x", b"transaction:t", b"receipt:4"),
            frame(b"COMMIT", b"transaction:t", b"receipt:5"),
            frame(b"BEGIN", b"transaction:u", b"receipt:6"),
            frame(b"ABORT", b"transaction:u", b"receipt:7"),
            frame(b"UNSUBSCRIBE", b"id:1", b"receipt:8"),
        ),
        Hear(
            "a",
            Answer(*[receipt(str(number)) for number in range(1, 9)], ordered=False),
            fence=Fence.FIRST,
        ),
    ),
    pack_case(
        "server.stomp.receipt-is-escaped",
        "A receipt comes back as it was",
        "A client looks for it in a table.",
        "P12 P20",
        connect("a"),
        say("a", send(b"x", rb"receipt:a\cb\\c")),
        hear("a", receipt("a:b\\c")),
    ),
    # -- SEND and SUBSCRIBE ---------------------------------------------------------------------
    pack_case(
        "server.stomp.sent-then-subscribed",
        "A message in a queue waits for its consumer",
        "A producer need not know whether there are consumers.",
        "P24 P50",
        connect("p"),
        say("p", send(b"one", b"receipt:r")),
        hear("p", receipt("r")),
        connect("c"),
        say("c", subscribe()),
        hear("c", message(b"one")),
    ),
    pack_case(
        "server.stomp.message-headers",
        "MESSAGE names destination, message and subscription",
        "A client finds its handler by them.",
        "P25 P40",
        connect("a"),
        say("a", subscribe(id=b"sub-7"), send(b"x")),
        hear(
            "a",
            message(
                b"x", destination="/queue/$q", message_id=Filled(), subscription="sub-7", ack=None
            ),
        ),
    ),
    pack_case(
        "server.stomp.user-headers",
        "Headers of the sender and content-type go on",
        "Programs tell each other by them what a message is.",
        "P23",
        connect("a"),
        say("a", subscribe(), send(b"{}", b"content-type:application/json", b"x-a:1", b"x-b:")),
        hear("a", message(b"{}", content_type="application/json", x_a="1", x_b="")),
    ),
    pack_case(
        "server.stomp.queue-serves-one",
        "A message in a queue goes to one consumer only",
        "Work must not be done twice.",
        "P50",
        connect("a"),
        say("a", subscribe(b"receipt:r")),
        hear("a", receipt("r")),
        connect("b"),
        say("b", subscribe(b"receipt:r", to=b"/queue/$r")),
        hear("b", receipt("r")),
        say("b", send(b"x")),
        hear("a", message(b"x")),
        nothing("b"),
        connect("c"),
        say("c", subscribe()),
        nothing("c"),
    ),
    pack_case(
        "server.stomp.topic-serves-all",
        "A message of a topic goes to all subscribers, and to no later one",
        "Prices are for all current subscribers.",
        "P51",
        connect("a"),
        say("a", subscribe(b"receipt:r", to=b"/topic/$t")),
        hear("a", receipt("r")),
        connect("b"),
        say("b", subscribe(b"receipt:r", to=b"/topic/$t")),
        hear("b", receipt("r")),
        say("b", send(b"x", to=b"/topic/$t")),
        hear("a", message(b"x", destination="/topic/$t")),
        hear("b", message(b"x")),
        connect("c"),
        say("c", subscribe(to=b"/topic/$t")),
        nothing("c"),
    ),
    pack_case(
        "server.stomp.two-subscriptions",
        "Each MESSAGE names the subscription that it came by",
        "One connection serves several parts of a program.",
        "P25 P40",
        connect("a"),
        say("a", subscribe(id=b"one"), subscribe(id=b"two", to=b"/queue/$r")),
        say("a", send(b"x", to=b"/queue/$r")),
        hear("a", message(b"x", subscription="two", destination="/queue/$r")),
        say("a", send(b"y")),
        hear("a", message(b"y", subscription="one", destination="/queue/$q")),
    ),
    pack_case(
        "server.stomp.unsubscribe",
        "After UNSUBSCRIBE no more messages come",
        "A consumer has enough to do.",
        "P30",
        connect("a"),
        say("a", subscribe(), send(b"1")),
        hear("a", message(b"1")),
        _answered(b"UNSUBSCRIBE", b"id:1"),
        say("a", send(b"2")),
        nothing("a"),
        _left_for_others(b"2"),
    ),
    _without(
        "send-without-destination",
        "SEND without a destination is refused",
        "The message would be lost.",
        "P22 P42",
        frame(b"SEND", body=b"x"),
    ),
    _without(
        "subscribe-without-id",
        "SUBSCRIBE without an id is refused",
        "MESSAGE could not say which subscription it belongs to.",
        "P25 P42",
        frame(b"SUBSCRIBE", b"destination:/queue/$q"),
    ),
    _without(
        "unknown-mode",
        "SUBSCRIBE with an unknown mode of acknowledgement is refused",
        "The client would wait for something else than the server does.",
        "P26 P42",
        subscribe(b"ack:sometimes"),
        level=Level.SHOULD,
    ),
    # -- acknowledgements -----------------------------------------------------------------------
    pack_case(
        "server.stomp.auto",
        "In the mode auto a message is done when it has come",
        "The client says nothing about it.",
        "P26",
        connect("a"),
        say("a", subscribe(b"ack:auto"), send(b"1")),
        hear("a", message(b"1", ack=None)),
        _answered(b"UNSUBSCRIBE", b"id:1"),
        say("a", send(b"2")),
        _left_for_others(b"2"),
    ),
    pack_case(
        "server.stomp.client",
        "In the mode client ACK is for all messages up to its own",
        "A client acknowledges many with one frame.",
        "P27 P31 P41",
        _in_hand(b"client", 3),
        _answered(b"ACK", b"id:$m2"),
        _left_for_others(b"3"),
    ),
    pack_case(
        "server.stomp.client-individual",
        "In the mode client-individual ACK is for its message alone",
        "Messages are done in another order than they came in.",
        "P28 P31 P41",
        _in_hand(b"client-individual", 3),
        _answered(b"ACK", b"id:$m2"),
        _left_for_others(b"1", b"3"),
    ),
    pack_case(
        "server.stomp.unacknowledged",
        "What is not acknowledged comes to the next client",
        "A consumer that crashes must lose nothing.",
        "P29",
        _in_hand(b"client", 2),
        _left_for_others(b"1", b"2"),
    ),
    pack_case(
        "server.stomp.nack",
        "NACK is for its message, and is answered",
        "A consumer says that it cannot process a message.",
        "P20 P33",
        _in_hand(b"client-individual", 2),
        say("a", frame(b"NACK", b"id:$m1", b"receipt:done")),
        # The message may come again, to this client, too.
        Hear("a", Answer(receipt("done"), more=True), fence=Fence.FIRST),
        say("a", frame(b"ACK", b"id:$m2", b"receipt:other")),
        Hear("a", Answer(receipt("other"), more=True), fence=Fence.FIRST),
        Close("a"),
    ),
    _without(
        "ack-without-id",
        "ACK without an id is refused",
        "The client believes that it has acknowledged something.",
        "P31 P42",
        frame(b"ACK"),
    ),
    pack_case(
        "server.stomp-1-1.client",
        "ACK names a message by message-id and subscription",
        "Version 1.1 has no other name for it.",
        "P27 P32",
        _in_hand(b"client", 3, b"1.1"),
        _answered(b"ACK", b"message-id:$m2", b"subscription:1"),
        _left_for_others(b"3"),
    ),
    pack_case(
        "server.stomp-1-1.client-individual",
        "ACK is for the message alone",
        "Messages are done in another order than they came in.",
        "P28 P32",
        _in_hand(b"client-individual", 2, b"1.1"),
        _answered(b"ACK", b"message-id:$m2", b"subscription:1"),
        _left_for_others(b"1"),
    ),
    pack_case(
        "server.stomp-1-0.client",
        "ACK names a message by message-id",
        "Version 1.0 has no other name for it.",
        "P32",
        _in_hand(b"client", 2, b"1.0"),
        _answered(b"ACK", b"message-id:$m1"),
        _left_for_others(b"2"),
    ),
    pack_case(
        "server.stomp-1-0.without-an-id",
        "A subscription without an id is served, and ended by its destination",
        "Version 1.0 does not require ids.",
        "P24 P30",
        connect("a", b"1.0"),
        say("a", frame(b"SUBSCRIBE", b"destination:/queue/$q"), send(b"1")),
        hear("a", message(b"1", subscription=OneOf(None, "/queue/$q"))),
        _answered(b"UNSUBSCRIBE", b"destination:/queue/$q"),
        say("a", send(b"2")),
        nothing("a"),
    ),
    # -- transactions ---------------------------------------------------------------------------
    pack_case(
        "server.stomp.commit",
        "Messages of a transaction come when it is committed, in order",
        "Half an order must not be shipped.",
        "P34",
        connect("a"),
        say("a", subscribe(), frame(b"BEGIN", b"transaction:t")),
        say("a", send(b"1", b"transaction:t"), send(b"2", b"transaction:t"), send(b"0")),
        hear("a", message(b"0")),
        say("a", frame(b"COMMIT", b"transaction:t")),
        hear("a", message(b"1"), message(b"2")),
    ),
    pack_case(
        "server.stomp.abort",
        "Messages of a transaction that is aborted never come",
        "The client has changed its mind.",
        "P35",
        connect("a"),
        say("a", subscribe(), frame(b"BEGIN", b"transaction:t"), send(b"1", b"transaction:t")),
        say("a", frame(b"ABORT", b"transaction:t"), send(b"2")),
        hear("a", message(b"2")),
    ),
    pack_case(
        "server.stomp.lost-transaction",
        "A transaction ends with its connection, and nothing of it is done",
        "It can no longer be committed.",
        "P36",
        connect("a"),
        say("a", frame(b"BEGIN", b"transaction:t"), send(b"1", b"transaction:t")),
        say("a", send(b"2", b"receipt:r")),
        hear("a", receipt("r")),
        _left_for_others(b"2"),
    ),
    pack_case(
        "server.stomp.two-transactions",
        "Two transactions of a connection are independent",
        "Each has a name for this.",
        "P34 P35",
        connect("a"),
        say("a", subscribe(), frame(b"BEGIN", b"transaction:t"), frame(b"BEGIN", b"transaction:u")),
        say("a", send(b"1", b"transaction:t"), send(b"2", b"transaction:u")),
        say("a", frame(b"ABORT", b"transaction:t"), frame(b"COMMIT", b"transaction:u")),
        hear("a", message(b"2")),
    ),
    pack_case(
        "server.stomp.ack-committed",
        "ACK in a transaction takes effect when it is committed",
        "A message is settled together with its results.",
        "P34 P37",
        _in_hand(b"client-individual", 2),
        say("a", frame(b"BEGIN", b"transaction:t"), frame(b"ACK", b"id:$m1", b"transaction:t")),
        _answered(b"COMMIT", b"transaction:t"),
        _left_for_others(b"2"),
    ),
    pack_case(
        "server.stomp.ack-aborted",
        "ACK in a transaction that is not committed has no effect",
        "The results of the message must not take effect either.",
        "P36 P37",
        _in_hand(b"client-individual", 2),
        say("a", frame(b"BEGIN", b"transaction:t")),
        _answered(b"ACK", b"id:$m1", b"transaction:t"),
        _left_for_others(b"1", b"2"),
    ),
    _without(
        "begin-without-name",
        "BEGIN without a name is refused",
        "It could not be committed.",
        "P38 P42",
        frame(b"BEGIN"),
    ),
    _without(
        "unknown-transaction",
        "COMMIT of a transaction that there is not is refused",
        "The client believes that its messages are sent.",
        "P38 P42",
        frame(b"COMMIT", b"transaction:none"),
    ),
    _without(
        "send-in-unknown-transaction",
        "SEND in a transaction that has not begun is refused",
        "The message would be lost.",
        "P38 P42",
        send(b"x", b"transaction:none"),
        level=Level.SHOULD,
    ),
)
