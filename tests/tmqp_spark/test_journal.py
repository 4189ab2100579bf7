"""Blocks become record batches: every column, every shape of message, and nothing on trust."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.project import ROOT
from tests.tmqp_spark.blocks_for_tests import BASE_US, block, stored
from tmqp import FrameDecoder, Limits
from tmqp.blocks import HEAD_SIZE, StoredMessage
from tmqp_spark.arrow import BatchBuilder, read_portion
from tmqp_spark.errors import DecodeFailed, InvalidSchema
from tmqp_spark.schema import COLUMNS, HEADERS_TYPE, default_columns, project

ALL = [(column.name, column.types[0], column.nullable) for column in COLUMNS]


def build(answers: list[bytes], columns: Any = None, checksums: str = "all") -> Any:
    portion = read_portion([(data, 0) for data in answers], checksums, "orders/7")
    builder = BatchBuilder(project(columns or ALL), "orders", 7, "store-5", "orders/7")
    batch = builder.build(portion)
    batch.validate(full=True)
    return batch


def expected(message: StoredMessage) -> dict[str, Any]:
    """A row as the message itself would tell it."""
    row: dict[str, Any] = {
        "channel": "orders",
        "queue": 7,
        "seq": message.sequence,
        "message_id": None,
        "source": None,
        "high_priority": False,
        "one_delivery": None,
        "pending_ack": None,
        "pending_response": None,
        "ttl": None,
        "delivery_count": message.attempts,
        "headers": None,
        "value": message.payload,
        "frame": None,
        "incarnation": "store-5",
        "put_backs": message.put_backs,
        "hops": message.hops,
        "pushed_channel": None,
        "pushed_queue": None,
    }
    if message.flags >> 8 == 1:
        (frame,) = FrameDecoder(Limits(max_payload_bytes=1 << 30)).feed(message.body)
        row |= {
            "message_id": frame.message_id or None,
            "source": frame.source or None,
            "high_priority": frame.high_priority,
            "one_delivery": frame.first_acquirer,
            "pending_ack": frame.pending_acknowledge,
            "pending_response": frame.pending_response,
            "ttl": frame.ttl,
            "headers": [{"key": key, "value": value} for key, value in frame.headers],
            "frame": message.body,
            "pushed_channel": frame.target or None,
            "pushed_queue": frame.content_type,
        }
    return row


def rows(batch: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = batch.drop_columns(["timestamp"]).to_pylist()
    return found


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n:"), max_size=20)
messages: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    payload=st.one_of(
        st.binary(max_size=16),
        st.integers(240, 70_000).map(lambda size: b"\xfe" * size),
    ),
    door=st.sampled_from([1, 1, 1, 2]),
    attempts=st.integers(0, 65_535),
    message_id=names,
    source=names,
    headers=st.lists(st.tuples(names.filter(bool), names), max_size=3).map(tuple),
    high_priority=st.booleans(),
    first_acquirer=st.booleans(),
    pending_acknowledge=st.booleans(),
    pending_response=st.booleans(),
    ttl=st.integers(0, 31),
)


@given(st.lists(messages, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_every_column_says_what_the_message_says(
    described: list[dict[str, Any]], chance: random.Random
) -> None:
    sequence = 0
    kept: list[StoredMessage] = []
    for each in described:
        sequence += chance.choice([1, 1, 1, 900])
        high = each["high_priority"] and each["door"] == 1
        kept.append(stored(sequence, **{**each, "high_priority": high}))
    # Any division into blocks, and of blocks into answers, is the same.
    answers: list[bytes] = [b""]
    rest = list(kept)
    while rest:
        count = chance.randint(1, len(rest))
        part, rest = rest[:count], rest[count:]
        answers[-1] += block(*part)
        if chance.random() < 0.5:
            answers.append(b"")
    assert rows(build(answers)) == [expected(message) for message in kept]


def test_the_time_is_microseconds_of_utc() -> None:
    batch = build([block(stored(3), stored(4))])
    assert batch.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == [BASE_US + 3, BASE_US + 4]


def test_columns_come_in_the_order_asked_for_and_no_others() -> None:
    data = block(stored(1, b"x"))
    batch = build([data], [("value", "binary", False), ("seq", "bigint", True)])
    assert batch.schema.names == ["value", "seq"]
    assert [field.nullable for field in batch.schema] == [False, True]


def test_a_payload_is_text_when_asked_for_as_text() -> None:
    columns = [("value", "string", True)]
    assert build([block(stored(1, "grün".encode()))], columns)["value"].to_pylist() == ["grün"]
    with pytest.raises(DecodeFailed, match=r"value of 1 messages .* not UTF-8; read it as binary"):
        build([block(stored(1, b"\xff" * 20))], columns)


def test_a_name_that_is_not_text_is_found() -> None:
    message = stored(1, b"x", source="producer-of-messages")
    message.body = message.body.replace(b"producer", b"prod\xff\xffer")
    with pytest.raises(DecodeFailed, match=r"column source .* is not UTF-8"):
        build([block(message)])


def test_a_column_that_must_not_be_null_is_not() -> None:
    columns = [("message_id", "string", False)]
    batch = build([block(stored(1, message_id="a"))], columns)
    assert batch.schema.field("message_id").nullable is False
    with pytest.raises(DecodeFailed, match=r"message_id is NOT NULL .* 1 of 2 messages"):
        build([block(stored(1, message_id="a"), stored(2))], columns)


def test_a_body_that_is_shorter_than_its_names_is_found() -> None:
    message = stored(1, b"x" * 40, source="abc")
    message.body = message.body[:3] + b"\xff" + message.body[4:]
    with pytest.raises(DecodeFailed, match="is not a message"):
        build([block(message)])


def test_any_bit_that_changes_is_found() -> None:
    data = block(*[stored(sequence, b"payload %d" % sequence) for sequence in range(1, 9)])
    chance = random.Random(1)
    for _ in range(300):
        bit = chance.randrange(len(data) * 8)
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DecodeFailed):
            read_portion([(bytes(broken), 0)], "all", "orders/7")


def test_without_checksums_nothing_is_read_beyond_what_is_there() -> None:
    data = block(*[stored(sequence, b"payload %d" % sequence) for sequence in range(1, 9)])
    chance = random.Random(2)
    read = 0
    for _ in range(2_000):
        broken = bytearray(data)
        for _ in range(3):
            broken[chance.randrange(len(data))] = chance.randrange(256)
        try:
            batch = build([bytes(broken)], checksums="none")
        except DecodeFailed:
            continue
        assert batch.num_rows <= 8
        read += 1
    assert read, "some damage is harmless"


@pytest.mark.parametrize("cut", [1, HEAD_SIZE - 1, HEAD_SIZE, HEAD_SIZE + 57])
def test_a_block_that_was_cut_short_is_found(cut: int) -> None:
    with pytest.raises(DecodeFailed, match="orders/7"):
        read_portion([(block(stored(1, b"abc"))[:cut], 0)], "none", "orders/7")


def test_blocks_stand_in_rising_order() -> None:
    first, second = block(stored(1), stored(2)), block(stored(2), stored(3))
    with pytest.raises(DecodeFailed, match="out of order"):
        read_portion([(first, 0), (second, 0)], "index", "orders/7")


def test_nothing_is_an_empty_portion() -> None:
    assert len(read_portion([(b"", 0)], "index", "orders/7")) == 0


def test_a_selection_has_the_chosen_messages_only() -> None:
    data = [block(stored(1, b"a"), stored(2, b"b" * 20)), block(stored(5, b"c"))]
    portion = read_portion([(each, 0) for each in data], "index", "orders/7")
    chosen = portion.select(portion.entry["sequence"] != 2)
    builder = BatchBuilder(project(default_columns()), "orders", 7, "", "orders/7")
    assert builder.build(chosen)["value"].to_pylist() == [b"a", b"c"]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ([("valeu", "binary", True)], "did you mean value"),
        ([("zzz", "binary", True)], "there are channel, queue"),
        ([("seq", "int", True)], "column seq is bigint, not int"),
        ([("seq", "bigint", True), ("seq", "bigint", True)], "twice"),
        ([], "no columns"),
    ],
)
def test_a_schema_that_cannot_be_is_said_so(columns: Any, text: str) -> None:
    with pytest.raises(InvalidSchema, match=text):
        project(columns)


def test_headers_and_frame_are_there_when_asked_for() -> None:
    assert ("headers", HEADERS_TYPE, True) in default_columns(headers=True)
    assert ("frame", "binary", True) in default_columns(frame=True)
    names = [name for name, _, _ in default_columns()]
    assert "headers" not in names
    assert "frame" not in names


@pytest.mark.parametrize("channel", ["orders", "Aufträge/Straße", "\N{GRINNING FACE}"])
def test_a_constant_stands_in_each_row(channel: str) -> None:
    columns = [("channel", "string", False), ("queue", "int", False)]
    portion = read_portion([(block(*map(stored, range(1, 6_000))), 0)], "all", "x")
    builder = BatchBuilder(project(columns), channel, 65_535, "store-5", "x")
    batch = builder.build(portion)
    batch.validate(full=True)
    assert batch.column(0).to_pylist() == [channel] * 5_999
    assert batch.column(1).to_pylist() == [65_535] * 5_999


_WITHOUT_PANDAS = """
import sys
from tests.tmqp_spark.blocks_for_tests import block, stored
from tmqp_spark.arrow import BatchBuilder, read_portion
from tmqp_spark.schema import default_columns, project
portion = read_portion([(block(stored(1, b"x", message_id="a")), 0)], "all", "x")
before = "pandas" in sys.modules
builder = BatchBuilder(project(default_columns()), "orders", 7, "store-5", "x")
assert len(builder.build(portion)) == 1
print(before, "pandas" in sys.modules)
"""


def test_no_task_loads_pandas() -> None:
    pytest.importorskip("pandas")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PANDAS],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
    )
    assert done.stdout.split() == ["False", "False"]
