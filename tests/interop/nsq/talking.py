"""A program with a foreign client, and how a test talks with it: one JSON value a line.

The test writes ``{"do": "consume", "topic", "channel"}``, ``{"do": "publish", "topic", "bodies"}``
(PUB, or MPUB for several) or ``{"do": "defer", "topic", "bodies", "ms"}``.  The program answers
each with ``{"did": ...}`` or ``{"refused": reason}``, and tells each message that comes:
``{"message": body, "attempts": n}``.  The first word of a body says what the program does with the
message when it comes for the first time: ``again`` (REQ), ``slow`` (TOUCH for longer than the
timeout, then FIN), ``forgotten`` (nothing); everything else is finished.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

__all__ = ["Talk", "talking"]

_MOST_S: Final = 40


class Talk:
    """A program that runs."""

    def __init__(self, command: list[str], folder: Path, log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
                text=True,
                encoding="utf-8",
            )
        self._answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.messages: list[tuple[str, int]] = []
        self._reader = threading.Thread(target=self._listen)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            if "message" in line:
                self.messages.append((line["message"], line["attempts"]))
            else:
                self._answers.put(line)

    def log(self) -> str:
        """What the program wrote to its standard error."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-4_000:]

    def ask(self, **command: object) -> str:
        """Have something done: gives the reason why it was refused, nothing if it was done."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._next()
        assert answer is not None, f"no answer to {command}\n{self.log()}"
        return str(answer.get("refused", ""))

    def _next(self) -> dict[str, Any] | None:
        """The next answer; None if there is none, or the program has ended."""
        end = time.monotonic() + _MOST_S
        while time.monotonic() < end:
            try:
                return self._answers.get(timeout=0.5)
            except Empty:
                if self._process.poll() is not None:
                    return None
        return None

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
        end = time.monotonic() + _MOST_S
        while not is_so():
            assert time.monotonic() < end, f"only {self.messages[:50]}\n{self.log()}"
            assert self._process.poll() is None, f"the program ended\n{self.log()}"
            time.sleep(0.02)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def talking(command: list[str], folder: Path, log: Path) -> Iterator[Talk]:
    """Run a program for the time of the block."""
    program = Talk(command, folder, log)
    try:
        yield program
    finally:
        program.close()
