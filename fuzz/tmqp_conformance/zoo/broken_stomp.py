"""Copies of the small server of STOMP that are broken in one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp_conformance.zoo.stomp import (
    Frame,
    Held,
    Message,
    RefusedError,
    Session,
    SmallStomp,
    Subscription,
)
from tmqp_wires.stomp.connection import HeartBeat
from tmqp_wires.stomp.frames import V1_0, V1_1, V1_2, encode_frame

__all__ = ["BROKEN_STOMP"]

Headers = list[tuple[str, str]]
_CUT: Final = 65_536


# -- connecting -----------------------------------------------------------------------------------


class _NoNewest(SmallStomp):
    def version_of(self, wanted: list[str]) -> str:
        return super().version_of([each for each in wanted if each != V1_2] or [V1_1])


class _AlwaysNewest(SmallStomp):
    def version_of(self, wanted: list[str]) -> str:
        super().version_of(wanted)
        return V1_2


class _NoStomp(SmallStomp):
    commands = SmallStomp.commands - {"STOMP"}


class _EscapedConnect(SmallStomp):
    def connect(self, session: Session, frame: Frame) -> None:
        for _, value in frame.headers:
            self.plain(value, V1_2)
        super().connect(session, frame)


class _AnyVersion(SmallStomp):
    def version_of(self, wanted: list[str]) -> str:
        try:
            return super().version_of(wanted)
        except RefusedError:
            return V1_2


class _TakesEarly(SmallStomp):
    def early(self, session: Session, frame: Frame) -> None:
        return


class _BreaksPromises(SmallStomp):
    def beat(self, session: Session) -> None:
        return


class _NoBeats(SmallStomp):
    def beats(self) -> HeartBeat:
        return HeartBeat()


class _NeverGivesUp(SmallStomp):
    def miss(self, session: Session) -> None:
        return


# -- errors ---------------------------------------------------------------------------------------


class _BareErrors(SmallStomp):
    def fail(self, session: Session, text: str, frame: Frame | None) -> None:
        self.say(session, "ERROR", [])
        self.close(session)


class _SilentErrors(SmallStomp):
    def fail(self, session: Session, text: str, frame: Frame | None) -> None:
        self.close(session)


class _StaysAfterErrors(SmallStomp):
    def fail(self, session: Session, text: str, frame: Frame | None) -> None:
        said = session.closed
        super().fail(session, text, frame)
        session.closed = said
        session.held = b""


class _IgnoresUnknown(SmallStomp):
    commands = SmallStomp.commands | {"PUBLISH"}


class _CrashesOnUnknown(SmallStomp):
    commands = SmallStomp.commands | {"PUBLISH"}

    def on_frame(self, session: Session, frame: Frame) -> None:
        self.crashed = self.crashed or frame.command == "PUBLISH"
        super().on_frame(session, frame)


class _TakesAnything(SmallStomp):
    """It ignores what it cannot carry out."""

    def on_frame(self, session: Session, frame: Frame) -> None:
        try:
            super().on_frame(session, frame)
        except RefusedError:
            if not session.version:
                raise


# -- frames ---------------------------------------------------------------------------------------


class _WritesNoEscapes(SmallStomp):
    def say(self, session: Session, command: str, headers: Headers, body: bytes = b"") -> None:
        session.out += encode_frame(command, headers, body, V1_0)


class _AlwaysEscapes(SmallStomp):
    def say(self, session: Session, command: str, headers: Headers, body: bytes = b"") -> None:
        session.out += encode_frame(command, headers, body, V1_2)


class _AnyEscape(SmallStomp):
    def plain(self, text: str, version: str) -> str:
        try:
            return super().plain(text, version)
        except ValueError:
            return text


class _LatinHeaders(SmallStomp):
    def text_of(self, head: bytes) -> str:
        return head.decode("latin-1")


class _Trims(SmallStomp):
    def header_of(self, line: str) -> tuple[str, str]:
        name, value = super().header_of(line)
        return name.strip(), value.strip()


class _KeepsReturns(SmallStomp):
    def line_of(self, line: str) -> str:
        return line


class _NoFeeds(SmallStomp):
    def without_feeds(self, data: bytes) -> bytes:
        if data[:1] == b"\n":
            raise RefusedError("a frame begins with its command")
        return data


class _LastHeader(SmallStomp):
    def kept(self, headers: Headers) -> Headers:
        return headers[::-1]


class _EndsAtNul(SmallStomp):
    def end_of_body(self, frame: Frame, held: bytes, start: int) -> int:
        return held.find(b"\0", start)


class _ShortLengths(SmallStomp):
    def end_of_body(self, frame: Frame, held: bytes, start: int) -> int:
        try:
            return super().end_of_body(frame, held, start)
        except RefusedError:
            return held.find(b"\0", start)


class _StripsBodies(SmallStomp):
    def deliver(self, subscription: Subscription, message: Message) -> None:
        message.body = message.body.rstrip(b"\n")
        super().deliver(subscription, message)


class _DropsEmpty(SmallStomp):
    def deliver(self, subscription: Subscription, message: Message) -> None:
        if message.body:
            super().deliver(subscription, message)


class _CutsBodies(SmallStomp):
    def deliver(self, subscription: Subscription, message: Message) -> None:
        message.body = message.body[:_CUT]
        super().deliver(subscription, message)


class _ReadsSegments(SmallStomp):
    def heard(self, session: Session, data: bytes) -> None:
        super().heard(session, data)
        session.held = b""


class _NoLimit(SmallStomp):
    def most_head_bytes(self) -> int:
        return 16_777_216


# -- receipts and subscriptions -------------------------------------------------------------------


class _ReceiptsOfSendOnly(SmallStomp):
    def answered(self, session: Session, frame: Frame) -> None:
        if frame.command != "SEND":
            frame.headers = [each for each in frame.headers if each[0] != "receipt"]
        super().answered(session, frame)


class _RawReceipts(SmallStomp):
    def receipt(self, session: Session, receipt: str) -> None:
        session.out += encode_frame("RECEIPT", [("receipt-id", receipt)], b"", V1_0)


class _StopsAfterThree(SmallStomp):
    def deliver(self, subscription: Subscription, message: Message) -> None:
        if subscription.sent < 3:
            super().deliver(subscription, message)


class _KeepsNothing(SmallStomp):
    def pump(self, destination: str) -> None:
        if not any(each.destination == destination for each in self.subscriptions):
            self.waiting[destination].clear()
        super().pump(destination)


class _KeepsCopies(SmallStomp):
    """A new consumer of a queue gets what others have done, too."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: list[tuple[str, Message]] = []

    def done(self, subscription: Subscription, message: Message) -> None:
        if subscription.destination.startswith("/queue/"):
            self.copies.append((subscription.destination, message))

    def subscribe(self, session: Session, frame: Frame) -> None:
        destination = frame.need("destination")
        copies, self.copies = self.copies, []
        self.give_back_copies(destination, copies)
        super().subscribe(session, frame)

    def give_back_copies(self, destination: str, copies: list[tuple[str, Message]]) -> None:
        waiting = self.waiting.setdefault(destination, [])
        waiting[:0] = [message for name, message in copies if name == destination]


