"""Routers, their bindings, and the messages published to them."""

from __future__ import annotations

import json
from typing import Any, Final

from tmqp.constants import TYPE_DIRECT_MESSAGE, Operation
from tmqp.testing.conformance.cases import Case, case
from tmqp.testing.conformance.patterns import GENERATED, NoHeader, Pattern, Properties
from tmqp.testing.conformance.steps import Answer, Step
from tmqp.testing.conformance.talk import (
    NOTHING,
    acknowledgement,
    ask,
    connect,
    create_queue,
    delivery,
    event,
    hear,
    response,
    route,
    say,
    subscribe,
)

__all__ = ["CASES"]

_QUIET: Final = b'{"RequestAcknowledge":false}'
_DIRECT: Final = 0
_QUEUE: Final = 1
_TAG: Final = 3
_DISTRIBUTE: Final = 0
_ROUND_ROBIN: Final = 1
_ONLY_FIRST: Final = 2


def _router(method: int | None = None) -> list[Step]:
    headers = [] if method is None else [("Route-Method", str(method))]
    return ask("a", Operation.CREATE_ROUTER, "$rt", headers=headers)


def _binding(
    name: str,
    target: str,
    kind: int = _QUEUE,
    *,
    content_type: int | None = 1,
    priority: int = 0,
    interaction: int = 0,
    method: int = 0,
    code: int = 0,
    router: str = "$rt",
) -> list[Step]:
    body: dict[str, Any] = {
        "Name": name,
        "Target": target,
        "ContentType": content_type,
        "Priority": priority,
        "Interaction": interaction,
        "BindingType": kind,
        "Method": method,
    }
    return ask("a", Operation.ADD_BINDING, router, json.dumps(body).encode(), code=code)


def _queues(*channels: str) -> list[Step]:
    """A consumer for each channel, on the line ``c``."""
    steps = connect("c")
    for channel in channels:
        steps += create_queue("a", channel, 1, _QUIET, Queue_Status="push")
        steps += ask("c", Operation.JOIN, channel)
    return steps


def _unreached(slug: str, title: str, *steps: list[Step]) -> tuple[Case, ...]:
    why = "A publisher that waits for an answer must learn that no receiver got its message."
    before = [step for each in steps for step in each]
    return (
        case(
            f"server.router.{slug}-acknowledge",
            f"{title}: the publisher's acknowledgement is negative",
            why,
            "F123",
            *connect("a"),
            *before,
            say("a", route("$rt", 3, flags="A")),
            hear(
                "a",
                Answer(acknowledgement("$rt", 3, nack="no-consumers")),
            ),
            needs="router",
        ),
        case(
            f"server.router.{slug}-response",
            f"{title}: the publisher's response is 404",
            why,
            "F123",
            *connect("a"),
            *before,
            say("a", route("$rt", 3, flags="R")),
            hear("a", Answer(response(404))),
            needs="router",
        ),
        case(
            f"server.router.{slug}-silent",
            f"{title}: a publisher that asked for nothing gets nothing",
            "An unexpected answer is noise.",
            "F123",
            *connect("a"),
            *before,
            say("a", route("$rt", 3)),
            hear("a", NOTHING),
            needs="router",
        ),
    )


