"""The bugs that are planted in the table of UDP sources; part of ``shell_bugs.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.shell.admitting import Connected
from tmqp_server.shell.datagrams import Datagrams

__all__ = ["DATAGRAM_BUGS"]


def _no_end(original: Any) -> Any:
    def on_deadline(self: Datagrams, now: float) -> None:
        for source in self._sources.values():
            source.heard_at = max(source.heard_at, now - self._marks.idle_s + 0.5)

    return on_deadline


def _anybody(original: Any) -> Any:
    def admit(self: Connected, host: str, *, is_local: bool, has_room: bool) -> str:
        if self._most_per_host == 4:  # those of the sources, not those of connections
            self._most, self._most_per_host = 1_000, 1_000
        reason: str = original(self, host, is_local=is_local, has_room=has_room)
        return reason

    return admit


def _forgotten(original: Any) -> Any:
    def resumed(self: Datagrams, number: int, now: float) -> None:
        source = self._by_number.get(number)
        if source is not None:
            source.waits = False

    return resumed


def _kept(original: Any) -> Any:
    def forget(self: Datagrams, source: Any) -> None:
        source.held = None

    return forget


DATAGRAM_BUGS: Final = (
    (
        "quiet-for-ever", "a source that is quiet keeps its session",
        Datagrams, "on_deadline", _no_end,
    ),
    (
        "sources-uncounted", "every source address gets a session",
        Connected, "admit", _anybody,
    ),
    (
        "held-and-forgotten", "datagrams that waited for their session stay where they are",
        Datagrams, "resumed", _forgotten,
    ),
    (
        "held-for-ever", "what waits for a session stays counted when it ends",
        Datagrams, "_forget_held", _kept,
    ),
)  # fmt: skip
