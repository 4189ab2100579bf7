"""Names of other protocols and channels: one channel for each name, and exact names."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tmqp_server.engine.kept import DURABLE, KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.names import EXACT_MARK
from tmqp_server.access.gate import Question
from tmqp_server.doors.names import channel_of, exact_channel, foreign_name
from tmqp_server.engine.model.channels import is_channel_name


@pytest.mark.parametrize(
    ("name", "channel"),
    [
        (b"orders", "orders"),
        (b"orders.new-1_x", "orders.new-1_x"),
        ("voilà".encode(), "voilà"),
        (b"a b", "a%20b"),
        (b"a@b;c*", "a%40b%3Bc%2A"),
        (b"50%", "50%"),
        (b"50%4F", "50%254F"),
        (b"%", "%25"),
        (b"", "%"),
        (b"\xff\x00", "%FF%00"),
        ("a\u202eb".encode(), "a%E2%80%AEb"),
    ],
)
def test_a_name_is_escaped_only_where_it_must_be(name: bytes, channel: str) -> None:
    assert channel_of(name) == channel
    assert exact_channel(name) == EXACT_MARK + channel
    assert foreign_name(channel) == foreign_name(exact_channel(name)) == name


@given(st.binary(max_size=20) | st.text("%4Fa \x01é\u2028", max_size=8).map(str.encode))
@example(b"%2")
@example(b"%%41")
def test_every_name_has_a_channel_of_its_own(name: bytes) -> None:
    channel = channel_of(name)
    assert is_channel_name(channel, 255)
    assert foreign_name(channel) == name


def _find(world: World, name: str) -> str | None:
    channel = world.broker._core.channels.find(name)
    return None if channel is None else channel.name


def _exact(world: World, *names: str) -> list[str | None]:
    return [_find(world, exact_channel(name.encode())) for name in names]


def test_a_channel_of_a_case_sensitive_door_is_one_for_each_spelling() -> None:
    world = World()
    for name in ("OneToOne", "oneToOne", "onetoone", "ÉTÉ", "été"):
        world.join("a", exact_channel(name.encode()))
    assert _exact(world, "OneToOne", "oneToOne", "onetoone", "OnetoOne") == [
        "OneToOne",
        "one%54o%4Fne",
        "%6Fnetoone",
        None,
    ]
    assert _exact(world, "ÉTÉ", "été", "Été") == ["ÉTÉ", "%C3%A9té", None]
    # A TMQP client reaches each of them by its real name, in any case.
    assert [_find(world, name) for name in ("ONETOONE", "ONE%54O%4fNE", "%6fnetoone")] == [
        "OneToOne",
        "one%54o%4Fne",
        "%6Fnetoone",
    ]
    assert foreign_name("one%54o%4Fne") == b"oneToOne"


def test_an_exact_name_is_found_by_one_look_up() -> None:
    world = World()
    for name in ("Orders", "orders", "ORDERS"):
        world.join("a", exact_channel(name.encode()))
    spellings = world.broker._core.channels.by_spelling
    found = [spellings[exact_channel(name)].exact for name in (b"Orders", b"orders", b"ORDERS")]
    assert found == ["Orders", "orders", "ORDERS"]


def test_a_channel_of_tmqp_is_met_by_every_spelling() -> None:
    world = World()
    world.join("a", "Orders")
    world.join("b", exact_channel(b"ORDERS"))
    assert _exact(world, "Orders", "orders", "oRders") == ["Orders"] * 3
    assert len(world.broker._core.channels.by_key) == 1


def test_messages_of_one_exact_name_stay_apart_when_tmqp_takes_the_plain_name() -> None:
    world = World()
    for name in ("Orders", "orders"):
        world.join("a", exact_channel(name.encode()))
    world.leave("a", exact_channel(b"Orders"))
    table = world.broker._core.channels
    first = table.find("Orders")
    assert first is not None
    table.remove(first)
    assert _exact(world, "Orders", "orders") == [None, "%6Frders"]
    world.join("b", "ORDERS")
    assert _exact(world, "Orders", "orders") == ["ORDERS", "%6Frders"]


@pytest.mark.parametrize("name", ["", "a\x01b", "a b", "x" * 256])
def test_no_exact_name_makes_a_channel_that_could_not_be(name: str) -> None:
    world = World()
    assert world.join("a", EXACT_MARK + name) == ["a join: 400"]


def test_an_escaped_name_may_be_too_long() -> None:
    world = World()
    assert world.join("a", exact_channel(b"A" * 200)) == ["a join: 0"]
    assert world.join("a", exact_channel(b"a" * 100 + b"A" * 100)) == ["a join: 400"]


def test_exact_names_survive_a_restart() -> None:
    world = KeptWorld()
    names = [exact_channel(name) for name in (b"Orders", b"orders", b"plain")]
    for name in (*names, "Native"):
        world.create(DURABLE, channel=name)
        world.push(f"m-{name[-6:]}", channel=name)
    world.sync()
    before = _exact(world, "Orders", "orders", "plain", "native", "ORDERS", "Plain")
    assert before == ["Orders", "%6Frders", "plain", "Native", None, None]
    for start in (world.restart, world.crash):
        start()
        world.sync()
        assert _exact(world, "Orders", "orders", "plain", "native", "ORDERS", "Plain") == before
        assert len(list(world.broker.queues())) == 4


def test_who_decides_about_rights_sees_the_name_without_the_mark() -> None:
    question = Question(1, ("push", exact_channel(b"Orders"), 1, 0), None)
    assert question.about == "Orders"
    assert question.need[1] == exact_channel(b"Orders")
