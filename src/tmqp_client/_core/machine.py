"""The client's state: requests, joined channels, received messages; no socket, no clock.

Theory of operation.  The machine uses one :class:`tmqp.Connection` at a time and may outlive it
(``max_sends``): :meth:`ClientMachine.start` begins a connection, and is called again when that one
is lost.  You pass in bytes and the time; it returns a list of *outcomes*, each of one class:

=================  ==============================================================================
:class:`Pending`   a request is settled: answered, refused, timed out or lost
:class:`Inbox`     messages have arrived in it (reported once for a chunk of bytes), or nothing
                   more will arrive
:class:`Accepted`  the server has accepted this client
NotRestored        the server refused to restore a channel, a join or a subscription
:class:`Lost`      the connection is over; requests that do not outlive it were settled before
=================  ==============================================================================

Between two connections, a lasting machine keeps unconfirmed pushes and new requests (``_outbox``);
timeouts continue.  When the next server accepts the client, joins and subscriptions are sent again
(``_standing``), then everything kept is sent in its original order, each push under its id, in
portions whenever :meth:`data_to_send` finds nothing else to send.  A message that was sent several
times, at most ``max_sends`` times, may have arrived as often.  All other requests of the previous
connection are settled when it is lost.

Answers are matched by message id alone (F44, F78); pongs have none and are matched in order, the
keep-alive's own among them.  Queue messages go to the inbox subscribed for their channel and queue,
whatever the case of the channel's name (F46), otherwise to the one for the whole channel; otherwise
they are kept for a later consumer.  Direct messages and events go to the inboxes of the ``board``.
All other messages that answer no request go to ``unclaimed``.

Reading pauses while an inbox is congested, unless an answer is awaited: the consumer that should
empty the inbox may be the one that waits for it.  During a pause, the peer's silence has no
meaning, so instead of checking it the machine sends pings, because the server counts what it
receives (F38).

The caller has the duties that a connection requires (bytes, deadlines), checks :meth:`must_pause`
before each read, and calls :meth:`pause` and :meth:`resume` when it stops and continues reading.
"""

from __future__ import annotations

from typing import Final

from tmqp.connection import Connection
from tmqp.constants import PING_BYTES, RESULT_OK
from tmqp.errors import LocalProtocolError
from tmqp.frames import Frame
from tmqp.state import Role
from tmqp_client._core import requests
from tmqp_client._core.arguments import NO_HEADERS, Headers, Pairs, check_channel, check_queue_id
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.outcomes import Lost, Outcome
from tmqp_client._core.pending import NO_QUEUE, Kind, Pending, time_limit, timeout_error
from tmqp_client._core.pulls import PullUnderWay
from tmqp_client._core.reception import Reception
from tmqp_client._core.requests import PullRequest, Request
from tmqp_client.errors import ClientClosed

__all__ = ["ClientMachine"]

#: The number of bytes taken out of the outbox at a time.
_PUMP_BYTES: Final = 65_536
_PING_SIZE: Final = len(PING_BYTES)


