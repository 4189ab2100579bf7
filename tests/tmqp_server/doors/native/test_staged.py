"""The quick way of pushed blocks: it says what the decoder says, or nothing."""

from __future__ import annotations

from array import array

from hypothesis import example, given
from hypothesis import strategies as st

from tests.tmqp_server.peers import push
from tmqp.codec import FrameDecoder
from tmqp.constants import TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.doors.native.staged import quick_message_sets
from tmqp_server.engine.commands import MessageSet

LIMITS = Limits(max_payload_bytes=100_000, max_name_bytes=40)


def row(number: int, size: int, channel: str = "c", *, high: bool = False) -> bytes:
    return push(channel, 1, f"m{number:06}", b"x" * size, source="me", high_priority=high).raw


def rows(count: int, size: int, channel: str = "c", *, high: bool = False) -> bytes:
    return b"".join([row(number, size, channel, high=high) for number in range(count)])


def listed(numbers: bytes) -> list[int]:
    return array("I", numbers).tolist()


def judge(message_sets: list[MessageSet], block: bytes) -> None:
    """What is said of a block is what its frames say."""
    decoder = FrameDecoder(LIMITS)
    frames = decoder.feed(block)
    assert decoder.error is None
    assert not decoder.buffered
    assert b"".join([each.data for each in message_sets]) == block
    at = 0
    for message_set in message_sets:
        sizes, offsets = listed(message_set.sizes), listed(message_set.offsets)
        assert len(sizes) == len(offsets)
        assert len(sizes) in (1, message_set.count)
        mine: list[Frame] = frames[at : at + message_set.count]
        at += message_set.count
        for place, frame in enumerate(mine):
            assert (frame.type, frame.source, frame.has_header) == (TYPE_QUEUE_MESSAGE, "me", False)
            assert (frame.target, frame.content_type) == (message_set.channel, message_set.queue_id)
            size = sizes[place if len(sizes) > 1 else 0]
            offset = offsets[place if len(offsets) > 1 else 0]
            assert (size, size - offset) == (len(frame.raw), frame.payload_size)
            assert frame.high_priority == bool(message_set.high)
        assert message_set.high in (0, message_set.count)
        assert message_set.size == len(message_set.data)
        assert message_set.largest == max([len(frame.raw) for frame in mine])
    assert at == len(frames)


def test_rows_that_are_alike_are_one_message_set_with_one_size() -> None:
    block = rows(500, 100)
    (message_set,) = quick_message_sets(block, "me", "tmqp", LIMITS) or []
    assert message_set.data is block, "nothing is copied"
    assert listed(message_set.sizes) == [len(block) // 500]
    assert (message_set.count, message_set.high, message_set.door) == (500, 0, "tmqp")
    judge([message_set], block)


def test_rows_of_all_sizes_are_one_message_set_with_a_size_each() -> None:
    block = b"".join([row(n, size) for n, size in enumerate([0, 5, 252, 253, 70_000, 65_535] * 5)])
    (message_set,) = quick_message_sets(block, "me", "tmqp", LIMITS) or []
    assert len(listed(message_set.sizes)) == 30
    assert message_set.weight == len(block) + 2 * 4 * 30
    judge([message_set], block)


def test_rows_for_several_queues_one_after_another_are_as_many_message_sets() -> None:
    block = rows(20, 10) + rows(30, 10, "d") + rows(3, 10, high=True)
    message_sets = quick_message_sets(block, "me", "tmqp", LIMITS) or []
    assert [(each.channel, each.count, each.high) for each in message_sets] == [
        ("c", 20, 0), ("d", 30, 0), ("c", 3, 3),
    ]  # fmt: skip
    judge(message_sets, block)


def test_what_is_odd_is_left_to_the_general_way() -> None:
    many = rows(100, 10)
    for odd in (
        rows(2, 10) + rows(2, 10, "d") + many,
        many + push("c", 1, "m", source="you").raw,
        many + push("c", 1, "m", source="").raw,
        many + push("c", 1, "", source="me").raw,
        many + push("c", 1, "m", source="me", headers=[("k", "v")]).raw,
        many + push("c", 1, "m", b"x" * 100_001, source="me").raw,
        many + push("c" * 41, 1, "m", source="me").raw,
        many + push("c", 1, "m" * 41, source="me").raw,
        many + Frame.build(5, "c", 1, b"", message_id="m", source="me").raw,
        many[:-1],
        many + b"\x03",
        many + row(1, 0).replace(b"m000001", b"m\xff00001"),
        many + row(1, 0, "\u00e4").replace("\u00e4".encode(), b"\xff\xfe"),
    ):
        assert quick_message_sets(odd, "me", "tmqp", LIMITS) is None
    assert quick_message_sets(b"", "me", "tmqp", LIMITS) == []
    assert quick_message_sets(many, "you", "tmqp", LIMITS) is None


def test_names_beyond_ascii_are_taken() -> None:
    frames = [push("\u00fc", 1, f"\u00e4{n}", b"\xff", source="me").raw for n in range(9)]
    block = b"".join(frames)
    message_sets = quick_message_sets(block, "me", "tmqp", LIMITS) or []
    assert [each.count for each in message_sets] == [9]
    judge(message_sets, block)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 40),
            st.sampled_from([0, 1, 100, 252, 253, 300, 66_000]),
            st.sampled_from("cd"),
            st.booleans(),
        ),
        max_size=4,
    ),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=3),
    st.integers(0, 8),
)
@example([(40, 1, "c", False)], [(7, 254)], 0)
@example([(40, 300, "c", False)], [(7, 254)], 0)
@example([(1, 252, "c", False)], [(7, 253)], 270)
def test_whatever_a_block_holds(
    parts: list[tuple[int, int, str, bool]], spoilt: list[tuple[int, int]], lost: int
) -> None:
    whole = bytearray(b"".join([rows(n, size, where, high=h) for n, size, where, h in parts]))
    for at, value in spoilt:
        if whole:
            whole[at % len(whole)] = value
    block = bytes(whole[: max(0, len(whole) - lost)])
    message_sets = quick_message_sets(block, "me", "tmqp", LIMITS)
    if message_sets is not None:
        judge(message_sets, block)
