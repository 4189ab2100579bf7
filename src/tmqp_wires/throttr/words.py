"""The numbers of Throttr: codes of requests, dialects, units, and the order of INFO."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ATTRIBUTE_QUOTA",
    "ATTRIBUTE_TTL",
    "BUFFER",
    "CHANGE_DECREASE",
    "CHANGE_INCREASE",
    "CHANGE_PATCH",
    "CHANNEL",
    "CHANNELS",
    "CONNECTION",
    "CONNECTIONS",
    "COUNTER",
    "DEFAULT_PORT",
    "DIALECTS",
    "DIALECT_71",
    "DIALECT_73",
    "EVENT",
    "GET",
    "ID_BYTES",
    "INFO",
    "INFO_FIELDS",
    "INSERT",
    "LIST",
    "NAMES",
    "NO",
    "ORDER_IN_CONNECTION",
    "ORDER_IN_INFO",
    "PUBLISH",
    "PURGE",
    "PUSH_71",
    "QUERY",
    "SET",
    "STAT",
    "STATS",
    "SUBSCRIBE",
    "TTL_HOURS",
    "TTL_MICROSECONDS",
    "TTL_MILLISECONDS",
    "TTL_MINUTES",
    "TTL_NANOSECONDS",
    "TTL_SECONDS",
    "UNSUBSCRIBE",
    "UPDATE",
    "VALUE_SIZES",
    "VERSION_BYTES",
    "WHOAMI",
    "YES",
    "most_of",
]

DEFAULT_PORT: Final = 9000

#: Dialects: the protocol's versions 7.0 to 7.2 are alike, and so are those of 7.3.
DIALECT_71: Final = "7.1"
DIALECT_73: Final = "7.3"
DIALECTS: Final = (DIALECT_71, DIALECT_73)
#: How many bytes quotas, times to live and sizes may have; a server has one of these.
VALUE_SIZES: Final = (1, 2, 4, 8)

INSERT: Final = 0x01
QUERY: Final = 0x02
UPDATE: Final = 0x03
PURGE: Final = 0x04
SET: Final = 0x05
GET: Final = 0x06
LIST: Final = 0x07
INFO: Final = 0x08
STAT: Final = 0x09
STATS: Final = 0x10
SUBSCRIBE: Final = 0x11
UNSUBSCRIBE: Final = 0x12
PUBLISH: Final = 0x13
CONNECTIONS: Final = 0x14
CONNECTION: Final = 0x15
CHANNELS: Final = 0x16
CHANNEL: Final = 0x17
WHOAMI: Final = 0x18
#: Of the dialect 7.3; also the first byte of its pushes.
EVENT: Final = 0x19
#: The first byte of pushes in the dialect 7.1.
PUSH_71: Final = 0x03

NAMES: Final[dict[int, str]] = {
    INSERT: "INSERT",
    QUERY: "QUERY",
    UPDATE: "UPDATE",
    PURGE: "PURGE",
    SET: "SET",
    GET: "GET",
    LIST: "LIST",
    INFO: "INFO",
    STAT: "STAT",
    STATS: "STATS",
    SUBSCRIBE: "SUBSCRIBE",
    UNSUBSCRIBE: "UNSUBSCRIBE",
    PUBLISH: "PUBLISH",
    CONNECTIONS: "CONNECTIONS",
    CONNECTION: "CONNECTION",
    CHANNELS: "CHANNELS",
    CHANNEL: "CHANNEL",
    WHOAMI: "WHOAMI",
    EVENT: "EVENT",
}

NO: Final = b"\x00"
YES: Final = b"\x01"

ATTRIBUTE_QUOTA: Final = 0
ATTRIBUTE_TTL: Final = 1
CHANGE_PATCH: Final = 0
CHANGE_INCREASE: Final = 1
CHANGE_DECREASE: Final = 2

TTL_NANOSECONDS: Final = 1
TTL_MICROSECONDS: Final = 2
TTL_MILLISECONDS: Final = 3
TTL_SECONDS: Final = 4
TTL_MINUTES: Final = 5
TTL_HOURS: Final = 6

#: Kinds of keys in a LIST.
COUNTER: Final = 0
BUFFER: Final = 1

ID_BYTES: Final = 16
VERSION_BYTES: Final = 16

#: The order in which a connection's entry counts its requests.
ORDER_IN_CONNECTION: Final = (
    INSERT,
    SET,
    QUERY,
    GET,
    UPDATE,
    PURGE,
    LIST,
    INFO,
    STAT,
    STATS,
    PUBLISH,
    SUBSCRIBE,
    UNSUBSCRIBE,
    CONNECTIONS,
    CONNECTION,
    CHANNELS,
    CHANNEL,
    WHOAMI,
)
#: The order in which INFO does, where each has two numbers: all, and those of the last minute.
ORDER_IN_INFO: Final = (
    INSERT,
    QUERY,
    UPDATE,
    PURGE,
    GET,
    SET,
    LIST,
    INFO,
    STATS,
    STAT,
    SUBSCRIBE,
    UNSUBSCRIBE,
    PUBLISH,
    CHANNEL,
    CHANNELS,
    WHOAMI,
    CONNECTION,
    CONNECTIONS,
)
#: The names of INFO's numbers, in their order.
INFO_FIELDS: Final[tuple[str, ...]] = (
    "timestamp",
    "requests",
    "requests_per_minute",
    *[
        name
        for code in ORDER_IN_INFO
        for name in (NAMES[code].lower(), NAMES[code].lower() + "_per_minute")
    ],
    "read_bytes",
    "read_bytes_per_minute",
    "write_bytes",
    "write_bytes_per_minute",
    "keys",
    "counters",
    "buffers",
    "counter_bytes",
    "buffer_bytes",
    "subscriptions",
    "channel_count",
    "running_since",
    "connection_count",
)


def most_of(value_bytes: int) -> int:
    """The largest number in so many bytes."""
    return (1 << (8 * value_bytes)) - 1
