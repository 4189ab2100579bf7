"""The peers of one server, and the questions to the operator's code about them."""

from __future__ import annotations

from tmqp_server.access.gate import AUTHENTICATE, Question, Verdict
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.asking import NO, Asking
from tmqp_server.shell.log_ins import LogIns
from tmqp_server.shell.outbound import Marks, Outbound
from tmqp_server.shell.peers import Peers
from tmqp_server.shell.tallies import REFUSED, count_one
from tmqp_server.shell.world import Ask

__all__ = ["Judged"]


class Judged(Peers):
    """Asks who peers are and what they may do; ``Connections`` decides everything else about them.

    :param hub: broker and door sessions.
    :param marks: the limits for a peer that reads slowly.
    :param hook_timeout_s: seconds for an answer about a right.
    """

    def __init__(self, hub: Hub, marks: Marks, hook_timeout_s: float) -> None:
        super().__init__(marks)
        self.hub = hub
        self._asking = Asking(self._world, hook_timeout_s)
        self._log_ins = LogIns()

    def _turn(self, now: float) -> None:
        """Write to every touched session, then handle all other results of a call."""
        raise NotImplementedError

    def _fail(self, out: Outbound, error: Exception, now: float) -> None:
        """End a session because of a fault; others are not affected."""
        raise NotImplementedError

    def _release(self, out: Outbound) -> None:
        """Continue with a session after a wait: process its waiting commands, or resume reading."""
        raise NotImplementedError

    def _note_deadline(self, number: int) -> None:
        """Note a nearer deadline of a session."""
        raise NotImplementedError

    def _ask(self, question: Question, now: float) -> None:
        out = self._outs.get(question.session)
        if out is None:
            return
        if question.right == AUTHENTICATE and not self._log_ins.begin(out.host, question, now):
            count_one(self.tally.waits, "log_ins")
            self.wake(self._log_ins.due())
            return
        self._begin_asking(question, now)

    def _begin_asking(self, question: Question, now: float) -> None:
        self._asking.ask(question, now)
        self._put_nearer(self._asking.due(question.session), question.session)

    def _serve_log_ins(self, now: float) -> None:
        """Ask about log-ins whose turn has come, and refuse those that have waited too long."""
        ready, late = self._log_ins.take_ready(now)
        for question in ready:
            self._begin_asking(question, now)
        for question in late:
            out = self._outs.get(question.session)
            if out is None:
                continue  # it has disconnected because of the previous decision
            out.tally.denied += 1
            out.count_as(REFUSED)
            self._decide(out, question.ticket, NO, now)

    def decided(self, ask: Ask, decision: Verdict, now: float) -> None:
        """Handle the answer to a question.  A refused log-in is answered after a delay; many may
        wait, and each costs almost nothing meanwhile."""
        if not self._asking.take(ask):
            return  # late, and nothing
        question = ask.question
        number = question.session
        out = self._outs[number]
        if question.right == AUTHENTICATE and not decision.allowed:
            out.tally.denied += 1
            out.count_as(REFUSED)
            self.hub.forget_hello(number, question.ticket)
            self._asking.hold(ask, decision, now + self._log_ins.refused(out.host, number, now))
            self.wake(self._log_ins.due())
            self._put_nearer(self._asking.due(number), number)
            self._turn(now)
        else:
            if question.right == AUTHENTICATE:
                out.tally.admitted += 1
                self._log_ins.ended(out.host, number, now)
                self.wake(self._log_ins.due())
            self._decide(out, question.ticket, decision, now)

    def _decide(self, out: Outbound, ticket: int, decision: Verdict, now: float) -> None:
        try:
            self.hub.decide(out.number, ticket, decision, now)
        except Exception as error:  # noqa: BLE001 - a bug; it is logged
            self._fail(out, error, now)
        self._note_deadline(out.number)
        self._turn(now)
        self._release(out)
