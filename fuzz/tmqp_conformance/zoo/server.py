"""A small server without I/O, right in what it does: channels, push queues, direct messages.

What it does not do it answers with 501.  The broken servers of the zoo change one of its methods.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Final

from tmqp import (
    Connection,
    Event,
    Frame,
    FrameDecoder,
    HandshakeReceived,
    Limits,
    MessageDropped,
    MessageReceived,
    MessageType,
    Operation,
    RemoteProtocolError,
    Role,
    State,
)
from tmqp.testing.conformance import Case

__all__ = ["Session", "SmallServer"]

_LIMITS: Final = Limits()
_FORBIDDEN: Final = frozenset("@ ;*\u061c\u200e\u200f\u202e\u2028\u2029")
_PREAMBLE_BYTES: Final = 8
#: Operations whose target is a channel, also in the specification's numbers.
_ON_CHANNELS: Final = (
    *(Operation.JOIN, Operation.LEAVE, Operation.CREATE_CHANNEL, Operation.CREATE_QUEUE),
    *(101, 110, 111),
)


class Session:
    """One connection of the server."""

    def __init__(self, number: int, now: float) -> None:
        self.number = number
        self.connection = Connection(Role.SERVER, _LIMITS, now=now)
        self.client_id = ""
        self.forged = False
        # What only broken servers use.
        self.deaf = False
        self.mute = False
        self.ending = False
        self.told = False
        self.begun_reading = False
        self.delivered = 0
        self.backwards: list[bytes] = []
        self.reader = FrameDecoder(Limits(max_payload_bytes=67_108_864))
        self.begun = False

    @property
    def ended(self) -> bool:
        """The server has closed it."""
        return self.connection.state == State.CLOSED

    def send(self, data: bytes) -> None:
        """Send whole messages, unless the connection has ended."""
        if not self.ended:
            self.connection.send_bytes(data)

    def close(self) -> None:
        """Close it, politely."""
        if not self.ended:
            self.connection.close()


class SmallServer:
    """The server; :class:`tmqp.testing.conformance.Machine`."""

    def __init__(self) -> None:
        self.sessions: dict[int, Session] = {}
        self.channels: dict[str, list[str]] = {}
        self.waiting: dict[str, list[Frame]] = {}
        self.queues: set[tuple[str, str]] = set()
        self.crashed = False
        self._numbers = count(1)
        self._ids = count(1)

    # -- the machine ----------------------------------------------------------------------------

    def open(self, case: Case, now: float) -> int | None:
        """A new connection."""
        if self.crashed:
            return None
        number = next(self._numbers)
        self.sessions[number] = Session(number, now)
        return number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        session = self.sessions.get(number)
        if session is None or session.ended or self.crashed or session.deaf:
            return
        data = self.incoming(session, data)
        for event in session.connection.receive(data, now):
            self.on_event(session, event)
        if session.connection.state == State.CLOSED:
            self.forget(session)

    def take(self, number: int) -> bytes:
        """What the server has to say."""
        session = self.sessions.get(number)
        if session is None or self.crashed or session.mute:
            return b""
        data = session.connection.data_to_send()
        if not data:
            return b""
        parts = []
        if not session.begun:
            if len(data) < _PREAMBLE_BYTES:
                return data
            session.begun = True
            parts.append(self.outgoing_preamble(session, data[:_PREAMBLE_BYTES]))
            data = data[_PREAMBLE_BYTES:]
        parts += [self.outgoing(session, frame) for frame in session.reader.feed(data)]
        return b"".join(parts)

    def is_closed(self, number: int) -> bool:
        """Whether the server has closed."""
        session = self.sessions.get(number)
        return session is None or self.crashed or (session.ended and not self.lingers(session))

    def end(self, number: int, now: float) -> None:
        """The peer sends no more."""
        session = self.sessions.get(number)
        if session is not None and not session.ended and self.obeys_end(session):
            session.connection.receive_eof(now)
            self.forget(session)

    def lose(self, number: int, now: float) -> None:
        """The connection is gone."""
        session = self.sessions.pop(number, None)
        if session is not None:
            self.forget(session)

    def next_deadline(self) -> float | None:
        """The nearest deadline."""
        dues = [session.connection.next_deadline() for session in self.sessions.values()]
        return min((due for due in dues if due is not None), default=None)

    def on_deadline(self, now: float) -> None:
        """Do what is due."""
        for session in list(self.sessions.values()):
            session.connection.on_deadline(now)

    # -- what broken servers change -------------------------------------------------------------

    def incoming(self, session: Session, data: bytes) -> bytes:
        """What the server makes of arriving bytes."""
        return data

    def outgoing(self, session: Session, frame: Frame) -> bytes:
        """The bytes of a message that leaves."""
        return frame.raw

    def outgoing_preamble(self, session: Session, data: bytes) -> bytes:
        """The bytes of the preamble that leaves."""
        return data

    def lingers(self, session: Session) -> bool:
        """Whether an ended connection stays open all the same."""
        return False

    def obeys_end(self, session: Session) -> bool:
        """Whether the end of the peer's stream ends the connection."""
        return True

    # -- events ---------------------------------------------------------------------------------

    def on_event(self, session: Session, event: Event) -> None:
        """Something arrived."""
        if isinstance(event, HandshakeReceived):
            self.on_hello(session, event)
        elif isinstance(event, MessageDropped):
            return
        elif isinstance(event, MessageReceived):
            frame = event.frame
            if session.forged:
                return
            if frame.source and frame.source != session.client_id:
                self.on_forged(session)
            else:
                self.on_message(session, frame)

    def on_hello(self, session: Session, event: HandshakeReceived) -> None:
        """A client introduced itself."""
        wanted = event.information.client_id or f"{next(self._ids):032x}"
        for number, other in self.sessions.items():
            if other.client_id == wanted and number != session.number and not other.ended:
                session.connection.refuse(503)
                return
        session.client_id = wanted
        for held in session.connection.accept(wanted, f"{next(self._ids):032x}"):
            self.on_event(session, held)

    def on_forged(self, session: Session) -> None:
        """A message came under another client's id (F42)."""
        session.forged = True
        session.connection.reject(RemoteProtocolError("source", "the source is another client's"))

    def on_message(self, session: Session, frame: Frame) -> None:
        """A message came."""
        if frame.type == MessageType.SERVER:
            self.on_operation(session, frame)
        elif frame.type == MessageType.QUEUE_MESSAGE:
            self.on_push(session, frame)
        elif frame.type == MessageType.DIRECT_MESSAGE:
            self.on_direct(session, frame)

    # -- operations -----------------------------------------------------------------------------

    def on_operation(self, session: Session, frame: Frame) -> None:
        """A request came: carry it out and answer."""
        code = self.operate(session, frame)
        if frame.pending_response and frame.message_id:
            self.answer(session, frame, code)
        if frame.pending_acknowledge and frame.message_id:
            headers = [] if code == 0 else [("Nack-Reason", "error")]
            self.send(
                session,
                Frame.build(
                    MessageType.ACKNOWLEDGE,
                    frame.target,
                    message_id=frame.message_id,
                    headers=headers,
                ),
            )

    def operate(self, session: Session, frame: Frame) -> int:
        """Carry out a request; returns the code."""
        number, name = frame.content_type, frame.target
        if number in _ON_CHANNELS and not self.is_name(name):
            return 400
        key = self.key(name)
        members = self.channels.get(key)
        if number in (Operation.JOIN, 110):
            joined = self.channels.setdefault(key, [])
            if session.client_id not in joined:
                joined.append(session.client_id)
                for waiting in self.waiting.pop(key, ()):
                    self.deliver(session, waiting, first=True)
            return 0
        if number in (Operation.LEAVE, 111):
            if members is None or session.client_id not in members:
                return 404
            members.remove(session.client_id)
            return 0
        if number in (Operation.CREATE_CHANNEL, 101):
            return self.create(key, frame)
        if number == Operation.CREATE_QUEUE:
            return self.create_queue(key, frame)
        if number == Operation.REMOVE_CHANNEL:
            self.waiting.pop(key, None)
            self.queues = {pair for pair in self.queues if pair[0] != key}
            return 404 if self.channels.pop(key, None) is None else 0
        if number == Operation.CHANNEL_INFORMATION:
            return 404 if members is None else 501
        known = {*Operation, 703}
        return 501 if number in known else 400

    def create(self, key: str, frame: Frame) -> int:
        """Create a channel."""
        if frame.payload_size:
            try:
                options = json.loads(frame.payload)
            except ValueError:
                return 400
            if not isinstance(options, dict):
                return 400
        if key in self.channels:
            return 481
        self.channels[key] = []
        return 0

    def create_queue(self, key: str, frame: Frame) -> int:
        """Create a queue, if it is to have no options."""
        pairs = frame.headers
        if frame.payload_size or len(pairs) != 1 or pairs[0][0] != "Queue-Id":
            return 501
        if not pairs[0][1].isdigit():
            return 400
        self.channels.setdefault(key, [])
        if (key, pairs[0][1]) in self.queues:
            return 481
        self.queues.add((key, pairs[0][1]))
        return 0

    def key(self, name: str) -> str:
        """Under what a channel is found (F46)."""
        return name.lower()

    def is_name(self, name: str) -> bool:
        """Whether a channel may have this name (F47)."""
        return bool(name) and not any(
            letter in _FORBIDDEN or letter < " " or "\x7f" <= letter <= "\x9f" for letter in name
        )

    def answer(self, session: Session, frame: Frame, code: int) -> None:
        """Answer a request (F44)."""
        self.send(
            session,
            Frame.build(
                MessageType.RESPONSE,
                session.client_id,
                code,
                message_id=frame.message_id,
                first_acquirer=frame.first_acquirer,
                high_priority=frame.high_priority,
            ),
        )

    # -- messages -------------------------------------------------------------------------------

    def on_push(self, session: Session, frame: Frame) -> None:
        """A push came: to every consumer, or it waits."""
        key = self.key(frame.target)
        if not self.is_name(frame.target):
            self.refuse_push(session, frame, 400)
            return
        if not frame.source:
            frame = self.named(session, frame)
        members = self.channels.setdefault(key, [])
        if not members:
            self.waiting.setdefault(key, []).append(frame)
        for place, other in enumerate(self.by_ids(members)):
            self.deliver(other, frame, first=place == 0)
        if frame.pending_acknowledge and frame.message_id:
            self.send(
                session,
                Frame.build(
                    MessageType.ACKNOWLEDGE,
                    frame.target,
                    frame.content_type,
                    message_id=frame.message_id,
                ),
            )

    def refuse_push(self, session: Session, frame: Frame, code: int) -> None:
        """Tell a producer that its message is not kept (F75)."""
        self.send(
            session,
            Frame.build(MessageType.RESPONSE, frame.target, code, message_id=frame.message_id),
        )

    def named(self, session: Session, frame: Frame) -> Frame:
        """The message with its sender's id as source (F42)."""
        return frame.replace(source=session.client_id)

    def by_ids(self, ids: list[str]) -> list[Session]:
        """The sessions of these clients, in this order; none that has no id yet."""
        live = (each for each in self.sessions.values() if each.client_id and not each.ended)
        found = {each.client_id: each for each in live}
        return [found[name] for name in ids if name in found]

    def deliver(self, session: Session, frame: Frame, *, first: bool) -> None:
        """Send a message to a consumer (F76, F87)."""
        session.send(frame.forwarded(first, True, frame.ttl - 1))

    def on_direct(self, session: Session, frame: Frame) -> None:
        """A message for a client came (F114, F115)."""
        receivers = self.by_ids([frame.target])
        if not receivers:
            if frame.pending_response or not frame.target.startswith("@"):
                self.answer(session, frame, 404)
            return
        sent = self.named(session, frame)
        raw = sent.forwarded(sent.first_acquirer, sent.pending_acknowledge, sent.ttl - 1)
        receivers[0].send(raw)

    def send(self, session: Session, frame: Frame) -> None:
        """Send a message of the server's own."""
        session.send(frame.raw)

    def forget(self, session: Session) -> None:
        """A client is gone: it leaves its channels."""
        for members in self.channels.values():
            if session.client_id in members:
                members.remove(session.client_id)
