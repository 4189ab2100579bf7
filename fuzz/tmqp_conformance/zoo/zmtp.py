"""A small server of ZMTP, right in what it does, and copies that are broken in one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp_conformance.zoo.small import SmallMachine, SmallSession
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.config import mirror_of
from tmqp_wires.zmtp.events import (
    Cancel,
    Event,
    MessageReceived,
    PeerError,
    PeerReady,
    Subscribe,
    Violation,
)
from tmqp_wires.zmtp.frames import LONG, command_frame

__all__ = ["BROKEN_ZMTP", "SmallZmtp"]

_GREETING_BYTES: Final = 64
_SHORT: Final = 255
_PUBLISHERS: Final = ("PUB", "XPUB")
_SUBSCRIBERS: Final = ("SUB", "XSUB")
_ASKERS: Final = ("REQ", "DEALER")


class Session(SmallSession):
    """One connection.

    ``begin`` are the first bytes that came.  ``asked`` is the request that a worker has: who has
    asked, and its envelope.
    """

    def __init__(self) -> None:
        super().__init__()
        self.zmtp = ZmtpConnection(ZmtpConfig(as_server=True), 0.0)
        self.begin = b""
        self.kept = b""
        self.kind = ""
        self.channel = b""
        self.prefixes: list[bytes] = []
        self.asked: list[tuple[Session, list[bytes]]] = []


class SmallZmtp(SmallMachine[Session]):
    """The server: by channel the messages and the requests that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[bytes, list[list[bytes]]] = {}
        self.requests: dict[bytes, list[tuple[Session, list[bytes], list[bytes]]]] = {}
        self.turn = 0

    def made(self) -> Session:
        """See :class:`SmallMachine`."""
        session = Session()
        self.flush(session)
        return session

    def heard(self, session: Session, data: bytes) -> None:
        """See :class:`SmallMachine`."""
        session.begin = (session.begin + data)[:_GREETING_BYTES]
        events = session.zmtp.receive(self.incoming(session, data), 0.0)
        self.flush(session)
        for event in events:
            if not session.closed and not self.crashed:
                self.on_event(session, event)
        self.flush(session)

    def left(self, session: Session) -> None:
        """See :class:`SmallMachine`."""

    def flush(self, session: Session) -> None:
        """Send what there is to send."""
        session.out += self.outgoing(session, session.zmtp.data_to_send())

    def on_event(self, session: Session, event: Event) -> None:
        """Carry out what a peer says."""
        if isinstance(event, PeerReady):
            self.meet(session, event)
        elif isinstance(event, MessageReceived):
            self.take_message(session, event.raw, event.parts)
        elif isinstance(event, Subscribe):
            session.prefixes.append(event.prefix)
        elif isinstance(event, Cancel):
            self.cancel(session, event.prefix)
        elif isinstance(event, Violation):
            self.violated(session, event.text)
        elif isinstance(event, PeerError):
            session.closed = True

    def of_kind(self, channel: bytes, *kinds: str) -> list[Session]:
        """The sockets of these types at a channel, in their order."""
        found = [each for each in self.sessions.values() if not each.closed]
        return [each for each in found if each.kind in kinds and each.channel == channel]

    # -- what the broken ones change ------------------------------------------------------------

    def incoming(self, session: Session, data: bytes) -> bytes:
        """What is read of what came."""
        return data

    def outgoing(self, session: Session, data: bytes) -> bytes:
        """What is sent of what there is."""
        return data

    def violated(self, session: Session, text: str) -> None:
        """The peer has broken a rule."""
        session.closed = True

    def type_for(self, kind: str) -> str:
        """What the server is to such a socket; empty for a refusal."""
        return "" if kind == "PAIR" else mirror_of(kind)

    def refuse(self, session: Session) -> None:
        """Turn a socket away."""
        session.zmtp.refuse("no such socket here")
        session.closed = True

    def meet(self, session: Session, peer: PeerReady) -> None:
        """A socket says what it is."""
        ours = self.type_for(peer.socket_type)
        if not ours:
            self.refuse(session)
            return
        session.kind = peer.socket_type
        session.channel = peer.properties.get("x-channel", b"")
        session.zmtp.ready(ours)
        if session.kind in _PUBLISHERS:
            self.ask(session)
        self.pump(session.channel)

    def ask(self, session: Session) -> None:
        """Ask a publisher for all."""
        session.zmtp.subscribe(b"")

    def cancel(self, session: Session, prefix: bytes) -> None:
        """Take one subscription back."""
        if prefix in session.prefixes:
            session.prefixes.remove(prefix)

    def take_message(self, session: Session, raw: bytes, parts: list[bytes]) -> None:
        """Carry a message on."""
        channel = session.channel
        if session.kind == "PUSH":
            self.store(channel, parts)
        elif session.kind in _PUBLISHERS:
            for each in self.of_kind(channel, *_SUBSCRIBERS):
                if self.wants(each, parts):
                    self.deliver(each, parts)
        elif session.kind in _ASKERS:
            at = parts.index(b"") + 1 if b"" in parts else 0
            self.requests.setdefault(channel, []).append((session, parts[:at], parts[at:]))
        elif session.kind == "REP" and session.asked and b"" in parts[:-1]:
            asker, envelope = session.asked.pop(0)
            self.answer(asker, envelope, parts[parts.index(b"") + 1 :])
        self.pump(channel)

    def store(self, channel: bytes, parts: list[bytes]) -> None:
        """Keep a message until somebody takes it."""
        self.waiting.setdefault(channel, []).append(parts)

    def wants(self, session: Session, parts: list[bytes]) -> bool:
        """Whether a subscriber wants a message."""
        return any(parts[0].startswith(prefix) for prefix in session.prefixes)

    def answer(self, session: Session, envelope: list[bytes], parts: list[bytes]) -> None:
        """A reply for who has asked."""
        self.deliver(session, envelope + parts)

    def deliver(self, session: Session, parts: list[bytes]) -> None:
        """A message for a socket."""
        session.zmtp.send_message(parts)
        self.flush(session)

    def is_idle(self, worker: Session) -> bool:
        """Whether a worker gets a request."""
        return not worker.asked

    def next_of(self, sockets: list[Session]) -> Session:
        """Whose turn it is."""
        self.turn += 1
        return sockets[self.turn % len(sockets)]

    def pump(self, channel: bytes) -> None:
        """Deliver what waits."""
        waiting = self.waiting.get(channel, [])
        while waiting and (sockets := self.of_kind(channel, "PULL")):
            self.deliver(self.next_of(sockets), waiting.pop(0))
        requests = self.requests.get(channel, [])
        while requests:
            idle = [each for each in self.of_kind(channel, "REP") if self.is_idle(each)]
            if not idle:
                return
            asker, envelope, parts = requests.pop(0)
            idle[0].asked.append((asker, envelope))
            self.deliver(idle[0], [b"\x01asker", b"", *parts])


