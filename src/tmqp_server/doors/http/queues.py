"""Queues over plain HTTP: publish, take, acknowledge, read the latest message."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tmqp.backoff import Backoff
from tmqp.constants import MAX_QUEUE_ID, RESULT_OK, RESULT_UNAUTHORIZED, NoContent
from tmqp.frames import Frame
from tmqp_server.doors.http.contents import (
    MOST_DELAY_MS,
    PublishTimes,
    browsed_item,
    frame_of,
    item_of,
    raw_answer,
    wanted_filter,
    wanted_reason,
)
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import (
    JSON,
    BadRequest,
    HttpResponse,
    as_json,
    of_result,
    problem,
)
from tmqp_server.engine.commands import (
    Acknowledge,
    Browse,
    CancelMessage,
    Command,
    Join,
    Leave,
    Pull,
    Push,
)
from tmqp_server.engine.effects import AnswerPull, Confirm, DeliverPulled, Effect, EndPull, Reply
from tmqp_server.engine.model.snapshots import BrowseSnapshot

__all__ = ["acknowledge", "cancel", "look", "publish", "read_latest", "refuse", "take"]

_RAW: Final = "application/octet-stream"
_DEFAULT_WAIT_S: Final = 10.0
#: Pauses between two looks at an empty queue.
_PAUSES: Final = Backoff(0.05, 0.5, 0.0)
_MAX_UNIX_MS: Final = 1 << 49
_MAX_SEQUENCE: Final = 10**15 - 1
#: How many messages are shown, by default and at most.
_SHOWN: Final = 100
_MOST_SHOWN: Final = 1_000
#: The states of shown messages, as bits of the engine's.
_STATES: Final = {"all": 7, "waiting": 1, "deferred": 2, "in-flight": 4}
#: Reasons of a negative confirm that may pass.
_PASSING: Final = ("busy", "error", "storage")


def _place(exchange: Exchange) -> tuple[str, int]:
    request = exchange.wanted
    queue_id = request.number("queue")
    if queue_id > MAX_QUEUE_ID:
        raise BadRequest(404, f"the largest queue id is {MAX_QUEUE_ID}")
    return request.text("channel"), queue_id


class _Publish(Handler):
    """Pushes one message, and answers when it is confirmed."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        request = exchange.wanted
        client = exchange.client
        request.check_query(
            "id", "priority", "delay_ms", "deliver_at_ms", "expires_ms", "receivers", "wait"
        )
        self._channel, self._queue_id = _place(exchange)
        self._id = request.query.get("id") or client.new_id()
        if self._id in client.confirms:
            raise BadRequest(409, "a message with this id is not confirmed yet")
        high = request.word("priority", ("normal", "high")) == "high"
        delay_ms = request.count("delay_ms", 0, 0, MOST_DELAY_MS)
        self._deliver_at_ms = request.count("deliver_at_ms", 0, 0, _MAX_UNIX_MS)
        if self._deliver_at_ms and "delay_ms" in request.query:
            raise BadRequest(400, "either delay_ms or deliver_at_ms, not both")
        expires_ms = request.count("expires_ms", 0, 0, MOST_DELAY_MS)
        self._wait_s = request.seconds("wait", _DEFAULT_WAIT_S, client.limits.max_wait_s)
        timing = PublishTimes(delay_ms, expires_ms, self._deliver_at_ms)
        self._frame: Frame = frame_of(request, client.client_id, self._id, timing, high=high)
        counts = request.word("receivers", ("no", "yes")) == "yes"
        self._extras = timing.extras(counts_receivers=counts)
        request.body = b""  # the frame has it

    def start(self, now: float) -> Sequence[Command]:
        client = self.exchange.client
        frame = self._frame
        client.confirms[self._id] = self
        self.due = now + self._wait_s
        if self._deliver_at_ms and self._extras is not None:
            unix_ms = int((now + client.offset_s) * 1_000)
            self._extras.delay_ms = max(0, self._deliver_at_ms - unix_ms)
        return [
            Push(
                client.number,
                self._id,
                self._channel,
                self._queue_id,
                frame.high_priority,
                True,
                len(frame.raw),
                frame,
                self._extras,
            )
        ]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        if isinstance(effect, Reply):
            self._answer(of_result(effect.code, "the broker refused the message"))
        elif isinstance(effect, Confirm):
            if effect.positive:
                answer: dict[str, object] = {"id": self._id}
                if effect.receivers >= 0:
                    answer["receivers"] = effect.receivers
                self._answer(HttpResponse.json(201, answer))
            elif effect.reason in _PASSING:
                self._answer(of_result(503, f"the message was not accepted: {effect.reason}"))
            else:
                self._answer(problem(409, f"the message was not accepted: {effect.reason}"))
        return ()

    def on_deadline(self, now: float) -> Sequence[Command]:
        self._answer(HttpResponse.json(202, {"id": self._id}))
        return ()

    def _answer(self, response: HttpResponse) -> None:
        self.exchange.client.confirms.pop(self._id, None)
        self.exchange.respond(response)


