"""How operations are carried out: most ask the broker one thing and show its answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from tmqp.constants import RESULT_OK
from tmqp_server.admin.api.overview import turn_of
from tmqp_server.admin.api.table import Api
from tmqp_server.admin.permitted import Permitted
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, of_result, problem
from tmqp_server.engine.commands import AskRight, Command, Manage, Permission, SeeServer
from tmqp_server.engine.effects import Confirm, Effect, Reply

__all__ = [
    "AskOnce",
    "Refused",
    "Stepping",
    "Steps",
    "done",
    "for_observers",
    "for_right",
    "managing",
    "need",
    "show",
    "words_of",
]

#: Makes JSON of what the broker answers.
_Shape = Callable[[object], object]

#: Sentences for what a code means where nothing better is said.
_WORDS: Final = {
    400: "the broker does not accept the request",
    404: "it does not exist",
    406: "its state does not allow this",
    481: "it already exists",
    482: "a limit is reached",
    501: "the server is not set up for this: it has no data directory, or [http] allows no calls",
    503: "the server is busy, or cannot save",
}


def words_of(code: int) -> str:
    """What a code of the broker means, in general."""
    return _WORDS.get(code, "the broker refused it")


class AskOnce(Handler):
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


class _Telling(Permitted):
    """Answers with what this door knows, to clients that have a right."""

    def __init__(
        self, exchange: Exchange, permission: Permission, answer: Callable[[float], object]
    ) -> None:
        super().__init__(exchange, permission)
        self._answer = answer

    def permitted(self, now: float) -> None:
        """Answer with JSON."""
        self.exchange.respond(HttpResponse.json(200, self._answer(now)))


def for_right(
    exchange: Exchange,
    right: str,
    answer: Callable[[object], HttpResponse],
    channel: str = "",
    queue_id: int = -1,
) -> Handler:
    """Does or tells something, for clients that have a right: in a queue, or at all.

    :param right: one of ``access/rights.py``.
    """
    return AskOnce(
        exchange,
        lambda session, request: AskRight(session, request, right, channel, queue_id),
        answer,
    )


def managing(
    api: Api,
    exchange: Exchange,
    manage: Manage,
    carry_out: Callable[[], HttpResponse],
) -> Handler:
    """Does something to the server, for clients that may; the audit tells how that ended.

    :param carry_out: does it; it may raise :class:`Refused`.
    """

    def make(_session: int, request: object) -> Command:
        manage.request = request
        return manage

    def answer(_body: object) -> HttpResponse:
        try:
            response = carry_out()
        except Refused as refused:
            response = refused.response
        code = 200 if response.status < 300 else response.status
        turn_of(api.world).hub.carried_out(manage, code)
        return response

    return AskOnce(exchange, make, answer)


def for_observers(
    exchange: Exchange,
    answer: Callable[[float], object],
    permission: type[Permission] = SeeServer,
) -> Handler:
    """Tells something of the server, to clients that may see it.

    :param permission: asks whether they may.
    """
    return _Telling(exchange, permission(exchange.client.number, None), answer)


Steps = Generator[Command | float, Reply, HttpResponse]


class Refused(Exception):  # noqa: N818 - it is an answer
    """The broker has refused a step.

    :param response: what the client is told.
    """

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status)
        self.response = response


def need(reply: Reply, missing: str = "") -> Any:
    """What the broker has answered, if that is no refusal.

    :param missing: a sentence for 404.
    :raises Refused: else.
    """
    if reply.code != RESULT_OK:
        words = missing if reply.code == 404 else ""
        raise Refused(of_result(reply.code, words or words_of(reply.code)))
    return reply.body


class Stepping(Handler):
    """Asks the broker one thing after the other.

    :param steps: of the session's number and whoever is to be answered, makes what yields commands,
        is sent their replies, and returns the answer; a number that it yields is a pause in
        seconds, behind which it is sent the reply of before.
    """

    def __init__(self, exchange: Exchange, steps: Callable[[int, object], Steps]) -> None:
        super().__init__(exchange)
        self._steps = steps(exchange.client.number, self)
        self._last = Reply(exchange.client.number, self, RESULT_OK)

    def start(self, now: float) -> Sequence[Command]:
        """Make the first step."""
        return self._go_on(None, now)

    def _go_on(self, reply: Reply | None, now: float) -> Sequence[Command]:
        try:
            step = next(self._steps) if reply is None else self._steps.send(reply)
        except StopIteration as end:
            self.exchange.respond(end.value)
        except Refused as refused:
            self.exchange.respond(refused.response)
        except BadRequest as error:
            self.exchange.respond(problem(error.status, error.detail))
        else:
            if isinstance(step, Command):
                return [step]
            self.due = now + step
        return ()

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """A step was answered."""
        if isinstance(effect, Confirm):
            code = RESULT_OK if effect.positive else _CODES.get(effect.reason, 409)
            effect = Reply(effect.session, self, code, effect.reason)
        if not isinstance(effect, Reply):
            return ()
        self._last = effect
        return self._go_on(effect, now)

    def on_deadline(self, now: float) -> Sequence[Command]:
        """A pause is over."""
        self.due = math.inf
        return self._go_on(self._last, now)

    def stop(self) -> None:
        """Nothing more is asked."""
        self._steps.close()

    def abandoned(self) -> None:
        """Nothing more is asked."""
        self._steps.close()


#: What a negative confirm of a reason means.
_CODES: Final = {
    "busy": 503,
    "error": 503,
    "storage": 503,
    "limit": 482,
    "unauthorized": 401,
}


def show(shape: _Shape) -> Callable[[object], HttpResponse]:
    """An answer with what the broker has said, as JSON."""
    return lambda body: HttpResponse.json(200, shape(body))


def done(status: int = 204) -> Callable[[object], HttpResponse]:
    """An answer that says that it is done."""
    return lambda _: HttpResponse(status)
