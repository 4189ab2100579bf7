"""The hello of a client, and how a server accepts or refuses it."""

from __future__ import annotations

from typing import Final

from tmqp.constants import PREAMBLE, TYPE_PING, TYPE_QUEUE_MESSAGE, TYPE_SERVER, Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import GENERATED, Bind, Pattern
from tmqp.testing.conformance.steps import Answer, Close, End, Message, Open, Step
from tmqp.testing.conformance.talk import (
    ACCEPTED,
    PREAMBLE_ANSWER,
    ask,
    connect,
    direct,
    hear,
    hello,
    non_strict,
    operation,
    refusal,
    response,
    say,
    terminate,
    with_fields,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

_CLOSED_ONLY: Final = non_strict(
    PREAMBLE_ANSWER,
    end=End.CLOSED,
    message="the connection ends without a message that says why",
)


def _accepts(message: Message, client_id: object = "$a") -> list[Step]:
    return [
        Open("a"),
        say("a", PREAMBLE, message),
        hear("a", Answer(PREAMBLE_ANSWER, with_fields(ACCEPTED, target=client_id))),
    ]


def _refuses(message: Message | bytes, code: int) -> list[Step]:
    return [
        Open("a"),
        say("a", PREAMBLE, message),
        hear("a", Answer(PREAMBLE_ANSWER, refusal(code), end=End.CLOSED), _CLOSED_ONLY),
    ]


def _text(*lines: str) -> Message:
    return hello(payload="".join(f"{line}\r\n" for line in lines).encode())


#: Payloads that a server reads: slug, title, why, message, client id.
_READ: Final = (
    (
        "properties-only",
        "Reads a hello without a first line",
        "A first line with a colon is a property, so that nothing is lost.",
        _text("Client-Id: $a"),
        "$a",
    ),
    (
        "specification-first-line",
        "Reads the first line in the specification's spelling",
        "The specification prints the address first and the method behind it.",
        _text("tmq://remote-host CONNECT", "Client-Id: $a"),
        "$a",
    ),
    (
        "no-space",
        "Reads a property without a space behind the colon",
        "Keys and values are trimmed, so the space makes no difference.",
        _text("CONNECT /", "Client-Id:$a"),
        "$a",
    ),
    (
        "many-spaces",
        "Trims keys and values",
        "Spaces around a client id must not make another client of it.",
        _text("CONNECT /", "  Client-Id :   $a  "),
        "$a",
    ),
    (
        "key-case",
        "Compares keys case-insensitively",
        "Programs write the names of properties in their own case.",
        _text("CONNECT /", "client-ID: $a"),
        "$a",
    ),
    (
        "id-first",
        "Reads the properties in any order",
        "Only the original client writes the id last.",
        _text("CONNECT /", "Client-Id: $a", "Client-Name: n", "Client-Type: t"),
        "$a",
    ),
    (
        "line-without-colon",
        "Skips a line without a colon",
        "A line that is no property must not refuse the client.",
        _text("CONNECT /", "nonsense", "Client-Id: $a"),
        "$a",
    ),
    (
        "empty-key",
        "Skips a line with an empty key",
        "A line that is no property must not refuse the client.",
        _text("CONNECT /", ": value", "Client-Id: $a"),
        "$a",
    ),
    (
        "unknown-property",
        "Accepts properties that it does not know",
        "Further properties are for user code.",
        _text("CONNECT /", "X-Region: west", "Client-Id: $a"),
        "$a",
    ),
    (
        "path",
        "Accepts any path",
        "The path comes from the address that the user gave.",
        _text("CONNECT /some/where", "Client-Id: $a"),
        "$a",
    ),
    (
        "no-id",
        "Assigns an id to a client without one",
        "Every client needs an id that others can address.",
        _text("CONNECT /"),
        GENERATED,
    ),
    (
        "empty-id",
        "Assigns an id to a client with an empty one",
        "An empty id could not be addressed.",
        _text("CONNECT /", "Client-Id: "),
        GENERATED,
    ),
    (
        "unicode-id",
        "Accepts a client id of any letters",
        "Ids are UTF-8, and not only English.",
        _text("CONNECT /", "Client-Id: größe-日本-$a"),
        "größe-日本-$a",
    ),
)
#: Hellos that are refused with 400: slug, title, why, message.
_INVALID: Final = (
    (
        "empty",
        "Refuses an empty hello",
        "A hello without information is a mistake of the program.",
        hello(payload=b""),
    ),
    (
        "not-utf8",
        "Refuses a hello that is not UTF-8",
        "A name that is not text could not be shown or compared.",
        hello(payload=b"CONNECT /\r\nClient-Id: \xff\xfe\r\n"),
    ),
    (
        "property-twice",
        "Refuses a hello that names a property twice",
        "Two programs would take different ones of the two values.",
        _text("CONNECT /", "Client-Id: $a", "client-id: other"),
    ),
    (
        "long-id",
        "Refuses a client id of 256 bytes",
        "An id must fit into the source and the target of a frame.",
        _text("CONNECT /", "Client-Id: " + "x" * 256),
    ),
    (
        "long-name",
        "Refuses a client name of 256 bytes",
        "A name must fit into the target of a frame.",
        _text("CONNECT /", "Client-Name: " + "x" * 256, "Client-Id: $a"),
    ),
    (
        "control-character",
        "Refuses a control character in a client id",
        "Control characters would reach logs and terminals.",
        _text("CONNECT /", "Client-Id: a\x1bb"),
    ),
    (
        "direction-mark",
        "Refuses a direction mark in a client name",
        "A direction mark makes a name look like another one.",
        _text("CONNECT /", "Client-Name: a\u202eb", "Client-Id: $a"),
    ),
)
#: First messages that are no hello: slug, words, message.
_OTHERS: Final = (
    ("push", "a push", Message(TYPE_QUEUE_MESSAGE, "$ch", 1, b"x")),
    ("ping", "a ping", Message(TYPE_PING)),
    ("operation", "an operation", operation(Operation.JOIN, "$ch")),
    ("accepted", "an acceptance", Message(TYPE_SERVER, "x", 202, flags="F")),
)

CASES: Final[tuple[Case, ...]] = (
    case(
        "server.hello.acceptance-shape",
        "Accepts with a message of the right form",
        "Clients take their id from the target of the acceptance.",
        "F31 F62 F45",
        Open("a"),
        say("a", PREAMBLE, hello("$a")),
        hear(
            "a",
            Answer(
                PREAMBLE_ANSWER,
                with_fields(
                    ACCEPTED,
                    target="$a",
                    source="",
                    payload=b"",
                    first_acquirer=True,
                    message_id=GENERATED,
                ),
            ),
        ),
    ),
    case(
        "server.hello.type-and-number-only",
        "Looks at type and content type of the hello only",
        "Clients differ in flags, id and source of their hello.",
        "F26",
        _accepts(hello("$a", flags="", message_id="", source="$a", ttl=3)),
    ),
    case(
        "server.hello.ttl-0",
        "Accepts a hello with time to live 0",
        "The hello is exempt from the rule about the time to live.",
        "F12",
        _accepts(hello("$a", ttl=0)),
    ),
    case(
        "server.hello.header-block",
        "Accepts a hello with a header block",
        "The form of a frame is the same for the first message.",
        "F26",
        _accepts(hello("$a", headers=[("X-Any", "1")])),
    ),
    *[
        case(f"server.hello.{slug}", title, why, "F28 F30", _accepts(message, client_id))
        for slug, title, why, message, client_id in _READ
    ],
    *[
        case(
            f"server.hello.refuses-{slug}",
            title,
            why,
            "F28 F33 rule-hello-invalid",
            _refuses(message, 400),
        )
        for slug, title, why, message in _INVALID
    ],
    *[
        case(
            f"server.hello.first-message-{slug}",
            f"Refuses {words} as the first message",
            "A client that is not known yet may not do anything else.",
            "F34 rule-hello-expected",
            _refuses(message, 400),
        )
        for slug, words, message in _OTHERS
    ],
    case(
        "server.hello.terminate-first",
        "Ends the connection when Terminate is the first message",
        "A client may change its mind before its hello.",
        "F34 F40",
        Open("a"),
        say("a", PREAMBLE, Message(0x08)),
        hear("a", Answer(PREAMBLE_ANSWER, end=End.CLOSED)),
    ),
    case(
        "server.hello.id-in-use",
        "Refuses a client id that is in use",
        "Two clients with one id would receive each other's messages.",
        "F32 F33",
        connect("a"),
        Open("b"),
        say("b", PREAMBLE, hello("$a")),
        hear("b", Answer(PREAMBLE_ANSWER, refusal(503), end=End.CLOSED), _CLOSED_ONLY),
        ask("a", Operation.JOIN, "$ch"),
        level=Level.SHOULD,
    ),
    case(
        "server.hello.id-in-use-spaces",
        "Compares client ids after trimming",
        "A space more must not let a second client use the id.",
        "F32 F28",
        connect("a"),
        Open("b"),
        say("b", PREAMBLE, hello(payload=b"CONNECT /\r\nClient-Id:$a \r\n")),
        hear("b", Answer(PREAMBLE_ANSWER, refusal(503), end=End.CLOSED), _CLOSED_ONLY),
        level=Level.SHOULD,
    ),
    case(
        "server.hello.id-is-exact",
        "Distinguishes client ids by case",
        "Client ids are compared exactly.",
        "F46",
        connect("a", client_id="$x-Id"),
        connect("b", client_id="$x-ID"),
        say("a", direct("$x-ID", 1, b"to b")),
        hear("b", Answer(Pattern(0x12, payload=b"to b", source="$x-Id"))),
    ),
    case(
        "server.hello.id-free-again",
        "Accepts an id again when its client has left",
        "A program that restarts must be able to come back.",
        "F32",
        connect("a"),
        say("a", Message(0x08)),
        hear("a", Answer(end=End.CLOSED)),
        connect("b", client_id="$a"),
    ),
    case(
        "server.hello.early-messages",
        "Treats messages behind the hello like later ones",
        "A client sends its first requests without waiting for the acceptance.",
        "F35",
        Open("a"),
        say("a", PREAMBLE, hello("$a"), operation(Operation.JOIN, "$ch")),
        hear("a", Answer(PREAMBLE_ANSWER, ACCEPTED, response(0))),
    ),
    case(
        "server.hello.id-is-used-as-source",
        "Uses the accepted id as source of what it forwards",
        "Receivers answer to the source of a message.",
        "F31 F42 F30",
        Open("a"),
        say("a", PREAMBLE, _text("CONNECT /")),
        hear("a", Answer(PREAMBLE_ANSWER, with_fields(ACCEPTED, target=Bind("me", GENERATED)))),
        say("a", direct("$me", 7, b"x")),
        hear("a", Answer(Pattern(0x12, source="$me", target="$me", content_type=7))),
    ),
    case(
        "server.hello.second-hello",
        "Takes 101 as an operation after the hello",
        "The number is the hello only as the first message of a connection.",
        "F19",
        connect("a"),
        say("a", operation(101, "$ch")),
        hear("a", Answer(response(0)), Answer(response(481))),
        level=Level.SHOULD,
    ),
    case(
        "server.hello.torn",
        "Closes when the client leaves inside its hello",
        "Half a message is not a message, and the rest will not arrive.",
        "rule-torn",
        Open("a"),
        say("a", PREAMBLE, b"\x10\x10\x00\x00\x00\x65\x00\x40CONN"),
        Close("a", "half"),
        hear("a", Answer(PREAMBLE_ANSWER, end=End.CLOSED)),
    ),
    case(
        "server.hello.terminate-after",
        "Closes at once when the client sends Terminate",
        "Terminate says that nothing more will come.",
        "F40",
        connect("a"),
        say("a", Message(0x08)),
        hear("a", Answer(end=End.CLOSED), Answer(terminate(0), end=End.CLOSED)),
    ),
)
