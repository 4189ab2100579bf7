"""``/events`` and ``/live``: events as they happen, and changes once a second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from tmqp.constants import MAX_QUEUE_ID, RESULT_OK
from tmqp_server.admin.api.overview import Overview
from tmqp_server.admin.api.running import words_of
from tmqp_server.admin.api.shapes import queue_item
from tmqp_server.admin.api.table import Api, Operation, integer, text
from tmqp_server.doors.http.events import follow
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, as_json, of_result
from tmqp_server.engine.commands import Command, SeeServer, SubscribeEvent, SurveyQueues
from tmqp_server.engine.effects import Effect, Reply
from tmqp_server.engine.model.snapshots import QueueSnapshot

__all__ = ["LIVE_OPERATIONS"]

_OVERVIEW: Final = "overview"
_QUEUE: Final = "queue:"
_MOST_QUEUES: Final = 32
#: The most digits of a queue id in a topic, with leading zeros.
_MOST_DIGITS: Final = 9
_EVERY_S: Final = 1.0
_COMMENT_S: Final = 15.0
_COMMENT: Final = b":\n\n"
_END: Final = b'event: end\ndata: {"reason":"a right was taken away"}\n\n'


def _read_topics(value: str) -> tuple[bool, list[tuple[str, int]]]:
    """Whether the client wants the overview, and which queues it wants.

    :raises BadRequest: when a topic is unknown, or there are none or too many.
    """
    overview = False
    places: dict[tuple[str, int], None] = {}
    for each in [topic for topic in value.split(",") if topic]:
        channel, slash, number = each.removeprefix(_QUEUE).rpartition("/")
        if each == _OVERVIEW:
            overview = True
        elif each.startswith(_QUEUE) and channel and slash and _is_queue_id(number):
            places[(channel, int(number))] = None
        else:
            raise BadRequest(
                400, f"{each[:64]!r} is not a topic: use overview or queue:CHANNEL/QUEUE"
            )
    if len(places) > _MOST_QUEUES:
        raise BadRequest(400, f"topics has at most {_MOST_QUEUES} queues")
    if not places and not overview:
        raise BadRequest(400, "topics must name overview, or queues as queue:CHANNEL/QUEUE")
    return overview, list(places)


def _is_queue_id(number: str) -> bool:
    if not (number.isascii() and number.isdigit()) or len(number) > _MOST_DIGITS:
        return False
    return int(number) <= MAX_QUEUE_ID


class _Live(Handler):
    """Reports once a second what has changed in the topics of a client.

    Each second it asks for the rights again: first for the overview, then for the queues.
    """

    def __init__(self, api: Api, exchange: Exchange) -> None:
        super().__init__(exchange)
        if not exchange.wanted.accepts("text/event-stream"):
            raise BadRequest(406, "the answer is text/event-stream")
        self._api = api
        self._wants_overview, self._places = _read_topics(exchange.wanted.query.get("topics", ""))
        self._overview: Overview | None = None
        #: What was sent last, by the event and its subject.
        self._told: dict[object, dict[str, Any]] = {}
        self._begun = False
        self._round_s = 0.0
        self._said_s = 0.0

    def start(self, now: float) -> Sequence[Command]:
        """The first round."""
        return self._round(now)

    def _round(self, now: float) -> Sequence[Command]:
        self._round_s = now
        self.due = math.inf
        if self._wants_overview:
            return [SeeServer(self.exchange.client.number, self)]
        return self._ask_queues(now)

    def _ask_queues(self, now: float) -> Sequence[Command]:
        if not self._places:
            return self._rest(now)
        return [SurveyQueues(self.exchange.client.number, self, places=self._places)]

    def _rest(self, now: float) -> Sequence[Command]:
        """End the round, and plan the next one."""
        if now - self._said_s >= _COMMENT_S:
            self._say(_COMMENT, now)
        self.due = max(self._round_s + _EVERY_S, now)
        return ()

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Continue with the round, or end if a right is missing."""
        if not isinstance(effect, Reply):
            return ()
        if effect.code != RESULT_OK:
            if self._begun:
                self.exchange.send(_END)
                self.exchange.end()
            else:
                self.exchange.respond(of_result(effect.code, words_of(effect.code)), closes=True)
            return ()
        if not isinstance(effect.body, list):
            self._overview = self._api.overviews.take(now, self.exchange.client.offset_s)
            self.due = now
            return ()
        offset_s = self.exchange.client.offset_s
        found = {(each.channel, each.queue_id): each for each in effect.body}
        for place in self._places:
            item = found.get(place)
            shown: dict[str, Any] = {"gone": True}
            if isinstance(item, QueueSnapshot):
                shown = {**queue_item(item, now, offset_s), "gone": False}
                del shown["options"]
            self._tell("queue", place, {"channel": place[0], "queue": place[1], **shown}, now)
        return self._rest(now)

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Continue counting for the overview, or begin the next round."""
        overview = self._overview
        if overview is None:
            return self._round(now)
        self.due = overview.go_on(now)
        if overview.value is None:
            return ()
        self._overview = None
        self._tell(_OVERVIEW, None, dict(overview.value), now)
        return self._ask_queues(now)

    def _tell(self, event: str, about: object, value: dict[str, Any], now: float) -> None:
        """Send what has changed; the first time, send everything."""
        before = self._told.get((event, about))
        self._told[(event, about)] = value
        if before is not None:
            named = ("channel", "queue") if event == "queue" else ()
            changed = {key: each for key, each in value.items() if before.get(key) != each}
            if not changed:
                return
            value = {**{key: value[key] for key in named}, **changed}
        self._say(b"event: %b\ndata: %b\n\n" % (event.encode(), as_json(value)), now)

    def _say(self, data: bytes, now: float) -> None:
        if not self._begun:
            self._begun = True
            self.exchange.stream(HttpResponse.stream(b"text/event-stream"))
        self._said_s = now
        self.exchange.send(data)

    def stop(self) -> None:
        """End the stream, because the server stops."""
        if self._begun:
            self.exchange.end()


LIVE_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="followEvents",
        method="GET",
        path="/events",
        summary="Events of the broker, as a stream of server-sent events.",
        begin=lambda api, exchange: follow(exchange, api.kept),
        rights=("subscribe",),
        commands=(SubscribeEvent,),
        query=(
            text("kind", "The events, separated by commas."),
            text("channel", "Only events of this channel."),
            integer("queue", "Only events of this queue.", 0, MAX_QUEUE_ID, 0),
        ),
        answer="Events",
        kind="text/event-stream",
        failures=(406, 409),
        cli=("events",),
        waits=True,
    ),
    Operation(
        name="followNumbers",
        method="GET",
        path="/live",
        summary="Changes of the overview and of queues, once a second, as server-sent events.",
        begin=_Live,
        rights=("see-server", "see-channel"),
        commands=(SeeServer, SurveyQueues),
        query=(text("topics", "`overview` and `queue:CHANNEL/QUEUE`, with commas."),),
        answer="Events",
        kind="text/event-stream",
        failures=(406,),
        waits=True,
    ),
)
