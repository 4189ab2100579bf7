"""Who may connect, and how long a refused client waits for its answer.

Connections are counted from their accepting to their end, in all and by address.  A refused log-in
is told so late: the first one of an address after a quarter of a second, each further one after
twice as long, up to four seconds.  An address that was not refused for a minute begins again.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.backoff import Backoff

__all__ = ["Connected", "Pauses"]

#: Seconds a refused client waits to hear of it: the first one of an address, and at most.
_PAUSES: Final = Backoff(0.25, 4.0, 0.0)
#: Seconds without a refusal after which an address begins anew.
_FORGIVEN_AFTER_S: Final = 60.0
#: Addresses whose refusals are counted; beyond them the oldest is forgotten.
_ADDRESSES: Final = 1_024


@final
class Pauses:
    """Counts the refusals of each address."""

    def __init__(self) -> None:
        self._refusals: dict[str, tuple[int, float]] = {}

    def next(self, host: str, now: float) -> float:
        """Count a refusal; returns for how many seconds its client waits."""
        count, last = self._refusals.pop(host, (0, now))
        if now - last > _FORGIVEN_AFTER_S:
            count = 0
        self._refusals[host] = (count + 1, now)
        if len(self._refusals) > _ADDRESSES:
            del self._refusals[next(iter(self._refusals))]
        return _PAUSES.delay_s(count + 1)


@final
class Connected:
    """Counts connections.

    :param most: connections in all.
    :param most_per_host: connections of one address that is not this machine's.

    Attributes: ``count``, how many there are; ``limit``, which limit refused the last one that was,
    one of ``REFUSALS``.
    """

    def __init__(self, most: int, most_per_host: int) -> None:
        self.count: int = 0
        self.limit = ""
        self._most = most
        self._most_per_host = most_per_host
        self._by_host: dict[str, int] = {}

    def admit(self, host: str, *, is_local: bool, has_room: bool) -> str:
        """Let a connection in, and count it.

        :param has_room: there is memory for it.
        :returns: why it is refused; empty when it is not.
        """
        here = self._by_host.get(host, 0)
        if self.count >= self._most:
            self.limit = "connections"
            return f"{self.count} connections"
        if not is_local and here >= self._most_per_host:
            self.limit = "address"
            return f"{here} connections from there"
        if not has_room:
            self.limit = "memory"
            return "the memory is full (max_total_bytes)"
        self.count += 1
        self._by_host[host] = here + 1
        return ""

    def limit_to(self, most: int, most_per_host: int) -> None:
        """Let in no more than so many from now on; whoever is there stays."""
        self._most = most
        self._most_per_host = most_per_host

    def leave(self, host: str) -> None:
        """A connection that was let in has ended."""
        self.count -= 1
        here = self._by_host[host] - 1
        if here:
            self._by_host[host] = here
        else:
            del self._by_host[host]
