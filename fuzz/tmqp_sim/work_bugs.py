"""Planted bugs in counting the work that operations are, and in what the server says of itself;
see ``mutants.py``.
"""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.broker import Broker
from tmqp_server.engine.operations.nodes import Nodes
from tmqp_server.hub.outlets import Outlets

__all__ = ["WORK_BUGS"]


def _costs_nothing(original: Any) -> Any:
    def charge(self: Outlets, work: int) -> None:
        """What is not sent does not count."""

    return charge


def _counts_operations_only(original: Any) -> Any:
    def take_work(self: Broker) -> int:
        work: int = original(self)
        return min(work, 1)

    return take_work


def _describes_the_first_moment(original: Any) -> Any:
    def describe(self: Nodes, *arguments: Any) -> None:
        core = self._core
        now, core.now = core.now, 0.0
        original(self, *arguments)
        core.now = now

    return describe


#: What a mutant is made of.
WORK_BUGS: Final = (
    (
        "work-not-counted", "operations of which nothing is sent are no work",
        Outlets, "charge", _costs_nothing,
    ),
    (
        "items-not-counted", "a list is as much work as its first item",
        Broker, "take_work", _counts_operations_only,
    ),
    (
        "clock-stands", "the server describes the moment it was started",
        Nodes, "describe_server", _describes_the_first_moment,
    ),
)  # fmt: skip
