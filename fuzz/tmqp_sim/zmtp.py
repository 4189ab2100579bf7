"""Sockets of ZeroMQ: PUSH and PULL, PUB and SUB, REQ and REP, and what programs do with them.

Each is a sans-IO connection of ``tmqp_wires.zmtp`` at the end of a simulated link, in the part of
the client.  They end their connections now and then, with a word to the server or without, and come
back, as libzmq does.  What must become of their messages is in ``zmtp_books.py``.

A socket hands a message to its connection when what was handed before is in the kernel's hands, so
one that is not read from holds its messages itself.  What was handed to a connection that has ended
is not sent again: it may have come or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from tmqp_sim.host import ZMTP
from tmqp_sim.network import Link
from tmqp_sim.speakers import KEEPALIVE_S, Speaker
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation
from tmqp_sim.zmtp_books import Item, ZmtpBooks
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.events import Event, MessageReceived, PeerReady
from tmqp_wires.zmtp.events import Subscribe as Subscribed

__all__ = [
    "HEARTBEAT_S",
    "PATIENCE_S",
    "Asker",
    "Publisher",
    "Puller",
    "Pusher",
    "Subscriber",
    "Worker",
    "ZmtpSocket",
]

#: Heartbeats of sockets that have some: after so much silence, and how long they wait.
HEARTBEAT_S: Final = 1.0
PATIENCE_S: Final = 2.5
_LOOK_EVERY_S: Final = 0.25
#: After so long a connection has brought a PING, whatever befell the network.
_KNOWN_S: Final = 8.0
#: What a publisher says something about, and what is subscribed to: each of these is the beginning
#: of some topic, and of one topic there are several.
_TOPICS: Final = (b"a", b"ab", b"abc", b"b", b"\x00\xff", b"")
_PREFIXES: Final = (b"a", b"ab", b"abc", b"b", b"\x00", b"")
#: How many requests a DEALER socket has open.
_OPEN_REQUESTS: Final = 3
#: How long who has asked waits for a reply on another connection until it asks again.
_REPLY_S: Final = 1.0
_SAID: Final = b"re:"
_FAILED: Final = b"TMQP-ERROR "


class ZmtpSocket(Speaker):
    """One socket; it comes back whenever its connection is over.

    :param kind: its type.
    :param restless: how likely it is in a second that it ends its connection.
    :param beats: it has heartbeats.
    """

    def __init__(
        self,
        simulation: Stage,
        name: str,
        kind: str,
        books: ZmtpBooks,
        restless: float,
        *,
        beats: bool,
        identity: bytes = b"",
    ) -> None:
        super().__init__(simulation, name, ZMTP, "ZeroMQ")
        self.kind = kind
        self.books = books
        self._restless = restless
        self._config = ZmtpConfig(
            socket_type=kind,
            identity=identity,
            heartbeat_s=HEARTBEAT_S if beats else 0.0,
            heartbeat_timeout_s=PATIENCE_S,
        )
        self.beats = beats
        self.machine = ZmtpConnection(self._config, 0.0)
        self.is_ready = False
        self._began_at = 0.0

    # -- what subclasses do ---------------------------------------------------------------------

    def begin(self) -> None:
        """The server has said what it is."""

    def message(self, parts: list[bytes]) -> None:
        """A message."""

    def work(self) -> None:
        """Time has passed."""

    def next_messages(self) -> bool:
        """Hand some messages to the machine, if there are some."""
        return False

    # -- its life -------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Whether what it says reaches the server."""
        return self.end is not None and self.is_ready

    def begins(self) -> None:
        """Make a machine."""
        self.is_ready = False
        self._began_at = self.world.now
        self.link.narrow(self.books.room)
        self.machine = ZmtpConnection(self._config, self.world.now)
        self.world.mark("ZeroMQ socket connected")

    def greets(self) -> None:
        """Look at the connection from time to time."""
        self.later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        """Keep the machine's time; now and then end the connection."""
        self.later(_LOOK_EVERY_S, self._look)
        now = self.world.now
        due = self.machine.next_deadline()
        if due is not None and due <= now:
            if self.machine.on_deadline(now):
                if self.books.calm:
                    text = f"{self.name} gives the server up at {now:.3f} s, and all is well"
                    raise Violation("zmtp", text)
                self.world.mark("ZeroMQ socket gave the server up")
                self.leave(silently=False)
                return
            self.flush()
        if self.link.dead and now - self.heard_at > KEEPALIVE_S:
            self.world.mark("ZeroMQ socket's kernel gave the server up")
            self.leave(silently=True)
        elif not self.simulation.healed and self.random.random() < self._restless * _LOOK_EVERY_S:
            self.go()
        else:
            self.work()

    def go(self) -> None:
        """End the connection.  The server misses nobody who has never said that it should."""
        age_s = self.world.now - self._began_at
        missed = self.books.asks or age_s > _KNOWN_S
        self.leave(silently=missed and self.random.random() < 0.4)

    def replace(self, link: Link) -> None:
        """The server has connected to this socket, which listens: it closes an older connection."""
        if self.end is not None:
            self.end.close()
            self.end = None
            self.lost()
        self.hold(link)
        self.greets()
        self.flush()

    # -- words ----------------------------------------------------------------------------------

    def more(self) -> bytes:
        """What the machine has to send, and then the next messages."""
        data = self.machine.data_to_send()
        if not data and self.usable and self.next_messages():
            data = self.machine.data_to_send()
        return data

    def hand(self, item: Item, envelope: Sequence[bytes] = ()) -> None:
        """Give an item to the machine."""
        self.books.hands(self.link, item)
        self.machine.send_message([*envelope, *item.parts])

    def hears(self, data: bytes) -> None:
        """Let the machine read."""
        for event in self.machine.receive(data, self.world.now):
            if self.end is None:
                return
            self._take(event)
        if self.end is not None and self.machine.is_over:
            self.leave(silently=False)
        self.flush()

    def _take(self, event: Event) -> None:
        if isinstance(event, MessageReceived):
            self.message(event.parts)
        elif isinstance(event, PeerReady):
            self.is_ready = True
            self.begin()
        elif isinstance(event, Subscribed):
            self.world.mark("ZeroMQ publisher is asked for all")
        else:
            raise Violation("zmtp", f"{self.name} hears {event!r}")


