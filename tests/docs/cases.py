"""The register of the checks of ``docs/conformance.md``: one a case, by number."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Final

from tests.docs.broker import World
from tmqp import Operation

__all__ = ["CHECKS", "case", "queue_information"]

Check = Callable[[], None]

CHECKS: Final[dict[int, Check]] = {}

_NUMBERS: Final = itertools.count()


def case(number: int) -> Callable[[Check], Check]:
    """Register the check of a case."""

    def register(check: Check) -> Check:
        assert number not in CHECKS, f"case {number} has two checks"
        CHECKS[number] = check
        return check

    return register


def queue_information(channel: str, queue_id: int, world: World) -> dict[str, object]:
    """What the server tells about a queue, asked by a client of its own."""
    client = world.connect(f"asks-{next(_NUMBERS)}")
    body = client.answer(Operation.QUEUE_INFORMATION, channel, queue_id.to_bytes(2, "little"))
    information: dict[str, object] = json.loads(body)
    return information