# -- the broken ones ------------------------------------------------------------------------------


class _WaitsForTheGreeting(SmallZmtp):
    def outgoing(self, session: Session, data: bytes) -> bytes:
        session.kept += data
        if len(session.begin) < _GREETING_BYTES:
            return b""
        data, session.kept = session.kept, b""
        return data


class _Picky(SmallZmtp):
    """It closes when it does not like a greeting's first bytes."""

    def likes(self, begin: bytes) -> bool:
        raise NotImplementedError

    def incoming(self, session: Session, data: bytes) -> bytes:
        if len(session.begin) >= 12 and not self.likes(session.begin):
            session.closed = True
            return b""
        return data


class _ChecksPadding(_Picky):
    def likes(self, begin: bytes) -> bool:
        return begin[1:9] == b"\0\0\0\0\0\0\0\x01"


class _No30(_Picky):
    def likes(self, begin: bytes) -> bool:
        return begin[10:12] != b"\x03\x00"


class _NoneToCome(_Picky):
    def likes(self, begin: bytes) -> bool:
        return begin[10] <= 3


class _No20(_Picky):
    def likes(self, begin: bytes) -> bool:
        return begin[10] >= 3


class _AnyMechanism(SmallZmtp):
    def incoming(self, session: Session, data: bytes) -> bytes:
        return data.replace(b"CURVE", b"NULL\0")


