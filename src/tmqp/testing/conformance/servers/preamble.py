"""The first eight bytes of a connection to a server."""

from __future__ import annotations

from typing import Final

from tmqp.constants import PREAMBLE, PREAMBLE_V1
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import Preamble
from tmqp.testing.conformance.steps import Answer, Close, Fence, Open
from tmqp.testing.conformance.talk import (
    ACCEPTED,
    CLOSED_SILENTLY,
    NOTHING,
    PREAMBLE_ANSWER,
    hear,
    hello,
    say,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

_TAKEN: Final = Answer(PREAMBLE_ANSWER, ACCEPTED)
#: What other programs begin with: slug, name, bytes.
_OTHERS: Final = (
    ("http", "an HTTP request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("tls", "the hello of TLS", bytes.fromhex("16030100c8010000c40303") + b"\0" * 64),
    ("amqp", "the header of AMQP 0-9-1", b"AMQP\x00\x00\x09\x01"),
    ("mqtt", "a CONNECT of MQTT", bytes.fromhex("101000044d5154540402003c00046e616d65")),
    ("redis", "a command of Redis", b"*1\r\n$4\r\nPING\r\n"),
    ("zeros", "bytes of zero", b"\0" * 16),
    ("next-version", "another version of TMQP", b"TMQP/3.0"),
    ("lower-case", "the preamble in small letters", b"tmqp/2.0"),
    ("last-byte", "a preamble with a wrong last byte", b"TMQP/2.1"),
)


def _foreign(slug: str, name: str, data: bytes) -> Case:
    return case(
        f"server.preamble.foreign-{slug}",
        f"Refuses {name} without a byte",
        f"A peer that begins with {name} speaks another protocol and could not read an answer.",
        "F24 rule-preamble",
        Open("a"),
        say("a", data),
        hear("a", CLOSED_SILENTLY),
    )


CASES: Final[tuple[Case, ...]] = (
    case(
        "server.preamble.answered-at-once",
        "Answers the eight bytes before the hello",
        "A client that waits for the answer before its hello would otherwise wait forever.",
        "F21",
        Open("a"),
        say("a", PREAMBLE),
        hear("a", Answer(PREAMBLE_ANSWER), fence=Fence.FIRST),
        say("a", hello("$a")),
        hear("a", Answer(ACCEPTED)),
    ),
    case(
        "server.preamble.with-hello",
        "Takes preamble and hello in one write",
        "Clients send both at once, to save a round trip.",
        "F21 F22",
        Open("a"),
        say("a", PREAMBLE, hello("$a")),
        hear("a", _TAKEN),
    ),
    case(
        "server.preamble.byte-by-byte",
        "Takes the preamble byte by byte",
        "TCP may deliver eight bytes in any number of pieces.",
        "F22",
        Open("a"),
        say("a", PREAMBLE, chop=1),
        hear("a", Answer(PREAMBLE_ANSWER), fence=Fence.FIRST),
        say("a", hello("$a")),
        hear("a", Answer(ACCEPTED)),
    ),
    case(
        "server.preamble.two-pieces",
        "Takes the preamble in two pieces",
        "A reader that expects eight bytes from one read fails on busy networks.",
        "F22",
        Open("a"),
        say("a", PREAMBLE, hello("$a"), chop=(3,)),
        hear("a", _TAKEN),
    ),
    case(
        "server.preamble.silent-until-complete",
        "Says nothing to seven bytes",
        "An answer before the eighth byte would answer a protocol that is not known yet.",
        "F21 F24",
        Open("a"),
        say("a", PREAMBLE[:7]),
        hear("a", NOTHING),
        say("a", PREAMBLE[7:]),
        hear("a", Answer(PREAMBLE_ANSWER), fence=Fence.FIRST),
    ),
    case(
        "server.preamble.older-version",
        "Accepts the older preamble and answers with the same bytes",
        "Programs of the version before begin with TMQ/1.01 and speak the same frames.",
        "F23",
        Open("a"),
        say("a", PREAMBLE_V1, hello("$a")),
        hear("a", Answer(Preamble(PREAMBLE_V1), ACCEPTED)),
        level=Level.SHOULD,
    ),
    case(
        "server.preamble.ends-early",
        "Closes when the client closes inside the preamble",
        "A peer that leaves in the middle must not leave a connection behind.",
        "F22",
        Open("a"),
        say("a", PREAMBLE[:4]),
        Close("a", "half"),
        hear("a", CLOSED_SILENTLY),
    ),
    case(
        "server.preamble.empty",
        "Closes when the client closes without a byte",
        "Port scanners and health checks connect and leave.",
        "F24",
        Open("a"),
        Close("a", "half"),
        hear("a", CLOSED_SILENTLY),
    ),
    *[_foreign(*other) for other in _OTHERS],
)
