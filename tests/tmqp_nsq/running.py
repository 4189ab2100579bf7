"""The programs as processes, on free ports, as a shell would start them."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

import tmqp
import tmqp_nsq
from tests.ports import free_port

__all__ = ["Shell", "shell"]

_PROGRAMS: Final = ("nsqd", "nsqlookupd", "nsqadmin", "nsq_to_file", "nsq_to_http")
_MOST_S: Final = 40


def _home(package: ModuleType) -> str:
    return str(Path(package.__file__ or "").parent.parent)


class Shell:
    """Runs lines as they are typed, with free ports in the place of NSQ's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        for program in _PROGRAMS:
            path = self._bin / program
            path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tmqp_nsq {program} "$@"\n')
            path.chmod(0o755)
        self.ports = {number: free_port() for number in (4150, 4151, 4152, 4160, 4161, 4171)}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._named: set[str] = set()
        places = dict.fromkeys([_home(tmqp_nsq), _home(tmqp)])
        self._environment = {
            **os.environ,
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")]),
        }

    def typed(self, line: str) -> str:
        """A line with the ports of this test."""
        line = line.replace("/usr/local/bin/", "")
        return re.sub(
            r"127\.0\.0\.1:(\d{4})",
            lambda found: f"127.0.0.1:{self.ports.get(int(found[1]), int(found[1]))}",
            line,
        )

    def start(self, line: str, *more: str, name: str = "") -> str:
        """Start what a line runs, with more flags behind; gives its name."""
        words = [*shlex.split(self.typed(line)), *more]
        name = name or words[0]
        self._named.add(name)
        log = (self.folder / f"{name}.log").open("ab")
        with log:
            self._processes[name] = subprocess.Popen(
                words, cwd=self.folder, env=self._environment, stderr=log, stdout=log
            )
        return name

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop a program; gives its exit status."""
        process = self._processes.pop(name)
        process.send_signal(number)
        return process.wait(_MOST_S)

    def has_ended(self, name: str) -> bool:
        """Whether a program has ended by itself."""
        return self._processes[name].poll() is not None

    def run(self, line: str) -> str:
        """What a line prints."""
        found = subprocess.run(
            ["sh", "-c", self.typed(line)],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            check=False,
            timeout=_MOST_S,
        )
        return found.stdout.decode()

    def until(self, what: str, is_so: object) -> None:
        """Wait until a call is true.

        :raises AssertionError: with the logs, if it never is.
        """
        assert callable(is_so)
        end = time.monotonic() + _MOST_S
        while not is_so():
            assert time.monotonic() < end, f"never: {what}\n{self.logs()}"
            time.sleep(0.05)

    def answers(self, port: int) -> None:
        """Wait until a program answers at one of NSQ's ports."""
        url = f"http://127.0.0.1:{self.ports[port]}/ping"
        self.until(f"{port} answers", lambda: _is_up(url))

    def logs(self) -> str:
        """What the programs have logged."""
        return "\n".join(
            f"--- {name}\n{(self.folder / f'{name}.log').read_text(errors='replace')}"
            for name in sorted(self._named)
        )

    @contextmanager
    def told(self) -> Iterator[None]:
        """Show the logs with what fails in the block."""
        try:
            yield
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from error

    def close(self) -> None:
        """Stop everything."""
        for name in list(self._processes):
            self.stop(name)


def _is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own
            return bool(answer.read() == b"OK")
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    """A shell whose programs end with the block."""
    made = Shell(folder)
    try:
        yield made
    finally:
        made.close()
