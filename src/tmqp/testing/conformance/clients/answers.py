"""How a client answers, which answers it must ignore, and that it reconnects."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import (
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_SERVER,
)
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.clients.words import (
    CHANNEL,
    GRANTED,
    JOIN,
    QUEUE,
    acknowledged,
    confirm,
    delivered,
    pulled,
)
from tmqp.testing.conformance.patterns import OneOf, Pattern
from tmqp.testing.conformance.steps import Answer, Close, Fence, Message, Open, Step
from tmqp.testing.conformance.talk import NOTHING, direct, greet, hear, say
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]


def _asks(message_id: str = "q", payload: bytes = b"question", **fields: Any) -> Message:
    fields.setdefault("flags", "R")
    return direct("$a", 7, payload, message_id=message_id, source="asker", **fields)


def _answer(message_id: str = "q", payload: bytes = b"question", **fields: Any) -> Pattern:
    return Pattern(
        TYPE_RESPONSE,
        message_id=message_id,
        target="asker",
        content_type=0,
        payload=payload,
        **fields,
    )


def _answers(slug: str, title: str, why: str, rules: str, *script: Step, **more: Any) -> Case:
    steps = (*greet(), *script)
    return case(f"client.echo.{slug}", title, why, rules, *steps, task="echo", **more)


_ECHO: Final = (
    _answers(
        "answers",
        "Answers a request to the one who asked",
        "A response is addressed to the asker, and has the request's id.",
        "F117",
        say("a", _asks()),
        hear("a", Answer(_answer())),
    ),
    _answers(
        "flags",
        "Answers with F and H as in the request",
        "The flags of an answer are those of its request.",
        "F117",
        say("a", _asks(flags="FHR")),
        hear("a", Answer(_answer(first_acquirer=True, high_priority=True))),
        level=Level.SHOULD,
    ),
    _answers(
        "source",
        "Names itself or no source in a response",
        "A server ends the connection of a client that speaks for another.",
        "F42 F117",
        say("a", _asks()),
        hear("a", Answer(_answer(source=OneOf("", "$a")))),
    ),
    _answers(
        "time-to-live",
        "Gives a response a new time to live",
        "A response without hops left would be dropped.",
        "F11",
        say("a", _asks(ttl=1)),
        hear("a", Answer(_answer(ttl=16))),
    ),
    _answers(
        "not-asked",
        "Does not answer a message that does not ask",
        "An unexpected response is noise.",
        "F117",
        say("a", _asks(flags="")),
        hear("a", NOTHING),
    ),
    _answers(
        "each",
        "Answers each of several requests",
        "Askers do not wait for one another.",
        "F117",
        say("a", _asks("q1", b"1"), _asks("q2", b"2"), _asks("q3", b"3")),
        hear(
            "a",
            Answer(_answer("q1", b"1"), _answer("q2", b"2"), _answer("q3", b"3"), ordered=False),
        ),
    ),
    _answers(
        "by-name",
        "Answers a request that was addressed to a name",
        "The target of a message is what the asker wrote, not the client's id.",
        "F113 F117",
        say(
            "a",
            direct("@name:service", 7, b"question", message_id="q", source="asker", flags="R"),
        ),
        hear("a", Answer(_answer())),
    ),
    _answers(
        "binary",
        "Answers with the payload as it was",
        "Payloads are bytes, not text.",
        "F15 F117",
        say("a", _asks(payload=bytes(range(256)))),
        hear("a", Answer(_answer(payload=bytes(range(256))))),
    ),
)


def _unbelieved(slug: str, title: str, why: str, rules: str, *items: Message) -> Case:
    return case(
        f"client.lies.{slug}",
        title,
        why,
        rules,
        *greet(),
        say("a", *items),
        hear("a", NOTHING),
    )


_LIES: Final = (
    _unbelieved(
        "response-unasked",
        "Survives a response to nothing that it asked",
        "Answers may come after a client has given up.",
        "F44",
        Message(TYPE_RESPONSE, "$a", 0, message_id="never-sent"),
    ),
    _unbelieved(
        "response-without-id",
        "Survives a response without an id",
        "It can answer nothing.",
        "F44",
        Message(TYPE_RESPONSE, "$a", 0, message_id=""),
    ),
    _unbelieved(
        "acknowledgement-unasked",
        "Survives an acknowledgement of nothing that it pushed",
        "Answers may come after a client has given up.",
        "F78",
        confirm("never-sent"),
    ),
    _unbelieved(
        "accepted-twice",
        "Survives a second acceptance",
        "A code of the server means something while connecting only.",
        "F62",
        Message(TYPE_SERVER, "$a", 202, flags="F"),
    ),
    _unbelieved(
        "unknown-server-message",
        "Survives a message of the server with an unknown code",
        "A server of a later version may have more to say.",
        "F62",
        Message(TYPE_SERVER, "$a", 777),
    ),
    _unbelieved(
        "not-joined",
        "Survives a message of a channel that it has not joined",
        "A message may cross with the client's leaving.",
        "F49 F76",
        delivered(target="$other", flags=""),
    ),
    _unbelieved(
        "result-unasked",
        "Survives the result of a pull that it did not send",
        "A producer could forge the header.",
        "F107 F111",
        pulled(1, request="never-sent"),
    ),
    _unbelieved(
        "end-unasked",
        "Survives the end of a pull that it did not send",
        "Ends may come after a client has given up.",
        "F111",
        Message(
            TYPE_QUEUE_MESSAGE,
            CHANNEL,
            QUEUE,
            message_id="never-sent",
            headers=[("Request-Id", "never-sent"), ("No-Content", "End")],
        ),
    ),
    case(
        "client.lies.response-of-another-client",
        "Does not take another client's response for the server's",
        "A client that may send messages could forge results of operations.",
        "F117 F44",
        *greet(),
        hear("a", Answer(JOIN), fence=Fence.FIRST),
        say("a", Message(TYPE_RESPONSE, "$a", 404, message_id="$request", source="$forger")),
        hear("a", NOTHING),
        say("a", GRANTED),
        hear("a", NOTHING),
        say("a", delivered()),
        hear("a", Answer(acknowledged())),
        task="consume",
    ),
)

_RECONNECT: Final = tuple(
    case(
        f"client.reconnect.{slug}",
        title,
        "Servers restart, and programs go on without being restarted.",
        "F21 F48",
        Open("a"),
        *steps,
        Open("a", again=True),
        hear(
            "a",
            Answer(Pattern(TYPE_SERVER), more=True),
            fence=Fence.FIRST,
            within=10.0,
        ),
        needs="reconnect",
        level=Level.MAY,
        task="join",
        loose=True,
    )
    for slug, title, steps in (
        (
            "before-the-preamble",
            "Connects again when the server closes at once",
            [Close("a")],
        ),
        (
            "after-the-acceptance",
            "Connects again when the server closes after the acceptance",
            [*greet()[1:], hear("a", Answer(JOIN), fence=Fence.FIRST), Close("a")],
        ),
        (
            "after-terminate",
            "Connects again when the server has said goodbye",
            [*greet()[1:], say("a", Message(0x08)), Close("a")],
        ),
    )
)

CASES: Final[tuple[Case, ...]] = (*_ECHO, *_LIES, *_RECONNECT)
