"""A client of TMQP among those of NSQ: it pushes into a topic, and consumes a channel."""

from __future__ import annotations

from typing import Final

from tmqp.errors import LocalProtocolError
from tmqp.frames import Frame
from tmqp_client._core import requests
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.outcomes import NotRestored
from tmqp_client._core.pending import Pending
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_sim.clients import SimClient
from tmqp_sim.nsq_books import CHANNELS, FIRSTS, SHARED, SHARED_CHANNEL, TOPICS, Item, NsqBooks
from tmqp_sim.stage import Stage

__all__ = ["NsqGuest"]

_TRY_AGAIN_S: Final = 0.5
#: The topic, and the channel that it consumes beside NSQ's consumers, as TMQP names them.
_TOPIC: Final = TOPICS[SHARED].decode()
_CHANNEL: Final = f"{_TOPIC}:{CHANNELS[SHARED_CHANNEL][1].decode()}"


class NsqGuest(SimClient):
    """Pushes items until each is confirmed.  Topic and channel are made by clients of NSQ."""

    def __init__(
        self, simulation: Stage, name: str, limits: ClientLimits, books: NsqBooks, items: list[Item]
    ) -> None:
        super().__init__(simulation, name, limits)
        self._books = books
        self._ready = items
        self._asked: dict[str, tuple[Item, set[int], int]] = {}
        self._tries = 0
        self._joining = ""
        self._joined = False
        self._inbox: Inbox[Frame] = self.machine.subscribe(_CHANNEL, None)

    @property
    def owes(self) -> int:
        """Items that are not confirmed."""
        return len(self._ready) + len(self._asked)

    def begin(self) -> None:
        """Join, and push what is to be pushed."""
        if not self.machine.joins:
            self._joined = False
        self._work()

    def forgets(self) -> None:
        """A new machine knows no subscription."""
        self._joined = False
        self.lost()
        self._inbox = self.machine.subscribe(_CHANNEL, None)

    def lost(self) -> None:
        """What was not answered is pushed again."""
        self._joining = ""
        self._ready += [item for item, _, _ in self._asked.values()]
        self._asked.clear()

    def not_restored(self, outcome: NotRestored) -> None:
        """The channel is not to be had: try on another connection."""
        self._joined = False
        self.world.after(0.0, self.leave, False)

    def _work(self) -> None:
        """Do what can be done, and look again later."""
        if self._books.there[SHARED_CHANNEL] and not self._joined and not self._joining:
            self._join()
        first = FIRSTS[SHARED]
        while self._ready and self._books.there[first] and self.usable:
            if not self._push(self._ready.pop(0)):
                break
        self.later(_TRY_AGAIN_S, self._work)

    def _join(self) -> None:
        try:
            pending = self.machine.request(requests.join(_CHANNEL), self.world.now)
        except (ClientError, LocalProtocolError):
            return
        self._joining = pending.message_id
        self.flush()

    def _push(self, item: Item) -> bool:
        owed = self._books.publishes(item)
        self._tries += 1
        try:
            pending = self.machine.push(
                _TOPIC, QUEUE, item.body, (), self.world.now,
                confirm=True, message_id=f"{item.uid}-{self._tries}",
            )  # fmt: skip
        except (ClientError, LocalProtocolError):
            self._ready.append(item)
            return False
        self._asked[pending.message_id] = (item, owed, self.link.life)
        self.flush()
        return True

    def settled(self, pending: Pending) -> None:
        """An answer, or none."""
        if pending.message_id == self._joining:
            self._joining = ""
            self._joined = pending.error is None
            return
        item, owed, life = self._asked.pop(pending.message_id, (None, set(), 0))
        if item is None:
            return
        if pending.error is None:
            self.world.mark("pushed into a topic of NSQ")
            self._books.confirmed(item, owed, life)
        else:
            self._ready.append(item)

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Acknowledge what comes, after a while."""
        if inbox is not self._inbox:
            return
        while len(inbox):
            frame = inbox.take()
            connection = self.connection
            self.world.mark("message of NSQ taken by TMQP")
            self.world.after(self.random.random() * 0.3, self._answer, connection, frame)
        self.flush()

    def _answer(self, connection: int, frame: Frame) -> None:
        if connection != self.connection or not self.usable:
            return
        uid = self._books.taken(SHARED_CHANNEL, bytes(frame.payload))
        try:
            self.machine.acknowledge(frame, None)
        except ClientError:
            return
        self._books.done[SHARED_CHANNEL].add(uid)
        self.flush()
