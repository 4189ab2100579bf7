"""A cluster of three Kafka brokers, each a controller as well, with a topic of three copies."""

from __future__ import annotations

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

import anyio

from tmqp_bench.broker.processes import StartError, free_port
from tmqp_bench.codec import ROOT
from tmqp_bench.replicated.load import PAYLOAD, Push
from tmqp_bench.replicated.nodes import Node, wait_for_ports
from tmqp_bench.spark.jars import BROKER_VERSION, broker_jars

__all__ = ["kafka"]

_START_S: Final = 180.0
_TOPIC: Final = "bench"
_JAVA: Final = ("java", "-Xmx512m", "-XX:TieredStopAtLevel=4", "-cp")
_MOST_S: Final = 5.0
#: A broker that says nothing for 2 s is replaced, as the leader of a group of ours.
_SETTINGS: Final = (
    "process.roles=broker,controller",
    "controller.listener.names=CONTROLLER",
    "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.partitions=1",
    "default.replication.factor=3",
    "min.insync.replicas=2",
    "offsets.topic.replication.factor=3",
    "broker.session.timeout.ms=2000",
    "broker.heartbeat.interval.ms=500",
    "controller.quorum.fetch.timeout.ms=1000",
    "controller.quorum.election.timeout.ms=500",
)


class _Kafka:
    gap_s = 12.0

    def __init__(self, nodes: list[Node], ports: list[int]) -> None:
        self.name = f"Kafka {BROKER_VERSION}, acks=all, min.insync.replicas=2"
        self._nodes = nodes
        self._ports = ports
        self._leader = 0

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Push]:
        """A producer that waits for all copies."""
        aiokafka = import_module("aiokafka")
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=[f"127.0.0.1:{port}" for port in self._ports],
            acks="all",
            retry_backoff_ms=50,
            request_timeout_ms=int(_MOST_S * 1_000),
        )
        with anyio.fail_after(_START_S):
            await producer.start()
            while True:
                try:
                    await producer.send_and_wait(_TOPIC, PAYLOAD, partition=0)
                except Exception:  # noqa: BLE001 - the topic is being made
                    await anyio.sleep(0.2)
                else:
                    break
        partition = aiokafka.TopicPartition(_TOPIC, 0)
        self._leader = producer.client.cluster.leader_for_partition(partition)

        async def push() -> None:
            await producer.send_and_wait(_TOPIC, PAYLOAD, partition=0)

        yield push
        with anyio.move_on_after(_MOST_S):
            await producer.stop()

    def kill_leader(self) -> None:
        """Kill the leader of the topic, as it was when the client came."""
        self._nodes[self._leader - 1].kill()

    def revive(self) -> None:
        """Start again what was killed."""
        for each in self._nodes:
            each.revive()


@contextmanager
def kafka(folder: Path) -> Iterator[_Kafka]:
    """Three brokers.

    :raises JarsMissingError: when they cannot be fetched.
    :raises StartError: when they do not come up.
    """
    jars = ":".join(map(str, broker_jars(ROOT / "build" / "peers")))
    ports, controllers = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
    voters = ",".join(f"{at}@127.0.0.1:{port}" for at, port in enumerate(controllers, 1))
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    nodes: list[Node] = []
    try:
        for at, (port, controller) in enumerate(zip(ports, controllers, strict=True), 1):
            place = folder / f"kafka{at}"
            place.mkdir()
            clients = f"PLAINTEXT://127.0.0.1:{port}"
            lines = [f"node.id={at}", f"controller.quorum.voters={voters}"]
            lines += [f"listeners={clients},CONTROLLER://127.0.0.1:{controller}"]
            lines += [f"advertised.listeners={clients}"]
            lines += [f"log.dirs={place / 'data'}", *_SETTINGS]
            settings = place / "server.properties"
            settings.write_text("\n".join(lines) + "\n")
            words = [*_JAVA, jars, "kafka.tools.StorageTool", "format", "-t", cluster]
            done = subprocess.run(
                [*words, "-c", str(settings)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise StartError(f"Kafka's data is not prepared: {done.stderr.strip()[-300:]}")
            words = [*_JAVA, jars, "kafka.Kafka", str(settings)]
            nodes.append(Node(words, place / "log"))
        wait_for_ports(ports, _START_S)
        yield _Kafka(nodes, ports)
    finally:
        for each in nodes:
            each.kill()
