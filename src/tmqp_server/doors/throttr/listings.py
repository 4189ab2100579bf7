"""The replies of Throttr that are lists, which are made in portions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from tmqp_server.doors.throttr.context import ThrottrClient, ThrottrContext
from tmqp_server.engine.commands import COUNTER, CellPortion
from tmqp_wires.throttr.replies import (
    CHANNEL_WEIGHT,
    CONNECTION_WEIGHT,
    LIST_WEIGHT,
    STATS_WEIGHT,
    Fragments,
    channel_head,
    channel_reply,
    connection_entry,
    list_head,
    stats_head,
    subscriber_entry,
)
from tmqp_wires.throttr.words import CHANNELS, CONNECTIONS, ORDER_IN_CONNECTION

__all__ = ["Listing", "connection_of_client", "subscribers"]

#: A longer key, made by another protocol, cannot be named here.
_MOST_KEY: Final = 255


@final
class Listing:
    """A list that is being made.

    :param code: the code of its request.

    Attributes: ``size``, bytes of the reply so far; ``clients`` and ``channels``, the remaining
    items of a CONNECTIONS or CHANNELS in reverse order, after :meth:`begin`; ``waits_for``, the
    number of outstanding answers of a portion; ``shows_clients``, whether clients' own channels may
    be reported.
    """

    def __init__(self, context: ThrottrContext, code: int) -> None:
        self.code = code
        self.clients: list[ThrottrClient] = []
        self.channels: list[bytes] = []
        self.waits_for = 0
        self.shows_clients = False
        self._taken: list[bytes] = []
        self._seen: set[bytes] = set()
        self._has_begun = False
        self._context = context
        self._fragments = Fragments()

    @property
    def size(self) -> int:
        """Bytes of the reply so far."""
        return self._fragments.size

    def begin(self) -> bool:
        """Note the present clients or channels; False if this was done before."""
        if self._has_begun:
            return False
        self._has_begun = True
        if self.code == CHANNELS:
            self.channels = sorted(self._context.channels, reverse=True)
        elif self.code == CONNECTIONS:
            self.clients = list(self._context.clients.values())
            self.clients.reverse()
        return True

    def add_keys(self, portion: CellPortion) -> None:
        """Add keys to a LIST."""
        offset_ns, width = self._context.offset_ns, self._context.width
        for cell in portion.cells:
            size = width if cell.kind == COUNTER else len(cell.value)
            key = cell.key
            if len(key) > _MOST_KEY:
                continue
            head = list_head(key, cell.kind, cell.unit, cell.due_ns + offset_ns, size, width)
            self._fragments.add(head, key, LIST_WEIGHT + width + len(key))

    def add_figures(self, portion: CellPortion) -> None:
        """Add keys to a STATS."""
        for cell in portion.cells:
            key = cell.key
            if len(key) > _MOST_KEY:
                continue
            figures = (cell.reads_per_minute, cell.writes_per_minute, cell.reads, cell.writes)
            self._fragments.add(stats_head(key, *figures), key, STATS_WEIGHT + len(key))

    def _add_channel(self, channel: bytes) -> None:
        """Add a channel to a CHANNELS, if it has subscribers."""
        read_bytes = write_bytes = 0
        there = self._context.channels.get(channel)
        if there is None:
            return
        for client in there.values():
            subscription = client.subscriptions[channel]
            read_bytes += subscription.read_bytes
            write_bytes += subscription.write_bytes
        head = channel_head(channel, read_bytes, write_bytes, len(there))
        self._fragments.add(head, channel, CHANNEL_WEIGHT)

    def take_channels(self, count: int) -> list[bytes]:
        """Take the next channels, which are added once it is known which may be seen."""
        self._taken = self.channels[-count:]
        self._taken.reverse()
        del self.channels[-count:]
        return self._taken

    def see(self, channel: bytes) -> None:
        """Note that a channel may be seen."""
        self._seen.add(channel)

    def add_channels(self, is_own: Callable[[bytes], bool]) -> None:
        """Add the channels that were taken and may be seen; of clients' own channels, all or
        none."""
        for channel in self._taken:
            if channel in self._seen or (self.shows_clients and is_own(channel)):
                self._add_channel(channel)
        self._taken = []
        self._seen.clear()

    def add_clients(self, count: int) -> None:
        """Add the next clients to a CONNECTIONS, if they are still connected."""
        context = self._context
        for _ in range(min(count, len(self.clients))):
            client = self.clients.pop()
            if client.identity in context.clients:
                entry = connection_of_client(context, client)
                self._fragments.add(entry, b"", CONNECTION_WEIGHT)

    def reply(self) -> bytes:
        """The complete reply."""
        return self._fragments.reply()


def connection_of_client(context: ThrottrContext, client: ThrottrClient) -> bytes:
    """A client's entry in a CONNECTIONS; allocated and consumed bytes are 0."""
    host, _, port = client.peer.rpartition(":")
    has_port = port.isdigit()
    figures = (
        client.connected_ns,
        client.read_bytes,
        client.write_bytes,
        client.published_bytes,
        client.received_bytes,
        0,
        0,
    )
    return connection_entry(
        client.identity,
        host.strip("[]") if has_port else "",
        int(port) if has_port else 0,
        figures,
        [client.requests[code] for code in ORDER_IN_CONNECTION],
        context.dialect,
        unix=not has_port,
    )


def subscribers(context: ThrottrContext, channel: bytes) -> bytes:
    """The reply to a CHANNEL; empty if the channel has no subscribers."""
    there = context.channels.get(channel)
    if not there:
        return b""
    entries: list[bytes] = []
    for client in there.values():
        each = client.subscriptions[channel]
        numbers = (each.since_ns, each.read_bytes, each.write_bytes)
        entries.append(subscriber_entry(client.identity, *numbers))
    return channel_reply(entries)
