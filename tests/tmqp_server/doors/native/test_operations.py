"""Operations through the native door: both numberings, each way of asking, every refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.tmqp_server.peers import Peer, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import (
    DOCUMENT_OPERATION_OF_WIRE,
    MessageType,
    Operation,
    ResultCode,
)
from tmqp.extensions import ExtensionOperation
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import BrokerOptions

QUEUE = [("Queue-Id", "1")]

#: For each operation that is served: what to say so that it succeeds, channel ``c`` with queue 1
#: being there.
SERVED: dict[int, dict[str, Any]] = {
    Operation.JOIN: {"target": "c"},
    Operation.LEAVE: {"target": "joined"},
    Operation.CREATE_CHANNEL: {"target": "new"},
    Operation.REMOVE_CHANNEL: {"target": "c"},
    Operation.CHANNEL_INFORMATION: {"target": "c"},
    Operation.CHANNEL_LIST: {},
    Operation.CHANNEL_CONSUMERS: {"target": "c"},
    Operation.CREATE_QUEUE: {"target": "c", "headers": [("Queue-Id", "2")]},
    Operation.REMOVE_QUEUE: {"target": "c", "headers": QUEUE},
    Operation.UPDATE_QUEUE: {"target": "c", "headers": QUEUE, "payload": b"{}"},
    Operation.CLEAR_MESSAGES: {"target": "c", "headers": [*QUEUE, ("Messages", "yes")]},
    ExtensionOperation.BROWSE: {"target": "c", "headers": [*QUEUE, ("State", "in-flight")]},
    ExtensionOperation.REMOVE_MESSAGE: {
        "target": "waits",
        "headers": [*QUEUE, ("Message-Id", "waiting")],
    },
    ExtensionOperation.CANCEL_MESSAGE: {
        "target": "c",
        "headers": [*QUEUE, ("Message-Id", "deferred")],
    },
    Operation.QUEUE_INFORMATION: {"target": "c", "headers": QUEUE},
    Operation.QUEUE_LIST: {"target": "c"},
    Operation.INSTANCE_LIST: {},
    Operation.CLIENT_LIST: {},
    Operation.LIST_ROUTERS: {},
    Operation.CREATE_ROUTER: {"target": "new"},
    Operation.REMOVE_ROUTER: {"target": "r"},
    Operation.LIST_BINDINGS: {"target": "r"},
    Operation.ADD_BINDING: {"target": "r", "payload": b'{"Name":"c","Target":"c","BindingType":1}'},
    Operation.REMOVE_BINDING: {"target": "r", "headers": [("Binding-Name", "b")]},
    ExtensionOperation.SET_ROUTER_ENABLED: {"target": "r", "headers": [("Router-Enabled", "0")]},
    ExtensionOperation.DESCRIBE_SERVER: {},
    ExtensionOperation.UPDATE_CHANNEL: {"target": "c", "payload": b"{}"},
}
#: Operations on routers are answered by a Response whatever is asked for (F60).
ROUTERS = range(Operation.LIST_ROUTERS, ExtensionOperation.SET_ROUTER_ENABLED + 1)
INFORMATION = (
    ExtensionOperation.DESCRIBE_SERVER,
    Operation.CHANNEL_INFORMATION,
    Operation.CHANNEL_LIST,
    Operation.CHANNEL_CONSUMERS,
    Operation.QUEUE_INFORMATION,
    Operation.QUEUE_LIST,
    Operation.INSTANCE_LIST,
    Operation.CLIENT_LIST,
    Operation.LIST_ROUTERS,
    Operation.LIST_BINDINGS,
)


def numbers() -> Iterator[tuple[int, int]]:
    """Each served operation, by each of its numbers."""
    for wire in SERVED:
        yield wire, wire
        if wire in DOCUMENT_OPERATION_OF_WIRE:
            yield wire, DOCUMENT_OPERATION_OF_WIRE[wire]


def ready(limits: Limits | None = None) -> tuple[World, Peer]:
    """A world with channel ``c`` and queue 1, a client that has joined another."""
    world = World() if limits is None else World(limits=limits)
    peer = Peer(world, "me", ["joined"])
    assert peer.ask(Operation.CREATE_QUEUE, "c", headers=QUEUE).content_type == 0
    assert peer.ask(Operation.CREATE_ROUTER, "r").content_type == 0
    binding = b'{"Name":"b","Target":"c","BindingType":1}'
    assert peer.ask(Operation.ADD_BINDING, "r", binding).content_type == 0
    peer.say(push("c", 1, message_id="deferred", headers=[("Delay", "60000")]))
    return world, peer


def ready_for(wire: int) -> Peer:
    """The client of such a world, with what this operation is about."""
    _, peer = ready()
    if wire == ExtensionOperation.REMOVE_MESSAGE:
        assert peer.ask(Operation.CREATE_QUEUE, "waits", headers=QUEUE).content_type == 0
        peer.say(push("waits", 1, message_id="waiting"))
    return peer


@pytest.mark.parametrize(("wire", "number"), list(numbers()))
def test_each_operation_succeeds_by_each_of_its_numbers(wire: int, number: int) -> None:
    """F19, F44: a Response with the request's id and the client as target."""
    peer = ready_for(wire)
    request = dict(SERVED[wire])
    peer.say(operation(number, request.pop("target", ""), message_id="x", **request))
    (answer,) = peer.take()
    assert answer.type == MessageType.RESPONSE
    assert answer.message_id == "x"
    assert answer.target == "me"
    assert answer.source == ""
    assert answer.content_type == 0
    assert answer.ttl == 16
    assert not answer.has_header
    assert bool(answer.payload) is (wire in INFORMATION)
    if wire in INFORMATION:
        json.loads(answer.payload)


