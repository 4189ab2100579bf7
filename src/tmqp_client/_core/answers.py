"""Matches answers to requests: by message id (F44, F78), pongs in order (F37).

An answer counts only if its sender could have sent it.  The server's own answers have no source; an
acknowledgement of a consumer, which the server forwards to a producer (F79), is addressed to the
channel.  A message that has a source and is addressed to this client comes from another client, and
settles only requests to that client.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp.constants import RESULT_OK, TYPE_ACKNOWLEDGE
from tmqp.events import AcknowledgeReceived, ResponseReceived
from tmqp.frames import Frame
from tmqp_client._core.outcomes import Counters
from tmqp_client._core.pending import Kind, Pending, PendingTable
from tmqp_client._core.requests import Request
from tmqp_client.errors import NegativeAcknowledge, OperationFailed

__all__ = ["Answers", "may_answer_push"]

#: Refused pushes that are remembered, because a server may answer one twice: with a code and with a
#: negative acknowledgement.  It is as many as a server can have in progress in a few reads.
_MAX_ECHOES: Final = 1_024


class Answers:
    """Requests that are not answered yet, and the matching of arriving answers to them.

    Attributes to read: ``pendings``, ``pings``.
    """

    __slots__ = ("_counters", "_echoes", "pendings", "pings")

    def __init__(self, counters: Counters) -> None:
        self.pendings = PendingTable()
        #: None stands for a ping whose pong no caller awaits.
        self.pings: deque[Pending | None] = deque()
        self._counters = counters
        self._echoes: dict[str, None] = {}

    def take_acknowledge(self, event: AcknowledgeReceived, now: float) -> Pending | None:
        """Settle the entry that an acknowledgement answers; None if no entry awaits it."""
        pending = self.pendings.get(event.frame.message_id)
        reason = event.reason
        if pending is None or not pending.takes_acknowledge(reason is None):
            return None
        if not _may_answer(pending, event.frame):
            return None
        if reason is not None:
            pending.error = NegativeAcknowledge(pending.asked, pending.message_id, reason)
        return self.settle(pending, event.frame, now)

    def take_response(self, event: ResponseReceived, now: float) -> Pending | None:
        """Settle the entry that a response answers; None if no entry awaits it."""
        pending = self.pendings.get(event.frame.message_id)
        code = event.code
        if pending is None or not pending.takes_response(code == RESULT_OK):
            return None
        if not _may_answer(pending, event.frame):
            return None
        # A code from another client is passed on unchanged; the server's have no source (F44).
        if code != RESULT_OK and not (pending.kind == Kind.REQUEST and event.frame.source):
            body = event.frame.payload
            pending.error = OperationFailed(pending.asked, pending.message_id, code, body)
        return self.settle(pending, event.frame, now)

    def settle(self, pending: Pending, frame: Frame, now: float) -> Pending:
        """Settle an entry with its answer; the caller has already set ``error`` if it failed."""
        self.pendings.remove(pending)
        pending.answer = frame
        pending.settled_at = now
        if pending.kind == Kind.PUSH:
            if pending.error is None:
                self._counters.confirmed += 1
            else:
                self._counters.refused += 1
                if len(self._echoes) >= _MAX_ECHOES:
                    del self._echoes[next(iter(self._echoes))]
                self._echoes[pending.message_id] = None
        return pending

    def take_pong(self, now: float) -> Pending | None:
        """Settle the oldest ping; None if no caller awaits its pong."""
        pending = self.pings.popleft() if self.pings else None
        if pending is None or pending.done:
            return None
        self.pendings.remove(pending)
        pending.settled_at = now
        return pending

    def is_echo(self, message_id: str) -> bool:
        """Whether an answer that matches no entry is the second one to a refused push."""
        if message_id in self._echoes:
            del self._echoes[message_id]
            return True
        return False

    def cut(self) -> None:
        """Forget pings and refused pushes, because the connection has ended."""
        self.pings.clear()
        self._echoes.clear()


def may_answer_push(frame: Frame, channel: str) -> bool:
    """Whether the sender of an answer may answer a push into *channel*."""
    if not frame.source:
        return True
    return frame.type == TYPE_ACKNOWLEDGE and frame.target.lower() == channel.lower()


def _may_answer(pending: Pending, frame: Frame) -> bool:
    """Whether the sender of an answer may answer this request."""
    if pending.kind == Kind.PUSH:
        return may_answer_push(frame, pending.target)
    source = frame.source
    if not source:
        return True
    request = pending.request
    return isinstance(request, Request) and request.asks(source)
