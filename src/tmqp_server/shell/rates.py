"""Limits how much a client, and all clients of an address, may send per second: token buckets.

A bucket has tokens for ``burst_s`` seconds, and may be overdrawn: bytes that were read count, and
the server does not read from the peer until the debt is paid.  So nothing is refused, and the data
waits in the peer's kernel.  A chunk costs one subtraction: a connection gets an allowance of bytes
that cannot reach a limit (half of its buckets, shared with the other connections of its address),
and is checked when the allowance is used up.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, final

__all__ = [
    "RATES",
    "SMALLEST_MESSAGE",
    "Arrivals",
    "Flow",
    "Meter",
    "RateLimits",
    "Rates",
    "TokenBucket",
    "address_key",
    "is_exempt",
    "read_networks",
]

#: The limits that can make a peer wait, for metrics.
RATES: Final = (
    "client_messages",
    "client_bytes",
    "address_messages",
    "address_bytes",
    "address_connections",
    "log_ins",
)
#: The most addresses without a connection whose use is remembered.
_ADDRESSES: Final = 1_024
#: A connection that would have to wait for longer than this is refused; seconds.
_LONGEST_WAIT_S: Final = 10.0
#: The smallest message of any protocol, in bytes.
SMALLEST_MESSAGE: Final = 4
#: More bytes than any allowance.
_MUCH: Final = 1 << 40
#: The bits of an IPv6 address that identify a subscriber's network.
_IPV6_BITS: Final = 64


def address_key(host: str) -> str:
    """Return what counts as one address: for IPv6, the network of one subscriber, a /64."""
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), _IPV6_BITS), strict=False))


def read_networks(texts: tuple[str, ...]) -> list[IPv4Network | IPv6Network]:
    """Read addresses and networks.

    :raises ValueError: if one is invalid.
    """
    return [ip_network(each, strict=False) for each in texts]


def is_exempt(host: str, networks: list[IPv4Network | IPv6Network]) -> bool:
    """Whether an address is this machine's, or in one of these networks."""
    try:
        address: IPv4Address | IPv6Address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return True  # a Unix socket
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or any([address in network for network in networks])


@final
class RateLimits:
    """The limits of messages, bytes and connections per second; 0 for no limit.  The limits for
    addresses do not apply to the networks in ``exempt``, and never to this machine's addresses.
    """

    __slots__ = (
        "address_bytes",
        "address_connections",
        "address_messages",
        "burst_s",
        "client_bytes",
        "client_messages",
        "exempt",
    )

    def __init__(
        self,
        client_messages: float = 0.0,
        client_bytes: float = 0.0,
        address_messages: float = 0.0,
        address_bytes: float = 0.0,
        address_connections: float = 0.0,
        burst_s: float = 2.0,
        exempt: tuple[str, ...] = (),
    ) -> None:
        self.client_messages = client_messages
        self.client_bytes = client_bytes
        self.address_messages = address_messages
        self.address_bytes = address_bytes
        self.address_connections = address_connections
        self.burst_s = burst_s
        self.exempt = read_networks(exempt)

    def limit_traffic(self) -> bool:
        """Whether anything limits what connections may send."""
        client = self.client_messages > 0.0 or self.client_bytes > 0.0
        return client or self.address_messages > 0.0 or self.address_bytes > 0.0


@final
class TokenBucket:
    """A bucket with a rate of tokens per second and a capacity; full at the beginning."""

    __slots__ = ("_at", "_most", "_rate", "level")

    def __init__(self, rate: float, burst_s: float, now: float) -> None:
        self._rate = rate
        self._most = max(rate * burst_s, 1.0)
        self.level = self._most
        self._at = now

    def take(self, count: float, now: float) -> float:
        """Take tokens; return for how many seconds the peer must wait."""
        level = min(self.level + (now - self._at) * self._rate, self._most) - count
        self._at = now
        self.level = level
        return 0.0 if level >= 0.0 else -level / self._rate


@final
class Meter:
    """The buckets of one client, or of one address; ``users`` counts the address's connections."""

    __slots__ = ("_bytes", "_messages", "users")

    def __init__(self, messages: float, size: float, burst_s: float, now: float) -> None:
        self._messages = TokenBucket(messages, burst_s, now) if messages > 0.0 else None
        self._bytes = TokenBucket(size, burst_s, now) if size > 0.0 else None
        self.users = 0

    def room(self) -> float:
        """How many bytes each connection may send before it can reach a limit."""
        room = float(_MUCH)
        if self._messages is not None:
            room = min(room, self._messages.level * SMALLEST_MESSAGE)
        if self._bytes is not None:
            room = min(room, self._bytes.level)
        return room / (2 * max(self.users, 1))

    def messages(self, count: int, now: float) -> float:
        """Count messages; return as :meth:`TokenBucket.take`."""
        return 0.0 if self._messages is None else self._messages.take(count, now)

    def bytes(self, count: int, now: float) -> float:
        """Count bytes; return as :meth:`TokenBucket.take`."""
        return 0.0 if self._bytes is None else self._bytes.take(count, now)


