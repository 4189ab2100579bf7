"""The contract checks: how every codec and every connection must treat any bytes.

They are for implementers as well as for this project: each check takes a *factory* of the object
under test, makes and drives a new one, and raises :class:`AssertionError` with a sentence that has
the input.  A codec is anything that has ``feed`` and ``error`` like :class:`tmqp.FrameDecoder`; a
connection anything like :class:`tmqp.Connection`::

    check_chunking(MyDecoder, data)
    check_no_escape(MyDecoder, data)
    check_connection_no_escape(lambda: MyConnection(Role.SERVER), data)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from tmqp.errors import RemoteProtocolError
from tmqp.events import ConnectionClosed, Event, HandshakeReceived, ProtocolViolated
from tmqp.frames import Frame
from tmqp.state import State

__all__ = [
    "CODEC_RULES",
    "CONNECTION_RULES",
    "ConnectionLike",
    "Decoder",
    "Transcript",
    "check_chunking",
    "check_connection_chunking",
    "check_connection_no_escape",
    "check_no_escape",
    "check_refused_from_head",
    "check_round_trip",
    "converse",
    "describe",
    "single_cuts",
]

#: The rules whose breach ends decoding.
CODEC_RULES: Final = frozenset({"header-limit", "name-limit", "payload-limit", "utf8"})
#: The rules whose breach, by what a peer sends, ends a connection.
CONNECTION_RULES: Final = CODEC_RULES | {
    "early-limit",
    "hello-expected",
    "hello-invalid",
    "hello-limit",
    "preamble",
    "torn",
    "unexpected-message",
}
_SHOWN_BYTES: Final = 200

_FrameLike = TypeVar("_FrameLike")


class Decoder(Protocol):
    """Something that cuts a byte stream into frames."""

    @property
    def error(self) -> RemoteProtocolError | None:
        """The error that ended decoding; None if there is none."""

    def feed(self, data: bytes) -> Sequence[object]:
        """Decode the next bytes; return the frames that they complete, as objects that support
        ``==``."""


class ConnectionLike(Protocol):
    """One side of a connection, without any I/O."""

    @property
    def state(self) -> State:
        """The state of the connection."""

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Pass in received bytes; return the events in them."""

    def receive_eof(self, now: float) -> list[Event]:
        """Handle the end of the stream; return the events."""

    def accept(self, client_id: str) -> list[Event]:
        """Accept the client that introduced itself."""

    def data_to_send(self) -> bytes:
        """Return the bytes to send."""

    def next_deadline(self) -> float | None:
        """Return when to call :meth:`on_deadline`; None for never."""

    def on_deadline(self, now: float) -> list[Event]:
        """Do what is due at this time; return the events."""


class Transcript:
    """The behaviour of one connection: its ``events`` (as :func:`describe` returns them), the
    ``sent`` bytes, and the last ``state``."""

    __slots__ = ("events", "sent", "state")

    def __init__(self, events: list[tuple[object, ...]], sent: bytes, state: State) -> None:
        self.events = events
        self.sent = sent
        self.state = state

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transcript):
            return NotImplemented
        return self.events == other.events and self.sent == other.sent and self.state == other.state

    __hash__ = None  # type: ignore[assignment]  # a record of a test, not a key

    def __repr__(self) -> str:
        return f"<Transcript {self.state.name} events={self.events!r} sent={self.sent!r}>"


def describe(event: Event) -> tuple[object, ...]:
    """Describe an event as plain values that can be compared: its class and its contents.

    The description of a wrong preamble depends on how many bytes arrived at once, so it is omitted.
    """
    said: list[object] = [type(event).__name__]
    for name in sorted(dir(event)):
        if name.startswith("_"):
            continue
        value: Any = getattr(event, name)
        if isinstance(value, Frame):
            value = value.raw
        elif isinstance(value, RemoteProtocolError):
            message = "" if value.rule == "preamble" else value.message
            value = (type(value).__name__, value.rule, int(value.code), message)
        said.append((name, value))
    return tuple(said)


