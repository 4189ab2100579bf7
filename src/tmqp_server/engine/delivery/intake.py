"""Owns what comes in message by message: pushes and acknowledges, one by one or in batches."""

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
from tmqp_server.engine.commands import Acknowledge, Batch, Command, Push, SessionCommand
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.direct import Direct
from tmqp_server.engine.delivery.outcomes import NACK_STORAGE, Outcomes
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import Confirm, Effect, Reply
from tmqp_server.engine.limits import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.model.message import MARK_CONFIRMED, MARK_HIGH, MARK_WANTS, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session

__all__ = ["Intake", "refused_push"]

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
    """What answers a push that is refused (F75, contradiction 22), by whomever.

    A Reply, which every producer gets, and a negative Confirm when it asked to be told, because a
    producer that waits for the confirm looks at nothing else.  Copies are left out in silence
    (F82).

    :param reason: of the negative confirm, when the result code does not say it.
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


class Intake:
    """Takes pushes and acknowledges."""

    __slots__ = (
        "_core",
        "_direct",
        "_directory",
        "_max_queue_bytes",
        "_max_total_bytes",
        "_outcomes",
        "_workflow",
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
        self._max_queue_bytes = core.limits.max_queue_bytes
        self._max_total_bytes = core.limits.max_total_bytes

    def push(self, command: Push, now: float) -> None:
        """Put a message into a queue, or refuse it (F74, F75)."""
        core = self._core
        session = core.sessions.get(command.session)
        if session is None:
            core.count_stray()
            return
        channel = core.channels.by_spelling.get(command.channel)
        queue = None if channel is None else channel.queues.get(command.queue_id)
        if queue is None:
            extras = command.extras
            changes = None if extras is None else extras.changes
            queue = self._directory.open_queue(command.channel, command.queue_id, changes)
            if queue is None:
                core.out.extend(refused_push(command, self._directory.problem))
                return
        size = command.size
        if (
            size > queue.size_cap
            or queue.count + queue.spilled >= queue.count_cap
            or ((queue.saves or queue.bounded) and not core.has_room_to_save(size))
            or queue.bytes + size > self._max_queue_bytes
            or core.message_bytes + core.state_bytes + size + MESSAGE_OVERHEAD_BYTES
            > self._max_total_bytes
        ):
            problem = self._outcomes.problem_of_push(queue, size)
            if problem != RESULT_OK:
                self._outcomes.count_refused(queue)
                busy = problem == RESULT_BUSY and not core.has_room_to_save(size)
                core.out.extend(refused_push(command, problem, NACK_STORAGE if busy else ""))
                return
        self._enter(queue, command, session, now)

    def route(self, command: Push, session: Session) -> bool:
        """Put a router's copy of a message into a queue that is there and has room (F124)."""
        queue = self._directory.find_queue(command.channel, command.queue_id)
        if queue is None:
            return False
        if self._outcomes.problem_of_push(queue, command.size) != RESULT_OK:
            self._outcomes.count_refused(queue)
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
            if extras.expires_in_ms > 0:
                timeout_s = extras.expires_in_ms / 1000
            if extras.delay_ms > 0:
                message.rarely().due_at = now + extras.delay_ms / 1000
            if extras.nameless is not None and not queue.options.use_message_id:
                self._take_id_off(queue, message, extras.nameless)
        if timeout_s > 0.0 and queue.discipline.stores:
            message.rarely().expires_at = now + timeout_s
        session.pushed += 1
        self._workflow.receive(queue, message, now)

    def _take_id_off(self, queue: Queue, message: Message, wire: object) -> None:
        """Let a message be without the id that was made for it (F41).

        Its producer is told nothing, for he could not tell what it is about.
        """
        message.message_id = ""
        message.wire = wire
        message.marks |= MARK_CONFIRMED
        queue.expect_nameless()

    def acknowledge(self, command: Acknowledge, now: float) -> None:
        """Take a consumer's answer; one for a queue that does not exist is counted (F95)."""
        core = self._core
        session = core.sessions.get(command.session)
        if session is None:
            core.count_stray()
            return
        channel = core.channels.by_spelling.get(command.channel)
        if channel is None:
            channel = core.channels.find(command.channel)
        if channel is None and self._direct.pass_acknowledge(command, session):
            return  # of a direct message, without the mark that says so (F116)
        queue = None if channel is None else channel.queues.get(command.queue_id)
        if queue is None:
            core.counters.unknown_acks += 1
            session.unknown_acks += 1
            return
        self._workflow.acknowledge(queue, session, command, now)

    # --- Batches ---------------------------------------------------------------------------------

    def batch(self, command: Command, session: Session) -> None:
        """Apply pushes and acknowledges at once, or none of them.

        Queues that the batch created by itself stay, even when it is refused in the end.
        """
        assert isinstance(command, Batch)
        queues: list[Queue] = []
        code = self._problem_of_batch(command, session, queues)
        if code == RESULT_OK:
            now = self._core.now
            following = iter(queues)
            for each in command.commands:
                if isinstance(each, Push):
                    # Not through push(): room was checked, and nothing may be refused now.
                    self._enter(next(following), each, session, now)
                elif isinstance(each, Acknowledge):
                    self.acknowledge(each, now)
        if command.request is not None:
            self._core.out.append(Reply(session.number, command.request, code))

    def _problem_of_batch(self, batch: Batch, session: Session, queues: list[Queue]) -> int:
        """0 when all can be applied, else the first problem; fills in the pushes' queues."""
        if len(batch.commands) > self._core.limits.max_batch_length:
            return RESULT_LIMIT_EXCEEDED
        for each in batch.commands:
            if not isinstance(each, SessionCommand) or each.session != session.number:
                return RESULT_UNACCEPTABLE
            if not isinstance(each, (Push, Acknowledge)):
                return RESULT_UNACCEPTABLE
        more: dict[tuple[str, int], int] = {}
        more_bytes: dict[tuple[str, int], int] = {}
        all_bytes = 0
        for each in batch.commands:
            if not isinstance(each, Push):
                continue
            changes = None if each.extras is None else each.extras.changes
            queue = self._directory.open_queue(each.channel, each.queue_id, changes)
            if queue is None:
                return self._directory.problem
            key = (queue.channel_name, queue.queue_id)
            there = more.get(key, 0)
            bytes_there = more_bytes.get(key, 0)
            problem = self._outcomes.problem_of_push(queue, each.size, there, bytes_there)
            if problem != RESULT_OK:
                return problem
            more[key] = there + 1
            more_bytes[key] = bytes_there + each.size
            all_bytes += each.size + MESSAGE_OVERHEAD_BYTES
            queues.append(queue)
        if self._core.total_bytes + all_bytes > self._core.limits.max_total_bytes:
            return RESULT_BUSY
        return RESULT_OK
