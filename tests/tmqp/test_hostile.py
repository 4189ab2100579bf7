"""The checks against peers who mean harm: any bytes (A3), any cost (A4), any size (A5).

The inputs are seeded, so that every run tries the same ones; where a time counts it is this
thread's own, so that a busy machine proves nothing.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import load_frames
from tmqp import (
    Connection,
    ConnectionInformation,
    Frame,
    FrameDecoder,
    Limits,
    ProtocolViolated,
    Role,
    State,
)
from tmqp.testing import (
    CODEC_RULES,
    Seeded,
    Transcript,
    check_connection_no_escape,
    client_bytes,
    converse,
    damage,
    odd_frame,
    pieces,
    plain_frame,
    read_frames,
    server_bytes,
    write_frame,
)

PREAMBLE = b"TMQP/2.0"
HELLO = Frame.build(0x10, "", 101, b"CONNECT /\r\nClient-Id: c\r\n").raw
ACCEPTED = Frame.build(0x10, "c", 202).raw
SLOWEST_S = 0.05
TIGHT = Limits(max_payload_bytes=2_000, max_header_bytes=500, max_name_bytes=200)


class Stopwatch:
    """Remembers the slowest input; an input is tried again before it counts as slow."""

    def __init__(self) -> None:
        self.slowest_s = 0.0
        self.total_s = 0.0

    def run(self, action: Callable[[], object]) -> None:
        """Time an action; the best of three counts if the first was slow."""
        took_s = self._once(action)
        self.total_s += took_s
        for _ in range(2):
            if took_s > SLOWEST_S:
                took_s = min(took_s, self._once(action))
        self.slowest_s = max(self.slowest_s, took_s)

    @staticmethod
    def _once(action: Callable[[], object]) -> float:
        before_s = time.thread_time()
        action()
        return time.thread_time() - before_s


# --- A3: any bytes -------------------------------------------------------------------------------


def hostile_frames(draw: Seeded, recorded: list[bytes]) -> bytes:
    """Some frames, recorded or made up, spoiled."""
    parts = []
    for _ in range(1 + draw.below(3)):
        pick = draw.below(4)
        if pick < 2:
            parts.append(recorded[draw.below(len(recorded))])
        elif pick == 2:
            parts.append(odd_frame(draw))
        else:
            parts.append(plain_frame(draw).raw)
    if draw.one_in(20):
        return draw.some_bytes(draw.below(300))
    return damage(draw, b"".join(parts))


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", range(4))
def test_a_hundred_thousand_hostile_streams_against_the_plain_codec(seed: int) -> None:
    """A quarter each: the codec gives what the plain reader gives, frames, rule and rest, whole
    and in pieces; nothing else comes out, and nothing takes long."""
    draw = Seeded(1_000 + seed)
    recorded = sorted({each.frame.raw for each in load_frames() if len(each.frame.raw) < 400})
    watch = Stopwatch()
    outcomes: Counter[str] = Counter()
    for number in range(25_000):
        data = hostile_frames(draw, recorded)
        limits = TIGHT if number % 2 else Limits()
        decoder = FrameDecoder(limits)
        read: list[Frame] = []

        def feed(decoder: FrameDecoder = decoder, data: bytes = data) -> None:
            read.extend(decoder.feed(data))  # noqa: B023 - used up within the turn

        watch.run(feed)
        reading = read_frames(data, limits)
        rule = None if decoder.error is None else decoder.error.rule
        assert rule == reading.rule, data.hex()
        assert [frame.fields() for frame in read] == reading.frames, data.hex()
        assert [frame.raw for frame in read] == [data[a:b] for a, b in reading.spans]
        assert decoder.buffered == reading.rest
        if number % 4 == 0:
            again = FrameDecoder(limits)
            cut = [frame for piece in pieces(draw, data) for frame in again.feed(piece)]
            assert cut == read
            assert repr(again.error) == repr(decoder.error)
        if rule is None:
            rule = "incomplete" if reading.rest else "frames only"
        outcomes[rule] += 1
    print(
        f"\n{outcomes.total()} streams, slowest {watch.slowest_s * 1e3:.2f} ms: {shares(outcomes)}"
    )
    assert set(outcomes) == CODEC_RULES | {"incomplete", "frames only"}
    assert watch.slowest_s < SLOWEST_S


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("part", range(4))
def test_a_hundred_thousand_hostile_connections(role: Role, part: int) -> None:
    """An eighth each: whole conversations and connections already open, spoiled and cut."""
    draw = Seeded(2_000 + 10 * part + int(role))
    watch = Stopwatch()
    outcomes: Counter[str] = Counter()
    limits = Limits(max_early_bytes=400, max_hello_bytes=300)

    def start() -> Connection:
        connection = Connection(role, limits if part % 2 else None)
        if role == Role.CLIENT:
            connection.initiate(ConnectionInformation("c"))
        return connection

    for number in range(12_500):
        good = client_bytes(draw) if role == Role.SERVER else server_bytes(draw)
        if number % 3 == 0:
            # Nearly all damage of a whole conversation hits the handshake: spare it here.
            spared = PREAMBLE + (HELLO if role == Role.SERVER else ACCEPTED)
            data = spared + damage(draw, good[8:])
        else:
            data = damage(draw, good)
        chunks = pieces(draw, data)
        transcripts: list[Transcript] = []

        def attack(made: list[Transcript] = transcripts, cut: list[bytes] = chunks) -> None:
            made.append(check_connection_no_escape(start, cut))

        watch.run(attack)
        outcomes[fate(transcripts[0])] += 1
    slowest_ms = watch.slowest_s * 1e3
    side = role.name.lower()
    print(f"\n{outcomes.total()} as {side}, slowest {slowest_ms:.2f} ms: {shares(outcomes)}")
    assert watch.slowest_s < SLOWEST_S
    wanted = {"preamble", "utf8", "payload-limit", "terminated", "OPEN"}
    if role == Role.SERVER:
        wanted |= {"hello-expected", "hello-invalid", "AWAIT_HELLO"}
        wanted |= {"early-limit", "header-limit"} if part % 2 else set()
    else:
        wanted |= {"refused", "AWAIT_ACCEPT"}
    assert wanted <= set(outcomes)


def shares(outcomes: Counter[str]) -> str:
    """How often each outcome was seen, the frequent ones first."""
    return ", ".join(f"{word} {count}" for word, count in outcomes.most_common())


def fate(transcript: Transcript) -> str:
    """How a connection ended, or where it stands."""
    if transcript.state != State.CLOSED:
        return transcript.state.name
    for event in transcript.events:
        said: Any = event[1:]
        if event[0] == "ProtocolViolated":
            ((_, (_, rule, _, _)),) = said
            return str(rule)
        if event[0] == "ConnectionClosed":
            ((_, reason),) = said
            return str(reason)
    raise AssertionError(f"closed without a word: {transcript!r}")


# --- A4: cost is linear --------------------------------------------------------------------------


def drip(data: bytes, size: int = 1) -> Callable[[], object]:
    """Feed a decoder piece by piece."""

    def run() -> None:
        decoder = FrameDecoder(Limits(max_payload_bytes=1 << 30))
        for start in range(0, len(data), size):
            decoder.feed(data[start : start + size])
        assert decoder.error is None

    return run


def drip_connection(data: bytes, size: int = 1) -> Callable[[], object]:
    """Feed an open server piece by piece."""

    def run() -> None:
        connection = Connection(Role.SERVER, Limits(max_payload_bytes=1 << 30))
        converse(connection, [PREAMBLE + HELLO])
        for start in range(0, len(data), size):
            connection.receive(data[start : start + size], 0.0)
        assert connection.state == State.OPEN

    return run


def hold_early(size: int) -> Callable[[], object]:
    """Drip bytes at a server that has not decided yet."""

    def run() -> None:
        connection = Connection(Role.SERVER, Limits(max_early_bytes=1 << 30))
        connection.receive(PREAMBLE + HELLO, 0.0)
        for _ in range(size):
            connection.receive(b"\x11", 0.0)

    return run


def thread_time_s(action: Callable[[], object]) -> float:
    """What an action costs by itself, the collector of the test's own heap aside."""
    gc.disable()
    try:
        before_s = time.thread_time()
        action()
        return time.thread_time() - before_s
    finally:
        gc.enable()


