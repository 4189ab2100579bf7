"""A selector as the filter of a subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.selecting import TextFilter
from tmqp_server.doors.selector.grammar import read_selector
from tmqp_server.doors.selector.nodes import Node, Value
from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = ["SELECTORS", "SelectorFilter", "language_of", "selector_filter"]

#: The language of filters that are selectors, as JMS has them, and with texts that read as numbers
#: or truth values converted where they are compared with such.
_LANGUAGE: Final = "sql92"
_CONVERTING: Final = "sql92-converting"
_PERSISTENT: Final = "persistent"


class _Said:
    """The values of a letter, by the names that JMS gives them."""

    __slots__ = ("_letter",)

    def __init__(self, letter: Letter) -> None:
        self._letter = letter

    def find(self, name: str) -> Value:
        """The value of this name; None if the message does not have it."""
        letter = self._letter
        if name.startswith("JMS"):
            if name == "JMSPriority":
                return letter.priority
            if name == "JMSTimestamp":
                return letter.timestamp_ms
            if name == "JMSExpiration":
                return letter.expires_ms
            if name == "JMSMessageID":
                return letter.message_id or None
            if name == "JMSCorrelationID":
                return letter.correlation_id or None
            if name == "JMSType":
                return letter.kind or None
            if name == "JMSReplyTo":
                return letter.reply_to or None
            if name == "JMSXGroupID":
                return letter.group_key or None
            if name == "JMSDeliveryMode":
                kept = self._header(_PERSISTENT) == "true"
                return "PERSISTENT" if kept else "NON_PERSISTENT"
        for each in letter.properties:
            if each.name == name:
                return each.value
        return self._header(name)

    def _header(self, name: str) -> str | None:
        for key, text in self._letter.headers:
            if key == name:
                return text
        return None


def language_of(*, converts: bool) -> str:
    """The filter language for selectors, with or without conversion; see ``read_selector``."""
    return _CONVERTING if converts else _LANGUAGE


@final
class SelectorFilter(TextFilter):
    """Accepts messages for which a selector is true.

    :param text: the selector as the client wrote it.
    :param node: the parsed selector.
    :param converts: as for ``read_selector``.
    """

    def __init__(self, text: str, node: Node, *, converts: bool) -> None:
        super().__init__(language_of(converts=converts), text)
        self._node = node

    def accepts(self, message: Message) -> bool:
        """Whether the selector is true for the message; unknown counts as false."""
        letters = self.letters
        assert letters is not None, "who makes a selector says who reads messages"
        return self._node.of(_Said(letters.of(message)).find) is True


def selector_filter(text: str, letters: Letters, *, converts: bool = False) -> SelectorFilter:
    """The filter for a selector.

    :param converts: see ``read_selector``.
    :raises FilterError: when the selector is invalid; the text says why.
    """
    made = SelectorFilter(text, read_selector(text, converts=converts), converts=converts)
    made.letters = letters
    return made


def _plain(text: str) -> SubscriptionFilter:
    return SelectorFilter(text, read_selector(text), converts=False)


def _converting(text: str) -> SubscriptionFilter:
    return SelectorFilter(text, read_selector(text, converts=True), converts=True)


#: The languages of selectors, as ``selecting.LANGUAGES`` has others.
SELECTORS: Final[dict[str, Callable[[str], SubscriptionFilter]]] = {
    _LANGUAGE: _plain,
    _CONVERTING: _converting,
}
