"""The measurement of full queues: its arguments and its table; a process of its own measures.

Run as a module with a number of messages it is that process: it fills a queue so far, then pushes
and pulls one message after the other, so that the queue stays as full, and prints what that took.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import subprocess
import sys
import time
from typing import Any, Final

from tmqp_bench.codec import BUILDS, PLACES, ROOT
from tmqp_bench.in_process import broker_for, create_pull_queue

__all__ = ["add_arguments", "from_process", "measure", "path_of", "resident_bytes", "run"]

_HELP: Final = """\
Measures what a message costs in a queue that holds many: the engine alone, in one process, without
a network.  The queue is filled to a depth; then one message is pushed and one is pulled, again and
again.  As from a socket, the messages to push come in portions: 400 are made, then pushed.  The
collector is off.  "times" is the speed beside that at the smallest depth.
"""
_EXAMPLES: Final = """\
examples (make compiled first, for the compiled build):
  PYTHONPATH=fuzz/bench python -m tmqp_bench depth
  PYTHONPATH=fuzz/bench python -m tmqp_bench depth --build interpreted --most 100000
"""
_DEPTHS: Final = (10, 1_000, 100_000, 1_000_000, 10_000_000)
_PAIRS: Final = 20_000
_PORTION: Final = 10_000
#: Messages made before they are pushed: about what one read of 64 KiB brings.  Many more would have
#: left the processor's caches before their turn comes, which has nothing to do with the queue.
_READ: Final = 400
_PAYLOAD: Final = bytes(100)


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "depth",
        help="the cost of a message in queues that hold up to ten million",
        description=_HELP,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--most", type=_depth, default=_DEPTHS[-1], help="the largest depth (default 10000000)"
    )
    parser.add_argument("--build", choices=BUILDS, default="compiled", help="default: compiled")
    parser.add_argument("--rounds", type=int, default=5, help="the median counts (default 5)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def _depth(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not _DEPTHS[0] <= value <= 100_000_000:
        raise argparse.ArgumentTypeError(f"a depth is {_DEPTHS[0]}..100000000, got {text}")
    return value


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    path = path_of(options.build)
    if path is None:
        return 1
    found: list[dict[str, float]] = []
    for depth in _DEPTHS:
        if depth > options.most:
            break
        measured = from_process("tmqp_bench.depth", path, depth, options.rounds)
        if measured is None:
            print(f"a depth of {depth:,} could not be measured", file=sys.stderr)
            return 1
        found.append(measured)
    print(json.dumps(found, indent=2) if options.json else _table(options.build, found))
    return 0


def path_of(build: str) -> str | None:
    """Where Python looks for the modules of a process that measures a build; None, and the user is
    told, if it has not been made."""
    place = ROOT / PLACES[build]
    if not (place / "tmqp_server").is_dir():
        print(f"nothing is in {PLACES[build]}: make compiled", file=sys.stderr)
        return None
    return os.pathsep.join([str(place), str(ROOT / "fuzz" / "bench")])


def from_process(module: str, path: str, *arguments: int | str) -> Any:
    """What a module prints as JSON that is run with these arguments; None if it fails.

    :param path: where Python looks for modules.
    """
    ended = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return None if ended.returncode else json.loads(ended.stdout)


def _table(build: str, found: list[dict[str, float]]) -> str:
    lines = [
        f"Push and pull of one message, {build}, 100 B",
        "",
        "     depth  ns a pair  times  ns to fill  bytes a message",
        "----------  ---------  -----  ----------  ---------------",
    ]
    for each in found:
        size = f"{each['bytes']:,.0f}" if each["depth"] >= 100_000 else "-"
        times = found[0]["ns"] / each["ns"]
        lines.append(
            f"{each['depth']:>10,.0f}  {each['ns']:>9,.0f}  {times:>5.2f}"
            f"  {each['fill_ns']:>10,.0f}  {size:>15}"
        )
    return "\n".join(lines)


def resident_bytes() -> int:
    """How much memory this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no file of ours
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _prepared(depth: int) -> tuple[Any, Any]:
    """A broker with an empty pull queue, and how to push a message of a number."""
    commands: Any = importlib.import_module("tmqp_server.engine.commands")
    constants: Any = importlib.import_module("tmqp.constants")
    frames: Any = importlib.import_module("tmqp.frames")
    broker = broker_for(max(depth * 2, 1_000))
    broker.step(commands.Connect(1, None, "bench"), 0.0)
    create_pull_queue(broker)
    broker.step(commands.Join(1, "join", "bench"), 0.0)

    def push(number: int) -> Any:
        frame = frames.Frame.build(
            constants.TYPE_QUEUE_MESSAGE,
            "bench",
            1,
            _PAYLOAD,
            message_id=f"{number:032x}",
            source="bench",
        )
        size = len(frame.raw)
        return commands.Push(1, frame.message_id, "bench", 1, False, False, size, frame)

    return broker, push


def measure(depth: int, rounds: int, pairs: int = _PAIRS) -> dict[str, float]:
    """Nanoseconds of processor time for a push and a pull at this depth, the median; and more."""
    commands: Any = importlib.import_module("tmqp_server.engine.commands")
    broker, push = _prepared(depth)
    (queue,) = broker.queues()
    before = resident_bytes()
    fill_ns = 0
    for start in range(0, depth, _PORTION):
        batch = [push(number) for number in range(start, min(depth, start + _PORTION))]
        started = time.process_time_ns()
        at = 0
        while at < len(batch):
            at, _ = broker.steps(batch, at, 0.0, 1 << 40)
        fill_ns += time.process_time_ns() - started
    size = resident_bytes() - before
    if queue.waiting_count() != depth:
        raise AssertionError(f"{queue.waiting_count()} messages wait instead of {depth}")
    pull = commands.Pull(1, "pull", "bench", 1, 1, False, False, False, False)
    taken: list[float] = []
    number = depth
    for _ in range(rounds):
        spent = 0
        for start in range(0, pairs, _READ):
            batch = [push(number + each) for each in range(min(_READ, pairs - start))]
            number += len(batch)
            started = time.process_time_ns()
            for each in batch:
                broker.step(each, 0.0)
                broker.step(pull, 0.0)
            spent += time.process_time_ns() - started
        taken.append(spent / pairs)
    if queue.waiting_count() != depth or queue.counters.sent != rounds * pairs:
        raise AssertionError(
            f"{queue.counters.sent} messages were pulled instead of {rounds * pairs}"
        )
    ns = sorted(taken)[len(taken) // 2]
    return {"depth": depth, "ns": ns, "fill_ns": fill_ns / depth, "bytes": size / depth}


if __name__ == "__main__":
    gc.disable()
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
