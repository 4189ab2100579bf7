"""Acknowledgements: who gets which and when, and the effects of missing and negative ones."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import NoHeader, Properties
from tmqp.testing.conformance.steps import Answer, Close, Message, Step
from tmqp.testing.conformance.talk import (
    NOTHING,
    acknowledge,
    acknowledgement,
    ask,
    connect,
    create_queue,
    delivery,
    hear,
    nack,
    non_strict,
    push,
    queue_message,
    response,
    say,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES", "SHORT", "TIMEOUT_S", "counted", "got", "message", "stage"]

_ID: Final = [("Queue-Id", "1")]
_LONG: Final = b'{"RequestAcknowledge":true,"AcknowledgeTimeout":30000}'
SHORT: Final = b'{"RequestAcknowledge":true,"AcknowledgeTimeout":300}'
#: How long a peer may take for a timeout of 0.3 s: it may look once a second.
TIMEOUT_S: Final = 2.5


def stage(handler: str = "", body: bytes = _LONG, consumers: str = "c") -> list[Step]:
    """A producer, a push queue with this delivery handler, and consumers."""
    more = {"Delivery_Handler": handler} if handler else {}
    steps = connect("p")
    for line in consumers:
        steps += connect(line)
    steps += create_queue("p", "$ch", 1, body, Queue_Status="push", **more)
    for line in consumers:
        steps += ask(line, Operation.JOIN, "$ch")
    return steps


def message(message_id: str = "m1", payload: bytes = b"x", **fields: Any) -> Message:
    """A message for the stage's queue, whose producer asks for an acknowledgement."""
    fields.setdefault("flags", "A")
    return queue_message("$ch", 1, payload, message_id=message_id, **fields)


def got(message_id: str = "m1", **fields: Any) -> Answer:
    """The delivery of that message, and nothing else."""
    return Answer(delivery("$ch", 1, message_id=message_id, **fields))


def counted(**properties: Any) -> list[Step]:
    """Request the queue's information, and expect these counters."""
    answer = Answer(response(0, payload=Properties(properties)))
    return ask("p", Operation.QUEUE_INFORMATION, "$ch", headers=_ID, code=answer)


