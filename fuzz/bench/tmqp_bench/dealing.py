"""The measurement of queues for one consumer at a time, without a network: its arguments and its
table; a process of its own measures each row.

Run as a module with a queue's status, its consumers and how many answers come at once it is that
process.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import sys
import time
from typing import Any, Final

from tmqp_bench.codec import BUILDS
from tmqp_bench.depth import from_process, path_of
from tmqp_bench.in_process import open_hub, outbound

__all__ = ["add_arguments", "measure", "run"]

_HELP: Final = """\
Measures what a push, and the answer to it, costs in the hub and the engine, in one process, without
a network: processor time, the best of so many passes.  In each pass so many messages of 100 bytes
are pushed in chunks of 64 KiB, and are confirmed; then the consumers answer for them in turn, so
many in a chunk.
"""
#: In flight before the first is answered for.
_MESSAGES: Final = 4_096
_CHUNK_BYTES: Final = 65_536
_PAYLOAD: Final = bytes(100)
#: Status, consumers, answers at once.
_ROWS: Final = (
    ("push", 1, 408),
    ("push", 1, 102),
    ("roundrobin", 1, 408),
    ("roundrobin", 4, 408),
    ("roundrobin", 4, 102),
)


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "dealing",
        help="pushes and acknowledgements of queues for one consumer, without a network",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--build", choices=BUILDS, default="compiled", help="default: compiled")
    parser.add_argument("--messages", type=int, default=_MESSAGES, help="default: 4096")
    parser.add_argument("--passes", type=int, default=40, help="the best counts (default 40)")


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    path = path_of(options.build)
    if path is None:
        return 1
    print(f"Processor time of the hub and the engine for a message, {options.build}, ns\n")
    print("queue       consumers  answers at once  push  answer\n" + "-" * 52)
    for status, consumers, at_once in _ROWS:
        row = (status, consumers, at_once, options.messages, options.passes)
        found = from_process("tmqp_bench.dealing", path, *row)
        if found is None:
            print(f"{status} could not be measured", file=sys.stderr)
            return 1
        print(f"{status:<10}  {consumers:>9}  {at_once:>15}  {found[0]:>4.0f}  {found[1]:>6.0f}")
    return 0


def measure(
    status: str, consumers: int, at_once: int, messages: int, passes: int
) -> tuple[float, float]:
    """Nanoseconds of a push, and of the answer to it; the best of so many passes each."""
    frames: Any = importlib.import_module("tmqp.frames")
    constants: Any = importlib.import_module("tmqp.constants")
    hub = open_hub(1 + consumers, 2 * messages)
    takers = range(2, 2 + consumers)
    create = frames.Frame.build(
        constants.TYPE_SERVER,
        "bench",
        constants.OP_CREATE_QUEUE,
        b'{"RequestAcknowledge":true}',
        message_id="create",
        headers=[("Queue-Id", "1"), ("Queue-Status", status)],
    )
    hub.receive(1, create.raw, 0.0)
    join = frames.Frame.build(constants.TYPE_SERVER, "bench", constants.OP_JOIN, message_id="join")
    for number in takers:
        hub.receive(number, join.raw, 0.0)
    outbound(hub)
    (queue,) = hub.broker.queues()
    pushes = b"".join(
        [
            frames.Frame.build(
                constants.TYPE_QUEUE_MESSAGE,
                "bench",
                1,
                _PAYLOAD,
                message_id=f"{each:032x}",
                source="client1",
                pending_acknowledge=True,
            ).raw
            for each in range(messages)
        ]
    )
    chunks = [pushes[at : at + _CHUNK_BYTES] for at in range(0, len(pushes), _CHUNK_BYTES)]
    best = [float("inf"), float("inf")]
    for _ in range(passes):
        best[0] = min(best[0], _spent(hub, [(1, chunk) for chunk in chunks]) / messages)
        held = {
            number: [key for key, each in queue.flights.items() if each.holder.number == number]
            for number in takers
        }
        best[1] = min(best[1], _spent(hub, _answers(frames, constants, held, at_once)) / messages)
    if queue.counters.done != messages * passes:
        raise AssertionError(f"{queue.counters.done} of {messages * passes} messages are done")
    return best[0], best[1]


def _answers(
    frames: Any, constants: Any, held: dict[int, list[str]], at_once: int
) -> list[tuple[int, bytes]]:
    """Chunks of answers of each consumer in turn."""
    found: list[tuple[int, bytes]] = []
    for at in range(0, max([len(ids) for ids in held.values()]), at_once):
        for number, ids in held.items():
            answers = [
                frames.Frame.build(
                    constants.TYPE_ACKNOWLEDGE,
                    "bench",
                    1,
                    message_id=each,
                    source=f"client{number}",
                ).raw
                for each in ids[at : at + at_once]
            ]
            if answers:
                found.append((number, b"".join(answers)))
    return found


def _spent(hub: Any, chunks: list[tuple[int, bytes]]) -> float:
    """Nanoseconds of processor time that it takes to hear what some clients say."""
    began = time.process_time()
    for number, chunk in chunks:
        hub.receive(number, chunk, 1.0)
        outbound(hub)
    return (time.process_time() - began) * 1e9


if __name__ == "__main__":
    gc.disable()
    print(json.dumps(measure(sys.argv[1], *map(int, sys.argv[2:]))))
