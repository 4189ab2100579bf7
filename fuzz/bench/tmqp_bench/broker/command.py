"""The command ``brokers``: its options, its progress, where its results go."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from tmqp_bench.broker.plot import PlotError, check, draw
from tmqp_bench.broker.report import as_json, as_text, verdicts
from tmqp_bench.broker.servers import PACKAGES
from tmqp_bench.broker.suite import BrokerPlan, compare_brokers
from tmqp_bench.broker.workloads import WORKLOADS
from tmqp_bench.codec import BUILDS
from tmqp_bench.progress import cut_short, show

__all__ = ["add_arguments", "run"]

_HELP: Final = """\
Measures whole brokers over loopback: this one in both builds and, beside it, others in their own
protocols, all under the same load, in turn, each pinned to one core while the load generator has
another.

What the columns mean:
  deliveries/s    messages taken by consumers a second (round trips for requests)
  server CPU ns   processor time of the broker's processes for one delivery
  kernel          what of that the kernel spent on their behalf
  load            how much of its core the load generator took: near 100 % it may be the limit
  p50, p99, p99.9 from sending to completion, with so many in flight as the workload says
  tmqp is         this broker's deliveries/s over the other's
A message is complete when all consumers have it and, where the workload says so, the producer has
its acknowledge.

Peers that are not installed are named in the report.  A current nats-server is taken from
build/peers, where make bench-peers builds it with Go; where the others come from on Debian:
"""


def _list() -> str:
    lines = [
        f"  {workload.name:<20} {workload.group:<11} {workload.title}" for workload in WORKLOADS
    ]
    return "workloads, and the group of each:\n" + "\n".join(lines)


def _packages() -> str:
    system = [package for package in PACKAGES.values() if not package.startswith("pip:")]
    python = [package[4:] for package in PACKAGES.values() if package.startswith("pip:")]
    return f"  apt-get install {' '.join(system)}\n  pip install {' '.join(python)}\n"


def _workload(text: str) -> str:
    if text not in [workload.name for workload in WORKLOADS]:
        raise argparse.ArgumentTypeError(f"there is no workload {text!r}; --help lists them")
    return text


def _chosen(options: argparse.Namespace) -> tuple[str, ...]:
    """The names of the workloads asked for, all if none are."""
    groups: list[str] = options.group or []
    names: list[str] = options.workload or []
    some = bool(groups or names)
    return tuple(
        [each.name for each in WORKLOADS if not some or each.group in groups or each.name in names]
    )


def _number(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 1_000:
        raise argparse.ArgumentTypeError(f"the number of rounds is 1..1000, got {text}")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 600:
        raise argparse.ArgumentTypeError(f"seconds are 0.1..600, got {text}")
    return value


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "brokers",
        help="whole brokers over loopback: ours and others",
        description=_HELP + _packages(),
        epilog=_list(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--workload",
        type=_workload,
        action="append",
        metavar="NAME",
        help="only this one, may be repeated (all if not given)",
    )
    parser.add_argument(
        "--group",
        choices=sorted({workload.group for workload in WORKLOADS}),
        action="append",
        help="only the workloads of this group, may be repeated",
    )
    parser.add_argument("--peers", action="store_true", help="measure the other brokers too")
    parser.add_argument("--rounds", type=_number, default=5, help="the median counts (default 5)")
    parser.add_argument(
        "--seconds", type=_seconds, default=2.0, help="length of one measurement (default 2)"
    )
    parser.add_argument("--build", choices=BUILDS, help="only this build (default: both)")
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw bars, a file (SVG or PNG) for each group: a.svg becomes a-push.svg and so on",
    )
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 unless every aim is reached"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    plan = BrokerPlan(
        workloads=_chosen(options),
        rounds=options.rounds,
        seconds=options.seconds,
        peers=options.peers,
        builds=(options.build,) if options.build else BUILDS,
    )

    try:
        if options.plot is not None:
            check(options.plot)
        results = compare_brokers(plan, show)
    except KeyboardInterrupt:
        return cut_short()
    except PlotError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(as_json(results), indent=2) if options.json else as_text(results))
    if options.plot is not None:
        try:
            draw(results, options.plot)
        except PlotError as error:
            print(error, file=sys.stderr)
            return 1
    if not results.figures:
        print("nothing could be measured", file=sys.stderr)
        return 1
    reached = all(verdict.passed is not False for verdict in verdicts(results))
    return 1 if options.check and not reached else 0
