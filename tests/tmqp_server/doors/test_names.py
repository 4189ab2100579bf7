"""Names of other protocols and channels: one channel for each name, and exact names."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tmqp_server.engine.kept import DURABLE, KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.names import EXACT_MARK
from tmqp_server.access.gate import Question
from tmqp_server.doors.names import DoorNames, channel_of, exact_channel, foreign_name
from tmqp_server.engine.model.channel_names import is_channel_name


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


# --- Aliases -------------------------------------------------------------------------------------


def test_an_alias_stands_for_its_channel_in_any_case() -> None:
    names = DoorNames({"Kasse 1": "Orders"})
    assert names.channel_of(b"Kasse 1") == names.exact_channel(b"Kasse 1") == "Orders"
    for spelling in ("Orders", "orders", EXACT_MARK + "ORDERS"):
        assert names.foreign_name(spelling) == b"Kasse 1"
    assert names.exact_channel(b"kasse 1") == EXACT_MARK + "kasse%201", "another name"


def test_a_name_whose_channel_an_alias_has_taken_gets_another_one() -> None:
    names = DoorNames({"kasse": "été", "x": "orders"})
    assert names.channel_of(b"Orders") == "%4Frders"
    assert names.channel_of("Été".encode()) == "%C3%89té"
    assert names.foreign_name("%4Frders") == b"Orders"
    assert names.channel_of(b"orders2") == "orders2"


@given(
    st.binary(max_size=12) | st.text("%4FaA \x01é\u2028", max_size=6).map(str.encode),
    st.sampled_from(["a", "A", "%4", "é", "4", "aa", "%", "x"]),
)
@example(b"\xc3\xa9", "é")
@example(b"%61", "a")
def test_with_aliases_no_two_names_share_a_channel(name: bytes, target: str) -> None:
    if target == "%":
        with pytest.raises(ValueError, match="cannot stand for '%'"):
            DoorNames({"alias": target})
        return
    names = DoorNames({"alias": target})
    channel = names.channel_of(name)
    assert is_channel_name(channel, 255)
    assert names.foreign_name(channel) == name
    assert (channel.lower() == target.lower()) == (name == b"alias")


@pytest.mark.parametrize(
    ("aliases", "complaint"),
    [
        ({"": "orders"}, "the name for the channel 'orders' is empty"),
        ({"a": ""}, "'a' cannot stand for ''"),
        ({"a": "two words"}, "'a' cannot stand for 'two words'"),
        ({"a": "x%20y"}, "'a' cannot stand for 'x%20y'"),
        ({"a": "x\u202ey"}, "'a' cannot stand for"),
        ({"a": "orders", "b": "ORDERS"}, "'a' and 'b' both stand for 'ORDERS'"),
    ],
)
def test_an_alias_that_cannot_be_is_refused(aliases: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        DoorNames(aliases)
