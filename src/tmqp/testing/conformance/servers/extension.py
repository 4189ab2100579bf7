"""Extensions: options, headers and operations that neither source has."""

from __future__ import annotations

from typing import Final

from tmqp.constants import TYPE_ACKNOWLEDGE, Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import ANY, Pattern, Properties
from tmqp.testing.conformance.servers.queue_options import shown
from tmqp.testing.conformance.steps import Answer, End, Step, Wait
from tmqp.testing.conformance.talk import (
    NOTHING,
    acknowledge,
    ask,
    connect,
    create_queue,
    delivery,
    hear,
    operation,
    push,
    queue_message,
    response,
    say,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

_UPDATE_CHANNEL: Final = 702
_DESCRIBE_SERVER: Final = 703
_SET_TERMS: Final = 741
_GRANT_CREDIT: Final = 742
_BROWSE: Final = 744
_CANCEL: Final = 745
_JOIN: Final = Operation.JOIN
_ADD_FEED: Final = 746
_REMOVE_FEED: Final = 747
_REMOVE_MESSAGE: Final = 749
_ID: Final = [("Queue-Id", "1")]
_THREE: Final = (b"m1", b"m2", b"m3")
_FEED: Final = [("Feed-Channel", "$ch2"), ("Feed-Queue", "1")]


def _extension(
    slug: str, title: str, why: str, rules: str, *script: Step | list[Step], needs: str = ""
) -> Case:
    return case(
        f"server.extension.{slug}",
        title,
        why,
        rules,
        connect("a"),
        *script,
        level=Level.MAY,
        needs=f"extensions {needs}".strip(),
    )


CASES: Final[tuple[Case, ...]] = (
    _extension(
        "describe-server",
        "Describes itself",
        "Operators compare the use of a server with its limits.",
        "x-extensions",
        ask(
            "a",
            _DESCRIBE_SERVER,
            "",
            code=Answer(
                response(
                    0,
                    payload=Properties(
                        {"Version": ANY, "Time": ANY, "Clients": ANY, "MaxClients": ANY}
                    ),
                )
            ),
        ),
    ),
    _extension(
        "update-channel",
        "Changes the options of a channel",
        "Limits are changed while programs run.",
        "x-extensions",
        ask("a", Operation.CREATE_CHANNEL, "$ch"),
        ask("a", _UPDATE_CHANNEL, "$ch", b'{"ClientLimit":7}'),
        ask(
            "a",
            Operation.CHANNEL_INFORMATION,
            "$ch",
            code=Answer(response(0, payload=Properties({"ClientLimit": 7}))),
        ),
        needs="admin",
    ),
    _extension(
        "update-unknown-channel",
        "Answers 404 to a change of an unknown channel",
        "A change must not create what it changes.",
        "x-extensions",
        ask("a", _UPDATE_CHANNEL, "$ch", b'{"ClientLimit":7}', code=404),
    ),
    _extension(
        "deferred",
        "Delivers a deferred message when it is due, and not before",
        "Programs send reminders and retries.",
        "x-deferred-messages",
        create_queue("a"),
        ask("a", _JOIN, "$ch"),
        push("a", queue_message("$ch", 1, b"later", [("Delay", "400")])),
        hear("a", Answer(delivery("$ch", 1, b"later")), within=2.0),
    ),
    _extension(
        "deferred-wrong-value",
        "Answers 400 to a delay that is not a number",
        "A message with an invalid delay must not be delivered at once.",
        "x-deferred-messages",
        create_queue("a"),
        say("a", queue_message("$ch", 1, b"x", [("Delay", "soon")])),
        hear("a", Answer(response(400, target="$ch"))),
    ),
    _extension(
        "deferred-cancelled",
        "Does not deliver a message that was cancelled",
        "Reminders are withdrawn.",
        "x-deferred-messages x-extensions",
        create_queue("a"),
        ask("a", _JOIN, "$ch"),
        push("a", queue_message("$ch", 1, b"x", [("Delay", "60000")], message_id="r")),
        ask("a", _CANCEL, "$ch", headers=[*_ID, ("Message-Id", "r")]),
        ask("a", _CANCEL, "$ch", headers=[*_ID, ("Message-Id", "r")], code=404),
    ),
    _extension(
        "remove-message",
        "Removes one waiting message, and does not deliver it any more",
        "An operator takes out the message that breaks every consumer.",
        "x-removing-a-message x-extensions",
        create_queue("a"),
        push("a", *[queue_message("$ch", 1, each, message_id=each.decode()) for each in _THREE]),
        ask("a", _REMOVE_MESSAGE, "$ch", headers=[*_ID, ("Message-Id", "m2")]),
        ask("a", _REMOVE_MESSAGE, "$ch", headers=[*_ID, ("Message-Id", "m2")], code=404),
        ask(
            "a",
            _JOIN,
            "$ch",
            code=Answer(
                delivery("$ch", 1, b"m1"), delivery("$ch", 1, b"m3"), response(0), ordered=False
            ),
        ),
        needs="admin",
    ),
    _extension(
        "browse",
        "Shows the messages of a queue without taking them",
        "Operators look into queues before they change something.",
        "x-looking-into-queues",
        push("a", queue_message("$ch", 1, b"look at me")),
        say("a", operation(_BROWSE, "$ch", headers=_ID)),
        hear("a", Answer(response(0))),
        shown("a", {"Messages": 1}),
        needs="admin",
    ),
    _extension(
        "browse-unknown",
        "Answers 404 to a look into an unknown queue",
        "A question must not create what it asks about.",
        "x-looking-into-queues",
        ask("a", _BROWSE, "$ch", headers=_ID, code=404),
    ),
    _extension(
        "receivers",
        "Counts the receivers of a push in its acknowledgement",
        "A producer needs to know whether there are consumers.",
        "x-receivers-of-a-push",
        ask("a", _JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"x", [("Receivers", "yes")], message_id="m", flags="A")),
        hear(
            "a",
            Answer(
                delivery("$ch", 1, b"x"),
                Pattern(TYPE_ACKNOWLEDGE, message_id="m", header={"Receivers": "1"}),
                ordered=False,
            ),
        ),
    ),
    _extension(
        "drop-oldest",
        "Drops the oldest message of a full queue, where that is the option",
        "The newest value counts for dashboards.",
        "x-full-queues",
        create_queue("a", body=b'{"MessageLimit":2,"WhenFull":"drop-oldest"}'),
        push("a", *[queue_message("$ch", 1, b"%d" % number) for number in range(3)]),
        ask(
            "a",
            _JOIN,
            "$ch",
            code=Answer(
                delivery("$ch", 1, b"1"), delivery("$ch", 1, b"2"), response(0), ordered=False
            ),
        ),
    ),
    _extension(
        "wrong-when-full",
        "Answers 400 to a WhenFull that does not exist",
        "A misspelt word must not lose messages.",
        "x-full-queues F71",
        ask("a", Operation.CREATE_QUEUE, "$ch", b'{"WhenFull":"drop"}', _ID, code=400),
    ),
    _extension(
        "owner",
        "Removes a channel with the lifetime owner when its owner leaves",
        "Channels for answers must not pile up.",
        "x-temporary-channels",
        connect("b"),
        ask("a", Operation.CREATE_CHANNEL, "$ch", b'{"Lifetime":"owner"}'),
        ask("b", Operation.CREATE_CHANNEL, "$ch", code=481),
        say("a", b"\x08\x10\0\0\0\0\0\0"),
        hear("a", Answer(end=End.CLOSED)),
        ask("b", Operation.CREATE_CHANNEL, "$ch"),
    ),
    _extension(
        "owner-only",
        "Lets only the owner join a channel with OwnerOnly",
        "Answers for one client are not for others.",
        "x-temporary-channels",
        connect("b"),
        ask("a", Operation.CREATE_CHANNEL, "$ch", b'{"Lifetime":"owner","OwnerOnly":true}'),
        ask("b", _JOIN, "$ch", code=403),
        ask("a", _JOIN, "$ch"),
    ),
    _extension(
        "window",
        "Sends no more than the window of a consumer",
        "A consumer that is slow must not be flooded.",
        "x-deliveries-of-consumers",
        create_queue("a"),
        ask("a", _JOIN, "$ch", headers=[("Window", "1")]),
        say("a", queue_message("$ch", 1, b"1", message_id="m1"), queue_message("$ch", 1, b"2")),
        hear("a", Answer(delivery("$ch", 1, b"1"))),
        say("a", acknowledge("$ch", 1, "m1")),
        hear("a", Answer(delivery("$ch", 1, b"2"))),
    ),
    _extension(
        "credit",
        "Sends no more than the credit of a consumer",
        "A consumer may decide for each batch when it is ready.",
        "x-deliveries-of-consumers",
        create_queue("a"),
        ask("a", _JOIN, "$ch", headers=[("Credit", "1")]),
        say("a", queue_message("$ch", 1, b"1"), queue_message("$ch", 1, b"2")),
        hear("a", Answer(delivery("$ch", 1, b"1"))),
        ask(
            "a",
            _GRANT_CREDIT,
            "$ch",
            headers=[("Credit", "1")],
            code=Answer(response(0), delivery("$ch", 1, b"2"), ordered=False),
        ),
    ),
    _extension(
        "terms-not-joined",
        "Answers 404 to terms for a channel that was not joined",
        "Terms concern what the client has joined.",
        "x-deliveries-of-consumers",
        ask("a", Operation.CREATE_CHANNEL, "$ch"),
        ask("a", _SET_TERMS, "$ch", headers=[("Window", "1")], code=404),
    ),
    _extension(
        "filter",
        "Delivers only what the filter of a consumer passes",
        "A consumer wants some of the messages.",
        "x-filters",
        ask("a", _JOIN, "$ch", headers=[("Filter", "kind=order")]),
        say(
            "a",
            queue_message("$ch", 1, b"no", [("kind", "offer")]),
            queue_message("$ch", 1, b"yes", [("kind", "order")]),
        ),
        hear("a", Answer(delivery("$ch", 1, b"yes"))),
    ),
    _extension(
        "filter-wrong",
        "Answers 400 to a filter that it cannot read",
        "A consumer with a misspelt filter would wait forever.",
        "x-filters",
        ask("a", _JOIN, "$ch", headers=[("Filter", "=;=")], code=400),
    ),
    _extension(
        "group-keys",
        "Sends all messages of a key to one consumer",
        "The messages of one customer belong together.",
        "x-messages-with-a-key",
        connect("b"),
        create_queue("a", body=b'{"Status":2,"GroupKeys":"sticky"}'),
        ask("a", _JOIN, "$ch"),
        ask("b", _JOIN, "$ch"),
        say("a", *[queue_message("$ch", 1, b"k", [("Group-Key", "one")]) for _ in range(3)]),
        hear("a", Answer(*[delivery("$ch", 1, b"k")] * 3)),
        hear("b", NOTHING),
    ),
    _extension(
        "feed",
        "Copies the messages of a queue into another by a feed",
        "Each group of consumers wants a queue of its own.",
        "x-feeds",
        create_queue("a", "$ch"),
        create_queue("a", "$ch2"),
        ask("a", _ADD_FEED, "$ch", headers=[*_ID, *_FEED]),
        ask("a", _ADD_FEED, "$ch", headers=[*_ID, *_FEED], code=481),
        ask("a", _JOIN, "$ch2"),
        say("a", queue_message("$ch", 1, b"copied")),
        hear("a", Answer(delivery("$ch2", 1, b"copied"))),
        ask("a", _REMOVE_FEED, "$ch", headers=[*_ID, *_FEED]),
        ask("a", _REMOVE_FEED, "$ch", headers=[*_ID, *_FEED], code=404),
    ),
    _extension(
        "expires",
        "Does not deliver a message that has become too old",
        "An old price is worse than none.",
        "F97 x-deferred-messages",
        create_queue("a", body=b'{"MessageTimeout":300}'),
        push("a", queue_message("$ch", 1, b"old")),
        Wait(1.5),
        ask("a", _JOIN, "$ch"),
        needs="timeouts",
    ),
)
