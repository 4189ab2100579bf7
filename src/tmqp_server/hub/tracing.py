"""Traces: the requests of one client and their answers, for a limited time, without message
contents.

Theory of operation.  The hub passes the commands of each chunk, and each effect, to the tracer, but
only while a client is traced; otherwise it costs one look at a table.  A line is the head of one
command or effect: what it is, where it goes, which message; never a payload, a header or a secret.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, final

from tmqp_server.engine.commands import Command, connection_of
from tmqp_server.engine.effects import Effect

__all__ = ["LONGEST_S", "MOST_LINES", "MOST_TRACES", "Trace", "TraceLine", "Tracer", "head_of"]

#: Seconds of a trace, its lines, and traces that are kept, at most.
LONGEST_S: Final = 300.0
MOST_LINES: Final = 1_000
MOST_TRACES: Final = 4
#: The attributes of commands and effects that are shown.
_FIELDS: Final = (
    "channel",
    "queue_id",
    "router",
    "client_id",
    "message_id",
    "size",
    "code",
    "positive",
    "reason",
    "high_priority",
    "wants_confirm",
    "first_acquirer",
    "credit",
    "count",
    "event",
)
_SHOWN_IDS: Final = 16


@final
class TraceLine:
    """One line: its ``number`` in its trace, the engine's time, ``way`` (``in``, ``out`` or
    ``end``), ``what`` it is, and the ``head``."""

    __slots__ = ("at", "head", "number", "way", "what")

    def __init__(
        self, number: int, at: float, way: str, what: str, head: dict[str, object]
    ) -> None:
        self.number = number
        self.at = at
        self.way = way
        self.what = what
        self.head = head


@final
class Trace:
    """One client's trace; ``until_s`` is when it ends, ``session`` is 0 after it has ended."""

    def __init__(self, client_id: str, session: int, until_s: float) -> None:
        self.client_id = client_id
        self.session = session
        self.until_s = until_s
        self.lines: deque[TraceLine] = deque(maxlen=MOST_LINES)
        self.count = 0

    def add(self, now: float, way: str, what: str, head: dict[str, object]) -> None:
        """Add a line; if there are too many, drop the oldest."""
        self.count += 1
        self.lines.append(TraceLine(self.count, now, way, what, head))

    def after(self, number: int) -> list[TraceLine]:
        """The kept lines after a number."""
        return [line for line in self.lines if line.number > number]


@final
class Tracer:
    """The traces of one server; ``running`` are the active ones, by session."""

    def __init__(self) -> None:
        self.running: dict[int, Trace] = {}
        self._all: dict[str, Trace] = {}

    def begin(self, client_id: str, session: int, seconds: float, now: float) -> Trace | None:
        """Trace a client from now on, instead of any earlier trace of it; return None if there are
        too many traces.
        """
        self.stop(client_id)
        self._end_late(now)
        if len(self._all) >= MOST_TRACES:
            ended = [each.client_id for each in self._all.values() if not each.session]
            if not ended:
                return None
            del self._all[ended[0]]
        trace = Trace(client_id, session, now + min(seconds, LONGEST_S))
        self._all[client_id] = self.running[session] = trace
        return trace

    def find(self, client_id: str, now: float) -> Trace | None:
        """Return the trace of a client, whether or not it still runs."""
        self._end_late(now)
        return self._all.get(client_id)

    def stop(self, client_id: str) -> bool:
        """Remove a trace; return False if there is none."""
        trace = self._all.pop(client_id, None)
        if trace is None:
            return False
        self.running.pop(trace.session, None)
        return True

    def _end_late(self, now: float) -> None:
        for trace in list(self.running.values()):
            if trace.until_s <= now:
                self._end(trace)

    def _end(self, trace: Trace) -> None:
        self.running.pop(trace.session, None)
        trace.session = 0

    # -- what the hub shows --------------------------------------------------------------------

    def read(self, session: int, size: int, commands: Sequence[Command], now: float) -> None:
        """Record a chunk of a session, with its size and its commands."""
        trace = self._running(session, now)
        if trace is None:
            return
        if not commands:
            trace.add(now, "in", "bytes", {"size": size})
        for command in commands:
            trace.add(now, "in", type(command).__name__, head_of(command))

    def seen(self, effects: Iterable[Effect], now: float) -> list[Effect]:
        """Record effects, before they are carried out."""
        found = list(effects)
        for effect in found:
            sessions: list[int] | None = getattr(effect, "sessions", None)
            if sessions is None:
                sessions = [getattr(effect, "session", 0)]
            for number in sessions:
                session = connection_of(number)
                if session in self.running:
                    trace = self._running(session, now)
                    if trace is not None:
                        trace.add(now, "out", type(effect).__name__, head_of(effect))
        return found

    def gone(self, session: int, now: float) -> None:
        """End the trace of a connection that has ended."""
        trace = self.running.get(session)
        if trace is not None:
            trace.add(now, "end", "connection", {})
            self._end(trace)

    def _running(self, session: int, now: float) -> Trace | None:
        trace = self.running.get(session)
        if trace is not None and trace.until_s <= now:
            self._end(trace)
            return None
        return trace


def head_of(record: Command | Effect) -> dict[str, object]:
    """Return the line about a command or an effect."""
    found: dict[str, object] = {}
    message = getattr(record, "message", None)
    for source in (message, record):
        for name in _FIELDS:
            value = getattr(source, name, None)
            if isinstance(value, (bool, int, str)) and value != "":
                found[name] = value
    ids = getattr(record, "message_ids", None)
    if isinstance(ids, (list, tuple)):
        found["message_ids"] = list(ids[:_SHOWN_IDS])
        found["count"] = len(ids)
    messages = getattr(record, "messages", None)
    if isinstance(messages, (list, tuple)):
        found["message_ids"] = [each.message_id for each in messages[:_SHOWN_IDS]]
        found["count"] = len(messages)
    return found
