"""The HTTP door: its routes, and its messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tmqp_server.doors.http.bodies import DOOR_NAME, HttpBodies
from tmqp_server.doors.http.context import HttpContext
from tmqp_server.doors.http.entrance import Entrance
from tmqp_server.doors.http.events import event_bytes, follow
from tmqp_server.doors.http.exchange import Exchange
from tmqp_server.doors.http.json_door import JsonDoor, push_for_node
from tmqp_server.doors.http.json_requests import JSON_V1
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.manner import Manner, is_same_origin
from tmqp_server.doors.http.messages import BadRequest, HttpResponse
from tmqp_server.doors.http.queues import (
    acknowledge,
    cancel,
    look,
    publish,
    read_latest,
    refuse,
    take,
)
from tmqp_server.doors.http.routes import Route
from tmqp_server.doors.http.session import HttpSession
from tmqp_server.doors.http.tally import HttpTally
from tmqp_server.doors.http.websocket import offered_protocols
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import Door, DoorSession, IdSource, QueuesOnly
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Deliver, Inform

__all__ = ["HttpDoor", "queue_routes"]

_QUEUE: Final = "/api/v1/channels/{channel}/queues/{queue:int}"


def queue_routes() -> list[Route]:
    """The routes of the HTTP API for queues."""
    return [
        Route("GET", "/healthz", _say_alive, public=True),
        Route("GET", "/api/v1/events", follow),
        Route("POST", f"{_QUEUE}/messages", publish, overlaps=True, takes_body=True),
        Route("GET", f"{_QUEUE}/messages", look),
        Route("DELETE", f"{_QUEUE}/messages/{{id}}", cancel),
        Route("GET", f"{_QUEUE}/messages/latest", read_latest),
        Route("POST", f"{_QUEUE}/deliveries", take),
        Route("POST", f"{_QUEUE}/deliveries/{{id}}/ack", acknowledge),
        Route("POST", f"{_QUEUE}/deliveries/{{id}}/nack", refuse),
    ]


def _say_alive(exchange: Exchange) -> None:
    exchange.wanted.check_query()
    exchange.respond(HttpResponse(200, b"alive\n", b"text/plain; charset=utf-8"))


class HttpDoor(QueuesOnly):
    """HTTP/1.1, and WebSocket with the protocols of other doors inside.

    :param new_id: makes ids of messages and clients.
    :param limits: the limits of one peer.
    :param wall_clock_offset_s: seconds to add to the engine's time for Unix time.
    :param inner: the doors whose protocols a WebSocket can carry, by subprotocol; if there are any,
        it can also carry ``tmqp.json.v1``.
    :param routes: the routes besides that of the WebSocket; those of the queues if None.
    :param letters: reads messages that arrived through doors of other protocols.
    :param manner: how requests are answered.
    :param door_name: the name of the door to which the messages of clients belong.
    :param tally: counts the requests.
    :param entrance: decides when requests may begin; at once if None.
    """

    def __init__(
        self,
        new_id: IdSource,
        limits: HttpLimits | None = None,
        wall_clock_offset_s: float = 0.0,
        inner: Mapping[str, Door] | None = None,
        routes: Iterable[Route] | None = None,
        letters: Letters | None = None,
        manner: Manner | None = None,
        door_name: str = DOOR_NAME,
        tally: HttpTally | None = None,
        entrance: Entrance | None = None,
    ) -> None:
        super().__init__(HttpBodies())
        self.name = HttpBodies.name
        self.number = HttpBodies.number
        inner = {} if inner is None else inner
        table = list(queue_routes() if routes is None else routes)
        limits = HttpLimits() if limits is None else limits
        letters = Letters() if letters is None else letters
        if inner:
            table.append(Route("GET", "/api/v1/ws", self._upgrade, public=True))
            inner = {**inner, JSON_V1: JsonDoor(new_id, limits, letters, door_name)}
        self.context = HttpContext(
            new_id,
            limits,
            wall_clock_offset_s,
            inner,
            table,
            letters,
            manner,
            door_name,
            tally,
            entrance,
        )

    def open(self, session: int, now: float) -> DoorSession:
        """Open a session for a new connection."""
        return HttpSession(self.context, session, now)

    def _upgrade(self, exchange: Exchange) -> None:
        """``GET .../ws``: speak another door's protocol from here on."""
        exchange.wanted.check_query()
        offered = offered_protocols(exchange.wanted)
        if exchange.http_1_0:
            raise BadRequest(426, "a WebSocket needs HTTP/1.1")
        if exchange.client.client_id and not exchange.asks_who:
            raise BadRequest(409, "the upgrade must be the first request of its connection")
        for protocol in offered:
            if protocol in self.context.inner:
                exchange.upgrade = protocol
                exchange.asks_who = protocol == JSON_V1
                if exchange.asks_who and not is_same_origin(exchange.wanted):
                    raise BadRequest(403, "pages of other origins must not open this WebSocket")
                return
        known = ", ".join(self.context.inner)
        raise BadRequest(400, f"Sec-WebSocket-Protocol must name one of: {known}")

    # -- messages -------------------------------------------------------------------------------

    def encode_delivery(self, effect: Deliver) -> bytes:
        """Never called: HTTP clients have no credit, so they get only messages that they take."""
        raise AssertionError(f"{effect!r} is for a client without credit")

    def encode_event(self, effect: Inform) -> bytes:
        """The bytes of an event in a stream."""
        return event_bytes(effect)

    def encode_for_node(self, command: Command) -> bytes | None:
        """A published message with one hop less to live; other commands are not forwarded."""
        return push_for_node(command, self.context.letters, self.context.door_name)
