"""nsqadmin's API over real sockets: the recorded answers, actions, permissions, broken nodes."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx
import pytest

from tests.tmqp_nsq.nodes import GOLDEN, FakeLookupd, FakeNode, FakeNsqd, serving
from tests.waiting import until
from tmqp_nsq.addresses import Address
from tmqp_nsq.flags import FlagError, parse
from tmqp_nsq.listening import serve_web
from tmqp_nsq.nsqadmin import admin_site
from tmqp_nsq.tool_flags import NSQADMIN
from tmqp_nsq.web import WebServer

pytestmark = pytest.mark.cold


@asynccontextmanager
async def admin(*flags: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an nsqadmin with these flags."""
    values = parse(NSQADMIN, flags)
    async with admin_site(values) as site, anyio.create_task_group() as group:
        where = await serve_web(Address("127.0.0.1", 0), WebServer(site.handle).serve, group)
        base = f"http://{where}"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        async with httpx.AsyncClient(base_url=base, trust_env=False, verify=context) as client:
            yield client
        group.cancel_scope.cancel()


def recorded_by(text: str, nsqd: FakeNode, lookupd: FakeNode) -> str:
    """An answer as it would be with the ports of the recording."""
    text = text.replace(nsqd.address, "127.0.0.1:4151").replace(lookupd.address, "127.0.0.1:4161")
    return text.replace(f'"http_port":{nsqd.port},', '"http_port":4151,')


async def test_every_recorded_answer() -> None:
    nsqd = FakeNsqd()
    lookupd = FakeLookupd(nsqd)
    with serving(nsqd, lookupd):
        async with admin("--lookupd-http-address", lookupd.address) as client:
            for exchange in GOLDEN["exchanges"]:
                path = exchange["path"].replace("127.0.0.1:4151", nsqd.address)
                answer = await client.request(
                    exchange["method"],
                    path,
                    content=json.dumps(exchange["body"]) if exchange["body"] else b"",
                )
                what = f"{exchange['method']} {exchange['path']} {exchange['body']}"
                got = recorded_by(answer.text, nsqd, lookupd)
                assert answer.status_code == exchange["status"], what
                want = exchange["answer"]
                assert got == want if exchange["whole"] else got.startswith(want), what
                for name, value in exchange["headers"].items():
                    assert answer.headers[name] == value, what


async def test_sums_over_two_nodes() -> None:
    one, two = FakeNsqd("a"), FakeNsqd("b", "1.2.1")
    two.topics[0]["channels"][0]["depth"] = 7
    two.topics[0]["channels"][0]["backend_depth"] = 3
    two.topics[0]["channels"][0]["paused"] = True
    lookupds = FakeLookupd(one, two), FakeLookupd(one)
    with serving(one, two, *lookupds):
        flags = [f"--lookupd-http-address={each.address}" for each in lookupds]
        async with admin(*flags) as client:
            channel = (await client.get("/api/topics/at/ch")).json()
            topic = (await client.get("/api/topics/at")).json()
            nodes = (await client.get("/api/nodes")).json()["nodes"]
            listed = (await client.get("/api/topics?depths=true")).json()["topics"]
    assert [channel[name] for name in ("depth", "memory_depth", "backend_depth")] == [7, 4, 3]
    assert channel["message_count"] == 4
    assert channel["global_msg_count"] == 4
    assert channel["paused"] is True
    assert [each["hostname"] for each in channel["nodes"]] == ["a", "b"]
    assert len(channel["clients"]) == 2
    assert channel["e2e_processing_latency"]["percentiles"][0]["count"] == 2
    assert topic["channels"][0]["depth"] == 7
    assert topic["nodes"][0]["channels"][0]["depth"] == 0
    assert topic["message_count"] == 4
    assert [each["out_of_date"] for each in nodes] == [False, True]
    assert [len(each["remote_addresses"]) for each in nodes] == [2, 1]
    assert listed[0]["channel_depth"] == 7
    assert listed[0]["nodes"] == 2


async def test_without_lookupds() -> None:
    nsqd = FakeNsqd()
    with serving(nsqd):
        async with admin("-nsqd-http-address", nsqd.address) as client:
            assert (await client.get("/api/topics")).json()["topics"] == ["at"]
            assert (await client.get("/api/topics/none")).status_code == 404
            made = await client.post("/api/topics", json={"topic": "t", "channel": "c"})
            assert made.json() == {"message": ""}
            assert ("POST", "/channel/create?topic=t&channel=c") in nsqd.asked
            assert (await client.get("/api/topics?inactive=true")).json()["topics"] == {}


async def test_a_node_that_fails_is_a_warning_and_all_are_an_error() -> None:
    one, two = FakeNsqd("a"), FakeNsqd("b")
    lookupd = FakeLookupd(one, two)
    with serving(one, two, lookupd):
        async with admin("--lookupd-http-address", lookupd.address) as client:
            two.broken = True
            answer = await client.get("/api/topics/at")
            assert answer.status_code == 200
            message = answer.json()["message"]
            assert message.startswith('WARNING: got response 500 Internal Server Error "{')
            assert [each["hostname"] for each in answer.json()["nodes"]] == ["a"]
            one.broken = True
            answer = await client.get("/api/topics/at")
            assert answer.status_code == 502
            assert answer.json()["message"].startswith("UPSTREAM_ERROR: failed to query any nsqd")


