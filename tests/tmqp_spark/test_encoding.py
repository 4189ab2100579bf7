"""The messages that a sink makes of columns: read back by the codec, field by field."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp import Frame, FrameDecoder, Limits, MessageType
from tmqp_spark.encoding import EncodedBatch, MessageEncoder
from tmqp_spark.errors import EncodingError

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
MAPS = pa.map_(pa.string(), pa.string())


def _encoder(*, channel: str = "orders", queue: int | None = 7, ask: bool = True) -> MessageEncoder:
    return MessageEncoder(channel, queue, "spark-1", "ab12-", ask=ask)


def _batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch(list(columns.values()), names=list(columns))


def _values(values: Sequence[bytes]) -> pa.Array:
    return pa.array(values, pa.binary())


def _frames(data: memoryview | bytes) -> list[Frame]:
    decoder = FrameDecoder(Limits(max_payload_bytes=1 << 40))
    frames = decoder.feed(bytes(data))
    assert decoder.error is None
    assert decoder.buffered == 0
    return frames


def _all(encoded: EncodedBatch) -> list[Frame]:
    frames = _frames(encoded.data)
    assert len(frames) == encoded.count
    ends = [sum(len(frame.raw) for frame in frames[:number]) for number in range(len(frames) + 1)]
    assert encoded.offsets.tolist() == ends
    return frames


def test_values_alone_go_where_the_options_say() -> None:
    encoder = _encoder()
    encoded = encoder.encode(_batch(value=_values([b"one", b"", b"three"])))
    wanted = [
        Frame.build(
            MessageType.QUEUE_MESSAGE,
            "orders",
            7,
            payload,
            message_id=f"ab12-{number:08x}",
            source="spark-1",
            pending_acknowledge=True,
        )
        for number, payload in enumerate([b"one", b"", b"three"])
    ]
    assert _all(encoded) == wanted
    answers = _frames(encoded.acknowledges)
    assert [(answer.type, answer.message_id) for answer in answers] == [
        (MessageType.ACKNOWLEDGE, frame.message_id) for frame in wanted
    ]
    assert {(a.target, a.content_type, a.source, a.ttl) for a in answers} == {("orders", 7, "", 16)}
    assert encoder.encode(_batch(value=_values([b"x"]))).data.tobytes().count(b"00000003") == 1


def test_without_acknowledges_none_are_expected() -> None:
    encoded = _encoder(ask=False).encode(_batch(value=_values([b"one"])))
    assert not _all(encoded)[0].pending_acknowledge
    assert encoded.expected(0, 1) == b""


SIZES = st.sampled_from([0, 1, 252, 253, 300, 65_535, 65_536, 70_000])
ROW = st.tuples(
    SIZES,
    st.sampled_from(["a", "orders", "bestellung-ä", "x" * 255]),
    st.integers(0, 65_535),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.none() | st.lists(st.tuples(st.sampled_from(["K", "Key"]), st.just("v: 1")), max_size=3),
    st.none() | st.booleans(),
    st.none() | st.integers(1, 31),
)


@given(rows=st.lists(ROW, max_size=8), skip=st.integers(0, 3), maps=st.booleans())
def test_any_columns_give_the_frames_that_the_codec_builds(
    rows: list[tuple[int, str, int, str, list[tuple[str, str]] | None, bool | None, int | None]],
    skip: int,
    maps: bool,
) -> None:
    headers: list[object] = [row[4] for row in rows]
    if not maps:
        headers = [
            pairs and [{"key": key, "value": value} for key, value in pairs]
            for pairs in (row[4] for row in rows)
        ]
    batch = _batch(
        value=_values([bytes(row[0]) for row in rows]),
        channel=pa.array([row[1] for row in rows], pa.string()),
        queue=pa.array([row[2] for row in rows], pa.int32()),
        message_id=pa.array([row[3] for row in rows], pa.string()),
        headers=pa.array(headers, MAPS if maps else PAIRS),
        high_priority=pa.array([row[5] for row in rows], pa.bool_()),
        ttl=pa.array([row[6] for row in rows], pa.int8()),
    ).slice(skip)
    found = _all(_encoder().encode(batch))
    assert found == [
        Frame.build(
            MessageType.QUEUE_MESSAGE,
            channel,
            queue,
            bytes(size),
            message_id=message_id or f"ab12-{number:08x}",
            source="spark-1",
            headers=pairs or (),
            high_priority=bool(high),
            pending_acknowledge=True,
            ttl=16 if ttl is None else ttl,
        )
        for number, (size, channel, queue, message_id, pairs, high, ttl) in enumerate(rows[skip:])
    ]


def test_a_row_without_channel_or_queue_goes_where_the_options_say() -> None:
    batch = _batch(
        value=pa.array(["text", "more"]),
        channel=pa.array([None, "other"], pa.string()),
        queue=pa.array([3, None], pa.int32()),
    )
    found = _all(_encoder().encode(batch))
    assert [(frame.target, frame.content_type) for frame in found] == [("orders", 3), ("other", 7)]
    with pytest.raises(EncodingError, match="option 'channel' is not set"):
        _encoder(channel="").encode(batch)
    with pytest.raises(EncodingError, match="option 'queue' is not set"):
        _encoder(queue=None).encode(batch)


def test_a_row_without_an_id_gets_one() -> None:
    batch = _batch(
        value=_values([b"a", b"b", b"c"]), message_id=pa.array(["", "own", None], pa.string())
    )
    assert [frame.message_id for frame in _all(_encoder().encode(batch))] == [
        "ab12-00000000",
        "own",
        "ab12-00000002",
    ]


def test_after_a_new_connection_messages_bear_its_name() -> None:
    encoder = _encoder()
    encoder.rename("spark-2")
    encoded = encoder.encode(_batch(value=_values([b"a"])))
    assert encoded.source == _all(encoded)[0].source == "spark-2"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"value": pa.array([b"a", None])}, "column value is null in row 1 of them"),
        ({"message_id": pa.array(["a", "x" * 256])}, "message id in row 1 of them has 256 bytes"),
        ({"channel": pa.array(["a", "ä" * 128])}, "channel in row 1 of them has 256 bytes"),
        ({"queue": pa.array([1, 65_536])}, "a queue id must be 0 to 65535, got 65536"),
        ({"queue": pa.array([-1, 2])}, "a queue id must be 0 to 65535, got -1"),
        ({"ttl": pa.array([1, 32])}, "a time to live is 1..31, got 32"),
        ({"ttl": pa.array([0, 1])}, "a time to live is 1..31, got 0"),
        ({"headers": pa.array([[("a:b", "x")], []], MAPS)}, "a header key holds ':'"),
        ({"headers": pa.array([[("", "x")], []], MAPS)}, "a header has no key"),
        ({"headers": pa.array([[("a", "x\r")], []], MAPS)}, "a header value holds '.r'"),
        ({"headers": pa.array([[("a", "x" * 65_533)], []], MAPS)}, "65537 bytes, at most 65535"),
    ],
)
def test_a_row_that_cannot_be_a_message_is_named(columns: dict[str, pa.Array], says: str) -> None:
    batch = _batch(**{"value": _values([b"a", b"b"]), **columns})
    with pytest.raises(EncodingError, match=says) as caught:
        _encoder().encode(batch)
    assert "rows 0 to 2" in str(caught.value)


def test_a_block_ends_at_a_message_and_is_as_large_as_allowed() -> None:
    encoded = _encoder().encode(_batch(value=_values([bytes(100)] * 5 + [bytes(1_000), b""])))
    size = int(encoded.offsets[1])
    assert encoded.cuts(3 * size) == [0, 3, 5, 6, 7]
    assert encoded.cuts(3 * size - 1) == [0, 2, 4, 5, 6, 7]
    assert encoded.cuts(1 << 30) == [0, 7]
    assert len(_frames(encoded.block(0, 3))) == 3
    assert len(_frames(encoded.expected(3, 5))) == 2


def test_an_empty_batch_makes_nothing() -> None:
    encoded = _encoder().encode(_batch(value=_values([])))
    assert encoded.count == 0
    assert encoded.cuts(100) == [0]
