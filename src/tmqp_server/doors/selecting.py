"""Filters of subscriptions: tests for the messages that a client wants.

A filter is a text in a *language*.  Two are here, and a door may bring others (``LANGUAGES``):

``headers``
    Conditions about headers, all of which must hold, with semicolons between them:
    ``kind=order; region=eu*; !test``.  ``name=value`` wants a header of that name and value,
    ``name=value*`` one whose value begins so, ``name!=value`` and ``name!=value*`` want none,
    ``name`` wants a header of that name, and ``!name`` none.  Names are compared whatever their
    case, values exactly, without the blanks around them.  A value in double quotes may hold
    semicolons, and an asterisk at its end is one.

``prefix``
    The message begins with this text.

Filters are pure functions.  These look at the message as a TMQP message (``letters.py``).  The work
for a message is bounded by the lengths of the text and of the headers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp._compat import mypyc_attr
from tmqp.extensions import FILTER_HEADERS, FILTER_PREFIX
from tmqp.frames import Frame
from tmqp_server.doors.letters import Letters
from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = [
    "LANGUAGES",
    "MAX_CONDITIONS",
    "MAX_FILTER_BYTES",
    "FilterError",
    "HeadersFilter",
    "PrefixFilter",
    "TextFilter",
    "filter_of",
    "read_by",
]

#: UTF-8 of the text of a filter.
MAX_FILTER_BYTES: Final = 1_024
#: Conditions of one filter in the language ``headers``.
MAX_CONDITIONS: Final = 16


class FilterError(ValueError):
    """A filter is invalid; the text says why."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TextFilter(SubscriptionFilter):
    """A filter with a text; filters with the same text and language are equal."""

    def __init__(self, language: str, text: str) -> None:
        self.language = language
        self.text = text
        #: Reads messages of other protocols; without it, such messages are refused.
        self.letters: Letters | None = None

    def frame_of(self, message: Message) -> Frame:
        """The message as a TMQP message.

        :raises TypeError: for a message of another protocol, without ``letters``.
        """
        wire = message.wire
        if isinstance(wire, Frame):
            return wire
        if self.letters is None:
            raise TypeError(f"{type(wire).__name__} is not a TMQP message")
        return self.letters.frame_of(message)

    def identity(self) -> object:
        """The language and the text."""
        return self.language, self.text


class _Condition:
    """A condition about the headers of one name."""

    __slots__ = ("name", "wanted", "value", "begins")

    def __init__(self, name: str, wanted: bool, value: str | None, begins: bool) -> None:
        self.name = name
        #: True if such a header is required, False if it is forbidden.
        self.wanted = wanted
        #: None for any value.
        self.value = value
        #: Whether the header's value need only begin with it.
        self.begins = begins

    def holds(self, headers: list[tuple[str, str]]) -> bool:
        """Whether the condition holds for these headers, whose names must be in lower case."""
        for name, found in headers:
            if name == self.name and self._is_meant(found):
                return self.wanted
        return not self.wanted

    def _is_meant(self, found: str) -> bool:
        value = self.value
        if value is None:
            return True
        found = found.strip()
        return found.startswith(value) if self.begins else found == value


#: Longer header blocks are not remembered.
_LONGEST_KEY: Final = 256


class HeadersFilter(TextFilter):
    """Conditions about headers."""

    def __init__(self, text: str, conditions: list[_Condition]) -> None:
        super().__init__(FILTER_HEADERS, text)
        self._conditions = conditions

    def accepts(self, message: Message) -> bool:
        """Whether all conditions hold."""
        frame = self.frame_of(message)
        headers = [(name.lower(), value) for name, value in frame.headers]
        for condition in self._conditions:  # noqa: SIM110 - all() would make a generator
            if not condition.holds(headers):
                return False
        return True

    def family(self) -> object:
        """The family of all filters that look only at headers."""
        return FILTER_HEADERS

    def key_of(self, message: Message) -> object:
        """The header block as it is on the wire; None if it is long."""
        block = self.frame_of(message).header_block
        return block if len(block) <= _LONGEST_KEY else None


class PrefixFilter(TextFilter):
    """Accepts messages whose payload begins with a text."""

    def __init__(self, text: str) -> None:
        super().__init__(FILTER_PREFIX, text)
        self._prefix = text.encode()

    def accepts(self, message: Message) -> bool:
        """Whether the payload begins with the text."""
        frame = self.frame_of(message)
        raw = frame.raw
        return raw.startswith(self._prefix, len(raw) - frame.payload_size)


def _headers(text: str) -> SubscriptionFilter:
    conditions = [_condition(part) for part in _parts(text)]
    if len(conditions) > MAX_CONDITIONS:
        raise FilterError(f"a filter has at most {MAX_CONDITIONS} conditions")
    return HeadersFilter(text, conditions)


def _parts(text: str) -> list[str]:
    """Divide a text at semicolons outside quotes.

    :raises FilterError: when a quote is not closed.
    """
    parts: list[str] = []
    start = 0
    quoted = False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif letter == ";" and not quoted:
            parts.append(text[start:at])
            start = at + 1
    if quoted:
        raise FilterError("a quote in the filter is not closed")
    parts.append(text[start:])
    return parts


def _condition(part: str) -> _Condition:
    part = part.strip()
    name, equals, value = part.partition("=")
    wanted = True
    if equals and name.endswith("!"):
        name, wanted = name[:-1], False
    elif not equals and name.startswith("!"):
        name, wanted = name[1:], False
    name = name.strip().lower()
    if not name or "!" in name or '"' in name:
        kinds = "name=value, name!=value, name or !name"
        raise FilterError(f"a condition is {kinds}, got {part[:64]!r}")
    if not equals:
        return _Condition(name, wanted, None, False)
    value = value.strip()
    if value.startswith('"'):
        if len(value) < 2 or not value.endswith('"') or '"' in value[1:-1]:
            raise FilterError(f"a quoted value ends with its second quote, got {value[:64]!r}")
        return _Condition(name, wanted, value[1:-1], False)
    if value.endswith("*"):
        return _Condition(name, wanted, value[:-1], True)
    return _Condition(name, wanted, value, False)


#: The languages by name, each with what makes a filter of a text, or raises FilterError.
LANGUAGES: Final[dict[str, Callable[[str], SubscriptionFilter]]] = {
    FILTER_HEADERS: _headers,
    FILTER_PREFIX: PrefixFilter,
}


def read_by(chosen: SubscriptionFilter | None, letters: Letters) -> None:
    """Let a filter also read messages of other protocols."""
    if isinstance(chosen, TextFilter):
        chosen.letters = letters


def filter_of(language: str | None, text: str | None) -> SubscriptionFilter:
    """The filter that a client asks for; the default language is ``headers``.

    :raises FilterError: when the filter is invalid, or its text is missing.
    """
    if text is None:
        raise FilterError("the filter is missing: send the header Filter, not only its language")
    make = LANGUAGES.get((language or FILTER_HEADERS).strip().lower())
    if make is None:
        known = ", ".join(sorted(LANGUAGES))
        raise FilterError(
            f"there is no filter language {language!r:.64}; the languages are {known}"
        )
    if len(text.encode("utf-8", "replace")) > MAX_FILTER_BYTES:
        raise FilterError(f"a filter has at most {MAX_FILTER_BYTES} bytes")
    return make(text)
