"""How a client begins: preamble, hello, and its reaction to a refusal."""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    PREAMBLE,
    PREAMBLE_V1,
    SERVER_ACCEPTED,
    SERVER_HELLO,
    TYPE_SERVER,
    Operation,
)
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import Matcher, Names, Part, Pattern, Preamble
from tmqp.testing.conformance.steps import Answer, Close, Fence, Message, Open
from tmqp.testing.conformance.talk import (
    CLOSED_SILENTLY,
    NOTHING,
    greet,
    hear,
    non_strict,
    say,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

_ACCEPTED: Final = Message(TYPE_SERVER, "$a", SERVER_ACCEPTED, flags="F", message_id="accepted")
_BEGINNING: Final = Preamble(PREAMBLE)
#: What programs of other protocols answer: slug, name, bytes.
_OTHERS: Final = (
    ("http", "an HTTP answer", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ("tls", "a TLS alert", bytes.fromhex("15030300020228") + b"\0" * 4),
    ("older-version", "the older preamble", PREAMBLE_V1),
    ("next-version", "another version of TMQP", b"TMQP/3.0"),
    ("zeros", "bytes of zero", b"\0" * 16),
    ("ssh", "the greeting of SSH", b"SSH-2.0-OpenSSH_9.2\r\n"),
)
#: Codes with which a server refuses a client, and their reasons.
_REFUSALS: Final = (
    (400, "an invalid hello"),
    (401, "missing rights"),
    (481, "a duplicate"),
    (482, "too many clients"),
    (500, "an error of its own"),
    (503, "a client id that is in use"),
)


class _Lines(Matcher):
    """A hello's payload: lines that end with CR LF, the first one ``CONNECT /`` (F27)."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        if not isinstance(value, bytes) or not value.startswith(b"CONNECT /\r\n"):
            return False
        lines = value.split(b"\r\n")
        return lines[-1] == b"" and all(b":" in line for line in lines[1:-1])

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return "CONNECT / and lines of properties, each ended by CR LF"


class _IdLast(Matcher):
    """A hello whose last property is Client-Id (F27)."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return isinstance(value, bytes) and value.split(b"\r\n")[-2:-1][0].lower().startswith(
            b"client-id:"
        )

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return "properties of which Client-Id is the last"


def _hello(payload: object = b"", **fields: object) -> Pattern:
    if payload != b"":
        fields["payload"] = payload
    return Pattern(TYPE_SERVER, content_type=SERVER_HELLO, **fields)  # type: ignore[arg-type]


def _foreign(slug: str, name: str, data: bytes) -> Case:
    return case(
        f"client.preamble.foreign-{slug}",
        f"Closes without a word when the server begins with {name}",
        "The peer speaks another protocol and could not read a farewell.",
        "F23 F24 rule-preamble",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", data),
        hear("a", CLOSED_SILENTLY),
    )


def _refused(code: int, reason: str) -> Case:
    return case(
        f"client.hello.refused-{code}",
        f"Closes when the server refuses it with {code}",
        f"A client that is refused for {reason} has nothing to do on this connection.",
        "F33 F62",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", PREAMBLE, Message(TYPE_SERVER, "", code, flags="F")),
        hear("a", CLOSED_SILENTLY),
    )


CASES: Final[tuple[Case, ...]] = (
    case(
        "client.preamble.does-not-wait",
        "Sends the hello without waiting for the server's preamble",
        "A server may read the hello before it answers; both would wait forever.",
        "F21",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", PREAMBLE, _ACCEPTED),
        hear("a", NOTHING),
    ),
    case(
        "client.preamble.answer-byte-by-byte",
        "Takes the server's preamble byte by byte",
        "TCP may deliver eight bytes in any number of pieces.",
        "F22",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", PREAMBLE, _ACCEPTED, chop=1),
        hear("a", NOTHING),
    ),
    case(
        "client.preamble.answer-in-two-pieces",
        "Takes the server's preamble in two pieces",
        "A reader that expects eight bytes from one read fails on busy networks.",
        "F22",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", PREAMBLE, _ACCEPTED, chop=(5,)),
        hear("a", NOTHING),
    ),
    case(
        "client.preamble.answer-and-acceptance-apart",
        "Takes the acceptance after the preamble",
        "A server that asks others whether it may accept needs a moment.",
        "F31",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", PREAMBLE),
        hear("a", NOTHING, fence=Fence.QUIET),
        say("a", _ACCEPTED),
        hear("a", NOTHING),
    ),
    case(
        "client.preamble.server-ends-first",
        "Closes when the server closes before its preamble",
        "A server that is starting or full may close at once.",
        "F24",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        Close("a", "half"),
        hear("a", CLOSED_SILENTLY),
    ),
    case(
        "client.preamble.server-ends-inside",
        "Closes when the server closes inside its preamble",
        "A connection may break at any byte.",
        "F22 F24",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", PREAMBLE[:4]),
        Close("a", "half"),
        hear("a", CLOSED_SILENTLY),
    ),
    *[_foreign(*other) for other in _OTHERS],
    case(
        "client.hello.form",
        "Sends a hello of lines, the first one CONNECT /",
        "Servers read the hello line by line.",
        "F26 F27",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello(_Lines())), fence=Fence.FIRST),
        say("a", PREAMBLE, _ACCEPTED),
        hear("a", NOTHING),
    ),
    case(
        "client.hello.id-last",
        "Writes Client-Id last",
        "The original server reads the properties in this order.",
        "F27",
        Open("a"),
        hear(
            "a",
            Answer(_BEGINNING, _hello(_IdLast())),
            non_strict(_BEGINNING, _hello(), message="Client-Id is not the last property"),
            fence=Fence.FIRST,
        ),
        say("a", PREAMBLE, _ACCEPTED),
        hear("a", NOTHING),
        level=Level.SHOULD,
    ),
    case(
        "client.hello.has-client-id",
        "Names its client id, or none",
        "A server makes an id for a client that has none.",
        "F29 F30",
        Open("a"),
        hear(
            "a",
            Answer(_BEGINNING, _hello(Part(b"Client-Id"))),
            Answer(_BEGINNING, _hello()),
            fence=Fence.FIRST,
        ),
        say("a", PREAMBLE, _ACCEPTED),
        hear("a", NOTHING),
    ),
    case(
        "client.hello.no-header-block",
        "Sends the hello without a header block",
        "The original client sends none, and servers were written for it.",
        "F26",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello(headers=[])), fence=Fence.FIRST),
        say("a", PREAMBLE, _ACCEPTED),
        hear("a", NOTHING),
        level=Level.SHOULD,
    ),
    case(
        "client.hello.takes-the-given-id",
        "Uses the id that the server gives it",
        "A server may rename a client; messages under the old id would be forgeries.",
        "F31 F42",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", PREAMBLE, Message(TYPE_SERVER, "$given", SERVER_ACCEPTED, flags="F")),
        hear(
            "a",
            Answer(Pattern(TYPE_SERVER, content_type=Operation.JOIN, source="")),
            Answer(Pattern(TYPE_SERVER, content_type=Operation.JOIN, source="$given")),
            fence=Fence.FIRST,
        ),
        task="join",
        loose=True,
    ),
    case(
        "client.hello.acceptance-without-id",
        "Takes an acceptance without a message id",
        "The id of the acceptance means nothing.",
        "F31",
        Open("a"),
        hear("a", Answer(_BEGINNING, _hello()), fence=Fence.FIRST),
        say("a", PREAMBLE, Message(TYPE_SERVER, "$a", SERVER_ACCEPTED, message_id="")),
        hear("a", NOTHING),
    ),
    case(
        "client.hello.terminated",
        "Closes when the server ends the connection before it accepts",
        "A server that stops says goodbye to clients that wait.",
        "F40",
        *greet("a")[:2],
        say("a", PREAMBLE, Message(0x08, "", 503)),
        hear("a", CLOSED_SILENTLY),
    ),
    *[_refused(*each) for each in _REFUSALS],
)
