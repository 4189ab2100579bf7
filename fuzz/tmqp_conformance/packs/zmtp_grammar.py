"""The grammar of ZMTP for the wire fuzzer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tmqp.testing import Seeded
from tmqp_conformance.packs.grammar import PackGrammar, choice, of_size
from tmqp_conformance.packs.units import Unit
from tmqp_conformance.packs.zmtp_words import (
    GREETING_BYTES,
    SIGNATURE,
    envelope_of,
    greeting,
    old_greeting,
)
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.config import mirror_of
from tmqp_wires.zmtp.events import PeerError, PeerReady, Violation
from tmqp_wires.zmtp.frames import (
    COMMAND,
    LONG,
    MORE,
    command_frame,
    message_frames,
    metadata_bytes,
    split_command,
)

__all__ = ["ZmtpGrammar"]

_OPEN: Final = "open"
_SMALL: Final = 100
_LONG_HEAD: Final = 9
_SHORT_HEAD: Final = 2
_SHORT: Final = 255
_KNOWN_FLAGS: Final = MORE | LONG | COMMAND
#: Behind the signature and the version come the type and the identity of ZMTP 2.0.
_OLD_HEAD: Final = 14
#: A peer that wants to be given up sooner than this may be gone before it is judged.
_SOON_S: Final = 20.0
#: What the codec says of faults that every server must take for one, and what is broken by them.
#: Others are limits, or what a server may have a use for: a version to come, or an older one.
_CERTAIN: Final = {
    "the peer requires the mechanism": "mechanism",
    "a message came before READY": "message-before-ready",
    "the peer sent": "ready-first",
    "there is no socket type": "socket-type",
    "metadata end": "metadata",
}
_NAMES: Final = (b"READY", b"ERROR", b"PING", b"PONG", b"SUBSCRIBE", b"CANCEL")
_TYPES: Final = ("PUSH", "PULL", "PUB", "SUB", "XPUB", "XSUB", "REQ", "REP", "DEALER", "ROUTER")
_BODIES: Final = (b"", b"x", b"\x01", b"\0", b"\x01a", b"\x00a", b"\xff" * 16, b"0" * 300)
_CONTEXTS: Final = (b"\0\0", b"\0\0x", b"\x0b\xb8", b"\0\0" + b"x" * 16)


class _Reader:
    """The codec itself, on the server's side (:class:`tmqp_conformance.packs.grammar.Reader`)."""

    def __init__(self) -> None:
        self.rule = ""
        self.state = "greeting"
        self.doubtful = False
        self._zmtp = ZmtpConnection(ZmtpConfig(as_server=True), 0.0)

    def read(self, data: bytes) -> None:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        zmtp = self._zmtp
        for event in zmtp.receive(data, 0.0):
            if isinstance(event, PeerReady):
                self._meet(event.socket_type)
            elif isinstance(event, Violation):
                self._violated(event.text)
            elif isinstance(event, PeerError):
                self.doubtful = True  # it may close, or wait until the peer does
        if self.state == "greeting" and zmtp.version[0]:
            self.state = "handshake"
        due = zmtp.next_deadline()
        if self.state == _OPEN and due is not None and due < _SOON_S:
            self.doubtful = True

    def _meet(self, socket_type: str) -> None:
        self.state = "old" if self._zmtp.version < (3, 0) else _OPEN
        if socket_type == "PAIR":
            self.doubtful = True  # not at this address
        self._zmtp.ready(mirror_of(socket_type))

    def _violated(self, text: str) -> None:
        found = [rule for begin, rule in _CERTAIN.items() if text.startswith(begin)]
        if found and self._zmtp.version >= (3, 0):
            self.rule = found[0]
        else:
            self.doubtful = True

    @property
    def inside(self) -> bool:
        """See :class:`Reader`: only when both sides are ready PING is answered, and not by 2.0."""
        return self.state != _OPEN or self._zmtp.held_bytes > 0

    @property
    def illegible(self) -> bool:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        return False


