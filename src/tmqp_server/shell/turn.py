"""One turn of the server: bytes or answers in, bytes and world effects out.

Theory of operation.  ``Turn`` owns the hub and one :class:`Outbound` for each connection.  One call
brings one chunk, and returns what its reader does next.  Inside that call the hub works the chunk
off, then every connection it touched is given its bytes: at once through its :class:`Wire` if
nothing waits there, else behind what waits.  Whatever is no bytes joins one ordered list of world
effects (:meth:`Turn.take_effects`), and the answers come back as further calls.

*Portions.*  A chunk that asks for much is worked off in portions.  Whoever has a portion left waits
in one line with the others, and one portion of one session is done between two looks at the world
(``GoOn``): who asks for little waits for one portion, however many ask for much.

*Time.*  All deadlines of connections stand in one heap.  A session's deadline moves with every byte
it receives, nearly always to a later time; so its place in the heap is looked at again only when it
comes up or when the deadline came nearer.  ``Wake`` says that something is due earlier than what
:meth:`Turn.next_deadline` last said.

*Faults.*  A fault (a bug in a door or in the broker) ends the session it belongs to and is logged
with its traceback.  One at a deadline of the broker belongs to nobody: it is tried again later.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, final

from tmqp_server.access.gate import AUTHENTICATE, Decision, Question
from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Command, HttpAnswered
from tmqp_server.engine.effects import CallHttp, RouterFailed, TellHandler
from tmqp_server.hub.hub import Fault, Hub
from tmqp_server.shell.admitting import Pauses
from tmqp_server.shell.asking import NO, Asking
from tmqp_server.shell.calls import Calls, CallSettings
from tmqp_server.shell.outbound import (
    BLOCK,
    CUT,
    EMPTY,
    FLUSHING,
    OPEN,
    OVER,
    UNBLOCK,
    Marks,
    Outbound,
)
from tmqp_server.shell.saving import STOPPED, Saving
from tmqp_server.shell.timers import Timers
from tmqp_server.shell.world import (
    ERROR,
    Ask,
    Call,
    Close,
    Drained,
    GoOn,
    LinkOutput,
    Log,
    Resume,
    StartWriting,
    Tell,
    Wake,
    Wire,
    WorldEffect,
)
from tmqp_server.storage.journal import Journal

__all__ = ["EFFECTS", "END", "INTERNAL_ERROR", "READ", "WAIT", "LinkPort", "Turn"]

#: What a reader does next: read on; wait for ``Resume``; read no more.
READ: Final = 0
WAIT: Final = 1
END: Final = 2
#: A bit beside them: :meth:`Turn.take_effects` has something.
EFFECTS: Final = 4

#: What became of bytes that were to be sent: :meth:`Turn.send`.
SENT: Final = 0
NOT_YET: Final = 1
GONE: Final = 2

#: Pause after the broker failed at a deadline, in seconds.
_FAULT_PAUSE_S: Final = 1.0
#: How often a session that is being sent to is looked at, in seconds.
_BUSY_RECHECK_S: Final = 1.0
#: Why a session ends that failed.
INTERNAL_ERROR: Final = "an internal error"


class LinkPort(Protocol):
    """A connection to another server, as the turn sees it."""

    def has_output(self) -> bool:
        """Whether it has something to send."""


@final
class Turn:
    """Runs one hub; see the module.

    :param hub: broker and door sessions.
    :param marks: what a peer that reads slowly may cost.
    :param journal: gathers what is to be saved; None where nothing is.
    :param settings: bounds of the calls to code outside.
    :param links: the connections to other servers.
    """

    def __init__(
        self,
        hub: Hub,
        marks: Marks,
        journal: Journal | None = None,
        settings: CallSettings | None = None,
        links: Sequence[LinkPort] = (),
    ) -> None:
        self.hub = hub
        #: What a peer that reads slowly may cost.
        self.marks = marks
        self._world: list[WorldEffect] = []
        self._answers: deque[Command] = deque()
        self.saving: Saving | None = None
        if journal is not None:
            self.saving = Saving(journal, self._world, self._answers)
        settings = CallSettings() if settings is None else settings
        self._asking = Asking(self._world, settings.hook_timeout_s)
        self._calls = Calls(self._world, settings)
        self._links = links
        self._told_output = [False] * len(links)
        self._outs: dict[int, Outbound] = {}
        self._pauses = Pauses()
        self._line: deque[Outbound] = deque()
        self._going_on = False
        self._in_turn = False
        self._closing = ""
        self._timers = Timers()
        self._broker_not_before = 0.0
        #: What the world was last told to wait for.
        self._told_due = math.inf

    @property
    def sessions(self) -> int:
        """Connections at this moment."""
        return len(self._outs)

    @property
    def lost_events(self) -> int:
        """Events that were not told to their handler because too many waited."""
        return self._calls.lost_events

    @property
    def is_told(self) -> bool:
        """Whether every event handler has heard everything."""
        return self._calls.is_told

    def outbound(self, number: int) -> Outbound | None:
        """What waits for a session's peer; None when it is over."""
        return self._outs.get(number)

    def take_effects(self) -> list[WorldEffect]:
        """What the world is to do, since the last call, in order."""
        found = self._world[:]
        self._world.clear()
        return found

    # -- connections ----------------------------------------------------------------------------

    def opened(self, number: int, door: Door, wire: Wire, host: str, now: float) -> int:
        """A connection with this number, never used before, speaks the door's protocol.

        :param host: the peer's address, by which refused log-ins are counted.
        :returns: what its reader does, as do :meth:`received`, :meth:`ended` and :meth:`broken`.
        """
        out = Outbound(number, wire, host, self.marks)
        self._outs[number] = out
        try:
            self.hub.open(number, door, now)
            self._watch(out, now)
            if self._closing:
                self.hub.close(number, self._closing, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)
        return self._next(out, False)

    def received(self, number: int, data: bytes, now: float) -> int:
        """A chunk was read."""
        out = self._outs.get(number)
        if out is None:
            return END
        more = False
        try:
            more = self.hub.receive(number, data, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)
        deadline = self.hub.session_deadline(number)
        if deadline is not None and deadline < self._timers.due(number):
            self._put(deadline, number)  # accepted: its next ping is due before the handshake was
        return self._next(out, more)

    def go_on(self, now: float) -> None:
        """Others have had their turn: work on one portion of the first session in line."""
        self._going_on = False
        if self._line:
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
                self._end(out, now)  # closed before: what it had said is worked off now
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._release(out)
        self._turn(now)

    def _keep_going(self) -> None:
        if self._line and not self._going_on:
            self._going_on = True
            self._world.append(GoOn())

    def ended(self, number: int, now: float) -> int:
        """A session's peer sends no more."""
        out = self._outs.get(number)
        if out is not None:
            self._hear_the_end(out, now)
            if out.state != OVER:
                self._end(out, now)
            self._turn(now)
        return END | (EFFECTS if self._world else 0)

    def broken(self, number: int, reason: str, now: float) -> int:
        """Reading from a session failed: there is nobody any more."""
        out = self._outs.get(number)
        if out is not None:
            if not out.reason:
                out.reason = reason
            out.drop()
            self._hear_the_end(out, now)
            self._over(out, reason, now)
            self._turn(now)
        return END | (EFFECTS if self._world else 0)

    def _hear_the_end(self, out: Outbound, now: float) -> None:
        try:
            self.hub.receive_eof(out.number, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)

    def lost(self, number: int, reason: str, now: float) -> None:
        """Sending to a session failed; its reading finds the end by itself."""
        out = self._outs.get(number)
        if out is not None:
            self._lose(out, reason, now)
            self._turn(now)

    def closed(self, number: int, now: float) -> None:
        """A connection has ended without ``Close``: who runs it was stopped."""
        out = self._outs.get(number)
        if out is not None:
            self._forget(out, now)
            self._turn(now)

    def close_all(self, reason: str, now: float) -> None:
        """Close every session politely, those to come as well; each is over when its bytes are
        out."""
        self._closing = reason
        for number in list(self._outs):
            self._close(number, reason, now)
        self._turn(now)

    def _close(self, number: int, reason: str, now: float) -> None:
        out = self._outs.get(number)
        if out is None:
            return
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
        elif out.blocked and out.bytes > self.marks.pause_bytes:
            out.waits = True
            step = WAIT
        return step | EFFECTS if self._world else step

    def _join_line(self, out: Outbound) -> None:
        """Wait for the next portion, unless something else is to be waited for first."""
        if out.in_line or out.blocked or self.hub.is_waiting(out.number):
            return
        out.in_line = True
        self._line.append(out)
        self._keep_going()

    def _release(self, out: Outbound) -> None:
        """Something that was waited for has come: have it read again, unless more is."""
        if not out.waits or out.state == FLUSHING or out.state == OVER:
            return
        if self.hub.has_more(out.number):
            self._join_line(out)
        elif not out.blocked or out.bytes <= self.marks.pause_bytes:
            out.waits = False
            self._world.append(Resume(out.number))

    # -- sending --------------------------------------------------------------------------------

    def piece(self, number: int) -> bytes:
        """What is to be written next, from :meth:`offset` on; empty when the writer's work is
        done."""
        out = self._outs.get(number)
        return b"" if out is None else out.piece()

    def offset(self, number: int) -> int:
        """Where in its piece a session's writer goes on."""
        out = self._outs.get(number)
        return 0 if out is None else out.offset

    def taken(self, number: int, count: int, now: float) -> None:
        """The peer's side took so many bytes of the piece."""
        out = self._outs.get(number)
        if out is None:
            return
        found = out.taken(count, now)
        if found & EMPTY and out.state == FLUSHING:
            self._over(out, "", now)
        elif found & UNBLOCK:
            try:
                self.hub.unblock(number, now)
            except Exception as error:  # noqa: BLE001 - a bug; it is logged
                self._fail(out, error, now)
            self._turn(now)
            self._tell_drained(out)
            self._release(out)
        if found:
            self._turn(now)

    def send(self, number: int, data: bytes, now: float) -> int:
        """Send whole messages to a session: 0 when that is done, 1 when its peer must read first
        (``Drained`` says when), 2 when it is over."""
        out = self._outs.get(number)
        if out is None or self.hub.close_reason(number):
            return GONE
        if out.blocked:
            out.awaited = True
            return NOT_YET
        self.hub.send(number, data)
        self._turn(now)
        return SENT

    def _tell_drained(self, out: Outbound) -> None:
        if out.awaited and not out.blocked:
            out.awaited = False
            self._world.append(Drained(out.number))

    def _write_out(self, now: float) -> None:
        """Write to every touched session until there is nothing to write."""
        hub = self.hub
        outs = self._outs
        while True:
            outbound = hub.take_outbound()
            if not outbound:
                return
            for number, data in outbound:
                out = outs.get(number)
                if out is None:
                    continue
                if not data:
                    self._end(out, now)
                    continue
                try:
                    if out.state == OPEN:  # the quick copy of Outbound.give
                        taken = out.wire.send(data)
                        if taken == len(data):
                            continue
                        outcome = out.keep(data, taken, now)
                    else:
                        outcome = out.give(data, now)
                    if outcome:
                        self._kept(out, outcome, now)
                except OSError as error:
                    self._lose(out, error.strerror or str(error) or type(error).__name__, now)
                except Exception as error:  # noqa: BLE001 - a bug; it is logged
                    self._fail(out, error, now)

    def _kept(self, out: Outbound, outcome: int, now: float) -> None:
        """Bytes wait: have them written, and see to what that means."""
        if outcome == CUT:
            reason = f"slow reader: over {self.marks.max_bytes} bytes are waiting"
            self._cut(out, reason, now)
            return
        if not out.writing:
            out.writing = True
            self._world.append(StartWriting(out.number))
            self._put_nearer(out.due(), out.number)
        if outcome == BLOCK:
            self.hub.block(out.number, now)

    # -- the end of a connection ----------------------------------------------------------------

    def _end(self, out: Outbound, now: float) -> None:
        """The protocol is closed, or the peer has ended: it is over when its bytes are out."""
        if out.finish(now):
            self._over(out, "", now)
        else:
            self._put_nearer(out.due(), out.number)

    def _lose(self, out: Outbound, reason: str, now: float) -> None:
        """Nobody can be sent to; what had come is worked off."""
        if out.lose(reason, now):
            self._over(out, reason, now)
            return
        self._put_nearer(out.due(), out.number)
        self._tell_drained(out)
        self._release(out)

    def _fail(self, out: Outbound, error: Exception, now: float) -> None:
        """A fault ends its session, and nobody else."""
        self._world.append(Log(ERROR, "the session failed", out.number, error))
        self._cut(out, INTERNAL_ERROR, now)

    def _cut(self, out: Outbound, reason: str, now: float) -> None:
        """End it without another word; the first reason given is the one that counts."""
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
        out.drop()
        out.state = OVER
        out.waits = False
        self._tell_drained(out)
        del self._outs[number]
        self._timers.forget(number)
        self._asking.forget(number)
        try:
            self.hub.forget(number, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._world.append(Log(ERROR, "the broker failed at the end of a session", 0, error))

    # -- the turn -------------------------------------------------------------------------------

    def _turn(self, now: float) -> None:
        """Write to every touched session, then see to everything else that came of it."""
        if self._in_turn:
            return  # what is going on sees to it
        self._in_turn = True
        try:
            self._write_out(now)
            saving = self.saving
            if (
                self.hub.outside
                or self._answers
                or self.hub.relay is not None
                or (saving is not None and saving.wants)
            ):
                self._attend(now)
        finally:
            self._in_turn = False
        due = self.hub.broker_deadline()
        if due is not None and due < self._told_due:
            self._wake(max(due, self._broker_not_before))

    def _attend(self, now: float) -> None:
        """See to what is no bytes, until nothing follows from it."""
        hub = self.hub
        saving = self.saving
        while True:
            if self._answers:
                self._answer(self._answers.popleft(), now)
            elif hub.outside:
                for wanted in hub.take_outside():
                    self._see_to(wanted, now)
            else:
                break
            self._write_out(now)
        if saving is not None and saving.wants:
            saving.wake(now)  # last, so that a batch holds all that was said before it was taken
        if saving is not None:
            self._wake(saving.due())
        self._wake(self._calls.due())
        self._look_at_links()

    def _answer(self, command: Command, now: float) -> None:
        """The storage answers; an answer that fails (a bug) is logged, and the rest goes on."""
        try:
            self.hub.answer(command, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            text = "the broker failed at an answer of the storage"
            self._world.append(Log(ERROR, text, 0, error))

    def _see_to(self, wanted: object, now: float) -> None:
        if isinstance(wanted, Question):
            self._ask(wanted, now)
        elif isinstance(wanted, Fault):
            self._blame(wanted, now)
        elif isinstance(wanted, CallHttp):
            self._calls.call(wanted, now)
        elif isinstance(wanted, TellHandler):
            self._calls.tell(wanted, now)
        elif isinstance(wanted, RouterFailed):
            text = f"the router {wanted.router!r} failed"
            self._world.append(Log(ERROR, text, 0, wanted.error))
        elif self.saving is not None:
            self.saving.ask(wanted)  # type: ignore[arg-type]  # all else is for the storage

    def _blame(self, fault: Fault, now: float) -> None:
        out = self._outs.get(fault.session)
        if out is not None:
            self._fail(out, fault.error, now)
        elif fault.session == 0:
            self._world.append(Log(ERROR, "a delivery cannot be encoded", 0, fault.error))

    def perform(self, commands: Iterable[Command], now: float) -> None:
        """Carry out what no session asked: what another server said, or how it is."""
        for command in commands:
            try:
                self.hub.perform(command, now)
            except Exception as error:  # noqa: BLE001 - a bug; it is logged
                text = "the broker failed at what another server said"
                self._world.append(Log(ERROR, text, 0, error))
        self._turn(now)

    def set_router_enabled(self, name: str, enabled: bool, now: float) -> bool:
        """Let a router work, or not; False when there is none of that name."""
        found = self.hub.set_router_enabled(name, enabled, now)
        self._turn(now)
        return found

    # -- questions ------------------------------------------------------------------------------

    def _ask(self, question: Question, now: float) -> None:
        if question.session in self._outs:
            self._asking.ask(question, now)
            self._put_nearer(self._asking.due(question.session), question.session)

    def decided(self, ask: Ask, decision: Decision, now: float) -> None:
        """A question is answered.  A refused log-in is told so after a pause; many may be waiting
        for theirs, and each costs next to nothing meanwhile."""
        if not self._asking.take(ask):
            return  # late, and nothing
        question = ask.question
        number = question.session
        out = self._outs[number]
        if question.right == AUTHENTICATE and not decision.allowed:
            self.hub.forget_hello(number, question.ticket)
            self._asking.hold(ask, decision, now + self._pauses.next(out.host, now))
            self._put_nearer(self._asking.due(number), number)
        else:
            self._decide(out, question.ticket, decision, now)
        self._turn(now)

    def _decide(self, out: Outbound, ticket: int, decision: Decision, now: float) -> None:
        try:
            self.hub.decide(out.number, ticket, decision, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)
        self._release(out)

    # -- calls and event handlers ---------------------------------------------------------------

    def answered(self, call: Call, status: int, body: bytes, now: float) -> None:
        """An HTTP call has come to its end, with a status of its own or the one of a gateway."""
        if self._calls.answered(call, now):
            self._tell_answer(HttpAnswered(call.call.ticket, status, body), now)
        self._turn(now)

    def _tell_answer(self, answer: HttpAnswered, now: float) -> None:
        try:
            self.hub.answered(answer, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._world.append(Log(ERROR, "the answer to an HTTP call failed", 0, error))

    def told(self, tell: Tell, now: float) -> None:
        """An event handler has heard of an event, or failed."""
        self._calls.told(tell, now)
        self._turn(now)

    # -- links ----------------------------------------------------------------------------------

    def _look_at_links(self) -> None:
        relay = self.hub.relay
        if relay is not None:
            error = relay.take_error()
            if error is not None:
                self._world.append(Log(ERROR, "the filter of the cluster failed", 0, error))
        for at, link in enumerate(self._links):
            if not self._told_output[at] and link.has_output():
                self._told_output[at] = True
                self._world.append(LinkOutput(at))

    def link_waits(self, link: int) -> None:
        """The writer of a link has written everything, and waits for ``LinkOutput``."""
        self._told_output[link] = False
        self._look_at_links()

    # -- the storage ----------------------------------------------------------------------------

    def written(self, error: Exception | None, now: float) -> None:
        """The store has written the batch, or failed to."""
        assert self.saving is not None, "only what was handed out is written"
        self.saving.written(error, now)
        self._saved(now)

    def read(self, answers: Sequence[Command], error: Exception | None, now: float) -> None:
        """The store has answered the questions, or the first of them and then failed."""
        assert self.saving is not None, "only what was asked is answered"
        self.saving.read(answers, error, now)
        self._saved(now)

    def caught_up(self, error: Exception | None, now: float) -> None:
        """The store has done what it had left for later, or failed to."""
        assert self.saving is not None, "nothing else tidies up"
        self.saving.caught_up(error, now)
        self._saved(now)

    def finish(self, now: float) -> None:
        """No session is left: write what is left and close the store."""
        if self.saving is not None:
            self.saving.stop()
            self._saved(now)

    def store_closed(self, error: Exception | None) -> None:
        """The store is closed."""
        assert self.saving is not None, "there is one"
        self.saving.closed(error)

    def _saved(self, now: float) -> None:
        saving = self.saving
        assert saving is not None, "who saves calls"
        self._turn(now)
        if saving.state == STOPPED:
            saving.finish(self.hub.broker.notes())
        self._wake(saving.due())

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float:
        """When :meth:`on_deadline` is to be called; infinity for never."""
        earliest = min(self._timers.earliest(), self._calls.due())
        due = self.hub.broker_deadline()
        if due is not None:
            earliest = min(earliest, max(due, self._broker_not_before))
        if self.saving is not None:
            earliest = min(earliest, self.saving.due())
        self._told_due = earliest
        return earliest

    def on_deadline(self, now: float) -> None:
        """Do everything that is due."""
        self._serve_broker(now)
        for number in self._timers.take_due(now):
            out = self._outs.get(number)
            if out is not None:
                self._serve(out, now)
        for answer in self._calls.give_up(now):
            self._tell_answer(answer, now)
        self._turn(now)
        if self.saving is not None and self.saving.due() <= now:
            self.saving.on_deadline(now)
            self._turn(now)

    def _serve_broker(self, now: float) -> None:
        due = self.hub.broker_deadline()
        if due is None or max(due, self._broker_not_before) > now:
            return
        try:
            self.hub.on_broker_deadline(now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._broker_not_before = now + _FAULT_PAUSE_S
            self._world.append(Log(ERROR, "the broker failed at a deadline", 0, error))
        self._turn(now)

    def _serve(self, out: Outbound, now: float) -> None:
        """A session's time has come, for whatever it was."""
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
        if not out.bytes and not self.hub.is_waiting(number):
            self._keep_alive(out, now)
        if out.state != OVER:
            self._watch(out, now)

    def _keep_alive(self, out: Outbound, now: float) -> None:
        """Not asked of one that is being sent to: whether it reads is judged by the stall time."""
        try:
            deadline = self.hub.session_deadline(out.number)
            if deadline is not None and deadline <= now:
                self.hub.on_session_deadline(out.number, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._turn(now)

    def _watch(self, out: Outbound, now: float) -> None:
        """Find when a session is to be looked at next."""
        number = out.number
        due = out.due()
        if out.bytes or self.hub.is_waiting(number):
            due = min(due, now + _BUSY_RECHECK_S)
        else:
            deadline = self.hub.session_deadline(number)
            if deadline is not None:
                due = min(due, deadline)
        due = min(due, self._asking.due(number))
        if due < math.inf:
            self._put(due, number)

    def _put_nearer(self, due: float, number: int) -> None:
        if due < self._timers.due(number):
            self._put(due, number)

    def _put(self, due: float, number: int) -> None:
        self._timers.put(due, number)
        self._wake(due)

    def _wake(self, due: float) -> None:
        """Have the world come earlier, if it would come later than this."""
        if due < self._told_due:
            self._told_due = due
            self._world.append(Wake())
