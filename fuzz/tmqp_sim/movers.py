"""The mover: a client that takes messages and gives others for them, in batches; and the disk.

Theory of operation.  The mover fills a durable queue, each item once, and joins its channel.  What
it is sent it moves: a batch acknowledges some items and pushes what was made of each into a second
durable queue, from which nobody takes anything.  When the server refuses a batch the mover tries
again, or lets the items go if they are not its own any more; when it does not know, they come again
or not.

So the disk tells the truth, at each beginning of a life: every item is in the first queue, or what
was made of it is in the second, never both, and never neither once its push was confirmed.  What a
batch was confirmed for is in the second, and is not sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tmqp.constants import (
    RESULT_BUSY,
    RESULT_DUPLICATE,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    TYPE_QUEUE_MESSAGE,
)
from tmqp.errors import LocalProtocolError
from tmqp.extensions import OP_APPLY_BATCH
from tmqp.frames import Frame
from tmqp.models import QueueOptions
from tmqp_client._core import requests
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.outcomes import NotRestored
from tmqp_client._core.pending import Pending
from tmqp_client._core.requests import Request
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError, OperationFailed
from tmqp_sim.clients import SimClient
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["FROM", "MOVES", "TO", "Mover", "misplaced"]

#: The channel of both queues, and their ids.
MOVES: Final = "moves-channel"
FROM: Final = 1
TO: Final = 2
#: Pause before something is tried again, in seconds.
_RETRY_S: Final = 0.3
#: Items of one batch, at most.
_MOST: Final = 3


def misplaced(
    before: Iterable[str], after: Iterable[str], confirmed: set[int], moved: set[int]
) -> Iterator[str]:
    """What is wrong with what is in both queues, by the ids ``i7`` and ``o7``."""
    waiting: dict[int, int] = {}
    done: dict[int, int] = {}
    for each in before:
        waiting[int(each[1:])] = waiting.get(int(each[1:]), 0) + 1
    for each in after:
        done[int(each[1:])] = done.get(int(each[1:]), 0) + 1
    for item in sorted({*waiting, *done, *confirmed}):
        there, made = waiting.get(item, 0), done.get(item, 0)
        if there + made > 1 or (there + made == 0 and item in confirmed):
            yield f"item {item} is there {there} times and was moved {made} times"
        elif item in moved and not made:
            yield f"item {item} is there although it was moved"


class Mover(SimClient):
    """Moves so many items."""

    def __init__(self, simulation: Stage, name: str, limits: ClientLimits, count: int) -> None:
        super().__init__(simulation, name, limits)
        self.count = count
        #: Items whose push was confirmed, and those whose batch was.
        self.confirmed: set[int] = set()
        self.moved: set[int] = set()
        self._pushed = 0
        #: Items in its hands, by id, and those that are part of a batch without an answer.
        self._hand: dict[str, Frame] = {}
        #: What is asked and not answered: a word, or the ids in a batch, or the item pushed.
        self._asked: dict[str, tuple[str, list[str]]] = {}
        self._moving = False
        self.inbox: Inbox[Frame] = self.machine.subscribe(MOVES, None)

    @property
    def owes(self) -> int:
        """Items that are not pushed yet, or whose push is not answered."""
        return self.count - self._pushed + len(self._asked)

    def begin(self) -> None:
        """Make the queues, which may be there, and join."""
        if not self.machine.joins:
            self._ask("join", [], requests.join(MOVES))
        self._create(FROM, "push")
        self._create(TO, "pull")
        self.later(_RETRY_S, self._push)

    def forgets(self) -> None:
        """A new machine knows no subscription; items come again."""
        self.lost()
        self.inbox = self.machine.subscribe(MOVES, None)

    def lost(self) -> None:
        """What is in its hands comes again, if it is owed."""
        self._hand.clear()
        self._asked.clear()
        self._moving = False

    def not_restored(self, outcome: NotRestored) -> None:
        """The channel is not to be had any more: try on another connection."""
        self.world.after(0.0, self.leave, False)

    def _create(self, queue_id: int, status: str) -> None:
        options = QueueOptions(
            durable=True, memory_limit=4, acknowledge_timeout_ms=2_000, put_back_limit=1_000
        )
        request = requests.create_queue(
            MOVES, queue_id, options, status, None, "putback-end", None, ()
        )
        self._ask("create", [str(queue_id)], request)

    def _ask(self, what: str, ids: list[str], request: Request) -> bool:
        try:
            pending = self.machine.request(request, self.world.now)
        except (ClientError, LocalProtocolError):
            return False
        self._asked[pending.message_id] = (what, ids)
        self.flush()
        return True

    # -- items ----------------------------------------------------------------------------------

    def _push(self) -> None:
        """Bring the next item, once: nobody knows what happened to one without an answer."""
        if not self.usable or self._pushed >= self.count:
            return
        item = self._pushed
        try:
            pending = self.machine.push(
                MOVES, FROM, b"x", (), self.world.now, confirm=True, message_id=f"i{item}"
            )
        except (ClientError, LocalProtocolError):
            self.later(_RETRY_S, self._push)
            return
        self._pushed += 1
        self._asked[pending.message_id] = ("push", [f"i{item}"])
        self.flush()
        self.later(self.random.random() * 0.4, self._push)

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Have items in flight, and move them soon."""
        if inbox is not self.inbox:
            return
        while len(inbox):
            frame = inbox.take()
            if frame.content_type != FROM:
                raise Violation("moves", f"{self.name} was sent {frame.message_id} of {TO}")
            if int(frame.message_id[1:]) in self.moved:
                raise Violation("moves", f"{frame.message_id} was moved, and is sent again")
            self._hand[frame.message_id] = frame
        self._move_soon()
        self.flush()

    def _move_soon(self) -> None:
        if not self._moving and self._hand:
            self._moving = True
            # Now and then so late that a delivery times out while it is moved.
            late = self.random.random() < 0.1
            self.later(self.random.random() * (2.2 if late else 0.2), self._move)

    def _move(self) -> None:
        self._moving = False
        ids = list(self._hand)[:_MOST]
        if not ids or not self.usable:
            return
        pieces: list[bytes] = []
        for each in ids:
            made = Frame.build(TYPE_QUEUE_MESSAGE, MOVES, TO, b"y", message_id=f"o{each[1:]}")
            answer = requests.acknowledge_frame(self._hand[each], "", None)
            both = [made.raw, answer.raw]
            if self.random.random() < 0.5:
                both.reverse()
            pieces += both
        if self._ask("move", ids, Request(OP_APPLY_BATCH, "move", "", (), b"".join(pieces))):
            for each in ids:
                del self._hand[each]
        self._move_soon()

    # -- answers --------------------------------------------------------------------------------

    def settled(self, pending: Pending) -> None:
        """An answer, or none."""
        what, ids = self._asked.pop(pending.message_id, ("", []))
        error = pending.error
        if what == "push" and error is None:
            self.confirmed.add(int(ids[0][1:]))
        elif what == "join" and error is not None:
            self.world.after(0.0, self.leave, False)
        elif what == "create":
            self._created(int(ids[0]), error)
        elif what == "move" and error is None:
            self.world.mark("batch done")
            self.world.note("moved", *ids)
            self.moved.update([int(each[1:]) for each in ids])
            for each in ids:
                self._hand.pop(each, None)  # it was sent again before the batch came there
        elif what == "move":
            self._refused(ids, error)

    def _created(self, queue_id: int, error: object) -> None:
        """Try again, unless the queue already exists."""
        there = isinstance(error, OperationFailed) and error.code == RESULT_DUPLICATE
        if error is not None and not there and self.usable:
            status = "push" if queue_id == FROM else "pull"
            self.later(_RETRY_S, lambda: self._create(queue_id, status))

    def _refused(self, ids: list[str], error: object) -> None:
        self.world.note("not moved", *ids, str(error))
        self.world.mark("batch refused or lost")
        if not isinstance(error, OperationFailed):
            return  # nobody knows
        if error.code == RESULT_NOT_FOUND:
            self.world.mark("batch of what has gone elsewhere")
        elif error.code not in (RESULT_BUSY, RESULT_LIMIT_EXCEEDED):
            raise Violation("moves", f"a batch is answered {error.code}")
