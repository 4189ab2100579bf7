"""The measurement of one large commit: a real server with its store, and its memory."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import tmqp
from tmqp.models import QueueOptions
from tmqp_client import sync

__all__ = ["add_arguments", "run"]

_HELP: Final = """\
Pushes messages of 1,000 bytes in one transaction into a server with a data directory, commits, and
says how much memory the server had at most (VmHWM of Linux), before and behind the commit.
"""


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "large-commit",
        help="one commit that is larger than the server's memory for transactions",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--megabytes", type=_megabytes, default=700, help="of payloads (default 700)"
    )
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default: here)")


def _megabytes(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"megabytes are 1..10000, got {text}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print a table."""
    with tempfile.TemporaryDirectory(dir=arguments.directory or Path.cwd()) as folder:
        data = Path(folder) / "data"
        command = [sys.executable, "-m", "tmqp_server", "--listen", "tmq://127.0.0.1:0"]
        with subprocess.Popen(
            [*command, "--data", str(data)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as server:
            try:
                _measure(server, data, arguments.megabytes)
            finally:
                server.terminate()
    return 0


def _measure(server: subprocess.Popen[bytes], data: Path, megabytes: int) -> None:
    address = _address(server)
    count = megabytes * 1_000
    build = "compiled" if tmqp.compiled else "interpreted"
    with sync.connect(address, name="large-commit", type="bench") as client:
        options = QueueOptions(durable=True, retain_for_readers=True)
        client.create_queue("large", 1, options, status="push")
        print(f"server at rest      {_resident_mb(server):8.0f} MB resident ({build})")
        transaction = client.open_transaction("large-commit", 1)
        began = time.monotonic()
        pushed = client.push_transaction(transaction, "large", 1, _payloads(count))
        took = time.monotonic() - began
        print(f"pushed in {took:6.1f} s  {_resident_mb(server):8.0f} MB resident at most")
        aside = sum(path.stat().st_size for path in (data / "staged").glob("*"))
        print(f"put aside           {aside / 1e6:8.0f} MB on disk")
        began = time.monotonic()
        done = client.commit_transaction("large-commit", 1, [pushed], timeout_s=600)
        took = time.monotonic() - began
        print(f"committed in {took:4.1f} s {_resident_mb(server):8.0f} MB resident at most")
        kept = client.queue_information("large", 1).messages
        print(f"{done.count:,} messages committed, {kept:,} in the queue")


def _address(server: subprocess.Popen[bytes]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        for word in line.decode().replace(",", " ").split():
            if word.startswith("tmq://"):
                return word.rstrip(".")
    raise RuntimeError("the server did not start")


def _payloads(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield (b"%012d" % number).ljust(1_000, b".")


def _resident_mb(server: subprocess.Popen[bytes]) -> float:
    status = Path(f"/proc/{server.pid}/status").read_text()
    (line,) = [each for each in status.splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) / 1_000
