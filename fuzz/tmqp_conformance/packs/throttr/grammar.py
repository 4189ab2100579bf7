"""The grammar of Throttr for the wire fuzzer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tmqp.testing import Seeded
from tmqp_conformance.packs.grammar import ID_MARK, PackGrammar, choice, of_size
from tmqp_conformance.packs.throttr.words import MOST_BYTES, UNKNOWN, WIDTH
from tmqp_conformance.packs.units import Unit
from tmqp_wires.throttr import Request, RequestDecoder, Violation, words
from tmqp_wires.throttr.requests import encode_request, inner_request

__all__ = ["ThrottrGrammar"]

#: Longer requests are not judged: how long one may be is the server's to say.
_SURE_BYTES: Final = 8_096
_SMALL: Final = 100
_MOST: Final = words.most_of(WIDTH)
_KEYS: Final = (
    *(b"$kk_____", b"$vv_____", b"$cc_____", b"", b"\xff\x00"),
    *(b"x" * 255, b"*", b"$kk______"),
)
_VALUES: Final = (b"", b"x", b"\x00\xff", b"0" * 300, b"y" * 5_000)
_AMOUNTS: Final = (0, 1, 7, 255, _MOST - 1, _MOST)
_TTLS: Final = (0, 1, 60, 30_000, _MOST)
_TYPES: Final = (1, 2, 3, 4, 5, 6, 0, 7, 255)
_WAYS: Final = (0, 1, 2, 3, 255)
_KEYED: Final = frozenset(words.NAMES) - {
    *(words.LIST, words.INFO, words.STATS, words.CONNECTIONS, words.CHANNELS, words.WHOAMI),
    words.CONNECTION,
}
_WITH_VALUE: Final = frozenset({words.SET, words.PUBLISH, words.EVENT})
_WITH_TTL: Final = frozenset({words.INSERT, words.SET})
_WITH_AMOUNT: Final = frozenset({words.INSERT, words.UPDATE})
_ATTRIBUTES: Final = ("quota", "ttl")
_CHANGES: Final = ("patch", "increase", "decrease")


class _Reader:
    """The codec's own decoder."""

    def __init__(self, dialect: str) -> None:
        self.rule = ""
        self.state = "idle"
        self.doubtful = False
        self.illegible = False
        self._decoder = RequestDecoder(dialect, WIDTH, MOST_BYTES)

    @property
    def inside(self) -> bool:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        return self._decoder.held_bytes > 0

    def read(self, data: bytes) -> None:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        for event in self._decoder.receive(data):
            if isinstance(event, Violation):
                self.rule = "unknown-request"
                return
            if len(event.key) + len(event.value) > _SURE_BYTES:
                self.doubtful = True
            elif event.code == words.SUBSCRIBE:
                self.state = "subscribed"
            elif event.code == words.EVENT and inner_request(event, WIDTH) is None:
                # Some servers answer it once, others twice.
                self.doubtful = self.illegible = True
        if self._decoder.held_bytes > _SURE_BYTES:
            self.doubtful = True


