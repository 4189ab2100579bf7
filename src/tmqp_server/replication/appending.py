"""One append, from the first attempt to a known outcome.

Theory of operation.  An attempt that is not answered may have been carried out.  It is repeated
with the same number and the same bytes until the log answers, so there are two outcomes and no
third one.  *Done*: the log says so, or it has these very bytes under that number, from an earlier
attempt.  *Fenced*: the claim is no longer valid, or the number has other bytes.  A fenced server
does not know whether an earlier attempt was carried out, and need not know: it ends without
answering anybody, and its clients repeat what was not confirmed.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.backoff import Backoff
from tmqp_server.storage.log import Appended, AppendEntry, Fenced, LogAnswer, LogEntry, Misplaced

__all__ = ["ASKING", "DONE", "FENCED", "Appending"]

#: States.
ASKING: Final = 0
DONE: Final = 1
FENCED: Final = 2

#: Pauses between attempts that were not answered, in seconds.
_PAUSES: Final = Backoff(0.02, 0.5, 0.0)


@final
class Appending:
    """Appends an entry to the log, with the claim of an epoch.

    Attributes: ``state``; ``request``, the request to the log while the state is ``ASKING``;
    ``reason``, why it is ``FENCED``.
    """

    __slots__ = ("_failures", "reason", "request", "state")

    def __init__(self, epoch: int, entry: LogEntry) -> None:
        self.request = AppendEntry(epoch, entry.number, entry.data)
        self.state: int = ASKING
        self.reason = ""
        self._failures = 0

    def answered(self, answer: LogAnswer) -> None:
        """Handle the log's answer to an attempt, the last one or an earlier one."""
        if self.state != ASKING:
            return
        number = self.request.number
        if isinstance(answer, Appended):
            self.state = DONE
        elif isinstance(answer, Misplaced):
            if answer.data == self.request.data:
                self.state = DONE
            else:
                self.state = FENCED
                self.reason = f"entry {number} of the log has another content"
        else:
            assert isinstance(answer, Fenced), "an append has three answers"
            self.state = FENCED
            other = answer.leader
            by = "no server leads" if other is None else f"{other.node} leads"
            self.reason = f"the claim has ended and {by}"

    def unanswered(self) -> float:
        """Handle that the log has not answered; return the pause before the next attempt, in
        seconds.
        """
        self._failures += 1
        return _PAUSES.delay_s(self._failures)
