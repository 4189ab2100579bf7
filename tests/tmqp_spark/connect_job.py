"""A client of Spark Connect, which has no JVM: run by a test.

Arguments: the server's port, the broker's address.  It prints what came of it as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

import tmqp_spark


def main(port: str, url: str) -> None:
    builder: Any = SparkSession.builder
    spark = builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    said: dict[str, Any] = {"kind": type(spark).__module__}

    def read(queue: str) -> list[str]:
        reader = spark.read.format("tmqp").option("url", url).option("subscribe", queue)
        return sorted(row["value"] for row in reader.schema("value string").load().collect())

    # The server finds the format by itself, and takes it from a session.
    said["found"] = read("connect/1")
    said["registered"] = tmqp_spark.register(spark)
    rows = spark.range(100).selectExpr("cast(id as string) as value")
    writer = rows.write.format("tmqp").mode("append").option("url", url)
    writer.option("channel", "connect").option("queue", 2).option("createQueue", True).save()
    said["written"] = read("connect/2")
    try:
        spark.read.format("tmqp").options(url=url, subscibe="connect/1").load().collect()
    except Exception as error:  # noqa: BLE001 - whatever it is, its text counts
        said["mistake"] = str(error)
    print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    os._exit(0)  # threads of gRPC's hold the interpreter for seconds
