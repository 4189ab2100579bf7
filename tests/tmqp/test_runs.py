"""The checks of ``tmqp.runs``: a run is exactly the frames it stands for."""

from __future__ import annotations

import sys
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp import (
    AcknowledgeReceived,
    Connection,
    ConnectionInformation,
    Event,
    Frame,
    FrameDecoder,
    FrameRun,
    Limits,
    MessageType,
    QueueMessageReceived,
    Role,
    RunReceived,
    compiled,
    header_names,
)
from tmqp.frames import parse_headers
from tmqp.header_names import HeaderNames
from tmqp.testing.strategies import chunkings

PUSH: Final = int(MessageType.QUEUE_MESSAGE)
ANSWER: Final = int(MessageType.ACKNOWLEDGE)
DIRECT: Final = int(MessageType.DIRECT_MESSAGE)
RESPONSE: Final = int(MessageType.RESPONSE)
#: Flags of messages between clients.
FLAGS: Final = (
    "", "pending_response", "pending_acknowledge", "high_priority", "first_acquirer",
    "pending_response pending_acknowledge first_acquirer",
)  # fmt: skip
SMALL: Final = Limits(max_payload_bytes=800, max_name_bytes=40)


def said_of(number: int, odd: int, kind: int, flags: str) -> Frame:
    """What one client says to another, like its neighbours or not."""
    asked = dict.fromkeys(flags.split(), True)
    if odd == 1:
        asked["high_priority"] = "high_priority" not in asked
    return Frame.build(
        PUSH if odd == 3 else kind,
        "other" if odd == 2 else "somebody",
        number % 3,
        bytes(500 if odd == 5 else number % 5 * 75),
        message_id="" if odd == 4 else "é" * 9 if odd == 6 else f"m{number}",
        source="me",
        headers=[("Key", "value")] if odd == 9 else (),
        ttl=0 if odd == 7 else 1 if odd == 8 else 16,
        **asked,
    )


def frame_of(number: int, odd: int, kind: int = PUSH, *, confirmed: bool = False) -> Frame:
    """A message like its neighbours, or one that differs in something."""
    if odd == 1:
        kind = int(MessageType.DIRECT_MESSAGE)
    return Frame.build(
        kind,
        "other" if odd == 2 else "channel",
        7 if odd == 3 else 1,
        # 16 and 17 leave the smallest tier; 5 is more than is allowed.
        bytes(900 if odd == 5 else number % 5 * 150),
        message_id=""
        if odd == 4
        else "é" * 9
        if odd == 6
        else "i" * 41
        if odd == 7
        else f"m{number}",
        source="somebody" if odd == 8 else "me",
        headers=[("Key", "value")] if odd == 9 else (),
        pending_acknowledge=odd == 10 or confirmed,
        pending_response=odd == 11,
        high_priority=odd == 12,
        first_acquirer=odd == 13,
        ttl=0 if odd == 14 else 3 if odd == 15 else 16,
    )


streams = st.tuples(
    st.lists(st.one_of(st.just(0), st.just(0), st.just(0), st.integers(0, 15)), max_size=60),
    st.sampled_from([PUSH, ANSWER]),
    st.booleans(),
).map(
    lambda drawn: [
        frame_of(number, odd, drawn[1], confirmed=drawn[2]) for number, odd in enumerate(drawn[0])
    ]
)


def spread(frames: list[Frame], runs: list[FrameRun]) -> list[Frame]:
    """All frames, those of runs as well."""
    found: list[Frame] = []
    by_place = {run.at: run for run in runs}
    assert [run.at for run in runs] == sorted(by_place)
    for place, frame in enumerate(frames):
        run = by_place.get(place)
        if run is None:
            found.append(frame)
        else:
            assert run.first is frame
            found.extend(run.frames())
    return found


def seen(frame: Frame) -> tuple[object, ...]:
    return (frame.raw, frame.fields())


