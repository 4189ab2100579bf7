"""Snapshots: read-only copies of the engine's state, for replies to requests for information.

Field names are the specification's, in this language's spelling (F67-F69); units come last.  Times
are monotonic seconds of the engine's clock, None for never: the world that owns the clock turns
them into dates.  A snapshot never changes after it was taken.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.model.ages import oldest_since
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.options import ChannelOptions, QueueOptions
from tmqp_server.engine.records import Record

__all__ = [
    "BROKEN",
    "BROWSED_ALL",
    "BROWSED_DEFERRED",
    "BROWSED_IN_FLIGHT",
    "BROWSED_WAITING",
    "COMMITTED",
    "COMMITTING",
    "OPEN",
    "BrokerStatistics",
    "BrowseSnapshot",
    "BrowsedMessage",
    "ChannelSnapshot",
    "ClientSnapshot",
    "CursorSnapshot",
    "FeedSnapshot",
    "KeptOffsets",
    "OffsetsSnapshot",
    "QueueSnapshot",
    "RouterSnapshot",
    "ServerSnapshot",
    "TransactionSnapshot",
]

#: The states of a transaction, and an epoch.
OPEN: Final = "open"
COMMITTING: Final = "committing"
COMMITTED: Final = "committed"
#: A push into it was refused: it can only be aborted.
BROKEN: Final = "broken"

#: The states of a browsed message.
BROWSED_WAITING: Final = 1
BROWSED_DEFERRED: Final = 2
BROWSED_IN_FLIGHT: Final = 4
BROWSED_ALL: Final = 7


class BrowsedMessage(Record):
    """A message of a queue, as shown by a browse.

    What may change later is copied from the ``message``.  ``state`` is one of ``BROWSED_...``;
    ``kept`` means that the storage has the message or was asked to save it.
    """

    __slots__ = (
        "sequence",
        "message_id",
        "source",
        "message",
        "size",
        "high_priority",
        "wants_confirm",
        "kept",
        "state",
        "attempts",
        "put_backs",
        "expires_s",
        "due_s",
    )

    def __init__(
        self,
        sequence: int,
        message_id: str,
        source: str,
        message: Message,
        size: int,
        high_priority: bool,
        wants_confirm: bool,
        kept: bool,
        state: int,
        attempts: int,
        put_backs: int,
        expires_s: float | None,
        due_s: float | None,
    ) -> None:
        self.sequence = sequence
        self.message_id = message_id
        self.source = source
        self.message = message
        self.size = size
        self.high_priority = high_priority
        self.wants_confirm = wants_confirm
        self.kept = kept
        self.state = state
        self.attempts = attempts
        self.put_backs = put_backs
        self.expires_s = expires_s
        self.due_s = due_s


class BrowseSnapshot(Record):
    """Messages of one queue, by rising sequence, and whether their producers must be hidden."""

    __slots__ = ("items", "hide_source")

    def __init__(self, items: list[BrowsedMessage], hide_source: bool) -> None:
        self.items = items
        self.hide_source = hide_source


class ChannelSnapshot(Record):
    """One channel (F67)."""

    __slots__ = ("name", "queues", "options", "active_clients", "owner")

    def __init__(self, channel: Channel) -> None:
        self.name: str = channel.name
        self.queues: tuple[int, ...] = tuple(channel.queues)
        self.options: ChannelOptions = channel.options
        self.active_clients: int = len(channel.audience.subscriptions)
        owner = channel.owner
        self.owner: str | None = None if owner is None else owner.client_id


class FeedSnapshot(Record):
    """One feed: its queues, the written form of its filter, and its counters.

    ``copied`` messages were copied, ``passed`` were not accepted by the filter, and the target
    could not take ``skipped``.  ``waiting`` is the number of messages that wait in the source and
    are not copied yet.
    """

    __slots__ = (
        "channel",
        "queue_id",
        "target",
        "target_queue",
        "language",
        "text",
        "copied",
        "passed",
        "skipped",
        "waiting",
    )

    def __init__(self, feed: Feed) -> None:
        source, target = feed.source, feed.target
        assert isinstance(source, Queue)
        self.channel: str = source.channel_name
        self.queue_id: int = source.queue_id
        self.target: str = target.channel_name
        self.target_queue: int = target.queue_id
        self.language: str = feed.language
        self.text: str = feed.text
        self.copied: int = feed.copied
        self.passed: int = feed.passed
        self.skipped: int = feed.skipped
        self.waiting: int = source.high_in_all() + source.regular_in_all()


class QueueSnapshot(Record):
    """One queue (F68): its own options (contradiction 44), its counters, and where messages are.

    Unless a batch or commit is being saved, the counters from ``accepted`` to ``dropped`` balance:
    accepted = priority_messages + messages + deferred + in_flight + done + expired + dead + cleared
    + dropped.  Of the waiting messages ``spilled`` are on disk only; ``overflowed`` and ``damaged``
    ones are among the dropped.  ``consumers`` have joined the channel; ``oldest_since_s`` is when
    the first of the messages that wait in memory arrived.
    """

    __slots__ = (
        "channel",
        "queue_id",
        "options",
        "priority_messages",
        "messages",
        "spilled",
        "deferred",
        "in_flight",
        "bytes",
        "disk_bytes",
        "last_sequence",
        "accepted",
        "restored",
        "done",
        "expired",
        "dead",
        "cleared",
        "dropped",
        "received_messages",
        "sent_messages",
        "deliveries",
        "negative_acks",
        "acks",
        "unknown_acks",
        "ack_timeouts",
        "timeout_messages",
        "saved_messages",
        "removed_messages",
        "errors",
        "refused",
        "requeued",
        "released",
        "skipped",
        "untracked",
        "overflowed",
        "displaced",
        "damaged",
        "starved",
        "consumers",
        "oldest_since_s",
        "last_message_received_s",
        "last_message_sent_s",
    )

    def __init__(self, queue: Queue) -> None:
        self.channel: str = queue.channel_name
        self.queue_id: int = queue.queue_id
        self.options: QueueOptions = queue.options
        self.priority_messages: int = queue.high_in_all()
        self.messages: int = queue.regular_in_all()
        self.spilled: int = queue.spilled
        self.deferred: int = len(queue.deferred)
        self.in_flight: int = queue.in_flight()
        self.bytes: int = queue.bytes
        self.disk_bytes: int = queue.disk_bytes
        self.last_sequence: int = queue.sequence
        counters = queue.counters
        self.accepted: int = counters.accepted - counters.undone
        self.restored: int = counters.restored
        self.done: int = counters.done
        self.expired: int = counters.expired
        self.dead: int = counters.dead
        self.cleared: int = counters.cleared
        self.dropped: int = counters.dropped
        self.received_messages: int = counters.received - counters.undone
        self.sent_messages: int = counters.sent
        self.deliveries: int = counters.deliveries - counters.missed
        self.negative_acks: int = counters.negative_acks
        self.acks: int = counters.acks
        self.unknown_acks: int = counters.unknown_acks
        self.ack_timeouts: int = counters.ack_timeouts
        self.timeout_messages: int = counters.expired
        self.saved_messages: int = counters.saved
        self.removed_messages: int = counters.removed
        self.errors: int = counters.errors
        self.refused: int = counters.refused
        self.requeued: int = counters.requeued
        self.released: int = counters.released
        self.skipped: int = counters.skipped
        self.untracked: int = counters.untracked
        self.overflowed: int = counters.overflowed
        self.displaced: int = counters.displaced
        self.damaged: int = counters.damaged
        self.starved: int = counters.starved
        self.consumers: int = len(queue.audience.subscriptions)
        self.oldest_since_s: float | None = oldest_since(queue)
        self.last_message_received_s: float | None = _time(counters.last_received)
        self.last_message_sent_s: float | None = _time(counters.last_sent)


def _time(seconds: float) -> float | None:
    return None if seconds < 0.0 else seconds


class ClientSnapshot(Record):
    """One client (F69).  ``online_ms`` counts from connecting, or, among the consumers of a
    channel, from joining.

    The counters of a client include those of its branches; a branch, which appears among the
    consumers of a channel, has the data of its client but its own counters.
    """

    __slots__ = (
        "session",
        "client_id",
        "name",
        "client_type",
        "door",
        "online_ms",
        "is_authenticated",
        "subscriptions",
        "in_flight",
        "pushed",
        "delivered",
        "acknowledged",
        "negative_acks",
        "ack_timeouts",
        "unknown_acks",
        "blocked",
    )

    def __init__(self, session: Session, since: float, now: float) -> None:
        client = session if session.parent is None else session.parent
        self.session: int = client.number
        self.client_id: str = session.client_id
        self.name: str | None = session.name
        self.client_type: str | None = session.client_type
        self.door: str = session.door
        self.online_ms: int = max(int((now - since) * 1000), 0)
        self.is_authenticated: bool = session.authenticated
        counted = [session, *(session.branches or {}).values()]
        self.subscriptions: int = sum([len(each.subscriptions) for each in counted])
        self.in_flight: int = sum([each.in_flight for each in counted])
        self.pushed: int = sum([each.pushed for each in counted])
        self.delivered: int = sum([each.delivered_in_all() for each in counted])
        self.acknowledged: int = sum([each.acknowledged for each in counted])
        self.negative_acks: int = sum([each.negative_acks for each in counted])
        self.ack_timeouts: int = sum([each.ack_timeouts for each in counted])
        self.unknown_acks: int = sum([each.unknown_acks for each in counted])
        self.blocked: bool = session.blocked


class ServerSnapshot(Record):
    """The server itself: its time, and how much of its most important limits is used."""

    __slots__ = ("now", "sessions", "max_sessions", "total_bytes", "max_total_bytes")

    def __init__(
        self, now: float, sessions: int, max_sessions: int, total_bytes: int, max_total_bytes: int
    ) -> None:
        self.now = now
        self.sessions = sessions
        self.max_sessions = max_sessions
        self.total_bytes = total_bytes
        self.max_total_bytes = max_total_bytes


class RouterSnapshot(Record):
    """One router (F60)."""

    __slots__ = ("name", "method", "enabled")

    def __init__(self, name: str, method: int, enabled: bool = True) -> None:
        self.name = name
        self.method = method
        self.enabled = enabled


class BrokerStatistics(Record):
    """The whole broker at one moment; ``bytes`` and ``state_bytes`` are the memory it takes."""

    __slots__ = (
        "sessions",
        "channels",
        "queues",
        "messages",
        "in_flight",
        "bytes",
        "unsynced",
        "dead_lettered",
        "confirms_skipped",
        "stray_commands",
        "unknown_acks",
        "unknown_tickets",
        "directs_skipped",
        "answers_dropped",
        "events_skipped",
        "decisions_applied",
        "decisions_unknown",
        "state_bytes",
        "withheld",
    )

    def __init__(
        self,
        sessions: int,
        channels: int,
        queues: int,
        messages: int,
        in_flight: int,
        bytes_: int,
        unsynced: int,
        dead_lettered: int,
        confirms_skipped: int,
        stray_commands: int,
        unknown_acks: int,
        unknown_tickets: int,
        directs_skipped: int,
        answers_dropped: int,
        events_skipped: int,
        decisions_applied: int = 0,
        decisions_unknown: int = 0,
        state_bytes: int = 0,
        withheld: int = 0,
    ) -> None:
        self.sessions = sessions
        self.channels = channels
        self.queues = queues
        #: Waiting and deferred.
        self.messages = messages
        self.in_flight = in_flight
        #: Memory charged for messages, and for everything else (see ``books.py``).
        self.bytes = bytes_
        self.state_bytes = state_bytes
        #: Messages that the storage was asked to save and has not answered.
        self.unsynced = unsynced
        self.dead_lettered = dead_lettered
        #: Confirms not made because the producer had gone.
        self.confirms_skipped = confirms_skipped
        #: Commands of sessions that were not connected.
        self.stray_commands = stray_commands
        #: Acknowledges for queues that do not exist.
        self.unknown_acks = unknown_acks
        #: Answers of the storage that match no request.
        self.unknown_tickets = unknown_tickets
        #: Direct messages not sent to a client because its outbound buffer was full.
        self.directs_skipped = directs_skipped
        #: Responses and acknowledgements that were not passed on.
        self.answers_dropped = answers_dropped
        #: Events not told to a subscriber because its outbound buffer was full.
        self.events_skipped = events_skipped
        #: Decisions of other nodes about messages that were here, and that were not.
        self.decisions_applied = decisions_applied
        self.decisions_unknown = decisions_unknown
        #: Messages that stay on disk because no door of this server can read them.
        self.withheld = withheld


class OffsetsSnapshot(Record):
    """What can be read of a queue.

    If nothing is kept, ``latest`` is the last sequence that was used and ``earliest`` the next.
    ``committed`` (-1: no such cursor) and ``at`` (greater than ``latest``: none) are None if they
    were not requested.
    """

    __slots__ = (
        "channel",
        "queue_id",
        "incarnation",
        "earliest",
        "latest",
        "count",
        "bytes",
        "oldest_us",
        "committed",
        "at",
    )

    def __init__(self, queue: Queue, incarnation: str, kept: KeptOffsets, end: int) -> None:
        self.channel: str = queue.channel_name
        self.queue_id: int = queue.queue_id
        self.incarnation = incarnation
        self.earliest: int = kept.earliest if kept.count else end + 1
        self.latest: int = kept.latest if kept.count else end
        self.count: int = kept.count
        self.bytes: int = kept.bytes
        self.oldest_us: int = kept.oldest_us
        self.committed: int | None = None
        self.at: int | None = None


class CursorSnapshot(Record):
    """The position of a reader, which has processed everything up to ``sequence``.

    ``behind`` and ``behind_bytes`` measure what is kept after that; None if not requested.
    """

    __slots__ = (
        "name",
        "channel",
        "queue_id",
        "incarnation",
        "sequence",
        "behind",
        "behind_bytes",
    )

    def __init__(self, name: str, queue: Queue, incarnation: str, sequence: int) -> None:
        self.name = name
        self.channel: str = queue.channel_name
        self.queue_id: int = queue.queue_id
        self.incarnation = incarnation
        self.sequence = sequence
        self.behind: int | None = None
        self.behind_bytes: int | None = None


class KeptOffsets(Record):
    """What is kept of a queue, as the storage says; all 0 for nothing.

    ``earliest`` and ``latest`` are sequences, ``oldest_us`` is when the earliest arrived, in
    microseconds of Unix time.  ``at`` is the first one that arrived at the requested time or later.
    """

    __slots__ = ("earliest", "latest", "count", "bytes", "oldest_us", "at")

    def __init__(
        self,
        earliest: int,
        latest: int,
        count: int,
        bytes: int,
        oldest_us: int,
        at: int = 0,
    ) -> None:
        self.earliest = earliest
        self.latest = latest
        self.count = count
        self.bytes = bytes
        self.oldest_us = oldest_us
        self.at = at


class TransactionSnapshot(Record):
    """A transaction, or (with the number 0) the last epoch that an application committed.

    ``count`` and ``size`` are those of the messages staged or committed; ``at`` is when the
    transaction times out if nothing more is pushed, or when the epoch was committed, in monotonic
    seconds; None for unknown.
    """

    __slots__ = (
        "number",
        "application",
        "epoch",
        "part",
        "attempt",
        "state",
        "count",
        "size",
        "at",
    )

    def __init__(
        self,
        number: int,
        application: str,
        epoch: int,
        part: int | None,
        attempt: int,
        state: str,
        count: int,
        size: int,
        at: float | None,
    ) -> None:
        self.number = number
        self.application = application
        self.epoch = epoch
        self.part = part
        self.attempt = attempt
        self.state = state
        self.count = count
        self.size = size
        self.at = at