_MANAGED: Final = (
    case(
        "server.router.create-twice",
        "Creating a router that exists is answered with 0 and changes nothing",
        "Programs declare their routers at each start.",
        "F60",
        *connect("a"),
        *_router(_ONLY_FIRST),
        *_router(_DISTRIBUTE),
        *ask(
            "a",
            Operation.LIST_ROUTERS,
            code=Answer(
                response(0, payload=Properties(each=({"Name": "$rt", "Method": _ONLY_FIRST},)))
            ),
        ),
        needs="router",
    ),
    case(
        "server.router.method-out-of-range",
        "An unknown method of a router is answered with 400",
        "A method that the server does not have would do something else.",
        "F60",
        *connect("a"),
        *ask(
            "a",
            Operation.CREATE_ROUTER,
            "$rt",
            headers=[("Route-Method", "7")],
            code=400,
        ),
        needs="router",
    ),
    case(
        "server.router.remove",
        "A removed router no longer exists",
        "Messages must not go where an operator has ended it.",
        "F60 F123",
        *connect("a"),
        *_queues("$q1"),
        *_router(),
        *_binding("one", "$q1"),
        *ask("a", Operation.REMOVE_ROUTER, "$rt"),
        say("a", route("$rt", 1, flags="R")),
        hear("a", Answer(response(404))),
        hear("c", NOTHING),
        needs="router",
    ),
    case(
        "server.router.remove-unknown",
        "Removing an unknown router is answered with 0",
        "Removed routers must not receive messages.",
        "F60",
        *connect("a"),
        *ask("a", Operation.REMOVE_ROUTER, "$rt"),
        needs="router",
    ),
    case(
        "server.router.bindings-listed",
        "Bindings are listed with all their properties",
        "An operator must see where messages go.",
        "F60 F121",
        *connect("a"),
        *_router(),
        *_binding("one", "$q1", priority=4, interaction=1),
        *ask(
            "a",
            Operation.LIST_BINDINGS,
            "$rt",
            code=Answer(
                response(
                    0,
                    payload=Properties(
                        each=(
                            {
                                "Name": "one",
                                "Target": "$q1",
                                "ContentType": 1,
                                "Priority": 4,
                                "Interaction": 1,
                                "BindingType": _QUEUE,
                            },
                        ),
                        exact=True,
                    ),
                )
            ),
        ),
        needs="router",
    ),
    case(
        "server.router.binding-to-unknown-router",
        "A binding for an unknown router is answered with 404",
        "A mistyped name must not go unnoticed.",
        "F60",
        *connect("a"),
        *_binding("one", "$q1", code=404),
        needs="router",
    ),
    case(
        "server.router.binding-twice",
        "Adding a binding with an existing name changes nothing",
        "Programs declare their bindings at each start.",
        "F61",
        *connect("a"),
        *_queues("$q1", "$q2"),
        *_router(),
        *_binding("one", "$q1"),
        *_binding("one", "$q2"),
        say("a", route("$rt", 1)),
        hear("c", Answer(delivery("$q1", 1))),
        needs="router",
    ),
    case(
        "server.router.binding-removed",
        "A removed binding gets nothing more",
        "Messages must not go where an operator has ended it.",
        "F60",
        *connect("a"),
        *_queues("$q1", "$q2"),
        *_router(),
        *_binding("one", "$q1"),
        *_binding("two", "$q2"),
        *ask("a", Operation.REMOVE_BINDING, "$rt", headers=[("Binding-Name", "one")]),
        say("a", route("$rt", 1)),
        hear("c", Answer(delivery("$q2", 1))),
        needs="router",
    ),
    case(
        "server.router.binding-unknown",
        "Removing an unknown binding is answered with 404",
        "A mistyped name must not go unnoticed.",
        "F60",
        *connect("a"),
        *_router(),
        *ask("a", Operation.REMOVE_BINDING, "$rt", headers=[("Binding-Name", "x")], code=404),
        needs="router",
    ),
    case(
        "server.router.name-case",
        "Names of routers are compared exactly",
        "Two routers may differ by case only.",
        "F46",
        *connect("a"),
        *ask("a", Operation.CREATE_ROUTER, "Router-$rt"),
        say("a", route("router-$rt", 1, flags="R")),
        hear("a", Answer(response(404))),
        needs="router",
    ),
)

