"""The writes in the log of recent writes that are not yet in the database, merged into one batch.

Theory of operation.  Writes are added in order, and only their combined result is kept: a message
that is settled here is dropped, unless its queue retains settled messages.  So a message that is
consumed within some seconds never costs more than its place in the log.  The last sequence of each
queue is kept nevertheless, because sequences are never reused.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.blocks import StoredMessage
from tmqp_server.storage.port import Note, StoreBatch
from tmqp_server.storage.stored_runs import StoredRun, find_run

__all__ = ["GatheredWrites"]

#: The memory of a message without its body, in bytes.
_MESSAGE_BYTES: Final = 300
_RUN_BYTES: Final = 700
_SETTLED_BYTES: Final = 100


@final
class GatheredWrites:
    """Several writes, merged.

    ``weight`` is roughly their size in memory, in bytes; ``tops`` has the last sequence of each
    queue that was written to.
    """

    __slots__ = ("_appended", "_notes", "_runs", "_settled", "tops", "weight")

    def __init__(self) -> None:
        self._appended: dict[int, dict[int, StoredMessage]] = {}
        self._runs: dict[int, list[StoredRun]] = {}
        self._settled: dict[int, dict[int, None]] = {}
        self._notes: dict[tuple[int, int], Note] = {}
        self.tops: dict[int, int] = {}
        self.weight = 0

    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not (self.tops or self._settled or self._notes)

    def touches(self, key: int) -> bool:
        """Whether there is anything to write for a queue."""
        return key in self.tops or key in self._settled

    def reserve(self, key: int, sequence: int) -> None:
        """Note that a sequence of a queue is used."""
        if sequence > self.tops.get(key, 0):
            self.tops[key] = sequence

    def add(self, batch: StoreBatch, known: dict[int, int]) -> None:
        """Add a write.

        :param known: for each queue the last sequence that the database has, or -1 if the queue
            retains settled messages; other queues are skipped.
        """
        for key, runs in batch.runs.items():
            if runs and key in known:
                self._append_runs(key, runs, known[key])
        for key, messages in batch.appended.items():
            if messages and key in known:
                self._append(key, messages)
        for key, sequences in batch.settled.items():
            if key in known:
                self._settle(key, sequences, known[key])
        for note in batch.notes:
            if note.key in known:
                self._settled.setdefault(note.key, {})
                self._notes[note.key, note.sequence] = note

    def _append(self, key: int, messages: list[StoredMessage]) -> None:
        appended = self._appended.get(key)
        if appended is None:
            appended = self._appended[key] = {}
        weight = 0
        for message in messages:
            appended[message.sequence] = message
            weight += len(message.body)
        self.weight += weight + _MESSAGE_BYTES * len(messages)
        self.reserve(key, messages[-1].sequence)
        settled = self._settled.get(key)
        if settled:
            # One that is appended once more is owed once more, and nothing was noted about it.
            for message in messages:
                settled.pop(message.sequence, None)
        if self._notes:
            for message in messages:
                self._notes.pop((key, message.sequence), None)

    def _append_runs(self, key: int, runs: list[StoredRun], last: int) -> None:
        """Add runs.  A run stays whole if its queue drops settled messages and the database has
        none of it.
        """
        there = self._runs.get(key)
        if there is None:
            there = self._runs[key] = []
        for run in runs:
            if last < 0 or run.first <= max(last, self.tops.get(key, 0)):
                messages = run.messages()
                if messages:
                    self._append(key, messages)
                self.reserve(key, run.last)
                continue
            run.weight = len(run.bodies) + _RUN_BYTES
            self.weight += run.weight
            there.append(run)
            self.reserve(key, run.last)

    def _settle(self, key: int, sequences: list[int], last: int) -> None:
        settled = self._settled.get(key)
        if settled is None:
            settled = self._settled[key] = {}
        appended = self._appended.get(key) if last >= 0 else None
        runs = self._runs.get(key) if last >= 0 else None
        if runs:
            sequences = self._settle_runs(key, runs, sequences)
        if appended is None:
            settled.update(dict.fromkeys(sequences))
            self.weight += _SETTLED_BYTES * len(sequences)
            return
        for sequence in sequences:
            message = appended.pop(sequence, None)
            if message is not None:
                self.weight -= len(message.body) + _MESSAGE_BYTES
            if message is None or sequence <= last:
                settled[sequence] = None
                self.weight += _SETTLED_BYTES

    def _settle_runs(self, key: int, runs: list[StoredRun], sequences: list[int]) -> list[int]:
        """Settle messages that are in runs; return the other sequences."""
        others: list[int] = []
        run: StoredRun | None = None
        ended = False
        for sequence in sequences:
            if run is None or sequence < run.first or sequence > run.last:
                run = find_run(runs, sequence)
            if run is None:
                others.append(sequence)
                continue
            run.settle(sequence)
            if run.is_over:
                ended = True
        if ended:
            left: list[StoredRun] = []
            for each in runs:
                if each.is_over:
                    self.weight -= each.weight
                else:
                    left.append(each)
            self._runs[key] = left
        return others

    def batch(self) -> StoreBatch:
        """Return everything as one batch."""
        made = StoreBatch()
        for key, appended in self._appended.items():
            if appended:
                messages = list(appended.values())
                messages.sort(key=_sequence)
                made.appended[key] = messages
        for key, runs in self._runs.items():
            if runs:
                made.runs[key] = list(runs)
        made.unroll()
        for key, settled in self._settled.items():
            if settled:
                made.settled[key] = list(settled)
        made.notes = list(self._notes.values())
        return made


def _sequence(message: StoredMessage) -> int:
    return message.sequence
