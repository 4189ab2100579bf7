"""The checks of ``tmqp.testing.generate``: the same seed gives the same, and everything."""

from __future__ import annotations

import hashlib

from tmqp import Connection, ConnectionInformation, FrameDecoder, Limits, Role, State
from tmqp.testing import (
    Seeded,
    client_bytes,
    converse,
    damage,
    odd_frame,
    pieces,
    plain_frame,
    read_frames,
    server_bytes,
)


def test_a_seed_gives_the_same_numbers_for_ever() -> None:
    draw = Seeded(1)
    assert [draw.below(1_000) for _ in range(8)] == [74, 77, 438, 427, 868, 625, 628, 597]
    assert Seeded(2).some_bytes(5) != Seeded(3).some_bytes(5)
    assert len(Seeded(2).some_bytes(5)) == 5


def test_a_seed_gives_the_same_bytes_for_ever() -> None:
    """A failure found by a seed must be found again by it."""
    draw = Seeded(7)
    digest = hashlib.sha256()
    for _ in range(200):
        digest.update(plain_frame(draw).raw)
        digest.update(odd_frame(draw))
        digest.update(damage(draw, client_bytes(draw) + server_bytes(draw)))
    assert digest.hexdigest()[:16] == "1a6e0a2e65161a83"


def test_numbers_are_spread_over_their_range() -> None:
    draw = Seeded(5)
    counts = [0] * 10
    for _ in range(10_000):
        counts[draw.below(10)] += 1
    assert min(counts) > 850
    assert max(counts) < 1_150
    assert 2_200 < sum(draw.one_in(4) for _ in range(10_000)) < 2_800
    assert draw.below(1) == 0
    assert 0 <= draw.below(2**31) < 2**31


def test_plain_frames_are_canonical_and_of_every_kind() -> None:
    draw = Seeded(11)
    frames = [plain_frame(draw) for _ in range(2_000)]
    assert all(frame.canonical for frame in frames)
    assert len({frame.type for frame in frames}) == 10
    assert {frame.ttl for frame in frames} == set(range(32))
    assert any(frame.headers for frame in frames)
    assert any(not frame.message_id.isascii() for frame in frames)
    assert plain_frame(draw, 0x09).type == 0x09
    assert max(plain_frame(draw, 0x0A).ttl for _ in range(200)) > 31


def test_odd_frames_are_whole_and_legal_and_mostly_odd() -> None:
    draw = Seeded(12)
    odd = 0
    types = set()
    for _ in range(2_000):
        data = odd_frame(draw)
        (frame,) = FrameDecoder().feed(data)
        assert frame.raw == data
        odd += not frame.canonical
        types.add(frame.type)
    assert odd > 1_000
    assert len(types) == 64


def test_conversations_go_well() -> None:
    draw = Seeded(13)
    states = set()
    for _ in range(500):
        server = converse(Connection(Role.SERVER), [client_bytes(draw)])
        client = Connection(Role.CLIENT)
        client.initiate(ConnectionInformation("c"))
        heard = converse(client, [server_bytes(draw)])
        for transcript in (server, heard):
            names = [event[0] for event in transcript.events]
            assert "ProtocolViolated" not in names
            assert "HandshakeReceived" in names or "HandshakeAccepted" in names
            states.add(transcript.state)
    assert states == {State.OPEN, State.CLOSED}


def test_pieces_make_up_the_whole() -> None:
    draw = Seeded(14)
    for size in range(40):
        data = bytes(range(size))
        for _ in range(20):
            cut = pieces(draw, data, 5)
            assert b"".join(cut) == data
            assert all(cut)
            assert len(cut) <= 5


def test_damage_changes_and_spares_nothing_in_particular() -> None:
    draw = Seeded(15)
    data = plain_frame(Seeded(1)).raw * 3
    spoiled = [damage(draw, data) for _ in range(3_000)]
    assert sum(each != data for each in spoiled) > 2_800
    assert len(set(spoiled)) > 2_500
    rules = {read_frames(each, Limits(max_payload_bytes=5_000)).rule for each in spoiled}
    assert {"payload-limit", "utf8", None} <= rules
    assert damage(draw, data, 0) == data
    assert damage(draw, b"") != b""
