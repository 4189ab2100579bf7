"""The connections of one server: reading, writing, pausing and closing.

One call passes in one chunk, and returns what its reader does next.  The hub processes the chunk,
then every connection that it touched gets its bytes: directly through its :class:`Wire` if nothing
waits there, and otherwise behind the waiting bytes.

*Portions.*  A chunk that requests much work is processed in portions.  Sessions with a portion left
wait in one line, and one portion of one session is processed in each turn of the event loop
(``GoOn``): so a small request waits for only one portion, however many sessions have large ones.

*Rounds.*  Chunks of several connections that the event loop finds readable together are a *round*:
the resulting output is written at its end, so that the consumer of ten producers gets one write.
It ends early if a session waits, ends or has a portion to send, and after sixteen chunks.

*Faults.*  A fault (a bug in a door or in the broker) ends its session and is logged with its
traceback.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from tmqp_server.doors.port import Door
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.asking import NO
from tmqp_server.shell.judged import Judged
from tmqp_server.shell.outbound import (
    BLOCK,
    CUT,
    EMPTY,
    FLUSHING,
    LOST,
    OPEN,
    OVER,
    UNBLOCK,
    Marks,
    Outbound,
)
from tmqp_server.shell.partings import part
from tmqp_server.shell.pulse import Pulse
from tmqp_server.shell.rates import Flow, RateLimits, Rates
from tmqp_server.shell.slow_consumers import SLOW_S, SlowConsumers
from tmqp_server.shell.steps import EFFECTS, END, GONE, NOT_YET, READ, SENT, WAIT
from tmqp_server.shell.tallies import BROKEN, BY_CLIENT, FAULT, STOPPING
from tmqp_server.shell.world import (
    ERROR,
    INTERNAL_ERROR,
    Close,
    GoOn,
    Log,
    Resume,
    Secure,
    StartWriting,
    Wire,
    why_broken,
)

__all__ = ["Connections"]

#: The most chunks of a round before the output is written.
_ROUND_CHUNKS: Final = 16
#: How often a session that is being sent to is examined, in seconds.
_BUSY_RECHECK_S: Final = 1.0
#: The reason for refusing clients that connect while the server stops.
_DRAINING: Final = "the server drains"


class Connections(Judged):
    """The hub and an :class:`Outbound` for each connection; ``Turn`` completes it.

    :param hub: broker and door sessions.
    :param marks: the limits for a peer that reads slowly.
    :param hook_timeout_s: seconds for an answer about a right.
    """

    def __init__(self, hub: Hub, marks: Marks, hook_timeout_s: float) -> None:
        super().__init__(hub, marks, hook_timeout_s)
        #: The rate limits of peers; None without any.
        self.rates: Rates | None = None
        #: The durations of turns, for monitoring.
        self.pulse = Pulse()
        self.slow_consumers = SlowConsumers(self._world)
        self._line: deque[Outbound] = deque()
        self._going_on = False
        self._closing = ""
        self._in_round = False
        self._put_off = 0  # chunks of the round whose output was not written yet

    # -- connections -----------------------------------------------------------------------------

    def opened(self, number: int, door: Door, wire: Wire, host: str, now: float) -> int:
        """Open a session with a new number for a connection.

        :param host: the peer's address, by which refused log-ins are counted.
        :returns: what its reader does next, as do :meth:`received`, :meth:`ended` and
            :meth:`broken`.
        """
        out = Outbound(number, wire, host, self.marks, self.tally.door(door.name))
        self._outs[number] = out
        if self.rates is not None:
            out.flow = self.rates.flow(host, now)
        try:
            self.hub.open(number, door, now, wire.peer)
            self._watch(out, now)
            if self._closing or (self.hub.draining and not door.for_operators):
                self.hub.close(number, self._closing or _DRAINING, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)
        return self._next(out, False)

    def received(self, number: int, data: bytes, now: float) -> int:
        """A chunk was read; no bytes if the peer sends no more."""
        if not data:
            return self.ended(number, now)
        out = self._outs.get(number)
        if out is None:
            return END
        if self._put_off and self.hub.close_reason(number):
            self._end_chunks(now)  # a chunk before it in the round has closed it
            return self._next(out, False)
        size = len(data)
        out.tally.received_bytes += size
        pulse = self.pulse
        if now - pulse.at > pulse.gap:
            pulse.gap = now - pulse.at
            pulse.who = pulse.number
        pulse.at = now
        pulse.number = number
        more = False
        try:
            more = self.hub.receive(number, data, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        flow = out.flow
        if flow is not None:
            flow.left -= size
            if flow.left < 0:
                self._note_flow(out, flow, now)
        if not (self._in_round and self._can_wait(out, more)):
            self._end_chunks(now)
        self._note_deadline(number)
        return self._next(out, more)

    def _note_flow(self, out: Outbound, flow: Flow, now: float) -> None:
        """Stop reading for a while from a peer that sends faster than it may."""
        if flow.note(self.hub.pushed(out.number), now):
            out.throttled = True
            out.throttled_at = now
            self._put_nearer(flow.until, out.number)

    def limit_rates(self, limits: RateLimits, now: float) -> None:
        """Limit how fast peers may send from now on."""
        self.rates = Rates(limits, self.tally.waits) if limits.limit_traffic() else None
        for out in list(self._outs.values()):
            out.flow = None if self.rates is None else self.rates.flow(out.host, now)
            if out.flow is not None:
                out.flow.pushed = self.hub.pushed(out.number)
            if out.throttled:
                self._go_on_reading(out, now)
                self._serve(out, now)  # its time may have come, and be another one now

    def _go_on_reading(self, out: Outbound, now: float) -> None:
        out.throttled = False
        out.excused_until = now + (now - out.throttled_at)
        self.hub.excuse(out.number, now)
        self._release(out)

    def begin_round(self) -> None:
        """Begin a round: the event loop has found the chunks until :meth:`end_round` readable
        together.
        """
        self._in_round = True

    def end_round(self, now: float) -> bool:
        """Write the output of the round's chunks; return True if there are effects to take."""
        self._in_round = False
        if self._put_off:
            self._end_chunks(now)
        return len(self._world) > 0

    def _can_wait(self, out: Outbound, more: bool) -> bool:
        """Whether the output of a chunk may be written with that of the next chunks."""
        self._put_off += 1
        due = more or self._put_off >= _ROUND_CHUNKS or self.hub.is_full()
        return not (due or self.hub.close_reason(out.number) or self._is_stopped(out))

    def _end_chunks(self, now: float) -> None:
        self._put_off = 0
        self._turn(now)

    def _note_deadline(self, number: int) -> None:
        """Note a nearer deadline of a session; for example, the next ping is due before the
        handshake is.
        """
        deadline = self.hub.session_deadline(number)
        if deadline is not None and deadline < self._timers.due(number):
            self._put(deadline, number)

    def go_on(self, now: float) -> None:
        """Process one portion of the first session in the line, after others have had their turn
        (``GoOn``).
        """
        self._going_on = False
        out = self._line.popleft()
        out.in_line = False
        if out.state != OVER:
            self._portion(out, now)
        self._keep_going()

    def _portion(self, out: Outbound, now: float) -> None:
        number = out.number
        try:
            more = self.hub.go_on(number, now)
            self._turn(now)
            if not more and out.state != OVER and self.hub.close_reason(number):
                self._end(out, now)  # closed before: its remaining input is processed now
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._note_deadline(number)
        self._release(out)
        self._turn(now)

    def _keep_going(self) -> None:
        if self._line and not self._going_on:
            self._going_on = True
            self._world.append(GoOn())

    def ended(self, number: int, now: float) -> int:
        """Handle the end of a peer's stream."""
        out = self._outs.get(number)
        if out is not None:
            self._hear_the_end(out, now)
            if out.state != OVER:
                self._end(out, now)
            self._turn(now)
        return END | (EFFECTS if self._world else 0)

    def broken(self, number: int, reason: str, now: float) -> int:
        """Handle that reading from a session failed: the connection is lost."""
        out = self._outs.get(number)
        if out is not None:
            if not out.reason:
                out.reason = reason
            out.count_as(BROKEN)
            self._hear_the_end(out, now)
            self._over(out, reason, now)
            self._turn(now)
        return END | (EFFECTS if self._world else 0)

    def _hear_the_end(self, out: Outbound, now: float) -> None:
        if not self.hub.close_reason(out.number):
            out.count_as(BY_CLIENT)
        part(self.hub, out, self._world, now, goes_on=not out.reason)
        try:
            self.hub.receive_eof(out.number, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)

    def lost(self, number: int, reason: str, now: float) -> None:
        """Handle that sending to a session failed; its reader notices the end by itself."""
        out = self._outs.get(number)
        if out is not None:
            self._lose(out, reason, now)
            self._turn(now)

    def closed(self, number: int, now: float) -> None:
        """Handle a connection that ended without ``Close``, because its task was cancelled."""
        out = self._outs.get(number)
        if out is not None:
            self._forget(out, now)
            self._turn(now)

    def close_all(self, reason: str, now: float) -> None:
        """Close every session politely, also those that are opened later; each ends when its bytes
        are sent.
        """
        self._closing = reason
        for number in list(self._outs):
            self._close_politely(number, reason, now)
        self._turn(now)

    def finish_session(self, number: int, reason: str, now: float) -> None:
        """Close one session politely; it ends when its bytes are sent."""
        self._close_politely(number, reason, now)
        self._turn(now)

    def _close_politely(self, number: int, reason: str, now: float) -> None:
        out = self._outs.get(number)
        if out is not None:
            if self._closing or self.hub.draining:
                out.count_as(STOPPING)
            part(self.hub, out, self._world, now, goes_on=True)
            try:
                self.hub.close(number, reason, now)
            except Exception as error:  # noqa: BLE001 - a bug; it is logged
                self._fail(out, error, now)

    def _next(self, out: Outbound, more: bool) -> int:
        """What a reader does after its chunk."""
        state = out.state
        step = READ
        if state == FLUSHING or state == OVER:
            step = END
        elif more:
            out.waits = True
            step = WAIT
            self._join_line(out)
        elif self._is_stopped(out):
            out.waits = True
            step = WAIT
        return step | EFFECTS if self._world else step

    def _join_line(self, out: Outbound) -> None:
        """Put a session into the line for its next portion, unless it must wait first."""
        if out.in_line or out.blocked or self.hub.must_wait(out.number):
            return
        out.in_line = True
        self._line.append(out)
        self._keep_going()

    def _release(self, out: Outbound) -> None:
        """Continue with a session after a wait: process its waiting commands, or resume reading."""
        if out.state == FLUSHING or out.state == OVER:
            return
        if self.hub.has_more(out.number):
            self._join_line(out)
        elif not out.waits:
            return
        elif not self._is_stopped(out):
            out.waits = False
            self._world.append(Resume(out.number))

    def _is_stopped(self, out: Outbound) -> bool:
        """Whether a peer is not to be read from: it sends too fast, reads too slowly, or its
        protocol waits.
        """
        if out.throttled or (out.blocked and out.bytes > self.marks.pause_bytes):
            return True
        return not self.hub.reads(out.number)

    # -- sending ---------------------------------------------------------------------------------

    def taken(self, number: int, count: int, now: float) -> None:
        """Handle that the transport has accepted *count* bytes of the piece."""
        out = self._outs.get(number)
        if out is None:
            return
        found = out.taken(count, now)
        if found & EMPTY and out.state == FLUSHING:
            self._over(out, "", now)
            self._turn(now)
            return
        if found & EMPTY and self.hub.awaited:
            self._tell_written(now)
            self._turn(now)
        self.hub.left(number, out.bytes)
        if found & UNBLOCK:
            self.slow_consumers.freed(number, now)
            try:
                self.hub.unblock(number, now)
            except Exception as error:  # noqa: BLE001 - a bug; it is logged
                self._fail(out, error, now)
            self._turn(now)
            self._tell_drained(out)
            self._release(out)

    def send(self, number: int, data: bytes, now: float) -> int:
        """Send whole messages to a session.  Return ``SENT``, ``NOT_YET`` if its peer must read
        first (``Drained`` follows), or ``GONE`` if the session has ended.
        """
        out = self._outs.get(number)
        if out is None or self.hub.close_reason(number):
            return GONE
        if out.blocked:
            out.awaited = True
            return NOT_YET
        self.hub.send(number, data)
        self._turn(now)
        return SENT

    def _write_out(self, now: float) -> None:
        """Write to every touched session until there is nothing to write."""
        hub = self.hub
        outs = self._outs
        while True:
            outbound = hub.take_outbound()
            if not outbound:
                if hub.awaited and self._tell_written(now):
                    continue
                if hub.woken:
                    self._let_go_on()
                return
            for number, data in outbound:
                out = outs.get(number)
                if out is None:
                    continue
                if not data:
                    self._end(out, now)
                    continue
                try:
                    if out.state == OPEN:
                        taken = out.wire.send(data)
                        if taken == len(data):
                            out.tally.sent_bytes += taken
                            continue
                        outcome = out.keep(data, taken, now)
                    else:
                        outcome = out.give(data, now)
                    if outcome:
                        self._kept(out, outcome, now)
                except OSError as error:
                    self._lose(out, why_broken(error), now)
                except Exception as error:  # noqa: BLE001 - a bug; it is logged
                    self._fail(out, error, now)
            if hub.awaited:
                self._tell_written(now)

    def _tell_written(self, now: float) -> bool:
        """Notify sessions that have requested it that all their bytes were written; return True if
        there was one."""
        told = False
        for number in list(self.hub.awaited):
            out = self._outs.get(number)
            if out is not None and (out.bytes or out.state == LOST):
                continue
            told = True
            try:
                self.hub.written(number, now)
                if out is not None and self.hub.begins_tls(number, now):
                    out.hold()
                    self._world.append(Secure(number))
            except Exception as error:  # noqa: BLE001 - a bug; it is logged
                if out is not None:
                    self._fail(out, error, now)
        return told

    def secured(self, number: int, now: float) -> int:
        """A connection has changed to TLS, after ``Secure``; returns as :meth:`received`."""
        out = self._outs.get(number)
        if out is None:
            return END
        out.waits = False
        try:
            self.hub.secured(number, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)
        self._note_deadline(number)
        return self._next(out, self.hub.has_more(number))

    def _let_go_on(self) -> None:
        """Continue with the sessions that have further commands or nearer deadlines."""
        woken = list(self.hub.woken)
        self.hub.woken.clear()
        for number in woken:
            out = self._outs.get(number)
            if out is not None:
                self._note_deadline(number)
                self._release(out)

    def _kept(self, out: Outbound, outcome: int, now: float) -> None:
        """Handle that bytes wait: start a writer, and pause deliveries or end the connection if
        necessary.
        """
        if outcome == CUT:
            reason = f"slow reader: over {self.marks.max_bytes} bytes are waiting"
            self._cut(out, reason, now)
            return
        self.hub.left(out.number, out.bytes)
        if not out.writing:
            out.writing = True
            self._world.append(StartWriting(out.number))
            self._put_nearer(out.due(), out.number)
        if outcome == BLOCK:
            self.slow_consumers.blocked(out.number, now)
            self._put_nearer(now + SLOW_S, out.number)
            self.hub.block(out.number, now)

    # -- the end of a connection -----------------------------------------------------------------

    def _end(self, out: Outbound, now: float) -> None:
        """End a connection when its bytes are sent: its protocol is closed, or the peer's stream
        has ended.
        """
        if out.finish(now):
            self._over(out, "", now)
        else:
            self._put_nearer(out.due(), out.number)

    def _lose(self, out: Outbound, reason: str, now: float) -> None:
        """Handle a lost connection; its received input is still processed."""
        part(self.hub, out, self._world, now, goes_on=False)
        if out.lose(reason, now):
            self._over(out, reason, now)
            return
        self._put_nearer(out.due(), out.number)
        self._tell_drained(out)
        self._release(out)

    def _fail(self, out: Outbound, error: Exception, now: float) -> None:
        """End a session because of a fault; others are not affected."""
        self._world.append(Log(ERROR, "the session failed", out.number, error))
        out.count_as(FAULT)
        self._cut(out, INTERNAL_ERROR, now)

    def _cut(self, out: Outbound, reason: str, now: float) -> None:
        """End a connection immediately; only the first reason counts."""
        if not out.reason:
            out.reason = reason
        self._over(out, reason, now)

    def _over(self, out: Outbound, reason: str, now: float) -> None:
        if out.state == OVER:
            return
        why = out.reason or self.hub.close_reason(out.number) or reason
        self._world.append(Close(out.number, why))
        self._forget(out, now)

    def _forget(self, out: Outbound, now: float) -> None:
        number = out.number
        part(self.hub, out, self._world, now, goes_on=False)
        out.state = OVER
        out.waits = False
        out.count_end(self.hub.violation(number))
        self._tell_drained(out)
        del self._outs[number]
        self._timers.forget(number)
        self._asking.forget(number)
        self.slow_consumers.freed(number, now)
        self._log_ins.ended(out.host, number, now)
        self.wake(self._log_ins.due())
        if out.flow is not None and self.rates is not None:
            out.flow.settle(self.hub.pushed(number), now)
            self.rates.leave(out.host)
        try:
            self.hub.forget(number, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._world.append(Log(ERROR, "the broker failed at the end of a session", 0, error))

    # -- time ------------------------------------------------------------------------------------

    def _serve(self, out: Outbound, now: float) -> None:
        """Handle the deadline of a session."""
        number = out.number
        if out.due() <= now:
            self._cut(out, out.late(now), now)
            return
        held = self._asking.take_held(number, now)
        if held is not None:
            self._decide(out, held[0], held[1], now)
        late = self._asking.take_late(number, now)
        if late is not None:
            self.decided(late, NO, now)
        if out.state == OVER:
            return
        if out.throttled and out.flow is not None and out.flow.until <= now:
            self._go_on_reading(out, now)
        excused = out.throttled or now < out.excused_until
        if not (out.bytes or excused or self.hub.is_waiting(number)):
            self._keep_alive(out, now)
        if out.state != OVER:
            self._watch(out, now)

    def _keep_alive(self, out: Outbound, now: float) -> None:
        """Serve a session's protocol deadline.  Not called while bytes wait for the peer: then the
        stall timeout applies.
        """
        try:
            deadline = self.hub.session_deadline(out.number)
            if deadline is not None and deadline <= now:
                self.hub.on_session_deadline(out.number, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)

    def _watch(self, out: Outbound, now: float) -> None:
        """Set the time at which to examine a session next."""
        number = out.number
        due = out.due()
        if out.throttled and out.flow is not None:
            due = min(due, out.flow.until)
        elif out.bytes or self.hub.is_waiting(number):
            if out.blocked:
                self.slow_consumers.look(out, now)
            due = min(due, now + _BUSY_RECHECK_S)
        else:
            deadline = self.hub.session_deadline(number)
            if deadline is not None:
                due = min(due, max(deadline, out.excused_until))
        due = min(due, self._asking.due(number))
        if due < math.inf:
            self._put(due, number)
