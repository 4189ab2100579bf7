"""A program that gives a simulated server a copy of another one's disk, when the log is too short.

It does what the product's :class:`Rebuilding` decides.  The copy is taken of another server at one
moment and is there at a later one, unless that server has ended its life meanwhile; then another
copy is begun.  The program may crash at every step; then another one begins from nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from tmqp_server.replication.rebuilding import COPYING, READY, Rebuilding
from tmqp_server.storage.log import LogAnswer
from tmqp_sim.replicas.log_server import LogServer
from tmqp_sim.replicas.nodes import Node
from tmqp_sim.world import Violation, World

__all__ = ["RebuildingGroup", "begin_rebuilding"]

#: Pauses before what was not answered, or has failed, is tried again; and between two reports.
_AGAIN_S: Final = 0.3
_HOLD_S: Final = 0.7
#: How long a copy takes, at most, and before the next program begins.
_MOST_COPY_S: Final = 6.0
_NEXT_S: Final = 1.0
_CRASHES: Final = 0.05


class RebuildingGroup(Protocol):
    """What the program has around it; ``is_over`` says that nothing more is to go wrong."""

    world: World
    log: LogServer
    nodes: list[Node]
    is_over: bool


def begin_rebuilding(group: RebuildingGroup, node: Node, random: Random) -> None:
    """Start a program for a server."""
    _Rebuilder(group, node, random)


class _Rebuilder:
    """One program, for a server whose life has ended because the log is too short.

    :param random: all its chance.
    """

    def __init__(self, group: RebuildingGroup, node: Node, random: Random) -> None:
        self._group = group
        self._node = node
        self._random = random
        self._run = Rebuilding(node.name, f"tmqp://{node.name}")
        self._disk = node.disk
        #: What every copy of use has, since the log had lost it when this began.
        self._least = group.log.first - 1
        self._is_over = False
        self._go_on()

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        self._group.world.after(delay_s, self._if_alive, call)

    def _if_alive(self, call: Callable[[], None]) -> None:
        if not self._is_over:
            call()

    def _go_on(self) -> None:
        group = self._group
        if not group.is_over and self._random.random() < _CRASHES:
            group.world.mark("a program that rebuilds crashed")
            self._is_over = True
            group.world.after(_NEXT_S, begin_rebuilding, group, self._node, self._random)
        elif self._run.state == COPYING:
            self._copy()
        elif self._run.state == READY:
            self._put_in_place()
        else:
            self._node.link.ask(
                self._run.request,
                lambda answer: self._if_alive(lambda: self._answered(answer)),
                lambda: self._later(_AGAIN_S, self._go_on),
            )

    def _answered(self, answer: LogAnswer) -> None:
        is_compared = self._run.state > COPYING
        self._run.answered(answer)
        if is_compared and self._run.state != READY:
            self._group.world.mark("a copy was of no use")
        self._go_on()

    def _copy(self) -> None:
        """Take a copy of a server that is there; of the leader, mostly."""
        others = [each for each in self._group.nodes if each is not self._node and each.is_up]
        if not others:
            self._later(_AGAIN_S, self._go_on)
            return
        leaders = [each for each in others if each.serves]
        wanted = leaders if leaders and self._random.random() < 0.8 else others
        source = self._random.choice(wanted)
        life = source.lives
        self._disk = source.disk.copy()
        takes_s = self._random.random() * _MOST_COPY_S
        self._hold_on(self._group.world.now + takes_s)
        self._later(takes_s, lambda: self._copied(source, life))

    def _copied(self, source: Node, life: int) -> None:
        if source.lives != life or not source.is_up:
            self._group.world.mark("a copy broke off")
            self._later(_AGAIN_S, self._go_on)
            return
        self._run.copied(self._disk.number)
        self._go_on()

    def _hold_on(self, until: float) -> None:
        """Report from time to time as long as the copy takes."""
        if self._group.world.now + _HOLD_S >= until:
            return

        def report() -> None:
            self._run.hold_on()
            self._node.link.ask(self._run.request, lambda _: None, lambda: None)
            self._hold_on(until)

        self._later(_HOLD_S, report)

    def _put_in_place(self) -> None:
        if self._disk.number < self._least:
            text = f"{self._node.name} is rebuilt with {self._disk.number} of {self._least} entries"
            raise Violation("rebuilt", text)
        self._group.world.mark("a server was rebuilt")
        self._disk.has_joined = True  # the log is held for it
        self._node.disk = self._disk
        self._node.needs_rebuild = False
        self._node.boot()
