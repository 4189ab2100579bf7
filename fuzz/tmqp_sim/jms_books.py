"""What must become of the messages of STOMP and OpenWire: the books, without a client.

Theory of operation.  Producers send *units*: a message, or a transaction of several.  Each message
has a text of its own and is sent once.

* What was confirmed comes to a consumer: of a queue to one, of a topic to each durable subscription
  that there was.  What is unsure, for the connection ended before the answer, comes or does not.
* A transaction comes whole or not at all, over crashes too; one that was aborted, or refused, does
  not come.
* A *move* takes a message from one queue and puts another one into the next queue, in one
  transaction.  However often it is tried, one of the tries counts: no two of these come.
* A message of a queue is with one consumer at a time, is not sent again when it is done, and is
  first sent in the order of its producer (``dealings.py``), transactions apart from the rest.

* Who has the mode ``auto`` of STOMP has done with a message when it is written to the network: it
  may be lost there.
* A message goes before those of lower priorities (``ranks.py``).
* While an exclusive consumer has joined the first queue, nobody else gets its messages; of several,
  the one that came first gets them.

Where queues are in memory, only what was sent in the last life of the server must come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tmqp_server.doors.names import foreign_name
from tmqp_server.engine.commands import (
    Acknowledge,
    Batch,
    CloseBranch,
    Command,
    Connect,
    Disconnect,
    Join,
    Push,
    Release,
    Synced,
    connection_of,
)
from tmqp_server.engine.effects import Append, Confirm, Reply
from tmqp_server.engine.model.message import Message
from tmqp_sim.dealings import Dealings
from tmqp_sim.jms_confirms import JmsConfirms
from tmqp_sim.ranks import Ranks, Waiting, level_of
from tmqp_sim.side_books import SideBooks
from tmqp_sim.world import Violation, World

__all__ = ["DEAD", "FIRST", "MORE", "NEXT", "TOPIC", "WILD", "Item", "JmsBooks", "Unit"]

#: The queue that producers send to, the one into which messages are moved, that of dead letters,
#: and a topic.  Names whose case counts.
FIRST: Final = "jms.Sim"
NEXT: Final = "jms.sim"
DEAD: Final = "jms.Dead"
TOPIC: Final = "jms.News"
#: A queue, and the name with wildcards by which alone it is consumed.
MORE: Final = "jms.more.Sim"
WILD: Final = "jms.more.>"
_DEALT: Final = (FIRST.encode(), NEXT.encode(), DEAD.encode(), MORE.encode())
_NEVER: Final = float("inf")
#: Streams of one session, by priority.
_PER_SESSION: Final = 100


class Unit:
    """What is sent together: one message, or a transaction of several.

    ``aborts`` says that the transaction is to be aborted, ``moved`` is the source of a move.
    """

    __slots__ = ("aborts", "answer", "at", "items", "life", "moved", "transacted")

    def __init__(
        self, items: list[Item], *, transacted: bool, aborts: bool = False, moved: str = ""
    ) -> None:
        self.items = items
        self.transacted = transacted
        self.aborts = aborts
        self.moved = moved
        #: Whether it was confirmed, or refused; None as long as neither is known.
        self.answer: bool | None = None
        #: When it was handed to a connection, and in which life of the server.
        self.at = _NEVER
        self.life = 0


class Item:
    """One message: the first word of its body is its name."""

    __slots__ = ("came", "excused", "place", "priority", "uid", "unit")

    def __init__(self, uid: str, place: str, priority: int = -1) -> None:
        #: Below 0 for that of the protocol.
        self.priority = priority
        #: Its consumer has done with it by being written to.
        self.excused = False
        self.uid = uid
        self.place = place
        self.unit: Unit | None = None
        #: To whom it came: for a topic the durable subscriptions, for a queue one name for all.
        self.came: set[str] = set()


class JmsBooks(SideBooks):
    """The books of one run, for one protocol.

    :param checker: its name in reports.
    :param title: how marks begin.
    :param durable: whether its queues are on disk.
    :param steady: whether the disk takes everything.
    :param uid_of: the name of a message of the protocol, empty if it is of no client here.
    """

    def __init__(
        self,
        world: World,
        checker: str,
        title: str,
        *,
        durable: bool,
        steady: bool,
        uid_of: Callable[[object], str],
    ) -> None:
        self._world = world
        self._checker = checker
        self._title = title
        self._durable = durable
        self._steady = steady
        self._uid_of = uid_of
        self.watches = False
        self.life = 0
        self.items: dict[str, Item] = {}
        self._units: list[Unit] = []
        #: Since when each durable subscription is there.
        self._since: dict[str, float] = {}
        self._dealings = Dealings(world, checker, title, steady=steady)
        self.ranks = Ranks(world, checker, title)
        self.confirms = JmsConfirms(world, checker, title)
        #: Whether a push of a session waits for room; and the message that each pushed last.
        self.holds: Callable[[int], bool] = _never
        #: Whether a session is over: another client has taken over its id.
        self.is_over: Callable[[int], bool] = _never
        self._last: dict[int, Item] = {}
        #: The consumers of the mode ``auto``, and those that are exclusive; by session, who it is.
        self.autos: set[str] = set()
        self.exclusives: set[str] = set()
        self._names: dict[int, str] = {}
        #: The exclusive subscriptions of the first queue, in the order in which they joined.
        self._exclusive: list[int] = []
        #: Batches in progress, by the identity of their requests, with the session.
        self._batches: dict[int, Batch] = {}

    # -- what clients say -----------------------------------------------------------------------

    def hands(self, unit: Unit) -> None:
        """A client hands a unit to its connection."""
        unit.at = self._world.now
        unit.life = self.life
        self._units.append(unit)
        for item in unit.items:
            item.unit = unit
            self.items[item.uid] = item

    def answered(self, unit: Unit, ok: bool) -> None:
        """A client is told what happened to a unit."""
        unit.answer = ok and not unit.aborts
        kind = "transaction" if unit.transacted else "message"
        self._world.mark(f"{self._title} {kind} {'confirmed' if ok else 'refused'}")

    def subscribed(self, name: str) -> None:
        """A durable subscription is there."""
        self._since.setdefault(name, self._world.now)

    def comes(self, body: str, place: str, who: str) -> Item:
        """A consumer gets a message; which it is.

        :param who: the durable subscription, or empty.
        :raises Violation: when it should not have got this.
        """
        item = self.items.get(body.partition(" ")[0])
        if item is None:
            raise Violation(self._checker, f"{body!r} was never sent")
        if place not in (item.place, DEAD) or body != text_of(item.uid):
            raise Violation(self._checker, f"{item.uid} of {item.place} comes from {place}")
        unit = item.unit
        assert unit is not None, "it was sent"
        if unit.transacted and (unit.aborts or unit.answer is False):
            raise Violation(self._checker, f"{item.uid} comes, and its transaction came to nothing")
        item.came.add(who)
        self._world.mark(f"{self._title} message came")
        return item

    # -- what the broker does -------------------------------------------------------------------

    def began(self, restored: Sequence[tuple[str, Message]], subscriptions: set[str]) -> None:
        """A life begins.

        :param restored: the messages on disk, with the names of their queues.
        :param subscriptions: the durable subscriptions that there are.
        :raises Violation: when one is missing that was on the disk.
        """
        self.life += 1
        self._batches.clear()
        self._names.clear()
        self._exclusive.clear()
        self._dealings.began()
        self.confirms.began()
        for queue, message in restored:
            item = self.items[self._uid_of(message.wire)]
            self._dealings.restored(queue.encode(), message.message_id, item)
        for name in self._since.keys() - subscriptions:
            # From when it is made again it holds.
            if self._durable and self._steady:
                raise Violation(self._checker, f"{name} was told that it has subscribed, and lost")
            self._world.mark(f"{self._title} subscription lost by a crash")
            del self._since[name]

    def asked(self, command: Command) -> None:
        """A command is about to be carried out."""
        if isinstance(command, Connect):
            self._names[command.session] = command.client_id.removeprefix("jms:")
        elif isinstance(command, Join):
            self._join(command)
        elif isinstance(command, Push):
            self._take(command, command.session)
        elif isinstance(command, Acknowledge):
            self._answer(command)
        elif isinstance(command, Release):
            self._give_back(command.channel, command.message_id, command.session)
        elif isinstance(command, Batch):
            self._begin(command)
        elif isinstance(command, (CloseBranch, Disconnect)):
            branch = command.branch if isinstance(command, CloseBranch) else 0
            self._end(command.session, branch)
        elif isinstance(command, Synced):
            self._dealings.synced(command)
            self.confirms.synced(command)

    def _take(self, push: Push, origin: int) -> None:
        queue = foreign_name(push.channel)
        uid = self._uid_of(push.wire)
        self.confirms.pushed(queue, push.message_id, uid)
        if queue in _DEALT and uid in self.items and not self.is_over(abs(origin)):
            item = self.items[uid]
            # What differs in priority may overtake.
            stream = origin * _PER_SESSION + level_of(item.priority)
            self._dealings.takes(queue, push.message_id, item, stream)
            self._last[origin] = item

    def _join(self, join: Join) -> None:
        name = self._names.get(connection_of(join.session), "")
        if name in self.exclusives and foreign_name(join.channel) == FIRST.encode():
            self._exclusive.append(join.session)

    def _answer(self, command: Acknowledge) -> None:
        queue = foreign_name(command.channel)
        taken = self._dealings.answers(queue, command.message_id, command.session)
        if taken is not None and command.positive:
            self.confirms.answered(queue, taken.item.uid)
        if taken is not None and self._names.get(connection_of(command.session)) in self.autos:
            item = taken.item
            assert isinstance(item, Item), "it is of these books"
            if not item.came:
                item.excused = True

    def _give_back(self, channel: str, message_id: str, session: int) -> None:
        taken = self._dealings.taken.get((foreign_name(channel), message_id))
        if taken is not None and taken.hand == session:
            taken.hand = 0

    def _begin(self, batch: Batch) -> None:
        """A batch: what it pushes may be sent before its answer."""
        mine = False
        for each in batch.commands:
            if isinstance(each, Push):
                mine = mine or self._uid_of(each.wire) in self.items
                self._take(each, -batch.session)
            elif isinstance(each, (Acknowledge, Release)):
                mine = mine or foreign_name(each.channel) in _DEALT
        if mine:
            self._batches[id(batch.request)] = batch

    def _end(self, session: int, branch: int) -> None:
        """A session is over, or a branch of it: what it has is the server's again.

        What is in a batch that is in progress stays with it; whether that succeeds nobody is told.
        """
        self._exclusive = [
            each
            for each in self._exclusive
            if each != branch and (branch or connection_of(each) != session)
        ]
        if not branch and session in self._last:
            if self.holds(session):
                self._dealings.forgets(self._last[session])
            elif self.is_over(session):  # it may have waited for room
                self._dealings.doubts(self._last[session])
        for key, batch in list(self._batches.items()):
            if not branch and batch.session == session:
                del self._batches[key]
                self._leave_open(batch.commands)
            elif branch:
                self._leave_open([each for each in batch.commands if _session_of(each) == branch])
        for taken in self._dealings.taken.values():
            if taken.hand and (
                taken.hand == branch or (not branch and connection_of(taken.hand) == session)
            ):
                taken.hand = 0

    def _leave_open(self, commands: list[Command]) -> None:
        if commands:
            self._world.mark(f"{self._title} client left while a transaction was being committed")
        for each in commands:
            if isinstance(each, (Push, Acknowledge, Release)):
                key = (foreign_name(each.channel), each.message_id)
                taken = self._dealings.taken.get(key)
                if taken is not None:
                    taken.fails = True

    def kept(self, effect: Append) -> None:
        """A message is to be written to the disk."""
        queue = foreign_name(effect.channel)
        if queue in _DEALT:
            self._dealings.kept(queue, effect.message.message_id, effect.ticket)
        uid = self._uid_of(effect.message.wire)
        if uid and not effect.transient:
            self.confirms.kept(queue, uid, effect.ticket)

    def confirm(self, effect: Confirm) -> None:
        """A producer is told what happened to its message.

        :raises Violation: when it is told too early that it is taken.
        """
        if effect.positive:
            self.confirms.confirmed(effect.message_id)

    def sent(self, channel: str, message: Message, sessions: Sequence[int]) -> None:
        """The broker sends a message.

        :raises Violation: when it must not.
        """
        queue = foreign_name(channel)
        if queue in _DEALT and self._uid_of(message.wire) in self.items:
            taken = self._dealings.taken.get((queue, message.message_id))
            if taken is not None and taken.hand and self.is_over(connection_of(taken.hand)):
                taken.hand = 0  # another client has taken over the id of the one that had it
            self._check_ranks(queue, message)
            self._dealings.deals(queue, message.message_id, sessions)
            self._check_exclusive(queue, message, sessions)

    def _check_ranks(self, queue: bytes, message: Message) -> None:
        item = self.items[self._uid_of(message.wire)]
        waiting: list[Waiting] = []
        for (channel, _), taken in self._dealings.taken.items():
            other = taken.item
            is_there = taken.session >= 0 and not (taken.sent or taken.done or taken.fails)
            if channel == queue and is_there and other is not item:
                assert isinstance(other, Item), "it is of these books"
                if not self._may_wait_for_room(taken.session // _PER_SESSION, other):
                    waiting.append((level_of(other.priority), taken.at, other.uid))
        self.ranks.check(queue, level_of(item.priority), item.uid, waiting)

    def _may_wait_for_room(self, session: int, item: Item) -> bool:
        return self._last.get(session) is item and self.holds(session)

    def _check_exclusive(self, queue: bytes, message: Message, sessions: Sequence[int]) -> None:
        there = [each for each in self._exclusive if not self.is_over(connection_of(each))]
        if queue == FIRST.encode() and there:
            self._world.mark(f"{self._title} message sent to an exclusive consumer")
            if list(sessions) != there[:1]:
                text = f"{message.message_id} is sent to {sessions}, and {there[0]} is exclusive"
                raise Violation(self._checker, text)

    def told(self, effect: Reply) -> None:
        """A batch succeeds or not, or a message finds no room."""
        batch = self._batches.pop(id(effect.request), None)
        if batch is None:
            item = self.items.get(self._uid_of(effect.request))
            if item is not None and effect.code:
                self._dealings.forgets(item)
            return
        for each in batch.commands:
            if isinstance(each, Push) and effect.code:
                item = self.items.get(self._uid_of(each.wire))
                if item is not None:
                    self._dealings.forgets(item)
            elif isinstance(each, Acknowledge) and not effect.code:
                self._answer(each)
            elif isinstance(each, Release) and not effect.code:
                self._give_back(each.channel, each.message_id, each.session)

    # -- how it must be -------------------------------------------------------------------------

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is missing, or there twice.
        """
        if self.watches:
            self._dealings.check_end()
        moves: dict[str, list[Item]] = {}
        for unit in self._units:
            if not (self._durable or unit.life == self.life):
                continue
            self._check_unit(unit)
            if unit.moved and unit.items[0].came:
                moves.setdefault(unit.moved, []).append(unit.items[0])
        for source, items in moves.items():
            if len(items) > 1:
                names = " and ".join(item.uid for item in items)
                raise Violation(self._checker, f"{source} was moved twice: {names} came")

    def _check_unit(self, unit: Unit) -> None:
        if unit.aborts or unit.answer is False:
            return
        missing = [item for item in unit.items if not self._has_come(item, unit)]
        if not missing:
            return
        names = ", ".join(f"{item.uid} of {item.place}" for item in missing)
        if unit.answer:
            raise Violation(self._checker, f"{names}: confirmed, and did not come")
        if not unit.transacted:
            return  # of a topic one subscription may have it, and another had no room
        rest = ", ".join(f"{item.uid} of {item.place}" for item in unit.items if item.came)
        if rest:
            raise Violation(self._checker, f"{names} did not come, and {rest} did in one with them")

    def _has_come(self, item: Item, unit: Unit) -> bool:
        if item.place != TOPIC:
            return bool(item.came) or item.excused
        wanted = {name for name, since in self._since.items() if since < unit.at}
        if unit.transacted and not unit.answer and not item.came:
            return not wanted
        return wanted <= item.came


def _session_of(command: Command) -> int:
    return command.session if isinstance(command, (Push, Acknowledge, Release)) else 0


def _never(session: int) -> bool:
    return False


def text_of(uid: str) -> str:
    """The text of a message of that name."""
    return f"{uid} {'x' * (sum(uid.encode()) % 40)}"
