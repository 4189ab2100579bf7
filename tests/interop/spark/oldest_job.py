"""Writes a batch, copies it as a stream, and reads some of it; prints what it has read, and with
which PySpark.  Arguments: the broker's address, and a folder for what Spark writes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from tests.tmqp_spark.conftest import quick_settings
from tmqp_spark.session import session

__all__ = ["COUNT", "main"]

COUNT: Final = 1_000


def main(address: str, folder: Path) -> None:
    pushdown = {"spark.sql.python.filterPushdown.enabled": "true"}
    spark = session("oldest", "local[2]", {**quick_settings(folder), **pushdown})
    numbers = spark.range(0, COUNT, 1, 2)
    numbers = numbers.selectExpr("cast(id as string) value", "cast(1 + id % 2 as int) queue")
    target = {"url": address, "channel": "numbers", "createQueue": "true"}
    numbers.write.format("tmqp").mode("append").options(**target).save()
    copy = (
        spark.readStream.format("tmqp")
        .options(url=address, subscribe="numbers", group="copy", startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", COUNT // 2)
        .schema("value binary")
        .load()
        .writeStream.format("tmqp")
        .options(url=address, channel="copies", queue=1, createQueue=True)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    copy.awaitTermination()
    source = spark.read.format("tmqp").options(url=address, subscribe="numbers")
    some = source.option("filterPushdown", True).schema("queue int, seq long").load()
    some = some.where("queue = 1 and seq > 2 and seq <= 4")
    filtered = sorted([row["queue"], row["seq"]] for row in some.collect())
    print(json.dumps({"pyspark": spark.version, "filtered": filtered}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
