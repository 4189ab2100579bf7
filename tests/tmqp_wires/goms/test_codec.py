"""The messages of goMS: the document's forms, both dialects, every cut, limits."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_wires.goms import Dialect, ObjectDecoder
from tmqp_wires.goms.codec import (
    UNKNOWN_TOPIC,
    Send,
    error_line,
    message_line,
    message_lines,
    quoted,
    request_line,
)

MOST = 1_000

DOCUMENT_REGISTER = b"""{
 "type": "register",
 "topics": [
  "some",
  "topics"
 ]
}
"""


def said(*pieces: bytes) -> list[str]:
    decoder = ObjectDecoder(MOST)
    return [repr(event) for piece in pieces for event in decoder.receive(piece)]


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (DOCUMENT_REGISTER, "Register(type, ['some', 'topics'])"),
        (b'{"messagetype":"register","topics":["a"]}\n', "Register(messagetype, ['a'])"),
        (
            b'{"type":"register","topics":["NEWS","news","CamelTopic"]}\n',
            "Register(type, ['news', 'cameltopic'])",
        ),
        (b'{"type":"register"}\n', "Register(type, [])"),
        (b'{"type":"register","topics":[1,null,"a"]}\n', "Register(type, ['a'])"),
        (b'{"type":"register","topics":"a"}\n', "Register(type, [])"),
        (b'{"type":"send","topics":["a"],"data":"x\\ny"}\n', "Send(type, ['a'], 'x\\ny')"),
        (b'{"type":"send","topics":["a"]}\n', "Send(type, ['a'], '')"),
        (b'{"type":"send","topics":["a"],"data":{"b":[1]}}\n', "Send(type, ['a'], '{\"b\":[1]}')"),
        (b'{"type":"logout","topics":["a"]}\n', "Logout(type, ['a'])"),
        (b'{"type":"logout"}\n', "Logout(type, None)"),
        (b'  {"type":"close"}  \n', "Close(type)"),
        (b'{"messagetype":"close"}\r\n', "Close(messagetype)"),
    ],
)
def test_a_message_is_one_event(data: bytes, event: str) -> None:
    assert said(data) == [event]
    assert said(data, data) == [event, event]


@pytest.mark.parametrize(
    "line",
    [b"\n", b"hello\n", b"[]\n", b"1\n", b'{"type":"dance"}\n', b"{}\n", b'{"type":1}\n', b"}\n"],
)
def test_what_means_nothing_is_ignored_and_nothing_with_it(line: bytes) -> None:
    assert said(line + b'{"type":"close"}\n') == ["Close(type)"]


def test_an_object_that_never_ends_does_not_hide_the_next_one() -> None:
    assert said(b'{"type": "send", "data": {\n{"type":"close"}\n') == ["Close(type)"]


def test_braces_in_texts_do_not_count() -> None:
    data = b'{\n"type":"send","topics":["a"],\n"data":"}{\\"}"\n}\n{"type":"close"}\n'
    assert said(data) == ["Send(type, ['a'], '}{\"}')", "Close(type)"]


def test_a_message_is_as_long_as_it_may_be_and_no_longer() -> None:
    empty = len(request_line(Dialect.TYPE, "send", ["a"], "")) - 1
    longest = request_line(Dialect.TYPE, "send", ["a"], "x" * (MOST - empty))
    assert len(said(longest)) == 1
    violation = [f"Violation('a message has more than {MOST} bytes')"]
    assert said(b" " + longest, longest) == violation
    assert said(b"{\n" * 400 + b"x" * 400, b"x" * 400) == violation


def test_unended_bytes_are_counted_and_dropped() -> None:
    decoder = ObjectDecoder(MOST)
    decoder.receive(b'{\n"type":')
    assert decoder.held_bytes == 8
    decoder.forget()
    assert decoder.held_bytes == 0


@pytest.mark.parametrize(
    ("datagram", "events"),
    [
        (b'{"type":"close"}', ["Close(type)"]),
        (DOCUMENT_REGISTER, ["Register(type, ['some', 'topics'])"]),
        (b'{"type":"close"}{"type":"close"}', []),
        (b"\xff", []),
        (b"x" * (MOST + 1), [f"Violation('a datagram has more than {MOST} bytes')"]),
    ],
)
def test_a_datagram_is_one_object(datagram: bytes, events: list[str]) -> None:
    found = ObjectDecoder(MOST).receive_datagram(datagram)
    assert [repr(event) for event in found] == events


@given(
    st.lists(st.sampled_from([DOCUMENT_REGISTER, b'{"type":"logout"}\n', b"odd\n"]), max_size=5),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_any_cuts_give_the_same(messages: list[bytes], cuts: list[int]) -> None:
    data = b"".join(messages)
    places = sorted({0, len(data), *[cut for cut in cuts if cut < len(data)]})
    assert said(*[data[a:b] for a, b in pairwise(places)]) == said(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_ignored(data: bytes) -> None:
    assert isinstance(said(data), list)


def test_deep_nesting_is_ignored() -> None:
    decoder = ObjectDecoder(1_000_000)
    assert decoder.receive(b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n") == []


def test_what_a_server_says_in_each_dialect() -> None:
    old, new = Dialect.TYPE, Dialect.MESSAGETYPE
    assert message_line(old, "a", "x") == b'{"type":"message","data":"x"}\n'
    assert message_line(old, "a", "") == b'{"type":"message"}\n'
    assert message_line(new, "a", "") == b'{"messagetype":"message","topics":["a"],"data":""}\n'
    assert error_line(old, UNKNOWN_TOPIC, "nope,nix") == (
        b'{"type":"error","error-code":"001001","error":"nope,nix"}\n'
    )
    assert error_line(new, UNKNOWN_TOPIC, "nope,nix") == (
        b'{"messagetype":"error","errorcode":"001001","error":"nope,nix"}\n'
    )


#: Messages that are alike but for their data, and others that only seem to be.
ALIKE = (
    b'{"type":"send","topics":["a"],"data":%s}',
    b'{"messagetype": "send", "topics": ["A", "b"], "data": %s}',
    b'{"data":%s,"type":"send","topics":["a"]}',
    b'{"type":"send","topics":["a"],"data":%s,"more":{"data":"y"}}',
    b'{"type":"send","topics":["a"],"more":{"data":%s},"data":"y"}',
    b'{"type":"send","data":%s,"topics":["a"],"data":"y"}',
    b'{"type":"send","topics":["a\\"data\\":"],"data":%s}',
    b'{"type":"send","x\\"data":%s,"topics":["a"]}',
    b'{"type":"register","topics":["a"],"data":%s}',
    b'{"type":"send","topics":["a"],"data":%s}\r',
)
DATA = (
    b'"x"',
    b'""',
    b'"\\"}\\n"',
    b'"\\u00fc"',
    '"ü"'.encode(),
    b'"a\\\\"',
    b"1",
    b'{"a":"b"}',
    b'"',
)


@pytest.mark.parametrize("form", ALIKE)
@pytest.mark.parametrize("data", [*DATA, b'"\xff"', b'"x"]', b'"\x01"'])
def test_what_comes_behind_messages_that_are_alike_is_read_as_it_is(
    form: bytes, data: bytes
) -> None:
    line = form % data + b"\n"
    again = form % b'"again"' + b"\n"
    assert said(again * 3 + line + again) == [*said(again) * 3, *said(line + again)]


@given(st.lists(st.tuples(st.sampled_from(ALIKE), st.sampled_from(DATA)), max_size=12))
def test_each_message_says_the_same_as_alone(lines: list[tuple[bytes, bytes]]) -> None:
    found = [form % data + b"\n" for form, data in lines if data != b'"']
    assert said(b"".join(found)) == [event for line in found for event in said(line)]


def test_messages_that_are_alike_have_the_very_same_topics() -> None:
    decoder = ObjectDecoder(MOST)
    line = b'{"type":"send","topics":["a"],"data":"x"}\n'
    *_, third, fourth = decoder.receive(line * 4)
    assert isinstance(third, Send)
    assert isinstance(fourth, Send)
    assert third.topics is fourth.topics


def test_several_deliveries_are_written_at_once() -> None:
    data = ["a", "", '"', ':""}', "\n", "ü\ud800"]
    lines = b"".join([quoted(each) + b"\n" for each in data])
    for dialect in Dialect:
        one_by_one = b"".join([message_line(dialect, "to\npic", each) for each in data])
        assert message_lines(dialect, "to\npic", lines) == one_by_one
        assert one_by_one.count(b"\n") == len(data)