class ThrottrGrammar(PackGrammar):
    """Requests with values of two bytes.

    :param dialect: ``7.1`` or ``7.3``.
    """

    states: tuple[str, ...] = ("idle", "subscribed", "closed")
    fields: tuple[str, ...] = (
        *("key=0", "key=some", "key=long"),
        *("value=0", "value=some", "value=long"),
        *("amount=0", "amount=some", "amount=most"),
        *("ttl=0", "ttl=some", "ttl=most"),
        *("unit=known", "unit=unknown"),
        *("attribute=quota", "attribute=ttl", "attribute=unknown"),
        *("change=patch", "change=increase", "change=decrease", "change=unknown"),
    )

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        has_events = dialect == words.DIALECT_73
        self._codes = tuple(code for code in words.NAMES if has_events or code != words.EVENT)
        #: To draw from: what is changed by most of its fields comes more often.
        self._drawn = (*self._codes, *(words.INSERT, words.UPDATE, words.UPDATE, words.SET) * 4)
        self.kinds = tuple(words.NAMES[code] for code in self._codes)

    def reader(self) -> _Reader:
        """See :class:`PackGrammar`."""
        return _Reader(self._dialect)

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """See :class:`Grammar`."""
        messages = [encode_request(each, WIDTH) for each in self._requests(data)]
        return b"", messages, data[sum(map(len, messages)) :]

    def kind_of(self, message: bytes) -> str:
        """See :class:`PackGrammar`."""
        return words.NAMES[message[0]]

    def fields_of(self, message: bytes) -> Iterable[str]:
        """See :class:`PackGrammar`."""
        for request in self._requests(message):
            code = request.code
            if code in _KEYED:
                yield f"key={of_size(len(request.key), _SMALL, most=MOST_BYTES)}"
            if code in _WITH_VALUE:
                yield f"value={of_size(len(request.value), _SMALL, most=MOST_BYTES)}"
            if code in _WITH_TTL:
                yield f"ttl={_number_class(request.ttl)}"
                yield f"unit={'known' if 1 <= request.ttl_type <= 6 else 'unknown'}"
            if code in _WITH_AMOUNT:
                yield f"amount={_number_class(request.amount)}"
            if code == words.UPDATE:
                yield f"attribute={_word(request.attribute, _ATTRIBUTES)}"
                yield f"change={_word(request.change, _CHANGES)}"

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        for request in self._requests(message):
            self._change(draw, request)
            return encode_request(request, WIDTH)
        return message

    def _change(self, draw: Seeded, request: Request) -> None:
        """Give one or two fields of a request other values."""
        for _ in range(1 + draw.below(2)):
            field = draw.below(8)
            if field == 0:
                request.value = choice(draw, _VALUES)
            elif field == 1:
                request.amount = choice(draw, _AMOUNTS)
            elif field == 2:
                request.ttl_type = choice(draw, _TYPES)
            elif field == 3:
                request.ttl = choice(draw, _TTLS)
            elif field == 4:
                request.attribute = choice(draw, _WAYS)
            elif field == 5:
                request.change = choice(draw, _WAYS)
            elif field == 6:
                request.code = choice(draw, self._drawn)
            else:
                request.key = choice(draw, _KEYS)
        if request.code == words.CONNECTION:
            request.key = ID_MARK
        elif request.code == words.EVENT and draw.one_in(2):
            request.value = encode_request(Request(words.QUERY, _KEYS[0]), WIDTH)

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        code = choice(draw, self._drawn)
        key = ID_MARK if code == words.CONNECTION else choice(draw, _KEYS[:3])
        value = choice(draw, _VALUES[:4])
        if code == words.EVENT:
            value = encode_request(Request(words.QUERY, key), WIDTH)
        request = Request(
            *(code, key, value),
            *(choice(draw, _AMOUNTS[:4]), choice(draw, _TYPES[:6]), choice(draw, _TTLS[1:])),
            *(draw.below(2), draw.below(3)),
        )
        return encode_request(request, WIDTH)

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        if draw.one_in(4):
            return choice(
                draw,
                (
                    *(b"\x00", b"\x0a", b"\x1a", b"\x20", b"\xff"),
                    *(b"GET / HTTP/1.1\r\n\r\n", b"\x13\x00\xff\xff", draw.some_bytes(40)),
                ),
            )
        return b"".join([self._odd_request(draw) for _ in range(3)])

    def _odd_request(self, draw: Seeded) -> bytes:
        """A request with whatever values."""
        request = Request(choice(draw, self._drawn), choice(draw, _KEYS), choice(draw, _VALUES))
        for _ in range(4):
            self._change(draw, request)
        return encode_request(request, WIDTH)

    def fence(self, name: str) -> bytes:
        """A question about a key that nobody has."""
        return encode_request(Request(words.QUERY, _fence_key(name)), WIDTH)

    def passes(self, unit: object, name: str) -> bool:
        """See :class:`PackGrammar`."""
        return isinstance(unit, Unit) and unit.fields.get("key") == _fence_key(name)

    def newest_id(self, units: Sequence[object]) -> bytes:
        """The id of the connection, if it has asked for it."""
        for unit in reversed(units):
            found = unit.fields.get("id") if isinstance(unit, Unit) else None
            if isinstance(found, str):
                return bytes.fromhex(found)
        return b""

    def _requests(self, data: bytes) -> list[Request]:
        """The whole requests at the beginning."""
        decoder = RequestDecoder(self._dialect, WIDTH, MOST_BYTES)
        return [each for each in decoder.receive(data) if isinstance(each, Request)]


def _fence_key(name: str) -> bytes:
    return b"fence-" + name.encode()


def _number_class(value: int) -> str:
    return "0" if value == 0 else "most" if value == _MOST else "some"


def _word(value: int, known: Sequence[str]) -> str:
    return known[value] if value < len(known) else UNKNOWN
