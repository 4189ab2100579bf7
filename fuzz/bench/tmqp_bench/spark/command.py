"""The command ``kafka``: its options, its progress, where its results go."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, Final

from tmqp_bench.broker.processes import StartError
from tmqp_bench.codec import BUILDS, ROOT
from tmqp_bench.progress import cut_short, show

__all__ = ["add_arguments", "run"]

_HELP: Final = """\
Measures queues in Spark beside Spark's own Kafka connector: one Spark with two task slots, our
server, and a single Kafka broker, all on this machine and free to use all cores.

Both keep the same rows in two parts (queues of a channel, partitions of a topic) and are used with
their defaults.  Reads go to Spark's sink "noop".  What is durable differs: our server answers for a
message when it is synced to the disk, Kafka when it has it in memory of the system.  Kafka's sink
is at least once; ours is measured exactly once, which is its default, and at least once.

Kafka and the connector come from Maven Central, by mvn, once; without mvn or Java the report says
so and has our figures alone.
"""


def _rows(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1_000 <= value <= 10_000_000:
        raise argparse.ArgumentTypeError(f"rows are 1000..10000000, got {text}")
    return value


def _payload(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 16 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"a payload is 16..1000000 bytes, got {text}")
    return value


def _rounds(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 100:
        raise argparse.ArgumentTypeError(f"the number of rounds is 1..100, got {text}")
    return value


_WORKLOADS: Final = ("read-values", "read-columns", "stream-read", "write", "stream-write")
_SIZES: Final = (100, 1_024)
_MOST_ROWS: Final = 1_000_000
_MOST_BYTES: Final = 204_800_000


def add_arguments(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "kafka",
        help="queues in Spark beside Spark's Kafka connector",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--workload",
        choices=_WORKLOADS,
        action="append",
        metavar="NAME",
        help=f"only this one, may be repeated: {', '.join(_WORKLOADS)}",
    )
    parser.add_argument(
        "--payload", type=_payload, action="append", help="bytes, again for more (100 and 1024)"
    )
    parser.add_argument(
        "--rows", type=_rows, help="of each measurement (a million, at 1 KiB 200,000)"
    )
    parser.add_argument("--rounds", type=_rounds, default=5, help="the median counts (default 5)")
    parser.add_argument("--build", choices=BUILDS, default="compiled", help="of tmqp")
    parser.add_argument("--alone", action="store_true", help="without Kafka")
    parser.add_argument(
        "--jars", type=Path, default=ROOT / "build" / "peers", help="where Kafka's are kept"
    )
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 unless every aim is reached"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    if importlib.util.find_spec("pyspark") is None:
        print("pyspark is not installed: pip install 'tmqp[spark]'", file=sys.stderr)
        return 1
    from tmqp_bench.spark.report import as_json, as_text, verdicts  # noqa: PLC0415 - the same
    from tmqp_bench.spark.suite import (  # noqa: PLC0415 - the same
        SparkPlan,
        WrongCountError,
        compare_connectors,
    )

    sizes = options.payload or _SIZES
    plan = SparkPlan(
        rows={size: options.rows or min(_MOST_ROWS, _MOST_BYTES // size) for size in sizes},
        workloads=tuple(options.workload or _WORKLOADS),
        rounds=options.rounds,
        build=options.build,
        peers=not options.alone,
        jars=options.jars,
    )

    try:
        results = compare_connectors(plan, show)
    except KeyboardInterrupt:
        return cut_short()
    except (StartError, WrongCountError) as error:
        print(f"nothing could be measured: {error}", file=sys.stderr)
        return 1
    print(json.dumps(as_json(results), indent=2) if options.json else as_text(results))
    reached = all(verdict.passed is not False for verdict in verdicts(results))
    return 1 if options.check and not reached else 0
