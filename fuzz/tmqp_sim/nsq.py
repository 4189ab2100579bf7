"""Clients that speak NSQ: producers, and consumers with all that these do to a message.

Each is a sans-IO connection of ``tmqp_wires.nsq`` at the end of a simulated link, some of them with
TLS or compressed.  They end their connections now and then, with a word to the server or without,
and come back.  What must become of their messages is in ``nsq_books.py``.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import Final

from tmqp_sim.host import NSQ
from tmqp_sim.nsq_books import CHANNELS, MOST_TIMEOUT_S, TIMEOUT_S, TOPICS, Item, NsqBooks
from tmqp_sim.speakers import Speaker
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation
from tmqp_wires.nsq.client import ClientConnection
from tmqp_wires.nsq.events import ErrorReceived, Event, MessageReceived, ResponseReceived
from tmqp_wires.nsq.events import Violation as Broke
from tmqp_wires.nsq.layers import DeflateLayer
from tmqp_wires.nsq.writing import CLS, dpub, fin, mpub, pub, rdy, req, sub, touch

__all__ = ["HEARTBEAT_S", "NsqClient", "NsqConsumer", "NsqProducer"]

#: How often the server asks for a heartbeat, and after how long a client gives it up.
HEARTBEAT_S: Final = 2.0
_PATIENCE_S: Final = 5.5
_LOOK_EVERY_S: Final = 1.0
#: Publications of a producer that wait for their answers.
_WINDOW: Final = 4
#: Errors that end nothing: a message is no longer the client's.
_LATE: Final = (b"E_FIN_FAILED", b"E_REQ_FAILED", b"E_TOUCH_FAILED")
#: Errors with which a server refuses what it cannot take now.
_PASSING: Final = (
    b"E_PUB_FAILED", b"E_MPUB_FAILED", b"E_DPUB_FAILED", b"E_SUB_FAILED", b"E_UNAUTHORIZED",
    b"E_AUTH_FIRST", b"E_INVALID the server takes no more clients",
)  # fmt: skip


def _deflate() -> DeflateLayer:
    wbits = -zlib.MAX_WBITS
    compressor = zlib.compressobj(6, zlib.DEFLATED, wbits)
    return DeflateLayer(compressor, zlib.decompressobj(wbits), zlib.Z_SYNC_FLUSH, zlib.error)


class NsqClient(Speaker):
    """One client; it comes back until it retires.

    :param restless: how likely it is in a second that it ends its connection.
    """

    def __init__(self, simulation: Stage, name: str, books: NsqBooks, restless: float) -> None:
        super().__init__(simulation, name, NSQ, "NSQ")
        self.books = books
        self.timeout_s = TIMEOUT_S
        self._restless = restless
        self._began = False
        self.machine = ClientConnection({})

    # -- what subclasses do ---------------------------------------------------------------------

    def begin(self) -> None:
        """The server has let it in."""

    def answered(self, data: bytes) -> None:
        """A response."""

    def message(self, event: MessageReceived) -> None:
        """A message."""

    # -- its life -------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Whether what it says reaches the server."""
        return self.end is not None and self.machine.ready and not self.machine.closed

    def begins(self) -> None:
        """Make a machine that asks for some features."""
        self._began = False
        fields: dict[str, object] = {"client_id": self.name, "hostname": self.name}
        fields["heartbeat_interval"] = self.random.choice((0, 1_000))
        fields["msg_timeout"] = round(self.timeout_s * 1_000)
        fields["tls_v1"] = self.random.random() < 0.25
        layer = _deflate() if self.random.random() < 0.25 else None
        self.machine = ClientConnection(fields, deflate=layer)
        self.books.timeouts[self.link.number] = self.timeout_s
        self.world.mark("NSQ client connected")

    def greets(self) -> None:
        """Look at the connection from time to time."""
        self.later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        """See whether the server still lives; now and then end the connection."""
        self.later(_LOOK_EVERY_S, self._look)
        if self.world.now - self.heard_at > _PATIENCE_S:
            self.world.mark("NSQ client gave the server up")
            self.leave(silently=False)
        elif not self.simulation.healed and self.random.random() < self._restless:
            self.leave(silently=self.random.random() < 0.4)

    def leave(self, *, silently: bool) -> None:
        """The client is gone; the server is told, or not."""
        if self.end is not None:
            self.world.mark("NSQ client crashed silently" if silently else "NSQ client crashed")
            super().leave(silently=silently)

    # -- words ----------------------------------------------------------------------------------

    def say(self, command: bytes) -> None:
        """Send a command."""
        self.machine.send(command)
        self.flush()

    def more(self) -> bytes:
        """What the machine has to send."""
        return self.machine.data_to_send()

    def hears(self, data: bytes) -> None:
        """Let the machine read."""
        for event in self.machine.receive(data):
            if self.end is None:
                return
            self._take(event)
        if self.machine.wants_tls:
            self.machine.secured()  # how long that takes is the server's matter
        if self.machine.closed:
            self.close()
            return
        self.flush()
        if self.machine.ready and not self._began:
            self._began = True
            self.begin()

    def _take(self, event: Event) -> None:
        if isinstance(event, MessageReceived):
            self.message(event)
        elif isinstance(event, ResponseReceived):
            self.answered(event.data)
        elif isinstance(event, ErrorReceived):
            self._refused(event.code + b" " + event.text)
        elif isinstance(event, Broke):
            raise Violation("nsq", f"{self.name}: the server broke the protocol: {event!r}")

    def _refused(self, text: bytes) -> None:
        """An error, with or without an end.

        :raises Violation: when nothing that it did deserves it.
        """
        self.world.note("refused", self.name, text)
        if text.startswith(_LATE):
            self.world.mark("NSQ answer came too late")
        elif text.startswith(_PASSING):
            self.world.mark("NSQ client refused")
        else:
            raise Violation("nsq", f"{self.name} is told {text!r}")


