"""Publishing by HTTP: ``/pub`` and ``/mpub`` (N114 to N116).

A body is checked as a whole before any of it is published.  An ``/mpub`` is published in portions,
each after the previous one is confirmed.  So many small messages take no more memory than the body,
and other clients are served in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, final

from tmqp_server.doors.http.exchange import Exchange
from tmqp_server.doors.http.messages import BadRequest
from tmqp_server.doors.nsq.message import NsqIds, NsqRun, id_of, size_of, source_of
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_server.doors.nsq_http.asking import AskingHandler
from tmqp_server.doors.nsq_http.manner import done, name_argument
from tmqp_server.doors.nsq_world import NsqWorld, TopicShapes
from tmqp_server.engine.commands import Command, Push, PushRun, RunNotes
from tmqp_server.engine.effects import Confirm, ConfirmRun, Effect, Reply
from tmqp_wires.nsq.identify import ServerTerms
from tmqp_wires.nsq.writing import message_frame

__all__ = ["BodyPortions", "PublishHandler", "Publisher"]

#: Messages, and about how many bytes, that wait for their confirms at a time.
_PORTION: Final = 1_000
_PORTION_BYTES: Final = 1_048_576
_FALSE: Final = ("false", "0")
_SIZE: Final = 4
_NS: Final = 1_000_000_000
#: The form of a binary body cannot hold more messages.
_LEAST_BYTES: Final = 5


@final
class BodyPortions:
    """Divides a body into portions of messages.

    :param binary: each message is preceded by its size; otherwise messages are lines.
    """

    __slots__ = ("_at", "_binary", "_data", "_left")

    def __init__(self, data: bytes, terms: ServerTerms, *, binary: bool) -> None:
        self._data = data
        self._binary = binary
        self._at = 0
        self._left = _checked(data, terms) if binary else 0
        if binary:
            self._at = _SIZE
        else:
            _check_lines(data, terms.max_msg_size)

    def next(self) -> list[bytes]:
        """The next portion; empty at the end."""
        found: list[bytes] = []
        size = 0
        while len(found) < _PORTION and size < _PORTION_BYTES:
            body = self._next_sized() if self._binary else self._next_line()
            if body is None:
                break
            found.append(body)
            size += len(body)
        return found

    def _next_sized(self) -> bytes | None:
        if not self._left:
            return None
        self._left -= 1
        begin = self._at + _SIZE
        end = begin + int.from_bytes(self._data[self._at : begin], "big")
        self._at = end
        return self._data[begin:end]

    def _next_line(self) -> bytes | None:
        """The next line that is not empty; a CR at its end belongs to it."""
        data = self._data
        while self._at < len(data):
            end = data.find(b"\n", self._at)
            end = len(data) if end < 0 else end
            begin, self._at = self._at, end + 1
            if end > begin:
                return data[begin:end]
        return None


def _check_lines(data: bytes, most: int) -> None:
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        if end - at > most:
            raise BadRequest(413, "MSG_TOO_BIG")
        at = end + 1


def _checked(data: bytes, terms: ServerTerms) -> int:
    """The number of messages in a binary body.

    :raises BadRequest: when the body is invalid, with the word of the TCP protocol's error.
    """
    if len(data) < _SIZE:
        raise BadRequest(413, "BAD_BODY")
    count = int.from_bytes(data[:_SIZE], "big", signed=True)
    if not 0 < count <= (terms.max_body_size - _SIZE) // _LEAST_BYTES:
        raise BadRequest(413, "BAD_BODY")
    at = _SIZE
    for _ in range(count):
        size = int.from_bytes(data[at : at + _SIZE], "big", signed=True)
        at += _SIZE
        if at > len(data) or not 0 < size <= terms.max_msg_size or at + size > len(data):
            raise BadRequest(413, "BAD_MESSAGE")
        at += size
    return count


@final
class Publisher:
    """Publishes for the routes ``/pub`` and ``/mpub`` of one door.

    :ivar notes: the broker's notes about runs.
    """

    __slots__ = ("ids", "notes", "offset_s", "shapes", "terms", "world")

    def __init__(
        self,
        world: NsqWorld,
        terms: ServerTerms,
        shapes: TopicShapes,
        ids: NsqIds,
        offset_s: float,
    ) -> None:
        self.world = world
        self.terms = terms
        self.shapes = shapes
        self.ids = ids
        self.offset_s = offset_s
        self.notes = RunNotes()

    def pub(self, exchange: Exchange) -> PublishHandler:
        """``POST /pub?topic=&defer=``: the body is the message."""
        body = exchange.wanted.body
        if not body:
            raise BadRequest(400, "MSG_EMPTY")
        topic = name_argument(exchange, "topic", word="INVALID")
        delay_ms = self._delay_ms(exchange)
        portions = [[body]]
        return PublishHandler(
            exchange, self, topic, lambda: portions.pop() if portions else [], delay_ms
        )

    def mpub(self, exchange: Exchange) -> PublishHandler:
        """``POST /mpub?topic=&binary=``: the messages are lines, or each is preceded by its
        size."""
        topic = name_argument(exchange, "topic", word="INVALID")
        binary = exchange.wanted.query.get("binary", "false") not in _FALSE
        bodies = BodyPortions(exchange.wanted.body, self.terms, binary=binary)
        return PublishHandler(exchange, self, topic, bodies.next, 0)

    def _delay_ms(self, exchange: Exchange) -> int:
        text = exchange.wanted.query.get("defer")
        if text is None:
            return 0
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise BadRequest(400, "INVALID_DEFER")
        if int(text) > self.terms.max_req_timeout_ms:
            raise BadRequest(400, "INVALID_DEFER")
        return int(text)


@final
class PublishHandler(AskingHandler):
    """Publishes portions of messages and answers when all are confirmed.

    :param portion: returns the bodies of the next messages; empty at the end.
    """

    def __init__(
        self,
        exchange: Exchange,
        publisher: Publisher,
        topic: bytes,
        portion: Callable[[], list[bytes]],
        delay_ms: int,
    ) -> None:
        super().__init__(exchange)
        self._publisher = publisher
        self._topic = topic
        self._portion = portion
        self._delay_ms = delay_ms
        #: Ids of messages that are not confirmed.
        self._waiting: dict[str, None] = {}
        exchange.wanted.body = b""  # the portions have it

    def start(self, now: float) -> Sequence[Command]:
        """Create the topic if it does not exist, and publish the first portion."""
        number = self.exchange.client.number
        create = self._publisher.shapes.create_topic(number, self._topic)
        return [create, *self._next(now)]

    def _next(self, now: float) -> list[Command]:
        """Publish the next portion, or answer."""
        bodies = self._portion()
        if not bodies:
            self._stop()
            self.exchange.respond(done(b"OK"))
            return []
        client = self.exchange.client
        publisher = self._publisher
        ids = publisher.ids.several(len(bodies))
        for each in ids:
            self._waiting[each] = None
            client.confirms[each] = self
        self.due = now + client.limits.max_wait_s
        publisher.world.published(None, self._topic, len(bodies), sum(map(len, bodies)))
        timestamp_ns = int((now + publisher.offset_s) * _NS)
        channel = publisher.shapes.names.topic(self._topic)
        source = source_of(client.client_id)
        # A client that may push but not create creates the topic with the push.
        extras = publisher.shapes.extras(self._topic, self._delay_ms)
        if len(bodies) == 1:
            frame = message_frame(timestamp_ns, 1, ids[0].encode(), bodies[0])
            size = size_of(source, bodies[0])
            return [Push(client.number, ids[0], channel, QUEUE, False, True, size, frame, extras)]
        run = NsqRun(ids, bodies, timestamp_ns, source, extras)
        return [
            PushRun(
                client.number,
                channel,
                QUEUE,
                False,
                True,
                len(ids),
                run.size(),
                run.largest(),
                run,
                publisher.notes,
            )
        ]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Handle a confirm or a refusal."""
        if isinstance(effect, ConfirmRun):
            for each in effect.message_ids:
                self._confirmed(each)
        elif isinstance(effect, Confirm):
            self._confirmed(effect.message_id)
            if not effect.positive:
                self._stop()
                passing = effect.reason in ("busy", "storage")
                self.fail(503 if passing else 500, "OVERLOADED" if passing else "INTERNAL_ERROR")
                return ()
        else:
            return super().apply(effect, now)
        return () if self._waiting else self._next(now)

    def pushed(self, wire: object) -> bool:
        """Whether this is the frame of one of its messages."""
        return isinstance(wire, bytes) and id_of(wire) in self._waiting

    def heard(self, reply: Reply, now: float) -> Sequence[Command]:
        """A push was refused: answer with an error."""
        self._stop()
        self.refuse(reply.code)
        return ()

    def on_deadline(self, now: float) -> Sequence[Command]:
        """No confirm arrived in time: answer with an error, although messages may be published."""
        self._stop()
        self.fail(500, "INTERNAL_ERROR")
        return ()

    def _confirmed(self, message_id: str) -> None:
        self._waiting.pop(message_id, None)
        self.exchange.client.confirms.pop(message_id, None)

    def _stop(self) -> None:
        """Stop waiting for confirms."""
        for each in self._waiting:
            self.exchange.client.confirms.pop(each, None)
        self._waiting.clear()
        self.due = math.inf
        self._portion = list
