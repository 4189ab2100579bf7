"""Helpers for tests of pipelines: a real broker in a separate process, with messages.

::

    with Broker(tmp_path) as broker:
        broker.push("orders", 7, [b"one", b"two"])
        spark.read.format("tmqp").option("url", broker.url).option("subscribe", "orders/7").load()

The broker is ``tmqp-server`` (``pip install 'tmqp[server]'``), with a data directory, on the
loopback interface, and keeps its address when it is restarted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tmqp.models import QueueOptions
from tmqp_client import sync
from tmqp_spark.errors import SparkError

__all__ = ["Broker"]

_STOP_S: Final = 20


class Broker:
    """A broker with its data under ``folder``; started by :meth:`start` or by ``with``.

    :param settings: TOML for its configuration file, such as ``max_read_bytes = 100_000``.
    """

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder = folder
        self._settings = settings
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """The broker's address; the port is known after the first start."""
        return f"tmq://127.0.0.1:{self._port}"

    @property
    def data(self) -> Path:
        """The broker's data directory."""
        return self.folder / "data"

    @property
    def pid(self) -> int:
        """The id of the broker's process; 0 while it is stopped."""
        return 0 if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """Whether the broker was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the broker, on the same address as before.

        :raises SparkError: if it does not start.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tmqp_server", "-l", self.url]
        command += ["--data", str(self.data), "--log-level", "error"]
        if self._settings:
            file = self.folder / "tmqp.toml"
            file.write_text(self._settings, encoding="utf-8")
            command += ["--config", str(file)]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout is not None, "it is a pipe"
        line = self._process.stdout.readline()
        if " ready on " not in line:
            self.kill()
            raise SparkError(f"tmqp-server did not start: {line!r}")
        self._port = int(line.split(" ready on ")[1].split()[0].rstrip(",").rpartition(":")[2])

    def stop(self) -> None:
        """Stop the broker cleanly, as an operator does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the broker without warning."""
        self._end(signal.SIGKILL)

    def _end(self, with_signal: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(with_signal)
        try:
            process.wait(_STOP_S)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def create(self, channel: str, queue: int, **options: Any) -> None:
        """Create a durable queue that keeps all messages for readers, if it does not exist.

        :param options: further options of the queue, see ``tmqp.models.QueueOptions``.
        """
        wanted: dict[str, Any] = {"durable": True, "retain_time_ms": 86_400_000, **options}
        with sync.connect(self.url, name="test") as client:
            client.create_queue(channel, queue, QueueOptions(**wanted), status="push")

    def push(
        self,
        channel: str,
        queue: int,
        payloads: Iterable[bytes | str],
        headers: Mapping[str, str] | None = None,
        high_priority: bool = False,
    ) -> None:
        """Push messages and wait until all of them are on disk; create the queue if necessary."""
        self.create(channel, queue)
        with sync.connect(self.url, name="test", client_id="") as client:
            client.push_many(
                channel, queue, payloads, headers=headers or {}, high_priority=high_priority
            )
