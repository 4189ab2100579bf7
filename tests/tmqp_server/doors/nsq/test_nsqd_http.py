"""nsqd by HTTP: what the original answered, byte for byte, and what is bounded."""

from __future__ import annotations

import json
import re
import struct
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.tmqp_server.doors.nsq.lines import DATA, Line, http_lines
from tests.tmqp_server.doors.nsq.stage import OFFSET_S, Answer, Stage
from tmqp_server.doors.nsq_http.stats import go_duration
from tmqp_server.engine.limits import EngineLimits
from tmqp_wires.nsq.writing import identify, mpub

HTTP = "nsqd-http"
GOLDEN = "nsqd-http-golden.txt"
#: What the probe sent where the size does not tell, by the target, in order.
SENT: dict[str, list[bytes]] = {
    "/mpub?topic=h_t": [b"a\nb\n\nc", b"", b"\n\n"],
    "/mpub?topic=h_t&binary=true": [
        struct.pack(">iicic", 2, 1, b"a", 1, b"b"),
        struct.pack(">iic", 2, 1, b"a"),
        struct.pack(">i", 0),
        b"ab",
    ],
    "/mpub?topic=h_t&binary=0": [b"a\nb"],
    "/mpub?topic=h_t&binary=1": [struct.pack(">ii", 1, 0)],
    "/config/log_level": [b"debug", b"info", b"bad", b""],
    "/config/nsqlookupd_tcp_addresses": [b"[]"],
}


def bodies() -> list[tuple[Line, bytes | None]]:
    """The recorded requests, each with the body that was sent."""
    left = {key: list(value) for key, value in SENT.items()}
    found: list[tuple[Line, bytes | None]] = []
    for line in http_lines(GOLDEN):
        body = None
        if line.size is not None:
            body = b"x" * line.size
            if left.get(line.target):
                body = left[line.target].pop(0)
            assert len(body) == line.size, line
        found.append((line, body))
    return found


def _masked(body: bytes) -> bytes:
    """An answer without what differs from run to run."""
    body = re.sub(rb'"start_time":\d+', b'"start_time":0', body)
    body = re.sub(rb'"memory":\{.*?\}', b'"memory":{}', body)
    return re.sub(rb'"(start_time|heap\w+|gc\w+|next_gc_bytes)":\d+', rb'"\1":0', body)


def test_every_answer_is_the_originals() -> None:
    stage = Stage(options={HTTP: {"old_names": False}})
    seen = 0
    for line, body in bodies():
        got = stage.ask(HTTP, line.method, line.target, body)
        assert got.status == line.status, (line, got)
        assert list(got.fields) == list(line.fields), line
        seen += 1
        if line.target.startswith("/stats"):
            if "channel=none" in line.target:
                # A producer by TCP was connected when this was recorded.
                assert b'"topics":[],"memory":{' in got.body
                assert got.body.endswith(b'"producers":[]}')
                continue
            assert _masked(got.body) == _masked(line.body), line
            continue
        assert _masked(got.body) == _masked(line.body), line
        assert got.fields == line.fields, line
    assert seen == 72


def test_statistics_count_what_was_published() -> None:
    stage = Stage()
    assert publish(stage, "/pub?topic=t", b"hello").status == 200
    assert publish(stage, "/channel/create?topic=t&channel=c").status == 200
    assert publish(stage, "/mpub?topic=t", b"a\nbb\nccc\n").status == 200
    assert publish(stage, "/pub?topic=t&defer=60000", b"later").status == 200
    (topic,) = statistics(stage)
    (channel,) = topic["channels"]
    assert (topic["message_count"], topic["message_bytes"], topic["depth"]) == (5, 16, 0)
    assert (channel["depth"], channel["deferred_count"], channel["message_count"]) == (4, 1, 5)


def publish(stage: Stage, target: str, body: bytes = b"") -> Answer:
    return stage.ask(HTTP, "POST", target, body)


def statistics(stage: Stage, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        stage.ask(HTTP, "GET", f"/stats?format=json{query}").body
    )["topics"]
    return found


def test_a_large_mpub_is_published_in_portions_and_in_order() -> None:
    stage = Stage()
    assert publish(stage, "/topic/create?topic=t").status == 200
    assert publish(stage, "/channel/create?topic=t&channel=c").status == 200
    lines = b"\n".join([b"%d\r" % number for number in range(2_345)])
    assert publish(stage, "/mpub?topic=t", lines).body == b"OK"
    sized = b"".join([struct.pack(">i", 1) + b"x" for _ in range(2_345)])
    whole = struct.pack(">i", 2_345) + sized
    assert publish(stage, "/mpub?topic=t&binary=true", whole).body == b"OK"
    (topic,) = statistics(stage)
    assert topic["message_count"] == 4_690
    assert topic["channels"][0]["depth"] == 4_690
    assert published(stage, 3) == [b"0\r", b"1\r", b"2\r"]


