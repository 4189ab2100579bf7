"""Watch a data pipeline at work: what ``make spark-demo`` runs.

It starts ``tmqp-server`` as a separate process, pushes 122,137 real records into a durable queue,
and archives them to Parquet with a streaming query while they arrive.  Then it replays the archive
into another queue, compares every byte with the file, queries the archive in SQL, and measures both
queues.  The results are in ``build/spark-demo``; the exit status is 0 only if every check passed.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tmqp.errors import TmqpError
from tmqp_client import sync
from tmqp_spark.cli import cli
from tmqp_spark.options import ConnectionOptions, SinkOptions
from tmqp_spark.pipelines.archive_stream import archive_with_spark
from tmqp_spark.pipelines.launch import spark_for
from tmqp_spark.pipelines.replay import Target, replay, replay_name
from tmqp_spark.pipelines.reporting import Reporter
from tmqp_spark.pipelines.stopping import Stop
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__: list[str] = []

ROOT: Final = Path(__file__).resolve().parent.parent
LINES: Final = ROOT / "examples" / "data" / "clocks.jsonl.xz"
#: Removed at the start; kept at the end, so that you can look at it.
FOLDER: Final = Path("build") / "spark-demo"
CHANNEL: Final = "clocks"
COPY: Final = "clocks-copy"
QUEUE: Final = 1
PIECE: Final = 1_000


def produce(broker: Broker, lines: list[bytes], done: threading.Event) -> None:
    """Push every line with the time in a header, so that latencies can be measured."""
    began = time.perf_counter()
    with sync.connect(broker.url, name="producer", type="producer") as client:
        for start in range(0, len(lines), PIECE):
            sent = {"Sent": str(round(time.time() * 1000))}
            client.push_many(CHANNEL, QUEUE, lines[start : start + PIECE], headers=sent)
    seconds = time.perf_counter() - began
    print(f"  producer: {len(lines):,} pushed, safe on disk: {len(lines) / seconds:,.0f} a second")
    done.set()


def archive(spark: SparkSession, broker: Broker, lines: list[bytes]) -> int:
    """Archive while the lines arrive, then the rest; return the number of archived lines."""
    reporter = Reporter(stream=sys.stdout)
    options = {"url": broker.url, "subscribe": CHANNEL, "startingOffsets": "earliest"}
    folder = str((FOLDER / "archive").absolute())
    stop = Stop(reporter)
    done = threading.Event()
    producer = threading.Thread(target=produce, args=(broker, lines, done))

    def stop_when_done() -> None:
        done.wait()
        stop.want()

    threading.Thread(target=stop_when_done, daemon=True).start()
    producer.start()
    try:
        archive_with_spark(
            spark, options, folder, stop=stop, reporter=reporter, follow=True, every_s=2
        )
    finally:
        producer.join()
    archive_with_spark(spark, options, folder, stop=Stop(reporter), reporter=reporter)
    return spark.read.parquet(folder).count()


def digest_of(broker: Broker, channel: str) -> tuple[int, str]:
    """Return the number of messages in a queue, and the SHA-256 of their lines."""
    digest = hashlib.sha256()
    count, after = 0, 0
    with sync.connect(broker.url, name="reader") as client:
        while portion := client.read_range(channel, QUEUE, after + 1):
            for message in portion:
                digest.update(message.payload + b"\n")
            count += len(portion)
            after = portion[-1].sequence
    return count, digest.hexdigest()


def copy(spark: SparkSession, broker: Broker) -> None:
    """Replay the archive into another queue."""
    reporter = Reporter(stream=sys.stdout)
    place = (FOLDER / "archive").absolute()
    target = Target(f"{COPY}/{QUEUE}")
    name = replay_name(place, target)
    summary = replay(
        spark,
        ConnectionOptions(url=broker.url),
        SinkOptions(),
        place,
        target,
        stop=Stop(reporter),
        reporter=reporter,
        application=name,
        plan_file=FOLDER / "replay.json",
    )
    print(f"  {summary.messages:,} messages in {summary.chunks} transactions")


def ask(spark: SparkSession) -> None:
    """Print what the archive says about clocks, by decade."""
    found = spark.read.parquet(str((FOLDER / "archive").absolute())).selectExpr(
        "from_json(cast(value as string), 'at timestamp, zone string, what string, offset_s int,"
        " dst boolean') as line"
    )
    table = (
        found.selectExpr("line.*")
        .selectExpr("floor(year(at) / 10) * 10 as decade", "zone", "what", "dst")
        .groupBy("decade")
        .agg({"zone": "approx_count_distinct", "what": "count"})
    )
    changes = (
        found.where("line.what = 'change'")
        .selectExpr("floor(year(line.at) / 10) * 10 as decade")
        .groupBy("decade")
        .count()
    )
    print("  decade   zones   clock changes")
    rows = table.join(changes, "decade", "left").orderBy("decade").collect()
    for row in rows:
        zones = row["approx_count_distinct(zone)"]
        print(f"  {row['decade']}s{zones:8,}{row['count'] or 0:16,}")


def show() -> bool:
    """Run every part in turn; return whether every check passed."""
    lines = lzma.decompress(LINES.read_bytes()).splitlines()
    expected = hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    print(f"{LINES.name}: {len(lines):,} records\n\n1. A broker and Spark start")
    with Broker(FOLDER / "broker") as broker, spark_for("demo", "local[2]") as spark:
        print(f"  tmqp-server at {broker.url}, Spark {spark.version}")
        for channel in (CHANNEL, COPY):
            broker.create(channel, QUEUE)
        print("\n2. Records are produced, and a streaming query archives them as they arrive")
        archived = archive(spark, broker, lines)
        print(f"  {archived:,} records in Parquet files, {FOLDER / 'archive'}")
        print("\n3. The archive is replayed into another queue, exactly once")
        copy(spark, broker)
        count, digest = digest_of(broker, COPY)
        same = digest == expected
        print(f"  {count:,} messages: {'every byte in order' if same else 'NOT WHAT WAS SENT'}")
        print("\n4. The archive is queried in SQL")
        ask(spark)
        print("\n5. Both queues are measured, by minute; the plot is by second")
        plot = FOLDER / "clocks.svg"
        for more in (["--bucket", "1m"], ["--bucket", "1s", "--rows", "1", "--plot", str(plot)]):
            command = ["metrics", CHANNEL, COPY, "-a", broker.url, "--sent-header", "Sent", *more]
            cli.main(command, standalone_mode=False)
            print()
        good = archived == len(lines) == count and same and plot.stat().st_size > 0
        print(f"  archive: {FOLDER / 'archive'}\n  plot:    {plot}")
    return good


def main() -> int:
    """Run every part in an empty folder."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    places = [str(Path(sys.modules["tmqp_spark"].__path__[0]).parent)]
    places += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(places))
    try:
        good = show()
    except TmqpError as error:
        print(f"\n{error}")
        good = False
    print("\nEvery check passed." if good else "\nA check failed: see above.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
