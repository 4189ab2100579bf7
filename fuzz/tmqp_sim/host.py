"""What those who surround a simulated server, or judge it, may know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from tmqp_server.hub.hub import Hub
from tmqp_server.shell.turn import Turn
from tmqp_sim.network import End
from tmqp_sim.paces import Paces
from tmqp_sim.world import World

__all__ = [
    "GOMS", "NSQ", "OPENWIRE", "SELF_ASKING", "SMQ", "STOMP", "THROTTR", "WATCH", "WEB",
    "WEB_SOCKET", "ZMTP", "Guest", "Host", "Peer",
]  # fmt: skip

#: How the hosts of those begin who come by HTTP.
WEB: Final = "web "
#: And of those of them who speak TMQP through a WebSocket.
WEB_SOCKET: Final = f"{WEB}socket "
#: And of those who watch the server by HTTP.
WATCH: Final = "watch "
#: And of those who speak NSQ.
NSQ: Final = "nsq "
#: And of those who speak Throttr.
THROTTR: Final = "throttr "
#: And of ZeroMQ's sockets.
ZMTP: Final = "zmtp "
#: And of those who speak Simple MQ, or goMS.
SMQ: Final = "smq "
GOMS: Final = "goms "
#: And of those who speak STOMP, or OpenWire.
STOMP: Final = "stomp "
OPENWIRE: Final = "openwire "
#: What the sessions of these are answered may lead to further commands.
SELF_ASKING: Final = (WATCH, WEB, NSQ, THROTTR, ZMTP, SMQ, GOMS, STOMP, OPENWIRE)


class Guest(Protocol):
    """The server's end of one link."""

    number: int
    end: End
    step: int
    #: Bytes that waited when it was last looked at; when the peer last took some; since when it
    #: is being flushed; when it was last being sent to, or asked about.
    waited: int
    progress_at: float
    flushing_since: float
    busy_at: float


class Host(Protocol):
    """A server, in one of its lives."""

    world: World
    turn: Turn
    paces: Paces
    lives: int
    up: bool
    asleep: bool
    booted_at: float
    #: The turn will be called for the next portion.
    goes_on: bool

    @property
    def hub(self) -> Hub:
        """The hub of this life."""

    @property
    def now(self) -> float:
        """What its monotonic clock reads."""

    @property
    def guests(self) -> Mapping[int, Guest]:
        """Its sessions by number."""

    def hear(self, tell: Callable[[], None]) -> None:
        """Let the turn be told something from outside, as soon as the process runs."""


class Peer(Protocol):
    """What belongs to a server's process beside its sessions."""

    def crash(self) -> None:
        """The process is gone."""

    def wake(self) -> None:
        """The process continues."""

    def check(self) -> None:
        """Look at everything, after a turn."""
