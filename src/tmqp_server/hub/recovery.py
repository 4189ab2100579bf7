"""Restore the contents of a store before clients connect, and handle its answers.

Channels, queues and routers are restored as they were.  Of each queue, as many messages are read as
its memory allows; the rest stays on disk until there is room.  After a stop that was not clean, any
message may have been sent, so all are marked as sent before.

:func:`recover` does all of it together, in a server that is starting.  A standby must answer health
checks meanwhile: it takes the steps of :func:`restoring` one by one, and its storage reads the
messages afterwards, as in any server.

*Damage.* As little as possible is skipped if it cannot be read, and it is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from tmqp.blocks import StoredMessage, head_of
from tmqp.constants import (
    RESULT_INTERNAL_SERVER_ERROR,
    RESULT_OK,
    RESULT_REQUESTED_RANGE_NOT_SATISFIABLE,
)
from tmqp_server.engine.commands import (
    Blocks,
    Command,
    Fetched,
    KeptMessage,
    KeptPart,
    NameStore,
    OffsetsFound,
    RangeRead,
    RangeSplit,
    RestoreChannel,
    RestoreCursor,
    RestoreFeed,
    RestoreKeys,
    RestoreMark,
    RestoreQueue,
    RestoreRouter,
    StoredMeasured,
)
from tmqp_server.engine.effects import Fetch, MeasureStored, ReadStored, SplitStored, StoreQueue
from tmqp_server.engine.model.snapshots import KeptOffsets
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.questions import Outside, StorageQuestion, refusal_of
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.port import (
    HIGH_ONLY,
    REGULAR_ONLY,
    DamageError,
    Recovered,
    RecoveredQueue,
    Store,
    StoredPart,
    StoreError,
    UnknownDoorError,
)
from tmqp_server.storage.topology import channel_from_bytes, queue_from_bytes, router_from_bytes

__all__ = ["answer_of", "fetched", "recover", "restoring"]

logger = logging.getLogger("tmqp_server.storage")

#: Larger than every sequence.
_LAST = 2**63 - 1


def recover(store: Store, hub: Hub, journal: Journal, now: float) -> Recovered:
    """Restore the contents of the store; blocks until everything is restored.

    :raises StoreError: when the store cannot be read, or has contents that this server cannot
        serve.
    """
    found = store.recover()
    for _ in restoring(found, hub, journal, lambda: now):
        pass
    for_others: list[Outside] = []
    while wanted := hub.take_outside():
        for each in wanted:
            if isinstance(each, Fetch):
                hub.perform(answer_of(store, journal, each, now), now)
            else:
                for_others.append(each)
    hub.outside.extend(for_others)
    return found


def restoring(
    found: Recovered, hub: Hub, journal: Journal, clock: Callable[[], float]
) -> Iterator[None]:
    """Restore everything except messages, one channel, queue, cursor, mark or router in each step.

    Reads that the broker requests stay in ``hub.outside`` until the last step, and so does
    everything that is due, because a queue's cursors and feeds come long after the queue.

    :raises StoreError: if the store has contents that this server cannot serve.
    """
    try:
        yield from _restoring(found, hub, journal, clock)
    except ValueError as error:
        raise StoreError(f"the stored data cannot be restored: {error}") from error
    owed = sum(queue.high_count + queue.regular_count for queue in found.queues)
    logger.info(
        "restored %d channels, %d queues, %d routers and %d messages; the last stop was %s",
        len(found.channels),
        len(found.queues),
        len(found.routers),
        owed,
        "clean" if found.clean else "not clean",
    )


def _restoring(
    found: Recovered, hub: Hub, journal: Journal, clock: Callable[[], float]
) -> Iterator[None]:
    hub.perform(NameStore(found.store_id), clock())
    hub.perform(RestoreKeys(found.last_key), clock())
    for channel in found.channels:
        hub.perform(RestoreChannel(channel.name, channel_from_bytes(channel.options)), clock())
        yield
    for queue in found.queues:
        _restore(hub, journal, queue, found.clean, clock())
        yield
    for queue in found.queues:
        _restore_feeds(hub, queue, clock())
        yield
    places = {each.queue.key: each.queue for each in found.queues}
    for cursor in found.cursors:
        queue_of = places.get(cursor.key)
        if queue_of is not None:
            channel_name, queue_id = queue_of.channel, queue_of.queue_id
            restored = RestoreCursor(channel_name, queue_id, cursor.name, cursor.sequence)
            hub.perform(restored, clock())
            yield
    for mark in found.marks:
        at = journal.monotonic_s(mark.at_us)
        hub.perform(RestoreMark(mark.application, mark.epoch, at), clock())
        yield
    for router in found.routers:
        method, bindings, enabled = router_from_bytes(router.value)
        hub.perform(RestoreRouter(router.name, method, bindings, enabled), clock())
        yield
    for router_name, binding in hub.broker.bindings_left_out():
        logger.warning(
            "the binding %r of the router %r is left out: its target is no longer allowed; it is "
            "restored if its target is allowed again before the router is changed",
            binding,
            router_name,
        )


def _restore(hub: Hub, journal: Journal, found: RecoveredQueue, clean: bool, now: float) -> None:
    queue = found.queue
    kept = queue_from_bytes(queue.options)
    suspect = kept.suspect
    journal.retains(queue.key, kept.options.retains())
    if not clean and found.high_count + found.regular_count:
        suspect = found.sequence
        # Taken down, for not all of them may have been read again when the server stops next.
        journal.change(
            StoreQueue(queue.key, queue.channel, queue.queue_id, kept.options, suspect, kept.feeds)
        )
    hub.perform(
        RestoreQueue(
            queue.key,
            queue.channel,
            queue.queue_id,
            kept.options,
            found.sequence,
            found.high_count,
            found.regular_count,
            found.high_bytes,
            found.bytes - found.high_bytes,
            suspect,
        ),
        now,
    )


def _restore_feeds(hub: Hub, found: RecoveredQueue, now: float) -> None:
    """Restore the feeds of one queue, when all queues have been restored."""
    queue = found.queue
    for feed in queue_from_bytes(queue.options).feeds:
        if not hub.broker.has_queue(feed.target, feed.target_queue):
            logger.warning(
                "the feed from %s/%d to %s/%d is left out: a queue is missing",
                queue.channel,
                queue.queue_id,
                feed.target,
                feed.target_queue,
            )
            continue
        hub.perform(
            RestoreFeed(
                queue.channel,
                queue.queue_id,
                feed.target,
                feed.target_queue,
                feed.language,
                feed.text,
            ),
            now,
        )


def answer_of(store: Store, journal: Journal, asked: StorageQuestion, now: float) -> Command:
    """Answer a question to the storage.

    :raises StoreError: when the store cannot be read now.
    """
    if isinstance(asked, Fetch):
        return fetched(store, journal, asked, now)
    try:
        if isinstance(asked, ReadStored):
            return _range_read(store, asked)
        if isinstance(asked, SplitStored):
            return _range_split(store, asked)
        if isinstance(asked, MeasureStored):
            return StoredMeasured(asked.number, RESULT_OK, _measured(store, asked))
        offsets = _offsets(store, asked.keys)
        if asked.timestamp_us >= 0:
            for key, each in zip(asked.keys, offsets, strict=True):
                each.at = store.find(key, asked.timestamp_us)
        return OffsetsFound(asked.number, RESULT_OK, offsets)
    except DamageError as error:
        logger.error("a reader asked for damaged messages: %s", error)
    return refusal_of(asked, RESULT_INTERNAL_SERVER_ERROR)


def _offsets(store: Store, keys: list[int]) -> list[KeptOffsets]:
    return [
        KeptOffsets(each.earliest, each.latest, each.count, each.bytes, each.oldest_us)
        for each in store.offsets(keys)
    ]


def _range_read(store: Store, asked: ReadStored) -> RangeRead:
    key, first = asked.key, asked.first
    blocks: list[bytes] = []
    if first <= asked.end:
        bounds = (asked.limit, asked.max_bytes)
        blocks = store.read(key, first, asked.last, *bounds, form=asked.form)
    sure = not first or asked.held
    if first > asked.end + 1 or not (sure or _reaches_back(store, key, first, blocks)):
        (kept,) = _offsets(store, [key])
        return RangeRead(asked.number, RESULT_REQUESTED_RANGE_NOT_SATISFIABLE, None, kept)
    return RangeRead(asked.number, RESULT_OK, Blocks(blocks))


def _range_split(store: Store, asked: SplitStored) -> RangeSplit:
    key, first = asked.key, asked.first
    (kept,) = _offsets(store, [key])
    lost = first and not asked.held and not (kept.count and kept.earliest <= first)
    if first > asked.end + 1 or lost:
        return RangeSplit(asked.number, RESULT_REQUESTED_RANGE_NOT_SATISFIABLE, [], kept)
    bounds = (asked.limit, asked.max_bytes, asked.most_parts)
    parts = [
        KeptPart(each.first, each.last, each.count, each.bytes)
        for each in store.split(key, first, asked.last, *bounds)
    ]
    return RangeSplit(asked.number, RESULT_OK, parts)


def _measured(store: Store, asked: MeasureStored) -> list[KeptPart]:
    found: list[KeptPart] = []
    for key, after in zip(asked.keys, asked.after, strict=True):
        parts = store.split(key, after + 1, _LAST, 0, 0, 1)
        part = parts[0] if parts else StoredPart(0, 0, 0, 0)
        found.append(KeptPart(part.first, part.last, part.count, part.bytes))
    return found


def _reaches_back(store: Store, key: int, first: int, blocks: list[bytes]) -> bool:
    """Return whether a message is kept at *first* or before: then the missing part is only a
    gap."""
    if blocks and head_of(blocks[0])[1] == first:
        return True
    return bool(store.read(key, 0, first - 1, 1, 1))


def fetched(store: Store, journal: Journal, fetch: Fetch, now: float) -> Fetched:
    """The answer to a ``Fetch``: its messages, and how far the store was read.

    :raises StoreError: when the store cannot be read now.
    """
    after = fetch.after
    stored: list[StoredMessage] = []
    while after < fetch.last and not stored:
        try:
            stored = _readable(store, fetch, after)
        except DamageError as error:
            logger.error("messages are lost: %s", error)
            after = _behind_damage(store, fetch, after)
        else:
            if not stored:
                break
    messages: list[KeptMessage] = []
    withheld: dict[int, int] = {}
    for each in stored:
        try:
            messages.append(journal.kept(each, now))
        except UnknownDoorError as error:
            withheld[error.number] = withheld.get(error.number, 0) + 1
        except Exception as error:  # noqa: BLE001 - a door that cannot read it, for any reason
            logger.error("message %d of queue %d is lost: %s", each.sequence, fetch.key, error)
    for number, count in withheld.items():
        logger.error(
            "%d messages of queue %d came through the door with number %d, which this server does"
            " not know; they stay on disk until a server is started that knows it",
            count,
            fetch.key,
            number,
        )
    up_to = stored[-1].sequence if stored else fetch.last
    return Fetched(fetch.number, messages, up_to, sum(withheld.values()))


def _readable(store: Store, fetch: Fetch, after: int) -> list[StoredMessage]:
    """The messages after *after*; fewer than requested if one of them is damaged.

    :raises DamageError: when the first one is damaged.
    """
    limit = fetch.limit
    while True:
        try:
            return _read(store, fetch, after, limit)
        except DamageError:
            if limit == 1:
                raise
            limit //= 2


def _read(store: Store, fetch: Fetch, after: int, limit: int) -> list[StoredMessage]:
    priority = HIGH_ONLY if fetch.high_priority else REGULAR_ONLY
    return store.fetch(fetch.key, after, fetch.last, limit, fetch.max_bytes, priority)


def _is_damaged(store: Store, fetch: Fetch, after: int) -> bool:
    try:
        _read(store, fetch, after, 1)
    except DamageError:
        return True
    return False


def _behind_damage(store: Store, fetch: Fetch, after: int) -> int:
    """The last sequence in the damaged part that begins with the first message after *after*."""
    most = fetch.last - after
    low, high = 0, 1
    while high < most and _is_damaged(store, fetch, after + high):
        low, high = high, 2 * high
    high = min(high, most)
    while low + 1 < high:
        middle = (low + high) // 2
        if _is_damaged(store, fetch, after + middle):
            low = middle
        else:
            high = middle
    return after + high
