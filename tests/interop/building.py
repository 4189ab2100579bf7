"""Clients by others: what each cannot do, and how to fetch, build and start a program with it.

What is fetched and built stands in ``build/cache/interop``, and stays there until a source changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

from tests.project import ROOT

__all__ = [
    "CACHE",
    "EXPECTED",
    "QUICK_JAVA",
    "Client",
    "compile_program",
    "fetch",
    "go_build",
    "java_build",
    "made",
    "need",
    "npm",
    "run",
    "unavailable",
]

CACHE: Final = ROOT / "build" / "cache" / "interop"
_MOST_S: Final = 300

#: The clients that the caller names (``make interop CLIENTS=...``): those must be there.
EXPECTED: Final = tuple(os.environ.get("TMQP_CLIENTS", "").split())
#: A Java program that lives for seconds needs one compiler and the simplest collector.
QUICK_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


def unavailable(client: str, reason: str) -> NoReturn:
    """Skip a test whose client is not to be had; fail where it was asked for by name."""
    if client in EXPECTED:
        pytest.fail(f"{client}: {reason}", pytrace=False)
    pytest.skip(f"{client}: {reason}")


class Client:
    """A client library, and the program with it.

    :param lacks: the scenarios that the library cannot play, each with the reason.
    :param build: gives the program's command and the folder that it runs in, and makes both first
        if need be.
    """

    def __init__(
        self,
        name: str,
        version: str,
        language: str,
        build: Callable[[], tuple[list[str], Path]],
        lacks: Mapping[str, str],
    ) -> None:
        self.name = name
        self.version = version
        self.language = language
        self.lacks = lacks
        self._build = build
        self._built: tuple[list[str], Path] | None = None

    def row(self) -> list[str]:
        """The client's row of the guide's table."""
        reasons: dict[str, list[str]] = {}
        for scenario, reason in self.lacks.items():
            reasons.setdefault(reason, []).append(scenario)
        lacks = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
        return [self.name, self.version, self.language, "; ".join(lacks)]

    def command(self) -> tuple[list[str], Path]:
        """Give the program's command and its folder; fetched and built by the first call."""
        if self._built is None:
            self._built = self._build()
        return self._built


@contextmanager
def made(folder: Path, sources: list[Path]) -> Iterator[bool]:
    """Whether a folder has to be made from its sources; the block makes it, alone."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = folder / ".made"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_made = stamp.exists() and stamp.read_text(encoding="ascii") == digest
        yield not is_made
        stamp.write_text(digest, encoding="ascii")


def fetch(client: str, words: list[str], folder: Path, most_s: float = _MOST_S) -> None:
    """Run what fetches packages; skips the test if they cannot be fetched, or not in time."""
    try:
        done = run(words, folder, most_s)
    except subprocess.TimeoutExpired:
        unavailable(client, f"its packages cannot be fetched within {most_s:.0f} s ({words[0]})")
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        unavailable(client, f"its packages cannot be fetched ({words[0]}: {last})")


def npm(client: str, sources: Path, folder: Path) -> None:
    """Have npm bring the packages that ``package.json`` names; skips the test if it cannot."""
    need(client, "node", "npm")
    files = [sources / "package.json", sources / "package-lock.json"]
    with made(folder, files) as is_due:
        if is_due:
            for file in files:
                shutil.copy(file, folder)
            fetch(client, ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder)


def go_build(client: str, sources: Path, folder: Path, program: str) -> None:
    """Build a program in Go, if need be; skips the test where its modules cannot be had."""
    need(client, "go")
    with made(folder, [sources / name for name in ("main.go", "go.mod", "go.sum")]) as is_due:
        if is_due:
            fetch(client, ["go", "mod", "download"], sources)
            words = ["go", "build", "-mod=readonly", "-o", str(folder / program), "."]
            compile_program(words, sources)


def java_build(
    client: str, pom: Path, folder: Path, programs: list[Path], properties: Mapping[str, str]
) -> list[str]:
    """Have Maven bring what a ``pom.xml`` names, compile programs with it, if need be, and give the
    command that runs them, without the name of a class; skips the test if it cannot be had.

    :param properties: set those of the ``pom.xml``.
    """
    need(client, "java", "javac", "mvn")
    with made(folder, [pom, *programs]) as is_due:
        if is_due:
            shutil.rmtree(folder / "lib", ignore_errors=True)
            shutil.rmtree(folder / "classes", ignore_errors=True)
            words = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
            words += [f"-D{name}={value}" for name, value in properties.items()]
            output = f"-DoutputDirectory={folder / 'lib'}"
            fetch(client, [*words, "-DincludeScope=runtime", output], folder)
            words = ["javac", "-Xlint:all,-processing,-path,-classfile", "-Werror", "-d", "classes"]
            compile_program([*words, "-cp", "lib/*", *map(str, programs)], folder)
    return ["java", *QUICK_JAVA, "-cp", os.pathsep.join(["classes", "lib/*"])]


def compile_program(words: list[str], folder: Path) -> None:
    """Run a compiler; its errors are ours."""
    done = run(words, folder)
    assert done.returncode == 0, done.stdout


def run(
    words: list[str], folder: Path, most_s: float = _MOST_S
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder; what it prints, and its errors, are its output.

    :raises subprocess.TimeoutExpired: it did not end within ``most_s`` seconds, and was ended.
    """
    return subprocess.run(
        words,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=most_s,
    )


def need(client: str, *programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            unavailable(client, f"there is no {program} here")
