"""Decides which callers may send: all while there is room, otherwise in order of arrival.

There is no room while more than ``outbound_bytes`` wait for the socket, or while the buffer for the
next connection is full; for requests that need an answer, also while too many answers are awaited.
Those requests wait in one line, all others in another.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, Protocol, TypeAlias

import anyio

from tmqp_client._core.machine import ClientMachine
from tmqp_client._io.loop import NewSignal, Signal
from tmqp_client.errors import OperationTimeout, WouldBlock

__all__ = ["Admission", "AdmissionOwner", "Dropped", "WhenFull"]

#: What happens to a message that would have to wait: it waits, it is dropped and counted (or, if
#: its answer is awaited, the call raises), or the call raises :class:`WouldBlock`.
WhenFull: TypeAlias = Literal["block", "drop", "raise"]


class Dropped(Exception):  # noqa: N818 - no error: it is what the program chose
    """The message was dropped; this exception never leaves the client."""


class AdmissionOwner(Protocol):
    """What the admission needs of its session."""

    @property
    def backlog_bytes(self) -> int:
        """The queued bytes that the transport has not taken."""

    def check(self) -> None:
        """Raise the error that ended the client, if it has ended."""

    def flush(self) -> None:
        """Send what can be sent without waiting."""

    @property
    def new_signal(self) -> NewSignal:
        """A function that makes signals."""


class Admission:
    """Lets senders pass while there is room."""

    def __init__(self, owner: AdmissionOwner, machine: ClientMachine, when_full: WhenFull) -> None:
        self._owner = owner
        self._machine = machine
        self._when_full = when_full
        self._places: deque[Signal] = deque()
        self._room: deque[Signal] = deque()
        self._called = 0

    def passes(self, confirm: bool) -> bool:
        """Whether one more message may be sent without waiting; otherwise call :meth:`admit`."""
        if confirm and (self._called > 0 or len(self._places) > 0):
            return False
        return self._machine.admits(confirm)

    def _clogged(self) -> bool:
        """Whether too many bytes wait to be sent."""
        machine = self._machine
        return self._owner.backlog_bytes >= machine.limits.outbound_bytes or machine.buffer_full

    async def admit(
        self, *, confirm: bool, nowait: bool = False, timeout_s: float | None = None
    ) -> None:
        """Wait until one more message may be sent and, with ``confirm``, its answer awaited.

        :param nowait: raise instead of waiting, whatever ``when_full`` says.
        :param timeout_s: how long to wait while there is no connection.
        :raises WouldBlock: instead of waiting, if ``nowait`` or ``when_full`` requires it.
        :raises Dropped: instead of waiting, if ``when_full`` is ``drop`` and no answer is needed.
        :raises OperationTimeout: if there is no connection in that time.
        :raises ConnectionLost: if the connection ends for good.
        :raises ClientClosed: if this side closes it.
        """
        machine = self._machine
        most = machine.limits.max_outstanding
        most_bytes = machine.limits.outbound_bytes
        line = self._places if confirm else self._room
        called = False
        while True:
            self._owner.check()
            backlog = self._owner.backlog_bytes
            if backlog >= most_bytes:
                self._owner.flush()
                backlog = self._owner.backlog_bytes
            if not confirm:
                full = False
            elif called:
                full = machine.full
            else:  # do not overtake senders that wait, or were woken and have not run yet
                full = len(line) > 0 or machine.full
                if self._called > 0 and not full:
                    full = machine.outstanding + self._called >= most
            if not full and backlog < most_bytes and not machine.buffer_full:
                return
            if not called:
                self._may_wait(confirm=confirm, nowait=nowait)
            event = self._owner.new_signal()
            if called:
                line.appendleft(event)
            else:
                line.append(event)
            try:
                await self._wait_in_line(event, timeout_s)
            except BaseException:
                if event.is_set():
                    self._called -= confirm
                    self.call()  # the next one gets the room
                else:
                    line.remove(event)
                raise
            self._called -= confirm
            called = True

    def _may_wait(self, *, confirm: bool, nowait: bool) -> None:
        if nowait or (self._when_full != "block" and (confirm or self._when_full == "raise")):
            raise WouldBlock("the send buffer is full, or too many answers are awaited")
        if self._when_full == "drop":
            self._machine.counters.unsent += 1
            raise Dropped

    async def _wait_in_line(self, event: Signal, timeout_s: float | None) -> None:
        if self._machine.accepted or timeout_s is None:
            await event.wait()
            return
        with anyio.move_on_after(timeout_s):
            await event.wait()
        if not event.is_set():
            raise OperationTimeout("send", "", timeout_s, "; there was no connection")

    def call(self) -> None:
        """Wake as many senders as there is room for, in the order of their arrival."""
        if (not self._places and not self._room) or self._clogged():
            return
        machine = self._machine
        while self._room:
            self._room.popleft().set()
        free = machine.limits.max_outstanding - machine.outstanding - self._called
        if machine.full:
            free = 0
        while self._places and free > 0:
            self._places.popleft().set()
            self._called += 1
            free -= 1

    def call_all(self) -> None:
        """Wake all waiting senders, because something has changed."""
        self._called += len(self._places)
        for waiting in (self._places, self._room):
            while waiting:
                waiting.popleft().set()

    async def turn(self) -> None:
        """Wait until there is room for messages that need no answer, or something else has
        changed."""
        event = self._owner.new_signal()
        self._room.append(event)
        try:
            await event.wait()
        except BaseException:
            if not event.is_set():
                self._room.remove(event)
            raise
