"""What every effect is: something the engine tells the world to do, in the order in which to do it.

An effect names sessions by number and says nothing of bytes: the door of each session turns it
into its own protocol (rule 3).  ``request`` and ``wire`` are handed back exactly as the command
brought them.
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.records import Record

__all__ = [
    "Effect",
]


@mypyc_attr(acyclic=True)
class Effect(Record):
    """Something for the world to do."""

    __slots__ = ()
