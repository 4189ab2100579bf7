"""Clients of NSQ by others: what each cannot do, and how to build and start a program with it.

What is fetched and built stands in ``build/cache/interop``, and stays there until a source changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

from tests.project import ROOT

__all__ = ["CLIENTS", "EXPECTED", "FOLDER", "MANY", "Client", "java", "unavailable"]

FOLDER: Final = Path(__file__).parent
_CACHE: Final = ROOT / "build" / "cache" / "interop"
_MOST_S: Final = 300

#: The clients that the caller names (``make interop CLIENTS=...``): those must be there.
EXPECTED: Final = tuple(os.environ.get("TMQP_CLIENTS", "").split())
#: What a client lacks that reads only blocks with one message each.
MANY: Final = "many messages in one block"


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
def _made(folder: Path, sources: list[Path]) -> Iterator[bool]:
    """Whether a folder has to be made from its sources; the block makes it, alone."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = folder / ".made"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_made = stamp.exists() and stamp.read_text(encoding="ascii") == digest
        yield not is_made
        stamp.write_text(digest, encoding="ascii")


def _fetch(client: str, words: list[str], folder: Path) -> None:
    """Run what fetches packages; skips the test if they cannot be fetched."""
    done = _run(words, folder)
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        unavailable(client, f"its packages cannot be fetched ({words[0]}: {last})")


def _compile(words: list[str], folder: Path) -> None:
    """Run a compiler; its errors are ours."""
    done = _run(words, folder)
    assert done.returncode == 0, done.stdout


def _run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_MOST_S,
    )


def _need(client: str, *programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            unavailable(client, f"there is no {program} here")


def _python(name: str, version: str) -> Callable[[], tuple[list[str], Path]]:
    def build() -> tuple[list[str], Path]:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            unavailable(name, "not installed: pip install 'tmqp[interop]'")
        assert found.startswith(version), f"the table says {name} {version}, installed is {found}"
        patch = ["-m", "gevent.monkey", "--module"] if name == "gnsq" else ["-m"]
        return [sys.executable, *patch, f"tests.interop.nsq.python.{name}_client"], ROOT

    return build


def _node() -> tuple[list[str], Path]:
    _need("nsqjs", "node", "npm")
    sources, folder = FOLDER / "node", _CACHE / "node"
    files = [sources / "package.json", sources / "package-lock.json"]
    with _made(folder, files) as is_due:
        if is_due:
            for file in files:
                shutil.copy(file, folder)
            _fetch("nsqjs", ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder)
    return ["node", str(sources / "client.js")], folder


def _go() -> tuple[list[str], Path]:
    _need("go-nsq", "go")
    sources, folder = FOLDER / "go", _CACHE / "go"
    with _made(folder, [sources / name for name in ("main.go", "go.mod", "go.sum")]) as is_due:
        if is_due:
            _fetch("go-nsq", ["go", "mod", "download"], sources)
            _compile(["go", "build", "-mod=readonly", "-o", str(folder / "client"), "."], sources)
    return [str(folder / "client")], folder


def java(main: str) -> tuple[list[str], Path]:
    """Give the command of a Java program, and its folder, with nsq-client beside it."""
    _need("nsq-client", "java", "javac", "mvn")
    sources, folder = FOLDER / "java", _CACHE / "java"
    programs = sorted(sources.glob("*.java"))
    with _made(folder, [sources / "pom.xml", *programs]) as is_due:
        if is_due:
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            shutil.rmtree(folder / "lib", ignore_errors=True)
            words = ["mvn", "-q", "-B", "-f", str(sources / "pom.xml"), *goal]
            _fetch("nsq-client", [*words, f"-DoutputDirectory={folder / 'lib'}"], folder)
            shutil.rmtree(folder / "classes", ignore_errors=True)
            words = ["javac", "-Xlint:all,-processing", "-Werror", "-d", "classes", "-cp", "lib/*"]
            _compile([*words, *map(str, programs)], folder)
    # A program that lives for seconds needs one compiler and the simplest collector.
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
    path = os.pathsep.join(["classes", "lib/*"])
    return ["java", *quick, "-cp", path, main], folder


_NO_LAYERS: Final = "its methods for this raise NotImplementedError"
_WRONG_CHECKSUMS: Final = "its netty 4.0 writes wrong checksums for half of all blocks"

CLIENTS: Final = (
    Client("pynsq", "0.9", "Python", _python("pynsq", "0.9"), {}),
    Client("gnsq", "1.0", "Python", _python("gnsq", "1.0"), {}),
    Client(
        "ansq",
        "0.3",
        "Python",
        _python("ansq", "0.3"),
        {
            **dict.fromkeys(("tls", "snappy", "deflate", "tls-snappy", "tls-deflate"), _NO_LAYERS),
            "auth": "it sends AUTH, and then refuses every command as not authorized",
        },
    ),
    Client("nsqjs", "0.13.0", "JavaScript", _node, {}),
    Client("go-nsq", "1.1.0", "Go", _go, {}),
    Client(
        "nsq-client",
        "1.0.0.RC4",
        "Java",
        lambda: java("Client"),
        {
            "defer": "it has no DPUB",
            "snappy": _WRONG_CHECKSUMS,
            "tls-snappy": _WRONG_CHECKSUMS,
            "auth": "it has no AUTH",
            MANY: "with compression it takes each block that comes for one frame",
        },
    ),
)