@final
class Flow:
    """The limits of one connection.

    Attributes: ``left``, how many bytes it may receive until :meth:`note` must be called;
    ``until``, when the server may read from it again; ``pushed``, how many messages its client had
    pushed at the last check.
    """

    __slots__ = ("_address", "_client", "_counts", "_given", "left", "pushed", "until")

    def __init__(self, client: Meter, address: Meter | None, counts: dict[str, int]) -> None:
        self._client = client
        self._address = address
        self._counts = counts
        self._given = 0
        self.left = 0
        self.pushed = 0
        self.until = 0.0

    def note(self, pushed: int, now: float) -> bool:
        """Note the total number of messages and the used bytes (the allowance, and those by which
        ``left`` is below 0); return True if the peer must wait, until ``until``."""
        count = max(pushed - self.pushed, 0)
        size = self._given - self.left
        self.pushed = pushed
        client, address = self._client, self._address
        wait_s = self._longest("client_messages", client.messages(count, now), 0.0)
        wait_s = self._longest("client_bytes", client.bytes(size, now), wait_s)
        room = client.room()
        if address is not None:
            wait_s = self._longest("address_messages", address.messages(count, now), wait_s)
            wait_s = self._longest("address_bytes", address.bytes(size, now), wait_s)
            room = min(room, address.room())
        self._given = self.left = max(int(room), 0)
        if wait_s <= 0.0:
            return False
        self.until = now + wait_s
        return True

    def settle(self, pushed: int, now: float) -> None:
        """Handle the end of a connection; its use that was not noted yet counts for its address,
        because otherwise reconnecting would evade the limit."""
        if self._address is not None:
            self._address.messages(max(pushed - self.pushed, 0), now)
            self._address.bytes(self._given - self.left, now)

    def _longest(self, rate: str, wait_s: float, before_s: float) -> float:
        if wait_s <= 0.0:
            return before_s
        self._counts[rate] = self._counts.get(rate, 0) + 1
        return max(wait_s, before_s)


@final
class Rates:
    """The buckets of one server.

    :param counts: counts how often each of ``RATES`` made a peer wait.
    """

    def __init__(self, limits: RateLimits, counts: dict[str, int]) -> None:
        self.limits = limits
        self._counts = counts
        self._addresses: dict[str, Meter] = {}

    def flow(self, host: str, now: float) -> Flow:
        """Return the limits for a new connection of an address; call :meth:`leave` at its end."""
        limits = self.limits
        client = Meter(limits.client_messages, limits.client_bytes, limits.burst_s, now)
        address: Meter | None = None
        key = self._key(host)
        if key:
            address = self._addresses.pop(key, None)
            if address is None:
                messages, size = limits.address_messages, limits.address_bytes
                address = Meter(messages, size, limits.burst_s, now)
            address.users += 1
            self._addresses[key] = address  # those that were used last are the last
        return Flow(client, address, self._counts)

    def leave(self, host: str) -> None:
        """Count the end of an address's connection; the use of the address is remembered."""
        address = self._addresses.get(self._key(host))
        if address is not None:
            address.users -= 1
            _forget_idle(self._addresses)

    def _key(self, host: str) -> str:
        limits = self.limits
        if not (limits.address_messages or limits.address_bytes) or is_exempt(host, limits.exempt):
            return ""
        return address_key(host)


def _forget_idle(addresses: dict[str, Meter]) -> None:
    if len(addresses) > _ADDRESSES:
        for key, meter in addresses.items():
            if not meter.users:
                del addresses[key]
                return


@final
class Arrivals:
    """Limits how fast connections of one address may arrive.

    :param counts: as for :class:`Rates`.
    """

    def __init__(self, limits: RateLimits, counts: dict[str, int]) -> None:
        self.limits = limits
        self._counts = counts
        self._addresses: dict[str, TokenBucket] = {}

    def limit_to(self, limits: RateLimits) -> None:
        """Apply new limits from now on; earlier use is forgotten."""
        self.limits = limits
        self._addresses.clear()

    def wait(self, host: str, now: float) -> float:
        """Count a new connection; return for how many seconds not to read from it, or a negative
        number if the wait would be too long and the connection is refused.
        """
        rate = self.limits.address_connections
        if rate <= 0.0 or is_exempt(host, self.limits.exempt):
            return 0.0
        key = address_key(host)
        bucket = self._addresses.pop(key, None)
        if bucket is None:
            bucket = TokenBucket(rate, self.limits.burst_s, now)
            if len(self._addresses) >= _ADDRESSES:
                del self._addresses[next(iter(self._addresses))]
        self._addresses[key] = bucket
        wait_s = bucket.take(1.0, now)
        if wait_s > 0.0:
            self._counts["address_connections"] = self._counts.get("address_connections", 0) + 1
        if wait_s > _LONGEST_WAIT_S:
            bucket.level += 1.0  # one that is refused has used nothing
            return -1.0
        return wait_s
