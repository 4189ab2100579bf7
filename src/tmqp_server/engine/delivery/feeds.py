"""The operations about feeds: adding, removing and listing them.

A feed is removed with either of its queues.  The storage keeps it with its source, unless one of
them is temporary.  A feed that would return messages to a queue that they have left closes a
circle, and is refused.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_DUPLICATE,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.engine.books import feed_bytes
from tmqp_server.engine.commands import (
    AddFeed,
    Command,
    ListFeeds,
    RestoreFeed,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.delivery.feed_commits import target_of
from tmqp_server.engine.delivery.feeding import Feeder
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import Reply, StoreQueue
from tmqp_server.engine.events import QUEUE_UPDATED
from tmqp_server.engine.model.feeds import Feed, KeptFeed
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import FeedSnapshot
from tmqp_server.engine.options import NO_KEYS

__all__ = ["Feeds", "stored"]

#: Units of work for a feed that goes with one of its queues.
_FORGET_WORK: Final = 2
#: Feeds that are examined for one unit of work, to find a circle.
_FEEDS_PER_UNIT: Final = 8


def stored(queue: Queue) -> StoreQueue:
    """The record of a queue for the storage, with its feeds into queues that the storage knows."""
    kept: list[KeptFeed] | None = None
    if queue.feeds is not None:
        kept = [feed.kept() for feed in queue.feeds if not target_of(feed).temporary]
    return StoreQueue(
        queue.key, queue.channel_name, queue.queue_id, queue.options, queue.suspect, kept
    )


class Feeds:
    """Adds, removes and lists the feeds of all queues."""

    __slots__ = ("_changed", "_core", "_count", "_directory", "_feeder")

    def __init__(self, core: Core, directory: Directory, feeder: Feeder) -> None:
        self._core = core
        self._directory = directory
        self._feeder = feeder
        self._count = 0
        #: Sources whose feeds into removed queues were removed, which is not reported yet.
        self._changed: dict[int, Queue] = {}

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {AddFeed: self.add, ListFeeds: self.list_feeds}

    # --- Adding ----------------------------------------------------------------------------------

    def add(self, command: Command, session: Session) -> None:
        """Add a feed; messages that wait in the source because there was no consumer go to it."""
        assert isinstance(command, AddFeed)
        self._core.reply(session, command.request, self._add(command))

    def _add(self, command: AddFeed) -> int:
        source = self._directory.find_queue(command.channel, command.queue_id)
        target = self._directory.find_queue(command.target, command.target_queue)
        if source is None or target is None:
            return RESULT_NOT_FOUND
        problem = self._problem_of(source, target, command.text)
        if problem != RESULT_OK:
            return problem
        core = self._core
        chosen = command.filter
        if chosen is None and command.text:
            try:
                chosen = core.wires.filter_of(command.language, command.text)
            except ValueError:
                return RESULT_BAD_REQUEST
        feed = Feed(source, target, chosen, command.language, command.text, core.now)
        self._attach(feed, source, target)
        self._note_change(source, target)
        self._feeder.pump(source, core.now, 0)
        return RESULT_OK

    def _problem_of(self, source: Queue, target: Queue, text: str) -> int:
        """Return 0 if one queue can feed another, otherwise the result code to answer."""
        limits = self._core.limits
        if self.find(source, target) is not None:
            return RESULT_DUPLICATE
        if source.options.group_keys != NO_KEYS or self._reaches(target, source):
            return RESULT_UNACCEPTABLE
        there = 0 if source.feeds is None else len(source.feeds)
        core = self._core
        if there >= limits.max_feeds_per_queue:
            return core.reached("max_feeds_per_queue")
        if len(target.fed_by) >= limits.max_feeds_into_queue:
            return core.reached("max_feeds_into_queue")
        if self._count >= limits.max_feeds:
            return core.reached("max_feeds")
        size = feed_bytes(target.channel_name, text)
        # The first feed moves what waits, and so makes room.
        is_first = there == 0 and source.waiting_count() + source.spilled > 0
        has_room = core.has_room_to_move(size) if is_first else core.has_room(size)
        return RESULT_OK if has_room else core.no_room()

    def _reaches(self, start: Queue, wanted: Queue) -> bool:
        """Whether messages of queue *start* get into queue *wanted*, or both are the same."""
        seen: dict[int, None] = {start.key: None}
        ahead = [start]
        looked_at = 0
        while ahead:
            queue = ahead.pop()
            if queue is wanted:
                break
            for feed in queue.feeds or ():
                looked_at += 1
                target = target_of(feed)
                if target.key not in seen:
                    seen[target.key] = None
                    ahead.append(target)
        self._core.work += looked_at // _FEEDS_PER_UNIT
        return wanted.key in seen

    def find(self, source: Queue, target: Queue) -> Feed | None:
        """The feed from one queue to another, or None."""
        for feed in source.feeds or ():
            if feed.target is target:
                return feed
        return None

    def _attach(self, feed: Feed, source: Queue, target: Queue) -> None:
        self._count += 1
        self._core.charge(feed.memory)
        target.fed_by.append(feed)
        if source.feeds is None:
            source.feeds = [feed]
            self._shape(source)
        else:
            source.feeds.append(feed)

    def _shape(self, source: Queue) -> None:
        """Adapt a queue to having feeds, or having none."""
        limits = self._core.limits
        source.configure(source.options, source.discipline, source.handler, limits)

    def _note_change(self, source: Queue, target: Queue) -> None:
        core = self._core
        core.notify_queue(QUEUE_UPDATED, source, source.options.status)
        if core.stores and not source.temporary and not target.temporary:
            core.keep(stored(source))

    # --- Removing --------------------------------------------------------------------------------

    def remove(self, source: Queue, target: Queue) -> bool:
        """Remove the feed from one queue to another; return False if there is none."""
        feed = self.find(source, target)
        if feed is None:
            return False
        self._detach(feed, source, target)
        self._note_change(source, target)
        return True

    def forget(self, queue: Queue) -> list[Queue]:
        """Remove the feeds of a removed queue; return the queues that fed it."""
        own = 0 if queue.feeds is None else len(queue.feeds)
        self._core.work += _FORGET_WORK * (own + len(queue.fed_by))
        for feed in list(queue.feeds or ()):
            self._detach(feed, queue, target_of(feed))
        sources: list[Queue] = []
        for feed in list(queue.fed_by):
            source = feed.source
            assert isinstance(source, Queue)
            self._detach(feed, source, queue)
            self._changed[source.key] = source
            sources.append(source)
        return sources

    def tell_changes(self) -> None:
        """Report what ``forget`` changed: once for each source, which may have lost many feeds."""
        if not self._changed:
            return
        core = self._core
        changed = self._changed
        self._changed = {}
        for source in changed.values():
            if source.closed:
                continue
            core.notify_queue(QUEUE_UPDATED, source, source.options.status)
            if core.stores and not source.temporary:
                core.keep(stored(source))
                core.work += 0 if source.feeds is None else len(source.feeds) // _FEEDS_PER_UNIT

    def _detach(self, feed: Feed, source: Queue, target: Queue) -> None:
        core = self._core
        feeds = source.feeds
        assert feeds is not None, "the feed is one of them"
        self._count -= 1
        core.refund(feed.memory)
        target.fed_by.remove(feed)
        feeds.remove(feed)
        if not feeds:
            source.feeds = None
            self._shape(source)
        self._feeder.release(target)
        if not source.closed and (source.waiting_count() or source.spilled):
            # The others may have waited only for this one.
            core.schedule(source)
        for queue in (source, target):
            if queue.fleeting and not queue.closed:
                core.note_emptied(queue)

    # --- Listing, and what was there before ------------------------------------------------------

    def list_feeds(self, command: Command, session: Session) -> None:
        """List the feeds of one queue of a channel, or of all."""
        assert isinstance(command, ListFeeds)
        core = self._core
        channel = core.channels.find(command.channel)
        queues: list[Queue] = []
        if channel is not None and command.queue_id < 0:
            queues.extend(channel.queues.values())
        elif channel is not None and command.queue_id in channel.queues:
            queues.append(channel.queues[command.queue_id])
        else:
            core.out.append(Reply(session.number, command.request, RESULT_NOT_FOUND))
            return
        core.charge_names(len(queues))
        feeds = [feed for queue in queues for feed in queue.feeds or ()]
        most = command.most_items or core.limits.max_list_items
        if len(feeds) > min(most, core.limits.max_list_items):
            code = core.reached("max_list_items")
            core.out.append(Reply(session.number, command.request, code))
            return
        core.work += 2 * len(feeds)  # each is long: the largest list is a portion of its own
        body = [FeedSnapshot(feed) for feed in feeds]
        core.out.append(Reply(session.number, command.request, RESULT_OK, body))

    def restore(self, command: RestoreFeed) -> None:
        """Restore a feed.

        :raises ValueError: if one of its queues is missing, the feed exists, or no door can read
            its filter.
        """
        source = self._directory.find_queue(command.channel, command.queue_id)
        target = self._directory.find_queue(command.target, command.target_queue)
        if source is None or target is None or self.find(source, target) is not None:
            names = (
                f"{command.channel}/{command.queue_id} to {command.target}/{command.target_queue}"
            )
            raise ValueError(f"the feed {names} cannot be restored: no queue, or it exists")
        core = self._core
        chosen: SubscriptionFilter | None = None
        if command.text:
            chosen = core.wires.filter_of(command.language, command.text)
        feed = Feed(source, target, chosen, command.language, command.text, core.now)
        self._attach(feed, source, target)
