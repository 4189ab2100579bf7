"""Which messages wait that others must not overtake, told from commands and deliveries."""

from __future__ import annotations

from collections.abc import Callable

from tmqp.extensions import HEADER_PRIORITY
from tmqp_server.engine.commands import Push
from tmqp_server.engine.model.message import Message
from tmqp_sim.kinship import header_of
from tmqp_sim.ranks import Ranks, Waiting, level_of
from tmqp_sim.world import World

__all__ = ["Precedence"]

_HIGHEST = 9

Key = tuple[str, int]


class Precedence:
    """The messages of this life of the server that have a priority and were not sent yet.

    Where ten priorities count, a priority is what the producer has written, and a message of which
    it cannot be read is judged by its flag alone.
    """

    __slots__ = ("_ranks", "_waiting", "_world")

    def __init__(self, world: World) -> None:
        self._ranks = Ranks(world, "order", "TMQP")
        self._ranks.has_ten = lambda _queue: True
        self._world = world
        #: By queue and id, with the flag; several if pushed again.
        self._waiting: dict[Key, dict[str, list[tuple[Waiting, bool]]]] = {}

    def level_of(self, message: Message) -> int:
        """The priority of a message; below 0 if it cannot be read."""
        return _level(message.wire, high=message.high_priority)

    def comes(self, key: Key, command: Push, *, has_ten: bool) -> None:
        """A message waits to be sent, in a queue with ten priorities or with two."""
        high, uid = command.high_priority, command.message_id
        level = _level(command.wire, high=high) if has_ten else -1
        if high or level >= 0:
            waiting = self._waiting.setdefault(key, {}).setdefault(uid, [])
            waiting.append(((level, self._world.now, uid), high))

    def high_ones(self, key: Key) -> list[str]:
        """The messages of a queue with the flag for high priority."""
        waiting = self._waiting.get(key, {})
        return [uid for uid, copies in waiting.items() if any(high for _, high in copies)]

    def passes(self, key: Key, uid: str) -> None:
        """A message, if it is one that waits, waits no more, or one of those pushed so."""
        waiting = self._waiting.get(key, {})
        if uid in waiting:
            waiting[uid].pop(0)
            if not waiting[uid]:
                del waiting[uid]

    def removed(self, key: Key, uid: str) -> None:
        """A message waits no more, however often it was pushed."""
        self._waiting.get(key, {}).pop(uid, None)

    def cleared(self, key: Key) -> None:
        """Nothing of a queue waits."""
        self._waiting.pop(key, None)

    def check(self, key: Key, message: Message, is_like: Callable[[str], bool]) -> None:
        """A message of a queue is sent.

        :param is_like: whether a message goes to those to whom this one does.
        :raises Violation: when one of a higher priority has to go first.
        """
        level = self.level_of(message)
        if level < 0:
            return
        waiting = [
            each
            for uid, copies in self._waiting.get(key, {}).items()
            if is_like(uid)
            for each, _ in copies
            if each[0] >= 0
        ]
        self._ranks.check(f"{key[0]}/{key[1]}".encode(), level, message.message_id, waiting)


def _level(wire: object, *, high: bool) -> int:
    """The priority that is written in a message; below 0 if that cannot be read."""
    said = header_of(wire, HEADER_PRIORITY)
    if said is None:
        return -1
    return int(said) if said else _HIGHEST if high else level_of(-1)