class ClientMachine(Reception):
    """The whole client as a state machine, without I/O.

    :param information: how the client describes itself; its ``client_id`` must not be empty.
    :param limits: bounds and time limits.
    :param new_id: returns a message id that this client has not used before (F45).
    :param max_sends: how many times a push may be sent, on as many connections; 0 for a machine
        that does not outlive its connection.

    Attributes to read: ``client_id``, ``lost`` (how the last connection ended, until there is
    another), ``over`` (why there will be no other), ``epoch`` (the number of connections so far),
    ``counters``, ``board``, ``unclaimed``, ``outbox``, ``queued_bytes``.  To be set by the caller:
    ``repeat_operations`` (also repeat operations that change nothing when carried out twice),
    ``unsent_bytes`` (taken from the machine, but not yet sent), ``closing`` (admit no more
    messages).
    """

    # -- the connection -------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        """How many answers are awaited."""
        return len(self._pendings)

    @property
    def full(self) -> bool:
        """Whether no further answers may be awaited (``max_outstanding``,
        ``unconfirmed_bytes``)."""
        limits = self.limits
        table = self._pendings
        return len(table) >= limits.max_outstanding or table.held_bytes >= limits.unconfirmed_bytes

    @property
    def buffer_full(self) -> bool:
        """Whether the buffer for the next connection is full (``buffered_messages``,
        ``buffered_bytes``)."""
        outbox = self.outbox
        if not outbox.size_bytes:  # as while there is a connection
            return False
        limits = self.limits
        return len(outbox) >= limits.buffered_messages or outbox.size_bytes >= limits.buffered_bytes

    def admits(self, confirm: bool) -> bool:
        """Whether one more message may be sent at once and, with ``confirm``, its answer
        awaited."""
        if self.closing or self.over is not None or self.epoch == 0:
            return False
        if self.queued_bytes + self.unsent_bytes >= self.limits.outbound_bytes:
            return False
        if self.outbox.size_bytes and self.buffer_full:
            return False
        return not (confirm and self.full)

    def start(self, now: float) -> None:
        """Begin a connection: queue the preamble and the connection information as one write (F21,
        F22).

        :raises LocalProtocolError: if the previous one is still open, or the information cannot be
            sent.
        """
        if self._connection is not None and self.lost is None:
            raise LocalProtocolError("the previous connection is still open")
        if self._lasting and self.over is not None:
            raise self.over.error()
        connection = Connection(Role.CLIENT, self.limits.protocol, now=now)
        self._information.client_id = self.client_id
        connection.initiate(self._information, self._new_id())
        self._connection = connection
        self.lost = None
        self.over = None
        self.queued_bytes = 0
        self.unsent_bytes = 0
        self._fault = None
        self._greeted = False
        self._paused = False
        self._alive_not_before = now

    def close(self) -> list[Outcome]:
        """Close from this side; queued messages are still sent, Terminate last (F40).

        Messages that wait in the outbox for a connection are given up.
        """
        outcomes: list[Outcome] = []
        if self.over is not None:
            return outcomes
        if self._connection is None:
            self.lost = self.over = Lost("local", "closed before it began")
        elif self.lost is None:
            self._take(self._connection.close(), 0.0, outcomes)
        else:
            self._finish(Lost("local", "closed on this side"), outcomes)
        return outcomes

    def give_up(self, lost: Lost) -> list[Outcome]:
        """Settle everything, because there will be no other connection."""
        outcomes: list[Outcome] = []
        if self.over is None:
            self._finish(lost, outcomes)
        return outcomes

    def fail(self, message: str) -> list[Outcome]:
        """End the connection because the transport failed; ``message`` says how."""
        outcomes: list[Outcome] = []
        if self.lost is None:
            self._lose(Lost("transport", message), outcomes)
        return outcomes

    # -- bytes ----------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> list[Outcome]:
        """Take bytes from the server.  Never raises for their contents."""
        outcomes: list[Outcome] = []
        if self._connection is not None and self.lost is None:
            self._take(self._connection.receive(data, now), now, outcomes)
        return outcomes

    def receive_eof(self, now: float) -> list[Outcome]:
        """Handle the end of the server's stream."""
        outcomes: list[Outcome] = []
        if self._connection is not None and self.lost is None:
            self._take(self._connection.receive_eof(now), now, outcomes)
        return outcomes

    def data_to_send(self, *, pump: bool = True) -> bytes:
        """Return all bytes queued since the last call, in order; empty if there are none.

        :param pump: if nothing else is queued, take messages from the outbox.
        """
        self.queued_bytes = 0
        connection = self._connection
        if connection is None:
            return b""
        data = connection.data_to_send()
        if data or not pump or not self.accepted:
            return data
        while self.queued_bytes < _PUMP_BYTES:
            entry = self.outbox.take()
            if entry is None:
                break
            self._send_now(connection, entry[0], entry[1])
        self.queued_bytes = 0
        return connection.data_to_send()

    def must_pause(self, unsent_bytes: int) -> bool:
        """Whether the next read has to wait; ``unsent_bytes`` were taken, but not yet sent.

        It waits while an inbox is overfull, or congested if no answer is awaited; and while the
        server does not read, because pongs and acknowledgements for it must stay bounded, too.
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
        """Note that reading stops."""
        if not self._paused:
            self._paused = True
            self._alive_not_before = now + self.limits.protocol.ping_interval_s
            self.counters.pauses += 1

    def resume(self, now: float) -> None:
        """Note that reading continues; the server's silence counts from now."""
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
        repeat: bool = False,
    ) -> Pending:
        """Send an operation to the server, or a message that another client may answer.

        :param answer: request an answer; otherwise the returned entry is already done.
        :param repeat: repeat the request on the next connection if this one ends before the answer.
        :raises LocalProtocolError: if it cannot be written, or too many answers are awaited.
        :raises ClientError: if the client is not connected yet, or has ended for good.
        """
        self._ready(confirm=answer)
        usual_s = self.limits.response_timeout_s
        if request.kind == Kind.DIRECT:
            usual_s = self.limits.acknowledge_timeout_s
        timeout_s = time_limit(timeout_s, usual_s)
        what = (request.word, request.target, request.queue_id)
        pending = Pending(request.kind, self._new_id(), *what, now, timeout_s, request)
        frame = request.to_frame(pending.message_id, self.client_id, answer)
        if answer:
            pending.repeat = repeat or (self.repeat_operations and request.repeatable)
            pending.frame = frame if self._lasting else None
            self._pendings.add(pending)
            self._send_in_turn(frame, pending)
        else:
            self._send_in_turn(frame, None)
            pending.done = True
            self._note(request, RESULT_OK)
        return pending

    def new_message_id(self) -> str:
        """Return a message id that this client has not used before (F45)."""
        return self._new_id()

    def forget(self, request: Request) -> None:
        """Do not restore on another connection what ``request`` would undo."""
        self._note(request, RESULT_OK)

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

        :param confirm: request the acknowledgement; otherwise the returned entry is already done.
        :raises LocalProtocolError: as :meth:`request`, and if the id is empty or already awaits an
            answer.
        :raises ClientError: as :meth:`request`.
        """
        self._ready(confirm=confirm)
        if message_id is None:
            message_id = self._new_id()
        elif confirm and not message_id:
            raise LocalProtocolError("the message id is empty")
        elif confirm and message_id in self._pendings:
            raise LocalProtocolError(f"the message id {message_id!r} is already awaiting an answer")
        timeout_s = time_limit(timeout_s, self.limits.acknowledge_timeout_s)
        source = self.client_id
        frame = requests.push_frame(
            channel, queue_id, payload, message_id, source, headers, high_priority, confirm
        )
        pending = Pending(Kind.PUSH, message_id, "push to", channel, queue_id, now, timeout_s)
        self.counters.pushed += 1
        if confirm:
            if self._max_sends:
                pending.frame = frame
            self._pendings.add(pending)
            self._send_in_turn(frame, pending)
        else:
            self._send_in_turn(frame, None)
            pending.done = True
        return pending

    def publish(
        self,
        channel: str,
        queue_id: int,
        payload: bytes,
        headers: Headers,
        high_priority: bool,
        message_id: str | None,
    ) -> str:
        """As :meth:`push` without confirmation; return the message's id."""
        self._ready(confirm=False)
        if message_id is None:
            message_id = self._new_id()
        frame = requests.push_frame(
            channel, queue_id, payload, message_id, self.client_id, headers, high_priority, False
        )
        self.counters.pushed += 1
        self._send_in_turn(frame, None)
        return message_id

    def pull(self, request: PullRequest) -> PullUnderWay:
        """Ask for messages of a pull queue (F104).

        :raises LocalProtocolError: when too many pulls are in progress (``max_pending_pulls``).
        :raises ClientError: when there is no connection.
        """
        return self._pulls.begin(self._send_pull(request, confirm=False), request.asked)

    def abandon_pull(self, pull: PullUnderWay) -> None:
        """Stop waiting for the messages of a pull; those that have arrived are dropped and
        counted."""
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
        connection = self._online(confirm=confirm)
        frame = request.to_frame(self._new_id(), self.client_id)
        connection.send(frame)
        self.queued_bytes += len(frame.raw)
        return frame.message_id

    def ping(self, now: float, timeout_s: float | None = None) -> Pending:
        """Send a ping and expect its pong (F37).

        :raises LocalProtocolError: if too many answers or pongs are awaited.
        :raises ClientError: when there is no connection.
        """
        connection = self._online(confirm=True)
        if len(self._answers.pings) >= self.limits.max_outstanding:
            raise LocalProtocolError("too many pings are unanswered (max_outstanding)")
        timeout_s = time_limit(timeout_s, self.limits.response_timeout_s)
        pending = Pending(Kind.PING, self._new_id(), "ping", "", NO_QUEUE, now, timeout_s)
        connection.ping()
        self.queued_bytes += _PING_SIZE
        self._answers.pings.append(pending)
        self._pendings.add(pending)
        return pending

    def acknowledge(self, message: Frame, reason: str | None, more: Pairs = NO_HEADERS) -> None:
        """Answer a message delivered on this connection, negatively for a ``reason`` (F95).

        :raises LocalProtocolError: when the reason cannot be written.
        :raises ClientError: when there is no connection.
        """
        connection = self._online(confirm=False)
        frame = requests.acknowledge_frame(message, self.client_id, reason, more)
        self._send_now(connection, frame, None)
        self.counters.acknowledged += 1

    def send(self, frame: Frame) -> None:
        """Send a finished message, on the next connection if there is none now.

        :raises ClientError: if the client is not connected yet, or has ended for good.
        """
        self._ready(confirm=False)
        self._send_in_turn(frame, None)

    def abandon(self, pending: Pending) -> None:
        """Stop waiting for an answer; a late one will match nothing."""
        if not pending.done:
            self._pendings.remove(pending)
            self.outbox.forget(pending)

    def _ready(self, *, confirm: bool) -> None:
        if self.over is not None:
            raise self.over.error()
        if self.epoch == 0:
            raise ClientClosed("the client is not connected")
        if confirm and self.full:
            raise LocalProtocolError(
                f"{len(self._pendings)} answers are awaited, the limit (max_outstanding)"
            )

    def _online(self, *, confirm: bool) -> Connection:
        """Return the current connection, for messages that cannot wait for the next one."""
        self._ready(confirm=confirm)
        if self.lost is not None:
            raise self.lost.error()
        if self._connection is None or not self._greeted:
            raise ClientClosed("the client is not connected")
        return self._connection

    def _send_in_turn(self, frame: Frame, pending: Pending | None) -> None:
        """Send after everything that waits to be sent."""
        connection = self._connection
        offline = connection is None or self.lost is not None or not self._greeted
        if offline or self.outbox.size_bytes or connection is None:
            self.outbox.put(frame, pending)
        else:
            self._send_now(connection, frame, pending)

    # -- subscriptions --------------------------------------------------------------------------

    def subscribe(self, channel: str, queue_id: int | None) -> Inbox[Frame]:
        """Open an inbox for a queue of a channel, or for every queue that has none of its own.

        It begins with the kept messages that belong into it.

        :raises AlreadyConsuming: if it exists.
        :raises LocalProtocolError: if the channel's name or the queue id is invalid.
        """
        check_channel(channel)
        if queue_id is not None:
            check_queue_id(queue_id)
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
        if connection is None or self.over is not None:
            return None
        if self.lost is not None:
            return self._pendings.next_deadline()
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
        if connection is None or self.over is not None:
            return outcomes
        for pending in self._pendings.expire(now):
            self.outbox.forget(pending)
            self.counters.timed_out += 1
            pending.error = timeout_error(pending, self._paused, not self.accepted)
            pending.settled_at = now
            self._tell(pending, outcomes)
        if self.lost is not None or now < self._alive_not_before:
            return outcomes
        alive = connection.next_deadline()
        if self._paused:
            connection.ping()
        elif alive is None or now < alive:
            return outcomes
        else:
            self._take(connection.on_deadline(now), now, outcomes)
        if self.accepted:
            # A ping was sent, ours or the connection's; no caller awaits its pong.
            self._answers.pings.append(None)
            self.queued_bytes += _PING_SIZE
            self._alive_not_before = now + self.limits.protocol.ping_interval_s
        return outcomes
