"""The bugs that are planted in the rates of clients; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.shell import rates
from tmqp_server.shell.admitting import Connected
from tmqp_server.shell.connections import Connections
from tmqp_server.shell.outbound import Outbound
from tmqp_server.shell.rates import Arrivals, Flow, Meter, RateLimits, TokenBucket

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


def _counts_hosts(_original: Any) -> Any:
    def address_key(host: str) -> str:
        return host

    return address_key


def _exempts_nobody(_original: Any) -> Any:
    def is_exempt(_host: str, _networks: object) -> bool:
        return False

    return is_exempt


def _keeps_what_was_used(_original: Any) -> Any:
    def limit_to(self: Arrivals, limits: RateLimits) -> None:
        self.limits = limits

    return limit_to


def _stays_as_it_was(original: Any) -> Any:
    def limit_rates(self: Connections, limits: RateLimits, now: float) -> None:
        if self.rates is None:
            original(self, limits, now)

    return limit_rates


def _first_limits_stay(_original: Any) -> Any:
    def limit_to(_self: Connected, _most: int, _most_per_host: int) -> None:
        return None

    return limit_to


def _remembers_everybody(_original: Any) -> Any:
    def forget_idle(_addresses: dict[str, Meter]) -> None:
        return None

    return forget_idle


def _does_not_settle(original: Any) -> Any:
    def messages(self: Meter, count: int, now: float) -> float:
        return 0.0 if self.users else float(original(self, count, now))

    return messages


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
    (
        "addresses-counted-singly", "the addresses of one subscriber do not count as one",
        rates, "address_key", _counts_hosts,
    ),
    (
        "nobody-exempt", "who is exempt from the rates of addresses is held back",
        rates, "is_exempt", _exempts_nobody,
    ),
    (
        "addresses-for-ever", "what an address has sent is never forgotten",
        rates, "_forget_idle", _remembers_everybody,
    ),
    (
        "address-messages-free", "an address may send as many messages as it likes",
        Meter, "messages", _does_not_settle,
    ),
    (
        "reload-keeps-arrivals", "an address that has come before keeps the rate it had",
        Arrivals, "limit_to", _keeps_what_was_used,
    ),
    (
        "reload-keeps-rates", "other rates do not hold for who is connected",
        Connections, "limit_rates", _stays_as_it_was,
    ),
    (
        "reload-keeps-connections", "as many connections are let in as before a reload",
        Connected, "limit_to", _first_limits_stay,
    ),
)  # fmt: skip
