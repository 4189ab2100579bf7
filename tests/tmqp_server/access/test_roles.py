"""Roles: which names fit, what a role allows, and the sentence each mistake in the table gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.access import rights
from tmqp_server.access.patterns import fits
from tmqp_server.access.rights import RIGHTS
from tmqp_server.access.roles import ADMIN, AccessConfig, AccessError, Role, parse_access
from tmqp_server.access.tokens import hash_token
from tmqp_server.config import ConfigError, ServerConfig, parse_config
from tmqp_server.engine.model.channel_names import matches

NAMES = st.text("abAB-", min_size=1, max_size=6)
PATTERNS = st.one_of(
    NAMES, NAMES.map("*{}".format), NAMES.map("{}*".format), NAMES.map("*{}*".format)
)


@given(NAMES.map(str.lower), PATTERNS.map(str.lower))
def test_patterns_are_those_of_the_protocols_lists(name: str, pattern: str) -> None:
    """F53; where all is in small letters, case makes no difference."""
    assert fits(name, [pattern]) == matches(name, pattern)


@given(NAMES, PATTERNS)
def test_no_pattern_of_channels_is_walked_around_by_another_spelling(
    name: str, pattern: str
) -> None:
    """F46: every spelling is the same channel, so every spelling gets the same answer."""
    role = Role("r", frozenset({rights.PUSH}), (pattern,))
    answers = {
        role.allows(rights.PUSH, spelling, 1)
        for spelling in (name, name.lower(), name.upper(), name.swapcase())
    }
    assert len(answers) == 1


def test_the_case_of_clients_and_routers_counts() -> None:
    role = Role("r", frozenset(RIGHTS), (), (), ("Anna", "@type:w*"), ("Main",))
    assert role.allows(rights.DIRECT, "Anna", -1)
    assert not role.allows(rights.DIRECT, "anna", -1)
    assert role.allows(rights.DIRECT, "@type:worker", -1)
    assert not role.allows(rights.DIRECT, "@name:worker", -1)
    assert role.allows(rights.PUBLISH, "Main", -1)
    assert not role.allows(rights.PUBLISH, "main", -1)


def test_nothing_is_allowed_that_is_not_written() -> None:
    nothing = Role("r", frozenset())
    everything = Role("r", frozenset(RIGHTS))
    for right, of in RIGHTS.items():
        assert not nothing.allows(right, "x", 1)
        assert everything.allows(right, "x", 1) == (of == rights.OF_NOTHING), right
        assert ADMIN.allows(right, "x", 1)
        assert ADMIN.allows(right, "", -1)


def test_a_role_with_queues_is_for_these_alone() -> None:
    role = Role("r", frozenset({rights.PUSH, rights.SEE_CHANNEL}), ("c",), ((1, 1), (5, 7)))
    allowed = [number for number in range(10) if role.allows(rights.PUSH, "c", number)]
    assert allowed == [1, 5, 6, 7]
    assert not role.allows(rights.SEE_CHANNEL, "c", -1), "the channel is more than these queues"


def test_events_of_the_whole_server_need_the_star() -> None:
    assert not Role("r", frozenset({"subscribe"}), ("c*",)).allows("subscribe", "", -1)
    assert Role("r", frozenset({"subscribe"}), ("*",)).allows("subscribe", "", -1)


TABLE = f"""
[access]

[access.roles.clerk]
rights = ["push", "pull"]
channels = ["orders", "bills-*"]
queues = [1, "5-7"]

[access.roles.all]
rights = ["all"]
clients = ["*"]

[[access.tokens]]
name = "shop"
token = "open sesame"
roles = ["clerk", "all"]
client_ids = ["shop-*"]

[[access.tokens]]
hash = "{hash_token("other", slow=True)}"
roles = ["admin"]
node = true

