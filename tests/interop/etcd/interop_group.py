"""Three brokers and three servers of etcd, killed and frozen under producers and consumers.

What was confirmed is received or owed, every epoch is one server's, and the time without a
confirm is measured.
"""

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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import pytest

from tests.interop.etcd.clusters import EtcdCluster
from tests.interop.etcd.interop_etcd_log import started
from tests.project import ROOT
from tests.tmqp_server.killing import Ledger
from tmqp.models import QueueOptions
from tmqp_client import FAIL_OVER, Client, ClientError, OperationError, connect
from tmqp_server.storage.etcd import EtcdAccess, EtcdLog
from tmqp_server.storage.log import (
    Leader,
    ListMembers,
    Members,
    Seen,
    UnansweredError,
    WatchLog,
)
from tmqp_server.storage.sqlite import back_up
from tmqp_server.wiring.replicating import OVER

pytestmark = [pytest.mark.interop, pytest.mark.cold, pytest.mark.timeout(400)]

_NAMES: Final = ("a", "b", "c")
#: The group's name in etcd, as the command is told, and as the log has it.
GROUP: Final = "shop"
_LEADS: Final = re.compile(r"leads in epoch (\d+)")
_ENDS: Final = re.compile(r"is over, it ends: (.*)")
_GONE: Final = (ClientError, OperationError, OSError, anyio.ClosedResourceError)
_PRODUCERS: Final = 8
#: How long clients work between two faults, in seconds.
_WORK_S: Final = 3.0
_MOST_S: Final = 60.0
#: The time without a confirm that a group may have, on a machine that does other things as well.
_MOST_GAP_S: Final = 12.0


class Broker:
    """A server of the group, which begins a new life whenever one ends."""

    def __init__(self, name: str, folder: Path, etcd: list[str]) -> None:
        self.name = name
        self.address = f"unix:{folder / name}.socket"
        self.epochs: list[int] = []
        self.ends: list[str] = []
        self.codes: list[int] = []
        log = f"etcd://{','.join(etcd)}/{GROUP}"
        self._command = [sys.executable, "-m", "tmqp_server", "--listen", self.address]
        self._command += ["--data", str(folder / name), "--replicate", log]
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
            self.codes.append(process.wait())
            process.stderr.close()
            time.sleep(0.2)

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

    def close(self) -> None:
        """Kill it for good."""
        self.is_held = False
        self._is_over = True
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
        self._thread.join()


class Group:
    """The brokers, etcd, and what is known of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.etcd = EtcdCluster(folder, 3)
        started(self.etcd, EtcdAccess(self.etcd.addresses))
        self.log = EtcdLog(EtcdAccess(self.etcd.addresses), f"{GROUP}/0")
        self.brokers = {name: Broker(name, folder, self.etcd.addresses) for name in _NAMES}
        self.addresses = [each.address for each in self.brokers.values()]
        self.confirms: list[float] = []

    def leader(self) -> Leader:
        """Who leads, as soon as somebody does."""
        end = time.monotonic() + _MOST_S
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
        """A server has lost its disk, and gets a copy of the leader's."""
        broker.hold(signal.SIGKILL)
        shutil.rmtree(self.folder / broker.name)
        back_up(self.folder / self.leader().node, self.folder / broker.name)
        broker.is_held = False

    def stores(self) -> list[str]:
        """What each server has on its disk, all of them stopped in order."""
        leader = self.leader().node
        self._wait_for_all_but(leader)
        for each in sorted(self.brokers.values(), key=lambda one: one.name == leader):
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

    def _wait_for_all_but(self, leader: str) -> None:
        """Wait until all standbys have on their disks what the log has."""
        end = time.monotonic() + _MOST_S
        while time.monotonic() < end:
            seen, found = self.log.ask(WatchLog(0, 0, 0.0)), self.log.ask(ListMembers())
            assert isinstance(seen, Seen)
            assert isinstance(found, Members)
            if all(each.applied >= seen.last for each in found.members if each.node != leader):
                return
            time.sleep(0.2)
        raise AssertionError("a standby stays behind")

    def close(self) -> None:
        """Kill everything."""
        for each in self.brokers.values():
            each.close()
        self.log.close()
        self.etcd.stop()


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    made = Group(tmp_path)
    try:
        yield made
    finally:
        made.close()


async def produce(group: Group, ledger: Ledger, done: anyio.Event) -> None:
    """Push one message after the other, each until it is confirmed."""
    number = 0
    while not done.is_set():
        try:
            async with connect(group.addresses, reconnect=FAIL_OVER) as client:
                while not done.is_set():
                    if not number:
                        (number,) = ledger.take(1)
                    with anyio.fail_after(10.0):
                        await client.push("c", 1, b"%09d" % number)
                    ledger.confirmed.add(number)
                    group.confirms.append(time.monotonic())
                    number = 0
        except (*_GONE, TimeoutError):
            await anyio.sleep(0.05)