@pytest.mark.parametrize("wire", SERVED)
@pytest.mark.parametrize(("response", "acknowledge"), [(True, False), (False, True), (True, True)])
def test_an_answer_comes_in_each_way_that_is_asked_for(
    wire: int, response: bool, acknowledge: bool
) -> None:
    """F44: the original knows responses only, the specification promises acknowledges."""
    peer = ready_for(wire)
    request = dict(SERVED[wire])
    target = request.pop("target", "")
    peer.say(
        operation(
            wire,
            target,
            message_id="x",
            pending_response=response,
            pending_acknowledge=acknowledge,
            first_acquirer=True,
            **request,
        )
    )
    answers = peer.take()
    kinds = [answer.type for answer in answers]
    response = response or wire in ROUTERS
    wanted = [MessageType.RESPONSE] * response + [MessageType.ACKNOWLEDGE] * acknowledge
    assert kinds == wanted
    assert all(answer.message_id == "x" and answer.first_acquirer for answer in answers)
    if acknowledge:
        assert answers[-1].target == target
        assert answers[-1].content_type == 0
        assert answers[-1].payload == b""
        assert not answers[-1].has_header


@pytest.mark.parametrize("wire", SERVED)
def test_nobody_is_answered_who_did_not_ask(wire: int) -> None:
    _, peer = ready()
    request = dict(SERVED[wire])
    peer.say(operation(wire, request.pop("target", ""), pending_response=False, **request))
    assert len(peer.take()) == (1 if wire in ROUTERS else 0)
    assert peer.open


@pytest.mark.parametrize("wire", [*SERVED, 9_999])
def test_an_anonymous_operation_is_done_and_never_answered(wire: int) -> None:
    """F41: no answer could be matched."""
    _, peer = ready()
    request = dict(SERVED.get(wire, {}))
    target = request.pop("target", "")
    peer.say(operation(wire, target, message_id="", pending_acknowledge=True, **request))
    assert peer.take() == []
    if wire == Operation.CREATE_CHANNEL:
        assert peer.ask(Operation.CHANNEL_INFORMATION, "new").content_type == 0


def test_flags_of_the_request_are_copied() -> None:
    _, peer = ready()
    for first, high in ((False, False), (True, False), (False, True), (True, True)):
        answer = peer.ask(Operation.CHANNEL_LIST, first_acquirer=first, high_priority=high)
        assert (answer.first_acquirer, answer.high_priority) == (first, high)


# --- Refusals ------------------------------------------------------------------------------------

LONG = "x" * 256
BAD_NAMES = ("", " ", "a b", "a;b", "a@b", "a*", "a\r\nb", "a\tb", "a\0b")

