"""A small server of goMS, right in what it does, and copies of it that are broken in one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp_conformance.packs.goms import TOPICS
from tmqp_conformance.zoo.small import SmallMachine, SmallSession
from tmqp_wires.goms import Dialect, ObjectDecoder
from tmqp_wires.goms.codec import (
    UNKNOWN_TOPIC,
    Close,
    Event,
    Logout,
    Register,
    Send,
    error_line,
    message_line,
)

__all__ = ["BROKEN_GOMS", "SmallGoms"]

_MOST_BYTES: Final = 1_048_576


class Session(SmallSession):
    """One connection, in the dialect of its first request."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = ObjectDecoder(_MOST_BYTES)
        self.dialect: Dialect | None = None
        self.topics: list[str] = []


class SmallGoms(SmallMachine[Session]):
    """The server, which knows the topics of the pack."""

    def made(self) -> Session:
        """See :class:`SmallMachine`."""
        return Session()

    def heard(self, session: Session, data: bytes) -> None:
        """See :class:`SmallMachine`."""
        for event in session.decoder.receive(data):
            if not session.closed:
                self.on_event(session, event)

    def left(self, session: Session) -> None:
        """See :class:`SmallMachine`."""
        session.topics = []

    # -- what the broken ones change ------------------------------------------------------------

    def on_event(self, session: Session, event: Event) -> None:
        """Carry out a request."""
        if session.dialect is None and isinstance(event, Register | Send | Logout | Close):
            session.dialect = event.dialect
        if isinstance(event, Register):
            self.register(session, event.topics)
        elif isinstance(event, Send):
            self.send(session, event)
        elif isinstance(event, Logout):
            self.log_out(session, event.topics)
        elif isinstance(event, Close):
            self.close(session)

    def register(self, session: Session, topics: list[str]) -> None:
        """Register to the topics that there are, and name the others."""
        unknown = [topic for topic in topics if topic not in TOPICS]
        session.topics += [topic for topic in topics if topic in TOPICS]
        if unknown:
            session.out += self.error(session, unknown)

    def error(self, session: Session, unknown: list[str]) -> bytes:
        """The error about unknown topics."""
        assert session.dialect is not None
        return error_line(session.dialect, UNKNOWN_TOPIC, ",".join(unknown))

    def send(self, sender: Session, event: Send) -> None:
        """Deliver to everybody who is registered, once for each topic."""
        for topic in event.topics:
            for session in self.sessions.values():
                if topic in session.topics and session is not sender:
                    session.out += self.delivery(session, topic, event.data)

    def delivery(self, session: Session, topic: str, data: str) -> bytes:
        """What a receiver reads."""
        assert session.dialect is not None
        return message_line(session.dialect, topic, data)

    def log_out(self, session: Session, topics: list[str] | None) -> None:
        """Leave these topics, or all."""
        gone = session.topics if topics is None else topics
        session.topics = [topic for topic in session.topics if topic not in gone]

    def close(self, session: Session) -> None:
        """The client wants to close."""
        session.closed = True
        self.left(session)


# -- the broken ones ------------------------------------------------------------------------------


class _ConfirmsRegistration(SmallGoms):
    def register(self, session: Session, topics: list[str]) -> None:
        if set(topics) <= set(TOPICS):
            session.out += b'{"type":"reg-ack"}\n'
        super().register(session, topics)


class _NamesAllTopics(SmallGoms):
    def register(self, session: Session, topics: list[str]) -> None:
        super().register(session, topics)
        if not set(topics) <= set(TOPICS):
            session.out = self.error(session, topics)


class _RefusesAll(SmallGoms):
    """One unknown topic is enough, and nothing is registered."""

    def register(self, session: Session, topics: list[str]) -> None:
        known = [topic for topic in topics if topic in TOPICS]
        super().register(session, topics)
        if len(known) < len(topics):
            session.topics = [topic for topic in session.topics if topic not in known]


class _AnotherCode(SmallGoms):
    def error(self, session: Session, unknown: list[str]) -> bytes:
        return super().error(session, unknown).replace(UNKNOWN_TOPIC.encode(), b"404")


class _OldErrors(SmallGoms):
    def error(self, session: Session, unknown: list[str]) -> bytes:
        return error_line(Dialect.TYPE, UNKNOWN_TOPIC, ",".join(unknown))


class _OldDeliveries(SmallGoms):
    def delivery(self, session: Session, topic: str, data: str) -> bytes:
        return message_line(Dialect.TYPE, topic, data)


