"""Hypothesis strategies for everything that can be on the wire, legal or not.

The only module of the package that needs Hypothesis (the extra ``testing``).  For hundreds of
thousands of examples without shrinking see :mod:`tmqp.testing.generate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from tmqp.constants import (
    MAX_HEADER_BLOCK_BYTES,
    MAX_NAME_BYTES,
    PING_BYTES,
    PONG_BYTES,
    PREAMBLE,
    SERVER_ACCEPTED,
    SERVER_HELLO,
    TYPE_PING,
    TYPE_PONG,
    TYPE_SERVER,
    TYPE_TERMINATE,
    HeaderName,
    MessageType,
)
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.testing.generate import Seeded, damage
from tmqp.testing.reference import write_frame

__all__ = [
    "Conversation",
    "chunkings",
    "connection_information",
    "conversations",
    "frames",
    "header_blocks",
    "header_pairs",
    "hostile_bytes",
    "ids",
    "message_types",
    "names",
    "odd_frames",
    "payloads",
    "texts",
]

_BARE: Final = (TYPE_PING, TYPE_PONG)
_SPECIAL: Final = {TYPE_SERVER, TYPE_TERMINATE, *_BARE}
_TIERS: Final = (0, 253, 254, 255)


class Conversation:
    """All bytes of one successful connection: what each side sent, as bytes and as frames.

    ``client`` and ``server`` begin with the preamble; ``client_frames`` begin with the connection
    information, ``server_frames`` hold the acceptance.  ``client_id`` is the id accepted.
    """

    def __init__(
        self,
        information: ConnectionInformation,
        client_id: str,
        client_frames: Sequence[Frame],
        server_frames: Sequence[Frame],
    ) -> None:
        self.information = information
        self.client_id = client_id
        self.client_frames = list(client_frames)
        self.server_frames = list(server_frames)

    @property
    def client(self) -> bytes:
        """What the client sent."""
        return PREAMBLE + b"".join([frame.raw for frame in self.client_frames])

    @property
    def server(self) -> bytes:
        """What the server sent."""
        return PREAMBLE + b"".join([frame.raw for frame in self.server_frames])

    def __repr__(self) -> str:
        return f"Conversation({self.client_frames!r}, {self.server_frames!r})"


def texts(max_bytes: int, exclude: str = "", min_size: int = 0) -> st.SearchStrategy[str]:
    """Text of any alphabet with at most ``max_bytes`` of UTF-8, without lone surrogates.

    :param exclude: characters that may not occur.
    """
    alphabet = st.characters(exclude_categories=["Cs"], exclude_characters=exclude)
    ascii_only = st.characters(min_codepoint=0, max_codepoint=127, exclude_characters=exclude)
    return st.one_of(
        st.text(ascii_only, min_size=min_size, max_size=max_bytes),
        st.text(alphabet, min_size=min_size, max_size=max_bytes // 4),
    )


def ids() -> st.SearchStrategy[str]:
    """Message ids in the original's form: 32 hexadecimal digits (F45)."""
    return st.binary(min_size=16, max_size=16).map(bytes.hex)


