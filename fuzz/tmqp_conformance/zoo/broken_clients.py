"""Clients that are broken in one thing each, as clients in the wild are."""

from __future__ import annotations

from typing import Final

from tmqp import Frame, MessageType
from tmqp_conformance.zoo.client import SmallClient
from tmqp_conformance.zoo.frames import changed, swapped

__all__ = ["BROKEN_CLIENTS"]


class _NoPong(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        return b"" if frame.type == MessageType.PONG else frame.raw


class _OlderPreamble(SmallClient):
    def outgoing_preamble(self, data: bytes) -> bytes:
        return b"TMQ/1.01"


class _FirstLine(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        if frame.type != MessageType.SERVER or frame.content_type != 101:
            return frame.raw
        return changed(frame, payload=frame.payload.replace(b"CONNECT /", b"/ CONNECT"))


class _NeverCloses(SmallClient):
    def lingers(self) -> bool:
        return True


class _AcknowledgesTwice(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        return frame.raw * 2 if frame.type == MessageType.ACKNOWLEDGE else frame.raw


class _NeverAcknowledges(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        return b"" if frame.type == MessageType.ACKNOWLEDGE else frame.raw


class _AcknowledgesAnother(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        if frame.type != MessageType.ACKNOWLEDGE:
            return frame.raw
        return changed(frame, message_id=b"another")


class _RefusesAll(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        if frame.type != MessageType.ACKNOWLEDGE:
            return frame.raw
        return changed(frame, header_block=b"Nack-Reason:none\r\n")


class _AnswersTheIdAsTarget(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        if frame.type != MessageType.RESPONSE:
            return frame.raw
        return changed(frame, target=frame.message_id.encode())


class _AnswersWithFailure(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        return changed(frame, content_type=500) if frame.type == MessageType.RESPONSE else frame.raw


class _ForgetsTheAnswer(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        return b"" if frame.type == MessageType.RESPONSE else frame.raw


class _BigEndian(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        hello = frame.type == MessageType.SERVER and frame.content_type == 101
        return frame.raw if hello else swapped(frame)


class _NoIds(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        hello = frame.type == MessageType.SERVER and frame.content_type == 101
        return frame.raw if hello else changed(frame, message_id=b"")


class _PullsWithoutCount(SmallClient):
    def outgoing(self, frame: Frame) -> bytes:
        if frame.type != MessageType.PULL_REQUEST:
            return frame.raw
        return changed(frame, header_block=None)


#: name -> (what is wrong, the client).
BROKEN_CLIENTS: Final[dict[str, tuple[str, type[SmallClient]]]] = {
    "no-pong": ("answers no ping", _NoPong),
    "older-preamble": ("begins with the older preamble", _OlderPreamble),
    "first-line": ("writes path and method in the other order", _FirstLine),
    "never-closes": ("never closes a connection", _NeverCloses),
    "acknowledges-twice": ("acknowledges messages twice", _AcknowledgesTwice),
    "never-acknowledges": ("acknowledges nothing", _NeverAcknowledges),
    "acknowledges-another": ("acknowledges under another id", _AcknowledgesAnother),
    "refuses-all": ("refuses what it has processed", _RefusesAll),
    "answers-the-id": ("sends answers to the request's id", _AnswersTheIdAsTarget),
    "answers-with-failure": ("answers 500 where 0 is right", _AnswersWithFailure),
    "forgets-the-answer": ("does not answer requests", _ForgetsTheAnswer),
    "big-endian": ("writes content types in the other order of bytes", _BigEndian),
    "no-ids": ("gives its messages no ids", _NoIds),
    "pulls-without-count": ("pulls without saying how many", _PullsWithoutCount),
}