class _FirstTopicOnly(SmallGoms):
    def send(self, sender: Session, event: Send) -> None:
        super().send(sender, Send(event.dialect, event.topics[:1], event.data))


class _OncePerReceiver(SmallGoms):
    def send(self, sender: Session, event: Send) -> None:
        for session in self.sessions.values():
            found = [topic for topic in event.topics if topic in session.topics]
            if found and session is not sender:
                session.out += self.delivery(session, found[0], event.data)


class _FirstReceiverOnly(SmallGoms):
    def send(self, sender: Session, event: Send) -> None:
        for topic in event.topics:
            found = [each for each in self.sessions.values() if topic in each.topics]
            for session in found[:1]:
                session.out += self.delivery(session, topic, event.data)


class _IgnoresLogout(SmallGoms):
    def log_out(self, session: Session, topics: list[str] | None) -> None:
        return


class _NoLogoutOfAll(SmallGoms):
    def log_out(self, session: Session, topics: list[str] | None) -> None:
        super().log_out(session, topics or [])


class _IgnoresClose(SmallGoms):
    def close(self, session: Session) -> None:
        return


class _EmptyLines(SmallGoms):
    """As the newer program ends an error."""

    def error(self, session: Session, unknown: list[str]) -> bytes:
        end = b"\n" if session.dialect is Dialect.MESSAGETYPE else b""
        return super().error(session, unknown) + end


class _ExactTopics(SmallGoms):
    def heard(self, session: Session, data: bytes) -> None:
        super().heard(session, data.replace(b"CONFORMANCE", b"Conformance:"))


class _OneLineOnly(SmallGoms):
    """An object that is not whole at the end of its line is none."""

    def heard(self, session: Session, data: bytes) -> None:
        super().heard(session, data.replace(b"{\n", b"\n"))


class _AsciiOnly(SmallGoms):
    def delivery(self, session: Session, topic: str, data: str) -> bytes:
        return super().delivery(session, topic, data.encode("ascii", "replace").decode())


class _CrashesOnNonsense(SmallGoms):
    def heard(self, session: Session, data: bytes) -> None:
        self.crashed = data.startswith(b"hello")
        super().heard(session, data)


class _ReadsSegments(SmallGoms):
    """It joins nothing: what is cut is no object."""

    def heard(self, session: Session, data: bytes) -> None:
        super().heard(session, data)
        session.decoder.forget()


class _FirstOfSegment(SmallGoms):
    """It loses all requests of a segment but the first, as the older program; not registrations."""

    def heard(self, session: Session, data: bytes) -> None:
        first = data.split(b"\n")[0] + b"\n"
        super().heard(session, first if b'"send"' in data else data)


#: name -> what is wrong with it, and how to make one.
BROKEN_GOMS: Final[dict[str, tuple[str, Callable[[], SmallGoms]]]] = {
    "confirms-registration": ("answers a registration", _ConfirmsRegistration),
    "names-all-topics": ("names the known topics in its error, too", _NamesAllTopics),
    "refuses-all": ("registers nothing if one topic is unknown", _RefusesAll),
    "another-code": ("has another code for unknown topics", _AnotherCode),
    "old-errors": ("writes errors in the older dialect", _OldErrors),
    "old-deliveries": ("delivers in the older dialect", _OldDeliveries),
    "first-topic-only": ("sends to the first topic alone", _FirstTopicOnly),
    "once-per-receiver": ("delivers once for all topics", _OncePerReceiver),
    "first-receiver-only": ("delivers to one receiver", _FirstReceiverOnly),
    "ignores-logout": ("ignores logout", _IgnoresLogout),
    "no-logout-of-all": ("ignores logout without topics", _NoLogoutOfAll),
    "ignores-close": ("ignores close", _IgnoresClose),
    "empty-lines": ("writes an empty line behind an error", _EmptyLines),
    "exact-topics": ("does not know topics in capitals", _ExactTopics),
    "one-line-only": ("does not read objects over several lines", _OneLineOnly),
    "ascii-only": ("replaces letters that are not ASCII", _AsciiOnly),
    "crashes-on-nonsense": ("dies of a line that is no object", _CrashesOnNonsense),
    "reads-segments": ("does not join what was cut", _ReadsSegments),
    "first-of-segment": ("loses all sends of a segment but the first", _FirstOfSegment),
}
