"""Measurements without a verdict: how long the same work takes with any server.

The result is the duration of a case in the report.
"""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import PING_BYTES, Operation
from tmqp.testing.conformance.cases import Bounds, Case, case
from tmqp.testing.conformance.patterns import Expected
from tmqp.testing.conformance.steps import Answer, Fence, Step
from tmqp.testing.conformance.talk import (
    ask,
    connect,
    delivery,
    hear,
    operation,
    pong,
    queue_message,
    response,
    say,
)
from tmqp.testing.conformance.verdicts import Level, Verdict

__all__ = ["CASES"]

_SIZES: Final = (64, 1_024, 16_384, 262_144)
_FIGURE: Final = "the duration of the case is the figure"
_BOUNDS: Final = Bounds(seconds=120.0, received_bytes=268_435_456)
_ROUNDS: Final = 50
_MESSAGES: Final = 200
_CONSUMERS: Final = 5


def _figure(
    slug: str, title: str, rules: str, *script: Step | list[Step], pongs: bool = True
) -> Case:
    return case(
        f"server.perf.{slug}",
        title,
        "Figures of several servers can be compared.",
        rules,
        *script,
        level=Level.MAY,
        bounds=_BOUNDS,
        pongs=pongs,
    )


def _fact(*expected: Expected, **how: Any) -> Answer:
    return Answer(*expected, verdict=Verdict.INFORMATIONAL, message=_FIGURE, **how)


CASES: Final[tuple[Case, ...]] = (
    _figure(
        "round-trips",
        f"Makes {_ROUNDS} round trips with pings",
        "F37",
        connect("a"),
        *[
            step
            for _ in range(_ROUNDS)
            for step in (say("a", PING_BYTES), hear("a", _fact(pong()), fence=Fence.FIRST))
        ],
        pongs=False,
    ),
    _figure(
        "requests",
        f"Answers {_ROUNDS} requests one after the other",
        "F44",
        connect("a"),
        *[
            step
            for number in range(_ROUNDS)
            for step in (
                say("a", operation(Operation.JOIN, "$ch", message_id=f"j{number}")),
                hear("a", _fact(response(0)), fence=Fence.FIRST),
            )
        ],
    ),
    *[
        _figure(
            f"payload-{size}",
            f"Delivers 20 messages of {size:,} bytes",
            "F87",
            connect("a"),
            ask("a", Operation.JOIN, "$ch"),
            say("a", *[queue_message("$ch", 1, b"x" * size) for _ in range(20)]),
            hear("a", _fact(*[delivery("$ch", 1, b"x" * size)] * 20)),
        )
        for size in _SIZES
    ],
    _figure(
        "burst",
        f"Delivers {_MESSAGES} small messages in one write",
        "F87",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        say("a", *[queue_message("$ch", 1, b"x") for _ in range(_MESSAGES)]),
        hear("a", _fact(*[delivery("$ch", 1, b"x")] * _MESSAGES)),
    ),
    _figure(
        "fan-out",
        f"Delivers 40 messages to {_CONSUMERS} consumers",
        "F87",
        connect("p"),
        *[connect(f"c{number}") for number in range(_CONSUMERS)],
        *[ask(f"c{number}", Operation.JOIN, "$ch") for number in range(_CONSUMERS)],
        say("p", *[queue_message("$ch", 1, b"x") for _ in range(40)]),
        *[
            hear(f"c{number}", _fact(*[delivery("$ch", 1, b"x")] * 40))
            for number in range(_CONSUMERS)
        ],
    ),
)
