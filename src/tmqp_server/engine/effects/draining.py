"""The effect of a client's request to drain the server."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.effects.base import Effect

__all__ = ["DrainAsked"]


@mypyc_attr(acyclic=True)
class DrainAsked(Effect):
    """A client wants the server to accept nothing more; with ``stops``, its process is to end after
    that."""

    __slots__ = ("stops",)

    def __init__(self, stops: bool) -> None:
        self.stops = stops
