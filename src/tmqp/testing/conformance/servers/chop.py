"""The same traffic, cut into pieces in other ways, as a network may do."""

from __future__ import annotations

from typing import Final

from tmqp.constants import PING_BYTES, PREAMBLE, Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.steps import Answer, Close, End, Fence, Message, Open, Say
from tmqp.testing.conformance.talk import (
    ACCEPTED,
    PREAMBLE_ANSWER,
    acknowledge,
    acknowledgement,
    ask,
    connect,
    delivery,
    hear,
    hello,
    operation,
    pong,
    queue_message,
    response,
    say,
)

__all__ = ["CASES"]

#: The offsets inside the conversation at which a field begins: slug, words, cuts.
_CUTS: Final[tuple[tuple[str, str, int | tuple[int, ...]], ...]] = (
    ("byte-by-byte", "byte by byte", 1),
    ("by-two", "in pieces of two bytes", 2),
    ("by-three", "in pieces of three bytes", 3),
    ("by-seven", "in pieces of seven bytes", 7),
    ("by-eight", "in pieces of eight bytes", 8),
    ("by-64", "in pieces of 64 bytes", 64),
    ("inside-head", "with a cut inside each head", (4, 10, 12, 90, 92, 94)),
)
_CONVERSATION: Final = (
    PREAMBLE,
    hello("$a"),
    operation(Operation.JOIN, "$ch", message_id="j"),
    queue_message("$ch", 1, b"payload of a push", [("Key", "value")], message_id="p", flags="A"),
)


def _cut_case(slug: str, words: str, chop: int | tuple[int, ...]) -> Case:
    return case(
        f"server.chop.{slug}",
        f"Understands a conversation {words}",
        "A stream has no borders, so a server must not depend on how it is cut.",
        "F22 F35",
        Open("a"),
        Say("a", *_CONVERSATION, chop=chop),
        hear(
            "a",
            Answer(
                PREAMBLE_ANSWER,
                ACCEPTED,
                response(0, message_id="j"),
                delivery("$ch", 1, b"payload of a push", message_id="p"),
                acknowledgement("$ch", 1, message_id="p"),
                more=True,
                ordered=False,
            ),
        ),
    )


CASES: Final[tuple[Case, ...]] = (
    *[_cut_case(*cut) for cut in _CUTS],
    case(
        "server.chop.coalesced",
        "Understands a conversation in one write",
        "A client may send all that it has to say at once.",
        "F35",
        Open("a"),
        say("a", *_CONVERSATION),
        hear(
            "a",
            Answer(
                PREAMBLE_ANSWER,
                ACCEPTED,
                response(0, message_id="j"),
                delivery("$ch", 1, b"payload of a push", message_id="p"),
                acknowledgement("$ch", 1, message_id="p"),
                ordered=False,
            ),
        ),
    ),
    case(
        "server.chop.hundred-in-one-write",
        "Understands a hundred messages in one write",
        "Producers send batches, and order within a queue matters.",
        "F85 F87",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        say("a", *[queue_message("$ch", 1, b"%d" % number) for number in range(100)]),
        hear("a", Answer(*[delivery("$ch", 1, b"%d" % number) for number in range(100)])),
    ),
    case(
        "server.chop.long-payload-in-pieces",
        "Understands a long payload in pieces of 1,000 bytes",
        "A long message never arrives in one read.",
        "F4",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        Say("a", queue_message("$ch", 1, b"0123456789" * 10_000), chop=1_000),
        hear("a", Answer(delivery("$ch", 1, b"0123456789" * 10_000))),
    ),
    case(
        "server.chop.ping-in-the-middle",
        "Answers a ping in the middle of other messages",
        "Keep-alive must work while a client is busy.",
        "F37",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"1"), PING_BYTES, queue_message("$ch", 1, b"2")),
        hear(
            "a",
            Answer(delivery("$ch", 1, b"1"), delivery("$ch", 1, b"2"), pong(), ordered=False),
            fence=Fence.ASK,
        ),
        pongs=False,
    ),
    case(
        "server.chop.torn-message",
        "Closes when the client leaves inside a message",
        "Half a message must have no effect.",
        "rule-torn",
        connect("a"),
        connect("b"),
        ask("b", Operation.JOIN, "$ch"),
        say("a", b"\x11\x10\x00\x00\x02\x01\x00\x05ch12"),
        Close("a", "half"),
        hear("a", Answer(end=End.CLOSED)),
        hear("b", Answer()),
    ),
    case(
        "server.chop.whole-before-torn",
        "Carries out what was complete before a torn message",
        "The program has sent these messages, whatever came after them.",
        "rule-torn",
        connect("a"),
        connect("b"),
        ask("b", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"whole"), b"\x11\x10\x00"),
        Close("a", "half"),
        hear("a", Answer(end=End.CLOSED)),
        hear("b", Answer(delivery("$ch", 1, b"whole"))),
        say("b", acknowledge("$ch", 1, "unknown"), Message(0x0A)),
        hear("b", Answer()),
    ),
)
