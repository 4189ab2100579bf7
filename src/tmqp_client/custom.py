"""Custom messages (type 0x00, F17): messages between a client and the operator's code in the
server."""

from __future__ import annotations

from typing import Self, final

from tmqp.constants import TYPE_CUSTOM
from tmqp_client._core.arguments import Headers
from tmqp_client._core.board import CUSTOM_MESSAGES
from tmqp_client._core.letters import WrittenRequest
from tmqp_client._core.pending import Kind
from tmqp_client._listening import Listening
from tmqp_client._port import Port
from tmqp_client._received import ReceivedMessage

__all__ = ["CustomMessage", "CustomMessages", "CustomRequest"]


class CustomRequest(WrittenRequest):
    """A custom message without its message id."""

    __slots__ = ()

    def __init__(
        self,
        kind: int,
        target: str,
        content_type: int,
        payload: bytes,
        headers: Headers,
        high_priority: bool,
    ) -> None:
        word = "custom request" if kind == Kind.REQUEST else "custom message"
        super().__init__(
            TYPE_CUSTOM, word, kind, target, content_type, payload, headers, False, high_priority
        )


@final
class CustomMessage(ReceivedMessage):
    """One custom message from code in the server; ``frame`` is the message as it arrived."""

    __slots__ = ()

    @property
    def content_type(self) -> int:
        """A number that the applications define, 0..65,535."""
        return self.frame.content_type

    @property
    def message_id(self) -> str:
        """The message's id; for an answer, the id of the request."""
        return self.frame.message_id

    def __repr__(self) -> str:
        return f"<CustomMessage id={self.message_id!r}>"


class CustomMessages(Listening):
    """Custom messages as an async iterator; made by :meth:`tmqp_client.Client.custom_messages`.

    Several tasks may iterate; each message goes to one of them.
    """

    def __init__(self, port: Port) -> None:
        super().__init__(port, CUSTOM_MESSAGES, None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> CustomMessage:
        """Return the next message.

        :raises ConnectionLost: if no more arrive because the connection has ended for good.
        """
        event = await self._next()
        if event is None:
            raise StopAsyncIteration
        return CustomMessage(event.frame, self._port.session)
