"""Positions of readers: moving cursors, and answering only when that is saved.

A cursor is in its queue as soon as it is moved, and on disk a little later.  An answer that reports
its position waits for that, even if its own command has changed nothing: if the storage has not
answered an earlier change yet, the position is sent to the storage once more.
"""

from __future__ import annotations

from tmqp.constants import RESULT_BAD_REQUEST, RESULT_OK
from tmqp.names import fault_of_name
from tmqp_server.engine.books import PENDING_BYTES, cursor_bytes
from tmqp_server.engine.core import Core
from tmqp_server.engine.effects import ForgetCursors, StoreCursors
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.snapshots import CursorSnapshot
from tmqp_server.engine.reading.asking import StorageQuestions

__all__ = ["Cursors"]


class Cursors:
    """Moves the cursors of queues."""

    __slots__ = ("_core", "_questions")

    def __init__(self, core: Core, questions: StorageQuestions) -> None:
        self._core = core
        self._questions = questions

    def problem_of_name(self, name: str) -> int:
        """0 if a cursor may have this name, otherwise the result code to answer."""
        most = self._core.limits.max_name_bytes
        if not name or len(name.encode("utf-8", "surrogatepass")) > most or fault_of_name(name):
            return RESULT_BAD_REQUEST
        return RESULT_OK

    def problem_of_new(self, queue: Queue, name: str) -> int:
        """0 if a queue has, or may have, this cursor, otherwise the result code to answer."""
        if name in queue.cursors:
            return RESULT_OK
        if len(queue.cursors) >= self._core.limits.max_cursors_per_queue:
            return self._core.reached("max_cursors_per_queue")
        return self.problem_of_memory(1, name)

    def problem_of_memory(self, count: int, name: str) -> int:
        """0 if there is memory for so many more cursors, otherwise the result code to answer."""
        size = count * (cursor_bytes(name) + PENDING_BYTES)
        if self._core.has_room(size):
            return RESULT_OK
        return self._core.no_room()

    def restore(self, queue: Queue, name: str, sequence: int) -> None:
        """Set a cursor without saving it."""
        if name not in queue.cursors:
            self._core.charge(cursor_bytes(name))
        queue.cursors[name] = sequence

    def place(self, queue: Queue, name: str, sequence: int) -> None:
        """Set a cursor; the answer of this command waits until that is saved."""
        self.place_all([queue], name, [sequence])

    def place_all(self, queues: list[Queue], name: str, sequences: list[int]) -> None:
        """Set the cursors of many queues, in one change."""
        for at in range(len(queues)):
            self.restore(queues[at], name, sequences[at])
        self._keep(queues, name, sequences)

    def _keep(self, queues: list[Queue], name: str, sequences: list[int]) -> None:
        if not queues:
            return
        core = self._core
        keys = [queue.key for queue in queues]
        core.keep(StoreCursors(keys, name, sequences), len(keys) - 1)
        for queue in queues:
            queue.cursor_ticket = core.last_ticket

    def advance(self, queue: Queue, name: str, sequence: int) -> None:
        """Move a cursor forward, or leave it; the answer waits until its position is saved."""
        self.advance_all([queue], name, [sequence])

    def advance_all(self, queues: list[Queue], name: str, sequences: list[int]) -> None:
        """Move the cursors of many queues forward, or leave them, in one change."""
        moved: list[Queue] = []
        further: list[int] = []
        for at in range(len(queues)):
            queue, sequence = queues[at], sequences[at]
            if sequence > queue.cursors.get(name, -1):
                self.restore(queue, name, sequence)  # at once: a queue may be listed twice
                moved.append(queue)
                further.append(sequence)
        self._keep(moved, name, further)
        self.wait_for(queues, name)

    def wait_for(self, queues: list[Queue], name: str) -> None:
        """Let the answer of this command wait until the positions of the cursors are saved."""
        core = self._core
        if core.change:
            return  # the answer waits anyway, and for all earlier changes, too
        if core.storage_ok and not core.tickets:
            return  # nothing is being saved
        for queue in queues:
            if queue.cursor_ticket in core.tickets or not core.storage_ok:
                self.place(queue, name, queue.cursors[name])
                return

    def remove(self, queues: list[Queue], name: str) -> None:
        """Remove a cursor from queues; the answer of this command waits until that is saved."""
        core = self._core
        keys: list[int] = []
        for queue in queues:
            del queue.cursors[name]
            core.refund(cursor_bytes(name))
            if queue.fleeting:
                core.note_emptied(queue)
            keys.append(queue.key)
        core.keep(ForgetCursors(keys, name), len(keys) - 1)
        for queue in queues:
            queue.cursor_ticket = core.last_ticket

    def snapshot(self, queue: Queue, name: str) -> CursorSnapshot:
        """The position of a cursor."""
        incarnation = self._questions.incarnation(queue)
        return CursorSnapshot(name, queue, incarnation, queue.cursors[name])