@given(st.data(), streams, st.booleans(), st.booleans())
def test_runs_and_frames_are_what_came_in(
    data: st.DataObject, sent: list[Frame], binary: bool, mixes: bool
) -> None:
    stream = b"".join([frame.raw for frame in sent])
    if binary:
        stream = stream.replace(b"\0", b"\xff")
    plain, bundling = FrameDecoder(SMALL), FrameDecoder(SMALL)
    bundling.makes_runs = True
    bundling.mixes_runs = mixes
    for chunk in data.draw(chunkings(stream)):
        expected = plain.feed(chunk)
        found = bundling.feed(chunk)
        assert [seen(each) for each in spread(found, bundling.runs)] == [
            seen(each) for each in expected
        ]
        assert bundling.buffered == plain.buffered
        assert str(bundling.error) == str(plain.error)
        for run in bundling.runs:
            frames = run.frames()
            assert run.count == len(frames) >= 2
            assert run.message_ids() == [each.message_id for each in frames]
            assert run.size == sum([len(each.raw) for each in frames])
            assert run.largest == max([len(each.raw) for each in frames])
            queues = [each.content_type for each in frames]
            assert run.queues == (queues if len(set(queues)) > 1 else [])
            first = frames[0].high_priority
            assert run.odd == [
                place for place, each in enumerate(frames) if each.high_priority != first
            ]
            assert run.is_mixed == bool(run.queues or run.odd)
            assert mixes or not run.is_mixed
            assert run.received() == b"".join([each.raw for each in frames])
            for start, step in ((0, 2), (1, 3)):
                assert run.forwarded_some(start, step, run.count, True, False, 4) == b"".join(
                    [each.forwarded(True, False, 4) for each in frames[start::step]]
                )
            for acquires in (True, False):
                for asks in (True, False):
                    assert run.forwarded(acquires, asks, 9) == b"".join(
                        [each.forwarded(acquires, asks, 9) for each in frames]
                    )


@given(
    st.data(),
    st.lists(st.one_of(st.just(0), st.just(0), st.just(0), st.integers(0, 9)), max_size=60),
    st.sampled_from([DIRECT, RESPONSE, ANSWER]),
    st.sampled_from(FLAGS),
    st.booleans(),
)
def test_what_clients_say_comes_in_runs_as_it_is(
    data: st.DataObject, odds: list[int], kind: int, flags: str, mixes: bool
) -> None:
    sent = [said_of(number, odd, kind, flags) for number, odd in enumerate(odds)]
    plain, bundling = FrameDecoder(SMALL), FrameDecoder(SMALL)
    bundling.makes_runs = True
    bundling.mixes_runs = mixes
    for chunk in data.draw(chunkings(b"".join([frame.raw for frame in sent]))):
        expected = plain.feed(chunk)
        found = bundling.feed(chunk)
        assert [seen(each) for each in spread(found, bundling.runs)] == [
            seen(each) for each in expected
        ]
        assert str(bundling.error) == str(plain.error)
        for run in bundling.runs:
            if run.first.type == PUSH or (run.first.type == ANSWER and not run.first.high_priority):
                continue  # of a queue
            assert not run.is_mixed
            frames = run.frames()
            assert len({each.raw[:2] for each in frames}) == 1
            passed = [
                each.forwarded(each.first_acquirer, each.pending_acknowledge, each.ttl - 1)
                for each in frames
            ]
            for start, stop in ((0, run.count), (1, run.count), (0, 1)):
                assert run.passed_on(start, stop) == b"".join(passed[start:stop])


@pytest.mark.parametrize(
    ("kind", "flags"), [*((DIRECT, each) for each in FLAGS), (RESPONSE, ""), (ANSWER, FLAGS[3])]
)
def test_what_clients_say_in_a_row_is_one_run(kind: int, flags: str) -> None:
    sent = [said_of(number, 0, kind, flags) for number in range(300)]
    decoder = FrameDecoder()
    decoder.makes_runs = True
    (frame,) = decoder.feed(b"".join([each.raw for each in sent]))
    (run,) = decoder.runs
    assert run.first is frame
    assert run.frames() == sent


def test_a_row_of_pushes_is_one_run() -> None:
    sent = [frame_of(number, 0) for number in range(300)]
    decoder = FrameDecoder()
    decoder.makes_runs = True
    (frame,) = decoder.feed(b"".join([each.raw for each in sent]))
    (run,) = decoder.runs
    assert run.first is frame
    assert run.count == 300
    assert run.frames() == sent
    assert decoder.feed(b"") == []
    assert decoder.runs == []


