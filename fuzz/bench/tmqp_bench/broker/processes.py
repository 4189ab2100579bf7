"""The processes of brokers: starting one on a core of its own, its processor time, its end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ServerProcess", "Spent", "StartError", "free_port", "pin_load", "server_core"]

_START_S: Final = 60.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Spent:
    """Processor time of a program, in seconds: in its own code, and in the kernel on its behalf."""

    user_s: float
    kernel_s: float


class StartError(Exception):
    """A broker did not start; the text says why, with its last words."""


def server_core() -> int:
    """The core that every broker is pinned to: the last one this process may use."""
    return max(os.sched_getaffinity(0))


def pin_load() -> bool:
    """Move this process off the broker's core; False when there is only one."""
    others = os.sched_getaffinity(0) - {server_core()}
    if not others:
        return False
    os.sched_setaffinity(0, {min(others)})
    return True


def free_port() -> int:
    """A port of loopback that is free at this moment."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class ServerProcess:
    """A broker that listens on a port of loopback, with all its children.

    :param core: the core it may use; all of them if None.
    :raises StartError: when it does not listen in time.

    Attributes: ``port``; ``beside``, a process that ends when this one does, and is not counted.
    """

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        core: int | None,
        log: Path,
        environment: Mapping[str, str] | None = None,
        start_s: float = _START_S,
    ) -> None:
        self.port = port
        self.beside: subprocess.Popen[str] | None = None
        self._log = log
        cores = os.sched_getaffinity(0) if core is None else {core}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                list(command),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                preexec_fn=lambda: os.sched_setaffinity(0, cores),  # noqa: PLW1509 - one thread
            )
        try:
            self._wait(start_s)
        except BaseException:
            self.stop()
            raise

    def _wait(self, start_s: float) -> None:
        deadline = time.monotonic() + start_s
        while True:
            if self._process.poll() is not None:
                raise StartError(
                    f"it ended with status {self._process.returncode}: {self._words()}"
                )
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1.0),
            ):
                return
            if time.monotonic() > deadline:
                raise StartError(f"it does not listen after {start_s:g} s: {self._words()}")
            time.sleep(0.05)

    def _words(self) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        return " / ".join(text.splitlines()[-3:]) or "it said nothing"

    def _pids(self) -> list[int]:
        """The process and all below it."""
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    parents[int(entry.name)] = int(fields[1])
        found = [self._process.pid]
        for pid in found:
            found.extend([child for child, parent in parents.items() if parent == pid])
        return found

    def cpu_s(self) -> float:
        """Processor time it has used, in seconds, to a hundredth."""
        spent = self.spent()
        return spent.user_s + spent.kernel_s

    def spent(self) -> Spent:
        """The same, with what of it was the kernel's, which looks now and then who runs."""
        user = kernel = 0
        for pid in self._pids():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                user += int(fields[11])
                kernel += int(fields[12])
        return Spent(user / _TICKS, kernel / _TICKS)

    def memory_bytes(self) -> int:
        """What it holds in memory (resident)."""
        pages = 0
        for pid in self._pids():
            with contextlib.suppress(OSError):
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * _PAGE

    def kill(self) -> None:
        """End it without a word, and wait for that."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it and wait for that."""
        if self.beside is not None:
            self.beside.kill()
            self.beside.communicate()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # what it left behind
