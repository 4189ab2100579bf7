"""Owns how a run of queue messages goes through the engine and comes out again."""

from __future__ import annotations

from typing import final

from tmqp.runs import FrameRun
from tmqp_server.engine.commands import Push
from tmqp_server.engine.run_commands import PushRun, RunNotes, RunWire
from tmqp_server.engine.run_effects import DeliverRun

__all__ = ["NativeRun", "push_run", "run_bytes"]


@final
class NativeRun(RunWire):
    """Messages as they came in, in one piece."""

    def __init__(self, frames: FrameRun) -> None:
        self.frames = frames

    def pushes(self, run: PushRun) -> list[Push]:
        """The same as single pushes."""
        high_priority = self.frames.first.high_priority
        found: list[Push] = []
        for frame in self.frames.frames():
            found.append(
                Push(
                    run.session,
                    frame.message_id,
                    run.channel,
                    run.queue_id,
                    high_priority,
                    False,
                    len(frame.raw),
                    frame,
                    None,
                )
            )
        return found

    def __repr__(self) -> str:
        return repr(self.frames)


def push_run(session: int, frames: FrameRun, notes: RunNotes) -> PushRun:
    """The command that a run is."""
    first = frames.first
    return PushRun(
        session,
        first.target,
        first.content_type,
        frames.count,
        frames.size,
        frames.largest,
        NativeRun(frames),
        notes,
    )


def run_bytes(effect: DeliverRun) -> bytes:
    """The bytes of a run's deliveries, one hop less than received (F11, F12)."""
    wire = effect.run.wire
    assert isinstance(wire, NativeRun), "this door delivers what it received"
    return wire.frames.forwarded(effect.first_acquirer, wire.frames.first.ttl - 1)
