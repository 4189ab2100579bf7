"""What must become of the messages of Simple MQ: the books, without a client.

Theory of operation.  Each item has a text of its own and is sent once, into one queue.

* What a producer hands to a connection reaches the broker once, whole and in order, up to where the
  connection ended.
* Each message is with one consumer at a time until it is counted as done, or its consumer is gone;
  then it goes to another one.  Nothing is lost but by a crash where queues are in memory, by a disk
  that fails, and when it has waited for room for too long, which ends its producer's connection.
* ``D`` is for the oldest that its client has of the queue, and for no more than it says.
* Statistics count what waits and what is not done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from tmqp.constants import RESULT_BUSY, RESULT_LIMIT_EXCEEDED
from tmqp_server.doors.names import foreign_name
from tmqp_server.doors.smq.message import SmqMessage
from tmqp_server.engine.commands import Acknowledge, Command, Disconnect, Push, Synced
from tmqp_server.engine.effects import Append, Reply
from tmqp_server.engine.model.message import Message
from tmqp_sim.dealings import Dealings
from tmqp_sim.network import Link
from tmqp_sim.side_books import SideBooks
from tmqp_sim.streams import Streams
from tmqp_sim.world import Violation, World

__all__ = ["QUEUES", "Item", "SmqBooks"]

#: Names that differ by case, and one that TMQP would not allow.
QUEUES: Final = (b"smq-Sim", b"smq-sim", b"smq; sim")
_TITLE: Final = "Simple MQ"
_CHECKER: Final = "smq"
_FULL: Final = (RESULT_BUSY, RESULT_LIMIT_EXCEEDED)


class Item:
    """One message: the first word of its body is its name."""

    __slots__ = ("body", "queue", "uid")

    def __init__(self, uid: str, queue: bytes, body: bytes) -> None:
        self.uid = uid
        self.queue = queue
        self.body = body


class SmqBooks(SideBooks):
    """The books of one run.

    :param steady: whether the disk takes everything.
    """

    def __init__(self, world: World, *, steady: bool) -> None:
        self._world = world
        self.items: dict[str, Item] = {}
        self.streams: Streams[Item] = Streams(world, _CHECKER, _TITLE)
        self._dealings = Dealings(world, _CHECKER, _TITLE, steady=steady)
        #: Whether a push of a session waits for room.
        self.holds: Callable[[int], bool] = _never
        #: By session and queue: the ids of what it has, oldest first; and how many of what it has
        #: had its client has counted as done, less those that were answered for.
        self._hands: dict[tuple[int, bytes], deque[str]] = {}
        self._counted: dict[tuple[int, bytes], int] = {}
        #: Sessions of which a message was refused, and those that are over: what these still ask
        #: for is nothing.
        self._refused: set[int] = set()
        self._over: set[int] = set()

    # -- what clients say -----------------------------------------------------------------------

    def hands(self, link: Link, item: Item) -> None:
        """A producer hands an item to its connection."""
        self.items[item.uid] = item
        self.streams.hands(link, item)

    def known(self, body: bytes) -> Item:
        """The item of a body.

        :raises Violation: when there is none.
        """
        item = self.items.get(body.partition(b" ")[0].decode("latin-1"))
        if item is None or item.body != body:
            raise Violation(_CHECKER, f"{body!r} was never sent")
        return item

    def comes(self, link: Link, body: bytes) -> Item:
        """A consumer gets a message; what item it is.

        :raises Violation: when it should not have got this.
        """
        item = self.known(body)
        self.streams.comes(link.number, item.uid)
        return item

    def counts(self, link: Link, queue: bytes, count: int) -> None:
        """A consumer says that so many messages are done."""
        key = (link.number, queue)
        self._counted[key] = self._counted.get(key, 0) + count

    def check_statistics(self, counts: dict[str, int], mine: dict[bytes, int], who: str) -> None:
        """A client is told how many messages there are.

        :param mine: how many of each queue it has itself, and has not counted as done.
        :raises Violation: when there cannot be so many, or so few.
        """
        for queue in QUEUES:
            name = queue.decode()
            least = mine.get(queue, 0)
            most = sum(item.queue == queue for item in self.items.values())
            if name in counts and not least <= counts[name] <= most:
                text = f"{who} is told of {counts[name]} messages in {name!r}, there are"
                raise Violation(_CHECKER, f"{text} {least} to {most}")
            if least and name not in counts:
                raise Violation(_CHECKER, f"{who} is not told of {name!r}, of which it has some")
        strange = counts.keys() - {queue.decode() for queue in QUEUES}
        if strange:
            raise Violation(_CHECKER, f"{who} is told of {sorted(strange)}, which nobody uses")

    # -- what the broker does -------------------------------------------------------------------

    def began(self, restored: Sequence[tuple[bytes, Message]]) -> None:
        """A life begins.

        :param restored: the messages on disk, with their queues.
        :raises Violation: when one was never sent.
        """
        self._dealings.began()
        self.streams.sent.clear()
        self._hands.clear()
        for queue, message in restored:
            assert isinstance(message.wire, SmqMessage), "nobody else sends something here"
            item = self.known(message.wire.body)
            self._dealings.restored(queue, message.message_id, item)

    def asked(self, command: Command) -> None:
        """A command is about to be carried out.

        :raises Violation: when it is not what a client has asked for.
        """
        if isinstance(command, Push):
            queue = foreign_name(command.channel)
            if queue in QUEUES and command.session not in self._over:
                self._push(queue, command)
        elif isinstance(command, Acknowledge):
            queue = foreign_name(command.channel)
            if queue in QUEUES:
                self._answer(queue, command)
        elif isinstance(command, Disconnect):
            self._end(command.session)
        elif isinstance(command, Synced):
            self._dealings.synced(command)

    def _push(self, queue: bytes, command: Push) -> None:
        assert isinstance(command.wire, SmqMessage), "nobody else sends something here"
        item = self.known(command.wire.body)
        if item.queue != queue:
            raise Violation(_CHECKER, f"{item.uid} is pushed into {queue!r}, not {item.queue!r}")
        if command.session in self._refused:
            text = f"session {command.session} continues with {item.uid}"
            raise Violation(_CHECKER, f"{text}, and one before it was refused")
        self.streams.takes(command.session, item)
        self._dealings.takes(queue, command.message_id, item, command.session)

    def _answer(self, queue: bytes, command: Acknowledge) -> None:
        """A session answers for the oldest it has, and for no more than its client counts."""
        session, message_id = command.session, command.message_id
        key = (session, queue)
        hand = self._hands.get(key)
        if not hand or hand[0] != message_id:
            text = f"session {session} answers for {message_id}"
            raise Violation(_CHECKER, f"{text}, and the oldest it has is {hand and hand[0]}")
        hand.popleft()
        left = self._counted.get(key, 0) - 1
        if left < 0:
            raise Violation(_CHECKER, f"session {session} answers for more than was counted")
        self._counted[key] = left
        self._dealings.answers(queue, message_id, session)
        self._world.mark("Simple MQ message done")

    def _end(self, session: int) -> None:
        """A session is over: what it has is the server's again."""
        self._over.add(session)
        held = self.streams.last_taken(session) if self.holds(session) else None
        self._dealings.ends(session, held)
        for queue in QUEUES:
            self._hands.pop((session, queue), None)

    def kept(self, effect: Append) -> None:
        """A message is to be written to the disk."""
        queue = foreign_name(effect.channel)
        if queue in QUEUES:
            self._dealings.kept(queue, effect.message.message_id, effect.ticket)

    def sent(self, channel: str, message: Message, sessions: Sequence[int]) -> None:
        """The broker sends a message.

        :raises Violation: when it must not.
        """
        queue = foreign_name(channel)
        if queue in QUEUES:
            taken = self._dealings.deals(queue, message.message_id, sessions)
            session = sessions[0]
            self._hands.setdefault((session, queue), deque()).append(message.message_id)
            self.streams.note_sent(session, taken.item.uid)

    def told(self, effect: Reply) -> None:
        """A message that has found no room is nobody's; its producer's connection ends."""
        if isinstance(effect.request, SmqMessage) and effect.code in _FULL:
            self._world.mark("Simple MQ message found no room in time")
            self._dealings.forgets(self.known(effect.request.body))
            self._refused.add(effect.session)

    # -- how it must be -------------------------------------------------------------------------

    def under_way(self, link: Link) -> int:
        """How many items were handed to a connection that the broker has not taken."""
        return self.streams.under_way(link)

    def check_end(self, living: Sequence[int]) -> None:
        """Everything has come home.

        :param living: the sessions whose clients have read and sent all.
        :raises Violation: when something is missing.
        """
        if not self.streams.watches:
            return
        self._dealings.check_end()
        self.streams.check_closed()
        for (session, queue), count in self._counted.items():
            if session in living and count:
                text = f"session {session} has counted {count} more of {queue!r} as done"
                raise Violation(_CHECKER, f"{text} than were answered for")


def _never(session: int) -> bool:
    return False
