"""How a client reads the stream: all forms of frames, cut anywhere, pings, ends and violations."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import (
    PING_BYTES,
    PONG_BYTES,
    PREAMBLE,
    SERVER_ACCEPTED,
    TYPE_DIRECT_MESSAGE,
    TYPE_EVENT,
    TYPE_PING,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_ROUTER,
    TYPE_SERVER,
    TYPE_TERMINATE,
)
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import Pattern, Preamble
from tmqp.testing.conformance.steps import Answer, Close, End, Fence, Item, Message, Open
from tmqp.testing.conformance.talk import (
    CLOSED_SILENTLY,
    NOTHING,
    direct,
    greet,
    hear,
    pong,
    say,
    terminate,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

_HELLO: Final = Answer(Preamble(PREAMBLE), Pattern(TYPE_SERVER))
_ACCEPTED: Final = Message(TYPE_SERVER, "$a", SERVER_ACCEPTED, flags="F", message_id="accepted")
_ASKED: Final = Pattern(TYPE_RESPONSE, message_id="q", payload=b"ping?")


def _request(payload: bytes = b"ping?", **fields: Any) -> Message:
    """A request after a frame; its answer shows that the client has read the frame to its end."""
    fields.setdefault("message_id", "q")
    return direct("$a", 7, payload, source="$s", flags="R", **fields)


def _reads(slug: str, title: str, why: str, rules: str, *items: Item, **more: object) -> Case:
    """The client reads these frames, and answers the request behind them."""
    return case(
        f"client.frame.{slug}",
        title,
        why,
        rules,
        *greet(),
        say("a", *items, _request()),
        hear("a", Answer(_ASKED)),
        task="echo",
        **more,  # type: ignore[arg-type]
    )


def _echoes(slug: str, payload: bytes, tier: int | None) -> Case:
    return case(
        f"client.frame.payload-{slug}",
        f"Reads and writes a payload of {len(payload):,} bytes ({slug})",
        "Payload lengths have four forms, and a reader accepts any of them.",
        "F4",
        *greet(),
        say("a", _request(payload, tier=tier)),
        hear("a", Answer(Pattern(TYPE_RESPONSE, message_id="q", payload=payload))),
        task="echo",
    )


def _ignored(slug: str, name: str, item: Message) -> Case:
    return _reads(
        f"ignores-{slug}",
        f"Ignores {name}",
        "A server of a later version may send what this client does not know.",
        "F16 F17",
        item,
    )


_FRAMES: Final = (
    _echoes("empty", b"", None),
    _echoes("one-byte", b"x", None),
    _echoes("252", b"y" * 252, None),
    _echoes("253", b"y" * 253, None),
    _echoes("65535", b"z" * 65_535, None),
    _echoes("65536", b"z" * 65_536, None),
    _echoes("long-form-of-few", b"few", 253),
    _echoes("longer-form-of-few", b"few", 254),
    _echoes("longest-form-of-few", b"few", 255),
    _ignored("unknown-type", "a message of an unknown type", Message(0x3F, payload=b"?")),
    _ignored("custom", "a custom message", Message(0x00, payload=b"?")),
    _ignored("pull-request", "a pull request", Message(TYPE_PULL_REQUEST, "$ch", 1)),
    _ignored("router-message", "a message to a router", Message(TYPE_ROUTER, "$rt")),
    _reads(
        "no-time-to-live",
        "Drops a message without time to live",
        "Messages that loop must end.",
        "F11",
        _request(b"late", message_id="late", ttl=0),
    ),
    _reads(
        "last-hop",
        "Accepts a message with a time to live of 1",
        "A message on its last hop has arrived.",
        "F11",
        Message(TYPE_QUEUE_MESSAGE, "$ch", 1, ttl=1),
    ),
    _reads(
        "empty-header-block",
        "Accepts the header bit with a block of no bytes",
        "Some writers set the bit and write no header.",
        "F9",
        Message(TYPE_QUEUE_MESSAGE, "$ch", 1, header_block=b""),
        level=Level.SHOULD,
    ),
    _reads(
        "odd-header-lines",
        "Skips header lines without a colon or with an empty key",
        "One line that cannot be read must not hide the others.",
        "F7",
        Message(TYPE_QUEUE_MESSAGE, "$ch", 1, header_block=b"no colon\r\n:empty\r\nK:v\r\n\r\n"),
    ),
    _reads(
        "long-names",
        "Reads names of 255 bytes",
        "A name may have 255 bytes, and many readers forget the last one.",
        "F6",
        Message(TYPE_QUEUE_MESSAGE, "c" * 255, 1, message_id="m" * 255, source="s" * 255),
    ),
    case(
        "client.frame.names-not-utf8",
        "Ends the connection for a name that is not UTF-8",
        "What is not text must not be passed on as text.",
        "F15 rule-utf8",
        *greet(),
        say("a", Message(TYPE_QUEUE_MESSAGE, b"\xff\xfe", 1)),
        hear("a", Answer(terminate(400), end=End.CLOSED)),
    ),
    case(
        "client.frame.headers-not-utf8",
        "Ends the connection for headers that are not UTF-8",
        "What is not text must not be passed on as text.",
        "F15 rule-utf8",
        *greet(),
        say("a", Message(TYPE_QUEUE_MESSAGE, "$ch", 1, header_block=b"K:\xff\r\n")),
        hear("a", Answer(terminate(400), end=End.CLOSED)),
    ),
    case(
        "client.frame.payload-too-large",
        "Refuses an announced payload beyond its limit before it comes",
        "One frame could stop a client that reserves memory for the declared size.",
        "F14 rule-payload-limit",
        *greet(),
        say("a", Message(TYPE_QUEUE_MESSAGE, "$ch", 1, tier=255, announced_payload_bytes=1 << 40)),
        hear("a", Answer(terminate(482), end=End.CLOSED), Answer(end=End.CLOSED)),
    ),
    case(
        "client.frame.torn",
        "Closes when the stream ends inside a message",
        "Half a message must not be taken for a whole one.",
        "rule-torn",
        *greet(),
        say("a", bytes.fromhex("1210010102")),
        Close("a", "half"),
        hear("a", CLOSED_SILENTLY),
    ),
)


def _chopped(slug: str, chop: int | tuple[int, ...], title: str) -> Case:
    return case(
        f"client.chop.{slug}",
        title,
        "TCP does not keep the borders of writes.",
        "F5",
        Open("a"),
        hear("a", _HELLO, fence=Fence.FIRST),
        say("a", PREAMBLE, _ACCEPTED, chop=chop),
        # A program may need a moment after the acceptance before it takes requests.
        say("a", _request(headers=[("K", "v")]), PING_BYTES, chop=chop),
        hear("a", Answer(_ASKED, pong()), Answer(pong(), _ASKED), fence=Fence.FIRST),
        task="echo",
        pongs=False,
        loose=True,
    )


_CHOPS: Final = (
    _chopped("byte-by-byte", 1, "Reads a conversation that comes byte by byte"),
    _chopped("by-three", 3, "Reads a conversation in pieces of three bytes"),
    _chopped("by-seven", 7, "Reads a conversation in pieces of seven bytes"),
    _chopped("by-sixteen", 16, "Reads a conversation in pieces of sixteen bytes"),
    _chopped("inside-first-head", (10,), "Reads a first message whose head is cut"),
    _chopped("at-once", (), "Reads a conversation that comes in one piece"),
)


def _ping(slug: str, title: str, data: bytes) -> Case:
    return case(
        f"client.keepalive.{slug}",
        title,
        "A server that gets no pong takes the client for dead.",
        "F37 F10",
        *greet(),
        say("a", data),
        hear("a", Answer(pong()), fence=Fence.FIRST),
        pongs=False,
        loose=True,
    )


_KEEPALIVE: Final = (
    _ping("ping", "Answers a ping", PING_BYTES),
    _ping("ping-other-bits", "Answers a ping with other bits", bytes.fromhex("0901000000000000")),
    _ping("ping-header-bit", "Does not take a ping's sixth bit for headers", PING_BYTES),
    case(
        "client.keepalive.many-pings",
        "Answers each of many pings",
        "A server may ask more often than once.",
        "F37",
        *greet(),
        say("a", PING_BYTES * 5),
        hear("a", Answer(*[pong()] * 5), fence=Fence.FIRST),
        pongs=False,
        loose=True,
    ),
    case(
        "client.keepalive.ping-in-pieces",
        "Answers a ping that comes in pieces",
        "TCP does not keep the borders of writes.",
        "F37 F5",
        *greet(),
        say("a", PING_BYTES, chop=3),
        hear("a", Answer(pong()), fence=Fence.FIRST),
        pongs=False,
        loose=True,
    ),
    case(
        "client.keepalive.dropped-ping",
        "Does not answer a ping without time to live",
        "The rule about time to live applies to every type.",
        "F13",
        *greet(),
        say("a", Message(TYPE_PING, ttl=0)),
        hear("a", NOTHING, fence=Fence.QUIET),
        pongs=False,
        loose=True,
    ),
    case(
        "client.keepalive.unasked-pong",
        "Ignores a pong that it did not ask for",
        "A pong may cross with the end of a client's patience.",
        "F37",
        *greet(),
        say("a", PONG_BYTES, PONG_BYTES),
        hear("a", NOTHING),
    ),
    case(
        "client.keepalive.terminate",
        "Closes at once when the server announces its end",
        "The server closes next, and need not wait for the client.",
        "F40",
        *greet(),
        say("a", Message(TYPE_TERMINATE)),
        hear("a", CLOSED_SILENTLY),
    ),
    case(
        "client.keepalive.terminate-with-code",
        "Closes at once when the server ends the connection with a code",
        "The code says what the client did wrong.",
        "F40",
        *greet(),
        say("a", Message(TYPE_TERMINATE, "", 482)),
        hear("a", CLOSED_SILENTLY),
    ),
    case(
        "client.keepalive.nothing-after-terminate",
        "Answers nothing that comes after Terminate",
        "Terminate is the last message of a connection.",
        "F40",
        *greet(),
        say("a", Message(TYPE_TERMINATE), _request()),
        hear("a", CLOSED_SILENTLY),
        task="echo",
    ),
    case(
        "client.keepalive.server-closes",
        "Closes when the server closes without a word",
        "A server that crashes says nothing.",
        "F40",
        *greet(),
        Close("a", "half"),
        hear("a", CLOSED_SILENTLY, Answer(terminate(0), end=End.CLOSED)),
    ),
    case(
        "client.keepalive.unknown-event",
        "Ignores an event that it does not know",
        "A server of a later version may have further events.",
        "F131",
        *greet(),
        say("a", Message(TYPE_EVENT, "$ch", 0, b"{}", source="SomethingNew", message_id="")),
        hear("a", NOTHING),
    ),
    case(
        "client.keepalive.event-not-json",
        "Survives an event whose payload cannot be read",
        "One message that cannot be read must not end the program.",
        "F131",
        *greet(),
        say("a", Message(TYPE_EVENT, "$ch", 0, b"\xff{", source="ClientJoined", message_id="")),
        hear("a", NOTHING),
    ),
    case(
        "client.keepalive.late-direct-message",
        "Survives an unexpected direct message",
        "Any client may send a message to any other.",
        "F113",
        *greet(),
        say("a", Message(TYPE_DIRECT_MESSAGE, "$a", 4_444, b"?", source="$s")),
        hear("a", NOTHING),
    ),
)

CASES: Final[tuple[Case, ...]] = (*_FRAMES, *_CHOPS, *_KEEPALIVE)