class _NoSubscription(SmallStomp):
    def headers_for(self, subscription: Subscription, message: Message) -> Headers:
        headers = super().headers_for(subscription, message)
        return [each for each in headers if each[0] != "subscription"]


class _NoMessageId(SmallStomp):
    def headers_for(self, subscription: Subscription, message: Message) -> Headers:
        headers = super().headers_for(subscription, message)
        return [each for each in headers if each[0] != "message-id"]


class _DropsHeaders(SmallStomp):
    def kept(self, headers: Headers) -> Headers:
        return []


class _TopicsServeOne(SmallStomp):
    def receivers(self, listening: list[Subscription]) -> list[Subscription]:
        return listening[:1]


class _NoUnsubscribe(SmallStomp):
    def unsubscribe(self, session: Session, frame: Frame) -> None:
        return


class _NeedsIds(SmallStomp):
    def subscribe(self, session: Session, frame: Frame) -> None:
        frame.need("id")
        super().subscribe(session, frame)


# -- acknowledgements -----------------------------------------------------------------------------


class _ForgetsAcks(SmallStomp):
    def meant(self, session: Session, frame: Frame) -> list[Held]:
        super().meant(session, frame)
        return []


class _AutoWaits(SmallStomp):
    def awaits(self, subscription: Subscription) -> bool:
        return True