def single_cuts(data: bytes) -> Iterable[list[bytes]]:
    """Yield a byte string uncut, cut once in every possible way, and cut into single bytes."""
    yield [data]
    for cut in range(1, len(data)):
        yield [data[:cut], data[cut:]]
    yield [data[at : at + 1] for at in range(len(data))]


# --- Codecs --------------------------------------------------------------------------------------


def check_chunking(
    make_decoder: Callable[[], Decoder],
    data: bytes,
    chunkings: Iterable[Sequence[bytes]] | None = None,
) -> None:
    """Check that the same bytes give the same frames and error, however they are cut.

    :param chunkings: the ways to cut; every single cut and byte by byte if None.
    """
    whole = _decode(make_decoder, [data])
    for chunks in single_cuts(data) if chunkings is None else chunkings:
        assert b"".join(chunks) == data, "a chunking must hold all of the data"
        cut = _decode(make_decoder, chunks)
        if cut != whole:
            raise AssertionError(
                f"{_short(data)} in pieces of {_sizes(chunks)} bytes gives {cut}, whole {whole}"
            )


def check_round_trip(
    encode: Callable[[_FrameLike], bytes],
    make_decoder: Callable[[], Decoder],
    frame: _FrameLike,
) -> None:
    """Check that an encoded frame is decoded to an equal frame, which has the same encoding."""
    data = encode(frame)
    decoder = make_decoder()
    frames: Any = decoder.feed(data)
    if decoder.error is not None:
        raise AssertionError(f"{frame!r} is written as {_short(data)}, refused: {decoder.error!r}")
    if len(frames) != 1 or frames[0] != frame:
        raise AssertionError(f"{frame!r} is written as {_short(data)}, read as {frames!r}")
    again = encode(frames[0])
    if again != data:
        raise AssertionError(f"{frame!r} is written as {_short(data)}, then as {_short(again)}")


def check_no_escape(
    make_decoder: Callable[[], Decoder], data: bytes, rules: frozenset[str] = CODEC_RULES
) -> None:
    """Check that any bytes give frames or a documented error, and that nothing follows an error.

    :param rules: the slugs an error may carry.
    """
    decoder = make_decoder()
    try:
        decoder.feed(data)
    except Exception as error:
        raise AssertionError(f"{_short(data)} raises {error!r}") from error
    if decoder.error is None:
        return
    if decoder.error.rule not in rules:
        raise AssertionError(f"{_short(data)} gives an undocumented error, {decoder.error!r}")
    before = decoder.error
    after = decoder.feed(b"\x11\x10\x00\x00\x00\x00\x00\x00")
    if after or decoder.error is not before:
        raise AssertionError(f"{_short(data)} is an error, yet what follows gives {after!r}")


def check_refused_from_head(make_decoder: Callable[[], Decoder], head: bytes, rule: str) -> None:
    """Check that a frame is refused by ``rule`` exactly at the last byte of ``head``."""
    decoder = make_decoder()
    for at in range(len(head)):
        if decoder.error is not None:
            raise AssertionError(f"{_short(head)} is refused before byte {at}: {decoder.error!r}")
        if decoder.feed(head[at : at + 1]):
            raise AssertionError(f"{_short(head)} gives a frame at byte {at}")
    if decoder.error is None or decoder.error.rule != rule:
        raise AssertionError(f"{_short(head)} must break {rule}, got {decoder.error!r}")


def _decode(
    make_decoder: Callable[[], Decoder], chunks: Sequence[bytes]
) -> tuple[list[object], str]:
    decoder = make_decoder()
    frames: list[object] = []
    for chunk in chunks:
        frames.extend(decoder.feed(chunk))
    return frames, repr(decoder.error)


# --- Connections ---------------------------------------------------------------------------------