def published(stage: Stage, count: int) -> list[bytes]:
    """The first messages of a channel, as a consumer gets them."""
    consumer = stage.dial("nsq", b"  V2", b"SUB t c\n", b"RDY %d\n" % count)
    data, found = consumer.take(), []
    while data:
        size = int.from_bytes(data[:4], "big")
        if data[4:8] == b"\0\0\0\2":
            found.append(data[34 : 4 + size])
        data = data[4 + size :]
    return found


@pytest.mark.parametrize("bad_at", [0, 1_500, 2_344])
def test_nothing_of_a_bad_body_is_published(bad_at: int) -> None:
    stage = Stage()
    bodies = [b"x"] * 2_345
    bodies[bad_at] = b"x" * 1_048_577
    assert publish(stage, "/mpub?topic=t", b"\n".join(bodies)).body == b'{"message":"MSG_TOO_BIG"}'
    bodies[bad_at] = b""
    sized = b"".join([struct.pack(">i", len(each)) + each for each in bodies])
    answer = publish(stage, "/mpub?topic=t&binary=true", struct.pack(">i", 2_345) + sized)
    assert (answer.status, answer.body) == (413, b'{"message":"BAD_MESSAGE"}')
    assert statistics(stage) == []


def test_emptying_a_channel_takes_what_consumers_have_and_delivery_goes_on() -> None:
    """N72."""
    stage = Stage()
    publish(stage, "/topic/create?topic=t")
    publish(stage, "/channel/create?topic=t&channel=c")
    publish(stage, "/mpub?topic=t", b"one\ntwo\nthree")
    publish(stage, "/pub?topic=t&defer=1000", b"later")
    consumer = stage.dial("nsq", b"  V2", b"SUB t c\n", b"RDY 1\n")
    first = consumer.take()
    assert first.endswith(b"one")
    assert publish(stage, "/channel/empty?topic=t&channel=c").status == 200
    publish(stage, "/pub?topic=t", b"four")
    assert consumer.take().endswith(b"four")
    consumer.say(b"FIN %b\n" % first[-19:-3])
    assert b"E_FIN_FAILED" in consumer.take()
    (topic,) = statistics(stage)
    (channel,) = topic["channels"]
    assert (channel["depth"], channel["deferred_count"], channel["in_flight_count"]) == (0, 0, 1)


def test_a_paused_topic_and_a_paused_channel_hold_messages_at_different_places() -> None:
    """N70."""
    stage = Stage()
    publish(stage, "/topic/create?topic=t")
    publish(stage, "/channel/create?topic=t&channel=c")
    consumer = stage.dial("nsq", b"  V2", b"SUB t c\n", b"RDY 9\n")
    consumer.take()
    for place, depths in [("topic", (1, 0)), ("channel", (0, 1))]:
        assert publish(stage, f"/{place}/pause?topic=t&channel=c").status == 200
        publish(stage, "/pub?topic=t", place.encode())
        (topic,) = statistics(stage)
        (channel,) = topic["channels"]
        assert (topic["depth"], channel["depth"]) == depths
        assert (topic["paused"], channel["paused"]) == (place == "topic", place == "channel")
        text = stage.ask(HTTP, "GET", "/stats?include_mem=0").body.decode()
        assert ("*P [t " in text, "*P [c " in text) == (place == "topic", place == "channel")
        assert consumer.take() == b""
        assert publish(stage, f"/{place}/unpause?topic=t&channel=c").status == 200
        assert consumer.take().endswith(place.encode())


def test_deleting_a_topic_deletes_its_channels_and_ends_their_consumers() -> None:
    stage = Stage()
    publish(stage, "/topic/create?topic=t")
    publish(stage, "/channel/create?topic=t&channel=c")
    publish(stage, "/channel/create?topic=t&channel=d")
    publish(stage, "/topic/create?topic=other")
    consumer = stage.dial("nsq", b"  V2", b"SUB t c\n", b"RDY 9\n")
    assert publish(stage, "/topic/delete?topic=t").status == 200
    assert consumer.over
    assert [each["topic_name"] for each in statistics(stage)] == ["other"]
    assert publish(stage, "/topic/delete?topic=t").status == 404


def test_the_first_channel_gets_what_the_topic_has_kept() -> None:
    """N67."""
    stage = Stage()
    publish(stage, "/mpub?topic=t", b"one\ntwo")
    publish(stage, "/channel/create?topic=t&channel=c")
    publish(stage, "/channel/create?topic=t&channel=late")
    (topic,) = statistics(stage)
    assert [each["depth"] for each in topic["channels"]] == [2, 0]


