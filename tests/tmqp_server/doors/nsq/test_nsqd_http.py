"""nsqd by HTTP: what the original answered, byte for byte, and what is bounded."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

from tests.tmqp_server.doors.nsq.lines import Line, http_lines
from tests.tmqp_server.doors.nsq.stage import Answer, Stage

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
