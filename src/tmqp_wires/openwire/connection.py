"""Connections of OpenWire, in both roles: negotiates the version, reads and writes frames.

``receive`` gets bytes and returns events; ``send`` queues a command for ``data_to_send``, and the
caller calls ``on_deadline`` at ``next_deadline``.  No clock is read: the time is an argument of
each call, in seconds.

A frame is its size in four bytes and a command.  The first one of each side is WireFormatInfo.  An
idle side sends KeepAliveInfo after a third of the agreed time; the other side counts as
disconnected if nothing was received for one and a half times this time.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias, final

from tmqp_wires.common.beats import Heartbeats
from tmqp_wires.openwire.commands import (
    Command,
    ConnectionError_,
    KeepAliveInfo,
    Throwable,
)
from tmqp_wires.openwire.data import WireError
from tmqp_wires.openwire.negotiation import (
    FIRST_VERSION,
    LAST_VERSION,
    MAGIC,
    WIRE_FORMAT,
    WireFormat,
)
from tmqp_wires.openwire.reading import read_command

__all__ = ["ClientConnection", "Event", "Fault", "ServerConnection", "frame_of"]

_I: Final = Struct(">i")
_SIZE: Final = 4
_MOST_ID: Final = 0x7FFFFFFF
_MS: Final = 1000.0
_PATIENCE: Final = 1.5
#: The limit before the peer's WireFormatInfo is read, which has the peer's own.
_LONGEST_HELLO: Final = 65_536
_HELLO: Final = bytes((WIRE_FORMAT,)) + MAGIC
_NO_HELLO: Final = "it does not begin with WireFormatInfo"
#: The command that says nothing.
_NULL: Final = b"\0"
_IO_EXCEPTION: Final = "java.io.IOException"


def _is_hello(begun: bytes) -> bool:
    """Whether an incomplete frame may become a WireFormatInfo."""
    return _HELLO.startswith(begun[_SIZE : _SIZE + len(_HELLO)])


@final
class Fault:
    """The peer has violated the protocol; nothing more is read."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Fault({self.text!r})"


Event: TypeAlias = Command | Fault


def frame_of(command: Command, version: int) -> bytes:
    """Encode a command as a frame.

    :raises WireError: when it cannot be written.
    """
    data = command.whole(version)
    return _I.pack(len(data)) + data


