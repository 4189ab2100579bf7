"""``/consumers``: what clients ask of consumers that outlive a connection (``consuming.py``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from tmqp.constants import (
    MAX_QUEUE_ID,
    PUT_BACK_START,
    RESULT_FORBIDDEN,
    RESULT_NOT_FOUND,
    RESULT_OK,
)
from tmqp_server.access.rights import JOIN
from tmqp_server.admin.api.consuming import (
    DEFAULT_WINDOW,
    IDLE_S,
    LONGEST_IDLE_S,
    MOST_ANSWERS,
    MOST_WINDOW,
    NO_CONSUMER,
    OUTCOMES,
    DeliveryAnswer,
    HttpConsumer,
)
from tmqp_server.admin.api.running import words_of
from tmqp_server.admin.api.table import Api, Operation, body_of, integer, whole_of
from tmqp_server.admin.options import ADMIN
from tmqp_server.doors.http.contents import (
    MOST_DELAY_MS,
    PUT_BACK_PLACES,
    wanted_filter,
    wanted_reason,
)
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, of_result
from tmqp_server.engine.commands import (
    Acknowledge,
    AskRight,
    Command,
    Disconnect,
    Extend,
    Grant,
    Join,
    Leave,
    Release,
    Terms,
)
from tmqp_server.engine.effects import (
    Effect,
    Reply,
)

__all__ = ["CONSUMER_OPERATIONS"]

_MOST_MESSAGES: Final = 100
_MOST_WAIT_MS: Final = 60_000
#: Seconds to wait for an answer that the broker usually gives at once.
_PATIENCE_S: Final = 10.0
_LIMIT: Final = 482


class _Asking(Handler):
    """Asks for the right to join after the commands of the consumer: its answer follows theirs."""

    def __init__(self, exchange: Exchange, channel: str) -> None:
        super().__init__(exchange)
        self._channel = channel

    def _ask(self) -> Command:
        return AskRight(self.exchange.client.number, self, JOIN, self._channel)

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Take the broker's answer about the right."""
        if not isinstance(effect, Reply):
            return ()
        return self.answered(effect.code, now)

    def answered(self, code: int, now: float) -> Sequence[Command]:
        """Continue: the broker has answered about the right, and so everything that was asked
        before.
        """
        raise NotImplementedError

    def _refuse(self, code: int, words: str = "") -> None:
        self.exchange.respond(of_result(code, words or words_of(code)))

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do nothing: this request has no deadline."""
        return ()


# --- Create -------------------------------------------------------------------------------------


class _Create(_Asking):
    """Logs a consumer in and lets it join its channel."""

    def __init__(self, api: Api, exchange: Exchange) -> None:
        given = body_of(
            exchange.wanted,
            {
                "channel": str,
                "window": int,
                "ack_timeout_ms": int,
                "idle_s": int,
                "filter": str,
                "filter_language": str,
            },
        )
        channel = given.get("channel", "")
        if not channel:
            raise BadRequest(422, "channel must name a channel")
        super().__init__(exchange, channel)
        self._idle_s = whole_of(given, "idle_s", IDLE_S, 1, LONGEST_IDLE_S)
        window = whole_of(given, "window", DEFAULT_WINDOW, 1, MOST_WINDOW)
        timeout_ms = whole_of(given, "ack_timeout_ms", 0, 0, MOST_DELAY_MS)
        self._terms = Terms(window, timeout_ms, PUT_BACK_START)
        self._filter = wanted_filter(
            given.get("filter_language"), given.get("filter"), exchange.client.letters, 422
        )
        self._api = api
        self._consumer: HttpConsumer | None = None
        self._joins = False
        self._until = math.inf

    def start(self, now: float) -> Sequence[Command]:
        """Log in, and ask for the right to join."""
        exchange = self.exchange
        self._until = now + _PATIENCE_S
        consumer = self._api.consumers.open(
            exchange.client, self._channel, float(self._idle_s), now
        )
        if consumer is None:
            self._refuse(_LIMIT, "too many consumers: close some")
            return ()
        self._consumer = consumer
        consumer.waiter = self
        return [
            exchange.client.introduce(consumer.number, exchange.wanted, ADMIN, now),
            self._ask(),
        ]

    def answered(self, code: int, now: float) -> Sequence[Command]:
        """Join after the log-in; answer after the join."""
        consumer = self._consumer
        assert consumer is not None, "it was opened"
        if consumer.over or code != RESULT_OK:
            return self._give_up(consumer, code if code != RESULT_OK else consumer.code)
        if not self._joins:
            self._joins = True
            number = consumer.number
            join = Join(number, consumer, self._channel, 0, self._filter, self._terms, False, True)
            return [join, self._ask()]
        return self._look(consumer, now)

    def _look(self, consumer: HttpConsumer, now: float) -> Sequence[Command]:
        if consumer.code < 0 and now < self._until:
            self.due = self._until
            return ()
        self.due = math.inf
        consumer.waiter = None
        if consumer.code != RESULT_OK:
            return self._give_up(consumer, 503 if consumer.code < 0 else consumer.code)
        self.exchange.respond(HttpResponse.json(201, _shown(consumer, now)))
        return ()

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Answer: the join was answered, or the time is over."""
        assert self._consumer is not None, "it was opened"
        return self._look(self._consumer, now)

    def _give_up(self, consumer: HttpConsumer, code: int) -> Sequence[Command]:
        consumer.end()
        words = "there is no such channel" if code == RESULT_NOT_FOUND else ""
        self._refuse(code, words)
        return [Disconnect(consumer.number)]


