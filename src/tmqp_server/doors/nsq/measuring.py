"""A session that measures end-to-end latency; the door opens such sessions if percentiles are
configured.

It remembers when the messages in flight to its client were published, and counts their age at FIN.
The broker answers a FIN only if it fails; then the session takes the count back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.session import NsqSession
from tmqp_server.doors.nsq_latency import Counts
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Effect, Left
from tmqp_wires.nsq.events import Event, Finish
from tmqp_wires.nsq.writing import MESSAGE_HEAD_BYTES, MESSAGE_ID_AT, MESSAGE_TIME_AT

__all__ = ["MeasuringSession"]

#: The bytes that a remembered message takes.
_ENTRY_BYTES: Final = 160


@final
class _Finished:
    """A message with the number of its FINs that were forwarded (``times``), and its counted
    latency."""

    __slots__ = ("counts", "latency_ns", "times")

    def __init__(self, latency_ns: int, counts: Counts) -> None:
        self.latency_ns = latency_ns
        self.counts = counts
        self.times: int = 1


@final
class MeasuringSession(NsqSession):
    """One NSQ connection whose latencies are measured."""

    def __init__(self, context: NsqContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        #: When each message that may be in flight was published.  The session is not notified of
        #: timeouts, so it remembers twice the largest number in flight; beyond that, it forgets the
        #: oldest.
        self._published_ns: dict[bytes, int] = {}
        self._most_remembered: int = 2 * context.limits.max_rdy_count
        #: The FINs of the last chunk.  A session is not read while its commands wait, so all
        #: earlier ones are decided.
        self._finished: dict[bytes, _Finished] = {}

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        if self._finished:
            self._finished.clear()
        return super().receive(data, now)

    def deliver(self, data: bytes) -> None:
        """Queue messages, and remember when they were published."""
        super().deliver(data)
        kept = self._plain[-1]  # without what sampling skips
        published = self._published_ns
        at = 0
        while at < len(kept):
            head = kept[at : at + MESSAGE_HEAD_BYTES]
            name = head[MESSAGE_ID_AT:]
            published.pop(name, None)
            published[name] = int.from_bytes(
                head[MESSAGE_TIME_AT : MESSAGE_TIME_AT + 8], "big", signed=True
            )
            at += 4 + int.from_bytes(head[:4], "big")
        while len(published) > self._most_remembered:
            del published[next(iter(published))]

    def held_bytes(self) -> int:
        """Bytes that are kept for the peer."""
        return super().held_bytes() + _ENTRY_BYTES * len(self._published_ns)

    def _finish(self, events: list[Event], at: int, commands: list[Command]) -> int:
        """Carry out FINs, and count the latencies of their messages."""
        end = super()._finish(events, at, commands)
        row = self._row
        assert row is not None, "it has sent something"
        context = self._context
        now_ns = context.unix_ns(context.time_s)
        latency = context.world.latencies.of(row.topic, row.channel, now_ns)
        for place in range(at, end):
            event = events[place]
            assert isinstance(event, Finish), "these are finished"
            name = event.message_id
            published_ns = self._published_ns.pop(name, -1)
            if published_ns >= 0:
                took_ns = max(0, now_ns - published_ns)
                self._finished[name] = _Finished(took_ns, latency.note(took_ns, now_ns))
            elif name in self._finished:
                self._finished[name].times += 1
        return end

    def _answer_failed(self, word: bytes, name: bytes, code: int) -> None:
        """Report a failure; the latency of a failed FIN no longer counts."""
        finished = self._finished.get(name) if word == b"FIN" else None
        if finished is not None:
            finished.times -= 1
            if not finished.times:
                finished.counts.add(finished.latency_ns, -1)
                del self._finished[name]
        super()._answer_failed(word, name, code)

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        if isinstance(effect, Left) and self._row is not None:
            self._context.world.latencies.forget(self._row.topic, self._row.channel)
        return super().apply(effect, now)
