"""A small nsqd without I/O, right in what it does, and copies of it that are broken in one thing.

It has topics, channels and their consumers, delays, timeouts and heartbeats, by TCP alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from tmqp.testing.conformance import Case
from tmqp_wires.nsq import CommandDecoder, ServerTerms, writing
from tmqp_wires.nsq import events as said

__all__ = ["BROKEN_NSQ", "SmallNsq"]

_TERMS: Final = ServerTerms(snappy=True, deflate=True)


class Message:
    """A message in a channel; ``due`` is when it may be sent, or when its time is over."""

    def __init__(self, name: bytes, body: bytes, due: float) -> None:
        self.name = name
        self.body = body
        self.due = due
        self.attempts = 0
        self.holder: Session | None = None


class Session:
    """One connection."""

    def __init__(self, now: float) -> None:
        self.decoder = CommandDecoder(_TERMS)
        self.out = b""
        self.closed = False
        self.channel: tuple[bytes, bytes] | None = None
        self.rdy = 0
        self.timeout_s = _TERMS.msg_timeout_ms / 1_000
        self.beat_s = _TERMS.heartbeat_interval_ms / 1_000
        self.heard_at = now
        self.beat_at = now + self.beat_s


class SmallNsq:
    """The server; :class:`tmqp_conformance.packs.memory.PackMachine`."""

    def __init__(self) -> None:
        self.place = ""
        self.sessions: dict[int, Session] = {}
        #: Topic -> channel -> messages; and what waits for a topic's first channel.
        self.topics: dict[bytes, dict[bytes, list[Message]]] = {}
        self.waiting: dict[bytes, list[Message]] = {}
        self._numbers = count(1)
        self._ids = count(1)

    # -- the machine ----------------------------------------------------------------------------

    def open(self, case: Case, now: float) -> int:
        """A new connection."""
        number = next(self._numbers)
        self.sessions[number] = Session(now)
        return number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        session = self.sessions[number]
        if session.closed:
            return
        for event in session.decoder.feed(self.incoming(data)):
            session.heard_at = now
            self.on_event(session, event, now)
        self.pump(now)

    def take(self, number: int) -> bytes:
        """What there is to send."""
        session = self.sessions[number]
        data, session.out = session.out, b""
        return data

    def is_closed(self, number: int) -> bool:
        """Whether the server has closed."""
        return self.sessions[number].closed

    def end(self, number: int, now: float) -> None:
        """The peer sends no more."""
        self.leave(self.sessions[number], now)

    def lose(self, number: int, now: float) -> None:
        """The transport is gone."""
        self.leave(self.sessions[number], now)

    def next_deadline(self) -> float | None:
        """When something is due next."""
        dues = [each.beat_at for each in self.sessions.values() if not each.closed and each.beat_s]
        dues += [each.due for each in self._all() if each.due > 0]
        return min(dues, default=None)

    def on_deadline(self, now: float) -> None:
        """Do what is due."""
        for session in self.sessions.values():
            if not session.closed and session.beat_s and session.beat_at <= now:
                self.on_beat(session, now)
        for message in self._all():
            if 0 < message.due <= now:
                message.due = 0.0
                message.holder = None
        self.pump(now)

    def _all(self) -> list[Message]:
        return [
            each for topic in self.topics.values() for queue in topic.values() for each in queue
        ]

    # -- what the broken ones change ------------------------------------------------------------

    def incoming(self, data: bytes) -> bytes:
        """What is read of the bytes that came."""
        return data

    def confirm(self, session: Session) -> None:
        """Answer OK."""
        session.out += writing.OK

    def fail(self, session: Session, event: said.Violation) -> None:
        """Answer an error and close."""
        session.out += event.answer
        session.closed = True

    def frame(self, message: Message, now: float) -> bytes:
        """A delivery."""
        timestamp_ns = 1_795_000_000_000_000_000 + int(now * 1_000_000)
        return writing.message_frame(timestamp_ns, message.attempts, message.name, message.body)

    def has_room(self, session: Session, in_flight: int) -> bool:
        """Whether a consumer may get one more."""
        return in_flight < session.rdy

    def copy(self, message: Message) -> Message:
        """A message for one more channel."""
        return Message(message.name, message.body, message.due)

    def holds(self, session: Session, message: Message) -> bool:
        """Whether this connection may answer this message."""
        return message.holder is session

    def delay(self, delay_ms: int, now: float) -> float:
        """When a message that is delayed so long may be sent."""
        return now + delay_ms / 1_000 if delay_ms else 0.0

    def leave(self, session: Session, now: float) -> None:
        """A connection is over: what it held is for others."""
        session.closed = True
        for message in self._all():
            if message.holder is session:
                message.holder, message.due = None, 0.0
        self.pump(now)

    def on_beat(self, session: Session, now: float) -> None:
        """A heartbeat is due: send it, or notice that nobody lives there."""
        if now - session.heard_at >= 2 * session.beat_s:
            session.closed = True
            return
        session.out += writing.HEARTBEAT
        session.beat_at = now + session.beat_s

    # -- commands -------------------------------------------------------------------------------

    def on_event(self, session: Session, event: said.Event, now: float) -> None:
        """Carry out a command."""
        if isinstance(event, said.Violation):
            self.fail(session, event)
        elif isinstance(event, said.Identify):
            session.out += writing.response_frame(event.answer)
            session.timeout_s = event.negotiated.msg_timeout_ms / 1_000
            session.beat_s = event.negotiated.heartbeat_interval_ms / 1_000
            session.beat_at = now + session.beat_s
        elif isinstance(event, said.Publish):
            self.publish(event.topic, event.body, 0.0)
            self.confirm(session)
        elif isinstance(event, said.PublishMany):
            for body in event.bodies:
                self.publish(event.topic, body, 0.0)
            self.confirm(session)
        elif isinstance(event, said.PublishDeferred):
            self.publish(event.topic, event.body, self.delay(event.delay_ms, now))
            self.confirm(session)
        elif isinstance(event, said.Subscribe):
            self.subscribe(session, event)
            self.confirm(session)
        elif isinstance(event, said.Ready):
            session.rdy = event.count
        elif isinstance(event, said.Close):
            session.rdy = 0
            session.out += writing.CLOSE_WAIT
        elif isinstance(event, said.Finish | said.Requeue | said.Touch):
            self.settle(session, event, now)

    def publish(self, topic: bytes, body: bytes, due: float) -> None:
        """Copy a message into the topic's channels, or let it wait for the first."""
        message = Message(b"%016x" % next(self._ids), body, due)
        channels = self.topics.setdefault(topic, {})
        for queue in channels.values():
            queue.append(self.copy(message))
        if not channels:
            self.waiting.setdefault(topic, []).append(message)

    def subscribe(self, session: Session, event: said.Subscribe) -> None:
        """Join a channel; the first one gets what waited."""
        channels = self.topics.setdefault(event.topic, {})
        if event.channel not in channels:
            channels[event.channel] = self.waiting.pop(event.topic, [])
        session.channel = (event.topic, event.channel)

    def settle(
        self, session: Session, event: said.Finish | said.Requeue | said.Touch, now: float
    ) -> None:
        """FIN, REQ and TOUCH."""
        assert session.channel is not None
        topic, channel = session.channel
        queue = self.topics[topic][channel]
        found = [each for each in queue if each.name == event.message_id and each.holder]
        word = {said.Finish: b"FIN", said.Requeue: b"REQ", said.Touch: b"TOUCH"}[type(event)]
        if not found or not self.holds(session, found[0]):
            why = b"client does not own message" if found else b"ID not in flight"
            text = b"E_%s_FAILED %s %s failed %s" % (word, word, event.message_id, why)
            session.out += writing.error_frame(text)
        elif isinstance(event, said.Finish):
            queue.remove(found[0])
        elif isinstance(event, said.Requeue):
            queue.remove(found[0])
            queue.append(found[0])
            found[0].holder, found[0].due = None, self.delay(event.delay_ms, now)
        else:
            found[0].due = now + session.timeout_s

    def pump(self, now: float) -> None:
        """Deliver what may be delivered."""
        for session in self.sessions.values():
            if session.closed or session.channel is None:
                continue
            topic, channel = session.channel
            queue = self.topics[topic][channel]
            for message in queue:
                in_flight = sum(each.holder is session for each in queue)
                if message.holder or message.due > now or not self.has_room(session, in_flight):
                    continue
                message.attempts += 1
                message.holder, message.due = session, now + session.timeout_s
                session.out += self.frame(message, now)


