"""Keeps the tables of keys: the owners of buckets, the locks of keys, and their charges.

A table is charged to its queue and removed with it.  Its memory is never refused, as for deliveries
in flight: there are no more locks than messages in memory, and at most ``BUCKETS`` buckets for each
distinct filter.
"""

from __future__ import annotations

from tmqp_server.engine.books import BUCKET_BYTES, GRIP_BYTES, OWNER_BYTES, Books, lock_bytes
from tmqp_server.engine.model.keyed import KeyedList
from tmqp_server.engine.model.keys import Bucket, Grip, KeyTable, Owner
from tmqp_server.engine.model.message import MARK_KEYED, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import STRICT

__all__ = ["assign", "follow", "hand_out", "leave_place", "let_go", "lock", "table_of"]


def table_of(books: Books, queue: Queue) -> KeyTable:
    """The table of a queue, created if it is missing or was made for the other kind of keys."""
    strict = queue.options.group_keys == STRICT
    table = queue.keys
    if table is None or table.strict != strict:
        if table is not None:
            _charge(books, queue, table, -table.memory)
        table = KeyTable(strict)
        queue.keys = table
    return table


def _charge(books: Books, queue: Queue, table: KeyTable, size: int) -> None:
    table.memory += size
    queue.memory += size
    books.charge(size)


def follow(books: Books, queue: Queue, table: KeyTable) -> None:
    """Update the table with the consumers that have joined or left since the last call."""
    audience = queue.audience
    ring = audience.ring
    if table.ring is ring:
        return
    table.ring = ring
    table.everybody.place([None] * len(ring))
    if table.strict:
        return
    takers = {each.session.number: each for each in audience.takers()}
    for number, owner in list(table.owners.items()):
        if owner.has_gone(takers):
            del table.owners[number]
            _charge(books, queue, table, -OWNER_BYTES)
            _close(books, queue, table, list(owner.buckets.values()))
            _disown(queue, owner)
    joined = False
    for number, subscription in takers.items():
        if number not in table.owners:
            table.add_owner(subscription)
            _charge(books, queue, table, OWNER_BYTES)
            joined = True
    if joined:
        surplus = table.surplus()
        _close(books, queue, table, surplus)
        for bucket in surplus:
            _disown(queue, bucket.owner)


def _close(books: Books, queue: Queue, table: KeyTable, buckets: list[Bucket]) -> None:
    for bucket in buckets:
        if table.close(bucket):
            _charge(books, queue, table, -BUCKET_BYTES)


def _disown(queue: Queue, owner: Owner) -> None:
    for waiting in (queue.high, queue.regular):
        if isinstance(waiting, KeyedList):
            waiting.disown(owner)


def assign(books: Books, queue: Queue, table: KeyTable, number: int, owner: Owner) -> Bucket:
    """Give a bucket to an owner."""
    _charge(books, queue, table, BUCKET_BYTES)
    return table.assign(number, owner)


def lock(
    books: Books, queue: Queue, table: KeyTable, message: Message, key: str, stamp: int
) -> None:
    """Lock a message's key until it is settled: other messages of the key wait for that."""
    grip = table.grips.get(message)
    if grip is not None:
        grip.stamp = stamp
        return
    _charge(books, queue, table, GRIP_BYTES + lock_bytes(key))
    table.locks[key] = message
    table.grips[message] = Grip(key, None, stamp)
    message.marks |= MARK_KEYED


def hand_out(
    books: Books, queue: Queue, table: KeyTable, message: Message, bucket: Bucket, stamp: int
) -> None:
    """Record that a message of a bucket is in flight."""
    bucket.in_hand += 1
    grip = table.grips.get(message)
    if grip is None:
        _charge(books, queue, table, GRIP_BYTES)
        grip = Grip("", bucket, stamp)
        table.grips[message] = grip
        message.marks |= MARK_KEYED
    grip.bucket = bucket
    grip.stamp = stamp


def leave_place(books: Books, queue: Queue, message: Message) -> bool:
    """Give up the position of a returned message; return False if it must keep it, because it has
    locked its key."""
    table = queue.keys
    grip = None if table is None else table.grips.get(message)
    if table is None or grip is None:
        message.marks &= ~MARK_KEYED
        return True
    if grip.lock:
        return False
    _forget(books, queue, table, message, GRIP_BYTES)
    return True


def _forget(books: Books, queue: Queue, table: KeyTable, message: Message, size: int) -> None:
    del table.grips[message]
    message.marks &= ~MARK_KEYED
    if not queue.closed:
        _charge(books, queue, table, -size)


def let_go(books: Books, queue: Queue, message: Message, settled: bool) -> bool:
    """Record that a message is no longer in flight, or is settled: others need not wait for it.

    Return whether messages waited that may be sent now.
    """
    table = queue.keys
    grip = None if table is None else table.grips.get(message)
    if table is None or grip is None:
        return False  # it belonged to another table
    freed = False
    bucket = grip.bucket
    if bucket is not None:
        grip.bucket = None
        bucket.in_hand -= 1
        if bucket.closing and bucket.in_hand == 0:
            freed = _drop(books, queue, table, bucket)
    if not settled:
        return freed
    size = GRIP_BYTES
    if grip.lock:
        del table.locks[grip.lock]
        size += lock_bytes(grip.lock)
        freed = _free(queue, grip.lock)
    _forget(books, queue, table, message, size)
    return freed


def _drop(books: Books, queue: Queue, table: KeyTable, bucket: Bucket) -> bool:
    table.drop(bucket)
    if not queue.closed:
        _charge(books, queue, table, -BUCKET_BYTES)
    return _free(queue, bucket.number)


def _free(queue: Queue, name: object) -> bool:
    freed = False
    for waiting in (queue.high, queue.regular):
        if isinstance(waiting, KeyedList) and waiting.free(name):
            freed = True
    return freed
