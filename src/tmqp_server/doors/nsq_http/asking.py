"""Handlers that ask the broker something and answer in the manner of NSQ."""

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

#: A question, and the word for the answer that something is missing.
Step = tuple[Sequence[Command], str]


class AskingHandler(Handler):
    """Asks questions whose answers come in the order of the questions."""

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """An answer of the broker."""
        return self.heard(effect, now) if isinstance(effect, Reply) else ()

    def heard(self, reply: Reply, now: float) -> Sequence[Command]:
        """An answer; returns what is asked next."""
        raise NotImplementedError

    def fail(self, status: int, word: str) -> None:
        """Answer that it did not go."""
        self.exchange.respond(_MANNER.problem(status, word))

    def refuse(self, code: int) -> None:
        """Answer what a result code of the broker says."""
        self.exchange.respond(_MANNER.refused(code, ""))


class Steps(AskingHandler):
    """Asks one thing after the other, and answers at the end of them, or when one is refused.

    :param steps: makes them for the one who asks; the last command of each answers.
    :param at_end: what is done then; returns the answer.
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
        """The first step."""
        return self._steps[0][0]

    def heard(self, reply: Reply, now: float) -> Sequence[Command]:
        """The next step."""
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
