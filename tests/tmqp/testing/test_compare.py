"""The checks of ``tmqp.testing.compare``: same but for ids and times, or not, and how not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import load_exchange, load_frames, load_session
from tmqp import Frame
from tmqp.testing import CLIENT_TO_SERVER, Correspondence, compare, split_step

RECORDED = "0123456789abcdef0123456789abcdef"
LIVE = "fedcba9876543210fedcba9876543210"
OTHER = "00000000000000000000000000000001"


def answer(**changes: Any) -> Frame:
    """A server's answer."""
    fields: dict[str, Any] = {"message_type": 0x14, "target": "c", "message_id": "m", **changes}
    return Frame.build(**fields)


def body(value: object) -> Frame:
    """An answer with a JSON payload."""
    return answer(payload=json.dumps(value).encode())


def differences(expected: Frame, actual: Frame) -> list[str]:
    """Compare with nothing known."""
    return compare(expected, actual, Correspondence())


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ({}, {"message_type": 0x13}, "type: expected 20, got 19"),
        ({}, {"first_acquirer": True}, "first_acquirer: expected False, got True"),
        ({}, {"high_priority": True}, "high_priority: expected False, got True"),
        ({}, {"pending_response": True}, "pending_response: expected False, got True"),
        ({}, {"pending_acknowledge": True}, "pending_acknowledge: expected False, got True"),
        ({}, {"ttl": 15}, "ttl: expected 16, got 15"),
        ({"content_type": 404}, {"content_type": 0}, "content_type: expected 404, got 0"),
        ({}, {"message_id": "x"}, "message_id: expected 'm', got 'x'"),
        ({}, {"source": "x"}, "source: expected '', got 'x'"),
        ({}, {"target": "x"}, "target: expected 'c', got 'x'"),
        ({"payload": b"x"}, {"payload": b"y"}, "payload: expected 'x', got 'y'"),
        ({"payload": b"x"}, {"payload": b"{}"}, "payload: expected 'x', got '{}'"),
        ({"payload": b"{}"}, {"payload": b"x"}, "payload: expected b'{}', got b'x'"),
        (
            {"headers": [("a", "1"), ("b", "2")]},
            {"headers": [("b", "2"), ("a", "1")]},
            "header keys: expected ['a', 'b'], got ['b', 'a']",
        ),
        (
            {"headers": [("a", "1")]},
            {"headers": [("a", "2")]},
            "header a: expected '1', got '2'",
        ),
    ],
)
def test_each_difference_is_told(
    expected: dict[str, Any], actual: dict[str, Any], found: str
) -> None:
    assert differences(answer(**expected), answer(**actual)) == [found]
    assert differences(answer(**expected), answer(**expected)) == []


def test_all_differences_are_told_at_once_and_shortened() -> None:
    found = differences(answer(payload=b"x" * 500), answer(ttl=1, payload=b"y" * 500, target="d"))
    assert [each.split(":")[0] for each in found] == ["ttl", "target", "payload"]
    assert max(len(each) for each in found) < 300


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ({"Id": 1}, {"Id": 2}, "payload.Id: expected 1, got 2"),
        ({"Id": 1}, {"Id": True}, "payload.Id: expected 1, got True"),
        ({"Id": 1}, {"Id": None}, "payload.Id: expected 1, got None"),
        ({"Id": "a"}, {"Id": 1}, "payload.Id: expected 'a', got 1"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "payload: properties: expected ['a', 'b'], got"),
        ({"a": 1}, {}, "payload: properties"),
        ([1, 2], [1], "payload: number of items: expected 2, got 1"),
        ([{"a": {"b": [1]}}], [{"a": {"b": [2]}}], "payload[0].a.b[0]: expected 1, got 2"),
        ([1], {"a": 1}, "payload: expected [1], got {'a': 1}"),
        ({"LastMessageSent": 0}, {"LastMessageSent": 5}, "payload.LastMessageSent is 0: expected"),
        ({"LastMessageSent": 5}, {"LastMessageSent": None}, "payload.LastMessageSent: expected 5"),
        ({"Online": 5}, {"Online": "5"}, "payload.Online: expected 5, got '5'"),
        ({"Online": 5}, {"Online": True}, "payload.Online: expected 5, got True"),
    ],
)
def test_json_is_compared_by_its_values(expected: object, actual: object, found: str) -> None:
    (difference,) = differences(body(expected), body(actual))
    assert difference.startswith(found)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
        ([{"Online": 33_804}], [{"Online": 1}]),
        ({"Lifetime": 5}, {"Lifetime": 6.5}),
        ({"LastMessageReceived": 0, "LastMessageSent": 1_600_000_000_000},) * 2,
        ({"LastMessageSent": 1_600_000_000_000}, {"LastMessageSent": 1_700_000_000_000}),
        ({"Id": RECORDED}, {"Id": LIVE}),
    ],
)
def test_times_and_ids_in_json_do_not_count(expected: object, actual: object) -> None:
    assert differences(body(expected), body(actual)) == []
    spaced = answer(payload=json.dumps(actual, indent=1).encode())
    assert differences(body(expected), spaced) == []


