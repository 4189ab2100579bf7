"""Messages in queues of which each goes to one consumer at a time.

Theory of operation.  What the broker has taken into a queue is sent, in the order of its producer,
to one consumer at a time, until it is done or the consumer is gone; what is done is not sent again.
What the disk could not take, and nobody had then, may be gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from tmqp_server.engine.commands import Synced
from tmqp_sim.streams import Named
from tmqp_sim.world import Violation, World

__all__ = ["Dealings", "Taken"]


class Taken:
    """A message that the broker has taken, in one life."""

    __slots__ = ("arrival", "at", "done", "fails", "hand", "item", "restored", "sent", "session")

    def __init__(
        self, item: Named, session: int, arrival: int, at: float, *, restored: bool
    ) -> None:
        self.item = item
        #: When it was taken.
        self.at = at
        self.session = session
        self.arrival = arrival
        #: It comes from the disk, and may have been sent before.
        self.restored = restored
        self.sent = False
        self.done = False
        #: The disk has not taken it, so it may be gone.
        self.fails = False
        #: The session that has it; 0 for none.
        self.hand = 0


class Dealings:
    """The messages of one protocol's queues, in one life of the server after the other.

    :param checker: the protocol's name in reports.
    :param title: how marks begin.
    :param steady: whether the disk takes everything.
    """

    def __init__(self, world: World, checker: str, title: str, *, steady: bool) -> None:
        self._world = world
        self._checker = checker
        self._title = title
        self._steady = steady
        self._arrivals = 0
        #: By channel and message id, in this life; and by channel and session the last one that was
        #: sent for the first time: who waits for room may be overtaken by others.
        self.taken: dict[tuple[bytes, str], Taken] = {}
        self._newest: dict[tuple[bytes, int], int] = {}
        #: What waits for the disk, by ticket.
        self._tickets: dict[int, list[tuple[bytes, str]]] = {}

    def began(self) -> None:
        """A life begins with nothing."""
        self.taken.clear()
        self._newest.clear()
        self._tickets.clear()

    def restored(self, channel: bytes, message_id: str, item: Named) -> None:
        """A message is on the disk when a life begins."""
        self.taken[channel, message_id] = Taken(item, 0, 0, self._world.now, restored=True)
        self._world.mark(f"{self._title} message restored from the disk")

    def takes(self, channel: bytes, message_id: str, item: Named, session: int) -> None:
        """The broker takes a message from a session."""
        self._arrivals += 1
        self.taken[channel, message_id] = Taken(
            item, session, self._arrivals, self._world.now, restored=False
        )

    def kept(self, channel: bytes, message_id: str, ticket: int) -> None:
        """A message is to be written to the disk."""
        self._tickets.setdefault(ticket, []).append((channel, message_id))

    def synced(self, command: Synced) -> None:
        """What the disk has not taken, and nobody has, is gone: its producer cannot be told."""
        for ticket in range(command.ticket, command.ticket + command.count):
            for place in self._tickets.pop(ticket, ()):
                taken = self.taken.get(place)
                if taken is not None and not command.ok and not taken.hand and not self._steady:
                    self._world.mark(f"{self._title} message lost by the disk")
                    taken.fails = True

    def deals(self, channel: bytes, message_id: str, sessions: Sequence[int]) -> Taken:
        """The broker sends a message.

        :raises Violation: when it must not.
        """
        taken = self.taken.get((channel, message_id))
        if taken is None:
            text = f"{message_id} is sent to {sessions}, and was not taken in"
            raise Violation(self._checker, text)
        uid = taken.item.uid
        if taken.hand or len(sessions) != 1:
            raise Violation(self._checker, f"{uid} is sent to {sessions}, and {taken.hand} has it")
        if taken.done:
            raise Violation(self._checker, f"{uid} is sent to {sessions}, and was done")
        if not taken.sent and not taken.restored:
            origin = (channel, taken.session)
            if taken.arrival < self._newest.get(origin, 0):
                raise Violation(self._checker, f"{uid} is sent to {sessions} behind later ones")
            self._newest[origin] = taken.arrival
        if taken.sent:
            self._world.mark(f"{self._title} message sent to another consumer")
        taken.sent = True
        taken.hand = sessions[0]
        return taken

    def answers(self, channel: bytes, message_id: str, session: int) -> Taken | None:
        """A session answers for a message; None if it does not have it."""
        taken = self.taken.get((channel, message_id))
        if taken is None or taken.hand != session:
            return None
        taken.hand = 0
        taken.done = True
        return taken

    def ends(self, session: int, held: Named | None) -> None:
        """A session is over: what it has is the server's again, and what waited for room (*held*)
        is nobody's."""
        for key, taken in list(self.taken.items()):
            if taken.hand == session:
                taken.hand = 0
            elif held is not None and taken.item is held and not taken.sent:
                self._world.mark(f"{self._title} client left while a push waited for room")
                del self.taken[key]

    def forgets(self, item: Named) -> None:
        """A message was refused: it is nobody's."""
        for key, taken in list(self.taken.items()):
            if taken.item is item and not taken.sent:
                del self.taken[key]

    def doubts(self, item: Named) -> None:
        """Whether a message was taken is not known, unless it was sent."""
        for taken in self.taken.values():
            if taken.item is item and not taken.sent:
                taken.fails = True

    def check_end(self) -> None:
        """Everything was consumed.

        :raises Violation: when something was not.
        """
        there = self.taken.values()
        lost = [each.item.uid for each in there if not each.done and not each.fails]
        if lost:
            raise Violation(self._checker, f"{', '.join(lost)}: taken in, and nobody has it")