async def consume(group: Group, ledger: Ledger, done: anyio.Event) -> None:
    """Take what comes, and answer for two of three."""
    while not done.is_set():
        try:
            async with connect(group.addresses, reconnect=FAIL_OVER) as client:
                await take(client, ledger, done)
        except _GONE:
            await anyio.sleep(0.05)


async def take(client: Client, ledger: Ledger, done: anyio.Event) -> None:
    async with client.consume("c", 1, acknowledge="manual") as messages:
        async for message in messages:
            ledger.receive(message.payload)
            if int(message.payload) % 3:
                await message.ack()
            if done.is_set():
                return


async def drain(group: Group, ledger: Ledger) -> None:
    """Take everything that is owed."""
    end = time.monotonic() + _MOST_S
    while ledger.confirmed - ledger.seen and time.monotonic() < end:
        try:
            async with (
                connect(group.addresses, reconnect=FAIL_OVER) as client,
                client.consume("c", 1) as messages,
            ):
                with anyio.move_on_after(10.0):
                    async for message in messages:
                        ledger.receive(message.payload)
                        if not ledger.confirmed - ledger.seen:
                            return
        except _GONE:
            await anyio.sleep(0.05)


async def create(group: Group) -> None:
    """Make the queue, as soon as somebody leads."""
    end = time.monotonic() + _MOST_S
    while True:
        try:
            async with connect(group.addresses, reconnect=FAIL_OVER) as client:
                await client.create_queue("c", 1, QueueOptions(durable=True), status="push")
                return
        except _GONE:
            assert time.monotonic() < end, group.etcd.said()
            await anyio.sleep(0.05)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_was_confirmed_survives_killed_and_frozen_leaders(group: Group) -> None:
    ledger = Ledger()
    done = anyio.Event()
    gaps: dict[str, float] = {}
    await create(group)

    async def fault(name: str, cause: Callable[[], None], heal: Callable[[], None]) -> None:
        await anyio.sleep(_WORK_S)
        before = time.monotonic()
        confirmed = len(group.confirms)
        cause()
        await anyio.sleep(5.0)
        heal()
        while len(group.confirms) < confirmed + 200 or group.confirms[-1] < before + 6.0:
            assert time.monotonic() < before + _MOST_S, f"no confirm after {name}"
            await anyio.sleep(0.05)
        gaps[name] = group.gap_s(before)

    def broker() -> Broker:
        return group.brokers[group.leader().node]

    async with anyio.create_task_group() as tasks:
        for _ in range(_PRODUCERS):
            tasks.start_soon(produce, group, ledger, done)
        tasks.start_soon(consume, group, ledger, done)
        for turn in range(2):
            name = f"kill -9 of the leader, {turn + 1}"
            await fault(name, lambda: broker().send(signal.SIGKILL), lambda: None)
        frozen = broker()
        await fault(
            "the leader frozen for 5 s",
            lambda: frozen.send(signal.SIGSTOP),
            lambda: frozen.send(signal.SIGCONT),
        )
        idle = next(each for each in group.brokers.values() if each is not broker())
        await fault("a standby's disk lost", lambda: group.rebuild(idle), lambda: None)
        await fault("kill -9 of etcd", lambda: group.etcd.kill(0), lambda: group.etcd.start(0))
        done.set()
        await anyio.sleep(0.5)
        tasks.cancel_scope.cancel()
    await drain(group, ledger)
    ledger.check()
    async with connect(group.addresses, reconnect=FAIL_OVER) as client:
        for number in range(100):
            await client.push("c", 1, b"left %d" % number)
    found = await anyio.to_thread.run_sync(group.stores)
    assert found[0].count("\n") >= 100
    assert found[0] == found[1] == found[2], "all disks have the same"
    epochs = [epoch for each in group.brokers.values() for epoch in each.epochs]
    assert len(epochs) == len(set(epochs)), epochs
    assert len(epochs) >= 4, "each fault of a leader made another one"
    assert frozen.ends, "who was frozen found out that it was replaced"
    ended = {code for each in group.brokers.values() for code in each.codes}
    assert ended <= {OVER, -signal.SIGKILL}, ended
    print(f"{len(ledger.confirmed)} confirmed, {ledger.repeated} came again, gaps {gaps}")
    assert max(gaps.values()) < _MOST_GAP_S, gaps
