"""Servers that are broken in one thing each, as servers in the wild are."""

from __future__ import annotations

from typing import Final

from tmqp import Event, Frame, HandshakeReceived, MessageDropped, MessageType, Operation
from tmqp_conformance.zoo.frames import changed, long_form, swapped
from tmqp_conformance.zoo.server import Session, SmallServer

__all__ = ["BROKEN_SERVERS"]

#: A push whose message id is not UTF-8.
_GARBAGE: Final = b"\x11\x10\x02\x00\x00\x00\x00\x00\xc3("


class _NoPong(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        return b"" if frame.type == MessageType.PONG else frame.raw


class _PongGarbage(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        return (
            b"\x11\x10\x02\x00\x00\x00\x00\x00\xc3("
            if frame.type == MessageType.PONG
            else frame.raw
        )


class _PongOtherBits(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.PONG:
            return frame.raw
        return Frame.build(MessageType.PONG, ttl=16).raw


class _WrongId(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.RESPONSE:
            return frame.raw
        return changed(frame, message_id=b"other" + frame.message_id.encode()[:200])


class _AcknowledgesRequests(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.RESPONSE:
            return frame.raw
        return changed(frame, message_type=int(MessageType.ACKNOWLEDGE), content_type=0)


class _NoFlagsInAnswers(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.RESPONSE:
            return frame.raw
        return changed(frame, first_acquirer=False, high_priority=False)


class _AnswersWithoutTarget(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        return changed(frame, target=b"") if frame.type == MessageType.RESPONSE else frame.raw


class _NeverAnswers(SmallServer):
    def answer(self, session: Session, frame: Frame, code: int) -> None:
        return


class _AnswersUnasked(SmallServer):
    def on_operation(self, session: Session, frame: Frame) -> None:
        super().on_operation(session, frame)
        if not frame.pending_response:
            self.answer(session, frame, 0)


class _AnswersTwice(SmallServer):
    def answer(self, session: Session, frame: Frame, code: int) -> None:
        super().answer(session, frame, code)
        super().answer(session, frame, code)


class _ConflictForDuplicate(SmallServer):
    def create(self, key: str, frame: Frame) -> int:
        code = super().create(key, frame)
        return 409 if code == 481 else code


class _ClosesOnMistakes(SmallServer):
    def answer(self, session: Session, frame: Frame, code: int) -> None:
        if code == 400:
            session.close()
        else:
            super().answer(session, frame, code)


class _AnswersAndCloses(SmallServer):
    def answer(self, session: Session, frame: Frame, code: int) -> None:
        super().answer(session, frame, code)
        if code == 481:
            session.ending = True

    def is_closed(self, number: int) -> bool:
        session = self.sessions.get(number)
        return super().is_closed(number) or (session is not None and session.ending)


class _NothingImplemented(SmallServer):
    def create(self, key: str, frame: Frame) -> int:
        return 501


class _AnyName(SmallServer):
    def is_name(self, name: str) -> bool:
        return bool(name)


class _CaseMatters(SmallServer):
    def key(self, name: str) -> str:
        return name


class _UnknownIsNotImplemented(SmallServer):
    def operate(self, session: Session, frame: Frame) -> int:
        code = super().operate(session, frame)
        unknown = frame.content_type not in {*Operation, 101, 110, 111}
        return 501 if code == 400 and unknown else code


class _WaitsForHello(SmallServer):
    def take(self, number: int) -> bytes:
        session = self.sessions.get(number)
        waits = session is not None and not session.client_id and not session.ended
        return b"" if waits else super().take(number)


class _OneReadPreamble(SmallServer):
    def incoming(self, session: Session, data: bytes) -> bytes:
        if not session.begun_reading:
            session.begun_reading = True
            if len(data) < 8:
                session.close()
        return data


class _OtherPreamble(SmallServer):
    def outgoing_preamble(self, session: Session, data: bytes) -> bytes:
        return b"TMQP/2.1"


class _NewerPreamble(SmallServer):
    def outgoing_preamble(self, session: Session, data: bytes) -> bytes:
        return b"TMQP/2.0"


class _TalksToStrangers(SmallServer):
    def take(self, number: int) -> bytes:
        session = self.sessions.get(number)
        data = super().take(number)
        if session is not None and session.ended and not session.begun and not session.told:
            session.told = True
            return b"HTTP/1.1 400 Bad Request\r\n\r\n"
        return data


class _NeverCloses(SmallServer):
    def lingers(self, session: Session) -> bool:
        return True


class _IgnoresTheEnd(SmallServer):
    def obeys_end(self, session: Session) -> bool:
        return False


class _ClosesWithoutTerminate(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        return b"" if frame.type == MessageType.TERMINATE else frame.raw


class _TerminateCode(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.TERMINATE or not frame.content_type:
            return frame.raw
        return changed(frame, content_type=500)


class _RefusesSilently(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        refused = frame.type == MessageType.SERVER and frame.content_type != 202
        return b"" if refused else frame.raw


class _WrongRefusal(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.SERVER or frame.content_type != 503:
            return frame.raw
        return changed(frame, content_type=401)


class _LetsDuplicatesIn(SmallServer):
    def on_hello(self, session: Session, event: HandshakeReceived) -> None:
        others = [other for other in self.sessions.values() if other is not session]
        ids = [other.client_id for other in others]
        for other in others:
            other.client_id = ""
        super().on_hello(session, event)
        for other, name in zip(others, ids, strict=True):
            other.client_id = name


class _AcceptsWithoutId(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        accepted = frame.type == MessageType.SERVER and frame.content_type == 202
        return changed(frame, target=b"") if accepted else frame.raw


class _BigEndian(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        return swapped(frame) if frame.type == MessageType.DIRECT_MESSAGE else frame.raw


class _LongForms(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        return long_form(frame) if frame.type == MessageType.QUEUE_MESSAGE else frame.raw


class _KeepsTimeToLive(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.QUEUE_MESSAGE:
            return frame.raw
        return changed(frame, ttl=min(frame.ttl + 1, 31))


class _CutsLongPayloads(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.QUEUE_MESSAGE or frame.payload_size <= 65_535:
            return frame.raw
        return changed(frame, payload=frame.payload[:65_535])


class _TrimsHeaders(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if not frame.header_block:
            return frame.raw
        pairs = [f"{key}:{value.strip()}\r\n" for key, value in frame.headers]
        return changed(frame, header_block="".join(pairs).encode())


class _SortsHeaders(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if not frame.header_block:
            return frame.raw
        pairs = [f"{key}:{value}\r\n" for key, value in sorted(frame.headers)]
        return changed(frame, header_block="".join(pairs).encode())


class _LowersHeaders(SmallServer):
    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if not frame.header_block:
            return frame.raw
        return changed(frame, header_block=frame.header_block.lower())


class _HangsOnEmptyBlock(SmallServer):
    def on_push(self, session: Session, frame: Frame) -> None:
        if frame.has_header and not frame.header_block:
            session.deaf = True
            session.mute = True
        else:
            super().on_push(session, frame)


class _AnswersUnknownTypes(SmallServer):
    def on_event(self, session: Session, event: Event) -> None:
        if isinstance(event, MessageDropped) and event.frame.type not in {*MessageType}:
            self.answer(session, event.frame, 400)
        super().on_event(session, event)


class _ClosesOnUnknownTypes(SmallServer):
    def on_event(self, session: Session, event: Event) -> None:
        if isinstance(event, MessageDropped) and event.frame.type not in {*MessageType}:
            session.ending = True
        if not session.ending:
            super().on_event(session, event)

    def is_closed(self, number: int) -> bool:
        session = self.sessions.get(number)
        return super().is_closed(number) or (session is not None and session.ending)


class _CrashesOnLongIds(SmallServer):
    def on_message(self, session: Session, frame: Frame) -> None:
        if len(frame.message_id.encode()) > 254:
            self.crashed = True
        super().on_message(session, frame)


class _AcceptsForgers(SmallServer):
    def on_forged(self, session: Session) -> None:
        return


class _ForgetsSource(SmallServer):
    def named(self, session: Session, frame: Frame) -> Frame:
        return frame


class _DeliversTwice(SmallServer):
    def deliver(self, session: Session, frame: Frame, *, first: bool) -> None:
        super().deliver(session, frame, first=first)
        super().deliver(session, frame, first=False)


class _LosesEveryTenth(SmallServer):
    def deliver(self, session: Session, frame: Frame, *, first: bool) -> None:
        session.delivered += 1
        if session.delivered % 10:
            super().deliver(session, frame, first=first)


class _LeaksBetweenChannels(SmallServer):
    def by_ids(self, ids: list[str]) -> list[Session]:
        everybody = [name for members in self.channels.values() for name in members]
        return super().by_ids(list(dict.fromkeys([*ids, *everybody])) if ids else everybody)


class _LastInFirstOut(SmallServer):
    def take(self, number: int) -> bytes:
        session = self.sessions.get(number)
        if session is not None:
            session.backwards = []
        data = super().take(number)
        if session is not None and len(session.backwards) > 1:
            return data + b"".join(reversed(session.backwards))
        return data + b"".join(session.backwards if session is not None else ())

    def outgoing(self, session: Session, frame: Frame) -> bytes:
        if frame.type != MessageType.QUEUE_MESSAGE:
            return frame.raw
        session.backwards.append(frame.raw)
        return b""


class _ForgetsLeave(SmallServer):
    def operate(self, session: Session, frame: Frame) -> int:
        if frame.content_type == Operation.LEAVE:
            members = self.channels.get(frame.target.lower())
            return 0 if members and session.client_id in members else 404
        return super().operate(session, frame)


class _NoFirstAcquirer(SmallServer):
    def deliver(self, session: Session, frame: Frame, *, first: bool) -> None:
        super().deliver(session, frame, first=False)


class _SendsEventsUnasked(SmallServer):
    def answer(self, session: Session, frame: Frame, code: int) -> None:
        session.send(Frame.build(MessageType.EVENT, source="ChannelCreated", payload=b"{}").raw)
        super().answer(session, frame, code)


#: name -> (what is wrong, the server).
BROKEN_SERVERS: Final[dict[str, tuple[str, type[SmallServer]]]] = {
    "no-pong": ("answers no ping", _NoPong),
    "pong-garbage": ("answers pings with bytes that are no message", _PongGarbage),
    "pong-other-bits": ("sends pongs of its own form", _PongOtherBits),
    "wrong-id": ("answers under another id", _WrongId),
    "acknowledges-requests": ("answers requests with an Acknowledge", _AcknowledgesRequests),
    "no-flags-in-answers": ("does not copy F and H to answers", _NoFlagsInAnswers),
    "answers-without-target": ("leaves the target of answers empty", _AnswersWithoutTarget),
    "never-answers": ("carries requests out and does not answer", _NeverAnswers),
    "answers-unasked": ("answers without R", _AnswersUnasked),
    "answers-twice": ("answers each request twice", _AnswersTwice),
    "conflict-for-duplicate": ("answers 409 where 481 is right", _ConflictForDuplicate),
    "closes-on-mistakes": ("closes where a request is to be answered with 400", _ClosesOnMistakes),
    "answers-and-closes": ("closes after it has answered 481", _AnswersAndCloses),
    "nothing-implemented": ("does not create channels, and says so", _NothingImplemented),
    "any-name": ("allows any name of a channel", _AnyName),
    "case-matters": ("distinguishes channels by case", _CaseMatters),
    "unknown-is-501": ("answers unknown operations with 501", _UnknownIsNotImplemented),
    "waits-for-hello": ("sends its preamble after the hello", _WaitsForHello),
    "one-read-preamble": ("takes the preamble from one read", _OneReadPreamble),
    "other-preamble": ("answers with another version", _OtherPreamble),
    "newer-preamble": ("answers the older preamble with the newer", _NewerPreamble),
    "talks-to-strangers": ("answers other protocols", _TalksToStrangers),
    "never-closes": ("never closes a connection", _NeverCloses),
    "ignores-the-end": ("ignores the end of the stream", _IgnoresTheEnd),
    "closes-without-terminate": ("closes without a reason", _ClosesWithoutTerminate),
    "terminate-500": ("gives 500 as reason of every end", _TerminateCode),
    "refuses-silently": ("closes without a message where it refuses", _RefusesSilently),
    "wrong-refusal": ("refuses an id in use with 401", _WrongRefusal),
    "lets-duplicates-in": ("accepts a client id twice", _LetsDuplicatesIn),
    "accepts-without-id": ("does not tell clients their ids", _AcceptsWithoutId),
    "big-endian": ("writes content types of direct messages big-endian", _BigEndian),
    "long-forms": ("writes lengths of deliveries in eight bytes", _LongForms),
    "keeps-time-to-live": ("does not subtract from the time to live", _KeepsTimeToLive),
    "cuts-long-payloads": ("cuts payloads to 65,535 bytes", _CutsLongPayloads),
    "trims-headers": ("rewrites headers and trims their values", _TrimsHeaders),
    "sorts-headers": ("rewrites headers in sorted order", _SortsHeaders),
    "lowers-headers": ("writes headers in small letters", _LowersHeaders),
    "hangs-on-empty-block": ("waits for bytes of an empty header block", _HangsOnEmptyBlock),
    "answers-unknown-types": ("answers messages of unknown types", _AnswersUnknownTypes),
    "closes-on-unknown-types": ("closes on messages of unknown types", _ClosesOnUnknownTypes),
    "crashes-on-long-ids": ("crashes on a message id of 255 bytes", _CrashesOnLongIds),
    "accepts-forgers": ("ignores a forged source", _AcceptsForgers),
    "forgets-source": ("forwards messages without a source", _ForgetsSource),
    "delivers-twice": ("delivers messages twice", _DeliversTwice),
    "loses-every-tenth": ("loses every tenth message", _LosesEveryTenth),
    "leaks-between-channels": ("delivers to consumers of other channels", _LeaksBetweenChannels),
    "last-in-first-out": ("delivers the newest message first", _LastInFirstOut),
    "forgets-leave": ("delivers after Leave", _ForgetsLeave),
    "no-first-acquirer": ("never sets F on a delivery", _NoFirstAcquirer),
    "sends-events-unasked": ("sends events to clients without a subscription", _SendsEventsUnasked),
}
