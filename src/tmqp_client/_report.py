"""The report about a batch of pushes."""

from __future__ import annotations

from dataclasses import dataclass

from tmqp.errors import TmqpError

__all__ = ["BatchFailure", "BatchReport", "Pushed"]


@dataclass(frozen=True, slots=True)
class Pushed:
    """A message that was pushed: its id, and to how many consumers it was sent immediately.

    ``receivers`` is None if the server did not report it.
    """

    message_id: str
    receivers: int | None


@dataclass(frozen=True, slots=True)
class BatchFailure:
    """One message that was not confirmed: its index in the batch, from 0, its id and the reason."""

    index: int
    message_id: str
    error: TmqpError


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The result of a batch.

    ``sent`` messages were sent; if confirmation was requested, ``confirmed`` of them were
    acknowledged and ``failed`` were not.  ``failures`` has the first 1,000 failures.  ``resent``
    messages were sent more than once, because the connection was lost before their acknowledgement:
    each of them may be in the queue more than once, every time under the same message id;
    ``most_sends`` is the largest number of times that one was sent.  ``dropped`` messages were
    never queued, because of ``when_full``.
    """

    sent: int
    confirmed: int
    failed: int
    failures: tuple[BatchFailure, ...]
    resent: int = 0
    most_sends: int = 1
    dropped: int = 0
