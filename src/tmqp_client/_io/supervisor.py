"""Connecting: the first time, and again whenever the connection is lost.

Theory of operation.  :meth:`Supervisor.open` tries each address once (or as often as the policy
says), and raises the reason if all fail.  After that, :meth:`Supervisor.run` sleeps until the
connection has ended.  If this side did not close it, it follows a
:class:`tmqp_client.reconnect.Schedule` until a server accepts the client, or gives up, which
settles all waiting requests.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc

from tmqp.address import Address
from tmqp.constants import RESULT_MISDIRECTED_REQUEST
from tmqp.hello import ConnectionInformation
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Lost, NotRestored
from tmqp_client._io.line import Line
from tmqp_client._io.transport import open_transport
from tmqp_client.connection_events import (
    ConnectionState,
    Disconnected,
    GaveUp,
    Reconnected,
    RestoreRefused,
    Watchers,
)
from tmqp_client.errors import ConnectFailed, ConnectRefused
from tmqp_client.reconnect import ReconnectPolicy, Schedule, leader_of

if TYPE_CHECKING:
    import ssl

__all__ = ["Supervisor"]

#: How many redirections one attempt follows: two servers may each name the other as the leader.
_MOST_LEADERS: Final = 3


class Supervisor:
    """Keeps a client connected.

    Attributes to read: ``state``, ``watchers``, and ``address``, of the current connection or the
    last one.
    """

    def __init__(
        self,
        machine: ClientMachine,
        line: Line,
        addresses: Sequence[Address],
        information: ConnectionInformation,
        ssl_context: ssl.SSLContext | None,
        policy: ReconnectPolicy | None,
    ) -> None:
        self.state = ConnectionState.NEW
        self.watchers = Watchers()
        self.address: Address | None = None
        self._machine = machine
        self._line = line
        self._addresses = tuple(addresses)
        self._information = information
        self._ssl_context = ssl_context
        self._policy = policy
        self._random = random.Random()  # noqa: S311 - it spreads waits, it keeps no secret
        self._connected_at = 0.0
        #: How often the wait was doubled in previous outages; see ReconnectPolicy.
        self._doublings = 0
        line.on_refused = self._refused

    # -- the first time -------------------------------------------------------------------------

    async def open(self, tasks: anyio.abc.TaskGroup) -> None:
        """Connect.

        :raises ConnectRefused: if the only address refuses this client.
        :raises ConnectFailed: if no address answers as a server of this protocol.
        """
        self.state = ConnectionState.CONNECTING
        tasks.start_soon(self._line.watch_time)
        failures: list[ConnectFailed] = []
        for address in self._addresses:
            failure = await self._try(tasks, address)
            if failure is None:
                break
            failures.append(failure)
        else:
            if self._policy is None or not self._policy.retry_first:
                self.close()
                raise _all_of(failures)
            schedule = self._schedule(self._policy)
            last = await self._go_on(tasks, schedule, failures[-1])
            if last is not None:
                self.close()
                raise ConnectFailed(last.address, f"{last.reason} ({schedule.why_over})")
        self._connected()
        tasks.start_soon(self._run, tasks)

    async def _try(self, tasks: anyio.abc.TaskGroup, address: Address) -> ConnectFailed | None:
        """Try one address, and the leaders to which it redirects; return the last failure, or
        None."""
        failure = await self._try_one(tasks, address)
        for _ in range(_MOST_LEADERS):
            if (
                not isinstance(failure, ConnectRefused)
                or failure.code != RESULT_MISDIRECTED_REQUEST
            ):
                break
            leader = leader_of(failure.node_address, address)
            if leader is None:
                break
            address = leader
            failure = await self._try_one(tasks, address)
        return failure

    async def _try_one(self, tasks: anyio.abc.TaskGroup, address: Address) -> ConnectFailed | None:
        limits = self._machine.limits
        timeout_s = limits.connect_timeout_s
        if self._policy is not None and self._policy.attempt_timeout_s is not None:
            timeout_s = min(timeout_s, self._policy.attempt_timeout_s)
        try:
            transport = await open_transport(address, timeout_s, self._ssl_context)
        except ConnectFailed as error:
            return error
        over = self._line.lost
        if over is not None and over.reason == "local":  # closed meanwhile
            await transport.aclose()
            return ConnectFailed(str(address), "the client was closed")
        self._information.path = address.path
        before = self.address
        self.address = address  # set before the client is seen as connected
        lost = await self._line.open(tasks, transport)
        if lost is None:
            return None
        self.address = before
        if lost.reason == "refused":
            return ConnectRefused(str(address), lost.code, lost.node_address)
        return ConnectFailed(str(address), lost.message)

    # -- every other time -----------------------------------------------------------------------

    async def _run(self, tasks: anyio.abc.TaskGroup) -> None:
        line = self._line
        while True:
            assert line.link is not None, "there was a first connection"
            await line.link.ended.wait()
            lost = self._machine.lost
            if lost is None or lost.reason == "local":
                return
            self.watchers.tell(Disconnected(lost.reason, lost.message))
            if not await self._come_back(tasks, lost):
                self.close()
                return

    async def _come_back(self, tasks: anyio.abc.TaskGroup, lost: Lost) -> bool:
        """Connect again after a loss; return whether that succeeded."""
        line = self._line
        policy = self._policy
        if policy is None:
            self.watchers.tell(GaveUp("this client does not reconnect"))
            return False
        self.state = ConnectionState.RECONNECTING
        began = anyio.current_time()
        if began - self._connected_at >= policy.steady_after_s:
            self._doublings = 0
        schedule = self._schedule(policy)
        failure = await self._go_on(tasks, schedule, ConnectFailed("", lost.message))
        if line.lost is not None:
            return False
        if failure is not None:
            words = f"{lost.message}; {schedule.why_over}; the last attempt: {failure}"
            line.give_up(Lost(lost.reason, words, lost.rule))
            self.watchers.tell(GaveUp(words))
            return False
        self._doublings = schedule.doublings
        self._connected()
        outage_s = self._connected_at - began
        self.watchers.tell(Reconnected(str(self.address), schedule.attempts, outage_s))
        return True

    def _connected(self) -> None:
        self.state = ConnectionState.CONNECTED
        self._connected_at = anyio.current_time()

    def _schedule(self, policy: ReconnectPolicy) -> Schedule:
        # The last good address is tried first, even if a server named it.
        addresses = self._addresses
        if self.address is not None and self.address not in addresses:
            addresses = (self.address, *addresses)
        first = 0 if self.address is None else addresses.index(self.address)
        now = anyio.current_time()
        return Schedule(policy, addresses, self._random.random, now, first, self._doublings)

    async def _go_on(
        self, tasks: anyio.abc.TaskGroup, schedule: Schedule, failure: ConnectFailed
    ) -> ConnectFailed | None:
        """Try until a server accepts this client or the schedule ends; return the last failure, or
        None."""
        while True:
            attempt = schedule.next(anyio.current_time())
            if attempt is None:
                return failure
            if attempt.delay_s > 0:
                await anyio.sleep(attempt.delay_s)
            if self._line.lost is not None:
                return failure
            problem = await self._try(tasks, attempt.address)
            if problem is None:
                return None
            failure = problem
            schedule.refused(problem.code if isinstance(problem, ConnectRefused) else 0)

    def _refused(self, refused: NotRestored) -> None:
        self.watchers.tell(RestoreRefused(refused.asked, refused.error))

    def close(self) -> None:
        """Note that the client has ended, and tell the watchers."""
        self.state = ConnectionState.CLOSED
        self.watchers.end()


def _all_of(failures: list[ConnectFailed]) -> ConnectFailed:
    if len(failures) == 1:
        return failures[0]
    words = "; ".join(f"{failure.address}: {failure.reason}" for failure in failures)
    return ConnectFailed("any address", words)