class Odd(FakeNode):
    """Answers what no nsqlookupd answers."""

    value: Any = None

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        return 200, self.value


ODD: Final[tuple[Any, ...]] = (
    [],
    {"producers": "x", "topics": 7, "channels": {}},
    {"producers": [7, {}, {"broadcast_address": "a/../b", "http_port": 1}], "topics": [None]},
    {"producers": [{"broadcast_address": "h", "http_port": "80", "tombstones": 1}]},
    b"{",
)


@pytest.mark.parametrize("flag", ["--lookupd-http-address", "--nsqd-http-address"])
async def test_odd_answers_of_a_node_are_no_fault_of_ours(flag: str) -> None:
    odd = Odd()
    with serving(odd):
        async with admin(flag, odd.address) as client:
            for odd.value in ODD:
                for path in ("topics", "topics/t", "topics/t/c", "nodes", "nodes/n", "counter"):
                    answer = await client.get(f"/api/{path}")
                    assert answer.status_code in (200, 404, 502), (flag, path, answer.text)


async def test_only_administrators_change_something() -> None:
    nsqd = FakeNsqd()
    lookupd = FakeLookupd(nsqd)
    flags = ("--lookupd-http-address", lookupd.address, "--admin-user=ann", "--admin-user=bob")
    changes: list[tuple[str, str, Any]] = [
        ("POST", "/api/topics", {"topic": "t"}),
        ("POST", "/api/topics/at", {"action": "pause"}),
        ("POST", "/api/topics/at/ch", {"action": "empty"}),
        ("DELETE", "/api/topics/at/ch", None),
        ("DELETE", f"/api/nodes/{nsqd.address}", {"topic": "at"}),
        ("DELETE", "/api/topics/at", None),
    ]
    with serving(nsqd, lookupd):
        async with admin(*flags) as client:
            for user, status in (("", 403), ("eve", 403), ("bob", 200)):
                headers = {"X-Forwarded-User": user} if user else {}
                settings = (await client.get("/api/settings", headers=headers)).json()
                assert (settings["user"], settings["admin"]) == (user, status == 200)
                for method, path, body in changes:
                    answer = await client.request(method, path, json=body, headers=headers)
                    assert answer.status_code == status, (user, method, path, answer.text)
            assert (await client.get("/api/topics/at")).status_code == 502


async def test_another_site_cannot_have_a_visitor_delete_something() -> None:
    nsqd = FakeNsqd()
    with serving(nsqd):
        async with admin("--nsqd-http-address", nsqd.address) as client:
            for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
                answer = await client.request("DELETE", "/api/topics/at", headers=headers)
                assert answer.status_code == 403
            own = {"Origin": str(client.base_url).rstrip("/")}
            assert (await client.delete("/api/topics/at", headers=own)).status_code == 200


async def test_configuration_only_from_its_network() -> None:
    nsqd = FakeNsqd()
    lookupd, other = FakeLookupd(nsqd), FakeLookupd()
    start = ("--lookupd-http-address", lookupd.address)
    path = "/config/nsqlookupd_http_addresses"
    with serving(nsqd, lookupd, other):
        async with admin(*start, "--allow-config-from-cidr", "10.0.0.0/8") as client:
            assert (await client.get("/config/log_level")).status_code == 403
            assert (await client.put(path, json=[other.address])).status_code == 403
        async with admin(*start) as client:
            assert (await client.put(path, json=[other.address])).json() == [other.address]
            assert (await client.get("/api/topics")).json()["topics"] == ["at"][:0]
            for body in (b"", b"x", b"[]", b'["nothing"]'):
                assert (await client.put(path, content=body)).status_code in (400, 413)
            assert (await client.put("/config/log_level", content=b"debug")).json() == 1
            assert (await client.put("/config/log_level", content=b"loud")).status_code == 400
            assert (await client.put("/config/log_level", content=b"warn")).json() == 3
            assert (await client.get("/config/nothing")).json() == {"message": "INVALID_OPTION"}


async def test_each_action_is_told_to_the_endpoint() -> None:
    nsqd, endpoint = FakeNsqd(), FakeNode()
    with serving(nsqd, endpoint):
        flags = ("--nsqd-http-address", nsqd.address)
        told = ("--notification-http-endpoint", f"http://{endpoint.address}/told")
        async with admin(*flags, *told) as client:
            await client.post(
                "/api/topics/at/ch",
                json={"action": "pause"},
                auth=("ann", "secret"),
                headers={"User-Agent": "test"},
            )
            await until(lambda: len(endpoint.bodies) == 1)
    fields = json.loads(endpoint.bodies[0][1])
    assert {name: fields[name] for name in ("action", "topic", "channel", "node", "user")} == {
        "action": "pause_channel",
        "topic": "at",
        "channel": "ch",
        "node": "",
        "user": "ann",
    }
    assert fields["remote_ip"] == "127.0.0.1"
    assert fields["user_agent"] == "test"
    assert fields["url"].endswith("/api/topics/at/ch")
    assert fields["timestamp"] > 1_700_000_000