class NsqProducer(NsqClient):
    """Publishes items with PUB, MPUB and DPUB, until each is answered with OK."""

    def __init__(self, simulation: Stage, name: str, books: NsqBooks, restless: float) -> None:
        super().__init__(simulation, name, books, restless)
        self.ready: deque[Item] = deque()
        self._under_way: deque[list[tuple[Item, set[int]]]] = deque()

    @property
    def owes(self) -> int:
        """Items that are not confirmed."""
        return len(self.ready) + sum(len(items) for items in self._under_way)

    def give(self, item: Item) -> None:
        """An item comes up."""
        self.ready.append(item)
        self.work()

    def begin(self) -> None:
        """Publish what is there."""
        self.work()

    def work(self) -> None:
        """Publish what may be published."""
        while self.usable and self.ready and len(self._under_way) < _WINDOW:
            items = [self.ready.popleft()]
            first = items[0]
            topic = TOPICS[first.topic]
            most = 1 if first.delay_s else self.random.choice((1, 1, 3, 5))
            while len(items) < most and self.ready:
                other = self.ready[0]
                if other.topic != first.topic or other.delay_s:
                    break
                items.append(self.ready.popleft())
            self._under_way.append([(item, self.books.publishes(item)) for item in items])
            if first.delay_s:
                self.say(dpub(topic, round(first.delay_s * 1_000), first.body))
            elif len(items) > 1:
                self.say(mpub(topic, [item.body for item in items]))
            else:
                self.say(pub(topic, first.body))

    def answered(self, data: bytes) -> None:
        """The oldest publication is answered.

        :raises Violation: when there is none.
        """
        if data != b"OK" or not self._under_way:
            raise Violation("nsq", f"{self.name}: {data!r} answers nothing")
        self.world.mark("NSQ publication confirmed")
        for item, owed in self._under_way.popleft():
            self.books.confirmed(item, owed, self.link.life)
        self.later(0.0, self.work)

    def lost(self) -> None:
        """What was not answered is published again."""
        while self._under_way:
            self.ready.extendleft(item for item, _ in reversed(self._under_way.pop()))


