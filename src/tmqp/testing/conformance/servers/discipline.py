"""How queues of each status deliver, and what happens when the status changes."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import Properties
from tmqp.testing.conformance.steps import Answer, Close, Message, Step
from tmqp.testing.conformance.talk import (
    NOTHING,
    acknowledge,
    ask,
    connect,
    create_queue,
    delivery,
    hear,
    push,
    queue_message,
    response,
    say,
)

__all__ = ["CASES"]

_ID: Final = [("Queue-Id", "1")]
_JOIN: Final = Operation.JOIN
_NO_ACKNOWLEDGE: Final = b'{"RequestAcknowledge":false}'
#: The numbers of Status in JSON (F72).
_NUMBERS: Final = ("broadcast", "push", "roundrobin", "pull", "cache", "paused", "stopped")
#: Statuses that send what they have, and those that keep it: word of the header.
_SENDING: Final = ("push", "roundrobin")
_KEEPING: Final = ("pull", "paused")


def _queue(status: str, body: bytes = _NO_ACKNOWLEDGE, line: str = "p", **more: str) -> list[Step]:
    return create_queue(line, "$ch", 1, body, Queue_Status=status, **more)


def _messages(*texts: str, **fields: Any) -> list[Message]:
    return [
        queue_message("$ch", 1, text.encode(), message_id=f"id-{text}", **fields) for text in texts
    ]


def _got(*texts: str) -> Answer:
    return Answer(*[delivery("$ch", 1, text.encode()) for text in texts])


def _change(status: str) -> list[Step]:
    body = f'{{"Status":{_NUMBERS.index(status)}}}'.encode()
    return ask("p", Operation.UPDATE_QUEUE, "$ch", body, _ID)


def _waiting(number: int) -> list[Step]:
    payload = Properties({"Messages": number})
    answer = Answer(response(0, payload=payload))
    return ask("p", Operation.QUEUE_INFORMATION, "$ch", headers=_ID, code=answer)


def _kept(status: str) -> Case:
    return case(
        f"server.discipline.{status}-keeps-without-consumers",
        f"A queue with the status {status} keeps messages while there is no consumer",
        "Producers may run before the first consumer does.",
        "F87 F90" if status in _SENDING else "F91",
        connect("p"),
        _queue(status),
        push("p", *_messages("one", "two")),
        _waiting(2),
        needs="pull admin" if status == "pull" else "admin",
    )


def _backlog(status: str) -> Case:
    return case(
        f"server.discipline.{status}-backlog-in-order",
        f"The first consumer of a {status} queue gets the backlog in order",
        "Work that waited is done in the order in which it came.",
        "F87 F48 F85" if status == "push" else "F90 F48 F85",
        connect("p"),
        connect("c"),
        _queue(status),
        push("p", *_messages("one", "two", "three")),
        say("c", Message(0x10, "$ch", _JOIN, flags="R", message_id="j")),
        hear(
            "c",
            Answer(
                *[delivery("$ch", 1, text) for text in (b"one", b"two", b"three")],
                response(0, message_id="j"),
            ),
            Answer(
                response(0, message_id="j"),
                *[delivery("$ch", 1, text) for text in (b"one", b"two", b"three")],
            ),
        ),
    )


def _priority(status: str) -> Case:
    return case(
        f"server.discipline.{status}-high-priority-first",
        f"A {status} queue sends stored messages of high priority first",
        "An urgent message must not wait behind a long backlog.",
        "F85",
        connect("p"),
        connect("c"),
        _queue(status),
        push(
            "p",
            *_messages("low-1"),
            *_messages("high-1", flags="H"),
            *_messages("low-2"),
            *_messages("high-2", flags="H"),
        ),
        say("c", Message(0x10, "$ch", _JOIN, message_id="j")),
        hear("c", _got("high-1", "high-2", "low-1", "low-2")),
    )


def _entering(status: str, other: str) -> Case:
    return case(
        f"server.discipline.{other}-to-{status}-sends",
        f"A queue that changes from {other} to {status} sends what it has",
        "An operator resumes a queue in this way, and consumers wait for it.",
        "F92",
        connect("p"),
        connect("c"),
        _queue(other),
        ask("c", _JOIN, "$ch"),
        push("p", *_messages("one", "two")),
        hear("c", NOTHING),
        _change(status),
        hear("c", _got("one", "two")),
        needs="pull admin" if other == "pull" else "admin",
    )


def _leaving(status: str) -> Case:
    return case(
        f"server.discipline.push-to-{status}-stops-sending",
        f"A push queue that changes to {status} sends nothing more",
        "An operator pauses a queue to protect its consumers.",
        "F92 F91",
        connect("p"),
        connect("c"),
        _queue("push"),
        ask("c", _JOIN, "$ch"),
        push("p", *_messages("one")),
        hear("c", _got("one")),
        _change(status),
        push("p", *_messages("two")),
        hear("c", NOTHING),
        _waiting(1),
        needs="pull admin" if status == "pull" else "admin",
    )


_SAME: Final = tuple(
    case(
        f"server.discipline.same-status-{status}",
        f"An update of a {status} queue with the status that it has changes nothing",
        "Programs declare their queues at each start.",
        "F92",
        connect("p"),
        _queue(status),
        push("p", *_messages("one")),
        _change(status),
        _waiting(1),
        needs="pull admin" if status == "pull" else "admin",
    )
    for status in ("push", "roundrobin", "pull", "paused")
)

_BROADCAST: Final = (
    case(
        "server.discipline.broadcast-to-all",
        "Broadcast reaches every consumer of the channel",
        "Every listener gets a broadcast.",
        "F86",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue("broadcast"),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        push("p", *_messages("one")),
        hear("c", _got("one")),
        hear("d", _got("one")),
    ),
    case(
        "server.discipline.broadcast-stores-nothing",
        "Broadcast keeps nothing for those who come later",
        "A listener that joins must not hear old news.",
        "F86",
        connect("p"),
        connect("c"),
        _queue("broadcast"),
        push("p", *_messages("early")),
        ask("c", _JOIN, "$ch"),
        hear("c", NOTHING),
        push("p", *_messages("late")),
        hear("c", _got("late")),
    ),
    case(
        "server.discipline.broadcast-tracks-acknowledgements",
        "Broadcast with RequestAcknowledge asks for acknowledgements",
        "A broadcast can be confirmed although it is not stored.",
        "F86 F94",
        connect("p"),
        connect("c"),
        _queue("broadcast", b'{"RequestAcknowledge":true}'),
        ask("c", _JOIN, "$ch"),
        push("p", *_messages("one")),
        hear("c", Answer(delivery("$ch", 1, b"one", pending_acknowledge=True))),
        say("c", acknowledge("$ch", 1, "id-one")),
        hear("c", NOTHING),
    ),
    case(
        "server.discipline.producer-consumes-too",
        "A producer that has joined the channel gets its own message",
        "Joining makes a client a consumer, whichever client pushes.",
        "F86 F48",
        connect("p"),
        _queue("broadcast"),
        ask("p", _JOIN, "$ch"),
        say("p", *_messages("own")),
        hear("p", _got("own")),
    ),
)

_PUSH: Final = (
    case(
        "server.discipline.push-to-all",
        "Push reaches every consumer of the channel",
        "Each consumer of a push queue gets a copy of its own.",
        "F87",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue("push"),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        push("p", *_messages("one", "two")),
        hear("c", _got("one", "two")),
        hear("d", _got("one", "two")),
    ),
    case(
        "server.discipline.push-first-receiver-flag",
        "Only the first receiver's copy has the flag F",
        "Of several receivers one can tell that it is the first.",
        "F87",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue("push"),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        push("p", *_messages("one")),
        hear("c", Answer(delivery("$ch", 1, b"one", first_acquirer=True))),
        hear("d", Answer(delivery("$ch", 1, b"one", first_acquirer=False))),
    ),
    case(
        "server.discipline.push-only-first-acquirer",
        "With SendOnlyFirstAcquirer only the first consumer gets the message",
        "A queue may have one active consumer and others that stand by.",
        "F88",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue("push", b'{"RequestAcknowledge":false,"SendOnlyFirstAcquirer":true}'),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        push("p", *_messages("one", "two")),
        hear("c", _got("one", "two")),
        hear("d", NOTHING),
    ),
    case(
        "server.discipline.push-only-first-acquirer-next",
        "The consumer that stood by takes over when the first leaves",
        "The point of a consumer that stands by is that it takes over.",
        "F88",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue("push", b'{"RequestAcknowledge":false,"SendOnlyFirstAcquirer":true}'),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        ask("c", Operation.LEAVE, "$ch"),
        push("p", *_messages("one")),
        hear("d", _got("one")),
        hear("c", NOTHING),
    ),
    case(
        "server.discipline.push-after-leave",
        "A consumer that has left gets nothing more",
        "A program that unsubscribes must not see further messages.",
        "F49 F87",
        connect("p"),
        connect("c"),
        _queue("push"),
        ask("c", _JOIN, "$ch"),
        ask("c", Operation.LEAVE, "$ch"),
        push("p", *_messages("one")),
        hear("c", NOTHING),
        _waiting(1),
        needs="admin",
    ),
    case(
        "server.discipline.push-own-queue-only",
        "A message stays in its queue",
        "Queues of one channel have nothing to do with one another.",
        "F74 F76",
        connect("p"),
        connect("c"),
        create_queue("p", "$ch", 1, _NO_ACKNOWLEDGE, Queue_Status="push"),
        create_queue("p", "$ch", 2, _NO_ACKNOWLEDGE, Queue_Status="push"),
        ask("c", _JOIN, "$ch"),
        push("p", queue_message("$ch", 1, b"one"), queue_message("$ch", 2, b"two")),
        hear("c", Answer(delivery("$ch", 1, b"one"), delivery("$ch", 2, b"two"), ordered=False)),
    ),
)

_ROUND_ROBIN: Final = (
    case(
        "server.discipline.roundrobin-in-turn",
        "Round robin gives consumers turns in the order in which they joined",
        "Work is shared evenly, and predictably.",
        "F90",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue("roundrobin"),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        push("p", *_messages("one", "two", "three", "four")),
        hear("c", _got("one", "three")),
        hear("d", _got("two", "four")),
    ),
    case(
        "server.discipline.roundrobin-once",
        "Round robin gives each message to one consumer",
        "A job that two workers do is done twice.",
        "F90",
        connect("p"),
        connect("c"),
        connect("d"),
        connect("e"),
        _queue("roundrobin"),
        *[ask(line, _JOIN, "$ch") for line in "cde"],
        push("p", *_messages("one")),
        hear("c", _got("one")),
        hear("d", NOTHING),
        hear("e", NOTHING),
    ),
    case(
        "server.discipline.roundrobin-consumer-gone",
        "Round robin skips a consumer that has disconnected",
        "Work must not be given to a worker that has disconnected.",
        "F90 F102",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue("roundrobin"),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        Close("c"),
        ask("p", Operation.CHANNEL_CONSUMERS, "$ch", code=Answer(response(0))),
        push("p", *_messages("one", "two")),
        hear("d", _got("one", "two")),
        needs="admin",
    ),
    case(
        "server.discipline.roundrobin-back-to-next",
        "A refused message that is put back goes to the next in turn",
        "Another worker may succeed where one has failed.",
        "F90 F98",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue(
            "roundrobin",
            b'{"RequestAcknowledge":true,"AcknowledgeTimeout":30000}',
            Delivery_Handler="putback-end",
        ),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        push("p", *_messages("one")),
        hear("c", _got("one")),
        say("c", acknowledge("$ch", 1, "id-one", headers=[("Nack-Reason", "no")])),
        hear("c", NOTHING),
        hear("d", _got("one")),
        say("d", acknowledge("$ch", 1, "id-one")),
        hear("d", NOTHING),
        needs="handlers",
    ),
)

_STOPPED: Final = (
    case(
        "server.discipline.stopped-refuses",
        "A stopped queue answers 401 to a push",
        "A producer must learn that no consumer will get its message.",
        "F91 F75",
        connect("p"),
        _queue("stopped"),
        say("p", *_messages("one", flags="R")),
        hear("p", Answer(response(401, target="$ch"))),
    ),
    case(
        "server.discipline.stopping-empties",
        "Stopping a queue removes its messages",
        "Stopped means that nothing is kept.",
        "F92",
        connect("p"),
        _queue("push"),
        push("p", *_messages("one", "two")),
        _change("stopped"),
        _waiting(0),
        _change("push"),
        _waiting(0),
        needs="admin",
    ),
    case(
        "server.discipline.stopping-forgets-acknowledgements",
        "Stopping a queue forgets what is not acknowledged",
        "What was in flight when the queue stopped must not come back later.",
        "F92",
        connect("p"),
        connect("c"),
        _queue("push", b'{"RequestAcknowledge":true,"AcknowledgeTimeout":300}'),
        ask("c", _JOIN, "$ch"),
        push("p", *_messages("one")),
        hear("c", _got("one")),
        _change("stopped"),
        _change("push"),
        hear("c", NOTHING),
        _waiting(0),
        needs="admin",
    ),
    case(
        "server.discipline.paused-keeps-and-resumes",
        "A paused queue keeps pushes and sends them when it is resumed",
        "A pause must lose nothing.",
        "F91 F92",
        connect("p"),
        connect("c"),
        _queue("push"),
        ask("c", _JOIN, "$ch"),
        _change("paused"),
        push("p", *_messages("one", "two")),
        hear("c", NOTHING),
        _change("push"),
        hear("c", _got("one", "two")),
        needs="admin",
    ),
)

_LIMITS: Final = (
    case(
        "server.discipline.wait-for-acknowledge",
        "With WaitForAcknowledge one message of the queue is in flight",
        "Some work must be finished before the next begins.",
        "F96",
        connect("p"),
        connect("c"),
        _queue(
            "push",
            b'{"RequestAcknowledge":true,"WaitForAcknowledge":true,"AcknowledgeTimeout":30000}',
        ),
        ask("c", _JOIN, "$ch"),
        push("p", *_messages("one", "two")),
        hear("c", _got("one")),
        say("c", acknowledge("$ch", 1, "id-one")),
        hear("c", _got("two")),
        say("c", acknowledge("$ch", 1, "id-two")),
        hear("c", NOTHING),
    ),
    case(
        "server.discipline.wait-for-acknowledge-negative",
        "A negative acknowledgement releases the next message, too",
        "A consumer that refuses is done with the message.",
        "F96",
        connect("p"),
        connect("c"),
        _queue(
            "push",
            b'{"RequestAcknowledge":true,"WaitForAcknowledge":true,"AcknowledgeTimeout":30000}',
        ),
        ask("c", _JOIN, "$ch"),
        push("p", *_messages("one", "two")),
        hear("c", _got("one")),
        say("c", acknowledge("$ch", 1, "id-one", headers=[("Nack-Reason", "x")])),
        hear("c", _got("two")),
        say("c", acknowledge("$ch", 1, "id-two")),
        hear("c", NOTHING),
    ),
    case(
        "server.discipline.hide-client-names",
        "With HideClientNames deliveries have no source",
        "Consumers of a public queue need not know who produced.",
        "F76",
        connect("p"),
        connect("c"),
        _queue("push", b'{"RequestAcknowledge":false,"HideClientNames":true}'),
        ask("c", _JOIN, "$ch"),
        push("p", *_messages("one")),
        hear("c", Answer(delivery("$ch", 1, b"one", source=""))),
    ),
    case(
        "server.discipline.source-is-the-producer",
        "Deliveries name the producer as their source",
        "A consumer that wants to answer must know whom.",
        "F76 F42",
        connect("p"),
        connect("c"),
        _queue("push"),
        ask("c", _JOIN, "$ch"),
        push("p", *_messages("one")),
        hear("c", Answer(delivery("$ch", 1, b"one", source="$p"))),
    ),
    case(
        "server.discipline.settled-is-counted",
        "The counters of a queue tell pushes, sendings and deliveries apart",
        "Operators find lost messages by these counters.",
        "F100",
        connect("p"),
        connect("c"),
        connect("d"),
        _queue("push"),
        ask("c", _JOIN, "$ch"),
        ask("d", _JOIN, "$ch"),
        push("p", *_messages("one", "two")),
        hear("c", _got("one", "two")),
        hear("d", _got("one", "two")),
        ask(
            "p",
            Operation.QUEUE_INFORMATION,
            "$ch",
            headers=_ID,
            code=Answer(
                response(
                    0,
                    payload=Properties({"ReceivedMessages": 2, "SentMessages": 2, "Deliveries": 4}),
                )
            ),
        ),
        needs="admin",
    ),
)

CASES: Final[tuple[Case, ...]] = (
    *[_kept(status) for status in (*_SENDING, *_KEEPING)],
    *[_backlog(status) for status in _SENDING],
    *[_priority(status) for status in _SENDING],
    *[_entering(status, other) for status in _SENDING for other in _KEEPING],
    _entering("broadcast", "paused"),
    *[_leaving(status) for status in _KEEPING],
    *_SAME,
    *_BROADCAST,
    *_PUSH,
    *_ROUND_ROBIN,
    *_STOPPED,
    *_LIMITS,
)
