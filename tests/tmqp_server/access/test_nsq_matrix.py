"""Every command of NSQ, by TCP and by HTTP, for every right: what it needs, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.tmqp_server.doors.nsq.server import Client, Server
from tests.tmqp_server.doors.nsq.stage import Stage
from tests.tmqp_server.outputs import questions
from tmqp_server.access import rights
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.access.rights import RIGHTS
from tmqp_server.access.roles import Role
from tmqp_server.doors.nsq.topics import HANDLER
from tmqp_server.engine.commands import Connect
from tmqp_wires.nsq.events import ErrorReceived, Event, ResponseReceived
from tmqp_wires.nsq.writing import CLS, NOP, dpub, fin, mpub, pub, rdy, req, sub, touch

Needs = tuple[tuple[str, str], ...]
_ALL: Final = ("*",)
_PUSH: Final = ((rights.PUSH, "t"),)
_SEE: Final = (rights.SEE_CHANNEL, "t")
_ID: Final = b"8" * 16

#: What is sent about a topic and a channel that are there; the rights that it needs.
TCP: Final[dict[str, tuple[bytes, Needs]]] = {
    "PUB": (pub(b"t", b"x"), _PUSH),
    "MPUB": (mpub(b"t", [b"x", b"y"]), _PUSH),
    "DPUB": (dpub(b"t", 10, b"x"), _PUSH),
    "SUB": (
        sub(b"t", b"c"),
        ((rights.FEED, "t"), (rights.FEED, "t:c"), (rights.JOIN, "t:c")),
    ),
}
#: The same by HTTP.
HTTP: Final[dict[str, tuple[bytes | None, Needs]]] = {
    "POST /pub?topic=t": (b"x", _PUSH),
    "POST /mpub?topic=t": (b"x\ny", _PUSH),
    "POST /topic/create?topic=new": (b"", ((rights.CREATE_QUEUE, "new"),)),
    "POST /topic/empty?topic=t": (b"", ((rights.CLEAR_MESSAGES, "t"),)),
    "POST /topic/pause?topic=t": (b"", ((rights.UPDATE_QUEUE, "t"),)),
    "POST /topic/unpause?topic=t": (b"", ((rights.UPDATE_QUEUE, "t"),)),
    "POST /topic/delete?topic=t": (
        b"",
        (_SEE, (rights.REMOVE_CHANNEL, "t"), (rights.REMOVE_CHANNEL, "t:c")),
    ),
    "POST /channel/create?topic=t&channel=new": (
        b"",
        (
            _SEE,
            (rights.CREATE_QUEUE, "t:new"),
            (rights.FEED, "t"),
            (rights.FEED, "t:new"),
        ),
    ),
    "POST /channel/empty?topic=t&channel=c": (
        b"",
        (_SEE, (rights.CLEAR_MESSAGES, "t:c")),
    ),
    "POST /channel/pause?topic=t&channel=c": (
        b"",
        (_SEE, (rights.UPDATE_QUEUE, "t:c")),
    ),
    "POST /channel/unpause?topic=t&channel=c": (
        b"",
        (_SEE, (rights.UPDATE_QUEUE, "t:c")),
    ),
    "POST /channel/delete?topic=t&channel=c": (
        b"",
        (_SEE, (rights.REMOVE_CHANNEL, "t:c")),
    ),
    "GET /stats": (None, ((rights.SEE_CHANNEL, ""),)),
    "GET /config/log_level": (None, ()),
    "PUT /config/log_level": (b"info", ((rights.CONFIGURE, ""),)),
    "PUT /config/nsqlookupd_tcp_addresses": (b"[]", ((rights.CONFIGURE, ""),)),
}


def role_of(*needs: tuple[str, str]) -> Callable[[Question], bool]:
    """What a role decides that has these rights about these names, and may connect."""
    roles = [
        Role("r", frozenset({right}), (subject or "*",), (), _ALL, _ALL, _ALL)
        for right, subject in needs
    ]

    def decide(question: Question) -> bool:
        if question.right == "authenticate":
            return True
        asked = (question.right, question.about, question.queue_id)
        return any(role.allows(*asked) for role in roles)

    return decide


def all_but(missing: tuple[str, str]) -> Callable[[Question], bool]:
    """Everything is allowed, but for this."""
    return lambda question: (question.right, question.about) != missing


class Guarded(Stage):
    """Everything by HTTP is asked about; the topic ``t`` with the channel ``c`` is there."""

    def __init__(self) -> None:
        self.policy: Callable[[Question], bool] = lambda _: True
        super().__init__({"nsqd-http": {"old_names": False}}, guarded=True)
        for target in ("/topic/create?topic=t", "/channel/create?topic=t&channel=c"):
            assert self.ask("nsqd-http", "POST", target, b"").status == 200

    def settle(self) -> None:
        """Answer what is asked, too."""
        super().settle()
        while found := questions(self.hub):
            for each in found:
                connect = each.command if isinstance(each.command, Connect) else None
                names = frozenset(each.names or ())
                verdict = Verdict(self.policy(each), connect=connect, names=names)
                self.hub.decide(each.session, each.ticket, verdict, self.now)
                while not self.hub.is_waiting(each.session):
                    if not self.hub.go_on(each.session, self.now):
                        break
            super().settle()

    def status_of(self, request: str, policy: Callable[[Question], bool]) -> int:
        """How a request is answered to who may do this."""
        self.policy = policy
        method, _, target = request.partition(" ")
        return self.ask("nsqd-http", method, target, HTTP[request][0]).status


def _server() -> tuple[Server, Client]:
    server = Server(policy=lambda _: True)
    client = server.connect()
    client.send(pub(b"t", b"first"))
    client.send(sub(b"t", b"c"))
    server.settle()
    assert client.take() == [ResponseReceived(b"OK")] * 2
    return server, client


def _told(command: str, policy: Callable[[Question], bool]) -> list[Event]:
    server, _ = _server()
    server.policy = policy
    client = server.connect()
    client.send(TCP[command][0])
    server.settle()
    return client.take()


@pytest.mark.parametrize("command", TCP)
def test_a_command_needs_its_rights_and_no_other(command: str) -> None:
    _, needs = TCP[command]
    assert _told(command, role_of(*needs)) == [ResponseReceived(b"OK")]
    for need in needs:
        (error,) = _told(command, all_but(need))
        assert isinstance(error, ErrorReceived), need
        assert error.code == b"E_UNAUTHORIZED", need
        assert error.text.startswith(b"AUTH failed for %s on" % command.encode())
        elsewhere = [(right, f"{subject}-2") for right, subject in needs]
        assert _told(command, role_of(*elsewhere)) == [error], "the rights are about names"


@pytest.mark.parametrize("missing", [(rights.CREATE_QUEUE, "new"), (rights.CREATE_QUEUE, "new:c")])
def test_sub_to_what_the_client_may_not_make_was_answered_as_a_number(
    missing: tuple[str, str],
) -> None:
    """N53."""
    server = Server(policy=all_but(missing))
    client = server.connect()
    client.send(sub(b"new", b"c"), rdy(1))
    server.settle()
    text = b'AUTH failed for SUB on "new" "c"'
    assert client.take() == [ErrorReceived(b"E_UNAUTHORIZED", text)]
    assert client.closed


@pytest.mark.parametrize("command", ["PUB", "MPUB", "DPUB", "HTTP"])
def test_who_may_push_only_made_topics_that_were_not_the_doors(command: str) -> None:
    """They had the broker's defaults: not durable, and no limit of what is in memory."""
    body = {
        "PUB": pub(b"new", b"x") + pub(b"new", b"y"),
        "MPUB": mpub(b"new", [b"x", b"y"]),
        "DPUB": dpub(b"new", 10, b"x") + dpub(b"new", 10, b"y"),
    }
    policy = role_of((rights.PUSH, "new"))
    if command == "HTTP":
        stage = Guarded()
        for target in ("/pub?topic=new", "/mpub?topic=new"):
            stage.policy = policy
            assert stage.ask("nsqd-http", "POST", target, b"x").status == 200
        (queue,) = [each for each in stage.broker.queues() if each.channel_name == "new"]
        options, waiting = queue.options, queue.waiting_count()
    else:
        server = Server(policy=policy, mem_queue_size=7)
        client = server.connect()
        client.send(body[command])
        server.settle()
        assert {*client.take()} == {ResponseReceived(b"OK")}
        server.policy = lambda _: True
        found = server.queue("new")
        assert found is not None
        options, waiting = found.options, found.messages + found.deferred
        assert options.memory_limit == 7
    assert options.delivery_handler == HANDLER
    assert waiting == 2


