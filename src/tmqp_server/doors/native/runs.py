"""Conversion of runs of messages to the engine's form and back."""

from __future__ import annotations

from typing import final

from tmqp.constants import TYPE_DIRECT_MESSAGE, TYPE_QUEUE_MESSAGE, TYPE_RESPONSE
from tmqp.extensions import FILTER_HEADERS
from tmqp.runs import FrameRun
from tmqp_server.doors.contents import contents_of
from tmqp_server.doors.native.clients import address_of, answer_command, asked_by, direct_command
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    ClientRun,
    Command,
    PassAnswer,
    PassAnswerRun,
    Push,
    PushRun,
    RunNotes,
    RunWire,
    SendDirect,
    SendDirectRun,
)
from tmqp_server.engine.effects import DeliverRun
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, ASKS_RESPONSE

__all__ = ["NativeRun", "run_bytes", "run_command"]


@final
class NativeRun(RunWire):
    """Received messages in one piece."""

    def __init__(self, frames: FrameRun) -> None:
        self.frames = frames

    def pushes(self, run: PushRun) -> list[Push]:
        """The run as one push per message, with the same effect."""
        found: list[Push] = []
        for frame in self.frames.frames():
            found.append(
                Push(
                    run.session,
                    frame.message_id,
                    run.channel,
                    frame.content_type,
                    frame.high_priority,
                    run.wants_confirm,
                    len(frame.raw),
                    frame,
                    None,
                )
            )
        return found

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """The id, the size in bytes and the frame of each message."""
        return contents_of(self.frames.frames())

    def message_ids(self) -> list[str]:
        """The id of each message."""
        return self.frames.message_ids()

    def keeps(self) -> bool:
        """True: :meth:`stored` has the stored form."""
        return True

    def stored(self) -> tuple[bytes, list[int], list[int]]:
        """The frames as they were received."""
        sizes, offsets = self.frames.layout()
        return self.frames.received(), sizes, offsets

    def sample(self, family: object) -> object:
        """The first frame, for filters on headers, if all frames have equal headers; else None."""
        if family == FILTER_HEADERS and self.frames.has_equal_headers():
            return self.frames.first
        return None

    def acknowledges(self, run: AcknowledgeRun) -> list[Acknowledge]:
        """The run as one acknowledgement per message."""
        found: list[Acknowledge] = []
        for frame in self.frames.frames():
            found.append(
                Acknowledge(
                    run.session,
                    frame.message_id,
                    run.channel,
                    frame.content_type,
                    True,
                    "",
                    frame,
                    len(frame.raw),
                )
            )
        return found

    def said(self, run: ClientRun) -> list[SendDirect | PassAnswer]:
        """The run as one direct message or answer per frame."""
        found: list[SendDirect | PassAnswer] = []
        for frame in self.frames.frames():
            if isinstance(run, PassAnswerRun):
                found.append(answer_command(run.session, frame, run.kind))
            else:
                found.append(direct_command(run.session, frame, frame))
        return found

    def __repr__(self) -> str:
        return repr(self.frames)


def run_command(session: int, frames: FrameRun, notes: RunNotes) -> Command:
    """The command for a run of frames."""
    first = frames.first
    kind = first.type
    if kind == TYPE_QUEUE_MESSAGE:
        return _push_run(session, frames, notes)
    if kind == TYPE_DIRECT_MESSAGE:
        return _direct_run(session, frames)
    if kind == TYPE_RESPONSE:
        return _answer_run(session, frames, ASKS_RESPONSE)
    if first.high_priority:  # marks acknowledges of direct messages (F116)
        return _answer_run(session, frames, ASKS_ACKNOWLEDGE)
    ids = frames.message_ids()
    wire = NativeRun(frames)
    return AcknowledgeRun(
        session, first.target, first.content_type, ids, wire, notes, False, frames.queues
    )


def _push_run(session: int, frames: FrameRun, notes: RunNotes) -> PushRun:
    first = frames.first
    return PushRun(
        session,
        first.target,
        first.content_type,
        first.high_priority,
        first.pending_acknowledge,
        frames.count,
        frames.size,
        frames.largest,
        NativeRun(frames),
        notes,
        False,
        frames.queues,
        frames.odd,
    )


def _direct_run(session: int, frames: FrameRun) -> SendDirectRun:
    first = frames.first
    by, who = address_of(first.target)
    return SendDirectRun(
        session,
        by,
        who,
        first.first_acquirer,
        asked_by(first),
        frames.count,
        frames.size,
        frames.largest,
        NativeRun(frames),
    )


def _answer_run(session: int, frames: FrameRun, kind: int) -> PassAnswerRun:
    wire = NativeRun(frames)
    target = frames.first.target
    return PassAnswerRun(session, target, kind, frames.count, frames.size, frames.largest, wire)


def run_bytes(effect: DeliverRun, wire: NativeRun) -> bytes:
    """The bytes of a run's deliveries, with one hop less to live than received (F11, F12)."""
    frames = wire.frames
    ttl = frames.first.ttl - 1
    first, wants = effect.first_acquirer, effect.wants_acknowledge
    if effect.is_whole():
        return frames.forwarded(first, wants, ttl)
    return frames.forwarded_some(effect.start, effect.step, effect.stop, first, wants, ttl)
