"""The pulls of a client: those in progress, their messages, and how they ended.

The connection distinguishes a pull's messages from others (F107); this module finds the inbox of
the caller.  The connection still knows an abandoned pull, so that its late messages are dropped and
not taken for deliveries; the server redelivers those that need an answer.
"""

from __future__ import annotations

from tmqp.constants import RESULT_OK, NoContent
from tmqp.errors import TmqpError
from tmqp.events import PullCompleted, PullMessageReceived
from tmqp.frames import Frame
from tmqp_client._core.inbox import Inbox, withdraw
from tmqp_client._core.outcomes import Counters, Lost, Outcome
from tmqp_client.config import ClientLimits
from tmqp_client.errors import OperationFailed, PullRefused

__all__ = ["PullTable", "PullUnderWay"]

#: The reasons with which a pull ends normally.
_GOOD_ENDS = (NoContent.END.value, NoContent.EMPTY.value)


class PullUnderWay:
    """One pull: its messages are in ``inbox``; ``reason`` or ``error`` is set when it is over."""

    __slots__ = ("asked", "error", "inbox", "over", "reason", "request_id")

    def __init__(self, request_id: str, asked: str, inbox: Inbox[Frame]) -> None:
        self.request_id = request_id
        self.asked = asked
        self.inbox = inbox
        self.reason = ""
        self.error: TmqpError | None = None
        self.over = False


class PullTable:
    """The pulls in progress, by the id of their request."""

    __slots__ = ("_limits", "_pulls")

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._pulls: dict[str, PullUnderWay] = {}

    def __len__(self) -> int:
        return len(self._pulls)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._pulls

    def begin(self, request_id: str, asked: str) -> PullUnderWay:
        """Add a pull whose request was sent."""
        limits = self._limits
        inbox: Inbox[Frame] = Inbox(
            limits.consumer_messages, limits.consumer_bytes, limits.overflow_factor
        )
        pull = PullUnderWay(request_id, asked, inbox)
        self._pulls[request_id] = pull
        return pull

    def abandon(self, pull: PullUnderWay) -> int:
        """Stop waiting for a pull; return the number of messages that had arrived and are
        dropped."""
        self._pulls.pop(pull.request_id, None)
        return pull.inbox.clear()

    def take(self, event: PullMessageReceived, counters: Counters, outcomes: list[Outcome]) -> None:
        """Put a message into the inbox of its pull; drop it if the pull was abandoned."""
        pull = self._pulls.get(event.request_id)
        if pull is None:
            counters.dropped += 1
            return
        counters.delivered += 1
        pull.inbox.put(event.frame, len(event.frame.raw))
        _tell(pull.inbox, outcomes)

    def end(self, event: PullCompleted, outcomes: list[Outcome]) -> None:
        """Note that a pull is over, and how."""
        pull = self._pulls.pop(event.request_id, None)
        if pull is None:
            return
        pull.over = True
        pull.reason = event.reason
        code = event.frame.content_type
        if not event.reason and code != RESULT_OK:
            pull.error = OperationFailed(pull.asked, pull.request_id, code)  # an original's 404
        elif not event.reason:
            pull.error = PullRefused(pull.asked, pull.request_id, "it is a cache queue")
        elif event.reason not in _GOOD_ENDS:
            pull.error = PullRefused(pull.asked, pull.request_id, event.reason)
        _tell(pull.inbox, outcomes)

    def withdraw(self, key: tuple[str, int, str]) -> int:
        """As ``Mailboxes.withdraw``."""
        return sum([withdraw(pull.inbox, key) for pull in self._pulls.values()])

    def awaited(self) -> bool:
        """Whether a pull waits for further messages, because all that arrived were taken."""
        return any(len(pull.inbox) == 0 for pull in self._pulls.values())

    def crowded(self, awaited: bool) -> bool:
        """Whether an inbox is congested, or, while an answer is ``awaited``, overfull."""
        for pull in self._pulls.values():
            if pull.inbox.congested and (not awaited or pull.inbox.overfull):
                return True
        return False

    def lose(self, lost: Lost) -> tuple[int, list[Inbox[Frame]]]:
        """Drop the messages that can no longer be answered because the connection is lost; return
        their number, and the inboxes of the pulls."""
        dropped = 0
        inboxes: list[Inbox[Frame]] = []
        for pull in self._pulls.values():
            pull.over = True
            pull.error = lost.error()
            dropped += len(pull.inbox.extract(_is_owed_an_answer))
            inboxes.append(pull.inbox)
        self._pulls.clear()
        return dropped, inboxes


def _is_owed_an_answer(frame: Frame) -> bool:
    return frame.pending_acknowledge


def _tell(inbox: Inbox[Frame], outcomes: list[Outcome]) -> None:
    if not inbox.fresh:
        inbox.fresh = True
        outcomes.append(inbox)
