"""Handles the server's messages: the receiving half of the machine.

It holds the state of both halves.  Each event of the connection settles a request, fills an inbox,
or ends the connection; :mod:`tmqp_client._core.machine` has the whole theory of operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp.connection import Connection
from tmqp.constants import PING_BYTES, RESULT_OK
from tmqp.events import (
    AcknowledgeReceived,
    ConnectionClosed,
    Event,
    HandshakeAccepted,
    HandshakeRefused,
    MessageDropped,
    MessageReceived,
    PingReceived,
    PongReceived,
    ProtocolViolated,
    PullCompleted,
    PullMessageReceived,
    QueueMessageReceived,
    ResponseReceived,
    ServerMessageReceived,
)
from tmqp.extensions import OP_LAPSED
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp_client._core.answers import Answers
from tmqp_client._core.board import (
    CUSTOM_MESSAGES,
    DIRECT_MESSAGES,
    Board,
    Topic,
    topic_of,
)
from tmqp_client._core.inbox import Inbox, Mailboxes
from tmqp_client._core.lapses import Lapses
from tmqp_client._core.letters import SubscriptionRequest
from tmqp_client._core.outbox import Outbox
from tmqp_client._core.outcomes import (
    Accepted,
    AnyInbox,
    Counters,
    Lost,
    NotRestored,
    Outcome,
    ended,
)
from tmqp_client._core.pending import Pending
from tmqp_client._core.pulls import PullTable
from tmqp_client._core.requests import Request
from tmqp_client._core.standing import Standing
from tmqp_client.config import ClientLimits
from tmqp_client.errors import PullRefused, code_words

__all__ = ["Reception"]

_PING_SIZE: Final = len(PING_BYTES)


class Reception:
    """The client's state, and how received messages change it."""

    def __init__(
        self,
        information: ConnectionInformation,
        limits: ClientLimits,
        new_id: Callable[[], str],
        max_sends: int = 0,
    ) -> None:
        self.limits = limits
        self.client_id = information.client_id
        self.lost: Lost | None = None
        self.over: Lost | None = None
        self.epoch = 0
        self.outbox = Outbox()
        self.repeat_operations = False
        self.counters = Counters()
        self.lapses = Lapses()
        self.unclaimed: Inbox[MessageReceived] = Inbox(
            limits.unclaimed_messages, limits.unclaimed_bytes
        )
        self.queued_bytes = 0
        self.unsent_bytes = 0
        self.closing = False
        self._information = information
        self._new_id = new_id
        self._connection: Connection | None = None
        self._max_sends = max_sends
        self._answers = Answers(self.counters)
        self._pendings = self._answers.pendings
        self._mailboxes = Mailboxes(limits)
        self._pulls = PullTable(limits)
        self.board = Board(limits)
        self._standing = Standing()
        self._fault: Lost | None = None
        self._greeted = False
        self._paused = False
        self._alive_not_before = 0.0

    @property
    def accepted(self) -> bool:
        """Whether the server has accepted this client and the connection is open."""
        return self._greeted and self.lost is None

    @property
    def joins(self) -> tuple[str, ...]:
        """The channels joined, in the order of joining, as they were spelt."""
        return self._standing.joins

    def join_of(self, channel: str) -> Request:
        """Return the join request that keeps the terms of a joined channel; a plain one if it is
        not joined."""
        return self._standing.join_of(channel)

    @property
    def _lasting(self) -> bool:
        return self._max_sends > 0

    def _send_now(self, connection: Connection, frame: Frame, pending: Pending | None) -> None:
        if pending is not None:
            pending.attempts += 1
            if pending.attempts > 1:
                self.counters.resent += 1
                if frame.source != self.client_id:  # the server has given us another (F31)
                    frame = frame.replace(source=self.client_id)
        connection.send_bytes(frame.raw)
        self.queued_bytes += len(frame.raw)

    # -- what the events mean -------------------------------------------------------------------

    def _take(self, events: list[Event], now: float, outcomes: list[Outcome]) -> None:
        for event in events:
            if isinstance(event, AcknowledgeReceived):
                settled = self._answers.take_acknowledge(event, now)
                positive = settled is None and event.reason is None  # read where it is needed
                self._tell_answer(settled, event, positive, outcomes)
            elif isinstance(event, QueueMessageReceived):
                self._take_message(event, outcomes)
            elif isinstance(event, ResponseReceived):
                if event.frame.message_id not in self._pulls:  # the event of the pull's end follows
                    settled = self._answers.take_response(event, now)
                    self._tell_answer(settled, event, event.code == RESULT_OK, outcomes)
            elif isinstance(event, PullMessageReceived):
                self._pulls.take(event, self.counters, outcomes)
            elif isinstance(event, PullCompleted):
                self._end_pull(event, now, outcomes)
            elif isinstance(event, MessageDropped):
                self.counters.dropped += 1
            elif isinstance(event, ServerMessageReceived) and event.frame.content_type == OP_LAPSED:
                self._take_lapse(event.frame)
            elif isinstance(event, MessageReceived):
                self._take_other(event, outcomes)
            elif isinstance(event, PongReceived):
                settled = self._answers.take_pong(now)
                if settled is not None:
                    outcomes.append(settled)
            elif isinstance(event, PingReceived):
                self.queued_bytes += _PING_SIZE  # the pong
            elif isinstance(event, HandshakeAccepted):
                self._accept(event.client_id, now, outcomes)
            elif isinstance(event, HandshakeRefused):
                words = f"the server refused: {code_words(event.code)}"
                self._fault = Lost("refused", words, "", event.code, event.address)
            elif isinstance(event, ProtocolViolated):
                self._fault = Lost("violation", event.error.message, event.error.rule)
            elif isinstance(event, ConnectionClosed):
                self._lose(ended(event.reason, self._fault, self._greeted), outcomes)

    def _accept(self, client_id: str, now: float, outcomes: list[Outcome]) -> None:
        self.client_id = client_id
        self._greeted = True
        self.epoch += 1
        self.counters.connections += 1
        outcomes.append(Accepted(client_id))
        assert self._connection is not None, "it has accepted us"
        for request in self._standing.requests():
            timeout_s = self.limits.response_timeout_s
            what = (request.word, request.target, request.queue_id)
            pending = Pending(request.kind, self._new_id(), *what, now, timeout_s, request)
            pending.restoring = True
            self._pendings.add(pending)
            frame = request.to_frame(pending.message_id, client_id, True)
            self._send_now(self._connection, frame, pending)

    def _take_message(self, event: QueueMessageReceived, outcomes: list[Outcome]) -> None:
        frame = event.frame
        self.counters.delivered += 1
        inbox = self._mailboxes.inbox_for(frame)
        if inbox is None:
            if not self._mailboxes.keep(frame):
                self.counters.dropped += 1
            return
        inbox.put(frame, len(frame.raw))
        if not inbox.fresh:
            inbox.fresh = True
            outcomes.append(inbox)

    def _take_lapse(self, told: Frame) -> None:
        """Remove a delivery that is no longer in flight to this client, unless the program has
        it."""
        self.counters.lapsed += 1
        key = self.lapses.note(told)
        self.counters.dropped += self._mailboxes.withdraw(key) + self._pulls.withdraw(key)

    def _end_pull(self, event: PullCompleted, now: float, outcomes: list[Outcome]) -> None:
        pending = self._pendings.get(event.request_id)
        if pending is not None:
            # The queue is no cache queue: that would have settled this with a Response.
            pending.error = PullRefused(pending.asked, pending.message_id, event.reason)
            outcomes.append(self._answers.settle(pending, event.frame, now))
        self._pulls.end(event, outcomes)

    def _tell_answer(
        self,
        settled: Pending | None,
        event: AcknowledgeReceived | ResponseReceived,
        positive: bool,
        outcomes: list[Outcome],
    ) -> None:
        """Report a settled entry.  An answer that matches none is late, repeated, unrequested
        (F77), or to an unconfirmed push."""
        if settled is None:
            self.counters.unmatched_answers += 1
            if not self._answers.is_echo(event.frame.message_id) and not positive:
                self._take_unclaimed(event, outcomes)
            return
        if settled.queued:  # it was sent on the connection before, and answered only now
            self.outbox.forget(settled)
        if isinstance(event, ResponseReceived):
            self._note(settled.request, event.code)
        self._tell(settled, outcomes)

    def _tell(self, settled: Pending, outcomes: list[Outcome]) -> None:
        """Report a settled entry; if the machine itself made the request and it was refused, report
        the inboxes that get nothing more."""
        if not settled.restoring:
            outcomes.append(settled)
        elif settled.error is not None and isinstance(settled.request, Request):
            request = settled.request
            self._standing.refuse(request)
            if isinstance(request, SubscriptionRequest):
                inboxes: list[AnyInbox] = [*self.board.of_request(request)]
            else:
                inboxes = [*self._mailboxes.of_channel(request.target)]
            for inbox in inboxes:
                inbox.error = settled.error
            outcomes.append(NotRestored(settled.asked, settled.error, inboxes))

    def _take_other(self, event: MessageReceived, outcomes: list[Outcome]) -> None:
        """Put a direct message or an event into the inbox of its topic; if there is none, it is
        unclaimed."""
        inbox = self.board.take(event)
        if inbox is None:
            self._take_unclaimed(event, outcomes)
        elif not inbox.fresh:
            inbox.fresh = True
            outcomes.append(inbox)

    def listen(self, topic: Topic) -> Inbox[MessageReceived]:
        """Open the inbox of a topic.

        It begins with the direct or custom messages that arrived before, because others can send
        requests to a client as soon as it is connected, before it listens.

        :raises AlreadyListening: if the topic has one.
        """
        inbox = self.board.open(topic)
        if topic in {DIRECT_MESSAGES, CUSTOM_MESSAGES}:
            for event, _ in self.unclaimed.extract(lambda event: topic_of(event) == topic):
                self.counters.unclaimed -= 1
                self.board.file(event, topic, inbox)
        return inbox

    def _take_unclaimed(self, event: MessageReceived, outcomes: list[Outcome]) -> None:
        self.counters.unclaimed += 1
        inbox = self.unclaimed
        if not inbox.offer(event, len(event.frame.raw)):
            self.counters.dropped += 1
        elif not inbox.fresh:
            inbox.fresh = True
            outcomes.append(inbox)

    def _note(self, request: object, code: int) -> None:
        """Note what a request changed in the client's standing, so that the next connection can
        restore it."""
        if isinstance(request, Request) and self._standing.note(request, code):
            self.counters.dropped += self._mailboxes.forget(request.target)

    # -- the end --------------------------------------------------------------------------------

    def _lose(self, lost: Lost, outcomes: list[Outcome]) -> None:
        """Handle the end of the connection; a lasting machine continues without one."""
        self.lost = lost
        if not self._lasting or lost.reason == "local":
            self._finish(lost, outcomes)
            return
        self._answers.cut()
        again: list[Pending] = []
        for pending in self._pendings.in_order():
            if pending.queued:
                continue
            if pending.repeat and pending.attempts < self._max_sends:
                again.append(pending)
                continue
            self._pendings.remove(pending)
            if pending.restoring:
                continue
            if isinstance(pending.request, Request) and not pending.request.stands:
                # A channel that was being left is not joined again.
                self._note(pending.request, RESULT_OK)
            pending.error = lost.error()
            outcomes.append(pending)
        self.outbox.put_first(again)
        for dropped, inboxes in (self._mailboxes.lose(), self._pulls.lose(lost)):
            self.counters.dropped += dropped
            outcomes.extend(inboxes)
        outcomes.append(lost)

    def _finish(self, lost: Lost, outcomes: list[Outcome]) -> None:
        """Settle everything; keep only those received messages that the server will not send
        again."""
        self.lost = self.over = lost
        self._answers.cut()
        for pending in self._pendings.clear():
            pending.error = lost.error()
            if not pending.restoring:
                outcomes.append(pending)
        self.counters.unsent += self.outbox.clear()
        for dropped, inboxes in (self._mailboxes.lose(), self._pulls.lose(lost)):
            self.counters.dropped += dropped
            outcomes.extend(inboxes)
        outcomes.extend(self.board.inboxes())
        outcomes.append(self.unclaimed)
        outcomes.append(lost)