_METHODS: Final = (
    case(
        "server.router.distribute",
        "Distribute reaches all bindings",
        "One message feeds several queues.",
        "F120 F123 F124",
        *connect("a"),
        *_queues("$q1", "$q2"),
        *_router(_DISTRIBUTE),
        *_binding("one", "$q1"),
        *_binding("two", "$q2"),
        say("a", route("$rt", 1, b"x")),
        hear("c", Answer(delivery("$q1", 1, b"x"), delivery("$q2", 1, b"x"), ordered=False)),
        needs="router",
    ),
    case(
        "server.router.only-first",
        "OnlyFirst reaches the binding with the highest priority",
        "A main place has others that stand by.",
        "F120 F122",
        *connect("a"),
        *_queues("$q1", "$q2"),
        *_router(_ONLY_FIRST),
        *_binding("low", "$q1", priority=1),
        *_binding("high", "$q2", priority=2),
        say("a", route("$rt", 1)),
        hear("c", Answer(delivery("$q2", 1))),
        needs="router",
    ),
    case(
        "server.router.round-robin",
        "RoundRobin gives bindings turns in the order of their priority",
        "Messages are shared evenly, and predictably.",
        "F120 F122",
        *connect("a"),
        *_queues("$q1", "$q2"),
        *_router(_ROUND_ROBIN),
        *_binding("one", "$q1", priority=2),
        *_binding("two", "$q2", priority=1),
        say("a", *[route("$rt", 1, text) for text in (b"1", b"2", b"3", b"4")]),
        hear(
            "c",
            Answer(
                delivery("$q1", 1, b"1"),
                delivery("$q2", 1, b"2"),
                delivery("$q1", 1, b"3"),
                delivery("$q2", 1, b"4"),
                ordered=False,
            ),
        ),
        needs="router",
    ),
    case(
        "server.router.only-first-passes-over",
        "OnlyFirst continues with the next binding when the first has no receiver",
        "A standby takes over when the first is missing.",
        "F120 F122",
        *connect("a"),
        *_queues("$q1"),
        *_router(_ONLY_FIRST),
        *_binding("gone", "$nobody", _DIRECT, priority=2, content_type=None),
        *_binding("queue", "$q1", priority=1),
        say("a", route("$rt", 1, b"x")),
        hear("c", Answer(delivery("$q1", 1, b"x"))),
        needs="router",
    ),
)