def names(max_bytes: int = MAX_NAME_BYTES) -> st.SearchStrategy[str]:
    """Message ids, sources and targets: empty, ids, addresses, any text."""
    longest = st.sampled_from(("x" * max_bytes, "ß" * (max_bytes // 2)))
    addresses = st.sampled_from(("orders", "@name:worker", "@type:printer", "bestellung-ä", "🐇"))
    return st.one_of(st.just(""), ids(), addresses, texts(max_bytes), longest)


def header_pairs() -> st.SearchStrategy[list[tuple[str, str]]]:
    """Headers that can be written: keys with and without meaning, repeats, any case (F7, F8)."""
    known = st.sampled_from([str(member.value) for member in HeaderName])
    keys = st.one_of(known, known.map(str.lower), texts(64, exclude=":\r\n", min_size=1))
    values = st.one_of(
        st.sampled_from(("", "1", " padded ", "a:b", "none")), texts(200, exclude="\r\n")
    )
    return st.lists(st.tuples(keys, values), max_size=6)


def header_blocks() -> st.SearchStrategy[bytes]:
    """Header blocks that may arrive: well formed, with meaningless lines, empty, not UTF-8, of the
    largest size (F6, F7, F9)."""
    line = st.one_of(
        st.sampled_from((b"k:v", b"no colon", b":no key", b"", b"k:", b"a:b:c", b"k: v ")),
        st.binary(max_size=20),
        texts(20).map(str.encode),
    )
    largest = st.just(b"k:" + b"v" * (MAX_HEADER_BLOCK_BYTES - 2))
    return st.one_of(st.lists(line, max_size=5).map(b"\r\n".join), st.just(b""), largest)


def payloads(max_bytes: int = 70_000) -> st.SearchStrategy[bytes]:
    """Payloads, including sizes at the limits of the length forms (F4)."""
    borders = (0, 1, 251, 252, 253, 254, 255, 256, 65_534, 65_535, 65_536)
    sizes = st.sampled_from([size for size in borders if size <= max_bytes])
    filled = st.builds(bytes.__mul__, st.sampled_from((b"z", b"\x00", b"\xff")), sizes)
    return st.one_of(st.binary(max_size=min(300, max_bytes)), filled)


def message_types() -> st.SearchStrategy[int]:
    """All types, including unknown ones (F16, F17)."""
    return st.one_of(st.sampled_from([int(member) for member in MessageType]), st.integers(0, 63))


@st.composite
def frames(
    draw: st.DrawFn, types: st.SearchStrategy[int] | None = None, max_payload_bytes: int = 1_000
) -> Frame:
    """A frame as :meth:`tmqp.Frame.build` makes it: any flags, type, hops, names, headers.

    :param types: which types to draw; all 64 if None.
    """
    kind = draw(message_types() if types is None else types)
    bare = kind in _BARE
    return Frame.build(
        kind,
        draw(names()),
        draw(st.integers(0, 65_535)),
        draw(payloads(max_payload_bytes)),
        message_id=draw(names()),
        source=draw(names()),
        headers=[] if bare else draw(header_pairs()),
        first_acquirer=draw(st.booleans()),
        high_priority=draw(st.booleans()),
        pending_response=draw(st.booleans()),
        pending_acknowledge=draw(st.booleans()),
        ttl=draw(st.integers(0, 63 if bare else 31)),
    )


@st.composite
def odd_frames(draw: st.DrawFn) -> bytes:
    """A complete frame in any readable form: every length form that is wide enough, empty and
    meaningless header blocks, names and payload on ping and pong (F4, F7, F9, F10).

    Some contain text that is not UTF-8 and must be refused.
    """
    kind = draw(message_types())
    bare = kind in _BARE
    payload = draw(payloads(1_000))
    texts_or_not = st.one_of(names().map(str.encode), st.binary(max_size=20))
    return write_frame(
        kind,
        first_acquirer=draw(st.booleans()),
        high_priority=draw(st.booleans()),
        pending_response=draw(st.booleans()),
        pending_acknowledge=draw(st.booleans()),
        ttl=draw(st.integers(0, 63 if bare else 31)),
        message_id=draw(texts_or_not),
        source=draw(texts_or_not),
        target=draw(texts_or_not),
        content_type=draw(st.integers(0, 65_535)),
        header_block=None if bare else draw(st.one_of(st.none(), header_blocks())),
        payload=payload,
        tier=draw(st.sampled_from(_TIERS if len(payload) < 253 else _TIERS[1:])),
    )


#: Beside control characters: what no name may have (``tmqp.names``).
_UNSEEN: Final = (
    "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@st.composite
def connection_information(draw: st.DrawFn) -> ConnectionInformation:
    """A client's description of itself: standard and further properties, any text (F26-F30)."""
    one_line = "".join(map(chr, (*range(32), *range(127, 160)))) + _UNSEEN
    word = texts(60, exclude=one_line).map(str.strip)
    keys = texts(30, exclude=one_line + ":").map(str.strip)
    further = draw(st.dictionaries(keys.filter(_is_further), word, max_size=3))
    lowered = {key.lower(): key for key in further}
    return ConnectionInformation(
        draw(word),
        draw(word),
        draw(word),
        draw(word),
        {key: further[key] for key in lowered.values()},
        path=draw(st.sampled_from(("/", "/path", "/a/b?c=d", "/ä"))),
    )


def _is_further(key: str) -> bool:
    standard = ("client-id", "client-name", "client-type", "client-token")
    return bool(key) and key.lower() not in standard


@st.composite
def conversations(draw: st.DrawFn, most: int = 6) -> Conversation:
    """A whole successful connection with up to ``most`` messages in each direction."""
    information = draw(connection_information())
    client_id = information.client_id or "client-1"
    hello = Frame.build(
        TYPE_SERVER, "", SERVER_HELLO, information.encode(), source=information.client_id
    )
    accepted = Frame.build(TYPE_SERVER, client_id, SERVER_ACCEPTED, message_id=draw(ids()))
    flowing = message_types().filter(lambda kind: kind not in _SPECIAL)
    pings = st.sampled_from((PING_BYTES, PONG_BYTES)).map(lambda raw: Frame(raw, "", "", "", 8))
    message = st.one_of(frames(flowing, 300), frames(flowing, 300), pings)
    return Conversation(
        information,
        client_id,
        [hello, *draw(st.lists(message, max_size=most))],
        [accepted, *draw(st.lists(message, max_size=most))],
    )


@st.composite
def chunkings(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """``data`` cut into pieces, in order, none of them empty."""
    if len(data) < 2:
        return [data] if data else []
    cuts = sorted(draw(st.sets(st.integers(1, len(data) - 1), max_size=8)))
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def hostile_bytes(good: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Bytes that no peer should send: damaged versions of ``good`` (flipped bits, false lengths,
    parts removed, repeated, inserted) and noise."""
    spoiled = st.builds(_spoiled, good, st.integers(0, 2**64 - 1), st.integers(1, 4))
    return st.one_of(spoiled, st.binary(max_size=200))


def _spoiled(good: bytes, seed: int, times: int) -> bytes:
    return damage(Seeded(seed), good, times)
