"""Admission of connections, which are counted from their acceptance to their end."""

from __future__ import annotations

from typing import final

__all__ = ["Connected"]


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
        """Admit no more than this number from now on; existing connections stay."""
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
