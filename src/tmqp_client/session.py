"""Owns who waits for what: the machine's callers, its deadlines, and the connection it has now.

Theory of operation.  A session lives as long as its client; each of its connections is a
:class:`tmqp_client._link.Link`.  Callers change the machine themselves; what comes back is told to
whoever it concerns (:meth:`Session.settle`).  One task sleeps until the machine's next deadline,
whether there is a connection or not.

Sending.  Bytes go out at once when a single answer is awaited (latency) and when 64 KiB have
gathered; otherwise when the loop comes round to the writer, with all that was queued meanwhile
(throughput).  While more than ``outbound_bytes`` wait, or too much is unanswered, or too much waits
for a connection, callers wait too, unless they or their client chose otherwise.

Ending.  However it ends, the machine settles everything first, so nobody hangs.  Closing from this
side queues Terminate behind everything else and then *reads* until the server closes: a socket
closed with unread bytes resets the connection, and a reset may overtake what was sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import anyio.abc
import anyio.lowlevel

from tmqp.frames import Frame
from tmqp_client._gate import Dropped, Gate, WhenFull
from tmqp_client._inbox import Inbox
from tmqp_client._link import Link
from tmqp_client._machine import ClientMachine
from tmqp_client._outcomes import Accepted, Lost, NotRestored, Outcome
from tmqp_client._pending import Pending, Waiter, time_limit
from tmqp_client._pulls import PullUnderWay
from tmqp_client._requests import Headers, PullRequest, Request
from tmqp_client._transport import Transport
from tmqp_client.errors import ClientClosed, OperationTimeout, WouldBlock

__all__ = ["Asked", "Session"]

#: Queued bytes worth a system call before the writer's turn.
_FLUSH_BYTES: Final = 65_536
#: Unconfirmed pushes that may be made before others are let run.
_TURN_PUSHES: Final = 64
_NEVER: Final = float("inf")


class _OneWaiter:
    """Waits for one answer."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        self.event = anyio.Event()

    def settled(self, pending: Pending) -> None:
        self.event.set()


class Asked:
    """An operation that was sent, whose answer somebody is going to wait for."""

    __slots__ = ("pending", "waiter")

    def __init__(self, pending: Pending, waiter: _OneWaiter) -> None:
        self.pending = pending
        self.waiter = waiter


