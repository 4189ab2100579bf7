"""The judge: what a hook's answer comes to, whatever the hook does; and how a no is told late."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.tmqp_server.io.stand_ins import Pipe
from tmqp.codec import FrameDecoder
from tmqp.constants import MessageType
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.access.auth import Access, Admission, Answer, Applicant, Identity
from tmqp_server.access.custom import ClientGone, CustomMessage
from tmqp_server.access.gate import AUTHENTICATE, MESSAGE, Question, Verdict
from tmqp_server.access.needs import NO_QUEUE
from tmqp_server.engine.commands import Connect, Credentials, ListChannels, Push
from tmqp_server.engine.effects import HandOver
from tmqp_server.engine.model.client import Client
from tmqp_server.io.judge import Judge

pytestmark = pytest.mark.anyio

PLACE = Pipe()
CONNECT = Connect(
    1,
    "r",
    "me",
    "n",
    "t",
    "tmqp",
    ConnectionInformation("me", token="word", properties={"A": "b"}),
    credentials=Credentials("token", "word"),
)


class Port:
    """Remembers what was sent."""

    def __init__(self, gone: bool = False) -> None:
        self.sent: list[bytes] = []
        self.gone = gone

    async def send(self, session: int, data: bytes) -> None:
        if self.gone:
            raise ClientGone("gone")
        self.sent.append(data)


class Scripted(Access):
    """Does for every question what ``act`` does."""

    keep_s = 7.0

    def __init__(self, act: Callable[[], Awaitable[Any]], welcome: Any = True) -> None:
        self.act = act
        self.welcome = welcome
        self.applicants: list[Applicant] = []
        self.asked: list[Identity] = []

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        self.applicants.append(applicant)
        if callable(self.welcome):
            self.welcome = await self.welcome()
        answer: bool | Admission = self.welcome
        return answer

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        self.asked.append(who)
        answer: bool | Answer = await self.act()
        return answer

    async def visible_channels(self, who: Identity, names: Any) -> Any:
        return await self.act()


def saying(answer: Any) -> Callable[[], Awaitable[Any]]:
    async def act() -> Any:
        return answer

    return act


async def raising() -> Any:
    raise RuntimeError("a fault of the hook")


def a_push() -> Question:
    return Question(1, ("push", "c", 1, 0), Push(1, "m", "c", 1, False, False, 1, None))


def a_client() -> Question:
    return Question(1, (AUTHENTICATE, "me", NO_QUEUE, 0), CONNECT)


async def admitted(access: Access) -> Judge:
    judge = Judge(access, None, 0.05, 1_000)
    decision = await judge.decide(a_client(), PLACE, Port())
    assert decision.allowed
    return judge


@pytest.mark.parametrize(
    ("answer", "allowed", "keep_s"),
    [
        (True, True, 7.0),
        (False, False, 7.0),
        (Answer(True), True, 0.0),
        (Answer(True, 3.0), True, 3.0),
        (Answer(False, 3.0), False, 3.0),
    ],
)
async def test_an_answer_is_taken_as_it_is(answer: Any, allowed: bool, keep_s: float) -> None:
    judge = await admitted(Scripted(saying(answer)))
    decision = await judge.decide(a_push(), PLACE, Port())
    assert (decision.allowed, decision.keep_s) == (allowed, keep_s)


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (raising, "the hook failed"),
        (saying(None), "'NoneType' is not an answer"),
        (saying(1), "'int' is not an answer"),
        (saying("yes"), "'str' is not an answer"),
    ],
)
async def test_whatever_is_no_answer_refuses_once_and_is_logged(
    act: Callable[[], Awaitable[Any]], complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    judge = await admitted(Scripted(act))
    decision = await judge.decide(a_push(), PLACE, Port())
    assert (decision.allowed, decision.keep_s) == (False, 0.0)
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert complaint in record.getMessage()
    assert "push 'c'" in record.getMessage()
    assert (record.exc_info is not None) == (act is raising)


@pytest.mark.parametrize(
    ("act", "names"),
    [
        (saying(["a"]), {"a"}),
        (saying(set()), set()),
        (saying(None), None),
        (saying(True), None),
        (saying("ab"), None),
        (raising, None),
    ],
)
async def test_a_list_is_cut_or_refused(
    act: Callable[[], Awaitable[Any]], names: set[str] | None
) -> None:
    judge = await admitted(Scripted(act))
    question = Question(1, ("see-channel", "", NO_QUEUE, 0), ListChannels(1, "r"))
    decision = await judge.decide(question, PLACE, Port())
    assert decision.allowed == (names is not None)
    if names is not None:
        assert decision.names == frozenset(names)


async def test_nobody_is_asked_about_a_client_that_was_never_let_in() -> None:
    access = Scripted(saying(True))
    judge = await admitted(access)
    judge.forget(1)
    assert not (await judge.decide(a_push(), PLACE, Port())).allowed
    assert access.asked == []


async def test_a_client_is_described_and_remembered() -> None:
    access = Scripted(saying(True))
    judge = await admitted(access)
    await judge.decide(a_push(), PLACE, Port())
    (applicant,) = access.applicants
    assert (applicant.client_id, applicant.name, applicant.client_type) == ("me", "n", "t")
    assert (applicant.token, applicant.properties) == ("word", {"A": "b"})
    assert (applicant.peer, applicant.secure, applicant.door) == ("pipe", False, "tmqp")
    (who,) = access.asked
    assert (who.client_id, who.name, who.client_type, who.session) == ("me", "n", "t", 1)
    assert who.authenticated
    assert who.properties == {"A": "b"}


async def test_a_client_without_an_id_is_told_as_such() -> None:
    """The door has made an id, which the applicant did not choose (F30)."""
    access = Scripted(saying(True))
    connect = Connect(1, None, "f" * 32, None, None, "tmqp", ConnectionInformation(""))
    decision = await Judge(access, None, 1.0, 1).decide(
        Question(1, (AUTHENTICATE, connect.client_id, NO_QUEUE, 0), connect), PLACE, Port()
    )
    assert access.applicants[0].client_id == ""
    assert decision.connect is not None
    assert decision.connect.client_id == "f" * 32


async def test_a_client_of_another_door_is_described_as_far_as_it_is_known() -> None:
    access = Scripted(saying(True))
    judge = Judge(access, None, 1.0, 1)
    connect = Connect(1, None, "me", None, None, "line")
    question = Question(1, (AUTHENTICATE, "me", NO_QUEUE, 0), connect)
    assert (await judge.decide(question, PLACE, Port())).allowed
    await judge.decide(a_push(), PLACE, Port())
    assert access.applicants == [Applicant(1, "me", peer="pipe", door="line")]
    assert access.asked == [Identity(1, "me", authenticated=True, peer="pipe", door="line")]


async def test_an_admission_says_who_the_client_is() -> None:
    access = Scripted(saying(True), Admission("you", "N", "T", False, True, ["data"]))
    judge = Judge(access, None, 1.0, 1)
    decision = await judge.decide(a_client(), PLACE, Port())
    connect = decision.connect
    assert connect is not None
    assert (connect.client_id, connect.name, connect.client_type) == ("you", "N", "T")
    assert (connect.authenticated, connect.node, connect.request) == (False, True, "r")
    await judge.decide(a_push(), PLACE, Port())
    assert access.asked[0].data == ["data"]
    assert access.asked[0].client_id == "you"


@pytest.mark.parametrize("welcome", [False, raising, saying(None), saying("x")])
async def test_a_client_that_is_refused_is_named_without_its_token(
    welcome: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tmqp_server.access")
    judge = Judge(Scripted(saying(True), welcome), None, 0.05, 1)
    decision = await judge.decide(a_client(), PLACE, Port())
    assert not decision.allowed
    assert "word" not in caplog.text
    assert "not admitted as 'me'" in caplog.text


# --- Custom messages -----------------------------------------------------------------------------


def handed_over(*, wants: bool = True) -> Question:
    client = Client(1, "me", "n", None, "tmqp", None, False, 0.0)
    frame = Frame.build(
        MessageType.CUSTOM, "t", 9, b"p", message_id="m", pending_response=wants, high_priority=True
    )
    question = Question(1, (MESSAGE, "", NO_QUEUE, 0), None)
    question.handed_over = HandOver(1, client, frame)
    return question


def frames(port: Port) -> list[Frame]:

    return FrameDecoder(Limits()).feed(b"".join(port.sent))


async def test_a_custom_message_is_taken_and_answered() -> None:
    taken: list[CustomMessage] = []
    wanted: list[bool] = []

    async def hook(message: CustomMessage) -> None:
        taken.append(message)
        wanted.append(message.wants_response)
        await message.reply(b"r", content_type=5, headers=[("K", "v")])
        await message.respond(0, b"done")
        wanted.append(message.wants_response)
        await message.respond(1)

    port = Port()
    judge = Judge(None, hook, 1.0, 1_000)
    decision = await judge.decide(handed_over(), PLACE, port)
    assert decision.allowed
    assert wanted == [True, False]
    (message,) = taken
    assert (message.payload, message.content_type) == (b"p", 9)
    assert (message.who.client_id, message.who.name, message.who.peer) == ("me", "n", "pipe")
    assert "'m'" in repr(message)
    reply, response = frames(port)
    assert (reply.type, reply.content_type, reply.payload) == (0, 5, b"r")
    assert (reply.message_id, reply.target, reply.headers) == ("m", "me", [("K", "v")])
    assert (response.type, response.content_type) == (MessageType.RESPONSE, 0)
    assert (response.message_id, response.target, response.payload) == ("m", "me", b"done")
    assert response.high_priority


async def test_the_hook_knows_whom_access_has_let_in() -> None:
    taken: list[CustomMessage] = []

    async def hook(message: CustomMessage) -> None:
        taken.append(message)

    access = Scripted(saying(True), Admission(data="d"))
    judge = Judge(access, hook, 1.0, 1_000)
    await judge.decide(a_client(), PLACE, Port())
    await judge.decide(handed_over(), PLACE, Port())
    assert taken[0].who.data == "d"
    assert taken[0].who.authenticated


async def _wrong(message: CustomMessage) -> None:
    raise RuntimeError("a fault of the hook")


async def _slow(message: CustomMessage) -> None:
    await anyio.sleep(30)


async def _large(message: CustomMessage) -> None:
    await message.reply(b"x" * 1_001)


@pytest.mark.parametrize("wants", [True, False])
@pytest.mark.parametrize(
    ("hook", "complaint"), [(_wrong, "failed"), (_slow, "took too long"), (_large, "failed")]
)
async def test_a_hook_that_fails_hurts_its_message_only(
    hook: Any, complaint: str, wants: bool, caplog: pytest.LogCaptureFixture
) -> None:
    port = Port()
    decision = await Judge(None, hook, 0.05, 1_000).decide(handed_over(wants=wants), PLACE, port)
    assert decision.allowed, "the client goes on"
    assert complaint in caplog.text
    codes = [(each.type, each.content_type) for each in frames(port)]
    assert codes == ([(MessageType.RESPONSE, 500)] if wants else [])


async def test_a_client_that_has_gone_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    async def hook(message: CustomMessage) -> None:
        await message.respond()

    for each in (hook, _wrong):
        decision = await Judge(None, each, 1.0, 1_000).decide(handed_over(), PLACE, Port(gone=True))
        assert isinstance(decision, Verdict)
    levels = [record.levelno for record in caplog.records]
    assert levels.count(logging.ERROR) == 1
