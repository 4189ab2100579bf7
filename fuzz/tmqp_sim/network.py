"""The network: links between a client and the server, and everything that can befall them.

Theory of operation.  A link is two pipes.  A pipe takes bytes as a socket does (as many as there is
room for), cuts them again at random places, and brings each piece to the other end after a delay,
in order: TCP loses no bytes, it loses *connections*.  What can happen to a link:

* it is *cut*: both ends learn that it broke, each in its own time; what was in progress is gone;
* it is *dead* (half-open): nobody learns anything, and nothing arrives any more;
* a direction is *silent* for a while: what is sent in it waits until the silence is over;
* it is *clogged*: everything takes longer for a while.

An end that does not read leaves the bytes where they are; when the room is used up, its peer
cannot send.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Final, Protocol

from tmqp_sim.world import World

__all__ = ["Broken", "End", "Link", "Network", "Owner", "Shape"]

#: How long after a cut the slower end learns of it, in seconds.
CUT_NOTICE_S: Final = 0.4
#: Bytes read at once.
READ_BYTES: Final = 65_536


class Broken(Exception):  # noqa: N818 - it says how the link is
    """The connection is broken."""


class Owner(Protocol):
    """Who holds an end of a link."""

    def readable(self) -> None:
        """There is something to read, or the end of it."""

    def writable(self) -> None:
        """There is room again after a send that was not taken whole."""

    def broken(self, reason: str) -> None:
        """The connection is gone; what was not read is lost."""


class Shape:
    """What links are like: the delay of a piece in seconds, the room of a pipe in bytes, and how
    many pieces in a thousand are cut into smaller ones."""

    __slots__ = ("delay_max", "delay_min", "room", "splits")

    def __init__(self, delay_min: float, delay_max: float, room: int, splits: int) -> None:
        self.delay_min = delay_min
        self.delay_max = delay_max
        self.room = room
        self.splits = splits


class _Pipe:
    """One direction of a link."""

    __slots__ = (
        "_shape",
        "_random",
        "_under_way",
        "clogged_by",
        "end",
        "held",
        "last",
        "link",
        "silent",
        "source",
        "starved",
        "taken",
        "unread",
    )

    def __init__(self, link: Link, random: Random, shape: Shape) -> None:
        self.link = link
        self._random = random
        self._shape = shape
        self.end: End = link.client
        self.source: End = link.client
        self.last = 0.0
        self.silent = False
        self.clogged_by = 0.0
        self.starved = False
        #: Pieces kept back by silence, as (data or None for the end).
        self.held: deque[bytes | None] = deque()
        #: Arrived and not read.
        self.unread: deque[bytes | None] = deque()
        #: Bytes that take up room: in progress, held, or unread.
        self.taken = 0
        self._under_way = 0

    def put(self, data: bytes) -> int:
        room = self._shape.room - self.taken
        if room <= 0:
            self.starved = True
            return 0
        if len(data) > room:
            data = data[:room]
            self.starved = True
        self.taken += len(data)
        chance = self._random
        if len(data) > 1 and chance.randrange(1000) < self._shape.splits:
            cut = chance.randrange(1, len(data))
            self._launch(data[:cut])
            self._launch(data[cut:])
        else:
            self._launch(data)
        return len(data)

    def narrow(self, room: int) -> None:
        shape = self._shape
        self._shape = Shape(shape.delay_min, shape.delay_max, min(room, shape.room), shape.splits)

    def put_end(self) -> None:
        """Nothing more will be sent."""
        self._launch(None)

    def _launch(self, piece: bytes | None) -> None:
        world = self.link.world
        shape = self._shape
        delay = shape.delay_min + (shape.delay_max - shape.delay_min) * self._random.random()
        self.last = max(self.last, world.now + delay + self.clogged_by)
        self._under_way += 1
        world.at(self.last, self._arrive, piece)

    def _arrive(self, piece: bytes | None) -> None:
        self._under_way -= 1
        if self.link.gone or self.link.dead:
            return
        if self.silent or self.held:
            self.held.append(piece)
            return
        self._hand_over(piece)

    def _hand_over(self, piece: bytes | None) -> None:
        end = self.end
        if end.closed:
            # Nobody is there any more: the sender learns it as a reset.
            if piece is not None:
                self.link.reset(self.source, "reset by peer")
            return
        self.unread.append(piece)
        if not end.waiting:
            end.waiting = True
            end.owner.readable()

    def speak(self) -> None:
        """The silence is over: what was held back arrives."""
        self.silent = False
        while self.held and not self.silent and not self.link.gone:
            self._hand_over(self.held.popleft())

    def read(self) -> bytes | None:
        """What has arrived, joined up to a read's size; None if nothing has, b"" for the end."""
        unread = self.unread
        if not unread:
            self.end.waiting = False
            return None
        first = unread.popleft()
        if first is None:
            unread.append(None)  # it stays the end
            return b""
        pieces = [first]
        size = len(first)
        while unread:
            piece = unread[0]
            if piece is None or size + len(piece) > READ_BYTES:
                break
            pieces.append(piece)
            size += len(piece)
            unread.popleft()
        if len(pieces) > 1:
            first = b"".join(pieces)
        self.taken -= len(first)
        if self.starved:
            self.starved = False
            self.link.world.after(0.0, self._tell_writable)
        return first

    def _tell_writable(self) -> None:
        if not self.link.gone and not self.source.closed:
            self.source.writable()


