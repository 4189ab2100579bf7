"""Copies of the small server of OpenWire that are broken in one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp_conformance.zoo.openwire import (
    Consumer,
    Letter,
    RefusedError,
    Session,
    SmallOpenwire,
    key_of,
)
from tmqp_wires.openwire import Command, Message, MessageAck, MessageDispatch, WireFormat
from tmqp_wires.openwire.commands import (
    COMMIT,
    ROLLBACK,
    ConnectionInfo,
    ConsumerInfo,
    KeepAliveInfo,
    MessagePull,
    RemoveInfo,
    Response,
    TransactionInfo,
)
from tmqp_wires.openwire.ids import ConsumerId, Destination, XaTransactionId
from tmqp_wires.openwire.messages import ACK_INDIVIDUAL, ACK_STANDARD

__all__ = ["BROKEN_OPENWIRE"]

_UNKNOWN: Final = 0x63
_NO_LIMIT: Final = 2**31 - 1


# -- the stream -----------------------------------------------------------------------------------


class _OldHello(SmallOpenwire):
    def hello_to(self, version: int) -> bytes:
        return WireFormat(6).encoded()


class _ParrotsVersions(SmallOpenwire):
    def hello_to(self, version: int) -> bytes:
        return WireFormat(version).encoded()


class _AnyVersion(SmallOpenwire):
    def check_version(self, version: int) -> None:
        return


class _AllOptions(SmallOpenwire):
    """It says that it has tight encoding."""

    def hello_to(self, version: int) -> bytes:
        name = b"TightEncodingEnabled\1"
        return super().hello_to(version).replace(name + b"\0", name + b"\1")


class _AnyMagic(SmallOpenwire):
    def check_first(self, begun: bytes) -> None:
        super().check_first(begun[:1])


class _NoHelloNeeded(SmallOpenwire):
    def check_first(self, begun: bytes) -> None:
        if begun[:1] == b"\1":
            super().check_first(begun)


class _TakesEarly(SmallOpenwire):
    def carry_out(self, session: Session, command: Command) -> None:
        try:
            super().carry_out(session, command)
        except RefusedError:
            if session.client_id or isinstance(command, ConnectionInfo):
                raise


class _SharesIds(SmallOpenwire):
    def in_use(self, client_id: str) -> None:
        return


class _IgnoresUnknown(SmallOpenwire):
    def read(self, session: Session, frame: bytes) -> Command | None:
        return None if frame[0] == _UNKNOWN else super().read(session, frame)


class _CrashesOnUnknown(SmallOpenwire):
    def read(self, session: Session, frame: bytes) -> Command | None:
        self.crashed = self.crashed or frame[0] == _UNKNOWN
        return None if self.crashed else super().read(session, frame)


class _NoLimit(SmallOpenwire):
    def most_bytes(self) -> int:
        return _NO_LIMIT


class _SilentErrors(SmallOpenwire):
    def fail(self, session: Session, text: str) -> None:
        self.close(session)


class _StaysAfterErrors(SmallOpenwire):
    def close(self, session: Session) -> None:
        session.held = b""


class _ReadsSegments(SmallOpenwire):
    """It takes each segment for whole commands."""

    def cut(self, session: Session) -> bytes | None:
        frame = super().cut(session)
        if frame is None:
            session.held = b""
        return frame


class _FirstOfSegment(SmallOpenwire):
    def on_frame(self, session: Session, frame: bytes) -> None:
        super().on_frame(session, frame)
        session.held = b""


# -- commands -------------------------------------------------------------------------------------


class _StaysAfterShutdown(SmallOpenwire):
    def shut_down(self, session: Session) -> None:
        return


class _NoKeepAlive(SmallOpenwire):
    def keep_alive(self, session: Session, info: KeepAliveInfo) -> None:
        return


class _AnswersAll(SmallOpenwire):
    def wants(self, command: Command) -> bool:
        return not isinstance(command, KeepAliveInfo)


class _NoAnswersToSends(SmallOpenwire):
    def wants(self, command: Command) -> bool:
        return super().wants(command) and not isinstance(command, Message)


class _ShortNumbers(SmallOpenwire):
    def answer(self, session: Session, command: Command) -> None:
        if self.wants(command):
            self.say(session, Response(command.command_id & 0xFFFF))


class _BareExceptions(SmallOpenwire):
    """It answers by Response what it has not carried out."""

    def except_(self, session: Session, command: Command, error: RefusedError) -> None:
        self.say(session, Response(command.command_id))


class _OneException(SmallOpenwire):
    def except_(self, session: Session, command: Command, error: RefusedError) -> None:
        super().except_(session, command, RefusedError(str(error)))


class _SilentXa(SmallOpenwire):
    def on_frame(self, session: Session, frame: bytes) -> None:
        command = self.read(session, frame)
        asked = isinstance(command, TransactionInfo) and isinstance(
            command.transaction, XaTransactionId
        )
        if not asked:
            super().on_frame(session, frame)


class _AnyDestination(SmallOpenwire):
    def consume(self, session: Session, info: ConsumerInfo) -> None:
        if info.destination is not None:
            super().consume(session, info)


# -- consumers ------------------------------------------------------------------------------------


class _NoDestination(SmallOpenwire):
    def dispatch_of(self, consumer: Consumer, letter: Letter) -> MessageDispatch:
        return MessageDispatch(consumer.id, Destination(100, "x"), letter.message, letter.counter)


class _WrongConsumer(SmallOpenwire):
    def dispatch_of(self, consumer: Consumer, letter: Letter) -> MessageDispatch:
        dispatch = super().dispatch_of(consumer, letter)
        id_ = consumer.id
        dispatch.consumer = ConsumerId(id_.connection, id_.session, id_.value + 1)
        return dispatch


class _AlwaysRedelivered(SmallOpenwire):
    def dispatch_of(self, consumer: Consumer, letter: Letter) -> MessageDispatch:
        dispatch = super().dispatch_of(consumer, letter)
        dispatch.redelivery_counter += 1
        return dispatch


class _CutsAtNul(SmallOpenwire):
    def put(self, key: str, letter: Letter) -> None:
        content = letter.message.content
        letter.message.content = content and content.partition(b"\0")[0]
        super().put(key, letter)


class _StopsAfterThree(SmallOpenwire):
    def has_room(self, consumer: Consumer) -> bool:
        return consumer.sent < 3 and super().has_room(consumer)


class _NoPrefetch(SmallOpenwire):
    def has_room(self, consumer: Consumer) -> bool:
        return super().has_room(consumer) or consumer.prefetch > 0


class _PushesAll(SmallOpenwire):
    def has_room(self, consumer: Consumer) -> bool:
        return super().has_room(consumer) or consumer.prefetch == 0


class _NoPull(SmallOpenwire):
    def pull(self, session: Session, pull: MessagePull) -> None:
        return


class _ServesAll(SmallOpenwire):
    def served(self, free: list[Consumer]) -> list[Consumer]:
        return free


class _KeepsCopies(SmallOpenwire):
    """A consumer of a queue gets all that others got there, too."""

    def __init__(self) -> None:
        super().__init__()
        self.delivered: dict[str, list[Letter]] = {}

    def consume(self, session: Session, info: ConsumerInfo) -> None:
        destination = info.destination
        if destination is not None and not destination.is_topic:
            key = key_of(destination)
            self.waiting.setdefault(key, [])[:0] = self.delivered.pop(key, [])
        super().consume(session, info)

    def dispatch(self, consumer: Consumer, letter: Letter) -> None:
        super().dispatch(consumer, letter)
        if not consumer.browser:
            self.delivered.setdefault(consumer.key, []).append(letter)


class _KeepsNothing(SmallOpenwire):
    def put(self, key: str, letter: Letter) -> None:
        if any(each.key == key for each in self.consumers):
            super().put(key, letter)


class _TopicsServeOne(SmallOpenwire):
    def subscribed(self, listening: list[Consumer]) -> list[Consumer]:
        return listening[:1]


class _TopicsKeep(SmallOpenwire):
    """A topic keeps its last message for who comes later."""

    def __init__(self) -> None:
        super().__init__()
        self.last: dict[str, Letter] = {}

    def put(self, key: str, letter: Letter) -> None:
        super().put(key, letter)
        self.last[key] = letter

    def consume(self, session: Session, info: ConsumerInfo) -> None:
        super().consume(session, info)
        if info.destination is not None and info.destination.is_topic:
            for key, letter in self.last.items():
                if key == f"topic:{info.destination.name}":
                    self.dispatch(session.consumers[-1], letter)


class _ForgetsAcks(SmallOpenwire):
    def acknowledge_of(self, consumer: Consumer, ack: MessageAck) -> None:
        return


class _AcksOne(SmallOpenwire):
    def meant(self, consumer: Consumer, ack: MessageAck) -> list[Letter]:
        return super().meant(consumer, ack)[-1:]


class _AcksAll(SmallOpenwire):
    def meant(self, consumer: Consumer, ack: MessageAck) -> list[Letter]:
        if ack.kind == ACK_INDIVIDUAL:
            ack.kind, ack.first = ACK_STANDARD, None
        return super().meant(consumer, ack)


class _LosesUnacknowledged(SmallOpenwire):
    def give_back(self, key: str, letters: list[Letter]) -> None:
        return


class _CountsNothing(SmallOpenwire):
    def counted(self, letter: Letter) -> None:
        return


class _CountsAll(SmallOpenwire):
    def remove(self, session: Session, info: RemoveInfo) -> None:
        info.last_delivered = -2
        super().remove(session, info)


class _BrowsersTake(SmallOpenwire):
    def browse(self, consumer: Consumer) -> None:
        super().browse(consumer)
        self.waiting[consumer.key] = []


class _BrowsersWait(SmallOpenwire):
    def end_of_browse(self, consumer: Consumer) -> None:
        return


# -- transactions ---------------------------------------------------------------------------------


class _SendsAtOnce(SmallOpenwire):
    def within(
        self, session: Session, command: Message | MessageAck, act: Callable[[], None]
    ) -> None:
        if isinstance(command, Message):
            act()
        else:
            super().within(session, command, act)


class _AcksAtOnce(SmallOpenwire):
    def within(
        self, session: Session, command: Message | MessageAck, act: Callable[[], None]
    ) -> None:
        if isinstance(command, MessageAck):
            act()
        else:
            super().within(session, command, act)


class _ForgetsStagedAcks(SmallOpenwire):
    def within(
        self, session: Session, command: Message | MessageAck, act: Callable[[], None]
    ) -> None:
        if isinstance(command, Message) or command.transaction is None:
            super().within(session, command, act)


class _CommitsRolledBack(SmallOpenwire):
    def commits(self, operation: int) -> bool:
        return operation in (COMMIT, ROLLBACK)


class _CommitsLost(SmallOpenwire):
    def left(self, session: Session) -> None:
        for acts in session.transactions.values():
            for act in acts:
                act()
        super().left(session)


class _NoCommit(SmallOpenwire):
    def commits(self, operation: int) -> bool:
        return False


#: name -> what is wrong with it, and how to make one.
BROKEN_OPENWIRE: Final[dict[str, tuple[str, Callable[[], SmallOpenwire]]]] = {
    "old-hello": ("says that it speaks version 6", _OldHello),
    "parrots-versions": ("says that it speaks the version of the client", _ParrotsVersions),
    "any-version": ("lets clients of all versions in", _AnyVersion),
    "all-options": ("says that it has tight encoding, and has not", _AllOptions),
    "any-magic": ("does not look at the magic", _AnyMagic),
    "no-hello-needed": ("takes commands without WireFormatInfo", _NoHelloNeeded),
    "takes-early": ("takes commands before ConnectionInfo", _TakesEarly),
    "shares-ids": ("lets several connections have a client id", _SharesIds),
    "ignores-unknown": ("ignores commands of unknown types", _IgnoresUnknown),
    "crashes-on-unknown": ("dies of a command of an unknown type", _CrashesOnUnknown),
    "no-limit": ("takes commands of any length", _NoLimit),
    "silent-errors": ("closes without ConnectionError", _SilentErrors),
    "stays-after-errors": ("does not close", _StaysAfterErrors),
    "reads-segments": ("takes each segment for whole commands", _ReadsSegments),
    "first-of-segment": ("reads one command of a segment", _FirstOfSegment),
    "stays-after-shutdown": ("ignores ShutdownInfo", _StaysAfterShutdown),
    "no-keep-alive": ("does not answer KeepAliveInfo", _NoKeepAlive),
    "answers-all": ("answers commands that want no response", _AnswersAll),
    "no-answers-to-sends": ("does not answer messages", _NoAnswersToSends),
    "short-numbers": ("cuts the numbers of commands", _ShortNumbers),
    "bare-exceptions": ("sends Response instead of exceptions", _BareExceptions),
    "one-exception": ("says JMSException for everything", _OneException),
    "silent-xa": ("does not answer transactions of XA", _SilentXa),
    "any-destination": ("ignores that a consumer has no destination", _AnyDestination),
    "no-destination": ("does not name the destination", _NoDestination),
    "wrong-consumer": ("names another consumer", _WrongConsumer),
    "always-redelivered": ("says that each message was had before", _AlwaysRedelivered),
    "cuts-at-nul": ("cuts bodies at NUL", _CutsAtNul),
    "stops-after-three": ("sends three messages to a consumer", _StopsAfterThree),
    "no-prefetch": ("does not look at the prefetch", _NoPrefetch),
    "pushes-all": ("takes prefetch 0 for no bound", _PushesAll),
    "no-pull": ("does not know MessagePull", _NoPull),
    "serves-all": ("gives messages of a queue to all consumers", _ServesAll),
    "keeps-copies": ("gives new consumers what others got, too", _KeepsCopies),
    "keeps-nothing": ("drops messages of queues without consumers", _KeepsNothing),
    "topics-serve-one": ("gives messages of a topic to one client", _TopicsServeOne),
    "topics-keep": ("gives new subscribers the last message", _TopicsKeep),
    "forgets-acks": ("ignores MessageAck", _ForgetsAcks),
    "acks-one": ("takes each MessageAck for one message", _AcksOne),
    "acks-all": ("takes individual ones for all before", _AcksAll),
    "loses-unacknowledged": ("loses what is not acknowledged", _LosesUnacknowledged),
    "counts-nothing": ("never says that a message was had before", _CountsNothing),
    "counts-all": ("does not look at lastDelivered", _CountsAll),
    "browsers-take": ("gives browsers the messages", _BrowsersTake),
    "browsers-wait": ("does not say when a browser has seen all", _BrowsersWait),
    "sends-at-once": ("delivers messages of transactions at once", _SendsAtOnce),
    "acks-at-once": ("carries out MessageAck of a transaction at once", _AcksAtOnce),
    "forgets-staged-acks": ("ignores MessageAck of a transaction", _ForgetsStagedAcks),
    "commits-rolled-back": ("commits what is rolled back", _CommitsRolledBack),
    "commits-lost": ("commits at the end of the connection", _CommitsLost),
    "no-commit": ("forgets what is committed", _NoCommit),
}
