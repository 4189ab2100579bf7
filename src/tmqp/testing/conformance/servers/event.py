"""Subscriptions to events, and the events themselves."""

from __future__ import annotations

from typing import Final

from tmqp.constants import Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import Expected, Properties
from tmqp.testing.conformance.steps import Answer, Close, Pairs, Step
from tmqp.testing.conformance.talk import (
    NOTHING,
    ask,
    connect,
    create_queue,
    event,
    hear,
    push,
    queue_message,
    response,
    say,
    subscribe,
)

__all__ = ["CASES"]

_CHANNEL: Final = [("Channel-Name", "$ch")]
_QUEUE: Final = [("Channel-Name", "$ch"), ("Queue-Id", "1")]
_ID: Final = [("Queue-Id", "1")]
_QUIET: Final = b'{"RequestAcknowledge":false}'


def _subscribe(name: str, headers: Pairs = (), code: int = 0) -> list[Step]:
    return [say("a", subscribe(name, headers)), hear("a", Answer(response(code)))]


def _channel() -> list[Step]:
    return ask("b", Operation.CREATE_CHANNEL, "$ch")


def _told(
    slug: str, name: str, title: str, headers: Pairs, steps: list[Step], *expected: Expected
) -> Case:
    return case(
        f"server.event.{slug}",
        title,
        "Programs that watch a server act on its events.",
        "F129 F130",
        *connect("a"),
        *connect("b"),
        *_channel(),
        *_subscribe(name, headers),
        *steps,
        hear("a", Answer(*expected)),
        needs="events admin",
    )


_EVENTS: Final = (
    _told(
        "client-joined",
        "ClientJoined",
        "ClientJoined tells who joined the channel",
        _CHANNEL,
        ask("b", Operation.JOIN, "$ch"),
        event("ClientJoined", "$ch", Properties({"Channel": "$ch", "ClientId": "$b"})),
    ),
    _told(
        "client-left",
        "ClientLeft",
        "ClientLeft tells who left the channel",
        _CHANNEL,
        [*ask("b", Operation.JOIN, "$ch"), *ask("b", Operation.LEAVE, "$ch")],
        event("ClientLeft", "$ch", Properties({"Channel": "$ch", "ClientId": "$b"})),
    ),
    _told(
        "client-left-by-disconnecting",
        "ClientLeft",
        "A client that disconnects leaves its channels",
        _CHANNEL,
        [*ask("b", Operation.JOIN, "$ch"), Close("b")],
        event("ClientLeft", "$ch", Properties({"Channel": "$ch", "ClientId": "$b"})),
    ),
    _told(
        "queue-created",
        "QueueCreated",
        "QueueCreated tells of a new queue of the channel",
        _CHANNEL,
        create_queue("b", "$ch", 7, Queue_Status="push", Queue_Tag="tag"),
        event(
            "QueueCreated",
            "$ch",
            Properties({"Channel": "$ch", "Id": 7, "Tag": "tag", "Status": "Push"}),
        ),
    ),
    _told(
        "queue-updated",
        "QueueUpdated",
        "QueueUpdated tells of changed options",
        _CHANNEL,
        [
            *create_queue("b", "$ch", 1, Queue_Status="push"),
            *ask("b", Operation.UPDATE_QUEUE, "$ch", b'{"Status":5}', _ID),
        ],
        event("QueueUpdated", "$ch", Properties({"Id": 1, "Status": "Paused"})),
    ),
    _told(
        "queue-removed",
        "QueueRemoved",
        "QueueRemoved reports the queue as stopped and empty",
        _CHANNEL,
        [
            *create_queue("b", "$ch", 1, _QUIET, Queue_Status="push"),
            *push("b", queue_message("$ch", 1)),
            *ask("b", Operation.REMOVE_QUEUE, "$ch", headers=_ID),
        ],
        event("QueueRemoved", "$ch", Properties({"Id": 1, "Status": "Stopped", "Messages": 0})),
    ),
    case(
        "server.event.message-produced",
        "MessageProduced tells of each message of the queue",
        "A program may watch a queue without consuming.",
        "F129 F130",
        *connect("a"),
        *connect("b"),
        *create_queue("b", "$ch", 1, _QUIET, Queue_Status="push"),
        *_subscribe("MessageProduced", _QUEUE),
        *push("b", queue_message("$ch", 1, message_id="m1")),
        hear(
            "a",
            Answer(
                event(
                    "MessageProduced",
                    "$ch",
                    Properties({"Channel": "$ch", "Queue": 1, "Id": "m1", "ProducerId": "$b"}),
                    content_type=1,
                )
            ),
        ),
        needs="events",
    ),
    case(
        "server.event.channel-created",
        "ChannelCreated tells of a new channel",
        "Programs that watch a server act on its events.",
        "F129 F130",
        *connect("a"),
        *connect("b"),
        *_subscribe("ChannelCreated"),
        *_channel(),
        hear("a", Answer(event("ChannelCreated", "", Properties({"Name": "$ch"})), more=True)),
        needs="events",
        loose=True,
    ),
    case(
        "server.event.channel-removed",
        "ChannelRemoved tells of a removed channel, before the answer",
        "A program that has the answer must have the event, too.",
        "F51 F129",
        *connect("a"),
        *_subscribe("ChannelRemoved"),
        *ask("a", Operation.CREATE_CHANNEL, "$ch"),
        *ask(
            "a",
            Operation.REMOVE_CHANNEL,
            "$ch",
            code=Answer(
                event("ChannelRemoved", "", Properties({"Name": "$ch"})), response(0), more=True
            ),
        ),
        needs="events admin",
        loose=True,
    ),
    case(
        "server.event.client-connected",
        "ClientConnected tells of a new client",
        "Programs that watch a server act on its events.",
        "F36 F129 F130",
        *connect("a"),
        *_subscribe("ClientConnected"),
        *connect("b", name="name-$n", type="type-$n"),
        hear(
            "a",
            Answer(
                event(
                    "ClientConnected",
                    "",
                    Properties({"Id": "$b", "Name": "name-$n", "Type": "type-$n"}),
                ),
                more=True,
            ),
        ),
        needs="events",
        loose=True,
    ),
    case(
        "server.event.client-disconnected",
        "ClientDisconnected reports a disconnected client",
        "Programs that watch a server act on its events.",
        "F102 F129",
        *connect("a"),
        *connect("b"),
        *_subscribe("ClientDisconnected"),
        Close("b"),
        hear(
            "a",
            Answer(event("ClientDisconnected", "", Properties({"Id": "$b"})), more=True),
        ),
        needs="events",
        loose=True,
    ),
)

