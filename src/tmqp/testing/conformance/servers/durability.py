"""What survives when the server is killed and started again (``--restart-cmd``)."""

from __future__ import annotations

from typing import Final

from tmqp.constants import Operation
from tmqp.testing.conformance.cases import Bounds, Case, case
from tmqp.testing.conformance.patterns import Properties
from tmqp.testing.conformance.steps import Answer, Restart, Step
from tmqp.testing.conformance.talk import (
    acknowledge,
    acknowledgement,
    ask,
    connect,
    create_queue,
    delivery,
    hear,
    queue_message,
    response,
    say,
)

__all__ = ["CASES"]

_DURABLE: Final = b'{"Durable":true}'
_BOUNDS: Final = Bounds(seconds=120.0)


def _confirmed(line: str, *ids: str, flags: str = "A") -> list[Step]:
    """Push messages and wait until the server has confirmed them."""
    return [
        say(
            line,
            *[queue_message("$ch", 1, name.encode(), message_id=name, flags=flags) for name in ids],
        ),
        hear(line, Answer(*[acknowledgement("$ch", 1, message_id=name) for name in ids])),
    ]


def _durable(slug: str, title: str, why: str, *script: Step | list[Step]) -> Case:
    return case(
        f"server.durability.{slug}",
        title,
        why,
        "x-durable-queues",
        connect("a"),
        create_queue("a", body=_DURABLE),
        *script,
        needs="durability restart-hook",
        bounds=_BOUNDS,
    )


CASES: Final[tuple[Case, ...]] = (
    _durable(
        "confirmed-survives",
        "Keeps a confirmed message when it is killed",
        "A confirmed message must not be lost.",
        _confirmed("a", "m1"),
        Restart(),
        connect("b"),
        ask(
            "b",
            Operation.JOIN,
            "$ch",
            code=Answer(response(0), delivery("$ch", 1, b"m1"), ordered=False),
        ),
    ),
    _durable(
        "order-survives",
        "Keeps the order of confirmed messages when it is killed",
        "A restart must not mix the messages of a queue.",
        _confirmed("a", "m1", "m2", "m3", "m4"),
        Restart(),
        connect("b"),
        ask(
            "b",
            Operation.JOIN,
            "$ch",
            code=Answer(
                response(0),
                delivery("$ch", 1, b"m1"),
                delivery("$ch", 1, b"m2"),
                delivery("$ch", 1, b"m3"),
                delivery("$ch", 1, b"m4"),
                ordered=False,
            ),
        ),
    ),
    _durable(
        "priority-survives",
        "Keeps the priority of messages when it is killed",
        "High priority goes first after a restart, too.",
        _confirmed("a", "low"),
        _confirmed("a", "high", flags="AH"),
        Restart(),
        connect("b"),
        say("b", queue_message("$ch2", 1)),
        ask(
            "b",
            Operation.QUEUE_INFORMATION,
            "$ch",
            b"\x01\x00",
            code=Answer(response(0, payload=Properties({"Messages": 1, "PriorityMessages": 1}))),
        ),
    ),
    _durable(
        "acknowledged-stays-gone",
        "Does not deliver an acknowledged message again after a stop",
        "A message that was done must not be done again.",
        ask("a", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"x", message_id="m1")),
        hear("a", Answer(delivery("$ch", 1, b"x"))),
        say("a", acknowledge("$ch", 1, "m1")),
        # The queue's next confirmation comes after what the acknowledgement has erased.
        ask("a", Operation.LEAVE, "$ch"),
        _confirmed("a", "m2"),
        Restart(),
        connect("b"),
        ask(
            "b",
            Operation.JOIN,
            "$ch",
            code=Answer(response(0), delivery("$ch", 1, b"m2"), ordered=False),
        ),
    ),
    _durable(
        "unacknowledged-returns",
        "Delivers a message again that was not acknowledged",
        "The consumer may have died with the message.",
        ask("a", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"x", message_id="m1", flags="A")),
        hear(
            "a",
            Answer(
                delivery("$ch", 1, b"x"),
                acknowledgement("$ch", 1, message_id="m1"),
                ordered=False,
            ),
        ),
        Restart(),
        connect("b"),
        ask(
            "b",
            Operation.JOIN,
            "$ch",
            code=Answer(response(0), delivery("$ch", 1, b"x", first_acquirer=False), ordered=False),
        ),
    ),
    _durable(
        "queue-survives",
        "Keeps a durable queue and its options when it is killed",
        "A lost queue loses its options as well.",
        Restart(),
        connect("b"),
        ask(
            "b",
            Operation.QUEUE_INFORMATION,
            "$ch",
            b"\x01\x00",
            code=Answer(response(0, payload=Properties({"Durable": True, "Messages": 0}))),
        ),
    ),
)