class Session:
    """All connections of a client, one after the other.

    :param machine: not started.
    :param when_full: what becomes of a send that would have to wait.
    """

    def __init__(self, machine: ClientMachine, when_full: WhenFull = "block") -> None:
        self._machine = machine
        self._link: Link | None = None
        self._timer_wake = anyio.Event()
        self._timer_due = _NEVER
        self._gate = Gate(self, machine, when_full)
        self._online = anyio.Event()
        self._drained = anyio.Event()
        self._closing = False
        self._turn = 0
        #: Is told what could not be restored on a new connection.
        self.on_refused: Callable[[NotRestored], None] | None = None

    @property
    def client_id(self) -> str:
        """The id this client goes by."""
        return self._machine.client_id

    @property
    def epoch(self) -> int:
        """How many connections there were: what came on one can be answered on that one only."""
        return self._machine.epoch

    @property
    def connected(self) -> bool:
        """There is a connection, and the server has accepted."""
        return self._machine.accepted

    @property
    def lost(self) -> Lost | None:
        """How the last connection ended, when there will be no other; None while there is hope."""
        return self._machine.over

    @property
    def response_timeout_s(self) -> float:
        """How long an answer is waited for, where nothing else is said."""
        return self._machine.limits.response_timeout_s

    @property
    def max_payload_bytes(self) -> int:
        """The largest payload that the server may send."""
        return self._machine.limits.protocol.max_payload_bytes

    @property
    def link(self) -> Link | None:
        """The connection there is, or was last."""
        return self._link

    def check(self) -> None:
        """Raise what ended the client's connections, if anything has.

        :raises ConnectionLost: when the connection has ended for good.
        :raises ClientClosed: when this side has closed it.
        """
        if self._machine.over is not None:
            raise self._machine.over.error()
        if self._closing:
            raise ClientClosed("the client is being closed")

    # -- its life -------------------------------------------------------------------------------

    async def open(self, tasks: anyio.abc.TaskGroup, transport: Transport) -> Lost | None:
        """Greet the server and wait until it accepts; return why not if it does not.

        :param tasks: where the connection is served; that ends by itself.
        :param transport: freshly connected.
        """
        try:
            self._machine.start(anyio.current_time())
        except BaseException:
            await transport.aclose()
            raise
        link = self._link = Link(self, self._machine, transport)
        tasks.start_soon(link.run)
        link.flush()
        self.check_timer()
        await link.greeted.wait()
        if self._machine.lost is not None:
            await link.ended.wait()  # the machine may be started again only then
        return self._machine.lost

    def hang_up(self) -> None:
        """Close without waiting: everyone waiting is told, Terminate goes as far as it can."""
        self._closing = True
        self.settle(self._machine.close())
        self.flush()

    def give_up(self, lost: Lost) -> None:
        """There will be no other connection."""
        self.settle(self._machine.give_up(lost))

    async def aclose(self, linger_s: float | None) -> None:
        """Send what is queued, on another connection if need be, for at most ``linger_s`` seconds
        (for ever if None); then Terminate, and let the server close (``close_timeout_s``).

        When cancelled, what the transport takes at once is all that is sent.
        """
        try:
            if linger_s is None or linger_s > 0:
                self._closing = True
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
        """Tell everyone an outcome concerns."""
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
        self._gate.call()

    def _end(self, lost: Lost) -> None:
        """A connection is over, or all hope for one."""
        if self._online.is_set():
            self._online = anyio.Event()
        self._call_all()
        if self._link is not None:
            self._link.end(local=lost.reason == "local")

    def _call_all(self) -> None:
        """Let everyone who waits see for himself what has changed."""
        self._gate.call_all()
        self._drained.set()
        if self._machine.over is not None:
            self._online.set()

    # -- bytes ----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what can be sent without waiting."""
        if self._link is not None:
            self._link.flush()

    def flushed(self) -> None:
        """Bytes have gone out: there may be room."""
        if self.backlog_bytes <= self._machine.limits.outbound_bytes // 2:
            self._gate.call()
            self.read_on()
        if len(self._machine.outbox) == 0:
            self._drained.set()

    def read_on(self) -> None:
        """Something has changed that may have kept the reader from reading."""
        if self._link is not None:
            self._link.read_on()

    @property
    def backlog_bytes(self) -> int:
        """Bytes queued that the transport has not taken."""
        link = self._link
        return self._machine.queued_bytes + (0 if link is None else link.unsent_bytes)

    def _after_send(self, *, awaited: bool) -> None:
        """Something was queued: see to it that it goes out, and that its deadline is kept."""
        machine = self._machine
        if (awaited and machine.outstanding == 1) or machine.queued_bytes >= _FLUSH_BYTES:
            self.flush()
        elif self._link is not None:
            self._link.write_soon()
        if awaited:
            self.check_timer()
            self.read_on()

    # -- time -----------------------------------------------------------------------------------

    async def online(self, timeout_s: float) -> None:
        """Wait for a connection, for what cannot be sent before there is one.

        :raises OperationTimeout: when there is none for so long.
        :raises ClientError: when there will be none.
        """
        while not self.connected:
            self.check()
            with anyio.move_on_after(timeout_s) as scope:
                await self._online.wait()
            if scope.cancelled_caught:
                raise OperationTimeout("send", "", timeout_s, "; there was no connection")

    async def watch_time(self) -> None:
        """Keep the machine's deadlines; runs as long as the client."""
        machine = self._machine
        while True:
            due = machine.next_deadline()
            self._timer_due = _NEVER if due is None else due
            wait_s = max(self._timer_due - anyio.current_time(), 0.0)
            with anyio.move_on_after(wait_s):
                await self._timer_wake.wait()
                self._timer_wake = anyio.Event()
            self.settle(machine.on_deadline(anyio.current_time()))
            self.flush()

    def check_timer(self) -> None:
        """The machine's next deadline may be earlier now."""
        due = self._machine.next_deadline()
        if due is not None and due < self._timer_due:
            self._timer_due = due
            self._timer_wake.set()

    # -- what callers ask -----------------------------------------------------------------------

    async def ask(
        self,
        request: Request,
        timeout_s: float | None = None,
        *,
        repeat: bool = False,
        nowait: bool = False,
    ) -> Pending:
        """Send an operation and wait for its answer.

        :param repeat: ask again on the next connection if this one ends before the answer.
        :param nowait: raise :class:`WouldBlock` when it cannot be queued at once.

        :raises OperationError: when it fails, is refused, or times out.
        :raises ClientError: when the connection ends or has ended.
        :raises LocalProtocolError: when it cannot be sent.
        """
        limit_s = self._machine.limits.response_timeout_s if timeout_s is None else timeout_s
        await self._gate.admit(confirm=True, nowait=nowait, timeout_s=limit_s)
        try:
            pending = self._machine.request(request, anyio.current_time(), timeout_s, repeat=repeat)
        finally:
            self._gate.call()
        return await self._wait(pending)

    def new_message_id(self) -> str:
        """An id that no other message of this client has (F45)."""
        return self._machine.new_message_id()

    async def ask_ahead(self, request: Request, timeout_s: float | None = None) -> Asked:
        """Send an operation, whose answer :meth:`answer_to` waits for; raises as :meth:`ask`."""
        limit_s = self._machine.limits.response_timeout_s if timeout_s is None else timeout_s
        await self._gate.admit(confirm=True, nowait=False, timeout_s=limit_s)
        try:
            pending = self._machine.request(request, anyio.current_time(), timeout_s)
        finally:
            self._gate.call()
        return self._asked(pending)

    async def answer_to(self, asked: Asked) -> Pending:
        """Wait for an answer; raises as :meth:`ask`."""
        pending = asked.pending
        try:
            await asked.waiter.event.wait()
        finally:
            self.abandon(pending)
        if pending.error is not None:
            raise pending.error
        return pending

    async def post(self, request: Request, *, nowait: bool = False) -> Pending:
        """Send a message as soon as there is room, without asking for an answer; as :meth:`ask`."""
        limit_s = self._machine.limits.response_timeout_s
        await self._gate.admit(confirm=False, nowait=nowait, timeout_s=limit_s)
        pending = self._machine.request(request, anyio.current_time(), answer=False)
        self._after_send(awaited=False)
        self._turn += 1
        if self._turn >= _TURN_PUSHES:
            self._turn = 0
            await anyio.lowlevel.checkpoint()
        return pending

    async def deliver(
        self, request: Request, timeout_s: float | None, *, wait: bool, nowait: bool
    ) -> str:
        """Send a message to others, and ``wait`` for its answer or not; its id, empty if dropped.

        Raises as :meth:`ask`.
        """
        if wait:
            return (await self.ask(request, timeout_s, nowait=nowait)).message_id
        try:
            return (await self.post(request, nowait=nowait)).message_id
        except Dropped:
            return ""

    def tell(self, request: Request) -> None:
        """Undo what stands (joined, subscribed) without asking for an answer."""
        if self._machine.accepted:
            self._machine.request(request, anyio.current_time(), answer=False)
            self._after_send(awaited=False)
        else:
            self._machine.forget(request)

    async def retract(self, request: Request) -> None:
        """Undo what stands (joined, subscribed); without a connection it stands no more anyway."""
        if self._machine.accepted:
            await self.ask(request)
        else:
            self._machine.forget(request)

    async def ping(self, timeout_s: float | None = None) -> Pending:
        """Send a ping and wait for its pong; as :meth:`ask`."""
        await self.online(time_limit(timeout_s, self._machine.limits.response_timeout_s))
        await self._gate.admit(confirm=True)
        try:
            pending = self._machine.ping(anyio.current_time(), timeout_s)
        finally:
            self._gate.call()
        return await self._wait(pending)

    async def pull(self, request: PullRequest) -> PullUnderWay:
        """Send a pull request as soon as there is room.

        :raises ClientError: when the connection ends or has ended.
        :raises LocalProtocolError: when too many pulls are under way.
        """
        await self.online(self._machine.limits.pull_timeout_s)
        await self._gate.admit(confirm=False)
        pull = self._machine.pull(request)
        self._after_send(awaited=True)
        return pull

    async def read_cache(self, request: PullRequest, timeout_s: float | None) -> Pending:
        """Ask a cache queue for its message and wait for it; as :meth:`ask`."""
        await self.online(time_limit(timeout_s, self._machine.limits.response_timeout_s))
        await self._gate.admit(confirm=True)
        try:
            pending = self._machine.read_cache(request, anyio.current_time(), timeout_s)
        finally:
            self._gate.call()
        return await self._wait(pending)

    async def push(
        self,
        channel: str,
        queue_id: int,
        payload: bytes,
        headers: Headers = (),
        high_priority: bool = False,
        message_id: str | None = None,
        confirm: bool = True,
        timeout_s: float | None = None,
        waiter: Waiter | None = None,
        nowait: bool = False,
    ) -> Pending:
        """Send a message as soon as there is room; as :meth:`ask`.

        :param confirm: ask for the acknowledge, and wait for it unless there is a ``waiter``.
        :param waiter: is told when the acknowledge comes, or why not.
        """
        limit_s = self._machine.limits.acknowledge_timeout_s if timeout_s is None else timeout_s
        await self._gate.admit(confirm=confirm, nowait=nowait, timeout_s=limit_s)
        try:
            pending = self._machine.push(
                channel,
                queue_id,
                payload,
                headers,
                anyio.current_time(),
                confirm=confirm,
                high_priority=high_priority,
                message_id=message_id,
                timeout_s=timeout_s,
            )
        finally:
            self._gate.call()
        if confirm and waiter is None:
            return await self._wait(pending)
        pending.waiter = waiter
        self._after_send(awaited=confirm)
        self._turn += 1
        if self._turn >= _TURN_PUSHES:
            self._turn = 0
            await anyio.lowlevel.checkpoint()
        return pending

    async def acknowledge(self, message: Frame, reason: str | None, epoch: int) -> bool:
        """Answer a delivered message; False when it came on a connection before this one.

        Waits only while ``overflow_factor`` times the outbound bound is queued: a consumer that
        could not answer would never empty its inbox.

        :raises ClientError: when the connection ends or has ended.
        :raises LocalProtocolError: when the reason cannot be written.
        """
        self.check_answer()
        if not self.live(epoch):
            return False
        await self._admit_answer()
        if not self.live(epoch):
            return False
        self._machine.acknowledge(message, reason)
        self._after_send(awaited=False)
        return True

    def live(self, epoch: int) -> bool:
        """Whether what came on that connection can be answered."""
        return self._machine.accepted and self._machine.epoch == epoch

    def check_answer(self) -> None:
        """Raise when nothing can be answered any more; a closing client still answers.

        :raises ClientError: when the connection has ended for good.
        """
        if self._machine.over is not None:
            raise self._machine.over.error()

    async def _admit_answer(self) -> None:
        limits = self._machine.limits
        while self.connected and (
            self.backlog_bytes >= limits.outbound_bytes * limits.overflow_factor
        ):
            await self._gate.turn()
            self.check_answer()

    async def send(self, frame: Frame) -> None:
        """Send what is no question, an answer to another client for one; as :meth:`acknowledge`."""
        self.check_answer()
        await self._admit_answer()
        if self._machine.buffer_full:
            raise WouldBlock("as much waits for a connection as may")
        self._machine.send(frame)
        self._after_send(awaited=False)

    def send_now(self, frame: Frame) -> bool:
        """Send without waiting, for one that is leaving; False when it is too late."""
        if not self._machine.accepted:
            return False
        self._machine.send(frame)
        self._after_send(awaited=False)
        return True

    def acknowledge_now(self, message: Frame, reason: str | None, epoch: int) -> bool:
        """Answer without waiting, for a consumer that is leaving; False when it is too late."""
        if not self.live(epoch):
            return False
        self._machine.acknowledge(message, reason)
        self._after_send(awaited=False)
        return True

    async def _wait(self, pending: Pending) -> Pending:
        return await self.answer_to(self._asked(pending))

    def _asked(self, pending: Pending) -> Asked:
        waiter = _OneWaiter()
        pending.waiter = waiter
        self._after_send(awaited=True)
        return Asked(pending, waiter)

    def abandon(self, pending: Pending) -> None:
        """Nobody waits for it any more."""
        if not pending.done:
            self._machine.abandon(pending)
            self._gate.call()