REFUSED: list[tuple[str, int, dict[str, Any], int]] = [
    *[(f"name {n!r}", 603, {"target": n}, 400) for n in BAD_NAMES],
    *[(f"join {n!r}", 601, {"target": n}, 400) for n in BAD_NAMES],
    *[(f"queue {n!r}", 610, {"target": n, "headers": QUEUE}, 400) for n in BAD_NAMES],
    ("no state", 701, {"target": "r"}, 400),
    ("no state's word", 701, {"target": "r", "headers": [("Router-Enabled", "yes")]}, 400),
    ("no router", 701, {"target": "R", "headers": [("Router-Enabled", "1")]}, 404),
    *[(f"without storage {n}", n, {"target": "c", "headers": QUEUE}, 501) for n in (712, 714)],
    ("offsets without storage", 711, {}, 501),
    *[(f"no queue {n}", n, {"target": "c"}, 406) for n in (712, 713, 714, 715)],
    *[
        (
            f"range {headers}",
            712,
            {"target": "c", "headers": [*QUEUE, *headers]},
            400,
        )
        for headers in (
            [("From", "x")],
            [("From", "-1")],
            [("To", str(2**63))],
            [("From", "5"), ("To", "4")],
            [("Limit", "1.5")],
            [("Max-Bytes", "")],
        )
    ],
    *[
        (
            f"cursor {headers}",
            713,
            {"target": "c", "headers": [*QUEUE, *headers]},
            400,
        )
        for headers in (
            [("Sequence", "1")],
            [("Cursor", "r")],
            [("Cursor", " "), ("Sequence", "1")],
            [("Cursor", "r"), ("Start", "middle")],
            [("Cursor", "r"), ("Start", "latest"), ("Sequence", "1")],
        )
    ],
    ("offsets of no queue", 711, {"headers": [("Queue-Id", "65536")]}, 400),
    ("drop no cursor", 715, {"target": "c", "headers": QUEUE}, 400),
    ("exists", 603, {"target": "C"}, 481),
    ("queue exists", 610, {"target": "c", "headers": QUEUE}, 481),
    ("not joined", 602, {"target": "c"}, 404),
    ("leave unknown", 602, {"target": "nowhere"}, 404),
    ("remove unknown", 604, {"target": "nowhere"}, 404),
    ("describe unknown", 605, {"target": "nowhere"}, 404),
    ("consumers of unknown", 607, {"target": "nowhere"}, 404),
    ("queues of unknown", 616, {"target": "nowhere"}, 404),
    ("remove unknown queue", 611, {"target": "c", "headers": [("Queue-Id", "9")]}, 404),
    (
        "update unknown queue",
        612,
        {"target": "c", "headers": [("Queue-Id", "9")], "payload": b"{}"},
        404,
    ),
    ("clear unknown queue", 613, {"target": "c", "headers": [("Queue-Id", "9")]}, 404),
    ("describe unknown queue", 615, {"target": "c", "payload": b"\x09\x00"}, 404),
    ("update without a body", 612, {"target": "c", "headers": QUEUE}, 400),
    *[
        (f"no queue id {number}", number, {"target": "c", "payload": b"{ }"}, 406)
        for number in (610, 611, 612, 613, 615)
    ],
    ("queue id in a long body", 611, {"target": "c", "payload": b"\x01\x00\x00"}, 406),
    *[
        (f"queue id {text!r}", 615, {"target": "c", "headers": [("Queue-Id", text)]}, 400)
        for text in ("", " ", "x", "-1", "65536", "1.0", "0x1", "\u0661", "9" * 400, "1 2")
    ],
    *[
        (
            f"status {word!r}",
            610,
            {"target": "c", "headers": [("Queue-Id", "5"), ("Queue-Status", word)]},
            400,
        )
        for word in ("fast", "4", "push push", "\u017ftop")
    ],
    *[
        (f"body {body[:20]!r}", 603, {"target": "new", "payload": body}, 400)
        for body in (
            b"{",
            b"[]",
            b"null",
            b"1",
            b'"x"',
            b"\xff",
            b'{"Status":7}',
            b'{"Status":"push"}',
            b'{"ClientLimit":"1"}',
            b'{"ClientLimit":1.5}',
            b'{"AllowedQueues":[70000]}',
            b'{"AllowedQueues":{}}',
            b"{" * 5_000,
            b'{"a":' + b"1" * 5_000 + b"}",
            b'{"AcknowledgeTimeout":-1}',
        )
    ],
    ("queue body", 610, {"target": "c", "headers": [("Queue-Id", "5")], "payload": b"[]"}, 400),
    ("update body", 612, {"target": "c", "headers": QUEUE, "payload": b"nonsense"}, 400),
    (
        "handler",
        610,
        {"target": "c", "headers": [("Queue-Id", "5"), ("Delivery-Handler", "nobody")]},
        406,
    ),
    (
        "timeout",
        612,
        {"target": "c", "headers": QUEUE, "payload": b'{"AcknowledgeTimeout":2000000000}'},
        482,
    ),
    (
        "http binding",
        662,
        {"target": "r", "payload": b'{"Name":"b","Target":"http://x/","BindingType":2}'},
        501,
    ),
    *[(f"no operation {number}", number, {}, 400) for number in (0, 1, 102, 200, 401, 600, 65_535)],
]


