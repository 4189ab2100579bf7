"""Counts again what a broker's books say, from everything that it holds."""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.books import (
    BUCKET_BYTES,
    CONNECTION_BYTES,
    DEFERRAL_BYTES,
    ENDED_SESSION_BYTES,
    GRIP_BYTES,
    MESSAGE_OVERHEAD_BYTES,
    OWNER_BYTES,
    PULL_BYTES,
    SUBSCRIPTION_BYTES,
    TLS_BYTES,
    binding_bytes,
    channel_bytes,
    cursor_bytes,
    holders_bytes,
    listening_bytes,
    lock_bytes,
    mark_bytes,
    queue_bytes,
    router_bytes,
    session_bytes,
    shelved_bytes,
    text_bytes,
    transaction_bytes,
    watch_bytes,
)
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import MoveMessage
from tmqp_server.engine.core import PendingChange
from tmqp_server.engine.delivery.batch_checks import Item, PendingBatch
from tmqp_server.engine.delivery.feed_commits import Commit
from tmqp_server.engine.flights.runs import WaitingRun
from tmqp_server.engine.model.deferrals import Deferral
from tmqp_server.engine.model.keys import KeyTable
from tmqp_server.engine.model.message import MARK_SAVED, MARK_SAVING, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Audience, Session
from tmqp_server.hub.hub import Hub

__all__ = [
    "MOST_STATE_BYTES",
    "Ballast",
    "audience_problem",
    "closed_in",
    "commits_of",
    "connections_of",
    "disk_bytes_of",
    "flights_of",
    "has_waiting_run",
    "is_withheld",
    "shelved_in",
    "state_of",
    "unrefused_of",
]


#: More than all but messages takes in a simulated server.
MOST_STATE_BYTES: Final = 1_000_000


class Ballast:
    """Lets all but messages take ``MOST_STATE_BYTES`` together, whoever is connected: then a plan
    says how much room messages have.

    :param places: how many queues must be there before.
    """

    def __init__(self, broker: Broker, places: int) -> None:
        self._broker = broker
        self._places = places
        self.held = 0

    def even_out(self) -> None:
        """Charge what others have given back, give back what they have charged."""
        if self._places and len(self._broker.queues()) < self._places:
            return
        self._places = 0
        state = self._broker._core.state_bytes - self.held
        wanted = max(MOST_STATE_BYTES - state, 0)
        self._broker.charge(wanted - self.held)
        self.held = wanted


def _ended(broker: Broker) -> dict[int, Session]:
    """Sessions that have ended and have deliveries in flight."""
    found: dict[int, Session] = {}
    core = broker._core
    flights = [queue.all_flights() for queue in broker.queues()]
    flights += [{**trash.in_hand, **trash.timed} for trash in core.trash]
    for each in flights:
        for message in each.values():
            holders = list((message.holders or {}).values())
            if message.holder is not None:
                holders.append(message.holder)
            for client in holders:
                if not client.alive:
                    assert isinstance(client, Session)
                    found[client.number] = client
    return found


def flights_of(broker: Broker) -> int:
    """What is charged for deliveries to several consumers."""
    flights = [queue.all_flights() for queue in broker.queues()]
    flights += [{**trash.in_hand, **trash.timed} for trash in broker._core.trash]
    total = 0
    for message in [message for each in flights for message in each.values()]:
        several = message.holders is not None
        if several != (message.held > 0):
            raise AssertionError(f"{message!r} is charged {message.held} for {message.holders!r}")
        if message.holders is not None and message.held < holders_bytes(len(message.holders)):
            raise AssertionError(f"{message!r} is charged {message.held} for {message.holders!r}")
        total += message.held
    return total


def disk_bytes_of(broker: Broker, queue: Queue) -> int:
    """What the storage has of a queue's messages that are not settled, or was asked to keep."""
    there = [*queue.high.messages(), *queue.regular.messages(), *queue.deferred.messages()]
    there += queue.all_flights().values()
    core = broker._core
    batches = [each for each in core.tickets.values() if isinstance(each, PendingBatch)]
    for batch in batches + list(broker._batches._unfinished):
        for item in batch.items[batch.done :]:
            if is_withheld(item) and item.queue is queue:
                there.append(item.message)
    for commit in commits_of(broker):
        there += _withheld_of(commit, queue)
    total = sum(each.size for each in there if each.marks & (MARK_SAVED | MARK_SAVING))
    total += sum(entry.size for entry in shelved_in(queue))
    for tail in (queue.high_tail, queue.regular_tail):
        if tail is not None:
            total += tail.bytes
    return total


def is_withheld(item: Item) -> bool:
    """Whether a part of a batch is a message that nobody sees: it is pushed, or moved."""
    return item.answer is None or isinstance(item.answer, MoveMessage)


def shelved_in(queue: Queue) -> list[Deferral]:
    """The deferred messages of a queue that are on disk only."""
    shelf = queue.deferred.shelf
    if shelf is None:
        return []
    return [*shelf.high.entries.values(), *shelf.regular.entries.values()]


def unrefused_of(broker: Broker) -> int:
    """What is charged although it may be too much: deliveries to several consumers, and keys."""
    return flights_of(broker) + sum(_of_keys(queue.keys) for queue in broker.queues())


