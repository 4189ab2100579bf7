"""The command: arguments, and a line for each measurement."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Final

import anyio

from tmqp_bench.codec import PLACES
from tmqp_bench.replicated.appends import BLOCK_BYTES, appended
from tmqp_bench.replicated.jetstream import jetstream
from tmqp_bench.replicated.kafka import kafka
from tmqp_bench.replicated.load import Contender, gap, pushed
from tmqp_bench.replicated.ours import etcd_cluster, group, one_server
from tmqp_bench.replicated.rabbitmq import rabbitmq

__all__ = ["add_arguments", "run"]

_HELP: Final = """\
Pushes messages of 100 bytes, so many at a time, each until it is confirmed: into a durable queue of
one server with a data directory and of a group of three servers on three servers of etcd, and with
--peers into a quorum queue of RabbitMQ, a stream of JetStream with three copies that are synced at
every write, and a topic of Kafka with acks=all; all on this machine and one disk.  Then the leader
is killed (-9) while messages are pushed: the gap is the longest time without a confirm.  Each has a
client in Python, which is a part of what is measured.  Ratios count, not the numbers: three
machines have three disks, and a network between them.  --only appends measures the group's log
alone, with one append out at a time, as a leader has it, and with two and four.
"""
_NAMES: Final = ("local", "group", "rabbitmq", "jetstream", "kafka")
_APPENDS: Final = "appends"
_AT_A_TIME: Final = (1, 2, 4)


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "replicated",
        help="a group of servers on etcd, against one server and against other clusters",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--etcd", help="the program etcd, 3.6 or newer (default: in the path)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--in-flight", type=int, default=256, help="pushes at a time")
    parser.add_argument("--kills", type=int, default=5, help="of leaders")
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default: here)")
    parser.add_argument("--build", choices=sorted(PLACES), default="interpreted", help="of ours")
    parser.add_argument("--peers", action="store_true", help="others, too")
    names = (*_NAMES, _APPENDS)
    parser.add_argument("--only", choices=names, action="append", help="these, nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print a line for each; 2 when something is not there."""
    chosen = arguments.only or (_NAMES if arguments.peers else _NAMES[:2])
    etcd = arguments.etcd or shutil.which("etcd")
    if etcd is None and {"group", _APPENDS}.intersection(chosen):
        print("there is no etcd in the path: name it by --etcd")
        return 2
    contenders: dict[str, Callable[[Path], AbstractContextManager[Contender]]] = {
        "local": lambda folder: one_server(folder, arguments.build),
        "group": lambda folder: group(folder, arguments.build, str(etcd)),
        "rabbitmq": rabbitmq,
        "jetstream": jetstream,
        "kafka": kafka,
    }
    logging.disable(logging.CRITICAL)  # clients tell of each connection that they lose
    rates: dict[str, float] = {}
    print(f"load average {os.getloadavg()[0]:.1f} before", flush=True)
    if _APPENDS in chosen:
        _measure_appends(str(etcd), arguments.directory or Path.cwd(), arguments.seconds)
    for name in [each for each in chosen if each != _APPENDS]:
        with (
            tempfile.TemporaryDirectory(dir=arguments.directory or Path.cwd()) as place,
            contenders[name](Path(place)) as contender,
        ):
            times_s = anyio.run(pushed, contender, arguments.seconds, arguments.in_flight)
            rates[name] = len(times_s) / arguments.seconds
            print(f"{contender.name:<44} {_shown(times_s, arguments.seconds)}", flush=True)
            for _ in range(0 if name == "local" else arguments.kills):
                gap_s = anyio.run(gap, contender, arguments.in_flight)
                print(f"{'':<44} {gap_s:.2f} s without a confirm: leader killed", flush=True)
    if rates.get("local"):
        for name, rate in rates.items():
            print(f"{name} against local: {rate / rates['local']:.2f}")
    return 0


def _measure_appends(etcd: str, directory: Path, seconds: float) -> None:
    from tmqp_server.storage.etcd import EtcdAccess, EtcdLog  # noqa: PLC0415 - an extra

    with (
        tempfile.TemporaryDirectory(dir=directory) as place,
        etcd_cluster(etcd, Path(place)) as addresses,
    ):
        for at_a_time in _AT_A_TIME:
            with closing(EtcdLog(EtcdAccess(addresses), f"{at_a_time} at a time")) as log:
                found = appended(log, at_a_time, BLOCK_BYTES, seconds)
            name = f"appends of {BLOCK_BYTES >> 10} KiB, {at_a_time} at a time"
            shown = _shown(found.times_s, seconds, "appends")
            print(f"{name:<44} {shown}   {found.overtook} asked again", flush=True)


def _shown(times_s: list[float], seconds: float, what: str = "messages") -> str:
    ordered = sorted(times_s) or [0.0]
    middle, high = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    return (
        f"{len(times_s) / seconds:8,.0f} {what}/s   p50 {middle * 1000:7.1f} ms"
        f"   p99 {high * 1000:7.1f} ms"
    )
