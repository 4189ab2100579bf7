"""When STOMP and OpenWire may confirm a message: whether it is safe, or done with.

Theory of operation.  A durable message is confirmed when the disk has it, and one for a topic when
the disk has each copy that durable subscriptions get.  Where the door says so (``done_confirms``) a
message of a queue may be confirmed as soon as its consumer has acknowledged it.
"""

from __future__ import annotations

from tmqp_server.engine.commands import Synced
from tmqp_sim.world import Violation, World

__all__ = ["JmsConfirms"]


class JmsConfirms:
    """The confirms of one protocol's messages, in one life of the server after the other.

    :param checker: the protocol's name in reports.
    :param title: how marks begin.

    Attributes: ``done_confirms``, whether a consumer's answer is enough.
    """

    def __init__(self, world: World, checker: str, title: str) -> None:
        self.done_confirms = False
        self._world = world
        self._checker = checker
        self._title = title
        #: The queue and the name of each message that was pushed, by its id.
        self._pushed: dict[str, tuple[bytes, str]] = {}
        #: What the disk was asked for and has not got, by name: the queues.
        self._unsafe: dict[str, set[bytes]] = {}
        #: The same by ticket.
        self._tickets: dict[int, list[tuple[bytes, str]]] = {}
        #: Those that a consumer has done with.
        self._done: set[tuple[bytes, str]] = set()

    def began(self) -> None:
        """A life begins."""
        self._pushed.clear()
        self._unsafe.clear()
        self._tickets.clear()
        self._done.clear()

    def pushed(self, queue: bytes, message_id: str, uid: str) -> None:
        """A message is pushed."""
        self._pushed[message_id] = (queue, uid)

    def kept(self, queue: bytes, uid: str, ticket: int) -> None:
        """A message, or a copy of it, is to be written to the disk."""
        self._tickets.setdefault(ticket, []).append((queue, uid))
        self._unsafe.setdefault(uid, set()).add(queue)

    def synced(self, command: Synced) -> None:
        """The disk has answered; who is told what is not there is judged elsewhere."""
        for ticket in range(command.ticket, command.ticket + command.count):
            for queue, uid in self._tickets.pop(ticket, ()):
                self._unsafe[uid].discard(queue)

    def answered(self, queue: bytes, uid: str) -> None:
        """The consumer that has a message acknowledges it."""
        self._done.add((queue, uid))

    def confirmed(self, message_id: str) -> None:
        """A producer is notified that its message is taken.

        :raises Violation: when it is too early.
        """
        queue, uid = self._pushed.get(message_id, (b"", ""))
        unsafe = self._unsafe.get(uid, set())
        if not unsafe:
            return
        if self.done_confirms and unsafe == {queue} and (queue, uid) in self._done:
            self._world.mark(f"{self._title} message confirmed before the disk had it")
            return
        where = ", ".join(sorted(each.decode() for each in unsafe))
        text = f"{uid} is confirmed, and is neither done with nor on the disk for {where}"
        raise Violation(self._checker, text)