class _Connection:
    """The common part of both sides.

    Attributes: ``version``, the negotiated one, 0 before; ``peer``, the other side's
    WireFormatInfo.
    """

    def __init__(self, mine: WireFormat, now: float) -> None:
        self.version = 0
        self.peer = WireFormat(0)
        self._mine = mine
        self._max_frame = mine.max_frame_bytes
        self._buffer = b""
        self._out: list[bytes] = []
        self._broken = False
        self._beats = Heartbeats()
        self._next_id = 1

    @property
    def held_bytes(self) -> int:
        """Bytes of an incomplete frame."""
        return len(self._buffer)

    def forget(self) -> None:
        """Drop incomplete input, and read nothing more."""
        self._buffer = b""
        self._broken = True

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Read bytes; after a fault nothing more is read."""
        if self._broken:
            return []
        self._beats.heard(now)
        buffer = self._buffer + data if self._buffer else data
        events: list[Event] = []
        at = 0
        fault = ""
        while not fault and at + _SIZE <= len(buffer):
            (size,) = _I.unpack_from(buffer, at)
            most = self._max_frame if self.version else _LONGEST_HELLO
            if not 0 < size <= most:
                fault = self._wrong_size(size, most)
                break
            end = at + _SIZE + size
            if end > len(buffer):
                break
            fault = self._frame(buffer[at + _SIZE : end], events, now)
            at = end
        rest = buffer[at:]
        if not fault and not self.version and not _is_hello(rest):
            # A peer of another protocol is detected at once, not only after a complete frame.
            fault = _NO_HELLO
        if fault:
            self.forget()
            events.append(Fault(fault))
        else:
            self._buffer = rest
        return events

    def _wrong_size(self, size: int, most: int) -> str:
        if not self.version:
            return _NO_HELLO
        return f"a frame of {size} bytes is too long, at most {most} are allowed"

    def _frame(self, frame: bytes, events: list[Event], now: float) -> str:
        """Read a frame; returns what is wrong with it, empty if it is valid."""
        try:
            if not self.version:
                self._hello(WireFormat.read(frame), now)
                return ""
            if frame == _NULL:
                return ""
            if frame[0] == WIRE_FORMAT:
                return "WireFormatInfo came twice"
            command = read_command(frame, self.version)
        except WireError as error:
            return str(error)
        if not isinstance(command, KeepAliveInfo):
            events.append(command)
        elif command.response_required:
            self.send(KeepAliveInfo())
        return ""

    def _hello(self, peer: WireFormat, now: float) -> None:
        """Take over the other side's WireFormatInfo.

        :raises WireError: when no version is common to both.
        """
        self.peer = peer
        if peer.version < FIRST_VERSION:
            raise WireError(
                f"version {peer.version} of OpenWire is not supported, {FIRST_VERSION} to"
                f" {LAST_VERSION} are"
            )
        self.version = min(peer.version, self._mine.version)
        silence_ms = min(peer.silence_ms, self._mine.silence_ms)
        if silence_ms:
            self._beats.expect_within(silence_ms / _MS * _PATIENCE, now)
            self._beats.send_every(silence_ms / _MS / 3, now)

    def send(self, command: Command) -> int:
        """Queue a command with the next number; returns the size of its frame.

        :raises WireError: when it cannot be written.
        """
        number = self._next_id
        self._next_id = number % _MOST_ID + 1
        command.command_id = number
        frame = frame_of(command, self.version)
        self.send_bytes(frame)
        return len(frame)

    def send_bytes(self, data: bytes) -> None:
        """Queue encoded frames, which must be in the negotiated version."""
        self._beats.spoke()
        self._out.append(data)

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        data = b"".join(self._out)
        self._out = []
        return data

    def excuse_silence(self, now: float) -> None:
        """Count the peer as heard now, because it was not read from."""
        self._beats.heard(now)

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` must be called; None for never."""
        return self._beats.next_deadline()

    def on_deadline(self, now: float) -> list[Event]:
        """Send a heartbeat, or give up the peer."""
        if self._beats.must_beat(now):
            self.send(KeepAliveInfo())
        self._beats.begin_period(now)
        if not self._beats.is_lost(now):
            return []
        self.forget()
        return [Fault(f"nothing was heard for {self._beats.silence_s:g} seconds")]

    def _send_hello(self) -> None:
        data = self._mine.encoded()
        self._out.append(_I.pack(len(data)) + data)


@final
class ServerConnection(_Connection):
    """A server's side.  It sends its WireFormatInfo only after it has read the client's, so it
    sends nothing to peers of other protocols."""

    def __init__(self, now: float = 0.0, mine: WireFormat | None = None) -> None:
        super().__init__(mine or WireFormat(max_frame_bytes=1 << 24), now)

    def _hello(self, peer: WireFormat, now: float) -> None:
        self._send_hello()
        super()._hello(peer, now)

    def send_refusal(self, text: str, class_name: str = _IO_EXCEPTION) -> None:
        """Send the reason why the connection ends, unless the peer is not an OpenWire client."""
        if self.peer.version:
            self.send(ConnectionError_(Throwable(class_name, text), "refused"))


@final
class ClientConnection(_Connection):
    """A client's side, which sends its WireFormatInfo at once; send commands when ``version`` is
    set."""

    def __init__(self, now: float = 0.0, mine: WireFormat | None = None) -> None:
        super().__init__(mine or WireFormat(max_frame_bytes=1 << 24), now)
        self._send_hello()