class End:
    """One end of a link, as its owner sees it."""

    __slots__ = ("_in", "_out", "closed", "link", "owner", "waiting")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.owner: Owner = _NOBODY
        self.closed = False
        #: The owner knows that there is something to read.
        self.waiting = False
        self._in: _Pipe
        self._out: _Pipe

    def send(self, data: bytes) -> int:
        """Send what there is room for; return how many bytes that was.

        :raises Broken: when the connection is known to be gone.
        """
        if self.closed or self.link.gone:
            raise Broken("the connection is closed")
        return self._out.put(data)

    def send_all(self, data: bytes) -> bytes:
        """Send as far as there is room; return the rest, which is all if the connection is gone."""
        while data:
            try:
                sent = self.send(data)
            except Broken:
                break
            if not sent:
                break
            data = data[sent:]
        return data

    def read(self) -> bytes | None:
        """Bytes that have come; None if there are none now, empty at the end of the stream."""
        data = self._in.read()
        if data:
            self.link.absorb(self, data)
        return data

    def has_more(self) -> bool:
        """Whether something has come that was not read, be it the end; if not, the owner is told
        when something does."""
        self.waiting = len(self._in.unread) > 0
        return self.waiting

    def writable(self) -> None:
        """There is room again."""
        self.owner.writable()

    def close(self) -> None:
        """Send nothing more and read nothing more."""
        if not self.closed:
            self.closed = True
            if not self.link.gone:
                self._out.put_end()


class _Nobody:
    def readable(self) -> None:
        pass

    def writable(self) -> None:
        pass

    def broken(self, reason: str) -> None:
        pass


_NOBODY: Final = _Nobody()


class Link:
    """One connection.  ``number`` is never used twice; the server's session has the same."""

    __slots__ = (
        "client",
        "dead",
        "down",
        "gone",
        "greeted",
        "host",
        "intakes",
        "life",
        "number",
        "server",
        "up",
        "world",
    )

    def __init__(self, world: World, number: int, random: Random, shape: Shape) -> None:
        self.world = world
        self.number = number
        #: Where the client is; empty for a host of its own.
        self.host = ""
        #: The server has accepted the client.
        self.greeted = False
        #: Which life of the server accepted it.
        self.life = 0
        #: Cut, or closed on both sides: nothing arrives.
        self.gone = False
        #: Half-open: nothing arrives and nobody knows.
        self.dead = False
        #: When the server read how many bytes, if somebody has asked for that.
        self.intakes: list[tuple[float, int]] | None = None
        self.client = End(self)
        self.server = End(self)
        self.up = _Pipe(self, random, shape)
        self.down = _Pipe(self, random, shape)
        self.up.source, self.up.end = self.client, self.server
        self.down.source, self.down.end = self.server, self.client
        self.client._out, self.client._in = self.up, self.down
        self.server._out, self.server._in = self.down, self.up

    def lead(self, end: End) -> None:
        """Give the client another end than the one that it has not used yet."""
        end._out, end._in = self.up, self.down
        self.up.source = self.down.end = self.client = end

    @property
    def over(self) -> bool:
        """Neither side has it open."""
        return self.gone or (self.client.closed and self.server.closed)

    def narrow(self, room: int) -> None:
        """Let so many bytes be in progress in a direction at the most."""
        self.up.narrow(room)
        self.down.narrow(room)

    def absorb(self, end: End, data: bytes) -> None:
        """What an end reads counts for the digest."""
        if self.intakes is not None and end is self.server:
            self.intakes.append((self.world.now, len(data)))
        side = "S" if end is self.server else "C"
        self.world.absorb(f"{side}{self.number} {self.world.now!r} ".encode() + data)

    def reset(self, end: End, reason: str) -> None:
        """One end learns that the connection is gone."""
        if not end.closed:
            end.closed = True
            end.owner.broken(reason)

    def cut(self, first_s: float, second_s: float, reason: str = "connection reset") -> None:
        """Both ends lose the connection; the client after ``first_s``, the server after the
        other."""
        if self.gone:
            return
        self.gone = True
        self.world.after(first_s, self.reset, self.client, reason)
        self.world.after(second_s, self.reset, self.server, reason)


class Network:
    """All links."""

    def __init__(self, world: World, shape: Shape) -> None:
        self.world = world
        self.shape = shape
        self.links: dict[int, Link] = {}
        self._random = world.child("network")
        self._count = 0

    def open(self) -> Link:
        """A new link."""
        self._count += 1
        link = Link(self.world, self._count, self._random, self.shape)
        self.links[self._count] = link
        return link

    def draw_number(self) -> int:
        """The number of a session that needs no link."""
        self._count += 1
        return self._count

    def living(self) -> list[Link]:
        """The links that somebody holds, oldest first; the others are forgotten."""
        for number in [number for number, link in self.links.items() if link.over]:
            del self.links[number]
        return [link for link in self.links.values() if not link.dead]

    def heal(self) -> None:
        """All silence and clogging ends; half-open links stay so: their peers must find out."""
        for link in list(self.links.values()):
            for pipe in (link.up, link.down):
                pipe.clogged_by = 0.0
                if pipe.silent:
                    pipe.speak()
