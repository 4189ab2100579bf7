"""Clients without manners, who speak the protocol byte by byte.

A *deaf* one subscribes to events and reads nothing; a *sipping* one asks for lists and reads them
slowly; a *hasty* one asks for much, says goodbye in the same breath, and goes; a *caller* publishes
to a router that calls programs by HTTP; an *impostor* is not let in, and tries again; a *cursed*
one asks for lists at a door that fails; a *talker* sends custom messages, and reads little; a
*tireless* one asks for hundreds of lists and wants none of the answers.  A *crowd* is in ``crowd``.

Those that ask for lists ask now and then what the server is, and compare what it says with the
clock and with what must be true.
"""

from __future__ import annotations

from typing import Final

from tmqp.codec import FrameDecoder
from tmqp.constants import (
    EVENT_SUBSCRIBE,
    HEADER_CHANNEL_NAME,
    OP_CHANNEL_LIST,
    PREAMBLE,
    TYPE_CUSTOM,
    TYPE_EVENT,
    TYPE_RESPONSE,
    TYPE_ROUTER,
    TYPE_SERVER,
    TYPE_TERMINATE,
)
from tmqp.extensions import OP_DESCRIBE_SERVER
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.models import ServerInformation
from tmqp_sim.network import Broken, End
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["RAW_ROLES", "RAW_SHARES", "ROUTERS", "Raw"]

RAW_ROLES: Final = (
    "deaf",
    "sipping",
    "hasty",
    "caller",
    "impostor",
    "cursed",
    "talker",
    "tireless",
    "crowd",
)
#: How likely each is in a plan with faults: some are dear, in work.
RAW_SHARES: Final = {**dict.fromkeys(RAW_ROLES, 0.12), "tireless": 0.05, "crowd": 0.02}
#: The routers of the callers.
ROUTERS: Final = ("web", "webhooks")

#: How often a sipping client reads, in seconds, and a caller publishes.
_SIP_EVERY_S: Final = 1.0
_CALL_EVERY_S: Final = 0.3
#: How many lists are asked for together.
_LISTS: Final = 40
#: And in vain: far more work than a portion is, and far fewer bytes than a chunk.
_VAIN_LISTS: Final = 400
#: Every so many lists, the server is asked what it is.
_LISTS_PER_DESCRIPTION: Final = 8