class NsqConsumer(NsqClient):
    """Consumes one channel, with a window that changes.

    :param number: that of its channel.
    """

    def __init__(
        self, simulation: Stage, name: str, books: NsqBooks, restless: float, number: int
    ) -> None:
        super().__init__(simulation, name, books, restless)
        self.number = number
        self.timeout_s = self.random.choice((1.0, TIMEOUT_S))
        self._rdy = 0
        self._most_rdy = self.random.choice((1, 2, 5, 20))
        self._asks = False
        self._in_hand: set[bytes] = set()
        self._leaves = False

    def begin(self) -> None:
        """Subscribe."""
        topic, channel = CHANNELS[self.number]
        self._asks = True
        self._leaves = False
        self.books.windows[self.link.number] = 0
        self.say(sub(TOPICS[topic], channel))

    def answered(self, data: bytes) -> None:
        """SUB was answered, or CLS.

        :raises Violation: when neither was asked.
        """
        if data == b"OK" and self._asks:
            self._asks = False
            self.books.opened(self.number, self.link.life)
            self._change_rdy()
        elif data == b"CLOSE_WAIT" and self._leaves:
            self.world.mark("NSQ consumer closed politely")
            self.later(0.5, self.close)
        else:
            raise Violation("nsq", f"{self.name}: {data!r} answers nothing")

    def lost(self) -> None:
        """What it has is the server's again."""
        self._asks = False
        self._in_hand.clear()

    def _change_rdy(self) -> None:
        """Want more or less from now on; nothing for a while; or nothing any more."""
        if self._leaves:
            return
        healed = self.simulation.healed
        choices = (self._most_rdy,) if healed else (self._most_rdy, 1, self._most_rdy, 0)
        self._rdy = self.random.choice(choices)
        windows = self.books.windows
        windows[self.link.number] = max(windows.get(self.link.number, 0), self._rdy)
        self.say(rdy(self._rdy))
        self.later(0.5 + self.random.random() * 2.0, self._change_rdy)
        if not healed and self.random.random() < 0.04:
            self._leaves = True
            self.say(CLS)

    def message(self, event: MessageReceived) -> None:
        """Take a message, and do something with it after a while."""
        link = self.link
        uid = self.books.received(self.number, link.number, event.body, event.attempts)
        self.world.note("nsq", self.name, uid, event.attempts)
        self.world.mark("NSQ message delivered")
        if event.attempts > 1:
            self.world.mark("NSQ message delivered again")
        delay_s = self.random.random() * 0.3
        draw = 1.0 if self.simulation.healed else self.random.random()
        name = event.message_id
        if draw < 0.05:
            return  # it forgets to answer
        if draw < 0.15:
            self.later(delay_s, lambda: self._requeue(name))
        elif draw < 0.2:
            self.later(delay_s, lambda: self._keep(name, uid, MOST_TIMEOUT_S * 0.6))
        else:
            self.later(delay_s, lambda: self._finish(name, uid))

    def _finish(self, name: bytes, uid: str) -> None:
        self.books.done[self.number].add(uid)
        self.say(fin(name))

    def _requeue(self, name: bytes) -> None:
        pause_s = self.random.choice((0.0, 0.3, 1.0))
        self.books.requeues(self.link.number, name.decode("latin-1"), pause_s)
        self.world.mark("NSQ message requeued")
        self.say(req(name, round(pause_s * 1_000)))

    def _keep(self, name: bytes, uid: str, wanted_s: float) -> None:
        """Work on it for longer than it may without a word."""
        if wanted_s <= 0:
            self._finish(name, uid)
            return
        self.world.mark("NSQ message touched")
        self.say(touch(name))
        step_s = self.timeout_s * 0.5
        self.later(step_s, lambda: self._keep(name, uid, wanted_s - step_s))
