"""Channels that have another name at one door, by the configuration."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.tmqp_server.test_doors import HTTP, TOY, ToyClient, serving
from tests.tmqp_server.test_nsq_door import NSQ, nsq
from tests.tmqp_server.test_small_doors import SMQ, Lines
from tmqp_client import connect
from tmqp_server import ConfigError, Server
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import MessageReceived, ResponseReceived

LOOKUPD = {"protocol": "nsqlookupd", "listen": ["127.0.0.1:0"]}
NSQD_HTTP = {"protocol": "nsqd-http", "listen": ["127.0.0.1:0"]}


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


async def by_http(server: Server, method: str, target: str, body: bytes = b"") -> Any:
    """Ask nsqd by HTTP; the JSON of the answer, if it is any."""
    (address,) = server.door_addresses("nsqd-http")
    url = address.replace("nsqd-http", "http") + target
    async with httpx.AsyncClient() as web:
        answer = await web.request(method, url, content=body)
    assert answer.status_code == 200, answer.text
    return answer.json() if "json" in target else None


async def test_nsq_and_simple_mq_reach_one_queue_by_different_names() -> None:
    """Aliases were taken at NSQ's doors and had no effect."""
    first = {**NSQ, "aliases": {"orders:pack": "Work", "orders": "in"}}
    second = {**SMQ, "aliases": {"jobs": "work"}}
    async with serving(first, second, NSQD_HTTP) as server:
        lines = await Lines.dial(int(server.door_addresses("smq")[0].rpartition(":")[2]))
        async with nsq(server) as client:
            assert await client.ask(writing.sub(b"orders", b"pack")) == ResponseReceived(b"OK")
            await lines.say(b"M:jobs:1\n")
            message = await client.ask(writing.rdy(1))
            assert isinstance(message, MessageReceived)
            assert message.body == b"1"
            stats = await by_http(server, "GET", "/stats?format=json")
            (topic,) = stats["topics"]
            assert topic["topic_name"] == "orders"
            (channel,) = topic["channels"]
            assert (channel["channel_name"], channel["in_flight_count"]) == ("pack", 1)
        await lines.say(b"C:jobs\n")
        assert await lines.line() == b"1"
        await by_http(server, "POST", "/pub?topic=orders", b"2")
        assert await lines.line() == b"2"
        await by_http(server, "POST", "/pub?topic=work", b"another topic")
        names = [each.channel_name.removeprefix("\x01") for each in server.broker.queues()]
        assert sorted(names) == ["%77ork", "Work", "in"]
        await by_http(server, "POST", "/topic/delete?topic=orders")
        assert len(server.broker.queues()) == 1
        await lines.close()


async def test_doors_of_nsq_in_one_server_have_the_same_aliases() -> None:
    named: dict[str, Any] = {**NSQ, "aliases": {"t": "work"}}
    cases: list[tuple[dict[str, Any], str]] = [
        (NSQ, "doors: nsq: all doors of nsq in one server must have the same aliases"),
        ({**NSQD_HTTP, "aliases": {"t": "other"}}, "doors: nsqd-http: the aliases of topics and"),
    ]
    for door, complaint in cases:
        with pytest.raises(ConfigError, match=complaint):
            async with serving(named, door):
                pass
    async with serving({**NSQD_HTTP, "aliases": {"t": "work"}}) as server:
        await by_http(server, "POST", "/pub?topic=t", b"alone")
        assert [each.channel_name for each in server.broker.queues()] == ["work"]


@pytest.mark.parametrize(
    ("door", "complaint"),
    [
        ({**TOY, "aliases": {"a": "x y"}}, "doors: toy: aliases: 'a' cannot stand for 'x y'"),
        ({**TOY, "aliases": {"a": "x" * 256}}, "aliases: 'x+' has more than 255 bytes"),
        (
            {**HTTP, "aliases": {"a": "b"}},
            "doors: http: aliases: this protocol uses the names",
        ),
        ({**LOOKUPD, "aliases": {"a": "b"}}, "doors: nsqlookupd: aliases: this protocol uses"),
        (
            {**NSQ, "aliases": {"Kasse 1": "b"}},
            "doors: nsq: aliases: 'Kasse 1' is neither",
        ),
        (
            {**NSQ, "aliases": {"t:": "b"}},
            "doors: nsq: aliases: 't:' is neither",
        ),
        ({**NSQ, "aliases": {"t:c:d": "b"}}, "aliases: 't:c:d' is neither"),
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
