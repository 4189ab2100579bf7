"""What one life of a simulated server consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tmqp_server.doors.port import Door
from tmqp_server.shell.datagrams import Datagrams
from tmqp_server.shell.turn import Turn
from tmqp_sim.books import Ballast

__all__ = ["Built"]


class Built:
    """What one life of the server consists of."""

    __slots__ = (
        "ballast", "begin_portion", "datagrams", "door", "foreign", "others", "turn", "web",
    )  # fmt: skip

    def __init__(
        self,
        turn: Turn,
        door: Door,
        ballast: Ballast,
        begin_portion: Callable[[], None] | None = None,
        web: Door | None = None,
        foreign: Door | None = None,
        datagrams: Datagrams | None = None,
        others: Sequence[tuple[str, Door]] = (),
    ) -> None:
        self.turn = turn
        self.door = door
        self.ballast = ballast
        #: Called before commands of a session are processed.
        self.begin_portion = begin_portion
        #: The door of those who come by HTTP.
        self.web = web
        #: The door of another kind.
        self.foreign = foreign
        #: Those who come by datagrams.
        self.datagrams = datagrams
        #: The doors of those who speak other protocols, each with how their hosts begin.
        self.others = others
