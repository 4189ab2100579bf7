"""The code outside a simulated server: who answers about rights, programs, event handlers.

Theory of operation.  A table says who may do what, at any moment: honest clients everything, the
others what flips every few seconds.  Answers come late, or never, and some hold for a while.  What
the broker carries out is compared with the table, without the product's help: it must have been
allowed within the time for which an answer may be kept.

HTTP calls and event handlers answer, are slow, fail, or never come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from tmqp.constants import TYPE_CUSTOM
from tmqp.frames import Frame
from tmqp_server.access.gate import AUTHENTICATE, MESSAGE, Verdict
from tmqp_server.access.rights import JOIN, PUBLISH, PUSH, REMOVE_CHANNEL
from tmqp_server.engine.commands import (
    Command,
    Connect,
    HttpAnswered,
    Join,
    Publish,
    Push,
    RemoveChannels,
)
from tmqp_server.shell.steps import NOT_YET, SENT
from tmqp_server.shell.world import Abandon, Ask, Call, Drained, Tell
from tmqp_sim.host import Host
from tmqp_sim.log_ins import LogInJudge
from tmqp_sim.world import Violation, World

__all__ = ["CALLS_AT_ONCE", "HOOK_TIMEOUT_S", "Outside"]

#: Seconds that a hook, and an HTTP call, may take.
HOOK_TIMEOUT_S: Final = 1.0
CALLS_AT_ONCE: Final = 2
#: How long answers are kept, in seconds.
_KEPT_S: Final = (0.0, 0.3, 1.0)
#: What the table says changes after so many seconds.
_FLIPS_AFTER_S: Final = 3.0
#: What a refused client waits at least, in seconds.
_LEAST_PAUSE_S: Final = 0.25
_SLACK_S: Final = 1e-6
_IMPOSTOR: Final = "impostor"


class Outside:
    """What surrounds one server over all its lives.

    :param fickle: the clients whose rights change.
    """

    def __init__(self, world: World, fickle: Callable[[], Iterable[str]]) -> None:
        self.world = world
        self.server: Host
        self._fickle = fickle
        self._random = world.child("outside")
        self._names: dict[int, str] = {}
        #: When all answers about a session were forgotten.
        self._forgotten: dict[int, float] = {}
        self._refused_at: dict[int, float] = {}
        self._calls: dict[Call, None] = {}
        self._tickets: dict[int, None] = {}
        self._abandoned: dict[Ask, None] = {}
        self._waiting: dict[int, Ask] = {}
        #: When it was asked who may log in, as far as that is not decided.
        self._asked_at: dict[Ask, float] = {}
        self._told = 0
        self._log_ins = LogInJudge(world)

    def begin(self) -> None:
        """A life begins: nothing that was asked before is waited for."""
        self._names.clear()
        self._forgotten.clear()
        self._refused_at.clear()
        self._calls.clear()
        self._tickets.clear()
        self._abandoned.clear()
        self._waiting.clear()
        self._asked_at.clear()
        self._told = 0
        self._log_ins.begin()

    # -- rights ---------------------------------------------------------------------------------

    def allows(self, name: str, right: str, subject: str, at: float) -> bool:
        """What the table says at a time."""
        if name.startswith(_IMPOSTOR):
            return False
        if name not in self._fickle():
            return True
        return int(at / _FLIPS_AFTER_S + _phase(name, right, subject)) % 3 != 0

    def ask(self, effect: Ask) -> None:
        """A question: answered after a while, or never."""
        question = effect.question
        chance = self._random
        if question.right == MESSAGE:
            self.world.after(chance.random() * 0.02, self._reply, effect, self.server.lives)
            return
        name = self._name_of(effect)
        out = self.server.turn.outbound(question.session)
        if question.right == AUTHENTICATE and out is not None:
            self._asked_at[effect] = self.world.now
            self._log_ins.asked(question.session, out.host)
        delay_s = chance.random() * 0.05
        fickle = name in self._fickle()
        keep_s = chance.choice(_KEPT_S) if fickle else 5.0
        if fickle and chance.random() < 0.15:
            delay_s = HOOK_TIMEOUT_S + chance.random()
            self.world.mark("question answered too late")
        if fickle and chance.random() < 0.1:
            self.world.mark("question never answered")
            return
        if fickle and chance.random() < 0.5:
            # As who has just changed the table would.
            phase = _phase(name, question.right, question.subject)
            flips = self.world.now / _FLIPS_AFTER_S + phase
            next_s = (math.floor(flips) + 1 - flips) * _FLIPS_AFTER_S
            self.world.after(next_s + 0.01, self._forget, question.session)
        self.world.after(delay_s, self._answer, effect, name, keep_s, self.server.lives)

    def _name_of(self, effect: Ask) -> str:
        command = effect.question.command
        if effect.question.right == AUTHENTICATE and isinstance(command, Connect):
            return command.client_id
        return self._names.get(effect.question.session, "")

    def _answer(self, effect: Ask, name: str, keep_s: float, life: int) -> None:
        server = self.server
        if life == server.lives and server.up:
            server.hear(lambda: self._decide(effect, name, keep_s))

    def _decide(self, effect: Ask, name: str, keep_s: float) -> None:
        """The answer is what the table says when it is heard."""
        server = self.server
        question = effect.question
        late = effect in self._abandoned
        may = self.allows(name, question.right, question.subject, self.world.now)
        connect: Connect | None = None
        if question.right == AUTHENTICATE:
            may = not name.startswith(_IMPOSTOR)
            assert isinstance(question.command, Connect), "who connects says so"
            connect = question.command
            if may and not late:
                self._names[question.session] = name
            elif not may and not late:
                self._refused_at[question.session] = self.world.now
                self.world.mark("log-in refused")
        if not may:
            self.world.mark("right refused")
        seen = frozenset(question.names) if question.names else None
        if self._asked_at.pop(effect, None) is not None:
            self._log_ins.decided(question.session, allowed=may)
        decision = Verdict(may, keep_s, seen, connect if may else None)
        server.turn.decided(effect, decision, server.now)

    def _reply(self, effect: Ask, life: int) -> None:
        """A custom message is answered with a larger one, as soon as its sender reads."""
        server = self.server
        if life == server.lives and server.up and effect not in self._abandoned:
            server.hear(lambda: self._send(effect))

    def _send(self, effect: Ask) -> None:
        server = self.server
        session = effect.question.session
        reply = Frame.build(TYPE_CUSTOM, "", 1, bytes(self._random.randrange(400)), message_id="r")
        outcome = server.turn.send(session, reply.raw, server.now)
        if outcome == NOT_YET:
            self._waiting[session] = effect
            self.world.mark("custom message held back")
        elif outcome == SENT:
            self.world.mark("custom message answered")
            server.turn.decided(effect, Verdict(True), server.now)

    def drained(self, effect: Drained) -> None:
        """Who was waited for reads again, or has gone."""
        waiting = self._waiting.pop(effect.session, None)
        if waiting is not None and waiting not in self._abandoned:
            self.world.after(0.0, self._reply, waiting, self.server.lives)

    def _forget(self, session: int) -> None:
        """The table's owner says that its answers about a session hold no more."""
        server = self.server
        if server.up and not server.asleep and server.hub.gate is not None:
            server.hub.gate.forget_answers(session)
            self._forgotten[session] = self.world.now
            self.world.mark("answers forgotten")

    def abandon(self, effect: Abandon) -> None:
        """What is asked is waited for no more; who answers does not know that."""
        if isinstance(effect.work, Call):
            self.world.mark("HTTP call given up")
        elif isinstance(effect.work, Ask):
            self._abandoned[effect.work] = None
            self._give_up(effect.work)

    def _give_up(self, ask: Ask) -> None:
        """A log-in that is not answered in time is refused.  One whose connection has ended is not,
        even if its time was over too and the server had not noticed yet (seed 28788)."""
        if self._asked_at.pop(ask, None) is None:
            return
        session = ask.question.session
        if self.server.turn.outbound(session) is None:
            self._log_ins.gone(session)
        else:
            self._log_ins.decided(session, allowed=False)

    def check(self, command: Command) -> None:
        """The broker carries a command out.

        :raises Violation: when the table did not allow it.
        """
        if isinstance(command, Push):
            self._check(command.session, PUSH, command.channel)
        elif isinstance(command, Join):
            self._check(command.session, JOIN, command.channel)
        elif isinstance(command, Publish):
            self._check(command.session, PUBLISH, command.router)
        elif isinstance(command, RemoveChannels):
            # Each is asked about in its turn, and what was answered first counts (seed 9637).
            asking_s = len(command.channels) * HOOK_TIMEOUT_S
            for channel in command.channels:
                self._check(command.session, REMOVE_CHANNEL, channel, asking_s)
        elif isinstance(command, HttpAnswered):
            if command.ticket in self._tickets:
                raise Violation("outside", f"the call {command.ticket} is answered again")
            self._tickets[command.ticket] = None

    def _check(self, session: int, right: str, subject: str, asking_s: float = 0.0) -> None:
        name = self._names.get(session)
        if name is None or name not in self._fickle():
            return
        now = self.world.now
        kept_since = max(now - max(_KEPT_S), self._forgotten.get(session, -math.inf))
        since = kept_since - asking_s - _SLACK_S
        at = since
        while at <= now:
            if self.allows(name, right, subject, max(at, 0.0)):
                return
            at += _FLIPS_AFTER_S / 30
        if not self.allows(name, right, subject, now):
            raise Violation("access", f"{name} may not {right} {subject!r}, and did")

    def check_sent(self, session: int) -> None:
        """Something is sent to a session.

        :raises Violation: when it was refused, and is notified of it too early.
        """
        refused_at = self._refused_at.get(session)
        if refused_at is not None and self.world.now - refused_at < _LEAST_PAUSE_S - _SLACK_S:
            raise Violation("network", f"session {session} hears too early that it is refused")

    # -- programs and event handlers ------------------------------------------------------------

    def call(self, effect: Call) -> None:
        """An HTTP call.

        :raises Violation: when there are too many.
        """
        self._calls[effect] = None
        if len(self._calls) > CALLS_AT_ONCE:
            raise Violation("outside", f"{len(self._calls)} HTTP calls at once")
        delay_s = self._random.random() * 0.2
        if self._random.random() < 0.2:
            delay_s = HOOK_TIMEOUT_S + self._random.random()
        status = self._random.choice((200, 200, 404, 502))
        self.world.after(delay_s, self._answered, effect, status, self.server.lives)

    def _answered(self, effect: Call, status: int, life: int) -> None:
        server = self.server
        if life == server.lives and server.up:
            self._calls.pop(effect, None)
            server.hear(lambda: server.turn.answered(effect, status, b"", server.now))

    def tell(self, effect: Tell) -> None:
        """An event for a handler.

        :raises Violation: when it is told two at a time.
        """
        self._told += 1
        if self._told > 1:
            raise Violation("outside", "an event handler is told two events at a time")
        self.world.mark("event handler told")
        delay_s = self._random.random() * 0.05
        if self._random.random() < 0.02:
            delay_s = HOOK_TIMEOUT_S + self._random.random()
        self.world.after(delay_s, self._heard, effect, self.server.lives)

    def _heard(self, effect: Tell, life: int) -> None:
        server = self.server
        if life == server.lives and server.up:
            self._told -= 1
            server.hear(lambda: server.turn.told(effect, server.now))


def _phase(name: str, right: str, subject: str) -> float:
    """When a right flips, in flips."""
    return len(name) / 3 + len(right) / 5 + len(subject) / 7
