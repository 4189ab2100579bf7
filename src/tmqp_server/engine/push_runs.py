"""Owns runs: pushes, or answers, in a row about one queue, taken as one where that is possible.

Theory of operation.  A queue that keeps nothing and waits for nobody (a broadcast, or any queue
without acknowledges whose consumers take everything at once) has nothing to do for each message but
to count it.  So a door may bring messages that differ in id and payload only as one ``PushRun``,
and :class:`Runs` takes all of them in one go where each would be sent at once and forgotten: one or
two ``DeliverRun`` carry them out, and the books say what they would say after as many pushes.

Where a single one of them might need another look (a limit that is near, somebody who must be told
or asked, a consumer that is slow) nothing is taken in one go: the run is *divided*, and its pushes
are carried out one by one as if they had come so.

Answers (``AcknowledgeRun``) are looked at one by one in any case; what they have in common, from
whom they are and about which queue, is looked up once.
"""

from __future__ import annotations

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery import ALLOW, HOOK_ACKNOWLEDGED
from tmqp_server.engine.events import MESSAGE_PRODUCED
from tmqp_server.engine.limits import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.queues import Queue
from tmqp_server.engine.run_commands import AcknowledgeRun, PushRun
from tmqp_server.engine.run_effects import DeliverRun
from tmqp_server.engine.sessions import Session
from tmqp_server.engine.workflow import Workflow

__all__ = ["Runs"]


class Runs:
    """Takes runs."""

    __slots__ = ("_core", "_max_queue_bytes", "_max_total_bytes", "_workflow")

    def __init__(self, core: Core, workflow: Workflow) -> None:
        self._core = core
        self._workflow = workflow
        self._max_queue_bytes = core.limits.max_queue_bytes
        self._max_total_bytes = core.limits.max_total_bytes

    def push(self, run: PushRun, now: float) -> bool:
        """Carry a run out in one go; False, with nothing done, when that is not possible.

        The same as so many pushes: each would enter the queue, be sent to all and be settled before
        the next, so at no time would there be more than the largest beside what is there already.
        """
        core = self._core
        session = core.sessions.get(run.session)
        channel = core.channels.find(run.channel)
        queue = None if channel is None else channel.queues.get(run.queue_id)
        if session is None or queue is None:
            return False
        largest = run.largest
        if (
            largest > queue.size_cap
            or queue.count + queue.spilled >= queue.count_cap
            or queue.bytes + largest > self._max_queue_bytes
            or core.total_bytes + largest + MESSAGE_OVERHEAD_BYTES > self._max_total_bytes
            or not self._passes_through(queue)
        ):
            return False
        self._send(queue, session, run, now)
        return True

    def _passes_through(self, queue: Queue) -> bool:
        """Whether each message would be sent to all at once and be done with."""
        core = self._core
        audience = queue.audience
        options = queue.options
        discipline = queue.discipline
        return (
            queue.plain
            and audience.stalled == 0
            and audience.special == 0
            and not options.request_acknowledge
            and not options.hide_client_names
            and not queue.saves
            and not queue.bounded
            and queue.receipt is ALLOW
            and not core.shares_decisions
            and not core.notices.mask & MESSAGE_PRODUCED
            and not (queue.high_count or queue.regular_count or queue.spilled)
            and (
                not discipline.stores
                or (
                    discipline.sends
                    and queue.held is None
                    and not queue.runnable
                    and len(audience.subscriptions) > 0
                )
            )
        )

    def _send(self, queue: Queue, session: Session, run: PushRun, now: float) -> None:
        """What Intake, Workflow and Sender do for each message, and Outcomes at its end."""
        core = self._core
        audience = queue.audience
        count = run.count
        sequence = queue.sequence + 1
        queue.sequence += count
        session.pushed += count
        queue.received += count
        queue.last_received = now
        queue.accepted += count
        queue.removed += count
        if audience.stale:
            audience.refresh()
        consumers = len(audience.everyone)
        if consumers == 0:
            queue.dropped += count
            return
        out = core.out
        name = queue.channel_name
        out.append(DeliverRun(audience.first, run, session, sequence, name, True))
        if consumers > 1:
            out.append(DeliverRun(audience.rest, run, session, sequence, name, False))
        audience.fanouts += count
        queue.sent += count
        queue.deliveries += count * consumers
        queue.last_sent = now
        queue.done += count

    # --- Answers ---------------------------------------------------------------------------------

    def acknowledge(self, run: AcknowledgeRun, now: float, budget: int, most_effects: int) -> bool:
        """Take answers, each with this budget, to the end or until one has much to follow: somebody
        can take messages again, or there are so many effects.

        False, with nothing done, when each must be looked at by itself.
        """
        core = self._core
        session = core.sessions.get(run.session)
        channel = core.channels.find(run.channel)
        queue = None if channel is None else channel.queues.get(run.queue_id)
        if session is None or queue is None or session.node or queue.hooks & HOOK_ACKNOWLEDGED:
            return False
        workflow = self._workflow
        ids = run.message_ids
        at = run.at
        while at < len(ids):
            core.budget = budget
            workflow.take_answer(queue, session, ids[at], True, None, now)
            at += 1
            if core.awake or len(core.out) >= most_effects:
                break
        run.at = at
        return True
