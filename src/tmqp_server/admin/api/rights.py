"""``/session/rights``: what the client may do, so that pages can hide the rest."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp.constants import MAX_QUEUE_ID, RESULT_OK
from tmqp_server.access.needs import NO_QUEUE
from tmqp_server.access.rights import OF_CHANNELS, OF_ROUTERS, OF_SPACES, RIGHTS
from tmqp_server.admin.api.table import Api
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.engine.commands import AskRight, Command
from tmqp_server.engine.effects import Effect, Reply

__all__ = ["tell_rights"]


def tell_rights(_api: Api, exchange: Exchange) -> Handler:
    """The client's rights for a channel, a queue, a router or a space of cells, and its general
    rights; without a name, the rights that it has for every name.
    """
    request = exchange.wanted
    subjects = {
        OF_CHANNELS: request.query.get("channel", ""),
        OF_ROUTERS: request.query.get("router", ""),
        OF_SPACES: request.query.get("space", ""),
    }
    queue_id = NO_QUEUE
    if "queue" in request.query:
        queue_id = request.count("queue", 0, 0, MAX_QUEUE_ID)
    return _Rights(exchange, subjects, queue_id)


class _Rights(Handler):
    """Asks for one right after another."""

    def __init__(self, exchange: Exchange, subjects: dict[str, str], queue_id: int) -> None:
        super().__init__(exchange)
        self._subjects = subjects
        self._queue_id = queue_id
        self._left = list(reversed(RIGHTS.items()))
        self._found: list[str] = []

    def start(self, now: float) -> Sequence[Command]:
        """Ask for the next one."""
        right, of = self._left[-1]
        queue_id = self._queue_id if of == OF_CHANNELS else NO_QUEUE
        subject = self._subjects.get(of, "")
        return [AskRight(self.exchange.client.number, self, right, subject, queue_id)]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Note the answer, and continue."""
        assert isinstance(effect, Reply), "nothing else was asked"
        right, _ = self._left.pop()
        if effect.code == RESULT_OK:
            self._found.append(right)
        if self._left:
            return self.start(now)
        self.exchange.respond(HttpResponse.json(200, {"rights": self._found}))
        return ()

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do nothing: this request has no deadline."""
        return ()
