"""Limits: at a limit a server works, and above it, it reports that."""

from __future__ import annotations

from typing import Final

from tmqp.constants import PREAMBLE, TYPE_DIRECT_MESSAGE, TYPE_QUEUE_MESSAGE, Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.steps import Answer, End, Message, Open
from tmqp.testing.conformance.talk import (
    NOTHING,
    PREAMBLE_ANSWER,
    acknowledgement,
    ask,
    connect,
    create_queue,
    delivery,
    hear,
    hello,
    non_strict,
    operation,
    push,
    queue_message,
    refusal,
    response,
    say,
    terminate,
)
from tmqp.testing.conformance.verdicts import Level, Verdict

__all__ = ["CASES"]

_MIB: Final = 1_048_576
#: Absurd payload lengths: slug, bytes.
_LIES: Final = (
    ("4-gib", (1 << 32) - 1, 254),
    ("5-gib", 5 << 30, 255),
    ("half-of-all", 1 << 63, 255),
    ("all", (1 << 64) - 1, 255),
)
_REFUSED: Final = Answer(terminate(482), end=End.CLOSED)
_HELLO_REFUSED: Final = Answer(PREAMBLE_ANSWER, refusal(482), end=End.CLOSED)


def _lie(slug: str, size: int, tier: int) -> Case:
    return case(
        f"server.limits.announced-{slug}",
        f"Refuses a payload of {size:,} bytes by its head",
        "A head that announces more than fits must not cost memory, nor wait for the body.",
        "F14 rule-payload-limit",
        connect("a"),
        say(
            "a",
            Message(TYPE_QUEUE_MESSAGE, "$ch", 1, tier=tier, announced_payload_bytes=size),
        ),
        hear("a", _REFUSED),
        level=Level.SHOULD,
    )


