"""The judge of rates: who sends too fast is not read from, and nobody else is held back.

Beside the buckets of the server, of which bytes are taken in portions, there is one here of which
each chunk is taken as it comes.  It never holds less than the server's, so who is read from is not
in debt here.  What makes a client wait is a chunk that was read when it was in no debt, so it
waits no longer than such a chunk takes.

Connections of an address begin no faster than they may, in the order in which they come, and each
waits for those before it and no longer.  Which addresses count as one, and which are exempt, is
in a table.
"""

from __future__ import annotations

from typing import Final, Protocol

from tmqp_server.doors.port import Door
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.outbound import Outbound
from tmqp_server.shell.rates import SMALLEST_MESSAGE, Arrivals, RateLimits
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import Wire
from tmqp_sim.world import Violation, World

__all__ = ["EXEMPT", "Paces", "PlainBucket"]

#: What rounding may cost, in messages, bytes or seconds.
_SLACK: Final = 0.01
#: Connections come from these addresses: the address, and as what it counts; empty where it is
#: exempt.  Those of the first kind have nothing in common; all come from one where messages of
#: addresses are limited, for they are few.
_ONE: Final = (("10.0.0.3", "3"),)
_PLAIN: Final = (("10.0.0.0", "0"), ("10.0.0.1", "1"), ("10.0.0.2", "2"))
_MIXED: Final = (
    ("10.0.0.1", "four"),
    ("2001:db8:1:2::1", "six"),
    ("127.0.0.1", ""),
    ("::ffff:10.0.0.1", "four"),
    ("[2001:db8:1:2::ffff]", "six"),
    ("192.0.2.9", ""),
    ("/run/tmqp.sock", ""),
    ("2001:db8:1:2:a::1%eth0", "six"),
    ("::ffff:192.0.2.10", ""),
    ("2001:db8:1:3::1", "neighbour"),
)
#: The networks that are exempt, where there are several kinds of addresses.
EXEMPT: Final = ("192.0.2.0/24",)
#: Connections of a flood; addresses that are remembered although nobody of them is connected.
_FLOOD: Final = 1_100
_FIRST_NUMBER: Final = 5_000_000
_REMEMBERED: Final = 1_024
#: The connections of a flood: nobody says anything, and nobody is answered.
_UNUSED: Final = Wire()
#: Who would have to wait for so many seconds may be refused.
_MAY_BE_REFUSED_S: Final = 10.0


class PlainBucket:
    """So many a second, and at most so many at once; with a rate of 0 there is no limit."""

    __slots__ = ("at", "level", "most", "rate")

    def __init__(self, rate: float, burst_s: float, now: float) -> None:
        self.rate = rate
        self.most = max(rate * burst_s, 1.0)
        self.level = self.most
        self.at = now

    def take(self, count: float, now: float) -> float:
        """Take so many, or none; returns what is left, below 0 for a debt."""
        if self.rate:
            self.level = min(self.level + (now - self.at) * self.rate, self.most) - count
        self.at = now
        return self.level

    def time_of(self, count: float) -> float:
        """In how many seconds so many are paid for."""
        return count / self.rate if self.rate else 0.0


class _Pace:
    """What one connection has sent."""

    __slots__ = (
        "completed",
        "key",
        "largest",
        "messages",
        "most_pushed",
        "pushed",
        "size",
        "unread",
    )

    def __init__(self, limits: RateLimits, key: str, now: float) -> None:
        self.key = key
        self.size = PlainBucket(limits.client_bytes, limits.burst_s, now)
        self.messages = PlainBucket(limits.client_messages, limits.burst_s, now)
        #: Messages that it had pushed, and whether there were more in the chunk that was read last.
        self.pushed = 0
        self.unread = False
        #: Messages that came with too few bytes, as in the end of a WebSocket's message that has
        #: several of them: the server goes by bytes, and counts them with the next ones.
        self.completed = 0
        #: The largest chunk, and the most messages between two looks at them.
        self.largest = 0
        self.most_pushed = 0


class _Address:
    """What all connections of one address have sent; of each the largest chunk, and the most
    messages of one, count in ``chunks`` and ``pushes``.  Of what is processed in portions,
    ``told`` has the messages of the later ones as well."""

    __slots__ = ("chunks", "messages", "pushes", "size", "told")

    def __init__(self, limits: RateLimits, key: str, now: float) -> None:
        rates = (limits.address_bytes, limits.address_messages) if key else (0.0, 0.0)
        self.size = PlainBucket(rates[0], limits.burst_s, now)
        self.messages = PlainBucket(rates[1], limits.burst_s, now)
        self.told = PlainBucket(rates[1], limits.burst_s, now)
        self.chunks = self.pushes = 0

    def debts(self, now: float) -> list[tuple[str, float]]:
        """What it owes beyond what it may, since its connections are examined one by one."""
        found: list[tuple[str, float]] = []
        for what, bucket, most in (
            ("bytes", self.size, self.chunks),
            ("messages", self.messages, self.pushes),
        ):
            debt = -bucket.take(0.0, now) - most - 2.0 * bucket.most
            if debt > _SLACK:
                found.append((what, debt))
        return found

    def longest_s(self, now: float) -> float:
        """For how many seconds somebody may have to wait for it: the server takes each chunk later
        than it is taken here, and may hold less by what a bucket holds (seed 3191)."""
        return max(
            bucket.time_of(max(-bucket.take(0.0, now), 0.0) + 2.0 * bucket.most)
            for bucket in (self.size, self.told)
        )