class _ExactNames(SmallZmtp):
    def incoming(self, session: Session, data: bytes) -> bytes:
        if b"READY" in data and b"Socket-Type" not in data:
            session.closed = True
        return data


class _AlwaysRouter(SmallZmtp):
    """But not to those of ZMTP 2.0, whom the codec tells the type that fits theirs."""

    def type_for(self, kind: str) -> str:
        return super().type_for(kind) and "ROUTER"


class _TakesPairs(SmallZmtp):
    def type_for(self, kind: str) -> str:
        return mirror_of(kind)


class _RefusesSilently(SmallZmtp):
    def refuse(self, session: Session) -> None:
        session.closed = True


class _NoPong(SmallZmtp):
    def outgoing(self, session: Session, data: bytes) -> bytes:
        return b"" if b"\x04PONG" in data else data


class _EmptyPong(SmallZmtp):
    def outgoing(self, session: Session, data: bytes) -> bytes:
        return command_frame(b"PONG") if b"\x04PONG" in data else data


class _FirstPartOnly(SmallZmtp):
    def deliver(self, session: Session, parts: list[bytes]) -> None:
        super().deliver(session, parts[:1])


class _ShortFormOnly(SmallZmtp):
    def take_message(self, session: Session, raw: bytes, parts: list[bytes]) -> None:
        if raw[0] & LONG or max(map(len, parts)) > _SHORT:
            session.closed = True
        else:
            super().take_message(session, raw, parts)


class _LowByteOfLengths(SmallZmtp):
    """It keeps so much of a part as one byte counts."""

    def store(self, channel: bytes, parts: list[bytes]) -> None:
        super().store(channel, [part[: len(part) & 0xFF] for part in parts])


class _NoSubscribingMessages(SmallZmtp):
    def incoming(self, session: Session, data: bytes) -> bytes:
        subscribes = session.kind in _SUBSCRIBERS and data[:1] == b"\0"
        return b"" if subscribes else data


class _NoSubscribingCommands(SmallZmtp):
    def incoming(self, session: Session, data: bytes) -> bytes:
        return b"" if b"\x09SUBSCRIBE" in data else data


class _CountsNoSubscriptions(SmallZmtp):
    def cancel(self, session: Session, prefix: bytes) -> None:
        session.prefixes = [each for each in session.prefixes if each != prefix]


class _IgnoresCancel(SmallZmtp):
    def cancel(self, session: Session, prefix: bytes) -> None:
        return


class _WantsAll(SmallZmtp):
    def wants(self, session: Session, parts: list[bytes]) -> bool:
        return True


class _CommandsToAll(SmallZmtp):
    def ask(self, session: Session) -> None:
        self.flush(session)
        session.out += command_frame(b"SUBSCRIBE")


class _AsksNobody(SmallZmtp):
    def ask(self, session: Session) -> None:
        return


class _TakesReserved(SmallZmtp):
    def incoming(self, session: Session, data: bytes) -> bytes:
        return b"\0" + data[1:] if session.kind and data[0] == 8 else data


class _FirstConsumerOnly(SmallZmtp):
    def next_of(self, sockets: list[Session]) -> Session:
        return sockets[0]


class _KeepsNothing(SmallZmtp):
    def store(self, channel: bytes, parts: list[bytes]) -> None:
        if self.of_kind(channel, "PULL"):
            super().store(channel, parts)


class _NewEnvelopes(SmallZmtp):
    def answer(self, session: Session, envelope: list[bytes], parts: list[bytes]) -> None:
        super().answer(session, [b""], parts)


