"""A group under everything that may happen to its machines and its network, by seed.

A *round* makes a group, has clients work, and goes through all kinds of faults in an order that the
seed draws.  In the end what was confirmed has come or is owed, each producer's messages came in
their order, each epoch of the transactions is there once, each epoch of the group was one server's,
a late write of a leader that was frozen is refused, and all disks have the same.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from tests.interop.etcd.groups import (
    ETCD,
    GONE,
    MOST_S,
    NAMES,
    PRODUCERS,
    Broker,
    Group,
    OrderedLedger,
    consume,
    create,
    produce,
    settle,
)
from tests.interop.etcd.networks import Network
from tests.tmqp_server.test_killed_commits import OPTIONS
from tmqp.models import TransactionInformation
from tmqp_client import FAIL_OVER, Client, connect
from tmqp_server.storage.log import AppendEntry, Fenced, Leader, Resign, Seen, WatchLog

__all__ = ["Round", "play_round"]

#: How long clients work before a fault, and how long one lasts, in seconds.
_WORK_S: Final = 2.0
_LASTS_S: Final = 5.0
_PARTS: Final = 2
#: Messages of a part of a transaction.
_MESSAGES: Final = 20
_STEP_S: Final = 3_600
#: What a leader says that learns of it when it next writes, or keeps its claim.
_REPLACED: Final = "the claim has ended"

_Heal = Callable[[], None]


def _nothing() -> None:
    """It heals by itself."""


class Round:
    """What happens in a round, and what came of it."""

    def __init__(self, group: Group, network: Network, seed: int) -> None:
        self.group = group
        self.ledger = OrderedLedger(group.producers)
        self.gaps: dict[str, float] = {}
        self.epochs = 0
        self.late_writes = 0
        self._network = network
        self._random = random.Random(seed)
        self._kinds: dict[str, Callable[[], _Heal]] = {
            "kill -9 of the leader": self._kill_leader,
            "kill -9 of an etcd": self._kill_etcd,
            "kill -9 of both": self._kill_both,
            "the leader frozen": self._freeze,
            "the leader cut off from etcd": self._cut_from_etcd,
            "the leader cut off from the standbys": self._cut_from_standbys,
            "the leader in the minority": self._cut_minority,
            "a standby's disk lost": self._lose_disk,
            "packets late and lost": self._disturb,
            "the claim given back of a leader that lives": self._replace,
        }
        if all(each.has_own_clock for each in group.brokers.values()):
            self._kinds["the leader's clock steps"] = self._step_clock
        self.kinds = self._random.sample(list(self._kinds), len(self._kinds))

    # -- faults ---------------------------------------------------------------------------------

    def _leader(self) -> Broker:
        return self.group.brokers[self.group.leader().node]

    def _kill_leader(self) -> _Heal:
        self._leader().send(signal.SIGKILL)
        return _nothing

    def _kill_etcd(self) -> _Heal:
        at = self._random.randrange(len(ETCD))
        self.group.etcd.kill(at)
        return lambda: self.group.etcd.start(at)

    def _kill_both(self) -> _Heal:
        leader = self._leader()
        heal = self._kill_etcd()
        leader.send(signal.SIGKILL)
        return heal

    def _freeze(self) -> _Heal:
        group = self.group
        before = group.leader()
        frozen = group.brokers[before.node]
        frozen.send(signal.SIGSTOP)

        def heal() -> None:
            self._write_late(before)
            frozen.send(signal.SIGCONT)

        return heal

    def _write_late(self, before: Leader) -> None:
        """What was on its way when its leader froze arrives when another one leads."""
        end = time.monotonic() + MOST_S
        while self.group.leader().epoch == before.epoch:
            assert time.monotonic() < end, "nobody replaces a leader that is frozen"
        seen = self.group.log.ask(WatchLog(0, 0, 0.0))
        assert isinstance(seen, Seen)
        answer = self.group.log.ask(AppendEntry(before.epoch, seen.last + 1, b"late"))
        assert isinstance(answer, Fenced), f"a late write has {answer}"
        self.late_writes += 1

    def _others(self) -> tuple[str, list[str]]:
        leader = self.group.leader().node
        return leader, [name for name in NAMES if name != leader]

    def _cut_from_etcd(self) -> _Heal:
        self._network.cut([self.group.leader().node], ETCD)
        return self._network.mend

    def _cut_from_standbys(self) -> _Heal:
        leader, others = self._others()
        self._network.cut([leader], others)
        return self._network.mend

    def _cut_minority(self) -> _Heal:
        leader, others = self._others()
        near = self._random.choice(ETCD)
        far = [name for name in ETCD if name != near]
        self._network.cut([leader, near], [*others, *far])
        return self._network.mend

    def _lose_disk(self) -> _Heal:
        _, others = self._others()
        self.group.rebuild(self.group.brokers[self._random.choice(others)])
        return _nothing

    def _disturb(self) -> _Heal:
        self._network.disturb(self._random.choice((5.0, 20.0)), self._random.choice((0.01, 0.05)))
        return self._network.mend

    def _step_clock(self) -> _Heal:
        leader = self._leader()
        leader.step_clock(self._random.choice((-_STEP_S, _STEP_S)))
        return lambda: leader.step_clock(0)

    def _replace(self) -> _Heal:
        before = self.group.leader()
        replaced = self.group.brokers[before.node]
        known = len(replaced.ends)
        self.group.log.ask(Resign(before))

        def heal() -> None:
            ends = replaced.ends[known:]
            assert any(_REPLACED in end for end in ends), f"who was replaced goes on: {ends}"

        return heal

    # -- the round ------------------------------------------------------------------------------

    async def _fault(self, name: str) -> None:
        group = self.group
        await anyio.sleep(_WORK_S)
        before = time.monotonic()
        confirmed = len(group.confirms)
        heal = await anyio.to_thread.run_sync(self._kinds[name])
        await anyio.sleep(_LASTS_S)
        await anyio.to_thread.run_sync(heal)
        healed = time.monotonic()
        while len(group.confirms) < confirmed + 100 or group.confirms[-1] < healed + 0.5:
            assert time.monotonic() < healed + MOST_S, f"no confirm after {name}"
            await anyio.sleep(0.05)
        self.gaps[name] = round(group.gap_s(before), 2)

    async def play(self) -> None:
        """All of it."""
        group, ledger = self.group, self.ledger
        done, written = anyio.Event(), anyio.Event()
        await create(group)
        async with anyio.create_task_group() as tasks:
            for producer in range(PRODUCERS):
                tasks.start_soon(produce, group, ledger, done, producer)
            tasks.start_soon(consume, group, ledger, done)
            tasks.start_soon(self._write_epochs, done, written)
            for name in self.kinds:
                await self._fault(name)
            done.set()
            with anyio.fail_after(MOST_S):
                await written.wait()
            tasks.cancel_scope.cancel()
        await self._check_epochs()
        await settle(group, ledger)
        assert self.late_writes, "a leader was frozen"

    # -- transactions ---------------------------------------------------------------------------

    async def _write_epochs(self, done: anyio.Event, written: anyio.Event) -> None:
        """Commit one epoch after the other, each until it is known to be committed."""
        attempt = 0
        while not done.is_set():
            attempt += 1
            try:
                async with connect(self.group.addresses, reconnect=FAIL_OVER) as client:
                    await client.create_queue("t", 1, OPTIONS, status="pull")
                    while not done.is_set():
                        with anyio.fail_after(10.0):
                            await self._write_epoch(client, attempt)
                        self.epochs += 1
            except (*GONE, TimeoutError):
                await anyio.sleep(0.05)
        written.set()

    async def _write_epoch(self, client: Client, attempt: int) -> None:
        parts: list[TransactionInformation] = []
        for part in range(_PARTS):
            opened = await client.open_transaction("sink", self.epochs, part=part, attempt=attempt)
            if opened.state == "committed":
                return
            payloads = _payloads(self.epochs, part)
            parts.append(await client.push_transaction(opened, "t", 1, payloads))
        done = await client.commit_transaction("sink", self.epochs, parts)
        assert done.state == "committed"

    async def _check_epochs(self) -> None:
        """All that are known to be committed are there once, and perhaps one more."""
        found: list[bytes] = []
        async with connect(self.group.addresses, reconnect=FAIL_OVER) as client:
            first = 1
            while portion := await client.read_range("t", 1, first):
                found += [each.payload for each in portion]
                first = portion[-1].sequence + 1
        epochs = len(found) // (_PARTS * _MESSAGES)
        whole = [
            each
            for epoch in range(epochs)
            for part in range(_PARTS)
            for each in _payloads(epoch, part)
        ]
        assert found == whole, f"{len(found)} messages, {len({*found})} different"
        assert self.epochs <= epochs <= self.epochs + 1

    def summary(self) -> str:
        """What came of it, in a line."""
        ledger = self.ledger
        refused = sum(each.refused for each in self.group.brokers.values())
        lives = sum(len(each.epochs) for each in self.group.brokers.values())
        return (
            f"{len(ledger.confirmed)} confirmed, lost 0, {ledger.repeated} came again,"
            f" {self.epochs} epochs committed once, {lives} leaders,"
            f" {refused} writes and {self.late_writes} late writes refused, gaps {self.gaps}"
        )


def _payloads(epoch: int, part: int) -> list[bytes]:
    return [b"%d/%d/%d" % (epoch, part, number) for number in range(_MESSAGES)]


async def play_round(folder: Path, seed: int) -> Round:
    """Play a round; what came of it."""
    network = Network((*NAMES, *ETCD), seed)
    try:
        group = Group(folder, network)
        try:
            played = Round(group, network, seed)
            await played.play()
        finally:
            await anyio.to_thread.run_sync(group.close)
    finally:
        network.close()
    return played
