"""How a client reconnects: the policy, and when and where the next attempt is made.

:class:`Schedule` carries out the policy without I/O: the time and randomness are arguments.  Each
outage begins with a short wait, because all clients of a restarted server reconnect at once.  Each
failed attempt doubles the wait, up to a limit, and each wait is shortened at random, so that the
clients do not stay in step.  If an outage follows a very short connection, the waits continue where
the last outage ended, so that a client does not reconnect ten times a second to a server that
accepts and closes connections at once.

The client tries the addresses in turn.  It waits after each round of them, not between two
addresses, because another server may be available.

A client that has connected once tries to reconnect without end, unless the policy limits it, with
one exception: a server that refuses the login (400, 401, 403, 404) will do so again, so
``max_refusals`` consecutive ones end the attempts.  Other refusals are temporary: 503 means that
the id is still in use, because the server has not yet noticed that the old connection is dead; 482
means that the server is full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tmqp.address import Address, parse_address
from tmqp.backoff import Backoff
from tmqp.constants import ResultCode
from tmqp.errors import LocalProtocolError

__all__ = ["FAIL_OVER", "Attempt", "ReconnectPolicy", "Schedule", "leader_of"]

_LOGIN_REFUSALS: Final = frozenset(
    {
        ResultCode.BAD_REQUEST,
        ResultCode.UNAUTHORIZED,
        ResultCode.FORBIDDEN,
        ResultCode.NOT_FOUND,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconnectPolicy:
    """Whether, when and for how long a client tries to reconnect when its connection is lost.

    :raises LocalProtocolError: if a value is out of range.
    """

    initial_delay_s: float = 0.1
    """Seconds before the first attempt of an outage, at most."""

    max_delay_s: float = 15.0
    """Seconds between two rounds of attempts, at most; the bound of the doubling."""

    jitter: float = 0.5
    """The share of each wait that is left to chance: 0.5 waits between half of it and all of it."""

    steady_after_s: float = 10.0
    """Seconds that a connection must last for the next outage to begin with ``initial_delay_s``
    again; after a shorter one the wait goes on doubling."""

    max_attempts: int | None = None
    """Attempts in one outage, each address counted; without end if None."""

    max_outage_s: float | None = None
    """Seconds after which an outage is given up; never if None."""

    max_refusals: int = 3
    """Refused logins in a row after which the client gives up."""

    max_sends: int = 5
    """How many times one push is sent, each time on a new connection, before it fails with
    :class:`ConnectionLost`: a message that ends every connection must not do so for ever."""

    repeat_operations: bool = False
    """Ask lists, information and joins again that were under way when the connection was lost;
    else they fail with :class:`ConnectionLost`, as all other operations do."""

    retry_first: bool = False
    """Try again as after a loss when the very first connection fails, too."""

    attempt_timeout_s: float | None = None
    """Seconds after which an attempt to connect is given up, and as many for the handshake; those
    of :class:`ClientLimits` if None or shorter."""

    silence_s: float | None = None
    """Seconds without a word of the server after which it is pinged; after as many again it counts
    as gone.  The ``ping_interval_s`` of :class:`tmqp.Limits` if None or shorter."""

    def __post_init__(self) -> None:
        for name in ("initial_delay_s", "max_delay_s", "max_refusals", "max_sends"):
            if not getattr(self, name) > 0:
                raise LocalProtocolError(f"{name} must be positive, got {getattr(self, name)!r}")
        if not self.steady_after_s >= 0:
            raise LocalProtocolError(
                f"steady_after_s must not be negative, got {self.steady_after_s!r}"
            )
        for name in ("max_attempts", "max_outage_s", "attempt_timeout_s", "silence_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise LocalProtocolError(f"{name} must be positive or None, got {value!r}")
        if not 0 <= self.jitter <= 1:
            raise LocalProtocolError(f"jitter must be between 0 and 1, got {self.jitter!r}")


#: For a group of servers that replace each other: the client notices within two seconds that a
#: server has gone, and finds the next leader as soon as it accepts clients.
FAIL_OVER: Final = ReconnectPolicy(
    initial_delay_s=0.05,
    max_delay_s=0.5,
    steady_after_s=0.0,
    retry_first=True,
    attempt_timeout_s=1.0,
    silence_s=1.0,
)


def leader_of(told: str, asked: Address) -> Address | None:
    """Return the address to which a refusing server redirects the client; None if it names no
    usable one.

    An encrypted connection is never redirected to an unencrypted one, because the client's token
    would be readable on it.

    :param told: the address in the server's refusal, which may be any text.
    :param asked: the address of the refusing server.
    """
    try:
        address = parse_address(told)
    except LocalProtocolError:
        return None
    if address == asked or (asked.tls and not address.tls):
        return None
    return address


class Attempt:
    """One attempt: wait ``delay_s``, then try ``address``."""

    __slots__ = ("address", "delay_s")

    def __init__(self, address: Address, delay_s: float) -> None:
        self.address = address
        self.delay_s = delay_s


class Schedule:
    """The attempts of one outage.

    :param chance: returns a new random number from 0 up to 1.
    :param now: when the connection was lost.
    :param first: the index of the address to begin with.
    :param doublings: how often the wait was doubled in earlier outages.
    """

    def __init__(
        self,
        policy: ReconnectPolicy,
        addresses: Sequence[Address],
        chance: Callable[[], float],
        now: float,
        first: int = 0,
        doublings: int = 0,
    ) -> None:
        self.attempts = 0
        self.why_over = ""
        self._policy = policy
        self._addresses = tuple(addresses)
        self._chance = chance
        self._began = now
        self._index = first
        self._doublings = doublings
        self._refusals = 0

    @property
    def doublings(self) -> int:
        """How often the wait was doubled, for the schedule of the next outage."""
        return self._doublings + -(-self.attempts // len(self._addresses))

    def next(self, now: float) -> Attempt | None:
        """Return the next attempt; None if there is none, for the reason in ``why_over``."""
        policy = self._policy
        if self._refusals >= policy.max_refusals:
            self.why_over = f"the login was refused {self._refusals} times"
        elif policy.max_attempts is not None and self.attempts >= policy.max_attempts:
            self.why_over = f"{self.attempts} attempts failed"
        if self.why_over:
            return None
        delay_s = 0.0
        rounds, place = divmod(self.attempts, len(self._addresses))
        if place == 0:
            backoff = Backoff(policy.initial_delay_s, policy.max_delay_s, policy.jitter)
            delay_s = backoff.delay_s(self._doublings + rounds + 1, self._chance())
        if policy.max_outage_s is not None:
            left_s = self._began + policy.max_outage_s - now
            if left_s <= delay_s:
                self.why_over = f"there was no connection for {policy.max_outage_s:g} s"
                return None
        address = self._addresses[(self._index + place) % len(self._addresses)]
        self.attempts += 1
        return Attempt(address, delay_s)

    def refused(self, code: int) -> None:
        """Note a failed attempt: the result code of a refusal, or 0 for another failure."""
        if code in _LOGIN_REFUSALS:
            self._refusals += 1
        else:
            self._refusals = 0