COSTS: dict[str, Callable[[int], Callable[[], object]]] = {
    "one frame, byte by byte": lambda n: drip(write_frame(payload=b"p" * n)),
    "one frame, 7 bytes at a time": lambda n: drip(write_frame(payload=b"p" * (8 * n)), 7),
    "tiny frames, byte by byte": lambda n: drip(write_frame() * (n // 8)),
    # So many that neither size fits what memory earlier tests have left: else the larger one pays
    # for fresh pages, and the smaller does not.
    "tiny frames, all at once": lambda n: drip(write_frame() * (4 * n), 1 << 30),
    "frames of names, byte by byte": lambda n: drip(
        write_frame(message_id=b"i" * 255, source=b"s" * 255, target=b"t" * 255) * (n // 773)
    ),
    "frames of headers, 3 bytes at a time": lambda n: drip(
        write_frame(header_block=b"k:" + b"v" * 4_000) * (n // 2_000), 3
    ),
    "open connection, byte by byte": lambda n: drip_connection(
        write_frame(payload=b"p") * (n // 9)
    ),
    "undecided connection, byte by byte": hold_early,
}


@pytest.mark.alone
@pytest.mark.parametrize("shape", COSTS)
def test_four_times_the_bytes_cost_about_four_times_the_time(shape: str) -> None:
    """t(4n)/t(n) <= 6 up to 64 k bytes and beyond; quadratic cost would give 16."""
    small, large = COSTS[shape](32_000), COSTS[shape](128_000)
    ratios: list[float] = []
    while len(ratios) < 5 and (not ratios or min(ratios) > 6):
        small_s = min(thread_time_s(small) for _ in range(3))
        ratios.append(min(thread_time_s(large) for _ in range(2)) / small_s)
    print(f"\n{shape}: ratios {[round(ratio, 2) for ratio in ratios]}")
    assert min(ratios) <= 6


@pytest.mark.alone
def test_sixteen_mebibytes_by_one_kibibyte_take_less_than_half_a_second() -> None:
    data = write_frame(payload=b"p" * (16 << 20))
    best_s = min(thread_time_s(drip(data, 1_024)) for _ in range(3))
    print(f"\n16 MiB by 1 KiB: {best_s * 1e3:.0f} ms")
    assert best_s <= 0.5


# --- A5: lengths that lie ------------------------------------------------------------------------

SPARE_BYTES = 65_536


def peak_bytes(action: Callable[[], object]) -> int:
    """The most memory an action holds at once, beside what was there before."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = action()
        _, peak = tracemalloc.get_traced_memory()
        assert kept is not None
        return peak
    finally:
        tracemalloc.stop()


def dripping(head: bytes, filler_bytes: int, size: int) -> Iterator[bytes]:
    """A head and what it announces, in small pieces; nothing is made beforehand."""
    for start in range(0, len(head), size):
        yield head[start : start + size]
    for _ in range(filler_bytes // size):
        yield bytes(size)  # new memory each time, as from a socket


LIES = {
    "2^63": b"\x11\x10\0\0\0\0\0\xff" + (2**63).to_bytes(8, "little"),
    "2^64-1": b"\x11\x10\0\0\0\0\0\xff" + b"\xff" * 8,
    "2^63-1": b"\x11\x10\0\0\0\0\0\xff" + (2**63 - 1).to_bytes(8, "little"),
    "2^32-1": b"\x11\x10\0\0\0\0\0\xfe\xff\xff\xff\xff",
    "one more than the limit": b"\x11\x10\0\0\0\0\0\xfe" + (1_048_577).to_bytes(4, "little"),
    "2^40 and a header": b"\x91\xf0\xff\xff\xff\0\0\xff" + (1 << 40).to_bytes(8, "little"),
}


@pytest.mark.alone
@pytest.mark.parametrize("size", [1, 2, 65_536])
@pytest.mark.parametrize("head", LIES.values(), ids=LIES)
def test_a_length_above_the_limit_costs_no_memory(head: bytes, size: int) -> None:
    """Refused from the head; what follows is not even looked at."""

    def attack() -> Connection:
        connection = Connection(Role.SERVER)
        converse(connection, [PREAMBLE + HELLO])
        for chunk in dripping(head, 400_000 if size > 2 else 20_000, size):
            connection.receive(chunk, 0.0)
        return connection

    connection = attack()
    assert connection.error is not None
    assert connection.error.rule == "payload-limit"
    # The chunk that is handed over, and the next, are the caller's.
    assert peak_bytes(attack) <= SPARE_BYTES + (2 * size if size > 4_096 else 0)


@pytest.mark.alone
@pytest.mark.parametrize("size", [1, 2, 1_000, 4_096, 65_536])
@pytest.mark.parametrize(
    ("head", "limit"),
    [
        (b"\x11\x10\0\0\0\0\0\xfe" + (300_000).to_bytes(4, "little"), 300_000),
        (b"\x11\x10\0\0\0\0\0\xff" + (300_000).to_bytes(8, "little"), 300_000),
        (b"\x11\x30\0\0\0\0\0\0\xff\xff", 65_535),
        (b"\x11\x10\xff\xff\xff\0\0\0", 765),
    ],
    ids=["payload", "payload in eight bytes", "header block", "names"],
)
def test_a_length_within_the_limit_costs_the_limit_and_no_more(
    head: bytes, limit: int, size: int
) -> None:
    """Everything announced comes but the last byte: the peer has paid for what is held."""

    def attack() -> Connection:
        connection = Connection(Role.SERVER, Limits(max_payload_bytes=300_000))
        converse(connection, [PREAMBLE + HELLO])
        for chunk in dripping(head, limit - size, size):
            connection.receive(chunk, 0.0)
        assert connection.state == State.OPEN
        return connection

    attack()
    assert peak_bytes(attack) <= limit + SPARE_BYTES + (size if size > 4_096 else 0)


@pytest.mark.alone
@pytest.mark.parametrize("size", [1, 2, 1_000])
def test_before_a_peer_is_known_it_costs_little(size: int) -> None:
    def slow_hello() -> Connection:
        connection = Connection(Role.SERVER)
        connection.receive(PREAMBLE, 0.0)
        head = b"\x10\x10\0\0\0\x65\0\xfd" + (16_384).to_bytes(2, "little")
        for chunk in dripping(head, 16_384 - size, size):
            connection.receive(chunk, 0.0)
        assert connection.state == State.AWAIT_HELLO
        return connection

    def large_hello() -> Connection:
        connection = Connection(Role.SERVER)
        connection.receive(PREAMBLE, 0.0)
        head = b"\x10\x10\0\0\0\x65\0\xfd" + (16_385).to_bytes(2, "little")
        for chunk in dripping(head, 100_000, size):
            connection.receive(chunk, 0.0)
        assert connection.error is not None
        return connection

    def undecided() -> Connection:
        connection = Connection(Role.SERVER)
        connection.receive(PREAMBLE + HELLO, 0.0)
        for chunk in dripping(b"", 400_000, size):
            connection.receive(chunk, 0.0)
        assert connection.error is not None
        assert connection.error.rule == "early-limit"
        return connection

    for attack, limit in ((slow_hello, 16_384), (large_hello, 0), (undecided, 131_072)):
        attack()
        assert peak_bytes(attack) <= limit + SPARE_BYTES, attack.__name__


def test_nested_lengths_cannot_reach_beyond_their_frame() -> None:
    """Every length is added up: a block or name takes its own bytes, never the next frame's."""
    inner = write_frame(payload=b"inner")
    outer = write_frame(
        message_id=b"x" * 9, header_block=b"k:" + inner.hex().encode(), payload=inner
    )
    follower = write_frame(target=b"next")
    frames = FrameDecoder().feed(outer + follower)
    assert [frame.raw for frame in frames] == [outer, follower]
    longer = write_frame(
        header_block=b"k:v\r\n", announced_block_bytes=5 + len(follower), payload=b""
    )
    frames = FrameDecoder().feed(longer + follower)
    assert [frame.header_block for frame in frames] in ([], [b"k:v\r\n" + follower])


def test_many_pings_are_answered_with_as_many_bytes() -> None:
    """No answer is larger than what caused it."""
    connection = Connection(Role.SERVER)
    converse(connection, [PREAMBLE + HELLO])
    for stream in (b"\x09\x10" + bytes(6), b"\x89\xff" + bytes(6)):
        connection.receive(stream * 8_192, 0.0)
        assert len(connection.data_to_send()) == 65_536


def test_a_violation_is_the_last_thing_of_a_chunk() -> None:
    connection = Connection(Role.SERVER)
    converse(connection, [PREAMBLE + HELLO])
    events = connection.receive(write_frame(source=b"\xff") + write_frame() * 100, 0.0)
    assert len(events) == 2
    assert isinstance(events[0], ProtocolViolated)
