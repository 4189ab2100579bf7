"""Pings, silence and the end of a connection."""

from __future__ import annotations

from typing import Final

from tmqp.constants import PING_BYTES, PONG_BYTES, PREAMBLE, TYPE_PING, TYPE_TERMINATE, Operation
from tmqp.testing.conformance.cases import Bounds, Case, case
from tmqp.testing.conformance.patterns import Pattern
from tmqp.testing.conformance.steps import Answer, Close, End, Fence, Message, Open, Wait
from tmqp.testing.conformance.talk import (
    NOTHING,
    PREAMBLE_ANSWER,
    ask,
    connect,
    delivery,
    hear,
    pong,
    queue_message,
    say,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

#: How long a server may be silent before it pings, in a target that has this capability.
_SILENCE_S: Final = 65.0
_LONG: Final = Bounds(seconds=200.0)
_PING: Final = Pattern(TYPE_PING)

CASES: Final[tuple[Case, ...]] = (
    case(
        "server.keepalive.pings-when-silent",
        "Pings a client that is silent",
        "A dead consumer would keep its messages until it is noticed.",
        "F38",
        connect("a"),
        hear("a", Answer(_PING), fence=Fence.FIRST, within=_SILENCE_S),
        say("a", PONG_BYTES),
        hear("a", NOTHING, fence=Fence.ASK),
        level=Level.SHOULD,
        needs="keep-alive",
        pongs=False,
        bounds=_LONG,
    ),
    case(
        "server.keepalive.closes-when-unanswered",
        "Closes when its ping is not answered",
        "A connection that says nothing is dead.",
        "F38 rule-ping-timeout",
        connect("a"),
        hear("a", Answer(_PING), fence=Fence.FIRST, within=_SILENCE_S),
        hear("a", Answer(end=End.CLOSED), within=_SILENCE_S),
        level=Level.SHOULD,
        needs="keep-alive",
        pongs=False,
        bounds=_LONG,
    ),
    case(
        "server.keepalive.any-byte-counts",
        "Accepts any message as a heartbeat",
        "A client that is busy need not answer pings to be alive.",
        "F38",
        connect("a"),
        hear("a", Answer(_PING), fence=Fence.FIRST, within=_SILENCE_S),
        say("a", Message(0x00)),
        hear("a", Answer(_PING), fence=Fence.FIRST, within=_SILENCE_S),
        say("a", PONG_BYTES),
        hear("a", NOTHING, fence=Fence.ASK),
        level=Level.SHOULD,
        needs="keep-alive",
        pongs=False,
        bounds=_LONG,
    ),
    case(
        "server.keepalive.handshake-timeout",
        "Closes a connection that says nothing at all",
        "Silent connections would use up the server.",
        "F25 rule-handshake-timeout",
        Open("a"),
        hear("a", Answer(end=End.CLOSED), within=130.0),
        needs="keep-alive",
        bounds=_LONG,
    ),
    case(
        "server.keepalive.hello-timeout",
        "Closes a connection without a hello",
        "The time of the handshake does not end with the eight bytes.",
        "F25 rule-handshake-timeout",
        Open("a"),
        say("a", PREAMBLE),
        hear("a", Answer(PREAMBLE_ANSWER, end=End.CLOSED), within=130.0),
        needs="keep-alive",
        bounds=_LONG,
    ),
    case(
        "server.keepalive.quiet-second",
        "Keeps a connection that is silent for a second",
        "A second of silence is normal.",
        "F38",
        connect("a"),
        Wait(1.0),
        hear("a", NOTHING, Answer(_PING)),
    ),
    case(
        "server.keepalive.ping-before-join",
        "Answers pings of a client that has joined nothing",
        "Every client may ask whether the server lives.",
        "F37",
        connect("a"),
        say("a", PING_BYTES),
        hear("a", Answer(pong()), fence=Fence.ASK),
        pongs=False,
    ),
    case(
        "server.keepalive.terminate-drops-nothing",
        "Executes requests that arrived before Terminate",
        "A producer that says goodbye has sent its messages.",
        "F40",
        connect("a"),
        connect("b"),
        ask("b", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"last"), Message(TYPE_TERMINATE)),
        hear("a", Answer(end=End.CLOSED)),
        hear("b", Answer(delivery("$ch", 1, b"last"))),
    ),
    case(
        "server.keepalive.nothing-after-terminate",
        "Ignores what comes after Terminate",
        "Terminate is the last message of a connection.",
        "F40",
        connect("a"),
        connect("b"),
        ask("b", Operation.JOIN, "$ch"),
        say("a", Message(TYPE_TERMINATE), queue_message("$ch", 1, b"late")),
        hear("a", Answer(end=End.CLOSED)),
        hear("b", NOTHING),
    ),
    case(
        "server.keepalive.half-close",
        "Closes when the client has closed its half",
        "A client that sends nothing has disconnected.",
        "F40 F102",
        connect("a"),
        Close("a", "half"),
        hear("a", Answer(end=End.CLOSED), Answer(Pattern(TYPE_TERMINATE), end=End.CLOSED)),
    ),
    case(
        "server.keepalive.abort",
        "Survives a client that resets its connection",
        "Programs crash, and their connections are reset.",
        "F102",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        connect("b"),
        Close("a", "abort"),
        ask("b", Operation.JOIN, "$ch"),
    ),
)
