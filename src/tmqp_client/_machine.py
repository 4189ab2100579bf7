"""Owns what a client knows: what it asked, what it joined, what has arrived; no socket, no clock.

Theory of operation.  The machine stands on one :class:`tmqp.Connection` at a time and outlives it:
:meth:`ClientMachine.start` begins a connection, and may be called again when that one is lost.
Bytes and the time go in; what came of them is returned as a list of *outcomes*, each of one class:

=================  ==============================================================================
:class:`Pending`   something asked is settled: answered, refused, timed out or lost
:class:`Inbox`     something has arrived in it (told once for a chunk of bytes), or nothing more
                   ever will
:class:`Accepted`  the server has taken this client in
:class:`Lost`      the connection is over; everything asked was settled before
=================  ==============================================================================

Answers are matched by message id alone (F44, F78); pongs have none and are matched in order, the
keep-alive's own among them.  Queue messages go to the inbox subscribed for their channel and queue,
whatever the case of the channel's name (F46), else to the one for the whole channel, else they are
kept for a consumer to come.  Direct messages and events go to the inboxes of the ``board``.  All
else that answers nothing goes to ``unclaimed``.

Reading pauses while an inbox is congested, unless an answer is awaited: the consumer that should
empty the inbox may be the one who waits.  While it pauses, the peer's silence means nothing, so
instead of watching it the machine makes itself heard, for the server counts what it receives (F38).

The caller owes what a connection is owed (bytes, deadlines), reads :meth:`must_pause` before each
read, and says :meth:`pause` and :meth:`resume` when it stops and goes on reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from tmqp.connection import Connection
from tmqp.constants import OP_JOIN, OP_LEAVE, PING_BYTES, RESULT_NOT_FOUND, RESULT_OK
from tmqp.errors import LocalProtocolError
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
)
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.state import Role
from tmqp_client import _requests
from tmqp_client._board import Board
from tmqp_client._inbox import Inbox, Mailboxes
from tmqp_client._outcomes import Accepted, Counters, Lost, Outcome, ended
from tmqp_client._pending import NO_QUEUE, Kind, Pending, PendingTable, time_limit, timeout_error
from tmqp_client._pulls import PullTable, PullUnderWay
from tmqp_client._requests import Headers, PullRequest, Request
from tmqp_client.config import ClientLimits
from tmqp_client.errors import (
    ClientClosed,
    NegativeAcknowledge,
    OperationFailed,
    PullRefused,
    code_words,
)

__all__ = ["ClientMachine"]

#: Refused pushes remembered so that a second word about one (a code and a negative acknowledge) is
#: not taken for news: as many as a server can have under way in a few reads.
_MAX_ECHOES: Final = 1_024
_PING_SIZE: Final = len(PING_BYTES)


class ClientMachine:
    """The client's side of everything, without I/O.

    :param information: who this client says it is; its ``client_id`` must not be empty.
    :param limits: bounds and time limits.
    :param new_id: makes message ids that no other message of this client has (F45).

    Attributes to read: ``client_id``, ``lost``, ``counters``, ``board``, ``unclaimed``,
    ``queued_bytes``.
    """

    def __init__(
        self,
        information: ConnectionInformation,
        limits: ClientLimits,
        new_id: Callable[[], str],
    ) -> None:
        self.limits = limits
        self.client_id = information.client_id
        self.lost: Lost | None = None
        self.counters = Counters()
        self.unclaimed: Inbox[MessageReceived] = Inbox(
            limits.unclaimed_messages, limits.unclaimed_bytes
        )
        self.queued_bytes = 0
        self._information = information
        self._new_id = new_id
        self._connection: Connection | None = None
        self._pendings = PendingTable()
        self._pings: deque[Pending | None] = deque()
        self._mailboxes = Mailboxes(limits)
        self._pulls = PullTable(limits)
        self.board = Board(limits)
        self._joins: dict[str, str] = {}
        self._echoes: dict[str, None] = {}
        self._fault: Lost | None = None
        self._greeted = False
        self._paused = False
        self._alive_not_before = 0.0

    # -- the connection -------------------------------------------------------------------------

    @property
    def accepted(self) -> bool:
        """Messages flow."""
        return self._greeted and self.lost is None

    @property
    def joins(self) -> tuple[str, ...]:
        """The channels joined, in the order of joining, as they were spelt."""
        return tuple(self._joins.values())

    @property
    def outstanding(self) -> int:
        """How many answers are awaited."""
        return len(self._pendings)

    @property
    def full(self) -> bool:
        """As much is outstanding as may be (``max_outstanding``)."""
        return len(self._pendings) >= self.limits.max_outstanding

    def start(self, now: float) -> None:
        """Begin a connection: preamble and connection information go out as one (F21, F22).

        :raises LocalProtocolError: while another one lives, or if the information cannot be sent.
        """
        if self._connection is not None and self.lost is None:
            raise LocalProtocolError("the connection before lives still")
        connection = Connection(Role.CLIENT, self.limits.protocol, now=now)
        self._information.client_id = self.client_id
        connection.initiate(self._information, self._new_id())
        self._connection = connection
        self.lost = None
        self.queued_bytes = 0
        self._fault = None
        self._greeted = False
        self._paused = False
        self._alive_not_before = now

    def rejoin(self, now: float) -> list[Pending]:
        """Ask again for every channel joined on a connection before this one."""
        return [self.request(_requests.join(channel), now) for channel in self.joins]

    def close(self) -> list[Outcome]:
        """Close from this side; what was queued before still goes out, Terminate last (F40)."""
        outcomes: list[Outcome] = []
        if self._connection is None:
            self.lost = self.lost or Lost("local", "closed before it began")
        elif self.lost is None:
            self._take(self._connection.close(), 0.0, outcomes)
        return outcomes

    def fail(self, message: str) -> list[Outcome]:
        """The transport broke; ``message`` says how."""
        outcomes: list[Outcome] = []
        if self.lost is None:
            self._lose(Lost("transport", message), outcomes)
        return outcomes

    # -- bytes ----------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> list[Outcome]:
        """Take bytes from the server.  Never raises for what they hold."""
        outcomes: list[Outcome] = []
        if self._connection is not None and self.lost is None:
            self._take(self._connection.receive(data, now), now, outcomes)
        return outcomes

    def receive_eof(self, now: float) -> list[Outcome]:
        """The server will send no more."""
        outcomes: list[Outcome] = []
        if self._connection is not None and self.lost is None:
            self._take(self._connection.receive_eof(now), now, outcomes)
        return outcomes

    def data_to_send(self) -> bytes:
        """Everything queued since the last call, in order; empty if nothing is."""
        self.queued_bytes = 0
        return b"" if self._connection is None else self._connection.data_to_send()

    def must_pause(self, unsent_bytes: int) -> bool:
        """Whether the next read has to wait; ``unsent_bytes`` are taken but not yet sent.

        A congested inbox is enough while no answer is awaited; an overfull one is always, and so is
        a server that does not read: what answers it (pongs, acknowledges) must stay bounded too.
        """
        if self.lost is not None:
            return False
        limits = self.limits
        if self.queued_bytes + unsent_bytes > limits.outbound_bytes * limits.overflow_factor:
            return True
        awaited = len(self._pendings) > 0 or not self.accepted or self._pulls.awaited()
        crowded = self._mailboxes.crowded(awaited) or self._pulls.crowded(awaited)
        return crowded or self.board.crowded(awaited)

    def pause(self, now: float) -> None:
        """Reading stops."""
        if not self._paused:
            self._paused = True
            self._alive_not_before = now + self.limits.protocol.ping_interval_s
            self.counters.pauses += 1

    def resume(self, now: float) -> None:
        """Reading goes on; the server's silence counts from now."""
        if self._paused:
            self._paused = False
            self._alive_not_before = now + self.limits.protocol.ping_interval_s

    # -- asking ---------------------------------------------------------------------------------

    def request(
        self,
        request: Request,
        now: float,
        timeout_s: float | None = None,
        *,
        answer: bool = True,
    ) -> Pending:
        """Send an operation to the server, or a message that another client may answer.

        :param answer: False asks for none; the returned entry is done already.
        :raises LocalProtocolError: when it cannot be written or too much is outstanding.
        :raises ClientError: when there is no connection.
        """
        self._ready(confirm=answer)
        usual_s = self.limits.response_timeout_s
        if request.kind == Kind.DIRECT:
            usual_s = self.limits.acknowledge_timeout_s
        timeout_s = time_limit(timeout_s, usual_s)
        what = (request.word, request.target, request.queue_id)
        pending = Pending(request.kind, self._new_id(), *what, now, timeout_s, request.operation)
        self.send(request.to_frame(pending.message_id, self.client_id, answer))
        if answer:
            self._pendings.add(pending)
        else:
            pending.done = True
            self._note_membership(request.operation, request.target, RESULT_OK)
        return pending

    def push(
        self,
        channel: str,
        queue_id: int,
        payload: bytes,
        headers: Headers,
        now: float,
        *,
        confirm: bool,
        high_priority: bool = False,
        message_id: str | None = None,
        timeout_s: float | None = None,
    ) -> Pending:
        """Send a message to a queue (F74).

        :param confirm: ask for the acknowledge; else the returned entry is done already.
        :raises LocalProtocolError: as :meth:`request`, and for an id that is outstanding.
        :raises ClientError: when there is no connection.
        """
        connection = self._ready(confirm=confirm)
        if message_id is None:
            message_id = self._new_id()
        elif confirm and (not message_id or message_id in self._pendings):
            raise LocalProtocolError(f"the message id {message_id!r} is outstanding or empty")
        timeout_s = time_limit(timeout_s, self.limits.acknowledge_timeout_s)
        source = self.client_id
        frame = _requests.push_frame(
            channel, queue_id, payload, message_id, source, headers, high_priority, confirm
        )
        pending = Pending(Kind.PUSH, message_id, "push to", channel, queue_id, now, timeout_s)
        connection.send_bytes(frame.raw)
        self.queued_bytes += len(frame.raw)
        self.counters.pushed += 1
        if confirm:
            self._pendings.add(pending)
        else:
            pending.done = True
        return pending

    def pull(self, request: PullRequest) -> PullUnderWay:
        """Ask for messages of a pull queue (F104).

        :raises LocalProtocolError: when too many pulls are under way (``max_pending_pulls``).
        :raises ClientError: when there is no connection.
        """
        return self._pulls.begin(self._send_pull(request, confirm=False), request.asked)

    def abandon_pull(self, pull: PullUnderWay) -> None:
        """Nobody waits for its messages any more."""
        self.counters.dropped += self._pulls.abandon(pull)

    def read_cache(self, request: PullRequest, now: float, timeout_s: float | None) -> Pending:
        """Ask for the message of a cache queue (F112); as :meth:`request`."""
        timeout_s = time_limit(timeout_s, self.limits.response_timeout_s)
        name = self._send_pull(request, confirm=True)
        where = (request.channel, request.queue_id)
        pending = Pending(Kind.CACHE, name, "read cache", *where, now, timeout_s)
        self._pendings.add(pending)
        return pending

    def _send_pull(self, request: PullRequest, *, confirm: bool) -> str:
        connection = self._ready(confirm=confirm)
        frame = request.to_frame(self._new_id(), self.client_id)
        connection.send(frame)
        self.queued_bytes += len(frame.raw)
        return frame.message_id

    def ping(self, now: float, timeout_s: float | None = None) -> Pending:
        """Send a ping and expect its pong (F37).

        :raises LocalProtocolError: when too much is outstanding.
        :raises ClientError: when there is no connection.
        """
        connection = self._ready(confirm=True)
        if len(self._pings) >= self.limits.max_outstanding:
            raise LocalProtocolError("too many pings are unanswered (max_outstanding)")
        timeout_s = time_limit(timeout_s, self.limits.response_timeout_s)
        pending = Pending(Kind.PING, self._new_id(), "ping", "", NO_QUEUE, now, timeout_s)
        connection.ping()
        self.queued_bytes += _PING_SIZE
        self._pings.append(pending)
        self._pendings.add(pending)
        return pending

    def acknowledge(self, message: Frame, reason: str | None) -> None:
        """Answer a delivered message, negatively if there is a ``reason`` (F95).

        :raises LocalProtocolError: when the reason cannot be written.
        :raises ClientError: when there is no connection.
        """
        self.send(_requests.acknowledge_frame(message, self.client_id, reason))
        self.counters.acknowledged += 1

    def send(self, frame: Frame) -> None:
        """Send a message as it is; raises as :meth:`acknowledge`."""
        connection = self._ready(confirm=False)
        connection.send_bytes(frame.raw)
        self.queued_bytes += len(frame.raw)

    def abandon(self, pending: Pending) -> None:
        """Nobody waits for it any more; a late answer will match nothing."""
        if not pending.done:
            self._pendings.remove(pending)

    def _ready(self, *, confirm: bool) -> Connection:
        if self.lost is not None:
            raise self.lost.error()
        connection = self._connection
        if connection is None or not self._greeted:
            raise ClientClosed("the client is not connected")
        if confirm and self.full:
            raise LocalProtocolError(
                f"{len(self._pendings)} answers are awaited, the limit (max_outstanding)"
            )
        return connection

    # -- subscriptions --------------------------------------------------------------------------

    def subscribe(self, channel: str, queue_id: int | None) -> Inbox[Frame]:
        """Open an inbox for a queue of a channel, or for every queue that has none of its own.

        Messages that came before and belong into it are in it.

        :raises AlreadyConsuming: when there is one.
        :raises LocalProtocolError: when the arguments cannot be a channel's name and a queue id.
        """
        _requests.check_channel(channel)
        if queue_id is not None:
            _requests.check_queue_id(queue_id)
        return self._mailboxes.open(channel, queue_id)

    def unsubscribe(self, channel: str, queue_id: int | None) -> None:
        """Close an inbox; messages left in it are dropped and counted."""
        self.counters.dropped += self._mailboxes.close(channel, queue_id)

    def subscribed(self, channel: str) -> bool:
        """Whether any inbox is open for the channel."""
        return self._mailboxes.has_channel(channel)

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` must be called; None for never."""
        connection = self._connection
        if connection is None or self.lost is not None:
            return None
        due = self._alive_not_before
        if not self._paused:
            alive = connection.next_deadline()
            if alive is not None and alive > due:
                due = alive
        answer = self._pendings.next_deadline()
        return due if answer is None or due < answer else answer

    def on_deadline(self, now: float) -> list[Outcome]:
        """Do what is due at ``now``; calling it early does nothing."""
        outcomes: list[Outcome] = []
        connection = self._connection
        if connection is None or self.lost is not None:
            return outcomes
        for pending in self._pendings.expire(now):
            self.counters.timed_out += 1
            pending.error = timeout_error(pending, self._paused)
            pending.settled_at = now
            outcomes.append(pending)
        if now < self._alive_not_before:
            return outcomes
        alive = connection.next_deadline()
        if self._paused:
            connection.ping()
        elif alive is None or now < alive:
            return outcomes
        else:
            self._take(connection.on_deadline(now), now, outcomes)
        if self.accepted:
            # A ping went out, ours or the connection's; its pong is nobody's.
            self._pings.append(None)
            self.queued_bytes += _PING_SIZE
            self._alive_not_before = now + self.limits.protocol.ping_interval_s
        return outcomes

    # -- what the events mean -------------------------------------------------------------------

    def _take(self, events: list[Event], now: float, outcomes: list[Outcome]) -> None:
        for event in events:
            if isinstance(event, AcknowledgeReceived):
                self._take_acknowledge(event, now, outcomes)
            elif isinstance(event, QueueMessageReceived):
                self._take_message(event, outcomes)
            elif isinstance(event, ResponseReceived):
                self._take_response(event, now, outcomes)
            elif isinstance(event, PullMessageReceived):
                self._pulls.take(event, self.counters, outcomes)
            elif isinstance(event, PullCompleted):
                self._end_pull(event, now, outcomes)
            elif isinstance(event, MessageDropped):
                self.counters.dropped += 1
            elif isinstance(event, MessageReceived):
                self._take_other(event, outcomes)
            elif isinstance(event, PongReceived):
                self._take_pong(now, outcomes)
            elif isinstance(event, PingReceived):
                self.queued_bytes += _PING_SIZE  # the pong
            elif isinstance(event, HandshakeAccepted):
                self.client_id = event.client_id
                self._greeted = True
                outcomes.append(Accepted(event.client_id))
            elif isinstance(event, HandshakeRefused):
                words = f"the server refused: {code_words(event.code)}"
                self._fault = Lost("refused", words, "", event.code)
            elif isinstance(event, ProtocolViolated):
                self._fault = Lost("violation", event.error.message, event.error.rule)
            elif isinstance(event, ConnectionClosed):
                self._lose(ended(event.reason, self._fault, self._greeted), outcomes)

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

    def _end_pull(self, event: PullCompleted, now: float, outcomes: list[Outcome]) -> None:
        pending = self._pendings.get(event.request_id)
        if pending is not None:
            # It was to be a cache queue, whose answer is a Response and settles this before.
            pending.error = PullRefused(pending.asked, pending.message_id, event.reason)
            self._settle(pending, event.frame, now, outcomes)
        self._pulls.end(event, outcomes)

    def _take_acknowledge(
        self, event: AcknowledgeReceived, now: float, outcomes: list[Outcome]
    ) -> None:
        pending = self._pendings.get(event.frame.message_id)
        reason = event.reason
        if pending is None or not pending.takes_acknowledge(reason is None):
            self._take_unmatched(event, reason is None, outcomes)
            return
        if reason is not None:
            pending.error = NegativeAcknowledge(pending.asked, pending.message_id, reason)
        self._settle(pending, event.frame, now, outcomes)

    def _take_response(self, event: ResponseReceived, now: float, outcomes: list[Outcome]) -> None:
        pending = self._pendings.get(event.frame.message_id)
        if event.frame.message_id in self._pulls:
            return  # the end of a pull, which is told next
        code = event.code
        if pending is None or not pending.takes_response(code == RESULT_OK):
            self._take_unmatched(event, code == RESULT_OK, outcomes)
            return
        # What another client answers is its own affair; the server's word bears no source (F44).
        if code != RESULT_OK and not (pending.kind == Kind.REQUEST and event.frame.source):
            body = event.frame.payload
            pending.error = OperationFailed(pending.asked, pending.message_id, code, body)
        self._note_membership(pending.operation, pending.target, code)
        self._settle(pending, event.frame, now, outcomes)

    def _settle(self, pending: Pending, frame: Frame, now: float, outcomes: list[Outcome]) -> None:
        self._pendings.remove(pending)
        pending.answer = frame
        pending.settled_at = now
        if pending.kind == Kind.PUSH:
            if pending.error is None:
                self.counters.confirmed += 1
            else:
                self.counters.refused += 1
                if len(self._echoes) >= _MAX_ECHOES:
                    del self._echoes[next(iter(self._echoes))]
                self._echoes[pending.message_id] = None
        outcomes.append(pending)

    def _take_unmatched(
        self, event: MessageReceived, positive: bool, outcomes: list[Outcome]
    ) -> None:
        """An answer nobody waits for: late, repeated, unasked (F77), or to an unconfirmed push."""
        self.counters.unmatched_answers += 1
        if event.frame.message_id in self._echoes:
            del self._echoes[event.frame.message_id]
        elif not positive:
            self._take_unclaimed(event, outcomes)

    def _take_other(self, event: MessageReceived, outcomes: list[Outcome]) -> None:
        """A direct message or an event, if somebody listens; else it is nobody's."""
        inbox = self.board.take(event)
        if inbox is None:
            self._take_unclaimed(event, outcomes)
        elif not inbox.fresh:
            inbox.fresh = True
            outcomes.append(inbox)

    def _take_unclaimed(self, event: MessageReceived, outcomes: list[Outcome]) -> None:
        self.counters.unclaimed += 1
        inbox = self.unclaimed
        if not inbox.offer(event, len(event.frame.raw)):
            self.counters.dropped += 1
        elif not inbox.fresh:
            inbox.fresh = True
            outcomes.append(inbox)

    def _take_pong(self, now: float, outcomes: list[Outcome]) -> None:
        pending = self._pings.popleft() if self._pings else None
        if pending is not None and not pending.done:
            self._pendings.remove(pending)
            pending.settled_at = now
            outcomes.append(pending)

    def _note_membership(self, operation: int, channel: str, code: int) -> None:
        """Joined and left channels, so that a next connection can begin where this one ends."""
        if operation == OP_JOIN and code == RESULT_OK:
            self._joins.setdefault(channel.lower(), channel)
        elif operation == OP_LEAVE and (code == RESULT_OK or code == RESULT_NOT_FOUND):
            self._joins.pop(channel.lower(), None)
            self.counters.dropped += self._mailboxes.forget(channel)

    # -- the end --------------------------------------------------------------------------------

    def _lose(self, lost: Lost, outcomes: list[Outcome]) -> None:
        """Settle everything; keep of what has arrived only what the server will not send again."""
        self.lost = lost
        self._pings.clear()
        self._echoes.clear()
        for pending in self._pendings.clear():
            pending.error = lost.error()
            outcomes.append(pending)
        for dropped, inboxes in (self._mailboxes.lose(), self._pulls.lose(lost)):
            self.counters.dropped += dropped
            outcomes.extend(inboxes)
        outcomes.extend(self.board.inboxes())
        outcomes.append(self.unclaimed)
        outcomes.append(lost)
