"""The effects for reading kept messages, and for saving the positions of readers.

Cursors are saved like the topology, with a ticket.  A question is answered in order with the
writes: it finds everything that was appended before it.
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp.blocks import AS_BLOCKS
from tmqp_server.engine.effects.base import Effect
from tmqp_server.engine.effects.storage import StoredChange

__all__ = [
    "FindOffsets",
    "ForgetCursors",
    "MeasureStored",
    "ReadStored",
    "SplitStored",
    "StoreCursors",
]


class StoreCursors(StoredChange):
    """A reader is done with everything up to ``sequences`` of queues, or begins behind it.

    All of them are stored in one batch.
    """

    __slots__ = ("keys", "cursor", "sequences")

    def __init__(self, keys: list[int], cursor: str, sequences: list[int]) -> None:
        super().__init__()
        self.keys = keys
        self.cursor = cursor
        self.sequences = sequences


class ForgetCursors(StoredChange):
    """A reader of these queues is gone."""

    __slots__ = ("keys", "cursor")

    def __init__(self, keys: list[int], cursor: str) -> None:
        super().__init__()
        self.keys = keys
        self.cursor = cursor


@mypyc_attr(acyclic=True)
class FindOffsets(Effect):
    """What is kept of these queues; answered by ``OffsetsFound``.

    And, unless ``timestamp_us`` (Unix time) is negative, what came then or later.
    """

    __slots__ = ("number", "keys", "timestamp_us")

    def __init__(self, number: int, keys: list[int], timestamp_us: int = -1) -> None:
        self.number = number
        self.keys = keys
        self.timestamp_us = timestamp_us


@mypyc_attr(acyclic=True)
class ReadStored(Effect):
    """Read what is kept of a queue from ``first`` (0 the earliest) to ``last``.

    Up to ``limit`` messages and about ``max_bytes`` of them; in the ``form`` of ``tmqp.blocks``
    (``AS_BLOCKS``).  ``end`` is the last sequence that the queue has used.  Answered by
    ``RangeRead``: 416 when ``first`` is more than one behind ``end``, or before all that is kept;
    unless it is ``held``: a cursor keeps everything from there on, so that what is missing never
    was there.
    """

    __slots__ = (
        "number",
        "key",
        "first",
        "last",
        "limit",
        "max_bytes",
        "end",
        "held",
        "form",
    )

    def __init__(
        self,
        number: int,
        key: int,
        first: int,
        last: int,
        limit: int,
        max_bytes: int,
        end: int,
        held: bool,
        form: int = AS_BLOCKS,
    ) -> None:
        self.number = number
        self.key = key
        self.first = first
        self.last = last
        self.limit = limit
        self.max_bytes = max_bytes
        self.end = end
        self.held = held
        self.form = form


@mypyc_attr(acyclic=True)
class SplitStored(Effect):
    """Split what is kept of a queue from ``first`` to ``last`` into ``most_parts`` at most.

    Each with ``limit`` messages and ``max_bytes`` at most, 0 for any number of them.  Answered by
    ``RangeSplit``; ``end``, ``held`` and 416 as in :class:`ReadStored`.
    """

    __slots__ = (
        "number",
        "key",
        "first",
        "last",
        "limit",
        "max_bytes",
        "most_parts",
        "end",
        "held",
    )

    def __init__(
        self,
        number: int,
        key: int,
        first: int,
        last: int,
        limit: int,
        max_bytes: int,
        most_parts: int,
        end: int,
        held: bool,
    ) -> None:
        self.number = number
        self.key = key
        self.first = first
        self.last = last
        self.limit = limit
        self.max_bytes = max_bytes
        self.most_parts = most_parts
        self.end = end
        self.held = held


@mypyc_attr(acyclic=True)
class MeasureStored(Effect):
    """How much is kept of some queues behind a sequence of each; answered by ``StoredMeasured``."""

    __slots__ = ("number", "keys", "after")

    def __init__(self, number: int, keys: list[int], after: list[int]) -> None:
        self.number = number
        self.keys = keys
        self.after = after
