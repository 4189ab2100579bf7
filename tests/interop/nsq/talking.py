"""A program with a foreign client, and how a test talks with it: one JSON value a line.

The test writes ``{"do": "consume", "topic", "channel"}``, ``{"do": "publish", "topic", "bodies"}``
(PUB, or MPUB for several) or ``{"do": "defer", "topic", "bodies", "ms"}``; and ``{"do": "wait"}``,
for the producer to be connected again, where the library must not be used before.  The program
answers each with ``{"did": ...}`` or ``{"refused": reason}``, and tells each message that comes:
``{"message": body, "attempts": n}``.  The first word of a body says what the program does with the
message when it comes for the first time: ``again`` (REQ), ``slow`` (TOUCH for longer than the
timeout, then FIN), ``forgotten`` (nothing); everything else is finished.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interop.programs import MOST_S, Program

__all__ = ["Talk", "talking"]


class Talk(Program[dict[str, Any]]):
    """A program that runs."""

    def __init__(self, command: list[str], folder: Path, log: Path) -> None:
        self.messages: list[tuple[str, int]] = []
        super().__init__(command, folder, log)

    def heard(self, text: str) -> None:
        """Note a message, or an answer."""
        line = json.loads(text)
        if "message" in line:
            self.messages.append((line["message"], line["attempts"]))
        else:
            self.answered(line)

    def ask(self, **command: object) -> str:
        """Have something done: gives the reason why it was refused, nothing if it was done."""
        self.tell(json.dumps(command))
        answer = self.answer()
        assert answer is not None, f"no answer to {command}\n{self.log()}"
        return str(answer.get("refused", ""))

    def do(self, **command: object) -> None:
        """Have something done that must be done."""
        refused = self.ask(**command)
        assert not refused, f"{refused}\n{self.log()}"

    def publish(self, topic: str, *bodies: str) -> None:
        """Publish."""
        self.do(do="publish", topic=topic, bodies=bodies)

    def consume(self, topic: str, channel: str) -> None:
        """Begin to consume."""
        self.do(do="consume", topic=topic, channel=channel)

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for messages."""
        end = time.monotonic() + MOST_S
        while not is_so():
            assert time.monotonic() < end, f"only {self.messages[:50]}\n{self.log()}"
            assert not self.has_ended(), f"the program ended\n{self.log()}"
            time.sleep(0.02)


@contextmanager
def talking(command: list[str], folder: Path, log: Path) -> Iterator[Talk]:
    """Run a program for the time of the block."""
    program = Talk(command, folder, log)
    try:
        yield program
    finally:
        program.close()