class Pusher(ZmtpSocket):
    """A PUSH socket."""

    def __init__(self, simulation: Stage, name: str, books: ZmtpBooks, restless: float) -> None:
        super().__init__(simulation, name, "PUSH", books, restless, beats=False)
        self.ready: deque[Item] = deque()
        self._lingers = False

    @property
    def owes(self) -> int:
        """Items that are not in the kernel's hands, or that the broker has not taken."""
        under_way = self.books.under_way(self.link) if self.end is not None else 0
        return len(self.ready) + len(self.unsent) + under_way

    def give(self, item: Item) -> None:
        """An item comes up."""
        self.ready.append(item)
        self.flush()

    def next_messages(self) -> bool:
        """Hand over one, or some."""
        if not self.ready or self._lingers:
            return False
        for _ in range(min(len(self.ready), self.random.choice((1, 1, 3, 8)))):
            self.hand(self.ready.popleft())
        return True

    def go(self) -> None:
        """Leave, or send what the connection has and close it then, as LINGER says."""
        if self.random.random() < 0.5:
            self._lingers = True
        else:
            super().go()

    def work(self) -> None:
        """Close the connection once all is sent."""
        if self._lingers and not self.unsent:
            self.books.closes(self.link)
            self.close()
        elif self.unsent and self.world.now - self.heard_at > 1.0:
            self.world.mark("ZeroMQ producer waits")

    def lost(self) -> None:
        """What was passed on is not sent again."""
        self._lingers = False


class Puller(ZmtpSocket):
    """A PULL socket.

    :param pace_s: how long it waits before it reads on.
    """

    def __init__(
        self,
        simulation: Stage,
        name: str,
        kind: str,
        books: ZmtpBooks,
        restless: float,
        pace_s: float,
        *,
        beats: bool,
    ) -> None:
        super().__init__(simulation, name, kind, books, restless, beats=beats)
        self.pace_s = pace_s

    def message(self, parts: list[bytes]) -> None:
        """Take a message: whoever reads it, it is done."""
        uid = self.books.pulled(self.link, parts)
        self.world.note("zmtp", self.name, uid)
        self.world.mark("ZeroMQ message pulled")


