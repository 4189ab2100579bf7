"""Runs a recipe of docs/guides/spark_recipes.md that makes a session of its own, as it is typed
there, and prints what came of it.  Arguments: its name, and the broker's address.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

import pyspark

from tests.tmqp_spark.pages import blocks

_Names = dict[str, Any]


def _avro(names: _Names, _: Callable[[], None]) -> Any:
    return [list(row) for row in names["orders"].orderBy("seq").collect()]


def _protobuf(names: _Names, _: Callable[[], None]) -> Any:
    return [list(row) for row in names["durations"].orderBy("seq").collect()]


def _delta(names: _Names, again: Callable[[], None]) -> Any:
    """What the table has, after the recipe was run a second time."""
    again()
    table = names["spark"].read.format("delta").load("lake/orders")
    rows = table.selectExpr("queue", "CAST(value AS STRING) AS value").collect()
    return sorted([row["queue"], int(row["value"])] for row in rows)


def _delta_driver(names: _Names, again: Callable[[], None]) -> Any:
    """The same, and a micro-batch that was repeated is not written again."""
    again()
    names["append"](names["spark"].range(3), 0)
    rows = names["DeltaTable"](names["TABLE"]).to_pyarrow_table().to_pylist()
    return sorted([row["queue"], int(row["value"])] for row in rows)


_RESULTS: Final = {
    "avro": _avro,
    "delta": _delta,
    "delta_driver": _delta_driver,
    "protobuf_jar": _protobuf,
}


def main(name: str, address: str) -> None:
    code = compile(blocks("spark_recipes", "apart")[name], f"spark_recipes.md: {name}", "exec")
    names: _Names = {"ADDRESS": address}

    def run() -> None:
        exec(code, names)  # noqa: S102 - our own page

    run()
    print(json.dumps({"pyspark": pyspark.__version__, "found": _RESULTS[name](names, run)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