def test_a_refused_publish_says_so() -> None:
    stage = Stage(engine_limits=EngineLimits(max_channels=1))
    assert publish(stage, "/topic/create?topic=a").status == 200
    refused = publish(stage, "/topic/create?topic=b")
    assert (refused.status, refused.body) == (503, b'{"message":"LIMIT_EXCEEDED"}')
    refused = publish(stage, "/pub?topic=b", b"x")
    assert (refused.status, refused.body) == (503, b'{"message":"LIMIT_EXCEEDED"}')
    assert publish(stage, "/pub?topic=a", b"x").status == 200


@pytest.mark.parametrize(
    "value",
    [b"{}", b"[1]", b'[""]', b"[", b'["%b"]' % (b"x" * 256), json.dumps(["a"] * 65).encode()],
)
def test_addresses_of_lookupds_are_checked(value: bytes) -> None:
    stage = Stage()
    answer = stage.ask(HTTP, "PUT", "/config/nsqlookupd_tcp_addresses", value)
    assert (answer.status, answer.body) == (400, b'{"message":"INVALID_VALUE"}')


def test_old_names_publish() -> None:
    stage = Stage()
    assert publish(stage, "/put?topic=t", b"x").body == b"OK"
    assert publish(stage, "/mput?topic=t", b"x\ny").body == b"OK"
    assert stage.ask(HTTP, "GET", "/create_channel?topic=t&channel=c").status == 200
    (topic,) = statistics(stage)
    assert [each["channel_name"] for each in topic["channels"]] == ["c"]
    assert publish(stage, "/put?topic=", b"x").status == 500
    assert stage.ask(HTTP, "GET", "/put?topic=t").status == 405


def test_times_are_written_as_go_writes_them() -> None:
    for seconds, text in [
        (0.0, "0s"),
        (0.25, "250ms"),
        (3.0, "3s"),
        (10.104488722, "10.104488722s"),
        (125.5, "2m5.5s"),
        (7_200.0, "2h0m0s"),
    ]:
        assert go_duration(seconds) == text
    stage = Stage()
    text = stage.ask(HTTP, "GET", "/stats").body.decode()
    began = datetime.fromtimestamp(OFFSET_S, UTC)
    assert f"start_time {began:%Y-%m-%dT%H:%M:%SZ}\n" in text
    assert "\nTopics: None\n\nProducers: None\n" in text


def _frame(data: bytes) -> tuple[int, bytes, bytes]:
    """Type, message id and body of the only frame received."""
    assert int.from_bytes(data[:4], "big") == len(data) - 4, data
    return data[7], data[18:34], data[34:]


def test_the_statistics_of_clients_are_the_originals() -> None:
    """The exchanges behind the recorded statistics: delivery, FIN, REQ, a timeout."""
    stage = Stage()
    publish(stage, "/topic/create?topic=p_flow")
    publish(stage, "/channel/create?topic=p_flow&channel=c")
    producer = stage.dial("nsq", b"  V2", mpub(b"p_flow", [b"one", b"two", b"three"]))
    told = {"feature_negotiation": True, "msg_timeout": 1000}
    names = {"client_id": "cid", "hostname": "hn", "user_agent": "ua/1"}
    consumer = stage.dial("nsq", b"  V2", identify({**told, **names}))
    consumer.say(b"SUB p_flow c\n").take()
    _, first, _ = _frame(consumer.say(b"RDY 1\n").take())
    _, second, _ = _frame(consumer.say(b"FIN %b\n" % first).take())
    assert b"E_FIN_FAILED" in consumer.say(b"FIN %b\n" % first).take()
    _, third, body = _frame(consumer.say(b"REQ %b 0\n" % second).take())
    assert body == b"three"
    stage.sleep(1.05)
    assert consumer.take().endswith(b"two")
    body = stage.ask(HTTP, "GET", "/stats?format=json&topic=p_flow").body
    text = stage.ask(HTTP, "GET", "/stats?topic=p_flow&include_mem=false").body.decode()
    recorded = (DATA / "nsqd-stats-golden.txt").read_text()
    wanted_json = recorded.partition("STATS ")[2].partition("\n")[0].encode()
    assert _client_masked(body) == _client_masked(wanted_json)
    wanted_text = recorded.partition("TEXT ")[2]
    assert _line_masked(text) == _line_masked(wanted_text)
    assert third not in (first, second)
    assert not producer.over


def _client_masked(body: bytes) -> bytes:
    body = re.sub(rb'"(remote_address)":"127.0.0.1:\d+"', rb'"\1":""', _masked(body))
    return re.sub(rb'"connect_ts":\d+', b'"connect_ts":0', body)


def _line_masked(text: str) -> str:
    text = re.sub(r"nsqd v\S+ \(.*\)", "nsqd", text)
    text = re.sub(r"(start_time|uptime) \S+", r"\1", text)
    text = re.sub(r"connected: \d+s", "connected", text)
    text = re.sub(r":\d{5} ", ":PORT ", text)
    return "\n".join([line.rstrip() for line in text.splitlines()]).strip()
