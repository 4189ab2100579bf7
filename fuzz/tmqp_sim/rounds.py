"""Rounds: the event loop finds several connections readable at the same time.

In some worlds the server looks at its sockets only now and then, as a busy event loop does: the
turn is notified of a chunk of each connection that has one before it writes what they lead to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from tmqp_server.shell.turn import Turn
from tmqp_sim.world import World

__all__ = ["Rounds"]

#: In how many of the worlds, and how long it is at most from one look to the next, in seconds.
_WORLDS: Final = 0.25
_LONGEST_S: Final = 0.02


class _Session(Protocol):
    def has_chunk(self) -> bool: ...

    def read(self) -> None: ...


class _Server(Protocol):
    world: World
    asleep: bool
    turn: Turn

    @property
    def now(self) -> float: ...

    @property
    def readers(self) -> Mapping[int, _Session]: ...

    def attend(self) -> None: ...


class Rounds:
    """The looks of one server at its sockets.

    :param server: whose sessions are read.
    """

    def __init__(self, server: _Server, name: str) -> None:
        self._server = server
        self._chance = server.world.child(f"{name} rounds")
        #: Whether sockets are examined now and then; else each when it becomes readable.
        self.are_held = self._chance.random() < _WORLDS
        self._planned = False
        #: A round has begun and not ended.
        self.reading = False

    def plan(self) -> None:
        """Something can be read: look at the sockets soon."""
        if not self._planned:
            self._planned = True
            self._server.world.after(self._chance.random() * _LONGEST_S, self._look)

    def _look(self) -> None:
        self._planned = False
        server = self._server
        if server.asleep:
            return  # it looks when it continues
        together = [each for each in server.readers.values() if each.has_chunk()]
        if len(together) > 1:
            server.world.mark("chunks of several connections at once")
            turn = server.turn
            turn.begin_round()
            self.reading = True
            for each in together:
                each.read()
            self.reading = False
            if server.turn is turn:
                turn.end_round(server.now)
                server.attend()
        elif together:
            together[0].read()
