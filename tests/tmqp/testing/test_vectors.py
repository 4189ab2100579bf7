"""The checks of ``tmqp.testing.vectors``: recordings read, taken apart, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import load_exchange, load_exchanges, load_frames
from tmqp import Frame
from tmqp.testing import (
    Exchange,
    RecordingError,
    Step,
    join_exchanges,
    parse_exchange,
    recorded_frames,
    split_step,
)

PUSH = Frame.build(0x11, "orders", payload=b"p").raw


def item(**changes: Any) -> dict[str, Any]:
    """One entry of a recording."""
    return {"dir": "c2s", "conn": 1, "hex": PUSH.hex(), "note": "a push", **changes}


# --- Reading -------------------------------------------------------------------------------------


def test_a_recording_is_read() -> None:
    text = json.dumps(
        [
            item(t=0.5),
            item(dir="s2c", conn=2, hex="", note="closed by the server"),
            item(dir="s2c", hex="", note="(nothing for 1.0 s)"),
            item(truncated=True, total_bytes=5_000),
            {"dir": "c2s", "conn": 1, "hex": ""},
        ]
    )
    for given in (text, text.encode()):
        exchange = parse_exchange("name", given)
        sent, closed, silent, cut, bare = exchange.steps
        assert (exchange.name, exchange.connections) == ("name", [1, 2])
        assert (sent.direction, sent.connection, sent.data) == ("c2s", 1, PUSH)
        assert (sent.note, sent.at_s, sent.total_bytes) == ("a push", 0.5, None)
        assert (sent.closes, sent.silent, sent.truncated) == (False, False, False)
        assert (closed.direction, closed.closes, closed.silent) == ("s2c", True, False)
        assert (silent.closes, silent.silent) == (False, True)
        assert (cut.truncated, cut.total_bytes, cut.at_s) == (True, 5_000, None)
        assert (bare.note, bare.data, bare.closes) == ("", b"", False)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "name: not JSON"),
        (b"\xff\xff", "name: not JSON"),
        ("{}", "name: a recording is a list"),
        ("[1]", "name step 0: must be an object"),
        (json.dumps([item(), item(dir="up")]), "name step 1: dir must be c2s or s2c, not 'up'"),
        (json.dumps([item(conn="1")]), "conn must be a whole number, not '1'"),
        (json.dumps([item(conn=True)]), "conn must be a whole number, not True"),
        (json.dumps([item(hex=1)]), "hex and note must be texts"),
        (json.dumps([item(note=None)]), "hex and note must be texts"),
        (json.dumps([item(hex="0g")]), "something else than hexadecimal digits"),
        (json.dumps([item(t="now")]), "t must be seconds, not 'now'"),
        (json.dumps([item(truncated=True)]), "total_bytes must be more"),
        (json.dumps([item(truncated=True, total_bytes=3)]), "total_bytes must be more"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_place(text: str | bytes, sentence: str) -> None:
    with pytest.raises(RecordingError, match=sentence):
        parse_exchange("name", text)


def test_it_is_known_whether_an_exchange_stands_by_itself() -> None:
    preamble = Step("c2s", 1, b"TMQP/2.0")
    opened = Exchange("a", [preamble, Step("s2c", 1, b"TMQP/2.0")])
    other = Exchange("b", [Step("c2s", 1, PUSH)])
    answered_first = Exchange("c", [Step("s2c", 1, b"TMQP/2.0"), preamble])
    assert opened.self_contained
    assert not other.self_contained
    assert not answered_first.self_contained
    joined = join_exchanges("d", [opened, other])
    assert joined.self_contained
    assert (joined.name, len(joined.steps)) == ("d", 3)


# --- Taking apart --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "preamble", "frames", "rest"),
    [
        (b"", b"", 0, b""),
        (b"TMQP/2.0", b"TMQP/2.0", 0, b""),
        (b"TMQ/1.01" + PUSH, b"TMQ/1.01", 1, b""),
        (PUSH * 3, b"", 3, b""),
        (PUSH + PUSH[:5], b"", 1, PUSH[:5]),
        (b"TMQP", b"", 0, b"TMQP"),
        (b"TMQP/9.9", b"", 0, b"TMQP/9.9"),
        (b"\x11\x10\0\0\0\0\0\xff" + b"\xff" * 7 + b"\x7fabc", b"", 0, None),
    ],
)
def test_a_step_is_taken_apart(
    data: bytes, preamble: bytes, frames: int, rest: bytes | None
) -> None:
    parts = split_step(Step("c2s", 1, data))
    assert (parts.preamble, len(parts.frames)) == (preamble, frames)
    assert parts.rest == (data if rest is None else rest)


def test_a_step_of_no_frames_is_refused() -> None:
    with pytest.raises(RecordingError, match="not UTF-8"):
        split_step(Step("c2s", 1, b"\x11\x10\x01\0\0\0\0\0\xff", "broken"))


def test_frames_know_where_they_come_from() -> None:
    exchange = load_exchange("probe-042")
    found = [each for each in recorded_frames([exchange]) if each.step_index == 8]
    assert [each.index for each in found] == [0, 1]
    assert found[1].where == f"{exchange.name} step 8 frame 1 (c2s, connection 46)"
    assert found[1].exchange is exchange
    assert found[1].step is exchange.steps[8]
    assert found[1].frame.message_id == "h0"


def test_everything_prints() -> None:
    exchange = load_exchange("probe-016")
    assert repr(exchange) == "<Exchange probe-016-terminate 6 steps>"
    assert repr(exchange.steps[4]).startswith("<Step c2s connection 18 8 bytes 'Terminate")
    assert "probe" in repr(load_frames()[0]) or "fixed" in repr(load_frames()[0])


def test_every_recorded_byte_is_accounted_for() -> None:
    for exchange in load_exchanges():
        for step in exchange.steps:
            parts = split_step(step)
            raws = [frame.raw for frame in parts.frames]
            assert b"".join([parts.preamble, *raws, parts.rest]) == step.data
            assert not (step.closes and step.silent)
            assert bool(step.data) or step.closes or step.silent or "send failed" in step.note
