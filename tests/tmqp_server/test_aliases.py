"""Channels that have another name at one door, by the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tmqp_server.test_doors import HTTP, TOY, ToyClient, serving
from tmqp_client import connect
from tmqp_server import ConfigError


async def test_a_channel_has_another_name_at_one_door() -> None:
    named = {**TOY, "aliases": {"Kasse 1": "orders"}}
    async with serving(named, TOY) as server, connect(str(server.addresses[0])) as native:
        first, second = server.door_addresses("toy")
        async with await ToyClient.dial(first, "one") as one, await ToyClient.dial(second) as two:
            assert (await one.ask(do="join", channel="Kasse 1"))["code"] == 0
            assert (await two.ask(do="join", channel="orders"))["code"] == 0
            await native.push("Orders", 1, b"by TMQP")
            assert [(await each.line())["channel"] for each in (one, two)] == ["Kasse 1", "orders"]
            await one.say(do="push", channel="orders", queue=1, id="m1")
            assert (await one.line())["is"] == "confirm", "another channel, which nobody joined"
            names = [each.name for each in await native.channels()]
            assert sorted(names) == ["%6Frders", "orders"]


@pytest.mark.parametrize(
    ("door", "complaint"),
    [
        ({**TOY, "aliases": {"a": "x y"}}, "doors: toy: aliases: 'a' cannot stand for 'x y'"),
        ({**TOY, "aliases": {"a": "x" * 256}}, "aliases: 'x+' has more than 255 bytes"),
        ({**HTTP, "aliases": {"a": "b"}}, "doors: http: aliases: this protocol's names are those"),
        ({**TOY, "aliases": {"a": 1}}, "doors.aliases.a must be"),
        ({**TOY, "aliases": ["a"]}, "doors.aliases must be a table"),
    ],
)
async def test_an_alias_that_cannot_be_is_named_at_the_start(
    door: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        async with serving(door):
            pass
