"""Owns reading what is kept: offsets and ranges are asked of the storage, cursors stand here.

Theory of operation.  A reader is no consumer: it sees what is kept of a queue, settled or not, by
sequence, and takes nothing away.  Its *cursor* is a name and the last sequence it is done with; it
belongs to the queue, goes with it, and is kept by the storage, which lets go of what all cursors
have passed where the queue is kept for readers.

A question goes to the storage as an effect with a number and stays in a bounded table until the
answer comes; the bytes in the answer are opaque.  So a step stays short, however much is read.

*Incarnation.*  A sequence means something only in one queue.  A queue that is removed and created
anew has another key, and another data directory has another name; both together say which queue it
is, and a reader that says so gets 409 when it is another one.

*Opening at the earliest* pins first and looks then: the cursor is put before everything, the
storage says what the earliest is, and the cursor moves up to it.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_CONFLICT,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_OK,
    RESULT_REQUESTED_RANGE_NOT_SATISFIABLE,
)
from tmqp_server.engine.channels import matches
from tmqp_server.engine.commands import Command
from tmqp_server.engine.core import Core
from tmqp_server.engine.effects import Effect
from tmqp_server.engine.queues import Queue
from tmqp_server.engine.reading_commands import (
    CommitCursor,
    CursorCommand,
    KeptOffsets,
    ListCursors,
    ListOffsets,
    NameStore,
    OffsetsFound,
    OpenCursor,
    RangeRead,
    ReadRange,
    RemoveCursor,
    RestoreCursor,
)
from tmqp_server.engine.reading_effects import FindOffsets, ForgetCursor, ReadStored, StoreCursor
from tmqp_server.engine.sessions import Session
from tmqp_server.engine.snapshots import CursorSnapshot, OffsetsSnapshot

__all__ = ["Readers"]

#: What a block costs beyond its messages' bodies, if it has only one message.
_BLOCK_OVERHEAD_BYTES: Final = 128
_NOTHING: Final = KeptOffsets(0, 0, 0, 0, 0)


class _Asked:
    """A question to the storage: who waits, about which queues, and where each of them ended."""

    __slots__ = ("session", "request", "queues", "ends", "cursor")

    def __init__(
        self, session: Session, request: object, queues: list[Queue], cursor: str = ""
    ) -> None:
        self.session = session
        self.request = request
        self.queues = queues
        self.ends = [queue.appended for queue in queues]
        #: The cursor that is being opened.
        self.cursor = cursor


class Readers:
    """Serves those who read what is kept."""

    __slots__ = ("_asked", "_core", "_last", "_store_id")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._store_id = ""
        self._asked: dict[int, _Asked] = {}
        self._last = 0

    # --- Offsets and ranges ----------------------------------------------------------------------

    def channel_names(self, pattern: str) -> list[str]:
        """The names of the channels that pass a filter."""
        names: list[str] = []
        for channel in self._core.channels.by_key.values():
            if matches(channel.name, pattern):
                names.append(channel.name)
        return names

    def list_offsets(self, command: Command, session: Session) -> None:
        """Ask for the offsets of many queues at once."""
        assert isinstance(command, ListOffsets)
        core = self._core
        code = self._problem(session)
        queues: list[Queue] = []
        if code == RESULT_OK:
            for channel in core.channels.by_key.values():
                if not matches(channel.name, command.filter):
                    continue
                if command.visible is not None and channel.name not in command.visible:
                    continue
                for queue in channel.queues.values():
                    if command.queue_id is None or command.queue_id == queue.queue_id:
                        queues.append(queue)
                if len(queues) > core.limits.max_queues_per_read:
                    code = RESULT_LIMIT_EXCEEDED
                    break
        if code != RESULT_OK:
            core.reply(session, command.request, code)
            return
        asked = _Asked(session, command.request, queues)
        self._ask(asked, FindOffsets(self._last + 1, [queue.key for queue in queues]))

    def read_range(self, command: Command, session: Session) -> None:
        """Ask for what is kept of a queue."""
        assert isinstance(command, ReadRange)
        core = self._core
        code = self._problem(session)
        queue = self._queue(command.channel, command.queue_id)
        if code == RESULT_OK:
            code = self._problem_of(queue, command.incarnation)
        if command.first < 0 or command.last < 0 or command.limit < 0 or command.max_bytes < 0:
            code = RESULT_BAD_REQUEST
        if code != RESULT_OK or queue is None:
            core.reply(session, command.request, code)
            return
        end = queue.appended
        first = command.first
        last = min(command.last, end) if command.last else end
        if first == end + 1:
            core.reply(session, command.request, RESULT_OK, b"")  # nothing new: it costs no read
            return
        limits = core.limits
        most_bytes = limits.max_read_bytes
        if command.max_bytes:
            most_bytes = min(most_bytes, command.max_bytes)
        # Blocks have heads and an index: the answer is not to be larger than was asked for, unless
        # the first message alone is.
        limit = max(1, min(limits.max_read_messages, most_bytes // (2 * _BLOCK_OVERHEAD_BYTES)))
        if command.limit:
            limit = min(limit, command.limit)
        most_bytes = max(1, most_bytes - limit * _BLOCK_OVERHEAD_BYTES)
        asked = _Asked(session, command.request, [queue])
        number = self._last + 1
        held = _holds(queue, first)
        self._ask(asked, ReadStored(number, queue.key, first, last, limit, most_bytes, end, held))

    def _ask(self, asked: _Asked, question: Effect) -> None:
        self._last += 1
        self._asked[self._last] = asked
        self._core.out.append(question)

    def _problem(self, session: Session) -> int:
        """0 when a question may be asked now."""
        core = self._core
        if not core.stores:
            return RESULT_NOT_IMPLEMENTED
        if len(self._asked) >= core.limits.max_reads:
            return RESULT_BUSY
        own = 0
        for asked in self._asked.values():
            if asked.session is session:
                own += 1
        return RESULT_BUSY if own >= core.limits.max_reads_per_session else RESULT_OK

    # --- Cursors ---------------------------------------------------------------------------------

    def open_cursor(self, command: Command, session: Session) -> None:
        """Open a cursor, at the earliest or behind the latest."""
        assert isinstance(command, OpenCursor)
        core = self._core
        queue, code = self._of_cursor(command, command.cursor)
        if queue is not None and command.cursor in queue.cursors:
            self._tell(session, command.request, queue, command.cursor)
            return
        if code == RESULT_OK and command.earliest:
            code = self._problem(session)
        if code != RESULT_OK or queue is None:
            core.reply(session, command.request, code)
            return
        if not command.earliest:
            self._place(queue, command.cursor, queue.appended)
            self._tell(session, command.request, queue, command.cursor)
            return
        self._place(queue, command.cursor, 0)
        asked = _Asked(session, command.request, [queue], command.cursor)
        self._ask(asked, FindOffsets(self._last + 1, [queue.key]))

    def commit_cursor(self, command: Command, session: Session) -> None:
        """Move a cursor on, opened if need be; a smaller sequence than it has changes nothing."""
        assert isinstance(command, CommitCursor)
        queue, code = self._of_cursor(command, command.cursor)
        if queue is not None and code == RESULT_OK:
            if command.sequence < 0:
                code = RESULT_BAD_REQUEST
            elif command.sequence > queue.appended:
                code = RESULT_REQUESTED_RANGE_NOT_SATISFIABLE
        if code != RESULT_OK or queue is None:
            self._core.reply(session, command.request, code)
            return
        if command.sequence > queue.cursors.get(command.cursor, -1):
            self._place(queue, command.cursor, command.sequence)
        self._tell(session, command.request, queue, command.cursor)

    def list_cursors(self, command: Command, session: Session) -> None:
        """The cursors of a queue, in the order of creation."""
        assert isinstance(command, ListCursors)
        queue = self._queue(command.channel, command.queue_id)
        code = self._problem_of(queue, command.incarnation)
        if code != RESULT_OK or queue is None:
            self._core.reply(session, command.request, code)
            return
        incarnation = self._incarnation(queue)
        body: list[CursorSnapshot] = []
        for name, sequence in queue.cursors.items():
            body.append(CursorSnapshot(name, queue, incarnation, sequence))
        self._core.reply(session, command.request, RESULT_OK, body)

    def remove_cursor(self, command: Command, session: Session) -> None:
        """Forget a cursor, and let go of what is kept for it alone."""
        assert isinstance(command, RemoveCursor)
        queue = self._queue(command.channel, command.queue_id)
        code = self._problem_of(queue, command.incarnation)
        if queue is not None and code == RESULT_OK:
            if command.cursor in queue.cursors:
                del queue.cursors[command.cursor]
                self._core.keep(ForgetCursor(queue.key, command.cursor))
            else:
                code = RESULT_NOT_FOUND
        self._core.reply(session, command.request, code)

    def _of_cursor(self, command: CursorCommand, name: str) -> tuple[Queue | None, int]:
        """The queue that a cursor is, or can be, of; and 0, or the result code to answer."""
        queue = self._queue(command.channel, command.queue_id)
        code = self._problem_of(queue, command.incarnation)
        if code != RESULT_OK or queue is None:
            return None, code
        limits = self._core.limits
        if not name or len(name.encode("utf-8", "surrogatepass")) > limits.max_name_bytes:
            return None, RESULT_BAD_REQUEST
        if name not in queue.cursors and len(queue.cursors) >= limits.max_cursors_per_queue:
            return None, RESULT_LIMIT_EXCEEDED
        return queue, RESULT_OK

    def _place(self, queue: Queue, name: str, sequence: int) -> None:
        queue.cursors[name] = sequence
        self._core.keep(StoreCursor(queue.key, name, sequence))

    def _tell(self, session: Session, request: object, queue: Queue, name: str) -> None:
        body = CursorSnapshot(name, queue, self._incarnation(queue), queue.cursors[name])
        self._core.reply(session, request, RESULT_OK, body)

    # --- Queues ----------------------------------------------------------------------------------

    def _queue(self, channel_name: str, queue_id: int) -> Queue | None:
        channel = self._core.channels.find(channel_name)
        return None if channel is None else channel.queues.get(queue_id)

    def _problem_of(self, queue: Queue | None, incarnation: str) -> int:
        """0 when something can be asked about this queue."""
        if not self._core.stores:
            return RESULT_NOT_IMPLEMENTED
        if queue is None:
            return RESULT_NOT_FOUND
        if incarnation and incarnation != self._incarnation(queue):
            return RESULT_CONFLICT
        return RESULT_OK

    def _incarnation(self, queue: Queue) -> str:
        return f"{self._store_id}-{queue.key}"

    # --- What the storage says -------------------------------------------------------------------

    def perform(self, command: Command) -> bool:
        """Carry out a command of the storage; False if it is none of these."""
        if isinstance(command, OffsetsFound):
            self._offsets_found(command)
        elif isinstance(command, RangeRead):
            self._range_read(command)
        elif isinstance(command, NameStore):
            self._store_id = command.store_id
        elif isinstance(command, RestoreCursor):
            queue = self._queue(command.channel, command.queue_id)
            if queue is not None:
                queue.cursors[command.cursor] = command.sequence
        else:
            return False
        return True

    def _take(self, number: int) -> _Asked | None:
        asked = self._asked.pop(number, None)
        if asked is None:
            self._core.unknown_tickets += 1
            return None
        return asked

    def _offsets_found(self, command: OffsetsFound) -> None:
        asked = self._take(command.number)
        if asked is None:
            return
        if asked.cursor:
            self._opened(asked, command)
            return
        if not asked.session.alive:
            return
        if command.code != RESULT_OK:
            self._core.reply(asked.session, asked.request, command.code)
            return
        body: list[OffsetsSnapshot] = []
        for place in range(len(asked.queues)):
            queue = asked.queues[place]
            if not queue.closed:
                incarnation = self._incarnation(queue)
                kept = command.offsets[place]
                body.append(OffsetsSnapshot(queue, incarnation, kept, asked.ends[place]))
        self._core.reply(asked.session, asked.request, RESULT_OK, body)

    def _opened(self, asked: _Asked, command: OffsetsFound) -> None:
        """Put a cursor that waits before everything behind what is not there any more."""
        queue = asked.queues[0]
        name = asked.cursor
        code = command.code
        if queue.closed or name not in queue.cursors:
            code = RESULT_NOT_FOUND
        if code != RESULT_OK:
            self._core.reply(asked.session, asked.request, code)
            return
        kept = command.offsets[0]
        done = kept.earliest - 1 if kept.count else asked.ends[0]
        if done > queue.cursors[name]:
            self._place(queue, name, done)
        self._tell(asked.session, asked.request, queue, name)

    def _range_read(self, command: RangeRead) -> None:
        asked = self._take(command.number)
        if asked is None or not asked.session.alive:
            return
        core = self._core
        queue = asked.queues[0]
        if queue.closed:
            core.reply(asked.session, asked.request, RESULT_NOT_FOUND)
        elif command.code == RESULT_REQUESTED_RANGE_NOT_SATISFIABLE:
            kept = _NOTHING if command.offsets is None else command.offsets
            body = OffsetsSnapshot(queue, self._incarnation(queue), kept, asked.ends[0])
            core.reply(asked.session, asked.request, command.code, body)
        else:
            body_bytes = command.blocks if command.code == RESULT_OK else None
            core.reply(asked.session, asked.request, command.code, body_bytes)


def _holds(queue: Queue, first: int) -> bool:
    """Whether a cursor keeps all from *first* on, whatever becomes of it."""
    options = queue.options
    if not options.retain_for_readers or options.retain_bytes or options.retain_ms:
        return False
    return any([sequence < first for sequence in queue.cursors.values()])
