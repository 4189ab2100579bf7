"""A filter for consumers that do not want messages of their own connection."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = ["NoLocal"]

_NO_LOCAL: Final = "no-local"


@final
class NoLocal(SubscriptionFilter):
    """Accepts messages of other clients.

    :param source: the client's id.
    :param also: a filter that must also accept the message; None for none.
    """

    def __init__(self, source: str, also: SubscriptionFilter | None) -> None:
        self._source = source
        self._also = also

    def accepts(self, message: Message) -> bool:
        """Whether the message is another client's, and the other filter accepts it."""
        if message.source == self._source:
            return False
        return self._also is None or self._also.accepts(message)

    def identity(self) -> object:
        """The client, and the identity of the other filter."""
        return _NO_LOCAL, self._source, None if self._also is None else self._also.identity()

    def family(self) -> object:
        """The family of these filters, which all look at the sender."""
        return _NO_LOCAL if self._also is None else None

    def key_of(self, message: Message) -> object:
        """The sender."""
        return message.source if self._also is None else None

    def is_counted(self) -> bool:
        """Whether the other filter counts: this one is different for each connection, so it does
        not."""
        return self._also is not None
