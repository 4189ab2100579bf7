"""Access: what is asked of it by which right, what the table answers, how one's own is found."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from tmqp_server import (
    Access,
    AccessConfig,
    Admission,
    Answer,
    Applicant,
    ConfigError,
    Identity,
    TableAccess,
    parse_access,
)
from tmqp_server.access import rights
from tmqp_server.access.auth import NO_QUEUE, load_access
from tmqp_server.access.custom import load_hook
from tmqp_server.access.gate import Question
from tmqp_server.access.rights import RIGHTS
from tmqp_server.access.roles import ADMIN
from tmqp_server.access.tokens import hash_token
from tmqp_server.engine.commands import CredentialKind, Credentials
from tmqp_server.engine.events import CLIENT_JOINED
from tmqp_server.io.judge import RIGHT_CALLS

pytestmark = pytest.mark.anyio

WHO = Identity(1, "me")


class Told(Access):
    """Notes what it is asked, and says ``answer``."""

    def __init__(self, answer: bool | Answer = True) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.answer = answer

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        assert who is WHO
        self.asked.append((right, subject, queue_id))
        return self.answer


@pytest.mark.parametrize("right", RIGHTS)
async def test_each_right_is_asked_about_by_its_own_name(right: str) -> None:
    subject = "" if RIGHTS[right] == rights.OF_NOTHING else "x"
    question = Question(1, (right, subject, 5, CLIENT_JOINED), None)
    access = Told()
    assert await RIGHT_CALLS[right](access, WHO, question) is True
    (asked,) = access.asked
    assert asked[:2] == (right, subject)
    assert asked[2] in {5, NO_QUEUE}
    assert await RIGHT_CALLS[right](Access(), WHO, question) is False, "nothing by default"


def test_all_rights_have_a_call() -> None:
    assert set(RIGHT_CALLS) == set(RIGHTS)


async def test_nobody_connects_by_default() -> None:
    assert await Access().authenticate(Applicant(1)) is False


class SomeSeen(Access):
    """Lets every second channel be seen."""

    async def may_see_channel(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        return Answer(channel in "ac") if channel != "d" else True


async def test_a_list_is_what_may_be_seen_one_by_one() -> None:
    assert await SomeSeen().visible_channels(WHO, ["a", "b", "c", "d"]) == ["a", "c", "d"]
    assert await Access().visible_channels(WHO, ["a", "b"]) is None
    assert await Told().visible_channels(WHO, []) == []
    assert await Access().visible_channels(WHO, []) is None


def test_answers_are_forgotten_where_they_are_kept() -> None:
    access = Told()
    forgotten: list[tuple[str, int | None]] = []

    def first(session: int | None) -> None:
        forgotten.append(("first", session))

    def second(session: int | None) -> None:
        forgotten.append(("second", session))

    access.forget_answers()
    access.attach(first)
    access.attach(second)
    access.forget_answers(WHO)
    access.detach(first)
    access.forget_answers()
    assert forgotten == [("first", 1), ("second", 1), ("second", None)]


# --- The table -----------------------------------------------------------------------------------


def table(**more: Any) -> TableAccess:
    roles = {"clerk": {"rights": ["push", "see-channel"], "channels": ["orders", "o-*"]}}
    tokens = [
        {"token": "clerk's", "roles": ["clerk"], "client_ids": ["c-*"], "client_names": ["n"]},
        {"hash": hash_token("boss's"), "roles": ["admin"], "name": "boss"},
        {"token": "node's", "roles": [], "node": True, "client_types": ["server"]},
    ]
    return TableAccess(parse_access({"roles": roles, "tokens": tokens, **more}))


async def test_a_token_brings_its_roles() -> None:
    admitted = await table().authenticate(Applicant(1, token="boss's", client_id="anything"))
    assert isinstance(admitted, Admission)
    assert admitted.data.roles == (ADMIN,)
    assert admitted.authenticated


@pytest.mark.parametrize("token", ["", "wrong", "boss", "boss's ", "BOSS'S"])
async def test_no_other_token_does(token: str) -> None:
    assert await table().authenticate(Applicant(1, token=token)) is False


async def test_who_brings_no_token_is_anonymous_where_that_is_allowed() -> None:
    access = table(anonymous={"roles": ["clerk"], "client_types": ["guest"]})
    guest = await access.authenticate(Applicant(1, client_type="guest"))
    assert isinstance(guest, Admission)
    assert not guest.authenticated
    assert [role.name for role in guest.data.roles] == ["clerk"]
    assert await access.authenticate(Applicant(1, client_type="admin")) is False
    assert await access.authenticate(Applicant(1, token="wrong")) is False, "it lied"


@pytest.mark.parametrize(
    ("applicant", "admitted"),
    [
        (Applicant(1, "c-1", token="clerk's"), True),
        (Applicant(1, "", "n", token="clerk's"), True),
        (Applicant(1, "d-1", token="clerk's"), False),
        (Applicant(1, "c-1", "m", token="clerk's"), False),
        (Applicant(1, "c-1", "n", "any", token="clerk's"), True),
        (Applicant(1, client_type="server", token="node's"), True),
        (Applicant(1, client_type="client", token="node's"), False),
    ],
)
async def test_a_token_is_for_the_names_it_is_for(applicant: Applicant, admitted: bool) -> None:
    assert bool(await table().authenticate(applicant)) is admitted


PROOFS = [
    {"user": "ann", "password": "same", "roles": ["clerk"], "name": "ann"},
    {"user": "bob", "hash": hash_token("same"), "roles": ["clerk"], "name": "bob"},
    {"token": "of nobody", "roles": ["clerk"], "name": "token"},
    {"common_name": "press-1", "roles": ["clerk"], "name": "certificate"},
    {"public_key": "a1b2", "roles": ["clerk"], "name": "key"},
    {"token": "the door's", "roles": ["clerk"], "name": "door"},
]


def by(
    kind: CredentialKind, secret: str, user: str = "", *, optional: bool = False, **more: Any
) -> Applicant:
    shown = Credentials(kind, secret, user, optional)
    return Applicant(1, credentials=shown, token=secret, **more)


@pytest.mark.parametrize(
    ("applicant", "entry"),
    [
        (by("password", "same", "ann"), "ann"),
        (by("password", "same", "bob"), "bob"),
        (by("password", "same", "cat"), None),
        (by("password", "other", "ann"), None),
        (by("token", "same"), None),
        (by("token", "of nobody"), "token"),
        (by("password", "of nobody", "anybody"), "token"),
        (Applicant(1, common_name="press-1"), "certificate"),
        (Applicant(1, common_name="press-1", acts_as="door"), "certificate"),
        (Applicant(1, common_name="press-2", acts_as="door"), "door"),
        (Applicant(1, common_name="press-2"), None),
        (by("token", "of nobody", common_name="press-1"), "token"),
        (by("token", "wrong", common_name="press-1"), None),
        (by("public-key", "a1b2"), "key"),
        (by("public-key", "of nobody"), None),
        (by("public-key", "of nobody", acts_as="door"), None),
        (by("public-key", "of nobody", optional=True), None),
        (by("public-key", "of nobody", optional=True, acts_as="door"), "door"),
        (by("public-key", "of nobody", optional=True, common_name="press-1"), "certificate"),
        (by("public-key", "a1b2", optional=True, acts_as="door"), "key"),
        (by("token", "a1b2"), None),
        (by("password", "press-1", "press-1"), None),
    ],
)
async def test_each_kind_of_proof_is_for_its_own_entry(
    applicant: Applicant, entry: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    roles = {"clerk": {"rights": ["push"], "channels": ["orders"]}}
    access = TableAccess(parse_access({"roles": roles, "tokens": PROOFS}))
    admitted = await access.authenticate(applicant)
    assert bool(admitted) is (entry is not None)
    said = [record.getMessage() for record in caplog.records]
    assert said == ([] if entry is None else [f": connects as {entry}"])
    if isinstance(admitted, Admission):
        assert admitted.authenticated is (entry != "door")


async def test_a_node_is_told_as_one() -> None:
    node = await table().authenticate(Applicant(1, token="node's"))
    assert isinstance(node, Admission)
    assert node.node


async def test_slow_hashes_are_compared_outside_the_loop() -> None:
    tokens = [{"hash": hash_token("s", slow=True), "roles": ["admin"]}]
    access = TableAccess(parse_access({"tokens": tokens}))
    assert await access.authenticate(Applicant(1, token="s"))
    assert not await access.authenticate(Applicant(1, token="t"))


async def test_the_table_answers_for_the_roles_and_its_answers_hold() -> None:
    access = table()
    admitted = await access.authenticate(Applicant(1, token="clerk's"))
    assert isinstance(admitted, Admission)
    clerk = Identity(1, "c-1", data=admitted.data)
    nobody = Identity(2, "x", data=())
    admitted = await access.authenticate(Applicant(3, token="boss's"))
    assert isinstance(admitted, Admission)
    boss = Identity(3, "b", data=admitted.data)
    assert access.keep_s == math.inf
    assert await access.may_push(clerk, "Orders", 1)
    assert not await access.may_push(clerk, "other", 1)
    assert not await access.may_join(clerk, "orders")
    assert await access.visible_channels(clerk, ["orders", "x", "O-1"]) == ["orders", "O-1"]
    assert await access.visible_channels(nobody, ["orders"]) is None
    assert await access.visible_channels(boss, ["x"]) == ["x"]
    assert not await access.may_push(nobody, "orders", 1)


# --- One's own -----------------------------------------------------------------------------------

MODULE = """
from tmqp_server.access.auth import Access

