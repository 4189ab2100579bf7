"""An operator who moves messages between two queues of its own, beside everything else.

Theory of operation.  The operator pushes some durable messages into one of its queues and then
moves them there and back, one by one; the disk fails and the server crashes meanwhile.  It asks for
one thing at a time, so it knows how many messages there must be in both queues together:

* when a push was confirmed, one more; when it was refused, none; when nobody answered, one or none,
  and which it was is seen when the server is back;
* a move changes nothing, whatever is answered, and however it ends: a message is never in both
  queues, and never in none.

It comes in by a door without bytes (``askers.py``).
"""

from __future__ import annotations

from random import Random
from typing import Final

from tmqp.constants import RESULT_OK, STATUS_PULL, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp_server.engine.commands import Command, CreateQueue, MoveMessage, Push
from tmqp_server.engine.effects import Confirm, Effect, Reply
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import QueueChanges
from tmqp_sim.askers import Asker
from tmqp_sim.plan import Plan
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["SHIFTER", "Shifter"]

#: The client's name, and that of its channel.
SHIFTER: Final = "shifter"
#: The numbers of its sessions lie beyond those of the other operators.
_FIRST_NUMBER: Final = 3_000_000
_QUEUES: Final = (1, 2)
#: How long it waits for an answer: a question about each of two rights may take a second.
_PATIENCE_S: Final = 15.0
_KEPT: Final = QueueChanges(status=STATUS_PULL, durable=True, memory_limit=2)
_MAKE: Final = "make"
_MOVE: Final = "move"
#: Its messages are TMQP's, so that the storage knows whose they are.
_PRODUCER: Final = "tmqp"
_DOOR_NUMBER: Final = 97


class Shifter(Asker):
    """The operator, over all lives of the server.

    :param plan: ``shifts`` says how many messages it pushes.
    """

    def __init__(self, simulation: Stage, plan: Plan) -> None:
        super().__init__(simulation, SHIFTER, _DOOR_NUMBER)
        self._left = plan.shifts
        self._random = Random(f"{plan.seed}/shifter")
        self._made = self._sessions = self._life = 0
        #: Messages that are there for certain, and pushes of which nobody knows.
        self._sure = self._unsure = 0
        #: What was asked and is not answered.
        self._asked = ""

    # -- the server's lives ---------------------------------------------------------------------

    def began(self) -> None:
        """A life begins, with what the disk had.

        :raises Violation: when messages are missing, or there are too many.
        """
        if self._asked == "push":
            self._unsure += 1
        there = self._there()
        if not self._sure <= there <= self._sure + self._unsure:
            raise Violation(
                "move",
                f"{there} messages are there after a restart, {self._sure} were"
                f" and {self._unsure} may be",
            )
        if self._asked == _MOVE:
            self._world.mark("server ended while a message was moved")
        self._sure, self._unsure = there, 0
        self._asked = ""
        self._life += 1
        self.session = None
        self._world.after(self._random.random() * 0.5, self._go_on, self._life)

    def _queues(self) -> list[Queue]:
        channel = self._simulation.broker._core.channels.find(SHIFTER)
        return [] if channel is None else list(channel.queues.values())

    def _there(self) -> int:
        return sum([queue.live() for queue in self._queues()])

    def _go_on(self, life: int) -> None:
        """Do what comes next, and look again later."""
        simulation = self._simulation
        server = simulation.server
        if life != self._life or not server.up:
            return
        self._world.after(0.03 + self._random.random() * 0.2, self._go_on, life)
        if server.asleep:
            self._asked_at = self._world.now
        elif self.session is None or self.session.closed:
            self._connect()
        elif self._asked:
            late_s = self._world.now - self._asked_at
            if late_s > _PATIENCE_S:
                raise Violation("move", f"no answer to a {self._asked} for {late_s:.1f} s")
        elif self.accepted and not simulation.healed:
            self._work()

    def _connect(self) -> None:
        self._sessions += 1
        if self._asked == "push":
            self._unsure += 1
        self._asked = ""
        self._open(_FIRST_NUMBER + self._sessions, _PRODUCER)

    def _ask(self, asked: str, command: Command) -> None:
        self._asked = asked
        self._say([command])

    # -- its work -------------------------------------------------------------------------------

    def _work(self) -> None:
        session = self.session
        assert session is not None, "it is connected"
        number = session.number
        there = {queue.queue_id for queue in self._queues()}
        missing = [each for each in _QUEUES if each not in there]
        if missing:
            self._ask(_MAKE, CreateQueue(number, _MAKE, SHIFTER, missing[0], _KEPT))
        elif self._left and self._random.random() < 0.5:
            self._left -= 1
            self._made += 1
            name = f"{SHIFTER}-{self._made}"
            self._ask("push", _push(number, name, 1, confirm=True))
        elif self._made:
            source = self._random.choice(_QUEUES)
            name = f"{SHIFTER}-{self._random.randrange(self._made) + 1}"
            copy = _push(number, name, 3 - source, confirm=False)
            self._ask(_MOVE, MoveMessage(number, _MOVE, SHIFTER, source, name, copy))

    def hear(self, effect: Effect) -> None:
        """Note what is answered."""
        if isinstance(effect, Confirm):
            self._pushed(effect.positive)
        elif isinstance(effect, Reply):
            self._answered(effect.request, effect.code)

    def _pushed(self, positive: bool) -> None:
        """A push is confirmed, or was not taken; of a copy nobody wants to know."""
        if self._asked != "push":
            return
        if positive:
            self._sure += 1
        else:
            self._unsure += 1  # it is not here, and may be on the disk
        self._end()

    def _answered(self, request: object, code: int) -> None:
        """Something else is answered; a push that was refused by a reply is not there."""
        if request == _MOVE and code == RESULT_OK:
            self._world.mark("message moved by an operator")
        if request in (_MAKE, _MOVE) or self._asked == "push":
            self._end()

    def _end(self) -> None:
        """An answer has come.

        :raises Violation: when another number of messages is there than must be.
        """
        asked, self._asked = self._asked, ""
        there = self._there()
        if there != self._sure:
            raise Violation("move", f"{there} messages are there, not {self._sure}: {asked}")


def _push(number: int, name: str, queue_id: int, *, confirm: bool) -> Push:
    """A push of a message with this id."""
    frame = Frame.build(
        TYPE_QUEUE_MESSAGE, SHIFTER, queue_id, b"x", message_id=name, source=SHIFTER
    )
    return Push(number, name, SHIFTER, queue_id, False, confirm, len(frame.raw), frame)
