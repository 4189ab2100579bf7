"""The judge of rates: who sends too fast is not read from, and nobody else is held back.

Beside the buckets of the server, of which bytes are taken in portions, there is one here of which
each chunk is taken as it comes.  It never holds less than the server's, so who is read from is not
in debt here.  What makes a client wait is a chunk that was read when it was in no debt, so it
waits no longer than such a chunk takes.

Connections of an address begin no faster than they may, in the order in which they come, and each
waits for those before it and no longer.
"""

from __future__ import annotations

from typing import Final, Protocol

from tmqp_server.hub.hub import Hub
from tmqp_server.shell.outbound import Outbound
from tmqp_server.shell.rates import SMALLEST_MESSAGE, Arrivals, RateLimits
from tmqp_server.shell.turn import Turn
from tmqp_sim.world import Violation, World

__all__ = ["Paces", "PlainBucket"]

#: What rounding may cost, in messages, bytes or seconds.
_SLACK: Final = 0.01
#: Connections come from so many addresses.
_ADDRESSES: Final = 3
#: Who would have to wait for so many seconds may be refused.
_MAY_BE_REFUSED_S: Final = 10.0


class PlainBucket:
    """So many a second, and at most so many at once."""

    __slots__ = ("at", "level", "most", "rate")

    def __init__(self, rate: float, burst_s: float, now: float) -> None:
        self.rate = rate
        self.most = max(rate * burst_s, 1.0)
        self.level = self.most
        self.at = now

    def take(self, count: float, now: float) -> float:
        """Take so many, or none; returns what is left, below 0 for a debt."""
        self.level = min(self.level + (now - self.at) * self.rate, self.most) - count
        self.at = now
        return self.level


class _Pace:
    """What one connection has sent."""

    __slots__ = (
        "address",
        "completed",
        "largest",
        "messages",
        "most_pushed",
        "pushed",
        "size",
        "unread",
    )

    def __init__(self, limits: RateLimits, address: str, now: float) -> None:
        self.address = address
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
    def hub(self) -> Hub:
        """The hub of this life."""

    @property
    def now(self) -> float:
        """What its clock reads."""


class Paces:
    """The judge of one server; ``limits`` is None where nothing is limited."""

    def __init__(self, server: _Carrier, lateness_s: float, limits: RateLimits | None) -> None:
        self.limits = limits
        #: All connections come from this address, if it is one.
        self.shared = ""
        self._server = server
        self._late_s = lateness_s + _SLACK
        self._paces: dict[int, _Pace] = {}
        self._addresses: dict[str, PlainBucket] = {}
        #: The largest chunks of the connections that an address has had.
        self._chunks: dict[str, int] = {}
        self._arrivals: Arrivals | None = None
        self._gates: dict[str, _Gate] = {}

    def begin(self) -> None:
        """A life begins."""
        self._paces.clear()
        self._addresses.clear()
        self._chunks.clear()
        self._gates.clear()
        if self.limits is not None:
            turn = self._server.turn
            turn.limit_rates(self.limits, self._server.now)
            self._arrivals = Arrivals(self.limits, turn.tally.waits)

    def pause(self, number: int) -> float:
        """A connection comes: for how many seconds it is not begun, below 0 if it is refused.

        :raises Violation: when it may begin too early, or waits for more than those before it.
        """
        limits, arrivals = self.limits, self._arrivals
        if limits is None or arrivals is None or not limits.address_connections:
            return 0.0
        now = self._server.now
        address = _address_of(number)
        gate = self._gates.get(address)
        if gate is None:
            gate = self._gates[address] = _Gate(limits, now)
        gate.dues = [each for each in gate.dues if each > now]
        longest_s = (len(gate.dues) + 1) / limits.address_connections + _SLACK
        pause_s = arrivals.wait(address, now)
        if pause_s < 0.0:
            if longest_s < _MAY_BE_REFUSED_S:
                raise Violation("rates", f"{address} is refused, {len(gate.dues)} wait before")
            return pause_s
        if pause_s > longest_s:
            raise Violation("rates", f"{address} begins in {pause_s:.2f} s, after {gate.dues}")
        due = now + pause_s
        if gate.bucket.take(1.0, max(due, gate.bucket.at)) < -_SLACK:
            raise Violation("rates", f"{address} begins too many connections: {due:.2f} is early")
        if pause_s > 0.0:
            self._server.world.mark("connection held back by its rate")
            gate.dues.append(due)
        return pause_s

    def address(self, number: int, host: str) -> str:
        """Where a connection comes from, which begins."""
        limits = self.limits
        if limits is None:
            return self.shared or host
        now = self._server.now
        address = _address_of(number)
        self._paces[number] = _Pace(limits, address, now)
        if address not in self._addresses:
            self._addresses[address] = PlainBucket(limits.address_bytes, limits.burst_s, now)
        return address

    def read(self, number: int) -> None:
        """A chunk is about to be worked off.

        :raises Violation: when its client has a debt to pay before.
        """
        pace = self._paces.get(number)
        if pace is None:
            return
        now = self._server.now
        if pace.unread:  # they count for the chunk in which they came
            pace.pushed = self._server.hub.pushed(number)
        for bucket, what, more in (
            (pace.size, "bytes", 0),
            (pace.messages, "messages", pace.completed),
        ):
            level = bucket.take(0.0, now)
            if level < -_SLACK - more:
                text = f"session {number} is read from, {-level:.2f} {what} beyond its rate"
                raise Violation("rates", text)
        # The connections of an address are looked at one by one.
        bucket = self._addresses[pace.address]
        level = bucket.take(0.0, now)
        if level < -self._chunks.get(pace.address, 0) - 2.0 * bucket.most:
            text = f"{pace.address} is read from, {-level:.0f} bytes beyond its rate"
            raise Violation("rates", text)

    def was_read(self, number: int, size: int) -> None:
        """It was worked off, as far as that goes in one step.

        :raises Violation: when its client has to wait for too long.
        """
        pace = self._paces.get(number)
        if pace is None:
            return
        server = self._server
        now = server.now
        pushed = max(server.hub.pushed(number) - pace.pushed, 0)
        pace.pushed += pushed
        pace.completed += max(pushed - size // SMALLEST_MESSAGE, 0)
        pace.unread = server.hub.has_more(number)
        pace.most_pushed = max(pace.most_pushed, pushed)
        if size > pace.largest:
            grown = size - pace.largest
            self._chunks[pace.address] = self._chunks.get(pace.address, 0) + grown
            pace.largest = size
        pace.size.take(size, now)
        pace.messages.take(pushed, now)
        self._addresses[pace.address].take(size, now)
        out = server.turn.outbound(number)
        if out is not None and out.flow is not None and out.flow.pushed >= pace.pushed:
            pace.completed = 0
        if out is not None and out.throttled:
            self._check_wait(number, pace, out)

    def _check_wait(self, number: int, pace: _Pace, out: Outbound) -> None:
        assert out.flow is not None, "who waits has a rate"
        wait_s = out.flow.until - self._server.now
        bucket = self._addresses[pace.address]
        longest_s = max(
            pace.largest / pace.size.rate,
            2.0 * pace.most_pushed / pace.messages.rate,
            (self._chunks[pace.address] + 2.0 * bucket.most) / bucket.rate,
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
        """A connection has ended."""
        self._paces.pop(number, None)


def _address_of(number: int) -> str:
    """Where the connection of this number comes from."""
    return f"10.0.0.{number % _ADDRESSES}"