@pytest.mark.parametrize(
    ("number", "request_", "code"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_what_cannot_be_done_is_answered_and_the_connection_stays(
    number: int, request_: dict[str, Any], code: int
) -> None:
    """F43."""
    world, peer = ready()
    before = world.broker.statistics()
    request = dict(request_)
    target = request.pop("target", "")
    peer.say(operation(number, target, message_id="x", pending_acknowledge=True, **request))
    response, acknowledge = peer.take()
    assert (response.type, response.content_type) == (MessageType.RESPONSE, code)
    assert response.payload == b""
    assert acknowledge.type == MessageType.ACKNOWLEDGE
    word = ResultCode(code).name.lower().replace("_", "-")
    assert acknowledge.headers == [("Nack-Reason", word)]
    assert peer.open
    after = world.broker.statistics()
    assert (after.channels, after.queues) == (before.channels, before.queues)


def test_the_limits_of_the_broker_are_answered_with_482() -> None:
    limited = World(engine_limits=EngineLimits(max_channels=1, max_queues_per_channel=1))
    peer = Peer(limited, "a")
    assert peer.ask(Operation.CREATE_CHANNEL, "one").content_type == 0
    assert peer.ask(Operation.CREATE_CHANNEL, "two").content_type == 482
    assert peer.ask(Operation.CREATE_QUEUE, "one", headers=QUEUE).content_type == 0
    assert peer.ask(Operation.CREATE_QUEUE, "one", headers=[("Queue-Id", "2")]).content_type == 482
    peer.say(push("two", 1, "m", pending_acknowledge=True))
    response, nack = peer.take()
    assert (response.content_type, response.target) == (482, "two")
    assert nack.header("nack-reason") == "limit-exceeded"


def test_an_answer_larger_than_a_message_may_be_is_a_limit_too() -> None:
    """It would have ended the connection of a client with the same limits as the server."""
    _, peer = ready(Limits(max_payload_bytes=1_000))
    assert peer.ask(Operation.CHANNEL_LIST).content_type == 0
    assert peer.ask(Operation.QUEUE_LIST, "c").content_type == 0
    for number in range(3):
        peer.ask(Operation.CREATE_CHANNEL, f"channel-{number}")
    refused = peer.ask(Operation.CHANNEL_LIST)
    assert (refused.content_type, refused.payload) == (482, b"")
    assert peer.ask(Operation.CHANNEL_LIST, "channel-1").content_type == 0
    _, small = ready(Limits(max_payload_bytes=100))
    assert small.ask(Operation.QUEUE_INFORMATION, "c", b"\1\0").content_type == 482


def test_the_largest_answer_that_fits_is_given() -> None:
    _, peer = ready()
    peer.ask(Operation.CREATE_CHANNEL, "d")
    size = len(peer.ask(Operation.CHANNEL_LIST).payload)
    for most, code in ((size, 0), (size - 1, 482)):
        _, other = ready(Limits(max_payload_bytes=most))
        other.ask(Operation.CREATE_CHANNEL, "d")
        assert other.ask(Operation.CHANNEL_LIST).content_type == code


# --- What operations say -------------------------------------------------------------------------


def test_a_queue_id_stands_in_the_header_or_in_two_bytes() -> None:
    """F57; the header counts if there are both."""
    _, peer = ready()
    for number in (258, 3):
        headers = [("Queue-Id", str(number))]
        assert peer.ask(Operation.CREATE_QUEUE, "c", headers=headers).content_type == 0

    def shown(payload: bytes = b"", *headers: tuple[str, str]) -> int:
        answer = peer.ask(Operation.QUEUE_INFORMATION, "c", payload, headers=headers)
        found: int = json.loads(answer.payload)["Id"]
        return found

    assert shown(b"\x02\x01") == 258
    assert shown(b"", ("queue-ID", " 3 ")) == 3
    assert shown(b"\x02\x01", ("Queue-Id", "3")) == 3
    assert shown(b"", ("Queue-Id", "00003")) == 3


def test_headers_win_over_the_body_of_a_new_queue() -> None:
    """F54."""
    _, peer = ready()
    body = (
        b'{"Status":3,"WaitForAcknowledge":true,"MessageLimit":7,"MessageDeliveryHandler":"reject"}'
    )
    headers = [
        ("Queue-Id", "7"),
        ("queue-status", " Round-Robin "),
        ("Wait-For-Acknowledge", "no"),
        ("Delivery-Handler", "allow-all"),
        ("Queue-Tag", "a tag"),
    ]
    assert peer.ask(Operation.CREATE_QUEUE, "c", body, headers=headers).content_type == 0
    shown = json.loads(peer.ask(Operation.QUEUE_INFORMATION, "c", b"\7\0").payload)
    assert shown["Status"] == "roundrobin"
    assert shown["WaitForAcknowledge"] is False
    assert shown["MessageLimit"] == 7
    assert shown["TagName"] == "a tag"


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("1", True), ("true", True), (" TRUE ", True), ("yes", False), ("0", False)],
)
def test_the_words_for_waiting(word: str, wanted: bool) -> None:
    _, peer = ready()
    headers = [("Queue-Id", "7"), ("Wait-For-Acknowledge", word)]
    assert peer.ask(Operation.CREATE_QUEUE, "c", headers=headers).content_type == 0
    shown = json.loads(peer.ask(Operation.QUEUE_INFORMATION, "c", b"\7\0").payload)
    assert shown["WaitForAcknowledge"] is wanted


