"""Questions to the operator's code: one for each session, with a time limit for the answer.

If a question about a right is not answered in time, the request is refused.  A refused log-in is
answered only after a delay (see ``log_ins``).
"""

from __future__ import annotations

import math
from typing import Final, final

from tmqp_server.access.gate import MESSAGE, Question, Verdict
from tmqp_server.shell.world import ERROR, Abandon, Ask, Log, WorldEffect

__all__ = ["NO", "Asking"]

#: A refusal.
NO: Final = Verdict(False)


@final
class _Refusal:
    """A refusal that is delayed."""

    __slots__ = ("decision", "ticket", "until")

    def __init__(self, ticket: int, decision: Verdict, until: float) -> None:
        self.ticket = ticket
        self.decision = decision
        self.until = until


@final
class Asking:
    """The open questions of one server.

    :param world: gets the questions.
    :param timeout_s: seconds for an answer about a right.
    """

    def __init__(self, world: list[WorldEffect], timeout_s: float) -> None:
        self._world = world
        self._timeout_s = timeout_s
        self._asked: dict[int, Ask] = {}
        self._until: dict[int, float] = {}
        self._held: dict[int, _Refusal] = {}

    def ask(self, question: Question, now: float) -> None:
        """Ask a question.  The time limit does not apply to custom messages: the judge limits their
        hook.
        """
        ask = Ask(question)
        self._asked[question.session] = ask
        if question.right != MESSAGE:
            self._until[question.session] = now + self._timeout_s
        self._world.append(ask)

    def take(self, ask: Ask) -> bool:
        """Handle an answer; return False if it is no longer awaited."""
        number = ask.question.session
        if self._asked.get(number) is not ask:
            return False
        del self._asked[number]
        self._until.pop(number, None)
        return True

    def hold(self, ask: Ask, decision: Verdict, until: float) -> None:
        """Delay a decision until its time."""
        self._held[ask.question.session] = _Refusal(ask.question.ticket, decision, until)

    def take_held(self, number: int, now: float) -> tuple[int, Verdict] | None:
        """Return the ticket and decision that a session may get now; None if there is none."""
        held = self._held.get(number)
        if held is None or held.until > now:
            return None
        del self._held[number]
        return held.ticket, held.decision

    def take_late(self, number: int, now: float) -> Ask | None:
        """Return the question of a session that was not answered in time, after abandoning it; else
        None.
        """
        if self._until.get(number, math.inf) > now:
            return None
        ask = self._asked[number]
        question = ask.question
        text = f"{question.right} {question.subject!r}: not answered in time, refused"
        self._world.append(Log(ERROR, text, number, None, "access"))
        self._world.append(Abandon(ask))
        return ask

    def due(self, number: int) -> float:
        """When :meth:`take_held` or :meth:`take_late` has something; infinity for never."""
        held = self._held.get(number)
        due = math.inf if held is None else held.until
        return min(due, self._until.get(number, math.inf))

    def forget(self, number: int) -> None:
        """Forget a session that has ended."""
        self._held.pop(number, None)
        self._until.pop(number, None)
        ask = self._asked.pop(number, None)
        if ask is not None:
            self._world.append(Abandon(ask))
