"""What must become of the messages of ZeroMQ's sockets: the books, without a socket.

Theory of operation.  Each item has a text of its own and is sent once.  Sockets say what they have
handed to which connection, what they want and what they got; commands and effects of the broker
say the rest, as far as somebody watches it:

* what a socket hands to a connection reaches the broker once, whole and in order, up to where the
  connection ended; all of it, if the socket had closed the connection and the server read its end;
* what the broker has taken into a queue is sent, in the order of its producer, to one consumer at a
  time, until it is done or the consumer is gone; what is done is not sent again;
* a PULL socket gets what is sent to its connection, in order and without gaps, and no message comes
  to PULL sockets twice, but for a queue on disk in another life of the server;
* a SUB socket gets what begins as it wants and nothing else.  What it does not get was dropped, as
  so many messages were on their way to it as the high-water mark says, and counted;
* a request is with one worker at a time, a worker that is a REP socket has one, and a reply goes to
  who has asked, once, under the envelope of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tmqp_server.doors.names import foreign_name
from tmqp_server.doors.zmtp.message import ZmtpRequest
from tmqp_server.engine.commands import (
    Acknowledge,
    Command,
    Connect,
    Disconnect,
    Join,
    Leave,
    Miss,
    Push,
    Synced,
)
from tmqp_server.engine.effects import Append
from tmqp_server.engine.model.message import Message
from tmqp_sim.dealings import Dealings
from tmqp_sim.network import Link
from tmqp_sim.side_books import SideBooks
from tmqp_sim.streams import Streams
from tmqp_sim.world import Violation, World
from tmqp_wires.zmtp.frames import message_frames, parts_of

__all__ = ["QUEUE", "SERVICE", "TOPIC", "Item", "ZmtpBooks"]

#: The channels, as the options of the door name them.
QUEUE: Final = b"zeromq.queue"
SERVICE: Final = b"zeromq.service"
TOPIC: Final = b"zeromq.topic"


class Item:
    """One message: its parts, without an envelope.  The first word of the part of its number is
    its name."""

    __slots__ = ("parts", "uid")

    def __init__(self, uid: str, parts: list[bytes]) -> None:
        self.uid = uid
        self.parts = parts


def _parts_of(wire: object) -> list[bytes]:
    raw = wire.raw if isinstance(wire, ZmtpRequest) else wire
    assert isinstance(raw, bytes), "nobody else sends something here"
    return parts_of(raw)


class _Wants:
    """What a SUB socket has wanted on a connection, and how far the broker has come with it."""

    __slots__ = ("at", "missed", "states")

    def __init__(self) -> None:
        self.states: list[frozenset[bytes]] = [frozenset()]
        self.at = 0
        #: What it should have got, by name of the item.
        self.missed: dict[str, bytes] = {}

    def now(self) -> frozenset[bytes]:
        """What the broker knows that it wants."""
        return self.states[self.at]


class ZmtpBooks(SideBooks):
    """The books of one run.

    :param durable: whether queues are kept on disk.
    :param mark: the high-water mark of a peer.
    :param steady: whether the disk takes everything.
    :param calm: whether nothing befalls anybody.
    :param asks: whether the server asks for signs of life.
    :param room: what a connection has room for, in bytes.
    """

    def __init__(
        self,
        world: World,
        *,
        durable: bool,
        mark: int,
        steady: bool,
        calm: bool = False,
        asks: bool = True,
        room: int = 65_536,
    ) -> None:
        self._world = world
        self.asks = asks
        self.room = room
        self.calm = calm
        self.durable = durable
        self.steady = steady
        #: Whether the server may drain.
        self.drains = False
        self.mark = mark
        self.items: dict[str, Item] = {}
        self.life = 0
        #: Whether a push of a session waits for room.
        self.holds: Callable[[int], bool] = _never
        #: How many bytes for a session have not left the server.
        self.waits: Callable[[int], int] = _plenty
        self._streams: Streams[Item] = Streams(world, "zmtp", "ZeroMQ")
        self._dealings = Dealings(world, "zmtp", "ZeroMQ", steady=steady)
        #: The size of the smallest message of several parts, as all are that are published.
        self._smallest = 0
        #: By session.
        self._wants: dict[int, _Wants] = {}
        self._names: dict[int, str] = {}
        self._single: dict[int, int] = {}
        #: In which lives of the server an item came to a PULL socket.
        self._got: dict[str, list[int]] = {}
        #: In which lives a request was replied to.
        self._replied: dict[str, list[int]] = {}
        #: Messages for SUB sockets in this life, by session: those that did not come, and those
        #: that the broker was notified of; and how many nobody knows of, as connections ended.
        self._dropped: dict[int, int] = {}
        self._missed: dict[int, int] = {}
        self.unknown = 0

    # -- what sockets say -----------------------------------------------------------------------

    def hands(self, link: Link, item: Item) -> None:
        """A socket hands an item to its connection."""
        self.items[item.uid] = item
        self._streams.hands(link, item)
        if len(item.parts) > 1:
            size = len(message_frames(item.parts))
            self._smallest = min(self._smallest or size, size)

    @property
    def watches(self) -> bool:
        """Somebody watches the broker."""
        return self._streams.watches

    @watches.setter
    def watches(self, value: bool) -> None:
        self._streams.watches = value

    def closes(self, link: Link) -> None:
        """A socket closes its connection, and all that it had was sent."""
        self._streams.closes(link)

    def under_way(self, link: Link) -> int:
        """How many items were handed to a connection that the broker has not taken."""
        return self._streams.under_way(link)

    def last_due(self, number: int) -> str:
        """The last message that was sent to a session, if it has not come; empty otherwise."""
        sent = self._streams.sent.get(number)
        return sent[-1][0] if sent else ""

    def wants(self, link: Link, prefixes: frozenset[bytes]) -> None:
        """From here on a SUB socket wants what begins so."""
        wants = self._wants.get(link.number)
        if wants is None:
            wants = self._wants[link.number] = _Wants()
        if wants.states[-1] != prefixes:
            wants.states.append(prefixes)

    def works(self, link: Link) -> None:
        """A REP socket: it has one request at a time."""
        self._single[link.number] = 0

    def pulled(self, link: Link, parts: Sequence[bytes]) -> str:
        """A PULL socket has got a message; what item it is.

        :raises Violation: when it should not have got this.
        """
        uid = self._known(parts, 0)
        self._streams.comes(link.number, uid)
        lives = self._got.setdefault(uid, [])
        if link.life in lives or (lives and not self.durable):
            raise Violation("zmtp", f"{uid} comes to PULL sockets twice, in life {link.life}")
        if lives:
            self._world.mark("ZeroMQ message comes again in another life")
        lives.append(link.life)
        return uid

    def asked_for(self, link: Link, parts: Sequence[bytes]) -> str:
        """A worker has got a request; what item it is.

        :raises Violation: when it should not have got this.
        """
        uid = self._known(parts, 0)
        self._streams.comes(link.number, uid)
        return uid

    def heard(self, link: Link, parts: Sequence[bytes], prefixes: frozenset[bytes]) -> str:
        """A SUB socket has got a message; what item it is.

        :param prefixes: what it has ever wanted on this connection.
        :raises Violation: when it should not have got this.
        """
        uid = self._known(parts, 1)
        if not parts[0].startswith(tuple(sorted(prefixes))):
            text = f"{parts!r} comes to a socket that wants {sorted(prefixes)}"
            raise Violation("zmtp", text)
        sent = self._streams.sent.get(link.number)
        if sent is None or not self.watches:
            return uid
        while sent:
            name, ahead = sent.popleft()
            if name == uid:
                return uid
            self._drop(link.number, name, ahead)
        raise Violation("zmtp", f"{uid} comes to session {link.number}, and was not sent there")

    def replied(self, link: Link, uid: str) -> None:
        """Who has asked gets a reply.

        :raises Violation: when it had one.
        """
        lives = self._replied.setdefault(uid, [])
        if link.life in lives:
            raise Violation("zmtp", f"{uid} is replied to twice, in life {link.life}")
        lives.append(link.life)

    def _known(self, parts: Sequence[bytes], number: int) -> str:
        uid = ""
        if len(parts) > number:
            uid = parts[number].partition(b" ")[0].decode("latin-1")
        item = self.items.get(uid)
        if item is None or item.parts != [*parts]:
            raise Violation("zmtp", f"{parts!r} was never sent")
        return uid

    def _drop(self, number: int, uid: str, ahead: int) -> None:
        """A message did not come to a SUB socket."""
        self._dropped[number] = self._dropped.get(number, 0) + 1
        self._world.mark("ZeroMQ message dropped for a slow subscriber")
        if ahead < self.mark:
            text = f"{uid} is dropped for session {number}, and {ahead} were before it"
            raise Violation("zmtp", text)

    # -- what the broker does -------------------------------------------------------------------

    def began(self, restored: Sequence[tuple[bytes, Message]]) -> None:
        """A life begins.

        :param restored: the messages on disk, with their channels.
        :raises Violation: when one was never sent.
        """
        self.life += 1
        self._dealings.began()
        self._streams.sent.clear()
        self._wants.clear()
        self._names.clear()
        self._dropped.clear()
        self._missed.clear()
        self._single = dict.fromkeys(self._single, 0)  # they may be on their way to this life
        self.unknown = 0
        for channel, message in restored:
            item = self.items[self._known(_parts_of(message.wire), 0)]
            self._dealings.restored(channel, message.message_id, item)

    def asked(self, command: Command) -> None:
        """A command is about to be carried out.

        :raises Violation: when it is not what a socket has asked for.
        """
        if isinstance(command, Push):
            channel = foreign_name(command.channel)
            if channel in (QUEUE, SERVICE, TOPIC):
                self._push(channel, command)
        elif isinstance(command, Acknowledge):
            channel = foreign_name(command.channel)
            if self._dealings.answers(channel, command.message_id, command.session) is not None:
                self._release(command.session)
        elif isinstance(command, Join):
            if foreign_name(command.channel) == TOPIC:
                self._join(command)
        elif isinstance(command, Leave):
            if foreign_name(command.channel) == TOPIC:
                self._change(command.session, frozenset())
        elif isinstance(command, Connect):
            for session, name in list(self._names.items()):
                if name == command.client_id and command.take_over:
                    self._end(session)
            self._names.setdefault(command.session, command.client_id)
        elif isinstance(command, Miss):
            self._missed[command.session] = self._missed.get(command.session, 0) + command.count
        elif isinstance(command, Disconnect):
            self._end(command.session)
        elif isinstance(command, Synced):
            self._dealings.synced(command)

    def _push(self, channel: bytes, command: Push) -> None:
        number = 1 if channel == TOPIC else 0
        parts = _parts_of(command.wire)
        item = self.items[self._known(parts, number)]
        self._streams.takes(command.session, item)
        if channel != TOPIC:
            self._dealings.takes(channel, command.message_id, item, command.session)
            return
        for wants in self._wants.values():
            if parts[0].startswith(tuple(sorted(wants.now()))):
                wants.missed[item.uid] = parts[0]

    def kept(self, effect: Append) -> None:
        """A message is to be written to the disk."""
        name = foreign_name(effect.channel)
        if name in (QUEUE, SERVICE):
            self._dealings.kept(name, effect.message.message_id, effect.ticket)

    def _join(self, command: Join) -> None:
        if command.filter is None:
            self._change(command.session, frozenset((b"",)))
            return
        identity = command.filter.identity()
        assert isinstance(identity, tuple), "a family, and prefixes"
        self._change(command.session, frozenset(identity[1]))

    def _change(self, session: int, prefixes: frozenset[bytes]) -> None:
        """A session wants something else: that must be the next of what its socket has said, or a
        later one, as what comes in one chunk counts as one."""
        wants = self._wants.get(session)
        if wants is None:
            return  # its socket has a newer connection
        for at in range(wants.at, len(wants.states)):
            state = wants.states[at]
            if _is_same(state, prefixes):
                wants.at = at
                kept = tuple(sorted(state))
                for uid, topic in list(wants.missed.items()):
                    if not topic.startswith(kept):
                        del wants.missed[uid]
                return
        raise Violation("zmtp", f"session {session} wants {sorted(prefixes)}, said no socket")

    def _release(self, session: int) -> None:
        if session in self._single:
            self._single[session] -= 1

    def _end(self, session: int) -> None:
        """A session is over: what it has is the server's again."""
        self._names.pop(session, None)
        wants = self._wants.pop(session, None)
        held = self._streams.last_taken(session) if self.holds(session) else None
        self._dealings.ends(session, held)
        sent = self._streams.sent.get(session)
        if sent is not None and wants is not None:
            self.unknown += len(sent)
        self._single.pop(session, None)

    def sent(self, channel: str, message: Message, sessions: Sequence[int]) -> None:
        """The broker sends a message.

        :raises Violation: when it must not.
        """
        name = foreign_name(channel)
        if name == TOPIC:
            uid = self._known(_parts_of(message.wire), 1)
            for session in sessions:
                self._publish(session, uid, _parts_of(message.wire)[0])
        elif name in (QUEUE, SERVICE):
            self._deal(name, message, sessions)

    def _publish(self, session: int, uid: str, topic: bytes) -> None:
        wants = self._wants.get(session)
        if wants is not None:
            if not topic.startswith(tuple(sorted(wants.now()))):
                text = f"{uid} on {topic!r} is sent to session {session}, which wants"
                raise Violation("zmtp", f"{text} {sorted(wants.now())}")
            if wants.missed.pop(uid, None) is None:
                self._world.mark("ZeroMQ message for a socket that subscribed meanwhile")
        self._note_sent(session, uid)

    def _note_sent(self, session: int, uid: str) -> None:
        sent = self._streams.sent.get(session)
        most = 0 if sent is None else len(sent)
        if most and self._smallest:
            most = min(most, self.waits(session) // self._smallest + 1)
        self._streams.note_sent(session, uid, most)

    def _deal(self, channel: bytes, message: Message, sessions: Sequence[int]) -> None:
        """A message of a queue goes to a consumer."""
        uid = self._dealings.deals(channel, message.message_id, sessions).item.uid
        session = sessions[0]
        if session in self._single:
            self._single[session] += 1
            if self._single[session] > 1:
                raise Violation("zmtp", f"session {session} gets {uid} beside another request")
        self._note_sent(session, uid)

    # -- how it must be -------------------------------------------------------------------------

    def check_end(self, uncounted: Mapping[int, int], skipped: int, living: Sequence[int]) -> None:
        """Everything has come home.

        :param uncounted: by session, how many messages the door dropped and has not told of.
        :param skipped: for how many recipients the broker says that it has passed them over.
        :param living: the sessions whose sockets have read all.
        :raises Violation: when something is missing.
        """
        if not self.watches:
            return
        self._dealings.check_end()
        self._streams.check_closed()
        for number in living:
            wants = self._wants.get(number)
            if wants is not None and not _is_same(wants.now(), wants.states[-1]):
                text = f"session {number} is subscribed to {sorted(wants.now())}"
                raise Violation("zmtp", f"{text}, its socket to {sorted(wants.states[-1])}")
            sent = self._streams.sent.get(number)
            while sent:
                self._drop(number, *sent.popleft())
            dropped = self._dropped.get(number, 0)
            counted = self._missed.get(number, 0) + uncounted.get(number, 0)
            if counted < dropped:
                text = f"{dropped} messages were dropped, {counted} were counted"
                raise Violation("zmtp", f"{text}: session {number}")
        told = sum(self._missed.values())
        counted, dropped = told + sum(uncounted.values()), sum(self._dropped.values())
        if counted > dropped + self.unknown:
            text = f"{dropped} messages were dropped, {counted} were counted"
            raise Violation("zmtp", f"{text}, {self.unknown} are unknown")
        missed = [uid for wants in self._wants.values() for uid in wants.missed]
        if len(missed) > skipped - told:
            raise Violation("zmtp", f"{missed} did not go to all who want them, {skipped} skipped")


def _is_same(one: frozenset[bytes], other: frozenset[bytes]) -> bool:
    """Whether two sets of prefixes want the same; the empty one is everything."""
    return one == other or (b"" in one and b"" in other)


def _plenty(session: int) -> int:
    return 1 << 30


def _never(session: int) -> bool:
    return False