def test_a_hostile_body_is_only_a_difference() -> None:
    (difference,) = differences(body([1]), answer(payload=b"[" * 100_000))
    assert difference.startswith("payload: expected b'[1]', got b'[[[[")


# --- Ids -----------------------------------------------------------------------------------------


def test_an_id_the_server_made_stands_for_one_other() -> None:
    context = Correspondence()
    assert compare(answer(message_id=RECORDED), answer(message_id=LIVE), context) == []
    assert (context.live(RECORDED), context.recorded(LIVE)) == (LIVE, RECORDED)
    assert compare(answer(source=RECORDED), answer(source=LIVE), context) == []
    assert compare(answer(source=RECORDED), answer(source=OTHER), context) == [
        f"source: expected {LIVE!r}, got {OTHER!r}"
    ]
    assert compare(answer(source=OTHER), answer(source=LIVE), context) == [
        f"source: {LIVE!r} stands for another recorded id already"
    ]


def test_one_frame_cannot_use_one_id_for_two() -> None:
    found = differences(
        answer(message_id=RECORDED, source=OTHER), answer(message_id=LIVE, source=LIVE)
    )
    assert found == [f"source: {LIVE!r} stands for another recorded id already"]
    found = differences(
        answer(message_id=RECORDED, source=RECORDED), answer(message_id=LIVE, source=OTHER)
    )
    assert found == [f"source: expected {LIVE!r}, got {OTHER!r}"]


def test_an_id_must_be_there_and_not_a_clients() -> None:
    assert differences(answer(message_id=RECORDED), answer(message_id="")) == [
        "message_id: expected 'an id made by the server', got ''"
    ]
    context = Correspondence()
    context.translate(answer(message_id=LIVE))
    assert context.said(LIVE)
    (found,) = compare(answer(message_id=RECORDED), answer(message_id=LIVE), context)
    assert "made by the server" in found


def test_an_id_a_client_said_must_come_back_as_it_was() -> None:
    context = Correspondence()
    request = answer(message_id=RECORDED)
    assert context.translate(request) is request
    assert compare(answer(message_id=RECORDED), answer(message_id=RECORDED), context) == []
    (found,) = compare(answer(message_id=RECORDED), answer(message_id=LIVE), context)
    assert found == f"message_id: expected {RECORDED!r}, got {LIVE!r}"


def test_nothing_is_learnt_from_a_frame_that_differs() -> None:
    context = Correspondence()
    assert compare(answer(message_id=RECORDED), answer(message_id=LIVE, ttl=1), context)
    assert context.live(RECORDED) == RECORDED
    assert context.recorded(LIVE) is None
    assert compare(answer(message_id=RECORDED), answer(message_id=OTHER), context) == []


# --- Saying it again -----------------------------------------------------------------------------


def test_what_the_client_says_names_the_live_ids() -> None:
    context = Correspondence()
    context.learn(RECORDED, LIVE)
    frame = Frame.build(
        0x13,
        "orders",
        7,
        b"p",
        message_id=RECORDED,
        source=RECORDED,
        headers=[("k", " v ")],
        high_priority=True,
        ttl=3,
    )
    assert context.translate(frame) == frame.replace(message_id=LIVE, source=LIVE)
    with_header = frame.replace(more_headers=[("Request-Id", RECORDED)])
    translated = context.translate(with_header)
    assert translated.headers == [("k", " v "), ("Request-Id", LIVE)]
    assert translated == frame.replace(
        message_id=LIVE, source=LIVE, more_headers=[("Request-Id", LIVE)]
    )
    assert not context.said(RECORDED)


def test_recorded_sessions_compare_with_themselves() -> None:
    """And with a copy in which every id the server made is another."""
    for family in ("real", "fixed"):
        context = Correspondence()
        copy = Correspondence()
        seen: set[str] = set()
        for step in load_session(family).steps:
            for frame in split_step(step).frames:
                texts = [frame.message_id, frame.source, frame.target]
                if step.direction == CLIENT_TO_SERVER:
                    context.translate(frame)
                    seen.update(texts)
                    continue
                for text in texts:
                    if len(text) == 32 and text not in seen and copy.live(text) == text:
                        copy.learn(text, f"{len(seen):032x}")
                        seen.add(text)
                renamed = frame.replace(
                    message_id=copy.live(frame.message_id),
                    source=copy.live(frame.source),
                    target=copy.live(frame.target),
                )
                assert compare(frame, renamed, context) == []
        assert len(seen) > 20


def test_different_recorded_answers_differ() -> None:
    frames = [each.frame for each in load_frames() if each.exchange.name.startswith("real-00")]
    for one in frames:
        for other in frames:
            if one.fields()[:6] != other.fields()[:6] or one.content_type != other.content_type:
                assert differences(one, other)


def test_the_three_parts_of_a_replay_fit_together() -> None:
    """Send the translation, compare the answer, as the documentation says."""
    context = Correspondence()
    for step in load_exchange("real-003").steps:
        for frame in split_step(step).frames:
            if step.direction == CLIENT_TO_SERVER:
                assert context.translate(frame).raw == frame.raw
            else:
                assert compare(frame, frame, context) == []
