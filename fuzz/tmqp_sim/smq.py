"""Clients of Simple MQ: producers, and consumers that count what they have done.

They end their connections now and then, in the middle of a line as well, and come back.  What a
producer handed to a connection that has ended is not sent again: it may have come or not.  What
must become of messages is in ``smq_books.py``.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Final

from tmqp_sim.host import SMQ
from tmqp_sim.small_clients import LineClient
from tmqp_sim.smq_books import Item, SmqBooks
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation
from tmqp_wires.smq import LineReader
from tmqp_wires.smq.codec import consume_line, done_line, publish_line, stats_line

__all__ = ["SmqConsumer", "SmqProducer"]

_LONGEST: Final = 4_096
_UNKNOWN: Final = b"UNKNOWN_TYPE"
#: What means nothing, and what is answered by nothing but that.
_NONSENSE: Final = (b"\n", b"hello\n", b"D:smq-Sim:-1\n", b"D:smq-Sim:many\n")
_STRANGE: Final = (b"X:smq-Sim\n", b":\n")


class _SmqClient(LineClient):
    """One client; it asks for statistics from time to time."""

    def __init__(
        self, simulation: Stage, name: str, books: SmqBooks, restless: float, room: int,
        pace_s: float,
    ) -> None:  # fmt: skip
        super().__init__(simulation, name, SMQ, "Simple MQ", restless, room, pace_s)
        self.books = books
        self._reader = LineReader(_LONGEST)
        #: What each question asks; of statistics, what the client had then and had not counted.
        self._asked: deque[dict[bytes, int] | None] = deque()
        self._synced = False

    @property
    def synced(self) -> bool:
        """Whether the server has answered on this connection since the world is healed."""
        return self.end is not None and not self.link.dead and self._synced

    def begins(self) -> None:
        """A new connection."""
        super().begins()
        self._reader = LineReader(_LONGEST)
        self._asked.clear()
        self._synced = False

    def greets(self) -> None:
        """Begin with what means nothing: ``C`` and ``D`` need not be ended as the first words, so a
        pause in the middle of one would end it (seed 2805)."""
        super().greets()
        self.unsent += b"hello\n"

    def mine(self) -> dict[bytes, int]:
        """How many messages of each queue it has and has not counted."""
        return {}

    def work(self) -> None:
        """Ask something now and then; when the world is healed, until that is answered."""
        if self.simulation.healed:
            if not self._synced and not self._asked:
                self._ask()
        elif self.random.random() < 0.1:
            self.unsent += self.random.choice(_NONSENSE)
        elif self.random.random() < 0.1:
            self._asked.append(None)
            self.unsent += self.random.choice(_STRANGE)
        elif self.random.random() < 0.2 and len(self._asked) < 3:
            self._ask()
        self.flush()

    def _ask(self) -> None:
        self._asked.append(self.mine())
        self.unsent += stats_line()

    def hears(self, data: bytes) -> None:
        """Take lines."""
        for line in self._reader.receive(data):
            if self.end is None:
                return
            if line == _UNKNOWN or line[:1] == b"{":
                self._answered(line)
            else:
                self.message(line)

    def _answered(self, line: bytes) -> None:
        if not self._asked:
            raise Violation("smq", f"{self.name} is told {line!r}, and has asked nothing")
        mine = self._asked.popleft()
        if (mine is None) != (line == _UNKNOWN):
            raise Violation("smq", f"{self.name} is told {line!r} for another question")
        if mine is not None:
            self.books.check_statistics(json.loads(line), mine, self.name)
            self.world.mark("Simple MQ statistics are right")
        self._synced = self._synced or self.simulation.healed

    def message(self, body: bytes) -> None:
        """A message."""
        raise Violation("smq", f"{self.name} consumes nothing, and gets {body!r}")


class SmqProducer(_SmqClient):
    """Puts messages into queues."""

    def __init__(
        self, simulation: Stage, name: str, books: SmqBooks, restless: float, room: int
    ) -> None:
        super().__init__(simulation, name, books, restless, room, 0.0)
        self.ready: deque[Item] = deque()

    @property
    def owes(self) -> int:
        """Items that are not sent, or that the broker has not taken."""
        under_way = self.books.under_way(self.link) if self.end is not None else 0
        return len(self.ready) + len(self.unsent) + under_way + (not self.synced)

    def give(self, item: Item) -> None:
        """An item comes up."""
        self.ready.append(item)
        self.flush()

    def more(self) -> bytes:
        """The next messages, if there are some."""
        if not self.ready or self.lingers:
            return b""
        lines = b""
        for _ in range(min(len(self.ready), self.random.choice((1, 1, 3, 8, 30)))):
            item = self.ready.popleft()
            self.books.hands(self.link, item)
            lines += publish_line(item.queue, item.body)
        return lines

    def go(self) -> None:
        """End the connection; before it is closed in order there may be half a line."""
        super().go()
        if self.lingers and self.random.random() < 0.5:
            self.unsent += b"M:smq-Sim:half a line"
            self.world.mark("Simple MQ client closed behind half a line")
            self.flush()

    def closes(self) -> None:
        """All was sent."""
        self.books.streams.closes(self.link)


class SmqConsumer(_SmqClient):
    """Takes messages, and counts them as done a while later.

    :param queues: which it consumes.
    :param work_s: how long it works on what it gets, at most.
    """

    def __init__(
        self, simulation: Stage, name: str, books: SmqBooks, restless: float, room: int,
        pace_s: float, queues: list[bytes], work_s: float,
    ) -> None:  # fmt: skip
        super().__init__(simulation, name, books, restless, room, pace_s)
        self._queues = queues
        self._work_s = work_s
        self._has = dict.fromkeys(queues, 0)

    @property
    def owes(self) -> int:
        """One as long as the server has not answered since the world is healed."""
        return int(not self.synced)

    def greets(self) -> None:
        """Consume the queues, one of them twice."""
        super().greets()
        self._has = dict.fromkeys(self._queues, 0)
        for queue in (*self._queues, self._queues[0]):
            self.unsent += consume_line(queue)

    def mine(self) -> dict[bytes, int]:
        """How many messages of each queue it has and has not counted."""
        return dict(self._has)

    def message(self, body: bytes) -> None:
        """Work on a message."""
        item = self.books.comes(self.link, body)
        if item.queue not in self._has:
            raise Violation("smq", f"{self.name} gets {item.uid} of {item.queue!r}")
        self.world.note("smq", self.name, item.uid)
        self.world.mark("Simple MQ message came")
        self._has[item.queue] += 1
        self.later(self._work_s * self.random.random(), lambda: self._done(item.queue))

    def _done(self, queue: bytes) -> None:
        """Count some as done, or all; or leave that to a later one."""
        count = self._has[queue]
        if not count or (not self.simulation.healed and self.random.random() < 0.3):
            return
        if not self.simulation.healed:
            count = self.random.randint(1, count)
        self._has[queue] -= count
        self.books.counts(self.link, queue, count)
        self.unsent += done_line(queue, count)
        self.flush()

    def work(self) -> None:
        """When the world is healed, count what was left."""
        super().work()
        if self.simulation.healed:
            for queue in self._queues:
                self._done(queue)
