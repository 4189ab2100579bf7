"""Handlers that send commands to the broker and answer in the manner of NSQ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tmqp.constants import RESULT_DUPLICATE, RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.doors.nsq_http.manner import NsqManner, done
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Effect, Reply

__all__ = ["AskingHandler", "Step", "Steps"]

_MANNER: Final = NsqManner()

#: Commands, and the word for the answer 404.
Step = tuple[Sequence[Command], str]


class AskingHandler(Handler):
    """Sends commands whose replies arrive in the order of the commands."""

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Handle a reply of the broker; other effects are ignored."""
        return self.heard(effect, now) if isinstance(effect, Reply) else ()

    def heard(self, reply: Reply, now: float) -> Sequence[Command]:
        """Handle a reply; returns the next commands."""
        raise NotImplementedError

    def fail(self, status: int, word: str) -> None:
        """Answer with an error."""
        self.exchange.respond(_MANNER.problem(status, word))

    def refuse(self, code: int) -> None:
        """Answer with the error for a result code of the broker."""
        self.exchange.respond(_MANNER.refused(code, ""))


class Steps(AskingHandler):
    """Carries out one step after another, and answers after the last one or when one is refused.

    :param steps: makes the steps for this handler; only the last command of each is answered.
    :param at_end: called after the last step; returns the answer.
    """

    def __init__(
        self,
        exchange: Exchange,
        steps: Callable[[Handler], list[Step]],
        at_end: Callable[[], HttpResponse] = done,
    ) -> None:
        super().__init__(exchange)
        self._steps = steps(self)
        self._at = 0
        self._at_end = at_end

    def start(self, now: float) -> Sequence[Command]:
        """The commands of the first step."""
        return self._steps[0][0]

    def heard(self, reply: Reply, now: float) -> Sequence[Command]:
        """Begin the next step, or answer."""
        word = self._steps[self._at][1]
        if reply.code == RESULT_NOT_FOUND and word:
            self.fail(404, word)
        elif reply.code not in (RESULT_OK, RESULT_DUPLICATE):
            self.refuse(reply.code)
        elif self._at + 1 < len(self._steps):
            self._at += 1
            return self._steps[self._at][0]
        else:
            self.exchange.respond(self._at_end())
        return ()