_TO_PRODUCER: Final = (
    case(
        "server.ack.received",
        "The handler ack-received acknowledges at once, without a consumer",
        "A producer that only wants to hand over must not wait for consumers.",
        "F77 F78 F103",
        *stage("ack-received", consumers=""),
        say("p", message()),
        hear("p", Answer(acknowledgement("$ch", 1, source="", high_priority=False, ttl=16))),
        needs="handlers",
    ),
    case(
        "server.ack.received-flag-first",
        "An acknowledgement before the sending has the flag F",
        "F tells whether the message has been sent yet.",
        "F78",
        *stage("ack-received", consumers=""),
        say("p", message()),
        hear("p", Answer(acknowledgement("$ch", 1, first_acquirer=True))),
        level=Level.SHOULD,
        needs="handlers",
    ),
    case(
        "server.ack.sent",
        "The handler ack-sent acknowledges when the message was sent",
        "A producer may need to know that a consumer got its message.",
        "F77 F78 F103",
        *stage("ack-sent", consumers=""),
        say("p", message()),
        hear("p", NOTHING),
        connect("c"),
        ask("c", Operation.JOIN, "$ch", code=Answer(response(0), more=True)),
        hear("c", got()),
        hear("p", Answer(acknowledgement("$ch", 1))),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("p", NOTHING),
        needs="handlers",
    ),
    case(
        "server.ack.consumer",
        "The handler ack-consumer forwards the consumer's acknowledgement",
        "A producer may want to know that its message was processed.",
        "F77 F79 F103",
        *stage("ack-consumer"),
        say("p", message()),
        hear("p", NOTHING),
        hear("c", got()),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("p", Answer(acknowledgement("$ch", 1, source="$c", ttl=15))),
        needs="handlers",
    ),
    case(
        "server.ack.consumer-headers",
        "A forwarded acknowledgement keeps the consumer's headers",
        "Consumers report results in headers of their acknowledgements.",
        "F79",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", acknowledge("$ch", 1, "m1", headers=[("Result", "17"), ("Result", "18")])),
        hear("p", Answer(acknowledgement("$ch", 1, header={"Result": "17"}))),
        needs="handlers",
    ),
    case(
        "server.ack.consumer-hidden",
        "A forwarded acknowledgement has no source with HideClientNames",
        "A producer must not learn who consumes where names are hidden.",
        "F79",
        *stage(
            "ack-consumer",
            b'{"RequestAcknowledge":true,"AcknowledgeTimeout":30000,"HideClientNames":true}',
        ),
        say("p", message()),
        hear("c", got(source="")),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("p", Answer(acknowledgement("$ch", 1, source=""))),
        needs="handlers",
    ),
    case(
        "server.ack.consumer-reason",
        "A consumer's reason reaches the producer",
        "A producer decides by the reason what to do next.",
        "F79 F81",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", nack("$ch", 1, "m1", "out of paper")),
        hear("p", Answer(acknowledgement("$ch", 1, nack="out of paper", message_id="m1"))),
        needs="handlers",
    ),
    case(
        "server.ack.consumer-timeout",
        "A missing acknowledgement becomes a negative one with the reason timeout",
        "A producer must not wait forever for a consumer that hangs.",
        "F80 F94",
        *stage("ack-consumer", SHORT),
        say("p", message()),
        hear("c", got()),
        hear("p", Answer(acknowledgement("$ch", 1, nack="timeout")), within=TIMEOUT_S),
        needs="handlers timeouts",
    ),
    case(
        "server.ack.once",
        "Two consumers' acknowledgements give the producer one",
        "A producer that counts acknowledgements would count too many.",
        "F77",
        *stage("ack-consumer", consumers="cd"),
        say("p", message()),
        hear("c", got()),
        hear("d", got()),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("c", NOTHING),
        say("d", acknowledge("$ch", 1, "m1")),
        hear("d", NOTHING),
        hear("p", Answer(acknowledgement("$ch", 1))),
        needs="handlers",
    ),
    case(
        "server.ack.reject-nack",
        "The handler reject-nack answers a push with a negative acknowledgement",
        "A refusal by a rule of the queue must reach the producer.",
        "F103 F78",
        *stage("reject-nack"),
        say("p", message()),
        hear("p", Answer(acknowledgement("$ch", 1, nack="none"))),
        hear("c", NOTHING),
        needs="handlers",
    ),
    case(
        "server.ack.reject",
        "The handler reject says nothing and queues nothing",
        "A rule may drop messages without a word.",
        "F103",
        *stage("reject"),
        say("p", message()),
        hear("p", NOTHING),
        hear("c", NOTHING),
        needs="handlers",
    ),
    case(
        "server.ack.producer-gone",
        "An acknowledgement for a disconnected producer goes nowhere",
        "Producers disconnect, and consumers acknowledge their messages later.",
        "F77 F102",
        *stage("ack-consumer"),
        push("p", message()),
        Close("p"),
        hear("c", got()),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("c", NOTHING),
        needs="handlers",
    ),
    case(
        "server.ack.spelling-of-the-channel",
        "An acknowledgement names the channel as the producer spelt it",
        "Clients compare names exactly when they match answers.",
        "F78 F46",
        connect("p"),
        create_queue("p", "$ch", 1, _LONG, Queue_Status="push", Delivery_Handler="ack-received"),
        say("p", queue_message("$ch", 1, message_id="m1", flags="A")),
        hear("p", Answer(acknowledgement("$ch", 1))),
        needs="handlers",
    ),
)

