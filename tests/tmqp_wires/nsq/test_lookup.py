"""The protocol of lookupds: both roles together, cuts, and what is no such protocol."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tmqp_wires.nsq.events import Event, Violation
from tmqp_wires.nsq.lookup import (
    MAGIC,
    OK,
    PING,
    Announce,
    AnswerDecoder,
    LookupDecoder,
    Ping,
    Register,
    Unregister,
    announce,
    answer,
    register,
    unregister,
)

NAMES = st.text("abzABZ09._-", min_size=1, max_size=20).map(str.encode)
PORTS = st.integers(1, 65_535)
TEXTS = st.text(min_size=1, max_size=30)
COMMANDS = st.one_of(
    st.just((PING, Ping())),
    st.builds(lambda t: (register(t), Register(t, b"")), NAMES),
    st.builds(lambda t, c: (register(t, c), Register(t, c)), NAMES, NAMES),
    st.builds(lambda t: (unregister(t), Unregister(t, b"")), NAMES),
    st.builds(lambda t, c: (unregister(t, c), Unregister(t, c)), NAMES, NAMES),
)


def events_of(data: bytes, cuts: list[int]) -> list[Event]:
    """What a decoder finds in bytes that come in pieces."""
    decoder = LookupDecoder()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    found: list[Event] = []
    for start, end in itertools.pairwise(places):
        found += decoder.feed(data[start:end])
    assert decoder.held_bytes <= len(data)
    return found


@given(
    st.builds(Announce, TEXTS, st.text(max_size=9), PORTS, PORTS, TEXTS, TEXTS, TEXTS),
    st.lists(COMMANDS, max_size=8),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_what_a_client_says_is_what_a_server_hears(
    about: Announce, commands: list[tuple[bytes, Event]], cuts: list[int]
) -> None:
    said = b"".join([MAGIC, announce(about), *[data for data, _ in commands]])
    assert events_of(said, cuts) == [about, *[event for _, event in commands]]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_any_bytes_have_one_meaning_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    for start in (b"", MAGIC, MAGIC + b"IDENTIFY\n", MAGIC + b"REGISTER "):
        whole = events_of(start + data, [])
        assert events_of(start + data, cuts) == whole
        assert not [each for each in whole[:-1] if isinstance(each, Violation)], "it is the last"


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 200), max_size=6))
def test_answers_come_back_whole(answers: list[bytes], cuts: list[int]) -> None:
    data = b"".join([answer(each) for each in answers]) + OK
    decoder = AnswerDecoder()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    found: list[bytes] = []
    for start, end in itertools.pairwise(places):
        found += decoder.feed(data[start:end])
    assert found == [*answers, b"OK"]
    assert decoder.error == ""


def test_an_answer_that_is_too_large_is_refused_before_it_comes() -> None:
    decoder = AnswerDecoder()
    assert decoder.feed(answer(b"OK") + (1_048_577).to_bytes(4, "big")) == [b"OK"]
    assert decoder.error == "an answer of 1048577 bytes; 0 to 1048576 are allowed"
    assert decoder.feed(answer(b"OK")) == []


def test_texts_and_ports_of_an_announcement_are_bounded() -> None:
    for about in [
        Announce("a" * 257, "h", 1, 1, "1"),
        Announce("a", "h", 65_536, 1, "1"),
        Announce("a", "h", -1, 1, "1"),
    ]:
        (found,) = events_of(MAGIC + announce(about), [])
        assert isinstance(found, Violation)
        assert found.text == b"E_BAD_BODY IDENTIFY failed to decode JSON body"
