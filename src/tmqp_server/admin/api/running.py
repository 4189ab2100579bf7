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

#: Converts an answer of the broker to JSON.
_Shape = Callable[[object], object]

#: Texts for codes, if there is no better one.
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
    """The general meaning of a code of the broker, as text for a problem."""
    return _WORDS.get(code, "the broker refused it")


class AskOnce(Handler):
    """Asks the broker one thing.

    :param make: makes the command from the session's number and the request to be answered.
    :param respond: makes the response from the body of the broker's answer.
    :param missing: the text for a 404; empty for the general one.
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
        """Send the command."""
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
        """Do nothing: this request has no deadline."""
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
    """Answers, or does something, if the client has a right: for a queue, for a channel, or in
    general.

    :param right: one of ``access/rights.py``.
    :param answer: makes the response, and carries out the operation.
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
    """Changes the server, for clients that may manage it; the audit gets the result.

    :param carry_out: makes the change; it may raise :class:`Refused`.
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
    """Shows something of the server to clients that may see it.

    :param permission: the command that asks whether they may.
    """
    return _Telling(exchange, permission(exchange.client.number, None), answer)


Steps = Generator[Command | float, Reply, HttpResponse]


class Refused(Exception):  # noqa: N818 - it is an answer
    """The broker has refused a step.

    :param response: the answer for the client.
    """

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status)
        self.response = response


def need(reply: Reply, missing: str = "") -> Any:
    """The body of a successful reply.

    :param missing: the text for a 404; empty for the general one.
    :raises Refused: when the reply is a refusal.
    """
    if reply.code != RESULT_OK:
        words = missing if reply.code == 404 else ""
        raise Refused(of_result(reply.code, words or words_of(reply.code)))
    return reply.body


class Stepping(Handler):
    """Asks the broker one thing after another.

    :param steps: makes a generator from the session's number and the request to be answered.  It
        yields commands, receives their replies, and returns the response.  A number that it yields
        is a pause in seconds; after it, the generator receives the previous reply again.
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
        """Continue with the reply to a step."""
        if isinstance(effect, Confirm):
            code = RESULT_OK if effect.positive else _CODES.get(effect.reason, 409)
            effect = Reply(effect.session, self, code, effect.reason)
        if not isinstance(effect, Reply):
            return ()
        self._last = effect
        return self._go_on(effect, now)

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Continue after a pause."""
        self.due = math.inf
        return self._go_on(self._last, now)

    def stop(self) -> None:
        """Stop asking, because the session ends."""
        self._steps.close()

    def abandoned(self) -> None:
        """Stop asking, because the client has gone."""
        self._steps.close()


#: The codes for the reasons of negative confirms.
_CODES: Final = {
    "busy": 503,
    "error": 503,
    "storage": 503,
    "limit": 482,
    "unauthorized": 401,
}


def show(shape: _Shape) -> Callable[[object], HttpResponse]:
    """Make the response: 200 with the broker's answer as JSON."""
    return lambda body: HttpResponse.json(200, shape(body))


def done(status: int = 204) -> Callable[[object], HttpResponse]:
    """Make the response: a status without content."""
    return lambda _: HttpResponse(status)