class _Cancel(Handler):
    """Removes a deferred message."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._channel, self._queue_id = _place(exchange)
        self._id = exchange.wanted.text("id")

    def start(self, now: float) -> Sequence[Command]:
        number = self.exchange.client.number
        return [CancelMessage(number, self, self._channel, self._queue_id, self._id)]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        if isinstance(effect, Reply):
            if effect.code == RESULT_OK:
                self.exchange.respond(HttpResponse(204))
            else:
                self.exchange.respond(of_result(effect.code, "there is no such deferred message"))
        return ()


class _Peek(Handler):
    """Shows the messages in a queue without taking them."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        request = exchange.wanted
        self._channel, self._queue_id = _place(exchange)
        self._first = request.count("from", 0, 0, _MAX_SEQUENCE)
        self._limit = request.count("max", _SHOWN, 1, _MOST_SHOWN)
        self._states = _STATES[request.word("state", tuple(_STATES))]
        self._id = request.query.get("id", "")
        query = request.query
        self._filter = wanted_filter(
            query.get("filter_language"), query.get("filter"), exchange.client.letters
        )

    def start(self, now: float) -> Sequence[Command]:
        return [
            Browse(
                self.exchange.client.number,
                self,
                self._channel,
                self._queue_id,
                self._first,
                self._limit,
                0,
                self._states,
                self._id,
                self._filter,
            )
        ]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        if isinstance(effect, Reply):
            body = effect.body
            if isinstance(body, BrowseSnapshot):
                client = self.exchange.client
                items = [
                    browsed_item(
                        each,
                        client.letters,
                        hides_source=body.hide_source,
                        offset_s=client.offset_s,
                    )
                    for each in body.items
                ]
                self.exchange.respond(HttpResponse.json(200, {"items": items}))
            else:
                self.exchange.respond(of_result(effect.code, "there is no such queue"))
        return ()


class _Take(Handler):
    """Takes messages out of a pull queue, or reads a cache queue.

    Only clients that have joined the channel may pull.  So the first pull only finds out whether
    the channel exists, without creating it; then the client joins, only for the time of the pull:
    if it stayed without taking deliveries, it would delay the channel's other queues.
    """

    def __init__(self, exchange: Exchange, most: int, wait_s: float, *, settles: bool) -> None:
        super().__init__(exchange)
        self._channel, self._queue_id = _place(exchange)
        self._most = most
        self._wait_s = wait_s
        self._settles = settles
        self._raw = not exchange.wanted.accepts("application/json")
        if self._raw and (not exchange.wanted.accepts(_RAW) or most > 1):
            raise BadRequest(406, f"the answer is JSON, or {_RAW} for one message")
        self._until = 0.0
        self._pauses = 0
        #: A join was asked for since the last pause, and was answered.
        self._joins = False
        self._joined = False
        self._taken = 0
        #: The answer in raw form, until the pull is over.
        self._only: HttpResponse | None = None

    def start(self, now: float) -> Sequence[Command]:
        self._until = now + self._wait_s
        return [self._pull()]

    def _pull(self) -> Command:
        number = self.exchange.client.number
        return Pull(number, self, self._channel, self._queue_id, self._most)

    def _join_and_pull(self) -> Sequence[Command]:
        self._joins = True
        return [Join(self.exchange.client.number, self, self._channel, 0), self._pull()]

    def _leave(self) -> Sequence[Command]:
        """Leave the channel at the end of a pull, if it was joined."""
        if not self._joined:
            return ()
        self._joined = False
        return [Leave(self.exchange.client.number, None, self._channel)]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        if isinstance(effect, DeliverPulled):
            return self._deliver(effect)
        if isinstance(effect, EndPull):
            return self._end(effect.reason, now)
        if isinstance(effect, AnswerPull):
            self._show(effect)
            return self._leave()
        return self._replied(effect.code) if isinstance(effect, Reply) else ()

    def left(self, channel: str) -> None:
        """End the answer: no message follows."""
        if not self._joined or channel.lower() != self._channel.lower():
            return
        self._joined = False
        self._complete(problem(404, "the channel was removed"))

    def _complete(self, otherwise: HttpResponse) -> None:
        """End the answer after the messages that were taken; answer *otherwise* if there are
        none."""
        exchange = self.exchange
        if self._only is not None:
            exchange.respond(self._only)
        elif self._taken:
            exchange.send(b"]}")
            exchange.end()
        else:
            exchange.respond(otherwise)

    def _deliver(self, effect: DeliverPulled) -> Sequence[Command]:
        exchange = self.exchange
        message = effect.message
        self._taken += 1
        if self._raw:
            self._only = raw_answer(
                message, exchange.client.letters, hides_source=effect.hide_source
            )
        else:
            if self._taken == 1:
                exchange.stream(HttpResponse.stream(JSON))
            item = item_of(
                message,
                exchange.client.letters,
                hides_source=effect.hide_source,
                attempt=effect.attempt,
            )
            exchange.send((b'{"items":[' if self._taken == 1 else b",") + as_json(item))
        if not effect.wants_acknowledge:
            return ()
        if self._settles:
            number = exchange.client.number
            return [Acknowledge(number, message.message_id, self._channel, self._queue_id)]
        exchange.client.hold(self._channel, self._queue_id, message.message_id)
        return ()

    def _end(self, reason: str, now: float) -> Sequence[Command]:
        """Handle the end of a pull, or its refusal."""
        exchange = self.exchange
        if reason == NoContent.UNAUTHORIZED and not self._joins:
            return self._join_and_pull()
        if self._taken:
            self._complete(HttpResponse(204))
        elif reason in (NoContent.EMPTY, NoContent.END):
            if now < self._until:
                self._pauses += 1
                self.due = min(now + _PAUSES.delay_s(self._pauses), self._until)
            else:
                self._tell_empty()
        elif reason == NoContent.UNAUTHORIZED:
            exchange.respond(of_result(RESULT_UNAUTHORIZED, ""))
        elif reason in (NoContent.NO_CHANNEL, NoContent.NO_QUEUE):
            exchange.respond(problem(404, "there is no such queue"))
        else:
            words = "the queue's status is not pull: messages cannot be pulled from it"
            exchange.respond(problem(409, words))
        return self._leave()

    def _tell_empty(self) -> None:
        if self._raw:
            self.exchange.respond(HttpResponse(204))
        else:
            self.exchange.respond(HttpResponse.json(200, {"items": []}))

    def _show(self, effect: AnswerPull) -> None:
        """Answer with the message of a cache queue, which stays in the queue."""
        message = effect.message
        letters = self.exchange.client.letters
        if self._raw:
            self.exchange.respond(raw_answer(message, letters, hides_source=False))
        else:
            attempt = max(message.attempts, 1)
            item = item_of(message, letters, hides_source=False, attempt=attempt)
            self.exchange.respond(HttpResponse.json(200, {"items": [item]}))

    def _replied(self, code: int) -> Sequence[Command]:
        """Handle the answer to the join, or that of an empty cache queue."""
        if self._joins and not self._joined and code == RESULT_OK:
            self._joined = True
            return ()  # the pull is behind the join
        if code == RESULT_UNAUTHORIZED and not self._joins:
            return self._join_and_pull()
        self.exchange.respond(of_result(code, "there is no message"))
        return self._leave()

    def on_deadline(self, now: float) -> Sequence[Command]:
        self.due = math.inf
        self._joins = False
        return [self._pull()]


