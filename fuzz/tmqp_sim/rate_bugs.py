"""The bugs that are planted in the rates of clients; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.shell.connections import Connections
from tmqp_server.shell.outbound import Outbound
from tmqp_server.shell.rates import Arrivals, Flow, TokenBucket

__all__ = ["RATE_BUGS"]


def _never_waits(original: Any) -> Any:
    def note(self: Flow, pushed: int, now: float) -> bool:
        original(self, pushed, now)
        return False

    return note


def _waits_for_ever(_original: Any) -> Any:
    def go_on(_self: Connections, _out: Outbound, _now: float) -> None:
        return None

    return go_on


def _pays_tenfold(original: Any) -> Any:
    def take(self: TokenBucket, count: float, now: float) -> float:
        return 10.0 * float(original(self, count, now))

    return take


def _come_as_they_like(_original: Any) -> Any:
    def wait(_self: Arrivals, _host: str, _now: float) -> float:
        return 0.0

    return wait


def _are_refused_at_once(original: Any) -> Any:
    def wait(self: Arrivals, host: str, now: float) -> float:
        return -1.0 if original(self, host, now) > 0.0 else 0.0

    return wait


RATE_BUGS: Final = (
    ("rate-ignored", "who sends too fast is read from", Flow, "note", _never_waits),
    (
        "rate-for-ever", "who has sent too fast is never read from again",
        Connections, "_go_on_reading", _waits_for_ever,
    ),
    (
        "rate-too-slow", "who has sent too fast waits ten times as long as it must",
        TokenBucket, "take", _pays_tenfold,
    ),
    (
        "arrivals-ignored", "an address may have as many connections a second as it likes",
        Arrivals, "wait", _come_as_they_like,
    ),
    (
        "arrivals-refused", "a connection that comes too fast is refused, and need only wait",
        Arrivals, "wait", _are_refused_at_once,
    ),
)  # fmt: skip
