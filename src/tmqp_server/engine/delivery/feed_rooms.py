"""Whether the targets of feeds, and the server, have room for copies, and which feeds want one.

A target is checked once for each message, and again only if something has entered it since, because
a copy may arrive first on another way through feeds.  Each time that a message may be sent is a
separate check (``ask``).
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import RESULT_LIMIT_EXCEEDED, RESULT_OK
from tmqp_server.engine.books import DEFERRAL_BYTES, MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.feed_commits import target_of
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.message import Message, verdict
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import REFUSE

__all__ = ["FREE", "FULL", "NEVER_ROOM", "FeedRooms"]

#: A target has room for a message, is full, or never has room for it.
FREE: Final = 0
FULL: Final = 1
NEVER_ROOM: Final = 2


class FeedRooms:
    """Checks targets, filters and the server before messages are copied."""

    __slots__ = ("_core", "_outcomes", "asked")

    def __init__(self, core: Core, outcomes: Outcomes) -> None:
        self._core = core
        self._outcomes = outcomes
        #: The number of the current check.
        self.asked = 0

    def ask(self) -> None:
        """Begin a new check: earlier answers of targets no longer count."""
        self.asked += 1

    def room_in(self, feed: Feed, message: Message, asked: int = 0) -> int:
        """Whether the target of a feed has room for a message; the answer of this check is reused
        if nothing has entered the target since.  *asked* 0 means the current check."""
        target = target_of(feed)
        if not asked:
            asked = self.asked
        if feed.asked == asked and feed.asked_at == target.sequence:
            return feed.room
        room = self.room(target, message)
        feed.asked = asked
        feed.asked_at = target.sequence
        feed.room = room
        return room

    def has_room_for(self, queue: Queue, message: Message, copies: int, saving: int) -> bool:
        """Whether there is memory for so many copies, and the storage can take the *saving* ones
        that it saves.

        A message that only feeds get is moved: one of its copies takes its place.  Copies count as
        if each had its own bytes, although they share them; so a message with many large copies,
        which would never fit, is allowed if little else is in memory.
        """
        core = self._core
        size = message.size + MESSAGE_OVERHEAD_BYTES
        if message.rare is not None:
            size += DEFERRAL_BYTES
        most = core.limits.max_total_bytes
        more = copies * size
        if queue.audience.subscriptions:
            has_room = core.has_room(more)
        else:
            more -= size
            has_room = more <= 0 or core.has_room_to_move(more)
        if not has_room and (more <= most // 4 or core.total_bytes > most // 2):
            return False
        return not saving or core.can_save(saving * message.size)

    def room(self, target: Queue, message: Message) -> int:
        """FREE, FULL or NEVER_ROOM: whether a target has room for a message now, or ever."""
        size = message.size
        if size > target.size_cap or size > target.byte_cap or target.is_too_large_for_disk(size):
            return NEVER_ROOM
        if not target.discipline.stores:
            return FREE
        problem = self._outcomes.problem_of_queue(target, size, 0, 0)
        if problem == RESULT_LIMIT_EXCEEDED and target.options.when_full != REFUSE:
            problem = RESULT_OK  # other messages make way
        if problem != RESULT_OK:
            return FULL
        rare = message.rare
        if rare is not None and rare.due_at > self._core.now:
            limits = self._core.limits
            deferred = target.deferred
            if (
                len(deferred) >= limits.max_deferred_per_queue
                or deferred.size() + size > limits.max_deferred_bytes_per_queue
            ):
                return FULL
        return FREE

    def wants(self, queue: Queue, feed: Feed, message: Message) -> bool:
        """Whether the filter of a feed, if it has one, accepts a message."""
        found = verdict(feed.filter, message)
        if found is None:
            self._outcomes.count_error(queue)
        return found is True
