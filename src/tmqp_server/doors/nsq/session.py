"""One connection of NSQ's TCP protocol: commands of the client into those of the engine.

Theory of operation.  ``CommandDecoder`` finds the commands and all errors that need no broker.  The
first command but IDENTIFY asks the broker to let the client in; what comes meanwhile waits, and the
peer is not read.  Answers leave in the order of their commands (``ordered``); messages, heartbeats
and the errors of FIN, REQ and TOUCH, which nobody waits for, leave at once.

What is to be sent is collected in the plain form; ``_seal`` puts it through the layers of the
connection, one unit for each write, before a layer changes and when it is taken.

After an error that ends the connection, earlier publications still get their answers; then the
error is sent, and the connection is closed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, final
from zlib import crc32

from tmqp.constants import (
    PUT_BACK_END,
    PUT_BACK_START,
    RESULT_DUPLICATE,
    RESULT_LIMIT_EXCEEDED,
    RESULT_OK,
    RESULT_UNAUTHORIZED,
)
from tmqp.greetings import name_greeting
from tmqp_server.doors.nsq.message import DOOR, NsqAnswers, NsqRun, id_of
from tmqp_server.doors.nsq.publications import Publication, Publications
from tmqp_server.doors.nsq.topics import QUEUE, channel_channel, topic_channel
from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.doors.port import DoorSession
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Command,
    Connect,
    Credentials,
    Disconnect,
    Extend,
    Join,
    Push,
    PushExtras,
    PushRun,
    Release,
    RunNotes,
    SetTerms,
    Terms,
)
from tmqp_server.engine.effects import (
    Accept,
    CloseSession,
    Confirm,
    ConfirmRun,
    Effect,
    Left,
    Refuse,
    Reply,
)
from tmqp_wires.nsq import CommandDecoder, Layer, LayerError, Negotiated
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
from tmqp_wires.nsq.names import quoted
from tmqp_wires.nsq.writing import (
    CLOSE_WAIT,
    HEARTBEAT,
    MESSAGE_HEAD_BYTES,
    OK,
    error_frame,
    message_frame,
    response_frame,
)

if TYPE_CHECKING:
    from tmqp_server.doors.nsq.door import NsqDoor

__all__ = ["NsqSession"]

_NOTHING: Final[tuple[Command, ...]] = ()
_STRANGER: Final = 0
_WAITING: Final = 1
_CONNECTED: Final = 2

#: As the native door has it: for so many chunks no runs are brought after one had to be divided.
_SINGLY_CHUNKS: Final = 64
_NEVER: Final = float("inf")
_SHORT_ID: Final = 8
_MAX_NAME: Final = 200
_EVENT_BYTES: Final = 64
_WHO_HELLO: Final = 4
_HTTP: Final = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC")
_HTTP_ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 55\r\nConnection: close\r\n\r\n"
    b"This port speaks NSQ's TCP protocol; HTTP has its own.\n"
)


@final
class _Question:
    """What the answer to FIN, REQ or TOUCH is about."""

    __slots__ = ("name", "word")

    def __init__(self, word: bytes, name: bytes) -> None:
        self.word = word
        self.name = name


@final
class _Subscription:
    """A SUB that waits for its answers: that of the feed, then that of the join."""

    __slots__ = ("channel", "code", "is_fed", "slot", "topic")

    def __init__(self, topic: bytes, channel: bytes, slot: Slot) -> None:
        self.topic = topic
        self.channel = channel
        self.slot = slot
        self.code = RESULT_OK
        self.is_fed = False


class NsqSession(DoorSession):
    """One NSQ connection."""

    def __init__(self, door: NsqDoor, number: int, now: float) -> None:
        super().__init__()
        self._door = door
        self._number = number
        self._decoder = CommandDecoder(door.terms)
        self._first = b""
        self._standing = _STRANGER
        self._source = b""
        self._early: list[Event] = []
        self._early_bytes = 0
        self._asks: Authenticate | None = None
        self._asks_slot: Slot | None = None
        #: What is to be sent: through the layers, and not yet.
        self._sealed: list[bytes] = []
        self._plain: list[bytes] = []
        self._layer: Layer | None = None
        self._wanted: Negotiated | None = None
        self._answers = OrderedAnswers()
        self._publications = Publications()
        self._codes: dict[str, int] = {}
        self._orders = 0
        self._ended_at = _NEVER
        self._ends = False
        #: The channel that it consumes, as the engine names it; empty before SUB.
        self._channel = ""
        self._notes = RunNotes()
        self._singly = 0
        self._skipped: list[str] = []
        self._who = Negotiated(
            "",
            "",
            "",
            False,
            door.terms.heartbeat_interval_ms,
            door.terms.output_buffer_size,
            door.terms.output_buffer_timeout_ms,
            0,
            door.terms.msg_timeout_ms,
        )
        self._greeting_due = now + door.limits.greeting_timeout_s
        self._beat_due = _NEVER
        self._silence_due = _NEVER
        self._linger_due = _NEVER

    # -- bytes and time in ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        self._door.time_s = now
        if self.closed or self._ends:
            return _NOTHING
        if self._notes.divided:
            self._notes.divided = False
            self._singly = _SINGLY_CHUNKS
        elif self._singly:
            self._singly -= 1
        if len(self._first) < _WHO_HELLO:
            self._first += data[:32]
        if self._layer is not None:
            try:
                data = self._layer.decoded(data)
            except LayerError as error:
                return self._end(f"the compressed stream is damaged: {error}")
        return self._take(self._decoder.feed(data), now)

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more."""
        if self.closed:
            return _NOTHING
        commands = list(self._take(self._decoder.feed_eof(), now))
        return [*commands, *self._end("the peer closed the connection")]

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, without a word (N101)."""
        return self._end(reason)

    def _take(self, events: list[Event], now: float) -> Sequence[Command]:
        if not events:
            return _NOTHING
        if self._greeting_due != _NEVER:
            self._greeting_due = _NEVER
            self._beat_due = now + self._who.heartbeat_interval_ms / 1000
        self._hear(now)
        if self._standing == _WAITING:
            return self._keep_early(events)
        return self._commands(events, now)

    def _hear(self, now: float) -> None:
        """The client has given a sign of life."""
        interval_ms = self._who.heartbeat_interval_ms
        self._silence_due = now + interval_ms / 500 if interval_ms else _NEVER

    def _keep_early(self, events: list[Event]) -> Sequence[Command]:
        """It is not decided about the client."""
        self._early += events
        for event in events:
            self._early_bytes += _bytes_of(event)
        if self._early_bytes > self._door.limits.max_early_bytes + self._door.limits.max_body_size:
            return self._end("too much was sent before the server had decided about the client")
        return _NOTHING

    # -- events to commands ---------------------------------------------------------------------

    def _commands(self, events: list[Event], now: float) -> Sequence[Command]:
        commands: list[Command] = []
        at = 0
        count = len(events)
        while at < count and not self._ends and not self.closed:
            event = events[at]
            kind = type(event)
            if self._standing != _CONNECTED and not isinstance(event, (Identify, Nop, Violation)):
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
        """Ask to be let in (N44: a client without a name has its address for one)."""
        self._standing = _WAITING
        self.reads = False
        who = self._who
        name = who.client_id or who.hostname or self.peer or "nsq"
        client_id = f"{name.encode()[:_MAX_NAME].decode('utf-8', 'ignore')}/"
        client_id += self._door.new_id()[:_SHORT_ID]
        self._source = client_id.encode()
        credentials = None
        if isinstance(event, Authenticate):
            self._asks = event
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
        )

    def _identify(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Identify)
        who = self._who = event.negotiated
        interval_ms = who.heartbeat_interval_ms
        self._beat_due = now + interval_ms / 1000 if interval_ms else _NEVER
        self._hear(now)
        self._answer(response_frame(event.answer))
        if not who.changes_stream:
            return
        self._wanted = who
        if who.tls:
            self.wants_tls = self.wants_written = True
        else:
            self._put_layers_on()

    def _put_layers_on(self) -> None:
        """Compress what follows, if that was agreed; each layer begins with an OK (N39)."""
        who = self._wanted
        assert who is not None, "the client has asked for it"
        self._wanted = None
        if who.tls:
            self._plain.append(OK)
        if who.snappy or who.deflate:
            self._seal()
            compression = self._door.compression
            snappy = who.snappy
            self._layer = compression.snappy() if snappy else compression.deflate(who.deflate_level)
            self._plain.append(OK)
        self._decoder.resume()

    def secured(self, now: float) -> Sequence[Command]:
        """TLS is on."""
        self._decoder.secure = True
        self._hear(now)
        self._put_layers_on()
        self._note()
        return _NOTHING

    # -- publishing -----------------------------------------------------------------------------

    def _publication(self, word: bytes, topic: bytes, ids: list[str], *, each: bool) -> None:
        self._orders += 1
        slot = self._answers.open()
        publication = Publication(word, topic, ids, each, slot, self._orders)
        self._publications.add(publication)
        if self._publications.count >= self._door.limits.max_unanswered:
            self.reads = False

    def _publish(self, events: list[Event], at: int, commands: list[Command], now: float) -> int:
        """A PUB, or several in a row to one topic; returns where the next command is."""
        first = events[at]
        assert isinstance(first, Publish)
        bodies = [first.body]
        at += 1
        if not self._singly:
            while at < len(events):
                event = events[at]
                if not isinstance(event, Publish) or event.topic != first.topic:
                    break
                bodies.append(event.body)
                at += 1
        self._push(b"PUB", first.topic, bodies, commands, now)
        return at

    def _publish_many(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, PublishMany)
        self._push(b"MPUB", event.topic, event.bodies, commands, now)

    def _publish_deferred(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, PublishDeferred)
        self._push(b"DPUB", event.topic, [event.body], commands, now, event.delay_ms)

    def _push(
        self,
        word: bytes,
        topic: bytes,
        bodies: list[bytes],
        commands: list[Command],
        now: float,
        delay_ms: int = 0,
    ) -> None:
        """Make the topic, if it is new, and put messages into it (N55)."""
        door = self._door
        number = self._number
        channel = topic_channel(topic)
        timestamp_ns = door.unix_ns(now)
        commands.append(door.shapes.create_topic(number, topic))
        if len(bodies) == 1:
            name = door.ids.new()
            frame = message_frame(timestamp_ns, 1, name.encode("ascii"), bodies[0])
            extras = PushExtras(delay_ms=delay_ms) if delay_ms else None
            self._publication(word, topic, [name], each=False)
            commands.append(
                Push(number, name, channel, QUEUE, False, True, len(frame), frame, extras)
            )
            return
        ids = door.ids.several(len(bodies))
        run = NsqRun(ids, bodies, timestamp_ns, topic, self._source)
        self._publication(word, topic, ids, each=word == b"PUB")
        command = PushRun(
            number,
            channel,
            QUEUE,
            False,
            True,
            len(ids),
            run.size(),
            run.largest(),
            run,
            self._notes,
        )
        if self._singly:
            commands.extend(run.pushes(command))
        else:
            commands.append(command)

    # -- consuming ------------------------------------------------------------------------------

    def _subscribe(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Subscribe)
        topic, channel = event.topic, event.channel
        shapes = self._door.shapes
        self._channel = channel_channel(topic, channel)
        asked = _Subscription(topic, channel, self._answers.open())
        commands.append(shapes.create_topic(self._number, topic))
        commands.extend(shapes.create_channel(self._number, topic, channel, asked))
        terms = Terms(0, self._who.msg_timeout_ms, PUT_BACK_START)
        commands.append(Join(self._number, asked, self._channel, terms=terms))

    def _ready(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Ready)
        commands.append(SetTerms(self._number, None, self._channel, Terms(event.count)))

    def _finish(self, events: list[Event], at: int, commands: list[Command]) -> int:
        """One FIN, or several in a row; returns where the next command is."""
        ids: list[str] = []
        while at < len(events):
            event = events[at]
            if not isinstance(event, Finish) or event.message_id[0] == 48:
                break
            ids.append(event.message_id.decode("latin-1"))
            at += 1
        number, channel = self._number, self._channel
        if not ids:
            event = events[at]
            assert isinstance(event, Finish)
            commands.append(self._finish_foreign(event.message_id))
            return at + 1
        if len(ids) == 1:
            name = ids[0]
            commands.append(Acknowledge(number, name, channel, QUEUE, True, "", None, 0, name))
            return at
        run = AcknowledgeRun(number, channel, QUEUE, ids, NsqAnswers(), self._notes, True)
        if self._singly:
            commands.extend(run.singles())
        else:
            commands.append(run)
        return at

    def _finish_foreign(self, name: bytes) -> Command:
        """FIN of a message of another protocol, whose id here is not its own."""
        channel = self._channel
        message_id = self._door.message_id(channel, name)
        self._door.forget_foreign(channel, name)
        question = _Question(b"FIN", name)
        return Acknowledge(self._number, message_id, channel, QUEUE, True, "", None, 0, question)

    def _requeue(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Requeue)
        name = event.message_id
        commands.append(
            Release(
                self._number,
                _Question(b"REQ", name),
                self._door.message_id(self._channel, name),
                self._channel,
                QUEUE,
                PUT_BACK_END,
                event.delay_ms,
            )
        )

    def _touch(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Touch)
        name = event.message_id
        commands.append(
            Extend(
                self._number,
                _Question(b"TOUCH", name),
                self._door.message_id(self._channel, name),
                self._channel,
                QUEUE,
                self._who.msg_timeout_ms,
                self._door.terms.max_msg_timeout_ms,
            )
        )

    def _close_wait(self, event: Event, commands: list[Command], now: float) -> None:
        commands.append(SetTerms(self._number, None, self._channel, Terms(0)))
        self._answer(CLOSE_WAIT)

    # -- ends -----------------------------------------------------------------------------------

    def _violation(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Violation)
        self.close_reason = event.text.decode("utf-8", "replace")
        answer = event.answer
        if event.text == b"E_BAD_PROTOCOL":
            self.close_reason = f"the peer sent {name_greeting(self._first)}, not NSQ's greeting"
            if self._first.startswith(_HTTP):
                answer = _HTTP_ANSWER
        slot = self._answers.open()
        self._begin_end(self._orders, now)
        self._answers.finish(slot, answer)
        commands.extend(self._end_if_answered())

    def _fatal(self, text: bytes, slot: Slot, order: int, now: float) -> Sequence[Command]:
        """End the connection with an error in the place of an answer."""
        if self._ends:
            self._answers.finish(slot)
        else:
            self.close_reason = text.decode("utf-8", "replace")
            self._begin_end(order, now)
            self._answers.finish(slot, error_frame(text))
        return self._end_if_answered()

    def _begin_end(self, order: int, now: float) -> None:
        """Nothing is read any more, and nothing behind this publication is answered."""
        self._ends = True
        self._ended_at = order
        self.reads = False
        self._decoder.forget()
        self._early = []
        self._linger_due = now + self._door.limits.linger_timeout_s
        self.hurried = True

    def _end_if_answered(self) -> Sequence[Command]:
        """Close when an error was the last answer."""
        self._note()
        if self._ends and not len(self._answers):
            return self._end(self.close_reason)
        return _NOTHING

    def _end(self, reason: str) -> Sequence[Command]:
        """Close now; what is ready is still sent."""
        if self.closed:
            return _NOTHING
        self._note()
        self.closed = True
        self.close_reason = self.close_reason or reason
        self._answers.clear()
        self._publications.clear()
        self._decoder.forget()
        self._early = []
        if self._standing != _CONNECTED:
            return _NOTHING
        self._standing = _STRANGER
        return (Disconnect(self._number),)

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        self._door.time_s = now
        if self.closed:
            return _NOTHING
        if isinstance(effect, Confirm):
            return self._confirmed(effect, now)
        if isinstance(effect, ConfirmRun):
            return self._run_confirmed(effect, now)
        if isinstance(effect, Reply):
            return self._replied(effect, now)
        if isinstance(effect, Accept):
            return self._accepted(now)
        if isinstance(effect, Refuse):
            return self._refused(effect, now)
        if isinstance(effect, Left):
            return self._end("the channel was removed")  # N71: without a word
        if isinstance(effect, CloseSession):
            self._standing = _STRANGER
            return self._end(effect.reason)
        return _NOTHING

    def _accepted(self, now: float) -> Sequence[Command]:
        self._standing = _CONNECTED
        self.reads = True
        self.hurried = True
        slot = self._asks_slot
        if slot is not None:
            identity = self._door.identities.pop(self._number, ("", "", 1))
            told = {
                "identity": identity[0],
                "identity_url": identity[1],
                "permission_count": identity[2],
            }
            data = json.dumps(told, separators=(",", ":")).encode()
            self._answers.finish(slot, response_frame(data))
            self._asks = self._asks_slot = None
        early = self._early
        self._early = []
        self._early_bytes = 0
        return self._commands(early, now)

    def _refused(self, effect: Refuse, now: float) -> Sequence[Command]:
        self._standing = _STRANGER
        slot = self._asks_slot
        if slot is not None:
            self._asks = self._asks_slot = None
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
        elif isinstance(request, _Question):
            if effect.code != RESULT_OK:
                self._answer_failed(request.word, request.name, effect.code)
        elif isinstance(request, _Subscription):
            return self._subscribed(request, effect.code, now)
        elif isinstance(request, bytes):
            # Of a push that was refused; what its publication is told comes with the confirm.
            self._codes[id_of(request)] = effect.code
        return _NOTHING

    def _answer_failed(self, word: bytes, name: bytes, code: int) -> None:
        """FIN, REQ or TOUCH was about nothing that the client has (N86)."""
        why = b"client does not own message" if code == _NOT_OWN else b"ID not in flight"
        text = b"E_%s_FAILED %s %s failed %s" % (word, word, name, why)
        self._plain.append(error_frame(text))
        self._note()

    def _subscribed(self, asked: _Subscription, code: int, now: float) -> Sequence[Command]:
        if not asked.is_fed:
            asked.is_fed = True
            if code != RESULT_DUPLICATE:
                asked.code = code
            return _NOTHING
        code = code or asked.code
        if code == RESULT_OK:
            self._answers.finish(asked.slot, OK)
            self._note()
            return self._end_if_answered()
        topic, channel = asked.topic, asked.channel
        most = self._door.options.max_channel_consumers
        if code == RESULT_UNAUTHORIZED:
            names = (quoted(topic), quoted(channel))
            text = b"E_UNAUTHORIZED AUTH failed for SUB on %s %s" % names
        elif code == RESULT_LIMIT_EXCEEDED and most:
            text = b"E_SUB_FAILED SUB failed consumers for %s:%s exceeds limit of %d"
            text %= (topic, channel, most)
        else:
            text = b"E_SUB_FAILED SUB failed (%d)" % code
        return self._fatal(text, asked.slot, self._orders, now)

    def _run_confirmed(self, effect: ConfirmRun, now: float) -> Sequence[Command]:
        ids = effect.message_ids
        whole = self._publications.whole(ids)
        if whole is None:
            commands: list[Command] = []
            for confirm in effect.confirms():
                commands.extend(self._confirmed(confirm, now))
            return commands
        self._publications.remove(whole)
        self._settle(whole, OK * len(ids) if whole.each else OK)
        return self._end_if_answered()

    def _confirmed(self, effect: Confirm, now: float) -> Sequence[Command]:
        publications = self._publications
        name = effect.message_id
        publication = publications.find(name)
        if publication is None:
            return _NOTHING  # its publication was answered with an error
        if not effect.positive:
            code = self._codes.pop(name, 0)
            publications.remove(publication)
            return self._not_published(publication, code, effect.reason, now)
        publications.take(publication, name)
        if publication.left == 0:
            self._settle(publication, OK)
            return self._end_if_answered()
        if publication.each and publication.order <= self._ended_at:
            self._answers.add(publication.slot, OK)
            self._note()
        return _NOTHING

    def _settle(self, publication: Publication, data: bytes) -> None:
        """All of its messages were taken in."""
        is_void = publication.order > self._ended_at
        self._answers.finish(publication.slot, b"" if is_void else data)
        if not self._ends and not self.reads and self._standing == _CONNECTED:
            if self._publications.count < self._door.limits.max_unanswered:
                self.reads = True
                self.hurried = True
        self._note()

    def _not_published(
        self, publication: Publication, code: int, reason: str, now: float
    ) -> Sequence[Command]:
        word = publication.word
        if code == RESULT_UNAUTHORIZED:
            topic = quoted(publication.topic)
            text = b'E_UNAUTHORIZED AUTH failed for %s on %s ""' % (word, topic)
        else:
            told = f"{word.decode()} failed {reason or code}".encode()
            text = b"E_%s_FAILED %s" % (word, told)
        if publication.order > self._ended_at:
            self._answers.finish(publication.slot)
            return self._end_if_answered()
        return self._fatal(text, publication.slot, publication.order, now)

    # -- bytes out ------------------------------------------------------------------------------

    def _answer(self, data: bytes) -> None:
        """Answer a command that nobody else is asked about."""
        self._answers.finish(self._answers.open(), data)
        self._note()

    def _note(self) -> None:
        """Take what is ready, and say how much there is."""
        answers = self._answers
        if answers.ready_bytes:
            self._plain.append(answers.take())
        total = 0
        for piece in self._sealed:
            total += len(piece)
        for piece in self._plain:
            total += len(piece)
        self.outbound_bytes = total

    def deliver(self, data: bytes) -> None:
        """Queue what the door's ``encode_`` methods have made."""
        if self._who.sample_rate:
            data = self._sampled(data)
        self._plain.append(data)
        self.outbound_bytes += len(data)

    def _sampled(self, data: bytes) -> bytes:
        """About as many messages in a hundred as the client wants; the others count as finished
        (N81).  Which ones is decided by their ids, and for each client otherwise."""
        kept: list[bytes] = []
        rate = self._who.sample_rate
        seed = self._number & 0xFFFFFFFF
        at = 0
        while at < len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            name = data[at + MESSAGE_HEAD_BYTES - 16 : at + MESSAGE_HEAD_BYTES]
            if crc32(name, seed) % 100 > rate:
                self._skipped.append(self._door.message_id(self._channel, name))
                self._door.forget_foreign(self._channel, name)
                self.wants_written = True
            else:
                kept.append(data[at:end])
            at = end
        return b"".join(kept)

    def written(self, now: float) -> Sequence[Command]:
        """What was skipped is finished."""
        skipped = self._skipped
        if not skipped:
            return _NOTHING
        self._skipped = []
        return [Acknowledge(self._number, name, self._channel, QUEUE, True) for name in skipped]

    def _seal(self) -> None:
        """Put what was queued into the form that the connection has now."""
        if self._plain:
            data = b"".join(self._plain)
            self._plain = []
            if self._layer is not None and data:
                data = self._layer.encoded(data)
            self._sealed.append(data)

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        self._seal()
        sealed = self._sealed
        self.outbound_bytes = 0
        if not sealed:
            return b""
        self._sealed = []
        return sealed[0] if len(sealed) == 1 else b"".join(sealed)

    def held_bytes(self) -> int:
        """What is kept of the peer's bytes, and is no command of the engine yet."""
        held = self._decoder.held_bytes + self._early_bytes
        return held if self._layer is None else held + self._layer.held_bytes

    def forget_hello(self) -> None:
        """Keep nothing of a client that will be refused."""
        self._decoder.forget()
        self._early = []
        self._early_bytes = 0

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When a heartbeat is due, or patience ends."""
        due = min(self._beat_due, self._silence_due, self._greeting_due, self._linger_due)
        return None if due == _NEVER or self.closed else due

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Ask for a sign of life, or give the peer up (N96, N97)."""
        if self.closed:
            return _NOTHING
        if now >= self._greeting_due:
            return self._end("no greeting came in time")
        if now >= self._linger_due:
            return self._end(self.close_reason)
        if now >= self._beat_due:
            self._beat_due = now + self._who.heartbeat_interval_ms / 1000
            if not self.wants_tls and not self._ends:
                self._plain.append(HEARTBEAT)
                self._note()
        if now >= self._silence_due and self._standing != _WAITING:
            return self._end("the client has given no sign of life")
        return _NOTHING


def _bytes_of(event: Event) -> int:
    """About how much an event keeps."""
    if isinstance(event, (Publish, PublishDeferred)):
        return _EVENT_BYTES + len(event.body)
    if isinstance(event, PublishMany):
        return _EVENT_BYTES + sum([_EVENT_BYTES + len(body) for body in event.bodies])
    return _EVENT_BYTES


def _word_of(event: object) -> bytes:
    """The command that an event is."""
    for kind, word in _WORDS:
        if isinstance(event, kind):
            return word
    return b"this"


_NOT_OWN: Final = 403
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
