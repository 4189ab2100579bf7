"""A client that makes groups of channels and removes each at once, as nsqd's ``/topic/delete``.

Theory of operation.  A group is a source, whose queue feeds the queues of some other channels.  The
client makes it, pushes into it, joins some of its channels and removes all of them with one
command; rights flip meanwhile, and the server crashes.  What must hold is examined in the broker:

* what is answered with 0 has gone as a whole, with its feeds, and its consumers were told;
* what is answered with 0 does not come back with the disk; what is answered with 503 may, for the
  disk has failed;
* what is answered with anything else is there as a whole: who may not remove one channel removes
  none;
* an answer comes;
* a life that begins has no fed channel without its source: the source is made first and removed
  last.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from tmqp.constants import (
    RESULT_BUSY,
    RESULT_NOT_FOUND,
    RESULT_OK,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
)
from tmqp_server.engine.commands import (
    AddFeed,
    Command,
    CreateQueue,
    Join,
    Push,
    RemoveChannels,
)
from tmqp_server.engine.effects import Effect, Left, Reply
from tmqp_server.engine.options import QueueChanges
from tmqp_sim.askers import Asker
from tmqp_sim.plan import Plan
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["REMOVER", "Remover"]

#: The client's name; the channels of its groups begin with it.
REMOVER: Final = "remover"
#: The numbers of its sessions lie beyond those of the operator.
_FIRST_NUMBER: Final = 2_000_000
#: How long it waits for an answer: four questions about rights may each take a second.
_PATIENCE_S: Final = 15.0
#: A queue of a group that has no feed.
_FURTHER: Final = 1
_DOOR_NUMBER: Final = 98
_REMOVAL: Final = "remove"


class Remover(Asker):
    """The client, over all lives of the server."""

    def __init__(self, simulation: Stage, plan: Plan) -> None:
        super().__init__(simulation, REMOVER, _DOOR_NUMBER)
        self._left = plan.removals
        self._random = Random(f"{plan.seed}/remover")
        self._groups = self._life = 0
        #: The names of the group, the source last; None while there is none.
        self._group: list[str] | None = None
        #: Answers that have not come.
        self._awaited = 0
        #: The names that were there when the removal was asked for; None while none is.
        self._there: list[str] | None = None
        #: What was removed for good.
        self._gone: set[str] = set()
        #: What it has joined and was not told to have left.
        self._joined: set[str] = set()

    # -- the server's lives ---------------------------------------------------------------------

    def began(self) -> None:
        """A life begins, with what the disk had.

        :raises Violation: when a channel is there without its source.
        """
        channels = self._simulation.broker._core.channels.by_key
        for name in [each.name for each in channels.values()]:
            source, colon, _ = name.partition(":")
            if colon and name.startswith(REMOVER) and source not in channels:
                raise Violation("removal", f"{name} is there, and {source} is not")
            if name in self._gone:
                raise Violation("removal", f"{name} is there again, and was removed")
        self._life += 1
        self.session = None
        self._group = self._there = None
        self._awaited = 0
        self._joined.clear()
        self._world.after(self._random.random() * 0.5, self._go_on, self._life)

    def _go_on(self, life: int) -> None:
        """Do what comes next, and look again later."""
        simulation = self._simulation
        server = simulation.server
        if life != self._life or not server.up:
            return
        self._world.after(0.05 + self._random.random() * 0.4, self._go_on, life)
        if server.asleep:
            self._asked_at = self._world.now
            return
        if self.session is None or self.session.closed:
            self._connect()
        elif self._awaited:
            late_s = self._world.now - self._asked_at
            if late_s > _PATIENCE_S:
                raise Violation("removal", f"no answer for {late_s:.1f} s")
        elif not self.accepted:
            return
        elif self._group is None:
            self._clean_up()
        else:
            self._remove(self._group)

    def _connect(self) -> None:
        number = _FIRST_NUMBER + self._groups + self._life * 1_000
        self._groups += 1
        self._awaited = 0
        self._group = self._there = None
        self._joined.clear()
        self._open(number, REMOVER)

    def hear(self, effect: Effect) -> None:
        """Note what is answered."""
        if isinstance(effect, Reply):
            if effect.request == _REMOVAL:
                self._removed(effect.code)
            elif effect.request is not None:
                self._awaited -= 1
        elif isinstance(effect, Left):
            self._joined.discard(effect.channel)

    # -- groups ---------------------------------------------------------------------------------

    def _clean_up(self) -> None:
        """Remove what an earlier life has left, or make a new group."""
        channels = self._simulation.broker._core.channels.by_key.values()
        found = sorted([each.name for each in channels if each.name.startswith(REMOVER)])
        if found:
            self._group = found[::-1]  # a source is before what it feeds
        elif self._left > 0 and not self._simulation.healed:
            self._left -= 1
            self._make()

    def _make(self) -> None:
        chance = self._random
        number = self.session.number if self.session is not None else 0
        self._groups += 1
        source = f"{REMOVER}-{self._groups}"
        fed = [f"{source}:{each}" for each in range(chance.choice((0, 1, 2, 4)))]
        durable = chance.random() < 0.5
        several = chance.random() < 0.3 and not durable
        pushed = QueueChanges(status=STATUS_PUSH, durable=durable)
        dealt = QueueChanges(status=STATUS_ROUND_ROBIN, durable=durable)
        commands: list[Command] = [CreateQueue(number, "make", source, 0, pushed)]
        for name in fed:
            commands.append(CreateQueue(number, "make", name, 0, dealt, source=(source, 0)))
            commands.append(AddFeed(number, "make", source, 0, name, 0))
            if several:
                for each in range(_FURTHER, _FURTHER + chance.choice((1, 5))):
                    commands.append(
                        CreateQueue(number, "make", name, each, dealt, source=(source, 0))
                    )
            if chance.random() < 0.5:
                commands.append(Join(number, "make", name, 0, creates=False))
        self._awaited = len(commands) + 1
        if not durable:
            for each in range(chance.choice((0, 3))):
                name = f"{source}-{each}"
                commands.append(Push(number, name, source, 0, False, False, 10, None))
        # A push may make the source that could not be created, so the last answer is behind it.
        commands.append(CreateQueue(number, "make", source, 0, pushed))
        self._group = [*fed, source]
        self._world.mark("group of channels made")
        self._say(commands)

    def _remove(self, group: list[str]) -> None:
        channels = self._simulation.broker._core.channels
        self._there = [name for name in group if channels.find(name) is not None]
        joined = self._joined_of(self._there)
        self._joined = joined
        self._awaited = 1
        number = self.session.number if self.session is not None else 0
        asked = [*group, group[0]] if self._random.random() < 0.2 else group
        self._say([RemoveChannels(number, _REMOVAL, list(asked))])

    def _joined_of(self, names: Sequence[str]) -> set[str]:
        """Which of these channels the client has joined."""
        core = self._simulation.broker._core
        number = self.session.number if self.session is not None else 0
        found: set[str] = set()
        for name in names:
            channel = core.channels.find(name)
            if channel is not None and number in channel.audience.subscriptions:
                found.add(name)
        return found

    def _removed(self, code: int) -> None:
        """A removal is answered.

        :raises Violation: when something is left, or not everything is.
        """
        self._awaited = 0
        there, self._there = self._there, None
        assert there is not None, "it was asked for"
        channels = self._simulation.broker._core.channels
        left = [name for name in there if channels.find(name) is not None]
        if code == RESULT_BUSY and not left:
            self._group = None
            self._world.mark("channels removed, but not on the disk")
        elif code in (RESULT_OK, RESULT_NOT_FOUND):
            if left:
                raise Violation("removal", f"{left} are left of {there}, which were removed")
            if self._joined:
                raise Violation("removal", f"nobody was told to have left {self._joined}")
            if (code == RESULT_OK) != bool(there):
                raise Violation("removal", f"the answer is {code}, and {there} were there")
            self._group = None
            self._gone.update(there)
            self._world.mark("channels removed at once")
            if len(there) > self._simulation.broker._core.limits.max_work_per_step:
                self._world.mark("channels removed in portions")
        elif left != there:
            raise Violation("removal", f"only {left} are left of {there}, though it says {code}")
        else:
            self._world.mark("removal of channels refused")
