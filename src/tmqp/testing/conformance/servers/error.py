"""Mistakes in requests: they get an answer, and the connection stays open."""

from __future__ import annotations

from typing import Final

from tmqp.constants import Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import SENT
from tmqp.testing.conformance.steps import Answer
from tmqp.testing.conformance.talk import (
    acknowledgement,
    ask,
    connect,
    create_queue,
    direct,
    hear,
    non_strict,
    operation,
    queue_message,
    response,
    route,
    say,
    strict_response,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

#: Numbers that are no operation.
_UNKNOWN: Final = (0, 1, 100, 300, 599, 699, 799, 999, 65_535)
#: Operations on what does not exist: slug, words, number, headers, body, code.
_MISSING: Final = (
    ("join-forbidden", "Join of a forbidden name", Operation.JOIN, "a b", b"", 400),
    ("leave-forbidden", "Leave of a forbidden name", Operation.LEAVE, "a b", b"", None),
    ("router-empty", "Create router without a name", Operation.CREATE_ROUTER, "", b"", 400),
    ("binding-json", "Add binding without a body", Operation.ADD_BINDING, "$rt", b"", None),
)
#: JSON bodies that are no options: slug, body.
_BODIES: Final = (
    ("array", b"[]"),
    ("number", b"1"),
    ("text", b'"options"'),
    ("cut", b'{"ClientLimit":'),
    ("not-utf8", b'{"ClientLimit":"\xff"}'),
    ("trailing", b'{"ClientLimit":1} x'),
    ("text-for-number", b'{"ClientLimit":"three"}'),
    ("number-for-boolean", b'{"AllowMultipleQueues":"no"}'),
    ("huge-number", b'{"ClientLimit":99999999999999999999}'),
    ("deep", b'{"AllowedQueues":' + b"[" * 500 + b"]" * 500 + b"}"),
    ("nan", b'{"ClientLimit":NaN}'),
)


def _any_error(*codes: int) -> tuple[Answer, ...]:
    return tuple(Answer(response(code)) for code in codes)


CASES: Final[tuple[Case, ...]] = (
    *[
        case(
            f"server.error.unknown-operation-{number}",
            f"Answers the unknown operation {number} with 400",
            "A request that is not answered makes its client wait.",
            "F19 F43 F18",
            connect("a"),
            say("a", operation(number, "x")),
            hear(
                "a",
                Answer(response(400)),
                non_strict(response(501), message="501 is for operations that the protocol has"),
            ),
            ask("a", Operation.JOIN, "$ch"),
        )
        for number in _UNKNOWN
    ],
    *[
        case(
            f"server.error.options-{slug}",
            f"Answers 400 to options that are {slug.replace('-', ' ')}",
            "A body that breaks the model is a mistake, and not the end of the connection.",
            "F43 F71",
            connect("a"),
            ask("a", Operation.CREATE_CHANNEL, "$ch", body, code=400),
            ask("a", Operation.CREATE_CHANNEL, "$ch"),
        )
        for slug, body in _BODIES
    ],
    *[
        case(
            f"server.error.{slug}",
            f"Answers {words} with an error",
            "A request that cannot be carried out is answered, and the connection stays open.",
            "F43",
            connect("a"),
            say("a", operation(number, target, body)),
            hear("a", *(_any_error(code) if code else _any_error(400, 404, 406))),
            ask("a", Operation.JOIN, "$ch"),
        )
        for slug, words, number, target, body, code in _MISSING
    ],
    case(
        "server.error.after-fifty",
        "Stays open after fifty refused requests",
        "A program with a mistake in a loop must be able to say so.",
        "F43",
        connect("a"),
        say("a", *[operation(Operation.LEAVE, "$ch", message_id=f"l{n}") for n in range(50)]),
        hear("a", Answer(*[response(404, message_id=f"l{n}") for n in range(50)], ordered=False)),
        ask("a", Operation.JOIN, "$ch"),
    ),
    case(
        "server.error.answer-form",
        "Sends an error in the form of every answer",
        "Clients match answers by id, whatever the code.",
        "F44 F43",
        connect("a"),
        say("a", operation(Operation.LEAVE, "$ch", flags="RFH")),
        hear("a", Answer(strict_response("a", 404))),
    ),
    case(
        "server.error.acknowledge-with-reason",
        "Sends a failed request with A a negative acknowledgement",
        "A request in the specification's form gets an answer in that form.",
        "F44 F81",
        connect("a"),
        say("a", operation(Operation.LEAVE, "$ch", flags="A")),
        hear("a", Answer(acknowledgement("$ch", 0, nack="not-found"))),
        level=Level.SHOULD,
    ),
    case(
        "server.error.silent-without-r",
        "Sends no answer to a failed request without R",
        "An answer is sent only if it is requested.",
        "F44",
        connect("a"),
        say("a", operation(Operation.LEAVE, "$ch", flags="")),
        hear("a", Answer()),
    ),
    case(
        "server.error.push-forbidden-name",
        "Answers a push to a forbidden name",
        "A producer must learn that its message is not kept.",
        "F75 F47",
        connect("a"),
        say("a", queue_message("a b", 1)),
        hear("a", *_any_error(400, 404)),
    ),
    case(
        "server.error.push-bad-status",
        "Answers a push whose status header is no word",
        "A misspelt word must not create a queue that loses messages.",
        "F55 F74 F75",
        connect("a"),
        say("a", queue_message("$ch", 1, b"x", [("Queue-Status", "psh")])),
        hear("a", Answer(response(400, target="$ch"))),
    ),
    case(
        "server.error.push-unknown-handler",
        "Answers a push that names an unknown delivery handler",
        "A queue without the handler that it names would behave in another way.",
        "F74 F75",
        connect("a"),
        say("a", queue_message("$ch", 1, b"x", [("Delivery-Handler", "none-such")])),
        hear("a", Answer(response(406, target="$ch"))),
    ),
    case(
        "server.error.direct-to-nobody",
        "Answers 404 to a direct message for a client that is not there",
        "A sender must not wait for an answer that cannot come.",
        "F115",
        connect("a"),
        say("a", direct("$nobody", 1)),
        hear("a", Answer(response(404))),
    ),
    case(
        "server.error.direct-to-nobody-acknowledge",
        "Sends a negative acknowledgement for a direct message that failed",
        "A sender that waits for an acknowledgement ignores everything else.",
        "F115",
        connect("a"),
        say("a", direct("$nobody", 1, flags="A")),
        hear(
            "a",
            Answer(
                response(404), acknowledgement(nack="not-found", message_id=SENT), ordered=False
            ),
            non_strict(
                response(404), message="a sender that waits for an acknowledgement waits on"
            ),
        ),
        level=Level.SHOULD,
    ),
    case(
        "server.error.router-unknown",
        "Answers 404 to a message for an unknown router",
        "A publisher must learn that its message went nowhere.",
        "F123",
        connect("a"),
        say("a", route("$rt", flags="R")),
        hear("a", Answer(response(404))),
        needs="router",
    ),
    case(
        "server.error.binding-of-unknown-router",
        "Answers 404 to bindings of an unknown router",
        "A question must not create what it asks about.",
        "F60",
        connect("a"),
        ask("a", Operation.LIST_BINDINGS, "$rt", code=404),
        needs="router",
    ),
    case(
        "server.error.queue-in-forbidden-channel",
        "Answers 400 to a queue in a channel with a forbidden name",
        "A mistake in a name is a mistake in every request.",
        "F47 F54",
        connect("a"),
        ask("a", Operation.CREATE_QUEUE, "a;b", headers=[("Queue-Id", "1")], code=400),
        create_queue("a"),
    ),
)
