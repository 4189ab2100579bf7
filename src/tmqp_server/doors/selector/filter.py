"""A selector as the filter of a subscription."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.letters import Letter, Letters
from tmqp_server.doors.selector.grammar import read_selector
from tmqp_server.doors.selector.nodes import Node, Value
from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = ["SelectorFilter", "selector_filter"]

_LANGUAGE: Final = "sql92"
_PERSISTENT: Final = "persistent"


class _Said:
    """What a letter says under the names that JMS has."""

    __slots__ = ("_letter",)

    def __init__(self, letter: Letter) -> None:
        self._letter = letter

    def find(self, name: str) -> Value:
        """What it says, or None."""
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


@final
class SelectorFilter(SubscriptionFilter):
    """Accepts messages of which a selector is true.

    :param text: as the client has written it.
    :param node: the selector.
    :param letters: reads messages of every door.
    :param converts: how the selector was read.
    """

    def __init__(self, text: str, node: Node, letters: Letters, *, converts: bool) -> None:
        self._text = text
        self._node = node
        self._letters = letters
        self._converts = converts

    def accepts(self, message: Message) -> bool:
        """Whether it is true; where it is unknown, it is not."""
        return self._node.of(_Said(self._letters.of(message)).find) is True

    def identity(self) -> object:
        """The text: the same one, read in the same way, selects the same."""
        return _LANGUAGE, self._text, self._converts


def selector_filter(text: str, letters: Letters, *, converts: bool = False) -> SelectorFilter:
    """The filter of a selector.

    :param converts: see ``read_selector``.
    :raises FilterError: when it cannot be understood; the text says why.
    """
    node = read_selector(text, converts=converts)
    return SelectorFilter(text, node, letters, converts=converts)
