"""Channels: create, remove, list, information, join and leave."""

from __future__ import annotations

from typing import Final

from tmqp.constants import DocumentOperation, Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import Properties
from tmqp.testing.conformance.steps import Answer
from tmqp.testing.conformance.talk import (
    NOTHING,
    ask,
    connect,
    delivery,
    hear,
    operation,
    push,
    queue_message,
    response,
    say,
    strict_response,
)
from tmqp.testing.conformance.verdicts import Level

__all__ = ["CASES"]

_CREATE: Final = Operation.CREATE_CHANNEL
_JOIN: Final = Operation.JOIN
_LEAVE: Final = Operation.LEAVE
_REMOVE: Final = Operation.REMOVE_CHANNEL
_INFORMATION: Final = Operation.CHANNEL_INFORMATION
_LIST: Final = Operation.CHANNEL_LIST
_CONSUMERS: Final = Operation.CHANNEL_CONSUMERS
_FIELDS: Final = (
    "Name",
    "Queues",
    "AllowMultipleQueues",
    "AllowedQueues",
    "OnlyFirstAcquirer",
    "RequestAcknowledge",
    "AcknowledgeTimeout",
    "MessageTimeout",
    "UseMessageId",
    "WaitForAcknowledge",
    "HideClientNames",
    "ActiveClients",
    "ClientLimit",
    "QueueLimit",
    "DestroyWhenEmpty",
)
#: Options that information shows: slug, what is sent, what is shown.
_OPTIONS: Final = (
    ("client-limit", b'{"ClientLimit":3}', {"ClientLimit": 3}),
    ("queue-limit", b'{"QueueLimit":2}', {"QueueLimit": 2}),
    ("one-queue", b'{"AllowMultipleQueues":false}', {"AllowMultipleQueues": False}),
    ("allowed-queues", b'{"AllowedQueues":[4,7]}', {"AllowedQueues": [4, 7]}),
    ("destroy", b'{"DestroyWhenEmpty":true}', {"DestroyWhenEmpty": True}),
    ("acknowledge", b'{"RequestAcknowledge":false}', {"RequestAcknowledge": False}),
    ("timeout", b'{"AcknowledgeTimeout":2500}', {"AcknowledgeTimeout": 2500}),
    ("first-acquirer", b'{"SendOnlyFirstAcquirer":true}', {"OnlyFirstAcquirer": True}),
    ("null", b'{"ClientLimit":null,"UseMessageId":true}', {"ClientLimit": 0}),
    ("unknown", b'{"NoSuchOption":1,"ClientLimit":1}', {"ClientLimit": 1}),
)
#: Names that a channel cannot have: slug, words, name.
_FORBIDDEN: Final = (
    ("empty", "an empty name", ""),
    ("at", "a name with @", "$ch@x"),
    ("space", "a name with a space", "$ch x"),
    ("semicolon", "a name with a semicolon", "$ch;x"),
    ("star", "a name with a star", "$ch*"),
    ("line-feed", "a name with a line feed", "$ch\nx"),
    ("nul", "a name with NUL", "$ch\x00"),
    ("delete", "a name with DEL", "$ch\x7f"),
    ("direction", "a name with a direction mark", "$ch\u202e"),
)
#: Filters of the channel list: slug, filter, channel, whether the filter finds it.
_FILTERS: Final = (
    ("equal", "$ch", "$ch", True),
    ("equal-without-case", "$ch-NAME", "$ch-Name", True),
    ("begins", "$ch*", "$ch", True),
    ("begins-with-case", "$ch-NA*", "$ch-Name", False),
    ("ends", "*$end", "$ch$end", True),
    ("contains", "*$mid*", "$ch$mid$ch2", True),
    ("contains-without-case", "*NAME-$mid*", "$ch-name-$mid-x", True),
    ("inside", "c*$end", "$ch$end", True),
    ("no-match", "$other*", "$ch", False),
)


def _forbidden(slug: str, words: str, name: str) -> Case:
    return case(
        f"server.channel.name-{slug}",
        f"Refuses {words}",
        "Such a name would break addresses, header lines or filters.",
        "F47 F43",
        connect("a"),
        ask("a", _CREATE, name, code=400),
        ask("a", _CREATE, "$ch2"),
    )