[access.anonymous]
roles = ["clerk"]
client_types = ["guest"]
"""


def test_a_table_is_read() -> None:
    config: AccessConfig = parse_config(TABLE)["access"]
    shop, other = config.tokens
    clerk, everything = shop.roles
    assert config.kind == "table"
    assert clerk.name == "clerk"
    assert sorted(clerk.rights) == ["pull", "push"]
    assert clerk.channels == ("orders", "bills-*")
    assert clerk.queues == ((1, 1), (5, 7))
    assert everything.rights == frozenset(RIGHTS)
    assert (shop.name, shop.client_ids, shop.client_names) == ("shop", ("shop-*",), ("*",))
    assert shop.hash is not None
    assert shop.hash.fits("open sesame")
    assert not shop.hash.slow
    assert (other.name, other.node, other.roles) == ("tokens[1]", True, (ADMIN,))
    assert other.hash is not None
    assert other.hash.slow
    assert config.anonymous is not None
    assert config.anonymous.hash is None
    assert config.anonymous.client_types == ("guest",)


def test_a_token_written_in_the_table_is_not_kept() -> None:
    assert "sesame" not in repr(ServerConfig(**parse_config(TABLE)))


def role(**fields: Any) -> dict[str, Any]:
    return {"roles": {"r": fields}}


def token(**fields: Any) -> dict[str, Any]:
    return {"tokens": [{"token": "t", "roles": ["admin"], **fields}]}


SLOW = {"hash": hash_token("t", slow=True), "roles": ["admin"]}

MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({}, "no client could connect"),
    ({"kinds": "x"}, "unknown key kinds; did you mean kind?"),
    ({"kind": 1}, "kind is 'open', 'table' or 'module:Class'"),
    ({"kind": "nonsense"}, "got 'nonsense'"),
    ({"kind": "a-b:C"}, "got 'a-b:C'"),
    ({"kind": "open", "tokens": []}, "tokens belongs to the kind 'table', not to 'open'"),
    ({"kind": "open", "arguments": {"a": 1}}, "arguments belong to a class of your own"),
    ({"arguments": {}}, "arguments belong to a class of your own, not"),
    ({"kind": "a:B", "arguments": 1}, "arguments is a table: [access.arguments]"),
    ({"roles": []}, "roles is a table"),
    ({"roles": {"r": 1}}, "roles.r is a table"),
    ({"roles": {"admin": {}}}, "'admin' is predefined"),
    (role(), "roles.r.rights is missing"),
    (role(rights="push"), "roles.r.rights must be a list of strings"),
    (role(rights=[1]), "roles.r.rights must be a list of strings"),
    (role(rights=["pusch"]), "roles.r: 'pusch' is not a right; did you mean push?"),
    (role(rights=["xyzzy"]), "roles.r: 'xyzzy' is not a right"),
    (
        role(rights=["push"], chanels=[]),
        "unknown key roles.r.chanels; did you mean roles.r.channels?",
    ),
    (role(rights=["push"], channels=["a*b"]), "a star must be at the beginning, at the end"),
    (role(rights=["push"], channels=[""]), "got ''"),
    (role(rights=["push"], queues=["x"]), "7 or '7-9' are queues, got 'x'"),
    (role(rights=["push"], queues=[-1]), "7 or '7-9' are queues, got -1"),
    (role(rights=["push"], queues=[True]), "got True"),
    (role(rights=["push"], queues=["9-7"]), "'9-7' are not queues"),
    (role(rights=["push"], queues=[65536]), "65536 are not queues between 0 and 65535"),
    (role(rights=["join"], queues=[1]), "roles.r: join is about a whole channel"),
    (role(rights=["all"], queues=[1]), "is about a whole channel"),
    ({"tokens": {}}, "tokens is a list of tables"),
    ({"tokens": [1]}, "tokens[0] is a table"),
    (token(hash="x"), "tokens[0] needs one of these: token, password, hash, public_key or"),
    ({"tokens": [{"roles": ["admin"]}]}, "tokens[0] needs one of these: token, password, hash"),
    (token(user="u"), "tokens[0].user needs a password or its hash, not a token"),
    ({"tokens": [{"password": "p", "roles": ["admin"]}]}, "tokens[0].password needs a user"),
    (
        {"tokens": [{"common_name": "", "roles": ["admin"]}]},
        "tokens[0].common_name must be a string",
    ),
    ({"tokens": [{"public_key": 1, "roles": ["admin"]}]}, "tokens[0].public_key must be a string"),
    (
        {"tokens": [{"user": 1, "password": "p", "roles": ["admin"]}]},
        "tokens[0].user must be a string",
    ),
    (token(token=7), "tokens[0].token must be a string"),
    ({"tokens": [{"token": " t", "roles": ["admin"]}]}, "tokens[0]: a token is one line"),
    ({"tokens": [{"hash": "x", "roles": ["admin"]}]}, "tokens[0]: a hash has the form"),
    (token(roles=["amdin"]), "tokens[0]: there is no role 'amdin'; did you mean admin?"),
    (token(roles=[]), "tokens[0].roles is missing"),
    (token(node=1), "tokens[0].node is true or false"),
    (token(name=1), "tokens[0].name must be a string"),
    (token(client_ids=["a*b"]), "tokens[0].client_ids: a star must be"),
    ({"tokens": [SLOW] * 5}, "at most 4 tokens may have a scrypt hash"),
    ({"anonymous": {"roles": ["admin"], "token": "t"}}, "unknown key anonymous.token"),
    ({"anonymous": 1}, "anonymous is a table"),
]


@pytest.mark.parametrize(("table", "reason"), MISTAKES, ids=range(len(MISTAKES)))
def test_each_mistake_gets_a_sentence(table: dict[str, Any], reason: str) -> None:
    with pytest.raises(AccessError) as caught:
        parse_access(table)
    assert reason in str(caught.value)


def test_a_mistake_in_a_file_names_the_table() -> None:
    with pytest.raises(ConfigError, match="access: no client could connect"):
        parse_config("[access]")
    with pytest.raises(ConfigError, match="access must be a table"):
        parse_config("access = 1")


def test_a_server_that_authenticates_may_be_reached_from_other_machines() -> None:
    """G1."""
    values = parse_config(TABLE)
    assert ServerConfig(**values, listen="tmq://0.0.0.0:0").access.kind == "table"
    for access in (AccessConfig(), parse_access({"kind": "open"})):
        with pytest.raises(ConfigError, match="clients are not authenticated"):
            ServerConfig(listen="tmq://0.0.0.0:0", access=access)


@pytest.mark.parametrize("path", ["x", "a:", ":b", "a.:b", "a:b c"])
def test_the_path_of_a_hook_is_checked(path: str) -> None:
    with pytest.raises(ConfigError, match="custom_messages must have the form module:attribute"):
        ServerConfig(custom_messages=path)
    with pytest.raises(ConfigError, match="custom_messages must be a string"):
        ServerConfig(**parse_config("custom_messages = 1"))


def test_monitors_and_operators_see_no_message_and_lead_none_elsewhere() -> None:
    payloads = {"browse", "cells-read", "feed", "join", "manage-routers", "pull"}
    token = {"name": "a", "token": "t", "roles": ["monitor", "operator"]}
    (entry,) = parse_access({"tokens": [token]}).tokens
    monitor, operator = entry.roles
    assert monitor.rights < operator.rights
    assert not payloads & operator.rights
    assert {each for each in RIGHTS if each.startswith("see-")} - monitor.rights == {"see-audit"}
    assert operator.allows("remove-queue", "any", 7)
    assert operator.allows("see-routers", "", -1)
    assert not monitor.allows("remove-queue", "any", 7)


def test_a_predefined_role_but_admin_can_be_replaced() -> None:
    token = {"name": "a", "token": "t", "roles": ["monitor"]}
    roles = {"monitor": {"rights": ["see-metrics"]}}
    (entry,) = parse_access({"roles": roles, "tokens": [token]}).tokens
    assert entry.roles[0].rights == {"see-metrics"}
