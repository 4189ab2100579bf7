"""The requests of one HTTP/1.1 connection: reading, beginning and ending them in order.

Theory of operation.  Each request is an :class:`Exchange` with an ``h11.Connection`` of its own,
which reads the request and writes its answer; the bytes that follow a request are given to the next
exchange.  One request is read at a time.  A complete one waits until it may begin: requests whose
routes overlap (a publish) begin while earlier ones of the kind wait for their answers, all others
only after all earlier ones were answered.  Some also need a place among the requests of the whole
door (``entrance.py``).  Answers are sent in the order of the requests.

With the first request that needs rights, the session asks the broker to accept the client; the
request's credentials apply to the whole connection.  A refused request whose body has not been read
is answered at once.  The rest of its body is read and dropped for a while, so that the peer can
read the answer; then the connection ends.
"""

from __future__ import annotations

import math
from collections import deque

import h11

from tmqp_server.doors.http.client import CONNECTED, STRANGER, WAITING, ClientState
from tmqp_server.doors.http.context import HttpContext
from tmqp_server.doors.http.exchange import Exchange
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

__all__ = ["HttpRequests"]


class HttpRequests(DoorSession):
    """The requests of a connection; ``HttpSession`` completes it."""

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
        #: A complete request that has not begun.
        self._complete: Exchange | None = None
        #: Bytes of later requests.
        self._later = b""
        #: No request is read any more.
        self._last = False
        self._idle_due = now + context.limits.idle_timeout_s
        self._linger_due = math.inf
        self._linger_bytes = 0
        #: When the handler that is due may continue, if it has to pause.
        self._resumes = 0.0
        #: When the broker is asked about a client that follows another one on this connection.
        self._again_due = math.inf
        self._socket: WebSocketLayer | None = None
        self._inner: Door | None = None

    # -- reading --------------------------------------------------------------------------------

    def _work(self, now: float, commands: list[Command]) -> None:
        """Read and begin as many requests as possible."""
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
        """Whether there are bytes of another request, not counting empty lines."""
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
        """Note that a request has arrived completely; the bytes after it belong to the next one."""
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
        """Answer a request with an error."""
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
        """Begin a complete request."""
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
        """Disconnect the previous client.  The broker is asked about the new one in a later step,
        when it has forgotten the previous one."""
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
        """Forget exchanges that are answered; end the connection after the last one."""
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
        """Change the connection to another protocol after this request."""
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

    # -- the end ----------------------------------------------------------------------------------

    def _end(self, reason: str) -> list[Command]:
        """End the session: nothing more is read, and only answers that are ready are sent."""
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

    def _abandon_all(self) -> None:
        if self._complete is not None:
            self._context.entrance.left(self._complete)
        for each in self._begun:
            each.abandon()
            self._context.entrance.left(each)
            if each.handler is not None and not each.answered:
                each.handler.abandoned()
        self._begun.clear()
