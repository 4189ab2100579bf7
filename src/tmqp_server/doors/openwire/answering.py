"""The base of a session of OpenWire: responses, exceptions, and the end of the connection.

A response has the number of its command, so responses may be sent in any order.  An exception is
sent as the name of its Java class, of which the client creates an instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import (
    RESULT_BUSY,
    RESULT_FORBIDDEN,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_UNACCEPTABLE,
    RESULT_UNAUTHORIZED,
)
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.message import DOOR
from tmqp_server.doors.port import SERVER_STOPS
from tmqp_server.doors.waiting import WaitingSession
from tmqp_server.engine.commands import Command as EngineCommand
from tmqp_wires.openwire import Command, ServerConnection
from tmqp_wires.openwire.commands import (
    ConnectionError_,
    ExceptionResponse,
    Response,
    Throwable,
)
from tmqp_wires.openwire.connection import Event, Fault
from tmqp_wires.openwire.messages import Message

__all__ = [
    "INVALID_CLIENT",
    "INVALID_DESTINATION",
    "INVALID_SELECTOR",
    "JMS",
    "OVER_LIMIT",
    "SECURITY",
    "AskedCommand",
    "CommandError",
    "RespondingSession",
    "fault_of_code",
]

#: Exceptions of JMS by the last part of their names.
JMS: Final = "JMSException"
INVALID_CLIENT: Final = "InvalidClientIDException"
INVALID_DESTINATION: Final = "InvalidDestinationException"
INVALID_SELECTOR: Final = "InvalidSelectorException"
OVER_LIMIT: Final = "ResourceAllocationException"
SECURITY: Final = "JMSSecurityException"

_WORDS: Final[dict[int, tuple[str, str]]] = {
    RESULT_UNAUTHORIZED: (SECURITY, "not allowed"),
    RESULT_FORBIDDEN: (SECURITY, "not allowed"),
    RESULT_NOT_FOUND: (INVALID_DESTINATION, "there is no such destination"),
    RESULT_UNACCEPTABLE: (JMS, "not possible for this destination"),
    RESULT_LIMIT_EXCEEDED: (OVER_LIMIT, "a limit is reached"),
    RESULT_NOT_IMPLEMENTED: (JMS, "not possible in a cluster"),
    RESULT_BUSY: (OVER_LIMIT, "the server is busy, or out of room"),
}
#: From this version on, clients of ActiveMQ use the package jakarta.jms.
_FIRST_JAKARTA: Final = 6
_LONGEST: Final = 2_000
_MOST_TOLD: Final = 100


def fault_of_code(code: int) -> tuple[str, str]:
    """The exception for a result code, and its text for people."""
    name, words = _WORDS.get(code, (JMS, "refused"))
    return name, f"{words} ({code})"


class CommandError(ValueError):
    """A command cannot be carried out; the text says why.

    :param name: the exception of JMS that the client gets.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


@final
class AskedCommand:
    """The token of a client's command: ``what`` names the command in exceptions, ``number`` is its
    number, 0 if the client wants no response, and ``left`` is the number of outstanding answers of
    the broker."""

    __slots__ = ("answered", "left", "number", "what")

    def __init__(self, what: str, number: int) -> None:
        self.what = what
        self.number = number
        self.left = 1
        self.answered = False


class RespondingSession(WaitingSession[Event]):
    """The writing part of a session.

    :param context: what all connections share.
    """

    def __init__(self, context: OpenwireContext, number: int, now: float) -> None:
        super().__init__(number, DOOR, context.new_id, context.limits.max_early_bytes)
        self._context = context
        self._wire = ServerConnection(now, context.wire_format)
        self._unanswered = 0
        self._jms = "javax.jms."
        #: What was reported about commands that want no response.
        self._told: set[str] = set()
        #: Why the connection ends: nothing more is read, and it is closed when everything was sent.
        self._ending = ""

    def _agreed(self) -> None:
        """Find out whether the client uses the package ``javax.jms`` or ``jakarta.jms``."""
        major = self._wire.peer.provider_version.partition(".")[0]
        if major.isdigit() and int(major) >= _FIRST_JAKARTA:
            self._jms = "jakarta.jms."

    def _asked(self, what: str, command: Command) -> AskedCommand:
        """Make the token of a command, and pause reading if too many responses are outstanding."""
        if not command.response_required:
            return AskedCommand(what, 0)
        self._unanswered += 1
        if self._unanswered >= self._context.limits.max_unanswered:
            self.reads = False
        return AskedCommand(what, command.command_id)

    def _respond(self, asked: AskedCommand, response: Response) -> None:
        if asked.answered:
            return
        asked.answered = True
        if not asked.number:
            return
        self._say(response)
        self._unanswered -= 1
        if not self.reads and not self._ending:
            self.reads = True
            self.hurried = True

    def _settle(self, asked: AskedCommand) -> None:
        """Note one answer of the broker; after the last one, send the response."""
        asked.left -= 1
        if asked.left <= 0:
            self._respond(asked, Response(asked.number))

    def _fail(self, asked: AskedCommand, name: str, text: str) -> None:
        """Report that a command failed.  If it wants no response, the client gets a
        ConnectionError, once for each text."""
        if asked.answered:
            return
        message = f"{asked.what}: {text}"[:_LONGEST]
        if asked.number:
            exception = self._throwable(name, message)
            self._respond(asked, ExceptionResponse(asked.number, exception))
            return
        asked.answered = True
        if message not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(message)
            self._say(ConnectionError_(self._throwable(name, message), self._client_id[:64]))

    def _throwable(self, name: str, text: str) -> Throwable:
        return Throwable(name if "." in name else self._jms + name, text)

    def _say(self, command: Command) -> None:
        self.outbound_bytes += self._wire.send(command)

    def _say_bytes(self, data: bytes) -> None:
        self._wire.send_bytes(data)
        self.outbound_bytes += len(data)

    def data_to_send(self) -> bytes:
        """Everything queued."""
        self.outbound_bytes = 0
        return self._wire.data_to_send()

    def close(self, reason: str, now: float) -> Sequence[EngineCommand]:
        """Close from this side.  The client gets the reason unless the server stops: clients with
        ``failover:`` reconnect then."""
        if not self.closed and reason != SERVER_STOPS:
            self._wire.send_refusal(reason)
            self.outbound_bytes += 1
        return self.end(reason)

    # -- what WaitingSession asks ---------------------------------------------------------------

    def text_bytes_of(self, event: Event) -> int:
        """About how many bytes a command takes."""
        if isinstance(event, Message) and event.kept is not None:
            return len(event.kept.raw)
        return len(event.text) if isinstance(event, Fault) else _LONGEST

    def forget_input(self) -> None:
        """Drop an incomplete frame."""
        self._wire.forget()

    def held_bytes(self) -> int:
        """Bytes of an incomplete frame, and of input that waits for the decision about the
        client."""
        return self._wire.held_bytes + super().held_bytes()
