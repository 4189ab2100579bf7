"""One request and its answer: the interface of handlers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Protocol

import h11

from tmqp_server.doors.http.client import ClientState
from tmqp_server.doors.http.manner import Manner
from tmqp_server.doors.http.messages import BadRequest, HttpRequest, HttpResponse
from tmqp_server.doors.http.tally import NO_ROUTE, HttpTally
from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Effect

__all__ = ["Exchange", "Handler", "Plan"]


class Plan(Protocol):
    """How the requests of one route are carried out; see ``Route``."""

    @property
    def template(self) -> str:
        """The path, with its parameters in braces."""

    @property
    def begin(self) -> Callable[[Exchange], Handler | None]:
        """Called with the complete request."""

    @property
    def public(self) -> bool:
        """Whether nobody asks who the client is."""

    @property
    def overlaps(self) -> bool:
        """Whether it may begin while earlier ones wait."""

    @property
    def bounded(self) -> bool:
        """Whether it needs a place among those that work at once."""

    @property
    def takes_body(self) -> bool:
        """Whether there may be a body."""

    @property
    def max_body_bytes(self) -> int:
        """How large it may be; 0 for what the door's limits say."""

    @property
    def too_large(self) -> str:
        """What is said of a larger one; empty for a sentence that tells the limit."""


class Handler:
    """Carries one exchange out: asks the broker, and answers when it has heard enough.

    Attributes: ``exchange``; ``due``, when :meth:`on_deadline` is to be called.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.due = math.inf

    def start(self, now: float) -> Sequence[Command]:
        """The first commands."""
        raise NotImplementedError

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """The broker answers; returns what it is asked next."""
        raise NotImplementedError

    def on_deadline(self, now: float) -> Sequence[Command]:
        """It is ``due``."""
        raise NotImplementedError

    def pushed(self, wire: object) -> bool:
        """Whether this is what it has pushed, and is not confirmed."""
        return False

    def event(self, data: bytes) -> None:
        """An event that the client has subscribed to, as the door encodes it."""

    def left(self, channel: str) -> None:
        """A channel that the client had joined was removed."""

    def events_ended(self, event: int) -> None:
        """The client is notified of this event no more: what it was about was removed."""

    def stop(self) -> None:
        """The server closes the connection, and the answer has begun: complete it, or leave it
        visibly incomplete."""

    def abandoned(self) -> None:
        """The connection is over: nobody hears the answer, and nothing more is asked."""


class Exchange:
    """A request as it comes in, and the way for its answer.

    :param client: what the session knows of its client.
    :param date: the value of the field Date at a time.
    :param manner: how it is answered.
    :param tally: counts it when it is answered.

    Attributes: ``request``, None until the head is complete; ``route``, None for a request that
    was refused; ``handler``, None unless something is asked of the broker; ``answered``, nothing
    may be added; ``closes``, the connection ends behind this answer; ``upgrade``, the WebSocket
    subprotocol to be spoken from here on; ``asks_who``, the client must have logged in for that;
    ``due``, when the request must be complete, or then when it is asked for again whether it may
    begin; ``held``, it may not yet; ``peer``, where it comes from.
    """

    def __init__(
        self,
        client: ClientState,
        answers: OrderedAnswers,
        date: Callable[[float], bytes],
        manner: Manner,
        most_head_bytes: int,
        due: float,
        tally: HttpTally,
    ) -> None:
        self.client = client
        self.machine = h11.Connection(h11.SERVER, max_incomplete_event_size=most_head_bytes)
        self.request: HttpRequest | None = None
        self.route: Plan | None = None
        self.handler: Handler | None = None
        self.upgrade: str = ""
        self.asks_who = False
        self.held = False
        self.peer = ""
        self.due = due
        self.answered = False
        self.closes = False
        self.body = bytearray()
        #: Why the request is refused, once its body was read and dropped.
        self.refusal: BadRequest | None = None
        #: Bytes of a body that nobody wants.
        self.dropped_bytes = 0
        #: Bytes given to the machine that belong to an unfinished head.
        self.head_bytes = 0
        self.http_1_0 = False
        self._answers = answers
        self._slot: Slot = answers.open()
        self._date = date
        self._manner = manner
        self._tally = tally
        self._heard_s = 0.0
        self._status = 0
        self._streams = False
        #: What the clock reads.
        self.now = 0.0
        #: Puts an answer into another form.
        self.rewrite: Callable[[HttpResponse], HttpResponse] | None = None
        self._is_head = False

    @property
    def wanted(self) -> HttpRequest:
        """The request; it must be complete."""
        assert self.request is not None, "handlers see complete requests only"
        return self.request

    def at(self, now: float) -> None:
        """What the clock reads while the next calls are made."""
        self.now = now

    def heard_head(self, event: h11.Request) -> None:
        """The head is complete."""
        self._heard_s = self.now
        self._is_head = event.method == b"HEAD"
        self.http_1_0 = event.http_version < b"1.1"
        self.head_bytes = 0

    # -- answering ------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Tell a client that waits for it to send the body."""
        self._write(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))

    def switch(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Tell the client that another protocol begins here."""
        self._status = 101
        self._write(
            h11.InformationalResponse(
                status_code=101, headers=headers, reason=b"Switching Protocols"
            )
        )
        self._finish()

    def respond(self, response: HttpResponse, *, closes: bool = False) -> None:
        """Answer.

        :param closes: end the connection behind this answer.
        """
        if self.answered:
            return
        if self.rewrite is not None:
            response = self.rewrite(response)
        response = self._manner.completed(response, self.request)
        self._head(response, closes)
        if response.body and not self._is_head:
            self._write(h11.Data(data=response.body))
        self.end()

    def stream(self, response: HttpResponse) -> None:
        """Begin an answer whose body follows by :meth:`send` and :meth:`end`."""
        if not self.answered:
            self._head(self._manner.completed(response, self.request), False)
            self._streams = True
            self._tally.streams += 1

    def send(self, data: bytes) -> None:
        """A piece of the body."""
        if data and not self.answered and not self._is_head:
            self._write(h11.Data(data=data))

    def end(self) -> None:
        """The body is complete."""
        if not self.answered:
            self._write(h11.EndOfMessage())
            self._finish()

    def _head(self, response: HttpResponse, closes: bool) -> None:
        self._status = response.status
        headers = self._manner.fields(response, self._date(self.now))
        if closes or self.machine.their_state in (h11.SEND_BODY, h11.ERROR):
            # What is left of the request would be taken for the next one.
            headers.append((b"Connection", b"close"))
        reason = HTTPStatus(response.status).phrase.encode("ascii")
        self._write(h11.Response(status_code=response.status, headers=headers, reason=reason))

    def _write(self, event: h11.Event) -> None:
        data = self.machine.send(event)
        if data:
            self._answers.add(self._slot, data)

    def _finish(self) -> None:
        self.answered = True
        self.abandon()
        method = "" if self.request is None else self.request.method
        template = NO_ROUTE if self.route is None else self.route.template
        self._tally.answered(template, method, self._status, self.now - self._heard_s)
        self.closes = self.machine.our_state is h11.MUST_CLOSE
        self._answers.finish(self._slot)

    def abandon(self) -> None:
        """No more of a stream follows, whether or not it is complete."""
        if self._streams:
            self._streams = False
            self._tally.streams -= 1

    def held_bytes(self) -> int:
        """About how much memory the request takes."""
        return self.head_bytes + len(self.body)
