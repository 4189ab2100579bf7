"""``Saving`` for tests, with a journal that they fill and a world that they are."""

from __future__ import annotations

from collections import deque

from tests.tmqp_server.storage.gathering import Gathering
from tmqp_server.engine.commands import Command, Fetched, StorageState, Synced
from tmqp_server.engine.effects import Fetch, FindOffsets
from tmqp_server.shell.saving import Saving
from tmqp_server.shell.world import Log, ReadBatch, WorldEffect, WriteBatch
from tmqp_server.storage.journal import Writing

__all__ = ["Desk", "fetch", "offsets"]


class Desk(Gathering):
    """Saving, with a journal that the test fills and a world that the test is."""

    def __init__(self) -> None:
        super().__init__()
        self.world: list[WorldEffect] = []
        self.answers: deque[Command] = deque()
        self.saving = Saving(self.journal, self.world, self.answers)
        self.now = 0.0
        self.sequence = 0
        #: The store has begun with the batch that is out.
        self.begun = False

    def push(self, marks: int = 0) -> None:
        """A message to be saved."""
        self.sequence += 1
        self.append(self.sequence, marks=marks)

    def settle(self, sequence: int) -> None:
        """A message that is on the disk, and nobody waits for its end."""
        self.erase(sequence)

    def ask(self, *questions: Fetch | FindOffsets) -> None:
        """The broker wants to read."""
        for question in questions:
            self.saving.ask(question)

    def wake(self) -> None:
        """As the turn does, when there is something."""
        if self.saving.wants:
            self.saving.wake(self.now)

    def work(self) -> list[WorldEffect]:
        """What is to be done, but for the log, since the last call."""
        found: list[WorldEffect] = [each for each in self.world if not isinstance(each, Log)]
        self.world[:] = [each for each in self.world if isinstance(each, Log)]
        return found

    def logs(self) -> list[str]:
        """What was logged, so far."""
        return [each.text for each in self.world if isinstance(each, Log)]

    def told(self) -> list[str]:
        """What the broker was told since the last call."""
        found = []
        for each in self.answers:
            if isinstance(each, Synced):
                found.append(f"{'saved' if each.ok else 'refused'} {each.ticket}+{each.count}")
            elif isinstance(each, StorageState):
                found.append("works" if each.ok else "fails")
            else:
                found.append(type(each).__name__)
        self.answers.clear()
        return found

    def write(self, error: Exception | None = None) -> list[str]:
        """The batch that is out is done; returns what the broker is told."""
        if not self.begun:
            self.begin()
        self.begun = False
        self.saving.written(error, self.now)
        return self.told()

    def begin(self) -> Writing:
        """The store begins with the batch that is out."""
        (work,) = self.work()
        assert isinstance(work, WriteBatch)
        self.begun = True
        return self.saving.take()

    def read(self, count: int, error: Exception | None = None) -> list[str]:
        """So many of the questions that are out are answered."""
        (work,) = self.work()
        assert isinstance(work, ReadBatch)
        answers = [Fetched(1, [], 0) for _ in range(count)]
        self.saving.read(answers, error, self.now)
        return self.told()

    def pass_time(self) -> None:
        """Until something is due."""
        self.now = self.saving.due()
        self.saving.on_deadline(self.now)


def fetch(size: int = 1_000) -> Fetch:
    return Fetch(1, 1, False, 0, 10, 10, size)


def offsets() -> FindOffsets:
    return FindOffsets(1, [1])
