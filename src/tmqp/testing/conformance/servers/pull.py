"""Pull and cache queues."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import TYPE_QUEUE_MESSAGE, Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import NoHeader, Pattern, Properties
from tmqp.testing.conformance.steps import Answer, Step
from tmqp.testing.conformance.talk import (
    NOTHING,
    ask,
    connect,
    create_queue,
    delivery,
    hear,
    pull,
    push,
    queue_message,
    response,
    say,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

_ID: Final = [("Queue-Id", "1")]
_QUIET: Final = b'{"RequestAcknowledge":false}'


def _stage(status: str = "pull", body: bytes = _QUIET) -> list[Step]:
    """A client that has joined a channel with a queue of this status."""
    return [
        *connect("a"),
        *create_queue("a", "$ch", 1, body, Queue_Status=status),
        *ask("a", Operation.JOIN, "$ch"),
    ]


def _stored(*texts: str, **fields: Any) -> list[Step]:
    messages = [
        queue_message("$ch", 1, text.encode(), message_id=f"id-{text}", **fields) for text in texts
    ]
    return push("a", *messages)


def _ask(*headers: tuple[str, str], **fields: Any) -> Step:
    fields.setdefault("message_id", "r")
    return say("a", pull("$ch", 1, headers, **fields))


def _result(index: int, text: str, **more: Any) -> Pattern:
    header = {"Request-Id": "r", "Index": str(index), **more.pop("header", {})}
    return delivery("$ch", 1, text.encode(), header=header, **more)


def _no_content(reason: str, channel: str = "$ch", **fields: Any) -> Pattern:
    fields.setdefault("message_id", "r")
    header = {"Request-Id": fields["message_id"], "No-Content": reason, "Index": NoHeader()}
    return Pattern(
        TYPE_QUEUE_MESSAGE,
        target=channel,
        content_type=1,
        payload=b"",
        source="",
        header=header,
        **fields,
    )


_END: Final = _no_content("End")


def _left(number: int) -> list[Step]:
    answer = Answer(response(0, payload=Properties({"Messages": number})))
    return ask("a", Operation.QUEUE_INFORMATION, "$ch", headers=_ID, code=answer)


def _refused(slug: str, title: str, reason: str, *headers: tuple[str, str]) -> Case:
    return case(
        f"server.pull.{slug}",
        title,
        "A request that cannot be carried out is answered, so that the client does not wait.",
        "F105 F104",
        *_stage(),
        *_stored("one"),
        _ask(*headers),
        hear("a", Answer(_no_content(reason))),
        needs="pull",
    )


_RESULTS: Final = (
    case(
        "server.pull.one",
        "A pull of one message gives it and the end",
        "A client that pulls must learn when all has come.",
        "F107 F108",
        *_stage(),
        *_stored("one"),
        _ask(("Count", "1")),
        hear("a", Answer(_result(1, "one"), _END)),
        needs="pull",
    ),
    case(
        "server.pull.oldest-first",
        "A pull gives the oldest messages first",
        "Stored messages are a queue.",
        "F104",
        *_stage(),
        *_stored("one", "two", "three"),
        _ask(("Count", "2")),
        hear("a", Answer(_result(1, "one"), _result(2, "two"), _END)),
        needs="pull",
    ),
    case(
        "server.pull.lifo",
        "Order LIFO gives the newest messages first",
        "Some readers only want the latest.",
        "F104",
        *_stage(),
        *_stored("one", "two", "three"),
        _ask(("Count", "2"), ("Order", "LIFO")),
        hear("a", Answer(_result(1, "three"), _result(2, "two"), _END)),
        needs="pull",
    ),
    case(
        "server.pull.words-in-any-case",
        "Header names and words of a pull may be in any case",
        "Clients in other languages write them as they like.",
        "F104",
        *_stage(),
        *_stored("one", "two"),
        _ask(("COUNT", "1"), ("order", "lifo"), ("CLEAR", "All")),
        hear("a", Answer(_result(1, "two"), _END)),
        _ask(("Count", "1"), message_id="r2"),
        hear("a", Answer(_no_content("Empty", message_id="r2"))),
        needs="pull",
    ),
    case(
        "server.pull.high-priority-first",
        "Messages of high priority come first, also with LIFO",
        "An urgent message must not wait behind a long backlog.",
        "F107 F85",
        *_stage(),
        *_stored("low"),
        *_stored("high", flags="H"),
        *_stored("last"),
        _ask(("Count", "3"), ("Order", "LIFO")),
        hear("a", Answer(_result(1, "high"), _result(2, "last"), _result(3, "low"), _END)),
        needs="pull",
    ),
    case(
        "server.pull.fewer-than-asked",
        "A pull of more messages than there are gives all and the end",
        "A reader asks for as many as it can take.",
        "F107 F108",
        *_stage(),
        *_stored("one", "two"),
        _ask(("Count", "10")),
        hear("a", Answer(_result(1, "one"), _result(2, "two"), _END)),
        needs="pull",
    ),
    case(
        "server.pull.removes-exactly",
        "A pull removes exactly what it gives",
        "A message that is removed and not sent is lost.",
        "F109",
        *_stage(),
        *_stored("one", "two", "three"),
        _ask(("Count", "1")),
        hear("a", Answer(_result(1, "one"), _END)),
        _ask(("Count", "5"), message_id="r"),
        hear("a", Answer(_result(1, "two"), _result(2, "three"), _END)),
        needs="pull",
    ),
    case(
        "server.pull.empty",
        "A pull from an empty queue gives Empty alone",
        "A reader that finds nothing must not wait.",
        "F105 F108",
        *_stage(),
        _ask(("Count", "1")),
        hear("a", Answer(_no_content("Empty"))),
        needs="pull",
    ),
    case(
        "server.pull.keeps-fields",
        "A pulled message keeps its id, source, flags and headers",
        "How a message is read must not change it.",
        "F107",
        *_stage(),
        push("a", queue_message("$ch", 1, b"x", [("Mine", "1")], message_id="m1", flags="H")),
        _ask(("Count", "1")),
        hear(
            "a",
            Answer(
                _result(
                    1, "x", message_id="m1", source="$a", high_priority=True, header={"Mine": "1"}
                ),
                _END,
            ),
        ),
        needs="pull",
    ),
    case(
        "server.pull.flag-first",
        "A pulled message has the flag F the first time",
        "F shows a consumer that the message was not delivered before.",
        "F107",
        *_stage(),
        *_stored("one"),
        _ask(("Count", "1")),
        hear("a", Answer(_result(1, "one", first_acquirer=True), _END)),
        needs="pull",
    ),
    case(
        "server.pull.requests-acknowledgement",
        "With RequestAcknowledge pulled messages have the flag A",
        "Reading by pulling and acknowledging go together.",
        "F107",
        *_stage(body=b'{"RequestAcknowledge":true}'),
        *_stored("one"),
        _ask(("Count", "1")),
        hear("a", Answer(_result(1, "one", pending_acknowledge=True), _END)),
        needs="pull",
        loose=True,
    ),
    case(
        "server.pull.info",
        "Info tells how many messages are left after each one",
        "A reader plans by the number that is left.",
        "F107",
        *_stage(),
        *_stored("one", "two", "three"),
        *_stored("high", flags="H"),
        _ask(("Count", "2"), ("Info", "yes")),
        hear(
            "a",
            Answer(
                _result(1, "high", header={"Priority-Messages": "0", "Messages": "3"}),
                _result(2, "one", header={"Priority-Messages": "0", "Messages": "2"}),
                _END,
            ),
        ),
        needs="pull",
    ),
    case(
        "server.pull.no-info",
        "Without Info the remaining messages are not counted",
        "Unrequested headers cost bytes.",
        "F107",
        *_stage(),
        *_stored("one", "two"),
        _ask(("Count", "1")),
        hear("a", Answer(_result(1, "one", header={"Messages": NoHeader()}), _END)),
        needs="pull",
        level=Level.SHOULD,
    ),
    case(
        "server.pull.own-header-last",
        "The server's headers follow those of the producer",
        "A producer's header of the same name must not hide the server's.",
        "F107 F8",
        *_stage(),
        push("a", queue_message("$ch", 1, b"x", [("Index", "77")], message_id="m1")),
        _ask(("Count", "1")),
        hear("a", Answer(delivery("$ch", 1, b"x", header={"Index": "77"}), _END)),
        needs="pull",
    ),
    case(
        "server.pull.not-delivered",
        "A pull queue sends nothing by itself",
        "A reader decides when it reads.",
        "F91",
        *_stage(),
        *_stored("one"),
        hear("a", NOTHING),
        needs="pull",
    ),
    case(
        "server.pull.two-readers",
        "Two readers never get the same message",
        "Readers share work by pulling.",
        "F109",
        *_stage(),
        *connect("b"),
        *ask("b", Operation.JOIN, "$ch"),
        *_stored("one", "two"),
        _ask(("Count", "1")),
        hear("a", Answer(_result(1, "one"), _END)),
        say("b", pull("$ch", 1, [("Count", "2")], message_id="r")),
        hear("b", Answer(_result(1, "two"), _END)),
        needs="pull",
    ),
    case(
        "server.pull.empty-payload",
        "A message with an empty payload is pulled like any other",
        "An empty message is a message.",
        "F107 F111",
        *_stage(),
        push("a", queue_message("$ch", 1, b"", message_id="m1")),
        _ask(("Count", "1")),
        hear("a", Answer(_result(1, "", message_id="m1"), _END)),
        needs="pull",
    ),
    case(
        "server.pull.request-id-is-not-forged",
        "A delivery that is not pulled carries no Request-Id",
        "A producer could forge the results of others' pulls.",
        "F107",
        *connect("p"),
        *_stage("push"),
        push("p", queue_message("$ch", 1, b"x", [("Request-Id", "r")], message_id="m1")),
        hear("a", Answer(delivery("$ch", 1, b"x", header={"Request-Id": NoHeader()}))),
    ),
)


def _clear(slug: str, word: str, left: tuple[int, int]) -> Case:
    high, low = left
    answer = Answer(response(0, payload=Properties({"PriorityMessages": high, "Messages": low})))
    return case(
        f"server.pull.clear-{slug}",
        f"Clear {word} removes what it says after the last message",
        "A reader of the latest value throws the older ones away.",
        "F104 F110",
        *_stage(),
        *_stored("low-1", "low-2"),
        *_stored("high-1", "high-2", flags="H"),
        _ask(("Count", "1"), ("Clear", word)),
        hear("a", Answer(_result(1, "high-1"), _END)),
        *ask("a", Operation.QUEUE_INFORMATION, "$ch", headers=_ID, code=answer),
        needs="pull admin",
    )


_REFUSALS: Final = (
    _refused("no-count", "A pull without Count is unacceptable", "Unacceptable"),
    _refused("count-zero", "A pull of no message is unacceptable", "Unacceptable", ("Count", "0")),
    _refused("count-negative", "A negative Count is unacceptable", "Unacceptable", ("Count", "-1")),
    _refused(
        "count-text", "A Count that is not a number is unacceptable", "Unacceptable", ("Count", "x")
    ),
    _refused(
        "clear-unknown",
        "An unknown word in Clear is unacceptable",
        "Unacceptable",
        ("Count", "1"),
        ("Clear", "some"),
    ),
    case(
        "server.pull.not-joined",
        "A client that has not joined the channel is not authorized",
        "Rights are checked when a client joins.",
        "F105",
        *connect("a"),
        *create_queue("a", "$ch", 1, _QUIET, Queue_Status="pull"),
        *_stored("one"),
        _ask(("Count", "1")),
        hear("a", Answer(_no_content("Unauthorized"))),
        needs="pull",
    ),
    case(
        "server.pull.no-channel",
        "A pull from an unknown channel is answered",
        "A client that pulls must not wait for what cannot come.",
        "F105 F106",
        *connect("a"),
        _ask(("Count", "1")),
        hear("a", Answer(_no_content("No-Channel"))),
        needs="pull",
    ),
    case(
        "server.pull.no-queue",
        "A pull from an unknown queue is answered",
        "A client that pulls must not wait for what cannot come.",
        "F105 F106",
        *connect("a"),
        *ask("a", Operation.JOIN, "$ch"),
        _ask(("Count", "1")),
        hear("a", Answer(_no_content("No-Queue"))),
        needs="pull",
    ),
    case(
        "server.pull.no-id",
        "A pull without a message id is answered with Id-Required",
        "The results could not be matched.",
        "F105 F106",
        *_stage(),
        *_stored("one"),
        _ask(("Count", "1"), message_id=""),
        hear("a", Answer(_no_content("Id-Required", message_id=""))),
        *_left(1),
        needs="pull admin",
    ),
    case(
        "server.pull.push-queue",
        "A pull from a push queue is unacceptable",
        "The queue's messages belong to its consumers.",
        "F105",
        *_stage("push"),
        _ask(("Count", "1")),
        hear("a", Answer(_no_content("Unacceptable"))),
        needs="pull",
    ),
    case(
        "server.pull.refusal-order",
        "A refusal has the headers Request-Id and No-Content in this order",
        "The original client reads the first header of an answer first.",
        "F105",
        *_stage(),
        _ask(("Count", "1")),
        hear(
            "a",
            Answer(delivery("$ch", 1, b"", headers=[("Request-Id", "r"), ("No-Content", "Empty")])),
        ),
        needs="pull",
    ),
)

_CACHE: Final = (
    case(
        "server.pull.cache-latest",
        "A cache queue answers a pull with the latest message",
        "A cache is asked for the current value.",
        "F112 F91",
        *_stage("cache"),
        *_stored("old", "new"),
        _ask(),
        hear("a", Answer(response(0, payload=b"new"))),
        needs="cache",
    ),
    case(
        "server.pull.cache-keeps",
        "A cache queue keeps its message when it is pulled",
        "Many clients ask for the current value.",
        "F112",
        *_stage("cache"),
        *_stored("new"),
        _ask(),
        hear("a", Answer(response(0, payload=b"new"))),
        _ask(),
        hear("a", Answer(response(0, payload=b"new"))),
        needs="cache",
    ),
    case(
        "server.pull.cache-empty",
        "An empty cache queue answers 404",
        "A client must learn that there is no value yet.",
        "F112",
        *_stage("cache"),
        _ask(),
        hear("a", Answer(response(404))),
        needs="cache",
    ),
    case(
        "server.pull.cache-not-joined",
        "A cache queue answers 401 to a client that has not joined",
        "Rights are checked when a client joins.",
        "F112",
        *connect("a"),
        *create_queue("a", "$ch", 1, _QUIET, Queue_Status="cache"),
        *_stored("new"),
        _ask(),
        hear("a", Answer(response(401))),
        needs="cache",
    ),
    case(
        "server.pull.cache-sends-nothing",
        "A cache queue sends nothing to its consumers",
        "A cache is asked; it does not push.",
        "F91",
        *_stage("cache"),
        *_stored("new"),
        hear("a", NOTHING),
        needs="cache",
    ),
)

CASES: Final[tuple[Case, ...]] = (
    *_RESULTS,
    _clear("none", "none", (1, 2)),
    _clear("all", "all", (0, 0)),
    _clear("high", "High-Priority", (0, 2)),
    _clear("low", "Default-Priority", (1, 0)),
    *_REFUSALS,
    *_CACHE,
)