def _shown(consumer: HttpConsumer, now: float) -> dict[str, object]:
    return {
        "id": consumer.name,
        "channel": consumer.channel,
        "waiting": len(consumer.waiting),
        "idle_s": int(consumer.idle_s),
        "ends_in_s": max(0, int(consumer.used_s + consumer.idle_s - now)),
    }


# --- Fetch --------------------------------------------------------------------------------------


class _Fetch(_Asking):
    """Grants the consumer credit and answers with the messages that have arrived."""

    def __init__(self, exchange: Exchange, consumer: HttpConsumer, most: int, wait_ms: int) -> None:
        super().__init__(exchange, consumer.channel)
        self._consumer = consumer
        self._most = most
        self._wait_s = wait_ms / 1_000
        self._until = 0.0

    def start(self, now: float) -> Sequence[Command]:
        """Ask for the right to join again: a client that has lost it gets no more messages."""
        consumer = self._consumer
        self._until = now + self._wait_s
        consumer.used_s = max(consumer.used_s, self._until)
        consumer.tell()  # whoever has waited until now gets nothing
        consumer.waiter = self
        return [self._ask()]

    def answered(self, code: int, now: float) -> Sequence[Command]:
        """Grant credit for the missing messages."""
        if code != RESULT_OK:
            self._refuse(code)
            return ()
        self.due = now
        credit = self._most - len(self._consumer.waiting)
        if credit <= 0:
            return ()
        return [Grant(self._consumer.number, self._channel, credit)]

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Answer if a message has arrived, the time is over, or another request has replaced this
        one.
        """
        consumer = self._consumer
        replaced = consumer.waiter is not self
        if not (consumer.waiting or consumer.over or replaced) and now < self._until:
            self.due = self._until
            return ()
        self.due = math.inf
        if replaced:
            self.exchange.respond(HttpResponse.json(200, {"items": []}))
            return ()
        consumer.waiter = None
        consumer.used_s = now
        if consumer.over and not consumer.waiting:
            self._refuse(RESULT_NOT_FOUND, NO_CONSUMER)
            return ()
        shown, consumer.waiting = consumer.waiting[: self._most], consumer.waiting[self._most :]
        body = b'{"items":[%b]}' % b",".join([each[3] for each in shown])
        self.exchange.respond(HttpResponse(200, body, b"application/json"))
        return [Grant(consumer.number, self._channel, 0)]

    def abandoned(self) -> None:
        """Leave messages that arrive later to the next fetch."""
        if self._consumer.waiter is self:
            self._consumer.waiter = None


def _fetch(api: Api, exchange: Exchange) -> Handler:
    consumer = _own(api, exchange)
    most = exchange.wanted.count("max", 10, 1, _MOST_MESSAGES)
    return _Fetch(exchange, consumer, most, exchange.wanted.count("wait_ms", 0, 0, _MOST_WAIT_MS))


def _own(api: Api, exchange: Exchange) -> HttpConsumer:
    consumer = api.consumers.find(exchange.wanted.text("consumer"), exchange.client.proof)
    consumer.used_s = max(consumer.used_s, exchange.now)
    return consumer


# --- Answer -------------------------------------------------------------------------------------


class _Settle(_Asking):
    """Settles or extends deliveries, as each item of the request says."""

    def __init__(self, exchange: Exchange, consumer: HttpConsumer, items: list[Any]) -> None:
        super().__init__(exchange, consumer.channel)
        self._answers: list[DeliveryAnswer] = []
        self._commands = [self._command(consumer, each) for each in items]

    def _command(self, consumer: HttpConsumer, item: Any) -> Command:
        if not isinstance(item, dict):
            raise BadRequest(422, "each of the items must be an object")
        known = ("id", "queue", "outcome", "reason", "put_back", "delay_ms", "timeout_ms")
        for key in item:
            if key not in known:
                raise BadRequest(422, f"an item has no member {key[:64]!r}: {', '.join(known)}")
        name = _text(item, "id", "")
        queue_id = whole_of(item, "queue", 0, 0, MAX_QUEUE_ID)
        outcome = _text(item, "outcome", "ack")
        if not name or outcome not in OUTCOMES:
            words = f"each item needs an id, and outcome is one of {', '.join(OUTCOMES)}"
            raise BadRequest(422, words)
        answer = DeliveryAnswer(queue_id, name)
        self._answers.append(answer)
        place = (consumer.channel, queue_id)
        number = consumer.number
        if outcome == "extend":
            timeout_ms = whole_of(item, "timeout_ms", 0, 1, MOST_DELAY_MS)
            return Extend(number, answer, name, *place, timeout_ms)
        if outcome == "release":
            put_back = PUT_BACK_PLACES.get(_text(item, "put_back", "end"))
            if put_back is None:
                raise BadRequest(422, f"put_back must be one of {', '.join(PUT_BACK_PLACES)}")
            delay_ms = whole_of(item, "delay_ms", 0, 0, MOST_DELAY_MS)
            return Release(number, answer, name, *place, put_back, delay_ms)
        reason = "" if outcome == "ack" else wanted_reason(_text(item, "reason", ""), 422)
        return Acknowledge(number, name, *place, not reason, reason, request=answer)

    def start(self, now: float) -> Sequence[Command]:
        """Send all the answers for deliveries."""
        return [*self._commands, self._ask()]

    def answered(self, code: int, now: float) -> Sequence[Command]:
        """Report each result; it does not matter here whether the client may still join."""
        found = [
            {
                "id": each.message_id,
                "queue": each.queue_id,
                "code": RESULT_NOT_FOUND if each.code == RESULT_FORBIDDEN else each.code,
            }
            for each in self._answers
        ]
        self.exchange.respond(HttpResponse.json(200, {"items": found}))
        return ()


def _text(item: dict[str, Any], name: str, default: str) -> str:
    value = item.get(name, default)
    if not isinstance(value, str):
        raise BadRequest(422, f"{name} must be a string")
    return value.encode("utf-8", "replace").decode()


def _settle(api: Api, exchange: Exchange) -> Handler:
    consumer = _own(api, exchange)
    items = body_of(exchange.wanted, {"items": list}).get("items", [])
    if not 0 < len(items) <= MOST_ANSWERS:
        raise BadRequest(422, f"items must be a list of 1 to {MOST_ANSWERS} objects")
    return _Settle(exchange, consumer, items)


# --- Look and close -----------------------------------------------------------------------------


class _Close(Handler):
    """Ends a consumer; its unacknowledged messages return to their queues."""

    def __init__(self, exchange: Exchange, consumer: HttpConsumer) -> None:
        super().__init__(exchange)
        self._consumer = consumer

    def start(self, now: float) -> Sequence[Command]:
        """Answer at once, and disconnect the consumer."""
        self.exchange.respond(HttpResponse(204))
        return [Disconnect(self._consumer.number)]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Do nothing: the broker does not answer."""
        return ()

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do nothing: this request has no deadline."""
        return ()


def _close(api: Api, exchange: Exchange) -> Handler:
    consumer = _own(api, exchange)
    consumer.end()
    return _Close(exchange, consumer)


def _tell(api: Api, exchange: Exchange) -> None:
    consumer = api.consumers.find(exchange.wanted.text("consumer"), exchange.client.proof)
    exchange.respond(HttpResponse.json(200, _shown(consumer, exchange.now)))


def _tell_all(api: Api, exchange: Exchange) -> None:
    found = [_shown(each, exchange.now) for each in api.consumers.of(exchange.client.proof)]
    exchange.respond(HttpResponse.json(200, {"items": found}))


CONSUMER_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="createConsumer",
        method="POST",
        path="/consumers",
        summary="Create a consumer of a channel's queues that lasts between requests.",
        begin=_Create,
        rights=("join",),
        commands=(AskRight, Join, Leave),
        body="NewConsumer",
        answer="HttpConsumer",
        status=201,
        failures=(404, 409, 422, 503),
        cli=("sub",),
        waits=True,
    ),
    Operation(
        name="listConsumersOfClient",
        method="GET",
        path="/consumers",
        summary="The client's own consumers.",
        begin=_tell_all,
        answer="HttpConsumers",
    ),
    Operation(
        name="getConsumer",
        method="GET",
        path="/consumers/{consumer}",
        summary="One of the client's own consumers.",
        begin=_tell,
        answer="HttpConsumer",
        failures=(404,),
    ),
    Operation(
        name="fetch",
        method="GET",
        path="/consumers/{consumer}/messages",
        summary="Get messages; they are in flight to the consumer until it settles them.",
        begin=_fetch,
        commands=(AskRight, Grant),
        query=(
            integer("max", "How many.", 1, _MOST_MESSAGES, 10),
            integer("wait_ms", "Milliseconds to wait for the first message.", 0, _MOST_WAIT_MS, 0),
        ),
        answer="Fetched",
        failures=(404,),
        waits=True,
    ),
    Operation(
        name="settle",
        method="POST",
        path="/consumers/{consumer}/acknowledges",
        summary="Acknowledge, refuse or release messages, or extend their timeout.",
        begin=_settle,
        commands=(Acknowledge, AskRight, Extend, Release),
        body="Answers",
        answer="Answered",
        failures=(404, 422),
    ),
    Operation(
        name="closeConsumer",
        method="DELETE",
        path="/consumers/{consumer}",
        summary="End a consumer; its unacknowledged messages go to others.",
        begin=_close,
        commands=(Leave,),
        status=204,
        failures=(404,),
    ),
)
