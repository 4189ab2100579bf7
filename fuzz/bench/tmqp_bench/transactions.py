"""The measurement of transactions: a server without sockets, its real store, one process."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import tmqp
from tmqp.constants import (
    OP_CREATE_QUEUE,
    PREAMBLE,
    SERVER_HELLO,
    TYPE_QUEUE_MESSAGE,
    TYPE_SERVER,
)
from tmqp.extensions import OP_COMMIT_TRANSACTION, OP_OPEN_TRANSACTION, OP_PUSH_TRANSACTION
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.sqlite import SqliteStore

__all__ = ["add_arguments", "measure", "run"]

_HELP: Final = """\
Measures what transactions cost the server: hub, native door, broker and journal without sockets,
and the SQLite store; messages of 100 bytes with an id of 32 characters.

  pushed    processor time a message of staging blocks of about 1 MiB
  commit    processor time of the one step that a commit is, whatever it holds
  written   processor and wall time of the write: messages made, blocks, one sync
  plain     the same messages pushed one by one into the same durable queue: push and write
"""
_EXAMPLES: Final = """\
examples (with build/compiled, after make compiled; with src for the interpreted build):
  PYTHONPATH=build/compiled:fuzz/bench python -m tmqp_bench transactions
  PYTHONPATH=src:fuzz/bench python -m tmqp_bench transactions --messages 20000
