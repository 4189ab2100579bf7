"""Messages from client to client, and their answers."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import TYPE_ACKNOWLEDGE, TYPE_DIRECT_MESSAGE, TYPE_RESPONSE
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import ANY, GENERATED, NoHeader, Pattern
from tmqp.testing.conformance.steps import Answer, Close, End, Message, Step
from tmqp.testing.conformance.talk import (
    NOTHING,
    acknowledgement,
    connect,
    direct,
    hear,
    non_strict,
    response,
    say,
    terminate,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]


def _two(**of_b: str) -> list[Step]:
    return [*connect("a"), *connect("b", **of_b)]


def _got(payload: bytes = b"x", **fields: Any) -> Pattern:
    return Pattern(TYPE_DIRECT_MESSAGE, payload=payload, **fields)


def _answer(target: str, message_id: str, code: int = 0, **fields: Any) -> Message:
    return Message(TYPE_RESPONSE, target, code, message_id=message_id, **fields)


def _received(message_id: str, target: str) -> Message:
    """A receiver's acknowledgement of a direct message: H is on (F116)."""
    return Message(TYPE_ACKNOWLEDGE, target, 7, message_id=message_id, flags="H")


_ADDRESSES: Final = (
    case(
        "server.direct.by-id",
        "A direct message reaches the client with that id",
        "Programs answer one another by id.",
        "F113 F114",
        *_two(),
        say("a", direct("$b", 7)),
        hear("b", Answer(_got(target="$b", content_type=7, source="$a"))),
        hear("a", NOTHING),
    ),
    case(
        "server.direct.by-name",
        "A direct message reaches the clients with that name",
        "A name stands for a service, whichever client provides it.",
        "F113 F114",
        *_two(name="worker-$n"),
        say("a", direct("@name:worker-$n", 7)),
        hear("b", Answer(_got(target="@name:worker-$n"))),
    ),
    case(
        "server.direct.by-type",
        "A direct message reaches the clients of that type",
        "A type stands for a kind of program.",
        "F113 F114",
        *_two(type="kind-$n"),
        say("a", direct("@type:kind-$n", 7)),
        hear("b", Answer(_got(target="@type:kind-$n"))),
    ),
    case(
        "server.direct.name-case",
        "Names of clients are compared exactly",
        "Two programs may differ by case only.",
        "F46 F113",
        *_two(name="worker-$n"),
        say("a", direct("@name:Worker-$n", 7, flags="R")),
        hear("a", Answer(response(404))),
        hear("b", NOTHING),
    ),
    case(
        "server.direct.id-case",
        "Client ids are compared exactly",
        "Two ids may differ by case only.",
        "F46 F113",
        *_two(client_id="client-$n"),
        say("a", direct("Client-$n", 7)),
        hear("a", Answer(response(404))),
        hear("b", NOTHING),
    ),
    case(
        "server.direct.prefix-case",
        "The prefixes @name: and @type: are lower case",
        "A client id may begin with anything else.",
        "F113",
        *_two(name="worker-$n"),
        say("a", direct("@NAME:worker-$n", 7, flags="R")),
        hear("a", Answer(response(404)), NOTHING),
        hear("b", NOTHING),
        level=Level.SHOULD,
    ),
    case(
        "server.direct.all-with-the-name",
        "A message to a name reaches all its clients, the sender included",
        "A program may send a message to all clients of its type.",
        "F114",
        *connect("a", name="team-$n"),
        *connect("b", name="team-$n"),
        *connect("c", name="team-$n"),
        say("a", direct("@name:team-$n", 7)),
        hear("b", Answer(_got())),
        hear("c", Answer(_got())),
        hear("a", Answer(_got(source="$a"))),
    ),
    case(
        "server.direct.first-only",
        "With the flag F only the first client that matches gets the message",
        "A request to a service needs one answer.",
        "F114",
        *connect("a"),
        *connect("b", name="team-$n"),
        *connect("c", name="team-$n"),
        say("a", direct("@name:team-$n", 7, flags="F")),
        hear("b", Answer(_got())),
        hear("c", NOTHING),
    ),
    case(
        "server.direct.to-oneself",
        "A client may send a message to itself",
        "A program need not know where its service runs.",
        "F114",
        *connect("a"),
        say("a", direct("$a", 7)),
        hear("a", Answer(_got(source="$a"))),
    ),
    case(
        "server.direct.in-order",
        "Messages from one client to another arrive in order",
        "A conversation that is mixed up is none.",
        "F114",
        *_two(),
        say("a", *[direct("$b", 7, text) for text in (b"1", b"2", b"3", b"4")]),
        hear("b", Answer(*[_got(text) for text in (b"1", b"2", b"3", b"4")])),
    ),
)