CASES: Final[tuple[Case, ...]] = (
    *[_lie(*lie) for lie in _LIES],
    case(
        "server.limits.payload-half-mib",
        "Carries a payload of 512 KiB",
        "Half a mebibyte is an ordinary message.",
        "F14 F4",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"x" * (_MIB // 2))),
        hear("a", Answer(delivery("$ch", 1, b"x" * (_MIB // 2)))),
    ),
    case(
        "server.limits.payload-one-mib",
        "Carries a payload of 1 MiB, or says that it does not",
        "A limit is advertised by an answer, and not by silence.",
        "F14 F64 F75",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"x" * _MIB)),
        hear(
            "a",
            Answer(delivery("$ch", 1, b"x" * _MIB)),
            Answer(
                response(482),
                verdict=Verdict.INFORMATIONAL,
                message="the server takes less than 1 MiB",
            ),
            Answer(
                terminate(482),
                end=End.CLOSED,
                verdict=Verdict.INFORMATIONAL,
                message="the server takes less than 1 MiB",
            ),
        ),
        level=Level.MAY,
    ),
    case(
        "server.limits.header-block-65535",
        "Carries a header block of 65,535 bytes",
        "The length of a block is two bytes, so 65,535 is the most.",
        "F6",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, header_block=b"k:" + b"v" * 65_531 + b"\r\n")),
        hear("a", Answer(delivery("$ch", 1, header_block=b"k:" + b"v" * 65_531 + b"\r\n"))),
        level=Level.SHOULD,
    ),
    case(
        "server.limits.hello-of-20-kib",
        "Refuses a hello of 20 KiB",
        "A peer that is not known yet may cost little.",
        "F14 rule-payload-limit",
        Open("a"),
        say("a", PREAMBLE, hello(payload=b"CONNECT /\r\nX: " + b"y" * 20_000 + b"\r\n")),
        hear("a", _HELLO_REFUSED),
        level=Level.SHOULD,
        needs="small-limits",
    ),
    case(
        "server.limits.hello-header-block",
        "Refuses a hello whose header block is 20 KiB",
        "Block and payload of a hello count together.",
        "F14 rule-header-limit",
        Open("a"),
        say("a", PREAMBLE, hello("$a", header_block=b"k:" + b"v" * 20_000 + b"\r\n")),
        hear("a", _HELLO_REFUSED),
        level=Level.SHOULD,
        needs="small-limits",
    ),
    case(
        "server.limits.hello-properties",
        "Refuses a hello with 100 further properties",
        "A server keeps the properties while the client is connected.",
        "F29 rule-hello-limit",
        Open("a"),
        say(
            "a",
            PREAMBLE,
            hello(payload=b"CONNECT /\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(100))),
        ),
        hear("a", _HELLO_REFUSED),
        level=Level.MAY,
        needs="small-limits",
    ),
    case(
        "server.limits.hello-property-bytes",
        "Refuses a hello with 8 KiB of further properties",
        "A server keeps the properties while the client is connected.",
        "F29 rule-hello-limit",
        Open("a"),
        say("a", PREAMBLE, hello(payload=b"CONNECT /\r\nX: " + b"y" * 8_192 + b"\r\n")),
        hear("a", _HELLO_REFUSED),
        level=Level.MAY,
        needs="small-limits",
    ),
    case(
        "server.limits.early-messages",
        "Takes 64 KiB of messages behind the hello",
        "A client that reconnects sends what it has kept at once.",
        "F35 rule-early-limit",
        Open("a"),
        say(
            "a",
            PREAMBLE,
            hello("$a"),
            *[queue_message("$ch", 1, b"x" * 1_000) for _ in range(60)],
            operation(Operation.JOIN, "$ch2", message_id="last"),
        ),
        hear("a", Answer(PREAMBLE_ANSWER, response(0, message_id="last"), more=True)),
        loose=True,
    ),
    case(
        "server.limits.message-size",
        "Answers 482 to a message above the queue's size limit",
        "The limit of sizes is a promise.",
        "F64 F75",
        connect("a"),
        create_queue("a", body=b'{"MessageSizeLimit":1000}'),
        push("a", queue_message("$ch", 1, b"x" * 500)),
        say("a", queue_message("$ch", 1, b"x" * 1_001, flags="A")),
        hear(
            "a",
            Answer(
                response(482, target="$ch"),
                acknowledgement("$ch", 1, nack="limit-exceeded"),
                ordered=False,
            ),
        ),
        level=Level.SHOULD,
        needs="extensions",
    ),
    case(
        "server.limits.many-copies",
        "Answers 482 to a message that asks for 40 copies",
        "One message must not become thousands.",
        "F82",
        connect("a"),
        say("a", queue_message("$ch", 1, b"x", [("CC", f"$ch2;{n}") for n in range(40)])),
        hear(
            "a",
            Answer(response(482, target="$ch")),
            non_strict(message="the server makes 40 copies of one message"),
        ),
        level=Level.MAY,
    ),
    case(
        "server.limits.body-of-options",
        "Answers a body of 300 KiB of options with an error",
        "A body is bounded before it is parsed.",
        "F43 F71",
        connect("a"),
        say("a", operation(Operation.CREATE_CHANNEL, "$ch", b'{"x":"' + b"y" * 300_000 + b'"}')),
        hear(
            "a",
            Answer(response(400)),
            Answer(response(482)),
            Answer(response(413)),
            Answer(response(0), verdict=Verdict.INFORMATIONAL, message="the server parses 300 KiB"),
        ),
        level=Level.MAY,
    ),
    case(
        "server.limits.five-hundred-requests",
        "Answers 500 requests in one write",
        "A client may have many requests outstanding.",
        "F44",
        connect("a"),
        say("a", *[operation(Operation.JOIN, "$ch", message_id=f"j{n}") for n in range(500)]),
        hear(
            "a",
            Answer(*[response(0, message_id=f"j{n}") for n in range(500)], ordered=False),
        ),
    ),
    case(
        "server.limits.fifty-channels",
        "Serves fifty channels of one client",
        "Programs use many channels.",
        "F48 F64",
        connect("a"),
        say(
            "a",
            *[operation(Operation.JOIN, f"$ch-{n}", message_id=f"j{n}") for n in range(50)],
            operation(Operation.LEAVE, "$ch-7", message_id="bye"),
        ),
        hear(
            "a",
            Answer(
                *[response(0, message_id=f"j{n}") for n in range(50)],
                response(0, message_id="bye"),
                ordered=False,
            ),
        ),
        loose=True,
    ),
    case(
        "server.limits.name-of-255",
        "Serves a channel whose name has 200 bytes",
        "Names have up to 255 bytes.",
        "F6 F47",
        connect("a"),
        ask("a", Operation.JOIN, "$ch" + "n" * 200),
        say("a", queue_message("$ch" + "n" * 200, 1)),
        hear("a", Answer(delivery("$ch" + "n" * 200, 1))),
    ),
    case(
        "server.limits.empty-body",
        "Survives ten thousand empty direct messages without a receiver",
        "Small messages are as many as they like to be.",
        "F115",
        connect("a"),
        say("a", *[Message(TYPE_DIRECT_MESSAGE, "@name:nobody", 1) for _ in range(10_000)]),
        hear("a", NOTHING),
    ),
)