class _Gate:
    """The connections of one address; ``dues`` is when those begin that have not begun yet."""

    __slots__ = ("bucket", "dues")

    def __init__(self, limits: RateLimits, now: float) -> None:
        self.bucket = PlainBucket(limits.address_connections, limits.burst_s, now)
        self.dues: list[float] = []


class _Carrier(Protocol):
    """The server, as far as it is judged here."""

    world: World
    turn: Turn

    @property
    def door(self) -> Door:
        """By which clients of TMQP come in."""

    @property
    def hub(self) -> Hub:
        """The hub of this life."""

    @property
    def now(self) -> float:
        """What its clock reads."""


class Paces:
    """The judge of one server; ``limits`` is None where nothing is limited."""

    def __init__(self, server: _Carrier, lateness_s: float, limits: RateLimits | None) -> None:
        self.limits = self._configured = limits
        #: All connections come from this address, if it is one.
        self.shared = ""
        self._server = server
        self._late_s = lateness_s + _SLACK
        self._paces: dict[int, _Pace] = {}
        self._addresses: dict[str, _Address] = {}
        self._arrivals: Arrivals | None = None
        self._gates: dict[str, _Gate] = {}

    def begin(self) -> None:
        """A life begins."""
        self._paces.clear()
        self._addresses.clear()
        self._gates.clear()
        self.limits = self._configured
        if self.limits is not None:
            turn = self._server.turn
            turn.limit_rates(self.limits, self._server.now)
            self._arrivals = Arrivals(self.limits, turn.tally.waits)

    def reload(self, limits: RateLimits) -> None:
        """Other limits hold from now on: everybody begins again."""
        arrivals = self._arrivals
        assert arrivals is not None, "there were limits"
        server = self._server
        now = server.now
        self.limits = limits
        arrivals.limit_to(limits)
        server.turn.limit_rates(limits, now)
        self._addresses.clear()
        self._gates.clear()
        for number, pace in list(self._paces.items()):
            self._open(number, pace.key)
            self._paces[number].pushed = server.hub.pushed(number)
            self._paces[number].unread = server.hub.has_more(number)

    def flood(self) -> None:
        """Many connections begin and end, each of an address of its own.

        :raises Violation: when the server remembers all of them.
        """
        server, arrivals = self._server, self._arrivals
        turn, now = server.turn, server.now
        if arrivals is None or turn.rates is None:
            return
        for number in range(_FLOOD):
            host = f"198.18.{number // 256}.{number % 256}"
            if arrivals.wait(host, now) == 0.0:
                turn.opened(_FIRST_NUMBER + number, server.door, _UNUSED, host, now)
                turn.closed(_FIRST_NUMBER + number, now)
        there = max(len(turn.rates._addresses), len(arrivals._addresses))
        if there > _REMEMBERED + len(self._paces):
            raise Violation("bound", f"{there} addresses are remembered")
        # They have displaced all that came before and are not connected (seed 1729).
        self._gates.clear()
        connected = {pace.key for pace in self._paces.values()}
        self._addresses = {key: each for key, each in self._addresses.items() if key in connected}

    def pause(self, number: int) -> float:
        """A connection comes: for how many seconds it is not begun, below 0 if it is refused.

        :raises Violation: when it may begin too early, or waits for more than those before it.
        """
        limits, arrivals = self.limits, self._arrivals
        if limits is None or arrivals is None:
            return 0.0
        now = self._server.now
        host, key = self._place_of(number)
        pause_s = arrivals.wait(host, now)
        if not key or not limits.address_connections:
            if pause_s:
                raise Violation("rates", f"a connection of {host} begins in {pause_s:.2f} s")
            return 0.0
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = _Gate(limits, now)
        gate.dues = [each for each in gate.dues if each > now]
        longest_s = (len(gate.dues) + 1) / limits.address_connections + _SLACK
        if pause_s < 0.0:
            if longest_s < _MAY_BE_REFUSED_S:
                raise Violation("rates", f"{host} is refused, {len(gate.dues)} wait before")
            return pause_s
        if pause_s > longest_s:
            raise Violation("rates", f"{host} begins in {pause_s:.2f} s, after {gate.dues}")
        due = now + pause_s
        if gate.bucket.take(1.0, max(due, gate.bucket.at)) < -_SLACK:
            raise Violation("rates", f"{host} begins too many connections: {due:.2f} is early")
        if pause_s > 0.0:
            self._server.world.mark("connection held back by its rate")
            gate.dues.append(due)
        return pause_s

    def address(self, number: int, host: str) -> str:
        """Where a connection comes from, which begins."""
        if self.limits is None:
            return self.shared or host
        address, key = self._place_of(number)
        self._open(number, key)
        return address

    def _open(self, number: int, key: str) -> None:
        assert self.limits is not None, "there are limits"
        now = self._server.now
        self._paces[number] = _Pace(self.limits, key, now)
        if key not in self._addresses:
            self._addresses[key] = _Address(self.limits, key, now)

    def _place_of(self, number: int) -> tuple[str, str]:
        """The address of a connection, and as what it counts."""
        limits = self.limits
        table: tuple[tuple[str, str], ...] = _PLAIN
        if limits is not None and limits.exempt:
            table = _MIXED
        elif limits is not None and limits.address_messages:
            table = _ONE
        return table[number % len(table)]

    def read(self, number: int) -> None:
        """A chunk is about to be processed.

        :raises Violation: when its client has a debt to pay before.
        """
        pace = self._paces.get(number)
        if pace is None:
            return
        now = self._server.now
        address = self._addresses[pace.key]
        if pace.unread:  # they count for the chunk in which they came
            pushed = self._server.hub.pushed(number)
            more = max(pushed - pace.pushed, 0)
            address.told.take(more, now)
            pace.pushed = pushed
            self._note_pushed(pace, address, more)  # the server counts them now (seed 76580)
        for bucket, what, more in (
            (pace.size, "bytes", 0),
            (pace.messages, "messages", pace.completed),
        ):
            level = bucket.take(0.0, now)
            if level < -_SLACK - more:
                text = f"session {number} is read from, {-level:.2f} {what} beyond its rate"
                raise Violation("rates", text)
        for what, debt in address.debts(now):
            text = f"{pace.key} is read from, {debt:.1f} {what} beyond its rate"
            raise Violation("rates", text)

    def was_read(self, number: int, size: int) -> None:
        """It was processed, as far as that goes in one step.

        :raises Violation: when its client has to wait for too long.
        """
        pace = self._paces.get(number)
        if pace is None:
            return
        server = self._server
        now = server.now
        address = self._addresses[pace.key]
        pushed = max(server.hub.pushed(number) - pace.pushed, 0)
        pace.pushed += pushed
        pace.completed += max(pushed - size // SMALLEST_MESSAGE, 0)
        pace.unread = server.hub.has_more(number)
        self._note_pushed(pace, address, pushed)
        if size > pace.largest:
            address.chunks += size - pace.largest
            pace.largest = size
        pace.size.take(size, now)
        pace.messages.take(pushed, now)
        address.size.take(size, now)
        address.messages.take(pushed, now)
        address.told.take(pushed, now)
        out = server.turn.outbound(number)
        if out is not None and out.flow is not None and out.flow.pushed >= pace.pushed:
            pace.completed = 0
        if out is not None and out.throttled:
            self._check_wait(number, pace, out)

    @staticmethod
    def _note_pushed(pace: _Pace, address: _Address, pushed: int) -> None:
        """So many messages were pushed between two looks at them."""
        if pushed > pace.most_pushed:
            address.pushes += pushed - pace.most_pushed
            pace.most_pushed = pushed

    def _check_wait(self, number: int, pace: _Pace, out: Outbound) -> None:
        assert out.flow is not None, "who waits has a rate"
        wait_s = out.flow.until - self._server.now
        longest_s = max(
            pace.size.time_of(pace.largest),
            pace.messages.time_of(2.0 * pace.most_pushed),
            self._addresses[pace.key].longest_s(self._server.now),
        )
        self._server.world.mark("client held back by its rate")
        if wait_s > longest_s + _SLACK:
            raise Violation("rates", f"session {number} is not read from for {wait_s:.2f} s")

    def check_held(self, number: int, out: Outbound) -> None:
        """A connection is not read from because of its rate.

        :raises Violation: when its time is over.
        """
        assert out.flow is not None, "who waits has a rate"
        if out.flow.until + self._late_s < self._server.now:
            raise Violation("rates", f"session {number} is not read from, and owes nothing")

    def forget(self, number: int) -> None:
        """A connection has ended, maybe with messages that were not looked at yet."""
        pace = self._paces.pop(number, None)
        if pace is not None and pace.unread and pace.key in self._addresses:
            address = self._addresses[pace.key]
            address.told.take(pace.largest // SMALLEST_MESSAGE, self._server.now)