def has_waiting_run(queue: Queue) -> bool:
    """Whether a run waits in one piece, of which nobody has taken or seen a message."""
    parts = queue.high.snapshot() + queue.regular.snapshot()
    return any(isinstance(part, WaitingRun) and part.made is None for part in parts)


def _of_session(session: Session) -> int:
    total = session_bytes(session.client_id, session.name, session.client_type, session.properties)
    total += len(session.subscriptions) * SUBSCRIPTION_BYTES
    for each in session.event_subscriptions.values():
        total += listening_bytes(each.channel)
    if session.asked is not None:
        total += session.asked.memory()
    for pull in session.pulls:
        assert pull.memory >= PULL_BYTES
        total += pull.memory
    return total


def _of_keys(table: KeyTable | None) -> int:
    if table is None:
        return 0
    buckets = [each for several in table.buckets.values() for each in several]
    total = sum(lock_bytes(key) for key in table.locks)
    total += len(table.grips) * GRIP_BYTES
    total += len(buckets) * BUCKET_BYTES + len(table.owners) * OWNER_BYTES
    if total != table.memory:
        raise AssertionError(f"a table of keys takes {total} and is charged {table.memory}")
    return total


def _of_topology(broker: Broker) -> int:
    total = 0
    for channel in broker._core.channels.by_key.values():
        total += channel_bytes(channel.name, channel.options)
        for queue in channel.queues.values():
            total += queue_bytes(queue.options) + _of_keys(queue.keys)
            total += sum([cursor_bytes(name) for name in queue.cursors])
            total += DEFERRAL_BYTES * queue.deferred.in_memory()
            total += sum(shelved_bytes(entry.message_id) for entry in shelved_in(queue))
            total += sum([feed.memory for feed in queue.feeds or ()])
    for router in broker._routing._routers.values():
        if router.custom is None:
            total += router_bytes(router.name)
            total += sum([binding_bytes(each.options) for each in router.bindings])
    return total


def state_of(broker: Broker) -> int:
    """What ``state_bytes`` must be, but for what is charged from outside (connections)."""
    core = broker._core
    total = _of_topology(broker) + flights_of(broker)
    for session in core.sessions.values():
        total += _of_session(session)
    for ended in _ended(broker).values():
        total += ENDED_SESSION_BYTES + text_bytes(ended.client_id)
    for pending in core.tickets.values():
        if isinstance(pending, (Commit, PendingBatch, PendingChange)):
            total += pending.memory
    for watch in broker._watching._all.values():
        assert watch.memory >= watch_bytes(watch.command.filter, len(watch.known))
        total += watch.memory
    total += broker._browsing.charged() + broker._cells.charged()
    total += broker._intake.holding.charged()
    transactions = broker._transactions
    for transaction in transactions._open.values():
        total += transaction_bytes(transaction.application) + transaction.memory
    return total + sum([mark_bytes(each) for each in transactions._marks])


def connections_of(hub: Hub) -> int:
    """What a hub has charged for its connections, and for bytes of peers that are not accepted."""
    outlets = hub._outlets
    return (
        sum(number > 0 for number in outlets.sessions) * CONNECTION_BYTES  # no branches
        + len(outlets.secured) * TLS_BYTES
        + sum(outlets.strangers.values())
        + sum(outlets.partial.values())
    )


def audience_problem(audience: Audience) -> str:
    """What an audience says of a subscription that is not so; empty if all is right."""
    ready = 0
    hearing: list[int] = []
    for place, (number, subscription) in enumerate(audience.subscriptions.items()):
        session = subscription.session
        holds = subscription.holds
        full = holds is not None and 0 <= subscription.window <= len(holds)
        deaf = session.blocked or subscription.credit == 0 or full
        stalled = deaf or session.full
        if (subscription.deaf, subscription.stalled) != (deaf, stalled):
            return f"{session!r} is counted as deaf {subscription.deaf}, {subscription.stalled}"
        # Beside a consumer that has joined as the only one nobody else can take anything.
        if not stalled and audience.sole in (None, subscription):
            ready |= 1 << place
        if not deaf:
            hearing.append(number)
    if not audience.stale and (audience.ready, audience.everyone) != (ready, hearing):
        return f"ready are {ready:b} and {hearing}, not {audience.ready:b} and {audience.everyone}"
    return ""


def commits_of(broker: Broker) -> list[Commit]:
    """The commits of feeds that are not over."""
    waiting = [each for each in broker._core.tickets.values() if isinstance(each, Commit)]
    return waiting + list(broker._feeder._commits._unfinished)


def _withheld_of(commit: Commit, queue: Queue) -> list[Message]:
    """The messages of a queue that a commit withholds."""
    found: list[Message] = []
    for place, item in enumerate(commit.items):
        if commit.queue is queue and (item.stays or place >= commit.done):
            found.append(item.message)
        if place >= commit.done:
            found += [copy.message for copy in item.copies if copy.target is queue]
    return found


def closed_in(commit: Commit) -> int:
    """What the books are charged for messages of a commit whose queues were removed meanwhile."""
    total = 0
    for place, item in enumerate(commit.items):
        if commit.queue.closed and (item.stays or place >= commit.done):
            total += item.message.size + MESSAGE_OVERHEAD_BYTES
        for copy in item.copies:
            if place >= commit.done and copy.target.closed:
                total += copy.message.size + MESSAGE_OVERHEAD_BYTES
    return total
