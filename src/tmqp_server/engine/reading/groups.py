"""Groups: the cursors of one name in many queues, moved and read together.

Theory of operation.  A group consists only of its cursors; it exists as long as one of them does.
So a reader of many queues opens all cursors in one step and commits in one step, and one answer,
sent when the last of them is on disk, is for all.

The queues, and the right to read them, are determined before (``resolve``, ``gate.py``).  A queue
that was removed or created again meanwhile is left out of the answer: its reader also learns that
from *Offsets*, and the other queues must continue.

*Opening* and *resetting* first pin and then look up the position, as opening a cursor does
(``readers.py``).
"""

from __future__ import annotations

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_OK,
    RESULT_REQUESTED_RANGE_NOT_SATISFIABLE,
)
from tmqp_server.engine.commands import (
    Command,
    CommitGroup,
    DropGroup,
    GroupCommand,
    GroupPlace,
    ListGroups,
    OffsetsFound,
    OpenGroup,
    ResetGroup,
    StoredMeasured,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.effects import FindOffsets, MeasureStored
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import CursorSnapshot
from tmqp_server.engine.reading.asking import Asked, StorageQuestions
from tmqp_server.engine.reading.cursors import Cursors

__all__ = ["AskedGroup", "Groups"]


class AskedGroup(Asked):
    """A group whose cursors move to what is kept: those of ``queues`` move, and the answer has
    those of ``told``.

    With ``by_time``, they move to the first message that arrived at a time or later.
    """

    __slots__ = ("cursor", "told", "by_time")

    def __init__(
        self,
        session: Session,
        command: GroupCommand,
        queues: list[Queue],
        told: list[Queue],
        by_time: bool,
    ) -> None:
        super().__init__(session, command.request, queues)
        self.cursor = command.cursor
        self.told = told
        self.by_time = by_time


class _AskedLag(Asked):
    """Cursors whose lag is measured, one for each entry of ``queues``."""

    __slots__ = ("found",)

    def __init__(
        self, session: Session, request: object, queues: list[Queue], found: list[CursorSnapshot]
    ) -> None:
        super().__init__(session, request, queues)
        self.found = found


class Groups:
    """Serves readers of many queues."""

    __slots__ = ("_core", "_cursors", "_questions")

    def __init__(self, core: Core, questions: StorageQuestions, cursors: Cursors) -> None:
        self._core = core
        self._questions = questions
        self._cursors = cursors

    def resolve(self, command: GroupCommand) -> None:
        """Find the queues of a command, once."""
        if command.places is not None or command.filter is None or command.too_many:
            return
        queues = self._questions.select(command.filter, command.queue_id, None)
        if queues is None:
            command.too_many = True
            return
        places: list[GroupPlace] = []
        for queue in queues:
            places.append(
                GroupPlace(
                    queue.channel_name, queue.queue_id, 0, self._questions.incarnation(queue)
                )
            )
        command.places = places

    def _queues(self, command: GroupCommand) -> tuple[list[Queue], list[int], int]:
        """The existing queues, the sequence that is named for each, and 0 or the result code to
        answer.

        Queues that are found by a filter have no sequences.
        """
        queues: list[Queue] = []
        sequences: list[int] = []
        if not self._core.stores:
            return queues, sequences, RESULT_NOT_IMPLEMENTED
        code = self._cursors.problem_of_name(command.cursor)
        if code != RESULT_OK:
            return queues, sequences, code
        wanted = command.places
        if wanted is None and command.filter is not None and not command.too_many:
            selected = self._questions.select(command.filter, command.queue_id, None)
            if selected is None:
                return queues, sequences, self._core.reached("max_queues_per_read")
            return selected, sequences, RESULT_OK
        if wanted is None or len(wanted) > self._core.limits.max_queues_per_read:
            return queues, sequences, self._core.reached("max_queues_per_read")
        self._questions.charge_queues(len(wanted))
        questions = self._questions
        for place in wanted:
            if not place.allowed:
                continue
            queue = questions.find(place.channel, place.queue_id)
            if queue is None or questions.problem_of(queue, place.incarnation, None):
                continue
            queues.append(queue)
            sequences.append(place.sequence)
        return queues, sequences, RESULT_OK

    # --- Moving ----------------------------------------------------------------------------------

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            OpenGroup: self.open,
            CommitGroup: self.commit,
            ListGroups: self.list_groups,
            ResetGroup: self.reset,
            DropGroup: self.drop,
        }

    def open(self, command: Command, session: Session) -> None:
        """Create a cursor in all queues."""
        assert isinstance(command, OpenGroup)
        queues, _, code = self._queues(command)
        new: list[Queue] = []
        for queue in queues:
            if command.cursor not in queue.cursors:
                new.append(queue)
                code = code or self._cursors.problem_of_new(queue, command.cursor)
        code = code or self._cursors.problem_of_memory(len(new), command.cursor)
        self._begin(command, session, new, queues, code, command.earliest, command.timestamp_ms)

    def reset(self, command: Command, session: Session) -> None:
        """Move existing cursors, also backwards."""
        assert isinstance(command, ResetGroup)
        queues, sequences, code = self._queues(command)
        there: list[Queue] = []
        wanted: list[int] = []
        for index in range(len(queues)):
            if command.cursor in queues[index].cursors:
                there.append(queues[index])
                if sequences:
                    wanted.append(sequences[index])
                    code = code or _problem_of_sequence(queues[index], sequences[index])
        if code == RESULT_OK and not there:
            code = RESULT_NOT_FOUND
        if command.filter is not None:
            earliest, timestamp_ms = command.earliest, command.timestamp_ms
            self._begin(command, session, there, there, code, earliest, timestamp_ms)
            return
        if code == RESULT_OK:
            code = self._questions.problem(session)
        if code != RESULT_OK:
            self._core.reply(session, command.request, code)
            return
        self._cursors.place_all(there, command.cursor, wanted)
        self._look(AskedGroup(session, command, there, there, False), -1)

    def _begin(
        self,
        command: GroupCommand,
        session: Session,
        moved: list[Queue],
        told: list[Queue],
        code: int,
        earliest: bool,
        timestamp_ms: int,
    ) -> None:
        """Put cursors after the latest message, or pin them at the beginning and look up what is
        kept."""
        looks = moved and (earliest or timestamp_ms >= 0)
        if code == RESULT_OK and looks:
            code = self._questions.problem(session)
        if code != RESULT_OK:
            self._core.reply(session, command.request, code)
            return
        begins = [0 if looks else queue.appended for queue in moved]
        self._cursors.place_all(moved, command.cursor, begins)
        if looks:
            asked = AskedGroup(session, command, moved, told, timestamp_ms >= 0)
            self._look(asked, timestamp_ms * 1_000 if timestamp_ms >= 0 else -1)
        else:
            self._tell(session, command.request, told, command.cursor)

    def _look(self, asked: AskedGroup, timestamp_us: int) -> None:
        number = self._questions.next_number()
        self._questions.ask(asked, FindOffsets(number, asked.keys(), timestamp_us))

    def looked(self, asked: AskedGroup, command: OffsetsFound) -> None:
        """Move cursors forward to what is kept."""
        name = asked.cursor
        if command.code != RESULT_OK:
            self._core.reply(asked.session, asked.request, command.code)
            return
        moved: list[Queue] = []
        further: list[int] = []
        for place in range(len(asked.queues)):
            queue = asked.queues[place]
            if queue.closed or name not in queue.cursors:
                continue
            kept = command.offsets[place]
            done = kept.earliest - 1 if kept.count else asked.ends[place]
            if asked.by_time:
                done = kept.at - 1 if kept.at else asked.ends[place]
            moved.append(queue)
            further.append(done)
        self._cursors.advance_all(moved, name, further)
        self._tell(asked.session, asked.request, asked.told, name)

    def commit(self, command: Command, session: Session) -> None:
        """Move cursors forward; if one cannot be moved, none is."""
        assert isinstance(command, CommitGroup)
        queues, sequences, code = self._queues(command)
        if code == RESULT_OK and not queues:
            code = RESULT_NOT_FOUND
        for index in range(len(queues)):
            code = code or _problem_of_sequence(queues[index], sequences[index])
            code = code or self._cursors.problem_of_new(queues[index], command.cursor)
        if code != RESULT_OK:
            self._core.reply(session, command.request, code)
            return
        self._cursors.advance_all(queues, command.cursor, sequences)
        self._tell(session, command.request, queues, command.cursor)

    def drop(self, command: Command, session: Session) -> None:
        """Remove cursors."""
        assert isinstance(command, DropGroup)
        queues, _, code = self._queues(command)
        found = [queue for queue in queues if command.cursor in queue.cursors]
        if found:
            self._cursors.remove(found, command.cursor)
        elif code == RESULT_OK:
            code = RESULT_NOT_FOUND
        self._core.reply(session, command.request, code)

    def _tell(self, session: Session, request: object, queues: list[Queue], name: str) -> None:
        there: list[Queue] = []
        body: list[CursorSnapshot] = []
        for queue in queues:
            if not queue.closed and name in queue.cursors:
                there.append(queue)
                body.append(self._cursors.snapshot(queue, name))
        self._cursors.wait_for(there, name)
        self._core.reply(session, request, RESULT_OK, body)

    # --- Looking ---------------------------------------------------------------------------------

    def list_groups(self, command: Command, session: Session) -> None:
        """List the cursors of many queues, and measure what is kept after each."""
        assert isinstance(command, ListGroups)
        core = self._core
        code = self._questions.problem(session)
        queues: list[Queue] = []
        found: list[CursorSnapshot] = []
        if code == RESULT_OK:
            selected = self._questions.select(command.filter, command.queue_id, command.visible)
            if selected is None:
                code = core.reached("max_queues_per_read")
            for queue in selected or []:
                for name in queue.cursors:
                    if not command.cursor or name == command.cursor:
                        queues.append(queue)
                        found.append(self._cursors.snapshot(queue, name))
            if len(found) > core.limits.max_queues_per_read:
                code = core.reached("max_queues_per_read")
        if code != RESULT_OK or not found:
            core.reply(session, command.request, code, found if code == RESULT_OK else None)
            return
        asked = _AskedLag(session, command.request, queues, found)
        after = [each.sequence for each in found]
        number = self._questions.next_number()
        self._questions.ask(asked, MeasureStored(number, asked.keys(), after))

    def measured(self, command: StoredMeasured) -> None:
        """Answer with the lag."""
        asked = self._questions.take(command.number)
        if not isinstance(asked, _AskedLag) or not asked.session.alive:
            return
        if command.code != RESULT_OK:
            self._core.reply(asked.session, asked.request, command.code)
            return
        body: list[CursorSnapshot] = []
        for place in range(len(asked.queues)):
            if not asked.queues[place].closed:
                item = asked.found[place]
                item.behind = command.parts[place].count
                item.behind_bytes = command.parts[place].bytes
                body.append(item)
        self._core.reply(asked.session, asked.request, RESULT_OK, body)


def _problem_of_sequence(queue: Queue, sequence: int) -> int:
    if sequence < 0:
        return RESULT_BAD_REQUEST
    if sequence > queue.appended:
        return RESULT_REQUESTED_RANGE_NOT_SATISFIABLE
    return RESULT_OK
