"""Questions about offsets whose answers wait until there is something new.

Theory of operation.  A *watch* is such a question.  The storage is asked first, so that existing
news are answered immediately.  If there is nothing beyond what the client knows, the watch is held:
it remembers the last sequence of each queue.  When one of the queues has more on disk, another
queue passes the filter, or one is removed, the storage is asked again; when the time is over, its
answer is sent in any case.

So nothing is reported before it is saved, because only saved messages can be read, and a watch
costs nothing while nothing happens.  Watched queues report changes (``Core.changed_queues``);
watches are checked in the next ``on_deadline``, within its budget.  One timer wakes the first watch
whose time is over.
"""

from __future__ import annotations

from tmqp.constants import RESULT_BUSY, RESULT_OK
from tmqp_server.engine.books import watch_bytes
from tmqp_server.engine.commands import KnownQueue, ListOffsets
from tmqp_server.engine.core import Core
from tmqp_server.engine.effects import FindOffsets
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import KeptOffsets
from tmqp_server.engine.model.timers import Sleeper
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.reading.asking import Asked, StorageQuestions

__all__ = ["AskedOffsets", "Watch", "WatchTimer", "Watching"]


class WatchTimer(Sleeper):
    """Wakes the held answers."""

    __slots__ = ()


class Watch:
    """A question about offsets whose answer is held.

    ``due`` is when it is answered at the latest; ``ends`` has, by the key of each queue, the
    sequence up to which nothing was new.
    """

    __slots__ = ("number", "session", "command", "due", "known", "ends", "memory")

    def __init__(self, number: int, session: Session, command: ListOffsets, due: float) -> None:
        self.number = number
        self.session = session
        self.command = command
        self.due = due
        self.known: dict[tuple[str, int], KnownQueue] = {}
        for each in command.known:
            self.known[each.channel.lower(), each.queue_id] = each
        self.ends: dict[int, int] = {}
        #: What it is charged in the broker's books.
        self.memory = 0


class AskedOffsets(Asked):
    """A question about offsets; ``committed`` are the positions of the requested cursor."""

    __slots__ = ("command", "committed", "generation", "watch")

    def __init__(
        self, session: Session, command: ListOffsets, queues: list[Queue], watch: Watch | None
    ) -> None:
        super().__init__(session, command.request, queues)
        self.command = command
        self.watch = watch
        #: The generation of the channel table when the question was asked.
        self.generation = 0
        self.committed: list[int] = []
        if command.cursor:
            # As they are now, because the storage answers when it has written everything before.
            self.committed = [queue.cursors.get(command.cursor, -1) for queue in queues]


