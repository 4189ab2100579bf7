"""A small server of STOMP, right in what it does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from tmqp.testing.conformance import Case
from tmqp_conformance.zoo.small import SmallMachine, SmallSession
from tmqp_wires.stomp.codec import OF_CLIENTS
from tmqp_wires.stomp.connection import HeartBeat
from tmqp_wires.stomp.frames import V1_0, V1_1, V1_2, VERSIONS, encode_frame, unescaped

__all__ = ["Frame", "Held", "Message", "Session", "SmallStomp", "Subscription"]

_MOST_HEAD_BYTES: Final = 65_536
_MODES: Final = ("auto", "client", "client-individual")
_OWN: Final = ("destination", "content-length", "receipt", "transaction", "message-id")
_OWN_BEATS: Final = HeartBeat(1_000, 1_000)


class RefusedError(Exception):
    """A frame is not carried out: the text says why."""


class Frame:
    """A frame as it came; ``headers`` are still escaped."""

    def __init__(self, command: str, headers: list[tuple[str, str]], body: bytes) -> None:
        self.command = command
        self.headers = headers
        self.body = body

    def get(self, name: str) -> str | None:
        """The value of a header; None if there is none."""
        return next((value for key, value in self.headers if key == name), None)

    def need(self, name: str) -> str:
        """The value of a header.

        :raises RefusedError: when there is none.
        """
        value = self.get(name)
        if not value:
            raise RefusedError(f"{self.command} without {name}")
        return value


class Message:
    """A message in a queue; ``number`` is its place."""

    def __init__(self, number: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.number = number
        self.headers = headers
        self.body = body


class Subscription:
    """A subscription of a session."""

    def __init__(self, session: Session, id: str | None, destination: str, mode: str) -> None:
        self.session = session
        self.id = id
        self.destination = destination
        self.mode = mode
        self.sent = 0


class Held:
    """A message that a client has not answered for."""

    def __init__(self, subscription: Subscription, message: Message) -> None:
        self.subscription = subscription
        self.message = message


class Session(SmallSession):
    """One connection."""

    def __init__(self, now: float) -> None:
        super().__init__()
        self.held = b""
        self.version = ""
        self.subscriptions: list[Subscription] = []
        self.hand: list[Held] = []
        self.transactions: dict[str, list[Callable[[], None]]] = {}
        self.beat_s = self.silence_s = 0.0
        self.beat_due = self.silence_due = now


class SmallStomp(SmallMachine[Session]):
    """The server: what waits at each destination, and who is subscribed."""

    commands: frozenset[str] = OF_CLIENTS

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.waiting: dict[str, list[Message]] = {}
        self.subscriptions: list[Subscription] = []
        self.messages = count(1)

    # -- the machine ----------------------------------------------------------------------------

    def open(self, case: Case, now: float) -> int | None:
        """See :class:`SmallMachine`."""
        self.now = now
        return super().open(case, now)

    def receive(self, number: int, data: bytes, now: float) -> None:
        """See :class:`SmallMachine`."""
        self.now = now
        super().receive(number, data, now)

    def made(self) -> Session:
        """See :class:`SmallMachine`."""
        return Session(self.now)

    def heard(self, session: Session, data: bytes) -> None:
        """See :class:`SmallMachine`."""
        session.silence_due = self.now + session.silence_s
        session.held += data
        while not session.closed and not self.crashed:
            frame: Frame | None = None
            try:
                frame = self.cut(session)
                if frame is None:
                    return
                self.on_frame(session, frame)
                self.answered(session, frame)
            except (RefusedError, ValueError) as error:
                self.fail(session, str(error), frame)

    def left(self, session: Session) -> None:
        """See :class:`SmallMachine`."""
        for subscription in [*session.subscriptions]:
            self.end_subscription(subscription)

    def next_deadline(self) -> float | None:
        """When a heart-beat is due, or one is missing."""
        dues = [
            due
            for each in self.sessions.values()
            if not each.closed
            for seconds, due in ((each.beat_s, each.beat_due), (each.silence_s, each.silence_due))
            if seconds
        ]
        return min(dues, default=None)

    def on_deadline(self, now: float) -> None:
        """See :class:`SmallMachine`."""
        self.now = now
        for each in self.sessions.values():
            if each.closed:
                continue
            if each.beat_s and each.beat_due <= now:
                each.beat_due = now + each.beat_s
                self.beat(each)
            if each.silence_s and each.silence_due <= now:
                each.silence_due = now + each.silence_s
                self.miss(each)

    # -- reading --------------------------------------------------------------------------------

    def cut(self, session: Session) -> Frame | None:
        """Take a frame from what has come; None if it is not whole.

        :raises RefusedError: for what is none.
        """
        held = session.held = self.without_feeds(session.held)
        start = held.find(b"\n\n") + 2
        crlf = held.find(b"\n\r\n") + 3
        if start < 2 or 3 <= crlf < start:
            start = crlf if crlf >= 3 else 0
        if (len(held) if start == 0 else start) > self.most_head_bytes():
            raise RefusedError("the headers are too long")
        if start == 0:
            if b"\0" in held:
                raise RefusedError("no frame")
            return None
        lines = self.text_of(held[:start].rstrip(b"\r\n")).split("\n")
        command, *pairs = [self.line_of(line) for line in lines]
        if command not in self.commands:
            raise RefusedError(f"there is no command {command!r}")
        headers = [self.header_of(line) for line in pairs]
        frame = Frame(command, headers, b"")
        end = self.end_of_body(frame, held, start)
        if end < 0:
            return None
        frame.body = held[start:end]
        session.held = held[end + 1 :]
        if session.version and command not in ("CONNECT", "STOMP"):
            version = session.version
            frame.headers = [
                (self.plain(name, version), self.plain(value, version)) for name, value in headers
            ]
        return frame

    def without_feeds(self, data: bytes) -> bytes:
        """What has come without line feeds before the frame."""
        return data.lstrip(b"\r\n")

    def most_head_bytes(self) -> int:
        """How many bytes command and headers may have."""
        return _MOST_HEAD_BYTES

    def text_of(self, head: bytes) -> str:
        """The head of a frame as a text."""
        return head.decode("utf-8")

    def line_of(self, line: str) -> str:
        """A line without its end."""
        return line.removesuffix("\r")

    def header_of(self, line: str) -> tuple[str, str]:
        """Name and value of a header line.

        :raises RefusedError: for one without a name.
        """
        name, _, value = line.partition(":")
        if not name:
            raise RefusedError("a header has no name")
        return name, value

    def plain(self, text: str, version: str) -> str:
        """A text without escapes."""
        return unescaped(text, version)

    def end_of_body(self, frame: Frame, held: bytes, start: int) -> int:
        """Where the NUL is; -1 if it has not come.

        :raises RefusedError: when it is not where it must be.
        """
        length = frame.get("content-length")
        if length is None:
            return held.find(b"\0", start)
        if not length.isdigit():
            raise RefusedError("content-length is not a number")
        end = start + int(length)
        if end >= len(held):
            return -1
        if held[end]:
            raise RefusedError("no NUL behind a body")
        return end

    # -- writing --------------------------------------------------------------------------------

    def say(
        self, session: Session, command: str, headers: list[tuple[str, str]], body: bytes = b""
    ) -> None:
        """Send a frame."""
        session.out += encode_frame(command, headers, body, session.version or V1_2)

    def answered(self, session: Session, frame: Frame) -> None:
        """A frame was carried out."""
        receipt = frame.get("receipt")
        if receipt is not None:
            self.receipt(session, receipt)
        if frame.command == "DISCONNECT":
            self.close(session)

    def receipt(self, session: Session, receipt: str) -> None:
        """Send a receipt."""
        self.say(session, "RECEIPT", [("receipt-id", receipt)])

    def fail(self, session: Session, text: str, frame: Frame | None) -> None:
        """Say what is wrong, and close."""
        headers = [("message", text), ("version", ",".join(VERSIONS))]
        receipt = None if frame is None else frame.get("receipt")
        if receipt is not None:
            headers.append(("receipt-id", receipt))
        self.say(session, "ERROR", headers)
        self.close(session)

    def close(self, session: Session) -> None:
        """End a connection."""
        session.closed = True
        self.left(session)

    def beat(self, session: Session) -> None:
        """Send a heart-beat."""
        session.out += b"\n"

    def miss(self, session: Session) -> None:
        """The client has sent no heart-beat."""
        self.fail(session, "no heart-beat came", None)

    # -- frames ---------------------------------------------------------------------------------

    def on_frame(self, session: Session, frame: Frame) -> None:
        """Carry out a frame.

        :raises RefusedError: when it cannot be.
        """
        command = frame.command
        if command in ("CONNECT", "STOMP"):
            self.connect(session, frame)
        elif not session.version:
            self.early(session, frame)
        elif command == "SEND":
            self.send(session, frame)
        elif command == "SUBSCRIBE":
            self.subscribe(session, frame)
        elif command == "UNSUBSCRIBE":
            self.unsubscribe(session, frame)
        elif command in ("ACK", "NACK"):
            self.answer(session, frame)
        elif command == "BEGIN":
            session.transactions[self.transaction_name(frame.need("transaction"))] = []
        elif command in ("COMMIT", "ABORT"):
            self.finish(session, frame)

    def connect(self, session: Session, frame: Frame) -> None:
        """Let a client in."""
        said = frame.get("accept-version")
        wanted = [V1_0] if said is None else [each.strip() for each in said.split(",")]
        session.version = self.version_of(wanted)
        beats = HeartBeat.read(frame.get("heart-beat") or "0,0")
        mine = self.beats()
        if mine.sends_ms and beats.wants_ms:
            session.beat_s = max(mine.sends_ms, beats.wants_ms) / 2_000
            session.beat_due = self.now + session.beat_s
        if mine.wants_ms and beats.sends_ms:
            session.silence_s = max(mine.wants_ms, beats.sends_ms) / 500
            session.silence_due = self.now + session.silence_s
        headers = [("version", session.version), ("heart-beat", str(mine))]
        self.say(session, "CONNECTED", headers)

    def version_of(self, wanted: list[str]) -> str:
        """The version that both speak.

        :raises RefusedError: when there is none.
        """
        for version in VERSIONS:
            if version in wanted:
                return version
        raise RefusedError("none of these versions")

    def beats(self) -> HeartBeat:
        """What the server says of heart-beats."""
        return _OWN_BEATS

    def early(self, session: Session, frame: Frame) -> None:
        """A frame before CONNECT."""
        raise RefusedError("CONNECT comes first")

    def send(self, session: Session, frame: Frame) -> None:
        """SEND."""
        destination = frame.need("destination")
        headers = self.kept([each for each in frame.headers if each[0] not in _OWN])
        body = frame.body

        def deliver() -> None:
            message = Message(next(self.messages), headers, body)
            self.waiting.setdefault(destination, []).append(message)
            self.pump(destination)

        self.within(session, frame, deliver)

    def kept(self, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The headers that continue."""
        return headers

    def within(self, session: Session, frame: Frame, act: Callable[[], None]) -> None:
        """Do something now, or when the frame's transaction is committed.

        :raises RefusedError: when there is no such transaction.
        """
        name = frame.get("transaction")
        if name is None:
            act()
            return
        name = self.transaction_name(name)
        if name not in session.transactions:
            raise RefusedError("there is no such transaction")
        session.transactions[name].append(act)

    def transaction_name(self, name: str) -> str:
        """By which name a transaction is kept."""
        return name

    def finish(self, session: Session, frame: Frame) -> None:
        """COMMIT and ABORT."""
        name = self.transaction_name(frame.need("transaction"))
        if name not in session.transactions:
            raise RefusedError("there is no such transaction")
        acts = session.transactions.pop(name)
        if frame.command == "COMMIT":
            self.commit(acts)

    def commit(self, acts: list[Callable[[], None]]) -> None:
        """Do what a transaction has collected."""
        for act in acts:
            act()

    def subscribe(self, session: Session, frame: Frame) -> None:
        """SUBSCRIBE."""
        destination = frame.need("destination")
        id_ = frame.get("id")
        if id_ is None and session.version != V1_0:
            raise RefusedError("SUBSCRIBE without id")
        mode = frame.get("ack") or "auto"
        if mode not in _MODES:
            raise RefusedError("there is no such mode")
        subscription = Subscription(session, id_, destination, mode)
        session.subscriptions.append(subscription)
        self.subscriptions.append(subscription)
        self.waiting.setdefault(destination, [])
        self.pump(destination)

    def unsubscribe(self, session: Session, frame: Frame) -> None:
        """UNSUBSCRIBE."""
        id_ = frame.get("id")
        for each in [*session.subscriptions]:
            if each.id == id_ and (id_ or each.destination == frame.get("destination")):
                self.end_subscription(each)

    def end_subscription(self, subscription: Subscription) -> None:
        """A subscription ends: what it had in flight is for others."""
        session = subscription.session
        session.subscriptions.remove(subscription)
        self.subscriptions.remove(subscription)
        mine = [each for each in session.hand if each.subscription is subscription]
        session.hand = [each for each in session.hand if each not in mine]
        self.give_back(subscription.destination, [each.message for each in mine])

    def give_back(self, destination: str, messages: list[Message]) -> None:
        """Messages come to others, in their order."""
        waiting = self.waiting[destination]
        waiting += messages
        waiting.sort(key=lambda each: each.number)
        self.pump(destination)

    # -- messages -------------------------------------------------------------------------------

    def pump(self, destination: str) -> None:
        """Deliver what waits at a destination."""
        waiting = self.waiting[destination]
        listening = [each for each in self.subscriptions if each.destination == destination]
        is_topic = destination.startswith("/topic/")
        while waiting and (listening or is_topic):
            message = waiting.pop(0)
            for each in self.receivers(listening) if is_topic else listening[:1]:
                self.deliver(each, message)

    def receivers(self, listening: list[Subscription]) -> list[Subscription]:
        """Who gets a message of a topic."""
        return listening

    def deliver(self, subscription: Subscription, message: Message) -> None:
        """Send a message."""
        session = subscription.session
        subscription.sent += 1
        headers = self.headers_for(subscription, message)
        headers += message.headers
        headers.append(("content-length", str(len(message.body))))
        self.say(session, "MESSAGE", headers, message.body)
        if self.awaits(subscription):
            session.hand.append(Held(subscription, message))
        else:
            self.done(subscription, message)

    def awaits(self, subscription: Subscription) -> bool:
        """Whether messages of a subscription are acknowledged by the client."""
        return subscription.mode != "auto"

    def headers_for(self, subscription: Subscription, message: Message) -> list[tuple[str, str]]:
        """The headers of the server's own."""
        headers = [
            ("destination", subscription.destination),
            ("message-id", f"m-{message.number}"),
        ]
        if subscription.id is not None:
            headers.append(("subscription", subscription.id))
        if self.has_ack(subscription):
            headers.append(("ack", f"a-{message.number}"))
        return headers

    def has_ack(self, subscription: Subscription) -> bool:
        """Whether MESSAGE has the header ``ack``."""
        return subscription.mode != "auto" and subscription.session.version == V1_2

    def answer(self, session: Session, frame: Frame) -> None:
        """ACK and NACK."""
        meant = self.meant(session, frame)

        def done() -> None:
            for each in meant:
                if each in session.hand:
                    session.hand.remove(each)
                    self.done(each.subscription, each.message)

        self.within(session, frame, done)

    def meant(self, session: Session, frame: Frame) -> list[Held]:
        """The messages that an answer is about."""
        number = self.number_of(session, frame)
        found = next((each for each in session.hand if each.message.number == number), None)
        if found is None:
            return []
        if not self.is_cumulative(found.subscription) or frame.command == "NACK":
            return [found]
        mine = [each for each in session.hand if each.subscription is found.subscription]
        return mine[: mine.index(found) + 1]

    def is_cumulative(self, subscription: Subscription) -> bool:
        """Whether ACK is for all messages up to its own."""
        return subscription.mode == "client"

    def number_of(self, session: Session, frame: Frame) -> int:
        """The number of the message that an answer names."""
        name = "message-id" if session.version in (V1_0, V1_1) else "id"
        number = frame.need(name).partition("-")[2]
        return int(number) if number.isdigit() else 0

    def done(self, subscription: Subscription, message: Message) -> None:
        """A message is acknowledged."""
