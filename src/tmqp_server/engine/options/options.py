"""The options of queues, channels and the broker, with the protocol's defaults.

A record of options is complete and immutable: to change options, a new record is made from the old
one and a record of *changes*, in which None means "not given" (F56, F71).  This module finds
invalid options before anything is created, and returns a result code.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    MAX_QUEUE_ID,
    RESULT_BAD_REQUEST,
    RESULT_LIMIT_EXCEEDED,
    RESULT_OK,
    STATUS_STOPPED,
)
from tmqp.extensions import (
    KEYS_NONE,
    KEYS_STICKY,
    KEYS_STRICT,
    LIFETIME_CONSUMERS,
    LIFETIME_OWNER,
    PRIORITIES_TEN,
    PRIORITIES_TWO,
    WHEN_FULL_DEAD_LETTER,
    WHEN_FULL_DROP_OLDEST,
    WHEN_FULL_REFUSE,
)
from tmqp_server.engine.events import LIFECYCLE_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options.table import CHANNEL_OPTIONS, NUMBER, QUEUE_OPTIONS, Option
from tmqp_server.engine.options.values import GivenQueueValues, QueueValues
from tmqp_server.engine.records import Record

__all__ = [
    "ASKS_ACKNOWLEDGE",
    "ASKS_NOTHING",
    "ASKS_RESPONSE",
    "DEAD_LETTER",
    "DEFAULT_HANDLER",
    "DROP_OLDEST",
    "KEPT",
    "NOWHERE",
    "NO_KEYS",
    "REFUSE",
    "STICKY",
    "STRICT",
    "TEN",
    "TO_CLIENTS",
    "TO_QUEUE",
    "TO_TAG",
    "TO_URL",
    "TWO",
    "WITH_CONSUMERS",
    "WITH_OWNER",
    "BindingOptions",
    "BrokerOptions",
    "ChannelChanges",
    "ChannelOptions",
    "QueueChanges",
    "QueueOptions",
]

#: The target of a binding (F120).
TO_CLIENTS: Final = 0
TO_QUEUE: Final = 1
TO_URL: Final = 2
TO_TAG: Final = 3

#: A binding that asks nothing of the receivers (F120).
ASKS_NOTHING: Final = 0
#: A binding whose receivers are to acknowledge (F120).
ASKS_ACKNOWLEDGE: Final = 1
#: A binding whose receivers are to respond (F120).
ASKS_RESPONSE: Final = 2

#: A channel stays until it is removed.
KEPT: Final = ""
#: It ends with the connection of the client that created it.
WITH_OWNER: Final = LIFETIME_OWNER
#: It ends when its last consumer leaves.
WITH_CONSUMERS: Final = LIFETIME_CONSUMERS

#: What happens to a push into a full queue: it is refused, or the message that has waited longest
#: makes way, dropped or moved to the dead letter queue.
REFUSE: Final = WHEN_FULL_REFUSE
DROP_OLDEST: Final = WHEN_FULL_DROP_OLDEST
DEAD_LETTER: Final = WHEN_FULL_DEAD_LETTER

#: The value of ``dead_letter`` in changes that removes it.
NOWHERE: Final = ("", 0)

#: How messages with the same key are treated: independently, one consumer gets them, or one of them
#: is unanswered at a time.
NO_KEYS: Final = KEYS_NONE
STICKY: Final = KEYS_STICKY
STRICT: Final = KEYS_STRICT

#: The values of ``priorities`` of a queue.
TWO: Final = PRIORITIES_TWO
TEN: Final = PRIORITIES_TEN

#: The delivery handler of a queue that names none.
DEFAULT_HANDLER: Final = "ack-if-asked"
_NUMBERS: Final[tuple[Option, ...]] = tuple([each for each in QUEUE_OPTIONS if each.kind == NUMBER])
_WORDS: Final[tuple[Option, ...]] = tuple([each for each in QUEUE_OPTIONS if each.words])
_CHANNEL_WORDS: Final[tuple[Option, ...]] = tuple([each for each in CHANNEL_OPTIONS if each.words])


class QueueOptions(QueueValues):
    """All options of one queue (specification, "Channel Queue Options"; defaults F73).

    They are declared in ``tmqp.models.options`` and ``table.py``.

    With ``when_full`` DROP_OLDEST or DEAD_LETTER, the message that has waited longest makes way
    when a push finds the queue full; high-priority messages do so last.

    ``group_keys`` is NO_KEYS, STICKY or STRICT (``model/keys.py``); it has an effect only if
    consumers take turns.

    With ``priorities`` TEN, each of JMS's ten priorities goes before the lower ones, among the
    messages of high priority and among the others (``model/levels.py``); with TWO, these do not
    differ.  Messages on disk only wait in order of arrival.

    ``dead_letter`` is the (channel, queue id) of the queue for messages that were put back too
    often; None drops them.  A ``put_back_limit`` of -1 means no limit.  For
    ``message_limit`` and ``message_size_limit`` (bytes), 0 means no limit; for
    ``message_timeout_ms``, no timeout.
    If ``use_message_id`` is off, a message that arrived without an id stays without one (F41);
    otherwise the door, not the engine, creates it.

    With ``durable``, every accepted message is saved, and a positive confirm waits for the storage.
    Such a queue, and one with ``overflow``, keeps ``memory_limit`` waiting messages of each
    priority in memory (0: ``EngineLimits.max_messages_in_memory``) and the rest on disk; and as
    many deferred messages, up to twice as many shortly before they are due.  An ``ephemeral`` queue
    is never on disk: messages that arrive when ``memory_limit`` is reached are dropped and counted.
    The ``retain_`` options say which settled messages the storage keeps for readers; 0 and false:
    none.
    """

    __slots__ = ()

    def problem(self, limits: EngineLimits) -> int:
        """0 if a queue can have these options, otherwise the result code to answer.

        400 for invalid values (a negative timeout, an unknown status number), 482 for values beyond
        the engine's limits.  The delivery handler's name is not checked here.
        """
        if not 0 <= self.status <= STATUS_STOPPED:
            return RESULT_BAD_REQUEST
        for option in _NUMBERS:
            if getattr(self, option.name) < option.least:
                return RESULT_BAD_REQUEST
        if self.ephemeral and (self.durable or self.overflow):
            return RESULT_BAD_REQUEST
        for option in _WORDS:
            if getattr(self, option.name) not in option.words:
                return RESULT_BAD_REQUEST
        if self.dead_letter is None and (
            self.expired_to_dead_letter or self.when_full == DEAD_LETTER
        ):
            return RESULT_BAD_REQUEST
        if self.dead_letter is not None and not 0 <= self.dead_letter[1] <= MAX_QUEUE_ID:
            return RESULT_BAD_REQUEST
        if self.acknowledge_timeout_ms > limits.max_acknowledge_timeout_ms:
            return RESULT_LIMIT_EXCEEDED
        if self.put_back_limit > limits.max_put_backs:
            return RESULT_LIMIT_EXCEEDED
        return RESULT_OK

    def retains(self) -> bool:
        """Whether settled messages are kept for readers."""
        return self.retain_for_readers or self.retain_bytes > 0 or self.retain_time_ms > 0

    def needs_storage(self) -> bool:
        """Whether only a broker with a storage can have such a queue."""
        return self.durable or self.overflow or self.retains()


class QueueChanges(GivenQueueValues):
    """Changes to the options of a queue; None leaves an option unchanged (F56, F71); NOWHERE as
    ``dead_letter`` removes the dead letter queue."""

    __slots__ = ()

    def applied_to(self, old: QueueOptions) -> QueueOptions:
        """Return *old* with these changes applied."""
        new = QueueOptions()
        for option in QUEUE_OPTIONS:
            given: object = getattr(self, option.name)
            setattr(new, option.name, getattr(old, option.name) if given is None else given)
        if new.dead_letter == NOWHERE:
            new.dead_letter = None
        return new


class ChannelOptions(Record):
    """All options of one channel (specification, "Channel Options"; F67, F70, F73).

    ``allowed_queues`` None allows every queue id; limits are unlimited at 0.  ``queue`` has the
    initial options of queues of this channel.  ``authenticator`` and ``event_handler`` name code of
    the world, empty for none; whether the names exist is not checked here.

    ``lifetime`` is KEPT, WITH_OWNER or WITH_CONSUMERS: the latter two make a channel *temporary*,
    so it is never stored.  Such a channel belongs to the session that created it, which is the only
    one that may consume if it is ``owner_only``.

    ``single_consumer`` makes every consumer exclusive (:class:`~.model.terms.Terms`).
    """

    __slots__ = (
        "allow_multiple_queues",
        "allowed_queues",
        "client_limit",
        "queue_limit",
        "destroy_when_empty",
        "lifetime",
        "idle_timeout_ms",
        "owner_only",
        "single_consumer",
        "queue",
        "authenticator",
        "event_handler",
    )

    def __init__(
        self,
        allow_multiple_queues: bool = True,
        allowed_queues: tuple[int, ...] | None = None,
        client_limit: int = 0,
        queue_limit: int = 0,
        destroy_when_empty: bool = False,
        lifetime: str = KEPT,
        idle_timeout_ms: int = 0,
        owner_only: bool = False,
        single_consumer: bool = False,
        queue: QueueOptions | None = None,
        authenticator: str = "",
        event_handler: str = "",
    ) -> None:
        self.allow_multiple_queues = allow_multiple_queues
        self.allowed_queues = allowed_queues
        self.client_limit = client_limit
        self.queue_limit = queue_limit
        self.destroy_when_empty = destroy_when_empty
        self.lifetime = lifetime
        self.idle_timeout_ms = idle_timeout_ms
        self.owner_only = owner_only
        self.single_consumer = single_consumer
        self.queue = QueueOptions() if queue is None else queue
        self.authenticator = authenticator
        self.event_handler = event_handler

    def problem(self, limits: EngineLimits) -> int:
        """0 if a channel can have these options, otherwise the result code to answer."""
        if self.client_limit < 0 or self.queue_limit < 0:
            return RESULT_BAD_REQUEST
        if self.allowed_queues is not None:
            for queue_id in self.allowed_queues:
                if not 0 <= queue_id <= MAX_QUEUE_ID:
                    return RESULT_BAD_REQUEST
        for option in _CHANNEL_WORDS:
            if getattr(self, option.name) not in option.words:
                return RESULT_BAD_REQUEST
        if self.idle_timeout_ms < 0:
            return RESULT_BAD_REQUEST
        if self.owner_only and self.lifetime != WITH_OWNER:
            return RESULT_BAD_REQUEST
        if 0 < self.idle_timeout_ms < limits.min_idle_timeout_ms:
            return RESULT_LIMIT_EXCEEDED
        problem = self.queue.problem(limits)
        return self.problem_of_queue(self.queue) if problem == RESULT_OK else problem

    def problem_of_queue(self, options: QueueOptions) -> int:
        """400 if the options of a queue need the storage, but the channel is temporary; otherwise
        0."""
        return RESULT_BAD_REQUEST if self.lifetime and options.needs_storage() else RESULT_OK

    def needs_owner(self) -> bool:
        """Whether only a session can create such a channel."""
        return self.lifetime == WITH_OWNER


class ChannelChanges(Record):
    """Changes to the options of a channel; None leaves an option unchanged (F70, F71)."""

    __slots__ = (
        "allow_multiple_queues",
        "allowed_queues",
        "client_limit",
        "queue_limit",
        "destroy_when_empty",
        "lifetime",
        "idle_timeout_ms",
        "owner_only",
        "single_consumer",
        "queue",
        "authenticator",
        "event_handler",
    )

    def __init__(
        self,
        allow_multiple_queues: bool | None = None,
        allowed_queues: tuple[int, ...] | None = None,
        client_limit: int | None = None,
        queue_limit: int | None = None,
        destroy_when_empty: bool | None = None,
        lifetime: str | None = None,
        idle_timeout_ms: int | None = None,
        owner_only: bool | None = None,
        single_consumer: bool | None = None,
        queue: QueueChanges | None = None,
        authenticator: str | None = None,
        event_handler: str | None = None,
    ) -> None:
        self.allow_multiple_queues = allow_multiple_queues
        self.allowed_queues = allowed_queues
        self.client_limit = client_limit
        self.queue_limit = queue_limit
        self.destroy_when_empty = destroy_when_empty
        self.lifetime = lifetime
        self.idle_timeout_ms = idle_timeout_ms
        self.owner_only = owner_only
        self.single_consumer = single_consumer
        self.queue = queue
        self.authenticator = authenticator
        self.event_handler = event_handler

    def applied_to(self, old: ChannelOptions) -> ChannelOptions:
        """Return *old* with these changes applied."""
        new = ChannelOptions(
            queue=old.queue if self.queue is None else self.queue.applied_to(old.queue)
        )
        for option in CHANNEL_OPTIONS:
            given: object = getattr(self, option.name)
            setattr(new, option.name, getattr(old, option.name) if given is None else given)
        return new


class BrokerOptions(Record):
    """The options of the whole broker (F54, F73, F74).

    ``channel`` has the initial options of channels and their queues.  ``events`` is a mask of event
    bits (``events.py``): the kinds for which ``Notify`` effects are made.  ``http_prefixes`` are
    those of URLs that HTTP bindings may call (``http_rules.py``); if there are none, there are no
    HTTP bindings.  ``storage`` means that there is a storage; without it, no queue can be durable.
    ``authenticators`` are the names that channels may use; ``event_handlers`` likewise, each with
    the mask of the events that it gets.  With ``takes_nodes``, sessions may be other nodes, as
    their Connect says; otherwise all are clients.  With ``shares_decisions``, other nodes are
    notified when a message of a queue is settled, and their notifications are accepted (F63).
    """

    __slots__ = (
        "auto_channel_creation",
        "auto_queue_creation",
        "channel",
        "events",
        "http_prefixes",
        "storage",
        "authenticators",
        "event_handlers",
        "takes_nodes",
        "shares_decisions",
    )

    def __init__(
        self,
        auto_channel_creation: bool = True,
        auto_queue_creation: bool = True,
        channel: ChannelOptions | None = None,
        events: int = LIFECYCLE_EVENTS,
        http_prefixes: tuple[str, ...] = (),
        storage: bool = False,
        authenticators: tuple[str, ...] = (),
        event_handlers: dict[str, int] | None = None,
        takes_nodes: bool = False,
        shares_decisions: bool = False,
    ) -> None:
        self.auto_channel_creation = auto_channel_creation
        self.auto_queue_creation = auto_queue_creation
        self.channel = ChannelOptions() if channel is None else channel
        self.events = events
        self.http_prefixes = http_prefixes
        self.storage = storage
        self.authenticators = authenticators
        self.event_handlers = {} if event_handlers is None else event_handlers
        self.takes_nodes = takes_nodes
        self.shares_decisions = shares_decisions

    def knows(self, channel: ChannelOptions) -> bool:
        """Whether all code that a channel's options name exists."""
        return (not channel.authenticator or channel.authenticator in self.authenticators) and (
            not channel.event_handler or channel.event_handler in self.event_handlers
        )


class BindingOptions(Record):
    """One binding (F121).  ``method`` and ``interaction`` are the protocol's numbers (F120).

    ``content_type`` is the queue of a queue binding, and the content type that a direct binding
    sends; None keeps the message's own.  For an HTTP binding it is the method, 0 to 4 for GET,
    POST, PUT, PATCH and DELETE; None is POST.
    """

    __slots__ = ("name", "kind", "target", "content_type", "priority", "interaction", "method")

    def __init__(
        self,
        name: str,
        kind: int,
        target: str,
        content_type: int | None,
        priority: int,
        interaction: int,
        method: int,
    ) -> None:
        self.name = name
        self.kind = kind
        self.target = target
        self.content_type = content_type
        self.priority = priority
        self.interaction = interaction
        self.method = method
