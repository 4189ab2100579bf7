"""The checks of ``tmqp.testing.contract``: each one passes ours and catches a broken one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tmqp import (
    AbuseError,
    Connection,
    ConnectionClosed,
    ConnectionInformation,
    Event,
    Frame,
    FrameDecoder,
    Limits,
    PingReceived,
    ProtocolViolated,
    RemoteProtocolError,
    Role,
    State,
    encode,
)
from tmqp.testing import (
    Transcript,
    check_chunking,
    check_connection_chunking,
    check_connection_no_escape,
    check_no_escape,
    check_refused_from_head,
    check_round_trip,
    converse,
    describe,
    single_cuts,
    write_frame,
)

FRAME = Frame.build(0x11, "orders", payload=b"p")
HELLO = Frame.build(0x10, "", 101, b"CONNECT /\r\nClient-Id: c\r\n").raw
CONVERSATION = b"TMQP/2.0" + HELLO + bytes.fromhex("89ff000000000000") + FRAME.raw


def server() -> Connection:
    """A server that has heard nothing."""
    return Connection(Role.SERVER)


class Wrapped:
    """Our decoder, so that a test can break it."""

    def __init__(self) -> None:
        self.inner = FrameDecoder(Limits(max_payload_bytes=100))

    @property
    def error(self) -> RemoteProtocolError | None:
        return self.inner.error

    def feed(self, data: bytes) -> Sequence[object]:
        return self.inner.feed(data)


class Forgetful(Wrapped):
    """Forgets what is left of a chunk."""

    def feed(self, data: bytes) -> Sequence[object]:
        frames = self.inner.feed(data)
        self.inner.clear()
        return frames


class Raising(Wrapped):
    """Raises what it should report."""

    def feed(self, data: bytes) -> Sequence[object]:
        frames = self.inner.feed(data)
        if self.inner.error is not None:
            raise self.inner.error
        return frames


class Undying(Wrapped):
    """Goes on after an error."""

    def feed(self, data: bytes) -> Sequence[object]:
        if self.inner.error is not None:
            return [data]
        return self.inner.feed(data)


class Lax(Wrapped):
    """Judges a length only when the body is there."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = FrameDecoder()


class Hasty(Wrapped):
    """Refuses everything at the first byte."""

    @property
    def error(self) -> RemoteProtocolError | None:
        return AbuseError("payload-limit", "too large")


class Generous(Wrapped):
    """Makes a frame of every byte."""

    def feed(self, data: bytes) -> Sequence[object]:
        return [data]


# --- Codecs --------------------------------------------------------------------------------------


def test_our_codec_keeps_the_contract() -> None:
    check_chunking(Wrapped, FRAME.raw * 2 + FRAME.raw[:3])
    check_round_trip(encode, Wrapped, FRAME)
    for data in (FRAME.raw, write_frame(source=b"\xff"), b""):
        check_no_escape(Wrapped, data)
    check_refused_from_head(Wrapped, b"\x11\x10\0\0\0\0\0\x65", "payload-limit")


