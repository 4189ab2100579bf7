"""The effects of negative and missing acknowledgements: putting back, timeouts, redelivery."""

from __future__ import annotations

from typing import Final

from tmqp.constants import Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.servers.ack import SHORT, TIMEOUT_S, counted, got, message, stage
from tmqp.testing.conformance.steps import Answer, Close
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
    push,
    queue_message,
    response,
    say,
)

__all__ = ["CASES"]


def _put_back(place: str, order: tuple[bytes, ...]) -> Case:
    return case(
        f"server.ack.put-back-{place}",
        f"The handler putback-{place} puts a refused message at the {place} of the queue",
        "Whether a failed job comes next or last is the queue's decision.",
        "F98 F103",
        connect("p"),
        connect("c"),
        create_queue(
            "p",
            "$ch",
            1,
            b'{"RequestAcknowledge":true,"AcknowledgeTimeout":30000,"WaitForAcknowledge":true}',
            Queue_Status="push",
            Delivery_Handler=f"putback-{place}",
        ),
        ask("c", Operation.JOIN, "$ch"),
        push(
            "p",
            queue_message("$ch", 1, b"one", message_id="one"),
            queue_message("$ch", 1, b"two", message_id="two"),
        ),
        hear("c", Answer(delivery("$ch", 1, b"one"))),
        say("c", nack("$ch", 1, "one")),
        *[
            step
            for text in order
            for step in (
                hear("c", Answer(delivery("$ch", 1, text))),
                say("c", acknowledge("$ch", 1, text.decode())),
            )
        ],
        hear("c", NOTHING),
        needs="handlers",
    )


CASES: Final[tuple[Case, ...]] = (
    _put_back("start", (b"one", b"two")),
    _put_back("end", (b"two", b"one")),
    case(
        "server.ack.put-back-not-first",
        "A message that is delivered again has no flag F",
        "F shows a consumer that the message was not delivered before.",
        "F87 F98",
        *stage("putback-end"),
        push("p", message(flags="")),
        hear("c", got(first_acquirer=True)),
        say("c", nack("$ch", 1, "m1")),
        hear("c", got(first_acquirer=False)),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("c", NOTHING),
        needs="handlers",
    ),
    case(
        "server.ack.put-back-keeps-time-to-live",
        "A message that is delivered again has the time to live of the first time",
        "A redelivery is no hop.",
        "F12",
        *stage("putback-end"),
        push("p", message(flags="")),
        hear("c", got(ttl=15)),
        say("c", nack("$ch", 1, "m1")),
        hear("c", got(ttl=15)),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("c", NOTHING),
        needs="handlers",
    ),
    case(
        "server.ack.timeout-delivers-again",
        "A message that is not acknowledged in time is delivered again",
        "A consumer that hangs must not keep a message.",
        "F94 F98",
        *stage("putback-end", SHORT),
        push("p", message(flags="")),
        hear("c", got()),
        hear("c", got(), within=TIMEOUT_S),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("c", NOTHING),
        needs="handlers timeouts",
        loose=True,
    ),
    case(
        "server.ack.consumer-gone-delivers-again",
        "What a consumer had when it disconnected goes to another one",
        "A worker that crashes must not take its work with it.",
        "F99",
        *stage("putback-end", SHORT),
        push("p", message(flags="")),
        hear("c", got()),
        Close("c"),
        connect("d"),
        ask("d", Operation.JOIN, "$ch", code=Answer(response(0), more=True)),
        hear("d", got(), within=TIMEOUT_S),
        say("d", acknowledge("$ch", 1, "m1")),
        hear("d", NOTHING),
        needs="handlers timeouts",
    ),
    case(
        "server.ack.late-is-ignored",
        "An acknowledgement after the timeout is ignored",
        "By then the message is in flight to another consumer.",
        "F94 F95",
        *stage("ack-consumer", SHORT),
        say("p", message()),
        hear("c", got()),
        hear(
            "p",
            Answer(acknowledgement("$ch", 1, nack="timeout", message_id="m1")),
            within=TIMEOUT_S,
        ),
        say("c", acknowledge("$ch", 1, "m1")),
        hear("c", NOTHING),
        hear("p", NOTHING),
        needs="handlers timeouts",
    ),
    case(
        "server.ack.timeout-counts-as-negative",
        "A timeout counts as a negative acknowledgement",
        "An operator sees in the counters that consumers do not answer.",
        "F94 F100",
        *stage("ack-consumer", SHORT),
        say("p", message()),
        hear("c", got()),
        hear("p", Answer(acknowledgement("$ch", 1, nack="timeout")), within=TIMEOUT_S),
        counted(NegativeAcks=1),
        needs="handlers timeouts admin",
    ),
)
