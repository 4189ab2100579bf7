"""``Selection``: the distinct filters of an audience, and the consumers that accept a message.

Theory of operation.  Consumers with the same filter share a *slot*, which is a bit.  Each filter
tests a message once, which gives its *mask*: the bits of the filters that accept it.  The mask
determines the places of the ring that would take the message (*takers*): those of the filters'
consumers, and all without a filter.  Joins and leaves change the takers, but no mask.

``epoch`` counts all filters that were ever added.  A bit whose filter no
consumer has any more may be reused by a later filter, which has a later epoch: so a mask that is
complete up to some epoch needs only the tests of later filters.

The number of filters is limited, because each tests each message.  Families of filters that are not
counted have as many members as there are consumers: a family finds the result by its key.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.model.message import Message, SubscriptionFilter, verdict

__all__ = ["EVERYBODY", "MAX_FILTERS", "Selection", "WantedBy"]

#: Distinct filters of one audience, not including uncounted ones.
MAX_FILTERS: Final = 64
#: A bit for every place of the ring.
EVERYBODY: Final = -1
#: The most results that are kept.
_MOST_ANSWERS: Final = 1_024


class WantedBy:
    """One filter, with the consumers that have it."""

    __slots__ = ("filter", "bit", "born", "members", "places")

    def __init__(self, filter: SubscriptionFilter, bit: int, born: int) -> None:
        self.filter = filter
        self.bit = bit
        #: The epoch in which it was added.
        self.born = born
        self.members = 0
        #: A bit for each place of the ring whose consumer has it.
        self.places = 0


class Selection:
    """The distinct filters of an audience."""

    __slots__ = (
        "slots", "epoch", "failures", "family", "_counted", "_free", "_takers", "_open", "_known",
    )  # fmt: skip

    def __init__(self) -> None:
        self.slots: dict[object, WantedBy] = {}
        self.epoch = 0
        #: How often a filter has raised.
        self.failures = 0
        #: The free bits (infinitely many), and the number of counted slots.
        self._free = -1
        self._counted = 0
        #: The places without a filter.
        self._open = 0
        #: Places by mask, for the masks that were needed since the ring was formed.
        self._takers: dict[int, int] = {}
        #: Masks by the key of a message, if all filters are of one family.
        self._known: dict[object, int] = {}
        #: The family of all filters; None if they examine different parts of a message.
        self.family: object = None

    def has_room(self, filter: SubscriptionFilter) -> bool:
        """Whether a further consumer may have this filter."""
        if self._counted < MAX_FILTERS or not filter.is_counted():
            return True
        return filter.identity() in self.slots

    def add(self, filter: SubscriptionFilter) -> None:
        """Count a further consumer with this filter; there must be room."""
        identity = filter.identity()
        slot = self.slots.get(identity)
        if slot is None:
            bit = self._free & -self._free
            self._free ^= bit
            self.epoch += 1
            slot = WantedBy(filter, bit, self.epoch)
            self.slots[identity] = slot
            self._counted += filter.is_counted()
            self._forget()
            family = filter.family()
            self.family = family if len(self.slots) == 1 or family == self.family else None
        slot.members += 1

    def remove(self, filter: SubscriptionFilter) -> None:
        """Count a consumer with this filter as gone."""
        identity = filter.identity()
        slot = self.slots[identity]
        slot.members -= 1
        if slot.members == 0:
            del self.slots[identity]
            self._free |= slot.bit
            self._counted -= slot.filter.is_counted()
            self._forget()
            if self.family is None:
                self.family = self._common_family()

    def _forget(self) -> None:
        """Drop the results that depend on the set of filters."""
        self._known = {}
        self._takers = {}

    def _common_family(self) -> object:
        """The family of all filters, if they have the same one."""
        found: object = None
        for at, slot in enumerate(self.slots.values()):
            family = slot.filter.family()
            if family is None or (at and family != found):
                return None
            found = family
        return found

    # --- Places ----------------------------------------------------------------------------------

    def place(self, filters: list[SubscriptionFilter | None]) -> None:
        """Update the places of all filters, because the ring was formed again: *filters* has that
        of each place."""
        self._takers = {}
        self._open = 0
        for slot in self.slots.values():
            slot.places = 0
        for at, chosen in enumerate(filters):
            if chosen is None:
                self._open |= 1 << at
            else:
                self.slots[chosen.identity()].places |= 1 << at

    def takers(self, mask: int) -> int:
        """The places of the ring, as bits, that take messages of this mask."""
        found = self._takers.get(mask)
        if found is None:
            found = self._open
            for slot in self.slots.values():
                if slot.bit & mask:
                    found |= slot.places
            if len(self._takers) >= _MOST_ANSWERS:
                self._takers = {}
            self._takers[mask] = found
        return found

    # --- Messages --------------------------------------------------------------------------------

    def mask_of(self, message: Message, mask: int = 0, seen: int = 0) -> int:
        """The bits of the filters that accept a message; *mask* is known already up to the epoch
        *seen*."""
        key: object = None
        if self.family is not None and seen == 0:
            key = self._key_of(message)
            if key is not None:
                known = self._known.get(key)
                if known is not None:
                    return known
        for slot in self.slots.values():
            if slot.born > seen:
                mask &= ~slot.bit
                if self._accepts(slot, message):
                    mask |= slot.bit
        if key is not None:
            if len(self._known) >= _MOST_ANSWERS:
                self._known = {}
            self._known[key] = mask
        return mask

    def mask_of_all(self, sample: Message) -> int:
        """The mask of messages that are equal for the family; if each must be examined separately,
        return -1 and count nothing."""
        key = self._key_of(sample)
        if key is None:
            return -1
        failures = self.failures
        mask = self.mask_of(sample)
        if self.failures != failures:
            self.failures = failures
            self._known.pop(key, None)
            return -1
        return mask

    def _accepts(self, slot: WantedBy, message: Message) -> bool:
        found = verdict(slot.filter, message)
        if found is None:
            self.failures += 1
        return found is True

    def _key_of(self, message: Message) -> object:
        for slot in self.slots.values():
            try:
                return slot.filter.key_of(message)
            except Exception:  # noqa: BLE001 - the same
                return None
        return None
