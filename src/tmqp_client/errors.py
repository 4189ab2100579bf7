"""The client's errors.

::

    TmqpError
    +-- LocalProtocolError        an argument cannot be sent, and nothing was (tmqp's own error)
    +-- ClientError
        +-- ConnectFailed         the client could not connect
        |   +-- ConnectRefused    the server refused the client, with a result code
        +-- ConnectionLost        the connection was lost; all waiting calls raise this
        +-- ClientClosed          the program has closed the client
        +-- Refuse                raised by a handler: the message is refused
        +-- Unreadable            a payload does not fit the type of a handler or model
        +-- MalformedParts        the header Content-Parts does not fit the payload
        +-- WouldBlock            a message would have to wait, and must not
        +-- AlreadyConsuming      the channel and queue already have a consumer
        +-- AlreadyListening      this event, or the direct messages, have an iterator
        +-- AlreadyAcknowledged   the message was answered before
        +-- OperationError        an operation failed
        |   +-- OperationFailed      the server answered with a result code
        |   |   +-- OutOfRange       the requested messages are not available
        |   +-- NegativeAcknowledge  a push was refused, with a reason
        |   +-- PullRefused          a pull was refused, with a reason
        |   +-- OperationTimeout     no answer arrived in time
        +-- BatchFailed           some messages of a batch were not confirmed

Catch ``TmqpError`` to catch every error that this package raises on purpose.
"""

# ruff: noqa: N818 - they are named for what happened, as the specification calls it

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tmqp import models
from tmqp.constants import RESULT_MISDIRECTED_REQUEST, ResultCode
from tmqp.errors import TmqpError
from tmqp.models import ModelError
from tmqp_client._causes import cause

if TYPE_CHECKING:
    from tmqp.models import OffsetsInformation
    from tmqp_client._report import BatchReport

__all__ = [
    "AlreadyAcknowledged",
    "AlreadyConsuming",
    "AlreadyListening",
    "BatchFailed",
    "ClientClosed",
    "ClientError",
    "ConnectFailed",
    "ConnectRefused",
    "ConnectionLost",
    "MalformedParts",
    "NegativeAcknowledge",
    "OperationError",
    "OperationFailed",
    "OperationTimeout",
    "OutOfRange",
    "PullRefused",
    "Refuse",
    "Unreadable",
    "WouldBlock",
    "code_words",
]


def code_words(code: int) -> str:
    """A result code with its name, for people: ``404 not found`` (F18)."""
    try:
        return f"{int(code)} {ResultCode(code).name.lower().replace('_', ' ')}"
    except ValueError:
        return str(int(code))


class ClientError(TmqpError):
    """Base class of the client's errors."""


class ConnectFailed(ClientError):
    """The client could not connect to ``address``, for ``reason``.

    ``code`` is 581, send error, which is never sent (F18).
    """

    code: int = int(ResultCode.SEND_ERROR)

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.address, self.reason))


class ConnectRefused(ConnectFailed):
    """The server refused this client (F32, F33) with the result code ``code``.

    ``node_address`` is the address of the server of its group that serves clients, sent with 421;
    empty if it is unknown.
    """

    def __init__(self, address: str, code: int, node_address: str = "") -> None:
        words = f"the server refused: {code_words(code)}"
        if code == RESULT_MISDIRECTED_REQUEST:
            words = "the server is a standby" + (f", {node_address} leads" if node_address else "")
        super().__init__(address, words)
        self.code = code
        self.node_address = node_address

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.address, self.code, self.node_address))


class ConnectionLost(ClientError):
    """The connection ended, but this client did not close it.

    ``reason`` is a slug: ``end-of-stream``, ``terminated``, ``violation``, ``lifeless``,
    ``refused`` or ``transport``; ``rule`` names the broken rule if it was a violation.  ``code`` is
    581, send error, which is never sent (F18).
    """

    code: int = int(ResultCode.SEND_ERROR)

    def __init__(self, reason: str, message: str, rule: str = "") -> None:
        super().__init__(f"connection lost: {message}")
        self.reason = reason
        self.message = message
        self.rule = rule

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.reason, self.message, self.rule))


class ClientClosed(ClientError):
    """The client was closed on this side, or not opened yet; ``code`` is 581, send error (F18)."""

    code: int = int(ResultCode.SEND_ERROR)


class MalformedParts(ClientError):
    """The header Content-Parts of a message does not fit its payload."""


class Refuse(ClientError):
    """Raise it in a handler to refuse a message without retries: ``reason`` is the reason of the
    negative acknowledgement, or the payload of a response with ``code``."""

    def __init__(self, reason: str, code: int = int(ResultCode.UNACCEPTABLE)) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.reason, self.code))


class Unreadable(ClientError):
    """A payload cannot be converted to the requested type."""


