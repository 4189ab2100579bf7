"""The table of operations agrees with everything that is made of it, and with the command tmqp."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import click
import pytest

from tests.tmqp_server.admin.api_stage import ApiStage
from tmqp_client.cli import cli
from tmqp_server.access.gate import AUTHENTICATE, Question
from tmqp_server.access.needs import FREE, NEEDS, NO_QUEUE
from tmqp_server.access.rights import RIGHTS
from tmqp_server.access.roles import Role
from tmqp_server.admin.api.openapi import description_of
from tmqp_server.admin.api.operations import OPERATIONS, routes_of
from tmqp_server.admin.api.schemas import SCHEMAS
from tmqp_server.admin.api.table import Operation
from tmqp_server.doors.http.routes import RouteTable
from tmqp_server.engine.commands import (
    Acknowledge,
    AskRight,
    ChangeCell,
    CommitCursor,
    DescribeQueue,
    DropCell,
    Extend,
    Join,
    Leave,
    MakeCounter,
    OpenCursor,
    Publish,
    Pull,
    Push,
    PutValue,
    Release,
)

#: What the command does that no server does for it.
HERE: Final = {"bench", "completion", "config", "doctor", "ping"}
#: What it judges by itself, of what the server tells.
CHECKS: Final = "server check "
#: What only makes sense between two clients that stay connected.
TALK: Final = {"request", "reply"}
#: There is no certificate and no cache queue, nothing was taken or deferred, nobody has the tag.
NOT_THERE: Final = {
    "endTrace",
    "getTrace",
    "stopTransfer",
    "renewTls",
    "readLatest",
    "acknowledge",
    "refuse",
    "removeMessage",
    "publishToRouter",
    "getConsumer",
    "fetch",
    "settle",
    "closeConsumer",
}
#: About what the connection itself has taken, or what the client has made.
OWN: Final = {
    "acknowledge",
    "refuse",
    "listConsumersOfClient",
    "getConsumer",
    "fetch",
    "settle",
    "closeConsumer",
}

by_name = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)


def commands_of(group: click.Group, prefix: str = "") -> Iterator[str]:
    """All commands of tmqp, with the groups that they are in."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{prefix}{name} ")
        else:
            yield prefix + name


def test_everything_that_the_command_does_the_api_does() -> None:
    covered = {name for each in OPERATIONS for name in each.cli}
    there = set(commands_of(cli))
    elsewhere = HERE | TALK
    missing = {each for each in there - covered if each.partition(" ")[0] not in elsewhere}
    assert {each for each in missing if not each.startswith(CHECKS)} == set()
    assert covered <= there, "the table names a command that is not there"


@by_name
def test_an_operation_is_whole(operation: Operation) -> None:
    for name in (operation.body, operation.answer):
        assert not name or name in SCHEMAS
    assert set(operation.rights) <= set(RIGHTS)
    free = operation.tag in ("session", "openapi.json") or operation.name in OWN
    assert bool(operation.rights) != free


@by_name
def test_what_changes_something_is_audited(operation: Operation) -> None:
    """But for messages, which plain producers and consumers push and take, cursors, and cells."""
    if operation.name == "stopTransfer":
        return  # what it has moved is recorded, and this is less
    plain = {Acknowledge, AskRight, CommitCursor, DescribeQueue, Join, Leave, OpenCursor}
    plain |= {Extend, Publish, Pull, Push, Release}
    plain |= {ChangeCell, DropCell, MakeCounter, PutValue}
    changes = operation.method != "GET" and not set(operation.commands) <= plain
    assert bool(operation.audited) == (changes or operation.name == "browse")


def test_names_and_places_are_there_once() -> None:
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)
    RouteTable(routes_of(ApiStage().api))  # it refuses two of a kind


@by_name
def test_the_rights_of_an_operation_are_those_of_its_commands(operation: Operation) -> None:
    """What the gate asks about a command is what the description says."""
    needed: set[str] = set()
    for command in operation.commands:
        assert command in NEEDS or command in FREE
    stage = ApiStage(guarded=True)
    asked: set[str] = set()

    def note(question: Question) -> bool:
        asked.add(question.right)
        return True

    stage.policy = note
    call(stage, operation)
    needed = asked - {"authenticate"}
    if operation.name == "getRights":
        assert needed == set(RIGHTS)
        return
    told = set(operation.rights) | set(MORE.get(operation.name, ()))
    assert needed <= told, "something is asked that nobody has told"


#: What an operation may need besides, when a request asks for that.
MORE: Final[dict[str, tuple[str, ...]]] = {
    "putChannel": ("see-channel", "update-channel"),
    "putQueue": ("see-channel", "update-queue"),
    "removeQueue": ("see-channel",),
    "clear": ("see-channel",),
    "putRouter": ("see-routers",),
    "putBinding": ("see-routers",),
    "getClient": ("see-channel",),
    "importDefinitions": ("see-channel", "see-routers", "update-channel"),
}

