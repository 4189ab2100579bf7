"""Connections of STOMP: negotiates version and heart-beats, reads and writes frames.

Both sides have the interface of the other codecs: ``receive`` gets bytes and returns events,
``send_`` methods queue bytes for ``data_to_send``, and the caller calls ``on_deadline`` at
``next_deadline``.  No clock is read: the time is an argument of each call, in seconds.

Heart-beats.  Each side says how often it can send something and how often it wants something, in
milliseconds; for each direction the longer of the two times applies, and 0 means never.  This side
sends an empty line after half of its time, so that the whole time never passes; the other side has
twice its time before it counts as disconnected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tmqp_wires.common.beats import Heartbeats
from tmqp_wires.stomp.codec import OF_CLIENTS, OF_SERVERS, Event, FrameDecoder
from tmqp_wires.stomp.frames import (
    V1_0,
    VERSIONS,
    FrameLimits,
    StompFrame,
    Violation,
    encode_frame,
)

__all__ = ["ClientConnection", "HeartBeat", "ServerConnection"]

_MS: Final = 1000.0
_PATIENCE: Final = 2.0
_MOST_DIGITS: Final = 10
_BEAT: Final = b"\n"


class HeartBeat:
    """The heart-beats of one side, in milliseconds; 0 for never."""

    __slots__ = ("sends_ms", "wants_ms")

    def __init__(self, sends_ms: int = 0, wants_ms: int = 0) -> None:
        self.sends_ms = sends_ms
        self.wants_ms = wants_ms

    @classmethod
    def read(cls, text: str) -> HeartBeat:
        """Read the value of a header.

        :raises ValueError: when it is not one.
        """
        parts = [part.strip() for part in text.split(",")]
        for part in parts:
            if not (part.isascii() and part.isdigit()) or len(part) > _MOST_DIGITS:
                parts = []
                break
        if len(parts) != 2:
            raise ValueError(f"heart-beat must be two numbers with a comma, not {text[:32]!r}")
        return cls(int(parts[0]), int(parts[1]))

    def __str__(self) -> str:
        return f"{self.sends_ms},{self.wants_ms}"


class _Connection:
    """The common part of both sides.

    Attributes: ``version``, the negotiated one; ``agreed``, whether there is one.
    """

    def __init__(self, limits: FrameLimits | None, commands: frozenset[str], now: float) -> None:
        self.version = V1_0
        self.agreed = False
        self._decoder = FrameDecoder(limits or FrameLimits(), commands)
        self._out: list[bytes] = []
        self._beats = Heartbeats()

    @property
    def held_bytes(self) -> int:
        """Bytes of an incomplete frame."""
        return self._decoder.held_bytes

    def forget(self) -> None:
        """Drop incomplete input, and read nothing more."""
        self._decoder.forget()

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Read bytes; after a violation nothing more is read."""
        if data:
            self._beats.heard(now)
        decoder = self._decoder
        decoder.add(data)
        events: list[Event] = []
        while True:
            # One by one, because a frame may change the version for the next one.
            event = decoder.next_event()
            if event is None:
                return events
            if isinstance(event, StompFrame):
                fault = self._look_at(event, now)
                if fault is not None:
                    decoder.forget()
                    event = fault
            events.append(event)

    def _look_at(self, frame: StompFrame, now: float) -> Violation | None:
        """Negotiate, if the frame is for this; returns a violation if it is wrong."""
        raise NotImplementedError

    def _agree(self, version: str) -> None:
        self.version = version
        self.agreed = True
        self._decoder.version = version

    def _keep_time(self, mine: HeartBeat, theirs: HeartBeat, now: float) -> None:
        """Begin to send and to expect heart-beats, as negotiated."""
        if mine.sends_ms and theirs.wants_ms:
            self._beats.send_every(max(mine.sends_ms, theirs.wants_ms) / _MS / 2, now)
        if mine.wants_ms and theirs.sends_ms:
            silence_s = max(mine.wants_ms, theirs.sends_ms) / _MS * _PATIENCE
            self._beats.expect_within(silence_s, now)

    def excuse_silence(self, now: float) -> None:
        """Count the peer as heard now, because it was not read from."""
        self._beats.heard(now)

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` must be called; None for never."""
        return self._beats.next_deadline()

    def on_deadline(self, now: float) -> list[Event]:
        """Send a heart-beat, or give up the peer."""
        if self._beats.must_beat(now):
            self.send_bytes(_BEAT)
        self._beats.begin_period(now)
        if not self._beats.is_lost(now):
            return []
        self.forget()
        return [Violation(f"nothing was heard for {self._beats.silence_s:g} seconds")]

    def send(
        self, command: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b""
    ) -> None:
        """Queue a frame; it needs ``content-length`` if its body may have a NUL."""
        self.send_bytes(encode_frame(command, headers, body, self.version))

    def send_bytes(self, data: bytes) -> None:
        """Queue an encoded frame, which must be in the negotiated version."""
        self._beats.spoke()
        self._out.append(data)

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        data = b"".join(self._out)
        self._out = []
        return data


class ServerConnection(_Connection):
    """A server's side.  The first event is a frame CONNECT or STOMP, or a violation; answer it with
    :meth:`send_connected`, or with ``send`` and an ERROR.

    :param versions: the supported versions.
    :param heart_beat: how often the server sends heart-beats, and wants them.
    """

    def __init__(
        self,
        now: float = 0.0,
        limits: FrameLimits | None = None,
        *,
        heart_beat: HeartBeat | None = None,
        versions: Iterable[str] = VERSIONS,
    ) -> None:
        super().__init__(limits, OF_CLIENTS, now)
        wanted = tuple(versions)
        self._versions = tuple([each for each in VERSIONS if each in wanted])
        self._mine = heart_beat or HeartBeat()
        self._theirs = HeartBeat()

    @property
    def versions(self) -> str:
        """The supported versions, for an ERROR to a client that supports none of them."""
        return ",".join(reversed(self._versions))

    def _look_at(self, frame: StompFrame, now: float) -> Violation | None:
        connects = frame.command in ("CONNECT", "STOMP")
        if self.agreed:
            return Violation("the client has connected already") if connects else None
        if not connects:
            return Violation(f"{frame.command} came before CONNECT")
        said = frame.find("accept-version")
        wanted = (V1_0,) if said is None else tuple([each.strip() for each in said.split(",")])
        for version in self._versions:
            if version in wanted:
                beat = frame.find("heart-beat")
                if beat is not None:
                    try:
                        self._theirs = HeartBeat.read(beat)
                    except ValueError as error:
                        return Violation(str(error))
                self._agree(version)
                return None
        return Violation(
            "none of the client's versions is supported",
            f"Supported protocol versions are {self.versions}",
        )

    def send_connected(self, now: float, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Accept the client, and begin heart-beats."""
        asked = self._theirs.sends_ms or self._theirs.wants_ms
        mine = self._mine if asked else HeartBeat()
        self.send("CONNECTED", [("version", self.version), ("heart-beat", str(mine)), *headers])
        self._keep_time(mine, self._theirs, now)


class ClientConnection(_Connection):
    """A client's side: call :meth:`send_connect`, then CONNECTED or an ERROR arrives."""

    def __init__(
        self,
        now: float = 0.0,
        limits: FrameLimits | None = None,
        *,
        heart_beat: HeartBeat | None = None,
    ) -> None:
        super().__init__(limits, OF_SERVERS, now)
        self._mine = heart_beat or HeartBeat()

    def send_connect(
        self,
        headers: Iterable[tuple[str, str]] = (),
        versions: Iterable[str] = VERSIONS,
    ) -> None:
        """Queue CONNECT with these versions; with 1.0 alone, in the form of a client of 1.0."""
        wanted = [each for each in reversed(VERSIONS) if each in tuple(versions)]
        said: list[tuple[str, str]] = []
        if wanted != [V1_0]:
            said = [("accept-version", ",".join(wanted)), ("heart-beat", str(self._mine))]
        self.send("CONNECT", [*said, *headers])

    def _look_at(self, frame: StompFrame, now: float) -> Violation | None:
        if self.agreed:
            again = frame.command == "CONNECTED"
            return Violation("the server has accepted the client already") if again else None
        if frame.command == "ERROR":
            return None
        if frame.command != "CONNECTED":
            return Violation(f"{frame.command} came before CONNECTED")
        version = frame.get("version") or V1_0
        if version not in VERSIONS:
            return Violation(f"the server speaks version {version[:16]!r}")
        try:
            theirs = HeartBeat.read(frame.get("heart-beat") or "0,0")
        except ValueError as error:
            return Violation(str(error))
        self._agree(version)
        self._keep_time(self._mine, theirs, now)
        return None