def test_who_consumes_needs_no_right_for_what_it_has() -> None:
    server, client = _server()
    asked: list[str] = []

    def refuse(question: Question) -> bool:
        asked.append(question.right)
        return False

    server.policy = refuse
    client.send(rdy(5), touch(_ID), req(_ID, 0), fin(_ID), NOP, CLS)
    server.settle()
    assert ResponseReceived(b"CLOSE_WAIT") in client.take()
    assert asked == []


@pytest.mark.parametrize("request_line", HTTP)
def test_a_request_needs_its_rights_and_no_other(request_line: str) -> None:
    needs = HTTP[request_line][1]
    assert Guarded().status_of(request_line, role_of(*needs)) == 200
    for need in needs:
        status = Guarded().status_of(request_line, all_but(need))
        assert status == 403, need


def test_a_setting_was_changed_by_who_may_only_log_in() -> None:
    stage = Guarded()
    allowed: Any = role_of()
    for request, body in [("log_level", b"debug"), ("nsqlookupd_tcp_addresses", b'["h:1"]')]:
        stage.policy = allowed
        answer = stage.ask("nsqd-http", "PUT", f"/config/{request}", body)
        assert (answer.status, answer.body) == (403, b'{"message":"FORBIDDEN"}')
    world = stage.registry.nsq
    assert (world.log_level, world.lookup_addresses) == ("info", ())
    assert stage.status_of("PUT /config/log_level", role_of((rights.CONFIGURE, ""))) == 200


