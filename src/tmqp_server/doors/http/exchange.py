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
    """The parts of a ``Route`` that carry out its requests."""

    @property
    def template(self) -> str:
        """The path, with its parameters in braces."""

    @property
    def begin(self) -> Callable[[Exchange], Handler | None]:
        """Called with the complete request."""

    @property
    def public(self) -> bool:
        """Whether it is answered without asking who the client is."""

    @property
    def overlaps(self) -> bool:
        """Whether it may begin while earlier ones wait."""

    @property
    def bounded(self) -> bool:
        """Whether it needs a place among the requests that run concurrently."""

    @property
    def takes_body(self) -> bool:
        """Whether a request may have a body."""

    @property
    def max_body_bytes(self) -> int:
        """The largest body in bytes; 0 for the door's limit."""

    @property
    def too_large(self) -> str:
        """The detail of the answer to a larger body; empty for a sentence with the limit."""


class Handler:
    """Carries out one exchange: sends commands to the broker, and answers when it has their
    results.

    Attributes: ``exchange``; ``due``, when :meth:`on_deadline` must be called, infinity for never.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.due = math.inf

    def start(self, now: float) -> Sequence[Command]:
        """The first commands."""
        raise NotImplementedError

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Handle an answer of the broker; returns the next commands."""
        raise NotImplementedError

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Called at ``due``; returns the next commands."""
        raise NotImplementedError

    def pushed(self, wire: object) -> bool:
        """Whether this is the wire form of a message that it pushed and that is not confirmed
        yet."""
        return False

    def event(self, data: bytes) -> None:
        """Take an event to which the client has subscribed, as the door encodes it."""

    def left(self, channel: str) -> None:
        """A channel that the client had joined was removed."""

    def events_ended(self, event: int) -> None:
        """A subscription to this event has ended: its channel or queue was removed."""

    def stop(self) -> None:
        """The server closes the connection after the answer has begun: complete the answer, or
        leave it visibly incomplete."""

    def abandoned(self) -> None:
        """The connection has ended: nobody receives the answer, and no commands may follow."""


class Exchange:
    """A request while it arrives, and its answer.

    :param client: the session's knowledge about its client.
    :param date: returns the value of the field Date at a time.
    :param manner: how requests are answered.
    :param tally: counts the request when it is answered.

    Attributes: ``request``, None until the head is complete; ``route``, None for a request that was
    refused; ``handler``, None unless it needs the broker; ``answered``, the answer is complete;
    ``closes``, the connection ends after this answer; ``upgrade``, the WebSocket subprotocol that
    follows, empty for none; ``asks_who``, the upgrade needs a client that has logged in; ``due``,
    when the request must have arrived, and afterwards when it is checked again whether it may
    begin; ``held``, it may not begin yet; ``peer``, the client's address.
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
        #: The error to answer once the body has been read and dropped.
        self.refusal: BadRequest | None = None
        #: Dropped bytes of an unexpected body.
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
        #: The current time.
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
        """Set the time for the next calls."""
        self.now = now

    def heard_head(self, event: h11.Request) -> None:
        """Note that the head is complete."""
        self._heard_s = self.now
        self._is_head = event.method == b"HEAD"
        self.http_1_0 = event.http_version < b"1.1"
        self.head_bytes = 0

    # -- answering ------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Tell a client that waits for "100 Continue" to send the body."""
        self._write(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))

    def switch(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Tell the client that another protocol follows (101)."""
        self._status = 101
        self._write(
            h11.InformationalResponse(
                status_code=101, headers=headers, reason=b"Switching Protocols"
            )
        )
        self._finish()

    def respond(self, response: HttpResponse, *, closes: bool = False) -> None:
        """Send a complete answer; nothing if the request is already answered.

        :param closes: end the connection after this answer.
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
        """Send a piece of the body."""
        if data and not self.answered and not self._is_head:
            self._write(h11.Data(data=data))

    def end(self) -> None:
        """Complete the body."""
        if not self.answered:
            self._write(h11.EndOfMessage())
            self._finish()

    def _head(self, response: HttpResponse, closes: bool) -> None:
        self._status = response.status
        headers = self._manner.fields(response, self._date(self.now))
        if closes or self.machine.their_state in (h11.SEND_BODY, h11.ERROR):
            # The rest of the request would be taken for the next one.
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
        """Count a stream as ended, whether or not it is complete."""
        if self._streams:
            self._streams = False
            self._tally.streams -= 1

    def held_bytes(self) -> int:
        """About how many bytes of memory the unfinished request takes."""
        return self.head_bytes + len(self.body)