"""
_DURABLE: Final = b'{"Durable":true,"Status":1}'
_BLOCK_BYTES: Final = 1_000_000
_ROUNDS: Final = 5


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "transactions",
        help="pushes in transactions, and their commit, compared with plain pushes",
        description=_HELP,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--messages", type=_count, default=100_000, help="in one commit (default 100000)"
    )
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default: here)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 100 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"messages are 100..1000000, got {text}")
    return value


class _Server:
    """A server without sockets, and a client of it."""

    def __init__(self, directory: Path) -> None:
        limits = Limits(max_payload_bytes=2_000_000)
        self.ids = 0
        self.door = NativeDoor(self._new_id, limits)
        self.journal = Journal([self.door])
        self.hub = Hub(Broker(None, BrokerOptions(storage=True)), 0, self.journal)
        self.store = SqliteStore(directory, floor_bytes=0)
        self.store.recover()
        self.now = 1.0
        self.hub.open(1, self.door, self.now)
        hello = Frame.build(TYPE_SERVER, "", SERVER_HELLO, ConnectionInformation("me").encode())
        self.say(PREAMBLE + hello.raw)
        headers = [("Queue-Id", "1")]
        self.say(_operation(OP_CREATE_QUEUE, headers, _DURABLE, "c"))
        self.write()

    def _new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:032x}"

    def say(self, data: bytes) -> None:
        """Bytes come in, and whatever is answered goes out."""
        more = self.hub.receive(1, data, self.now)
        while more:
            self.hub.take_outbound()
            more = self.hub.go_on(1, self.now)
        self.hub.take_outbound()

    def write(self) -> None:
        """Write what was gathered, and take the answer."""
        writing = self.journal.take()
        self.store.write(writing.batch, time.time_ns() // 1_000)
        answer = self.journal.finished(writing, True)
        if answer is not None:
            self.hub.perform(answer, self.now)
        self.hub.take_outside()


def _operation(
    number: int, headers: list[tuple[str, str]], payload: bytes = b"", target: str = "app"
) -> bytes:
    return Frame.build(
        TYPE_SERVER, target, number, payload, message_id="x", headers=headers, pending_response=True
    ).raw


def _frames(count: int) -> list[bytes]:
    body = bytes(100)
    return [
        Frame.build(TYPE_QUEUE_MESSAGE, "c", 1, body, message_id=f"{number:032x}", source="me").raw
        for number in range(count)
    ]


def _blocks(frames: list[bytes], most_bytes: int) -> list[bytes]:
    size = len(frames[0])
    at_once = max(1, most_bytes // size)
    return [b"".join(frames[start : start + at_once]) for start in range(0, len(frames), at_once)]


def _commit(server: _Server, epoch: int, blocks: list[bytes]) -> tuple[int, int, int, int]:
    """Processor time of pushing, of the commit and of the write; its wall time; nanoseconds."""
    server.say(_operation(OP_OPEN_TRANSACTION, [("Epoch", str(epoch))]))
    number = str(epoch)
    pushes = [_operation(OP_PUSH_TRANSACTION, [("Transaction", number)], each) for each in blocks]
    commit = _operation(OP_COMMIT_TRANSACTION, [("Epoch", number)], f"[{number}]".encode())
    began = time.process_time_ns()
    for push in pushes:
        # As they come from a socket.
        for start in range(0, len(push), 65_536):
            server.say(push[start : start + 65_536])
    pushed = time.process_time_ns()
    server.say(commit)
    committed, wall = time.process_time_ns(), time.perf_counter_ns()
    server.write()
    ended, wall_end = time.process_time_ns(), time.perf_counter_ns()
    return pushed - began, committed - pushed, ended - committed, wall_end - wall


def _plain(server: _Server, frames: list[bytes]) -> tuple[int, int]:
    """Processor time of pushing one by one, and of the write."""
    stream = b"".join(frames)
    began = time.process_time_ns()
    for start in range(0, len(stream), 65_536):
        server.say(stream[start : start + 65_536])
    pushed = time.process_time_ns()
    server.write()
    return pushed - began, time.process_time_ns() - pushed


def measure(directory: Path, count: int, rounds: int = _ROUNDS) -> dict[str, Any]:
    """Medians of some rounds, in which commits and plain pushes take turns."""
    frames = _frames(count)
    blocks = _blocks(frames, _BLOCK_BYTES)
    commits: list[tuple[int, int, int, int]] = []
    plains: list[tuple[int, int]] = []
    for place in range(rounds):
        folder = directory / str(place)
        server = _Server(folder / "commits")
        commits.append(_commit(server, 1, blocks))
        kept = server.store.offsets([1])[0].count
        assert kept == count, f"{kept} of {count} messages are kept"
        server.store.close(clean=False)
        server = _Server(folder / "plain")
        plains.append(_plain(server, frames))
        kept = server.store.offsets([1])[0].count
        assert kept == count, f"{kept} of {count} messages are kept"
        server.store.close(clean=False)
    compiled = not tmqp.frames.__file__.endswith(".py")
    return {
        "build": "compiled" if compiled else "interpreted",
        "messages": count,
        "pushed_ns": median([each[0] for each in commits]) / count,
        "commit_ms": median([each[1] for each in commits]) / 1e6,
        "written_ns": median([each[2] for each in commits]) / count,
        "written_s": median([each[3] for each in commits]) / 1e9,
        "plain_pushed_ns": median([each[0] for each in plains]) / count,
        "plain_written_ns": median([each[1] for each in plains]) / count,
    }


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    place = Path(tempfile.mkdtemp(prefix="tmqp-bench-", dir=options.directory or Path()))
    try:
        found = measure(place, options.messages)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(found, indent=2) if options.json else _table(found))
    return 0


def _table(found: dict[str, Any]) -> str:
    count = found["messages"]
    both = found["pushed_ns"] + found["written_ns"]
    plain = found["plain_pushed_ns"] + found["plain_written_ns"]
    written = f"{found['written_ns']:>8,.0f} ns a message, all of it in {found['written_s']:.2f} s"
    pushes = f"{found['plain_pushed_ns']:>8,.0f} ns a message"
    lines = [
        f"Transactions, {found['build']}, {count:,} messages of 100 bytes, processor time",
        f"  pushed in blocks of 1 MB  {found['pushed_ns']:>8,.0f} ns a message",
        f"  the commit's own step     {found['commit_ms']:>8.2f} ms",
        f"  written                   {written}",
        f"  plain pushes              {pushes}, written {found['plain_written_ns']:,.0f} ns",
        f"  a transaction costs {both / plain:.2f} of plain durable pushes",
    ]
    return "\n".join(lines)