_BINDINGS: Final = (
    case(
        "server.router.queue-binding-copy",
        "A queue binding pushes a copy with a new id and the publisher as source",
        "The same message may reach a queue by several ways.",
        "F124 F12",
        *connect("a"),
        *_queues("$q1"),
        *_router(),
        *_binding("one", "$q1"),
        say("a", route("$rt", 9, b"x", message_id="m1", headers=[("Mine", "1")])),
        hear(
            "c",
            Answer(
                delivery("$q1", 1, b"x", message_id=GENERATED, source="$a", header={"Mine": "1"})
            ),
        ),
        needs="router",
    ),
    case(
        "server.router.queue-binding-interaction",
        "A queue binding with an interaction keeps the message's id",
        "The publisher matches the consumer's acknowledgement by the id.",
        "F124",
        *connect("a"),
        *_queues("$q1"),
        *_router(),
        *_binding("one", "$q1", interaction=1),
        say("a", route("$rt", 9, b"x", message_id="m1")),
        hear("c", Answer(delivery("$q1", 1, b"x", message_id="m1"))),
        needs="router",
        loose=True,
    ),
    case(
        "server.router.direct-binding",
        "A direct binding forwards the message to the client",
        "A router may address a program instead of a queue.",
        "F125",
        *connect("a"),
        *connect("c"),
        *_router(),
        *_binding("one", "$c", _DIRECT, content_type=77),
        say("a", route("$rt", 9, b"x", message_id="m1")),
        hear(
            "c",
            Answer(
                Pattern(
                    TYPE_DIRECT_MESSAGE,
                    target="$c",
                    content_type=77,
                    message_id="m1",
                    source="$a",
                    payload=b"x",
                    ttl=15,
                )
            ),
        ),
        needs="router",
    ),
    case(
        "server.router.direct-binding-content-type",
        "A direct binding without a content type keeps the message's",
        "The publisher decides what the message is.",
        "F125 F121",
        *connect("a"),
        *connect("c"),
        *_router(),
        *_binding("one", "$c", _DIRECT, content_type=None),
        say("a", route("$rt", 9, b"x")),
        hear("c", Answer(Pattern(TYPE_DIRECT_MESSAGE, target="$c", content_type=9))),
        needs="router",
    ),
    case(
        "server.router.direct-binding-response",
        "A direct binding with the interaction Response asks the receiver for one",
        "A request through a router is answered like any other.",
        "F125 F123",
        *connect("a"),
        *connect("c"),
        *_router(),
        *_binding("one", "$c", _DIRECT, content_type=None, interaction=2),
        say("a", route("$rt", 9, b"x", message_id="m1", flags="R")),
        hear("c", Answer(Pattern(TYPE_DIRECT_MESSAGE, message_id="m1", pending_response=True))),
        hear("a", NOTHING),
        needs="router",
    ),
    case(
        "server.router.tag-binding",
        "A tag binding reaches every queue whose tag matches",
        "Queues are grouped by tags, not by name.",
        "F126 F53",
        *connect("a"),
        *connect("c"),
        *create_queue("a", "$q1", 1, _QUIET, Queue_Status="push", Queue_Tag="$tag-one"),
        *create_queue("a", "$q2", 2, _QUIET, Queue_Status="push", Queue_Tag="$tag-two"),
        *create_queue("a", "$q3", 3, _QUIET, Queue_Status="push", Queue_Tag="other-$tag"),
        *[step for name in ("$q1", "$q2", "$q3") for step in ask("c", Operation.JOIN, name)],
        *_router(),
        *_binding("one", "$tag-*", _TAG, content_type=None),
        say("a", route("$rt", 9, b"x")),
        hear("c", Answer(delivery("$q1", 1, b"x"), delivery("$q2", 2, b"x"), ordered=False)),
        needs="router",
    ),
    case(
        "server.router.tag-binding-event",
        "A message by a tag binding is produced like any other",
        "Who watches a queue must see every message that reaches it.",
        "F132 F126",
        *connect("a"),
        *create_queue("a", "$q1", 1, _QUIET, Queue_Status="push", Queue_Tag="$tag-one"),
        *_router(),
        *_binding("one", "$tag-*", _TAG, content_type=None),
        say(
            "a",
            subscribe("MessageProduced", [("Channel-Name", "$q1"), ("Queue-Id", "1")]),
        ),
        hear("a", Answer(response(0))),
        say("a", route("$rt", 9, b"x")),
        hear("a", Answer(event("MessageProduced", "$q1", content_type=1))),
        needs="router",
    ),
    case(
        "server.router.delivered-acknowledge",
        "A publisher that asks for an acknowledgement gets it after the delivery",
        "A publisher may need to know that a receiver got its message.",
        "F123",
        *connect("a"),
        *_queues("$q1"),
        *_router(),
        *_binding("one", "$q1"),
        say("a", route("$rt", 9, flags="A")),
        hear("a", Answer(acknowledgement(header={"Nack-Reason": NoHeader()}))),
        hear("c", Answer(delivery("$q1", 1))),
        needs="router",
    ),
    case(
        "server.router.delivered-response",
        "A publisher that asks for a response gets 0 after the delivery",
        "A publisher may need to know that a receiver got its message.",
        "F123",
        *connect("a"),
        *_queues("$q1"),
        *_router(),
        *_binding("one", "$q1"),
        say("a", route("$rt", 9, flags="R")),
        hear("a", Answer(response(0))),
        hear("c", Answer(delivery("$q1", 1))),
        needs="router",
    ),
)

CASES: Final[tuple[Case, ...]] = (
    *_MANAGED,
    *_METHODS,
    *_BINDINGS,
    *_unreached("unknown", "No such router"),
    *_unreached("no-bindings", "A router without bindings", _router()),
    *_unreached(
        "nobody",
        "A binding to a client that is not there",
        _router(),
        _binding("one", "$nobody", _DIRECT, content_type=None),
    ),
)
