"""One turn of the server: bytes or answers in, bytes and world effects out.

Theory of operation.  ``Turn`` has the connections (``connections.py``) and everything else that is
not bytes.  All effects for the world go into one ordered list (:meth:`Connections.take_effects`),
and the answers come back as further calls.

*Time.*  All deadlines of sessions are in one heap.  ``Wake`` means that something is due earlier
than :meth:`Turn.next_deadline` last returned.  A fault at a deadline of the broker belongs to no
session: it is logged, and the work is retried later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, final

from tmqp.constants import RESULT_BUSY, RESULT_MISDIRECTED_REQUEST
from tmqp_server.access.gate import Question
from tmqp_server.cluster.link import MasterLink
from tmqp_server.engine.commands import Command, HttpAnswered
from tmqp_server.engine.effects import CallHttp, DrainAsked, RouterFailed, TellHandler
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.questions import Fault, Refusal
from tmqp_server.shell.calls import Calls, CallSettings
from tmqp_server.shell.connections import Connections
from tmqp_server.shell.datagrams import Datagrams
from tmqp_server.shell.draining import Draining
from tmqp_server.shell.links import Links
from tmqp_server.shell.outbound import Marks
from tmqp_server.shell.pulse import SlowTurn
from tmqp_server.shell.refusals import Refusals
from tmqp_server.shell.saving import STOPPED, Saving
from tmqp_server.shell.world import ERROR, INFO, WARNING, Call, Dial, Log, Tell
from tmqp_server.storage.journal import Journal, Writing

__all__ = ["Turn"]

#: Pause after the broker failed at a deadline, in seconds.
_FAULT_PAUSE_S: Final = 1.0
#: Why clients are refused, for the log.
_REFUSED: Final = {
    400: "its id is not allowed",
    401: "its log-in failed",
    409: "it has the name of this server",
    482: "there are too many clients, or memory is short",
    RESULT_BUSY: "a client with this id is connected",
    RESULT_MISDIRECTED_REQUEST: "this server is a standby",
}


@final
class Turn(Connections):
    """Runs one hub; see the module.

    :param hub: broker and door sessions.
    :param marks: the limits for a peer that reads slowly.
    :param journal: collects the next batch for the store; None without a store.
    :param settings: limits for the calls to code outside.
    :param masters: the connections to other servers.
    :param connect_timeout_s: the timeout for connecting to one of them.

    Attributes to read: ``saving``, None without a store; ``links``; ``draining``; ``calls`` to
    other programs, and ``router_failures``, for metrics.
    """

    def __init__(
        self,
        hub: Hub,
        marks: Marks,
        journal: Journal | None = None,
        settings: CallSettings | None = None,
        masters: Sequence[MasterLink] = (),
        connect_timeout_s: float = 10.0,
    ) -> None:
        settings = CallSettings() if settings is None else settings
        super().__init__(hub, marks, settings.hook_timeout_s)
        self._answers: deque[Command] = deque()
        self._refusals = Refusals()
        self._slow_lines = Refusals()
        self.router_failures = 0
        self.saving: Saving | None = None
        if journal is not None:
            self.saving = Saving(journal, self._world, self._answers, self.tally)
        self.calls = Calls(self._world, settings)
        self.links = Links(self._world, masters, marks, connect_timeout_s)
        #: The sockets whose peers send datagrams.
        self.datagrams: list[Datagrams] = []
        self.draining = Draining(self._world)
        self._broker_not_before = 0.0

    @property
    def lost_events(self) -> int:
        """How many events were dropped because too many waited for their handler."""
        return self.calls.lost_events

    @property
    def unlogged(self) -> int:
        """How many log lines were left out because there were too many of their kind."""
        kinds = (self._refusals, self._slow_lines, self.slow_consumers.lines)
        return sum([each.suppressed for each in kinds])

    @property
    def is_told(self) -> bool:
        """Whether the event handlers have handled all events."""
        return self.calls.is_told

    # -- the turn --------------------------------------------------------------------------------

    def _turn(self, now: float) -> None:
        self._write_out(now)
        saving = self.saving
        if saving is not None and saving.first_s < 0.0:
            saving.note(now)
        if (
            self.hub.outside
            or self._answers
            or self.hub.relay is not None
            or (saving is not None and saving.wants)
        ):
            self._attend(now)
        due = self.hub.broker_deadline()
        if due is not None and due < self._told_due:
            self.wake(max(due, self._broker_not_before))

    def _attend(self, now: float) -> None:
        """Handle everything that is not bytes, until nothing follows from it."""
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
        if saving is not None:
            saving.wake(now)  # last, so that a batch has everything that has arrived
            self.wake(saving.due())
        self.wake(self.calls.due())
        self._look_at_links(now)

    def _answer(self, command: Command, now: float) -> None:
        """Pass on the storage's answers; one that raises (a bug) is logged, and the others are
        still handled."""
        try:
            self.hub.perform(command, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            text = "the broker failed at an answer of the storage"
            self._world.append(Log(ERROR, text, 0, error))

    def _see_to(self, wanted: object, now: float) -> None:
        if isinstance(wanted, Question):
            self._ask(wanted, now)
        elif isinstance(wanted, Fault):
            self._blame(wanted, now)
        elif isinstance(wanted, CallHttp):
            self.calls.call(wanted, now)
        elif isinstance(wanted, TellHandler):
            self.calls.tell(wanted, now)
        elif isinstance(wanted, RouterFailed):
            self.router_failures += 1
            text = f"the router {wanted.router!r} failed"
            self._world.append(Log(ERROR, text, 0, wanted.error))
        elif isinstance(wanted, Refusal):
            self._note_refusal(wanted, now)
        elif isinstance(wanted, DrainAsked):
            self._begin_draining(wanted.stops, now)
        else:
            assert self.saving is not None, "who keeps nothing asks no storage"
            self.saving.ask(wanted)  # type: ignore[arg-type]  # all else is for the storage

    def _note_refusal(self, refusal: Refusal, now: float) -> None:
        """Log that a client was refused, unless there are too many lines about its address."""
        peer = refusal.peer or "unknown"
        suppressed = self._refusals.note(peer.rpartition(":")[0] or peer, now)
        if suppressed < 0:
            return
        why = _REFUSED.get(refusal.code, "refused")
        level = WARNING
        if refusal.code == RESULT_BUSY and self.hub.draining:
            why = "the server drains"
            level = INFO
        if refusal.code == RESULT_MISDIRECTED_REQUEST:
            level = INFO
        text = f"{peer}: refused client {refusal.client_id!r}: {refusal.code} {why}"
        if suppressed:
            text += f" ({suppressed} more from this address were not logged)"
        self._world.append(Log(level, text, topic="refusals"))

    # -- the end ---------------------------------------------------------------------------------

    def drain(self, stops: bool, now: float) -> None:
        """Accept nothing more, wait for acknowledgements, and disconnect the clients.

        :param stops: end the process afterwards (``DrainEnded``).
        """
        self._begin_draining(stops, now)
        self._turn(now)

    def _begin_draining(self, stops: bool, now: float) -> None:
        if self.draining.begin(self.hub.in_flight(), stops, now):
            self.hub.drain(now)
            self.wake(now)

    def _look_at_drain(self, now: float) -> None:
        if not self.draining.look(self.hub.in_flight(), now):
            return
        reason = "the server stops" if self.draining.stops else "the server has drained"
        for number in list(self._outs):
            if not self.hub.is_operators(number):
                self._close_politely(number, reason, now)
        self.draining.ended()
        self._turn(now)

    def turn_was_slow(self, slow: SlowTurn) -> None:
        """Log that a turn of the event loop took too long, unless there are too many such lines."""
        out = self._outs.get(slow.session)
        if out is not None:
            slow.peer = out.wire.peer
        suppressed = self._slow_lines.note("", slow.at)
        if suppressed < 0:
            return
        text = f"the event loop was busy for {slow.took_s * 1000:.0f} ms"
        if slow.session:
            text = f"{text}, {slow.session_s * 1000:.0f} of them with this connection"
        if suppressed:
            text += f" ({suppressed} more were not logged)"
        self._world.append(Log(WARNING, text, slow.session, topic="slow"))

    def _blame(self, fault: Fault, now: float) -> None:
        out = self._outs.get(fault.session)
        if out is not None:
            self._fail(out, fault.error, now)
        elif fault.session == 0:
            self._world.append(Log(ERROR, "a delivery cannot be encoded", 0, fault.error))

    def perform(self, commands: Iterable[Command], now: float) -> None:
        """Carry out a command that does not come from a session, but from another server."""
        for command in commands:
            try:
                self.hub.perform(command, now)
            except Exception as error:  # noqa: BLE001 - a bug; it is logged
                text = "the broker failed to process a message of another server"
                self._world.append(Log(ERROR, text, 0, error))
        self._turn(now)

    def set_router_enabled(self, name: str, enabled: bool, now: float) -> bool:
        """Enable or disable a router; return False if there is none of that name."""
        found = self.hub.set_router_enabled(name, enabled, now)
        self._turn(now)
        return found

    # -- calls and event handlers ----------------------------------------------------------------

    def answered(self, call: Call, status: int, body: bytes, now: float) -> None:
        """Handle the end of an HTTP call, with its own status or that of a gateway."""
        if self.calls.answered(call, status, now):
            self._tell_answer(HttpAnswered(call.call.ticket, status, body), now)
        self._turn(now)

    def _tell_answer(self, answer: HttpAnswered, now: float) -> None:
        try:
            self.hub.perform(answer, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._world.append(Log(ERROR, "the answer to an HTTP call failed", 0, error))

    def told(self, tell: Tell, now: float) -> None:
        """Handle the end of a handler's work on an event."""
        self.calls.told(tell, now)
        self._turn(now)

    # -- links -----------------------------------------------------------------------------------

    def _look_at_links(self, now: float) -> None:
        relay = self.hub.relay
        if relay is None:
            return
        error = relay.take_error()
        if error is not None:
            self._world.append(Log(ERROR, "the filter of the cluster failed", 0, error))
        self.links.feed(now)
        self.wake(self.links.due())

    def link_dialled(self, dial: Dial, now: float) -> None:
        """Handle that a connection to a master was established."""
        self.links.dialled(dial, now)
        self._turn(now)

    def link_failed(self, dial: Dial, problem: str, now: float) -> None:
        """Handle a failed or lost connection to a master."""
        self._hear(self.links.failed(dial, problem, now), now)

    def link_read(self, dial: Dial, data: bytes, now: float) -> None:
        """Handle received bytes of a master; no bytes at the end of its stream."""
        self._hear(self.links.read(dial, data, now), now)

    def link_taken(self, dial: Dial, count: int, now: float) -> None:
        """Handle that a master's transport has accepted *count* bytes of the piece."""
        self.links.taken(dial, count, now)
        self._turn(now)

    def _hear(self, commands: Sequence[Command], now: float) -> None:
        relay = self.hub.relay
        self.perform([each for each in commands if relay is None or relay.heed(each)], now)

    def close_all(self, reason: str, now: float) -> None:
        """Close all connections to clients and other servers, and refuse new ones."""
        super().close_all(reason, now)
        self._hear(self.links.close(now), now)

    # -- the storage -----------------------------------------------------------------------------

    def take_batch(self) -> Writing:
        """Return the contents of the next batch; called when the store can begin to write it."""
        assert self.saving is not None, "only what is kept is written"
        return self.saving.take()

    def written(self, error: Exception | None, now: float) -> None:
        """Handle that the store has written the batch, or failed to."""
        assert self.saving is not None, "only what was handed out is written"
        self.saving.written(error, now)
        self._saved(now)

    def read(self, answers: Sequence[Command], error: Exception | None, now: float) -> None:
        """Handle the store's answers to all questions, or to the first of them before an error."""
        assert self.saving is not None, "only what was asked is answered"
        self.saving.read(answers, error, now)
        self._saved(now)

    def caught_up(self, error: Exception | None, now: float) -> None:
        """Handle the end of the store's deferred work, or its failure."""
        assert self.saving is not None, "nothing else tidies up"
        self.saving.caught_up(error, now)
        self._saved(now)

    def finish(self, now: float) -> None:
        """Write the last batch and close the store; called when no session is left."""
        if self.saving is not None:
            self.saving.stop()
            self._saved(now)

    def store_closed(self, error: Exception | None) -> None:
        """Handle that the store is closed."""
        assert self.saving is not None, "there is one"
        self.saving.closed(error)

    def _saved(self, now: float) -> None:
        saving = self.saving
        assert saving is not None, "who saves calls"
        self._turn(now)
        if saving.state == STOPPED:
            saving.finish(self.hub.broker.notes())
        self.wake(saving.due())

    # -- time ------------------------------------------------------------------------------------

    def next_deadline(self) -> float:
        """When :meth:`on_deadline` is to be called; infinity for never."""
        earliest = min(self._timers.earliest(), self.calls.due(), self.links.due())
        due = self.hub.broker_deadline()
        if due is not None:
            earliest = min(earliest, max(due, self._broker_not_before))
        if self.saving is not None:
            earliest = min(earliest, self.saving.due())
        earliest = min(earliest, self.draining.due(), self._log_ins.due())
        for each in self.datagrams:
            earliest = min(earliest, each.due())
        self._told_due = earliest
        return earliest

    def on_deadline(self, now: float) -> None:
        """Do everything that is due."""
        self._serve_broker(now)
        for number in self._timers.take_due(now):
            out = self._outs.get(number)
            if out is not None:
                self._serve(out, now)
        for each in self.datagrams:
            each.on_deadline(now)
        for answer in self.calls.give_up(now):
            self._tell_answer(answer, now)
        self._hear(self.links.on_deadline(now), now)
        if self._log_ins.due() <= now:
            self._serve_log_ins(now)
        if self.draining.due() <= now:
            self._look_at_drain(now)
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