class _NoEnvelopes(SmallZmtp):
    def answer(self, session: Session, envelope: list[bytes], parts: list[bytes]) -> None:
        super().answer(session, [], parts)


class _NeverBusy(SmallZmtp):
    def is_idle(self, worker: Session) -> bool:
        return True


class _Forgiving(SmallZmtp):
    """It does not mind what breaks one rule."""

    forgiven = ""

    def violated(self, session: Session, text: str) -> None:
        if self.forgiven not in text:
            super().violated(session, text)


class _TakesOld(_Forgiving):
    forgiven = "no greeting of ZMTP"


class _TakesEarlyMessages(_Forgiving):
    forgiven = "before READY"


class _TakesAnyType(_Forgiving):
    forgiven = "no socket type"


class _TakesAnyCommand(_Forgiving):
    forgiven = "a command has"


class _TakesAnyLength(_Forgiving):
    forgiven = "a part of a message has"


class _CrashesOnMetadata(SmallZmtp):
    def violated(self, session: Session, text: str) -> None:
        self.crashed = self.crashed or "metadata" in text
        super().violated(session, text)


#: name -> what is wrong with it, and how to make one.
BROKEN_ZMTP: Final[dict[str, tuple[str, Callable[[], SmallZmtp]]]] = {
    "waits-for-the-greeting": ("says nothing before 64 bytes came", _WaitsForTheGreeting),
    "checks-padding": ("refuses another padding than its own", _ChecksPadding),
    "no-3-0": ("refuses ZMTP 3.0", _No30),
    "none-to-come": ("refuses versions above 3", _NoneToCome),
    "no-2-0": ("refuses ZMTP 2.0", _No20),
    "takes-old": ("waits for more of ZMTP 1.0", _TakesOld),
    "any-mechanism": ("takes CURVE for NULL", _AnyMechanism),
    "exact-names": ("reads names of metadata exactly", _ExactNames),
    "always-router": ("is a ROUTER socket to all", _AlwaysRouter),
    "takes-pairs": ("takes PAIR sockets", _TakesPairs),
    "refuses-silently": ("refuses without ERROR", _RefusesSilently),
    "takes-any-type": ("does not refuse unknown types", _TakesAnyType),
    "takes-early-messages": ("does not mind messages before READY", _TakesEarlyMessages),
    "crashes-on-metadata": ("dies of broken metadata", _CrashesOnMetadata),
    "no-pong": ("does not answer PING", _NoPong),
    "empty-pong": ("leaves the context out of PONG", _EmptyPong),
    "first-part-only": ("delivers the first part only", _FirstPartOnly),
    "short-form-only": ("closes at a long frame", _ShortFormOnly),
    "low-byte-of-lengths": ("keeps the low byte of a length", _LowByteOfLengths),
    "takes-reserved": ("takes frames with a reserved flag", _TakesReserved),
    "takes-any-command": ("waits for commands of any size", _TakesAnyCommand),
    "takes-any-length": ("waits for frames of any size", _TakesAnyLength),
    "no-subscribing-messages": ("knows subscriptions as commands only", _NoSubscribingMessages),
    "no-subscribing-commands": ("knows subscriptions as messages only", _NoSubscribingCommands),
    "counts-no-subscriptions": ("ends two subscriptions at once", _CountsNoSubscriptions),
    "ignores-cancel": ("ends no subscription", _IgnoresCancel),
    "wants-all": ("delivers without a subscription", _WantsAll),
    "commands-to-all": ("says SUBSCRIBE to publishers of 3.0", _CommandsToAll),
    "asks-nobody": ("does not ask publishers", _AsksNobody),
    "first-consumer-only": ("gives all messages to the first PULL socket", _FirstConsumerOnly),
    "keeps-nothing": ("drops messages while there are no consumers", _KeepsNothing),
    "new-envelopes": ("makes the envelopes of replies itself", _NewEnvelopes),
    "no-envelopes": ("leaves out the envelopes of replies", _NoEnvelopes),
    "never-busy": ("gives workers all requests at once", _NeverBusy),
}