class _AcksAll(SmallStomp):
    def is_cumulative(self, subscription: Subscription) -> bool:
        return True


class _AcksOne(SmallStomp):
    def is_cumulative(self, subscription: Subscription) -> bool:
        return False


class _LosesUnacknowledged(SmallStomp):
    def give_back(self, destination: str, messages: list[Message]) -> None:
        return


class _NoAckHeader(SmallStomp):
    def has_ack(self, subscription: Subscription) -> bool:
        return False


class _AlwaysAckHeader(SmallStomp):
    def has_ack(self, subscription: Subscription) -> bool:
        return subscription.session.version == V1_2


class _NoNack(SmallStomp):
    commands = SmallStomp.commands - {"NACK"}


class _NeedsAckIds(SmallStomp):
    def number_of(self, session: Session, frame: Frame) -> int:
        frame.need("id")
        return super().number_of(session, frame)


# -- transactions ---------------------------------------------------------------------------------


class _SendsAtOnce(SmallStomp):
    def within(self, session: Session, frame: Frame, act: Callable[[], None]) -> None:
        super().within(session, frame, act)
        name = frame.get("transaction")
        if name is not None and frame.command == "SEND":
            session.transactions[name].remove(act)
            act()


class _CommitsAborted(SmallStomp):
    def finish(self, session: Session, frame: Frame) -> None:
        frame.command = "COMMIT"
        super().finish(session, frame)


class _CommitsLost(SmallStomp):
    def left(self, session: Session) -> None:
        for acts in session.transactions.values():
            self.commit(acts)
        super().left(session)


class _AcksAtOnce(SmallStomp):
    def within(self, session: Session, frame: Frame, act: Callable[[], None]) -> None:
        super().within(session, frame, act)
        if frame.command == "ACK":
            act()


class _ForgetsStagedAcks(SmallStomp):
    def within(self, session: Session, frame: Frame, act: Callable[[], None]) -> None:
        staged = frame.command == "ACK" and frame.get("transaction") is not None
        super().within(session, frame, (lambda: None) if staged else act)


class _OneTransaction(SmallStomp):
    def transaction_name(self, name: str) -> str:
        return "t" if name == "u" else name

    def finish(self, session: Session, frame: Frame) -> None:
        name = self.transaction_name(frame.need("transaction"))
        super().finish(session, frame)
        session.transactions.setdefault(name, [])


