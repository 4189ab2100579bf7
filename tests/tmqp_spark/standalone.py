"""A small Spark cluster: a master and workers in processes of their own, as on machines.

Each worker has an address of its own on the loopback, so Spark takes them for two machines: it runs
a second copy of a slow task on another machine only, which ``local-cluster`` cannot show.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark

from tests.ports import free_port
from tests.tmqp_spark.conftest import jvm_options

__all__ = ["HOME", "HOSTS", "Cluster"]

HOME: Final = Path(pyspark.__file__).parent
HOSTS: Final = ("127.0.0.1", "127.0.0.2")
_START_S: Final = 90


class Cluster:
    """A cluster whose workers have one core each.

    :param folder: for its logs and the files of its executors.
    :param environment: of all its processes, and so of its executors.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.url = f"spark://{HOSTS[0]}:{free_port()}"
        self._folder = folder
        self._environment = {
            **environment,
            "SPARK_HOME": str(HOME),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": jvm_options(),
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        host, port = self.url.removeprefix("spark://").split(":")
        try:
            self._start("master.Master", "--host", host, "--port", port)
            for name in HOSTS:
                work = str(self._folder / f"work-{name}")
                options = ("--cores", "1", "--memory", "1g", "--work-dir", work)
                self._start("worker.Worker", "--host", name, *options, self.url)
            self._wait()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _start(self, name: str, *arguments: str) -> None:
        program = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        with (self._folder / f"{len(self._processes)}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [*program, "--webui-port", "0", *arguments],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **self._environment},
                )
            )

    def _wait(self) -> None:
        """Until the master has all workers."""
        deadline = time.monotonic() + _START_S
        log = self._folder / "0.log"
        while log.read_text(encoding="utf-8").count("Registering worker") < len(HOSTS):
            assert all(each.poll() is None for each in self._processes), self.words()
            assert time.monotonic() < deadline, self.words()
            time.sleep(0.1)

    def words(self) -> str:
        """The last words of its processes."""
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(log.read_text(encoding="utf-8", errors="replace")[-800:] for log in logs)

    def _end(self) -> None:
        for process in reversed(self._processes):
            process.terminate()  # a worker ends its executors
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
