"""Channels and the table that finds them: look-up, limits, creation and removal.

A channel is an audience and the queues it shares (specification, "Features and Limitations":
clients join channels, not queues).  Look-up ignores case (F46) and is needed for every message,
so the table also remembers the spellings that were used, a bounded number of them for each
channel: finding a channel is then one dict access.

Clients of other protocols distinguish ``Orders`` from ``orders``.  Their doors mark a name as
*exact* (``EXACT_MARK`` before it).  An exact name finds a channel that was created with the mark
only by this spelling: another spelling is another channel, with escaped capitals (``%4Frders``).  A
channel created without the mark is found by every spelling, exact or not; names without the mark
also find an exact channel, unless another one has its name in another case.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    MAX_QUEUE_ID,
    RESULT_BAD_REQUEST,
    RESULT_DUPLICATE,
    RESULT_LIMIT_EXCEEDED,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp.names import EXACT_MARK
from tmqp_server.engine.books import MAX_SPELLINGS, Books, channel_bytes, queue_bytes
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.channel_names import escaped_name, is_channel_name, matches
from tmqp_server.engine.model.counters import QueueCounters
from tmqp_server.engine.model.delivery import HandlerRegistry
from tmqp_server.engine.model.disciplines import DISCIPLINES
from tmqp_server.engine.model.levels import LevelGauge
from tmqp_server.engine.model.progress import SurveyInProgress
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Audience, Session
from tmqp_server.engine.model.timers import Sleeper
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions

__all__ = ["Channel", "ChannelTable", "IdleTimer", "is_disposable"]

#: Queues in the remembered results of tag filters.
_TAGGED: Final = 65_536
#: Walks over all queues that are notified of removed queues.
_MOST_SURVEYS: Final = 16


def is_disposable(queue: Queue) -> bool:
    """Whether destroying a queue loses nothing: it has no message, and nothing needs it to stay."""
    if queue.feeds is not None or queue.fed_by:
        return False
    needed = queue.claims or queue.cursors or queue.options.retains()
    return not needed and queue.is_empty()


class IdleTimer(Sleeper):
    """Wakes the removal of a channel that is not used."""

    __slots__ = ("channel", "pushed")

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        #: None when the channel was removed.
        self.channel: Channel | None = channel
        #: What ``Channel.pushed`` returned at the last check.
        self.pushed = 0


class Channel:
    """One channel: its audience and its queues, in the order of creation."""

    __slots__ = (
        "name",
        "key",
        "options",
        "owner",
        "idle",
        "audience",
        "queues",
        "spellings",
        "memory",
        "exact",
        "leaving",
        "_busy",
    )

    def __init__(self, name: str, key: str, options: ChannelOptions, exact: str = "") -> None:
        #: The only exact name that finds it, without the mark; empty if every spelling does.
        self.exact = exact
        #: As its creator spelt it.
        self.name = name
        #: Its key in the table.
        self.key = key
        self.options = options
        #: The session with whose connection it ends.
        self.owner: Session | None = None
        #: Only if it has an idle timeout.
        self.idle: IdleTimer | None = None
        self.audience = Audience()
        self.audience.let_one_take(options.single_consumer)
        self.queues: dict[int, Queue] = {}
        #: Remembered spellings.
        self.spellings: list[str] = []
        #: Its charge in the broker's books, with its spellings.
        self.memory = channel_bytes(name, options)
        #: A queue that could not be destroyed at the last check; it is checked first.
        self._busy: Queue | None = None
        #: The queues that its removal, or all of its removals, will close, the next one last.
        self.leaving: list[Queue] = []

    @property
    def stored_name(self) -> str:
        """The name in the storage: the real name, and the exact one if it differs."""
        if not self.exact:
            return self.name
        if self.exact == self.name:
            return EXACT_MARK + self.name
        return f"{EXACT_MARK}{self.name}{EXACT_MARK}{self.exact}"

    @property
    def shared_name(self) -> str:
        """The name for other servers: the exact name with its mark, if it has one; otherwise the
        real name.  The real name of an exact channel depends on which of its spellings a server has
        seen first."""
        return EXACT_MARK + self.exact if self.exact else self.name

    def may_consume(self, session: Session) -> bool:
        """Whether a session may take or read messages, as far as this depends on the owner."""
        client = session if session.parent is None else session.parent
        return not self.options.owner_only or self.owner is client

    def pushed(self) -> int:
        """A number that increases with every message."""
        total = 0
        for queue in self.queues.values():
            total += queue.sequence
        return total

    def is_used(self) -> bool:
        """Whether it has a consumer, or one of its queues has a feed."""
        if self.audience.subscriptions:
            return True
        return any([queue.feeds is not None for queue in self.queues.values()])

    def is_idle(self, before: int) -> bool:
        """Whether nobody has used the channel since ``pushed`` returned *before* and
        ``Audience.used`` was cleared."""
        audience = self.audience
        if audience.used or audience.subscriptions or self.pushed() != before:
            return False
        return not any([queue.claims for queue in self.queues.values()])

    def is_disposable(self) -> bool:
        """Whether no client has joined and every queue can be destroyed (F101)."""
        if self.audience.subscriptions:
            return False
        busy = self._busy
        if busy is not None and not busy.closed and not is_disposable(busy):
            return False
        self._busy = None
        for queue in self.queues.values():
            if not is_disposable(queue):
                self._busy = queue
                return False
        return True


class ChannelTable:
    """All channels, found by name."""

    __slots__ = (
        "by_key",
        "by_spelling",
        "generation",
        "authenticator_changes",
        "last_key",
        "compared",
        "gone",
        "gauge",
        "_surveys",
        "_bearers",
        "_books",
        "_handlers",
        "_limits",
        "_options",
        "_tagged",
        "_tagged_queues",
    )

    def __init__(
        self, limits: EngineLimits, handlers: HandlerRegistry, options: BrokerOptions, books: Books
    ) -> None:
        #: In the order of creation.
        self.by_key: dict[str, Channel] = {}
        #: Some of the spellings that have been looked up; only a shortcut.
        self.by_spelling: dict[str, Channel] = {}
        #: Increases when a queue is created, removed or reconfigured.
        self.generation = 0
        #: Increases when a different authenticator decides about some name.
        self.authenticator_changes = 0
        #: The key of the queue created last; keys are never reused.
        self.last_key = 0
        self._books = books
        self._limits = limits
        self._handlers = handlers
        self._options = options
        #: The queues found by each tag filter, and the total number of entries.
        self._tagged: dict[str, list[Queue]] = {}
        self._tagged_queues = 0
        #: All queues with a tag; None if the list must be rebuilt.
        self._bearers: list[Queue] | None = None
        #: Tags that were compared with filters so far.
        self.compared = 0
        #: The counters of removed queues, so that sums never decrease.
        self.gone = QueueCounters()
        self._surveys: list[SurveyInProgress] = []
        #: Tells the priorities of messages.
        self.gauge = LevelGauge()

    def limit_to(self, limits: EngineLimits) -> None:
        """Apply new limits, also to all queues."""
        self._limits = limits
        for channel in self.by_key.values():
            for queue in channel.queues.values():
                queue.limit_to(limits)

    def find(self, name: str) -> Channel | None:
        """The channel of that name in any case, or None."""
        channel = self.by_spelling.get(name)
        if channel is not None:
            return channel
        if name.startswith(EXACT_MARK):
            channel = self._find_exact(name[1:])
        else:
            channel = self.by_key.get(name.lower())
        if channel is not None and len(channel.spellings) < MAX_SPELLINGS:
            self._remember(channel, name)
        return channel

    def _remember(self, channel: Channel, name: str) -> None:
        channel.spellings.append(name)
        self.by_spelling[name] = channel

    def _find_exact(self, name: str) -> Channel | None:
        # First the channel that was created for this spelling, even if another has the plain name
        # now.
        channel = self.by_key.get(escaped_name(name).lower())
        if channel is not None and channel.exact == name:
            return channel
        channel = self.by_key.get(name.lower())
        if channel is not None and channel.exact in ("", name):
            return channel
        return None

    def real_name(self, name: str) -> str:
        """The real name of a channel that is created under this name, marked or not."""
        if not name.startswith(EXACT_MARK):
            return name
        real, mark, _ = name[1:].partition(EXACT_MARK)
        if mark:
            return real
        return escaped_name(real) if real.lower() in self.by_key else real

    def shared_name(self, real: str) -> str:
        """The name for other servers of the channel that has this real name here."""
        channel = self.by_key.get(real.lower())
        return real if channel is None else channel.shared_name

    def tagged(self, filter: str) -> list[Queue]:
        """The queues whose tag passes a filter (F53), in the order of creation, up to one more than
        ``max_queues_per_publish``; a queue without a tag never passes.  Do not change the list."""
        found = self._tagged.get(filter)
        if found is not None:
            return found
        found = []
        most = self._limits.max_queues_per_publish
        known: dict[str, bool] = {}
        for queue in self._with_tags():
            self.compared += 1
            tag = queue.options.tag or ""
            fits = known.get(tag)
            if fits is None:
                fits = matches(tag, filter)
                known[tag] = fits
            if fits:
                found.append(queue)
                if len(found) > most:
                    break
        size = 1 + len(found)
        if self._tagged_queues + size > _TAGGED:
            self._tagged = {}
            self._tagged_queues = 0
        if size <= _TAGGED:
            self._tagged[filter] = found
            self._tagged_queues += size
        return found

    def _with_tags(self) -> list[Queue]:
        """The queues that have a tag, channel by channel in the order of creation."""
        if self._bearers is None:
            self._bearers = [
                queue
                for channel in self.by_key.values()
                for queue in channel.queues.values()
                if queue.options.tag
            ]
        return self._bearers

    def renew(self) -> None:
        """Note that a queue was created, removed or reconfigured."""
        self.generation += 1
        self._bearers = None
        if self._tagged_queues:
            self._tagged = {}
            self._tagged_queues = 0

    def problem_of_new(self, name: str, options: ChannelOptions) -> int:
        """0 if such a channel can be created, otherwise the result code to answer."""
        if name.startswith(EXACT_MARK):
            if self.find(name) is not None:
                return RESULT_DUPLICATE
            if EXACT_MARK in name[1:]:
                return RESULT_BAD_REQUEST
            name = self.real_name(name)
        if not is_channel_name(name, self._limits.max_name_bytes):
            return RESULT_BAD_REQUEST
        if name.lower() in self.by_key:
            return RESULT_DUPLICATE
        problem = self.problem_of_rules(options)
        if problem != RESULT_OK:
            return problem
        if len(self.by_key) >= self._limits.max_channels:
            return self._books.reached("max_channels")
        if not self._books.has_room(channel_bytes(name, options)):
            return self._books.no_room()
        return RESULT_OK

    def problem_of_change(self, channel: Channel, options: ChannelOptions) -> int:
        """0 if a channel's options can be changed to these, otherwise the result code to answer.

        ``lifetime`` and ``owner_only`` cannot be changed after the creation.
        """
        problem = self.problem_of_rules(options)
        was = channel.options
        if problem == RESULT_OK and (
            options.lifetime != was.lifetime or options.owner_only != was.owner_only
        ):
            return RESULT_UNACCEPTABLE
        if problem == RESULT_OK:
            more = channel_bytes(channel.name, options) - channel_bytes(
                channel.name, channel.options
            )
            if more > 0 and not self._books.has_room(more):
                return self._books.no_room()
        return problem

    def problem_of_rules(self, options: ChannelOptions) -> int:
        """0 if a channel can have these options, otherwise the result code to answer."""
        problem = options.problem(self._limits)
        if problem != RESULT_OK:
            return problem
        if self._handlers.find(options.queue.delivery_handler) is None or (
            not self._options.knows(options)
        ):
            return RESULT_UNACCEPTABLE
        if options.queue.needs_storage() and not self._options.storage:
            return RESULT_UNACCEPTABLE
        return self._problem_of_dead_letters(options.queue)

    def _problem_of_dead_letters(self, options: QueueOptions) -> int:
        """400 if the dead letter queue names a channel that cannot exist, otherwise 0."""
        target = options.dead_letter
        if target is None or is_channel_name(
            target[0].removeprefix(EXACT_MARK), self._limits.max_name_bytes
        ):
            return RESULT_OK
        return RESULT_BAD_REQUEST

    def create(self, name: str, options: ChannelOptions) -> Channel:
        """Create a channel; ``problem_of_new`` must have returned 0."""
        real = self.real_name(name)
        exact = name.rpartition(EXACT_MARK)[2] if name.startswith(EXACT_MARK) else ""
        channel = Channel(real, real.lower(), options, exact)
        self._books.charge(channel.memory)
        self.by_key[channel.key] = channel
        if exact:
            self._remember(channel, EXACT_MARK + exact)
        self._note_authenticator(options)
        return channel

    def change_rules(self, channel: Channel, options: ChannelOptions) -> None:
        """Change a channel's options; ``problem_of_change`` must have returned 0."""
        if options.authenticator != channel.options.authenticator:
            self.authenticator_changes += 1
        more = channel_bytes(channel.name, options) - channel_bytes(channel.name, channel.options)
        self._books.charge(more)
        channel.memory += more
        changes = options.destroy_when_empty != channel.options.destroy_when_empty
        channel.options = options
        channel.audience.let_one_take(options.single_consumer)
        if changes:
            for queue in channel.queues.values():
                queue.make_fleeting(options.destroy_when_empty)

    def _note_authenticator(self, options: ChannelOptions) -> None:
        """Note that a channel was created or removed; nothing changes if it has the default
        authenticator."""
        if options.authenticator != self._options.channel.authenticator:
            self.authenticator_changes += 1

    def authenticator_of(self, name: str) -> str:
        """The name of the authenticator that decides about a channel, or, if the channel is
        missing, about a new one; empty for the server's."""
        channel = self.find(name)
        options = self._options.channel if channel is None else channel.options
        return options.authenticator

    def remove(self, channel: Channel) -> None:
        """Remove a channel; its queues must have been removed."""
        self._books.refund(channel.memory)
        self._note_authenticator(channel.options)
        del self.by_key[channel.key]
        for spelling in channel.spellings:
            del self.by_spelling[spelling]

    def knows_handler(self, name: str) -> bool:
        """Whether a delivery handler of that name is registered."""
        return self._handlers.find(name) is not None

    def problem_of_options(self, options: QueueOptions) -> int:
        """0 if a queue can have these options, otherwise the result code to answer."""
        problem = options.problem(self._limits)
        if problem == RESULT_OK and self._handlers.find(options.delivery_handler) is None:
            return RESULT_UNACCEPTABLE
        if problem == RESULT_OK and options.needs_storage() and not self._options.storage:
            return RESULT_UNACCEPTABLE
        return problem if problem != RESULT_OK else self._problem_of_dead_letters(options)

    def problem_of_new_queue(
        self,
        name: str,
        channel: Channel | None,
        rules: ChannelOptions,
        queue_id: int,
        options: QueueOptions,
    ) -> int:
        """0 if such a queue can be created, otherwise the result code to answer.

        *channel* is None if a channel of this *name* will be created, too, with *rules* as its
        options.
        """
        if not 0 <= queue_id <= MAX_QUEUE_ID:
            return RESULT_BAD_REQUEST
        there = 0
        if channel is not None:
            if queue_id in channel.queues:
                return RESULT_DUPLICATE
            there = len(channel.queues)
        # None and the empty list both allow all (specification, "Channel Information").
        if rules.allowed_queues and queue_id not in rules.allowed_queues:
            return RESULT_UNACCEPTABLE
        if there and not rules.allow_multiple_queues:
            return RESULT_LIMIT_EXCEEDED
        if rules.queue_limit and there >= rules.queue_limit:
            return RESULT_LIMIT_EXCEEDED
        if there >= self._limits.max_queues_per_channel:
            return self._books.reached("max_queues_per_channel")
        problem = self.problem_of_options(options)
        if problem == RESULT_OK:
            problem = rules.problem_of_queue(options)
        if problem == RESULT_OK:
            size = queue_bytes(options)
            if channel is None:
                size += channel_bytes(name, rules)
            if not self._books.has_room(size):
                return self._books.no_room()
        return problem

    def create_queue(self, channel: Channel, queue_id: int, options: QueueOptions) -> Queue:
        """Create a queue; ``problem_of_new_queue`` must have returned 0."""
        handler = self._handlers.find(options.delivery_handler)
        assert handler is not None
        discipline = DISCIPLINES[options.status]
        queue = Queue(
            channel.name,
            queue_id,
            channel.audience,
            discipline,
            handler,
            options,
            self._limits,
            self.gauge,
        )
        self.last_key += 1
        queue.key = self.last_key
        queue.memory = queue_bytes(options)
        self._books.charge(queue.memory)
        queue.make_fleeting(channel.options.destroy_when_empty)
        queue.temporary = bool(channel.options.lifetime)
        channel.audience.used = True
        channel.queues[queue_id] = queue
        self.renew()
        return queue

    def begin_survey(self) -> SurveyInProgress:
        """Begin a walk over all queues: the returned object is notified of removed queues.  If
        there are too many walks, the oldest one is dropped."""
        if len(self._surveys) >= _MOST_SURVEYS:
            self._surveys.pop(0)
        found = SurveyInProgress()
        self._surveys.append(found)
        return found

    def end_survey(self, survey: SurveyInProgress) -> None:
        """End a walk."""
        if survey in self._surveys:
            self._surveys.remove(survey)

    def remove_queue(self, channel: Channel, queue: Queue) -> None:
        """Remove a queue."""
        channel.audience.used = True
        del channel.queues[queue.queue_id]
        for each in self._surveys:
            if queue.key not in each.seen:
                each.left.add(queue.counters)
        self.gone.add(queue.counters)
        queue.counters = self.gone  # for its messages, which are still counted
        self._books.refund(queue.memory)
        self.renew()

    def reconfigure(self, queue: Queue, options: QueueOptions) -> None:
        """Change a queue's options; ``problem_of_options`` must have returned 0."""
        handler = self._handlers.find(options.delivery_handler)
        assert handler is not None
        self.renew()
        more = queue_bytes(options) - queue_bytes(queue.options)
        queue.memory += more
        self._books.charge(more)
        queue.configure(options, DISCIPLINES[options.status], handler, self._limits)
