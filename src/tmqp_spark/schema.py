"""The columns of a kept message: names, types, and which of them a reader asked for.

Spark does not prune the columns of a Python source, so the user's schema is the projection: any of
the columns, in any order.  Types are Spark's simple names (``bigint``), so that this module needs
no pyspark.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from tmqp_spark.errors import InvalidSchema

__all__ = [
    "COLUMNS",
    "HEADERS_TYPE",
    "Column",
    "Projection",
    "default_columns",
    "project",
    "to_ddl",
]

HEADERS_TYPE: Final = "array<struct<key:string,value:string>>"
_ARROW: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    HEADERS_TYPE: pa.list_(
        pa.field(
            "element",
            pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())]),
        )
    ),
}


class Column:
    """One column: its name, the types in which it can be requested, and whether it can be null.

    ``opt_in`` columns are only present if an option or a schema requests them.
    """

    __slots__ = ("about", "name", "nullable", "opt_in", "types")

    def __init__(
        self, name: str, types: tuple[str, ...], nullable: bool, opt_in: bool, about: str
    ) -> None:
        self.name = name
        self.types = types
        self.nullable = nullable
        self.opt_in = opt_in
        self.about = about


#: In the default order.
COLUMNS: Final = (
    Column("channel", ("string",), False, False, "the channel"),
    Column("queue", ("int",), False, False, "the queue's id (the content type)"),
    Column("seq", ("bigint",), False, False, "place in the queue: rises, with gaps"),
    Column("timestamp", ("timestamp",), False, False, "when the broker got it"),
    Column("message_id", ("string",), True, False, "the producer's id for it"),
    Column("source", ("string",), True, False, "the producer's client id"),
    Column("high_priority", ("boolean",), True, False, "it was pushed with high priority"),
    Column("one_delivery", ("boolean",), True, False, "the first-acquirer bit as received"),
    Column("pending_ack", ("boolean",), True, False, "the producer requested an acknowledgement"),
    Column("pending_response", ("boolean",), True, False, "the producer requested a response"),
    Column("ttl", ("int",), True, False, "time to live as received, in hops"),
    Column("delivery_count", ("int",), True, False, "deliveries before it was written"),
    Column("headers", (HEADERS_TYPE,), True, True, "its headers in order (`includeHeaders`)"),
    Column("value", ("binary", "string"), True, False, "the payload"),
    Column("frame", ("binary",), True, True, "the whole message as received (`includeFrame`)"),
    Column("incarnation", ("string",), True, True, "which queue of that name"),
    Column("put_backs", ("int",), True, True, "times it was put back before it was written"),
    Column("hops", ("int",), True, True, "queues it went through as a dead letter"),
    Column("pushed_channel", ("string",), True, True, "where it was pushed to at first"),
    Column("pushed_queue", ("int",), True, True, "the queue there"),
)
#: The columns that the broker can send alone, by their names in the header ``Columns``.
_AT_BROKER: Final = {
    "channel": "",
    "queue": "",
    "incarnation": "",
    "seq": "",
    "timestamp": "timestamp",
    "high_priority": "flags",
    "delivery_count": "attempts",
    "put_backs": "put-backs",
    "hops": "hops",
    "value": "value",
}
#: Columns that are made of the indexes of blocks, or are the same in every row.
_WITHOUT_BODIES: Final = frozenset(_AT_BROKER) - {"value"}
_BY_NAME: Final = {column.name: column for column in COLUMNS}


class Projection:
    """The columns to make, in order: ``names``, ``types`` and ``nullable`` of each, and their Arrow
    ``schema``.  ``bodies`` is True if they need whole messages instead of index entries only;
    ``at_broker`` is the header value that requests just these columns from the broker, None if it
    cannot send them alone."""

    __slots__ = ("at_broker", "bodies", "names", "nullable", "schema", "types")

    def __init__(self, fields: Iterable[tuple[str, str, bool]]) -> None:
        listed = list(fields)
        self.names = [name for name, _, _ in listed]
        self.types = [kind for _, kind, _ in listed]
        self.nullable = [nullable for _, _, nullable in listed]
        self.bodies = not _WITHOUT_BODIES.issuperset(self.names)
        self.at_broker: str | None = None
        if _AT_BROKER.keys() >= set(self.names):
            words = {_AT_BROKER[name] for name in self.names} - {""}
            self.at_broker = ",".join(sorted(words)) or "sequence"
        self.schema = pa.schema(
            [pa.field(name, _ARROW[kind], nullable) for name, kind, nullable in listed]
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (Projection, (list(zip(self.names, self.types, self.nullable, strict=True)),))


def default_columns(headers: bool = False, frame: bool = False) -> list[tuple[str, str, bool]]:
    """Return the columns of a source without a user's schema: name, type and nullable of each."""
    wanted = {"headers": headers, "frame": frame}
    return [
        (column.name, column.types[0], column.nullable)
        for column in COLUMNS
        if not column.opt_in or wanted.get(column.name, False)
    ]


def to_ddl(columns: Iterable[tuple[str, str, bool]]) -> str:
    """Format a schema for Spark: ``channel string not null, ...``."""
    return ", ".join(
        f"{name} {kind}{'' if nullable else ' NOT NULL'}" for name, kind, nullable in columns
    )


def project(fields: Iterable[tuple[str, str, bool]]) -> Projection:
    """Check a schema against the existing columns.

    :param fields: name, Spark's simple type, and whether it may be null, of each column.
    :raises InvalidSchema: for an unknown column (the text suggests the most similar one), a
        repeated one, or an invalid type (the text names the valid ones).
    """
    listed = list(fields)
    seen: set[str] = set()
    for name, kind, _ in listed:
        column = _BY_NAME.get(name)
        if column is None:
            near = difflib.get_close_matches(name, _BY_NAME, 1, 0.5)
            advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(_BY_NAME)}"
            raise InvalidSchema(f"a tmqp source has no column {name!r}; {advice}")
        if kind not in column.types:
            raise InvalidSchema(
                f"column {name} is {' or '.join(column.types)}, not {kind}; cast it in the query"
            )
        if name in seen:
            raise InvalidSchema(f"column {name} is in the schema twice")
        seen.add(name)
    if not listed:
        raise InvalidSchema("the schema has no columns")
    return Projection(listed)
