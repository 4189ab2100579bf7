"""Clients of STOMP and OpenWire: producers, consumers, movers and durable subscribers.

They end their connections now and then, with a word to the server or without, and come back.  What
a producer handed to a connection that has ended is not sent again: it may have come or not.  What
must become of messages is in ``jms_books.py``, what they say on the wire in ``jms_wires.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from tmqp_sim.jms_books import DEAD, FIRST, MORE, NEXT, WILD, Item, JmsBooks, Unit, text_of
from tmqp_sim.jms_wires import (
    AUTO,
    CLIENT,
    INDIVIDUAL,
    Answered,
    Came,
    Handle,
    JmsWire,
    Ready,
)
from tmqp_sim.small_clients import LineClient
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["JmsConsumer", "JmsProducer", "MakeWire", "Temper"]

#: Makes the wire of a connection: at what time, for which client.
MakeWire: TypeAlias = "Callable[[float, str], JmsWire]"
_MOST_UNDER_WAY: Final = 3
_SUBSCRIBED: Final = "subscribed"


class Temper:
    """What clients of one protocol have in common.

    :param host: how the hosts of these clients begin (``host.py``).
    :param restless: how likely one ends its connection in a second.
    """

    def __init__(
        self, host: str, title: str, make: MakeWire, restless: float, room: int, pace_s: float
    ) -> None:
        self.host = host
        self.title = title
        self.make = make
        self.restless = restless
        self.room = room
        self.pace_s = pace_s


class _JmsClient(LineClient):
    """One client."""

    def __init__(self, simulation: Stage, name: str, books: JmsBooks, temper: Temper) -> None:
        super().__init__(
            simulation, name, temper.host, temper.title, temper.restless, temper.room,
            temper.pace_s,
        )  # fmt: skip
        self.books = books
        self._make = temper.make
        self.wire: JmsWire = JmsWire()
        #: It is let in.
        self.ready = False
        self._transactions = 0
        #: Units that are not answered for, by the key of the question.
        self.awaited: dict[str, Unit] = {}
        self._asked = 0

    def begins(self) -> None:
        """A new connection."""
        super().begins()
        self.wire = self._make(self.world.now, self.name)
        self.ready = False

    def greets(self) -> None:
        """Ask to be let in."""
        super().greets()
        self.flush()

    def lost(self) -> None:
        """What was not answered may have been done or not."""
        self.awaited.clear()
        self.ready = False

    def more(self) -> bytes:
        """What the wire has to say."""
        return self.wire.data()

    def new_key(self) -> str:
        """What the next question is asked under."""
        self._asked += 1
        return f"k{self._asked}"

    def new_transaction(self) -> int:
        """The number of the next transaction, which has begun."""
        self._transactions += 1
        self.wire.begin(self._transactions)
        return self._transactions

    def hears(self, data: bytes) -> None:
        """Take what has come."""
        for event in self.wire.hears(data, self.world.now):
            if self.end is None:
                return
            if isinstance(event, Ready):
                self.ready = True
                self.comes_in()
            elif isinstance(event, Came):
                self.message(event)
            else:
                self._answered(event)
        self.flush()

    def _answered(self, event: Answered) -> None:
        unit = self.awaited.pop(event.key, None)
        if unit is not None:
            self.books.answered(unit, event.ok)
            self.settled(unit, event.ok)
        elif event.key == _SUBSCRIBED and event.ok:
            self.subscribed()
        elif event.ok:
            raise Violation("jms", f"{self.name} is answered {event.key!r}, and has not asked")
        if not event.ok:
            self.world.mark(f"{self._protocol} client refused")
            self.world.note("jms", self.name, f"refused: {event.text}")
            if self.end is not None:
                self.close()

    # -- what subclasses do ---------------------------------------------------------------------

    def comes_in(self) -> None:
        """The client is let in."""

    def subscribed(self) -> None:
        """Its subscription is there."""

    def settled(self, unit: Unit, ok: bool) -> None:
        """A unit was answered for."""

    def message(self, came: Came) -> None:
        """A message has come."""
        raise Violation("jms", f"{self.name} consumes nothing, and gets {came.body!r}")


class JmsProducer(_JmsClient):
    """Sends units."""

    def __init__(self, simulation: Stage, name: str, books: JmsBooks, temper: Temper) -> None:
        super().__init__(simulation, name, books, temper)
        self.waiting: deque[Unit] = deque()

    @property
    def owes(self) -> int:
        """Units that are not sent, or not answered for."""
        return len(self.waiting) + len(self.awaited) + (not self.ready)

    def give(self, unit: Unit) -> None:
        """A unit comes up."""
        self.waiting.append(unit)
        self._go_on()

    def comes_in(self) -> None:
        """Send what has come up."""
        self._go_on()

    def settled(self, unit: Unit, ok: bool) -> None:
        """There is room for the next."""
        self._go_on()

    def _go_on(self) -> None:
        while self.ready and self.waiting and len(self.awaited) < _MOST_UNDER_WAY:
            if self.lingers:
                return
            self._send(self.waiting.popleft())
        self.flush()

    def _send(self, unit: Unit) -> None:
        self.books.hands(unit)
        key = self.new_key()
        if not unit.transacted:
            item = unit.items[0]
            asks = self.random.random() < 0.8
            self.wire.send(item.place, text_of(item.uid), key if asks else "", 0, item.priority)
            if asks:
                self.awaited[key] = unit
            return
        transaction = self.new_transaction()
        for item in unit.items:
            self.wire.send(item.place, text_of(item.uid), "", transaction, item.priority)
        self.awaited[key] = unit
        self.wire.end(transaction, commits=not unit.aborts, key=key)

    def closes(self) -> None:
        """All is sent, but for what waits for its turn."""


class JmsConsumer(_JmsClient):
    """Takes messages of one place, and answers for them a while later.

    :param mode: how it answers.
    :param moves: each message is moved on into the next queue.
    :param durable: the name of its durable subscription, if it has one.
    :param exclusive: it wants all messages of its place.
    :param work_s: how long it works on what it gets, at most.
    """

    def __init__(
        self, simulation: Stage, name: str, books: JmsBooks, temper: Temper, place: str,
        mode: str, work_s: float, *, moves: bool = False, durable: str = "",
        exclusive: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(simulation, name, books, temper)
        self._place = place
        self._mode = INDIVIDUAL if moves else mode
        self._work_s = work_s
        self._moves = moves
        self._exclusive = exclusive
        self._durable = durable
        #: What the books call its durable subscription.
        self._kept_as = f"{name}/{durable}" if durable else ""
        self._in_hand: dict[str, Handle] = {}
        #: What each transaction that is not answered for moves.
        self._moving: dict[str, str] = {}
        self._window = self.random.choice((1, 3, 100))
        self._joined = False
        self._tries = 0

    @property
    def owes(self) -> int:
        """What it has, and whether it has not subscribed."""
        return len(self._in_hand) + len(self._moving) + (not self._joined)

    def begins(self) -> None:
        """A new connection."""
        super().begins()
        self._in_hand = {}
        self._moving = {}
        self._joined = False

    def lost(self) -> None:
        """What it had is the server's again."""
        super().lost()
        self._in_hand = {}
        self._moving = {}
        self._joined = False

    def comes_in(self) -> None:
        """Subscribe."""
        self.wire.subscribe(
            self._place, self._mode, self._window, self._durable, _SUBSCRIBED,
            exclusive=self._exclusive,
        )  # fmt: skip

    def subscribed(self) -> None:
        """The subscription is there."""
        self._joined = True
        if self._durable:
            self.books.subscribed(self._kept_as)

    def message(self, came: Came) -> None:
        """Work on a message."""
        own = MORE if self._place == WILD else self._place
        place = own if came.place == NEXT and own == DEAD else came.place
        if place != own and own != DEAD:
            raise Violation("jms", f"{self.name} gets {came.body!r} of {came.place}")
        item = self.books.comes(came.body, own, self._kept_as)
        if item.uid in self._in_hand:
            raise Violation("jms", f"{self.name} gets {item.uid}, and has it")
        self.world.note("jms", self.name, item.uid)
        if self._mode == AUTO:
            return
        self._in_hand[item.uid] = came.handle
        if not self.lingers:
            self.later(self._work_s * self.random.random(), lambda: self._answer(item.uid))

    def _answer(self, uid: str) -> None:
        """Answer for a message; or leave that to a later one."""
        if uid not in self._in_hand or uid in self._moving.values():
            return
        healed = self.simulation.healed
        chance = self.random.random()
        if not healed and chance < 0.2:
            return
        # A NACK of STOMP is for all up to its message where an ACK is.
        gives_up = self._place in (FIRST, NEXT) and not self._moves and self._mode == INDIVIDUAL
        if not healed and chance < 0.3 and gives_up:
            self.wire.refuse(self._in_hand.pop(uid))
            self.world.mark(f"{self._protocol} message given up")
        elif self._moves:
            self._move(uid)
        else:
            self._acknowledge(uid)
        self.flush()

    def _acknowledge(self, uid: str) -> None:
        handle = self._in_hand[uid]
        uids = [uid]
        if self._mode == CLIENT:
            uids = list(self._in_hand)[: list(self._in_hand).index(uid) + 1]
        first = self._in_hand[uids[0]]
        for each in uids:
            del self._in_hand[each]
        self.wire.ack(handle, first, self._mode, 0)

    def _move(self, uid: str) -> None:
        """Take a message and send another one in its place, both or neither."""
        self._tries += 1
        transaction = self.new_transaction()
        aborts = not self.simulation.healed and self.random.random() < 0.2
        item = Item(f"{uid}/{self.name}-{self._tries}", NEXT)
        unit = Unit([item], transacted=True, aborts=aborts, moved=uid)
        self.books.hands(unit)
        handle = self._in_hand[uid]
        if self.random.random() < 0.5:
            self.wire.ack(handle, handle, INDIVIDUAL, transaction)
            self.wire.send(NEXT, text_of(item.uid), "", transaction)
        else:
            self.wire.send(NEXT, text_of(item.uid), "", transaction)
            self.wire.ack(handle, handle, INDIVIDUAL, transaction)
        key = self.new_key()
        self.awaited[key] = unit
        self._moving[item.uid] = uid
        self.wire.end(transaction, commits=not aborts, key=key)

    def settled(self, unit: Unit, ok: bool) -> None:
        """A message was moved, or is in flight again."""
        uid = self._moving.pop(unit.items[0].uid)
        if unit.aborts:
            self.world.mark(f"{self._protocol} transaction aborted")
            self.later(0.05, lambda: self._answer(uid))
        elif ok:
            self._in_hand.pop(uid, None)
            self.world.mark(f"{self._protocol} message moved in a transaction")

    def work(self) -> None:
        """When the world is healed, answer for what was left."""
        if self.simulation.healed:
            for uid in list(self._in_hand):
                self._answer(uid)
        elif self._joined and self.random.random() < 0.02:
            self.wire.unsubscribe()
            self.lingers = True
            self.flush()
