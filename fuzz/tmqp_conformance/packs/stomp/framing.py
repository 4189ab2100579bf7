"""Cases of STOMP about frames: lines, escapes, bodies, and how the stream is cut."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance import Case, Level, Verdict
from tmqp.testing.conformance.steps import Answer, End, Fence, Hear, Step
from tmqp_conformance.packs.stomp.words import (
    connect,
    error,
    fails,
    frame,
    message,
    receipt,
    send,
    subscribe,
)
from tmqp_conformance.packs.words import hear, pack_case, say

__all__ = ["CASES"]

_LARGE: Final = b"0123456789" * 10_000
_HEADER_BYTES: Final = 131_072


def _listening(version: bytes = b"1.2") -> list[Step]:
    """A client that is subscribed to the queue ``$q``."""
    return [*connect("a", version), say("a", subscribe())]


def _body(name: str, title: str, why: str, facts: str, body: bytes, *lines: bytes) -> Case:
    """A case about a body that comes as it was sent."""
    return pack_case(
        f"server.stomp.{name}",
        title,
        why,
        facts,
        _listening(),
        say("a", send(body, *lines)),
        hear("a", message(body)),
    )


def _refused(name: str, title: str, why: str, facts: str, said: bytes) -> Case:
    """A case about a frame that is fatal."""
    return pack_case(
        f"server.stomp.{name}", title, why, facts, _listening(), say("a", said), fails("a")
    )


CASES: Final[tuple[Case, ...]] = (
    pack_case(
        "server.stomp.header-escapes",
        "Colons, line ends and backslashes come as they were sent",
        "What is escaped wrongly is another value, or another header.",
        "P12 P23",
        _listening(),
        say("a", send(b"x", rb"x-a:one\ctwo\nthree\rfour\\five\\n")),
        hear("a", message(b"x", x_a="one:two\nthree\rfour\\five\\n")),
    ),
    pack_case(
        "server.stomp.header-name-escapes",
        "Escapes hold for the names of headers, too",
        "A name with a colon would be cut in two.",
        "P12",
        _listening(),
        say("a", send(b"x", rb"x\c\\a:1")),
        hear("a", message(b"x", **{"x:\\a": "1"})),
    ),
    pack_case(
        "server.stomp-1-1.header-escapes",
        "Colons, line feeds and backslashes come as they were sent",
        "What is escaped wrongly is another value, or another header.",
        "P12",
        _listening(b"1.1"),
        say("a", send(b"x", rb"x-a:one\ctwo\nthree\\four")),
        hear("a", message(b"x", x_a="one:two\nthree\\four")),
    ),
    pack_case(
        "server.stomp-1-0.no-escapes",
        "A backslash is a backslash",
        "Version 1.0 has no escapes: a path of Windows must come as it is.",
        "P12",
        _listening(b"1.0"),
        say("a", send(b"x", rb"x-a:c\new\\r")),
        hear("a", message(b"x", x_a="c\\new\\\\r")),
    ),
    _refused(
        "unknown-escape",
        "An escape that there is not is fatal",
        "The sender's intention is unknown.",
        "P13",
        send(b"x", rb"x-a:tab\t"),
    ),
    _refused(
        "half-an-escape",
        "A backslash at the end of a header is fatal",
        "The sender's intention is unknown.",
        "P13",
        send(b"x", b"x-a:half\\"),
    ),
    pack_case(
        "server.stomp.headers-are-utf-8",
        "Headers are UTF-8",
        "Names of people and places are not ASCII.",
        "P14",
        _listening(),
        say("a", send(b"x", "x-ä:grün € \U0001f680".encode())),
        hear("a", message(b"x", x_ä="grün € \U0001f680")),
    ),
    pack_case(
        "server.stomp.blanks-stay",
        "Blanks around a value are part of it",
        "Versions 1.1 and 1.2 forbid to trim.",
        "P14",
        _listening(),
        say("a", send(b"x", b"x-a: padded ")),
        hear("a", message(b"x", x_a=" padded ")),
    ),
    pack_case(
        "server.stomp.carriage-returns",
        "Lines may end with a carriage return and a line feed",
        "Users type frames into telnet.",
        "P11",
        _listening(),
        say("a", frame(b"SEND", b"destination:/queue/$q", b"x-a:1", body=b"x", end=b"\r\n")),
        hear("a", message(b"x", x_a="1")),
    ),
    pack_case(
        "server.stomp.feeds-between-frames",
        "Line feeds may stand between frames",
        "They are heart-beats, and many clients end each frame with one.",
        "P10",
        _listening(),
        say("a", b"\n\n", send(b"1"), b"\n\r\n\n", send(b"2"), b"\n"),
        hear("a", message(b"1"), message(b"2")),
    ),
    pack_case(
        "server.stomp.repeated-header",
        "Of a repeated header the first one counts",
        "Who forwards a message adds headers at the front.",
        "P17",
        _listening(),
        say("a", send(b"x", b"destination:/queue/$r", b"x-a:1", b"x-a:2")),
        hear("a", message(b"x", x_a="1")),
    ),
    _body(
        "body-with-nul",
        "With content-length a body may contain NUL bytes",
        "Pictures and compressed data do.",
        "P15",
        b"\0one\0\0two\0",
        b"content-length:10",
    ),
    _body(
        "body-of-frames",
        "With content-length a body may look like a frame",
        "A body is opaque.",
        "P15",
        b"\0\nSEND\ndestination:/queue/x\n\nx\0",
        b"content-length:31",
    ),
    _body(
        "body-without-length",
        "Without content-length a body ends at the first NUL",
        "Clients leave the length out for texts.",
        "P16",
        b"one line\nand another\n\n",
    ),
    _body(
        "empty-body",
        "A body may be empty",
        "A signal needs no content.",
        "P16",
        b"",
    ),
    _body(
        "large-body",
        "A body of 100,000 bytes comes unchanged",
        "Documents are that large.",
        "P15 P16",
        _LARGE,
    ),
    _refused(
        "length-too-short",
        "A content-length behind which no NUL comes is fatal",
        "It is unknown where the next frame begins.",
        "P15",
        send(b"four", b"content-length:2"),
    ),
    _refused(
        "length-is-no-number",
        "A content-length that is not a number is fatal",
        "It is unknown where the next frame begins.",
        "P15",
        send(b"x", b"content-length:many"),
    ),
    pack_case(
        "server.stomp.several-frames",
        "All frames of one segment are carried out, in order",
        "TCP keeps no borders.",
        "P19 P24",
        _listening(),
        say("a", *[send(b"%d" % number) for number in range(5)]),
        hear("a", *[message(b"%d" % number) for number in range(5)]),
    ),
    pack_case(
        "server.stomp.byte-by-byte",
        "A frame may come byte by byte",
        "TCP keeps no borders.",
        "P19",
        _listening(),
        say("a", send(b"a\0b", b"content-length:3", rb"x-a:\c"), chop=1),
        hear("a", message(b"a\0b", x_a=":")),
    ),
    pack_case(
        "server.stomp.header-limit",
        "A header of 131,072 bytes is taken, or refused with ERROR",
        "Without a limit one client can use up the memory of the server.",
        "P18",
        connect("a"),
        say("a", send(b"x", b"receipt:r", b"x-a:" + b"y" * _HEADER_BYTES)),
        Hear(
            "a",
            Answer(error(), end=End.CLOSED),
            Answer(
                receipt("r"),
                verdict=Verdict.INFORMATIONAL,
                message="the server has no limit for headers, or a higher one",
            ),
            # What the server did not read may reset the connection, and take ERROR with it.
            Answer(end=End.CLOSED),
            fence=Fence.FIRST,
        ),
        level=Level.SHOULD,
    ),
)
