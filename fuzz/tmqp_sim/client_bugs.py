"""The bugs that are planted in the client's machine; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Lost, Outcome
from tmqp_client._core.pending import Pending, PendingTable
from tmqp_client._core.reception import Reception
from tmqp_client._core.requests import Request
from tmqp_client._core.standing import Standing

__all__ = ["CLIENT_BUGS"]


def _leaves_them_waiting(original: Any) -> Any:
    def finish(self: Reception, lost: Lost, outcomes: list[Outcome]) -> None:
        for pending in self._pendings.clear():
            pending.error = lost.error()
        original(self, lost, outcomes)

    return finish


def _never_asks(original: Any) -> Any:
    def on_deadline(self: ClientMachine, now: float) -> list[Outcome]:
        connection = self._connection
        if connection is not None:
            connection._pings = 0
            connection._quiet_since = now
        outcomes: list[Outcome] = original(self, now)
        return outcomes

    return on_deadline


def _forgets_its_channels(original: Any) -> Any:
    def requests(self: Standing) -> list[Request]:
        return []

    return requests


def _told_twice(original: Any) -> Any:
    def remove(self: PendingTable, pending: Pending) -> None:
        pending.done = False

    return remove


def _waits_for_ever(original: Any) -> Any:
    def expire(self: PendingTable, now: float) -> list[Pending]:
        original(self, now)
        return []

    return expire


CLIENT_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "leaves-them-waiting", "a lost connection does not settle what was asked on it",
        Reception, "_finish", _leaves_them_waiting,
    ),
    (
        "never-asks", "a client does not notice that nothing comes any more",
        ClientMachine, "on_deadline", _never_asks,
    ),
    (
        "forgets-its-channels", "a client does not join again after a loss",
        Standing, "requests", _forgets_its_channels,
    ),
    (
        "told-twice", "an answer that has come stays awaited",
        PendingTable, "remove", _told_twice,
    ),
    (
        "waits-for-ever", "an answer that does not come is awaited for ever",
        PendingTable, "expire", _waits_for_ever,
    ),
)  # fmt: skip
