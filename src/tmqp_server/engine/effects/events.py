"""The effects about events: for the world, for subscribers, for event handlers of channels."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.effects.base import Effect
from tmqp_server.engine.events import Fact

__all__ = [
    "Inform",
    "Notify",
    "TellHandler",
]


@mypyc_attr(acyclic=True)
class Inform(Effect):
    """Notify subscribers of an event (F129); all of ``sessions`` get the same bytes.

    ``channel`` is the channel as these subscribers spelt it, empty for events of the server;
    ``specified`` says that they want the form of the specification.
    """

    __slots__ = ("sessions", "event", "fact", "channel", "specified")

    def __init__(
        self, sessions: list[int], event: int, fact: Fact, channel: str, specified: bool
    ) -> None:
        self.sessions = sessions
        self.event = event
        self.fact = fact
        self.channel = channel
        self.specified = specified


@mypyc_attr(acyclic=True)
class Notify(Effect):
    """Something happened: ``event`` is one bit of ``events.py``, ``fact`` its subject."""

    __slots__ = ("event", "fact")

    def __init__(self, event: int, fact: Fact) -> None:
        self.event = event
        self.fact = fact


@mypyc_attr(acyclic=True)
class TellHandler(Effect):
    """Something happened in a channel that has this event handler; otherwise as ``Notify``."""

    __slots__ = ("handler", "event", "fact")

    def __init__(self, handler: str, event: int, fact: Fact) -> None:
        self.handler = handler
        self.event = event
        self.fact = fact
