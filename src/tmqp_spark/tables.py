"""Tables with fixed columns, for the sources other than ``tmqp`` itself, and the check of a user's
schema against them.

Types are Spark's simple names, as in :mod:`tmqp_spark.schema`; every column may be null.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from tmqp_spark.errors import InvalidSchema
from tmqp_spark.schema import Projection, to_ddl

__all__ = ["Table"]


class Table:
    """The columns of a source, in order.

    :param name: the source's name, for errors.
    :param columns: name and Spark's simple type of each.
    """

    def __init__(self, name: str, columns: Iterable[tuple[str, str]]) -> None:
        self.name = name
        self.types = dict(columns)
        self.names = tuple(self.types)

    def ddl(self) -> str:
        """The schema in Spark's form."""
        return to_ddl((name, self.types[name], True) for name in self.names)

    def project(self, fields: Iterable[tuple[str, str, bool]]) -> Projection:
        """Check a schema that a user gave: any of the columns, in any order.

        :param fields: name, Spark's simple type, and whether it may be null, of each column.
        :raises InvalidSchema: for an unknown column (the text suggests the most similar one), a
            repeated one, or another type.
        """
        listed = list(fields)
        seen: set[str] = set()
        for name, asked, _ in listed:
            if name not in self.types:
                near = difflib.get_close_matches(name, self.types, 1, 0.5)
                advice = (
                    f"did you mean {near[0]}?" if near else f"there are {', '.join(self.types)}"
                )
                raise InvalidSchema(f"a {self.name} source has no column {name!r}; {advice}")
            if asked != self.types[name]:
                raise InvalidSchema(
                    f"column {name} is {self.types[name]}, not {asked}; cast it in the query"
                )
            if name in seen:
                raise InvalidSchema(f"column {name} is in the schema twice")
            seen.add(name)
        if not listed:
            raise InvalidSchema("the schema has no columns")
        return Projection(listed)
