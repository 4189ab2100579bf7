"""Frames: heads, flags, lengths, names, headers and the time to live."""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    PING_BYTES,
    PONG_BYTES,
    TYPE_ACKNOWLEDGE,
    TYPE_CUSTOM,
    TYPE_DIRECT_MESSAGE,
    TYPE_PING,
    TYPE_PONG,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_SERVER,
    Operation,
)
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import SENT, Pattern
from tmqp.testing.conformance.steps import Answer, End, Fence, Message, Step
from tmqp.testing.conformance.talk import (
    NOTHING,
    acknowledgement,
    ask,
    connect,
    delivery,
    direct,
    hear,
    operation,
    pong,
    queue_message,
    response,
    say,
    strict_response,
    subscribe,
    terminate,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

_SIZES: Final = (0, 1, 251, 252, 253, 254, 255, 256, 65_534, 65_535, 65_536, 100_000)
_FORM: Final = {0: "in the head", 253: "two bytes", 254: "four bytes", 255: "eight bytes"}
#: Lengths in a longer form than they need: payload bytes, form.
_LONGER_FORMS: Final = (
    (0, 253),
    (4, 253),
    (4, 254),
    (4, 255),
    (252, 253),
    (300, 254),
    (300, 255),
    (70_000, 255),
)
_UNKNOWN_TYPES: Final = (0x01, 0x07, 0x0B, 0x0F, 0x18, 0x20, 0x3F)
_TTLS: Final = (1, 2, 15, 16, 30, 31)
_CONTENT_TYPES: Final = (0, 1, 255, 256, 601, 32_768, 65_535)
#: Header blocks that must arrive as they were sent: slug, title, why, bytes.
_BLOCKS: Final = (
    ("one", "one header", "Headers are for the consumer.", b"Mine:1\r\n"),
    ("order", "several headers in order", "Order may have a meaning.", b"b:1\r\na:2\r\nc:3\r\n"),
    ("repeats", "repeated headers", "A repeat is not a mistake.", b"k:1\r\nk:2\r\nK:3\r\n"),
    ("case", "headers in their case", "Keys keep their spelling.", b"mIxEd-Case:V\r\n"),
    ("colons", "a value with colons", "Only the first colon splits.", b"url:http://x:1/\r\n"),
    ("space", "a value with spaces", "Nothing is trimmed.", b"k: a : b \r\n"),
    ("empty-value", "an empty value", "A value may be empty.", b"k:\r\n"),
    ("unicode", "headers in UTF-8", "Texts have all letters.", "größe:日本\r\n".encode()),
    ("no-colon", "a line without a colon", "Skipped is not removed.", b"nonsense\r\nk:v\r\n"),
    ("no-end", "a last line without its end", "The block's length counts.", b"k:v\r\nlast:x"),
    ("long", "a block of 60,000 bytes", "Blocks have up to 65,535 bytes.", b"k:" + b"v" * 59_998),
)


def _to_self(message: Message, pattern: Pattern, *, fence: Fence = Fence.AUTO) -> list[Step]:
    """A message through a queue that its producer has joined."""
    return [
        *connect("a"),
        *ask("a", Operation.JOIN, "$ch"),
        say("a", message),
        hear("a", Answer(pattern), fence=fence),
    ]


def _payload(size: int) -> bytes:
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


def _size_case(size: int) -> Case:
    payload = _payload(size)
    return case(
        f"server.frame.payload-{size}-bytes",
        f"Carries a payload of {size:,} bytes in the shortest form",
        "The form of the length changes at 253, 65,536 and 4,294,967,296 bytes.",
        "F4 F1 F3 F5",
        _to_self(
            queue_message("$ch", 1, payload),
            delivery("$ch", 1, payload, canonical=True),
        ),
    )


def _longer_case(size: int, tier: int) -> Case:
    payload = _payload(size)
    return case(
        f"server.frame.payload-{size}-as-{tier}",
        f"Reads {size:,} bytes of payload whose length is written in {_FORM[tier]}",
        "A reader accepts every form of a length, also a longer one than needed.",
        "F4",
        _to_self(queue_message("$ch", 1, payload, tier=tier), delivery("$ch", 1, payload)),
    )


def _flag_case(bits: int) -> Case:
    flags = "".join(letter for place, letter in enumerate("FHRA") if bits >> place & 1)
    slug = flags.lower() or "none"
    expected = []
    if "R" in flags:
        expected.append(strict_response("a", 0))
    if "A" in flags:
        expected.append(acknowledgement("$ch", 0))
    return case(
        f"server.frame.flags-{slug}",
        f"Answers an operation with the flags {flags or 'none'} as they ask",
        "R asks for a Response, A for an Acknowledge; F and H return with the answer.",
        "F2 F44" if "A" not in flags else "F2 F44 F77",
        connect("a"),
        say("a", operation(Operation.JOIN, "$ch", flags=flags)),
        hear("a", Answer(*expected, ordered=False)),
        level=Level.SHOULD if "A" in flags else Level.MUST,
    )


def _ttl_case(ttl: int) -> Case:
    return case(
        f"server.frame.ttl-{ttl}",
        f"Forwards a message with time to live {ttl} with {ttl - 1}",
        "Each reader subtracts one, so that no message circles forever.",
        "F11",
        _to_self(queue_message("$ch", 1, ttl=ttl), delivery("$ch", 1, ttl=ttl - 1)),
    )


_DROPPED: Final = (
    ("operation", "an operation", operation(Operation.JOIN, "$ch", ttl=0)),
    ("push", "a push", queue_message("$ch", 1, flags="RA", ttl=0)),
    ("direct", "a direct message", direct("nobody", 1, flags="R", ttl=0)),
    ("event", "a subscription", subscribe("ClientConnected", flags="R", ttl=0)),
    ("pull", "a pull", Message(TYPE_PULL_REQUEST, "$ch", 1, headers=[("Count", "1")], ttl=0)),
    ("router", "a message to a router", Message(0x17, "none", flags="R", ttl=0)),
)


def _dropped_case(slug: str, words: str, message: Message) -> Case:
    return case(
        f"server.frame.ttl-0-{slug}",
        f"Drops {words} with time to live 0",
        "A message at the end of its life is not answered, whatever it is.",
        "F11 F13",
        connect("a"),
        say("a", message),
        hear("a", NOTHING),
    )


def _ping_case(slug: str, title: str, why: str, data: Message | bytes) -> Case:
    return case(
        f"server.frame.ping-{slug}",
        title,
        why,
        "F37 F10",
        connect("a"),
        say("a", data),
        hear("a", Answer(pong()), fence=Fence.ASK),
        pongs=False,
    )


def _block_case(slug: str, words: str, why: str, block: bytes) -> Case:
    return case(
        f"server.frame.headers-{slug}",
        f"Forwards {words} unchanged",
        why,
        "F7 F8",
        _to_self(
            queue_message("$ch", 1, header_block=block), delivery("$ch", 1, header_block=block)
        ),
    )


def _id_case(length: int) -> Case:
    text = "i" * length
    return case(
        f"server.frame.id-{length}-bytes",
        f"Carries a message id of {length} bytes",
        "The length of a name is one byte, so 255 is the most.",
        "F6 F45",
        _to_self(queue_message("$ch", 1, message_id=text), delivery("$ch", 1, message_id=text)),
    )


def _target_case(length: int) -> Case:
    text = "t" * length
    return case(
        f"server.frame.target-{length}-bytes",
        f"Reads a target of {length} bytes",
        "The length of a name is one byte, so 255 is the most.",
        "F6 F115",
        connect("a"),
        say("a", direct(text, 1, flags="R")),
        hear("a", Answer(response(404))),
    )


def _refused(slug: str, title: str, message: Message) -> Case:
    return case(
        f"server.frame.not-utf8-{slug}",
        title,
        "What is not text cannot be compared or forwarded safely.",
        "F15 rule-utf8",
        connect("a"),
        say("a", message),
        hear("a", Answer(terminate(400), end=End.CLOSED)),
    )


CASES: Final[tuple[Case, ...]] = (
    *[_size_case(size) for size in _SIZES],
    *[_longer_case(*form) for form in _LONGER_FORMS],
    *[_flag_case(bits) for bits in range(16)],
    *[_ttl_case(ttl) for ttl in _TTLS],
    *[_dropped_case(*each) for each in _DROPPED],
    case(
        "server.frame.ttl-0-ping",
        "Drops a ping with time to live 0",
        "The rule about the time to live applies to every type.",
        "F13",
        connect("a"),
        say("a", Message(TYPE_PING, ttl=0)),
        hear("a", NOTHING, fence=Fence.ASK),
        pongs=False,
    ),
    case(
        "server.frame.ttl-own-messages",
        "Begins its own messages with time to live 16",
        "A message that the server creates starts again, whatever the request had.",
        "F12 F44",
        connect("a"),
        say("a", operation(Operation.JOIN, "$ch", ttl=3)),
        hear("a", Answer(response(0, ttl=16))),
    ),
    _ping_case(
        "standard", "Answers the usual ping", "A ping asks whether the peer lives.", PING_BYTES
    ),
    case(
        "server.frame.pong-bytes",
        "Answers a ping with the eight bytes of a pong",
        "Clients compare the bytes of a pong.",
        "F37 F10",
        connect("a"),
        say("a", PING_BYTES),
        hear("a", Answer(Pattern(TYPE_PONG, raw=PONG_BYTES)), fence=Fence.ASK),
        pongs=False,
    ),
    _ping_case(
        "plain",
        "Answers a ping without flags",
        "Pings are recognised by their type, whatever the other bits are.",
        Message(TYPE_PING, ttl=16),
    ),
    _ping_case(
        "sixth-bit",
        "Reads the header bit of a ping as time to live",
        "A ping carries no header block: a reader that looks for one loses its place.",
        Message(TYPE_PING, ttl=32),
    ),
    _ping_case(
        "with-names",
        "Answers a ping with names and payload",
        "Pings are recognised by their type, whatever follows.",
        Message(TYPE_PING, "t", 7, b"payload", message_id="i"),
    ),
    case(
        "server.frame.ping-five",
        "Answers five pings with five pongs",
        "Every ping that is not dropped has its pong.",
        "F37",
        connect("a"),
        say("a", PING_BYTES * 5),
        hear("a", Answer(*[pong()] * 5), fence=Fence.ASK),
        pongs=False,
    ),
    *[
        case(
            f"server.frame.content-type-{number}",
            f"Carries the content type {number}",
            "The content type is two bytes, little-endian.",
            "F3 F1",
            connect("a"),
            say("a", direct("$a", number)),
            hear("a", Answer(Pattern(TYPE_DIRECT_MESSAGE, content_type=number, message_id=SENT))),
        )
        for number in _CONTENT_TYPES
    ],
    *[_block_case(*each) for each in _BLOCKS],
    case(
        "server.frame.headers-empty-block",
        "Reads the header bit with an empty block as no headers",
        "A reader that waits for more bytes here hangs.",
        "F9",
        _to_self(queue_message("$ch", 1, header_block=b""), delivery("$ch", 1, headers=[])),
        level=Level.SHOULD,
    ),
    case(
        "server.frame.no-header-bit-without-headers",
        "Sets no header bit on answers without headers",
        "The original client waits for bytes that do not come.",
        "F9",
        connect("a"),
        say("a", operation(Operation.JOIN, "$ch")),
        hear("a", Answer(response(0, has_header=False))),
    ),
    *[
        case(
            f"server.frame.unknown-type-{number:02x}",
            f"Ignores a message of the unknown type 0x{number:02x}",
            "New types may be added, and old servers must survive them.",
            "F17",
            connect("a"),
            say("a", Message(number, "x", 1, b"payload", flags="RA", headers=[("k", "v")])),
            hear("a", NOTHING),
        )
        for number in _UNKNOWN_TYPES
    ],
    case(
        "server.frame.custom-type",
        "Ignores a custom message that no user code takes",
        "Custom messages are for user code, and others must survive them.",
        "F17 F16 F119",
        connect("a"),
        say("a", Message(TYPE_CUSTOM, "x", 1, b"payload", flags="RA")),
        hear("a", NOTHING, Answer(Pattern(TYPE_CUSTOM), more=True)),
        level=Level.MAY,
    ),
    case(
        "server.frame.unsolicited-response",
        "Survives an unrequested Response",
        "A late answer must not end a connection.",
        "F117",
        connect("a"),
        say("a", Message(TYPE_RESPONSE, "nobody", 0, b"x")),
        hear("a", NOTHING),
    ),
    case(
        "server.frame.unsolicited-acknowledge",
        "Survives an unrequested Acknowledge",
        "A late acknowledgement must not end a connection.",
        "F95",
        connect("a"),
        say("a", Message(TYPE_ACKNOWLEDGE, "$ch", 1)),
        hear("a", NOTHING),
    ),
    case(
        "server.frame.unsolicited-pong",
        "Survives an unrequested pong",
        "A pong only shows that the peer is alive.",
        "F37 F38",
        connect("a"),
        say("a", PONG_BYTES),
        hear("a", NOTHING),
    ),
    case(
        "server.frame.first-acquirer",
        "Sets F on the first consumer's copy only",
        "The first receiver is the one that may do what only one must do.",
        "F2 F87 F76",
        connect("a"),
        connect("b"),
        connect("p"),
        ask("a", Operation.JOIN, "$ch"),
        ask("b", Operation.JOIN, "$ch"),
        say("p", queue_message("$ch", 1)),
        hear("p", NOTHING),
        hear("a", Answer(delivery("$ch", 1, first_acquirer=True))),
        hear("b", Answer(delivery("$ch", 1, first_acquirer=False))),
    ),
    *[_id_case(length) for length in (1, 32, 254, 255)],
    *[_target_case(length) for length in (1, 254, 255)],
    case(
        "server.frame.id-unicode",
        "Carries a message id of any letters",
        "Names are UTF-8, and their length is counted in bytes.",
        "F6 F45",
        _to_self(
            queue_message("$ch", 1, message_id="größe-日本-🐇"),
            delivery("$ch", 1, message_id="größe-日本-🐇"),
        ),
    ),
    case(
        "server.frame.id-with-controls",
        "Treats a message id as opaque",
        "An id may hold any text, also spaces and control characters.",
        "F45",
        _to_self(
            queue_message("$ch", 1, message_id="a b;c*\t\x00"),
            delivery("$ch", 1, message_id="a b;c*\t\x00"),
        ),
    ),
    case(
        "server.frame.payload-any-bytes",
        "Carries a payload of all 256 byte values",
        "The payload is opaque bytes.",
        "F15",
        _to_self(queue_message("$ch", 1, bytes(range(256))), delivery("$ch", 1, bytes(range(256)))),
    ),
    _refused(
        "id", "Ends on a message id that is not UTF-8", queue_message("$ch", 1, message_id=b"\xff")
    ),
    _refused(
        "target", "Ends on a target that is not UTF-8", Message(TYPE_QUEUE_MESSAGE, b"\xc3(", 1)
    ),
    _refused(
        "source",
        "Ends on a source that is not UTF-8",
        Message(TYPE_SERVER, "", 606, source=b"\xe2\x82"),
    ),
    _refused(
        "headers",
        "Ends on headers that are not UTF-8",
        queue_message("$ch", 1, header_block=b"k:\xff\r\n"),
    ),
    _refused(
        "split",
        "Ends on a letter that is split between two names",
        queue_message("$ch", 1, message_id=b"\xc3", source=b"\xa4"),
    ),
)