# -- the broken ones ------------------------------------------------------------------------------


class _NoOk(SmallNsq):
    def confirm(self, session: Session) -> None:
        return


class _NeverCloses(SmallNsq):
    def fail(self, session: Session, event: said.Violation) -> None:
        session.out += event.answer


class _ClosesSilently(SmallNsq):
    def fail(self, session: Session, event: said.Violation) -> None:
        session.closed = True


class _OneError(SmallNsq):
    def fail(self, session: Session, event: said.Violation) -> None:
        session.out += writing.error_frame(b"E_INVALID invalid")
        session.closed = True


class _IgnoresRdy(SmallNsq):
    def has_room(self, session: Session, in_flight: int) -> bool:
        return True


class _CountsDown(SmallNsq):
    def has_room(self, session: Session, in_flight: int) -> bool:
        if session.rdy <= 0:
            return False
        session.rdy -= 1
        return True


class _AttemptsFromZero(SmallNsq):
    def frame(self, message: Message, now: float) -> bytes:
        return writing.retried(super().frame(message, now), message.attempts - 1)


class _LittleEndian(SmallNsq):
    def frame(self, message: Message, now: float) -> bytes:
        raw = super().frame(message, now)
        return raw[:4] + raw[4:8][::-1] + raw[8:]


class _NewIds(SmallNsq):
    def copy(self, message: Message) -> Message:
        return Message(b"%016x" % next(self._ids), message.body, message.due)