_FIELDS: Final = (
    case(
        "server.direct.unchanged",
        "A direct message keeps its id, content type, headers and flags",
        "The server forwards; it does not read.",
        "F114 F8",
        *_two(),
        say(
            "a",
            direct(
                "$b",
                4_321,
                b"\0\xff",
                headers=[("K", "1"), ("k", "2")],
                message_id="m1",
                flags="HRA",
            ),
        ),
        hear(
            "b",
            Answer(
                _got(
                    b"\0\xff",
                    message_id="m1",
                    content_type=4_321,
                    headers=[("K", "1"), ("k", "2")],
                    high_priority=True,
                    pending_response=True,
                    pending_acknowledge=True,
                )
            ),
        ),
    ),
    case(
        "server.direct.time-to-live",
        "A direct message arrives with one hop less",
        "Messages that loop must end.",
        "F114 F11",
        *_two(),
        say("a", direct("$b", 7, ttl=9)),
        hear("b", Answer(_got(ttl=8))),
    ),
    case(
        "server.direct.no-time-to-live",
        "A direct message without time to live is dropped",
        "Messages that loop must end.",
        "F11",
        *_two(),
        say("a", direct("$b", 7, ttl=0, flags="R")),
        hear("b", NOTHING),
        hear("a", NOTHING),
    ),
    case(
        "server.direct.no-id",
        "A direct message without an id gets one",
        "Every receiver may refer to a message by its id.",
        "F41 F45",
        *_two(),
        say("a", direct("$b", 7, message_id="")),
        hear("b", Answer(_got(message_id=GENERATED))),
    ),
    case(
        "server.direct.empty-payload",
        "A direct message may be empty",
        "The content type alone may be the message.",
        "F114",
        *_two(),
        say("a", direct("$b", 7, b"")),
        hear("b", Answer(_got(b""))),
    ),
    case(
        "server.direct.large",
        "A direct message of 100,000 bytes arrives whole",
        "Payloads of every length form are forwarded.",
        "F114 F4",
        *_two(),
        say("a", direct("$b", 7, b"0123456789" * 10_000)),
        hear("b", Answer(_got(b"0123456789" * 10_000))),
    ),
    case(
        "server.direct.forged-source",
        "A direct message under another client's id ends the connection",
        "A receiver must be able to trust the source.",
        "F42 rule-source",
        *_two(),
        say("a", direct("$b", 7, source="$b")),
        hear("a", Answer(terminate(400), end=End.CLOSED)),
        hear("b", NOTHING),
    ),
)


def _nobody(slug: str, target: str, flags: str, *answers: Answer) -> Case:
    return case(
        f"server.direct.nobody-{slug}",
        f"A message without a receiver ({slug}) gets the correct answer",
        "A sender must learn that no client got its request.",
        "F115",
        *connect("a"),
        say("a", direct(target, 7, flags=flags)),
        hear("a", *answers),
    )


_NOBODY: Final = (
    _nobody("by-id", "$none", "", Answer(response(404))),
    _nobody("by-id-with-r", "$none", "R", Answer(response(404))),
    _nobody("by-name", "@name:$none", "", NOTHING),
    _nobody("by-name-with-r", "@name:$none", "R", Answer(response(404))),
    _nobody("by-type", "@type:$none", "", NOTHING),
    _nobody("by-type-with-r", "@type:$none", "R", Answer(response(404))),
    _nobody(
        "with-a",
        "$none",
        "A",
        Answer(response(404), acknowledgement(nack=ANY), ordered=False),
        non_strict(
            response(404),
            message="a sender that waits for an acknowledgement does not learn that there is no "
            "receiver",
        ),
    ),
    case(
        "server.direct.receiver-gone",
        "A message to a client that has disconnected is answered with 404",
        "A sender must learn that the other program has ended.",
        "F115 F102",
        *_two(),
        Close("b"),
        say("a", direct("$none", 7)),
        hear("a", Answer(response(404))),
        say("a", direct("$b", 7)),
        hear("a", Answer(response(404))),
    ),
)

