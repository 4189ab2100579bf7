"""Fast generators of frames, conversations, cuts and damage, from a seed.

They exist besides the Hypothesis strategies, because a property that must hold 200,000 times needs
a few microseconds an example, and no shrinking.  The same seed gives the same bytes on every
machine and every version of Python: the numbers come from :class:`Seeded`, not from a library.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    PING_BYTES,
    PONG_BYTES,
    PREAMBLE,
    SERVER_ACCEPTED,
    SERVER_HELLO,
    TYPE_ACKNOWLEDGE,
    TYPE_CUSTOM,
    TYPE_DIRECT_MESSAGE,
    TYPE_EVENT,
    TYPE_PING,
    TYPE_PONG,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_ROUTER,
    TYPE_SERVER,
    TYPE_TERMINATE,
    HeaderName,
)
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.testing.reference import write_frame

__all__ = [
    "Seeded",
    "client_bytes",
    "damage",
    "odd_frame",
    "pieces",
    "plain_frame",
    "server_bytes",
]

_MASK: Final = (1 << 64) - 1
_FLOWING: Final = (
    TYPE_QUEUE_MESSAGE,
    TYPE_QUEUE_MESSAGE,
    TYPE_QUEUE_MESSAGE,
    TYPE_ACKNOWLEDGE,
    TYPE_RESPONSE,
    TYPE_SERVER,
    TYPE_DIRECT_MESSAGE,
    TYPE_PULL_REQUEST,
    TYPE_EVENT,
    TYPE_ROUTER,
    TYPE_CUSTOM,
    0x3F,
)
_TEXTS: Final = (
    "",
    "a",
    "orders",
    "0f8fad5bd9cb469fa16570867728950e",
    "@name:worker",
    "@type:printer",
    "bestellung-ä",
    "注文",
    "🐇",
    "a b;c*\t\0",
    "../../etc",
    "x" * 255,
    "ß" * 127,
)
_KEYS: Final = (*(member.value for member in HeaderName), "X-Trace", "schlüssel", "k")
_VALUES: Final = ("", "1", " padded ", "a:b", "none", "Größe", "v" * 300)
_SIZES: Final = (0, 0, 1, 2, 7, 31, 100, 252, 253, 254, 255, 256, 1000)
#: Lengths that an attacker would write to exhaust memory or cause an overflow.
_LIES: Final = (0, 1, 252, 253, 65_535, 65_536, 1 << 20, (1 << 32) - 1, 1 << 32, 1 << 63, _MASK)


class Seeded:
    """A stream of numbers that depends on nothing but its seed (a 64-bit congruential generator;
    not for secrets)."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = (seed * 0x9E37_79B9_7F4A_7C15 + 0x1234_5678_9ABC_DEF1) & _MASK

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1; ``count`` is at most 2**31."""
        state = (self._state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) & _MASK
        self._state = state
        return (state >> 33) * count >> 31

    def one_in(self, count: int) -> bool:
        """Return True once in ``count`` calls, on average."""
        return self.below(count) == 0

    def some_bytes(self, size: int) -> bytes:
        """Return ``size`` random bytes."""
        out = bytearray()
        while len(out) < size:
            out += self.below(1 << 24).to_bytes(3, "little")
        return bytes(out[:size])


def _text(draw: Seeded) -> str:
    if draw.one_in(3):
        return ""
    return _TEXTS[draw.below(len(_TEXTS))]


def _headers(draw: Seeded) -> list[tuple[str, str]]:
    if not draw.one_in(3):
        return []
    return [
        (_KEYS[draw.below(len(_KEYS))], _VALUES[draw.below(len(_VALUES))])
        for _ in range(1 + draw.below(4))
    ]


def _payload(draw: Seeded) -> bytes:
    size = _SIZES[draw.below(len(_SIZES))]
    if draw.one_in(2):
        return b"z" * size
    return draw.some_bytes(size)


def plain_frame(draw: Seeded, message_type: int | None = None) -> Frame:
    """Generate a frame as :meth:`tmqp.Frame.build` makes it, with any fields, in canonical form.

    :param message_type: the type; if None, a type of open connections, or an unknown one.
    """
    kind = _FLOWING[draw.below(len(_FLOWING))] if message_type is None else message_type
    bits = draw.below(16)
    bare = kind in (TYPE_PING, TYPE_PONG)
    return Frame.build(
        kind,
        _text(draw),
        draw.below(1 << 16),
        _payload(draw),
        message_id=_text(draw),
        source=_text(draw),
        headers=() if bare else _headers(draw),
        first_acquirer=bits & 1 != 0,
        high_priority=bits & 2 != 0,
        pending_response=bits & 4 != 0,
        pending_acknowledge=bits & 8 != 0,
        ttl=draw.below(64 if bare else 32),
    )


def odd_frame(draw: Seeded) -> bytes:
    """Generate a complete, legal, but unusual frame: with an unnecessarily large length form (F4),
    an empty header block (F9), meaningless header lines (F7), ping and pong with names, time to
    live above 31 and payload (F10), or an unknown type (F17)."""
    payload = b"p" * draw.below(40)
    kind = TYPE_PING if draw.one_in(4) else TYPE_PONG if draw.one_in(4) else draw.below(64)
    bare = kind in (TYPE_PING, TYPE_PONG)
    blocks = (None, b"", b"no colon\r\n:no key\r\nk:v\r\nrest", b"\r\n\r\n", b"a:b")
    return write_frame(
        kind,
        first_acquirer=draw.one_in(2),
        high_priority=draw.one_in(2),
        pending_response=draw.one_in(2),
        pending_acknowledge=draw.one_in(2),
        ttl=draw.below(64 if bare else 32),
        message_id=_TEXTS[draw.below(5)].encode(),
        source=_TEXTS[draw.below(5)].encode(),
        target=_TEXTS[draw.below(9)].encode(),
        content_type=draw.below(1 << 16),
        header_block=None if bare else blocks[draw.below(len(blocks))],
        payload=payload,
        tier=(0, 253, 254, 255)[draw.below(4)],
    )


def _messages(draw: Seeded, most: int) -> bytes:
    parts = []
    for _ in range(draw.below(most + 1)):
        pick = draw.below(10)
        if pick == 0:
            parts.append(PING_BYTES if draw.one_in(2) else PONG_BYTES)
        elif pick == 1:
            parts.append(odd_frame(draw))
        else:
            parts.append(plain_frame(draw).raw)
    if draw.one_in(8):
        parts.append(Frame.build(TYPE_TERMINATE).raw)
    return b"".join(parts)


def client_bytes(draw: Seeded, most: int = 6) -> bytes:
    """Generate the bytes of a client on one connection: preamble, connection information, messages.

    :param most: the most messages after the connection information.
    """
    information = ConnectionInformation(
        _TEXTS[draw.below(5)], _TEXTS[draw.below(4)], _TEXTS[draw.below(4)], "token-4711"
    )
    hello = Frame.build(
        TYPE_SERVER,
        "",
        SERVER_HELLO,
        information.encode(),
        source=information.client_id,
        first_acquirer=True,
    )
    return PREAMBLE + hello.raw + _messages(draw, most)


def server_bytes(draw: Seeded, most: int = 6) -> bytes:
    """Generate the bytes of a server on one connection: preamble, acceptance, messages.

    :param most: the most messages besides the acceptance.
    """
    accepted = Frame.build(TYPE_SERVER, "client-1", SERVER_ACCEPTED, first_acquirer=True)
    early = Frame.build(TYPE_EVENT, source="ClientConnected").raw if draw.one_in(4) else b""
    return PREAMBLE + early + accepted.raw + _messages(draw, most)


def pieces(draw: Seeded, data: bytes, most: int = 8) -> list[bytes]:
    """Cut a byte string into up to ``most`` pieces, in order, none of them empty."""
    if len(data) < 2:
        return [data] if data else []
    cuts = sorted({1 + draw.below(len(data) - 1) for _ in range(draw.below(most))})
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def damage(draw: Seeded, data: bytes, times: int | None = None) -> bytes:
    """Damage a byte string as errors and attackers do: flip bits, falsify lengths, cut, repeat,
    insert, splice.

    :param times: the number of changes; 1..4 if None.
    """
    out = bytearray(data)
    for _ in range(1 + draw.below(4) if times is None else times):
        _spoil(draw, out)
    return bytes(out)


def _spoil(draw: Seeded, out: bytearray) -> None:
    if not out:
        out += draw.some_bytes(1 + draw.below(24))
        return
    at = draw.below(len(out))
    kind = draw.below(8)
    if kind == 0:
        out[at] ^= 1 << draw.below(8)
    elif kind == 1:
        out[at] = draw.below(256)
    elif kind == 2:
        del out[at:]
    elif kind == 3:
        del out[at : at + 1 + draw.below(16)]
    elif kind == 4:
        out[at:at] = draw.some_bytes(1 + draw.below(16))
    elif kind == 5:
        other = draw.below(len(out))
        out[at:at] = out[other : other + 1 + draw.below(64)]
    elif kind == 6:
        # A number where a length may stand, in one of the widths of the protocol.
        width = (1, 2, 4, 8)[draw.below(4)]
        lie = _LIES[draw.below(len(_LIES))] & ((1 << 8 * width) - 1)
        out[at : at + width] = lie.to_bytes(width, "little")
    else:
        # A whole head that lies: any bits, any lengths, any tier.
        head = bytearray(draw.some_bytes(8))
        head[7] = (253, 254, 255, draw.below(253))[draw.below(4)]
        out[at:at] = head + _LIES[draw.below(len(_LIES))].to_bytes(8, "little")
