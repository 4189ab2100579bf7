"""The cases of the conformance suite, and their player, without I/O.

- ``talk``: the words of scripts; ``cases``, ``steps``, ``patterns``: the objects that they make;
  ``verdicts``: the possible results of a case.
- ``player``: plays a case on a ``lines.Stage``; ``memory`` is the stage for machines without I/O.
- ``servers`` and ``clients``: the cases for the two roles, one module for each group.

``tmqp-conformance`` plays the cases over sockets.  From a test of your own::

    from tmqp.testing.conformance import MemoryStage, play
    from tmqp.testing.conformance.servers import SERVER_CASES

    results = [play(case, MemoryStage(my_machine), "1") for case in SERVER_CASES]
"""

from __future__ import annotations

from tmqp.testing.conformance.cases import CAPABILITIES, Bounds, Case, case
from tmqp.testing.conformance.lines import Entry, Kind, Stage, UnreachableError, Wire
from tmqp.testing.conformance.memory import Machine, MemoryStage
from tmqp.testing.conformance.player import Patience, Result, play
from tmqp.testing.conformance.verdicts import ACCEPTED, FAILURES, Level, Verdict, worst

__all__ = [
    "ACCEPTED",
    "CAPABILITIES",
    "FAILURES",
    "Bounds",
    "Case",
    "Entry",
    "Kind",
    "Level",
    "Machine",
    "MemoryStage",
    "Patience",
    "Result",
    "Stage",
    "UnreachableError",
    "Verdict",
    "Wire",
    "case",
    "play",
    "worst",
]
