"""The broker's events as a stream of server-sent events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.constants import MAX_QUEUE_ID, RESULT_FAILED, RESULT_OK
from tmqp_server.doors.facts import events_by_name, model_of_event
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, of_result, problem
from tmqp_server.doors.http.recall import EventRecall
from tmqp_server.engine.commands import Command, SubscribeEvent
from tmqp_server.engine.effects import Effect, Inform, Reply
from tmqp_server.engine.events import event_name

__all__ = ["event_bytes", "follow"]

_EVENTS: Final = events_by_name()
_MAX_KINDS: Final = 16
_COMMENT: Final = b":\n\n"
#: Sent if some of the events that a client has missed are no longer kept.
_MISSED: Final = b"event: missed\ndata: {}\n\n"
#: The last event of a stream.
_END: Final = b'event: end\ndata: {"reason":"the channel or the queue was removed"}\n\n'


def event_bytes(effect: Inform) -> bytes:
    """A server-sent event: its name, and its body as one line of JSON."""
    body = model_of_event(effect.fact, effect.event).to_json()
    return b"event: %b\ndata: %b\n\n" % (event_name(effect.event).encode(), body)


def follow(exchange: Exchange, recall: EventRecall | None = None) -> Handler:
    """``GET .../events?kind=&channel=&queue=``: a stream that ends with the connection, or with the
    channel or queue that it is about.

    :param recall: keeps events for clients that resume with the field ``Last-Event-ID``.
    """
    request = exchange.wanted
    request.check_query("kind", "channel", "queue")
    if not request.accepts("text/event-stream"):
        raise BadRequest(406, "the answer is text/event-stream")
    names = [name for name in request.query.get("kind", "").split(",") if name]
    if not 0 < len(names) <= _MAX_KINDS:
        raise BadRequest(400, "kind must be the name of an event, or several with commas")
    for name in names:
        if name not in _EVENTS:
            raise BadRequest(400, f"{name[:64]!r} is not an event; there are {', '.join(_EVENTS)}")
    queue_id: int | None = None
    if "queue" in request.query:
        queue_id = request.count("queue", 0, 0, MAX_QUEUE_ID)
    kinds = [_EVENTS[name] for name in dict.fromkeys(names)]
    channel = request.query.get("channel", "")
    return _Follow(exchange, kinds, channel, queue_id, recall or EventRecall())


class _Follow(Handler):
    """One stream; a peer that does not read it is disconnected like any slow reader."""

    def __init__(
        self,
        exchange: Exchange,
        kinds: list[int],
        channel: str,
        queue_id: int | None,
        recall: EventRecall,
    ) -> None:
        super().__init__(exchange)
        self._recall = recall
        self._kinds = kinds
        self._channel = channel
        self._queue_id = queue_id
        self._unanswered = len(kinds)
        self._begun = False

    def start(self, now: float) -> Sequence[Command]:
        number = self.exchange.client.number
        return [
            SubscribeEvent(number, self, kind, self._channel, self._queue_id)
            for kind in self._kinds
        ]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        if not isinstance(effect, Reply):
            return ()
        if effect.code != RESULT_OK:
            # Events that do not exist and events that are not allowed get the same answer (F128).
            if effect.code == RESULT_FAILED:
                answer = problem(403, "these events need a channel or a queue, or a right")
            else:
                answer = of_result(effect.code, "there are too many subscriptions")
            self.exchange.respond(answer, closes=True)
            return ()
        self._unanswered -= 1
        if self._unanswered == 0:
            self.exchange.stream(HttpResponse.stream(b"text/event-stream"))
            self.exchange.send(_COMMENT)
            self._begun = True
            self._catch_up()
            self.due = now + self.exchange.client.limits.event_interval_s
        return ()

    def _catch_up(self) -> None:
        """Send the events that the client missed; report it if some of them are no longer kept."""
        place = (self._kinds, self._channel, self._queue_id)
        self._recall.followed(*place)
        last = self.exchange.wanted.header(b"last-event-id")
        if last is None:
            return
        whole, missed = self._recall.missed(last.decode("latin-1"), *place)
        if not whole:
            self.exchange.send(_MISSED)
        for data in missed:
            self.exchange.send(data)

    def event(self, data: bytes) -> None:
        if self._begun:
            self.exchange.send(data)

    def events_ended(self, event: int) -> None:
        if event in self._kinds:
            self._kinds.remove(event)
        if self._begun and not self._kinds:
            self.exchange.send(_END)
            self.exchange.end()

    def on_deadline(self, now: float) -> Sequence[Command]:
        self.exchange.send(_COMMENT)
        self.due = now + self.exchange.client.limits.event_interval_s
        return ()

    def stop(self) -> None:
        if self._begun:
            self.exchange.end()