def converse(
    connection: ConnectionLike, chunks: Iterable[bytes], *, end: bool = False, now: float = 0.0
) -> Transcript:
    """Pass bytes to a connection as a driver would; return its behaviour.

    A client that introduces itself is accepted at once, as ``client-1`` if it has no id.

    :param end: close the stream after the last chunk.
    """
    events: list[tuple[object, ...]] = []
    sent: list[bytes] = []

    def take(happened: list[Event]) -> None:
        for event in happened:
            events.append(describe(event))
            if isinstance(event, HandshakeReceived) and connection.state == State.AWAIT_DECISION:
                take(connection.accept(event.information.client_id or "client-1"))
        sent.append(connection.data_to_send())

    sent.append(connection.data_to_send())
    for chunk in chunks:
        take(connection.receive(chunk, now))
    if end:
        take(connection.receive_eof(now))
    return Transcript(events, b"".join(sent), connection.state)


def check_connection_chunking(
    make_connection: Callable[[], ConnectionLike],
    data: bytes,
    chunkings: Iterable[Sequence[bytes]] | None = None,
    *,
    end: bool = False,
) -> None:
    """Check that the same bytes give the same events, answers and state, however they are cut.

    :param chunkings: the ways to cut; every single cut and byte by byte if None.
    :param end: close the stream after the last byte.
    """
    whole = converse(make_connection(), [data], end=end)
    for chunks in single_cuts(data) if chunkings is None else chunkings:
        assert b"".join(chunks) == data, "a chunking must hold all of the data"
        cut = converse(make_connection(), chunks, end=end)
        if cut != whole:
            raise AssertionError(
                f"{_short(data)} in pieces of {_sizes(chunks)} bytes gives {cut!r}, whole {whole!r}"
            )


def check_connection_no_escape(
    make_connection: Callable[[], ConnectionLike],
    chunks: Sequence[bytes],
    rules: frozenset[str] = CONNECTION_RULES,
) -> Transcript:
    """Check that any bytes give events and at most one documented violation, after which the
    connection is closed, ignores everything and sends nothing.

    :param rules: the slugs a violation may carry.
    :returns: the behaviour of the connection.
    """
    data = b"".join(chunks)
    connection = make_connection()
    events: list[Event] = []
    sent = connection.data_to_send()
    try:
        for chunk in chunks:
            events += connection.receive(chunk, 0.0)
            # The same chunk may have ended it already: then there is nothing to decide.
            if connection.state == State.AWAIT_DECISION:
                events += connection.accept("client-1")
            sent += connection.data_to_send()
    except Exception as error:
        raise AssertionError(f"{_short(data)} raises {error!r}") from error
    state = connection.state
    violations = [event for event in events if isinstance(event, ProtocolViolated)]
    for violation in violations:
        if violation.error.rule not in rules:
            raise AssertionError(f"{_short(data)} gives an undocumented {violation!r}")
    if violations and state != State.CLOSED:
        raise AssertionError(f"{_short(data)} is a violation, but the state is {state.name}")
    if len(violations) > 1:
        raise AssertionError(f"{_short(data)} gives several violations, {violations!r}")
    if state == State.CLOSED:
        if not events or not isinstance(events[-1], ConnectionClosed):
            raise AssertionError(f"{_short(data)} closes, but the last event is {events[-1:]!r}")
        _check_dead(connection, data)
    return Transcript([describe(event) for event in events], sent, state)


def _check_dead(connection: ConnectionLike, data: bytes) -> None:
    """Check that a closed connection accepts all calls and does nothing."""
    signs: list[object] = [
        *connection.receive(b"TMQP/2.0", 1.0),
        *connection.receive_eof(1.0),
        *connection.on_deadline(1e9),
    ]
    rest = connection.data_to_send()
    if signs or rest or connection.next_deadline() is not None:
        raise AssertionError(f"{_short(data)} closed it, yet it gives {signs!r} and sends {rest!r}")
    if connection.state != State.CLOSED:
        raise AssertionError(f"{_short(data)} closed it, yet it is {connection.state.name}")


def _short(data: bytes) -> str:
    shown = repr(data[:_SHOWN_BYTES])
    return shown if len(data) <= _SHOWN_BYTES else f"{shown}... ({len(data)} bytes)"


def _sizes(chunks: Sequence[bytes]) -> str:
    sizes = [len(chunk) for chunk in chunks]
    return str(sizes if len(sizes) <= 12 else [*sizes[:12], "..."])