def test_empty_headers_say_nothing() -> None:
    _, peer = ready()
    empty = ("Queue-Status", "Wait-For-Acknowledge", "Queue-Tag", "Delivery-Handler")
    headers = [("Queue-Id", "7"), *[(key, "") for key in empty]]
    assert peer.ask(Operation.CREATE_QUEUE, "c", headers=headers).content_type == 0
    shown = json.loads(peer.ask(Operation.QUEUE_INFORMATION, "c", b"\7\0").payload)
    assert (shown["Status"], shown["TagName"]) == ("push", None)


def test_updating_changes_what_is_given_and_nothing_else() -> None:
    _, peer = ready()
    body = b'{"AcknowledgeTimeout":123,"HideClientNames":true}'
    assert peer.ask(Operation.UPDATE_QUEUE, "c", body, headers=QUEUE).content_type == 0
    headers = [*QUEUE, ("Queue-Status", "paused")]
    assert peer.ask(Operation.UPDATE_QUEUE, "c", b"{}", headers=headers).content_type == 0
    shown = json.loads(peer.ask(Operation.QUEUE_INFORMATION, "c", b"\1\0").payload)
    assert (shown["AcknowledgeTimeout"], shown["HideClientNames"]) == (123, True)
    assert (shown["Status"], shown["RequestAcknowledge"]) == ("paused", True)


@pytest.mark.parametrize(
    ("high", "regular", "left"),
    [("yes", None, (0, 2)), (None, " YES ", (1, 0)), ("yes", "yes", (0, 0)), ("no", None, (1, 2))],
)
def test_clearing_takes_what_it_is_told(
    high: str | None, regular: str | None, left: tuple[int, int]
) -> None:
    """F58."""
    _, peer = ready()
    peer.say(push("c", 1, "a"), push("c", 1, "b"), push("c", 1, "h", high_priority=True))
    headers = list(QUEUE)
    if high is not None:
        headers.append(("Priority-Messages", high))
    if regular is not None:
        headers.append(("messages", regular))
    assert peer.ask(Operation.CLEAR_MESSAGES, "c", headers=headers).content_type == 0
    shown = json.loads(peer.ask(Operation.QUEUE_INFORMATION, "c", b"\1\0").payload)
    assert (shown["PriorityMessages"], shown["Messages"]) == left


