"""Owns channels and the table that finds them: names, look-up, limits, creation and removal.

A channel is an audience and the queues it shares (specification, "Features and Limitations":
clients join channels, not queues).  Look-up ignores case (F46) and is needed for every message,
so the table also remembers the spellings that were used, a bounded number of them for each
channel: finding a channel is then one dict access.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    FORBIDDEN_NAME_CHARACTERS,
    MAX_QUEUE_ID,
    RESULT_BAD_REQUEST,
    RESULT_DUPLICATE,
    RESULT_LIMIT_EXCEEDED,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp.names import fault_of_name
from tmqp_server.engine.delivery import HandlerRegistry
from tmqp_server.engine.disciplines import DISCIPLINES
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions
from tmqp_server.engine.queues import Queue
from tmqp_server.engine.sessions import Audience

__all__ = ["Channel", "ChannelTable", "is_channel_name", "matches"]

#: Spellings remembered for each channel.
_SPELLINGS: Final = 8


def is_channel_name(name: str, max_bytes: int) -> bool:
    """Whether a channel may have this name (F47).

    Control characters and their like are refused as well (``tmqp.names``): names travel in header
    lines, where a line break would start another header, and are shown in terminals.
    """
    if not name or len(name.encode("utf-8", "surrogatepass")) > max_bytes:
        return False
    for character in name:
        if character in FORBIDDEN_NAME_CHARACTERS:
            return False
    return not fault_of_name(name)


def matches(text: str, pattern: str) -> bool:
    """Whether *text* passes the filter *pattern* (F53); an empty filter lets everything pass.

    ``*x*`` contains, ignoring case; ``*x`` ends and ``x*`` starts with x, in this case; anything
    else is equal, ignoring case.  A star in the middle is a star.
    """
    if not pattern:
        return True
    if pattern.startswith("*"):
        if pattern.endswith("*"):
            return pattern[1:-1].lower() in text.lower()
        return text.endswith(pattern[1:])
    if pattern.endswith("*"):
        return text.startswith(pattern[:-1])
    return text.lower() == pattern.lower()


class Channel:
    """One channel: its audience and its queues, in the order of creation."""

    __slots__ = ("name", "key", "options", "audience", "queues", "spellings", "leaving")

    def __init__(self, name: str, key: str, options: ChannelOptions) -> None:
        #: As spelt by whoever created it.
        self.name = name
        #: As the table has it.
        self.key = key
        self.options = options
        self.audience = Audience()
        self.queues: dict[int, Queue] = {}
        #: Remembered spellings.
        self.spellings: list[str] = []
        #: The queues that its removal, or all of its removals, will close, the next one last.
        self.leaving: list[Queue] = []

    def is_empty(self) -> bool:
        """Whether nobody has joined and no queue has a message that is not settled (F101)."""
        if self.audience.subscriptions:
            return False
        return all([queue.is_empty() for queue in self.queues.values()])


class ChannelTable:
    """All channels, found by name."""

    __slots__ = (
        "by_key",
        "by_spelling",
        "generation",
        "authenticator_changes",
        "last_key",
        "_tagged",
        "_tagged_at",
        "_limits",
        "_handlers",
        "_options",
    )

    def __init__(
        self, limits: EngineLimits, handlers: HandlerRegistry, options: BrokerOptions
    ) -> None:
        #: In the order of creation.
        self.by_key: dict[str, Channel] = {}
        #: Some of the spellings by which channels were asked for; a shortcut, not the truth.
        self.by_spelling: dict[str, Channel] = {}
        #: Rises whenever a queue comes, goes or changes its options.
        self.generation = 0
        self._tagged: list[Queue] = []
        self._tagged_at = -1
        #: Rises whenever another authenticator is to be asked about some name than before.
        self.authenticator_changes = 0
        #: The key of the queue created last; none is given twice.
        self.last_key = 0
        self._limits = limits
        self._handlers = handlers
        self._options = options

    def find(self, name: str) -> Channel | None:
        """The channel of that name in any case, or None."""
        channel = self.by_spelling.get(name)
        if channel is not None:
            return channel
        channel = self.by_key.get(name.lower())
        if channel is not None and len(channel.spellings) < _SPELLINGS:
            channel.spellings.append(name)
            self.by_spelling[name] = channel
        return channel

    def problem_of_new(self, name: str, options: ChannelOptions) -> int:
        """0 when such a channel can be created, else the result code to answer."""
        if not is_channel_name(name, self._limits.max_name_bytes):
            return RESULT_BAD_REQUEST
        if name.lower() in self.by_key:
            return RESULT_DUPLICATE
        problem = options.problem(self._limits)
        if problem != RESULT_OK:
            return problem
        if self._handlers.find(options.queue.delivery_handler) is None or (
            not self._options.knows(options)
        ):
            return RESULT_UNACCEPTABLE
        if options.queue.needs_storage() and not self._options.storage:
            return RESULT_UNACCEPTABLE
        if len(self.by_key) >= self._limits.max_channels:
            return RESULT_LIMIT_EXCEEDED
        return RESULT_OK

    def create(self, name: str, options: ChannelOptions) -> Channel:
        """Create a channel; ``problem_of_new`` must have said 0."""
        channel = Channel(name, name.lower(), options)
        self.by_key[channel.key] = channel
        self._note_authenticator(options)
        return channel

    def _note_authenticator(self, options: ChannelOptions) -> None:
        """A channel came or went; nothing changes if it has the authenticator that all have."""
        if options.authenticator != self._options.channel.authenticator:
            self.authenticator_changes += 1

    def authenticator_of(self, name: str) -> str:
        """Who is to be asked about a channel: its authenticator, or that of a new one if it is
        missing; empty for none of its own."""
        channel = self.find(name)
        options = self._options.channel if channel is None else channel.options
        return options.authenticator

    def remove(self, channel: Channel) -> None:
        """Forget a channel."""
        self._note_authenticator(channel.options)
        del self.by_key[channel.key]
        for spelling in channel.spellings:
            del self.by_spelling[spelling]

    def knows_handler(self, name: str) -> bool:
        """Whether a delivery handler of that name is registered."""
        return self._handlers.find(name) is not None

    def problem_of_options(self, options: QueueOptions) -> int:
        """0 when a queue can have these options, else the result code to answer."""
        problem = options.problem(self._limits)
        if problem == RESULT_OK and self._handlers.find(options.delivery_handler) is None:
            return RESULT_UNACCEPTABLE
        if problem == RESULT_OK and options.needs_storage() and not self._options.storage:
            return RESULT_UNACCEPTABLE
        return problem

    def problem_of_new_queue(
        self, channel: Channel | None, rules: ChannelOptions, queue_id: int, options: QueueOptions
    ) -> int:
        """0 when such a queue can be created, else the result code to answer.

        *channel* is None when it is to be created too, with *rules* as its options.
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
        if (rules.queue_limit and there >= rules.queue_limit) or (
            there >= self._limits.max_queues_per_channel
        ):
            return RESULT_LIMIT_EXCEEDED
        return self.problem_of_options(options)

    def tagged(self) -> list[Queue]:
        """The queues that have a tag, channel by channel in the order of creation."""
        if self._tagged_at != self.generation:
            self._tagged_at = self.generation
            self._tagged = [
                queue
                for channel in self.by_key.values()
                for queue in channel.queues.values()
                if queue.options.tag
            ]
        return self._tagged

    def create_queue(self, channel: Channel, queue_id: int, options: QueueOptions) -> Queue:
        """Create a queue; ``problem_of_new_queue`` must have said 0."""
        handler = self._handlers.find(options.delivery_handler)
        assert handler is not None
        discipline = DISCIPLINES[options.status]
        queue = Queue(
            channel.name, queue_id, channel.audience, discipline, handler, options, self._limits
        )
        self.last_key += 1
        queue.key = self.last_key
        channel.queues[queue_id] = queue
        self.generation += 1
        return queue

    def reconfigure(self, queue: Queue, options: QueueOptions) -> None:
        """Give a queue new options; ``problem_of_options`` must have said 0."""
        handler = self._handlers.find(options.delivery_handler)
        assert handler is not None
        self.generation += 1
        queue.configure(options, DISCIPLINES[options.status], handler, self._limits)
