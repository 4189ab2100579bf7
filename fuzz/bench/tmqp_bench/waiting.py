"""The measurement of what waiting messages take: its arguments and its table; a process of its own
measures each row.

Run as a module with a build's messages and how many come at once it is that process.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import sys
from typing import Any, Final

from tmqp_bench.codec import BUILDS
from tmqp_bench.depth import from_process, path_of, resident_bytes
from tmqp_bench.in_process import create_pull_queue, open_hub

__all__ = ["add_arguments", "measure", "run"]

_HELP: Final = """\
Measures how much memory a message takes that waits in a queue: the hub and the engine, in one
process, without a network.  The messages come as from a socket, so many in one chunk; in the queue
of the first row each comes by itself.  A message has a payload of 100 bytes, an id of 32 characters
and a source of 7; all of it is 152 bytes on the wire.
"""
_PAYLOAD: Final = bytes(100)
_AT_ONCE: Final = (1, 4, 16, 64, 400)
_MESSAGES: Final = 200_000


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "waiting",
        help="the memory of a waiting message",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--build", choices=BUILDS, default="compiled", help="default: compiled")
    parser.add_argument("--messages", type=int, default=_MESSAGES, help="default: 200000")


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    path = path_of(options.build)
    if path is None:
        return 1
    print(f"Memory of a message of 100 B that waits, {options.build}\n")
    print("at once  bytes a message\n-------  ---------------")
    for at_once in _AT_ONCE:
        size = from_process("tmqp_bench.waiting", path, options.messages, at_once)
        if size is None:
            print(f"{at_once} at once could not be measured", file=sys.stderr)
            return 1
        print(f"{at_once:>7}  {size:>15,.0f}")
    return 0


def _hub(most: int) -> tuple[Any, Any]:
    """A hub with a producer, whose number is 1, and an empty pull queue; and that queue."""
    hub = open_hub(1, most)
    create_pull_queue(hub.broker)
    (queue,) = hub.broker.queues()
    return hub, queue


def measure(messages: int, at_once: int) -> float:
    """The resident bytes of each of so many messages that wait, which came so many at once."""
    frames: Any = importlib.import_module("tmqp.frames")
    constants: Any = importlib.import_module("tmqp.constants")
    hub, queue = _hub(2 * messages)

    def fill(first: int, count: int) -> None:
        for number in range(first, first + count, at_once):
            chunk = [
                frames.Frame.build(
                    constants.TYPE_QUEUE_MESSAGE,
                    "bench",
                    1,
                    _PAYLOAD,
                    message_id=f"{each:032x}",
                    source="client1",
                ).raw
                for each in range(number, min(number + at_once, first + count))
            ]
            hub.receive(1, b"".join(chunk), 0.0)

    warm = messages // 10
    fill(0, warm)  # so that what is made only once is not counted
    gc.collect()
    before = resident_bytes()
    fill(warm, messages)
    size = resident_bytes() - before
    if queue.waiting_count() != warm + messages:
        raise AssertionError(f"{queue.waiting_count()} messages wait, not {warm + messages}")
    return float(size / messages)


if __name__ == "__main__":
    gc.disable()
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
