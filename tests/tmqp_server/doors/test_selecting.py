"""Filters in their languages: what they accept, what they refuse to be."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.outputs import sent
from tmqp import ConnectionInformation, Frame, FrameDecoder, Limits, MessageType
from tmqp.constants import Operation
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.port import OwnBodies
from tmqp_server.doors.selecting import (
    MAX_CONDITIONS,
    MAX_FILTER_BYTES,
    FilterError,
    filter_of,
    read_by,
)
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_server.hub.hub import Hub

PRODUCER: Final = Origin(1, "p", None, None, "")


def message(payload: bytes = b"", *headers: tuple[str, str]) -> Message:
    frame = Frame.build(int(MessageType.QUEUE_MESSAGE), "c", 1, payload, headers=headers)
    return Message("m", PRODUCER, "c", 1, len(frame.raw), frame, 0, 1)


ORDER: Final = message(b"", ("Kind", "order"), ("Region", " eu-west "), ("Tag", "a"), ("Tag", "b"))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("kind=order", True),
        ("KIND = order", True),
        ("kind=Order", False),
        ("kind=ord", False),
        ("kind=ord*", True),
        ("kind=*", True),
        ("missing=*", False),
        ("region=eu-west", True),
        ("region=eu*; kind=order", True),
        ("region=us*; kind=order", False),
        ("kind", True),
        ("!kind", False),
        ("missing", False),
        ("!missing", True),
        ("kind!=order", False),
        ("kind!=bill", True),
        ("missing!=bill", True),
        ("kind!=ord*", False),
        ("tag=a; tag=b", True),
        ("tag!=b", False),
        ('kind="order"', True),
        ('kind="ord*"', False),
        ('kind=""', False),
    ],
)
def test_conditions_about_headers(text: str, passes: bool) -> None:
    assert filter_of(None, text).accepts(ORDER) == passes
    assert filter_of(" Headers ", text).accepts(ORDER) == passes


def test_a_quoted_value_may_hold_anything_but_quotes() -> None:
    odd = message(b"", ("Path", "a;b=c*"))
    assert filter_of("headers", 'path="a;b=c*"; path').accepts(odd)
    assert not filter_of("headers", 'path="a;b"').accepts(odd)


@given(st.binary(max_size=20), st.text(max_size=6))
def test_a_prefix_is_of_the_payload(payload: bytes, text: str) -> None:
    found = filter_of("prefix", text)
    for each in (payload, text.encode("utf-8", "replace") + payload):
        seen = message(each, ("Kind", text.replace("\r", "").replace("\n", "")))
        assert found.accepts(seen) == each.startswith(text.encode())


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        (None, "", "a condition is"),
        ("headers", "kind=order;", "a condition is"),
        ("headers", "=x", "a condition is"),
        ("headers", "!", "a condition is"),
        ("headers", "a!b=c", "a condition is"),
        ("headers", 'kind="order', "not closed"),
        ("headers", 'kind="order" "x"', "second quote"),
        ("headers", 'kind="', "not closed"),
        ("headers", ";".join(["a=b"] * (MAX_CONDITIONS + 1)), "at most 16 conditions"),
        ("prefix", "é" * (MAX_FILTER_BYTES // 2) + "e", "at most 1024 bytes"),
        ("xpath", "price > 3", "the languages are headers, prefix"),
        ("headers", None, "the filter is missing"),
    ],
)
def test_what_is_no_filter_is_told(language: str | None, text: str | None, said: str) -> None:
    with pytest.raises(FilterError, match=said):
        filter_of(language, text)


def test_the_same_text_is_the_same_filter() -> None:
    first, second = filter_of(None, "kind=order"), filter_of("headers", "kind=order")
    assert first.identity() == second.identity()
    assert first.identity() != filter_of("prefix", "kind=order").identity()
    assert first.family() == second.family() == filter_of(None, "other").family()
    assert filter_of("prefix", "x").family() is None


def test_a_message_of_another_protocol_is_not_looked_at() -> None:
    strange = Message("m", PRODUCER, "c", 1, 3, b"raw", 0, 1)
    for found in (filter_of("headers", "!kind"), filter_of("prefix", "")):
        with pytest.raises(TypeError, match="bytes is not a TMQP message"):
            found.accepts(strange)


def test_a_message_of_another_protocol_is_read_in_its_tmqp_form() -> None:
    class Owner(OwnBodies):
        name = "other"
        number = 200

        def letter(self, wire: object) -> Letter:
            letter = Letter(b"hello", "m", "p", "c", 1)
            letter.headers.append(("Sort", "order"))
            return letter

    strange = Message("m", Origin(1, "p", None, None, "other"), "c", 1, 3, b"raw", 0, 1)
    for found in (filter_of("headers", "sort=order"), filter_of("prefix", "hell")):
        read_by(found, Letters([Owner()]))
        assert found.accepts(strange)


def join(text: str | None, language: str | None = None) -> bytes:
    headers = [("Filter", text)] if text is not None else []
    headers += [("Filter-Language", language)] if language is not None else []
    number = int(Operation.JOIN)
    return Frame.build(
        int(MessageType.SERVER), "c", number, message_id="j", pending_response=True, headers=headers
    ).raw


def heard(hub: Hub, number: int) -> list[Frame]:
    return FrameDecoder().feed(sent(hub, number))


def test_filters_on_the_wire() -> None:
    hub = Hub(Broker())
    door = NativeDoor(lambda: "0" * 32, Limits())
    for number in (1, 2, 3):
        hub.open(number, door, 0.0)
        hello = ConnectionInformation(f"client{number}").encode()
        hub.receive(
            number, b"TMQP/2.0" + Frame.build(int(MessageType.SERVER), "", 101, hello).raw, 0.0
        )
        sent(hub, number)
    create = Frame.build(
        int(MessageType.SERVER),
        "c",
        int(Operation.CREATE_QUEUE),
        message_id="q",
        headers=[("Queue-Id", "1"), ("Queue-Status", "roundrobin")],
    )
    hub.receive(1, create.raw, 0.0)
    sent(hub, 1)
    hub.receive(2, join("kind=order"), 0.0)
    hub.receive(3, join("urgent", "prefix"), 0.0)
    assert [frame.content_type for frame in heard(hub, 2) + heard(hub, 3)] == [0, 0]
    for refused in (join("kind="), join("=", None), join("x", "xpath"), join(None, "prefix")):
        hub.receive(1, refused, 0.0)
    answers = heard(hub, 1)
    assert [frame.content_type for frame in answers] == [0, 400, 400, 400]
    known = b"there is no filter language 'xpath'; the languages are headers, prefix"
    assert answers[2].payload.startswith(known)
    hub.receive(1, Frame.build(int(MessageType.SERVER), "c", int(Operation.LEAVE)).raw, 0.0)
    pushes = [
        Frame.build(
            int(MessageType.QUEUE_MESSAGE), "c", 1, payload, message_id=f"m{each}", headers=headers
        ).raw
        for each, (payload, headers) in enumerate(
            (
                (b"urgent", ()),
                (b"late", (("Kind", "order"),)),
                (b"late", (("Kind", "bill"),)),
                (b"urgent too", (("Kind", "bill"),)),
            )
        )
    ]
    hub.receive(1, b"".join(pushes), 1.0)
    assert [frame.message_id for frame in heard(hub, 2)] == ["m1"]
    assert [frame.message_id for frame in heard(hub, 3)] == ["m0", "m3"]
    hub.receive(3, join("kind=bill"), 2.0)
    assert [frame.message_id for frame in heard(hub, 3)] == ["m2", "j"]