_ASKED: Final = (
    case(
        "server.ack.requested-of-consumers",
        "With RequestAcknowledge deliveries have the flag A, asked for or not",
        "The queue decides whether its consumers must acknowledge.",
        "F76 F94",
        *stage(),
        push("p", message(flags="")),
        hear("c", got(pending_acknowledge=True)),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("c", NOTHING),
    ),
    case(
        "server.ack.not-requested-of-consumers",
        "Without RequestAcknowledge deliveries have no flag A",
        "A consumer that acknowledges for nothing costs time.",
        "F76",
        *stage(body=b'{"RequestAcknowledge":false}'),
        say("p", message()),
        hear("c", got(pending_acknowledge=False)),
        hear("p", Answer(acknowledgement("$ch", 1)), NOTHING),
    ),
    case(
        "server.ack.counted",
        "Acknowledgements are counted, negative ones apart",
        "An operator sees in the counters that consumers refuse messages.",
        "F100",
        *stage(),
        push("p", message(flags=""), message("m2", flags="")),
        hear("c", Answer(delivery("$ch", 1, message_id="m1"), delivery("$ch", 1, message_id="m2"))),
        say("c", acknowledge("$ch", 1, "m1"), acknowledge("$ch", 1, "m2")),
        hear("c", NOTHING),
        counted(Acks=2, NegativeAcks=0),
        needs="admin",
    ),
    case(
        "server.ack.negative-counted",
        "A negative acknowledgement counts as negative",
        "An operator sees in the counters that consumers refuse messages.",
        "F100 F81",
        *stage(),
        push("p", message(flags="")),
        hear("c", got()),
        say("c", nack("$ch", 1, "m1")),
        hear("c", NOTHING, Answer(more=True)),
        counted(NegativeAcks=1, Acks=0),
        needs="admin",
        loose=True,
    ),
    case(
        "server.ack.reason-in-any-case",
        "The header that makes an acknowledgement negative is found in any case",
        "Header names have no case.",
        "F81",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", acknowledge("$ch", 1, "m1", headers=[("nack-REASON", "no")])),
        hear("p", Answer(acknowledgement("$ch", 1, nack="no", message_id="m1"))),
        needs="handlers",
    ),
    case(
        "server.ack.empty-reason",
        "An empty reason is a negative acknowledgement, too",
        "The header decides, whatever its value.",
        "F81",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", nack("$ch", 1, "m1", "")),
        hear("p", Answer(acknowledgement("$ch", 1, nack="", message_id="m1"))),
        needs="handlers",
    ),
    case(
        "server.ack.channel-in-any-case",
        "A consumer may spell the channel in any case",
        "Channel names have no case.",
        "F95 F46",
        connect("p"),
        connect("c"),
        create_queue("p", "news-$ch", 1, _LONG, Queue_Status="push"),
        ask("c", Operation.JOIN, "news-$ch"),
        push("p", queue_message("news-$ch", 1, message_id="m1")),
        hear("c", Answer(delivery("news-$ch", 1, message_id="m1"))),
        say("c", acknowledge("NEWS-$ch", 1, "m1")),
        hear("c", NOTHING),
        ask(
            "p",
            Operation.QUEUE_INFORMATION,
            "news-$ch",
            headers=_ID,
            code=Answer(response(0, payload=Properties({"Acks": 1}))),
        ),
        needs="admin",
    ),
    case(
        "server.ack.own-source",
        "A consumer may write its own id into an acknowledgement",
        "The original client writes its id into everything that it sends.",
        "F95 F42",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", acknowledge("$ch", 1, "m1", source="$c")),
        hear("p", Answer(acknowledgement("$ch", 1, message_id="m1"))),
        needs="handlers",
    ),
)

_IGNORED: Final = (
    case(
        "server.ack.unknown-id",
        "An acknowledgement of an unknown message is ignored",
        "Acknowledgements cross with timeouts; neither may hurt the connection.",
        "F95",
        *stage(),
        say("c", acknowledge("$ch", 1, "never-sent")),
        hear("c", NOTHING),
    ),
    case(
        "server.ack.unknown-channel",
        "An acknowledgement for an unknown channel is ignored",
        "A channel may be removed while its messages are acknowledged.",
        "F95 F116",
        connect("c"),
        say("c", acknowledge("$none", 1, "m1")),
        hear("c", NOTHING),
    ),
    case(
        "server.ack.another-consumers",
        "A consumer cannot acknowledge another's delivery",
        "A message counts as processed only if its consumer says so.",
        "F95",
        *stage("ack-consumer"),
        connect("x"),
        say("p", message()),
        hear("c", got()),
        say("x", acknowledge("$ch", 1, "m1")),
        hear("x", NOTHING),
        hear("p", NOTHING),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("p", Answer(acknowledgement("$ch", 1, message_id="m1"))),
        needs="handlers",
    ),
    case(
        "server.ack.wrong-queue",
        "An acknowledgement with another queue's id does not count",
        "Queues may hold messages with the same id.",
        "F95",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", acknowledge("$ch", 2, "m1")),
        hear("p", NOTHING),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("p", Answer(acknowledgement("$ch", 1, message_id="m1"))),
        needs="handlers",
    ),
    case(
        "server.ack.twice",
        "The second acknowledgement of a delivery is ignored",
        "A consumer that reconnects may acknowledge again.",
        "F95 F77",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", acknowledge("$ch", 1, "m1"), acknowledge("$ch", 1, "m1")),
        hear("c", NOTHING),
        hear("p", Answer(acknowledgement("$ch", 1, message_id="m1"))),
        needs="handlers",
    ),
    case(
        "server.ack.positive-then-negative",
        "A negative acknowledgement after a positive one changes nothing",
        "The first word of a consumer counts.",
        "F95",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", acknowledge("$ch", 1, "m1"), nack("$ch", 1, "m1")),
        hear("c", NOTHING),
        hear("p", Answer(acknowledgement("$ch", 1, message_id="m1"))),
        needs="handlers",
    ),
    case(
        "server.ack.without-id",
        "An acknowledgement without an id matches nothing",
        "Without an id the message cannot be identified.",
        "F95",
        *stage("ack-consumer"),
        say("p", message()),
        hear("c", got()),
        say("c", acknowledge("$ch", 1, "")),
        hear("c", NOTHING),
        hear("p", NOTHING),
        needs="handlers",
    ),
)

