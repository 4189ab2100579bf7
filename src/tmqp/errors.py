"""The exception tree of the protocol: whose fault it was, and what to answer.

::

    TmqpError
    +-- LocalProtocolError     you called the library wrongly; nothing was sent or changed
    +-- RemoteProtocolError    the peer broke a rule; carries the rule's slug and the answer's code
        +-- AbuseError         the peer exceeded a limit; counted separately, as it may be an attack

A ``RemoteProtocolError`` is never *raised* out of :meth:`tmqp.Connection.receive`: it travels
inside a :class:`tmqp.ProtocolViolated` event, so that no peer can raise an exception in an I/O
loop.
"""

from __future__ import annotations

from tmqp.constants import ResultCode

__all__ = ["AbuseError", "LocalProtocolError", "RemoteProtocolError", "TmqpError"]


class TmqpError(Exception):
    """Base class of all errors of this library."""


class LocalProtocolError(TmqpError):
    """The calling program asked for something the protocol or the connection's state forbids.

    Nothing was sent and no state changed; the connection is as usable as before.
    """


class RemoteProtocolError(TmqpError):
    """The peer broke a rule of the protocol.

    :param rule: a stable slug naming the rule, as listed in ``docs/protocol.md``
        (``"utf8"``, ``"hello-expected"`` ...).
    :param message: one human-readable sentence.
    :param code: the result code for an answer (400 unless a rule has another one).
    """

    def __init__(self, rule: str, message: str, code: int = ResultCode.BAD_REQUEST) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[str, str, int]]:
        return (type(self), (self.rule, self.message, self.code))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rule!r}, {self.message!r}, {int(self.code)})"


class AbuseError(RemoteProtocolError):
    """The peer exceeded one of :class:`tmqp.Limits`; nothing beyond the limit was buffered."""

    def __init__(self, rule: str, message: str, code: int = ResultCode.LIMIT_EXCEEDED) -> None:
        super().__init__(rule, message, code)