def test_every_single_cut_is_tried() -> None:
    assert list(single_cuts(b"abc")) == [[b"abc"], [b"a", b"bc"], [b"ab", b"c"], [b"a", b"b", b"c"]]


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: check_chunking(Forgetful, FRAME.raw), "in pieces of .* gives .* whole"),
        (lambda: check_chunking(Forgetful, FRAME.raw * 50), r"bytes\) in pieces of \[1, "),
        (
            lambda: check_chunking(
                Forgetful, FRAME.raw, [[FRAME.raw[at : at + 1] for at in range(15)]]
            ),
            r"1, '...'\] bytes gives",
        ),
        (lambda: check_chunking(Wrapped, FRAME.raw, [[b"else"]]), "must hold all of the data"),
        (
            lambda: check_no_escape(Raising, write_frame(source=b"\xff")),
            "raises RemoteProtocolError",
        ),
        (lambda: check_no_escape(Undying, write_frame(source=b"\xff")), "what follows gives"),
        (
            lambda: check_no_escape(Wrapped, write_frame(source=b"\xff"), frozenset({"other"})),
            "undocumented error",
        ),
        (
            lambda: check_refused_from_head(Lax, b"\x11\x10\0\0\0\0\0\x65", "payload-limit"),
            "must break payload-limit, got None",
        ),
        (
            lambda: check_refused_from_head(Wrapped, b"\x11\x10\0\0\0\0\0\x65", "utf8"),
            "must break utf8, got AbuseError",
        ),
        (
            lambda: check_refused_from_head(Hasty, b"\x11\x10\0\0\0\0\0\x65", "payload-limit"),
            "refused before byte 0",
        ),
        (
            lambda: check_refused_from_head(Generous, b"\x11\x10", "payload-limit"),
            "gives a frame at byte 0",
        ),
        (lambda: check_round_trip(lambda _: b"\x11", Wrapped, FRAME), r"read as \[\]"),
        (
            lambda: check_round_trip(lambda _: write_frame(source=b"\xff"), Wrapped, FRAME),
            "refused: RemoteProtocolError",
        ),
        (
            lambda: check_round_trip(lambda _: write_frame(payload=b"other"), Wrapped, FRAME),
            "read as .*other",
        ),
        (lambda: check_round_trip(forgetting_encoder(), Wrapped, FRAME), "then as b''"),
    ],
)
def test_a_broken_codec_is_caught(check: Callable[[], None], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check()


def forgetting_encoder() -> Callable[[Frame], bytes]:
    """Writes right only once."""
    answers = [b"", FRAME.raw]
    return lambda _: answers.pop()


# --- Connections ---------------------------------------------------------------------------------


class WrappedConnection:
    """Our connection, so that a test can break it."""

    def __init__(self) -> None:
        self.inner = Connection(Role.SERVER)

    @property
    def state(self) -> State:
        return self.inner.state

    def receive(self, data: bytes, now: float) -> list[Event]:
        return self.inner.receive(data, now)

    def receive_eof(self, now: float) -> list[Event]:
        return self.inner.receive_eof(now)

    def accept(self, client_id: str) -> list[Event]:
        return self.inner.accept(client_id)

    def data_to_send(self) -> bytes:
        return self.inner.data_to_send()

    def next_deadline(self) -> float | None:
        return self.inner.next_deadline()

    def on_deadline(self, now: float) -> list[Event]:
        return self.inner.on_deadline(now)


class CountsChunks(WrappedConnection):
    """Tells of each chunk."""

    def receive(self, data: bytes, now: float) -> list[Event]:
        return [*self.inner.receive(data, now), PingReceived()]


class RaisesFaults(WrappedConnection):
    """Raises what it should report."""

    def receive(self, data: bytes, now: float) -> list[Event]:
        events = self.inner.receive(data, now)
        if self.inner.error is not None:
            raise self.inner.error
        return events


class StaysOpen(WrappedConnection):
    """Says it is open when it is not."""

    @property
    def state(self) -> State:
        return State.OPEN if self.inner.state == State.CLOSED else self.inner.state


class Repeats(WrappedConnection):
    """Complains twice."""

    def receive(self, data: bytes, now: float) -> list[Event]:
        return self.inner.receive(data, now) * 2


class NeverSaysGoodbye(WrappedConnection):
    """Closes without its last event."""

    def receive(self, data: bytes, now: float) -> list[Event]:
        events = self.inner.receive(data, now)
        return [event for event in events if not isinstance(event, ConnectionClosed)]


class TalksAfterDeath(WrappedConnection):
    """Sends although it is closed."""

    def data_to_send(self) -> bytes:
        return b"x" if self.inner.state == State.CLOSED else self.inner.data_to_send()


class ListensAfterDeath(WrappedConnection):
    """Hears although it is closed."""

    def receive_eof(self, now: float) -> list[Event]:
        return [PingReceived()]


class TicksAfterDeath(WrappedConnection):
    """Wants to be woken although it is closed."""

    def next_deadline(self) -> float | None:
        return 1.0


class Revives(WrappedConnection):
    """Is open again after the end of the stream."""

    revived = False

    @property
    def state(self) -> State:
        return State.OPEN if self.revived else self.inner.state

    def receive_eof(self, now: float) -> list[Event]:
        self.revived = True
        return []


def test_our_connection_keeps_the_contract() -> None:
    check_connection_chunking(server, CONVERSATION)
    check_connection_chunking(server, CONVERSATION, end=True)
    check_connection_chunking(server, CONVERSATION, [[CONVERSATION[:9], CONVERSATION[9:]]])
    open_one = check_connection_no_escape(server, [CONVERSATION])
    assert open_one.state == State.OPEN
    dead = check_connection_no_escape(WrappedConnection, [b"GET / HTTP/1.1"])
    assert dead.state == State.CLOSED
    assert [event[0] for event in dead.events] == ["ProtocolViolated", "ConnectionClosed"]


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: check_connection_chunking(CountsChunks, CONVERSATION), "in pieces of .* whole"),
        (
            lambda: check_connection_chunking(server, CONVERSATION, [[b"else"]]),
            "must hold all of the data",
        ),
        (lambda: check_connection_no_escape(RaisesFaults, [b"GET"]), "raises RemoteProtocolError"),
        (lambda: check_connection_no_escape(StaysOpen, [b"GET"]), "but the state is OPEN"),
        (lambda: check_connection_no_escape(Repeats, [b"GET"]), "several violations"),
        (lambda: check_connection_no_escape(NeverSaysGoodbye, [b"GET"]), "the last event is"),
        (lambda: check_connection_no_escape(TalksAfterDeath, [b"GET"]), "and sends b'x'"),
        (lambda: check_connection_no_escape(ListensAfterDeath, [b"GET"]), "it gives .<PingRec"),
        (lambda: check_connection_no_escape(TicksAfterDeath, [b"GET"]), "it gives"),
        (lambda: check_connection_no_escape(Revives, [b"GET"]), "closed it, yet it is OPEN"),
        (
            lambda: check_connection_no_escape(server, [b"GET"], frozenset({"other"})),
            "an undocumented <ProtocolViolated",
        ),
    ],
)
def test_a_broken_connection_is_caught(check: Callable[[], None], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check()


def test_a_transcript_holds_what_happened() -> None:
    client = Connection(Role.CLIENT)
    client.initiate(ConnectionInformation("c"))
    transcript = converse(client, [b"TMQP/2.0", Frame.build(0x10, "c", 401).raw])
    assert [event[0] for event in transcript.events] == [
        "PreambleReceived",
        "HandshakeRefused",
        "ConnectionClosed",
    ]
    assert transcript.sent.startswith(b"TMQP/2.0\x90")
    assert transcript.state == State.CLOSED
    assert transcript == Transcript(transcript.events, transcript.sent, State.CLOSED)
    assert transcript != Transcript(transcript.events, b"", State.CLOSED)
    assert transcript != "transcript"
    assert repr(transcript).startswith("<Transcript CLOSED events=[('PreambleReceived'")


def test_an_event_is_described_by_all_it_says() -> None:
    error = RemoteProtocolError("utf8", "not UTF-8")
    assert describe(ProtocolViolated(error)) == (
        "ProtocolViolated",
        ("error", ("RemoteProtocolError", "utf8", 400, "not UTF-8")),
    )
    wrong = RemoteProtocolError("preamble", "depends on how much came")
    assert describe(ProtocolViolated(wrong))[1] == (
        "error",
        ("RemoteProtocolError", "preamble", 400, ""),
    )
    (event,) = converse(server(), [CONVERSATION]).events[-1:]
    assert event == ("QueueMessageReceived", ("frame", FRAME.raw))
    assert describe(PingReceived()) == ("PingReceived",)
