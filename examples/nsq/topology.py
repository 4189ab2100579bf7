"""A topology without a single point of failure, from NSQ's own documentation.

Two brokers and two directories.  Each event is published to both brokers (redundant pairs); a
consumer of the channel ``metrics`` counts each event once, because it knows the events' ids;
``nsq_to_file`` writes the channel ``archive``.  Meanwhile one broker stops, and is started again.

    python examples/nsq/topology.py FOLDER

Needs the extra nsq: pip install 'tmqp[nsq]'.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import anyio
import httpx

from tmqp_nsq.consuming import consuming

EVENTS = 30


def free_port() -> int:
    """A free port."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def begin(words: list[str]) -> subprocess.Popen[bytes]:
    """Start a program."""
    return subprocess.Popen(words)


class Node:
    """One program of NSQ, with its own addresses."""

    def __init__(self, program: str, *flags: str) -> None:
        self.tcp, self.http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        addresses = (f"--tcp-address={self.tcp}", f"--http-address={self.http}")
        broadcast = "--broadcast-address=127.0.0.1"
        self.words = [sys.executable, "-m", "tmqp_nsq", program, *addresses, broadcast, *flags]
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = begin([*self.words, "--log-level=error"])
        async with httpx.AsyncClient(trust_env=False) as client:
            for _ in range(300):
                try:
                    if (await client.get(f"http://{self.http}/ping")).text == "OK":
                        return
                except httpx.HTTPError:
                    await anyio.sleep(0.1)
        raise SystemExit(f"{self.words[3]} does not answer")

    def stop(self) -> None:
        """Stop it, as a service manager does."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None


async def publish(brokers: list[Node], events: range) -> None:
    """Publish each event to every running broker; one of them is enough."""
    async with httpx.AsyncClient(trust_env=False) as client:
        for number in events:
            body = json.dumps({"id": number, "path": f"/page/{number}"})
            accepted = 0
            for broker in brokers:
                try:
                    url = f"http://{broker.http}/pub?topic=api_requests"
                    accepted += (await client.post(url, content=body)).is_success
                except httpx.HTTPError:
                    continue
            if not accepted:
                raise SystemExit(f"event {number} is lost")


async def measure(lookupds: list[Node], seen: dict[int, int]) -> None:
    """Count each event once, however often it is delivered."""
    addresses = [lookupd.http for lookupd in lookupds]
    async with consuming("api_requests", "metrics", lookupds=addresses) as (_, messages):
        async for message in messages:
            event = json.loads(message.body)
            seen[event["id"]] = seen.get(event["id"], 0) + 1
            message.finish()


async def until(events: int, seen: dict[int, int], archive: Path) -> None:
    """Wait until the metrics and the archive have this number of events."""
    with anyio.fail_after(60):
        while len(seen) < events or len(archived(archive)) < events:  # noqa: ASYNC110
            await anyio.sleep(0.1)


def archived(archive: Path) -> set[int]:
    """The ids in the archive's files."""
    lines = [line for path in archive.glob("*.log") for line in path.read_text().splitlines()]
    return {json.loads(line)["id"] for line in lines}


async def main(folder: Path) -> None:
    """Run the topology, and print which events arrived."""
    lookupds = [Node("nsqlookupd") for _ in range(2)]
    announce = [f"--lookupd-tcp-address={lookupd.tcp}" for lookupd in lookupds]
    brokers = []
    for name in ("one", "two"):
        data = folder / name
        data.mkdir(parents=True)
        brokers.append(Node("nsqd", f"--data-path={data}", *announce))
    archive = folder / "archive"
    archive.mkdir()
    seen: dict[int, int] = {}
    with ExitStack() as stack:
        for node in (*lookupds, *brokers):
            stack.callback(node.stop)
            await node.start()
        async with httpx.AsyncClient(trust_env=False) as client:
            for broker in brokers:  # existing channels get all messages, even without consumers
                await client.post(f"http://{broker.http}/topic/create?topic=api_requests")
                for channel in ("metrics", "archive"):
                    query = f"topic=api_requests&channel={channel}"
                    await client.post(f"http://{broker.http}/channel/create?{query}")
        words = [sys.executable, "-m", "tmqp_nsq", "nsq_to_file", "--log-level=error"]
        words += ["--topic=api_requests", "--channel=archive", "--sync-interval=200ms"]
        words += [f"--lookupd-http-address={lookupd.http}" for lookupd in lookupds]
        words += ["--consumer-opt=lookupd_poll_interval,1s", f"--output-dir={archive}"]
        archiver = begin(words)
        stack.callback(archiver.wait)
        stack.callback(archiver.terminate)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(measure, lookupds, seen)
            await publish(brokers, range(EVENTS))
            await until(EVENTS, seen, archive)
            print(f"two brokers: {len(seen)} events counted, {len(archived(archive))} archived")
            brokers[0].stop()
            await publish(brokers, range(EVENTS, 2 * EVENTS))
            await until(2 * EVENTS, seen, archive)
            print(f"one stopped: {len(seen)} events counted, {len(archived(archive))} archived")
            await brokers[0].start()
            lookupds[0].stop()
            await publish(brokers, range(2 * EVENTS, 3 * EVENTS))
            await until(3 * EVENTS, seen, archive)
            print(f"it is back:  {len(seen)} events counted, {len(archived(archive))} archived")
            tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
