"""The command line of the measurements."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final, NoReturn

from tmqp_bench import (
    backlog,
    dealing,
    depth,
    idle,
    large_commit,
    overview,
    ranges,
    replicated,
    storage,
    transactions,
    waiting,
)
from tmqp_bench.broker import command as brokers
from tmqp_bench.clients import command as clients
from tmqp_bench.codec import BUILDS, Plan, compare
from tmqp_bench.progress import cut_short, show
from tmqp_bench.report import as_json, as_text, verdicts
from tmqp_bench.spark import command as kafka

__all__ = ["main"]

_SIZES: Final = (16, 100, 1_024, 65_536)
_MOST_PAYLOAD_BYTES: Final = 1_000_000

_CODEC_HELP: Final = """\
Measures how long tmqp takes for one message, in both builds, and beside it how long the parsers of
websockets, wsproto, nats-py and pamqp take for a message with the same payload, all in one run and
in turn.

What the rows mean:
  decode, read lazily    FrameDecoder.feed: every limit checked, names checked and decoded
  nine sources in turn   the same where no two neighbouring messages have the same source
  everything read        feed, then Frame.fields() of every frame
  write                  Frame.build from id, source, target, number and payload
  forward                Frame.forwarded: the received bytes with two bytes changed
  Connection.receive     a server's whole connection: decoding, the state machine, an event each
Each message has an id of 32 characters, a source, a target and no headers.

Nanoseconds change with the mood of the machine: compare ratios, and only those of one run.
"""
_CODEC_EXAMPLES: Final = """\
examples (make compiled first, for the compiled build):
  PYTHONPATH=fuzz/bench python -m tmqp_bench codec
  PYTHONPATH=fuzz/bench python -m tmqp_bench codec --quick
  PYTHONPATH=fuzz/bench python -m tmqp_bench codec --payload 100 --payload 4096 --json
"""


def _size(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= _MOST_PAYLOAD_BYTES:
        raise argparse.ArgumentTypeError(f"a payload is 1..{_MOST_PAYLOAD_BYTES} bytes, got {text}")
    return value


def _rounds(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 1_000:
        raise argparse.ArgumentTypeError(f"the number of rounds is 1..1000, got {text}")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 60:
        raise argparse.ArgumentTypeError(f"seconds are above 0 and at most 60, got {text}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tmqp_bench",
        description="Measure tmqp and compare it with similar software.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    codec = commands.add_parser(
        "codec",
        help="both builds of the codec, and other projects' parsers",
        description=_CODEC_HELP,
        epilog=_CODEC_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    codec.add_argument(
        "--payload",
        type=_size,
        action="append",
        metavar="BYTES",
        help="a payload size, may be repeated (16, 100, 1024 and 65536 if not given)",
    )
    codec.add_argument(
        "--quick", action="store_true", help="100 bytes only, 5 short rounds: some seconds in all"
    )
    codec.add_argument(
        "--rounds", type=_rounds, help="how often each case runs; the median counts (default 9)"
    )
    codec.add_argument(
        "--seconds", type=_seconds, help="processor time for a case in a round (default 0.05)"
    )
    codec.add_argument(
        "--build", choices=BUILDS, help="measure only this build of tmqp (default: both)"
    )
    codec.add_argument("--json", action="store_true", help="print data instead of tables")
    codec.add_argument(
        "--check", action="store_true", help="end with status 1 unless every aim is reached (100 B)"
    )
    brokers.add_arguments(commands)
    storage.add_arguments(commands)
    backlog.add_arguments(commands)
    depth.add_arguments(commands)
    waiting.add_arguments(commands)
    dealing.add_arguments(commands)
    idle.add_arguments(commands)
    overview.add_arguments(commands)
    clients.add_arguments(commands)
    ranges.add_arguments(commands)
    kafka.add_arguments(commands)
    commands.add_parser("spark", help="reading and writing with Spark, and alternatives")
    transactions.add_arguments(commands)
    large_commit.add_arguments(commands)
    replicated.add_arguments(commands)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["spark"]:
        _spark(given[1:])
    options = _parser().parse_args(given)
    others = {
        "backlog": backlog.run,
        "brokers": brokers.run,
        "clients": clients.run,
        "depth": depth.run,
        "dealing": dealing.run,
        "waiting": waiting.run,
        "idle": idle.run,
        "kafka": kafka.run,
        "overview": overview.run,
        "ranges": ranges.run,
        "storage": storage.run,
        "transactions": transactions.run,
        "large-commit": large_commit.run,
        "replicated": replicated.run,
    }
    run = others.get(options.command, _codec)
    return run(options)


def _spark(arguments: list[str]) -> NoReturn:
    """Run the command that measures Spark: it has options, and ways to end, of tmqp-spark's."""
    from tmqp_bench.spark_cases.command import spark  # noqa: PLC0415 - needs pyspark

    spark.main(arguments, prog_name="python -m tmqp_bench spark")


def _codec(options: argparse.Namespace) -> int:
    plan = Plan(
        payload_sizes=tuple(options.payload or ((100,) if options.quick else _SIZES)),
        rounds=options.rounds or (5 if options.quick else 9),
        seconds=options.seconds or (0.02 if options.quick else 0.05),
        builds=(options.build,) if options.build else BUILDS,
    )

    try:
        outcome = compare(plan, show)
    except KeyboardInterrupt:
        return cut_short()
    if options.json:
        print(json.dumps(as_json(outcome), indent=2))
    else:
        print(as_text(outcome))
    if not any(group in BUILDS for group, _, _ in outcome.samples):
        print("no build of tmqp could be measured", file=sys.stderr)
        return 1
    reached = all(verdict.passed for verdict in verdicts(outcome))
    return 1 if options.check and not reached else 0


if __name__ == "__main__":
    sys.exit(main())
