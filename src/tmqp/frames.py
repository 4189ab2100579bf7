"""``Frame``: one TMQP message in memory, kept in the form it has on the wire.

A frame *is* its bytes.  The decoder cuts the bytes of one message out of the stream, checks them
once and keeps the results of the check: the three names as text, and where the payload begins.
Every other field is read from the bytes on demand.  So a broker that only forwards a message builds
neither headers nor payload, and sending it again is almost free: it sends ``frame.raw`` unchanged,
or with the first two bytes rewritten (:meth:`Frame.forwarded`).

Layout (specification, "Protocol Frame"; F1-F7, all integers little-endian)::

    0  first-acquirer 0x80 | high-priority 0x40 | message type (6 bits)
    1  pending-response 0x80 | pending-acknowledge 0x40 | has-header 0x20 | time to live (5 bits)
    2  length of the message id      3  length of the source      4  length of the target
    5  content type, low byte        6  content type, high byte
    7  payload length: 0..252 itself; 253, 254, 255: u16, u32, u64 follow
    .. message id, source, target (UTF-8), [u16 length and header block], payload

Only :meth:`Frame.build`, which checks its arguments, and :class:`tmqp.FrameDecoder`, which checks
the bytes, make frames.  So every frame is well formed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from tmqp._compat import i64, mypyc_attr
from tmqp.bits import (
    FIRST_ACQUIRER,
    HAS_HEADER,
    HEAD_BYTES,
    HIGH_PRIORITY,
    LARGEST_SHORT,
    MAX_U16,
    PENDING_ACKNOWLEDGE,
    PENDING_RESPONSE,
    TIER_U16,
    TIER_U32,
    TIER_U64,
    TTL_BITS,
    TYPE_BITS,
)
from tmqp.constants import (
    DEFAULT_TTL,
    MAX_HEADER_BLOCK_BYTES,
    MAX_NAME_BYTES,
    MAX_TTL,
    SERVER_HELLO,
    TYPE_PING,
    TYPE_PONG,
    TYPE_SERVER,
    MessageType,
)
from tmqp.errors import LocalProtocolError

__all__ = ["Frame", "encode_headers", "parse_headers", "without_payload"]

_REPR_PAYLOAD_BYTES: Final = 32
_REPR_BLOCK_BYTES: Final = 200
_REPR_NAME_CHARACTERS: Final = 64

#: One-byte strings by value.  ``bytes((a, b, ...))`` boxes each number and unpacks it again: a
#: whole build takes a third more instructions with it.
_ONE_BYTE: Final = [bytes((value,)) for value in range(256)]
#: Compared by identity, so that a frame without headers needs no time for them.
_NO_HEADERS: Final[tuple[tuple[str, str], ...]] = ()
_TYPE_NAMES: Final = {int(member): member.name for member in MessageType}


def parse_headers(text: str) -> list[tuple[str, str]]:
    """Split a header block into its (key, value) pairs, in order, repeats kept.

    Lines without a colon, or with nothing before it, are skipped and nothing is trimmed (F7).
    """
    pairs: list[tuple[str, str]] = []
    for line in text.split("\r\n"):
        colon = line.find(":")
        if colon > 0:
            pairs.append((line[:colon], line[colon + 1 :]))
    return pairs


def encode_headers(headers: Iterable[tuple[str, str]]) -> bytes:
    """Write pairs as a header block: ``Key:Value`` and CRLF each, no space after the colon (F7).

    :raises LocalProtocolError: for an empty key, a colon in a key, CR or LF anywhere (it would
        forge another header), text that is not valid Unicode, or a block over 65,535 bytes.
    """
    parts: list[str] = []
    for key, value in headers:
        if not key or ":" in key or "\r" in key or "\n" in key:
            raise LocalProtocolError(f"a header key must not contain colon, CR or LF, got {key!r}")
        if "\r" in value or "\n" in value:
            raise LocalProtocolError(f"the value of header {key} must not contain CR or LF")
        parts.append(key)
        parts.append(":")
        parts.append(value)
        parts.append("\r\n")
    block = _utf8("header block", "".join(parts))
    if len(block) > MAX_HEADER_BLOCK_BYTES:
        raise LocalProtocolError(f"the header block is {len(block)} bytes, at most 65,535 (F6)")
    return block


def _utf8(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError(f"the {what} is not valid Unicode text") from None


def _name(what: str, text: str) -> bytes:
    encoded = _utf8(what, text)
    if len(encoded) > MAX_NAME_BYTES:
        # The original writes the length's low byte and corrupts the stream (F6).
        raise LocalProtocolError(f"the {what} is {len(encoded)} bytes, at most 255 (F6)")
    return encoded


@mypyc_attr(acyclic=True)
@final
class Frame:
    """One message of the protocol; immutable.

    Two frames are equal when their bytes are.  Use :meth:`build` to make one.
    """

    __slots__ = ("_body", "_message_id", "_source", "_target", "raw")

    def __init__(self, raw: bytes, message_id: str, source: str, target: str, body: i64) -> None:
        """For the decoder and :meth:`build` only: wrap bytes that have been checked.

        :param raw: the whole frame, which contains the three names.
        :param body: offset of the payload.
        """
        self.raw: bytes = raw
        self._message_id: str = message_id
        self._source: str = source
        self._target: str = target
        self._body: i64 = body

    # -- making ---------------------------------------------------------------------------------

    @staticmethod
    def build(
        message_type: int,
        target: str = "",
        content_type: int = 0,
        payload: bytes = b"",
        *,
        message_id: str = "",
        source: str = "",
        headers: Iterable[tuple[str, str]] = _NO_HEADERS,
        first_acquirer: bool = False,
        high_priority: bool = False,
        pending_response: bool = False,
        pending_acknowledge: bool = False,
        ttl: int = DEFAULT_TTL,
    ) -> Frame:
        """Make a frame from its fields.

        :param message_type: 0..63, see :class:`tmqp.MessageType`.
        :param content_type: 0..65,535: queue id, operation number or result code.
        :param headers: pairs in order; empty means no header block (F9: never flag + empty).
        :param ttl: 0..31 hops (F11); for ping and pong 0..63, six bits of the second byte (F10).
        :raises LocalProtocolError: if a field does not fit into its place on the wire.
        """
        if not 0 <= message_type <= TYPE_BITS:
            raise LocalProtocolError(f"a message type must be 0 to 63, got {message_type}")
        if not 0 <= content_type <= MAX_U16:
            raise LocalProtocolError(f"a content type must be 0 to 65535, got {content_type}")
        bare = message_type == TYPE_PING or message_type == TYPE_PONG
        if not 0 <= ttl <= (TYPE_BITS if bare else MAX_TTL):
            raise LocalProtocolError(f"the TTL must be 0 to {TYPE_BITS if bare else 31}: {ttl}")
        block = b"" if headers is _NO_HEADERS else encode_headers(headers)
        if block and bare:
            raise LocalProtocolError("ping and pong carry no header block (F10)")
        b0: i64 = message_type
        if first_acquirer:
            b0 |= FIRST_ACQUIRER
        if high_priority:
            b0 |= HIGH_PRIORITY
        b1: i64 = ttl
        if pending_response:
            b1 |= PENDING_RESPONSE
        if pending_acknowledge:
            b1 |= PENDING_ACKNOWLEDGE
        return _assemble(b0, b1, content_type, message_id, source, target, block, payload)

    def replace(
        self,
        message_type: int | None = None,
        target: str | None = None,
        content_type: int | None = None,
        message_id: str | None = None,
        source: str | None = None,
        more_headers: Iterable[tuple[str, str]] = (),
        ttl: int | None = None,
        pending_response: bool | None = None,
    ) -> Frame:
        """Return a copy with some fields changed; None keeps a field.  Existing headers are kept.

        :param more_headers: pairs that are appended to the existing ones (F107).
        :raises LocalProtocolError: as :meth:`build` does.
        """
        raw = self.raw
        block = self.header_block + encode_headers(more_headers)
        if len(block) > MAX_HEADER_BLOCK_BYTES:
            raise LocalProtocolError(f"the header block is {len(block)} bytes, at most 65,535 (F6)")
        if message_type is not None and not 0 <= message_type <= TYPE_BITS:
            raise LocalProtocolError(f"a message type must be 0 to 63, got {message_type}")
        if content_type is not None and not 0 <= content_type <= MAX_U16:
            raise LocalProtocolError(f"a content type must be 0 to 65535, got {content_type}")
        b0, b1 = raw[0], raw[1]
        kind = b0 & TYPE_BITS if message_type is None else message_type
        bare = kind == TYPE_PING or kind == TYPE_PONG
        if block and bare:
            raise LocalProtocolError("ping and pong carry no header block (F10)")
        if ttl is None:
            ttl = self.ttl if bare else self.ttl & TTL_BITS
        elif not 0 <= ttl <= (TYPE_BITS if bare else MAX_TTL):
            raise LocalProtocolError(f"the TTL must be 0 to {TYPE_BITS if bare else 31}: {ttl}")
        if pending_response is not None:
            b1 = b1 & ~PENDING_RESPONSE | (PENDING_RESPONSE if pending_response else 0)
        return _assemble(
            b0 if message_type is None else (b0 & ~TYPE_BITS) | message_type,
            # Built again, not masked: one bit is "has header" or, on ping and pong, time to live.
            (b1 & (PENDING_RESPONSE | PENDING_ACKNOWLEDGE)) | ttl,
            self.content_type if content_type is None else content_type,
            self._message_id if message_id is None else message_id,
            self._source if source is None else source,
            self._target if target is None else target,
            block,
            self.payload,
        )

    def forwarded(self, first_acquirer: bool, pending_acknowledge: bool, ttl: int) -> bytes:
        """Return the frame's bytes with these flags and this time to live (0..31).

        Only the first two bytes differ; the rest is unchanged (F11, F76).
        """
        raw = self.raw
        was0: i64 = raw[0]
        was1: i64 = raw[1]
        b0 = was0 & ~FIRST_ACQUIRER
        if first_acquirer:
            b0 |= FIRST_ACQUIRER
        b1 = (was1 & (PENDING_RESPONSE | HAS_HEADER)) | (ttl & TTL_BITS)
        if pending_acknowledge:
            b1 |= PENDING_ACKNOWLEDGE
        if b0 == was0 and b1 == was1:
            return raw
        # Formatting compiles to one allocation; `+` needs one more.
        return b"%b%b%b" % (_ONE_BYTE[b0], _ONE_BYTE[b1], raw[2:])

    # -- the head -------------------------------------------------------------------------------

    @property
    def type(self) -> int:
        """The message type, 0..63; compare with :class:`tmqp.MessageType` (F16)."""
        return self.raw[0] & TYPE_BITS

    @property
    def first_acquirer(self) -> bool:
        """The specification's "one delivery" bit: set for the first receiver (F2, F87)."""
        return self.raw[0] & FIRST_ACQUIRER != 0

    @property
    def high_priority(self) -> bool:
        """High priority.  On an acknowledgement: it is for a direct message (F2, F116)."""
        return self.raw[0] & HIGH_PRIORITY != 0

    @property
    def pending_response(self) -> bool:
        """The sender waits for a response (F2)."""
        return self.raw[1] & PENDING_RESPONSE != 0

    @property
    def pending_acknowledge(self) -> bool:
        """The sender waits for an acknowledgement (F2)."""
        return self.raw[1] & PENDING_ACKNOWLEDGE != 0

    @property
    def has_header(self) -> bool:
        """A header block is present, possibly an empty one (F9); never on ping and pong (F10)."""
        kind = self.raw[0] & TYPE_BITS
        return self.raw[1] & HAS_HEADER != 0 and kind != TYPE_PING and kind != TYPE_PONG

    @property
    def ttl(self) -> int:
        """Time to live as on the wire: 0..31, or 0..63 on ping and pong (F10, F11)."""
        kind = self.raw[0] & TYPE_BITS
        if kind == TYPE_PING or kind == TYPE_PONG:
            return self.raw[1] & TYPE_BITS
        return self.raw[1] & TTL_BITS

    @property
    def content_type(self) -> int:
        """Queue id, operation number, result code or the user's own number (F3)."""
        return self.raw[5] | self.raw[6] << 8

    # -- names ----------------------------------------------------------------------------------

    @property
    def message_id(self) -> str:
        """The message id; empty if none was given."""
        return self._message_id

    @property
    def source(self) -> str:
        """The sender; empty if not given."""
        return self._source

    @property
    def target(self) -> str:
        """The channel, client, router or event that it is for; empty if not given."""
        return self._target

    # -- headers and payload --------------------------------------------------------------------

    @property
    def header_block(self) -> bytes:
        """The header block's bytes without its length; empty without headers."""
        raw = self.raw
        start: i64 = _names_at(raw) + raw[2] + raw[3] + raw[4] + 2
        if start > self._body:
            return b""
        return raw[start : self._body]

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The (key, value) pairs in order, repeats and case kept (F8)."""
        block = self.header_block
        if not block:
            return []
        return parse_headers(block.decode("utf-8"))

    def header(self, name: str) -> str | None:
        """The value of the first header of that name, whatever its case (F8); None if absent."""
        block = self.header_block
        if block:
            wanted = name.lower()
            for key, value in parse_headers(block.decode("utf-8")):
                if key.lower() == wanted:
                    return value
        return None

    def last_header(self, name: str) -> str | None:
        """The value of the *last* header with that name, as appended by a server (F107)."""
        found: str | None = None
        block = self.header_block
        if block:
            wanted = name.lower()
            for key, value in parse_headers(block.decode("utf-8")):
                if key.lower() == wanted:
                    found = value
        return found

    @property
    def payload(self) -> bytes:
        """The payload.  Each access copies it from the frame's bytes: keep it if you need it
        again."""
        return self.raw[self._body :]

    @property
    def payload_size(self) -> int:
        """The size of the payload in bytes."""
        return len(self.raw) - self._body

    @property
    def canonical(self) -> bool:
        """Whether :func:`tmqp.encode` would write the same: smallest length tier (F4), no empty
        block (F9)."""
        size = len(self.raw) - self._body
        if _names_at(self.raw) != HEAD_BYTES + _tier_bytes(size):
            return False
        return not self.has_header or bool(self.header_block)

    def fields(
        self,
    ) -> tuple[int, bool, bool, bool, bool, int, str, str, str, int, list[tuple[str, str]], bytes]:
        """All fields: type, first acquirer, high priority, pending response, pending acknowledge,
        time to live, message id, source, target, content type, headers, payload."""
        raw = self.raw
        b0: i64 = raw[0]
        b1: i64 = raw[1]
        low: i64 = raw[5]
        high: i64 = raw[6]
        kind = b0 & TYPE_BITS
        ttl = b1 & (TYPE_BITS if kind == TYPE_PING or kind == TYPE_PONG else TTL_BITS)
        return (
            kind,
            b0 & FIRST_ACQUIRER != 0,
            b0 & HIGH_PRIORITY != 0,
            b1 & PENDING_RESPONSE != 0,
            b1 & PENDING_ACKNOWLEDGE != 0,
            ttl,
            self._message_id,
            self._source,
            self._target,
            low | high << 8,
            self.headers if b1 & HAS_HEADER else [],
            raw[self._body :],
        )

    # -- being an object ------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        return self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __reduce__(self) -> tuple[object, tuple[bytes, str, str, str, int]]:
        return (Frame, (self.raw, self._message_id, self._source, self._target, self._body))

    def __repr__(self) -> str:
        flags = ""
        for letter, on in (
            ("F", self.first_acquirer),
            ("H", self.high_priority),
            ("R", self.pending_response),
            ("A", self.pending_acknowledge),
        ):
            flags += letter if on else ""
        payload = self.payload
        shown = repr(payload[:_REPR_PAYLOAD_BYTES])
        if self.type == TYPE_SERVER and self.content_type == SERVER_HELLO:
            shown = f"{len(payload)} bytes"  # it may hold a token, which must not reach a log
        elif len(payload) > _REPR_PAYLOAD_BYTES:
            shown += f"... {len(payload)} bytes"
        block = self.header_block
        headers = f"{len(block)} bytes" if len(block) > _REPR_BLOCK_BYTES else repr(self.headers)
        return (
            f"<Frame {_TYPE_NAMES.get(self.type, hex(self.type))} {flags or '-'} ttl={self.ttl}"
            f" content_type={self.content_type} id={_short(self.message_id)}"
            f" source={_short(self.source)} target={_short(self.target)} headers={headers}"
            f" payload={shown}>"
        )


def _short(text: str) -> str:
    shown = repr(text[:_REPR_NAME_CHARACTERS])
    return shown if len(text) <= _REPR_NAME_CHARACTERS else f"{shown}..."


def _names_at(raw: bytes) -> i64:
    """Return where the message id begins: after the head, and the length that may follow it
    (F4)."""
    tier: i64 = raw[7]
    return HEAD_BYTES if tier < TIER_U16 else HEAD_BYTES + (1 << (tier - LARGEST_SHORT))


def _tier_bytes(size: int) -> int:
    """Return how many bytes after the head have this payload length (F4)."""
    if size < TIER_U16:
        return 0
    if size <= MAX_U16:
        return 2
    return 4 if size <= 0xFFFF_FFFF else 8


def without_payload(raw: bytes, size: int) -> bytes:
    """Turn a frame without payload into the beginning of one with a payload of this size.

    The caller sends the payload after it, in pieces.
    """
    if size < TIER_U16:
        return b"%b%b%b" % (raw[:7], _ONE_BYTE[size], raw[8:])
    if size <= MAX_U16:
        return b"%b%b%b%b" % (raw[:7], _ONE_BYTE[TIER_U16], size.to_bytes(2, "little"), raw[8:])
    if size <= 0xFFFF_FFFF:
        return b"%b%b%b%b" % (raw[:7], _ONE_BYTE[TIER_U32], size.to_bytes(4, "little"), raw[8:])
    return b"%b%b%b%b" % (raw[:7], _ONE_BYTE[TIER_U64], size.to_bytes(8, "little"), raw[8:])


def _assemble(
    b0: i64,
    b1: i64,
    content_type: i64,
    message_id: str,
    source: str,
    target: str,
    block: bytes,
    payload: bytes,
) -> Frame:
    """Write a frame from its parts, payload length in the smallest tier (F4)."""
    id_bytes = _name("message id", message_id)
    source_bytes = _name("source", source)
    target_bytes = _name("target", target)
    size = len(payload)
    extended = b""
    tier = size
    if size >= TIER_U16:
        if size <= MAX_U16:
            extended = size.to_bytes(2, "little")
            tier = TIER_U16
        elif size <= 0xFFFF_FFFF:
            extended = size.to_bytes(4, "little")
            tier = TIER_U32
        else:
            extended = size.to_bytes(8, "little")
            tier = TIER_U64
    if block:
        b1 |= HAS_HEADER
        block = len(block).to_bytes(2, "little") + block
    # Formatting compiles to one allocation and a copy of each part: a whole build takes 3,000
    # instructions, and 4,400 with a join.
    raw = b"%b%b%b%b%b%b%b%b%b%b%b%b%b%b" % (
        _ONE_BYTE[b0],
        _ONE_BYTE[b1],
        _ONE_BYTE[len(id_bytes)],
        _ONE_BYTE[len(source_bytes)],
        _ONE_BYTE[len(target_bytes)],
        _ONE_BYTE[content_type & 0xFF],
        _ONE_BYTE[content_type >> 8],
        _ONE_BYTE[tier],
        extended,
        id_bytes,
        source_bytes,
        target_bytes,
        block,
        payload,
    )
    return Frame(raw, message_id, source, target, len(raw) - size)
