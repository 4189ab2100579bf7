"""The base class of effects, which the world carries out in order.

An effect names sessions by number and contains no bytes of a protocol: the door of each session
encodes it (rule 3).  ``request`` and ``wire`` are returned exactly as the command contained them.
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.records import Record

__all__ = [
    "Effect",
]


@mypyc_attr(acyclic=True)
class Effect(Record):
    """Something that the world must do."""

    __slots__ = ()
