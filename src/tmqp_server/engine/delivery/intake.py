"""Pushes and acknowledgements that are handled one by one."""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    NACK_ERROR,
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
    RESULT_UNAUTHORIZED,
)
from tmqp_server.engine.books import DEFERRAL_BYTES, MESSAGE_OVERHEAD_BYTES, QUEUE_OPTIONS
from tmqp_server.engine.commands import (
    Acknowledge,
    Command,
    Extend,
    Miss,
    Push,
    PushExtras,
    Release,
)
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.awaited_copies import NACK_STORAGE, CopyingStep
from tmqp_server.engine.delivery.direct import Direct
from tmqp_server.engine.delivery.holding import HeldPush, Holding
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import Confirm, Deliver, Effect, Reply
from tmqp_server.engine.flights import LOOK_AHEAD_S
from tmqp_server.engine.model.message import (
    MARK_CONFIRMED,
    MARK_DONE_CONFIRMS,
    MARK_HIGH,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session

__all__ = ["Intake", "refused_push", "take_extras"]

#: The reason of the negative confirm of a refused push, by result code.
_REFUSAL_REASONS: Final[dict[int, str]] = {
    RESULT_BAD_REQUEST: "bad-request",
    RESULT_UNAUTHORIZED: "unauthorized",
    RESULT_NOT_FOUND: "not-found",
    RESULT_UNACCEPTABLE: "unacceptable",
    RESULT_LIMIT_EXCEEDED: "limit-exceeded",
    RESULT_BUSY: "busy",
}


def refused_push(command: Push, code: int, reason: str = "") -> list[Effect]:
    """The answer to a refused push (F75, contradiction 22), whatever refuses it.

    A Reply, which every producer gets, and a negative Confirm if the producer requested a confirm,
    because it may wait only for that.  ``silent`` pushes are not answered (F82).

    :param reason: of the negative confirm; empty to derive it from the result code.
    """
    extras = command.extras
    if extras is not None and extras.silent:
        return []
    refusal: list[Effect] = [Reply(command.session, command.wire, code)]
    if command.wants_confirm:
        refusal.append(
            Confirm(
                command.session,
                command.message_id,
                command.channel,
                command.queue_id,
                False,
                reason or _REFUSAL_REASONS.get(code, NACK_ERROR),
                True,
                "",
                None,
            )
        )
    return refusal


def take_extras(queue: Queue, message: Message, extras: PushExtras, now: float) -> float:
    """Apply the extras of a push to its message; return the message's timeout in seconds, 0 for
    none.

    If the queue does not want ids to be created, the message loses the one that the door created
    (F41); then its producer gets no confirm, because it could not assign it.
    """
    timeout_s = queue.message_timeout_s
    if extras.expires_in_ms > 0:
        timeout_s = extras.expires_in_ms / 1000
    if extras.delay_ms > 0:
        message.rarely().due_at = now + extras.delay_ms / 1000
    if extras.done_confirms:
        message.marks |= MARK_DONE_CONFIRMS
    if extras.nameless is not None and not queue.options.use_message_id:
        message.message_id = ""
        message.wire = extras.nameless
        message.marks |= MARK_CONFIRMED
        queue.expect_nameless()
    return timeout_s


def _is_deferred(command: Push) -> bool:
    return command.extras is not None and command.extras.delay_ms > 0


class Intake:
    """Handles single pushes and acknowledgements."""

    __slots__ = (
        "_core",
        "_direct",
        "_directory",
        "_outcomes",
        "_workflow",
        "holding",
    )

    def __init__(
        self,
        core: Core,
        directory: Directory,
        outcomes: Outcomes,
        workflow: Workflow,
        direct: Direct,
    ) -> None:
        self._core = core
        self._direct = direct
        self._directory = directory
        self._outcomes = outcomes
        self._workflow = workflow
        #: The held pushes.
        self.holding = Holding(core)

    def push(self, command: Push, now: float) -> None:
        """Push a message into a queue, or refuse it (F74, F75)."""
        core = self._core
        session = core.sessions.get(command.session)
        if session is None:
            core.count_stray()
            return
        channel = core.channels.by_spelling.get(command.channel)
        queue = None if channel is None else channel.queues.get(command.queue_id)
        if queue is None:
            queue = self._directory.open_queue_of(command)
            if queue is None:
                core.tally.count_refusal(self._directory.problem)
                core.out.extend(refused_push(command, self._directory.problem))
                return
        size = command.size
        if (
            size > queue.size_cap
            or queue.count + queue.spilled >= queue.count_cap
            or (
                (queue.saves or queue.bounded)
                and (queue.disk_bytes + size > queue.disk_cap or not core.has_room_to_save(size))
            )
            or queue.bytes + size > queue.byte_cap
            or core.message_bytes + core.state_bytes + size + MESSAGE_OVERHEAD_BYTES
            > core.most_bytes
        ):
            problem = self._outcomes.make_room(queue, size, _is_deferred(command))
            if problem != RESULT_OK:
                if self.holding.hold(command, session, queue, problem, now):
                    return
                self._outcomes.count_refused(queue, problem)
                busy = problem == RESULT_BUSY and not core.has_room_to_save(size)
                core.out.extend(refused_push(command, problem, NACK_STORAGE if busy else ""))
                return
        if command.extras is not None:
            problem = self.problem_of_deferral(queue, command, 0, 0)
            if problem != RESULT_OK:
                self._outcomes.count_refused(queue, problem)
                core.out.extend(refused_push(command, problem))
                return
        self._enter(queue, command, session, now)

    def wake_held(self, now: float) -> None:
        """Try held pushes again."""
        holding = self.holding
        left: list[HeldPush] = []
        for first in holding.due(now):
            held: HeldPush | None = first
            while held is not None:
                if self._core.budget <= 0:
                    left.append(held)  # else the same pushes would be tried for ever (seed 9979)
                    break
                if not holding.begin(held):
                    break
                self.push(held.push, now)
                held = holding.end(held)
        holding.rest(left)

    def problem_of_deferral(self, queue: Queue, command: Push, more: int, more_bytes: int) -> int:
        """Return 0 if a message may be deferred as its push requests, or if it requests no delay;
        otherwise the result code to answer.  *more* messages of *more_bytes* bytes will be deferred
        before it."""
        extras = command.extras
        if extras is None or extras.delay_ms <= 0:
            return RESULT_OK
        core = self._core
        limits = core.limits
        if extras.delay_ms > limits.max_delay_ms:
            return core.short_of("max_delay_ms")
        if len(queue.deferred) + more >= limits.max_deferred_per_queue:
            return core.short_of("max_deferred_per_queue")
        size = queue.deferred.size() + more_bytes + command.size
        if size > limits.max_deferred_bytes_per_queue:
            return core.short_of("max_deferred_bytes_per_queue")
        if not core.has_room(command.size + MESSAGE_OVERHEAD_BYTES + DEFERRAL_BYTES):
            return core.short_of("max_total_bytes", RESULT_BUSY)
        if queue.spills_deferred():
            is_soon = extras.delay_ms / 1000 <= LOOK_AHEAD_S
            others = queue.deferred.in_memory() + more
            if not queue.keeps_deferred(others, -more_bytes, is_soon):
                return self._problem_of_spilling(queue, more_bytes + command.size)
        return RESULT_OK

    def _problem_of_spilling(self, queue: Queue, size: int) -> int:
        """The same for a message that would be on disk only."""
        if not self._core.has_room_to_save(size):
            return self._core.short_of_storage()
        if queue.disk_bytes + size > queue.disk_cap:
            return self._core.short_of(QUEUE_OPTIONS)
        return RESULT_OK

    def route(self, command: Push, session: Session) -> bool:
        """Push a router's copy of a message into a queue; return False if the queue is missing or
        has no room (F124)."""
        queue = self._directory.find_queue(command.channel, command.queue_id)
        if queue is None:
            return False
        problem = self._outcomes.make_room(queue, command.size, _is_deferred(command))
        if problem != RESULT_OK:
            self._outcomes.count_refused(queue, problem)
            return False
        self._enter(queue, command, session, self._core.now)
        return True

    def _enter(self, queue: Queue, command: Push, session: Session, now: float) -> None:
        marks = MARK_HIGH if command.high_priority else 0
        if command.wants_confirm:
            marks |= MARK_WANTS
        sequence = queue.sequence + 1
        queue.sequence = sequence
        message = Message(
            command.message_id,
            session.origin,
            command.channel,
            command.queue_id,
            command.size,
            command.wire,
            marks,
            sequence,
        )
        timeout_s = queue.message_timeout_s
        extras = command.extras
        if extras is not None:
            timeout_s = take_extras(queue, message, extras, now)
        if timeout_s > 0.0 and queue.discipline.stores:
            message.rarely().expires_at = now + timeout_s
        session.pushed += 1
        if extras is not None and extras.counts_receivers:
            self._receive_counting(queue, message, now)
        elif extras is not None and extras.awaits_copies and queue.feeds is not None:
            step = CopyingStep(self._core, queue, message)
            self._workflow.receive(queue, message, now)
            step.received()
        else:
            self._workflow.receive(queue, message, now)

    def _receive_counting(self, queue: Queue, message: Message, now: float) -> None:
        """Accept a message, and count the consumers that get it immediately.

        Most messages are confirmed before they are sent, so the number is added to the confirm
        afterwards.
        """
        out = self._core.out
        before = len(out)
        rare = message.rarely()
        rare.receivers = 0
        self._workflow.receive(queue, message, now)
        confirm = rare.held_confirm
        for effect in out[before:]:
            if isinstance(effect, Deliver):
                if effect.message is message:
                    rare.receivers += len(effect.sessions)
            elif (
                isinstance(effect, Confirm)
                and effect.message_id == message.message_id
                and effect.session == message.producer.number
            ):
                confirm = effect
        if isinstance(confirm, Confirm):
            confirm.receivers = rare.receivers

    def acknowledge(self, command: Acknowledge, now: float) -> None:
        """Handle a consumer's answer; if its queue does not exist, it is only counted (F95)."""
        core = self._core
        session = core.sessions.get(command.session)
        if session is None:
            core.count_stray()
            return
        channel = core.channels.by_spelling.get(command.channel)
        if channel is None:
            channel = core.channels.find(command.channel)
        if channel is None and self._direct.pass_acknowledge(command, session):
            return  # it belonged to a direct message, without the mark that says so (F116)
        queue = None if channel is None else channel.queues.get(command.queue_id)
        if queue is None:
            core.counters.unknown_acks += 1
            session.unknown_acks += 1
            self._workflow.refuse_answer(None, session, command.message_id, command.request)
            return
        self._workflow.acknowledge(queue, session, command, now)

    def release(self, command: Command, session: Session) -> None:
        """Return a delivery that a consumer releases."""
        assert isinstance(command, Release)
        core = self._core
        queue = self._directory.find_queue(command.channel, command.queue_id)
        if queue is None:
            core.counters.unknown_acks += 1
            session.unknown_acks += 1
            self._workflow.refuse_answer(None, session, command.message_id, command.request)
            return
        self._workflow.release(queue, session, command, core.now)

    def extend(self, command: Command, session: Session) -> None:
        """Change the time that a consumer has to answer."""
        assert isinstance(command, Extend)
        core = self._core
        queue = self._directory.find_queue(command.channel, command.queue_id)
        code = RESULT_NOT_FOUND
        if command.timeout_ms < 1:
            code = RESULT_BAD_REQUEST
        elif command.timeout_ms > core.limits.max_acknowledge_timeout_ms:
            code = core.reached("max_acknowledge_timeout_ms")
        elif queue is not None:
            code = self._workflow.extend(queue, session, command, core.now)
        core.reply(session, command.request, code)

    def miss(self, command: Command, session: Session) -> None:
        """Count deliveries that a door did not pass on."""
        assert isinstance(command, Miss)
        queue = self._directory.find_queue(command.channel, command.queue_id)
        if queue is not None:
            self._workflow.miss(queue, command.count)
