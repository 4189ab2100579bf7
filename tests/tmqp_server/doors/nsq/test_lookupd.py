"""nsqlookupd: what the original answered, and what is bounded."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.tmqp_server.doors.nsq.lines import http_lines, tcp_lines
from tests.tmqp_server.doors.nsq.stage import Peer, Stage
from tmqp_wires.nsq.lookup import MAGIC, PING, Announce, announce, answer, register, unregister

TCP, HTTP = "nsqlookupd", "nsqlookupd-http"
GOLDEN = "nsqlookupd-golden.txt"
OK = [b"OK"]
ABOUT = Announce("127.0.0.1", "hn", 4150, 4151, "1.3.0")
IDENTIFY = announce(ABOUT)


def nsqd(stage: Stage, about: Announce = ABOUT) -> Peer:
    """An nsqd that has told who it is."""
    peer = stage.dial(TCP, MAGIC, announce(about))
    (told,) = peer.units()
    assert json.loads(told)["tcp_port"] == 4160
    return peer


def topics(stage: Stage) -> list[str]:
    found: list[str] = json.loads(stage.ask(HTTP, "GET", "/topics").body)["topics"]
    return found


def producers(stage: Stage, topic: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stage.ask(HTTP, "GET", f"/lookup?topic={topic}").body)[
        "producers"
    ]
    return found


@pytest.mark.parametrize(
    ("title", "sent"),
    [
        ("bad magic", b"  V2"),
        ("PING before IDENTIFY", MAGIC + b"PING\n"),
        ("unknown", MAGIC + b"FOO\n"),
        ("REGISTER before IDENTIFY", MAGIC + b"REGISTER t c\n"),
        ("UNREGISTER before IDENTIFY", MAGIC + b"UNREGISTER t c\n"),
        ("IDENTIFY missing fields", MAGIC + b"IDENTIFY\n" + answer(b"{}")),
        ("IDENTIFY bad json", MAGIC + b"IDENTIFY\n" + answer(b"{")),
        ("IDENTIFY ok", MAGIC + IDENTIFY),
        ("IDENTIFY twice", MAGIC + IDENTIFY + IDENTIFY),
        ("REGISTER none", MAGIC + IDENTIFY + b"REGISTER\n"),
        ("REGISTER bad topic", MAGIC + IDENTIFY + b"REGISTER a$ c\n"),
        ("REGISTER bad channel", MAGIC + IDENTIFY + b"REGISTER t c$\n"),
    ],
)
def test_answers_by_tcp_are_the_originals(title: str, sent: bytes) -> None:
    recorded = tcp_lines(GOLDEN)[title]
    assert Stage().dial(TCP, sent).units() == recorded
    bytewise = Stage().dial(TCP)
    for byte in sent:
        bytewise.say(bytes([byte]))
    assert bytewise.units() == recorded


def _comparable(body: bytes) -> object:
    """An answer without what differs from run to run: addresses, times, and the order of lists,
    which the original draws."""
    text = re.sub(rb"127.0.0.1:\d{5}", b"HOST:PORT", body)
    text = re.sub(rb'"last_update":\d+', b'"last_update":0', text)
    text = re.sub(rb'"tombstoned_at":\d+', b'"tombstoned_at":1', text)
    return sorted(re.findall(rb"[\w#:.-]+", text)), len(text)


def test_answers_by_http_are_the_originals() -> None:
    stage = Stage(options={HTTP: {"old_names": False}})
    lines = http_lines(GOLDEN)
    peer = nsqd(stage)
    for command in (b"REGISTER lt\n", b"REGISTER lt ch\n", b"REGISTER lt e#ephemeral\n"):
        assert peer.say(command).units() == OK
    assert peer.say(b"REGISTER lt2 \n").units() == OK
    seen = 0
    steps = {
        17: [unregister(b"lt", b"ch"), unregister(b"lt", b"e#ephemeral")],
        18: [unregister(b"lt", b"nope"), unregister(b"lt")],
        20: [PING],
    }
    for at, line in enumerate(lines):
        for command in steps.get(at, []):
            assert peer.say(command).units() == OK
        if at == 20:
            peer.hang_up()
        got = stage.ask(HTTP, line.method, line.target)
        assert got.status == line.status, line
        assert list(got.fields) == list(line.fields), line
        if line.target == "/debug":
            # The recording ends after 400 bytes.
            assert got.body.startswith(b'{"channel:lt:ch":[{"broadcast_address":"127.0.0.1"')
            assert int(got.fields["Content-Length"]) == int(line.fields["Content-Length"]), line
            assert b'"tombstoned":false,"tombstoned_at":-6795364578871345152,' in got.body
        else:
            assert _comparable(got.body) == _comparable(line.body), line
            assert {**got.fields, "Content-Length": "0"} == {**line.fields, "Content-Length": "0"}
            assert got.fields["Content-Length"] == str(len(got.body)), line
        seen += 1
    assert seen == 35


def test_a_tombstone_hides_a_producer_for_a_while() -> None:
    stage = Stage()
    peer = nsqd(stage)
    peer.say(register(b"t", b"c"))
    assert len(producers(stage, "t")) == 1
    stage.ask(HTTP, "POST", "/topic/tombstone?topic=t&node=127.0.0.1:4151")
    assert producers(stage, "t") == []
    (node,) = json.loads(stage.ask(HTTP, "GET", "/nodes").body)["producers"]
    assert (node["topics"], node["tombstones"]) == (["t"], [True])
    peer.say(register(b"t"))
    assert producers(stage, "t") == [], "it is registered still"
    peer.say(unregister(b"t"), register(b"t"))
    assert len(producers(stage, "t")) == 1
    stage.ask(HTTP, "POST", "/topic/tombstone?topic=t&node=127.0.0.1:4151")
    stage.sleep(44.9)
    assert producers(stage, "t") == []
    stage.sleep(0.2)
    assert len(producers(stage, "t")) == 1


def test_a_producer_that_says_nothing_is_left_out_and_comes_back_with_a_ping() -> None:
    stage = Stage()
    peer = nsqd(stage)
    peer.say(register(b"t"))
    stage.sleep(300.5)
    assert producers(stage, "t") == []
    assert json.loads(stage.ask(HTTP, "GET", "/nodes").body)["producers"] == []
    peer.say(PING)
    assert len(producers(stage, "t")) == 1
    stage.sleep(600.5)
    assert peer.over == "the client did not say that it is alive"
    assert topics(stage) == ["t"]


def test_a_client_that_does_not_say_who_it_is_is_cut() -> None:
    stage = Stage()
    peer = stage.dial(TCP, MAGIC)
    stage.sleep(61.0)
    assert peer.over == "the client did not say who it is"


def test_an_ephemeral_topic_goes_with_its_last_producer() -> None:
    stage = Stage()
    peers = [nsqd(stage), nsqd(stage, Announce("10.0.0.2", "h2", 4150, 4151, "1.3.0"))]
    for peer in peers:
        peer.say(register(b"t#ephemeral", b"c#ephemeral"), register(b"kept", b"c#ephemeral"))
    peers[0].hang_up()
    assert topics(stage) == ["kept", "t#ephemeral"]
    peers[1].say(unregister(b"t#ephemeral"), unregister(b"kept", b"c#ephemeral"))
    assert topics(stage) == ["kept"]
    assert stage.ask(HTTP, "GET", "/channels?topic=kept").body == b'{"channels":[]}'


def test_a_full_table_refuses_and_keeps_what_it_has() -> None:
    stage = Stage(limits={TCP: {"max_registrations": 2, "max_entries": 3}})
    peer = nsqd(stage)
    peer.say(register(b"a", b"b"))
    assert peer.units() == OK
    peer.say(register(b"c"))
    assert peer.units() == [
        b"E_INVALID REGISTER at most 2 topics and channels are kept",
        "EOF",
    ]
    assert stage.ask(HTTP, "POST", "/topic/create?topic=x").status == 503
    assert stage.ask(HTTP, "POST", "/topic/delete?topic=a").status == 200
    assert stage.ask(HTTP, "POST", "/channel/create?topic=x&channel=y").status == 200
    first, second = nsqd(stage), nsqd(stage)
    assert first.say(register(b"x", b"y")).units() == OK
    refused = second.say(register(b"x", b"y")).units()
    assert refused == [b"E_INVALID REGISTER at most 3 registrations are kept", "EOF"]
    first.hang_up()
    assert nsqd(stage).say(register(b"x", b"y")).units() == OK


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"\xff\xff\xff\xff", b"E_BAD_BODY IDENTIFY invalid body size -1"),
        (b"\x00\x01\x00\x01", b"E_BAD_BODY IDENTIFY body too big 65537 > 65536"),
    ],
)
def test_the_size_of_an_identify_is_checked_before_its_body(sent: bytes, text: bytes) -> None:
    peer = Stage().dial(TCP, MAGIC, b"IDENTIFY\n", sent)
    assert peer.units() == [text, "EOF"]


def test_a_line_without_end_is_cut() -> None:
    stage = Stage()
    peer = stage.dial(TCP, MAGIC)
    for _ in range(16):
        peer.say(b"x" * 1_024)
    assert peer.over == "a line of more than 16384 bytes"
    assert peer.take() == b""


def test_old_names_answer_in_the_old_form_unless_the_new_one_is_asked_for() -> None:
    stage = Stage()
    old = stage.ask(HTTP, "POST", "/create_topic?topic=t")
    assert (old.status, old.body) == (200, b'{"status_code":200,"status_txt":"OK","data":null}')
    bad = stage.ask(HTTP, "GET", "/create_topic?topic=a$")
    assert (bad.status, json.loads(bad.body)["status_txt"]) == (500, "INVALID_ARG_TOPIC")
    new = stage.ask(
        HTTP, "GET", "/create_topic", None, ("Accept", "application/vnd.nsq; version=1.0")
    )
    assert (new.status, new.body) == (400, b'{"message":"MISSING_ARG_TOPIC"}')
    assert topics(stage) == ["t"]
