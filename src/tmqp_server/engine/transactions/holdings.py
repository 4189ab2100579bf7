"""The contents of transactions: in memory, or staged by the storage.

Theory of operation.  Pushed messages are collected in segments, in memory, as long as all
transactions together are small.  Then each full segment is passed to the storage, which stages it,
and only its counts stay here; if memory is short, each push is passed on, whether its segment is
full or not.  Contents in memory count in the broker's account (F8).
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import RESULT_BUSY, RESULT_OK
from tmqp_server.engine.commands import MessageSet, Segment
from tmqp_server.engine.core import Core
from tmqp_server.engine.effects import DropStaged, StageSegment
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.transactions.staging import (
    MESSAGE_SET_BYTES,
    STAGED_BYTES,
    PendingStage,
    Staged,
    Transaction,
)

__all__ = ["Holdings"]

#: Up to one part in so many of the memory for transactions, the storage stages nothing; up to twice
#: as much, only full segments.
_KEPT_SHARE: Final = 4


class Holdings:
    """The contents of all transactions: ``held`` bytes, of which ``memory`` are in memory."""

    __slots__ = ("held", "memory", "_core", "_last")

    def __init__(self, core: Core) -> None:
        self._core = core
        self.held = 0
        self.memory = 0
        self._last = 0

    def problem(self, transaction: Transaction, message_sets: list[MessageSet]) -> int:
        """0 if a transaction can take these message sets, otherwise the result code to answer."""
        core = self._core
        limits = core.limits
        more = 0
        for message_set in message_sets:
            more += message_set.weight + MESSAGE_SET_BYTES
        if transaction.held + more > limits.max_transaction_bytes:
            return core.reached("max_transaction_bytes")
        if self.held + more > limits.max_transactions_bytes:
            return core.reached("max_transactions_bytes", RESULT_BUSY)
        if self.memory + more > limits.max_transactions_memory_bytes:
            return core.reached("max_transactions_memory_bytes", RESULT_BUSY)
        return RESULT_OK if core.has_room(more) else core.no_room()

    def add(self, transaction: Transaction, queue: Queue, message_set: MessageSet) -> None:
        """Add a message set, and have its segment staged by the storage if there is enough in
        memory."""
        core = self._core
        staged = transaction.staged.get(queue.key)
        if staged is None:
            staged = Staged(queue)
            transaction.staged[queue.key] = staged
            core.claim(queue)
        segment = staged.add(message_set)
        held = message_set.weight + MESSAGE_SET_BYTES
        transaction.held += held
        self.held += held
        transaction.memory += held
        self.memory += held
        core.charge(held)
        transaction.count += message_set.count
        transaction.size += message_set.size
        kept = core.limits.max_transactions_memory_bytes // _KEPT_SHARE
        if self.memory > kept and (segment.is_full() or self.memory > 2 * kept):
            self._put_aside(transaction, segment)

    def _put_aside(self, transaction: Transaction, segment: Segment) -> None:
        core = self._core
        self._last += 1
        segment.staging = self._last
        pending = PendingStage(transaction, segment)
        transaction.stagings.append(segment.staging)
        transaction.under_way += 1
        transaction.latest = pending
        core.last_ticket += 1
        core.tickets[core.last_ticket] = pending
        effect = StageSegment(segment.staging, segment)
        effect.ticket = core.last_ticket
        core.out.append(effect)

    def is_aside(self, pending: PendingStage) -> None:
        """Record that the storage has staged a segment: only its counts stay in memory."""
        kept = STAGED_BYTES + len(pending.segment.highs)
        self._free(pending.transaction, pending.memory() - kept)
        pending.segment.message_sets = []

    def empty(self, transaction: Transaction) -> None:
        """Release the contents of a transaction, in memory and in the storage."""
        self.held -= transaction.held
        transaction.held = 0
        self._free(transaction, transaction.memory)
        if transaction.stagings:
            self._core.out.append(DropStaged(transaction.stagings))
            transaction.stagings = []
        for key in transaction.staged:
            self._core.release_claim(key)
        transaction.staged = {}

    def _free(self, transaction: Transaction, size: int) -> None:
        transaction.memory -= size
        self.memory -= size
        self._core.refund(size)
