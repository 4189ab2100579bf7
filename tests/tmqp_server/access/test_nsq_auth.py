"""Asking an auth server about clients of NSQ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tmqp_server.access.auth import Admission, Answer, Applicant, Identity
from tmqp_server.access.nsq_auth import NsqAuthServer
from tmqp_server.access.rights import CREATE_QUEUE, FEED, JOIN, PUSH, UPDATE_QUEUE
from tmqp_server.engine.commands import Credentials
from tmqp_wires.nsq.auth_server import AuthRequest

pytestmark = pytest.mark.anyio


class Servers:
    """Auth servers that answer what the test says, and remember what they were asked."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[AuthRequest] = []

    async def ask(self, request: AuthRequest) -> tuple[int, bytes]:
        self.asked.append(request)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, OSError):
            raise found
        return 200, json.dumps(found).encode()


def rules(ttl: int = 3600, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"ttl": ttl, "identity": "me", "authorizations": list(rules)}


SECRET = "sekret"
ALL = {"topic": "^ok", "channels": [".*"], "permissions": ["subscribe", "publish"]}
ONE = {"topic": "^ok", "channels": ["^c$"], "permissions": ["subscribe"]}


def applicant(secret: str = SECRET, **more: Any) -> Applicant:
    shown = Credentials("token", secret) if secret else None
    return Applicant(7, token=secret, peer="10.0.0.9:4242", door="nsq", credentials=shown, **more)


def access(servers: Servers, **more: Any) -> NsqAuthServer:
    return NsqAuthServer(["a:1", "b:2"], ask=servers.ask, **more)


async def let_in(asker: NsqAuthServer) -> Identity:
    admission = await asker.authenticate(applicant())
    assert isinstance(admission, Admission)
    return Identity(7, "id", data=admission.data)


async def allowed(asker: NsqAuthServer, who: Identity, right: str, subject: str) -> bool:
    answer = await asker.may(who, right, subject, 0)
    return answer.allowed if isinstance(answer, Answer) else answer


async def test_a_client_is_told_who_it_is() -> None:
    servers = Servers(rules(60, ALL, ONE))
    admission = await access(servers).authenticate(applicant())
    assert isinstance(admission, Admission)
    assert admission.identity == ("me", "", 2)
    assert "secret=sekret" in servers.asked[0].url
    assert "remote_ip=10.0.0.9&" in servers.asked[0].url


async def test_what_a_client_may_do_is_what_the_patterns_say() -> None:
    asker = access(Servers(rules(60, ONE)))
    who = await let_in(asker)
    for right, subject, expected in [
        (PUSH, "ok1", False),
        (CREATE_QUEUE, "ok1", True),
        (FEED, "ok1", True),
        (FEED, "ok1:c", True),
        (JOIN, "ok1:c", True),
        (JOIN, "ok1:d", False),
        (JOIN, "ok1", False),
        (CREATE_QUEUE, "zz", False),
        (UPDATE_QUEUE, "ok1:c", False),
    ]:
        assert await allowed(asker, who, right, subject) is expected, (right, subject)
    answer = await asker.may(who, JOIN, "ok1:c", 0)
    assert isinstance(answer, Answer)
    assert 0.0 < answer.keep_s <= 60.0


async def test_the_next_one_is_asked_when_one_fails() -> None:
    servers = Servers(OSError("refused"), rules(60, ALL))
    await let_in(access(servers))
    assert {each.url.split("/")[2] for each in servers.asked} == {"a:1", "b:2"}


async def test_a_client_is_refused_when_nobody_answers() -> None:
    assert await access(Servers(OSError("refused"))).authenticate(applicant()) is False


async def test_who_brings_no_secret_is_refused_unless_its_kind_needs_none() -> None:
    servers = Servers(rules(60, ALL))
    asker = access(servers)
    assert await asker.authenticate(applicant("")) is False
    admission = await asker.authenticate(applicant("", client_type="http"))
    assert isinstance(admission, Admission)
    assert await allowed(asker, Identity(7, "id", data=admission.data), UPDATE_QUEUE, "zz")
    strict = access(servers, open_types=())
    assert await strict.authenticate(applicant("", client_type="http")) is False
    assert servers.asked == []


async def test_an_answer_holds_for_its_ttl(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tmqp_server.access.nsq_auth.anyio.current_time", lambda: now[0])
    none = OSError("down")
    servers = Servers(rules(60, ALL), rules(60, ONE), none, none, none, none, rules(60, ALL))
    asker = access(servers, grace_s=10.0)
    who = await let_in(asker)
    now[0] += 59.0
    assert await allowed(asker, who, PUSH, "ok1")
    assert len(servers.asked) == 1
    now[0] += 1.5
    assert not await allowed(asker, who, PUSH, "ok1")
    assert await allowed(asker, who, JOIN, "ok1:c")
    now[0] += 65.0
    assert await allowed(asker, who, JOIN, "ok1:c"), "it holds for a while without an answer"
    now[0] += 6.0
    assert not await allowed(asker, who, JOIN, "ok1:c")
    assert await allowed(asker, who, PUSH, "ok1"), "the auth server is back"


@pytest.mark.parametrize(
    "more",
    [
        {"addresses": []},
        {"addresses": "a:1"},
        {"addresses": ["a:1"], "method": "put"},
        {"addresses": ["a:1"], "timeout_s": 0},
        {"addresses": ["a:1"], "grace_s": -1},
    ],
)
async def test_impossible_values_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        NsqAuthServer(**more)
