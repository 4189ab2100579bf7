"""Groups of three brokers on three servers of etcd, which begin new lives, and their clients."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from tests.interop.etcd.clusters import EtcdCluster
from tests.interop.etcd.interop_etcd_log import started
from tests.interop.etcd.networks import Network, Place
from tests.ports import free_port
from tests.project import ROOT
from tests.tmqp_server.killing import Ledger
from tmqp.models import QueueOptions
from tmqp_client import FAIL_OVER, Client, ClientError, Message, OperationError, connect
from tmqp_server.storage.etcd import EtcdAccess, EtcdLog
from tmqp_server.storage.log import (
    Leader,
    ListMembers,
    Members,
    Seen,
    UnansweredError,
    WatchLog,
)
from tmqp_server.wiring.replicating import OVER

__all__ = [
    "ETCD",
    "GONE",
    "GROUP",
    "MOST_S",
    "NAMES",
    "PRODUCERS",
    "Broker",
    "Group",
    "OrderedLedger",
    "consume",
    "create",
    "produce",
    "settle",
]

NAMES: Final = ("a", "b", "c")
ETCD: Final = ("n0", "n1", "n2")
#: The group's name in etcd, as the command is told, and as the log has it.
GROUP: Final = "shop"
_LEADS: Final = re.compile(r"leads in epoch (\d+)")
_ENDS: Final = re.compile(r"in its group, and ends: (.*)")
_REFUSED: Final = re.compile(r"entry \d+ is refused: ")
GONE: Final = (ClientError, OperationError, OSError, anyio.ClosedResourceError)
PRODUCERS: Final = 8
MOST_S: Final = 60.0


#: Where a broker listens that has a machine of its own.
_PORT: Final = 2500
#: What steps the clock of one process: Debian's package libfaketime.
_FAKE_TIME: Final = "*/faketime/libfaketime.so.1"


class OrderedLedger(Ledger):
    """What the clients know, and whether each message came after those that its producer had
    pushed before it.

    What was sent before is in no order, also if nobody has seen it: it was on its way to a consumer
    whose connection ended, and comes when that one's time to answer is over.

    :param producers: who has pushed which number.
    """

    def __init__(self, producers: Mapping[int, int]) -> None:
        super().__init__()
        self._producers = producers
        self.disorder: list[tuple[int, int]] = []
        self._last: dict[int, int] = {}

    def note(self, message: Message) -> None:
        """Note a message that came."""
        self.receive(message.payload)
        number = int(message.payload)
        producer = self._producers.get(number)
        if producer is not None:
            last = self._last.get(producer, 0)
            if number < last and not message.redelivered:
                self.disorder.append((last, number))
            self._last[producer] = max(last, number)


class Broker:
    """A server of the group, which begins a new life whenever one ends.

    :param place: its machine; this one if there is none.
    """

    def __init__(
        self, name: str, folder: Path, etcd: list[str], place: Place | None = None
    ) -> None:
        self.name = name
        self.address = f"unix:{folder / name}.socket"
        admin = f"127.0.0.1:{free_port()}"
        self._enter: tuple[str, ...] = ()
        if place is not None:
            self.address = f"tmq://{place.address}:{_PORT}"
            admin = f"{place.address}:{_PORT + 1}"
            self._enter = place.enter
        self.url = f"http://{admin}"
        self._clock = folder / f"{name}.clock"
        self._fake_time = ""
        if place is not None:
            self._fake_time = str(next(Path("/usr/lib").glob(_FAKE_TIME), ""))
        self.step_clock(0)
        self.refused = 0
        self.epochs: list[int] = []
        self.ends: list[str] = []
        self.codes: list[int] = []
        log = f"etcd://{','.join(etcd)}/{GROUP}"
        self._program = [*self._enter, sys.executable, "-m", "tmqp_server"]
        self._command = [*self._program, "--listen", self.address, "--door", f"admin={admin}"]
        self._command += ["--data", str(folder / name), "--replicate", log]
        self._command += ["--allow-remote"] if place is not None else []
        self._config = folder / f"{name}.toml"
        self._config.write_text(
            f'listen = ["{self.address}"]\ndata = "{folder / name}"\nallow_remote = true\n'
            f'[replication]\nlog = "{log}"\nnode = "{name}"\n',
            encoding="utf-8",
        )
        self._name = name
        self._errors = folder / f"{name}.log"
        self._is_over = False
        self.is_held = False
        self.process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._live)
        self._thread.start()

    def _live(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "TMQP_SERVER_REPLICATION__NODE": self._name,
            "TMQP_SERVER_STORAGE__FLOOR_BYTES": "1",
        }
        if self._fake_time:
            environment |= {
                "LD_PRELOAD": self._fake_time,
                "FAKETIME_TIMESTAMP_FILE": str(self._clock),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        while not self._is_over:
            if self.is_held:
                time.sleep(0.05)
                continue
            process = self.process = subprocess.Popen(
                self._command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )
            assert process.stderr is not None
            with self._errors.open("a") as errors:
                for line in process.stderr:
                    errors.write(line)
                    if found := _LEADS.search(line):
                        self.epochs.append(int(found[1]))
                    elif found := _ENDS.search(line):
                        self.ends.append(found[1])
                    elif _REFUSED.search(line):
                        self.refused += 1
            self.codes.append(process.wait())
            process.stderr.close()
            time.sleep(0.2)

    @property
    def has_own_clock(self) -> bool:
        """Whether :meth:`step_clock` does anything."""
        return bool(self._fake_time)

    def step_clock(self, seconds: int) -> None:
        """Let the clock on its wall be wrong by so much from now on."""
        self._clock.write_text(f"{seconds:+d}", encoding="ascii")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self.process is not None
        self.process.send_signal(number)

    def hold(self, number: signal.Signals) -> None:
        """End it, and begin no new life before that is wanted."""
        self.is_held = True
        process = self.process
        assert process is not None
        if process.poll() is None:
            process.send_signal(number)
            process.wait(30.0)

    def rebuild(self, urls: Sequence[str]) -> None:
        """Give its directory a copy from one of these admin doors, while it is held."""
        sources = [each for url in urls for each in ("--from", url)]
        subprocess.run(
            [*self._program, "rebuild", "-c", str(self._config), *sources],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            check=True,
            timeout=MOST_S,
        )

    def close(self) -> None:
        """Kill it for good."""
        self.is_held = False
        self._is_over = True
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
        self._thread.join()


class Group:
    """The brokers, etcd, and what is known of them.

    :param network: has a machine for each of ``NAMES`` and ``ETCD``; this one if there is none.
    """

    def __init__(self, folder: Path, network: Network | None = None) -> None:
        self.folder = folder
        machines = {}
        if network is not None:
            machines = {name: network.place(name) for name in (*NAMES, *ETCD)}
        self.etcd = EtcdCluster(folder, 3, places=[machines[name] for name in ETCD if machines])
        started(self.etcd, EtcdAccess(self.etcd.addresses))
        self.log = EtcdLog(EtcdAccess(self.etcd.addresses), f"{GROUP}/0")
        self.brokers = {
            name: Broker(name, folder, self.etcd.addresses, machines.get(name)) for name in NAMES
        }
        self.addresses = [each.address for each in self.brokers.values()]
        self.confirms: list[float] = []
        self.producers: dict[int, int] = {}

    def leader(self) -> Leader:
        """Who leads, as soon as somebody does."""
        end = time.monotonic() + MOST_S
        while time.monotonic() < end:
            try:
                seen = self.log.ask(WatchLog(0, 0, 0.0))
            except UnansweredError:
                continue
            assert isinstance(seen, Seen)
            if seen.leader is not None:
                return seen.leader
            time.sleep(0.02)
        raise AssertionError("nobody leads")

    def gap_s(self, since: float) -> float:
        """The longest time without a confirm since a moment."""
        times = [since, *[each for each in self.confirms if each > since]]
        return max(after - before for before, after in itertools.pairwise(times))

    def rebuild(self, broker: Broker) -> None:
        """A server has lost its disk, and is rebuilt from the others, the leader first."""
        broker.hold(signal.SIGKILL)
        shutil.rmtree(self.folder / broker.name)
        leader = self.brokers[self.leader().node]
        others = [each for each in self.brokers.values() if each not in (broker, leader)]
        broker.rebuild([each.url for each in (leader, *others)])
        broker.is_held = False

    def stores(self) -> list[str]:
        """What each server has on its disk, all of them stopped in order.

        A leader writes last notes when it stops, of how often each message was sent.  So one stops
        first, and the others read its notes; the next one has none to write.
        """
        stopped: set[str] = set()
        for _ in range(2):
            leader = self.leader().node
            while leader in stopped:
                leader = self.leader().node
            self._wait_for_all_but({leader, *stopped})
            if not stopped:
                self.brokers[leader].hold(signal.SIGTERM)
                stopped.add(leader)
        for each in sorted(self.brokers.values(), key=lambda one: one.name == leader):
            if each.name not in stopped:
                each.hold(signal.SIGTERM)  # the leader last, or another one would begin to lead
        command = [sys.executable, "-m", "tmqp_server", "export"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        return [
            subprocess.run(
                [*command, str(self.folder / name)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for name in self.brokers
        ]

    def _wait_for_all_but(self, some: set[str]) -> None:
        """Wait until all others, the standbys, have on their disks what the log has."""
        end = time.monotonic() + MOST_S
        while time.monotonic() < end:
            seen, found = self.log.ask(WatchLog(0, 0, 0.0)), self.log.ask(ListMembers())
            assert isinstance(seen, Seen)
            assert isinstance(found, Members)
            if all(each.applied >= seen.last for each in found.members if each.node not in some):
                return
            time.sleep(0.2)
        raise AssertionError("a standby stays behind")

    def close(self) -> None:
        """Kill everything."""
        for each in self.brokers.values():
            each.close()
        self.log.close()
        self.etcd.stop()


async def produce(
    group: Group, ledger: Ledger, done: anyio.Event | threading.Event, producer: int = 0
) -> None:
    """Push one message after the other, each until it is confirmed."""
    number = 0
    while not done.is_set():
        try:
            async with connect(group.addresses, reconnect=FAIL_OVER) as client:
                while not done.is_set():
                    if not number:
                        (number,) = ledger.take(1)
                        group.producers[number] = producer
                    with anyio.fail_after(10.0):
                        await client.push("c", 1, b"%09d" % number)
                    ledger.confirmed.add(number)
                    group.confirms.append(time.monotonic())
                    number = 0
        except (*GONE, TimeoutError):
            await anyio.sleep(0.05)


async def consume(group: Group, ledger: OrderedLedger, done: anyio.Event) -> None:
    """Take what comes, and answer for two of three."""
    while not done.is_set():
        try:
            async with connect(group.addresses, reconnect=FAIL_OVER) as client:
                await take(client, ledger, done)
        except GONE:
            await anyio.sleep(0.05)


async def take(client: Client, ledger: OrderedLedger, done: anyio.Event) -> None:
    async with client.consume("c", 1, acknowledge="manual") as messages:
        async for message in messages:
            ledger.note(message)
            if int(message.payload) % 3:
                await message.ack()
            if done.is_set():
                return


async def drain(group: Group, ledger: OrderedLedger) -> None:
    """Take everything that is owed."""
    end = time.monotonic() + MOST_S
    while ledger.confirmed - ledger.seen and time.monotonic() < end:
        try:
            async with (
                connect(group.addresses, reconnect=FAIL_OVER) as client,
                client.consume("c", 1) as messages,
            ):
                with anyio.move_on_after(10.0):
                    async for message in messages:
                        ledger.note(message)
                        if not ledger.confirmed - ledger.seen:
                            return
        except GONE:
            await anyio.sleep(0.05)


async def settle(group: Group, ledger: OrderedLedger) -> None:
    """Clients have ended: what was promised to them is so, and all disks have the same."""
    await drain(group, ledger)
    ledger.check()
    assert ledger.disorder == [], f"not in their producer's order: {ledger.disorder[:5]}"
    async with connect(group.addresses, reconnect=FAIL_OVER) as client:
        for number in range(100):
            await client.push("c", 1, b"left %d" % number)
    found = await anyio.to_thread.run_sync(group.stores)
    assert found[0].count("\n") >= 100
    assert found[0] == found[1] == found[2], "all disks have the same"
    brokers = group.brokers.values()
    epochs = [epoch for each in brokers for epoch in each.epochs]
    assert len(epochs) == len(set(epochs)), f"epochs were led in twice: {sorted(epochs)}"
    ended = {code for each in brokers for code in each.codes}
    assert ended <= {OVER, -signal.SIGKILL, 0}, ended  # 0: they were stopped in the end


async def create(group: Group, retain_time_ms: int | None = None) -> None:
    """Make the queue, as soon as somebody leads."""
    options = QueueOptions(durable=True, retain_time_ms=retain_time_ms)
    end = time.monotonic() + MOST_S
    while True:
        try:
            async with connect(group.addresses, reconnect=FAIL_OVER) as client:
                await client.create_queue("c", 1, options, status="push")
                return
        except GONE:
            assert time.monotonic() < end, group.etcd.said()
            await anyio.sleep(0.05)