class Raw:
    """One of them; it comes again until it retires."""

    def __init__(self, simulation: Stage, name: str, role: str, channel: str) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self.retired = False
        self._role = role
        self._channel = channel
        self._random = self.world.child(name)
        self._end: End | None = None
        self._left = b""
        self._decoder = FrameDecoder()
        self._asked = 0
        self._answered: dict[str, int] = {}
        #: In which life the server was asked what it is, and when, by its own clock.
        self._descriptions: dict[str, tuple[int, float]] = {}

    # -- connecting -----------------------------------------------------------------------------

    def connect(self) -> None:
        """Open a connection and say what there is to say."""
        if self.retired or self._end is not None:
            return
        self._descriptions.clear()
        link = self.simulation.network.open()
        link.host = self.name
        self._end = link.client
        link.client.owner = self
        self._decoder = FrameDecoder()
        # A hasty one must not take over from itself: its last words may not be processed yet.
        uid = f"{self.name}-{link.number}" if self._role == "hasty" else self.name
        hello = ConnectionInformation(uid).encode()
        self._left = PREAMBLE + Frame.build(TYPE_SERVER, "", 101, hello).raw
        self.world.mark(f"raw client: {self._role}")
        if self._role == "deaf":
            self._left += self._subscription()
        elif self._role == "talker":
            self._left += b"".join([self._word() for _ in range(_LISTS)])
        elif self._role == "tireless":
            self._left += Frame.build(TYPE_SERVER, "", OP_CHANNEL_LIST).raw * _VAIN_LISTS
        elif self._role in ("sipping", "hasty", "cursed"):
            self._left += b"".join([self._list() for _ in range(_LISTS)])
            if self._role == "hasty":
                self._left += Frame.build(TYPE_TERMINATE).raw
        self.world.after(0.0, self.simulation.server.accept, link)
        self.world.after(0.01, self._say, link.number)
        if self._role == "caller":
            self.world.after(_CALL_EVERY_S, self._publish, link.number)
        if self._role in ("sipping", "talker"):
            self.world.after(_SIP_EVERY_S, self._sip, link.number)
        self.world.after(1.0 + self._random.random() * 8.0, self._go, link.number)

    def _subscription(self) -> bytes:
        headers = [(HEADER_CHANNEL_NAME, self._channel)]
        return Frame.build(
            TYPE_EVENT, "MessageProduced", EVENT_SUBSCRIBE, message_id="e", headers=headers
        ).raw

    def _list(self) -> bytes:
        self._asked += 1
        uid = f"{self.name}-{self._asked}"
        operation = OP_CHANNEL_LIST
        if self._asked % _LISTS_PER_DESCRIPTION == 0:
            operation = OP_DESCRIBE_SERVER
            server = self.simulation.server
            self._descriptions[uid] = (server.lives, server.now)
        return Frame.build(TYPE_SERVER, "", operation, message_id=uid, pending_response=True).raw

    def _word(self) -> bytes:
        self._asked += 1
        return Frame.build(TYPE_CUSTOM, "", 1, b"?", message_id=f"{self.name}-{self._asked}").raw

    def _is_here(self, number: int) -> bool:
        return self._end is not None and self._end.link.number == number

    def _say(self, number: int) -> None:
        end = self._end
        if end is None or end.link.number != number or not self._left:
            return
        try:
            sent = end.send(self._left)
        except Broken:
            return
        self._left = self._left[sent:]

    def _publish(self, number: int) -> None:
        if not self._is_here(number):
            return
        self._asked += 1
        uid = f"{self.name}-{self._asked}"
        router = self._random.choice(ROUTERS)
        message = Frame.build(TYPE_ROUTER, router, 1, b"x", message_id=uid, pending_response=True)
        self._left += message.raw
        self._say(number)
        self.world.after(self._random.random() * _CALL_EVERY_S, self._publish, number)

    def _sip(self, number: int) -> None:
        if self._is_here(number):
            self._read(1)
            self.world.after(_SIP_EVERY_S, self._sip, number)

    def _go(self, number: int) -> None:
        end = self._end
        if end is None or end.link.number != number:
            return
        self._end = None
        if self._random.random() < 0.5:
            end.closed = True
            end.link.cut(0.0, 0.05, "the raw client is gone")
        else:
            end.close()
        self.world.after(self._random.random() * 2.0, self.connect)

    def retire(self) -> None:
        """Come back no more."""
        self.retired = True
        if self._end is not None:
            self._go(self._end.link.number)

    # -- as the owner of its end ----------------------------------------------------------------

    def readable(self) -> None:
        """Read, if it is one that reads."""
        if self._role not in ("deaf", "sipping", "talker"):
            self._read(1_000)

    def _read(self, times: int) -> None:
        while times and self._end is not None:
            times -= 1
            data = self._end.read()
            if data is None:
                return
            if not data:
                self._go(self._end.link.number)
                return
            self._hear(data)

    def _hear(self, data: bytes) -> None:
        """What is said must be whole messages, and an answer come once.

        :raises Violation: when it is not so.
        """
        if data.startswith(PREAMBLE[:4]):
            data = data[len(PREAMBLE) :]
        for frame in self._decoder.feed(data):
            if frame.type == TYPE_RESPONSE and self._role == "caller":
                uid = frame.message_id
                self._answered[uid] = self._answered.get(uid, 0) + 1
                self.world.mark("HTTP call answered")
                if self._answered[uid] > 1:
                    raise Violation("ledger", f"{self.name}: {uid} is answered again")
            elif frame.message_id in self._descriptions and frame.content_type == 0:
                life, asked_at = self._descriptions.pop(frame.message_id)
                if life == self.simulation.server.lives:  # or another clock runs now (seed 8752)
                    self._compare(asked_at, frame.payload)

    def _compare(self, asked_at: float, payload: bytes) -> None:
        """Compare what the server says of itself with what must be true.

        :raises Violation: when it is not.
        """
        server = self.simulation.server
        said = ServerInformation.from_json(payload)
        self.world.mark("server described")
        if not int(asked_at * 1000) <= said.time_ms <= server.now * 1000:
            raise Violation("outside", f"it is {server.now}, and the server says {said.time_ms} ms")
        if not (0 < said.clients <= said.max_clients and said.memory_bytes > 0):
            raise Violation("outside", f"a server with a client cannot be like that: {said}")

    def writable(self) -> None:
        """There is room: say the rest."""
        if self._end is not None:
            self.world.after(0.0, self._say, self._end.link.number)

    def broken(self, reason: str) -> None:
        """The server had enough."""
        self.world.mark("raw client cut off")
        self._end = None
        self.world.after(self._random.random() * 2.0, self.connect)
