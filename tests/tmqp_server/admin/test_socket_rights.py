"""Who may what over a WebSocket: every row of its table, with its rights, without, and with others.

The gate that is asked is that of all doors; what is tested here is that nothing goes past it, and
that nobody learns from a refusal whether there is such a thing.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Request, TextMessage

from tests.tmqp_server.admin.api_stage import ApiStage
from tests.tmqp_server.admin.test_api_table import for_other_names
from tests.tmqp_server.shell.stage import StubWire
from tmqp_server.access.gate import Question
from tmqp_server.access.needs import FREE, NEEDS
from tmqp_server.access.rights import RIGHTS
from tmqp_server.doors.http.json_requests import JSON_V1, SOCKET_OPERATIONS, SocketOperation

by_name = pytest.mark.parametrize("operation", SOCKET_OPERATIONS.values(), ids=lambda x: x.name)

#: Members of requests about what is there; ``m`` is not in anybody's hands.
THERE: Final[dict[str, Any]] = {
    "channel": "c",
    "queue": 1,
    "id": "m",
    "event": "MessageProduced",
    "timeout_ms": 1_000,
}
#: They give up what the client has, or tell that it has nothing.
FREE_ONES: Final = {"leave", "grant", "release", "extend", "unsubscribe"}
#: Their right is asked for only where an answer goes to another client (F116).
PASSED_ON: Final = {"ack", "nack"}


class Socket:
    """A WebSocket to the admin door of a server in memory."""

    def __init__(self, stage: ApiStage) -> None:
        self._stage = stage
        self._machine = WSConnection(ConnectionType.CLIENT)
        self.number = stage.new_number()
        self._wire = stage.wires[self.number] = StubWire()
        stage.turn.opened(self.number, stage.admin, self._wire, "host", stage.now)
        hello = Request(host="here", target="/api/v1/ws", subprotocols=[JSON_V1])
        stage.say(self.number, self._machine.send(hello))
        [accepted] = self._events()
        assert isinstance(accepted, AcceptConnection)

    def _events(self) -> list[Any]:
        self._machine.receive_data(bytes(self._wire.sent))
        self._wire.sent.clear()
        return list(self._machine.events())

    def ask(self, operation: SocketOperation, **other: Any) -> list[dict[str, Any]]:
        """Ask for an operation; what is said at once."""
        members = {key: value for key, value in THERE.items() if key in operation.members}
        said = {"op": operation.name, "ref": "r", **members, **other}
        if operation.name == "push":
            said["id"] = "new"
        elif operation.name == "grant":
            said["credit"] = 1
        self._stage.say(self.number, self._machine.send(TextMessage(data=json.dumps(said))))
        return [json.loads(each.data) for each in self._events()]


def state_of(stage: ApiStage) -> str:
    """What an operation may change, but for the count of answers to what nobody has."""
    return re.sub(r'"(unknown|negative)?_?acks":[0-9]+', "", stage.state())


def test_the_table_is_whole() -> None:
    for operation in SOCKET_OPERATIONS.values():
        assert set(operation.rights) <= set(RIGHTS)
        for command in operation.commands:
            assert command in NEEDS or command in FREE
        assert bool(operation.rights) != (operation.name in FREE_ONES)


@by_name
def test_what_is_asked_is_what_the_table_says(operation: SocketOperation) -> None:
    stage = ApiStage(guarded=True)
    stage.prepare()
    asked: set[str] = set()

    def note(question: Question) -> bool:
        asked.add(question.right)
        return True

    stage.policy = note
    Socket(stage).ask(operation)
    needed = set() if operation.name in PASSED_ON else set(operation.rights)
    assert asked == {"authenticate", *needed}


@by_name
@pytest.mark.parametrize("others", [False, True])
def test_without_its_rights_nothing_is_done_and_nothing_told(
    operation: SocketOperation, others: bool
) -> None:
    """Neither who may nothing nor who may everything else learns whether there is such a thing."""
    told = []
    for place in ({}, {"channel": "not-there"}):
        stage = ApiStage(guarded=True)
        stage.prepare()
        before = state_of(stage)
        stage.policy = lambda question: (
            question.right == "authenticate" or (others and question.right not in operation.rights)
        )
        socket = Socket(stage)
        answers = socket.ask(operation, **place)
        stage.end(socket.number)
        assert state_of(stage) == before, "something was changed"
        told.append([{**each, "id": ""} for each in answers])
    assert told[0] == told[1]
    if operation.name not in FREE_ONES | PASSED_ON:
        [[answer], _] = told
        # The answer to a subscription is the same where the queue is missing (F128).
        assert answer["code"] == (1 if operation.name == "subscribe" else 401)


@by_name
def test_all_rights_for_other_names_are_not_enough(operation: SocketOperation) -> None:
    if operation.name in FREE_ONES | PASSED_ON:
        return
    stage = ApiStage(guarded=True)
    stage.prepare()
    before = state_of(stage)
    stage.policy = for_other_names
    socket = Socket(stage)
    [answer] = socket.ask(operation)
    stage.end(socket.number)
    assert (answer["op"], state_of(stage)) == ("problem", before)


@by_name
def test_its_rights_are_enough(operation: SocketOperation) -> None:
    stage = ApiStage(guarded=True)
    stage.prepare()
    enough = {"authenticate", *operation.rights}
    stage.policy = lambda question: question.right in enough
    answers = Socket(stage).ask(operation)
    assert answers, "there is always an answer to who has a ref"
    assert all(each.get("code") in (None, 404) for each in answers)
