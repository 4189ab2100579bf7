"""Keeps a client's connection: its bytes, its deadlines, and the delivery of outcomes.

A line exists as long as its client; each of its connections is a
:class:`tmqp_client._io.link.ClientLink`.  Callers change the machine themselves;
:meth:`Line.settle` passes each outcome to its waiting caller.  One task sleeps until the machine's
next deadline, whether there is a connection or not.

Ending.  When a connection ends in any way, the machine first settles everything, so no caller
hangs.  Closing from this side queues Terminate after everything else and then *reads* until the
server closes: a socket closed with unread bytes resets the connection, and a reset may overtake
what was sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import anyio.abc
import anyio.lowlevel

from tmqp_client._core.inbox import Inbox
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Accepted, Lost, NotRestored, Outcome
from tmqp_client._core.pending import Pending
from tmqp_client._io.admission import Admission, WhenFull
from tmqp_client._io.link import ClientLink
from tmqp_client._io.loop import NewSignal, Signal, now, signals
from tmqp_client._io.transport import Transport
from tmqp_client.errors import ClientClosed, OperationTimeout

__all__ = ["Line"]

_NEVER: Final = float("inf")


def _no_signal() -> Signal:
    raise ClientClosed("the client is not connected")


class Line:
    """All connections of a client, one after the other.

    :param machine: a machine that is not started.
    :param when_full: what happens to a send that would have to wait.
    """

    def __init__(self, machine: ClientMachine, when_full: WhenFull = "block") -> None:
        self._machine = machine
        self._link: ClientLink | None = None
        self._timer_wake = anyio.Event()
        #: When the task that keeps the deadlines wakes up.
        self.timer_due = _NEVER
        #: Decides which callers may send.
        self.admission = Admission(self, machine, when_full)
        self._new_signal: NewSignal = _no_signal
        self._online = anyio.Event()
        self._drained = anyio.Event()
        #: Called with what could not be restored on a new connection.
        self.on_refused: Callable[[NotRestored], None] | None = None

    @property
    def new_signal(self) -> NewSignal:
        """A function that makes signals."""
        return self._new_signal

    @property
    def lost(self) -> Lost | None:
        """Why the client has no connection any more; None while it may reconnect."""
        return self._machine.over

    @property
    def link(self) -> ClientLink | None:
        """The current connection, or the last one."""
        return self._link

    def check(self) -> None:
        """Raise the error that ended the client's connections for good, if they have ended.

        :raises ConnectionLost: if the connection has ended for good.
        :raises ClientClosed: if this side has closed it.
        """
        if self._machine.over is not None:
            raise self._machine.over.error()
        if self._machine.closing:
            raise ClientClosed("the client is being closed")

    # -- its life -------------------------------------------------------------------------------

    async def open(self, tasks: anyio.abc.TaskGroup, transport: Transport) -> Lost | None:
        """Greet the server and wait until it accepts this client; return the reason if it does not.

        :param tasks: the task group that serves the connection until it ends.
        :param transport: freshly connected.
        """
        self._new_signal = signals()
        try:
            self._machine.start(now())
        except BaseException:
            await transport.aclose()
            raise
        link = self._link = ClientLink(self, self._machine, transport)
        tasks.start_soon(link.run)
        link.flush()
        self.check_timer()
        await link.greeted.wait()
        if self._machine.lost is not None:
            await link.ended.wait()  # the machine may be started again only then
        return self._machine.lost

    def hang_up(self) -> None:
        """Close without waiting: all waiting calls end, and Terminate is sent if the transport
        takes it."""
        self._machine.closing = True
        self.settle(self._machine.close())
        self.flush()

    def give_up(self, lost: Lost) -> None:
        """Settle everything, because there will be no other connection."""
        self.settle(self._machine.give_up(lost))

    async def aclose(self, linger_s: float | None) -> None:
        """Send everything queued, on another connection if necessary, within ``linger_s`` seconds
        (no limit if None); then send Terminate, and wait until the server closes
        (``close_timeout_s``).

        If cancelled, only the bytes that the transport takes at once are sent.
        """
        try:
            if linger_s is None or linger_s > 0:
                self._machine.closing = True
                self._call_all()
                with anyio.move_on_after(_NEVER if linger_s is None else linger_s):
                    await self._drain()
        finally:
            self.hang_up()
        link = self._link
        if link is None:
            return
        try:
            with anyio.move_on_after(self._machine.limits.close_timeout_s):
                await link.ended.wait()
        finally:
            link.cancel()

    async def _drain(self) -> None:
        """Wait until nothing is left to be sent."""
        machine = self._machine
        while machine.over is None and len(machine.outbox) > 0:
            self._drained = anyio.Event()
            await self._drained.wait()

    # -- what the machine says ------------------------------------------------------------------

    def settle(self, outcomes: list[Outcome]) -> None:
        """Report outcomes to the code that waits for them."""
        for outcome in outcomes:
            if isinstance(outcome, Pending):
                if outcome.waiter is not None:
                    outcome.waiter.settled(outcome)
            elif isinstance(outcome, Inbox):
                outcome.fresh = False
                if outcome.listener is None:
                    pass
                elif self._machine.over is None:
                    outcome.listener.arrived()
                else:
                    outcome.listener.ended()
            elif isinstance(outcome, Accepted):
                assert self._link is not None, "it has accepted"
                self._link.greeted.set()
                self._online.set()
            elif isinstance(outcome, NotRestored):
                for inbox in outcome.inboxes:
                    if inbox.listener is not None:
                        inbox.listener.ended()
                if self.on_refused is not None:
                    self.on_refused(outcome)
            else:
                self._end(outcome)
        self.admission.call()

    def _end(self, lost: Lost) -> None:
        """Handle the end of a connection, or of the client."""
        if self._online.is_set():
            self._online = anyio.Event()
        self._call_all()
        if self._link is not None:
            self._link.end(local=lost.reason == "local")

    def _call_all(self) -> None:
        """Wake everyone who waits, because something has changed."""
        self.admission.call_all()
        self._drained.set()
        if self._machine.over is not None:
            self._online.set()

    # -- bytes ----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what can be sent without waiting."""
        if self._link is not None:
            self._link.flush()

    def flushed(self) -> None:
        """Admit more senders, because bytes were sent."""
        if self.backlog_bytes <= self._machine.limits.outbound_bytes // 2:
            self.admission.call()
            self.read_on()
        if len(self._machine.outbox) == 0:
            self._drained.set()

    def write_soon(self) -> None:
        """Send the queued bytes together with those that follow soon."""
        if self._link is not None:
            self._link.write_soon()

    def write_first(self) -> None:
        """Send the queued bytes at once if they are the first of this turn of the loop."""
        if self._link is not None:
            self._link.write_first()

    def read_on(self) -> None:
        """Let a paused reader check whether it may continue."""
        if self._link is not None:
            self._link.read_on()

    @property
    def backlog_bytes(self) -> int:
        """The queued bytes that the transport has not taken."""
        machine = self._machine
        return machine.queued_bytes + machine.unsent_bytes

    # -- time -----------------------------------------------------------------------------------

    async def online(self, timeout_s: float) -> None:
        """Wait for a connection, before sending something that needs one.

        :raises OperationTimeout: if there is none in that time.
        :raises ClientError: if there will be none.
        """
        while not self._machine.accepted:
            self.check()
            with anyio.move_on_after(timeout_s) as scope:
                await self._online.wait()
            if scope.cancelled_caught:
                raise OperationTimeout("send", "", timeout_s, "; there was no connection")

    async def watch_time(self) -> None:
        """Call the machine at its deadlines, as long as the client lives."""
        machine = self._machine
        while True:
            due = machine.next_deadline()
            self.timer_due = _NEVER if due is None else due
            wait_s = max(self.timer_due - now(), 0.0)
            with anyio.move_on_after(wait_s):
                await self._timer_wake.wait()
                self._timer_wake = anyio.Event()
            self.settle(machine.on_deadline(now()))
            self.flush()

    def check_timer(self) -> None:
        """Wake the timer if the machine's next deadline is earlier now."""
        due = self._machine.next_deadline()
        if due is not None and due < self.timer_due:
            self.timer_due = due
            self._timer_wake.set()
