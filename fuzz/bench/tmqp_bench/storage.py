"""Owns the measurement of the store: appending beside a bare file, opening, reading, memory."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import tmqp
from tmqp_server.storage.port import KeepChannel, KeepQueue, Retention, StoreBatch, StoredMessage
from tmqp_server.storage.sqlite import SqliteStore

__all__ = ["add_arguments", "run"]

_BODY: Final = b"x" * 100
_NOW_US: Final = 1_700_000_000_000_000
_EVER: Final = 1 << 62
_ROUNDS: Final = 7

_HELP: Final = """\
Measures the SQLite store alone: no broker, no network.

  append     messages/s with 256 messages of 100 bytes in each write, beside a file to which the
             same bytes are appended with one fdatasync for each 256; in turn, medians of the rounds
  one        writes/s with one message each, beside the same
  settle     messages/s that are settled, 256 in a write
  recover    a new process opens the store: seconds, and how much its memory grows
  fetch      the same process reads every message: seconds, and its memory then
"""
_EXAMPLES: Final = """\
examples (with build/compiled, after make compiled; with src for the interpreted build):
  PYTHONPATH=build/compiled:fuzz/bench python -m tmqp_bench storage
  PYTHONPATH=build/compiled:fuzz/bench python -m tmqp_bench storage --messages 5000000
  PYTHONPATH=src:fuzz/bench python -m tmqp_bench storage --messages 20000 --directory /mnt/disk
"""

#: What the new process does; it prints one line of JSON.
_OPENER: Final = """\
import json, sys, time
from pathlib import Path
from tmqp_server.storage.sqlite import SqliteStore
def memory():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
before = memory()
begin = time.perf_counter()
store = SqliteStore(Path(sys.argv[1]), floor_bytes=0)
found = store.recover()
recovered = time.perf_counter()
opened = memory()
count = after = 0
while messages := store.fetch(1, after, 1 << 62, 256, 1 << 30, 0):
    count += len(messages)
    after = messages[-1].sequence
fetched = time.perf_counter()
owed = found.queues[0].regular_count
assert count == owed, (count, owed)
print(json.dumps({"messages": count, "recover_s": recovered - begin, "fetch_s": fetched - recovered,
    "recover_bytes": opened - before, "fetch_bytes": memory() - before}))
store.close(clean=True)
"""


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "storage",
        help="the store beside a bare file; opening and reading it",
        description=_HELP,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--messages", type=_count, default=1_000_000, help="in the store to open (default 1000000)"
    )
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default: here)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 256 <= value <= 100_000_000:
        raise argparse.ArgumentTypeError(f"messages are 256..100000000, got {text}")
    return value


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    place = Path(tempfile.mkdtemp(prefix="tmqp-bench-", dir=options.directory or Path()))
    try:
        found = _measure(place, options.messages)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(_table(found))
    return 0


def _measure(place: Path, messages: int) -> dict[str, Any]:
    store = SqliteStore(place / "data", floor_bytes=0)
    store.recover()
    batch = StoreBatch()
    batch.changes = [KeepChannel("c", b""), KeepQueue(1, "c", 1, b"", Retention())]
    store.write(batch, _NOW_US)
    sequence = 0
    rates: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        for name, size, writes in (("append", 256, 100), ("one", 1, 200)):
            bare = _append_bare(place / "bare", size, writes)
            ours = _append(store, sequence, size, writes)
            sequence += size * writes
            rates.setdefault(f"bare_{name}", []).append(size * writes / bare)
            rates.setdefault(name, []).append(size * writes / ours)
            rates.setdefault(f"{name}_ratio", []).append(bare / ours)
    begin = time.perf_counter()
    for first in range(1, sequence + 1, 256):
        batch = StoreBatch()
        batch.settled[1] = list(range(first, min(first + 256, sequence + 1)))
        store.write(batch, _NOW_US)
    settled = sequence / (time.perf_counter() - begin)
    for _ in range(0, messages, 256):
        _append(store, sequence, 256, 1)
        sequence += 256
    store.close(clean=True)
    size = sum(path.stat().st_size for path in (place / "data").iterdir())
    opened = subprocess.run(
        [sys.executable, "-c", _OPENER, str(place / "data")],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = {name: statistics.median(values) for name, values in rates.items()}
    found |= {"settle": settled, "disk_bytes": size, **json.loads(opened.stdout)}
    found["build"] = "compiled" if tmqp.compiled else "interpreted"
    return found


def _append_bare(path: Path, size: int, writes: int) -> float:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        begin = time.perf_counter()
        for _ in range(writes):
            os.write(file, _BODY * size)
            os.fdatasync(file)
        return time.perf_counter() - begin
    finally:
        os.close(file)


def _append(store: SqliteStore, sequence: int, size: int, writes: int) -> float:
    """Append some writes; what makes the messages is not counted."""
    took = 0.0
    for _ in range(writes):
        batch = StoreBatch()
        batch.appended[1] = [
            StoredMessage(n, _NOW_US, 0, 0, 0, 0, 0, 0, 0, 100, _BODY)
            for n in range(sequence + 1, sequence + size + 1)
        ]
        sequence += size
        begin = time.perf_counter()
        store.write(batch, _NOW_US)
        took += time.perf_counter() - begin
    return took


def _table(found: dict[str, Any]) -> str:
    count = found["messages"]
    lines = [f"The store, {found['build']}, messages of 100 bytes"]
    for name, label in (("append", "append, 256 a write"), ("one", "append, one a write")):
        ours, bare, ratio = found[name], found[f"bare_{name}"], found[f"{name}_ratio"]
        said = f"{ours:>10,.0f} messages/s   bare file {bare:,.0f}   ratio {ratio:.2f}"
        lines.append(f"  {label}  {said}")
    lines.append(f"  settle, 256 a write  {found['settle']:>10,.0f} messages/s")
    for name in ("recover", "fetch"):
        seconds, grown = found[f"{name}_s"], found[f"{name}_bytes"] >> 20
        lines.append(f"  {name} {count:,}: {seconds:.2f} s, process larger by {grown} MiB")
    lines.append(f"  on the disk: {found['disk_bytes'] / count:.0f} bytes a message")
    return "\n".join(lines)
