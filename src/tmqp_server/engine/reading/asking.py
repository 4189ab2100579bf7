"""The questions to the storage that wait for an answer, and their queues.

Each question has a number and is in a bounded table until the storage has answered; the table knows
which session waits for it.  The module that asked handles the answer.
"""

from __future__ import annotations

from typing import Final

from tmqp._compat import mypyc_attr
from tmqp.constants import (
    RESULT_BUSY,
    RESULT_CONFLICT,
    RESULT_FORBIDDEN,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.engine.core import Core
from tmqp_server.engine.effects import Effect
from tmqp_server.engine.model.channel_names import matches
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session

__all__ = ["Asked", "StorageQuestions"]

#: Queues that are asked about for one unit of work.
_QUEUES_PER_UNIT: Final = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class Asked:
    """A question to the storage: the waiting session, the queues, and the last sequence of each.

    A question that is asked ``again``, for a watch, does not count against the limits.
    """

    __slots__ = ("session", "request", "queues", "ends", "again")

    def __init__(self, session: Session, request: object, queues: list[Queue]) -> None:
        self.session = session
        self.request = request
        self.queues = queues
        self.ends = [queue.appended for queue in queues]
        self.again = False

    def keys(self) -> list[int]:
        """The keys of the queues."""
        return [queue.key for queue in self.queues]


class StorageQuestions:
    """The questions of one broker.  ``store_id`` is the storage's name for itself."""

    __slots__ = ("store_id", "_asked", "_core", "_last")

    def __init__(self, core: Core) -> None:
        self._core = core
        self.store_id = ""
        self._asked: dict[int, Asked] = {}
        core.tables["reads"] = self._asked
        self._last = 0

    # --- Asking ----------------------------------------------------------------------------------

    def problem(self, session: Session) -> int:
        """0 if a question may be asked now, otherwise the result code to answer."""
        core = self._core
        if not core.stores:
            return RESULT_NOT_IMPLEMENTED
        own = count = 0
        for asked in self._asked.values():
            if asked.again:
                continue
            count += 1
            if asked.session is session:
                own += 1
        limits = core.limits
        if count >= limits.max_reads:
            return core.reached("max_reads", RESULT_BUSY)
        if own >= limits.max_reads_per_session:
            return core.reached("max_reads_per_session", RESULT_BUSY)
        return RESULT_OK

    def next_number(self) -> int:
        """The number of the next question."""
        return self._last + 1

    def ask(self, asked: Asked, question: Effect) -> None:
        """Ask the storage; the question must have ``next_number``."""
        self._last += 1
        self._asked[self._last] = asked
        self._core.out.append(question)

    def look_up(self, number: int) -> Asked | None:
        """The question of this number, if its answer is still awaited."""
        return self._asked.get(number)

    def take(self, number: int) -> Asked | None:
        """Remove and return the question that is answered; None, which is counted, if there is
        none."""
        asked = self._asked.pop(number, None)
        if asked is None:
            self._core.count_unknown_ticket()
        return asked

    # --- Queues ----------------------------------------------------------------------------------

    def find(self, channel_name: str, queue_id: int) -> Queue | None:
        """The queue of this name in any case, or None."""
        channel = self._core.channels.find(channel_name)
        return None if channel is None else channel.queues.get(queue_id)

    def channels(self, pattern: str, visible: frozenset[str] | None) -> list[Channel]:
        """The visible channels that pass a filter (F53), in the order of creation."""
        found: list[Channel] = []
        self._core.charge_names(len(self._core.channels.by_key))
        for channel in self._core.channels.by_key.values():
            if matches(channel.name, pattern) and (visible is None or channel.name in visible):
                found.append(channel)
        return found

    def select(
        self, pattern: str, queue_id: int | None, visible: frozenset[str] | None
    ) -> list[Queue] | None:
        """The queues of those channels, or those with *queue_id*; None if there are too many."""
        most = self._core.limits.max_queues_per_read
        queues: list[Queue] = []
        for channel in self.channels(pattern, visible):
            if channel.options.lifetime:
                continue  # the storage does not know it
            if queue_id is None:
                if len(queues) + len(channel.queues) > most:
                    return None  # not even listed: there may be 65,536
                queues.extend(channel.queues.values())
            else:
                queue = channel.queues.get(queue_id)
                if queue is not None:
                    queues.append(queue)
            if len(queues) > most:
                return None
        self.charge_queues(len(queues))
        return queues

    def charge_queues(self, count: int) -> None:
        """Count the work for so many queues of one question; see ``Core.charge_names``."""
        self._core.work += count // _QUEUES_PER_UNIT

    def problem_of(self, queue: Queue | None, incarnation: str, session: Session | None) -> int:
        """0 if questions about this queue are possible, otherwise the result code to answer.

        :param session: the asking session; None if it was checked already.
        """
        if not self._core.stores:
            return RESULT_NOT_IMPLEMENTED
        if queue is None:
            return RESULT_NOT_FOUND
        if queue.temporary:
            channel = self._core.channels.find(queue.channel_name)
            may = session is None or channel is None or channel.may_consume(session)
            return RESULT_UNACCEPTABLE if may else RESULT_FORBIDDEN
        if incarnation and incarnation != self.incarnation(queue):
            return RESULT_CONFLICT
        queue.audience.used = True
        return RESULT_OK

    def incarnation(self, queue: Queue) -> str:
        """The incarnation of a queue: the storage's name for itself, and the queue's key."""
        return f"{self.store_id}-{queue.key}"
