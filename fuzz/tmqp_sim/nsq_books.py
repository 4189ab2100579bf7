"""What must become of the messages of NSQ's clients: the books, without a client.

Theory of operation.  Two topics, whose names differ by case only, have channels.  Each item has a
text of its own and is published until it is confirmed, so it may come more than once.  What is owed
is told from what clients were told, and what may be sent from the commands and effects of the
broker, as far as somebody watches it:

* a confirmed item comes to each channel of its topic that was there when it was published (whose
  consumer had read the OK to its SUB); where topics are kept on disk, the first channel gets all
  that came before it too, and what is owed outlives the server;
* nobody gets what was not published in his topic, or another text;
* a message is with one consumer at a time, until it is finished or requeued, its time is up or the
  consumer is gone; nobody has more in flight than the largest RDY that he sent;
* what is finished is not sent again in the same life, what is deferred or requeued not before its
  time;
* the attempts that a consumer reads are the number of times it was sent, in this life at least and
  in all lives at the most, and perhaps once more where the server has begun again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Final

from tmqp.frames import Frame
from tmqp_server.doors.names import foreign_name
from tmqp_server.doors.nsq.message import body_of
from tmqp_server.engine.commands import Acknowledge, Command, Disconnect, Extend, Release
from tmqp_server.engine.model.message import Message
from tmqp_sim.foreign import ForeignWire
from tmqp_sim.side_books import SideBooks
from tmqp_sim.world import Violation, World

__all__ = [
    "CHANNELS",
    "FIRSTS",
    "MOST_TIMEOUT_S",
    "SHARED",
    "SHARED_CHANNEL",
    "TIMEOUT_S",
    "TOPICS",
    "Item",
    "NsqBooks",
]

#: The topics, two of which differ by case, and the channels by number, each with the number of its
#: topic; the last one is ephemeral, and nothing is owed to it.
TOPICS: Final = (b"nsq-Sim", b"nsq-sim", b"nsq-shared")
CHANNELS: Final = (
    (0, b"first"),
    (1, b"first"),
    (2, b"first"),
    (0, b"second"),
    (2, b"second"),
    (0, b"tail#ephemeral"),
)
_TAIL: Final = 5
#: By topic, the channel that comes first.
FIRSTS: Final = (0, 1, 2)
#: The topic that clients of TMQP know, and the channel of it that they consume.
SHARED: Final = 2
SHARED_CHANNEL: Final = 4
#: What a consumer has for a message if it asks for nothing else, and at the most.
TIMEOUT_S: Final = 2.0
MOST_TIMEOUT_S: Final = 6.0
#: What a client of TMQP has at the least: it may have made the channel by joining it (seed 2969).
_GUEST_TIMEOUT_S: Final = 1.0
_EPSILON_S: Final = 1e-6
_NEVER: Final = float("inf")


def _payload(wire: object) -> bytes:
    frame = wire.frame if isinstance(wire, ForeignWire) else wire
    assert isinstance(frame, Frame), "nobody else sends something to a topic"
    return bytes(frame.payload)


class Item:
    """One item: what it says, and to which channels it is owed."""

    __slots__ = ("body", "confirmed", "delay_s", "owed", "published_at", "topic", "uid")

    def __init__(self, uid: str, topic: int, size: int, delay_s: float) -> None:
        self.uid = uid
        self.topic = topic
        self.body = f"{uid} {'x' * size}".encode()
        self.delay_s = delay_s
        #: When it was published first; later than everything before.
        self.published_at = _NEVER
        self.confirmed = False
        self.owed: set[int] = set()


class _Hand:
    """A message that a consumer has."""

    __slots__ = ("due", "sent_at", "session")

    def __init__(self, session: int, sent_at: float, due: float) -> None:
        self.session = session
        self.sent_at = sent_at
        self.due = due


class NsqBooks(SideBooks):
    """The books of one run.

    :param durable: whether topics and channels are kept on disk.
    :param steady: whether the disk takes everything.
    :param exact: whether the wall clock is right, so that times outlive the server.
    """

    def __init__(self, world: World, *, durable: bool, steady: bool, exact: bool) -> None:
        self._world = world
        self.durable = durable
        self._steady = steady
        self._exact = exact
        self.items: dict[str, Item] = {}
        #: By channel: its consumer was notified that it is there, in this life or on the disk.
        self.there = [False] * len(CHANNELS)
        #: By channel, what its consumers have dealt with.
        self.done: tuple[set[str], ...] = tuple(set() for _ in CHANNELS)
        self.life = 0
        self._numbers = {
            TOPICS[topic] + b":" + name: number for number, (topic, name) in enumerate(CHANNELS)
        }
        self._opened_at = [_NEVER] * len(CHANNELS)
        self._lost: set[int] = set()
        #: By session: the largest RDY, how long it has for a message, how long it wants it to wait.
        self.windows: dict[int, int] = {}
        #: By session; one may be on its way to a life that has not begun (seed 3332).
        self.timeouts: dict[int, float] = {}
        self._pauses: dict[tuple[int, str], deque[float]] = {}
        self._hands: dict[tuple[int, str], _Hand] = {}
        self._finished: set[tuple[int, str]] = set()
        #: By channel: how many messages its consumers of NSQ have finished in this life.
        self.finished = [0] * len(CHANNELS)
        #: Answers that came when the time for them was up.
        self._overdue = [0] * len(CHANNELS)
        self._not_before: dict[tuple[int, str], float] = {}
        #: How often a message was sent, in this life and in all.
        self._sent: dict[tuple[int, str], int] = {}
        self._ever_sent: dict[tuple[int, str], int] = {}
        #: What a session may read as attempts of an item.
        self._attempts: dict[tuple[int, str], list[tuple[int, int]]] = {}
        #: Somebody watches the broker.
        self.watches = False

    def is_of(self, channel: str) -> bool:
        """Whether a channel of the broker is a topic or a channel."""
        name = foreign_name(channel)
        return name in TOPICS or name in self._numbers

    # -- what clients do ------------------------------------------------------------------------

    def publishes(self, item: Item) -> set[int]:
        """An item is published now; the channels that get it, if it is confirmed."""
        item.published_at = min(item.published_at, self._world.now)
        self.items[item.uid] = item
        owed = {
            number
            for number, (topic, _) in enumerate(CHANNELS)
            if topic == item.topic and self.there[number] and number != _TAIL
        }
        first = FIRSTS[item.topic]
        if self.durable and first not in self._lost:
            owed.add(first)
        return owed

    def confirmed(self, item: Item, owed: set[int], life: int) -> None:
        """It was answered with OK, by the server in this life."""
        item.confirmed = True
        if life == self.life:
            item.owed |= owed

    def opened(self, number: int, life: int) -> None:
        """A consumer was notified that its channel is there."""
        if life == self.life:
            self.there[number] = True
            self._opened_at[number] = min(self._opened_at[number], self._world.now)

    def taken(self, number: int, body: bytes) -> str:
        """Somebody reads a message of a channel; what item it is.

        :raises Violation: when he should not have got this.
        """
        uid = body.partition(b" ")[0].decode("latin-1")
        item = self.items.get(uid)
        if item is None or item.body != body:
            raise Violation("nsq", f"{body!r} was never published")
        topic, name = CHANNELS[number]
        if item.topic != topic:
            raise Violation("nsq", f"{uid} comes to {TOPICS[topic]!r}, where it was not published")
        early = item.published_at + item.delay_s - self._world.now
        if early > _EPSILON_S and (self._exact or self.life == 1):
            raise Violation("nsq", f"{uid} comes to {name!r} {early:.3f} s before its time")
        return uid

    def received(self, number: int, session: int, body: bytes, attempts: int) -> str:
        """A consumer of NSQ reads a message; what item it is.

        :raises Violation: when it should not have got this.
        """
        uid = self.taken(number, body)
        known = self._attempts.get((session, uid), [])
        if self.watches and not any(least <= attempts <= most for least, most in known):
            raise Violation("nsq", f"{uid} comes with {attempts} attempts, known are {known}")
        return uid

    def requeues(self, session: int, name: str, pause_s: float) -> None:
        """A consumer of NSQ sends REQ for a message."""
        self._pauses.setdefault((session, name), deque()).append(pause_s)

    # -- what the broker does -------------------------------------------------------------------

    def began(self, fed: Collection[bytes]) -> None:
        """A life begins.

        :param fed: the channels that are fed, by their names in NSQ.
        :raises Violation: when a channel is missing that must be there.
        """
        self.life += 1
        for table in (self._hands, self._sent, self.windows):
            table.clear()
        self._finished.clear()
        self.finished = [0] * len(CHANNELS)
        self._overdue = [0] * len(CHANNELS)
        if not (self._exact and self._steady):
            self._not_before.clear()  # a delay that could not be saved is over (seed 14118)
        for number, (topic, name) in enumerate(CHANNELS):
            was = self.there[number]
            channel = TOPICS[topic] + b":" + name
            kept = self.durable and number != _TAIL
            self.there[number] = kept and channel in fed
            if not was or self.there[number]:
                continue
            if kept and self._steady and self._later_ones(number):
                raise Violation("nsq", f"the channel {channel!r} is missing after a restart")
            self._forget(number)

    def _later_ones(self, number: int) -> bool:
        """Whether something was confirmed that was published behind a channel's beginning."""
        opened_at = self._opened_at[number]
        topic = CHANNELS[number][0]
        return any(
            item.confirmed and item.topic == topic and item.published_at > opened_at
            for item in self.items.values()
        )

    def _forget(self, number: int) -> None:
        """What a channel had is gone with the server's memory."""
        self._lost.add(number)
        for item in self.items.values():
            item.owed.discard(number)

    def sent(self, channel: str, message: Message, sessions: Sequence[int]) -> None:
        """The broker sends a message.

        :raises Violation: when it must not.
        """
        place = foreign_name(channel)
        if place in TOPICS:
            raise Violation("nsq", f"{message!r} is sent by a topic, which has no consumer")
        number = self._numbers.get(place)
        if number is None:
            return
        key = (number, message.message_id)
        now = self._world.now
        hand = self._hands.get(key)
        if hand is not None and hand.due > now + _EPSILON_S:
            text = f"{message!r} is sent to {sessions} while session {hand.session} has it"
            raise Violation("nsq", text)
        if key in self._finished:
            raise Violation("nsq", f"{message!r} is sent to {sessions}, and was finished")
        early = self._not_before.pop(key, now) - now
        if early > _EPSILON_S:
            raise Violation("nsq", f"{message!r} was requeued, and comes {early:.3f} s too early")
        self._sent[key] = self._sent.get(key, 0) + 1
        self._ever_sent[key] = self._ever_sent.get(key, 0) + 1
        wire = message.wire
        body = body_of(wire) if isinstance(wire, bytes) else _payload(wire)
        uid = body.partition(b" ")[0].decode("latin-1")
        for session in sessions:
            self._check_window(session, message, now)
            # Of what it has on disk a new life does not know whether it was sent before.
            counts = (self._sent[key], self._ever_sent[key] + (self.life > 1))
            self._attempts.setdefault((session, uid), []).append(counts)
            default_s = _GUEST_TIMEOUT_S if number == SHARED_CHANNEL else TIMEOUT_S
            due = now + self.timeouts.get(session, default_s)
            self._hands[key] = _Hand(session, now, due)

    def _check_window(self, session: int, message: Message, now: float) -> None:
        window = self.windows.get(session)
        if window is None:
            return  # a client of another protocol
        held = [each for each in self._hands.values() if each.session == session]
        count = sum(each.due > now + _EPSILON_S for each in held)
        if count >= window:
            text = f"{message!r} goes to session {session}, which has {count}, with RDY {window}"
            raise Violation("nsq", text)
        if count + 1 == window:
            self._world.mark("NSQ consumer has as much as RDY allows")

    def asked(self, command: Command) -> None:
        """A command is about to be carried out."""
        if isinstance(command, Disconnect):
            gone = [key for key, hand in self._hands.items() if hand.session == command.session]
            for key in gone:
                del self._hands[key]
            return
        if not isinstance(command, (Acknowledge, Extend, Release)):
            return
        number = self._numbers.get(foreign_name(command.channel))
        if number is None:
            return
        pause_s = self._pause_of(command) if isinstance(command, Release) else 0.0
        key = (number, command.message_id)
        hand = self._hands.get(key)
        now = self._world.now
        if hand is None or hand.session != command.session:
            return
        if hand.due <= now + _EPSILON_S:
            # The broker takes it, if it has not noticed yet that the time is up.
            self._overdue[number] += 1
            return
        if isinstance(command, Extend):
            wanted = now + self.timeouts.get(command.session, TIMEOUT_S)
            hand.due = min(wanted, hand.sent_at + MOST_TIMEOUT_S)
            return
        del self._hands[key]
        if isinstance(command, Release):
            self._not_before[key] = now + pause_s
        elif command.positive:
            self._finished.add(key)
            self.finished[number] += command.session in self.windows

    def _pause_of(self, command: Release) -> float:
        """What its REQ asked for: who got a message again as its time was up sends one for each
        time, and they are carried out in order (seed 47279)."""
        pauses = self._pauses.get((command.session, command.message_id))
        return pauses.popleft() if pauses else 0.0

    # -- how it must be -------------------------------------------------------------------------

    def check_measured(self, counted: Sequence[int], dropped: int) -> None:
        """As many latencies are counted as messages were finished.

        :param counted: by channel.
        :param dropped: how many commands of sessions that ended were not carried out; a FIN may be
            among them.
        :raises Violation: when it is not so.
        """
        if not (self.watches and self._exact):
            return
        for number, count in enumerate(counted):
            done = self.finished[number]
            if not done <= count <= done + dropped + self._overdue[number]:
                name = CHANNELS[number][1]
                text = f"{done} messages of {name!r} were finished, {count} latencies counted"
                raise Violation("nsq", text)

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when an item is owed to a channel and never came there.
        """
        for uid, item in self.items.items():
            for number in sorted(item.owed):
                if uid not in self.done[number]:
                    topic, name = CHANNELS[number]
                    where = f"{name!r} of {TOPICS[topic]!r}"
                    raise Violation("nsq", f"{uid} was confirmed and never came to {where}")