class ZmtpGrammar(PackGrammar):
    """A greeting, and frames of flags, a length and a body."""

    greeting = greeting() + command_frame(b"READY", metadata_bytes([("Socket-Type", b"SUB")]))
    states: tuple[str, ...] = ("greeting", "handshake", _OPEN, "old")
    kinds: tuple[str, ...] = (
        *(name.decode() for name in _NAMES),
        *("command", "nameless", "message", "part"),
    )
    fields: tuple[str, ...] = (
        *(f"flags={flags}" for flags in range(8)),
        "flags=reserved",
        *(f"size={size}" for size in ("0", "some", "long")),
    )

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """See :class:`Grammar`."""
        at = _greeting_bytes(data)
        if at > len(data):
            return b"", [], data
        begin, messages = data[:at], []
        while (end := _frame_end(data, at)) <= len(data):
            messages.append(data[at:end])
            at = end
        return begin, messages, data[at:]

    def reader(self) -> _Reader:
        """See :class:`PackGrammar`."""
        return _Reader()

    def kind_of(self, message: bytes) -> str:
        """See :class:`PackGrammar`."""
        flags, body = _opened(message)
        if not flags & COMMAND:
            return "part" if flags & MORE else "message"
        try:
            name, _ = split_command(body)
        except ValueError:
            return "nameless"
        return name.decode() if name in _NAMES else "command"

    def fields_of(self, message: bytes) -> Iterable[str]:
        """See :class:`PackGrammar`."""
        flags, body = _opened(message)
        yield "flags=reserved" if flags & ~_KNOWN_FLAGS else f"flags={flags}"
        yield f"size={of_size(len(body), _SMALL, most=1 << 62)}"

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        flags, body = _opened(message)
        place = draw.below(3)
        if place == 0:
            flags = _any_flags(draw)
        elif place == 1 and flags & COMMAND:
            name = choice(draw, (*_NAMES, b"", b"NOSUCH"))
            body = bytes((len(name),)) + name + body[1 + body[0] if body else 0 :]
        elif place == 1:
            body = choice(draw, _BODIES)
        else:
            flags ^= LONG
        return _frame(flags, body)

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        return choice(
            draw,
            (
                message_frames([choice(draw, _BODIES)]),
                message_frames([b"", choice(draw, _BODIES)]),
                message_frames([choice(draw, _BODIES), b"", b"x"]),
                command_frame(b"PING", choice(draw, _CONTEXTS)),
                command_frame(b"PONG"),
                command_frame(b"SUBSCRIBE", choice(draw, _BODIES)),
                command_frame(b"CANCEL", choice(draw, _BODIES)),
            ),
        )

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        kind = choice(draw, _TYPES).encode()
        known = ("Socket-Type", kind)
        value = draw.some_bytes(draw.below(300))
        return choice(
            draw,
            (
                _frame(_any_flags(draw), choice(draw, _BODIES)),
                _frame(_any_flags(draw), draw.some_bytes(draw.below(40))),
                bytes((LONG | draw.below(8),)) + draw.some_bytes(8),
                command_frame(b"READY", metadata_bytes([known, ("Identity", value)])),
                command_frame(b"READY", metadata_bytes([("X-Channel", value), known])),
                command_frame(b"READY", metadata_bytes([("Socket-Type", value)])),
                command_frame(b"READY", draw.some_bytes(draw.below(60))),
                command_frame(b"ERROR", value[:20]),
                command_frame(b"PING", value[:20]),
                command_frame(b"", value[:20]),
                choice(draw, (greeting(), greeting(minor=0), SIGNATURE)),
                old_greeting(draw.below(12)),
                draw.some_bytes(draw.below(40)),
            ),
        )

    def fence(self, name: str) -> bytes:
        """A PING with the name as its context."""
        return command_frame(b"PING", b"\0\0" + name.encode())

    def passes(self, unit: object, name: str) -> bool:
        """See :class:`PackGrammar`."""
        return isinstance(unit, Unit) and (
            unit.kind == "pong" and unit.fields["data"] == name.encode()
        )

    def refuses(self, unit: object) -> bool:
        """An ERROR: the server does not take such a socket."""
        return isinstance(unit, Unit) and unit.kind == "error"

    def newest_id(self, units: Sequence[object]) -> bytes:
        """The envelope of the last request: what a reply begins with."""
        for unit in reversed(units):
            found = unit.fields.get("parts") if isinstance(unit, Unit) else None
            if isinstance(found, tuple):
                return envelope_of(found)
        return b""


def _greeting_bytes(data: bytes) -> int:
    """How long the greeting is with which this begins; more than there is if it is not whole."""
    if data[:1] != b"\xff":
        return 0
    if len(data) < _OLD_HEAD:
        return _OLD_HEAD
    return _OLD_HEAD + data[13] if data[10] < 3 else GREETING_BYTES


def _frame_end(data: bytes, at: int) -> int:
    """Where the frame ends that begins there; more than there is if it is not whole."""
    head = at + (_LONG_HEAD if at < len(data) and data[at] & LONG else _SHORT_HEAD)
    if head > len(data):
        return head
    return head + int.from_bytes(data[at + 1 : head], "big")


def _opened(frame: bytes) -> tuple[int, bytes]:
    """The flags and the body of a whole frame."""
    return frame[0], frame[_LONG_HEAD if frame[0] & LONG else _SHORT_HEAD :]


def _any_flags(draw: Seeded) -> int:
    """Flags of any kind; one time in nine a reserved one."""
    flags = draw.below(9)
    return flags if flags < 8 else 8 << draw.below(5)


def _frame(flags: int, body: bytes) -> bytes:
    """A frame of these flags; a body that is too long for its form gets the long one."""
    if len(body) > _SHORT:
        flags |= LONG
    size = len(body).to_bytes(8 if flags & LONG else 1, "big")
    return bytes((flags,)) + size + body
