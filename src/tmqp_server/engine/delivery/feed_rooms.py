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

#: What a target says of a message: it has room, it is full, or it never has any.
FREE: Final = 0
FULL: Final = 1
NEVER_ROOM: Final = 2


class FeedRooms:
    """Asks targets, filters and the server about copies."""

    __slots__ = ("_core", "_outcomes", "asked")

    def __init__(self, core: Core, outcomes: Outcomes) -> None:
        self._core = core
        self._outcomes = outcomes
        #: The question that is asked now.
        self.asked = 0

    def ask(self) -> None:
        """Begin another question: what targets have said does not count any more."""
        self.asked += 1

    def room_in(self, feed: Feed, message: Message, asked: int = 0) -> int:
        """What the target of a feed says of a message: what it said to this question, the present
        one for 0, if nothing has entered it since."""
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
        """Whether there is memory for so many copies, and the storage can take those it saves.

        A message that only feeds get is moved: one of its copies takes its place.  Copies count as
        if each had bytes of its own, which they share; so one message with many large copies may
        pass that would fit at no time, if little else is there.
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
        """What a target says of a message: it has room, it is full, or it never has any."""
        size = message.size
        if size > target.size_cap or size > target.byte_cap or target.is_too_large_for_disk(size):
            return NEVER_ROOM
        if not target.discipline.stores:
            return FREE
        problem = self._outcomes.problem_of_queue(target, size, 0, 0)
        if problem == RESULT_LIMIT_EXCEEDED and target.options.when_full != REFUSE:
            problem = RESULT_OK  # others make way
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
