"""The measurement of a backlog: a server with many messages on its disk, and its restart.

The queue has no consumer while it is filled, so nearly all of it is on the disk only.  The restart
is timed from the start of the process to the first delivery that a consumer receives.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tmqp_bench.broker import tmqp_wire
from tmqp_bench.broker.processes import ServerProcess, StartError, pin_load
from tmqp_bench.broker.servers import start
from tmqp_bench.progress import show

__all__ = ["Backlog", "add_arguments", "measure", "run"]

_HELP: Final = """\
Fills a durable queue of a whole server by TMQP, then starts the server anew on the same data.

  fill       messages/s that were confirmed as saved, one producer, 4,096 in flight
  memory     resident memory of the server with all of them on its disk, and its peak meanwhile
  restart    seconds from the start of the new process to the first delivery to a consumer, after
             a clean stop and after kill -9; and its resident memory then
"""
_EXAMPLES: Final = """\
examples (make compiled first; a million messages take about 200 MB of disk):
  PYTHONPATH=build/compiled:fuzz/bench python -m tmqp_bench backlog
  PYTHONPATH=build/compiled:fuzz/bench python -m tmqp_bench backlog --messages 5000000
  PYTHONPATH=src:fuzz/bench python -m tmqp_bench backlog --messages 20000 --build interpreted
"""
_OPTIONS: Final = '{"RequestAcknowledge":true,"Durable":true}'
_PORTION: Final = 2_048
_WAIT_S: Final = 60.0
#: How often the memory is looked at, in portions.
_LOOK: Final = 50


@dataclass(frozen=True)
class Backlog:
    """What was measured; bytes and seconds."""

    build: str
    messages: int
    payload_bytes: int
    fill_s: float
    memory_bytes: int
    peak_bytes: int
    disk_bytes: int
    clean_restart_s: float
    clean_restart_bytes: int
    killed_restart_s: float
    killed_restart_bytes: int


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "backlog",
        help="memory and restart of a server with millions of messages on disk",
        description=_HELP,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--messages", type=_count, default=1_000_000, help="in the queue (default 1000000)"
    )
    parser.add_argument(
        "--payload", type=_size, default=100, metavar="BYTES", help="of a message (default 100)"
    )
    parser.add_argument("--build", choices=("compiled", "interpreted"), default="compiled")
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default: here)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not _PORTION <= value <= 100_000_000:
        raise argparse.ArgumentTypeError(f"messages are {_PORTION}..100000000, got {text}")
    return value


def _size(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 4 <= value <= 65_536:
        raise argparse.ArgumentTypeError(f"a payload is 4..65536 bytes, got {text}")
    return value


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    place = Path(tempfile.mkdtemp(prefix="tmqp-bench-", dir=options.directory or Path()))
    try:
        found = measure(place, options.build, options.messages, options.payload, show)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (StartError, OSError) as error:
        print(f"the backlog could not be measured: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(asdict(found), indent=2) if options.json else _table(found))
    return 0


def measure(
    place: Path, build: str, messages: int, payload: int, progress: Callable[[str], None]
) -> Backlog:
    """Fill a server below a directory, and start it again twice.

    :param progress: called with a short text as it continues.
    :raises StartError: when a server does not come up.
    :raises OSError: when a connection fails, or the server stops answering.
    """
    place = place.resolve()
    pin_load()
    setting = f"{build}+durable"
    server = start("tmqp", setting, place)
    try:
        tmqp_wire.create_queue(server.port, "push", _OPTIONS)
        fill_s, peak = _fill(server, messages, payload, progress)
        memory = server.memory_bytes()
    finally:
        progress("stopping")
        server.stop()
    disk = sum(path.stat().st_size for path in (place / "data").iterdir())
    progress("starting after a clean stop")
    clean = _restart(setting, place, kill=True)
    progress("starting after kill -9")
    killed = _restart(setting, place, kill=False)
    progress("")
    return Backlog(build, messages, payload, fill_s, memory, peak, disk, *clean, *killed)


def _fill(
    server: ServerProcess, messages: int, payload: int, progress: Callable[[str], None]
) -> tuple[float, int]:
    """Push so many; seconds, and the most memory that was seen."""
    teller = tmqp_wire.Teller(server.port, "teller", payload, confirms=True)
    teller.socket.settimeout(_WAIT_S)
    begun = time.perf_counter()
    sent = confirmed = peak = turns = 0
    while confirmed < messages:
        if sent < messages and sent - confirmed <= _PORTION:
            count = min(_PORTION, messages - sent)
            teller.socket.sendall(teller.messages(count))
            sent += count
        data = teller.socket.recv(262_144)
        if not data:
            raise ConnectionError("the server closed the connection")
        confirmed += teller.confirmed(data)
        turns += 1
        if turns % _LOOK == 0:
            peak = max(peak, server.memory_bytes())
            progress(f"filling: {confirmed:,} of {messages:,}")
    took = time.perf_counter() - begun
    teller.socket.close()
    return took, max(peak, server.memory_bytes())


def _restart(setting: str, place: Path, *, kill: bool) -> tuple[float, int]:
    """Start a server where one was; seconds to the first delivery, and its memory then."""
    begun = time.perf_counter()
    server = start("tmqp", setting, place)
    try:
        tmqp_wire.take_one(server.port, "taker")
        return time.perf_counter() - begun, server.memory_bytes()
    finally:
        if kill:
            server.kill()
        server.stop()


def _table(found: Backlog) -> str:
    rate = found.messages / found.fill_s
    clean, killed = found.clean_restart_bytes / 1e6, found.killed_restart_bytes / 1e6
    memory, peak, disk = found.memory_bytes / 1e6, found.peak_bytes / 1e6, found.disk_bytes / 1e6
    lines = [
        f"A server, {found.build}, with {found.messages:,} messages of {found.payload_bytes} bytes",
        f"  fill     {rate:>10,.0f} messages/s, confirmed",
        f"  memory   {memory:>10,.0f} MB, at most {peak:,.0f}",
        f"  on disk  {disk:>10,.0f} MB after a clean stop",
        f"  restart  {found.clean_restart_s:>10.2f} s after a clean stop, {clean:,.0f} MB",
        f"           {found.killed_restart_s:>10.2f} s after kill -9, {killed:,.0f} MB",
    ]
    return "\n".join(lines)
