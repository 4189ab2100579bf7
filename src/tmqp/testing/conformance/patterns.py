"""Patterns of messages, with which received frames are compared field by field.

A field of a pattern is a value, which must be equal, or a :class:`Matcher`; a field that is not
given matches anything.  Texts and payloads may contain ``$name``, which stands for a name of the
running case (:class:`Names`): ``$ch`` is a channel that no other case uses, ``$a`` the client id of
the line ``a``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Protocol

from tmqp.constants import MessageType
from tmqp.frames import Frame

__all__ = [
    "ANY",
    "GENERATED",
    "SENT",
    "Bind",
    "Expected",
    "Matcher",
    "Names",
    "NoHeader",
    "OneOf",
    "Part",
    "Pattern",
    "Preamble",
    "Properties",
    "Without",
    "describe_value",
    "fits",
    "type_name",
]

_NAME: Final = re.compile(r"\$([a-z][a-z0-9_]*)")
_NAME_BYTES: Final = re.compile(rb"\$([a-z][a-z0-9_]*)")
_ID_LETTERS: Final = frozenset("0123456789abcdef")
_ID_CHARACTERS: Final = 32
_SHOWN: Final = 60
#: The fields of a frame in the order in which a difference is looked for.
_FLAGS: Final = ("first_acquirer", "high_priority", "pending_response", "pending_acknowledge")


class Names:
    """The names of one run of a case.

    A name is made from the word and a suffix, so that no two runs share one; a word that the script
    binds to a received value stands for that value.

    :param suffix: letters and digits.
    """

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix
        self._values: dict[str, str] = {}

    def value(self, word: str) -> str:
        """Return the value of ``$word``."""
        bound = self._values.get(word)
        if bound is not None:
            return bound
        return f"{word}-{self.suffix}"

    def bind(self, word: str, value: str) -> None:
        """Let ``$word`` stand for this value from now on."""
        self._values[word] = value

    def text(self, text: str) -> str:
        """Replace the names in a text."""
        return _NAME.sub(lambda found: self.value(found[1]), text) if "$" in text else text

    def data(self, data: bytes) -> bytes:
        """Replace the names in bytes."""
        if b"$" not in data:
            return data
        return _NAME_BYTES.sub(lambda found: self.value(found[1].decode()).encode(), data)


class Matcher:
    """A condition for a field, instead of a value."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """Whether the field's value fits.

        :param sent: the same field of the message that was sent last on the line, if any.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """Describe the expected value in a few words."""
        raise NotImplementedError


class _Any(Matcher):
    def matches(self, value: object, names: Names, sent: object) -> bool:
        return True

    def describe(self) -> str:
        return "anything"


class _Sent(Matcher):
    def matches(self, value: object, names: Names, sent: object) -> bool:
        return value == sent

    def describe(self) -> str:
        return "as sent"


class _Generated(Matcher):
    def matches(self, value: object, names: Names, sent: object) -> bool:
        text = str(value)
        return len(text) == _ID_CHARACTERS and set(text) <= _ID_LETTERS

    def describe(self) -> str:
        return "32 lower-case hexadecimal digits"


ANY: Final[Matcher] = _Any()
#: The same as in the message that was sent last on this line.
SENT: Final[Matcher] = _Sent()
#: An id as servers make them (F45).
GENERATED: Final[Matcher] = _Generated()


class OneOf(Matcher):
    """One of several values."""

    def __init__(self, *values: object) -> None:
        self.values = values

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return any(fits(each, value, names, sent) for each in self.values)

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return " or ".join(describe_value(each) for each in self.values)


class Bind(Matcher):
    """Anything that fits ``inner``; ``$word`` stands for it from then on."""

    def __init__(self, word: str, inner: object = ANY) -> None:
        self.word = word
        self.inner = inner

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        if not fits(self.inner, value, names, sent):
            return False
        names.bind(self.word, value.decode() if isinstance(value, bytes) else str(value))
        return True

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return f"{describe_value(self.inner)} (called ${self.word} below)"


class Part(Matcher):
    """A payload that contains these bytes."""

    def __init__(self, part: bytes) -> None:
        self.part = part

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return isinstance(value, bytes) and names.data(self.part) in value

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return f"contains {self.part!r}"


class Without(Matcher):
    """A payload that does not contain these bytes."""

    def __init__(self, part: bytes) -> None:
        self.part = part

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return isinstance(value, bytes) and names.data(self.part) not in value

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return f"does not contain {self.part!r}"


