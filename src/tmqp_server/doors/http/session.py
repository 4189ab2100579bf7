"""One HTTP/1.1 connection as an I/O-free session: passes bytes, effects and time to its requests
(``requests.py``) or to the protocol of its WebSocket.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import h11

from tmqp.constants import RESULT_MISDIRECTED_REQUEST, RESULT_UNAUTHORIZED
from tmqp.extensions import HEADER_NODE_ADDRESS
from tmqp.frames import Frame
from tmqp_server.doors.http.client import CONNECTED, STRANGER
from tmqp_server.doors.http.exchange import Handler
from tmqp_server.doors.http.requests import HttpRequests
from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Command
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


class HttpSession(HttpRequests):
    """One HTTP connection."""

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
        """Close from this side: requests that wait are answered with 503."""
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
        """Update the attributes of the session: bytes to send, whether to read, whether it is
        closed."""
        socket = self._socket
        self.outbound_bytes = self._answers.ready_bytes
        if socket is not None:
            self.reads = socket.inner.reads
            self.outbound_bytes += socket.waiting_bytes()
            if socket.reason and not self.closed:
                self.closed = True
                self.close_reason = socket.reason
        return commands

    def gone(self) -> None:
        """The connection has ended: stop counting its streams and its WebSocket."""
        self._abandon_all()
        if self._socket is not None:
            self._context.tally.websockets -= 1

    def _drop(self, count: int, now: float, commands: list[Command]) -> None:
        """Drop bytes after the last request, which are read for a while."""
        self._linger_bytes += count
        if self._linger_bytes > self._limits.max_linger_bytes and self._linger_due < math.inf:
            commands += self._end("a request was refused")

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
        """Answer a client that the broker refuses."""
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
            answer = manner.refused(code, "this server is a standby, another one serves clients")
            if address:
                answer.headers.append((HEADER_NODE_ADDRESS.encode(), address.encode()))
        else:
            answer = manner.refused(code, "the server takes no more clients")
        exchange.respond(answer, closes=True)
        self._begun.append(exchange)

    def _handler_of(self, effect: Effect) -> Handler | None:
        """The handler that an effect is for; None if it comes too late."""
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
        """Pass on bytes that the door has encoded: an event, or bytes for the inner session."""
        socket = self._socket
        if socket is not None:
            socket.inner.deliver(data)
        else:
            for exchange in self._begun:
                if exchange.handler is not None and not exchange.answered:
                    exchange.handler.event(data)
        self._note([])

    def encoder(self) -> Door | None:
        """The inner door, once its protocol is spoken; else None."""
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
        """About how many bytes of memory the peer's requests take."""
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
        """Drop what was received from a client that will be refused."""
        self._later = b""
        if self._complete is not None:
            self._complete.wanted.body = b""
        self._last = True

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` must be called; None for never."""
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
            self._refuse(reading, 408, f"the {what} of the request did not arrive in time")
        elif reading is None and not self._begun and self._complete is None:
            if self._linger_due <= now:
                commands += self._end("a request was refused")
            elif self._idle_due <= now:
                commands += self._end("no request came for a while")
        self._work(now, commands)
        return self._note(commands)