#: name -> what is wrong with it, and how to make one.
BROKEN_STOMP: Final[dict[str, tuple[str, Callable[[], SmallStomp]]]] = {
    "no-newest": ("does not speak 1.2", _NoNewest),
    "always-newest": ("speaks 1.2 with all clients", _AlwaysNewest),
    "no-stomp-frame": ("does not know STOMP", _NoStomp),
    "escaped-connect": ("reads escapes in CONNECT", _EscapedConnect),
    "any-version": ("lets clients of unknown versions in", _AnyVersion),
    "takes-early": ("ignores what comes before CONNECT", _TakesEarly),
    "breaks-promises": ("promises heart-beats and sends none", _BreaksPromises),
    "no-heart-beats": ("has no heart-beats", _NoBeats),
    "never-gives-up": ("keeps clients that send no heart-beats", _NeverGivesUp),
    "bare-errors": ("sends ERROR without headers", _BareErrors),
    "silent-errors": ("closes without ERROR", _SilentErrors),
    "stays-after-errors": ("does not close behind ERROR", _StaysAfterErrors),
    "ignores-unknown": ("ignores unknown commands", _IgnoresUnknown),
    "crashes-on-unknown": ("dies of an unknown command", _CrashesOnUnknown),
    "takes-anything": ("ignores what it cannot carry out", _TakesAnything),
    "writes-no-escapes": ("writes headers without escapes", _WritesNoEscapes),
    "always-escapes": ("writes escapes for clients of all versions", _AlwaysEscapes),
    "any-escape": ("takes unknown escapes as they are", _AnyEscape),
    "latin-headers": ("reads headers as Latin-1", _LatinHeaders),
    "trims": ("trims headers", _Trims),
    "keeps-returns": ("does not take carriage returns for line ends", _KeepsReturns),
    "no-feeds": ("refuses line feeds between frames", _NoFeeds),
    "last-header": ("reverses headers, so that the last repeated one counts", _LastHeader),
    "ends-at-nul": ("does not look at content-length", _EndsAtNul),
    "short-lengths": ("forgives a wrong content-length", _ShortLengths),
    "strips-bodies": ("takes line feeds off the end of a body", _StripsBodies),
    "drops-empty": ("drops empty messages", _DropsEmpty),
    "cuts-bodies": ("cuts bodies after 65,536 bytes", _CutsBodies),
    "reads-segments": ("takes each segment for whole frames", _ReadsSegments),
    "no-limit": ("takes headers of any length", _NoLimit),
    "receipts-of-send-only": ("sends no receipts but for SEND", _ReceiptsOfSendOnly),
    "raw-receipts": ("writes receipts without escapes", _RawReceipts),
    "stops-after-three": ("sends three messages to a subscription", _StopsAfterThree),
    "keeps-nothing": ("drops messages of queues without consumers", _KeepsNothing),
    "keeps-copies": ("gives new consumers what is done, too", _KeepsCopies),
    "no-subscription": ("does not name the subscription", _NoSubscription),
    "no-message-id": ("does not name the message", _NoMessageId),
    "drops-headers": ("drops the headers of senders", _DropsHeaders),
    "topics-serve-one": ("gives messages of a topic to one client", _TopicsServeOne),
    "no-unsubscribe": ("ignores UNSUBSCRIBE", _NoUnsubscribe),
    "needs-ids": ("needs ids of subscriptions in 1.0, too", _NeedsIds),
    "forgets-acks": ("ignores ACK", _ForgetsAcks),
    "auto-waits": ("waits for ACK in the mode auto, too", _AutoWaits),
    "acks-all": ("takes each ACK for all messages before", _AcksAll),
    "acks-one": ("takes each ACK for one message", _AcksOne),
    "loses-unacknowledged": ("loses what is not acknowledged", _LosesUnacknowledged),
    "no-ack-header": ("does not send the header ack", _NoAckHeader),
    "always-ack-header": ("sends the header ack in the mode auto, too", _AlwaysAckHeader),
    "no-nack": ("does not know NACK", _NoNack),
    "needs-ack-ids": ("needs the header id of ACK before 1.2, too", _NeedsAckIds),
    "sends-at-once": ("delivers messages of transactions at once", _SendsAtOnce),
    "commits-aborted": ("commits what is aborted", _CommitsAborted),
    "commits-lost": ("commits at the end of the connection", _CommitsLost),
    "acks-at-once": ("carries out ACK of a transaction at once", _AcksAtOnce),
    "forgets-staged-acks": ("ignores ACK of a transaction", _ForgetsStagedAcks),
    "one-transaction": ("keeps one transaction for all names", _OneTransaction),
}
