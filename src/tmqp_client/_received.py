"""The base class of received messages: payload and headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tmqp.frames import Frame
from tmqp_client.parts import parts_of

if TYPE_CHECKING:
    from tmqp_client.session import Session

__all__ = ["HasPayload", "ReceivedMessage"]


class HasPayload(Protocol):
    """A message or a response, of the async client or the blocking one."""

    @property
    def payload(self) -> bytes: ...


class ReceivedMessage:
    """A message and the session that received it; ``frame`` is the message as it came."""

    __slots__ = ("_session", "frame")

    def __init__(self, frame: Frame, session: Session) -> None:
        self.frame = frame
        self._session = session

    @property
    def payload(self) -> bytes:
        """The payload (a copy each time it is read)."""
        return self.frame.payload

    @property
    def text(self) -> str:
        """The payload as UTF-8 text.

        :raises UnicodeDecodeError: if it is not valid.
        """
        return self.frame.payload.decode("utf-8")

    @property
    def parts(self) -> list[bytes]:
        """The parts of the payload (:class:`Multipart`); a single one if there is no
        ``Content-Parts``.

        :raises MalformedParts: if the header ``Content-Parts`` does not fit the payload.
        """
        return parts_of(self.frame)

    @property
    def headers(self) -> list[tuple[str, str]]:
        """All (key, value) pairs in order, repeats and case kept (F8)."""
        return self.frame.headers

    def header(self, name: str) -> str | None:
        """The value of the first header of that name, whatever its case; None if absent."""
        return self.frame.header(name)
