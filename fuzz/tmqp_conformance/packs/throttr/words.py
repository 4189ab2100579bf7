"""The words of the scripts about Throttr: requests, and the ear for what is answered."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from tmqp.testing.conformance.patterns import Matcher, Names
from tmqp_conformance.packs.units import AskedEar, Expect, Unit
from tmqp_wires.throttr import ClientConnection, Push, Reply, Request, RequestDecoder, words
from tmqp_wires.throttr.client import Happening, Item
from tmqp_wires.throttr.requests import encode_request

__all__ = [
    "MOST_BYTES",
    "NEWER",
    "UNKNOWN",
    "WIDTH",
    "AtLeast",
    "Has",
    "Left",
    "Said",
    "ThrottrEar",
    "no",
    "push",
    "said",
    "yes",
]

#: The bytes of quotas, times to live and sizes.
WIDTH: Final = 2
#: More than a request with values of two bytes can have.
MOST_BYTES: Final = 1_048_576
#: The address at which the dialect 7.3 is spoken.
NEWER: Final = "dialect-7.3"
#: What the ear calls a request that there is not.
UNKNOWN: Final = "unknown"
_LATE: Final = 5


class Said:
    """A request with names in key and value.

    :param inner: the request that an EVENT carries.
    """

    __slots__ = ("inner", "request")

    def __init__(self, request: Request, inner: Said | None = None) -> None:
        self.request = request
        self.inner = inner

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """Its bytes."""
        request = self.request
        key = names.data(request.key)
        if request.code == words.CONNECTION:
            key = _identity(key)
        value = names.data(request.value)
        if self.inner is not None:
            value = self.inner.encode(names, next_id)
        told = Request(
            request.code,
            key,
            value,
            request.amount,
            request.ttl_type,
            request.ttl,
            request.attribute,
            request.change,
        )
        return encode_request(told, WIDTH)

    def describe(self) -> str:
        """It in one line."""
        request = self.request
        parts = [words.NAMES[request.code]]
        for name in ("key", "value", "amount", "ttl_type", "ttl", "attribute", "change"):
            value = getattr(request, name)
            if value:
                parts.append(f"{name}={value!r}"[:60])
        if self.inner is not None:
            parts.append(f"with {self.inner.describe()}")
        return " ".join(parts)


def _identity(key: bytes) -> bytes:
    """An id as 16 bytes; it is bound as digits, and what the fuzzer has in its place is not."""
    if len(key) == 2 * words.ID_BYTES:
        return bytes.fromhex(key.decode("ascii"))
    return key[: words.ID_BYTES].ljust(words.ID_BYTES, b"\0")


def said(code: int, key: bytes = b"", value: bytes = b"", **numbers: int) -> Said:
    """A request; ``numbers`` are ``amount``, ``ttl_type``, ``ttl``, ``attribute``, ``change``."""
    return Said(Request(code, key, value, **numbers))


def yes(code: int, **fields: object) -> Expect:
    """The answer 0x01 to a request, and what follows it."""
    return Expect("yes", to=words.NAMES[code], **fields)


def no(code: int) -> Expect:
    """The answer 0x00 to a request."""
    return Expect("no", to=words.NAMES[code])


def push(payload: bytes, channel: bytes | None = None) -> Expect:
    """A push; the dialect 7.3 says of which channel."""
    if channel is None:
        return Expect("push", payload=payload)
    return Expect("push", channel=channel, payload=payload)


class Left(Matcher):
    """What is left of so many units, a few of which may be over."""

    def __init__(self, most: int) -> None:
        self.most = most

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return isinstance(value, int) and self.most - _LATE <= value <= self.most

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return f"{self.most - _LATE} to {self.most}"


class AtLeast(Matcher):
    """A number that is not smaller."""

    def __init__(self, least: int) -> None:
        self.least = least

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return isinstance(value, int) and value >= self.least

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return f"at least {self.least}"


class Has(Matcher):
    """A listing that has an item of this name, whose numbers are these, among others.

    :param name: a key or channel, or the digits of an id.
    """

    def __init__(self, name: bytes, **numbers: object) -> None:
        self.name = name
        self.numbers = numbers

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        assert isinstance(value, list)
        wanted = names.data(self.name)
        return any(self._is(item, wanted) for item in value)

    def _is(self, item: Item, wanted: bytes) -> bool:
        if wanted not in (item.name, item.name.hex().encode()):
            return False
        found = item.numbers
        return all(
            each.matches(found.get(name), Names(""), None)
            if isinstance(each, Matcher)
            else found.get(name) == each
            for name, each in self.numbers.items()
        )

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        shown = [
            f"{name}: {each.describe() if isinstance(each, Matcher) else each}"
            for name, each in self.numbers.items()
        ]
        return f"with {self.name!r} ({', '.join(shown)})"


class ThrottrEar(AskedEar):
    """Replies: units ``yes`` and ``no``, which name the request and its key; and units ``push``.

    :param dialect: ``7.1`` or ``7.3``.
    """

    def __init__(self, dialect: str) -> None:
        self.complaint = ""
        self._requests = RequestDecoder(dialect, WIDTH, MOST_BYTES)
        self._replies = ClientConnection(dialect, WIDTH)
        #: What is not answered yet: names of requests, and their keys.
        self._asked: deque[tuple[str, bytes]] = deque()

    @property
    def held_bytes(self) -> int:
        """See :class:`tmqp_conformance.packs.units.Ear`."""
        return self._replies.held_bytes

    def asked(self, data: bytes) -> None:
        """See :class:`AskedEar`."""
        for event in self._requests.receive(data):
            before = self._replies.outstanding
            if isinstance(event, Request):
                name, key = words.NAMES[event.code], event.key
                self._replies.send(event)
            else:
                # It is answered with a status alone, as a PURGE is.
                name, key = UNKNOWN, b""
                self._replies.send(Request(words.PURGE))
            self._asked += [(name, key)] * (self._replies.outstanding - before)

    def feed(self, data: bytes) -> list[Any]:
        """See :class:`tmqp_conformance.packs.units.Ear`."""
        if self.complaint:
            return []
        try:
            happenings = self._replies.receive(data)
        except ValueError as error:
            self.complaint = f"the peer sent what is no reply: {error}"
            return []
        return [self._unit(each) for each in happenings]

    def _unit(self, happening: Happening) -> Unit:
        if isinstance(happening, Push):
            return Unit("push", channel=happening.channel, payload=happening.payload)
        name, key = self._asked.popleft()
        if name == words.NAMES[words.EVENT] and happening.code != words.EVENT:
            name = words.NAMES[happening.code]
        kind = "yes" if happening.ok else "no"
        return Unit(kind, to=name, key=key, **_fields(happening))


def _fields(reply: Reply) -> dict[str, Any]:
    """What a reply tells."""
    code = reply.code
    if not reply.ok:
        return {}
    if code == words.QUERY:
        return {"amount": reply.amount, "ttl_type": reply.ttl_type, "ttl": reply.ttl}
    if code == words.GET:
        return {"value": reply.value, "ttl_type": reply.ttl_type, "ttl": reply.ttl}
    if code == words.WHOAMI:
        return {"id": reply.name.hex()}
    if code == words.STAT:
        return dict(reply.numbers)
    if code == words.INFO:
        return {"info": [Item(b"", dict(reply.numbers.items()))], "version": reply.name}
    if code in (
        words.LIST,
        words.STATS,
        words.CHANNELS,
        words.CHANNEL,
        words.CONNECTIONS,
        words.CONNECTION,
    ):
        return {"items": reply.items}
    return {}