class Publisher(ZmtpSocket):
    """A PUB socket: it says something from time to time, as long as somebody should hear it.

    :param wanted: whether somebody waits for news when the world is healed.
    """

    def __init__(
        self,
        simulation: Stage,
        name: str,
        books: ZmtpBooks,
        restless: float,
        wanted: Callable[[], bool],
        *,
        beats: bool,
    ) -> None:
        super().__init__(simulation, name, "PUB", books, restless, beats=beats)
        self._wanted = wanted
        self._said = 0
        self._burst = self.random.choice((1, 3, 12))
        self._size = self.random.choice((0, 30, 120, 300))

    def work(self) -> None:
        """Say something; where there is no room, that is dropped here."""
        if not self.usable or self.unsent:
            return
        if self.simulation.healed:
            if self._wanted():
                for topic in _TOPICS:
                    self._say(topic)
        elif self.random.random() < 0.6:
            for _ in range(self._burst):
                self._say(self.random.choice(_TOPICS))
        self.flush()

    def _say(self, topic: bytes) -> None:
        self._said += 1
        uid = f"{self.name}-{self._said}"
        text = f"{uid} {'x' * self._size}".encode()
        self.hand(Item(uid, [topic, text]))


class Subscriber(Puller):
    """A SUB socket: what it wants changes now and then."""

    def __init__(
        self,
        simulation: Stage,
        name: str,
        books: ZmtpBooks,
        restless: float,
        pace_s: float,
        *,
        beats: bool,
    ) -> None:
        super().__init__(simulation, name, "SUB", books, restless, pace_s, beats=beats)
        #: How often it has subscribed to each, and what it has wanted on this connection.
        self._prefixes: dict[bytes, int] = {}
        self._ever: frozenset[bytes] = frozenset()
        for prefix in self.random.sample(_PREFIXES, self.random.choice((1, 1, 2, 4))):
            self._prefixes[prefix] = 1
        #: What has come of which it has heard since the world is healed, on this connection.
        self._fresh: set[bytes] = set()

    @property
    def owes(self) -> int:
        """Prefixes with which nothing has begun since the world is healed."""
        return len(self._prefixes.keys() - self._fresh)

    def begin(self) -> None:
        """Say everything again, in the order of bytes."""
        self._ever = frozenset()
        self._fresh.clear()
        now: set[bytes] = set()
        for prefix, count in sorted(self._prefixes.items()):
            for _ in range(count):
                self.machine.subscribe(prefix)
            now.add(prefix)
            self._tell(frozenset(now))

    def _tell(self, prefixes: frozenset[bytes]) -> None:
        self._ever |= prefixes
        self.books.wants(self.link, prefixes)

    def work(self) -> None:
        """Want something else."""
        if not self.usable or self.simulation.healed or self.random.random() > 0.15:
            return
        prefix = self.random.choice(_PREFIXES)
        count = self._prefixes.get(prefix, 0)
        if count and self.random.random() < 0.6:
            self.machine.cancel(prefix)
            self.world.mark("ZeroMQ subscription cancelled")
            if count > 1:
                self._prefixes[prefix] = count - 1
            else:
                del self._prefixes[prefix]
        else:
            self.machine.subscribe(prefix)
            self._prefixes[prefix] = count + 1
        self._tell(frozenset(self._prefixes))
        self.flush()

    def message(self, parts: list[bytes]) -> None:
        """Hear of something."""
        uid = self.books.heard(self.link, parts, self._ever)
        self.world.note("zmtp", self.name, uid)
        self.world.mark("ZeroMQ message heard")
        if self.simulation.healed:
            self._fresh.update(each for each in self._prefixes if parts[0].startswith(each))