def publish(exchange: Exchange) -> Handler:
    """``POST .../messages``: the body is the payload."""
    return _Publish(exchange)


def cancel(exchange: Exchange) -> Handler:
    """``DELETE .../messages/{id}``: remove a deferred message that is not due yet."""
    exchange.wanted.check_query()
    return _Cancel(exchange)


def look(exchange: Exchange) -> Handler:
    """``GET .../messages``: show the messages in a queue."""
    exchange.wanted.check_query("from", "max", "state", "id", "filter", "filter_language")
    return _Peek(exchange)


def take(exchange: Exchange) -> Handler:
    """``POST .../deliveries``: take messages."""
    request = exchange.wanted
    limits = exchange.client.limits
    request.check_query("max", "wait", "ack")
    if len(exchange.client.deliveries) >= limits.max_held_deliveries:
        raise BadRequest(429, "acknowledge some of the messages that you have taken")
    most = request.count("max", 1, 1, limits.max_deliveries)
    wait_s = request.seconds("wait", 0.0, limits.max_wait_s)
    settles = request.word("ack", ("auto", "manual")) == "auto"
    return _Take(exchange, most, wait_s, settles=settles)


def read_latest(exchange: Exchange) -> Handler:
    """``GET .../messages/latest``: show the message of a cache queue."""
    exchange.wanted.check_query()
    # With a count of 0, a pull queue returns nothing.
    return _Take(exchange, 0, 0.0, settles=True)


def acknowledge(exchange: Exchange) -> Handler:
    """``POST .../deliveries/{id}/ack``."""
    exchange.wanted.check_query()
    return _Answer(exchange, "")


def refuse(exchange: Exchange) -> Handler:
    """``POST .../deliveries/{id}/nack?reason=``."""
    request = exchange.wanted
    request.check_query("reason")
    return _Answer(exchange, wanted_reason(request.query.get("reason")))


class _Answer(Handler):
    """A consumer's acknowledgement or refusal of a delivery; the broker does not answer it."""

    def __init__(self, exchange: Exchange, reason: str) -> None:
        super().__init__(exchange)
        self._reason = reason
        self._channel, self._queue_id = _place(exchange)
        self._id = exchange.wanted.text("id")
        if not exchange.client.release(self._channel, self._queue_id, self._id):
            raise BadRequest(404, "this connection has not taken such a message")

    def start(self, now: float) -> Sequence[Command]:
        self.exchange.respond(HttpResponse(204))
        return [
            Acknowledge(
                self.exchange.client.number,
                self._id,
                self._channel,
                self._queue_id,
                not self._reason,
                self._reason,
            )
        ]
