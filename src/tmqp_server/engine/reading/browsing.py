"""Browsing: the current messages of a queue, shown without removing any.

Theory of operation.  A browse lists messages by increasing sequence: those in memory that wait, are
deferred or in flight, and those that wait on disk only.  It has three stages, none of which changes
anything.

* The lists in memory are copied, each in one step; the copies are charged while they exist.
* The copies are examined in portions, one for each deadline, so that no step is long, however many
  messages there are.  The first matching ones are kept, in a heap of the requested length.
* Messages on disk only are fetched as a queue fetches them, but not delivered.  Up to the last
  sequence that was read from the storage, the results from disk and memory are merged.  Deferred
  messages that are on disk only are fetched from the first to the last, and other messages between
  them are left out.

A message that was settled meanwhile is left out.  One that moved meanwhile is shown once, in its
last place; one that was pushed meanwhile may be missing.
"""

from __future__ import annotations

import heapq
from typing import Final

from tmqp._compat import mypyc_attr
from tmqp.constants import RESULT_BUSY, RESULT_FORBIDDEN, RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.engine.books import BROWSE_BYTES
from tmqp_server.engine.commands import (
    Browse,
    Command,
    Fetched,
    KeptMessage,
    MoveMessage,
    RemoveMessage,
)
from tmqp_server.engine.core import Core, PendingRead, Performers
from tmqp_server.engine.delivery.deferring import Deferring
from tmqp_server.engine.delivery.moving import Moves
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.model.deferrals import Deferral
from tmqp_server.engine.model.message import (
    MARK_GONE,
    MARK_HIGH,
    Message,
    verdict,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import (
    BROWSED_DEFERRED,
    BROWSED_IN_FLIGHT,
    BROWSED_WAITING,
    BrowsedMessage,
    BrowseSnapshot,
)
from tmqp_server.engine.model.tails import Tail
from tmqp_server.engine.model.waiting_parts import WaitingPart
from tmqp_server.engine.reading.browsed import of_kept, of_message

__all__ = ["Browsing", "PendingBrowse"]

#: Messages that one step examines, without and with a filter.
_PORTION: Final = 4_000
_FILTERED_PORTION: Final = 400
#: Messages that are examined for one unit of work, see ``Core.charge_names``; a message that is
#: shown is a unit, too.
_LOOKED_AT_PER_UNIT: Final = 16
#: The memory of an entry of a copied list.
_PLACE_BYTES: Final = 8


@mypyc_attr(acyclic=True)
class _Found:
    """A matching message, in the heap of those with the lowest sequences; the highest is first."""

    __slots__ = ("item", "kept", "message", "sequence")

    def __init__(
        self,
        sequence: int,
        message: Message | None,
        item: BrowsedMessage | None = None,
        kept: KeptMessage | None = None,
    ) -> None:
        self.sequence = sequence
        self.message = message
        self.item = item
        self.kept = kept

    def __lt__(self, other: _Found) -> bool:
        return self.sequence > other.sequence


#: How often to search for a message that moves meanwhile.
_MOST_TRIES: Final = 10


class _Look:
    """One browse that is not answered."""

    __slots__ = (
        "appended",
        "awaited",
        "charged",
        "command",
        "deferred",
        "first",
        "found",
        "horizon",
        "lists",
        "most",
        "place",
        "queue",
        "removal",
        "session",
        "shelved",
        "stamp",
        "tries",
    )

    def __init__(
        self, session: Session, command: Browse, queue: Queue, most: int, removal: Command | None
    ) -> None:
        self.session = session
        self.command = command
        self.queue = queue
        self.most = most
        self.lists: list[WaitingPart] = []
        self.deferred: list[list[Deferral]] = []
        #: The lowest and highest wanted sequence of deferred messages on disk only, of each
        #: priority, the regular one first; 0 for none.
        self.shelved = [(0, 0), (0, 0)]
        #: The index in the first list, and the lowest wanted sequence.
        self.place = 0
        self.first = command.first
        self.found: list[_Found] = []
        #: The number of missing answers of the storage, and up to which sequence all messages are
        #: known.
        self.awaited = 0
        self.horizon = -1
        self.charged = 0
        #: The command that removes or moves the found message, or None; the number of searches; and
        #: the state of the queue when the search began.
        self.removal = removal
        self.tries = 0
        self.stamp = (0, 0)
        self.appended = queue.appended


class PendingBrowse(PendingRead):
    """A portion of a tail, up to a sequence, requested for a browse; without a tail, of the
    deferred messages on disk."""

    __slots__ = ("last", "look", "tail")

    def __init__(
        self, queue: Queue, tail: Tail | None, last: int, high_priority: bool, look: _Look
    ) -> None:
        super().__init__(queue, high_priority)
        self.last = last
        self.look = look
        self.tail = tail

    def is_there(self, sequence: int) -> bool:
        """Whether a stored message is one of those on disk only."""
        if self.tail is not None:
            return sequence not in self.tail.skip
        shelf = self.queue.deferred.shelf
        return shelf is not None and sequence in shelf.line_of(self.high_priority).entries


class Browsing:
    """Serves browses."""

    __slots__ = ("_core", "_deferring", "_directory", "_looks", "_moves")

    def __init__(
        self, core: Core, directory: Directory, deferring: Deferring, moves: Moves
    ) -> None:
        self._core = core
        self._moves = moves
        self._deferring = deferring
        self._directory = directory
        #: By session, in the order of requests, including those that wait for the storage.
        self._looks: dict[int, _Look] = {}
        core.tables["browses"] = self._looks

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {Browse: self.browse, MoveMessage: self.remove, RemoveMessage: self.remove}

    def browse(self, command: Command, session: Session) -> None:
        """Begin a browse; each session has at most one at a time."""
        assert isinstance(command, Browse)
        self._open(command, session, None)

    def remove(self, command: Command, session: Session) -> None:
        """Search for a waiting message by its id, to remove it or to move it to another queue."""
        assert isinstance(command, (MoveMessage, RemoveMessage))
        look = Browse(
            session.number,
            command.request,
            command.channel,
            command.queue_id,
            0,
            1,
            0,
            BROWSED_WAITING,
            command.message_id,
        )
        self._open(look, session, command)

    def _open(self, command: Browse, session: Session, removal: Command | None) -> None:
        core = self._core
        queue = self._directory.find_queue(command.channel, command.queue_id)
        if queue is None:
            core.reply(session, command.request, RESULT_NOT_FOUND)
            return
        channel = core.channels.find(command.channel)
        if channel is not None:
            if not channel.may_consume(session):
                core.reply(session, command.request, RESULT_FORBIDDEN)
                return
            channel.audience.used = True
        limits = core.limits
        most = limits.max_browse_messages
        if command.limit:
            most = min(most, command.limit)
        look = _Look(session, command, queue, most, removal)
        if session.number in self._looks:
            core.reply(session, command.request, RESULT_BUSY)
        elif len(self._looks) >= limits.max_browses:
            core.reply(session, command.request, core.reached("max_browses", RESULT_BUSY))
        elif not self._begin(look):
            core.reply(session, command.request, core.no_room())

    def _begin(self, look: _Look) -> bool:
        """Copy the lists of a queue; return False if there is no memory for that."""
        core = self._core
        queue = look.queue
        states = look.command.states
        charged = BROWSE_BYTES + _PLACE_BYTES * (queue.count + queue.deferred.on_disk())
        if not core.has_room(charged):
            return False
        core.charge(charged)
        look.charged = charged
        look.found = []
        look.horizon = -1
        look.shelved = [(0, 0), (0, 0)]
        look.stamp = _stamp_of(queue)
        if states & BROWSED_IN_FLIGHT:
            look.lists.append(WaitingPart(list(queue.all_flights().values())))
        if states & BROWSED_WAITING:
            look.lists += queue.high.snapshot()
            look.lists += queue.regular.snapshot()
        if states & BROWSED_DEFERRED:
            look.deferred.extend(queue.deferred.snapshot())
        self._looks[look.session.number] = look
        self._go_through(look)
        return True

    def forget(self, session: Session) -> None:
        """Drop the browse of a session that has ended."""
        look = self._looks.get(session.number)
        if look is not None:
            self._end(look)

    def has_work(self) -> bool:
        """Whether a list has to be examined."""
        for look in self._looks.values():  # noqa: SIM110 - any() would make a generator
            if not look.awaited:
                return True
        return False

    def go_on(self) -> None:
        """Examine a portion for the browse that has waited longest, which then waits behind the
        others."""
        for look in list(self._looks.values()):
            if not look.awaited:
                del self._looks[look.session.number]
                self._looks[look.session.number] = look
                self._core.change = 0  # its answer does not wait for a change
                self._go_through(look)
                return

    def charged(self) -> int:
        """The charge for all unanswered browses."""
        return sum([look.charged for look in self._looks.values()])

    # --- In memory -------------------------------------------------------------------------------

    def _go_through(self, look: _Look) -> None:
        """Examine a portion of what is in memory; after the last one, fetch the rest."""
        is_filtered = look.command.filter is not None
        left = _FILTERED_PORTION if is_filtered else _PORTION
        work = 0
        while look.lists and left > 0:
            messages = look.lists[0].messages()
            stop = min(look.place + left, len(messages))
            for place in range(look.place, stop):
                self._consider(look, messages[place])
            work += stop - look.place
            left -= stop - look.place + 1
            look.place = stop
            if stop == len(messages):
                look.lists.pop(0)
                look.place = 0
        while not look.lists and look.deferred and left > 0:
            entries = look.deferred[0]
            stop = min(look.place + left, len(entries))
            # The last two lists have those on disk only, the high-priority ones first.
            high_priority = len(look.deferred) == 2
            for place in range(look.place, stop):
                self._consider_deferred(look, entries[place], high_priority)
            work += stop - look.place
            left -= stop - look.place + 1
            look.place = stop
            if stop == len(entries):
                look.deferred.pop(0)
                look.place = 0
        self._core.work += work if is_filtered else work // _LOOKED_AT_PER_UNIT
        if not look.lists and not look.deferred:
            self._fetch(look)

    def _consider(self, look: _Look, message: Message) -> None:
        """Keep a message if it matches and is among the first matches."""
        command = look.command
        sequence = message.sequence
        if sequence < look.first or message.marks & MARK_GONE:
            return
        found = look.found
        if len(found) >= look.most and sequence >= found[0].sequence:
            return
        if command.message_id and message.message_id != command.message_id:
            return
        if not verdict(command.filter, message):
            return
        self._keep(look, _Found(sequence, message))

    def _consider_deferred(self, look: _Look, entry: Deferral, high_priority: bool) -> None:
        """The same for a deferred message; if it is on disk only, record its sequence."""
        if entry.message is not None:
            self._consider(look, entry.message)
            return
        sequence = entry.sequence
        wanted = look.command.message_id
        if sequence < look.first or (wanted and entry.message_id != wanted):
            return
        lowest, highest = look.shelved[high_priority]
        lowest = min(lowest, sequence) if lowest else sequence
        look.shelved[high_priority] = (lowest, max(highest, sequence))

    def _keep(self, look: _Look, found: _Found) -> None:
        if len(look.found) < look.most:
            heapq.heappush(look.found, found)
        elif found.sequence < look.found[0].sequence:
            heapq.heapreplace(look.found, found)

    # --- On disk only ----------------------------------------------------------------------------

    def _fetch(self, look: _Look) -> None:
        """Request what waits on disk only, or answer if there is nothing."""
        queue = look.queue
        if look.command.states & (BROWSED_WAITING | BROWSED_DEFERRED) and not queue.closed:
            if queue.high_tail is not None:
                self._fetch_tail(look, queue.high_tail, True)
            if queue.regular_tail is not None:
                self._fetch_tail(look, queue.regular_tail, False)
            for high_priority in (True, False):
                lowest, highest = look.shelved[high_priority]
                if lowest:
                    pending = PendingBrowse(queue, None, highest, high_priority, look)
                    self._fetch_part(look, pending, lowest - 1)
        if not look.awaited:
            self._answer(look)

    def _fetch_tail(self, look: _Look, tail: Tail, high_priority: bool) -> None:
        after = max(tail.after, look.first - 1)
        if tail.last > after:
            pending = PendingBrowse(look.queue, tail, tail.last, high_priority, look)
            self._fetch_part(look, pending, after)

    def _fetch_part(self, look: _Look, pending: PendingBrowse, after: int) -> None:
        limits = self._core.limits
        look.awaited += 1
        # Where most of them are left out, few questions should do.
        chooses = look.removal is not None or look.command.filter is not None
        most = limits.max_browse_messages if chooses else look.most
        most_bytes = min(look.command.max_bytes or limits.max_read_bytes, limits.max_read_bytes)
        self._core.fetch(pending, after, pending.last, most, most_bytes)

    def fetched(self, asked: PendingBrowse, command: Fetched) -> None:
        """Handle what the storage has found; the queue is not changed."""
        look = asked.look
        if self._looks.get(look.session.number) is not look:
            return
        look.awaited -= 1
        last = asked.last if asked.tail is None else asked.tail.last  # which may have grown
        if command.up_to < last and (look.horizon < 0 or command.up_to < look.horizon):
            look.horizon = command.up_to
        wanted = look.command.message_id
        for kept in command.messages:
            if (wanted and kept.message_id != wanted) or not asked.is_there(kept.sequence):
                continue
            item = of_kept(look.queue, kept, asked.high_priority, self._core.now)
            if look.removal is not None and not item.state & BROWSED_WAITING:
                continue
            if not verdict(look.command.filter, item.message):
                continue
            self._keep(look, _Found(kept.sequence, None, item, kept))
        if not look.awaited:
            self._core.change = 0
            self._answer(look)

    # --- The answer ------------------------------------------------------------------------------

    def _answer(self, look: _Look) -> None:
        """Answer with the found messages that are still there, in order.

        If all of them are gone, or beyond what the storage has examined, there may be more: then
        continue after them.
        """
        core = self._core
        command = look.command
        self._end(look)
        if look.queue.closed:
            core.reply(look.session, command.request, RESULT_NOT_FOUND)
            return
        if look.removal is not None:
            self._remove(look)
            return
        limits = core.limits
        most_bytes = min(command.max_bytes or limits.max_read_bytes, limits.max_read_bytes)
        items: list[BrowsedMessage] = []
        looked = look.horizon
        for found in sorted(look.found, key=_sequence_of):
            if 0 <= look.horizon < found.sequence:
                break
            item = self._item(found)
            if len(look.found) == look.most:
                looked = max(looked, found.sequence)
            if item is None or not item.state & command.states:
                continue
            if items and items[len(items) - 1].sequence == item.sequence:
                continue  # it was stored or read back meanwhile
            most_bytes -= item.size
            if items and most_bytes < 0:
                break
            items.append(item)
        if not items and looked >= 0:
            look.first = looked + 1
            if not self._begin(look):
                core.reply(look.session, command.request, RESULT_BUSY)
            return
        core.work += len(items)
        hides = look.queue.options.hide_client_names
        core.reply(look.session, command.request, RESULT_OK, BrowseSnapshot(items, hides))

    def _remove(self, look: _Look) -> None:
        """Remove the found message; search again if the queue has changed meanwhile."""
        core = self._core
        queue = look.queue
        code = RESULT_NOT_FOUND
        if not look.found and look.horizon >= 0:
            look.first = look.horizon + 1
            if self._begin(look):
                return
            code = RESULT_BUSY
        elif look.found and self._is_there(queue, look.found[0]):
            self._take_out(look, look.found[0])
            return
        elif look.found or look.stamp != _stamp_of(queue):
            look.tries += 1
            look.first = 0
            if look.tries < _MOST_TRIES and self._begin(look):
                return
            code = RESULT_BUSY
        elif queue.safe < look.appended and _has_unsynced(queue):
            code = RESULT_BUSY  # it may be on its way to the disk, where it is not found
        core.reply(look.session, look.command.request, code)

    def _is_there(self, queue: Queue, found: _Found) -> bool:
        """Whether a found message still waits there."""
        item = found.item
        if item is None:
            message = found.message
            assert message is not None, "one of the two"
            waiting = queue.high if message.marks & MARK_HIGH else queue.regular
            return message.sequence == found.sequence and waiting.holds(message)
        tail = queue.high_tail if item.high_priority else queue.regular_tail
        return (
            tail is not None
            and tail.after < item.sequence <= tail.last
            and item.sequence not in tail.skip
        )

    def _take_out(self, look: _Look, found: _Found) -> None:
        """Remove or move a waiting message."""
        queue = look.queue
        item = found.item
        message = found.message
        if isinstance(look.removal, MoveMessage):
            high_priority = item is not None and item.high_priority
            self._moves.move(look.removal, look.session, queue, message, found.kept, high_priority)
            return
        if item is None:
            assert message is not None, "one of the two"
            self._deferring.remove(queue, message)
        else:
            tail = queue.high_tail if item.high_priority else queue.regular_tail
            assert tail is not None, "it is there"
            self._deferring.remove_from_disk(queue, tail, item)
        self._core.reply(look.session, look.command.request, RESULT_OK)

    def _item(self, found: _Found) -> BrowsedMessage | None:
        """The present state of a found message; None if it is gone or has another sequence."""
        message = found.message
        if message is None:
            return found.item
        if message.marks & MARK_GONE or message.sequence != found.sequence:
            return None
        return of_message(message)

    def _end(self, look: _Look) -> None:
        self._core.refund(look.charged)
        look.charged = 0
        look.lists = []
        look.deferred = []
        self._looks.pop(look.session.number, None)


def _stamp_of(queue: Queue) -> tuple[int, int]:
    """Numbers of the queue that change when messages are read back from the disk."""
    high = -1 if queue.high_tail is None else queue.high_tail.after
    regular = -1 if queue.regular_tail is None else queue.regular_tail.after
    return (high, regular)


def _has_unsynced(queue: Queue) -> bool:
    """Whether messages are being stored, to wait on disk."""
    high, regular = queue.high_tail, queue.regular_tail
    return (high is not None and high.unsynced > 0) or (
        regular is not None and regular.unsynced > 0
    )


def _sequence_of(found: _Found) -> int:
    return found.sequence
