"""What a program with a Python client does with the lines of the test, and with a message."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["decide", "say", "settings", "told"]


def settings() -> dict[str, Any]:
    """What the test has given: addresses, and how to connect."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    return given


def told() -> Iterator[dict[str, Any]]:
    """The commands of the test, until it closes its end."""
    for line in sys.stdin:
        yield json.loads(line)


def say(**fields: Any) -> None:
    """Tell the test something, in one write: threads and tasks share the output."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def decide(body: str, attempts: int) -> str:
    """Say what to do with a message: its first word counts, the first time that it comes."""
    word = body.partition(" ")[0]
    return word if attempts == 1 and word in {"again", "slow", "forgotten"} else "fine"