class WouldBlock(ClientError):
    """The message would have to wait, and must not (``nowait``, ``when_full``); it was not sent."""


class AlreadyConsuming(ClientError):
    """This channel and queue already have a consumer; several tasks may iterate over it."""

    def __init__(self, channel: str, queue_id: int | None) -> None:
        where = f"channel {channel!r}" if queue_id is None else f"queue {queue_id} of {channel!r}"
        super().__init__(f"{where} has a consumer on this client already")
        self.channel = channel
        self.queue_id = queue_id

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.channel, self.queue_id))


class AlreadyListening(ClientError):
    """A client has at most one iterator over its direct messages, and one for each event."""


class AlreadyAcknowledged(ClientError):
    """The message was already answered: by a positive or negative acknowledgement, or a
    response."""


class OperationError(ClientError):
    """An operation failed.

    ``asked`` describes the request; ``message_id`` is the id under which it was sent.
    """

    def __init__(self, asked: str, message_id: str, outcome: str) -> None:
        super().__init__(f"{asked}: {outcome}")
        self.asked = asked
        self.message_id = message_id
        self.outcome = outcome

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.asked, self.message_id, self.outcome))


def _words_of(code: int, body: bytes) -> str:
    """The server's words about an invalid request, for example an invalid filter."""
    return body.decode("utf-8", "replace") if code == ResultCode.BAD_REQUEST else ""


class OperationFailed(OperationError):
    """The server answered with ``code``, a result code other than 0 (F18).

    ``body`` is the body of the answer, which is nearly always empty.
    """

    def __init__(self, asked: str, message_id: str, code: int, body: bytes = b"") -> None:
        why = _words_of(code, body) or cause(asked, code)
        words = f"the server answered {code_words(code)}"
        super().__init__(asked, message_id, f"{words}: {why}" if why else words)
        self.code = code
        self.body = body

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.asked, self.message_id, self.code, self.body))


class OutOfRange(OperationFailed):
    """The requested messages are no longer kept, or do not exist yet; :meth:`offsets` has the
    available ones."""

    def __init__(self, asked: str, message_id: str, code: int, body: bytes = b"") -> None:
        super().__init__(asked, message_id, code, body)
        try:
            there = self.offsets()
        except ModelError:  # the words of the code must do
            return
        kept = f"{there.earliest} to {there.latest}" if there.count else "nothing"
        self.outcome += f": sequences that can be read: {kept}"
        self.args = (f"{asked}: {self.outcome}",)

    def offsets(self) -> OffsetsInformation:
        """Return the sequences that can be read.

        :raises ModelError: if the server's answer is invalid.
        """
        return models.OffsetsInformation.from_json(self.body)


class NegativeAcknowledge(OperationError):
    """The queue or a consumer refused the message, for ``reason`` (F81)."""

    def __init__(self, asked: str, message_id: str, reason: str) -> None:
        super().__init__(asked, message_id, f"negative acknowledgement, reason {reason!r}")
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.asked, self.message_id, self.reason))


_PULL_REASONS: Final = {
    "Unacceptable": "only a queue with the status pull can be pulled from, a number of messages"
    " within the server's limits",
    "Unauthorized": "the client has not joined the channel, or has no right to pull",
    "No-Channel": "there is no such channel",
    "No-Queue": "there is no such queue",
    "Id-Required": "the request has no message id",
}


class PullRefused(OperationError):
    """The server refused a pull; ``reason`` is its word: ``Unacceptable``, ``Unauthorized``,
    ``No-Channel``, ``No-Queue``, ``Id-Required`` (F105)."""

    def __init__(self, asked: str, message_id: str, reason: str) -> None:
        why = _PULL_REASONS.get(reason)
        words = f"the server refused the pull: {reason}"
        super().__init__(asked, message_id, f"{words} ({why})" if why else words)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.asked, self.message_id, self.reason))


class OperationTimeout(OperationError):
    """No answer arrived within ``timeout_s`` seconds; the operation may have been carried out.

    ``code`` is 408, request timeout, which is never sent (F18).
    """

    code: int = int(ResultCode.REQUEST_TIMEOUT)

    def __init__(self, asked: str, message_id: str, timeout_s: float, hint: str = "") -> None:
        super().__init__(asked, message_id, f"no answer within {timeout_s:g} s{hint}")
        self.timeout_s = timeout_s
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.asked, self.message_id, self.timeout_s, self.hint))


class BatchFailed(ClientError):
    """Some messages of a batch were not confirmed; ``report`` lists them with the reasons."""

    def __init__(self, report: BatchReport) -> None:
        first = f"; the first: {report.failures[0].error}" if report.failures else ""
        super().__init__(f"{report.failed} of {report.sent} messages were not confirmed{first}")
        self.report = report

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.report,))