class Watching:
    """The held answers of one broker."""

    __slots__ = ("_core", "_generation", "_held", "_last", "_look", "_questions", "_timer", "_all")

    def __init__(self, core: Core, questions: StorageQuestions) -> None:
        self._core = core
        self._questions = questions
        #: All watches by number, including those for which the storage is being asked.
        self._all: dict[int, Watch] = {}
        core.tables["held_reads"] = self._all
        self._held: dict[int, Watch] = {}
        #: Held ones for which something has happened.
        self._look: dict[int, Watch] = {}
        self._last = 0
        self._generation = 0
        self._timer = WatchTimer()

    def problem(self, session: Session) -> int:
        """0 if another answer may be held, otherwise the result code."""
        limits = self._core.limits
        own = 0
        for watch in self._all.values():
            if watch.session is session:
                own += 1
        if len(self._all) >= limits.max_held_reads:
            return self._core.reached("max_held_reads", RESULT_BUSY)
        if own >= limits.max_held_reads_per_session:
            return self._core.reached("max_held_reads_per_session", RESULT_BUSY)
        return RESULT_OK

    def begin(self, session: Session, command: ListOffsets, queues: int) -> Watch | None:
        """Begin a watch of so many queues; ``problem`` must have returned 0.  Return None if there
        is no memory for it."""
        size = watch_bytes(command.filter, len(command.known) + queues)
        if not self._core.has_room(size):
            self._core.no_room()
            return None
        self._core.charge(size)
        wait_ms = min(command.wait_ms, self._core.limits.max_read_wait_ms)
        self._last += 1
        watch = Watch(self._last, session, command, self._core.now + wait_ms / 1000)
        watch.memory = size
        self._all[watch.number] = watch
        return watch

    def end(self, watch: Watch) -> None:
        """End a watch that is answered, or that is no longer needed."""
        if self._all.pop(watch.number, None) is not None:
            self._core.refund(watch.memory)
        self._held.pop(watch.number, None)
        self._look.pop(watch.number, None)

    def forget(self, session: Session) -> None:
        """End the watches of a session that has ended."""
        for watch in list(self._all.values()):
            if watch.session is session:
                self.end(watch)

    def hold(self, asked: AskedOffsets, offsets: list[KeptOffsets]) -> bool:
        """Hold an answer if it has nothing new and its time is not over; return False if it must be
        sent."""
        watch = asked.watch
        core = self._core
        if watch is None or watch.number not in self._all:
            return False
        if core.now >= watch.due or self._is_new(watch, asked, offsets):
            return False
        more = watch_bytes(watch.command.filter, len(watch.known) + len(asked.queues))
        core.charge(more - watch.memory)  # queues may have been created or removed
        watch.memory = more
        watch.ends = {}
        for place in range(len(asked.queues)):
            queue = asked.queues[place]
            watch.ends[queue.key] = asked.ends[place]
            queue.watched = True
            if queue.safe > asked.ends[place]:
                core.changed_queues[queue.key] = queue  # while the storage was searching
        if not self._held:
            self._generation = core.channels.generation
        self._held[watch.number] = watch
        if asked.generation != core.channels.generation:
            self._look[watch.number] = watch  # queues may have been created or removed since
        core.wakeups.arm(self._timer, watch.due)
        return True

    def _is_new(self, watch: Watch, asked: AskedOffsets, offsets: list[KeptOffsets]) -> bool:
        if len(asked.queues) != len(watch.known):
            return True
        for place in range(len(asked.queues)):
            queue = asked.queues[place]
            known = watch.known.get((queue.channel_name.lower(), queue.queue_id))
            if known is None or queue.closed:
                return True
            kept = offsets[place]
            latest = kept.latest if kept.count else asked.ends[place]
            if latest > known.latest:
                return True
            if known.incarnation and known.incarnation != self._questions.incarnation(queue):
                return True
        return False

    # --- Changes ---------------------------------------------------------------------------------

    def has_work(self) -> bool:
        """Whether something has happened that concerns a held answer."""
        if self._look:
            return True
        if not self._held:
            return False
        core = self._core
        return bool(core.changed_queues) or self._generation != core.channels.generation

    def wake(self) -> None:
        """Have the watches examined whose time is over."""
        first = NEVER
        for watch in self._held.values():
            if watch.due <= self._core.now:
                self._look[watch.number] = watch
            else:
                first = min(first, watch.due)
        if first < NEVER:
            self._core.wakeups.arm(self._timer, first)

    def go_on(self) -> None:
        """Ask the storage again for the watches that something has happened for."""
        if not self.has_work():
            return
        core = self._core
        if core.changed_queues:
            self._note_changes()
        if self._generation != core.channels.generation:
            self._generation = core.channels.generation
            for watch in self._held.values():
                self._look[watch.number] = watch
        while self._look and core.budget > 0:
            watch = self._look[next(iter(self._look))]
            del self._look[watch.number]
            self._look_at(watch)

    def _note_changes(self) -> None:
        """Find the watches of changed queues."""
        core = self._core
        changed_queues = core.changed_queues
        core.changed_queues = {}
        for queue in changed_queues.values():
            queue.watched = False
            for watch in self._held.values():
                end = watch.ends.get(queue.key, -1)
                if end >= 0:
                    queue.watched = True
                    if queue.safe > end:
                        self._look[watch.number] = watch

    def _look_at(self, watch: Watch) -> None:
        core = self._core
        command = watch.command
        queues = self._questions.select(command.filter, command.queue_id, command.visible)
        core.budget -= 1 + len(watch.ends) // 16
        if queues is None:
            self.end(watch)
            core.change = 0  # its answer does not wait for a change
            core.reply(watch.session, command.request, core.reached("max_queues_per_read"))
            return
        if watch.due > core.now and len(queues) == len(watch.ends):
            for queue in queues:
                end = watch.ends.get(queue.key, -1)
                if end < 0 or queue.safe > end:
                    break
            else:
                return  # only the options of a queue have changed
        del self._held[watch.number]
        self.ask(watch.session, command, queues, watch)

    def ask(
        self, session: Session, command: ListOffsets, queues: list[Queue], watch: Watch | None
    ) -> None:
        """Ask the storage about these queues, for the first time or, for a watch, again."""
        asked = AskedOffsets(session, command, queues, watch)
        asked.generation = self._core.channels.generation
        asked.again = watch is not None and bool(watch.ends)
        timestamp_us = command.timestamp_ms * 1_000 if command.timestamp_ms >= 0 else -1
        number = self._questions.next_number()
        self._questions.ask(asked, FindOffsets(number, asked.keys(), timestamp_us))