_FORM: Final = (
    case(
        "server.event.form",
        "An event has no id and no headers, a new time to live and the name as source",
        "Clients find their subscription by source, target and content type.",
        "F129 F131",
        *connect("a"),
        *connect("b"),
        *_channel(),
        *_subscribe("ClientJoined", _CHANNEL),
        *ask("b", Operation.JOIN, "$ch"),
        hear(
            "a",
            Answer(event("ClientJoined", "$ch", message_id="", headers=[], ttl=16, content_type=0)),
        ),
        needs="events",
    ),
    case(
        "server.event.spelling",
        "The target is the channel as the subscriber spelt it",
        "Clients may compare it exactly.",
        "F131 F46",
        *connect("a"),
        *connect("b"),
        *ask("b", Operation.CREATE_CHANNEL, "news-$ch"),
        *_subscribe("ClientJoined", [("Channel-Name", "NEWS-$ch")]),
        *ask("b", Operation.JOIN, "news-$ch"),
        hear("a", Answer(event("ClientJoined", "NEWS-$ch"))),
        needs="events",
    ),
    case(
        "server.event.only-that-channel",
        "A subscriber is notified of its channel only",
        "Others' channels are others' business.",
        "F127 F129",
        *connect("a"),
        *connect("b"),
        *_channel(),
        *_subscribe("ClientJoined", _CHANNEL),
        *ask("b", Operation.JOIN, "$ch2"),
        hear("a", NOTHING),
        needs="events",
    ),
    case(
        "server.event.only-that-queue",
        "A subscriber is notified of its queue only",
        "Others' queues are others' business.",
        "F127 F129",
        *connect("a"),
        *connect("b"),
        *create_queue("b", "$ch", 1, _QUIET, Queue_Status="push"),
        *create_queue("b", "$ch", 2, _QUIET, Queue_Status="push"),
        *_subscribe("MessageProduced", _QUEUE),
        *push("b", queue_message("$ch", 2)),
        hear("a", NOTHING),
        needs="events",
    ),
    case(
        "server.event.unsubscribed",
        "After the end of a subscription no events arrive",
        "A program that has ended its subscription is not prepared for events.",
        "F127",
        *connect("a"),
        *connect("b"),
        *_channel(),
        *_subscribe("ClientJoined", _CHANNEL),
        say("a", subscribe("ClientJoined", _CHANNEL, on=False)),
        hear("a", Answer(response(0))),
        *ask("b", Operation.JOIN, "$ch"),
        hear("a", NOTHING),
        needs="events",
    ),
    case(
        "server.event.subscribed-twice",
        "Two subscriptions of one client to the same events give one event",
        "A program that subscribes at each start must not act twice.",
        "F127 F131",
        *connect("a"),
        *connect("b"),
        *_channel(),
        *_subscribe("ClientJoined", _CHANNEL),
        *_subscribe("ClientJoined", _CHANNEL),
        *ask("b", Operation.JOIN, "$ch"),
        hear("a", Answer(event("ClientJoined", "$ch"))),
        needs="events",
    ),
)


def _refused(slug: str, title: str, name: str, headers: Pairs, code: int) -> Case:
    return case(
        f"server.event.{slug}",
        title,
        "A program that waits for events must learn that none will come.",
        "F127 F128",
        *connect("a"),
        *_subscribe(name, headers, code),
        needs="events",
    )


_REFUSED: Final = (
    _refused("unknown", "An unknown event is answered with 404", "NoSuchEvent", (), 404),
    _refused("name-case", "Names of events are compared exactly", "clientjoined", _CHANNEL, 404),
    _refused(
        "no-channel",
        "A subscription without the channel that it needs is answered with 1",
        "ClientJoined",
        (),
        1,
    ),
    _refused(
        "unknown-channel",
        "A subscription to an unknown channel is answered with 1",
        "ClientJoined",
        _CHANNEL,
        1,
    ),
    case(
        "server.event.unknown-queue",
        "A subscription to an unknown queue is answered with 1",
        "A program that waits for events must learn that none will come.",
        "F128",
        *connect("a"),
        *connect("b"),
        *_channel(),
        *_subscribe("MessageProduced", _QUEUE, 1),
        needs="events",
    ),
    case(
        "server.event.answered-without-r",
        "A subscription is answered without the flag R, too",
        "The original client does not set it.",
        "F127",
        *connect("a"),
        say("a", subscribe("ClientConnected", flags="")),
        hear("a", Answer(response(0))),
        say("a", subscribe("ClientConnected", flags="R")),
        hear("a", Answer(response(0))),
        needs="events",
    ),
)

CASES: Final[tuple[Case, ...]] = (*_EVENTS, *_FORM, *_REFUSED)
