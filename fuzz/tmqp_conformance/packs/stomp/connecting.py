"""Cases of STOMP about connecting: versions, heart-beats, and the end."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance import Case, Level, Verdict
from tmqp.testing.conformance.patterns import OneOf
from tmqp.testing.conformance.steps import Answer, Close, End, Fence, Hear
from tmqp_conformance.packs.stomp.words import (
    CONNECT,
    Beats,
    Filled,
    connect,
    connected,
    error,
    fails,
    frame,
    receipt,
    send,
)
from tmqp_conformance.packs.units import Expect
from tmqp_conformance.packs.words import dial, hear, pack_case, say

__all__ = ["CASES", "PROBE"]

_UNIMPLEMENTED: Final = "the server has no heart-beats in this direction"

CASES: Final[tuple[Case, ...]] = (
    pack_case(
        "server.stomp.connect",
        "A client of all versions is let in with 1.2",
        "The newest version has the fewest gaps.",
        "P1 P3",
        dial("a"),
        say("a", CONNECT),
        hear("a", connected()),
    ),
    pack_case(
        "server.stomp.stomp-frame",
        "STOMP lets a client in as CONNECT does",
        "A server that speaks other protocols on the port tells STOMP by it.",
        "P2",
        dial("a"),
        say("a", frame(b"STOMP", b"accept-version:1.2", b"host:localhost")),
        hear("a", connected()),
    ),
    pack_case(
        "server.stomp.connect-byte-by-byte",
        "CONNECT may come byte by byte",
        "TCP keeps no borders.",
        "P1 P19",
        dial("a"),
        say("a", CONNECT, chop=1),
        hear("a", connected()),
    ),
    pack_case(
        "server.stomp.connect-unescaped",
        "Backslashes in CONNECT are backslashes",
        "A passcode with one would be another passcode, or the client would be refused.",
        "P8",
        dial("a"),
        say("a", frame(b"CONNECT", b"accept-version:1.2", b"host:localhost", rb"x-who:a\tb\q")),
        hear("a", connected()),
    ),
    pack_case(
        "server.stomp.no-common-version",
        "A client of unknown versions gets ERROR with those of the server",
        "A person can see what to change.",
        "P5 P42",
        dial("a"),
        say("a", frame(b"CONNECT", b"accept-version:0.9,7.7", b"host:localhost")),
        fails("a", version=Filled()),
    ),
    pack_case(
        "server.stomp.first-frame",
        "A frame before CONNECT is refused",
        "Without a version it cannot be parsed, and no client has been accepted.",
        "P1",
        dial("a"),
        say("a", send(b"x")),
        fails("a"),
    ),
    pack_case(
        "server.stomp-1-1.connect",
        "A client of 1.0 and 1.1 is let in with 1.1",
        "The server must not use a version that the client does not speak.",
        "P3",
        dial("a"),
        say("a", frame(b"CONNECT", b"accept-version:1.0,1.1", b"host:localhost")),
        hear("a", connected("1.1")),
    ),
    pack_case(
        "server.stomp-1-0.connect",
        "A client that names no version is let in with 1.0",
        "Clients of 1.0 know neither accept-version nor version.",
        "P4",
        dial("a"),
        say("a", frame(b"CONNECT")),
        hear("a", connected(OneOf(None, "1.0"))),
    ),
    pack_case(
        "server.stomp.heart-beats-come",
        "A server that promises heart-beats sends them",
        "A client takes silence for a dead server.",
        "P6",
        dial("a"),
        say("a", frame(b"CONNECT", b"accept-version:1.2", b"host:localhost", b"heart-beat:0,500")),
        Hear(
            "a",
            Answer(
                connected(heart_beat=Beats(0, promised=True)),
                *(Expect("beat"), Expect("beat")),
                more=True,
            ),
            Answer(
                connected(heart_beat=Beats(0, promised=False)),
                verdict=Verdict.UNIMPLEMENTED,
                message=_UNIMPLEMENTED,
            ),
            fence=Fence.FIRST,
            within=20.0,
        ),
        # Beats come until the end.
        Close("a"),
    ),
    pack_case(
        "server.stomp.heart-beats-missed",
        "A client that breaks its promise of heart-beats is given up",
        "A dead client would keep its messages from others.",
        "P7",
        dial("a"),
        say("a", frame(b"CONNECT", b"accept-version:1.2", b"host:localhost", b"heart-beat:500,0")),
        Hear(
            "a",
            Answer(connected(heart_beat=Beats(1, promised=True)), end=End.CLOSED, more=True),
            Answer(
                connected(heart_beat=Beats(1, promised=False)),
                verdict=Verdict.UNIMPLEMENTED,
                message=_UNIMPLEMENTED,
            ),
            fence=Fence.FIRST,
            within=20.0,
        ),
        level=Level.MAY,
    ),
    pack_case(
        "server.stomp.disconnect",
        "The receipt of DISCONNECT comes behind those of the frames before",
        "A client may then close, and knows that nothing is lost.",
        "P20 P21",
        connect("a"),
        say("a", send(b"x", b"receipt:one"), frame(b"DISCONNECT", b"receipt:two")),
        Hear("a", Answer(receipt("one"), receipt("two"), end=End.EITHER), fence=Fence.FIRST),
    ),
    pack_case(
        "server.stomp.unknown-command",
        "A frame that there is not is refused",
        "A client must learn that the server does not do what it asks for.",
        "P42 P44",
        connect("a"),
        say("a", frame(b"PUBLISH", b"destination:/queue/$q", body=b"x")),
        fails("a"),
    ),
    pack_case(
        "server.stomp.error-says-why",
        "ERROR says in the header message what is wrong",
        "A person reads it in a log.",
        "P42",
        connect("a"),
        say("a", frame(b"SEND", b"destination-is-missing:x", body=b"x")),
        Hear("a", Answer(error(message=Filled()), end=End.CLOSED), fence=Fence.END),
        level=Level.SHOULD,
    ),
    pack_case(
        "server.stomp.error-names-its-receipt",
        "ERROR names the receipt of the frame that caused it",
        "A client that waits for the receipt learns that it will not come.",
        "P43",
        connect("a"),
        say("a", frame(b"SEND", b"receipt:r1", body=b"x")),
        Hear("a", Answer(error(receipt_id="r1"), end=End.CLOSED), fence=Fence.END),
        level=Level.SHOULD,
    ),
)

PROBE: Final = pack_case(
    "server.stomp.probe",
    "Lets a new client in",
    "A server that does not answer a new client has crashed.",
    "P1",
    dial("probe"),
    say("probe", CONNECT),
    hear("probe", Expect("connected")),
)