class Mine(Access):
    authenticates = False

    def __init__(self, word="none"):
        if word == "bad":
            raise RuntimeError("a bad word")
        self.word = word

made = Mine("made")

class Other:
    pass

async def hook(message): ...
def plain(message): ...

class Hook:
    async def __call__(self, message): ...

class BadHook(Hook):
    def __init__(self):
        raise RuntimeError("no")

ready = Hook()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's, and one that cannot be imported."""
    (tmp_path / "their_access.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "their_broken.py").write_text("1 / 0", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_access", raising=False)
    return "their_access"


def test_ones_own_class_is_found_and_made(module: str) -> None:
    made: Any = load_access(AccessConfig(f"{module}:Mine"))
    assert made.word == "none"
    made = load_access(parse_access({"kind": f"{module}:Mine", "arguments": {"word": "x"}}))
    assert made.word == "x"
    made = load_access(AccessConfig(f"{module}:made"))
    assert made.word == "made"
    assert load_access(AccessConfig()) is None


@pytest.mark.parametrize(
    ("path", "arguments", "reason"),
    [
        ("their_nowhere:X", {}, "their_nowhere:X cannot be imported"),
        ("their_broken:X", {}, "their_broken:X cannot be imported: ZeroDivisionError"),
        ("their_access:Missing", {}, "the module has no Missing"),
        ("their_access:Other", {}, "their_access:Other is not a tmqp_server.Access"),
        ("their_access:Mine", {"word": "bad"}, "cannot be created: RuntimeError"),
        ("their_access:Mine", {"words": 1}, "cannot be created: TypeError"),
        ("their_access:MODULE", {}, "has no MODULE"),
    ],
)
def test_what_cannot_be_used_is_told(
    module: str, path: str, arguments: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_access(AccessConfig(path, arguments=arguments))
    assert reason in str(caught.value)
    assert str(caught.value).startswith("access.kind: ")


def test_hooks_for_custom_messages_are_found(module: str) -> None:
    for name in ("hook", "Hook", "ready"):
        assert callable(load_hook(f"{module}:{name}"))
    for name, reason in (
        ("plain", "not a coroutine function"),
        ("Other", "not a coroutine function"),
        ("Missing", "has no Missing"),
        ("BadHook", "cannot be created: RuntimeError"),
    ):
        with pytest.raises(ConfigError, match=reason):
            load_hook(f"{module}:{name}")


def test_tokens_and_data_show_themselves_nowhere() -> None:
    assert "word" not in repr(Applicant(1, token="word"))
    assert "word" not in repr(Identity(1, "me", data="word"))
