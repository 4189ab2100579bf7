"""Choosing in queues with keys: the consumer of a message depends on its key, and on its turn.

Theory of operation.  As in ``choosing.py``, messages are examined in order, and a message that
cannot be sent now is parked until it can: for its owner only, or until its key or bucket is free
(``keyed.py``).  Its key is read from the producer's bytes when it is examined, so that it is the
same after a restart and from the disk.

Filters come first: if consumers have filters, a message is for one of those that accept it.  A
message that has locked its key and that no present consumer accepts keeps the lock until one joins.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.flights.keying import assign, follow, hand_out, lock, table_of
from tmqp_server.engine.model.keyed import KeyedList
from tmqp_server.engine.model.keys import Bucket, KeyTable, bucket_of
from tmqp_server.engine.model.message import MARK_GONE, Message
from tmqp_server.engine.model.parking import ParkingList
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.selection import Selection

__all__ = ["Choosing", "KeyChooser"]

#: A stored message costs one more unit of work for so many bytes: 2 ** 10.
_UNIT_SHIFT: Final = 10
#: The most lanes of one priority with different takers, and the most lanes that wait for a key or
#: bucket; beyond that, further messages wait until a lane is empty.
_MOST_LANES: Final = 1_024
#: Filters that are tried, and lanes that are examined, for one unit of work: 2 ** 3, 2 ** 6.
_FILTERS_SHIFT: Final = 3
_LANES_SHIFT: Final = 6


class Choosing:
    """The common part of all choosers: how a message leaves its list."""

    __slots__ = ("_core", "_outcomes", "_sender")

    def __init__(self, core: Core, outcomes: Outcomes, sender: Sender) -> None:
        self._core = core
        self._outcomes = outcomes
        self._sender = sender

    def _send(
        self, queue: Queue, waiting: ParkingList, message: Message, takers: int, now: float
    ) -> None:
        waiting.leave(message)
        queue.note_taken(message)
        rare = message.rare
        if rare is not None and rare.expires_at <= now:
            # It has expired in this tick, and the timer has not run yet.
            if not self._outcomes.expire(queue, message):
                queue.put_first(message)
            return
        self._core.budget -= message.size >> _UNIT_SHIFT
        self._sender.send_chosen(queue, message, takers, now)


class KeyChooser(Choosing):
    """Sends the messages of queues with keys, or parks them."""

    __slots__ = ()

    def go_on(self, queue: Queue, ready: int, now: float) -> bool:
        """Send a message to a ready consumer, or park one; return False if all the remaining ones
        are parked."""
        core = self._core
        table = table_of(core, queue)
        follow(core, queue, table)
        selection = queue.audience.selection
        if selection is None:
            selection = table.everybody
        return self._go_on(queue, True, table, selection, ready, now) or self._go_on(
            queue, False, table, selection, ready, now
        )

    def _go_on(
        self,
        queue: Queue,
        high: bool,
        table: KeyTable,
        selection: Selection,
        ready: int,
        now: float,
    ) -> bool:
        """The same for one priority."""
        if not (queue.high_count if high else queue.regular_count):
            return False
        waiting = _keyed_list(queue, high, table)
        waiting.turn_to(table)
        waiting.follow(selection)
        core = self._core
        if not waiting.is_front_new():
            owners = list(table.owners.values())
            core.budget -= (len(waiting.lanes) + len(owners)) >> _LANES_SHIFT
            owner = waiting.take_of(selection, ready, owners)
            if owner is not None:
                message = waiting.take_owned(owner)
                bucket = owner.buckets[bucket_of(self._key_of(queue, message))]
                self._send_to(queue, waiting, message, bucket, now)
                return True
            parked = waiting.take_parked(selection, ready)
            if parked is not None:
                return self._decide(
                    queue, waiting, parked, selection.takers(waiting.mask), ready, now
                )
        next_one = waiting.examine()
        if next_one is None:
            return False
        core.budget -= len(selection.slots) >> _FILTERS_SHIFT
        failures = selection.failures
        waiting.mask = selection.mask_of(next_one, waiting.mask, waiting.seen)
        if selection.failures != failures:
            self._outcomes.count_error(queue)
        return self._decide(queue, waiting, next_one, selection.takers(waiting.mask), ready, now)

    def _decide(
        self,
        queue: Queue,
        waiting: KeyedList,
        message: Message,
        takers: int,
        ready: int,
        now: float,
    ) -> bool:
        """Decide what happens to the examined message, which *takers* would take."""
        key = self._key_of(queue, message)
        if key and waiting.table.strict:
            return self._in_order(queue, waiting, message, key, takers, ready, now)
        if key:
            return self._to_owner(queue, waiting, message, bucket_of(key), takers, ready, now)
        waiting.free_rest()
        return self._to_anybody(queue, waiting, message, takers & ready, now)

    def _key_of(self, queue: Queue, message: Message) -> str:
        try:
            return self._core.wires.key_of(message)
        except Exception:  # noqa: BLE001 - what a door cannot read has no key
            self._outcomes.count_error(queue)
            return ""

    def _in_order(
        self,
        queue: Queue,
        waiting: KeyedList,
        message: Message,
        key: str,
        takers: int,
        ready: int,
        now: float,
    ) -> bool:
        """Send it if no other message has locked its key."""
        first = waiting.table.locks.get(key)
        if first is not None and first is not message:
            return self._hold(waiting, message, key)
        lock(self._core, queue, waiting.table, message, key, waiting.stamp)
        waiting.hold_rest(key)
        return self._to_anybody(queue, waiting, message, takers & ready, now)

    def _to_owner(
        self,
        queue: Queue,
        waiting: KeyedList,
        message: Message,
        number: int,
        takers: int,
        ready: int,
        now: float,
    ) -> bool:
        """Send it to the owner of its bucket, or make a consumer the owner."""
        table = waiting.table
        found: Bucket | None = None
        for bucket in table.buckets.get(number, ()):
            if bucket.closing:
                return self._hold(waiting, message, number)
            if takers >> bucket.owner.subscription.place & 1:
                found = bucket
                break
        waiting.free_rest()
        if found is None:
            if not takers & ready:
                return self._to_anybody(queue, waiting, message, 0, now)
            owner = table.lightest(queue.audience, takers & ready)
            found = assign(self._core, queue, table, number, owner)
        elif not ready >> found.owner.subscription.place & 1:
            self._core.budget -= 1
            waiting.own(found.owner, message)
            return True
        self._send_to(queue, waiting, message, found, now)
        return True

    def _hold(self, waiting: KeyedList, message: Message, name: object) -> bool:
        """Park it until the key or bucket of this name is free."""
        self._core.budget -= 1
        if not waiting.has_room_to_hold(name, _MOST_LANES):
            waiting.return_to_front(message)
            return False
        waiting.hold(name, message)
        return True

    def _to_anybody(
        self, queue: Queue, waiting: KeyedList, message: Message, takers: int, now: float
    ) -> bool:
        """Send it to one of *takers*, or park it if there are none."""
        if takers:
            self._send(queue, waiting, message, takers, now)
            return True
        self._core.budget -= 1
        mask = waiting.mask
        if len(waiting.lanes) >= _MOST_LANES and mask not in waiting.lanes:
            waiting.return_to_front(message)
            return False
        waiting.park(message, mask)
        return True

    def _send_to(
        self, queue: Queue, waiting: KeyedList, message: Message, bucket: Bucket, now: float
    ) -> None:
        """Send it to the owner of the bucket."""
        stamp = waiting.stamp
        self._send(queue, waiting, message, 1 << bucket.owner.subscription.place, now)
        if message.holder is not None and not message.marks & MARK_GONE:
            hand_out(self._core, queue, waiting.table, message, bucket, stamp)


def _keyed_list(queue: Queue, high: bool, table: KeyTable) -> KeyedList:
    """The list of a priority, converted so that messages can wait for others."""
    waiting = queue.high if high else queue.regular
    if isinstance(waiting, KeyedList):
        return waiting
    keyed = KeyedList(waiting, table)
    if high:
        queue.high = keyed
    else:
        queue.regular = keyed
    return keyed
