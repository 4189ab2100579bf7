"""How operations are carried out: most ask the broker one thing and show its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tmqp.constants import RESULT_OK
from tmqp_server.admin.permitted import Permitted
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse, of_result
from tmqp_server.engine.commands import Command, Permission
from tmqp_server.engine.effects import Effect, Reply

__all__ = ["Asking", "Telling", "done", "show"]

#: Makes JSON of what the broker answers.
Shape = Callable[[object], object]

#: Sentences for what a code means where nothing better is said.
_WORDS: Final = {
    400: "the request cannot be carried out as it is",
    404: "there is no such thing",
    406: "this cannot be done in the state that it is in",
    481: "it is there already",
    482: "a limit is reached",
    503: "the server is busy, or cannot save",
}


def words_of(code: int) -> str:
    """What a code of the broker means, in general."""
    return _WORDS.get(code, "the broker refused it")


class Asking(Handler):
    """Asks the broker one thing.

    :param make: makes the command, of the session's number and whoever is to be answered.
    :param respond: makes the answer of what the broker has said.
    :param missing: a sentence for 404.
    """

    def __init__(
        self,
        exchange: Exchange,
        make: Callable[[int, object], Command],
        respond: Callable[[object], HttpResponse],
        missing: str = "",
    ) -> None:
        super().__init__(exchange)
        self._command = make(exchange.client.number, self)
        self._respond = respond
        self._missing = missing

    def start(self, now: float) -> Sequence[Command]:
        """Ask."""
        return [self._command]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Show the answer."""
        if isinstance(effect, Reply):
            if effect.code == RESULT_OK:
                self.exchange.respond(self._respond(effect.body))
            else:
                words = self._missing if effect.code == 404 else ""
                self.exchange.respond(of_result(effect.code, words or words_of(effect.code)))
        return ()

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Nothing is waited for."""
        return ()


class Telling(Permitted):
    """Answers with what this door knows, to clients that have a right."""

    def __init__(
        self, exchange: Exchange, permission: Permission, answer: Callable[[float], object]
    ) -> None:
        super().__init__(exchange, permission)
        self._answer = answer

    def permitted(self, now: float) -> None:
        """Answer with JSON."""
        self.exchange.respond(HttpResponse.json(200, self._answer(now)))


def show(shape: Shape) -> Callable[[object], HttpResponse]:
    """An answer with what the broker has said, as JSON."""
    return lambda body: HttpResponse.json(200, shape(body))


def done(status: int = 204) -> Callable[[object], HttpResponse]:
    """An answer that says that it is done."""
    return lambda _: HttpResponse(status)
