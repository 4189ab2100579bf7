"""Joins doors and broker: passes commands in and effects out.

Theory of operation.  The hub knows the broker and, by number, the sessions of all doors.  A session
converts received bytes to commands, each command is one step of the broker, and each effect goes to
the session that it names; commands with which a session answers an effect (such as a Disconnect)
are processed in the same way.  The hub remembers sessions with output in the order in which they
were touched, so the caller writes to each once per turn.

One chunk can request much more than its own size: thousands of lists, or joins of full channels.
So when a session has ``portion_bytes`` to send, or a portion of work was done, the rest of the
chunk's commands waits until the caller has sent the output and calls :meth:`Hub.go_on`.

Some commands wait for code outside: with a :class:`~tmqp_server.access.gate.Gate`, for the answer
whether the client has the right, and a custom message for its hook.  Then :meth:`Hub.take_outside`
returns a :class:`~tmqp_server.access.gate.Question`, the session's further commands wait, and
:meth:`Hub.decide` continues with the command in question.  A session has at most one open question,
and meanwhile no further chunk of it is read.

A fault in the door of one session must not affect the session whose command caused it:
:meth:`Hub.take_outside` returns the fault, and the effects for all other sessions are carried out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, final

from tmqp_server.access.gate import (
    ALLOWED,
    ASK,
    AUTHENTICATE,
    MESSAGE,
    Gate,
    Question,
    Verdict,
)
from tmqp_server.access.needs import NO_QUEUE
from tmqp_server.doors.port import Door
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Block,
    Command,
    Connect,
    Disconnect,
    GroupCommand,
    ListChannels,
    ListOffsets,
    SurveyCommand,
    Synced,
    Unblock,
    connection_of,
)
from tmqp_server.engine.effects import (
    Append,
    AppendRun,
    BranchClosed,
    BranchOpened,
    CallHttp,
    CloseSession,
    Confirm,
    ConfirmRun,
    Deliver,
    DeliverRun,
    DrainAsked,
    Effect,
    Erase,
    EraseRun,
    Forward,
    ForwardRun,
    HandOver,
    Inform,
    Notify,
    PushDecided,
    RouterFailed,
    StoredChange,
    TellHandler,
    TellNodes,
)
from tmqp_server.hub.outlets import FOR_ONE, ForOne, Outlets
from tmqp_server.hub.questions import OF_STORAGE, Outside
from tmqp_server.hub.relaying import Relay
from tmqp_server.hub.restricted import Restricted
from tmqp_server.hub.rows import RUNS, answers_among, is_row, row_of, singly
from tmqp_server.storage.journal import Journal

__all__ = ["Hub"]

#: Characters of its id that are kept of a client that will be refused.
_KEPT_OF_ID: Final = 64


@final
class Hub(Restricted):
    """Broker and door sessions, joined.

    :param broker: the engine; the hub is its only caller.
    :param portion_bytes: how much output a session may have before further commands wait for
        :meth:`go_on`; 0 for no limit on bytes or work.
    :param journal: collects what the broker wants stored; None without a store.
    :param guarded: check rights; otherwise every client has all rights.
    :param takes_custom: there is a hook for custom messages; otherwise they are only counted.
    :param relay: connects this server with others; None without a cluster.

    Attributes: ``notified``, how many events of the broker there were; ``customs_ignored``, how
    many custom messages had no hook; ``commands_dropped``, how many commands of ended sessions were
    not carried out, unless the broker closed the session; ``gate``, None if rights are not checked;
    ``outside``, for :meth:`take_outside`; ``woken``, the sessions that have further commands for
    :meth:`go_on`, have nearer deadlines, or can be read from again; ``awaited``, the sessions for
    which :meth:`written` must be called when all their bytes were written.
    """

    def __init__(
        self,
        broker: Broker,
        portion_bytes: int = 0,
        journal: Journal | None = None,
        *,
        guarded: bool = False,
        takes_custom: bool = False,
        relay: Relay | None = None,
    ) -> None:
        outside: list[Outside] = []
        super().__init__(broker, Outlets(portion_bytes, broker, outside), outside)
        self.journal = journal
        self.notified: dict[int, int] = {}
        self.customs_ignored: int = 0
        self.commands_dropped: int = 0
        if guarded:
            authorities = broker if broker.has_authenticators else None
            self.gate = Gate(broker.passes_on, authorities)
        self._takes_custom = takes_custom
        self._last_ticket = 0
        self.relay = relay
        self._following: deque[Command] = deque()

    # -- sessions -------------------------------------------------------------------------------

    def open(self, number: int, door: Door, now: float, peer: str = "") -> None:
        """Open a session with a new number for a connection of *peer*."""
        assert number > 0, "0 stands for no session"
        assert number not in self._sessions, "session numbers are not used twice"
        self._outlets.open(number, door, now, peer)
        if self.gate is not None:
            self.gate.open(number, self._sessions[number].trusted)

    def receive(self, number: int, data: bytes, now: float) -> bool:
        """Process received bytes.

        :returns: True if some of their commands wait: send the output, then call :meth:`go_on`.
        """
        session = self._sessions.get(number)
        if session is None:
            return False
        commands = session.receive(data, now)
        if self.tracer.running:
            self.tracer.read(number, len(data), commands, now)
        self._outlets.touch(number)
        if not self._outlets.weigh(number, session):
            stranger = number in self._outlets.strangers
            what = "another connection" if stranger else "a message of this size"
            self.close(number, f"there is no memory for {what}", now)
            return False
        if self.must_wait(number) or (self._rest and number in self._rest):
            self._rest.setdefault(number, deque()).extend(commands)
            return True
        if session.work:
            # Reading large bodies was one portion; carrying out their requests is another.
            self._outlets.charge(session.work)
            session.work = 0
            if self._outlets.full and commands:
                self._rest.setdefault(number, deque()).extend(commands)
                return True
        return self._run(number, commands, now)

    def go_on(self, number: int, now: float) -> bool:
        """Continue with the waiting commands of a session, unless it must wait; return as
        :meth:`receive`."""
        if self.must_wait(number):
            return True
        rest = self._rest.pop(number, None)
        return rest is not None and self._run(number, list(rest), now)

    def receive_eof(self, number: int, now: float) -> None:
        """Handle the end of the peer's stream; earlier commands are processed first."""
        session = self._sessions.get(number)
        if session is not None:
            self._outlets.touch(number)
            self._run(number, [*self._take_answers(number), *session.receive_eof(now)], now)

    def close(self, number: int, reason: str, now: float) -> None:
        """Close a session from this side, properly; of its waiting commands only the
        acknowledgements are carried out."""
        session = self._sessions.get(number)
        if session is not None:
            answers = self._take_answers(number)
            self._drop_waiting(number)
            self._outlets.touch(number)
            self._run(number, [*answers, *session.close(reason, now)], now)

    def forget(self, number: int, now: float) -> None:
        """Handle a closed transport: release everything that the session holds."""
        if number in self._sessions:
            answers = self._take_answers(number)
            if answers:
                self._run(number, answers, now)
            self.tracer.gone(number, now)
            if self.auditor is not None:
                self.auditor.gone(number, self._place(number), now)
            self._outlets.forget(number)
            self._drop_waiting(number)
            if self.gate is not None:
                self.gate.close(number)
            if self.relay is not None:
                self.relay.forget(number)
            self._step(Disconnect(number), now)

    def _take_answers(self, number: int) -> Sequence[Command]:
        """Carry out the waiting acknowledgements of a session that ends, but no other commands."""
        if self.must_wait(number):
            return ()
        waits = self._rest.pop(number, ())
        answers = answers_among(waits)
        self.commands_dropped += len(waits) - len(answers)
        return answers

    def _drop_waiting(self, number: int) -> None:
        self.commands_dropped += len(self._rest.pop(number, ()))
        self._open.pop(number, None)
        self.woken.pop(number, None)
        self.awaited.pop(number, None)

    def block(self, number: int, now: float) -> None:
        """Hold deliveries back from a session whose peer does not read."""
        if number in self._sessions:
            self._step(Block(number), now)

    def unblock(self, number: int, now: float) -> None:
        """Resume deliveries to a session whose peer reads again."""
        if number in self._sessions and (not self.draining or self.is_operators(number)):
            self._step(Unblock(number), now)

    def begins_tls(self, number: int, now: float) -> bool:
        """Whether the session's connection is to change to TLS, after :meth:`written`."""
        session = self._sessions.get(number)
        if session is None or not session.wants_tls:
            return False
        if not self._outlets.begin_tls(number):
            session.wants_tls = False
            self.close(number, "there is no memory for TLS", now)
        return session.wants_tls

    def secured(self, number: int, now: float) -> None:
        """Handle that the session's connection has changed to TLS."""
        session = self._sessions.get(number)
        if session is not None:
            session.wants_tls = False
            self._outlets.touch(number)
            self._follow_up(number, session.secured(now))

    def _follow_up(self, number: int, commands: Sequence[Command]) -> None:
        """Process commands in portions, like a chunk, and resume reading from the peer."""
        if commands:
            self._rest.setdefault(number, deque()).extend(commands)
        self.woken[number] = None

    def written(self, number: int, now: float) -> None:
        """Handle that the kernel has all output of a session in ``awaited``."""
        self.awaited.pop(number, None)
        session = self._sessions.get(number)
        if session is not None:
            session.wants_written = False
            self._outlets.touch(number)
            commands = session.written(now)
            if not session.outbound_bytes:
                session.wants_written = False  # or it would be called again for ever
            self._follow_up(number, commands)

    def take_back(self, number: int, waiting: int, now: float) -> int:
        """Handle the end of a connection whose last *waiting* bytes have not left.  Return how many
        of these bytes, counted from the end, must not be sent.
        """
        session = self._sessions.get(number)
        if session is None:
            return 0
        count, commands = session.take_back(waiting)
        if commands:
            self._run(number, commands, now)
        return count

    def set_router_enabled(self, name: str, enabled: bool, now: float) -> bool:
        """Enable or disable a router; return False if there is none of that name."""
        found = self.broker.set_router_enabled(name, enabled)
        self._carry_out(self.broker.take_effects(), now)
        self._outlets.flush()
        return found

    # -- time -----------------------------------------------------------------------------------

    def on_session_deadline(self, number: int, now: float) -> None:
        """Handle a session's deadline, if it has come."""
        session = self._sessions.get(number)
        if session is not None:
            self._outlets.touch(number)
            if self.broker.holds(number):
                session.excuse_silence(now)
            commands = session.on_deadline(now)
            if session.closed:
                commands = [*self._take_answers(number), *commands]
            self._run(number, commands, now)
            if session.hurried:
                session.hurried = False
                self.woken[number] = None

    def on_broker_deadline(self, now: float) -> None:
        """Handle the broker's deadline, if it has come."""
        self._carry_out(self.broker.on_deadline(now), now)
        self._outlets.flush()

    # -- questions ------------------------------------------------------------------------------

    def decide(self, number: int, ticket: int, decision: Verdict, now: float) -> None:
        """Process the command that waits for the answer to a question; then call :meth:`go_on`.  An
        answer to a question that is no longer open is ignored.
        """
        question = self._open.get(number)
        if question is None or question.ticket != ticket:
            return
        del self._open[number]
        self._outlets.touch(number)
        self._carry_out(self._decided(question, decision, now), now)
        self._outlets.flush()

    def forget_hello(self, number: int, ticket: int) -> None:
        """Drop everything about a client that will be refused later."""
        question = self._open.get(number)
        session = self._sessions.get(number)
        if question is None or question.ticket != ticket or session is None:
            return
        if isinstance(question.command, Connect):
            known = question.command.client_id[:_KEPT_OF_ID]  # for the log
            question.command = Connect(number, question.command.request, known)
        self._rest.pop(number, None)
        session.forget_hello()
        self._outlets.weigh(number, session)

    def _ask(self, question: Question) -> None:
        assert question.session not in self._open, "a session waits for one answer at a time"
        self._last_ticket += 1
        question.ticket = self._last_ticket
        self._open[question.session] = question
        self.outside.append(question)

    def _ask_about(self, number: int, command: Command, now: float) -> None:
        gate = self.gate
        assert gate is not None, "nobody else wants to know"
        question = gate.question(number, command, now)
        names = self.names_shown(command)
        if names is not None:
            gate.note_names(question, names)
        self._ask(question)

    def _decided(self, question: Question, decision: Verdict, now: float) -> Sequence[Effect]:
        """Return the effects of the command that waited."""
        command = question.command
        gate = self.gate
        if command is None or gate is None:
            return ()  # a custom message: its hook has already answered
        number = question.session
        if question.right == AUTHENTICATE:
            if self._sessions[number].closed:
                return ()  # the peer did not wait
            connect = decision.connect
            if not decision.allowed or connect is None:
                return self._refuse(number, command, now)
            gate.forget_answers(number)  # which were about another client of this connection
            if connect.node:
                gate.trust(number)
            self._audit_log_in(number, connect, decision, now)
            return self._perform(number, connect, now)
        outcome = gate.decided(question, decision, now)
        if isinstance(outcome, Question):
            self._ask(outcome)
            return ()
        if outcome != ALLOWED:
            return self._refuse(number, command, now)
        if isinstance(command, (ListChannels, ListOffsets, SurveyCommand)):
            command.visible = decision.names or frozenset()
        return self._perform(number, command, now)

    # -- the storage ----------------------------------------------------------------------------

    def take_down(self, effects: Iterable[Effect], now: float) -> None:
        """Store effects for the journal, and pass events to handlers."""
        for effect in effects:
            if isinstance(effect, TellHandler):
                self.outside.append(effect)
            else:
                self._keep(effect, now)

    # -- the machine ----------------------------------------------------------------------------

    def _run(self, number: int, commands: Sequence[Command], now: float) -> bool:
        """Process commands of a session, and those that result from them, until a portion is full
        or a question is open.  Return True if some are left.
        """
        while self._work_off(number, commands, now) and number in self._rest:
            commands = list(self._rest.pop(number))
        return self.has_more(number)

    def _work_off(self, number: int, commands: Sequence[Command], now: float) -> bool:
        """Process these commands; return False if the session has to wait."""
        outlets = self._outlets
        free = self.gate is None and self.relay is None and not self.restricted
        if free and self.auditor is not None and self.auditor.concerns(commands):
            free = False
        if self.relay is not None:
            commands = singly(commands)  # each message is forwarded separately
        at = 0
        effects: Sequence[Effect]
        while at < len(commands):
            if free:
                at, effects = self.broker.steps(commands, at, now, outlets.portion_bytes)
            else:
                command = commands[at]
                verdict = self._verdict(number, command, now)
                if isinstance(command, RUNS) and not (
                    verdict == ALLOWED and is_row(self.broker, command) and not self.restricted
                ):
                    commands, at = singly(commands, at), 0
                    continue
                quick = self.relay is None and not (self.restricted or self._is_audited(command))
                if verdict == ALLOWED and quick:
                    row = row_of(self.broker, commands, at)
                    done, effects = self.broker.steps(row, 0, now, outlets.portion_bytes)
                    at += done
                else:
                    effects = self._guarded(number, command, verdict, now)
                    at += 1
            if effects:
                self._carry_out(effects, now)
            work = self.broker.take_work()
            if work:
                outlets.charge(work)
            if at < len(commands) and (outlets.full or self.must_wait(number)):
                rest = self._rest.setdefault(number, deque())
                rest.extend(commands[at:])
                break
        outlets.flush()
        return not (outlets.full or self.must_wait(number))

    def _guarded(self, number: int, command: Command, verdict: int, now: float) -> Sequence[Effect]:
        """Carry out the decision about one command."""
        if verdict == ALLOWED:
            return self._perform(number, command, now)
        gate = self.gate
        assert gate is not None, "nobody else says no"
        if verdict == ASK:
            self._ask_about(number, command, now)
            return ()
        return self._refuse(number, command, now)

    def _verdict(self, number: int, command: Command, now: float) -> int:
        """The gate's result; nothing is checked for a node, which the relay recognises."""
        gate = self.gate
        if gate is None:
            return ALLOWED
        relay = self.relay
        if relay is not None and isinstance(command, Connect) and relay.recognises(command):
            gate.trust(number)
            return ALLOWED
        if isinstance(command, GroupCommand):
            self.broker.resolve(command)
        return gate.check(number, command, now)

    def _perform(self, number: int, command: Command, now: float) -> Sequence[Effect]:
        """Carry out a session's command, unless the relay handles it."""
        relay = self.relay
        if self.restricted:
            refused = self._refused_now(number, command)
            if refused is not None:
                return refused
        if self._is_audited(command):
            refused = self._audit(number, command, now)
            if refused is not None:
                return refused
        if relay is not None:
            door = self._outlets.doors.get(number)
            instead = None if door is None else relay.meet(number, door, command, now)
            if instead is not None:
                return instead
        return self.broker.step(command, now)

    def _step(self, command: Command, now: float) -> None:
        self._carry_out(self.broker.step(command, now), now)
        self._outlets.flush()

    def _carry_out(self, effects: Iterable[Effect], now: float) -> None:
        """Carry out effects, and all commands that result from them; runs stay open."""
        following = self._following
        outlets = self._outlets
        while True:
            if self.tracer.running:
                effects = self.tracer.seen(effects, now)
            for effect in effects:
                if isinstance(effect, Deliver) or isinstance(effect, Forward):  # noqa: SIM101
                    outlets.deliver(effect)
                elif isinstance(effect, Append) or isinstance(effect, Erase):  # noqa: SIM101
                    self._keep(effect, now)  # many: a test of one class costs next to nothing
                elif isinstance(effect, Confirm) or isinstance(effect, ConfirmRun):  # noqa: SIM101
                    self._apply(effect, now)  # many, as well
                elif isinstance(effect, (DeliverRun, ForwardRun, Inform)):
                    outlets.hand_out(effect)
                elif isinstance(effect, FOR_ONE):
                    self._apply(effect, now)
                elif isinstance(effect, BranchOpened):
                    outlets.open_branch(effect.session, effect.branch)
                    self._apply(effect, now)
                elif isinstance(effect, BranchClosed):
                    outlets.close_branch(effect.session, effect.branch)
                    self._apply(effect, now)
                elif isinstance(effect, Notify):
                    self.notified[effect.event] = self.notified.get(effect.event, 0) + 1
                elif isinstance(effect, TellNodes):
                    if self.relay is not None:
                        data, numbers = self.relay.tell(effect)
                        outlets.send(numbers, data)
                elif isinstance(effect, (CallHttp, DrainAsked, RouterFailed, TellHandler)):
                    self.outside.append(effect)
                elif isinstance(effect, HandOver):
                    self._take_custom(effect)
                elif isinstance(effect, PushDecided):
                    outlets.resume(effect.session, now)
                else:
                    self._keep(effect, now)
            if not following:
                return
            effects = self.broker.step(following.popleft(), now)

    def _keep(self, effect: Effect, now: float) -> None:
        """Pass an effect to the journal."""
        journal = self.journal
        if journal is None:
            if isinstance(effect, (Append, AppendRun)):
                # Without a store, nothing is ever confirmed as saved, or erased.
                self._following.append(Synced(effect.ticket, False))
        elif isinstance(effect, Append):
            journal.append(effect, now)
        elif isinstance(effect, Erase):
            journal.erase(effect)
        elif isinstance(effect, (AppendRun, EraseRun)):
            journal.run(effect, now)
        elif isinstance(effect, StoredChange):
            journal.change(effect)
        elif isinstance(effect, OF_STORAGE):
            self.outside.append(effect)

    def perform(self, command: Command, now: float) -> None:
        """Carry out a command that does not come from a session: an answer of the storage, of a
        call or of a server.
        """
        self._step(command, now)

    def _apply(self, effect: ForOne, now: float) -> None:
        """Pass an effect to its session."""
        number = effect.session
        if self.auditor is not None and self.auditor.waiting:
            self.auditor.answered(effect)
        if isinstance(effect, CloseSession):
            # Another connection has taken over: this one's waiting commands are void, not counted.
            self._rest.pop(number, None)
            self._open.pop(number, None)
        commands = self._outlets.apply(effect, now)
        if not commands:
            return
        if type(commands[0]) is Disconnect:
            self._following.extend(commands)
        else:
            # Commands that the client has sent ahead: their rights are checked, and they are
            # processed in portions, like any chunk.
            self._follow_up(connection_of(number), commands)

    def _take_custom(self, effect: HandOver) -> None:
        """Pass a custom message to its hook; its sender's further commands wait until the hook has
        returned.
        """
        if not self._takes_custom:
            self.customs_ignored += 1
            return
        question = Question(effect.session, (MESSAGE, "", NO_QUEUE, 0), None)
        question.handed_over = effect
        self._ask(question)
        self._outlets.full = True
