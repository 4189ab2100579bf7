"""The command ``clients``: its options, its progress, its tables and verdicts."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from typing import Any, Final

from tmqp_bench.clients.suite import LIBRARIES, LOADS, ClientPlan, ClientResults, Load, compare
from tmqp_bench.progress import cut_short, show
from tmqp_bench.report import Verdict, ending, machine, table

__all__ = ["add_arguments", "as_json", "as_text", "run", "verdicts"]

#: The aim: so many times the messages a second of each peer.
_TIMES: Final = 2.0
_HEAD: Final = (
    *("", "messages/s", "client CPU us", "p50 us", "p99 us", "p99.9 us", "spread"),
    *("tmqp is", "by CPU"),
)
_HELP: Final = """\
Measures client libraries: ours, and beside it nats-py with nats-server, aio-pika with RabbitMQ and
redis-py with Redis, in one run and in turn.  A producing and a consuming client share one process
and one core, the server has the other.

What the columns mean:
  messages/s      messages that have come to the consumer's code (round trips for requests)
  client CPU us   processor time of both clients for one message
  p50, p99, p99.9 stream: from the call to the consumer's code; confirmed, request: one call;
                  batch: a whole batch
  tmqp is         our messages/s over the other's
  by CPU          the other's client CPU over ours, which does not depend on the server

What is confirmed: tmqp's push, JetStream in memory, publisher confirms, XADD.  What is
acknowledged: tmqp's automatic mode, a JetStream consumer, basic.ack, XACK.  Requests of redis-py go
through lists.
"""


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    lines = "\n".join([f"  {load.name:<14} {load.title}" for load in LOADS])
    parser = commands.add_parser(
        "clients",
        help="client libraries over loopback: ours and others",
        description=_HELP,
        epilog=f"loads:\n{lines}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--load",
        choices=[load.name for load in LOADS],
        action="append",
        metavar="NAME",
        help="only this one, may be repeated (all if not given)",
    )
    parser.add_argument("--peers", action="store_true", help="measure the other libraries too")
    parser.add_argument("--rounds", type=_number(1, 1_000), default=3, help="the median counts (3)")
    parser.add_argument(
        "--seconds", type=_number(1, 600), default=2, help="length of one measurement (2)"
    )
    parser.add_argument(
        "--payload", type=_number(8, 1_000_000), default=100, help="bytes of a message (100)"
    )
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 unless every aim is reached"
    )


def _number(least: int, most: int) -> Any:
    def parse(text: str) -> int:
        value = int(text) if text.isdecimal() else least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"a number {least}..{most}, got {text}")
        return value

    return parse


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    plan = ClientPlan(
        loads=tuple(options.load or [load.name for load in LOADS]),
        rounds=options.rounds,
        seconds=options.seconds,
        payload_bytes=options.payload,
        peers=options.peers,
    )

    try:
        results = compare(plan, show)
    except KeyboardInterrupt:
        return cut_short()
    print(json.dumps(as_json(results), indent=2) if options.json else as_text(results))
    if not results.figures:
        print("nothing could be measured", file=sys.stderr)
        return 1
    reached = all(verdict.passed is not False for verdict in verdicts(results))
    return 1 if options.check and not reached else 0


def verdicts(results: ClientResults) -> list[Verdict]:
    """The aims, and what was reached."""
    found: list[Verdict] = []
    for load in LOADS:
        ours = results.figures.get((load.name, LIBRARIES[0].title))
        for library in LIBRARIES:
            peer = results.figures.get((load.name, library.title))
            if library.build or ours is None or peer is None:
                continue
            times = ours.rate / peer.rate
            aim = f"{load.name}: {_TIMES:g} x {library.title}"
            found.append(Verdict(aim, f"{times:.2f} x", times >= _TIMES))
    return found


def _rows(results: ClientResults, load: Load) -> list[list[str]]:
    ours = results.figures.get((load.name, LIBRARIES[0].title))
    rows: list[list[str]] = []
    for library in LIBRARIES:
        found = results.figures.get((load.name, library.title))
        if found is None:
            continue
        beside = ["-", "-"]
        if ours is not None and ours is not found:
            by_cpu = found.client_cpu_us / ours.client_cpu_us
            beside = [f"{ours.rate / found.rate:.2f} x", f"{by_cpu:.2f} x"]
        latencies = [f"{found.latency_us(place):,.0f}" for place in range(3)]
        figures = [f"{found.rate:,.0f}", f"{found.client_cpu_us:,.1f}", *latencies]
        rows.append([library.title, *figures, f"{found.spread:.2f}", *beside])
    return rows


def as_text(results: ClientResults) -> str:
    """The whole comparison for a terminal."""
    plan = results.plan
    place = "the server on one core, both clients on another" if results.pinned else "on one core"
    lines = [
        f"{machine()}; Python {platform.python_version()}; {place}.",
        "; ".join([f"{name} {version}" for name, version in results.versions.items()]),
        f"Medians of {plan.rounds} rounds of {plan.seconds:g} s, {plan.payload_bytes:,} bytes.",
    ]
    for load in LOADS:
        rows = _rows(results, load)
        if rows:
            lines.extend(["", f"{load.title} ({load.name})", "", *table(_HEAD, rows)])
    lines.extend(ending("aim, messages/s", verdicts(results), results.missing))
    return "\n".join(lines)


def as_json(results: ClientResults) -> dict[str, Any]:
    """The same as data."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "versions": results.versions,
        "rounds": results.plan.rounds,
        "seconds": results.plan.seconds,
        "payload_bytes": results.plan.payload_bytes,
        "figures": [
            {
                "load": load,
                "library": library,
                "messages_per_s": [each.rate for each in found.rounds],
                "client_cpu_us": found.client_cpu_us,
                "p50_us": found.latency_us(0),
                "p99_us": found.latency_us(1),
                "p99.9_us": found.latency_us(2),
            }
            for (load, library), found in results.figures.items()
        ],
        "aims": [
            {"aim": each.aim, "reached": each.reached, "passed": each.passed}
            for each in verdicts(results)
        ],
        "missing": results.missing,
    }
