"""One connection of NSQ's TCP protocol: commands of the client into those of the engine.

Theory of operation.  ``CommandDecoder`` finds the commands and all errors that need no broker.
With the first command except IDENTIFY and NOP, the session asks the broker to accept the client;
further commands wait for the broker's answer, and the peer is not read.  Answers are sent in the
order of their commands (``ordered.py``).  Heartbeats are sent at once.  So are messages and the
errors of FIN, REQ and TOUCH, which clients do not wait for, but never before the answer to SUB.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from tmqp.constants import RESULT_MISDIRECTED_REQUEST, RESULT_OK, RESULT_UNAUTHORIZED
from tmqp.greetings import FirstBytes
from tmqp_server.doors.nsq.consuming import (
    AnswerRequest,
    ConsumingSession,
    LastError,
    PendingSub,
)
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.message import DOOR, id_of, source_of
from tmqp_server.doors.nsq.publishing import MadeTopic
from tmqp_server.doors.nsq.writing import CONNECTED, NEVER, NOTHING, STRANGER, WAITING
from tmqp_server.doors.nsq_world import NsqClient
from tmqp_server.doors.ordered import Slot
from tmqp_server.doors.port import SYNTAX
from tmqp_server.engine.commands import Command, Connect, Credentials, SetTerms, Terms
from tmqp_server.engine.effects import (
    Accept,
    CloseSession,
    Confirm,
    ConfirmRun,
    Effect,
    Lapsed,
    Left,
    Refuse,
    Reply,
)
from tmqp_wires.nsq import LayerError, Negotiated
from tmqp_wires.nsq.events import (
    Authenticate,
    Close,
    Event,
    Finish,
    Identify,
    Nop,
    Publish,
    PublishDeferred,
    PublishMany,
    Ready,
    Requeue,
    Subscribe,
    Touch,
    Violation,
)
from tmqp_wires.nsq.writing import HEARTBEAT, OK, response_frame

__all__ = ["NsqSession"]

_SHORT_ID: Final = 8
_MAX_NAME: Final = 200
_EVENT_BYTES: Final = 64
_HTTP: Final = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC")
_HTTP_ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 55\r\nConnection: close\r\n\r\n"
    b"This port speaks NSQ's TCP protocol; HTTP has its own.\n"
)


class NsqSession(ConsumingSession):
    """One NSQ connection."""

    def __init__(self, context: NsqContext, number: int, now: float) -> None:
        super().__init__(context, number)
        self._first = FirstBytes()
        self._early_bytes = 0
        self._asks_slot: Slot | None = None
        self._wanted: Negotiated | None = None
        self._greeting_due = now + context.limits.greeting_timeout_s
        self._beat_due = NEVER
        self._silence_due = NEVER

    # -- bytes and time in ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        self._context.time_s = now
        if self.closed or self._ends:
            return NOTHING
        self._runs.begin_chunk()
        self._first.take(data)
        if self._layer is not None:
            try:
                data = self._layer.decoded(data)
            except LayerError as error:
                return self._end(f"the compressed stream is damaged: {error}")
        return self._take(self._decoder.feed(data), now)

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more."""
        if self.closed:
            return NOTHING
        commands = list(self._take(self._decoder.feed_eof(), now))
        return [*commands, *self._end("the peer closed the connection")]

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, without a message (N101)."""
        return self._end(reason)

    def _take(self, events: list[Event], now: float) -> Sequence[Command]:
        if not events:
            return NOTHING
        if self._greeting_due != NEVER:
            self._greeting_due = NEVER
            self._beat_due = now + self._who.heartbeat_interval_ms / 1000
            self._row = NsqClient(self._number, self.peer, now)
            self._context.world.clients[self._number] = self._row
        self._hear(now)
        if self._standing == WAITING:
            return self._keep_early(events)
        return self._commands(events, now)

    def _hear(self, now: float) -> None:
        """Note a sign of life: anything that the client sends counts as a heartbeat."""
        interval_ms = self._who.heartbeat_interval_ms
        self._silence_due = now + interval_ms / 500 if interval_ms else NEVER

    def _keep_early(self, events: list[Event]) -> Sequence[Command]:
        """Keep events until the broker has decided about the client."""
        self._early += events
        for event in events:
            self._early_bytes += _bytes_of(event)
        if self._early_bytes > self._context.limits.max_early_bytes:
            return self._end("too much was sent before the server had decided about the client")
        return NOTHING

    # -- events to commands ---------------------------------------------------------------------

    def _commands(self, events: list[Event], now: float) -> Sequence[Command]:
        commands: list[Command] = []
        at = 0
        count = len(events)
        while at < count and not self._ends and not self.closed:
            event = events[at]
            kind = type(event)
            if self._standing != CONNECTED and not isinstance(event, (Identify, Nop, Violation)):
                commands.append(self._connect(event))
                if kind is Authenticate:
                    at += 1
                self._keep_early(events[at:])
                break
            if kind is Finish:
                at = self._finish(events, at, commands)
            elif kind is Publish:
                at = self._publish(events, at, commands, now)
            else:
                at += 1
                handle = _HANDLERS.get(kind)
                if handle is not None:
                    handle(self, event, commands, now)
        self._note()
        return commands

    def _connect(self, event: Event) -> Command:
        """Ask the broker to accept the client (N44: a client without a name gets its address as
        name)."""
        self._standing = WAITING
        self.reads = False
        who = self._who
        name = who.client_id or who.hostname or self.peer or "nsq"
        client_id = f"{name.encode()[:_MAX_NAME].decode('utf-8', 'ignore')}/"
        client_id += self._context.new_id()[:_SHORT_ID]
        credentials = None
        if isinstance(event, Authenticate):
            self._asks_slot = self._answers.open()
            credentials = Credentials("token", event.secret.decode("utf-8", "replace"))
        return Connect(
            self._number,
            event,
            client_id,
            who.hostname[:_MAX_NAME] or None,
            who.user_agent[:_MAX_NAME] or None,
            DOOR,
            credentials=credentials,
            hears_lapses=True,
        )

    def _identify(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Identify)
        who = self._who = event.negotiated
        interval_ms = who.heartbeat_interval_ms
        self._beat_due = now + interval_ms / 1000 if interval_ms else NEVER
        self._hear(now)
        self._describe(who)
        self._answer(response_frame(event.answer))
        if not who.changes_stream:
            return
        self._wanted = who  # once all is answered, and if nothing came behind it

    def _all_answered(self) -> None:
        """Begin TLS or compression, if negotiated, once all earlier commands are answered."""
        who = self._wanted
        if who is None or self._ends or len(self._answers) or self.wants_tls:
            return
        if who.tls and not self._decoder.secure:
            self.wants_tls = self.wants_written = True
            self.hurried = True
        else:
            self._put_layers_on()

    def _describe(self, who: Negotiated) -> None:
        """Copy what the client tells about itself into the statistics."""
        row = self._row
        if row is not None:
            row.client_id = who.client_id or row.client_id
            row.hostname = who.hostname or row.hostname
            row.user_agent = who.user_agent
            row.sample_rate = who.sample_rate
            row.snappy = row.snappy or who.snappy
            row.deflate = row.deflate or who.deflate

    def _put_layers_on(self) -> None:
        """Begin compression, if negotiated; each new layer begins with an OK (N39)."""
        who = self._wanted
        assert who is not None, "the client has asked for it"
        self._wanted = None
        if who.tls:
            self._plain.append(OK)
        if who.snappy or who.deflate:
            self._seal()
            compression = self._context.compression
            snappy = who.snappy
            self._layer = compression.snappy() if snappy else compression.deflate(who.deflate_level)
            self._plain.append(OK)
        self._decoder.resume()

    def secured(self, now: float) -> Sequence[Command]:
        """Continue after the TLS handshake."""
        self._decoder.secure = True
        if self._row is not None:
            self._row.tls_version = "TLS"
        self._hear(now)
        self._put_layers_on()
        self._note()
        return NOTHING

    # -- ends -----------------------------------------------------------------------------------

    def _violation(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Violation)
        self.violation = SYNTAX
        self._why = event.text.decode("utf-8", "replace")
        answer = event.answer
        if event.text == b"E_BAD_PROTOCOL":
            self._why = f"{self._first.sent()}, not NSQ's greeting"
            if self._first.data.startswith(_HTTP):
                answer = _HTTP_ANSWER
        slot = self._answers.open()
        self._begin_end(self._orders, now)
        if self._channel and commands:
            # Commands of this chunk may also be answered, and their answers come first.
            last = LastError(slot, answer)
            commands.append(SetTerms(self._number, last, self._channel, Terms()))
            return
        self._answers.finish(slot, answer)
        commands.extend(self._end_if_answered())

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        self._context.time_s = now
        if self.closed:
            return NOTHING
        if isinstance(effect, Confirm):
            return self._confirmed(effect, now)
        if isinstance(effect, ConfirmRun):
            return self._run_confirmed(effect, now)
        if isinstance(effect, Reply):
            return self._replied(effect, now)
        if isinstance(effect, Accept):
            return self._accepted(effect, now)
        if isinstance(effect, Refuse):
            return self._refused(effect, now)
        if isinstance(effect, Lapsed):
            self._count(lapsed=1)
            return NOTHING
        if isinstance(effect, Left):
            return self._end("the channel was removed")  # N71: without a word
        if isinstance(effect, CloseSession):
            self._standing = STRANGER
            return self._end(effect.reason)
        return NOTHING

    def _accepted(self, effect: Accept, now: float) -> Sequence[Command]:
        self._standing = CONNECTED
        self._source = source_of(effect.client_id)
        self.reads = True
        self.hurried = True
        slot = self._asks_slot
        if slot is not None:
            identity = self._context.world.identities.pop(self._number, ("", "", 1))
            if not identity[2]:
                self._asks_slot = None
                text = b"E_UNAUTHORIZED AUTH no authorizations found"
                return self._fatal(text, slot, self._orders, now)
            if self._row is not None:
                self._row.identity, self._row.identity_url = identity[0], identity[1]
            told = {
                "identity": identity[0],
                "identity_url": identity[1],
                "permission_count": identity[2],
            }
            data = json.dumps(told, separators=(",", ":")).encode()
            self._answers.finish(slot, response_frame(data))
            self._asks_slot = None
        early = self._early
        self._early = []
        self._early_bytes = 0
        return self._commands(early, now)

    def _refused(self, effect: Refuse, now: float) -> Sequence[Command]:
        self._standing = STRANGER
        slot = self._asks_slot
        self._asks_slot = None
        if effect.code == RESULT_MISDIRECTED_REQUEST:
            text = b"E_INVALID this server is a standby, another one serves clients"
            return self._fatal(text, slot or self._answers.open(), self._orders, now)
        if slot is not None:
            return self._fatal(b"E_AUTH_FAILED AUTH failed", slot, self._orders, now)
        if effect.code == RESULT_UNAUTHORIZED:
            text = b"E_AUTH_FIRST AUTH required before %s" % _word_of(effect.request)
        else:
            text = b"E_INVALID the server takes no more clients (%d)" % effect.code
        return self._fatal(text, self._answers.open(), self._orders, now)

    def _replied(self, effect: Reply, now: float) -> Sequence[Command]:
        request = effect.request
        if isinstance(request, str):
            self._answer_failed(b"FIN", request.encode("latin-1"), effect.code)
        elif isinstance(request, AnswerRequest):
            if effect.code != RESULT_OK:
                self._answer_failed(request.word, request.name, effect.code)
        elif isinstance(request, LastError):
            self._answers.finish(request.slot, request.answer)
            return self._end_if_answered()
        elif isinstance(request, MadeTopic):
            self._topic_made(request, effect.code)
        elif isinstance(request, PendingSub):
            return self._subscribed(request, effect.code, now)
        elif isinstance(request, bytes):
            # A push was refused; its publication is answered with the confirm.
            self._codes[id_of(request)] = effect.code
        return NOTHING

    def held_bytes(self) -> int:
        """Bytes of the peer that are not yet commands of the engine."""
        held = self._decoder.held_bytes + self._early_bytes
        return held if self._layer is None else held + self._layer.held_bytes

    def forget_hello(self) -> None:
        """Drop what was received from a client that will be refused."""
        self._decoder.forget()
        self._early = []
        self._early_bytes = 0

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When a heartbeat is due, or the peer is given up."""
        # Asked for at each chunk: compiled, ``min`` of two is a comparison, and of four is a call.
        alive = min(self._beat_due, self._silence_due)
        over = min(self._greeting_due, self._linger_due)
        due = min(alive, over)
        return None if due == NEVER or self.closed else due

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Ask for a heartbeat, or give up the peer (N96, N97)."""
        if self.closed:
            return NOTHING
        if now >= self._greeting_due:
            return self._end("no greeting came in time")
        if now >= self._linger_due:
            return self._end(self._why)
        if now >= self._beat_due:
            self._beat_due = now + self._who.heartbeat_interval_ms / 1000
            if not self.wants_tls and not self._ends:
                self._plain.append(HEARTBEAT)
                self._note()
        if now >= self._silence_due and self._standing != WAITING:
            return self._end("the client has not answered heartbeats")
        return NOTHING


def _bytes_of(event: Event) -> int:
    """About how many bytes of memory an event takes."""
    if isinstance(event, (Publish, PublishDeferred)):
        return _EVENT_BYTES + len(event.body)
    if isinstance(event, PublishMany):
        return _EVENT_BYTES + sum([_EVENT_BYTES + len(body) for body in event.bodies])
    return _EVENT_BYTES


def _word_of(event: object) -> bytes:
    """The word of the command in an event."""
    for kind, word in _WORDS:
        if isinstance(event, kind):
            return word
    return b"this"


_WORDS: Final[tuple[tuple[type[Event], bytes], ...]] = (
    (Publish, b"PUB"),
    (PublishMany, b"MPUB"),
    (PublishDeferred, b"DPUB"),
    (Subscribe, b"SUB"),
)
_Handler = Callable[[NsqSession, Event, list[Command], float], None]
_HANDLERS: Final[dict[type[Event], _Handler]] = {
    Identify: NsqSession._identify,
    PublishMany: NsqSession._publish_many,
    PublishDeferred: NsqSession._publish_deferred,
    Subscribe: NsqSession._subscribe,
    Ready: NsqSession._ready,
    Requeue: NsqSession._requeue,
    Touch: NsqSession._touch,
    Close: NsqSession._close_wait,
    Violation: NsqSession._violation,
}