class NoHeader(Matcher):
    """A header that must not be there."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return value is None

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return "absent"


class Properties(Matcher):
    """A payload of JSON: an object with these properties, among others; or an array.

    :param each: for an array, the objects that it must contain, in any order.
    :param exact: an array contains nothing else.
    :param order: the properties of the object are exactly these, in this order (F65).
    """

    def __init__(
        self,
        properties: Mapping[str, object] | None = None,
        *,
        each: tuple[Mapping[str, object], ...] | None = None,
        exact: bool = False,
        order: tuple[str, ...] | None = None,
    ) -> None:
        self.properties = properties
        self.each = each
        self.exact = exact
        self.order = order

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        try:
            found = json.loads(value) if isinstance(value, bytes) else None
        except ValueError:
            return False
        if self.each is not None:
            if not isinstance(found, list) or (self.exact and len(found) != len(self.each)):
                return False
            return all(any(_holds(want, item, names) for item in found) for want in self.each)
        if not isinstance(found, dict):
            return False
        if self.order is not None and tuple(found) != self.order:
            return False
        return _holds(self.properties or {}, found, names)

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        if self.each is not None:
            kind = "an array of exactly" if self.exact else "an array with"
            objects = [_describe_object(each) for each in self.each]
            return f"JSON: {kind} [{', '.join(objects)}]"
        text = f"JSON: an object with {_describe_object(self.properties or {})}"
        return text if self.order is None else f"{text}, its properties in the order {self.order}"


def _describe_object(wanted: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {describe_value(each)}" for key, each in wanted.items()) + "}"


def _holds(wanted: Mapping[str, object], found: object, names: Names) -> bool:
    if not isinstance(found, dict):
        return False
    return all(key in found and fits(each, found[key], names, None) for key, each in wanted.items())


def fits(wanted: object, value: object, names: Names, sent: object) -> bool:
    """Whether a value equals the expected one, or fits the expected matcher."""
    if isinstance(wanted, Matcher):
        return wanted.matches(value, names, sent)
    if isinstance(wanted, str):
        return value == names.text(wanted)
    if isinstance(wanted, bytes):
        return value == names.data(wanted)
    if isinstance(wanted, list):
        return [names.text(each) if isinstance(each, str) else each for each in wanted] == value
    # True == 1 in Python, and not in JSON.
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def describe_value(value: object) -> str:
    """Describe the expected value of a field in a few words."""
    if isinstance(value, Matcher):
        return value.describe()
    if isinstance(value, IntEnum):
        return f"{value:d} ({value.name})"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def type_name(message_type: int) -> str:
    """Return the name of a message type, or its number."""
    try:
        return MessageType(message_type).name
    except ValueError:
        return f"0x{message_type:02x}"


class Expected(Protocol):
    """One thing that a script expects to receive on a line."""

    def difference(self, seen: object, names: Names, sent: object) -> str:
        """Describe how something received differs; empty if it fits.

        :param sent: the message that was sent last on the line.
        """

    def fits_but_for_its_code(self, seen: object, names: Names, sent: object) -> bool:
        """Whether it would fit with another result code, if both codes are failures."""

    def describe(self) -> str:
        """Describe the expectation in one line."""


class Preamble:
    """The eight bytes with which a side begins, as received or as expected."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def difference(self, seen: object, names: Names, sent: object) -> str:
        """See :class:`Expected`."""
        if isinstance(seen, Preamble) and seen.data == self.data:
            return ""
        return f"it is {seen!r}"

    def fits_but_for_its_code(self, seen: object, names: Names, sent: object) -> bool:
        """See :class:`Expected`; a preamble has no code."""
        return not self.difference(seen, names, sent)

    def describe(self) -> str:
        """See :class:`Expected`."""
        return f"the preamble {self.data!r}"

    def __repr__(self) -> str:
        return f"<Preamble {self.data!r}>"


class Pattern:
    """An expected message.

    :param kind: the message type.
    :param fields: ``content_type``, ``message_id``, ``source``, ``target``, ``payload``, ``ttl``,
        ``headers`` (all pairs in order), ``first_acquirer``, ``high_priority``,
        ``pending_response``, ``pending_acknowledge``, or ``raw`` (all bytes), and ``header``: a
        mapping from header names to the first value of each.
    :param code: the field ``content_type`` is a result code, and another failure in its place is
        judged as a wrong code.
    """

    __slots__ = ("code", "fields", "header", "kind")

    def __init__(
        self,
        kind: int,
        *,
        header: Mapping[str, object] | None = None,
        code: bool = False,
        **fields: object,
    ) -> None:
        self.kind = kind
        self.header = dict(header or {})
        self.code = code
        self.fields = fields

    def difference(self, seen: object, names: Names, sent: object) -> str:
        """Describe how a frame differs; empty if it fits."""
        return self._difference(seen, names, sent, codes=True)

    def fits_but_for_its_code(self, seen: object, names: Names, sent: object) -> bool:
        """Whether the frame would fit with another code (or reason), if both are failures."""
        wanted = self.fields.get("content_type")
        if (
            self.code
            and isinstance(wanted, int)
            and isinstance(seen, Frame)
            and (wanted == 0) != (seen.content_type == 0)
        ):
            return False
        return not self._difference(seen, names, sent, codes=False)

    def _difference(self, frame: object, names: Names, said: object, *, codes: bool) -> str:
        if not isinstance(frame, Frame):
            return f"it is {frame!r}"
        sent = said if isinstance(said, Frame) else None
        if frame.type != self.kind:
            return f"its type is {type_name(frame.type)}, not {type_name(self.kind)}"
        for field, wanted in self.fields.items():
            if field == "content_type" and self.code and not codes:
                continue
            value = getattr(frame, field)
            told = None if sent is None else getattr(sent, field)
            if not fits(wanted, value, names, told):
                shown = describe_value(value)
                return f"{field} is {shown}, expected {_expected(wanted, told)}"
        for name, wanted in self.header.items():
            found = frame.header(name)
            refused = found is not None and not isinstance(wanted, NoHeader)
            if not codes and name == "Nack-Reason" and refused:
                continue
            told = None if sent is None else sent.header(name)
            if not fits(wanted, found, names, told):
                shown = describe_value(found)
                return f"header {name} is {shown}, expected {_expected(wanted, told)}"
        return ""

    def describe(self) -> str:
        """Describe the expected message in one line."""
        parts = [type_name(self.kind)]
        parts += [f"{field}={describe_value(value)}" for field, value in self.fields.items()]
        parts += [f"{name}: {describe_value(value)}" for name, value in self.header.items()]
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"<Pattern {self.describe()}>"


def _expected(wanted: object, said: object) -> str:
    if wanted is SENT:
        return f"{describe_value(said)} as sent"
    return describe_value(wanted)
