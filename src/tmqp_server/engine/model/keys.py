"""Keys: which consumer may take the messages of a key, and how many of them at a time.

Theory of operation.  A queue may keep messages of the same key together, in one of two ways.

*Sticky.* Keys fall into ``BUCKETS`` buckets.  The consumer that gets the first message of a bucket
owns it: all others of the bucket are for this consumer as long as it has joined.  A new owner gets
no message of a bucket while the previous one still has some in flight, so that returned messages
come first.  Until then the bucket is *closing*, and its messages wait for it.  A bucket goes to the
consumer that has the fewest; when a consumer joins, those with more than their share give buckets
up.  If consumers have filters, a bucket may have several owners: a message is for the first of them
that accepts it.

*Strict.* An examined message *locks* its key until it is settled, wherever it is meanwhile: in
flight, put back, or deferred.  Others of the key wait for that.

``engine/flights/keying.py`` changes the tables and keeps their account.
"""

from __future__ import annotations

from binascii import crc32
from typing import Final

from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_server.engine.model.selection import Selection
from tmqp_server.engine.model.sessions import Audience, Subscription

__all__ = ["BUCKETS", "Bucket", "Grip", "KeyTable", "Owner", "bucket_of"]

#: The number of parts into which sticky queues divide all keys.
BUCKETS: Final = 1_024


def bucket_of(key: str) -> int:
    """The bucket of a key."""
    return crc32(key.encode("utf-8", "surrogatepass")) % BUCKETS


class Owner:
    """A consumer that owns buckets; ``number`` is never reused in its table."""

    __slots__ = ("number", "subscription", "filter", "buckets")

    def __init__(self, number: int, subscription: Subscription) -> None:
        self.number = number
        self.subscription = subscription
        self.filter: SubscriptionFilter | None = subscription.filter
        #: The buckets that it owns and that are not closing.
        self.buckets: dict[int, Bucket] = {}

    def has_gone(self, takers: dict[int, Subscription]) -> bool:
        """Whether its consumer has left, or has another filter now."""
        subscription = self.subscription
        there = takers.get(subscription.session.number)
        return there is not subscription or subscription.filter is not self.filter


class Bucket:
    """A bucket with an owner; ``in_hand`` is the number of its messages in flight to the owner."""

    __slots__ = ("number", "owner", "in_hand", "closing")

    def __init__(self, number: int, owner: Owner) -> None:
        self.number = number
        self.owner = owner
        self.in_hand = 0
        #: Its owner loses it when none of its messages is in flight.
        self.closing = False


class Grip:
    """What a message holds: the key that it has locked, or the bucket of which it is in flight; and
    its position among those of its priority when it was last examined."""

    __slots__ = ("lock", "bucket", "stamp")

    def __init__(self, lock: str, bucket: Bucket | None, stamp: int) -> None:
        self.lock = lock
        self.bucket = bucket
        self.stamp = stamp


class KeyTable:
    """The keys of one queue."""

    __slots__ = (
        "strict",
        "memory",
        "grips",
        "locks",
        "buckets",
        "owners",
        "ring",
        "everybody",
        "_last",
    )

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        #: What it is charged in the broker's books.
        self.memory = 0
        #: What messages hold that are in flight, or have come back since.
        self.grips: dict[Message, Grip] = {}
        #: Strict: the message that has locked each key.
        self.locks: dict[str, Message] = {}
        #: Sticky: the owners of each bucket by its number, the oldest first.
        self.buckets: dict[int, list[Bucket]] = {}
        #: Sticky: by session number.
        self.owners: dict[int, Owner] = {}
        #: The ring of the audience when the table was last updated.
        self.ring: list[Subscription] | None = None
        #: An empty selection, for audiences without filters.
        self.everybody = Selection()
        self._last = 0

    # --- Sticky ----------------------------------------------------------------------------------

    def add_owner(self, subscription: Subscription) -> None:
        """Make a consumer an owner."""
        self._last += 1
        self.owners[subscription.session.number] = Owner(self._last, subscription)

    def assign(self, number: int, owner: Owner) -> Bucket:
        """Give a bucket to an owner."""
        bucket = Bucket(number, owner)
        owner.buckets[number] = bucket
        self.buckets.setdefault(number, []).append(bucket)
        return bucket

    def close(self, bucket: Bucket) -> bool:
        """Take a bucket from its owner; return True if it is free immediately."""
        del bucket.owner.buckets[bucket.number]
        bucket.closing = True
        if bucket.in_hand:
            return False
        self.drop(bucket)
        return True

    def drop(self, bucket: Bucket) -> None:
        """Remove the record of a bucket's owner."""
        there = self.buckets[bucket.number]
        there.remove(bucket)
        if not there:
            del self.buckets[bucket.number]

    def surplus(self) -> list[Bucket]:
        """The buckets that owners have beyond their share; those without messages in flight come
        first."""
        found: list[Bucket] = []
        owners = self.owners
        total = sum([len(each.buckets) for each in owners.values()])
        fair = -(-total // len(owners)) if owners else 0
        for owner in owners.values():
            more = len(owner.buckets) - fair
            if more <= 0:
                continue
            idle = [each for each in owner.buckets.values() if not each.in_hand]
            busy = [each for each in owner.buckets.values() if each.in_hand]
            found += (idle + busy)[:more]
        return found

    def lightest(self, audience: Audience, places: int) -> Owner:
        """The owner with the fewest buckets at these places of the ring, at least one; if
        priorities differ, of those with the highest priority."""
        for tier in audience.tiers:
            if places & tier:
                places &= tier
                break
        best: Owner | None = None
        for subscription in audience.ring:
            if not places >> subscription.place & 1:
                continue
            owner = self.owners[subscription.session.number]
            if best is None or len(owner.buckets) < len(best.buckets):
                best = owner
        assert best is not None, "there is one"
        return best
