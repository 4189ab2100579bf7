"""Places in queues, as checkpoints and options write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_spark.errors import InvalidOption, SparkError
from tmqp_spark.offsets import Place, parse_key, parse_places, read_checkpoint, write_checkpoint

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
numbers = st.integers(0, 2**63 - 1)
places = st.dictionaries(
    st.builds(lambda name, queue: f"{name}/{queue}", names, st.integers(0, 65_535)),
    st.builds(Place, names, numbers, st.none() | numbers),
    max_size=5,
)


@given(places)
def test_what_was_written_is_read(found: dict[str, Place]) -> None:
    data = write_checkpoint(found)
    assert read_checkpoint(json.loads(json.dumps(data))) == found


@given(places)
def test_the_same_places_are_the_same_text_whatever_their_order(found: dict[str, Place]) -> None:
    backwards = dict(reversed(found.items()))
    text = json.dumps(write_checkpoint(found))
    assert text == json.dumps(write_checkpoint(backwards))
    assert text == json.dumps(json.loads(text), sort_keys=True)


def test_what_a_later_version_adds_is_passed_over() -> None:
    found = read_checkpoint({"q": {"a/1": {"i": "x", "s": 4, "z": 1}}, "v": 1, "more": {}})
    assert found == {"a/1": Place("x", 4)}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"orders": {"0": 5}}, "offsets of another source"),
        ({"v": 2, "q": {}}, "a later version"),
        ({"v": 1, "q": {"orders": {"i": "", "s": 1}}}, "'orders' is unreadable"),
        ({"v": 1, "q": {"orders/7": {"i": ""}}}, "'orders/7' is unreadable"),
        ({"v": 1, "q": {"orders/7": 5}}, "unreadable"),
    ],
)
def test_a_checkpoint_of_something_else_is_said_so(data: dict[str, object], text: str) -> None:
    with pytest.raises(SparkError, match=text):
        read_checkpoint(data)


def test_ten_thousand_queues_are_a_megabyte_and_no_more() -> None:
    """Spark writes all of it for each micro-batch, so the part of a queue is short."""
    found = {f"orders-{number}/{number}": Place("f" * 32, 10**9) for number in range(10_000)}
    text = json.dumps(write_checkpoint(found))
    assert len(text) < 1_000_000
    assert read_checkpoint(json.loads(text)) == found


def test_a_queue_is_channel_and_number() -> None:
    assert parse_key("a/b/7") == ("a/b", 7)
    for wrong in ("orders", "/7", "orders/x", "orders/70000", "orders/-1"):
        with pytest.raises(ValueError, match=r"channel/queue|queue id"):
            parse_key(wrong)


def test_offsets_by_queue_may_be_nested() -> None:
    flat = parse_places("startingOffsets", '{"a/1": 5, "a/2": -1}')
    assert flat == {"a/1": 5, "a/2": -1}
    assert parse_places("startingOffsets", '{"a": {"1": 5, "2": -1}}') == flat


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "must be JSON"),
        ("[1]", "must be a JSON object"),
        ("{}", "must be a JSON object"),
        ('{"a": 1}', "is not channel/queue"),
        ('{"a/1": -3}', "a number from -2 on, got -3"),
        ('{"a/1": true}', "got True"),
    ],
)
def test_offsets_that_cannot_be_are_said_so(text: str, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        parse_places("startingOffsets", text)