class FakeGraphite(FakeNode):
    """Answers with one number, or with a picture."""

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if query.get("format") == "json":
            return 200, [{"target": query["target"], "datapoints": [[300.0, 1]]}]
        return 200, b"<svg>" if query.get("target") == "bad" else b"\x89PNG..."


async def test_rates_and_graphs_of_graphite() -> None:
    nsqd, graphite = FakeNsqd(), FakeGraphite()
    with serving(nsqd, graphite):
        flags = (
            "--nsqd-http-address",
            nsqd.address,
            "--graphite-url",
            f"http://{graphite.address}",
        )
        async with admin(*flags, "--proxy-graphite", "--statsd-interval=30s") as client:
            answer = await client.get("/api/graphite?metric=rate&target=sumSeries(a.b)")
            assert answer.json() == {"rate": "10.00", "message": ""}
            assert "from=-60sec&until=-30sec" in graphite.asked[0][1]
            missing = await client.get("/api/graphite?metric=rate")
            assert missing.json() == {"message": "INVALID_ARG_TARGET"}
            picture = await client.get("/render?target=x&from=-2hours")
            assert picture.headers["content-type"] == "image/png"
            assert (await client.get("/render?target=bad")).status_code == 502
            assert "img-src 'self';" in picture.headers["content-security-policy"]
        async with admin(*flags) as client:
            page = await client.get("/")
            assert f"img-src 'self' http://{graphite.address};" in str(page.headers)
            assert (await client.get("/render?target=x")).status_code == 404


async def test_a_base_path() -> None:
    nsqd = FakeNsqd()
    with serving(nsqd):
        flags = ("--nsqd-http-address", nsqd.address, "--base-path", "/tools/nsq/")
        async with admin(*flags) as client:
            assert (await client.get("/api/topics")).status_code == 404
            assert (await client.get("/tools/nsq")).headers["location"] == "/tools/nsq/"
            assert (await client.get("/tools/nsq/api/topics")).json()["topics"] == ["at"]
            page = await client.get("/tools/nsq/topics/a%2Fb")
            assert 'src="/tools/nsq/static/app.js"' in page.text
            assert (await client.get("/tools/nsq/static/app.js")).status_code == 200


async def test_what_cannot_be_asked() -> None:
    nsqd = FakeNsqd()
    with serving(nsqd):
        async with admin("--nsqd-http-address", nsqd.address) as client:
            for path in ("/api", "/api/x", "/static/../api.py", "/static/x.js", "/topics/a/b/c/d"):
                assert (await client.get(path)).status_code == 404, path
            wrong = await client.put("/api/topics")
            assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, POST, OPTIONS")
            for body in (b"", b"[]", b"{", b"[" * 60_000):
                answer = await client.post("/api/topics", content=body)
                assert answer.json() == {"message": "INVALID_BODY"}, body[:9]
            bad = await client.post("/api/topics", json={"topic": "t", "channel": "c c"})
            assert bad.json() == {"message": "INVALID_CHANNEL"}
            large = await client.post("/api/topics", content=b"x" * 70_000)
            assert large.json() == {"message": "BODY_TOO_BIG"}
            head = await client.head("/topics")
            assert (head.status_code, head.content) == (200, b"")
            assert int(head.headers["content-length"]) > 500
            gzipped = await client.get("/static/app.js", headers={"Accept-Encoding": "gzip"})
            assert gzipped.headers["content-encoding"] == "gzip"


async def test_lines_that_are_not_http() -> None:
    nsqd = FakeNsqd()
    with serving(nsqd):
        async with admin("--nsqd-http-address", nsqd.address) as client:
            port = client.base_url.port or 0
            for line in (b"\x00\x01\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000):
                async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                    await stream.send(line)
                    answer = await stream.receive()
                    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")), answer
            assert (await client.get("/ping")).text == "OK"


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ((), "--nsqd-http-address or --lookupd-http-address is required"),
        (("--nsqd-http-address=a:1", "--lookupd-http-address=b:2"), "not both"),
        (("--nsqd-http-address=a",), "--nsqd-http-address must be HOST:PORT, not 'a'"),
        (("--nsqd-http-address=a:1", "--allow-config-from-cidr=x"), "must be a network"),
        (("--nsqd-http-address=a:1", "--graphite-url=x"), "must begin with http://"),
        (("--nsqd-http-address=a:1", "--statsd-gauge-format=x"), "must have one %s"),
        (("--nsqd-http-address=a:1", "--http-client-tls-cert=x"), "go together"),
        (("--nsqd-http-address=a:1", "--http-client-tls-root-ca-file=/none"), "cannot load"),
    ],
)
async def test_flags_that_cannot_be(flags: tuple[str, ...], text: str) -> None:
    with pytest.raises(FlagError, match=text):
        async with admin_site(parse(NSQADMIN, flags)):
            pass
