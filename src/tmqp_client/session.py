"""Sends what callers ask, and waits for the answers.

Sending.  Bytes go out at once when a single answer is awaited (latency) and when 64 KiB have
gathered; otherwise when the loop comes round to the writer, with all that was queued meanwhile
(throughput).  While more than ``outbound_bytes`` wait, or too much is unanswered, or too much waits
for a connection, callers wait too, unless they or their client chose otherwise.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import anyio
import anyio.lowlevel

from tmqp.frames import Frame
from tmqp_client._core.arguments import NO_HEADERS, Headers, Pairs
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Lost
from tmqp_client._core.pending import Pending, Waiter, time_limit
from tmqp_client._core.pulls import PullUnderWay
from tmqp_client._core.requests import PullRequest, Request
from tmqp_client._io.admission import Dropped
from tmqp_client._io.line import Line
from tmqp_client._io.loop import Signal, now
from tmqp_client.errors import WouldBlock

__all__ = ["Asked", "Session"]

#: Queued bytes that are sent at once, without waiting for the writer.
_FLUSH_BYTES: Final = 65_536
#: Unconfirmed pushes after which other tasks run.
_TURN_PUSHES: Final = 128


class Asked:
    """An operation that was sent, with the signal to wait for its answer."""

    __slots__ = ("pending", "signal")

    def __init__(self, pending: Pending, signal: Signal) -> None:
        self.pending = pending
        self.signal = signal


class Session:
    """Sends a client's requests, on one connection after the other, and waits for the answers.

    :param line: the client's connections.
    """

    def __init__(self, machine: ClientMachine, line: Line) -> None:
        self._machine = machine
        self._line = line
        self._admission = line.admission
        self._turn = 0
        #: Deliveries that are no longer in flight to this client.
        self.lapses = machine.lapses

    @property
    def client_id(self) -> str:
        """The id of this client."""
        return self._machine.client_id

    @property
    def epoch(self) -> int:
        """The number of connections so far; a message can only be answered on the one that
        delivered it."""
        return self._machine.epoch

    @property
    def lost(self) -> Lost | None:
        """Why the client has no connection any more; None while it may reconnect."""
        return self._machine.over

    def check(self) -> None:
        """Raise the error that ended the client's connections for good, if any; as
        :meth:`Line.check`."""
        self._line.check()

    def read_on(self) -> None:
        """Continue reading, if it was paused because a buffer was full."""
        self._line.read_on()

    def _after_sending(self) -> None:
        """Send queued bytes, now or soon."""
        if self._machine.queued_bytes >= _FLUSH_BYTES:
            self._line.flush()
        else:
            self._line.write_soon()

    def _after_asking(self, pending: Pending) -> None:
        """Send queued bytes, now or soon, and watch the deadline of the answer."""
        machine = self._machine
        if machine.outstanding == 1 or machine.queued_bytes >= _FLUSH_BYTES:
            self._line.flush()
        else:
            self._line.write_soon()
        if pending.deadline < self._line.timer_due:
            self._line.check_timer()
        self._line.read_on()

    async def ask(
        self,
        request: Request,
        timeout_s: float | None = None,
        *,
        repeat: bool = False,
        nowait: bool = False,
    ) -> Pending:
        """Send an operation and wait for its answer.

        :param repeat: repeat the request on the next connection if this one ends before the answer.
        :param nowait: raise :class:`WouldBlock` if it cannot be queued at once.
        :raises OperationError: if it is refused or times out.
        :raises ClientError: if the connection ends or has ended.
        :raises LocalProtocolError: if it cannot be sent.
        """
        if not self._admission.passes(confirm=True):
            limit_s = self._machine.limits.response_timeout_s if timeout_s is None else timeout_s
            await self._admission.admit(confirm=True, nowait=nowait, timeout_s=limit_s)
        try:
            pending = self._machine.request(request, now(), timeout_s, repeat=repeat)
        finally:
            self._admission.call()
        return await self._wait(pending)

    def new_message_id(self) -> str:
        """Return a message id that this client has not used before (F45)."""
        return self._machine.new_message_id()

    async def ask_ahead(self, request: Request, timeout_s: float | None = None) -> Asked:
        """Send an operation and return without its answer, which :meth:`answer_to` waits for;
        raises as :meth:`ask`."""
        if not self._admission.passes(confirm=True):
            limit_s = self._machine.limits.response_timeout_s if timeout_s is None else timeout_s
            await self._admission.admit(confirm=True, timeout_s=limit_s)
        try:
            pending = self._machine.request(request, now(), timeout_s)
        finally:
            self._admission.call()
        pending.waiter = signal = self._line.new_signal()
        self._after_asking(pending)
        return Asked(pending, signal)

    async def settle(
        self, request: Request, epochs: Collection[int], timeout_s: float | None
    ) -> Pending | None:
        """Do as :meth:`ask`, unless a message that the request settles was delivered on an earlier
        connection; then send nothing and return None.

        :param epochs: the connections on which the messages were delivered.
        """
        if not self._admission.passes(confirm=True):
            limit_s = self._machine.limits.response_timeout_s if timeout_s is None else timeout_s
            await self._admission.admit(confirm=True, timeout_s=limit_s)
        try:
            for epoch in epochs:
                if not self.live(epoch):
                    return None
            pending = self._machine.request(request, now(), timeout_s)
        finally:
            self._admission.call()
        return await self._wait(pending)

    async def answer_to(self, asked: Asked) -> Pending:
        """Wait for an answer; raises as :meth:`ask`."""
        return await self._answered(asked.pending, asked.signal)

    async def post(self, request: Request, *, nowait: bool = False) -> Pending:
        """Send a message as soon as there is room, without requesting an answer; raises as
        :meth:`ask`."""
        if not self._admission.passes(confirm=False):
            limit_s = self._machine.limits.response_timeout_s
            await self._admission.admit(confirm=False, nowait=nowait, timeout_s=limit_s)
        pending = self._machine.request(request, now(), answer=False)
        self._after_sending()
        self._turn += 1
        if self._turn >= _TURN_PUSHES:
            self._turn = 0
            await anyio.lowlevel.checkpoint()
        return pending

    async def deliver(
        self, request: Request, timeout_s: float | None, *, wait: bool, nowait: bool
    ) -> str:
        """Send a message to others and, with ``wait``, await its answer; return its id, empty if
        dropped.

        Raises as :meth:`ask`.
        """
        if wait:
            return (await self.ask(request, timeout_s, nowait=nowait)).message_id
        try:
            return (await self.post(request, nowait=nowait)).message_id
        except Dropped:
            return ""

    def tell(self, request: Request) -> None:
        """End a join or a subscription without requesting an answer."""
        if self._machine.accepted:
            self._machine.request(request, now(), answer=False)
            self._after_sending()
        else:
            self._machine.forget(request)

    async def retract(self, request: Request) -> None:
        """End a join or a subscription; without a connection it has already ended, and is only not
        restored."""
        if self._machine.accepted:
            await self.ask(request)
        else:
            self._machine.forget(request)

    async def ping(self, timeout_s: float | None = None) -> Pending:
        """Send a ping and wait for its pong; raises as :meth:`ask`."""
        await self._line.online(time_limit(timeout_s, self._machine.limits.response_timeout_s))
        await self._admission.admit(confirm=True)
        try:
            pending = self._machine.ping(now(), timeout_s)
        finally:
            self._admission.call()
        return await self._wait(pending)

    async def pull(self, request: PullRequest) -> PullUnderWay:
        """Send a pull request as soon as there is room.

        :raises ClientError: if the connection ends or has ended.
        :raises LocalProtocolError: if too many pulls are in progress.
        """
        await self._line.online(self._machine.limits.pull_timeout_s)
        await self._admission.admit(confirm=False)
        pull = self._machine.pull(request)
        self._after_sending()
        self._line.read_on()
        return pull

    async def read_cache(self, request: PullRequest, timeout_s: float | None) -> Pending:
        """Request a cache queue's message and wait for it; raises as :meth:`ask`."""
        await self._line.online(time_limit(timeout_s, self._machine.limits.response_timeout_s))
        await self._admission.admit(confirm=True)
        try:
            pending = self._machine.read_cache(request, now(), timeout_s)
        finally:
            self._admission.call()
        return await self._wait(pending)

    async def push(
        self,
        channel: str,
        queue_id: int,
        payload: bytes,
        headers: Headers = (),
        high_priority: bool = False,
        message_id: str | None = None,
        timeout_s: float | None = None,
        nowait: bool = False,
    ) -> Pending:
        """Send a message as soon as there is room and wait for its acknowledgement; raises as
        :meth:`ask`."""
        if not self._admission.passes(confirm=True):
            await self._admit(True, nowait, timeout_s)
        signal = self._line.new_signal()
        try:
            pending = self._machine.push(
                channel,
                queue_id,
                payload,
                headers,
                now(),
                confirm=True,
                high_priority=high_priority,
                message_id=message_id,
                timeout_s=timeout_s,
            )
        finally:
            self._admission.call()
        pending.waiter = signal
        return await self._settled(pending, signal)

    async def begin_push(
        self,
        channel: str,
        queue_id: int,
        payload: bytes,
        headers: Headers,
        high_priority: bool,
        timeout_s: float | None,
        waiter: Waiter,
    ) -> Pending:
        """Send as :meth:`push`, but return at once; ``waiter`` is notified when the acknowledgement
        arrives or the push fails."""
        if not self._admission.passes(confirm=True):
            await self._admit(True, False, timeout_s)
        try:
            pending = self._machine.push(
                channel,
                queue_id,
                payload,
                headers,
                now(),
                confirm=True,
                high_priority=high_priority,
                timeout_s=timeout_s,
            )
        finally:
            self._admission.call()
        pending.waiter = waiter
        self._after_asking(pending)
        self._turn += 1
        if self._turn >= _TURN_PUSHES:
            self._turn = 0
            await anyio.lowlevel.checkpoint()
        return pending

    def publish_now(
        self,
        channel: str,
        queue_id: int,
        payload: bytes,
        headers: Headers,
        high_priority: bool,
        message_id: str | None,
    ) -> str | None:
        """Do as :meth:`publish` if that is possible without waiting, and other tasks need not run
        first; otherwise return None."""
        machine = self._machine
        if self._turn >= _TURN_PUSHES - 1 or not machine.admits(False):
            return None
        self._turn += 1
        message_id = machine.publish(channel, queue_id, payload, headers, high_priority, message_id)
        if machine.queued_bytes >= _FLUSH_BYTES:
            self._line.flush()
        else:
            self._line.write_soon()
        return message_id

    async def publish(
        self,
        channel: str,
        queue_id: int,
        payload: bytes,
        headers: Headers = (),
        high_priority: bool = False,
        message_id: str | None = None,
        timeout_s: float | None = None,
        nowait: bool = False,
    ) -> str:
        """Send a message as soon as there is room, without requesting an acknowledgement.

        :return: its id; empty when it was dropped.
        """
        if not self._admission.passes(confirm=False):
            try:
                await self._admit(False, nowait, timeout_s)
            except Dropped:
                return ""
        message_id = self._machine.publish(
            channel, queue_id, payload, headers, high_priority, message_id
        )
        self._after_sending()
        self._turn += 1
        if self._turn >= _TURN_PUSHES:
            self._turn = 0
            await anyio.lowlevel.checkpoint()
        return message_id

    async def _admit(self, confirm: bool, nowait: bool, timeout_s: float | None) -> None:
        limit_s = self._machine.limits.acknowledge_timeout_s if timeout_s is None else timeout_s
        await self._admission.admit(confirm=confirm, nowait=nowait, timeout_s=limit_s)

    def acknowledge_soon(
        self, message: Frame, reason: str | None, epoch: int, more: Pairs = NO_HEADERS
    ) -> bool:
        """Do as :meth:`acknowledge` if that is possible without waiting; otherwise return False.

        :raises LocalProtocolError: if the reason cannot be written.
        """
        machine = self._machine
        if not machine.accepted or machine.epoch != epoch:
            return False
        if self._line.backlog_bytes >= machine.limits.outbound_bytes:
            return False
        machine.acknowledge(message, reason, more)
        self._after_sending()
        return True

    async def acknowledge(
        self, message: Frame, reason: str | None, epoch: int, more: Pairs = NO_HEADERS
    ) -> bool:
        """Answer a delivered message; return False if an earlier connection delivered it.

        Waits only while ``overflow_factor`` times the outbound bound is queued: a consumer that
        could not answer would never empty its inbox.

        :raises ClientError: if the connection has ended for good.
        :raises LocalProtocolError: if the reason cannot be written.
        """
        self.check_answer()
        if not self.live(epoch):
            return False
        await self._admit_answer()
        if not self.live(epoch):
            return False
        self._machine.acknowledge(message, reason, more)
        self._after_sending()
        return True

    def live(self, epoch: int) -> bool:
        """Whether messages of that connection can be answered, because it is the current one."""
        return self._machine.accepted and self._machine.epoch == epoch

    def check_answer(self) -> None:
        """Raise if no message can be answered any more; a closing client can still answer.

        :raises ClientError: if the connection has ended for good.
        """
        if self._machine.over is not None:
            raise self._machine.over.error()

    async def _admit_answer(self) -> None:
        limits = self._machine.limits
        while self._machine.accepted and (
            self._line.backlog_bytes >= limits.outbound_bytes * limits.overflow_factor
        ):
            await self._admission.turn()
            self.check_answer()

    async def send(self, frame: Frame) -> None:
        """Send an answer to another client.

        :raises ClientError: if the connection has ended for good, or the send buffer is full.
        """
        self.check_answer()
        await self._admit_answer()
        if self._machine.buffer_full:
            raise WouldBlock("the send buffer is full")
        self._machine.send(frame)
        self._line.write_first()

    def send_now(self, frame: Frame) -> bool:
        """Send without waiting, while closing; return False if there is no connection."""
        if not self._machine.accepted:
            return False
        self._machine.send(frame)
        self._after_sending()
        return True

    def acknowledge_now(self, message: Frame, reason: str | None, epoch: int) -> bool:
        """Answer without waiting, while a consumer closes; return False if an earlier connection
        delivered the message."""
        if not self.live(epoch):
            return False
        self._machine.acknowledge(message, reason)
        self._after_sending()
        return True

    async def _wait(self, pending: Pending) -> Pending:
        pending.waiter = signal = self._line.new_signal()
        return await self._settled(pending, signal)

    async def _settled(self, pending: Pending, signal: Signal) -> Pending:
        self._after_asking(pending)
        return await self._answered(pending, signal)

    async def _answered(self, pending: Pending, signal: Signal) -> Pending:
        try:
            await signal.wait()
        finally:
            if not pending.done:
                self.abandon(pending)
        if pending.error is not None:
            raise pending.error
        return pending

    def abandon(self, pending: Pending) -> None:
        """Stop waiting for an answer."""
        if not pending.done:
            self._machine.abandon(pending)
            self._admission.call()
