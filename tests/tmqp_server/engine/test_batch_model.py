"""Batches beside a model of their own: all of a batch is there, or nothing, whatever the disk does.

The model is two lists of ids for each queue and the batches between them: what a write that
succeeds makes of them, and that one that fails, or never happens, makes nothing.  It knows no
message, no sequence and no ticket.
"""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tmqp.constants import STATUS_PULL
from tmqp_server.engine.commands import Acknowledge, Batch, Command, Push, Release
from tmqp_server.engine.delivery.batch_checks import PendingBatch
from tmqp_server.engine.delivery.batches import Batches
from tmqp_server.engine.options import QueueChanges

pytestmark = pytest.mark.cold

SAVED, OTHER, BRIEF = 1, 2, 3
LIMIT: Final = 12


class Model:
    """What is there: of queues 1 and 2 on the disk as well, of queue 3 in memory only."""

    def __init__(self) -> None:
        self.there: dict[int, list[str]] = {SAVED: [], OTHER: [], BRIEF: []}
        #: In the hands of the client, and of these, promised to a batch that is not decided.
        self.hands: dict[int, list[str]] = {SAVED: [], OTHER: [], BRIEF: []}
        self.promised: set[str] = set()
        #: Batches that are not written: what each pushes, and what it settles.
        self.waiting: list[tuple[list[tuple[int, str]], list[tuple[int, str]]]] = []

    def room(self, queue_id: int) -> int:
        """How many more messages may wait, those of undecided batches counted."""
        coming = sum(place == queue_id for pushes, _ in self.waiting for place, _ in pushes)
        free = [each for each in self.there[queue_id] if each not in self.hands[queue_id]]
        return LIMIT - len(free) - coming

    def code_of(self, pushes: list[tuple[int, str]], settled: list[tuple[int, str]]) -> int:
        """What a batch is answered with; it is asked for in this order."""
        for queue_id in self.there:
            if sum(place == queue_id for place, _ in pushes) > self.room(queue_id):
                return 482
        for place, (queue_id, message_id) in enumerate(settled):
            mine = message_id in self.hands[queue_id] and message_id not in self.promised
            if not mine or (queue_id, message_id) in settled[:place]:
                return 404
        return 0

    def decide(self, ok: bool) -> None:
        """The disk has answered for all that waits."""
        for pushes, settled in self.waiting:
            for queue_id, message_id in settled:
                self.promised.discard(message_id)
                if ok:
                    self.there[queue_id].remove(message_id)
                    self.hands[queue_id].remove(message_id)
            if ok:
                for queue_id, message_id in pushes:
                    self.there[queue_id].append(message_id)
        self.waiting.clear()

    def crash(self) -> None:
        """What was in memory only is gone, and nobody has anything in hand."""
        self.decide(ok=False)
        self.there[BRIEF] = []
        for hand in self.hands.values():
            hand.clear()


