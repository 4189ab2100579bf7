"""The checks of ``tmqp.testing.strategies``: what is drawn is what was promised."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from tmqp import Connection, ConnectionInformation, Frame, FrameDecoder, MessageType, Role, State
from tmqp.frames import parse_headers
from tmqp.testing import converse, read_frames
from tmqp.testing.strategies import (
    Conversation,
    chunkings,
    connection_information,
    conversations,
    frames,
    header_blocks,
    header_pairs,
    hostile_bytes,
    ids,
    message_types,
    names,
    odd_frames,
    payloads,
    texts,
)

SEARCH = settings(
    max_examples=1_000,
    database=None,
    derandomize=True,
    phases=[Phase.generate],  # any example will do, the smallest takes long to find
    suppress_health_check=list(HealthCheck),
)


@given(frames())
def test_frames_are_whole(frame: Frame) -> None:
    assert read_frames(frame.raw).frames == [frame.fields()]


@given(odd_frames())
def test_odd_frames_are_one_frame_or_not_utf_8(data: bytes) -> None:
    reading = read_frames(data)
    assert (len(reading.frames), reading.rule) in ((1, None), (0, "utf8"))
    assert reading.rest == 0


@given(texts(20, exclude="x", min_size=1))
def test_texts_fit(text: str) -> None:
    assert 1 <= len(text.encode()) <= 20
    assert "x" not in text


@given(names(60), ids(), message_types(), payloads(300))
def test_small_parts_fit(name: str, message_id: str, kind: int, payload: bytes) -> None:
    assert len(name.encode()) <= 60
    assert len(message_id) == 32
    assert 0 <= kind < 64
    assert len(payload) <= 300


@given(header_pairs())
def test_header_pairs_can_be_written(pairs: list[tuple[str, str]]) -> None:
    assert Frame.build(0x11, headers=pairs).headers == pairs


@given(header_blocks())
def test_header_blocks_fit(block: bytes) -> None:
    assert len(block) <= 65_535


@given(connection_information())
def test_information_can_be_written(information: ConnectionInformation) -> None:
    assert ConnectionInformation.parse(information.encode()) == information


@settings(max_examples=40)
@given(conversations())
def test_conversations_go_well(conversation: Conversation) -> None:
    server = converse(Connection(Role.SERVER), [conversation.client])
    assert server.state == State.OPEN
    client = Connection(Role.CLIENT)
    client.initiate(conversation.information)
    assert converse(client, [conversation.server]).state == State.OPEN
    assert client.client_id == conversation.client_id
    assert FrameDecoder().feed(conversation.client[8:]) == conversation.client_frames
    assert FrameDecoder().feed(conversation.server[8:]) == conversation.server_frames
    assert repr(conversation).startswith("Conversation([<Frame SERVER")


@given(st.data(), st.binary(max_size=50))
def test_chunkings_make_up_the_whole(data: st.DataObject, whole: bytes) -> None:
    pieces = data.draw(chunkings(whole))
    assert b"".join(pieces) == whole
    assert all(pieces)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda frame: frame.type not in list(MessageType),
        lambda frame: len(frame.message_id.encode()) == 255,
        lambda frame: frame.payload_size == 253,
        lambda frame: not frame.target.isascii(),
        lambda frame: len(frame.headers) > 2,
        lambda frame: frame.header("Request-Id") is not None,
        lambda frame: frame.first_acquirer and frame.high_priority and frame.pending_response,
    ],
)
def test_frames_reach_every_corner(wanted: object) -> None:
    assert find(frames(), wanted, settings=SEARCH) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wanted",
    [
        lambda data: data[7] == 255,
        lambda data: read_frames(data).rule == "utf8",
        lambda data: data[1] & 0x20 and b"no colon" in data,
    ],
)
def test_odd_frames_reach_every_corner(wanted: object) -> None:
    assert find(odd_frames(), wanted, settings=SEARCH) is not None  # type: ignore[arg-type]


@given(frames(st.sampled_from((MessageType.PING, MessageType.PONG)), 10))
def test_types_can_be_chosen(frame: Frame) -> None:
    assert frame.type in (MessageType.PING, MessageType.PONG)
    assert not frame.headers


@pytest.mark.parametrize("rule", ["payload-limit", "utf8", None])
def test_hostile_bytes_break_rules(rule: str | None) -> None:
    good = frames().map(lambda frame: frame.raw)
    found = find(hostile_bytes(good), lambda data: read_frames(data).rule == rule, settings=SEARCH)
    assert read_frames(found).rule == rule


def test_a_block_that_means_nothing_is_drawn() -> None:
    def senseless(block: bytes) -> bool:
        try:
            return len(block) > 5 and parse_headers(block.decode()) == []
        except UnicodeDecodeError:
            return False

    assert find(header_blocks(), senseless, settings=SEARCH)
