"""Owns the beginning of a server with a store: what was there comes back before anybody connects.

Channels, queues and routers are restored as they were.  Of each queue as many messages are read as
its memory takes; the rest stays on disk until there is room.  After a stop that was not clean any
message may have been sent, and nobody knows: they all come back marked as sent before.
"""

from __future__ import annotations

import logging

from tmqp_server.engine.reading_commands import NameStore, RestoreCursor
from tmqp_server.engine.storage_commands import (
    Fetched,
    RestoreChannel,
    RestoreKeys,
    RestoreQueue,
    RestoreRouter,
)
from tmqp_server.engine.storage_effects import Fetch, StoreQueue
from tmqp_server.hub import Hub
from tmqp_server.io.storage import fetched
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.port import Recovered, RecoveredQueue, Store, StoreError
from tmqp_server.storage.topology import channel_from_bytes, queue_from_bytes, router_from_bytes

__all__ = ["recover"]

logger = logging.getLogger("tmqp_server.storage")


def recover(store: Store, hub: Hub, journal: Journal, now: float) -> Recovered:
    """Restore what the store holds; blocks, and is over before anything else happens.

    :raises StoreError: when the store cannot be read, or holds what this server cannot serve.
    """
    found = store.recover()
    try:
        hub.answer(NameStore(found.store_id), now)
        hub.answer(RestoreKeys(found.last_key), now)
        for channel in found.channels:
            hub.answer(RestoreChannel(channel.name, channel_from_bytes(channel.options)), now)
        for queue in found.queues:
            _restore(hub, journal, queue, found.clean, now)
        places = {each.queue.key: each.queue for each in found.queues}
        for cursor in found.cursors:
            queue_of = places.get(cursor.key)
            if queue_of is not None:
                channel_name, queue_id = queue_of.channel, queue_of.queue_id
                restored = RestoreCursor(channel_name, queue_id, cursor.name, cursor.sequence)
                hub.answer(restored, now)
        for router in found.routers:
            method, bindings, enabled = router_from_bytes(router.value)
            hub.answer(RestoreRouter(router.name, method, bindings, enabled), now)
    except ValueError as error:
        raise StoreError(f"what was kept cannot be restored: {error}") from error
    while fetches := hub.take_fetches():
        for fetch in fetches:
            assert isinstance(fetch, Fetch), "nobody reads yet"
            messages, up_to = fetched(store, journal, fetch, now)
            hub.answer(Fetched(fetch.number, messages, up_to), now)
    owed = sum(queue.high_count + queue.regular_count for queue in found.queues)
    logger.info(
        "restored %d channels, %d queues, %d routers and %d messages; the last stop was %s",
        len(found.channels),
        len(found.queues),
        len(found.routers),
        owed,
        "clean" if found.clean else "not clean",
    )
    return found


def _restore(hub: Hub, journal: Journal, found: RecoveredQueue, clean: bool, now: float) -> None:
    queue = found.queue
    kept = queue_from_bytes(queue.options)
    suspect = kept.suspect
    journal.retains(queue.key, kept.options.retains())
    if not clean and found.high_count + found.regular_count:
        suspect = found.sequence
        # Taken down, for not all of them may have been read again when the server stops next.
        journal.change(StoreQueue(queue.key, queue.channel, queue.queue_id, kept.options, suspect))
    hub.answer(
        RestoreQueue(
            queue.key,
            queue.channel,
            queue.queue_id,
            kept.options,
            found.sequence,
            found.high_count,
            found.regular_count,
            suspect,
        ),
        now,
    )