_COPIES: Final = (
    case(
        "server.ack.copy-is-delivered",
        "A header CC pushes a copy into another queue",
        "One push may feed two queues.",
        "F82 F83",
        connect("p"),
        connect("c"),
        create_queue("p", "$ch", 1, b'{"RequestAcknowledge":false}', Queue_Status="push"),
        create_queue("p", "$other", 5, b'{"RequestAcknowledge":false}', Queue_Status="push"),
        ask("c", Operation.JOIN, "$other"),
        push("p", queue_message("$ch", 1, b"x", [("CC", "$other;5;copy"), ("Mine", "1")])),
        hear(
            "c",
            Answer(
                delivery("$other", 5, b"x", message_id="copy", headers=[("Mine", "1")], ttl=16),
            ),
        ),
    ),
    case(
        "server.ack.copy-gets-an-id",
        "A copy without an id of its own gets a new one",
        "Two messages with one id could not be distinguished.",
        "F82 F45",
        connect("p"),
        connect("c"),
        create_queue("p", "$other", 5, b'{"RequestAcknowledge":false}', Queue_Status="push"),
        ask("c", Operation.JOIN, "$other"),
        push("p", queue_message("$ch", 1, b"x", [("cc", " $other ; 5 ")], message_id="m1")),
        hear("c", Answer(delivery("$other", 5, b"x"))),
    ),
    case(
        "server.ack.copy-to-nowhere",
        "A copy with an impossible address is dropped",
        "The original must not suffer for its copy.",
        "F82",
        connect("p"),
        connect("c"),
        create_queue("p", "$ch", 1, b'{"RequestAcknowledge":false}', Queue_Status="push"),
        ask("c", Operation.JOIN, "$ch"),
        push("p", queue_message("$ch", 1, b"x", [("CC", "$other;not-a-number")])),
        hear("c", Answer(delivery("$ch", 1, b"x", header={"CC": "$other;not-a-number"}))),
    ),
    case(
        "server.ack.copy-acknowledged-by-its-own-id",
        "A copy is acknowledged under its own channel, queue and id",
        "The consumer of a copy does not know the original.",
        "F84 F83",
        connect("p"),
        connect("c"),
        create_queue("p", "$other", 5, _LONG, Queue_Status="push"),
        ask("c", Operation.JOIN, "$other"),
        push("p", queue_message("$ch", 1, b"x", [("CC", "$other;5;copy")], message_id="m1")),
        hear("c", Answer(delivery("$other", 5, b"x", message_id="copy"))),
        say("c", acknowledge("$other", 5, "copy")),
        hear("c", NOTHING),
        ask(
            "p",
            Operation.QUEUE_INFORMATION,
            "$other",
            headers=[("Queue-Id", "5")],
            code=Answer(response(0, payload=Properties({"Acks": 1}))),
        ),
        needs="admin",
    ),
)

_REFUSED: Final = (
    case(
        "server.ack.refused-push-is-nacked",
        "A refused push with the flag A gets a negative acknowledgement as well",
        "A producer that waits for an acknowledgement ignores everything else.",
        "F75",
        connect("p"),
        create_queue("p", "$ch", 1, Queue_Status="stopped"),
        say("p", message()),
        hear(
            "p",
            Answer(
                response(401, target="$ch"),
                acknowledgement("$ch", 1, nack="unauthorized"),
                ordered=False,
            ),
            non_strict(
                response(401, target="$ch"),
                message="the refusal is answered, and a producer that waits for an acknowledgement"
                " does not learn of it",
            ),
        ),
        level=Level.SHOULD,
    ),
    case(
        "server.ack.unasked-positive",
        "Without the flag A a producer need not be acknowledged",
        "A producer may get an answer that it did not request; it must be able to ignore it.",
        "F77",
        *stage("ack-received", consumers=""),
        say("p", message(flags="")),
        hear("p", Answer(acknowledgement("$ch", 1, header={"Nack-Reason": NoHeader()})), NOTHING),
        level=Level.OBSERVED,
        needs="handlers",
    ),
)

CASES: Final[tuple[Case, ...]] = (
    *_TO_PRODUCER,
    *_ASKED,
    *_IGNORED,
    *_COPIES,
    *_REFUSED,
)