def test_a_topic_was_deleted_in_part_when_one_right_was_missing() -> None:
    channels = ("a", "b", "c")
    for missing in ("t", *[f"t:{each}" for each in channels]):
        stage = Guarded()
        for each in channels:
            stage.ask("nsqd-http", "POST", f"/channel/create?topic=t&channel={each}", b"")
        stage.ask("nsqd-http", "POST", "/pub?topic=t", b"x")
        before = stage.ask("nsqd-http", "GET", "/stats?include_mem=0").body
        policy = all_but((rights.REMOVE_CHANNEL, missing))
        assert stage.status_of("POST /topic/delete?topic=t", policy) == 403
        stage.policy = lambda _: True
        assert stage.ask("nsqd-http", "GET", "/stats?include_mem=0").body == before
        assert stage.ask("nsqd-http", "POST", "/topic/delete?topic=t", b"").status == 200
        assert stage.broker.statistics().channels == 0


@pytest.mark.parametrize("path", ["/ping", "/info"])
def test_what_anybody_may_ask(path: str) -> None:
    stage = Guarded()
    stage.policy = lambda _: False
    assert stage.ask("nsqd-http", "GET", path).status == 200


def test_every_request_has_a_row() -> None:
    stage = Guarded()
    door: Any = stage.doors["nsqd-http"]
    rows = {re.sub(r"\?.*|(?<=/config/).*", "", request) for request in HTTP}
    routes = [route for route in door.context.routes.routes if not route.public]
    assert {f"{each.method} {each.template}".replace("{option}", "") for each in routes} == rows
    assert set(RIGHTS) >= {need[0] for _, needs in HTTP.values() for need in needs}
