"""What must become of the messages of a queue that feeds others: the books, without a client.

Theory of operation.  One queue, the *source*, has no consumer; it feeds the *targets*: the first
gets everything, the second what its filter accepts, if it has one, the third comes and goes.  Each
item is pushed once.  What is known of it decides what is owed:

* an item that was confirmed is owed to the first target, whenever that feed was added; to the
  others if their feed was there when the item was pushed, and was not removed since;
* what is only in memory is owed in the same life of the server only, though the disk failed to
  take its copies;
* a target sends items for the first time in the order in which they were pushed, as far as each
  was confirmed before the next was pushed, and does not send again what was answered in time; but
  copies that the disk did not take for a source in memory may come late;
* a list of the feeds has each that is there, and none that is not;
* at each beginning of a life an item is in the source or in a target, never in both, and never
  in neither while it is owed; and each feed that was told to be there is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tmqp.models import FeedInformation
from tmqp_server.engine.commands import Acknowledge
from tmqp_server.engine.model.message import Message
from tmqp_sim.world import Violation, World

__all__ = [
    "ACK_TIMEOUT_S",
    "FIRST",
    "ROLES",
    "SECOND",
    "SOURCE",
    "SOURCE_ID",
    "TARGETS",
    "TARGET_ID",
    "THIRD",
    "Copies",
    "Item",
]

#: The source, and the targets by their number; what is stored of a seed names no two alike.
SOURCE: Final = "feeds-source"
SOURCE_ID: Final = 1
TARGETS: Final = ("feeds-all", "feeds-some", "feeds-now-and-then")
TARGET_ID: Final = 2
FIRST: Final = 0
SECOND: Final = 1
THIRD: Final = 2
#: Which of source, first, second and third target are durable.
ROLES: Final = {
    "durable": (True, True, True, True),
    "memory": (False, False, False, False),
    "mixed": (True, True, False, True),
    "targets": (False, True, True, True),
}
#: How long the consumer of a target has for an answer.
ACK_TIMEOUT_S: Final = 2.0


class Item:
    """A message of the source: when it was pushed and confirmed, and to which targets it is owed.

    Times are numbers of events, for many things happen at one time.
    """

    __slots__ = ("confirmed_at", "life", "number", "owed", "pushed_at")

    def __init__(self, number: int, pushed_at: int, life: int, owed: set[int]) -> None:
        self.number = number
        self.pushed_at = pushed_at
        self.life = life
        self.owed = owed
        #: Negative while it is not confirmed.
        self.confirmed_at = -1

    @property
    def is_odd(self) -> bool:
        """Whether the filter of the second target accepts it."""
        return self.number % 2 == 1


class Copies:
    """The books of one run.

    :param kind: which of the queues are durable.
    :param filters: the second target wants odd items only; else it gets all.
    """

    def __init__(self, world: World, kind: str, filters: bool = True) -> None:
        self._world = world
        self.filters = filters
        self.durable = ROLES[kind]
        self.items: dict[str, Item] = {}
        #: By target, what its consumer has dealt with.
        self.done: tuple[set[str], ...] = (set(), set(), set())
        #: By target: the feed is there (True), is not (False), or nobody knows.
        self.there: list[bool | None] = [False, False, False]
        #: Whether the disk has that, or is not sure to.
        self._kept = [True, True, True]
        #: By target, how often it was changed, or was about to be.
        self.changes = [0, 0, 0]
        self._events = 0
        #: By target, in which order items were sent first: the latest push of them.
        self._latest = [-1, -1, -1]
        self._sent: tuple[set[str], ...] = (set(), set(), set())
        #: The last sending of an item in this life: to whom, and when.
        self._hands: dict[tuple[int, str], tuple[int, float]] = {}
        self._answered: set[tuple[int, str]] = set()

    # -- what the client does -------------------------------------------------------------------

    def pushed(self, uid: str, number: int, life: int) -> None:
        """An item is pushed now, for the only time."""
        self._events += 1
        owed = {target for target, there in enumerate(self.there) if there or target == FIRST}
        if number % 2 == 0 and self.filters:
            owed.discard(SECOND)
        self.items[uid] = Item(number, self._events, life, owed)

    def confirmed(self, uid: str) -> None:
        """Its push was answered."""
        self._events += 1
        self.items[uid].confirmed_at = self._events

    def changing(self, target: int) -> None:
        """A feed is about to be added, or removed."""
        self.there[target] = None
        self._kept[target] = False
        self.changes[target] += 1

    def changed(self, target: int, there: bool, *, kept: bool) -> None:
        """A feed is there, or is not; kept says that the disk knows."""
        self.there[target] = there
        self._kept[target] = self._kept[target] or kept
        self.changes[target] += 1

    def removed(self, target: int) -> None:
        """A feed is about to be removed, or was forgotten: what waits for it may not come."""
        for item in self.items.values():
            item.owed.discard(target)

    # -- what the broker does -------------------------------------------------------------------

    def began(self) -> None:
        """A new life: what was in somebody's hands is in nobody's."""
        self._hands.clear()
        self._answered.clear()

    def sent(self, channel: str, message: Message, sessions: Iterable[int]) -> None:
        """A message of one of the queues is sent.

        :raises Violation: when that should not be.
        """
        if channel == SOURCE:
            raise Violation("feeds", f"{message!r} is sent by a queue that has no consumer")
        if channel not in TARGETS:
            return
        target = TARGETS.index(channel)
        uid = message.message_id
        item = self.items.get(uid)
        if item is None or (target == SECOND and self.filters and not item.is_odd):
            raise Violation("feeds", f"{uid!r} is sent by {channel}, which should not have it")
        if (target, uid) in self._answered:
            raise Violation("feeds", f"{uid} is sent by {channel} after it was answered")
        if uid not in self._sent[target]:
            self._sent[target].add(uid)
            # While the storage fails the memory takes more, and order may suffer (seed 38883).
            late = self.durable[1 + target] and "sync failed" in self._world.marks
            if -1 < item.confirmed_at < self._latest[target] and not late:
                raise Violation("feeds", f"{uid} was overtaken in {channel}")
            self._latest[target] = max(self._latest[target], item.pushed_at)
        for session in sessions:
            self._hands[target, uid] = (session, self._world.now)

    def answered(self, command: Acknowledge) -> None:
        """A message is answered; if in time, and by the one who has it, it is done."""
        if command.channel not in TARGETS or not command.positive:
            return
        place = (TARGETS.index(command.channel), command.message_id)
        session, at = self._hands.get(place, (-1, 0.0))
        if session == command.session and self._world.now < at + ACK_TIMEOUT_S - 0.001:
            self._answered.add(place)

    # -- how it must be -------------------------------------------------------------------------

    def check_feeds(self, there: Iterable[str]) -> None:
        """Compare the feeds of a new life, by their targets, with what was reported about them.

        :raises Violation: when they differ.
        """
        found = [*there]
        for target, wanted in enumerate(self.there):
            is_there = TARGETS[target] in found
            if not self._kept[target]:
                self.there[target] = None
                self.changes[target] += 1
                if not is_there and target != FIRST:
                    self.removed(target)
            elif wanted is not None and is_there != wanted:
                what = "missing" if wanted else "there again"
                raise Violation("feeds", f"the feed to {TARGETS[target]} is {what}")

    def check_listed(self, found: Sequence[FeedInformation], before: Sequence[int]) -> None:
        """Compare a list of the source's feeds with what is known of them.

        :param before: how often each feed had been changed when the list was asked for.
        :raises Violation: when a feed is missing, or told otherwise than it is.
        """
        listed = [each.target for each in found]
        for target, channel in enumerate(TARGETS):
            there = self.there[target]
            count = listed.count(channel)
            known = there is not None and self.changes[target] == before[target]
            if count > 1 or (known and count != there):
                raise Violation("feeds", f"{listed} are listed, and that to {channel}: {there}")
        for each in found:
            ends = (each.channel, each.queue, each.target_queue)
            chooses = self.filters and each.target == TARGETS[SECOND]
            if ends != (SOURCE, SOURCE_ID, TARGET_ID) or bool(each.filter) != chooses:
                raise Violation("feeds", f"{each} is listed, which nobody has added")
            if each.passed and not chooses:
                raise Violation("feeds", f"{each} has passed some over, and takes everything")
            self._check_counts(each)

    def _check_counts(self, told: FeedInformation) -> None:
        """What a feed says of itself goes with what was pushed: an item is examined again only
        where the disk has not taken what came of it (seeds 7772 and 8109)."""
        pushed = len(self.items)
        odd = sum(item.is_odd for item in self.items.values())
        steady = "sync failed" not in self._world.marks
        copied, passed = (odd, pushed - odd) if told.filter else (pushed, 0)
        too_many = steady and (told.copied > copied or told.passed > passed)
        if told.waiting > pushed or too_many:
            raise Violation("feeds", f"{told} is told, and {pushed} items were pushed, {odd} odd")

    def check_disk(self, ids: Mapping[str, list[str]]) -> None:
        """Look at what is on the disk, by channel.

        :raises Violation: when an item is there twice, or is not there although it must be.
        """
        source = ids.get(SOURCE, [])
        for target, channel in enumerate(TARGETS):
            found = source + ids.get(channel, [])
            for uid in found:
                if uid not in self.items:
                    raise Violation("feeds", f"{uid} is on the disk and was never pushed")
                if found.count(uid) > 1:
                    where = f"{SOURCE} and {channel}"
                    raise Violation("feeds", f"{uid} is {found.count(uid)} times in {where}")
            if not self.durable[0] or not self.durable[1 + target]:
                continue
            for uid, item in self.items.items():
                done = uid in found or uid in self.done[target]
                if item.confirmed_at >= 0 and target in item.owed and not done:
                    raise Violation("feeds", f"{uid} is neither in {SOURCE} nor in {channel}")

    def check_end(self, life: int) -> None:
        """Everything has come home.

        :param life: the last life of the server.
        :raises Violation: when an item is owed to a target and never came there.
        """
        for uid, item in self.items.items():
            if item.confirmed_at < 0:
                continue
            for target in sorted(item.owed):
                safe = self.durable[0] and self.durable[1 + target]
                if uid not in self.done[target] and (safe or item.life == life):
                    where = TARGETS[target]
                    raise Violation("feeds", f"{uid} was confirmed and never came to {where}")
