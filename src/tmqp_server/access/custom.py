"""Custom messages (type 0x00) for your own code in the server.

A hook is any callable that takes a :class:`CustomMessage` and returns an awaitable: a coroutine
function, or an object with ``async def __call__``.  The server handles the next message of the
client after the hook has returned, so the hook gets the messages of a client one at a time and in
order.  Start a task of your own for long work; it may use the message as long as its client is
connected.  An exception in a hook affects only this message.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable
from typing import Any, Final, Protocol, final

from tmqp.constants import TYPE_CUSTOM, TYPE_RESPONSE
from tmqp.frames import Frame
from tmqp_server.access.auth import Identity
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.extensions import load_object

__all__ = ["ClientGone", "CustomMessage", "MessageHook", "SendPort", "load_hook"]


#: What makes an object callable; looked up to see whether it is a coroutine function.
_CALL: Final = "__call__"


class ClientGone(Exception):  # noqa: N818 - says what has happened
    """The client's connection has ended, so nothing can be sent to it."""


class SendPort(Protocol):
    """Sends messages to the connection of a message's sender."""

    async def send(self, session: int, data: bytes) -> None:
        """Send whole messages as soon as the client reads.

        :raises ClientGone: when the client has disconnected, or disconnects while this waits.
        """


@final
class CustomMessage:
    """One custom message (F17).

    Attributes: ``who``, its sender; ``frame``, the message as it arrived.
    """

    def __init__(self, who: Identity, frame: Frame, port: SendPort, most_bytes: int) -> None:
        self.who = who
        self.frame = frame
        self._port = port
        self._most_bytes = most_bytes
        self._responded = False

    @property
    def payload(self) -> bytes:
        """The payload of the message."""
        return self.frame.payload

    @property
    def content_type(self) -> int:
        """A number that the applications define, 0..65,535."""
        return self.frame.content_type

    @property
    def wants_response(self) -> bool:
        """Whether the sender waits for :meth:`respond`."""
        return self.frame.pending_response and not self._responded

    async def reply(
        self, payload: bytes, *, content_type: int = 0, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Send the client a custom message with the same id.

        :raises LocalProtocolError: if a part cannot be encoded.
        :raises ValueError: if it is larger than the messages that the server accepts.
        :raises ClientGone: if the client has disconnected.
        """
        await self.send(
            Frame.build(
                TYPE_CUSTOM,
                self.who.client_id,
                content_type,
                payload,
                message_id=self.frame.message_id,
                headers=headers,
            )
        )

    async def respond(self, code: int = 0, payload: bytes = b"") -> None:
        """Answer once with a Response, 0 for success (F44).  Sends nothing if the client does not
        wait for one.

        If a hook fails without an answer, the server answers 500.  Raises as :meth:`reply`.
        """
        frame = self.frame
        if not self.wants_response:
            return
        await self.send(
            Frame.build(
                TYPE_RESPONSE,
                self.who.client_id,
                code,
                payload,
                message_id=frame.message_id,
                first_acquirer=frame.first_acquirer,
                high_priority=frame.high_priority,
            )
        )
        self._responded = True

    async def send(self, frame: Frame) -> None:
        """Send the client any message; waits while the client does not read.

        Raises as :meth:`reply`.
        """
        if frame.payload_size > self._most_bytes:
            raise ValueError(
                f"{frame.payload_size} bytes are more than a message holds here"
                f" ({self._most_bytes}, max_payload_bytes)"
            )
        await self._port.send(self.who.session, frame.raw)

    def __repr__(self) -> str:
        return f"<CustomMessage from {self.who.client_id!r} id={self.frame.message_id!r}>"


class MessageHook(Protocol):
    """A callable that handles custom messages."""

    def __call__(self, message: CustomMessage, /) -> Awaitable[None]:
        """Take a message."""


def load_hook(path: str) -> MessageHook:
    """Load the object at ``module:attribute``; for a class, make an object without arguments.

    :raises ConfigError: when it cannot be loaded.
    """
    key = "custom_messages"
    found: Any = load_object(key, path)
    if inspect.isclass(found):
        try:
            found = found()
        except Exception as error:
            raise ConfigError(f"{key}: {path} cannot be created: {error!r}") from error
    call = found if inspect.isroutine(found) else getattr(type(found), _CALL, None)
    if not inspect.iscoroutinefunction(call):
        raise ConfigError(
            f"{key}: {path} is not a coroutine function, nor an object called like one"
        )
    hook: MessageHook = found
    return hook
