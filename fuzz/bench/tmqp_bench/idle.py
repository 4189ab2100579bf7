"""The measurement of connections that do nothing: what each of them keeps in memory."""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tmqp_bench.broker import mqtt_wire, nats_wire, redis_wire, tmqp_wire
from tmqp_bench.broker.processes import StartError
from tmqp_bench.broker.servers import start, version_of

__all__ = ["add_arguments", "measure", "run"]

_HELP: Final = """\
Opens many connections, each let in and subscribed to nothing (peers: to one subject), and says by
how much the memory of the server has grown for each.  What the kernel keeps for a socket is not in
it.  Server and command need a file for each connection: the command raises the soft limit of both
as far as the hard limit (ulimit -Hn) lets it.
"""
_EXAMPLES: Final = """\
examples (make compiled first, for the compiled build):
  PYTHONPATH=fuzz/bench python -m tmqp_bench idle
  PYTHONPATH=fuzz/bench python -m tmqp_bench idle --connections 1000 --peers
"""
#: Files that this process and the server need beside their connections.
_OTHER_FILES: Final = 100

_Connect = Callable[[int, int], socket.socket]


def _ours(port: int, number: int) -> socket.socket:
    return tmqp_wire.greet(port, f"idle{number}")


def _nats(port: int, number: int) -> socket.socket:
    return nats_wire.Subscriber(port, 100).socket


def _redis(port: int, number: int) -> socket.socket:
    return redis_wire.Subscriber(port, 100).socket


def _mosquitto(port: int, number: int) -> socket.socket:
    return mqtt_wire.Subscriber(port, 100, 0, f"idle{number}").socket


_OURS: Final[dict[str, tuple[str, str, _Connect]]] = {
    "tmqp": ("tmqp", "compiled", _ours),
    "tmqp on uvloop": ("tmqp", "compiled+uvloop", _ours),
    "tmqp, interpreted": ("tmqp", "interpreted", _ours),
}
_PEERS: Final[dict[str, tuple[str, str, _Connect]]] = {
    "nats-server": ("nats", "core", _nats),
    "Redis pub/sub": ("redis", "memory", _redis),
    "Mosquitto": ("mosquitto", "", _mosquitto),
}


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "idle",
        help="the memory of idle connections",
        description=_HELP,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--connections", type=_count, default=10_000, help="default 10000")
    parser.add_argument("--peers", action="store_true", help="measure other brokers too")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 10 <= value <= 100_000:
        raise argparse.ArgumentTypeError(f"connections are 10..100000, got {text}")
    return value


def measure(broker: str, setting: str, connect: _Connect, count: int) -> dict[str, float]:
    """The server's memory with one connection and with that many.

    :raises StartError: when the server does not come up.
    :raises OSError: when it does not take them all.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tmqp-bench-") as folder,
        contextlib.ExitStack() as held,
    ):
        server = start(broker, setting, Path(folder))
        held.callback(server.stop)
        held.enter_context(connect(server.port, 0))
        before = server.memory_bytes()
        for number in range(1, count):
            held.enter_context(connect(server.port, number))
        after = server.memory_bytes()
    return {"connections": count, "before_bytes": before, "after_bytes": after}


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    count: int = options.connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + _OTHER_FILES:
        if hard != resource.RLIM_INFINITY and hard < count + _OTHER_FILES:
            print(
                f"{count} connections need {count + _OTHER_FILES} open files, and the hard limit"
                f" is {hard}: raise it (as root: ulimit -Hn {count + _OTHER_FILES}), or measure"
                f" with --connections {max(10, hard - _OTHER_FILES)}",
                file=sys.stderr,
            )
            return 1
        # The server inherits it.
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + _OTHER_FILES, hard))
    found: dict[str, dict[str, float]] = {}
    missing: dict[str, str] = {}
    for title, (broker, setting, connect) in (_OURS | (_PEERS if options.peers else {})).items():
        if broker != "tmqp" and version_of(broker) is None:
            missing[title] = "not installed"
            continue
        try:
            found[title] = measure(broker, setting, connect, count)
        except (StartError, OSError) as error:
            missing[title] = str(error)
    if options.json:
        print(json.dumps({"found": found, "missing": missing}, indent=2))
    else:
        print(_table(count, found, missing))
    return 0 if found else 1


def _table(count: int, found: dict[str, dict[str, float]], missing: dict[str, str]) -> str:
    lines = [
        f"{count:,} idle connections",
        "",
        "                   before MB  after MB  bytes each",
        "-----------------  ---------  --------  ----------",
    ]
    for title, each in found.items():
        before, after = each["before_bytes"], each["after_bytes"]
        lines.append(
            f"{title:<17}  {before / 1e6:>9.1f}  {after / 1e6:>8.1f}"
            f"  {(after - before) / (count - 1):>10,.0f}"
        )
    if missing:
        lines += ["", "Missing:", *[f"  {title}: {why}" for title, why in missing.items()]]
    return "\n".join(lines)
