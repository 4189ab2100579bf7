"""Admission of connections, which are counted from their acceptance to their end."""

from __future__ import annotations

from typing import final

__all__ = ["Connected"]


@final
class Connected:
    """Counts connections, and limits them.

    :param most: the limit for all connections.
    :param most_per_host: the limit for each address that is not this machine's.

    Attributes: ``count``, the number of connections; ``limit``, which limit the last refused one
    has reached, one of ``REFUSALS``.
    """

    def __init__(self, most: int, most_per_host: int) -> None:
        self.count: int = 0
        self.limit = ""
        self._most = most
        self._most_per_host = most_per_host
        self._by_host: dict[str, int] = {}

    def admit(self, host: str, *, is_local: bool, has_room: bool) -> str:
        """Admit and count a connection, or refuse it.

        :param has_room: whether there is memory for it.
        :returns: why it is refused; empty if it is admitted.
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
        """Count the end of an admitted connection."""
        self.count -= 1
        here = self._by_host[host] - 1
        if here:
            self._by_host[host] = here
        else:
            del self._by_host[host]