def _option(slug: str, body: bytes, shown: dict[str, object]) -> Case:
    return case(
        f"server.channel.option-{slug}",
        f"Applies the options {body.decode()}",
        "An option that is accepted and ignored surprises its user in production.",
        "F70 F71 F73",
        connect("a"),
        ask("a", _CREATE, "$ch", body),
        ask("a", _INFORMATION, "$ch", code=Answer(response(0, payload=Properties(shown)))),
        needs="admin",
    )


def _filter(slug: str, text: str, channel: str, found: bool) -> Case:
    payload = Properties(each=({"Name": channel},) if found else (), exact=not found)
    answer = Answer(response(0, payload=payload))
    return case(
        f"server.channel.filter-{slug}",
        f"Filters the list of channels by {text!r}" + ("" if found else ", which finds none"),
        "Administrators look for channels by a part of their names.",
        "F52 F53",
        connect("a"),
        ask("a", _CREATE, channel),
        ask("a", _LIST, "", headers=[("Channel-Name", text)], code=answer),
        needs="admin",
    )


CASES: Final[tuple[Case, ...]] = (
    case(
        "server.channel.create",
        "Creates a channel",
        "Programs create their channels when they start.",
        "F50 F44",
        connect("a"),
        say("a", operation(_CREATE, "$ch", flags="R")),
        hear("a", Answer(strict_response("a", 0))),
    ),
    case(
        "server.channel.create-existing",
        "Answers 481 when the channel exists",
        "A program that creates its channel at each start must get an answer.",
        "F50 F43",
        connect("a"),
        ask("a", _CREATE, "$ch"),
        ask(
            "a",
            _CREATE,
            "$ch",
            code=Answer(response(481)),
        ),
    ),
    case(
        "server.channel.create-existing-other-case",
        "Compares names of channels without case",
        "Channels that differ in case only would confuse their users.",
        "F46 F50",
        connect("a"),
        ask("a", _CREATE, "$ch-Name"),
        ask("a", _CREATE, "$ch-NAME", code=481),
    ),
    case(
        "server.channel.create-silently",
        "Creates a channel without an answer when R is off",
        "An answer is sent only if it is requested.",
        "F44",
        connect("a"),
        say("a", operation(_CREATE, "$ch", flags="")),
        hear("a", NOTHING),
        ask("a", _CREATE, "$ch", code=481),
    ),
    case(
        "server.channel.no-id-no-answer",
        "Sends no answer to a request without an id",
        "An answer without an id could not be matched.",
        "F41",
        connect("a"),
        say("a", operation(_CREATE, "$ch", message_id="")),
        hear("a", NOTHING),
        ask("a", _CREATE, "$ch", code=481),
    ),
    case(
        "server.channel.bad-json",
        "Answers 400 to options that are not JSON",
        "A mistake in a request must not end the connection.",
        "F43 F71",
        connect("a"),
        ask("a", _CREATE, "$ch", b"{not json", code=400),
        ask("a", _CREATE, "$ch"),
    ),
    case(
        "server.channel.status-as-text",
        "Answers 400 to a status that is a text",
        "Status is a number in JSON, and a word only in headers.",
        "F71 F72",
        connect("a"),
        ask("a", _CREATE, "$ch", b'{"Status":"push"}', code=400),
    ),
    case(
        "server.channel.negative-limit",
        "Answers 400 to a negative limit",
        "A limit below zero has no meaning.",
        "F43 F71",
        connect("a"),
        ask("a", _CREATE, "$ch", b'{"ClientLimit":-1}', code=400),
    ),
    case(
        "server.channel.unknown-authenticator",
        "Answers 406 to an authenticator that is not registered",
        "A channel that is silently not protected is worse than none.",
        "F71",
        connect("a"),
        ask("a", _CREATE, "$ch", b'{"Authenticator":"no-such"}', code=406),
    ),
    case(
        "server.channel.information",
        "Describes a channel with the properties of the model in order",
        "Clients read the models of the protocol.",
        "F52 F65 F67",
        connect("a"),
        ask("a", _CREATE, "$ch"),
        ask(
            "a",
            _INFORMATION,
            "$ch",
            code=Answer(
                response(
                    0,
                    payload=Properties(
                        {
                            "Name": "$ch",
                            "Queues": [],
                            "AllowMultipleQueues": True,
                            "AllowedQueues": None,
                            "RequestAcknowledge": True,
                            "AcknowledgeTimeout": 15_000,
                            "MessageTimeout": 0,
                            "ActiveClients": 0,
                            "ClientLimit": 0,
                            "QueueLimit": 0,
                            "DestroyWhenEmpty": False,
                        },
                        order=_FIELDS,
                    ),
                )
            ),
        ),
        needs="admin",
    ),
    case(
        "server.channel.information-counts",
        "Counts queues and clients in the information",
        "Administrators look at who uses a channel.",
        "F67",
        connect("a"),
        ask("a", _JOIN, "$ch"),
        push("a", queue_message("$ch2", 5)),
        ask(
            "a",
            _INFORMATION,
            "$ch",
            code=Answer(response(0, payload=Properties({"ActiveClients": 1}))),
        ),
        ask(
            "a",
            _INFORMATION,
            "$ch2",
            code=Answer(response(0, payload=Properties({"Queues": [5], "ActiveClients": 0}))),
        ),
        needs="admin",
    ),
    case(
        "server.channel.information-unknown",
        "Answers 404 about a channel that does not exist",
        "A question must not create what it asks about.",
        "F52",
        connect("a"),
        ask("a", _INFORMATION, "$ch", code=404),
        ask("a", _CREATE, "$ch"),
        needs="admin",
    ),
    case(
        "server.channel.remove",
        "Removes a channel with its queues",
        "What is removed can be created again.",
        "F51",
        connect("a"),
        push("a", queue_message("$ch", 1)),
        ask("a", _REMOVE, "$ch"),
        ask("a", _INFORMATION, "$ch", code=404),
        ask("a", _CREATE, "$ch"),
        needs="admin",
    ),
    case(
        "server.channel.remove-unknown",
        "Answers 404 to the removal of an unknown channel",
        "The user wants to know that there was nothing to remove.",
        "F51",
        connect("a"),
        ask("a", _REMOVE, "$ch", code=404),
        needs="admin",
    ),
    case(
        "server.channel.join-creates",
        "Creates a missing channel on Join",
        "A consumer may start before its producer.",
        "F48 F73",
        connect("a"),
        ask("a", _JOIN, "$ch"),
        ask("a", _CREATE, "$ch", code=481),
    ),
    case(
        "server.channel.join-twice",
        "Answers 0 when the client has already joined",
        "A client that joins again after a doubt must not fail.",
        "F48",
        connect("a"),
        ask("a", _JOIN, "$ch"),
        ask("a", _JOIN, "$ch"),
        push("a", queue_message("$ch2", 1)),
        say("a", queue_message("$ch", 1, b"once")),
        hear("a", Answer(delivery("$ch", 1, b"once"))),
    ),
    case(
        "server.channel.join-full",
        "Answers 482 when the channel is full",
        "The limit of clients is a promise.",
        "F48 F64",
        connect("a"),
        connect("b"),
        ask("a", _CREATE, "$ch", b'{"ClientLimit":1}'),
        ask("a", _JOIN, "$ch"),
        ask("b", _JOIN, "$ch", code=482),
        ask("a", _LEAVE, "$ch"),
        ask("b", _JOIN, "$ch"),
    ),
    case(
        "server.channel.join-other-case",
        "Finds the channel without case on Join",
        "Users spell names in their own way.",
        "F46",
        connect("a"),
        ask("a", _JOIN, "$ch-NaMe"),
        say("a", queue_message("$ch-name", 1, b"x")),
        hear("a", Answer(delivery("$ch-name", 1, b"x"))),
    ),
    case(
        "server.channel.leave",
        "Delivers nothing after Leave",
        "A client that has left must not get messages that it cannot handle.",
        "F49",
        connect("a"),
        ask("a", _JOIN, "$ch"),
        ask("a", _LEAVE, "$ch"),
        push("a", queue_message("$ch", 1)),
    ),
    case(
        "server.channel.leave-not-joined",
        "Answers 404 to Leave without Join",
        "The user wants to know about the mistake.",
        "F49",
        connect("a"),
        ask("a", _CREATE, "$ch"),
        ask("a", _LEAVE, "$ch", code=404),
    ),
    case(
        "server.channel.leave-unknown",
        "Answers 404 to Leave of an unknown channel",
        "A question must not create what it asks about.",
        "F49",
        connect("a"),
        ask("a", _LEAVE, "$ch", code=404),
        ask("a", _CREATE, "$ch"),
    ),
    case(
        "server.channel.consumers",
        "Lists the consumers of a channel",
        "Administrators look for who consumes.",
        "F52 F69",
        connect("a", name="n-a", type="t-a"),
        connect("b"),
        ask("a", _JOIN, "$ch"),
        ask(
            "b",
            _CONSUMERS,
            "$ch",
            code=Answer(
                response(
                    0,
                    payload=Properties(
                        each=({"Id": "$a", "Name": "n-a", "Type": "t-a"},), exact=True
                    ),
                )
            ),
        ),
        needs="admin",
    ),
    case(
        "server.channel.consumers-unknown",
        "Answers 404 about the consumers of an unknown channel",
        "A question must not create what it asks about.",
        "F52",
        connect("a"),
        ask("a", _CONSUMERS, "$ch", code=404),
        ask("a", _CREATE, "$ch"),
        needs="admin",
    ),
    case(
        "server.channel.filter-in-target",
        "Reads the filter of the list from the target, too",
        "The specification puts it there.",
        "F52",
        connect("a"),
        ask("a", _CREATE, "$ch"),
        ask(
            "a",
            _LIST,
            "$ch",
            code=Answer(response(0, payload=Properties(each=({"Name": "$ch"},), exact=True))),
        ),
        needs="admin",
        level=Level.SHOULD,
    ),
    case(
        "server.channel.topic",
        "Accepts a topic on Join",
        "Topics describe what a channel is for.",
        "F48",
        connect("a"),
        ask("a", _JOIN, "$ch", headers=[("Channel-Topic", "weather")]),
    ),
    case(
        "server.channel.queue-limit",
        "Answers 482 above the limit of queues",
        "The limit of queues is a maximum.",
        "F64 F54",
        connect("a"),
        ask("a", _CREATE, "$ch", b'{"QueueLimit":2}'),
        ask("a", Operation.CREATE_QUEUE, "$ch", headers=[("Queue-Id", "1")]),
        ask("a", Operation.CREATE_QUEUE, "$ch", headers=[("Queue-Id", "2")]),
        ask("a", Operation.CREATE_QUEUE, "$ch", headers=[("Queue-Id", "3")], code=482),
    ),
    case(
        "server.channel.one-queue-only",
        "Answers 482 to a second queue where one is allowed",
        "AllowMultipleQueues false is a promise.",
        "F54 F64",
        connect("a"),
        ask("a", _CREATE, "$ch", b'{"AllowMultipleQueues":false}'),
        ask("a", Operation.CREATE_QUEUE, "$ch", headers=[("Queue-Id", "1")]),
        ask("a", Operation.CREATE_QUEUE, "$ch", headers=[("Queue-Id", "2")], code=482),
    ),
    case(
        "server.channel.forbidden-queue",
        "Answers 406 to a queue that AllowedQueues does not name",
        "AllowedQueues is a promise.",
        "F54",
        connect("a"),
        ask("a", _CREATE, "$ch", b'{"AllowedQueues":[3]}'),
        ask("a", Operation.CREATE_QUEUE, "$ch", headers=[("Queue-Id", "4")], code=406),
        ask("a", Operation.CREATE_QUEUE, "$ch", headers=[("Queue-Id", "3")]),
    ),
    case(
        "server.channel.destroy-when-empty",
        "Removes a channel with DestroyWhenEmpty when the last client leaves",
        "Channels of one-time conversations must not pile up.",
        "F101",
        connect("a"),
        ask("a", _CREATE, "$ch", b'{"DestroyWhenEmpty":true,"RequestAcknowledge":false}'),
        ask("a", _JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"x")),
        hear("a", Answer(delivery("$ch", 1, b"x"))),
        ask("a", _LEAVE, "$ch"),
        ask("a", _CREATE, "$ch", code=0),
    ),
    case(
        "server.channel.specification-numbers",
        "Understands the specification's numbers",
        "Programs written after the document use them.",
        "F19",
        connect("a"),
        ask("a", DocumentOperation.CREATE_CHANNEL, "$ch"),
        ask("a", DocumentOperation.JOIN, "$ch"),
        ask("a", DocumentOperation.LEAVE, "$ch"),
        level=Level.SHOULD,
    ),
    case(
        "server.channel.channel-name-header-ignored",
        "Ignores Channel-Name where the target names the channel",
        "The original client sends the header with the same name.",
        "F19 F50",
        connect("a"),
        ask("a", _CREATE, "$ch", headers=[("Channel-Name", "$ch2")]),
        ask("a", _CREATE, "$ch", code=481),
        ask("a", _CREATE, "$ch2"),
    ),
    *[_forbidden(*name) for name in _FORBIDDEN],
    *[_option(*option) for option in _OPTIONS],
    *[_filter(*each) for each in _FILTERS],
)
