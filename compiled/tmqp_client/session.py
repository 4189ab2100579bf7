"""Owns one connection's I/O: the machine's bytes, its deadlines, and who waits for what.

Theory of operation.  Three tasks stand around one machine.  The reader feeds it chunk by chunk and
tells whoever an outcome concerns; the timer sleeps until the machine's next deadline; the writer
sleeps until there is something that could not be sent directly.  Callers change the machine
themselves and never touch the transport in a way that waits, so cancelling one of them at any point
leaves whole messages behind.

Sending.  Bytes go out at once when a single answer is awaited (latency) and when 64 KiB have
gathered; otherwise when the loop comes round to the writer, with all that was queued meanwhile
(throughput).  While more than ``outbound_bytes`` wait, callers wait too.

Ending.  However the connection ends, the machine settles everything first, so nobody hangs.  A
write that fails ends nothing by itself: what the server said before it closed (a refusal, say) may
still be readable, and the reader will come to the end soon enough.  Closing from this side queues
Terminate behind everything else and then *reads* until the server closes: a socket closed with
unread bytes resets the connection, and a reset may overtake what was sent.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import anyio
import anyio.abc
import anyio.lowlevel

from tmqp.frames import Frame
from tmqp_client._inbox import Inbox
from tmqp_client._machine import ClientMachine
from tmqp_client._outcomes import Accepted, Lost, Outcome
from tmqp_client._pending import Pending, Waiter
from tmqp_client._pulls import PullUnderWay
from tmqp_client._requests import Headers, PullRequest, Request
from tmqp_client._transport import Transport

__all__ = ["Session"]

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


class Session:
    """One connection of a client.

    :param machine: not started, or whose connection before was lost.
    :param transport: freshly connected.
    """

    def __init__(self, machine: ClientMachine, transport: Transport) -> None:
        self._machine = machine
        self._transport = transport
        self._unsent = memoryview(b"")
        self._write_broken = ""
        self._writer_wake = anyio.Event()
        self._timer_wake = anyio.Event()
        self._timer_due = _NEVER
        self._reader_wake: anyio.Event | None = None
        self._places: deque[anyio.Event] = deque()
        self._room: deque[anyio.Event] = deque()
        self._called = 0
        self._greeted = anyio.Event()
        self._ended = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._over = False
        self._turn = 0

    @property
    def client_id(self) -> str:
        """The id this client goes by."""
        return self._machine.client_id

    @property
    def lost(self) -> Lost | None:
        """How the connection ended; None while it lives."""
        return self._machine.lost

    def check(self) -> None:
        """Raise what ended the connection, if anything has.

        :raises ConnectionLost: when the connection has ended.
        :raises ClientClosed: when this side has closed it.
        """
        if self._machine.lost is not None:
            raise self._machine.lost.error()

    # -- its life -------------------------------------------------------------------------------

    async def open(self, tasks: anyio.abc.TaskGroup) -> Lost | None:
        """Greet the server and wait until it accepts; return why not if it does not.

        :param tasks: where the session runs; it ends there by itself when the connection ends.
        """
        try:
            self._machine.start(anyio.current_time())
        except BaseException:
            await self._transport.aclose()
            raise
        tasks.start_soon(self._run)
        self._flush()
        await self._greeted.wait()
        if self._machine.lost is not None:
            await self._ended.wait()  # the machine may be started again only then
        return self._machine.lost

    def hang_up(self) -> None:
        """Close without waiting: everyone waiting is told, Terminate goes as far as it can."""
        self._settle(self._machine.close())
        self._flush()

    async def aclose(self) -> None:
        """Send what is queued, then Terminate, and let the server close.

        Bounded by ``close_timeout_s``.  When cancelled, what the transport takes at once is all
        that is sent.
        """
        self.hang_up()
        try:
            with anyio.move_on_after(self._machine.limits.close_timeout_s):
                await self._ended.wait()
        finally:
            if self._scope is not None:
                self._scope.cancel()

    async def _run(self) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                self._scope = tasks.cancel_scope
                tasks.start_soon(self._write)
                tasks.start_soon(self._watch_time)
                await self._read()
                tasks.cancel_scope.cancel()
        finally:
            if not self._over:
                self._settle(self._machine.fail("the client's tasks were cancelled"))
            self._ended.set()
            with anyio.CancelScope(shield=True):
                await self._transport.aclose()

    # -- reading --------------------------------------------------------------------------------

    async def _read(self) -> None:
        machine = self._machine
        while True:
            if self._must_pause():
                await self._pause()
            try:
                data = await self._transport.receive()
            except OSError as error:
                self._settle(machine.fail(self._write_broken or _words(error)))
                return
            now = anyio.current_time()
            if not data:
                self._settle(machine.receive_eof(now))
                return
            if not self._over:  # else this side has closed: read on to the server's end
                self._settle(machine.receive(data, now))
                self._flush()
            await anyio.lowlevel.checkpoint()

    def _must_pause(self) -> bool:
        # When writing has failed the end is near, and only reading finds it.
        return not self._write_broken and self._machine.must_pause(len(self._unsent))

    async def _pause(self) -> None:
        machine = self._machine
        machine.pause(anyio.current_time())
        self._check_timer()
        while self._must_pause():
            self._reader_wake = anyio.Event()
            await self._reader_wake.wait()
        self._reader_wake = None
        machine.resume(anyio.current_time())
        self._check_timer()

    def read_on(self) -> None:
        """Something has changed that may have kept the reader from reading."""
        if self._reader_wake is not None:
            self._reader_wake.set()

    def _settle(self, outcomes: list[Outcome]) -> None:
        """Tell everyone an outcome concerns."""
        for outcome in outcomes:
            if isinstance(outcome, Pending):
                if outcome.waiter is not None:
                    outcome.waiter.settled(outcome)
            elif isinstance(outcome, Inbox):
                outcome.fresh = False
                if outcome.listener is None:
                    pass
                elif self._machine.lost is None:
                    outcome.listener.arrived()
                else:
                    outcome.listener.ended()
            elif isinstance(outcome, Accepted):
                self._greeted.set()
            else:
                self._end(outcome)
        self._make_room()

    def _end(self, lost: Lost) -> None:
        self._over = True
        self._greeted.set()
        self.read_on()
        self._called += len(self._places)
        for waiting in (self._places, self._room):
            while waiting:
                waiting.popleft().set()
        self._flush()  # Terminate, and why
        if lost.reason != "local" and self._scope is not None:
            self._scope.cancel()

    # -- writing --------------------------------------------------------------------------------

    async def _write(self) -> None:
        while True:
            if self._flush() and not self._transport.sending:
                await self._writer_wake.wait()
                self._writer_wake = anyio.Event()
                continue
            try:
                await self._transport.wait_sendable()
            except OSError as error:
                self._fail_writing(error)
                return

    def _flush(self) -> bool:
        """Send what the transport takes without waiting; say whether that was everything."""
        whole = True
        while not self._write_broken:
            if not self._unsent:
                self._unsent = memoryview(self._machine.data_to_send())
                if not self._unsent:
                    break
            try:
                count = self._transport.try_send(self._unsent)
            except OSError as error:
                self._fail_writing(error)
                break
            if not count:
                whole = False
                break
            self._unsent = self._unsent[count:]
        if self._write_broken:
            self._machine.data_to_send()  # for nobody
        if not whole or self._transport.sending:
            self._writer_wake.set()
        if self.backlog_bytes <= self._machine.limits.outbound_bytes // 2:
            self._make_room()
            self.read_on()
        return whole

    def _fail_writing(self, error: OSError) -> None:
        self._write_broken = _words(error)
        self._unsent = memoryview(b"")
        self.read_on()

    @property
    def backlog_bytes(self) -> int:
        """Bytes queued that the transport has not taken."""
        return self._machine.queued_bytes + len(self._unsent)

    def _after_send(self, *, awaited: bool) -> None:
        """Something was queued: see to it that it goes out, and that its deadline is kept."""
        machine = self._machine
        if (awaited and machine.outstanding == 1) or machine.queued_bytes >= _FLUSH_BYTES:
            self._flush()
        else:
            self._writer_wake.set()
        if awaited:
            self._check_timer()
            self.read_on()

    # -- room -----------------------------------------------------------------------------------

    async def admit(self, *, confirm: bool) -> None:
        """Wait until one more message may be sent and, for ``confirm``, its answer awaited.

        :raises ConnectionLost: when the connection ends.
        :raises ClientClosed: when this side closes it.
        """
        machine = self._machine
        most = machine.limits.max_outstanding
        line = self._places if confirm else self._room
        called = False
        while True:
            self.check()
            if self.backlog_bytes >= machine.limits.outbound_bytes:
                self._flush()
            if not confirm:
                full = False
            elif called:
                full = machine.full
            else:  # nobody overtakes those who wait, nor those who were called and did not come yet
                full = len(line) > 0 or machine.outstanding + self._called >= most
            if not full and self.backlog_bytes < machine.limits.outbound_bytes:
                return
            event = anyio.Event()
            if called:
                line.appendleft(event)
            else:
                line.append(event)
            try:
                await event.wait()
            except BaseException:
                if event.is_set():
                    self._called -= confirm
                    self._make_room()  # what was offered goes to the next one
                else:
                    line.remove(event)
                raise
            self._called -= confirm
            called = True

    def _make_room(self) -> None:
        """Call as many senders as there is room for, in the order they came."""
        if not self._places and not self._room:
            return
        machine = self._machine
        if self.backlog_bytes >= machine.limits.outbound_bytes:
            return
        while self._room:
            self._room.popleft().set()
        free = machine.limits.max_outstanding - machine.outstanding - self._called
        while self._places and free > 0:
            self._places.popleft().set()
            self._called += 1
            free -= 1

    # -- time -----------------------------------------------------------------------------------

    async def _watch_time(self) -> None:
        machine = self._machine
        while True:
            due = machine.next_deadline()
            self._timer_due = _NEVER if due is None else due
            wait_s = max(self._timer_due - anyio.current_time(), 0.0)
            with anyio.move_on_after(wait_s):
                await self._timer_wake.wait()
                self._timer_wake = anyio.Event()
            self._settle(machine.on_deadline(anyio.current_time()))
            self._flush()

    def _check_timer(self) -> None:
        due = self._machine.next_deadline()
        if due is not None and due < self._timer_due:
            self._timer_due = due
            self._timer_wake.set()

    # -- what callers ask -----------------------------------------------------------------------

    async def ask(self, request: Request, timeout_s: float | None = None) -> Pending:
        """Send an operation and wait for its answer.

        :raises OperationError: when it fails, is refused, or times out.
        :raises ClientError: when the connection ends or has ended.
        :raises LocalProtocolError: when it cannot be sent.
        """
        await self.admit(confirm=True)
        try:
            pending = self._machine.request(request, anyio.current_time(), timeout_s)
        finally:
            self._make_room()
        return await self._wait(pending)

    async def post(self, request: Request) -> Pending:
        """Send a message as soon as there is room, without asking for an answer; as :meth:`ask`."""
        await self.admit(confirm=False)
        pending = self._machine.request(request, anyio.current_time(), answer=False)
        self._after_send(awaited=False)
        self._turn += 1
        if self._turn >= _TURN_PUSHES:
            self._turn = 0
            await anyio.lowlevel.checkpoint()
        return pending

    def tell(self, request: Request) -> None:
        """Send an operation without asking for an answer; does nothing without a connection."""
        if self._machine.accepted:
            self._machine.request(request, anyio.current_time(), answer=False)
            self._after_send(awaited=False)

    async def ping(self, timeout_s: float | None = None) -> Pending:
        """Send a ping and wait for its pong; as :meth:`ask`."""
        await self.admit(confirm=True)
        try:
            pending = self._machine.ping(anyio.current_time(), timeout_s)
        finally:
            self._make_room()
        return await self._wait(pending)

    async def pull(self, request: PullRequest) -> PullUnderWay:
        """Send a pull request as soon as there is room.

        :raises ClientError: when the connection ends or has ended.
        :raises LocalProtocolError: when too many pulls are under way.
        """
        await self.admit(confirm=False)
        pull = self._machine.pull(request)
        self._after_send(awaited=True)
        return pull

    async def read_cache(self, request: PullRequest, timeout_s: float | None) -> Pending:
        """Ask a cache queue for its message and wait for it; as :meth:`ask`."""
        await self.admit(confirm=True)
        try:
            pending = self._machine.read_cache(request, anyio.current_time(), timeout_s)
        finally:
            self._make_room()
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
    ) -> Pending:
        """Send a message as soon as there is room; as :meth:`ask`.

        :param confirm: ask for the acknowledge, and wait for it unless there is a ``waiter``.
        :param waiter: is told when the acknowledge comes, or why not.
        """
        await self.admit(confirm=confirm)
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
            self._make_room()
        if confirm and waiter is None:
            return await self._wait(pending)
        pending.waiter = waiter
        self._after_send(awaited=confirm)
        self._turn += 1
        if self._turn >= _TURN_PUSHES:
            self._turn = 0
            await anyio.lowlevel.checkpoint()
        return pending

    async def acknowledge(self, message: Frame, reason: str | None) -> None:
        """Answer a delivered message.

        Waits only while ``overflow_factor`` times the outbound bound is queued: a consumer that
        could not answer would never empty its inbox.

        :raises ClientError: when the connection ends or has ended.
        :raises LocalProtocolError: when the reason cannot be written.
        """
        await self._admit_answer()
        self._machine.acknowledge(message, reason)
        self._after_send(awaited=False)

    async def _admit_answer(self) -> None:
        limits = self._machine.limits
        while self.backlog_bytes >= limits.outbound_bytes * limits.overflow_factor:
            await self.admit(confirm=False)

    async def send(self, frame: Frame) -> None:
        """Send what is no question, an answer to another client for one; as :meth:`acknowledge`."""
        await self._admit_answer()
        self._machine.send(frame)
        self._after_send(awaited=False)

    def send_now(self, frame: Frame) -> bool:
        """Send without waiting, for one that is leaving; False when it is too late."""
        if not self._machine.accepted:
            return False
        self._machine.send(frame)
        self._after_send(awaited=False)
        return True

    def acknowledge_now(self, message: Frame, reason: str | None) -> bool:
        """Answer without waiting, for a consumer that is leaving; False when it is too late."""
        if not self._machine.accepted:
            return False
        self._machine.acknowledge(message, reason)
        self._after_send(awaited=False)
        return True

    async def _wait(self, pending: Pending) -> Pending:
        waiter = _OneWaiter()
        pending.waiter = waiter
        self._after_send(awaited=True)
        try:
            await waiter.event.wait()
        finally:
            self.abandon(pending)
        if pending.error is not None:
            raise pending.error
        return pending

    def abandon(self, pending: Pending) -> None:
        """Nobody waits for it any more."""
        if not pending.done:
            self._machine.abandon(pending)
            self._make_room()


def _words(error: OSError) -> str:
    """What an error of the system says, without its number."""
    text = error.strerror or str(error) or "the connection broke"
    return text[:1].lower() + text[1:]
