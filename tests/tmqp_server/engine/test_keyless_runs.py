"""Runs into queues where keys count, of messages that have none: as so many pushes."""

from __future__ import annotations

import random

import pytest

from tests.tmqp_server.engine.keyed import keyed
from tests.tmqp_server.engine.test_feed_runs import SIZE, Ids
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.commands import Acknowledge, PushRun, RunNotes
from tmqp_server.engine.effects import Deliver, DeliverRun, Effect
from tmqp_server.engine.options import STICKY, STRICT


class Keyless(Ids):
    """Says that no message of it has a key."""

    def is_keyless(self) -> bool:
        return True


class Ring:
    """A queue with consumers, each of which remembers what it got and answers when it is told."""

    def __init__(self, keys: str, *, runs: bool) -> None:
        self.world: World = keyed(keys)
        self.runs = runs
        self.heard: dict[int, list[str]] = {}
        self.divided = 0
        for name in ("a", "b", "p"):
            self.world.connect(name)
        for name in ("a", "b"):
            self.world.join(name)
            self.heard[self.world.numbers[name]] = []

    def push(self, ids: list[str], *, keyless: bool) -> None:
        number = self.world.numbers["p"]
        wire = Keyless(ids) if keyless else Ids(ids)
        size = SIZE * len(ids)
        run = PushRun(number, "ch", 1, False, False, len(ids), size, SIZE, wire, RunNotes())
        if self.runs:
            self.take(self.world.broker.step(run, self.world.now))
            self.divided += run.notes.divided
            return
        for each in run.pushes():
            self.take(self.world.broker.step(each, self.world.now))

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, DeliverRun):
                ids = effect.run.wire.contents()[0][effect.start : effect.stop : effect.step]
                for number in effect.sessions:
                    self.heard[number] += ids
            elif isinstance(effect, Deliver):
                for number in effect.sessions:
                    self.heard[number].append(effect.message.message_id)

    def answer(self, name: str, message_id: str) -> None:
        ack = Acknowledge(self.world.numbers[name], message_id, "ch", 1, True, "")
        self.take(self.world.broker.step(ack, self.world.now))


@pytest.mark.parametrize("keys", [STICKY, STRICT])
def test_a_run_without_keys_is_taken_in_one_go(keys: str) -> None:
    ring = Ring(keys, runs=True)
    ring.push(["m1", "m2", "m3"], keyless=True)
    assert list(ring.heard.values()) == [["m1", "m3"], ["m2"]]
    assert ring.divided == 0


def test_a_run_that_may_have_keys_is_divided() -> None:
    ring = Ring(STICKY, runs=True)
    ring.push(["k-1", "x2", "k-3"], keyless=False)
    assert ring.divided == 1
    assert sorted(map(len, ring.heard.values())) == [1, 2]
    assert ["k-1", "k-3"] in ring.heard.values()


@pytest.mark.parametrize("keys", [STICKY, STRICT])
@pytest.mark.parametrize("seed", range(2))
def test_keys_and_runs_without_them_give_the_same_as_single_pushes(keys: str, seed: int) -> None:
    rings = [Ring(keys, runs=True), Ring(keys, runs=False)]
    for ring in rings:
        chance = random.Random(seed)
        count = 0
        for _ in range(40):
            if chance.random() < 0.6:
                keyless = chance.random() < 0.6
                ids = []
                for _ in range(chance.randint(2, 9)):
                    count += 1
                    key = "" if keyless else chance.choice(("k-", "l-", ""))
                    ids.append(f"{key}{count}")
                ring.push(ids, keyless=keyless)
                continue
            name = chance.choice("ab")
            heard = ring.heard[ring.world.numbers[name]]
            if heard:
                ring.answer(name, chance.choice(heard))
    assert rings[0].heard == rings[1].heard
    assert rings[0].world.books() == rings[1].world.books()
