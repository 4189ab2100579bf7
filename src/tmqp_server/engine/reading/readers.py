"""Reading kept messages: the storage answers questions about offsets and ranges, cursors are here.

Theory of operation.  A reader is not a consumer: it sees the kept messages of a queue, settled or
not, by sequence, and removes nothing.  Its *cursor* is a name and the last sequence that it has
processed; it belongs to the queue, is removed with it, and is saved by the storage, which drops
messages that all cursors have passed if the queue retains messages for readers.

A question goes to the storage as an effect with a number, and stays in a bounded table until the
answer arrives; the bytes in the answer are opaque.  So a step stays short, however much is read.

*Incarnation.* A sequence has a meaning only in one queue.  A queue that is removed and created
again has another key, and another data directory has another name; both together identify the
queue, and a reader that sends them gets 409 if the queue is a different one.

*Opening at the earliest* first pins and then looks up: the cursor is placed before everything, the
storage reports the earliest message, and the cursor moves to it.
"""

from __future__ import annotations

from typing import Final

from tmqp.blocks import AS_INDEXES
from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_REQUESTED_RANGE_NOT_SATISFIABLE,
)
from tmqp_server.engine.commands import (
    Blocks,
    Command,
    CommitCursor,
    CursorCommand,
    KeptPart,
    ListCursors,
    ListOffsets,
    NameStore,
    OffsetsFound,
    OpenCursor,
    RangeRead,
    RangeSplit,
    ReadIndex,
    ReadRange,
    RemoveCursor,
    RestoreCursor,
    SplitRange,
    StoredMeasured,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.effects import FindOffsets, ReadStored, SplitStored
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import KeptOffsets, OffsetsSnapshot
from tmqp_server.engine.reading.asking import Asked, StorageQuestions
from tmqp_server.engine.reading.cursors import Cursors
from tmqp_server.engine.reading.groups import AskedGroup, Groups
from tmqp_server.engine.reading.lines import Lines
from tmqp_server.engine.reading.watching import AskedOffsets, Watch, Watching

__all__ = ["Readers"]

_NOTHING: Final = KeptOffsets(0, 0, 0, 0, 0)


class _AskedRange(Asked):
    """A range that is being read."""

    __slots__ = ()


class _AskedCursor(Asked):
    """A cursor that is being opened."""

    __slots__ = ("cursor",)

    def __init__(self, session: Session, request: object, queue: Queue, cursor: str) -> None:
        super().__init__(session, request, [queue])
        self.cursor = cursor


class Readers:
    """Serves readers of kept messages."""

    __slots__ = ("_core", "_cursors", "_groups", "_lines", "_questions", "_watching")

    def __init__(
        self,
        core: Core,
        questions: StorageQuestions,
        cursors: Cursors,
        groups: Groups,
        watching: Watching,
    ) -> None:
        self._core = core
        self._questions = questions
        self._cursors = cursors
        self._groups = groups
        self._lines = Lines()
        self._watching = watching

    # --- Offsets and ranges ----------------------------------------------------------------------

    def channel_names(self, pattern: str) -> list[str]:
        """The names of the channels that pass a filter."""
        return [channel.name for channel in self._questions.channels(pattern, None)]

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            ListOffsets: self.list_offsets,
            ReadRange: self.read_range,
            ReadIndex: self.read_range,
            SplitRange: self.split_range,
            OpenCursor: self.open_cursor,
            CommitCursor: self.commit_cursor,
            ListCursors: self.list_cursors,
            RemoveCursor: self.remove_cursor,
        }

    def list_offsets(self, command: Command, session: Session) -> None:
        """Ask for the offsets of many queues at once; the answer may be held."""
        assert isinstance(command, ListOffsets)
        core = self._core
        code = self._questions.problem(session)
        if code == RESULT_OK and command.wait_ms:
            code = self._watching.problem(session)
        if code != RESULT_OK:
            core.reply(session, command.request, code)
            return
        queues = self._questions.select(command.filter, command.queue_id, command.visible)
        if queues is None or len(command.known) > core.limits.max_queues_per_read:
            core.reply(session, command.request, core.reached("max_queues_per_read"))
            return
        watch: Watch | None = None
        if command.wait_ms:
            watch = self._watching.begin(session, command, len(queues))
            if watch is None:
                core.reply(session, command.request, RESULT_BUSY)
                return
        self._watching.ask(session, command, queues, watch)

    def read_range(self, command: Command, session: Session) -> None:
        """Read a range of a queue, now or when it is its turn."""
        assert isinstance(command, ReadRange)
        if not self._lines.must_wait(session):
            self._read_now(command, session)
        elif self._lines.length(session) < self._core.limits.max_reads_per_session:
            self._lines.wait(session, command)
        else:
            self._core.reply(session, command.request, RESULT_BUSY)

    def _read_now(self, command: ReadRange, session: Session) -> bool:
        """Ask the storage for a range; return False if it was answered already."""
        queue = self._of_range(command, session)
        if queue is None:
            return False
        limits = self._core.limits
        most_bytes = limits.max_read_bytes
        if command.max_bytes:
            most_bytes = min(most_bytes, command.max_bytes)
        limit = limits.max_read_messages
        if command.limit:
            limit = min(limit, command.limit)
        end = queue.appended
        asked = _AskedRange(session, command.request, [queue])
        question = ReadStored(
            self._questions.next_number(),
            queue.key,
            command.first,
            min(command.last, end) if command.last else end,
            limit,
            most_bytes,
            end,
            _holds(queue, command.first),
            AS_INDEXES if isinstance(command, ReadIndex) else command.form,
        )
        self._lines.begin(session)
        self._questions.ask(asked, question)
        return True

    def unblock(self, session: Session) -> None:
        """Record that a session reads again."""
        self._lines.unblock(session)

    def forget(self, session: Session) -> None:
        """Drop the waiting ranges of a session that has ended."""
        self._lines.forget(session)

    def has_work(self) -> bool:
        """Whether a range that had to wait can be read."""
        return self._lines.has_work()

    def go_on(self) -> None:
        """Read ranges that had to wait."""
        if not self._lines.has_work():
            return
        self._core.change = 0  # no answer here waits for a change
        for line in self._lines.take_ready():
            command = self._lines.take(line)
            while command is not None and not self._read_now(command, line.session):
                command = self._lines.take(line)

    def split_range(self, command: Command, session: Session) -> None:
        """Ask the storage how to divide a range of a queue into parts."""
        assert isinstance(command, SplitRange)
        queue = self._of_range(command, session)
        if queue is None:
            return
        end = queue.appended
        asked = _AskedRange(session, command.request, [queue])
        question = SplitStored(
            self._questions.next_number(),
            queue.key,
            command.first,
            min(command.last, end) if command.last else end,
            command.limit,
            command.max_bytes,
            self._core.limits.max_parts_per_split,
            end,
            _holds(queue, command.first),
        )
        self._questions.ask(asked, question)

    def _of_range(self, command: ReadRange, session: Session) -> Queue | None:
        """The queue of a range that the storage must read; None if it was answered already."""
        core = self._core
        code = self._questions.problem(session)
        queue = self._questions.find(command.channel, command.queue_id)
        if code == RESULT_OK:
            code = self._questions.problem_of(queue, command.incarnation, session)
        if command.first < 0 or command.last < 0 or command.limit < 0 or command.max_bytes < 0:
            code = RESULT_BAD_REQUEST
        if code != RESULT_OK or queue is None:
            core.reply(session, command.request, code)
            return None
        if command.first == queue.appended + 1:
            # Nothing new: it costs no read.
            nothing: list[KeptPart] = []
            is_split = isinstance(command, SplitRange)
            core.reply(session, command.request, RESULT_OK, nothing if is_split else Blocks([]))
            return None
        return queue

    # --- Cursors ---------------------------------------------------------------------------------

    def open_cursor(self, command: Command, session: Session) -> None:
        """Create a cursor, at the earliest message or after the latest."""
        assert isinstance(command, OpenCursor)
        core = self._core
        queue, code = self._of_cursor(command, command.cursor, session)
        if queue is not None and command.cursor in queue.cursors:
            self._tell(session, command.request, queue, command.cursor)
            return
        if code == RESULT_OK and command.earliest:
            code = self._questions.problem(session)
        if code != RESULT_OK or queue is None:
            core.reply(session, command.request, code)
            return
        if not command.earliest:
            self._cursors.place(queue, command.cursor, queue.appended)
            self._tell(session, command.request, queue, command.cursor)
            return
        self._cursors.place(queue, command.cursor, 0)
        asked = _AskedCursor(session, command.request, queue, command.cursor)
        number = self._questions.next_number()
        self._questions.ask(asked, FindOffsets(number, [queue.key]))

    def commit_cursor(self, command: Command, session: Session) -> None:
        """Move a cursor forward, created if missing; a smaller sequence than its own changes
        nothing."""
        assert isinstance(command, CommitCursor)
        queue, code = self._of_cursor(command, command.cursor, session)
        if queue is not None and code == RESULT_OK:
            if command.sequence < 0:
                code = RESULT_BAD_REQUEST
            elif command.sequence > queue.appended:
                code = RESULT_REQUESTED_RANGE_NOT_SATISFIABLE
        if code != RESULT_OK or queue is None:
            self._core.reply(session, command.request, code)
            return
        self._cursors.advance(queue, command.cursor, command.sequence)
        self._tell(session, command.request, queue, command.cursor)

    def list_cursors(self, command: Command, session: Session) -> None:
        """Answer with the cursors of a queue, in the order of creation."""
        assert isinstance(command, ListCursors)
        queue = self._questions.find(command.channel, command.queue_id)
        code = self._questions.problem_of(queue, command.incarnation, session)
        if code != RESULT_OK or queue is None:
            self._core.reply(session, command.request, code)
            return
        body = [self._cursors.snapshot(queue, name) for name in queue.cursors]
        self._core.reply(session, command.request, RESULT_OK, body)

    def remove_cursor(self, command: Command, session: Session) -> None:
        """Remove a cursor; what was kept only for it may be erased."""
        assert isinstance(command, RemoveCursor)
        queue = self._questions.find(command.channel, command.queue_id)
        code = self._questions.problem_of(queue, command.incarnation, session)
        if queue is not None and code == RESULT_OK:
            if command.cursor in queue.cursors:
                self._cursors.remove([queue], command.cursor)
            else:
                code = RESULT_NOT_FOUND
        self._core.reply(session, command.request, code)

    def _of_cursor(
        self, command: CursorCommand, name: str, session: Session
    ) -> tuple[Queue | None, int]:
        """The queue that has, or may have, a cursor, and 0; or None and the code to answer."""
        queue = self._questions.find(command.channel, command.queue_id)
        code = self._questions.problem_of(queue, command.incarnation, session)
        if code == RESULT_OK:
            code = self._cursors.problem_of_name(name)
        if code == RESULT_OK and queue is not None:
            code = self._cursors.problem_of_new(queue, name)
        return (queue if code == RESULT_OK else None), code

    def _tell(self, session: Session, request: object, queue: Queue, name: str) -> None:
        self._cursors.advance(queue, name, 0)  # which waits for a change in progress
        self._core.reply(session, request, RESULT_OK, self._cursors.snapshot(queue, name))

    # --- Answers of the storage ------------------------------------------------------------------

    def perform(self, command: Command) -> bool:
        """Carry out a command of the storage; return False if it is not one of these."""
        if isinstance(command, OffsetsFound):
            self._offsets_found(command)
        elif isinstance(command, RangeRead):
            self._range_read(command)
        elif isinstance(command, RangeSplit):
            self._range_split(command)
        elif isinstance(command, StoredMeasured):
            self._groups.measured(command)
        elif isinstance(command, NameStore):
            self._questions.store_id = command.store_id
        elif isinstance(command, RestoreCursor):
            queue = self._questions.find(command.channel, command.queue_id)
            if queue is not None:
                self._cursors.restore(queue, command.cursor, command.sequence)
        else:
            return False
        return True

    def _offsets_found(self, command: OffsetsFound) -> None:
        asked = self._questions.take(command.number)
        if isinstance(asked, _AskedCursor):
            self._opened(asked, command)
        elif isinstance(asked, AskedOffsets):
            self._found(asked, command)
        elif isinstance(asked, AskedGroup):
            self._groups.looked(asked, command)

    def _found(self, asked: AskedOffsets, command: OffsetsFound) -> None:
        core = self._core
        if not asked.session.alive:
            return
        if command.code == RESULT_OK and self._watching.hold(asked, command.offsets):
            return
        if asked.watch is not None:
            self._watching.end(asked.watch)
        if command.code != RESULT_OK:
            core.reply(asked.session, asked.request, command.code)
            return
        body: list[OffsetsSnapshot] = []
        for place in range(len(asked.queues)):
            queue = asked.queues[place]
            if queue.closed:
                continue
            kept = command.offsets[place]
            item = self._snapshot(queue, kept, asked.ends[place])
            if asked.committed:
                item.committed = asked.committed[place]
            if asked.command.timestamp_ms >= 0:
                item.at = kept.at or item.latest + 1
            body.append(item)
        core.reply(asked.session, asked.request, RESULT_OK, body)

    def _snapshot(self, queue: Queue, kept: KeptOffsets, end: int) -> OffsetsSnapshot:
        return OffsetsSnapshot(queue, self._questions.incarnation(queue), kept, end)

    def _opened(self, asked: _AskedCursor, command: OffsetsFound) -> None:
        """Move a cursor that is pinned at the beginning to the earliest kept message."""
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
        self._cursors.advance(queue, name, done)
        self._tell(asked.session, asked.request, queue, name)

    def _range_read(self, command: RangeRead) -> None:
        asked = self._questions.look_up(command.number)
        if asked is not None:
            self._lines.end(asked.session)
        body = command.blocks if command.code == RESULT_OK else None
        self._answer_range(command.number, command.code, command.offsets, body)

    def _range_split(self, command: RangeSplit) -> None:
        body = command.parts if command.code == RESULT_OK else None
        self._answer_range(command.number, command.code, command.offsets, body)

    def _answer_range(
        self, number: int, code: int, offsets: KeptOffsets | None, body: object
    ) -> None:
        asked = self._questions.take(number)
        if not isinstance(asked, _AskedRange) or not asked.session.alive:
            return
        queue = asked.queues[0]
        if queue.closed:
            code, body = RESULT_NOT_FOUND, None
        elif code == RESULT_REQUESTED_RANGE_NOT_SATISFIABLE:
            kept = _NOTHING if offsets is None else offsets
            body = self._snapshot(queue, kept, asked.ends[0])
        self._core.reply(asked.session, asked.request, code, body)


def _holds(queue: Queue, first: int) -> bool:
    """Whether a cursor keeps everything from *first* on in any case."""
    options = queue.options
    if not options.retain_for_readers or options.retain_bytes or options.retain_time_ms:
        return False
    return any([sequence < first for sequence in queue.cursors.values()])