class Asker(ZmtpSocket):
    """A REQ or a DEALER socket: each of its requests is asked until it is replied to.

    A request that it asks again is another one: the reply to the first may come still.
    """

    def __init__(
        self,
        simulation: Stage,
        name: str,
        kind: str,
        books: ZmtpBooks,
        restless: float,
        identity: bytes,
        *,
        beats: bool,
    ) -> None:
        super().__init__(simulation, name, kind, books, restless, beats=beats, identity=identity)
        self.ready: deque[str] = deque()
        self._most = _OPEN_REQUESTS if kind == "DEALER" else 1
        self._tries = 0
        #: Requests without a reply, by the names of their items: what is asked, its envelope, and
        #: the connection it went out on.
        self._open: dict[str, tuple[str, list[bytes], int]] = {}
        self._late: dict[str, None] = {}
        #: What is asked again unless a reply comes soon.
        self._doubtful: list[str] = []

    @property
    def owes(self) -> int:
        """What is not replied to."""
        return len(self.ready) + len(self._open) + len(self._doubtful)

    def give(self, name: str) -> None:
        """Something is to be asked."""
        self.ready.append(name)
        self.flush()

    def next_messages(self) -> bool:
        """Ask."""
        if not self.ready or len(self._open) + len(self._doubtful) >= self._most:
            return False
        name = self.ready.popleft()
        self._tries += 1
        uid = f"{name}.{self._tries}"
        envelope = [b""]
        # Who has several open must know which of them is refused.
        if self._most > 1 or self.random.random() < 0.5:
            envelope = [self.random.randbytes(4), b""]
        self._open[uid] = (name, envelope, self.connection)
        parts = [f"{uid} {'x' * self.random.choice((0, 30))}".encode()]
        if self.random.random() < 0.2:
            parts += (b"", b"end")
        self.hand(Item(uid, parts), envelope)
        return True

    def begin(self) -> None:
        """A while later nobody waits any more for replies to what an earlier connection asked."""
        if self._doubtful:
            self.later(_REPLY_S, self._ask_again)

    def _ask_again(self) -> None:
        names, self._doubtful = self._doubtful, []
        for uid in names:
            found = self._open.pop(uid, None)
            if found is not None:
                self.ready.appendleft(found[0])
                self._late[uid] = None
        self.flush()

    def lost(self) -> None:
        """What was not replied to may be, if this socket can be found again."""
        self._doubtful = [*self._open]

    def message(self, parts: list[bytes]) -> None:
        """A reply.

        :raises Violation: when it is not one to a request, or not under its envelope.
        """
        at = parts.index(b"") + 1 if b"" in parts else 0
        envelope, body = parts[:at], parts[at:]
        text = body[0] if body else b""
        if text.startswith(_FAILED):
            self._refused(envelope, text)
            return
        uid = text.removeprefix(_SAID).decode("latin-1")
        asked = self._open.pop(uid, None)
        known = asked is not None or uid in self._late or uid in self.books.items
        if not text.startswith(_SAID) or len(body) != 1 or not known:
            raise Violation("zmtp", f"{self.name} gets {parts!r}, which it has not asked")
        self.books.replied(self.link, uid)
        if asked is None:
            self.world.mark("ZeroMQ reply came late")
            return
        _, wanted, connection = asked
        if uid in self._doubtful:
            self._doubtful.remove(uid)
        if connection != self.connection:
            self.world.mark("ZeroMQ reply found who had asked")
            wanted = [b""]
        if envelope != wanted:
            raise Violation("zmtp", f"the reply to {uid} has the envelope {envelope!r}")
        self.world.mark("ZeroMQ request replied to")

    def _refused(self, envelope: list[bytes], text: bytes) -> None:
        """A request was refused: ask again.

        :raises Violation: when the server had no reason.
        """
        # A server that drains takes no more.
        if self.books.steady and not (self.books.drains and text == _FAILED + b"503"):
            raise Violation("zmtp", f"{self.name} is told {text!r}")
        self.world.mark("ZeroMQ request refused")
        for uid, (_, wanted, _) in list(self._open.items()):
            if wanted == envelope:
                # A worker may have it already, and reply.
                self.ready.appendleft(self._open.pop(uid)[0])
                self._late[uid] = None
                if uid in self._doubtful:
                    self._doubtful.remove(uid)
                self.later(_REPLY_S, self.flush)
                return


class Worker(ZmtpSocket):
    """A REP or a ROUTER socket that replies to requests."""

    def __init__(
        self,
        simulation: Stage,
        name: str,
        kind: str,
        books: ZmtpBooks,
        restless: float,
        *,
        listens: bool,
        beats: bool,
    ) -> None:
        super().__init__(simulation, name, kind, books, restless, beats=beats)
        self._work_s = self.random.choice((0.0, 0.05, 0.4))
        #: The server connects to it.
        self.listens = listens

    def reconnect_soon(self) -> None:
        """Come back, unless it is the server that does."""
        if not self.listens:
            super().reconnect_soon()

    def begins(self) -> None:
        """Make a machine; a REP socket is there for one request at a time."""
        super().begins()
        if self.kind == "REP":
            self.books.works(self.link)

    def message(self, parts: list[bytes]) -> None:
        """A request: reply after a while."""
        at = parts.index(b"") + 1 if b"" in parts else 0
        envelope = parts[:at]
        uid = self.books.asked_for(self.link, parts[at:])
        self.world.note("zmtp", self.name, uid)
        self.world.mark("ZeroMQ request worked on")
        reply = [*envelope, _SAID + uid.encode()]
        self.later(self._work_s * self.random.random(), lambda: self._reply(reply))

    def _reply(self, parts: list[bytes]) -> None:
        self.machine.send_message(parts)
        self.flush()
