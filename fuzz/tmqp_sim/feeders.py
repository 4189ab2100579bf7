"""The feeder: a client with a queue that feeds others, who fills it and takes what comes of it.

It makes the queues and the feeds, pushes items, each once, and consumes the targets.  One feed it
adds and removes while everything runs; in the end it is there.  What must become of the items is in
``copies.py``.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    RESULT_BUSY,
    RESULT_DUPLICATE,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    HeaderName,
)
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_FEED_CHANNEL,
    HEADER_FEED_QUEUE,
    HEADER_FILTER,
    OP_ADD_FEED,
    OP_LIST_FEEDS,
    OP_REMOVE_FEED,
)
from tmqp.frames import Frame
from tmqp.models import FeedInformation, QueueOptions, parse_list
from tmqp_client._core import requests
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.outcomes import NotRestored
from tmqp_client._core.pending import Pending
from tmqp_client._core.requests import Request
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError, OperationFailed
from tmqp_sim.clients import SimClient
from tmqp_sim.copies import (
    ACK_TIMEOUT_S,
    FIRST,
    SECOND,
    SOURCE,
    SOURCE_ID,
    TARGET_ID,
    TARGETS,
    THIRD,
    Copies,
)
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["Feeder"]

#: Pause before something is tried again, and between lists of the feeds, in seconds.
_RETRY_S: Final = 0.3
_LOOK_S: Final = 0.4
#: Items that are pushed when the last feed is there for good.
_LAST: Final = 3
#: Answers that say that something may be tried again.
_PASSING: Final = (RESULT_BUSY, RESULT_LIMIT_EXCEEDED)


class Feeder(SimClient):
    """Feeds so many items, and some more in the end.

    :param room: how many messages may wait in a target; 0 is any number.
    """

    def __init__(
        self,
        simulation: Stage,
        name: str,
        limits: ClientLimits,
        copies: Copies,
        count: int,
        room: int,
    ) -> None:
        super().__init__(simulation, name, limits)
        self.copies = copies
        self.count = count
        self._room = room
        self._pushed = 0
        self._last = 0
        #: Queues that were told to be there, the source first.
        self._made: set[int] = set()
        #: What is asked and not answered: a word, and a number or an item.
        self._asked: dict[str, tuple[str, int]] = {}
        self._joined: set[int] = set()
        self._pushing = False
        #: It lists its feeds now and then; how often each had been changed when it last asked.
        self.looks = False
        self._before: list[int] = []
        self._subscribe()

    def _subscribe(self) -> None:
        self._inboxes = [self.machine.subscribe(channel, None) for channel in TARGETS]

    @property
    def owes(self) -> int:
        """Items that are not pushed yet, and what is not answered."""
        return self.count - self._pushed + _LAST - self._last + len(self._asked)

    # -- its life -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the queues, which may be there, then the feeds, and join."""
        if not self.machine.joins:
            self._joined.clear()
        for number, channel in enumerate(TARGETS):
            if number not in self._joined:
                self._ask("join", number, requests.join(channel))
        for number in range(1 + len(TARGETS)):
            self._create(number)
        self._push_later()
        self._look_later()

    def forgets(self) -> None:
        """A new machine knows no subscription."""
        self._joined.clear()
        self.lost()
        self._subscribe()

    def lost(self) -> None:
        """Nobody knows what happened to what was asked."""
        self._asked.clear()
        self._pushing = False

    def not_restored(self, outcome: NotRestored) -> None:
        """A channel is not to be had any more: try on another connection."""
        self._joined.clear()
        self.world.after(0.0, self.leave, False)

    def _ask(self, what: str, number: int, request: Request) -> bool:
        try:
            pending = self.machine.request(request, self.world.now)
        except (ClientError, LocalProtocolError):
            return False
        self._asked[pending.message_id] = (what, number)
        self.flush()
        return True

    # -- queues and feeds -----------------------------------------------------------------------

    def _create(self, number: int) -> None:
        channel = TARGETS[number - 1] if number else SOURCE
        durable = self.copies.durable[number]
        options = QueueOptions(
            durable=durable,
            memory_limit=4 if durable else None,
            acknowledge_timeout_ms=round(ACK_TIMEOUT_S * 1_000),
            put_back_limit=1_000,
            message_limit=self._room if number and self._room else None,
        )
        request = requests.create_queue(
            channel,
            TARGET_ID if number else SOURCE_ID,
            options,
            "round-robin" if number else "push",
            None,
            "putback-end" if number else "ack-if-asked",
            None,
            (),
        )
        self._ask("create", number, request)

    def _feed(self, target: int) -> None:
        """Add a feed."""
        headers = self._headers(target)
        if target == SECOND and self.copies.filters:
            headers = (*headers, (HEADER_FILTER, "kind=k1"))
        if self.copies.there[target] is not True:
            self.copies.changing(target)
        self._ask("add", target, Request(OP_ADD_FEED, "add feed", SOURCE, headers))

    def _unfeed(self) -> None:
        """Remove the feed that comes and goes, or continue without."""
        if self.simulation.healed:
            self._feed(THIRD)
            return
        self.copies.removed(THIRD)
        self.copies.changing(THIRD)
        request = Request(OP_REMOVE_FEED, "remove feed", SOURCE, self._headers(THIRD))
        self._ask("remove", THIRD, request)

    def _look_later(self) -> None:
        if self.looks:
            self.later(_LOOK_S * (0.5 + self.random.random()), self._look)

    def _look(self) -> None:
        """List the feeds, of the source or of its whole channel."""
        if self.simulation.healed and not self.owes:
            return
        self._before = [*self.copies.changes]
        queue: tuple[tuple[str, str], ...] = ()
        if self.random.random() < 0.5:
            queue = ((HeaderName.QUEUE_ID.value, str(SOURCE_ID)),)
        if not self._ask("look", 0, Request(OP_LIST_FEEDS, "list feeds", SOURCE, queue)):
            self._look_later()

    def _looked(self, pending: Pending) -> None:
        """The feeds are listed; where the source is not made yet there is nothing to list."""
        if pending.error is None and pending.answer is not None:
            found = parse_list(FeedInformation, pending.answer.payload or b"[]")
            self.copies.check_listed(found, self._before)
            self.world.mark("feeds listed")
        else:
            self._check_refusal("listing", pending.error)
        self._look_later()

    def _headers(self, target: int) -> tuple[tuple[str, str], ...]:
        return (
            (HeaderName.QUEUE_ID.value, str(SOURCE_ID)),
            (HEADER_FEED_CHANNEL, TARGETS[target]),
            (HEADER_FEED_QUEUE, str(TARGET_ID)),
        )

    # -- items ----------------------------------------------------------------------------------

    def _push_later(self) -> None:
        if not self._pushing:
            self._pushing = True
            self.later(self.random.random() * 0.4, self._push)

    def _push(self) -> None:
        """Bring the next items, each once; the last ones when nothing changes any more."""
        self._pushing = False
        # Pushes in a row come singly for a while once some could not be taken together.
        waits = not self.copies.filters and self.copies.there[SECOND] is not True
        if 0 not in self._made or waits:
            self._push_later()
            return
        for _ in range(self.random.choice((1, 1, 2, 5))):
            if self._pushed >= self.count:
                if not self.simulation.healed or self.copies.there[THIRD] is not True:
                    break
                if self._last >= _LAST:
                    self.flush()
                    return
            if not self._push_one():
                break
        self.flush()
        self._push_later()

    def _push_one(self) -> bool:
        number = self._pushed + self._last
        uid = f"f{number}"
        headers = (("Kind", f"k{number % 2}"),)
        copies = self.copies
        try:
            pending = self.machine.push(
                SOURCE, SOURCE_ID, b"x" * (number % 50), headers, self.world.now,
                confirm=True, message_id=uid,
            )  # fmt: skip
        except (ClientError, LocalProtocolError):
            return False
        copies.pushed(uid, number, self.simulation.server.lives)
        if self._pushed < self.count:
            self._pushed += 1
        else:
            self._last += 1
        self._asked[pending.message_id] = ("push", number)
        return True

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Deal with what a target sent, for a while."""
        if inbox not in self._inboxes:
            return
        target = self._inboxes.index(inbox)
        while len(inbox):
            frame = inbox.take()
            self.world.note("fed", self.name, TARGETS[target], frame.message_id)
            self.world.mark("copy of a feed delivered")
            draw = 1.0 if self.simulation.healed else self.random.random()
            if draw < 0.03:
                continue  # it forgets to answer
            delay_s = self.random.random() * 0.3
            connection = self.connection
            self.world.after(delay_s, self._answer, connection, target, frame, draw < 0.1)
        self.flush()

    def _answer(self, connection: int, target: int, frame: Frame, refuses: bool) -> None:
        if connection != self.connection or not self.usable:
            return
        try:
            self.machine.acknowledge(frame, "error" if refuses else None)
        except ClientError:
            return
        if not refuses:
            self.copies.done[target].add(frame.message_id)
        self.flush()

    # -- answers --------------------------------------------------------------------------------

    def settled(self, pending: Pending) -> None:
        """An answer, or none."""
        what, number = self._asked.pop(pending.message_id, ("", 0))
        error = pending.error
        if what == "push" and error is None:
            self.copies.confirmed(pending.message_id)
        elif what == "push":
            self.world.mark("item not taken by a source")
        elif what == "join" and error is None:
            self._joined.add(number)
        elif what == "join":
            self._joined.clear()
            self.world.after(0.0, self.leave, False)
        elif what == "create":
            self._created(number, error)
        elif what == "add":
            self._added(number, error)
        elif what == "remove":
            self._removed(error)
        elif what == "look":
            self._looked(pending)

    def _created(self, number: int, error: object) -> None:
        """Try again, unless the queue already exists; when all are there, add the first feed."""
        if not _is_done(error, RESULT_DUPLICATE):
            self.later(_RETRY_S, lambda: self._create(number))
            return
        self._made.add(number)
        if number == len(TARGETS):
            # Items that came up before wait for it.
            self.later(self.random.choice((0.0, 0.5, 2.0)), lambda: self._feed(FIRST))

    def _added(self, target: int, error: object) -> None:
        """Add the next feed; the one that goes again is removed after a while."""
        if not _is_done(error, RESULT_DUPLICATE):
            self._check_refusal("adding", error)
            self.later(_RETRY_S, lambda: self._feed(target))
            return
        self.copies.changed(target, True, kept=error is None)
        self.world.mark("feed added")
        if target != THIRD:
            self._feed(target + 1)
        elif not self.simulation.healed:
            self.later(0.2 + self.random.random() * 2.0, self._unfeed)

    def _removed(self, error: object) -> None:
        """Add it again after a while."""
        if _is_done(error, RESULT_NOT_FOUND):
            self.copies.changed(THIRD, False, kept=error is None)
            self.world.mark("feed removed")
        else:
            self._check_refusal("removing", error)
        self.later(self.random.random() * 2.0, lambda: self._feed(THIRD))

    def _check_refusal(self, what: str, error: object) -> None:
        """Refusals say that the server is busy, or that the queues are not made yet."""
        if not isinstance(error, OperationFailed) or error.code in _PASSING:
            return
        if error.code != RESULT_NOT_FOUND or len(self._made) == 1 + len(TARGETS):
            raise Violation("feeds", f"{what} a feed is answered {error.code}")


def _is_done(error: object, code: int) -> bool:
    """Whether something was done, now or before."""
    return error is None or (isinstance(error, OperationFailed) and error.code == code)