@pytest.mark.parametrize("size", [0, 252, 253, 65_535, 65_536, 70_000])
def test_neighbours_of_every_size(size: int) -> None:
    frames = [Frame.build(PUSH, "c", payload=bytes(each), message_id="m") for each in (size,) * 3]
    frames += [Frame.build(PUSH, "c", payload=bytes(size + 1), message_id="m")] * 2
    decoder = FrameDecoder()
    decoder.makes_runs = True
    found = decoder.feed(b"".join([each.raw for each in frames]))
    assert spread(found, decoder.runs) == frames
    assert len(found) == (1 if size < 65_535 else 3 if size == 65_535 else 5)


# --- Headers --------------------------------------------------------------------------------------

READ: Final = HeaderNames(("CC", "Queue-Tag", "Delay"))
HEADERS: Final[tuple[list[tuple[str, str]], ...]] = (
    [("Trace", "12")],
    [("Trace", "12"), ("Kind", "order: 3")],
    [("Trace", "7" * 300)],
    [("cc", "other")],
    [("Trace", "1"), ("QUEUE-TAG", "t")],
    [("X-Queue-Tag", "t")],
    [("Dela", "y:")],
    [("Größe", "1")],
    [],
)
headed = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 0, 1, 1, 2, *range(len(HEADERS)))), st.sampled_from((0, 5, 700))
    ),
    max_size=40,
).map(
    lambda drawn: [
        Frame.build(
            PUSH, "c", 1, bytes(size), message_id=f"m{number}", source="me", headers=HEADERS[kind]
        )
        for number, (kind, size) in enumerate(drawn)
    ]
)


@given(st.data(), headed)
def test_runs_of_messages_with_headers_are_what_came_in(
    data: st.DataObject, sent: list[Frame]
) -> None:
    bundling = FrameDecoder(SMALL)
    bundling.makes_runs = True
    bundling.read_headers = READ
    plain = FrameDecoder(SMALL)
    for chunk in data.draw(chunkings(b"".join([frame.raw for frame in sent]))):
        expected = plain.feed(chunk)
        found = bundling.feed(chunk)
        assert [seen(each) for each in spread(found, bundling.runs)] == [
            seen(each) for each in expected
        ]
        assert str(bundling.error) == str(plain.error)
        for run in bundling.runs:
            frames = run.frames()
            for frame in frames:
                names = {key.lower() for key, _ in frame.headers}
                assert not names & {"cc", "queue-tag", "delay"}
            assert run.forwarded(True, True, 9) == b"".join(
                [each.forwarded(True, True, 9) for each in frames]
            )
            some = frames[1::2]
            assert run.forwarded_some(1, 2, run.count, False, True, 9) == b"".join(
                [each.forwarded(False, True, 9) for each in some]
            )
            sizes, offsets = run.layout()
            payloads = [len(each.raw) - each.payload_size for each in frames]
            assert sizes in ([len(each.raw) for each in frames], [len(frames[0].raw)])
            assert offsets in (payloads, payloads[:1])


@pytest.mark.parametrize("name", ["Trace", "X-Queue-Tag"])
def test_headers_that_nobody_reads_do_not_end_a_run(name: str) -> None:
    frames = [
        Frame.build(PUSH, "c", message_id=f"m{each}", headers=[(name, f"{each:032x}")])
        for each in range(100)
    ]
    stream = b"".join([each.raw for each in frames])
    decoder = FrameDecoder()
    decoder.makes_runs = True
    assert len(decoder.feed(stream)) == 100, "nobody has said which are read"
    decoder.read_headers = READ
    assert len(decoder.feed(stream)) == 1
    assert decoder.runs[0].frames() == frames


pieces = st.one_of(
    st.binary(max_size=9),
    st.sampled_from((b"\r\n", b"\n", b"\r", b":", b"cC", b"Queue-TAG", b"X-", b"delay", b"CC:")),
)


@pytest.mark.parametrize("interpreted", [True, False])
@given(st.lists(pieces, max_size=12).map(b"".join), pieces, pieces)
def test_a_header_is_found_where_one_is(
    interpreted: bool, text: bytes, before: bytes, after: bytes
) -> None:
    expected = any(
        key.lower() in {"cc", "queue-tag", "delay"}
        for key, _ in parse_headers(text.decode("latin-1"))
    )
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:  # both ways to look, whichever this build takes
            patch.setattr(header_names, "_INTERPRETED", interpreted)
        found = READ.may_occur(before + text + after, len(before), len(before) + len(text))
    assert found == expected