BODIES: Final[dict[str, Any]] = {
    "putRouter": {"method": "distribute"},
    "patchRouter": {"enabled": True},
    "putBinding": {"kind": "queue", "target": "c", "queue": 1},
    "putCursor": {"start": "earliest"},
    "transfer": {"to": {"channel": "d", "queue": 1}},
    "importDefinitions": {
        "channels": [{"name": "new", "queues": [{"id": 1}]}],
        "routers": [{"name": "r2"}],
    },
    "logIn": {"token": "t"},
    "createConsumer": {"channel": "c"},
    "setLogLevel": {"level": "info"},
    "publishBatch": {"items": [{"text": "x"}]},
    "settle": {"items": [{"id": "m"}]},
    "putCell": {"text": "v", "ttl_ms": 1_000},
    "changeCell": {"add": 1},
}
VALUES: Final = {
    "channel": "c",
    "queue": "1",
    "client": "k",
    "consumer": "not-there",
    "router": "r",
    "binding": "b",
    "id": "m",
    "cursor": "x",
    "target": "d",
    "target_queue": "1",
    "space": "s",
    "key": "n",
}


def target_of(operation: Operation) -> str:
    """A path that there is."""
    values = {**VALUES, "key": "new"} if operation.name == "putCell" else VALUES
    path = re.sub(r"\{([a-z_]+)(:int)?\}", lambda found: values[found[1]], operation.template)
    queries = {"followEvents": "kind=ClientConnected", "followNumbers": "topics=overview,queue:c/1"}
    return f"{path}?{queries[operation.name]}" if operation.name in queries else path


def call(stage: ApiStage, operation: Operation, prepare: bool = True) -> int:
    """Ask for an operation, where what it is about is there; returns the status."""
    if prepare:
        policy, stage.policy = stage.policy, lambda _: True
        stage.prepare()
        stage.policy = policy
    caller = stage.caller()
    body = BODIES.get(operation.name, {} if operation.body else None)
    caller.send(operation.method, target_of(operation), body)
    if operation.kind == "text/event-stream":
        while not caller.wire.sent:  # the overview is counted first
            stage.now = max(stage.now, stage.turn.next_deadline())
            stage.turn.on_deadline(stage.now)
            stage.attend()
        return int(bytes(caller.wire.sent).split()[1])
    return caller.take().status


# --- Rights --------------------------------------------------------------------------------------


@by_name
def test_who_may_nothing_gets_nothing(operation: Operation) -> None:
    """Neither what there is nor whether there is such a thing is told."""
    statuses = set()
    for there in (True, False):
        stage = ApiStage(guarded=True)
        if there:
            stage.prepare()
        before = stage.state()
        stage.policy = lambda question: question.right == "authenticate"
        status = call(stage, operation, prepare=False)
        assert stage.state() == before, "something was changed"
        statuses.add(status)
    free = {"session", "openapi.json"}
    if operation.tag in free:
        assert statuses <= {200, 201, 204}
    else:
        none = {200} if operation.name == "listConsumersOfClient" else {404}
        assert statuses == (none if operation.name in OWN else {403})


@by_name
def test_all_other_rights_are_not_enough(operation: Operation) -> None:
    if not operation.rights:
        return
    stage = ApiStage(guarded=True)
    stage.prepare()
    before = stage.state()
    stage.policy = lambda question: question.right not in operation.rights
    status = call(stage, operation, prepare=False)
    assert (status, stage.state()) == (403, before)


def for_other_names(question: Question) -> bool:
    """All rights, but for names of others; where a right is about no name, it is the client's."""
    role = Role("r", frozenset(RIGHTS), ("z",), (), ("z",), ("z",), ("z",), ("z",))
    return question.right == AUTHENTICATE or role.allows(*question.need[:3])


@by_name
def test_all_rights_for_other_names_are_not_enough(operation: Operation) -> None:
    about = re.findall(r"\{(channel|router|space)\}", operation.path)
    if not about or operation.name in OWN:
        return
    statuses = set()
    for there in (True, False):
        stage = ApiStage(guarded=True)
        if there:
            stage.prepare()
        before = stage.state()
        stage.policy = for_other_names
        statuses.add(call(stage, operation, prepare=False))
        assert stage.state() == before
    assert statuses == {403}


@by_name
def test_its_rights_are_enough(operation: Operation) -> None:
    stage = ApiStage(guarded=True)
    enough = {"authenticate", *operation.rights}
    stage.policy = lambda question: question.right in enough
    status = call(stage, operation)
    expected = {operation.status, *[each for each in operation.failures if each < 300]}
    if operation.method == "PUT":
        expected |= {200, 409}
    if operation.name in NOT_THERE:
        expected |= {404, 409}
    assert status in expected or (status == 501 and 501 in operation.failures)


# --- The description -----------------------------------------------------------------------------


def test_the_description_is_that_of_the_table() -> None:
    stage = ApiStage()
    found = stage.caller().get("/api/v1/openapi.json").json
    assert found["openapi"] == "3.1.0"
    there = {
        (method.upper(), path) for path, methods in found["paths"].items() for method in methods
    }
    assert there == {(each.method, re.sub(r":int\}", "}", each.template)) for each in OPERATIONS}
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found)))
    assert named == set(found["components"]["schemas"]), "a schema that nobody uses, or none"


def test_the_description_says_what_a_route_takes() -> None:
    found = description_of(OPERATIONS, "1")["paths"]["/api/v1/channels/{channel}/queues/{queue}"]
    assert [each["name"] for each in found["put"]["parameters"]] == [
        "channel",
        "queue",
        "If-Match",
        "If-None-Match",
    ]
    assert set(found["put"]["responses"]) >= {"200", "201", "409", "412", "422"}
    assert NO_QUEUE == -1
