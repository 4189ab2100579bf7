"""Processes of a cluster on this machine: each is killed without warning, and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["Node", "wait_for_ports"]

_STEP_S: Final = 0.1


class Node:
    """A process, with all its children, and what to start it with again."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = list(command)
        self._log = log
        self._environment = {**os.environ, **(environment or {})}
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it (-9), and wait until it is gone."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def revive(self) -> None:
        """Start it again, if it has ended."""
        if self._process.poll() is not None:
            self._process = self._start()


def wait_for_ports(ports: Sequence[int], seconds: float) -> None:
    """Wait until somebody listens on each.

    :raises TimeoutError: when nobody does.
    """
    end = time.monotonic() + seconds
    for port in ports:
        while not _listens(port):
            if time.monotonic() > end:
                raise TimeoutError(f"no process listens on port {port}")
            time.sleep(_STEP_S)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True