class Pair:
    """The broker and the model, given the same."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.model = Model()
        self.world = KeptWorld()
        for queue_id in self.model.there:
            options = QueueChanges(
                status=STATUS_PULL,
                durable=queue_id != BRIEF,
                message_limit=LIMIT,
                acknowledge_timeout_ms=3_600_000,
                memory_limit=self.chance.choice((0, 2)) if queue_id == SAVED else 0,
            )
            self.world.create(options, queue_id=queue_id, owner="t")
        self.world.join("t")
        self.world.sync()
        self.made = 0
        self.told: list[int] = []
        self.marks: set[str] = set()

    def batch(self) -> None:
        """Push some, settle some of what is in hand, and sometimes what is not."""
        chance, model = self.chance, self.model
        number = self.world.numbers["t"]
        commands: list[Command] = []
        pushes: list[tuple[int, str]] = []
        settled: list[tuple[int, str]] = []
        for _ in range(chance.randint(0, 4)):
            self.made += 1
            place, message_id = chance.choice((SAVED, SAVED, OTHER, BRIEF)), f"m{self.made}"
            pushes.append((place, message_id))
            commands.append(Push(number, message_id, "ch", place, False, False, 10, "wire"))
        for place, hand in model.hands.items():
            for message_id in chance.sample(hand, chance.randint(0, len(hand))):
                settled.append((place, message_id))
        if chance.random() < 0.1:
            settled.append((OTHER, "nobody's"))
        for place, message_id in settled:
            commands.append(Acknowledge(number, message_id, "ch", place, True, ""))
        code = model.code_of(pushes, settled)
        words = self.world.step(Batch(number, "batch", commands))
        keeps = any(place != BRIEF for place, _ in pushes + settled)
        if code or not keeps:
            assert f"t batch: {code}" in words
            self.marks.add(f"answered {code} at once")
        else:
            assert not any(word.startswith("t batch") for word in words), "not yet"
        if code == 0:
            self.marks.add("settles" if settled else "pushes only")
            model.waiting.append((pushes, settled))
            model.promised.update(message_id for _, message_id in settled)
            if not keeps:
                last = model.waiting.pop()
                before, model.waiting = model.waiting, [last]
                promised = model.promised - {message_id for _, message_id in settled}
                model.decide(ok=True)
                model.waiting, model.promised = before, promised
        self.hear(words)

    def take(self) -> None:
        """Have more in hand."""
        place = self.chance.choice((SAVED, OTHER, BRIEF))
        self.hear(self.world.pull("t", self.chance.randint(1, 3), queue_id=place))
        self.hear(self.world.fetch() + self.world.finish())

    def hear(self, words: list[str]) -> None:
        """What comes is there, and not in hand."""
        for word in words:
            who, what, part, *rest = [*word.split(), "", ""]
            if (who, what) == ("t", "pull") and "/" in part:
                message_id = rest[0]
                (place,) = [each for each, ids in self.model.there.items() if message_id in ids]
                assert message_id not in self.model.hands[place]
                self.model.hands[place].append(message_id)

    def give_back(self) -> None:
        """A batch that only gives back keeps nothing, and loses nothing."""
        place = self.chance.choice((SAVED, OTHER, BRIEF))
        hand = [each for each in self.model.hands[place] if each not in self.model.promised]
        if hand:
            message_id = self.chance.choice(hand)
            number = self.world.numbers["t"]
            release = Release(number, None, message_id, "ch", place)
            words = self.world.step(Batch(number, "batch", [release]))
            assert "t batch: 0" in words
            self.model.hands[place].remove(message_id)
            self.hear(words)
            self.marks.add("given back")

    def write(self, ok: bool) -> None:
        """One write; all batches since the last are answered, alike."""
        waited = len(self.model.waiting)
        words = self.world.write(fails="" if ok else "full") + self.world.finish()
        answers = [word for word in words if word.startswith("t batch")]
        assert answers == [f"t batch: {0 if ok else 503}"] * waited
        self.marks.add(f"{'written' if ok else 'not written'}: {min(waited, 2)}")
        self.model.decide(ok)
        self.hear(words)

    def crash(self) -> None:
        """Kill the server: before a write, or after it and before its answer."""
        if self.chance.random() < 0.5:
            writing = self.world.journal.take()
            self.world.store.write(writing.batch, 0)
            self.model.decide(ok=True)
            self.marks.add("written and not answered")
        self.model.crash()
        self.world.crash()
        queue = QueueChanges(status=STATUS_PULL, message_limit=LIMIT)
        self.world.create(queue, queue_id=BRIEF, owner="t")
        self.world.join("t")
        self.world.sync()

    def compare(self) -> None:
        """The same is there; of what is on the disk only, as much."""
        for place, there in self.model.there.items():
            queues = [each for each in self.world.broker.queues() if each.queue_id == place]
            found: list[str] = []
            spilled = 0
            for queue in queues:
                messages = [*queue.regular.messages(), *queue.all_flights().values()]
                found = [each.message_id for each in messages]
                spilled = queue.spilled
            assert set(found) <= set(there)
            assert len(found) + spilled == len(there), f"queue {place}"


def run(seed: int) -> set[str]:
    """One history; what happened in it."""
    pair = Pair(seed)
    for _ in range(120):
        act = pair.chance.random()
        if act < 0.45:
            pair.batch()
        elif act < 0.65:
            pair.take()
        elif act < 0.7:
            pair.give_back()
        elif act < 0.86:
            pair.write(ok=True)
        elif act < 0.95:
            pair.write(ok=False)
        else:
            pair.crash()
        pair.compare()
    pair.write(ok=True)
    pair.model.crash()
    pair.world.crash()
    pair.world.join("t")
    pair.world.sync()
    pair.compare()
    return pair.marks


def test_all_of_a_batch_or_nothing() -> None:
    marks = {mark for seed in range(8) for mark in run(seed)}
    assert marks >= {
        "written: 1", "written: 2", "not written: 1", "not written: 2", "written and not answered",
        "answered 0 at once", "answered 404 at once", "answered 482 at once", "settles",
        "given back",
    }  # fmt: skip


def _settles_anyway(self: Batches, batch: PendingBatch) -> None:
    self._finish(batch)


def test_a_batch_that_failed_and_is_done_all_the_same_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Batches, "_give_up", _settles_anyway)
    with pytest.raises(AssertionError):
        _ = [run(seed) for seed in range(8)]
