"""One HTTP/1.1 connection as a pure session.

Theory of operation.  Each request is an :class:`Exchange` with an ``h11.Connection`` of its own,
which reads the request and writes its answer; the bytes that follow a request are given to the next
exchange.  One request is read at a time.  A complete one waits until it may begin:
requests whose routes overlap (a publish) begin while earlier ones of the kind wait for their
answers, all others when they are alone.  Some need a place among those of the whole door as well
(``entrance.py``).  Answers leave in the order of the requests.

The first request that needs rights asks the broker to accept the client; its credentials are those
of the whole connection.  A refused request whose body has not been read is answered at once; the
rest of it is read and dropped for a while, so that the peer can read the answer, and the connection
ends.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

import h11

from tmqp.constants import RESULT_MISDIRECTED_REQUEST, RESULT_UNAUTHORIZED
from tmqp.extensions import HEADER_NODE_ADDRESS
from tmqp.frames import Frame
from tmqp_server.doors.http.client import CONNECTED, STRANGER, WAITING, ClientState
from tmqp_server.doors.http.context import HttpContext
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.json_door import JsonDoor
from tmqp_server.doors.http.messages import (
    BadRequest,
    HttpRequest,
    HttpResponse,
    has_bare_newline,
)
from tmqp_server.doors.http.reading import NO_REQUEST, RequestReader, has_body, problem_of
from tmqp_server.doors.http.websocket import WebSocketLayer, upgrade_headers
from tmqp_server.doors.ordered import OrderedAnswers
from tmqp_server.doors.port import SYNTAX, Door, DoorSession
from tmqp_server.engine.commands import Command, Disconnect
from tmqp_server.engine.effects import (
    Accept,
    AnswerPull,
    AnswerRouted,
    CloseSession,
    Confirm,
    ConfirmRun,
    DeliverPulled,
    Effect,
    EndPull,
    EventsEnded,
    Lapsed,
    Left,
    Refuse,
    Reply,
)

__all__ = ["HttpSession"]

_NOTHING: Final[tuple[Command, ...]] = ()


class HttpSession(DoorSession):
    """One HTTP connection."""

    def __init__(self, context: HttpContext, number: int, now: float) -> None:
        super().__init__()
        self._context = context
        self._limits = context.limits
        self._reader = RequestReader(context)
        self._client = ClientState(
            number,
            context.limits,
            context.new_id,
            context.letters,
            context.offset_s,
            context.manner,
        )
        self._answers = OrderedAnswers()
        #: Unanswered exchanges that have begun, in order.
        self._begun: deque[Exchange] = deque()
        self._reading: Exchange | None = None
        #: It is complete and has not begun.
        self._complete: Exchange | None = None
        #: Bytes of later requests.
        self._later = b""
        #: No request is read any more.
        self._last = False
        self._idle_due = now + context.limits.idle_timeout_s
        self._linger_due = math.inf
        self._linger_bytes = 0
        #: When the handler that is due may go on, if it has to pause.
        self._resumes = 0.0
        #: When the client that comes after another one on this connection is asked about.
        self._again_due = math.inf
        self._socket: WebSocketLayer | None = None
        self._inner: Door | None = None

    # -- bytes and time in ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        commands: list[Command] = []
        if self.closed:
            return commands
        if self._socket is not None:
            commands += self._socket.receive(data, now)
        elif self._last:
            self._drop(len(data), now, commands)
        elif self._reading is not None:
            self._reading.machine.receive_data(data)
            if self._reading.request is None:
                self._reading.head_bytes += len(data)
            self._work(now, commands)
        elif self._complete is not None and (
            len(self._later) + len(data) > self._limits.max_pipelined_bytes
        ):
            commands += self._end("too many pipelined requests")
        else:
            self._later += data
            self._work(now, commands)
        return self._note(commands)

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more."""
        if self._socket is not None:
            return self._note(list(self._socket.receive_eof(now)))
        return [] if self.closed else self._end("the peer closed the connection")

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side: who waits for an answer is told 503."""
        if self.closed:
            return _NOTHING
        if self._socket is not None:
            return self._note(list(self._socket.close(1001, reason, now)))
        waiting = [*self._begun]
        for each in (self._complete, self._reading):
            if each is not None and each.machine.our_state is h11.SEND_RESPONSE:
                waiting.append(each)
        for exchange in waiting:
            exchange.at(now)
            if exchange.machine.our_state is h11.SEND_RESPONSE:
                exchange.respond(self._context.manner.problem(503, reason), closes=True)
            elif exchange.handler is not None:
                exchange.handler.stop()
        return self._note(self._end(reason))

    def _note(self, commands: list[Command]) -> list[Command]:
        """Say how much there is to send, and whether the session is over."""
        socket = self._socket
        self.outbound_bytes = self._answers.ready_bytes
        if socket is not None:
            self.reads = socket.inner.reads
            self.outbound_bytes += socket.waiting_bytes()
            if socket.reason and not self.closed:
                self.closed = True
                self.close_reason = socket.reason
        return commands

    def _end(self, reason: str) -> list[Command]:
        """Nothing is read any more, and no answer comes but those that are ready."""
        self.closed = True
        self.close_reason = self.close_reason or reason
        self._abandon_all()
        self._reading = self._complete = None
        self._later = b""
        self._answers.clear()
        client = self._client
        client.confirms.clear()
        client.deliveries.clear()
        if client.standing != CONNECTED:
            return []
        client.standing = STRANGER
        return [Disconnect(client.number)]

    def gone(self) -> None:
        """The connection is over: count what was open no more."""
        self._abandon_all()
        if self._socket is not None:
            self._context.tally.websockets -= 1

    def _abandon_all(self) -> None:
        if self._complete is not None:
            self._context.entrance.left(self._complete)
        for each in self._begun:
            each.abandon()
            self._context.entrance.left(each)
            if each.handler is not None and not each.answered:
                each.handler.abandoned()
        self._begun.clear()

    def _drop(self, count: int, now: float, commands: list[Command]) -> None:
        """What comes behind the last request is read for a while, and dropped."""
        self._linger_bytes += count
        if self._linger_bytes > self._limits.max_linger_bytes and self._linger_due < math.inf:
            commands += self._end("a request was refused")

    # -- reading --------------------------------------------------------------------------------

    def _work(self, now: float, commands: list[Command]) -> None:
        """Read and begin requests as far as that goes."""
        while not self.closed and self._socket is None:
            self._let_go(now, commands)
            if self._complete is not None:
                if not self._may_begin(self._complete):
                    return
                exchange, self._complete = self._complete, None
                self._begin(exchange, now, commands)
            elif self._reading is not None:
                if not self._read(self._reading, now):
                    return
            elif self._next_begins():
                due = now + self._limits.head_timeout_s
                exchange = Exchange(
                    self._client,
                    self._answers,
                    self._context.date,
                    self._context.manner,
                    self._limits.max_head_bytes,
                    due,
                    self._context.tally,
                )
                exchange.peer = self.peer
                exchange.machine.receive_data(self._later)
                exchange.head_bytes = len(self._later)
                self._later = b""
                self._reading = exchange
            else:
                return

    def _next_begins(self) -> bool:
        """Whether there are bytes of another request; empty lines before it are none."""
        while self._later.startswith(b"\r\n"):
            self._later = self._later[2:]
        return self._later not in (b"", b"\r") and not self._last

    def _read(self, exchange: Exchange, now: float) -> bool:
        """Read on; False when more bytes are needed."""
        exchange.at(now)
        machine = exchange.machine
        try:
            if exchange.request is None and has_bare_newline(machine.trailing_data[0]):
                raise BadRequest(400, NO_REQUEST)
            while True:
                event = machine.next_event()
                if event is h11.NEED_DATA:
                    if exchange.request is not None and machine.they_are_waiting_for_100_continue:
                        exchange.go_on()
                    return False
                if isinstance(event, h11.Request):
                    exchange.heard_head(event)
                    self._reader.head(exchange, event)
                    exchange.due = now + self._limits.body_timeout_s
                elif isinstance(event, h11.Data):
                    self._reader.keep(exchange, bytes(event.data))
                else:
                    assert isinstance(event, h11.EndOfMessage), f"{event!r} ends a request"
                    self._completed(exchange)
                    return True
        except h11.RemoteProtocolError as error:
            self.violation = SYNTAX
            self._refuse(exchange, *problem_of(error, exchange, self._limits))
        except BadRequest as error:
            self._refuse(exchange, error.status, error.detail)
        return True

    def _completed(self, exchange: Exchange) -> None:
        """A request is whole: what follows in the stream is the next one."""
        machine = exchange.machine
        exchange.wanted.body = bytes(exchange.body)
        exchange.body = bytearray()
        self._later = machine.trailing_data[0]
        self._reading = None
        self._complete = exchange
        exchange.due = math.inf
        if machine.their_state is h11.MUST_CLOSE:
            self._last = True

    def _refuse(self, exchange: Exchange, status: int, detail: str) -> None:
        """Answer a request that goes no further."""
        more: list[tuple[bytes, bytes]] = []
        request = exchange.request
        if status == 405 and request is not None:
            more.append((b"Allow", ", ".join(self._context.routes.methods(request.path)).encode()))
        if status == 426:
            more.append((b"Upgrade", b"websocket"))
        if status == 503:
            more.append((b"Retry-After", b"1"))
        if status == 401:
            more.append((b"WWW-Authenticate", self._context.manner.challenge))
        unread = self._reading is exchange
        self._reading = None
        if unread and not has_body(exchange):
            # The end of such a request is next; it may be followed by others.
            assert isinstance(exchange.machine.next_event(), h11.EndOfMessage), "it has no body"
            self._later = exchange.machine.trailing_data[0]
            unread = False
        elif unread:
            self._linger_due = 0.0  # set when the answer is out
        answer = self._context.manner.problem(status, detail, *more)
        exchange.respond(answer, closes=unread or status in self._context.manner.closing)
        self._begun.append(exchange)
        if exchange.closes:
            self._last = True

    # -- carrying out ---------------------------------------------------------------------------

    def _may_begin(self, exchange: Exchange) -> bool:
        if self._client.standing == WAITING or exchange.held:
            return False
        begun = self._begun
        if not begun:
            return True
        route = exchange.route
        if route is None or not route.overlaps or len(begun) >= self._limits.max_unanswered:
            return False
        return all([each.route is not None and each.route.overlaps for each in begun])

    def _begin(self, exchange: Exchange, now: float, commands: list[Command]) -> None:
        """A complete request's turn has come."""
        exchange.at(now)
        request = exchange.wanted
        route = exchange.route
        client = self._client
        try:
            if exchange.refusal is not None:
                raise exchange.refusal
            if route is None:
                self._answer_options(exchange, request)
                return
            if not route.public:
                if client.standing == STRANGER:
                    commands.append(client.connect(request, self._context.door_name, now))
                    self._complete = exchange
                    return
                if not client.is_same(request, now):
                    if self._context.manner.changes_clients and not self._begun:
                        commands.append(self._change_client(exchange, now))
                        return
                    raise BadRequest(421, "a connection belongs to one client: open another one")
            if route.bounded and not self._context.entrance.admit(exchange, now):
                exchange.held = True
                self._complete = exchange
                return
            exchange.handler = route.begin(exchange)
            if exchange.asks_who and client.standing == STRANGER:
                commands.append(client.connect(request, self._context.door_name, now))
                self._complete = exchange
                return
        except BadRequest as error:
            closes = error.status in (400, 421) and client.standing == STRANGER
            self._refuse(exchange, error.status, error.detail)
            self._last = self._last or closes or exchange.closes
            return
        self._begun.append(exchange)
        if exchange.upgrade:
            self._switch(exchange, now, commands)
        elif exchange.handler is not None:
            commands += exchange.handler.start(now)

    def _change_client(self, exchange: Exchange, now: float) -> Command:
        """Let the client go; the broker is asked about the new one in a step of its own, when it
        has forgotten the one before."""
        self._client.forget()
        self._complete = exchange
        self._again_due = now
        return Disconnect(self._client.number)

    def _answer_options(self, exchange: Exchange, request: HttpRequest) -> None:
        methods = self._context.routes.methods(request.path)
        found = methods or ["GET", "HEAD", "OPTIONS", "POST"]
        status = self._context.manner.options_status
        exchange.respond(HttpResponse(status, b"", b"", (b"Allow", ", ".join(found).encode())))
        self._begun.append(exchange)

    def _let_go(self, now: float, commands: list[Command]) -> None:
        """Forget exchanges that are answered; end the connection behind the last one."""
        begun = self._begun
        while begun and begun[0].answered:
            closes = begun[0].closes
            self._context.entrance.left(begun.popleft())
            self._idle_due = now + self._limits.idle_timeout_s
            if closes:
                self._last = True
                if self._linger_due == math.inf:
                    commands += self._end("the last request was answered")
                    return
                self._linger_due = now + self._limits.linger_timeout_s
                return
        alone = not begun and self._complete is None and self._reading is None
        if self._last and alone and self._linger_due == math.inf:
            commands += self._end("the last request was answered")

    def _switch(self, exchange: Exchange, now: float, commands: list[Command]) -> None:
        """Another protocol begins behind this request."""
        door = self._inner = self._context.inner[exchange.upgrade]
        number = self._client.number
        if isinstance(door, JsonDoor):
            inner: DoorSession = door.open_for(number, self._client.client_id)
        else:
            inner = door.open(number, now)
        exchange.switch(upgrade_headers(exchange.wanted, exchange.upgrade))
        self._begun.clear()
        later, self._later = self._later, b""
        self._socket = WebSocketLayer(inner, self._limits, now)
        self._context.tally.websockets += 1
        if later:
            commands += self._socket.receive(later, now)

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        due, reads = self._due(), self.reads
        commands = self._apply(effect, now)
        self.hurried = self._due() < due or (self.reads and not reads)
        return commands

    def _apply(self, effect: Effect, now: float) -> Sequence[Command]:
        socket = self._socket
        if socket is not None:
            commands = list(socket.inner.apply(effect, now))
            socket.pump(now)
            return self._note(commands)
        if self.closed:
            return _NOTHING
        if isinstance(effect, CloseSession):
            self._client.standing = STRANGER
            return self.close(effect.reason, now)
        commands = []
        if isinstance(effect, Accept):
            self._client.standing = CONNECTED
            self._client.client_id = effect.client_id
        elif isinstance(effect, Refuse):
            self._turn_away(effect.code, effect.address, now)
        elif isinstance(effect, Lapsed):
            self._client.release(effect.channel, effect.queue_id, effect.message_id)
        elif isinstance(effect, (Left, EventsEnded)):
            for exchange in self._begun:
                if exchange.handler is not None and not exchange.answered:
                    exchange.at(now)
                    if isinstance(effect, Left):
                        exchange.handler.left(effect.channel)
                    else:
                        exchange.handler.events_ended(effect.event)
        else:
            handler = self._handler_of(effect)
            if handler is not None and not handler.exchange.answered:
                handler.exchange.at(now)
                commands += handler.apply(effect, now)
        self._work(now, commands)
        return self._note(commands)

    def _turn_away(self, code: int, address: str, now: float) -> None:
        """The broker does not accept the client."""
        self._client.standing = STRANGER
        exchange, self._complete = self._complete, None
        if exchange is None:
            return
        exchange.at(now)
        manner = self._context.manner
        if code == RESULT_UNAUTHORIZED:
            challenge = (b"WWW-Authenticate", manner.challenge)
            answer = manner.problem(401, "the credentials are missing or wrong", challenge)
        elif code == RESULT_MISDIRECTED_REQUEST:
            answer = manner.refused(code, "this server stands by, another one takes clients")
            if address:
                answer.headers.append((HEADER_NODE_ADDRESS.encode(), address.encode()))
        else:
            answer = manner.refused(code, "the server takes no more clients")
        exchange.respond(answer, closes=True)
        self._begun.append(exchange)

    def _handler_of(self, effect: Effect) -> Handler | None:
        """Who asked for an effect; None for an answer that comes too late."""
        found: object = None
        if isinstance(effect, ConfirmRun):
            found = self._client.confirms.get(effect.message_ids[0])
        elif isinstance(effect, Confirm):
            found = self._client.confirms.get(effect.message_id)
        elif isinstance(effect, (Reply, DeliverPulled, EndPull, AnswerPull, AnswerRouted)):
            found = effect.request
            if isinstance(found, Frame):  # a push that was refused
                found = self._client.confirms.get(found.message_id)
            elif not isinstance(found, Handler):
                handlers = [each.handler for each in self._begun]
                found = next((each for each in handlers if each and each.pushed(found)), None)
        return found if isinstance(found, Handler) else None

    def deliver(self, data: bytes) -> None:
        """Queue what the door has encoded: an event, or bytes for the inner session."""
        socket = self._socket
        if socket is not None:
            socket.inner.deliver(data)
        else:
            for exchange in self._begun:
                if exchange.handler is not None and not exchange.answered:
                    exchange.handler.event(data)
        self._note([])

    def encoder(self) -> Door | None:
        """The inner door, while its protocol is spoken."""
        socket = self._socket
        return None if socket is None else self._inner

    # -- bytes out ------------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        data = self._answers.take()
        socket = self._socket
        if socket is not None:
            data += socket.take()
        self._note([])
        return data

    # -- memory and time ------------------------------------------------------------------------

    def held_bytes(self) -> int:
        """What is kept of the peer's requests."""
        if self._socket is not None:
            return self._socket.held_bytes()
        held = len(self._later) + self._answers.waiting_bytes
        for each in (self._reading, self._complete):
            if each is not None:
                held += each.held_bytes()
                if each.request is not None:
                    held += len(each.request.body)
        return held

    def forget_hello(self) -> None:
        """Keep nothing of a client that will be refused."""
        self._later = b""
        if self._complete is not None:
            self._complete.wanted.body = b""
        self._last = True

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` wants to be called."""
        due = self._due()
        return None if due == math.inf else due

    def _due(self) -> float:
        if self.closed:
            return math.inf
        if self._socket is not None:
            return self._socket.next_deadline()
        due = self._again_due
        for each in self._begun:
            if each.handler is not None and not each.answered:
                due = min(due, max(each.handler.due, self._resumes))
        if self._complete is not None:
            due = min(due, self._complete.due)
        if self._reading is not None:
            due = min(due, self._reading.due)
        elif not self._begun and self._complete is None:
            due = min(due, self._idle_due if self._linger_due == math.inf else self._linger_due)
        return due

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do what is due."""
        commands: list[Command] = []
        if self.closed:
            return commands
        if self._socket is not None:
            commands += self._socket.on_deadline(now)
            return self._note(commands)
        if self._again_due <= now:
            self._again_due = math.inf
            self._client.standing = STRANGER
        for each in list(self._begun):
            handler = each.handler
            if handler is None or each.answered or handler.due > now:
                continue
            if self._resumes <= 0.0:
                self._resumes = self._context.entrance.resumes(now)
            if self._resumes > now:
                break
            self._resumes = 0.0  # one pause for each step
            each.at(now)
            commands += handler.on_deadline(now)
        if self._complete is not None and self._complete.due <= now:
            self._complete.due = math.inf
            self._complete.held = False
        reading = self._reading
        if reading is not None and reading.due <= now:
            reading.at(now)
            what = "head" if reading.request is None else "body"
            self._refuse(reading, 408, f"the {what} of the request did not come in time")
        elif reading is None and not self._begun and self._complete is None:
            if self._linger_due <= now:
                commands += self._end("a request was refused")
            elif self._idle_due <= now:
                commands += self._end("no request came for a while")
        self._work(now, commands)
        return self._note(commands)
