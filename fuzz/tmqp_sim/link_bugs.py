"""The bugs that are planted between the servers of a cluster; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.cluster.outbox import Outbox
from tmqp_server.cluster.relay import ClusterRelay
from tmqp_server.shell.links import Links

__all__ = ["LINK_BUGS"]


def _goes_round(original: Any) -> Any:
    def meet(self: ClusterRelay, number: int, door: Any, command: Any, now: float) -> Any:
        instead = original(self, number, door, command, now)
        if instead is None and number in self._nodes:
            self._pass_on(door, command)
        return instead

    return meet


def _taken_is_written(original: Any) -> Any:
    def note_written(self: Outbox, count: int) -> None:
        if count and self._taken:
            original(self, sum([len(message) for message in self._taken]) - self._half)

    return note_written


def _forgets_the_torn(_original: Any) -> Any:
    def give_back(self: Outbox) -> None:
        self._taken.clear()
        self._half = 0

    return give_back


def _dials_for_ever(original: Any) -> Any:
    def due(self: Links, carried: Any) -> float:
        at: float = original(self, carried)
        return at if carried.dial is None or carried.connected else float("inf")

    return due


def _writes_once(original: Any) -> Any:
    def dialled(self: Links, dial: Any, now: float) -> None:
        original(self, dial, now)
        carried = self._all[dial.link]
        carried.out.writing = carried.link.connections > 0

    return dialled


def _heeds_the_late(_original: Any) -> Any:
    def find(self: Links, dial: Any) -> Any:
        return self._all[dial.link]

    return find


#: Name, what it comes to in words, what is replaced, and by what.
LINK_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "passed-on-again", "what a node brings is passed on to other nodes",
        ClusterRelay, "meet", _goes_round,
    ),
    (
        "taken-is-written", "what was taken to be written counts as written",
        Outbox, "note_written", _taken_is_written,
    ),
    (
        "torn-forgotten", "what a broken connection had not written is forgotten",
        Outbox, "give_back", _forgets_the_torn,
    ),
    (
        "dials-for-ever", "a master that does not answer is waited for",
        Links, "_due", _dials_for_ever,
    ),
    (
        "writes-once", "a connection that comes after another is never written to",
        Links, "dialled", _writes_once,
    ),
    (
        "late-dial", "a connection is taken that was given up before",
        Links, "_find", _heeds_the_late,
    ),
)  # fmt: skip
