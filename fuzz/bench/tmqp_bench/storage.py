"""The measurement of the store: its arguments and its table; a process of its own measures."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

__all__ = ["add_arguments", "run"]

_HELP: Final = """\
Measures the SQLite store alone: no broker, no network.

  append     messages/s with 256 messages of 100 bytes in each write, beside a file to which the
             same bytes are appended with one fdatasync for each 256; in turn, medians of the rounds
  consumed   the same, where each write also settles the messages of the one before
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


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "storage",
        help="the store, compared with a bare file; opening and reading it",
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
        ended = subprocess.run(
            [sys.executable, "-m", "tmqp_bench.storing", str(place), str(options.messages)],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if ended.returncode:
        print("the store could not be measured", file=sys.stderr)
        return 1
    found = json.loads(ended.stdout)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(_table(found))
    return 0


def _table(found: dict[str, Any]) -> str:
    count = found["messages"]
    lines = [f"The store, {found['build']}, messages of 100 bytes"]
    for name, label in (
        ("append", "append, 256 a write"),
        ("consumed", "the same, consumed "),
        ("one", "append, one a write"),
    ):
        ours, bare, ratio = found[name], found[f"bare_{name}"], found[f"{name}_ratio"]
        said = f"{ours:>10,.0f} messages/s   bare file {bare:,.0f}   ratio {ratio:.2f}"
        lines.append(f"  {label}  {said}")
    lines.append(f"  settle, 256 a write  {found['settle']:>10,.0f} messages/s")
    for name in ("recover", "fetch"):
        seconds, grown = found[f"{name}_s"], found[f"{name}_bytes"] >> 20
        lines.append(f"  {name} {count:,}: {seconds:.2f} s, process larger by {grown} MiB")
    lines.append(f"  on the disk: {found['disk_bytes'] / count:.0f} bytes a message")
    return "\n".join(lines)
