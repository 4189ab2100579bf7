"""A filter for consumers that do not want what their own connection has sent."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = ["NoLocal"]

_NO_LOCAL: Final = "no-local"


@final
class NoLocal(SubscriptionFilter):
    """Accepts what others have sent.

    :param source: the client.
    :param also: what else must accept it; None for nothing.
    """

    def __init__(self, source: str, also: SubscriptionFilter | None) -> None:
        self._source = source
        self._also = also

    def accepts(self, message: Message) -> bool:
        """Whether it is another's."""
        if message.source == self._source:
            return False
        return self._also is None or self._also.accepts(message)

    def identity(self) -> object:
        """The client, and what else is wanted."""
        return _NO_LOCAL, self._source, None if self._also is None else self._also.identity()

    def family(self) -> object:
        """They all look at the sender, if at nothing else."""
        return _NO_LOCAL if self._also is None else None

    def key_of(self, message: Message) -> object:
        """The sender."""
        return message.source if self._also is None else None

    def is_counted(self) -> bool:
        """Every connection has one of its own; what else is wanted is like any other filter."""
        return self._also is not None
