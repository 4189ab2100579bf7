"""What must be on the disk of those who write in transactions and batches, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tmqp_sim.disk import Disk
from tmqp_sim.epochs import CHANNEL, EpochWriter, complaints, found_on
from tmqp_sim.movers import FROM, MOVES, TO, Mover, misplaced
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["check_epochs", "check_moves", "check_staged"]


class _Run(Stage, Protocol):
    """One run, with its disk and those who write."""

    disk: Disk

    @property
    def writers(self) -> Sequence[EpochWriter]: ...

    @property
    def movers(self) -> Sequence[Mover]: ...


def check_epochs(run: _Run) -> None:
    """Of each epoch all is on the disk, once, or nothing.

    :raises Violation: when that is not so.
    """
    for queue in run.broker.queues():
        if queue.channel_name != CHANNEL:
            continue
        ids = found_on(run.disk.store, queue.key)
        for writer in run.writers:
            wrong = list(complaints(ids, writer.answered))
            if wrong:
                raise Violation("epochs", "\n".join(wrong))


def check_moves(run: _Run) -> None:
    """Of each item either it is on the disk or what was made of it.

    :raises Violation: when that is not so.
    """
    there: dict[int, list[str]] = {FROM: [], TO: []}
    for queue in run.broker.queues():
        if queue.channel_name == MOVES:
            there[queue.queue_id] = found_on(run.disk.store, queue.key)
    for mover in run.movers:
        wrong = list(misplaced(there[FROM], there[TO], mover.confirmed, mover.moved))
        if wrong:
            raise Violation("moves", "\n".join(wrong))


def check_staged(run: _Run) -> None:
    """Nothing is put aside but for transactions that are open.

    :raises Violation: when something is, or something of theirs is not.
    """
    staged: list[int] = []
    for transaction in run.broker._transactions._open.values():
        if transaction.under_way:
            return  # somebody pushes at the end
        staged += transaction.stagings
    there = run.disk.store.staged
    if sorted(staged) != sorted(there):
        raise Violation("storage", f"{there} are put aside, for transactions {staged}")
