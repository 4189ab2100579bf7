"""A single Kafka broker: its settings, its process."""

from __future__ import annotations

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tmqp_bench.broker.processes import ServerProcess, StartError, free_port

__all__ = ["start_kafka"]

_START_S: Final = 120.0
_FORMAT_S: Final = 120.0
_HEAP: Final = "-Xmx1g"


def start_kafka(jars: Sequence[Path], folder: Path, partitions: int) -> ServerProcess:
    """Start a broker that is its own controller, and makes the topics that it is asked for.

    :param folder: for its settings, its log and its data.
    :param partitions: of each topic.
    :raises StartError: when it does not come up.
    """
    port, controller = free_port(), free_port()
    settings = folder / "server.properties"
    settings.write_text(_settings(folder, port, controller, partitions), encoding="utf-8")
    java = ["java", _HEAP, "-cp", ":".join(map(str, jars))]
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    done = subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)],
        capture_output=True,
        text=True,
        timeout=_FORMAT_S,
        check=False,
    )
    if done.returncode:
        raise StartError(f"Kafka's data could not be prepared: {done.stderr.strip()[-300:]}")
    command = [*java, "kafka.Kafka", str(settings)]
    return ServerProcess(command, port, None, folder / "log", None, _START_S)


def _settings(folder: Path, port: int, controller: int, partitions: int) -> str:
    """As it comes, but for one machine: when data reaches the disk is left to the system."""
    return "\n".join(
        [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{controller}",
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names=CONTROLLER",
            f"log.dirs={folder / 'data'}",
            f"num.partitions={partitions}",
            "auto.create.topics.enable=true",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "",
        ]
    )