def test_a_list_is_filtered_by_header_or_target() -> None:
    """F52, F53; a filter full of wildcards costs no time (G7 of the reliability cases)."""
    _, peer = ready()

    def names(target: str = "", **more: Any) -> list[str]:
        answer = peer.ask(Operation.CHANNEL_LIST, target, **more)
        return [item["Name"] for item in json.loads(answer.payload)]

    assert names() == ["joined", "c"]
    assert names("C") == ["c"]
    assert names("*i*") == ["joined"]
    assert names("c", headers=[("Channel-Name", "j*")]) == ["joined"]
    assert names("*" * 255) == []
    assert names("a*b*" * 60) == []


def test_auto_creation_can_be_off() -> None:
    world = World(BrokerOptions(auto_channel_creation=False, auto_queue_creation=False))
    peer = Peer(world, "a")
    assert peer.ask(Operation.JOIN, "c").content_type == 404
    assert peer.ask(Operation.CREATE_CHANNEL, "c").content_type == 0
    assert peer.ask(Operation.CREATE_QUEUE, "d", headers=QUEUE).content_type == 0  # both asked for
    peer.say(push("c", 1, "m"))
    (answer,) = peer.take()
    assert (answer.type, answer.content_type) == (MessageType.RESPONSE, 404)


# --- What finds nothing --------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [False, True])
def test_direct_messages_and_subscriptions_are_told_that_there_is_nothing(asked: bool) -> None:
    """F115, F127."""
    _, peer = ready()
    for kind in (MessageType.DIRECT_MESSAGE, MessageType.EVENT):
        peer.say(Frame.build(kind, "x", 1, message_id="m", pending_response=asked))
        assert [answer.content_type for answer in peer.take()] == [404]
        peer.say(Frame.build(kind, "x", 1, pending_response=asked))
        assert peer.take() == []
    assert peer.open


def test_a_router_that_does_not_exist_is_answered_as_asked() -> None:
    """F123."""
    _, peer = ready()
    message = Frame.build(MessageType.ROUTER, "r", 7, message_id="m")
    peer.say(message)
    assert peer.take() == []
    peer.say(message.replace(pending_response=True))
    (answer,) = peer.take()
    assert (answer.type, answer.content_type, answer.target) == (MessageType.RESPONSE, 404, "me")
    both = Frame.build(
        MessageType.ROUTER, "r", 7, message_id="m", pending_response=True, pending_acknowledge=True
    )
    peer.say(both)
    (answer,) = peer.take()
    assert (answer.type, answer.content_type, answer.target) == (MessageType.ACKNOWLEDGE, 7, "r")
    assert answer.headers == [("Nack-Reason", "no-consumers")]
    peer.say(both.replace(message_id=""))
    assert peer.take() == []


@pytest.mark.parametrize(
    ("message_id", "reason", "told_as"),
    [
        ("p", "Unacceptable", "p"),
        ("", "Id-Required", ""),
        ("a\r\nNo-Content:End", "Id-Required", ""),
        ("a\nb", "Id-Required", ""),
        ("\r", "Id-Required", ""),
    ],
)
def test_a_pull_is_refused_in_the_form_of_a_refusal(
    message_id: str, reason: str, told_as: str
) -> None:
    """F105, F106: an id with a line's end in it raised instead."""
    _, peer = ready()
    peer.say(Frame.build(MessageType.PULL_REQUEST, "c", 1, message_id=message_id))
    (answer,) = peer.take()
    assert answer.type == MessageType.QUEUE_MESSAGE
    assert (answer.message_id, answer.target, answer.content_type) == (told_as, "c", 1)
    assert answer.headers == [("Request-Id", told_as), ("No-Content", reason)]
    assert (answer.source, answer.payload) == ("", b"")
    assert peer.open


def test_what_is_nobodys_business_is_passed_over() -> None:
    """F17: custom and unknown types, responses to nobody."""
    _, peer = ready()
    for kind in (MessageType.CUSTOM, MessageType.RESPONSE, 0x3F, 0x01):
        peer.say(Frame.build(kind, "nobody", 1, b"x", message_id="m", pending_response=True))
        assert peer.take() == []
    assert peer.open