class _AnybodyFinishes(SmallNsq):
    def holds(self, session: Session, message: Message) -> bool:
        return True


class _NoDelays(SmallNsq):
    def delay(self, delay_ms: int, now: float) -> float:
        return 0.0


class _Keeps(SmallNsq):
    """It waits for a timeout that has been forgotten."""

    def leave(self, session: Session, now: float) -> None:
        session.closed = True
        for message in self._all():
            if message.holder is session:
                message.due = 0.0


class _NoHeartbeats(SmallNsq):
    def on_beat(self, session: Session, now: float) -> None:
        session.beat_at = now + session.beat_s


class _Patient(SmallNsq):
    def on_beat(self, session: Session, now: float) -> None:
        session.heard_at = now
        super().on_beat(session, now)


class _ForgetsBacklog(SmallNsq):
    def subscribe(self, session: Session, event: said.Subscribe) -> None:
        self.waiting.clear()
        super().subscribe(session, event)


class _ReadsSegments(SmallNsq):
    """It takes what comes at once for one command."""

    def receive(self, number: int, data: bytes, now: float) -> None:
        session = self.sessions[number]
        if session.decoder.held_bytes and not session.closed:
            session.closed = True
        super().receive(number, data, now)


#: name -> what is wrong with it, and how to make one.
BROKEN_NSQ: Final[dict[str, tuple[str, Callable[[], SmallNsq]]]] = {
    "no-ok": ("does not confirm", _NoOk),
    "never-closes": ("leaves the connection open behind a fatal error", _NeverCloses),
    "closes-silently": ("closes without an error", _ClosesSilently),
    "one-error": ("has one error for everything", _OneError),
    "ignores-rdy": ("delivers without regard to RDY", _IgnoresRdy),
    "counts-down": ("takes RDY for a countdown", _CountsDown),
    "attempts-from-zero": ("counts attempts from 0", _AttemptsFromZero),
    "little-endian": ("writes the type of messages in the other order of bytes", _LittleEndian),
    "new-ids": ("gives each channel's copy another id", _NewIds),
    "anybody-finishes": ("lets any connection finish a message", _AnybodyFinishes),
    "no-delays": ("delivers delayed messages at once", _NoDelays),
    "keeps": ("keeps what a consumer leaves unanswered", _Keeps),
    "no-heartbeats": ("sends no heartbeats", _NoHeartbeats),
    "patient": ("never ends a silent connection", _Patient),
    "forgets-backlog": ("drops what waits for the first channel", _ForgetsBacklog),
    "reads-segments": ("does not join what was cut", _ReadsSegments),
}
