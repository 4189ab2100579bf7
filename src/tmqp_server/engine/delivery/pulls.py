"""Pulls: messages from pull queues and cache queues, for clients that request them.

Theory of operation.  A pull from a pull queue reserves as many messages as wait there and are not
reserved for others (F107), and sends them one by one, each with the whole delivery workflow.  A
message that it takes out is sent or put back: a pull loses no message (F109).  Most pulls end
within their step.  A pull that cannot continue waits and keeps its reservation; it continues as
follows:

=======================  ==========================================================================
it waits for             and continues with
=======================  ==========================================================================
the rest of its messages ``Core.pulls``: the next ``on_deadline``, which is immediate
its session, which reads ``Sender`` when the session's state changes: an Unblock, an answer
slowly or answers late
an acknowledgement of    ``Queue.parked``: the first pull there continues when ``held`` is answered
the queue (F96)          or times out
messages on disk only    ``Queue.parked``, too: it continues when they have been read
=======================  ==========================================================================

A pull ends when it has sent the reserved messages, and earlier if no message waits any more
(cleared, expired, refused by the handler), if the queue is no longer a pull queue, or if the next
message is one that this pull has already put back: otherwise it would loop.  Clear runs after that
(F110), and also removes messages that other pulls have reserved; these pulls end with the messages
that they got.

A cache queue sends its one message for every request (F112).
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import RESULT_NOT_FOUND, RESULT_UNAUTHORIZED, NoContent
from tmqp_server.engine.books import PULL_BYTES
from tmqp_server.engine.commands import Command, Pull
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.effects import AnswerPull, EndPull, Reply
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.delivery import ALLOW, HOOK_BEGIN_SEND, HOOK_CAN_RECEIVE, Decision
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Pulling, Session

__all__ = ["Puller"]

_EMPTY: Final[str] = NoContent.EMPTY.value
_END: Final[str] = NoContent.END.value
_NO_CHANNEL: Final[str] = NoContent.NO_CHANNEL.value
_NO_QUEUE: Final[str] = NoContent.NO_QUEUE.value
_UNACCEPTABLE: Final[str] = NoContent.UNACCEPTABLE.value
_UNAUTHORIZED: Final[str] = NoContent.UNAUTHORIZED.value

#: Work units a pull gets in one turn.
_SHARE: Final = 100


class Puller:
    """Serves pulls."""

    __slots__ = ("_core", "_flights", "_outcomes", "_sender", "_workflow")

    def __init__(
        self,
        core: Core,
        flights: Flights,
        outcomes: Outcomes,
        sender: Sender,
        workflow: Workflow,
    ) -> None:
        self._core = core
        self._flights = flights
        self._outcomes = outcomes
        self._sender = sender
        self._workflow = workflow

    def pull(self, command: Command, session: Session) -> None:
        """Begin a pull, or answer why not (F105, F106)."""
        assert isinstance(command, Pull)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            self._refuse(session, command, _NO_CHANNEL)
            return
        queue = channel.queues.get(command.queue_id)
        if queue is None:
            self._refuse(session, command, _NO_QUEUE)
            return
        channel.audience.used = True
        joined = channel.key in session.subscriptions
        if queue.discipline.pulled and queue.discipline.replaces:
            self._read_cache(queue, session, command, joined)
            return
        reason = self._problem(queue, session, command, joined)
        if reason:
            self._refuse(session, command, reason)
            return
        pulling = Pulling(
            session,
            queue,
            command.request,
            min(command.count, queue.waiting_count() + queue.spilled - queue.reserved),
            command.newest_first,
            command.clear_high,
            command.clear_regular,
            command.info,
        )
        queue.reserved += pulling.count
        pulling.memory = PULL_BYTES + command.size
        self._core.charge(pulling.memory)
        session.pulls.append(pulling)
        self._go_on_with(pulling, self._core.now, 0)

    def _refuse(self, session: Session, command: Pull, reason: str) -> None:
        self._core.out.append(EndPull(session.number, command.request, reason))

    def _problem(self, queue: Queue, session: Session, command: Pull, joined: bool) -> str:
        """Why a pull from a queue that is not a cache cannot begin; empty if it can."""
        limits = self._core.limits
        if not queue.discipline.pulled:
            return _UNACCEPTABLE
        if not joined:
            return _UNAUTHORIZED
        if not 1 <= command.count <= limits.max_pull_count:
            return _UNACCEPTABLE
        if queue.waiting_count() + queue.spilled <= queue.reserved:
            return _EMPTY
        if len(session.pulls) >= limits.max_pulls_per_session:
            self._core.reached("max_pulls_per_session")
            return _UNACCEPTABLE
        if not self._core.has_room_for_client(PULL_BYTES + command.size):
            self._core.no_room()
            return _UNACCEPTABLE
        return ""

    # --- Pull queues -----------------------------------------------------------------------------

    def go_on(self, now: float) -> None:
        """Continue pulls with half of the step's budget; the rest is for queues."""
        core = self._core
        floor = core.budget // 2
        pulls = core.pulls
        while pulls and core.budget > floor:
            pulling = pulls.popleft()
            pulling.runnable = False
            if not pulling.over:
                self._go_on_with(pulling, now, max(core.budget - _SHARE, floor))

    def _go_on_with(self, pulling: Pulling, now: float, floor: int) -> None:
        """Send messages until all reserved ones are sent, the pull must wait, or the budget is down
        to *floor*."""
        core = self._core
        session = pulling.session
        queue = pulling.queue
        assert isinstance(queue, Queue)
        while pulling.left and queue.discipline.pulled and not queue.discipline.replaces:
            message = queue.look(pulling.newest_first)
            if queue.spilled:
                core.refill(queue)
                if message is None or (queue.high_tail is not None and not queue.high_count):
                    pulling.parked = True
                    queue.parked.append(pulling)
                    return
            if message is None or message.sequence in pulling.returned:
                break
            if session.blocked or session.full:
                core.release_pull(queue)
                return
            if queue.held is not None:
                pulling.parked = True
                queue.parked.append(pulling)
                return
            if core.budget <= floor:
                core.schedule_pull(pulling)
                return
            self._send_next(queue, pulling, now)
        self._finish(queue, pulling)

    def _send_next(self, queue: Queue, pulling: Pulling, now: float) -> None:
        message = queue.take_newest() if pulling.newest_first else queue.take()
        rare = message.rare
        if rare is not None and rare.expires_at <= now:
            self._core.budget -= 1
            # It has expired in this tick, and the timer has not run yet.
            if not self._outcomes.expire(queue, message):
                queue.put_last(message)
            return
        pulling.left -= 1
        queue.reserved -= 1
        put_backs = message.put_backs
        if not self._sender.send_pulled(queue, message, pulling, now):
            pulling.refused = True
            pulling.returned.add(message.sequence)
            if pulling.newest_first:
                queue.put_last(message)
            else:
                queue.put_first(message)
            self._core.arm(queue)
        elif message.put_backs > put_backs:
            pulling.returned.add(message.sequence)

    def _finish(self, queue: Queue, pulling: Pulling) -> None:
        """End a pull: answer it, clear what it asked to clear, and let the next one continue."""
        core = self._core
        self._drop(queue, pulling)
        reason = _END
        if pulling.index == 0:
            reason = _UNAUTHORIZED if pulling.refused else _EMPTY
        core.out.append(EndPull(pulling.session.number, pulling.request, reason))
        clears = pulling.clear_high or pulling.clear_regular
        if clears and queue.discipline.pulled and reason != _UNAUTHORIZED:
            self._workflow.clear(queue, pulling.clear_high, pulling.clear_regular, False)
        core.release_pull(queue)
        if queue.spilled:
            core.refill(queue)

    def _drop(self, queue: Queue, pulling: Pulling) -> None:
        """End a pull and release its reservation."""
        queue.reserved -= pulling.left
        pulling.left = 0
        pulling.over = True
        pulling.session.pulls.remove(pulling)
        self._core.refund(pulling.memory)

    def forget(self, session: Session) -> None:
        """End the pulls of a session that has ended, and release their reservations."""
        for pulling in session.pulls.copy():
            queue = pulling.queue
            assert isinstance(queue, Queue)
            if pulling.parked:
                queue.parked.remove(pulling)
            self._drop(queue, pulling)
            self._core.release_pull(queue)

    # --- Cache queues ----------------------------------------------------------------------------

    def _read_cache(self, queue: Queue, session: Session, command: Pull, joined: bool) -> None:
        """Answer with the latest message (F112)."""
        core = self._core
        if not joined:
            core.out.append(Reply(session.number, command.request, RESULT_UNAUTHORIZED))
            return
        message = queue.latest()
        # An expired message is not shown, even if the timer has not run yet.
        if message is None or message.expires_at <= core.now:
            core.out.append(Reply(session.number, command.request, RESULT_NOT_FOUND))
            return
        if not self._show(queue, message, session, command):
            core.out.append(Reply(session.number, command.request, RESULT_UNAUTHORIZED))

    def _show(self, queue: Queue, message: Message, session: Session, command: Pull) -> bool:
        """Send the message with the delivery workflow, except for the steps that would move it;
        return False if the handler does not allow this consumer."""
        outcomes = self._outcomes
        hooks = queue.hooks
        decision: Decision = ALLOW
        if hooks & HOOK_BEGIN_SEND:
            decision = outcomes.ask(HOOK_BEGIN_SEND, queue, message, None, None)
            outcomes.apply(queue, message, decision)
        if decision.allow and hooks & HOOK_CAN_RECEIVE:
            answer = outcomes.ask(HOOK_CAN_RECEIVE, queue, message, session, None)
            outcomes.apply(queue, message, answer)
            decision = answer
        if not decision.allow:
            return False
        self._core.out.append(AnswerPull(session.number, command.request, message))
        session.delivered += 1
        self._flights.sent(queue, message, 1, self._core.now)
        self._sender.decide_sent(queue, message, session, decision)
        return True