def test_a_name_has_1_to_62_characters() -> None:
    assert HeaderNames(("X" * 62,)).may_occur(b"x" * 62 + b":1", 0, 64)
    with pytest.raises(ValueError, match="63 characters, 1 to 62 are possible"):
        HeaderNames(("X" * 63,))
    with pytest.raises(ValueError, match="0 characters"):
        HeaderNames(("",))


def test_a_large_message_begins_no_run() -> None:
    """The sizes of its neighbours stood at the wrong place."""
    frames = [
        Frame.build(PUSH, "c", payload=bytes(size), message_id="m") for size in (70_000, 1, 1)
    ]
    decoder = FrameDecoder()
    decoder.makes_runs = True
    found = decoder.feed(b"".join([each.raw for each in frames]))
    assert spread(found, decoder.runs) == frames
    assert [run.first for run in decoder.runs] == [frames[1]]


def test_a_length_that_is_written_in_two_ways_moves_the_payload() -> None:
    """The messages of a run had one layout if they and their ids had one length."""
    short = Frame.build(PUSH, "c", payload=bytes(252), message_id="m").raw
    # The same length in all: two bytes more for that of the payload, two less of payload.
    wide = short[:7] + b"\xfd\xfa\x00" + short[8:-2]
    decoder = FrameDecoder()
    decoder.makes_runs = True
    decoder.feed(short + wide + short)
    (run,) = decoder.runs
    sizes, offsets = run.layout()
    assert sizes == [len(short)] * 3
    assert offsets == [len(each.raw) - each.payload_size for each in run.frames()]


@pytest.mark.parametrize("sizes", [(100, 100), (20, 90), (600, 300), (900, 40)])
@pytest.mark.parametrize("share", [1, 2])
def test_a_run_keeps_no_chunk_of_which_little_is_its_own(
    sizes: tuple[int, int], share: int
) -> None:
    """What waits is counted by its own bytes."""
    frames = [
        Frame.build(PUSH, "c", payload=bytes(size), message_id=f"m{place}")
        for place, size in enumerate(sizes)
    ]
    chunk = b"".join([each.raw for each in frames])
    other = Frame.build(int(MessageType.DIRECT_MESSAGE), "c", payload=bytes(share * len(chunk)))
    decoder = FrameDecoder()
    decoder.makes_runs = True
    for stream in (chunk + other.raw, other.raw + chunk):
        before = sys.getrefcount(stream)
        decoder.feed(stream)
        (run,) = decoder.runs
        assert run.frames() == frames
        assert sys.getrefcount(stream) == before


def test_nobody_gets_runs_who_did_not_ask() -> None:
    decoder = FrameDecoder()
    assert len(decoder.feed(frame_of(0, 0).raw * 9)) == 9
    assert decoder.runs == []


def accepted(*, makes_runs: bool) -> Connection:
    server = Connection(Role.SERVER)
    client = Connection(Role.CLIENT)
    client.initiate(ConnectionInformation("me"))
    server.receive(client.data_to_send(), 0.0)
    server.accept("me")
    server.makes_runs = makes_runs
    assert server.makes_runs is makes_runs
    return server


def described(events: list[Event]) -> list[str]:
    found: list[str] = []
    for event in events:
        if isinstance(event, RunReceived):
            assert repr(event.run) in repr(event)
            kind = event.run.first.type
            single = QueueMessageReceived if kind == PUSH else AcknowledgeReceived
            found.extend([repr(single(frame)) for frame in event.run.frames()])
        else:
            found.append(repr(event))
    return found


@given(st.data(), streams, st.booleans())
def test_a_connection_tells_the_same_in_runs(
    data: st.DataObject, sent: list[Frame], ends: bool
) -> None:
    if ends:
        sent.insert(len(sent) // 2, Frame.build(int(MessageType.TERMINATE)))
        sent.insert(len(sent) // 3, Frame.build(int(MessageType.PING)))
    plain, bundling = accepted(makes_runs=False), accepted(makes_runs=True)
    for chunk in data.draw(chunkings(b"".join([frame.raw for frame in sent]))):
        events = bundling.receive(chunk, 1.0)
        assert described(events) == described(plain.receive(chunk, 1.0))
        assert bundling.state == plain.state
        assert bundling.data_to_send() == plain.data_to_send()
