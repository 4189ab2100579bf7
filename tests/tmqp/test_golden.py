"""The golden checks: what the original client and server really sent, byte for byte."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support import load_exchanges, load_frames
from tmqp import (
    Connection,
    ConnectionInformation,
    Frame,
    FrameDecoder,
    Limits,
    ProtocolViolated,
    Role,
    State,
    encode,
)
from tmqp.testing import (
    CLIENT_TO_SERVER,
    SERVER_TO_CLIENT,
    check_chunking,
    check_connection_chunking,
    converse,
    describe,
    read_frames,
    split_step,
    write_frame,
)

GENEROUS: Final = Limits(max_payload_bytes=2**40)
HELLO: Final = b"TMQP/2.0" + Frame.build(0x10, "", 101, b"CONNECT /\r\n").raw
ACCEPTED: Final = b"TMQP/2.0" + Frame.build(0x10, "c", 202).raw

#: The only recorded frames that are not written the way every writer should: sent on purpose.
NON_CANONICAL: Final = {
    "probe-017-header-flag-with-a-zero-length-header-block step 4 frame 0": (
        "10900100025902006a687a"
    ),
    "probe-032-non-minimal-length-encodings step 4 frame 0": "1210010002010004786e6d74696e79",
    "probe-032-non-minimal-length-encodings step 6 frame 0": "1210010002010004786e6d74696e79",
    "probe-032-non-minimal-length-encodings step 8 frame 0": "1210010002010004786e6d74696e79",
    "probe-201-extra-zero-length-header-block-then-more-bytes step 4 frame 0": (
        "10900100025902006a687a"
    ),
}


def open_connection(role: Role, at_s: float = 0.0) -> Connection:
    """A connection on which messages flow."""
    connection = Connection(role, GENEROUS, now=at_s)
    if role == Role.SERVER:
        converse(connection, [HELLO])
    else:
        connection.initiate(information())
        converse(connection, [ACCEPTED])
    assert connection.state == State.OPEN
    return connection


def information() -> ConnectionInformation:
    """What a client says of itself."""
    return ConnectionInformation("c")


# --- Counting ------------------------------------------------------------------------------------


def test_the_recordings_are_all_there() -> None:
    exchanges = load_exchanges()
    families = [exchange.name.split("-")[0] for exchange in exchanges]
    assert {family: families.count(family) for family in families} == {
        "fixed": 18,
        "probe": 70,
        "real": 126,
    }
    parts = [split_step(step) for exchange in exchanges for step in exchange.steps]
    preambles = sum(len(part.preamble) > 0 for part in parts)
    cut = sum(part.rest != b"" for part in parts)
    print(f"\nrecorded: {len(load_frames())} whole frames, {preambles} preambles, {cut} torn items")
    assert len(load_frames()) == 1_107
    assert preambles == 186
    assert cut == 11


# --- Frames --------------------------------------------------------------------------------------


def test_every_recorded_frame_is_written_as_it_came() -> None:
    """A1 on real bytes: decoding keeps them, encoding gives them back, building them anew too."""
    different: dict[str, str] = {}
    for recorded in load_frames():
        frame = recorded.frame
        raw = frame.raw
        (reread,) = FrameDecoder(GENEROUS).feed(raw)
        assert reread.raw == raw
        if encode(reread) != raw:
            different[recorded.where.split(" (")[0]] = encode(reread).hex()
            assert not reread.canonical
            assert FrameDecoder(GENEROUS).feed(encode(reread))[0].fields() == reread.fields()
            continue
        assert reread.canonical
        assert rebuilt(frame).raw == raw, recorded.where
    assert different == NON_CANONICAL


def rebuilt(frame: Frame) -> Frame:
    """The same frame from its fields."""
    return Frame.build(
        frame.type,
        frame.target,
        frame.content_type,
        frame.payload,
        message_id=frame.message_id,
        source=frame.source,
        headers=frame.headers,
        first_acquirer=frame.first_acquirer,
        high_priority=frame.high_priority,
        pending_response=frame.pending_response,
        pending_acknowledge=frame.pending_acknowledge,
        ttl=frame.ttl,
    )


def test_the_plain_codec_agrees_on_every_recorded_frame() -> None:
    for recorded in load_frames():
        frame = recorded.frame
        reading = read_frames(frame.raw, GENEROUS)
        assert reading.frames == [frame.fields()], recorded.where
        if frame.canonical:
            fields = frame.fields()
            assert frame.raw == write_frame(
                fields[0],
                first_acquirer=fields[1],
                high_priority=fields[2],
                pending_response=fields[3],
                pending_acknowledge=fields[4],
                ttl=fields[5],
                message_id=fields[6].encode(),
                source=fields[7].encode(),
                target=fields[8].encode(),
                content_type=fields[9],
                header_block=frame.header_block if frame.has_header else None,
                payload=fields[11],
            )


def test_the_hellos_of_the_original_client_are_read_and_written_alike() -> None:
    seen = 0
    for recorded in load_frames():
        frame = recorded.frame
        if frame.type != 0x10 or frame.content_type != 101 or not frame.payload:
            continue
        if not recorded.exchange.name.startswith("real-"):
            continue
        seen += 1
        information = ConnectionInformation.parse(frame.payload)
        assert information.client_id == frame.source
        assert information.encode() == frame.payload
        connection = Connection(Role.CLIENT)
        connection.initiate(information, frame.message_id)
        assert connection.data_to_send() == b"TMQP/2.0" + frame.raw
    assert seen == 9


# --- Cuts (A2, A6) -------------------------------------------------------------------------------


def test_every_cut_of_every_recorded_frame_gives_the_same() -> None:
    follower = b"\x8a\xff" + bytes(6)
    unique = sorted({recorded.frame.raw for recorded in load_frames()}, key=len)
    cuts = 0
    for raw in unique:
        stream = raw + follower
        check_chunking(lambda: FrameDecoder(GENEROUS), stream)
        cuts += len(stream) + 1
    print(f"\n{len(unique)} different frames in {cuts} ways")
    assert cuts > 80_000


@pytest.mark.parametrize("direction", [CLIENT_TO_SERVER, SERVER_TO_CLIENT])
def test_every_cut_of_every_recorded_conversation_gives_the_same(direction: str) -> None:
    """Whole connections, as the other side saw them: the same events, answers and state."""
    role = Role.SERVER if direction == CLIENT_TO_SERVER else Role.CLIENT
    conversations = set()
    for exchange in load_exchanges():
        if not exchange.self_contained:
            continue
        for connection in exchange.connections:
            steps = [
                step
                for step in exchange.steps
                if step.connection == connection and step.direction == direction
            ]
            if not any(step.truncated for step in steps):
                conversations.add(b"".join(step.data for step in steps))
    conversations.discard(b"")

    def start() -> Connection:
        connection = Connection(role, GENEROUS)
        if role == Role.CLIENT:
            connection.initiate(information())
        return connection

    for data in sorted(conversations, key=len):
        check_connection_chunking(start, data, end=True)
    print(f"\n{len(conversations)} conversations seen by the {role.name.lower()}")
    assert len(conversations) > 60


@pytest.mark.long
@pytest.mark.parametrize("role", list(Role))
def test_every_recorded_frame_cut_anywhere_is_torn_at_the_end_of_the_stream(role: Role) -> None:
    """A6: nothing is handed on, the violation says what happened, nothing is answered."""
    unique = sorted({recorded.frame.raw for recorded in load_frames()}, key=len)
    tried = 0
    for raw in unique:
        for cut in range(1, len(raw)):
            connection = open_connection(role)
            assert connection.receive(raw[:cut], 0.0) == []
            events = connection.receive_eof(0.0)
            names = [type(event).__name__ for event in events]
            assert names == ["ProtocolViolated", "ConnectionClosed"], (raw, cut)
            assert isinstance(events[0], ProtocolViolated)
            assert events[0].error.rule == "torn"
            assert connection.state == State.CLOSED
            assert connection.data_to_send() == b""
            assert connection.receive(raw[cut:], 0.0) == []
            tried += 1
    assert tried > 79_000


# --- Bits (A7) -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("role", list(Role))
def test_every_bit_of_every_recorded_frame_flipped_hurts_at_worst_that_connection(
    role: Role,
) -> None:
    """Nothing raises, and the codec and the plain reader agree on what the damage means."""
    smallest_of_kind: dict[tuple[object, ...], bytes] = {}
    for recorded in load_frames():
        frame = recorded.frame
        shape = [bool(part) for part in (frame.message_id, frame.source, frame.target)]
        kind = (*frame.raw[:2], frame.content_type, *shape, frame.payload_size > 0)
        known = smallest_of_kind.get(kind)
        if known is None or len(frame.raw) < len(known):
            smallest_of_kind[kind] = frame.raw
    flipped = 0
    follower = Frame.build(0x11, "orders", 1, b"next").raw
    limits = Limits()
    for raw in smallest_of_kind.values():
        for bit in range(min(len(raw), 150) * 8):
            data = bytearray(raw)
            data[bit // 8] ^= 1 << bit % 8
            stream = bytes(data) + follower
            decoder = FrameDecoder(limits)
            frames = decoder.feed(stream)
            reading = read_frames(stream, limits)
            assert [frame.fields() for frame in frames] == reading.frames
            assert (None if decoder.error is None else decoder.error.rule) == reading.rule
            connection = Connection(role, limits)
            if role == Role.CLIENT:
                connection.initiate(information())
            connection.receive(HELLO if role == Role.SERVER else ACCEPTED, 0.0)
            if role == Role.SERVER:
                connection.accept("c")
            events = connection.receive(stream, 0.0) + connection.receive_eof(0.0)
            assert connection.state == State.CLOSED
            assert all(describe(event) for event in events)
            flipped += 1
    print(f"\n{flipped} bits flipped in {len(smallest_of_kind)} frames as {role.name.lower()}")
    assert flipped > 40_000