_ANSWERS: Final = (
    case(
        "server.direct.response",
        "A receiver's response reaches the sender, with its source",
        "Requests between programs need answers.",
        "F117",
        *_two(),
        say("a", direct("$b", 7, message_id="q", flags="R")),
        hear("b", Answer(_got(message_id="q"))),
        say("b", _answer("$a", "q", payload=b"yes")),
        hear(
            "a",
            Answer(Pattern(TYPE_RESPONSE, message_id="q", payload=b"yes", source="$b", ttl=15)),
        ),
    ),
    case(
        "server.direct.response-code",
        "A response may have any code",
        "Applications define their own codes.",
        "F117 F18",
        *_two(),
        say("a", direct("$b", 7, message_id="q", flags="R")),
        hear("b", Answer(_got())),
        say("b", _answer("$a", "q", 12_345)),
        hear("a", Answer(Pattern(TYPE_RESPONSE, message_id="q", content_type=12_345))),
    ),
    case(
        "server.direct.response-once",
        "The second response to a request is dropped",
        "A sender that has its answer does not expect another one.",
        "F117",
        *_two(),
        say("a", direct("$b", 7, message_id="q", flags="R")),
        hear("b", Answer(_got())),
        say("b", _answer("$a", "q", payload=b"1"), _answer("$a", "q", payload=b"2")),
        hear("b", NOTHING),
        hear("a", Answer(Pattern(TYPE_RESPONSE, payload=b"1"))),
        level=Level.SHOULD,
    ),
    case(
        "server.direct.response-unasked",
        "A response to a request that was never sent is dropped",
        "A client must not be able to answer what others asked the server.",
        "F117",
        *_two(),
        say("b", _answer("$a", "q")),
        hear("b", NOTHING),
        hear("a", NOTHING),
        level=Level.SHOULD,
    ),
    case(
        "server.direct.response-of-another",
        "A response from a client that was not asked is dropped",
        "A stranger must not be able to answer in another's place.",
        "F117",
        *_two(),
        *connect("x"),
        say("a", direct("$b", 7, message_id="q", flags="R")),
        hear("b", Answer(_got())),
        say("x", _answer("$a", "q", payload=b"forged")),
        hear("x", NOTHING),
        hear("a", NOTHING),
        say("b", _answer("$a", "q", payload=b"true")),
        hear("a", Answer(Pattern(TYPE_RESPONSE, payload=b"true", source="$b"))),
        level=Level.SHOULD,
    ),
    case(
        "server.direct.acknowledgement",
        "A receiver's acknowledgement reaches the sender",
        "A sender may want to know that its message arrived.",
        "F116 F117",
        *_two(),
        say("a", direct("$b", 7, message_id="q", flags="A")),
        hear("b", Answer(_got(pending_acknowledge=True))),
        say("b", _received("q", "$a")),
        hear("b", NOTHING),
        hear(
            "a",
            Answer(
                Pattern(
                    TYPE_ACKNOWLEDGE,
                    message_id="q",
                    source="$b",
                    high_priority=True,
                    header={"Nack-Reason": NoHeader()},
                )
            ),
        ),
    ),
    case(
        "server.direct.acknowledgement-of-another",
        "An acknowledgement from a client that was not asked is dropped",
        "A stranger must not be able to confirm in another's place.",
        "F117 F116",
        *_two(),
        *connect("x"),
        say("a", direct("$b", 7, message_id="q", flags="A")),
        hear("b", Answer(_got())),
        say("x", _received("q", "$a")),
        hear("x", NOTHING),
        hear("a", NOTHING),
        level=Level.SHOULD,
    ),
    case(
        "server.direct.answer-to-nobody",
        "An answer to a disconnected client goes nowhere",
        "Askers disconnect before they are answered.",
        "F117",
        *_two(),
        say("a", direct("$b", 7, message_id="q", flags="R")),
        hear("b", Answer(_got())),
        Close("a"),
        say("b", _answer("$a", "q")),
        hear("b", NOTHING, Answer(response(404, message_id="q"))),
    ),
)

CASES: Final[tuple[Case, ...]] = (*_ADDRESSES, *_FIELDS, *_NOBODY, *_ANSWERS)
