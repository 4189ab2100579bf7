"""One connection of a ZeroMQ socket, either side: ZMTP 3.1, 3.0 and 2.0, without I/O.

Theory of operation.  Each side sends ten bytes of signature and its version at once, and the rest
of its greeting when it knows that the peer speaks 3.x: a peer of 2.0 would misread the rest, and
libzmq waits for the version before it sends more (facts 1.1).  Then both sides identify themselves:
with 3.x as the *mechanism* demands (``mechanisms.py``, ``curve.py``), with 2.0 each sends the
number of its type and its identity.

A side whose type depends on the peer's waits for the event ``PeerReady``; the caller answers it
with :meth:`ZmtpConnection.ready` or :meth:`ZmtpConnection.refuse`.  With 2.0, the side sends its
type as soon as it knows the peer's, because JeroMQ 0.3 and libzmq 3.2 send their identity only
after that.

Input is read from one buffer.  An incomplete part is kept in the pieces in which it arrived, and
joined once.  Every limit is checked as soon as a length is known, before anything is kept.  After a
violation nothing more is read.

After a CURVE handshake, every frame carries an encrypted one (``boxes.py``), which is decrypted
when it is complete, and then read like an unencrypted frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp_wires.zmtp.boxes import SEALED_BYTES, CurveTraffic
from tmqp_wires.zmtp.config import CURVE, MOST_TEXT, NULL, SOCKET_TYPES, ZmtpConfig, mirror_of
from tmqp_wires.zmtp.events import (
    Cancel,
    Event,
    MessageReceived,
    PeerError,
    PeerReady,
    Subscribe,
    Violation,
)
from tmqp_wires.zmtp.frames import (
    COMMAND,
    LONG,
    MORE,
    command_frame,
    message_frames,
    metadata_bytes,
    read_metadata,
    split_command,
)
from tmqp_wires.zmtp.mechanisms import FOR_EVER, HEARD, SPEAK

__all__ = ["ZmtpConnection"]

_NEVER: Final = FOR_EVER
#: The signature, and the version of this side.
_SIGNATURE: Final = b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f"
_MAJOR: Final = 3
_MINOR: Final = 1
_SIGNATURE_BYTES: Final = 10
_REST_BYTES: Final = 53
_MECHANISM_BYTES: Final = 20
#: Where the connection is: what comes next.
_SIGNATURE_NEXT: Final = 0
_VERSION_NEXT: Final = 1
_REST_NEXT: Final = 2
_TYPE_NEXT: Final = 3
_IDENTITY_NEXT: Final = 4
_HANDSHAKE: Final = 5
_OPEN: Final = 6
_OVER: Final = 7
_RESERVED: Final = 0xF8
_MOST_CONTEXT: Final = 16
#: No frame is allowed to be unencrypted.
_NONE: Final = -1
#: Tenths of a second.
_TTL_PER_S: Final = 10
_MOST_TTL: Final = 0xFFFF


@final
class ZmtpConnection:
    """One connection.

    :param config: the configuration of this side.
    :param now: monotonic seconds.

    Attributes: ``version``, the peer's, such as ``(3, 0)``, ``(0, 0)`` until it is known;
    ``is_over``, nothing more will be read.
    """

    def __init__(self, config: ZmtpConfig, now: float) -> None:
        self._config = config
        self._mechanism = config.handshake()
        #: Encrypts and decrypts frames after a CURVE handshake.
        self._traffic: CurveTraffic | None = None
        self.version: tuple[int, int] = (0, 0)
        #: The most bytes of an unencrypted part; none is allowed during the handshake.
        self._most = _NONE
        self._phase = _SIGNATURE_NEXT
        self._out: list[bytes] = [_SIGNATURE + bytes((_MAJOR,))]
        #: Incomplete input, the number of its bytes, and how many are needed.
        self._pieces: list[bytes] = []
        self._held = 0
        self._needed = 0
        #: The frames of an incomplete message, and the bytes of their bodies.
        self._frames: list[bytes] = []
        self._frames_bytes = 0
        self._peer_type = ""
        self._subscribes = False
        self._greeted = False
        #: Whether this side has identified itself; before that, a PONG would be invalid in the
        #: handshake.
        self._has_said_itself = False
        self._pong = b""
        #: When the handshake must be over, and the seconds that it may take.
        self._patience_s = config.handshake_s
        self._handshake_due = now + config.handshake_s
        self._heard = now
        #: When the next PING is due, and since when one is unanswered.
        self._ping_due = _NEVER
        self._pinged = _NEVER
        #: Seconds of silence after which the peer wants this side to give up; 0 for never.
        self._ttl_s = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing more is read."""
        return self._phase == _OVER

    @property
    def held_bytes(self) -> int:
        """Bytes of incomplete messages and frames."""
        return self._held + self._frames_bytes

    # -- bytes in -------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Read bytes, divided in any way."""
        if self._phase == _OVER or not data:
            return []
        self._heard = now
        self._pinged = _NEVER
        if self._held:
            self._pieces.append(data)
            self._held += len(data)
            if self._held < self._needed:
                return []
            data = b"".join(self._pieces)
            self._drop_pieces()
        events: list[Event] = []
        at = 0
        while self._phase < _HANDSHAKE:
            begin = at
            at = self._read_greeting(data, at, events)
            if at == begin:
                break
        if self._phase == _HANDSHAKE or self._phase == _OPEN:
            at = self._read_frames(data, at, events)
        if self._phase != _OVER and at < len(data):
            rest = data[at:]
            self._pieces.append(rest)
            self._held = len(rest)
        return events

    def forget(self) -> None:
        """Read nothing more, and drop all input and secrets."""
        self._drop_pieces()
        self._frames = []
        self._frames_bytes = 0
        self._mechanism.forget()
        self._traffic = None
        self._phase = _OVER

    def _drop_pieces(self) -> None:
        self._pieces = []
        self._held = 0

    def _violate(self, text: str, events: list[Event]) -> None:
        self.forget()
        events.append(Violation(text))

    # -- the greeting ---------------------------------------------------------------------------

    def _read_greeting(self, data: bytes, at: int, events: list[Event]) -> int:
        """Read the next part of the greeting at *at*; returns where it ends, or *at* if it is
        incomplete or the connection is over."""
        left = len(data) - at
        phase = self._phase
        self._needed = 1
        if not left:
            return at
        if phase == _SIGNATURE_NEXT:
            self._needed = _SIGNATURE_BYTES
            if data[at] != 0xFF:
                self._violate("no greeting of ZMTP 2.0 or later", events)
            elif left >= _SIGNATURE_BYTES:
                if data[at + 9] & 1:
                    self._phase = _VERSION_NEXT
                    return at + _SIGNATURE_BYTES
                self._violate("the peer speaks ZMTP 1.0", events)
        elif phase == _VERSION_NEXT:
            return self._take_version(data[at], at, events)
        elif phase == _REST_NEXT:
            self._needed = _REST_BYTES
            if left >= _REST_BYTES:
                end = at + _REST_BYTES
                self._take_rest(data[at:end], events)
                return at if self._phase == _OVER else end
        elif phase == _TYPE_NEXT:
            if data[at] < len(SOCKET_TYPES):
                self._peer_type = SOCKET_TYPES[data[at]]
                self._phase = _IDENTITY_NEXT
                if not self._config.socket_type:
                    self._say_old(mirror_of(self._peer_type))
                return at + 1
            self._violate(f"there is no socket type {data[at]}", events)
        else:
            return self._read_identity(data, at, events)
        return at

    def _take_version(self, major: int, at: int, events: list[Event]) -> int:
        config = self._config
        if major < _MAJOR:
            if config.mechanism != NULL:
                self._violate(f"ZMTP 2.0 has no mechanism {config.mechanism!r}", events)
                return at
            self.version = (2, 0)
            self._phase = _TYPE_NEXT
            if config.socket_type:
                self._say_old(config.socket_type)
            return at + 1
        self.version = (major, 0)
        self._phase = _REST_NEXT
        mechanism = config.mechanism.encode().ljust(_MECHANISM_BYTES, b"\0")
        is_server = config.as_server and config.mechanism != NULL
        self._out.append(b"".join((bytes((_MINOR,)), mechanism, bytes((is_server,)), bytes(31))))
        return at + 1

    def _take_rest(self, rest: bytes, events: list[Event]) -> None:
        major, _ = self.version
        self.version = (major, rest[0])
        mechanism = rest[1 : 1 + _MECHANISM_BYTES].rstrip(b"\0").decode("ascii", "replace")
        config = self._config
        if mechanism != config.mechanism:
            text = f"the peer requires the mechanism {mechanism!r}, this side {config.mechanism!r}"
            self._violate(text, events)
            return
        if config.as_server and mechanism != NULL and rest[1 + _MECHANISM_BYTES] & 1:
            self._violate(f"both sides are servers of {mechanism}", events)
            return
        self._phase = _HANDSHAKE
        self._greeted = True
        first = self._mechanism.begin() if not config.as_server else b""
        if first:
            self._out.append(first)
        elif config.socket_type and mechanism == NULL:
            self._introduce(config.socket_type)

    def _read_identity(self, data: bytes, at: int, events: list[Event]) -> int:
        """Read the identity of ZMTP 2.0, which is the first frame."""
        left = len(data) - at
        self._needed = 2
        if left < 2:
            return at
        size = data[at + 1]
        if data[at]:
            self._violate("an identity has at most 255 bytes, and is one frame", events)
            return at
        self._needed = 2 + size
        if left < self._needed:
            return at
        begin = at + 2
        end = begin + size
        self._meet(self._peer_type, data[begin:end], {}, events)
        return end

    # -- frames ---------------------------------------------------------------------------------

    def _read_frames(
        self, data: bytes, at: int, events: list[Event], *, opened: bool = False
    ) -> int:
        """Read frames from *at* on; returns where the last complete one ends.

        :param opened: whether they were decrypted from a box.
        """
        size = len(data)
        sealed = self._traffic is not None and not opened
        most = _NONE if sealed else self._most
        while at < size:
            begin = at
            self._needed = 2
            if begin + 2 > size:
                break
            flags = data[begin]
            if flags & LONG:
                body = begin + 9
                self._needed = 9
                if body > size:
                    break
                eight = begin + 1
                length = int.from_bytes(data[eight:body], "big")
            else:
                length = data[begin + 1]
                body = begin + 2
            if flags & _RESERVED or length > most or flags & COMMAND:
                if not self._may_begin(flags, length, events, sealed):
                    return begin
            elif (self._frames or flags & MORE) and not self._may_add(length, events):
                return begin
            end = body + length
            if end > size:
                self._needed = end - begin
                break
            at = end
            if sealed:
                self._take_box(data[body:end], events)
            elif flags & COMMAND:
                self._take_command(data[body:end], events)
                sealed = self._traffic is not None and not opened
                most = _NONE if sealed else self._most
            elif flags & MORE or self._frames:
                self._frames.append(data[begin:end])
                self._frames_bytes += length
                if not flags & MORE:
                    raw = b"".join(self._frames)
                    self._frames = []
                    self._frames_bytes = 0
                    events.append(MessageReceived(raw))
            elif self._subscribes and length and data[body] < 2:
                prefix = data[body + 1 : end]
                events.append(Subscribe(prefix) if data[body] else Cancel(prefix))
            else:
                events.append(MessageReceived(data[begin:end]))
            if self._phase == _OVER:
                break
        return at

    def _may_begin(self, flags: int, length: int, events: list[Event], sealed: bool) -> bool:
        """Whether a frame that is not an ordinary part may begin; if not, it is a violation."""
        if sealed:
            return self._may_be_box(flags, length, events)
        most = self._config.max_command_bytes
        if self._phase == _HANDSHAKE:
            most = self._mechanism.most_bytes(most)
        if flags & _RESERVED:
            self._violate(f"a frame has the flags {flags:#04x}", events)
        elif self._most == _NONE and (self._phase == _OPEN or not flags & COMMAND):
            self._violate("a message came before READY", events)
        elif flags & COMMAND:
            if flags & MORE:
                self._violate("a command has one frame", events)
            elif self.version < (3, 0):
                self._violate("ZMTP 2.0 has no commands", events)
            elif length > most:
                self._violate(f"a command has {length} bytes, {most} at most", events)
            else:
                return True
        else:
            text = f"a part of a message has {length} bytes, {self._most} at most"
            self._violate(text, events)
        return False

    def _may_be_box(self, flags: int, length: int, events: list[Event]) -> bool:
        """Whether a frame may carry an encrypted one; if not, it is a violation."""
        most = max(self._least_of_limits(), self._config.max_command_bytes)
        if flags & (_RESERVED | MORE):
            self._violate(f"a frame with a box has the flags {flags:#04x}", events)
        elif not SEALED_BYTES <= length <= SEALED_BYTES + most:
            allowed = f"{SEALED_BYTES} to {SEALED_BYTES + most}"
            self._violate(f"a frame with a box has {length} bytes, not {allowed}", events)
        else:
            return True
        return False

    def _take_box(self, body: bytes, events: list[Event]) -> None:
        """Decrypt the frame in a box, and read it."""
        traffic = self._traffic
        assert traffic is not None, "nothing is sealed without it"
        try:
            frame = traffic.opened(body)
        except ValueError as error:
            self._violate(str(error), events)
            return
        self._read_frames(frame, 0, events, opened=True)

    def _may_add(self, length: int, events: list[Event]) -> bool:
        """Whether a message of several parts may have one more of *length* bytes; if not, it is a
        violation."""
        config = self._config
        if len(self._frames) >= config.max_parts:
            self._violate(f"a message has more than {config.max_parts} parts", events)
        elif self._frames_bytes + length > config.max_message_bytes:
            self._violate(f"a message has more than {config.max_message_bytes} bytes", events)
        else:
            return True
        return False

    # -- commands -------------------------------------------------------------------------------

    def _take_command(self, body: bytes, events: list[Event]) -> None:
        try:
            name, data = split_command(body)
        except ValueError as error:
            self._violate(str(error), events)
            return
        if name == b"ERROR":
            reason = data[1 : 1 + data[0]] if data else b""
            self.forget()
            events.append(PeerError(reason.decode("utf-8", "replace")))
        elif self._phase == _HANDSHAKE:
            self._take_handshake(name, data, events)
        elif name == b"SUBSCRIBE":
            events.append(Subscribe(data))
        elif name == b"CANCEL":
            events.append(Cancel(data))
        elif name == b"PING":
            self._take_ping(data, events)
        # PONG needs no further handling; other commands are from future versions.

    def _take_handshake(self, name: bytes, data: bytes, events: list[Event]) -> None:
        mechanism = self._mechanism
        found: dict[str, bytes] = {}
        try:
            what = mechanism.take(name, data, self._out)
            if what == HEARD:
                found = read_metadata(mechanism.metadata)
        except ValueError as error:
            self._violate(str(error), events)
            return
        if what == SPEAK:
            self._introduce(self._config.socket_type)
        if what != HEARD:
            # Commands are taken at the time when they are received.
            due = self._heard + mechanism.keeps_s
            if due < self._handshake_due:
                self._handshake_due, self._patience_s = due, mechanism.keeps_s
            return
        socket_type = found.pop("socket-type", b"").decode("ascii", "replace").upper()
        identity = found.pop("identity", b"")
        if socket_type not in SOCKET_TYPES:
            self._violate(f"there is no socket type {socket_type!r}", events)
        elif len(identity) > MOST_TEXT:
            self._violate("an identity has at most 255 bytes", events)
        else:
            self._meet(socket_type, identity, found, events)

    def _take_ping(self, data: bytes, events: list[Event]) -> None:
        if not 2 <= len(data) <= 2 + _MOST_CONTEXT:
            self._violate(f"PING has 2 to {2 + _MOST_CONTEXT} bytes, not {len(data)}", events)
            return
        self._ttl_s = int.from_bytes(data[:2], "big") / _TTL_PER_S
        pong = command_frame(b"PONG", data[2:])
        if self._has_said_itself:
            self.send_frames(pong)
        else:
            self._pong = pong  # one answers those before as well: a PING asks for a heartbeat

    def _meet(
        self, socket_type: str, identity: bytes, found: dict[str, bytes], events: list[Event]
    ) -> None:
        """The peer has identified itself."""
        self._phase = _OPEN
        self._peer_type = socket_type
        self._subscribes = socket_type in ("SUB", "XSUB")
        self._handshake_due = _NEVER
        mechanism = self._mechanism
        self._traffic = mechanism.traffic
        if self._config.mechanism != CURVE or self._traffic is not None:
            self._most = self._least_of_limits()
        if self._config.heartbeat_s > 0 and self.version >= (3, 1):
            self._ping_due = self._heard + self._config.heartbeat_s
        who = (mechanism.user, mechanism.password, mechanism.public_key)
        events.append(PeerReady(socket_type, identity, found, *who))
        mechanism.password = b""

    def _least_of_limits(self) -> int:
        """The most bytes of one part."""
        return min(self._config.max_part_bytes, self._config.max_message_bytes)

    # -- what this side says --------------------------------------------------------------------

    def _say_old(self, socket_type: str) -> None:
        """Identify this side with ZMTP 2.0: the number of its type, and its identity as a frame."""
        identity = self._config.identity
        self._has_said_itself = True
        number = SOCKET_TYPES.index(socket_type)
        self._out.append(bytes((number, 0, len(identity))) + identity)

    def _introduce(self, socket_type: str) -> None:
        """Identify this side with ZMTP 3.x."""
        config = self._config
        pairs = [("Socket-Type", socket_type.encode())]
        if socket_type in ("REQ", "DEALER", "ROUTER"):
            pairs.append(("Identity", config.identity))
        pairs += config.properties
        self._has_said_itself = True
        self._out.append(self._mechanism.introduce(metadata_bytes(pairs)))
        if self._pong:
            self._out.append(self._pong)
            self._pong = b""

    def ready(self, socket_type: str) -> None:
        """Identify this side after ``PeerReady``, unless it was done before."""
        if self._has_said_itself:
            return
        self._introduce(socket_type)
        self._traffic = self._mechanism.traffic
        self._most = self._least_of_limits()

    def refuse(self, reason: str) -> None:
        """Refuse the peer permanently, so that it does not reconnect.  Close the connection
        afterwards.

        After a CURVE handshake, no ERROR is sent.
        """
        may_say = self._greeted and self._traffic is None
        self.forget()
        if may_say:
            text = reason.encode()[:255]
            self._out.append(command_frame(b"ERROR", bytes((len(text),)) + text))

    def send_message(self, parts: Sequence[bytes]) -> None:
        """Send a message.

        :raises ValueError: for a message without parts.
        """
        self.send_frames(message_frames(parts))

    def send_frames(self, raw: bytes) -> None:
        """Send encoded frames of messages or commands."""
        traffic = self._traffic
        self._out.append(raw if traffic is None else traffic.sealed(raw))

    def subscribe(self, prefix: bytes) -> None:
        """Subscribe to messages whose first part begins with *prefix*."""
        if self.version >= (3, 1):
            self.send_frames(command_frame(b"SUBSCRIBE", prefix))
        else:
            self.send_frames(message_frames((b"\x01" + prefix,)))

    def cancel(self, prefix: bytes) -> None:
        """Cancel a subscription."""
        if self.version >= (3, 1):
            self.send_frames(command_frame(b"CANCEL", prefix))
        else:
            self.send_frames(message_frames((b"\x00" + prefix,)))

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        if not self._out:
            return b""
        data = b"".join(self._out)
        self._out = []
        return data

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` must be called; None for never."""
        if self._phase == _OVER:
            return None
        due = self._handshake_due
        if self._phase == _OPEN:
            if self._ttl_s:
                due = min(due, self._heard + self._ttl_s)
            if self._has_said_itself:
                due = min(due, self._ping_due)
            if self._pinged != _NEVER:
                due = min(due, self._pinged + self._config.heartbeat_timeout_s)
        return None if due == _NEVER else due

    def excuse_silence(self, now: float) -> None:
        """Count the peer as heard at *now*, because the transport was not read from before."""
        self._heard = now
        self._pinged = _NEVER

    def on_deadline(self, now: float) -> list[Event]:
        """Send a PING, or give up the peer.

        As in libzmq, PINGs are sent regularly even if the peer sends much, because each tells the
        peer how long a silence it may tolerate, and a peer that only sends gets nothing else.
        """
        events: list[Event] = []
        if self._phase == _OVER:
            return events
        config = self._config
        if now >= self._handshake_due:
            text = f"the peer has not sent its greeting within {self._patience_s:g} seconds"
            self._violate(text, events)
        elif self._ttl_s and now >= self._heard + self._ttl_s:
            self._violate(f"nothing was heard for {self._ttl_s:g} seconds", events)
        elif self._pinged != _NEVER and now >= self._pinged + config.heartbeat_timeout_s:
            text = f"a PING was not answered within {config.heartbeat_timeout_s:g} seconds"
            self._violate(text, events)
        elif now >= self._ping_due and self._has_said_itself:
            self._ping_due = now + config.heartbeat_s
            self._pinged = min(self._pinged, now)
            ttl = min(int(config.heartbeat_timeout_s * _TTL_PER_S), _MOST_TTL)
            self.send_frames(command_frame(b"PING", ttl.to_bytes(2, "big")))
        return events
