"""What a client does with queues: consume, push, pull."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import (
    TYPE_ACKNOWLEDGE,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
)
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.clients.words import (
    CHANNEL,
    GRANTED,
    JOIN,
    QUEUE,
    HasId,
    acknowledged,
    confirm,
    delivered,
    joined,
    pulled,
)
from tmqp.testing.conformance.patterns import Bind, OneOf, Pattern
from tmqp.testing.conformance.steps import Answer, Fence, Message, Step
from tmqp.testing.conformance.talk import NOTHING, greet, hear, say
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]


def _consumes(slug: str, title: str, why: str, rules: str, *script: Step, **more: Any) -> Case:
    steps = (*joined(), *script)
    return case(f"client.consume.{slug}", title, why, rules, *steps, task="consume", **more)


_CONSUME: Final = (
    _consumes(
        "acknowledges",
        "Acknowledges a delivery that asks for it",
        "The server delivers a message again that is not acknowledged.",
        "F95",
        say("a", delivered()),
        hear("a", Answer(acknowledged())),
    ),
    _consumes(
        "flag-h-off",
        "Acknowledges a queue's message with the flag H off",
        "H tells the server that the acknowledgement is for a client.",
        "F95 F116",
        say("a", delivered()),
        hear("a", Answer(acknowledged(high_priority=False))),
    ),
    _consumes(
        "source",
        "Names itself or no source in an acknowledgement",
        "A server ends the connection of a client that speaks for another.",
        "F95 F42",
        say("a", delivered()),
        hear("a", Answer(acknowledged(source=OneOf("", "$a")))),
    ),
    _consumes(
        "not-asked",
        "Does not acknowledge a delivery that does not ask for it",
        "Unexpected acknowledgements cost time.",
        "F76 F95",
        say("a", delivered(flags="")),
        hear("a", NOTHING),
        level=Level.SHOULD,
    ),
    _consumes(
        "each",
        "Acknowledges each of several deliveries",
        "Every delivery has a deadline of its own.",
        "F94 F95",
        say("a", delivered("m1"), delivered("m2"), delivered("m3")),
        hear(
            "a",
            Answer(
                acknowledged("m1"),
                acknowledged("m2"),
                acknowledged("m3"),
                ordered=False,
            ),
        ),
    ),
    _consumes(
        "again",
        "Acknowledges a message that is delivered again",
        "The first acknowledgement may have been lost.",
        "F94 F95",
        say("a", delivered()),
        hear("a", Answer(acknowledged())),
        say("a", delivered()),
        hear("a", Answer(acknowledged())),
    ),
    _consumes(
        "other-queue",
        "Acknowledges with the queue of the delivery",
        "A channel has many queues, and ids may be equal in two of them.",
        "F95",
        say("a", delivered(content_type=9)),
        hear("a", Answer(acknowledged(content_type=9))),
    ),
    _consumes(
        "priority",
        "Acknowledges a message of high priority like any other",
        "The flag H of a delivery is not that of its acknowledgement.",
        "F95",
        say("a", delivered(flags="HA")),
        hear("a", Answer(acknowledged(high_priority=False))),
    ),
    _consumes(
        "with-headers",
        "Consumes a message with headers",
        "Producers put what they like into headers.",
        "F7 F76",
        say("a", delivered(headers=[("K", "v"), ("K", ""), ("With", "a:colon")])),
        hear("a", Answer(acknowledged())),
    ),
    _consumes(
        "no-source",
        "Consumes a message without a source",
        "A queue may hide who produced.",
        "F76",
        say(
            "a",
            Message(TYPE_QUEUE_MESSAGE, CHANNEL, QUEUE, b"x", message_id="m1", flags="A"),
        ),
        hear("a", Answer(acknowledged())),
    ),
    _consumes(
        "time-to-live",
        "Gives an acknowledgement a new time to live",
        "An acknowledgement without hops left would be dropped.",
        "F11 F12",
        say("a", delivered(ttl=1)),
        hear("a", Answer(acknowledged(ttl=16))),
    ),
    case(
        "client.consume.before-the-answer",
        "Takes deliveries that come before the answer to its join",
        "A server sends the backlog of a channel first.",
        "F48",
        *greet(),
        hear("a", Answer(JOIN), fence=Fence.FIRST),
        say("a", delivered(), GRANTED),
        hear("a", Answer(acknowledged())),
        task="consume",
    ),
)

_PUSH: Final = Pattern(
    TYPE_QUEUE_MESSAGE,
    target=CHANNEL,
    content_type=QUEUE,
    payload=b"hello",
    message_id=Bind("push", HasId()),
    pending_acknowledge=True,
)


def _pushes(slug: str, title: str, why: str, rules: str, *script: Step, **more: Any) -> Case:
    steps = (*greet(), hear("a", Answer(_PUSH), fence=Fence.FIRST), *script)
    return case(f"client.push.{slug}", title, why, rules, *steps, task="push", **more)


_PUSHES: Final = (
    _pushes(
        "acknowledged",
        "Takes the acknowledgement of its push",
        "A push that is acknowledged is done.",
        "F78",
        say("a", confirm()),
        hear("a", NOTHING),
    ),
    _pushes(
        "refused",
        "Survives the refusal of its push",
        "A full queue refuses a push, and the program goes on.",
        "F75 F81",
        say(
            "a",
            Message(TYPE_RESPONSE, CHANNEL, 482, message_id="$push"),
            confirm(headers=[("Nack-Reason", "limit exceeded")]),
        ),
        hear("a", NOTHING),
    ),
    _pushes(
        "other-id",
        "Does not take another message's acknowledgement for its own",
        "Answers are matched by id.",
        "F45 F78",
        say("a", confirm("another-id")),
        hear("a", NOTHING),
        say("a", confirm()),
        hear("a", NOTHING),
    ),
    _pushes(
        "acknowledged-twice",
        "Survives a second acknowledgement",
        "Servers of older versions send more than one.",
        "F77",
        say("a", confirm(), confirm()),
        hear("a", NOTHING),
    ),
    _pushes(
        "forwarded",
        "Takes the acknowledgement that a consumer gave",
        "It is the consumer's, forwarded: it has a source and one hop less.",
        "F79",
        say("a", confirm(source="consumer", ttl=15)),
        hear("a", NOTHING),
    ),
    _pushes(
        "spelling",
        "Takes an acknowledgement that spells the channel in another case",
        "Channel names have no case.",
        "F46 F78",
        say("a", Message(TYPE_ACKNOWLEDGE, "CONFORMANCE", QUEUE, message_id="$push")),
        hear("a", NOTHING),
    ),
    case(
        "client.push.time-to-live",
        "Gives a push a time to live of 16",
        "A new message may make sixteen hops.",
        "F11",
        *greet(),
        hear(
            "a",
            Answer(Pattern(TYPE_QUEUE_MESSAGE, ttl=16, message_id=Bind("push"))),
            fence=Fence.FIRST,
        ),
        say("a", confirm()),
        hear("a", NOTHING),
        task="push",
    ),
    case(
        "client.push.source",
        "Names itself or no source in a push",
        "A server ends the connection of a client that speaks for another.",
        "F42",
        *greet(),
        hear(
            "a",
            Answer(Pattern(TYPE_QUEUE_MESSAGE, source=OneOf("", "$a"), message_id=Bind("push"))),
            fence=Fence.FIRST,
        ),
        say("a", confirm()),
        hear("a", NOTHING),
        task="push",
    ),
)

_PULLED: Final = Pattern(
    TYPE_PULL_REQUEST,
    target=CHANNEL,
    content_type=QUEUE,
    message_id=Bind("pull", HasId()),
    header={"Count": "2"},
)


def _no_content(reason: str) -> Message:
    return Message(
        TYPE_QUEUE_MESSAGE,
        CHANNEL,
        QUEUE,
        message_id="$pull",
        headers=[("Request-Id", "$pull"), ("No-Content", reason)],
    )


def _pulls(slug: str, title: str, why: str, rules: str, *script: Step, **more: Any) -> Case:
    steps = (*joined()[:-1], hear("a", Answer(_PULLED), fence=Fence.FIRST), *script)
    return case(f"client.pull.{slug}", title, why, rules, *steps, task="pull", **more)


_PULLS: Final = (
    _pulls(
        "complete",
        "Takes the results of a pull and its end",
        "A pull ends with a message of its own.",
        "F107 F108 F111",
        say("a", pulled(1), pulled(2), _no_content("End")),
        hear("a", NOTHING),
    ),
    _pulls(
        "empty",
        "Takes an empty queue for an answer",
        "A queue may have nothing to pull.",
        "F105 F111",
        say("a", _no_content("Empty")),
        hear("a", NOTHING),
    ),
    *[
        _pulls(
            f"refused-{reason.lower()}",
            f"Survives the refusal {reason}",
            "A program that pulls must learn why it gets nothing.",
            "F105 F111",
            say("a", _no_content(reason)),
            hear("a", NOTHING),
        )
        for reason in ("Unacceptable", "Unauthorized", "No-Channel", "No-Queue")
    ],
    _pulls(
        "fewer",
        "Takes fewer messages than the count promises",
        "A server counts before it sends, and messages expire.",
        "F107 F108",
        say("a", pulled(1), _no_content("End")),
        hear("a", NOTHING),
    ),
    _pulls(
        "empty-payload",
        "Takes a result with an empty payload",
        "An empty message is a message, and not the end.",
        "F111",
        say("a", pulled(1, b""), pulled(2), _no_content("End")),
        hear("a", NOTHING),
    ),
    _pulls(
        "own-headers",
        "Finds the server's headers behind a producer's of the same name",
        "Headers that a server appends come last.",
        "F8 F107",
        say(
            "a",
            pulled(1, headers=[("Request-Id", "forged"), ("Index", "9")]),
            pulled(2),
            _no_content("End"),
        ),
        hear("a", NOTHING),
    ),
    _pulls(
        "ended-by-response",
        "Takes a response for the end of a pull",
        "Servers of the original answer 404 in this way.",
        "F111 F106",
        say("a", Message(TYPE_RESPONSE, "$a", 404, message_id="$pull")),
        hear("a", NOTHING),
        level=Level.SHOULD,
    ),
)


CASES: Final[tuple[Case, ...]] = (*_CONSUME, *_PUSHES, *_PULLS)
