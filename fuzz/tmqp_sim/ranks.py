"""Which of the messages that wait in a queue of JMS goes first, by their priorities.

Theory of operation.  A message that is sent, for the first time or again, skips none of a
higher priority that nobody was sent yet and that has been in the queue since an earlier moment.
What entered at the same moment may be after it in one run; what a transaction brings enters at
a time that nobody is told; what waits for room, or was refused by the disk, is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from tmqp_sim.world import Violation, World

__all__ = ["Ranks", "Waiting", "level_of"]

_USUAL: Final = 4
#: A message that nobody was sent: its priority, since when it is in its queue, and its name.
Waiting: TypeAlias = tuple[int, float, str]


def level_of(priority: int) -> int:
    """The priority that a message has which was sent with this one; below 0 for none."""
    return _USUAL if priority < 0 else priority


class Ranks:
    """Checks the order of priorities, for one protocol.

    :param checker: the protocol's name in reports.
    :param title: how marks begin.

    Attributes: ``has_ten``, whether each of ten priorities counts in a queue, by its name; where
    that is not so, those above the usual one go before the others; ``counts``, whether the order is
    known in this history.
    """

    def __init__(self, world: World, checker: str, title: str) -> None:
        self._world = world
        self._checker = checker
        self._title = title
        self.has_ten: Callable[[bytes], bool] = _nowhere
        self.counts = True

    def check(self, queue: bytes, level: int, uid: str, waiting: Iterable[Waiting]) -> None:
        """A message is sent while others wait.

        :raises Violation: when one of them has to go first.
        """
        if not self.counts:
            return
        ten = self.has_ten(queue)
        now = self._world.now
        for other, since, name in waiting:
            if since >= now:
                continue
            first = other > level if ten else level <= _USUAL < other
            if first:
                text = f"{uid} of priority {level} overtakes {name} of {other}"
                raise Violation(self._checker, text)
            if other < level and ten:
                self._world.mark(f"{self._title} message of ten priorities sent before lower ones")


def _nowhere(queue: bytes) -> bool:
    return False
