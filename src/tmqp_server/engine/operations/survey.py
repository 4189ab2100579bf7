"""``Survey``: the counters of the whole broker, collected in portions.

Theory of operation.  A walk over ten thousand queues takes as long as a thousand messages, so it is
divided: the caller calls :meth:`Survey.go_on` until it is done, and lets others work in between.
The broker changes meanwhile.  So that no sum is ever smaller than that of the previous survey, the
counters of removed objects are read at the beginning, and each queue that is removed before the
survey has reached it reports its counters (:class:`SurveyInProgress`).  Sessions are listed at the
beginning and read later, whether or not they still exist.

*Bounded.* Nothing is done for all queues in one step: the channels are listed at the beginning,
which copies pointers, and the queues of each when it has its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp_server.engine.core import Core, PendingRun
from tmqp_server.engine.model.ages import oldest_since
from tmqp_server.engine.model.channel_names import matches
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.counters import QueueCounters
from tmqp_server.engine.model.exemplars import Exemplar
from tmqp_server.engine.model.histograms import Histogram
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.totals import SessionTotals

__all__ = ["QueueChoice", "QueueSample", "Survey", "levels_of"]

#: Queues, or sessions, of one portion.
_PORTION: Final = 125


@final
class QueueChoice:
    """A choice of queues to show one by one: a filter of channel names (F53), and a queue id or -1
    for all."""

    __slots__ = ("pattern", "queue_id")

    def __init__(self, pattern: str, queue_id: int = -1) -> None:
        self.pattern = pattern
        self.queue_id = queue_id


@final
class QueueSample:
    """One queue, or a sum of several; then ``channel`` is empty.

    ``oldest_age_s`` is how long the first message in memory has waited, 0 if none waits.
    """

    __slots__ = (
        "channel",
        "queue_id",
        "waiting",
        "on_disk",
        "deferred",
        "unanswered",
        "taken_bytes",
        "oldest_age_s",
        "consumers",
        "counters",
    )

    def __init__(self, channel: str, queue_id: int) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.waiting = 0
        self.on_disk = 0
        self.deferred = 0
        self.unanswered = 0
        self.taken_bytes = 0
        self.oldest_age_s = 0.0
        self.consumers = 0
        self.counters = QueueCounters()

    def add(self, queue: Queue, counters: QueueCounters, now: float) -> None:
        """Add the present state of a queue, and its counters."""
        self.counters.add(counters)
        if queue.closed:
            return
        self.waiting += queue.high_count + queue.regular_count
        self.on_disk += queue.spilled
        self.deferred += len(queue.deferred)
        self.unanswered += queue.in_flight()
        self.taken_bytes += queue.bytes
        since = oldest_since(queue)
        if since is not None:
            self.oldest_age_s = max(self.oldest_age_s, now - since)
        self.consumers += len(queue.audience.subscriptions)


def levels_of(core: Core) -> dict[str, int]:
    """The present numbers of everything except queues and messages."""
    unsynced = 0
    for pending in core.tickets.values():
        unsynced += len(pending.messages) if isinstance(pending, PendingRun) else 1
    counters = core.counters
    return {
        "channels": len(core.channels.by_key),
        "sessions": core.client_count(),
        "message_bytes": core.message_bytes,
        "state_bytes": core.state_bytes,
        "unsynced_bytes": core.unsynced_bytes,
        "unsynced_messages": unsynced,
        "confirms_skipped": counters.confirms_skipped,
        "dead_lettered": counters.dead_lettered,
        "stray_commands": counters.stray_commands,
        "directs_skipped": counters.directs_skipped,
        "answers_dropped": counters.answers_dropped,
        "events_skipped": core.notices.skipped,
        "withheld": counters.withheld,
        **{name: len(table) for name, table in core.tables.items()},
    }


@final
class Survey:
    """One survey; its numbers are complete once :meth:`go_on` has returned True.

    :param choices: the queues to show one by one.
    :param most: the limit of their number; the others are summed in :meth:`rest`.

    Attributes: ``total``, the sum of all queues; ``queues``, their number, ``without`` of which
    have waiting messages but no consumer; ``samples`` of chosen queues, and ``left_out``, the
    number of those in :meth:`rest`; ``doors``, the sums of sessions by the name of their door;
    ``confirms`` and ``negative_confirms``; ``refusals`` by result code; ``limits_reached`` by the
    limit; ``published``, messages for routers; ``latency``, and ``exemplars`` by its buckets, empty
    unless they are kept.
    """

    __slots__ = (
        "confirms",
        "doors",
        "exemplars",
        "latency",
        "left_out",
        "limits_reached",
        "negative_confirms",
        "published",
        "queues",
        "refusals",
        "samples",
        "total",
        "without",
        "_allowed",
        "_at",
        "_channel",
        "_channels",
        "_choices",
        "_core",
        "_most",
        "_next",
        "_progress",
        "_queues",
        "_session",
        "_sessions",
        "_sum",
    )

    def __init__(self, core: Core, choices: Sequence[QueueChoice], most: int) -> None:
        self.queues = 0
        self.without = 0
        self.left_out = 0
        self.total = QueueSample("", -1)
        self.total.counters.add(core.channels.gone)
        self._progress = core.channels.begin_survey()
        self.samples: list[QueueSample] = []
        tally = core.tally
        self.doors: dict[str, SessionTotals] = {
            door: totals.copy() for door, totals in tally.ended.items()
        }
        self.confirms = tally.confirms
        self.negative_confirms = tally.negative_confirms
        self.refusals: dict[int, int] = dict(tally.refusals)
        self.limits_reached: dict[str, int] = dict(core.limits_reached)
        self.published: int = tally.published
        self.latency: Histogram = tally.latency.copy()
        kept = tally.exemplars
        self.exemplars: list[Exemplar | None] = [] if kept is None else kept.last[:]
        self._core = core
        self._choices = choices
        self._most = most
        self._sum: QueueSample | None = None
        self._channel = ""
        self._allowed: list[int] = []
        self._channels: list[Channel] = list(core.channels.by_key.values())
        self._queues: list[Queue] = []
        self._sessions: list[Session] = list(core.sessions.values())
        #: The next channel, the next queue of the previous channel, and the next session.
        self._next = 0
        self._at = 0
        self._session = 0

    def go_on(self, now: float, portion: int = _PORTION) -> bool:
        """Examine so many further queues or sessions; return True if those were the last.

        A channel counts as one more queue.
        """
        left = portion
        while left > 0:
            if self._at < len(self._queues):
                self._look(self._queues[self._at], now)
                self._at += 1
            elif self._next < len(self._channels):
                self._queues = list(self._channels[self._next].queues.values())
                self._at = 0
                self._next += 1
            else:
                break
            left -= 1
        if self._next < len(self._channels) or self._at < len(self._queues):
            return False
        if self._channels:
            self._channels = []
            self._end_with_queues()
        last = min(self._session + left, len(self._sessions))
        for session in self._sessions[self._session : last]:
            self._count(session)
        self._session = last
        return last == len(self._sessions)

    def _end_with_queues(self) -> None:
        self._queues = []
        self._at = 0
        self.total.counters.add(self._progress.left)
        self._core.channels.end_survey(self._progress)

    def _look(self, queue: Queue, now: float) -> None:
        counters = queue.counters
        if counters is self._core.channels.gone:
            return  # it was removed, and has reported its counters
        self._progress.seen.add(queue.key)
        self.total.add(queue, counters, now)
        if queue.closed:
            return
        self.queues += 1
        waits = queue.high_count or queue.regular_count or queue.spilled
        if waits and not queue.audience.subscriptions:
            self.without += 1
        if self._choices and self._is_chosen(queue):
            self._sample(queue, counters, now)

    def _is_chosen(self, queue: Queue) -> bool:
        """Whether a queue must be shown; the queues of a channel must follow each other."""
        name = queue.channel_name
        if name != self._channel:
            self._channel = name
            self._allowed = [each.queue_id for each in self._choices if matches(name, each.pattern)]
        return -1 in self._allowed or queue.queue_id in self._allowed

    def _sample(self, queue: Queue, counters: QueueCounters, now: float) -> None:
        if len(self.samples) < self._most:
            sample = QueueSample(queue.channel_name, queue.queue_id)
            self.samples.append(sample)
        else:
            self.left_out += 1
            if self._sum is None:
                self._sum = QueueSample("", -1)
            sample = self._sum
        sample.add(queue, counters, now)

    def rest(self) -> QueueSample | None:
        """The sum of the chosen queues beyond the limit; None if there are none."""
        return self._sum

    def _count(self, session: Session) -> None:
        totals = self.doors.get(session.door)
        if totals is None:
            totals = self.doors[session.door] = SessionTotals()
        totals.add(session)
        if session.alive:
            if session.parent is None:
                totals.sessions += 1
            totals.subscriptions += len(session.subscriptions)

    # --- What is read at once --------------------------------------------------------------------

    def levels(self) -> dict[str, int]:
        """The present numbers of everything else."""
        return levels_of(self._core)
