"""A program with a foreign client, which a test talks with: lines in, lines out."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

__all__ = ["MOST_S", "Program"]

#: Seconds that a program has for an answer.
MOST_S: Final = 40

_Answer = TypeVar("_Answer")


class Program(Generic[_Answer]):
    """A program that runs; its lines are read by a thread, which calls :meth:`heard`.

    :param command: what to run.
    :param folder: where it runs.
    :param log: gets what it writes to its standard error.
    """

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
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        self._reader = threading.Thread(target=self._listen)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            self.heard(text)

    def heard(self, text: str) -> None:
        """Take a line of the program: what is an answer goes to :meth:`answered`."""
        raise NotImplementedError

    def answered(self, answer: _Answer) -> None:
        """Note an answer."""
        self._answers.put(answer)

    def tell(self, line: str) -> None:
        """Write a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> _Answer | None:
        """Wait for the next answer; None if there is none, or the program has ended."""
        end = time.monotonic() + MOST_S
        while time.monotonic() < end:
            try:
                return self._answers.get(timeout=0.5)
            except Empty:
                if self.has_ended():
                    return None
        return None

    def has_ended(self) -> bool:
        """Whether the program has ended."""
        return self._process.poll() is not None

    def log(self) -> str:
        """The last of what the program has written to its standard error."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-4_000:]

    def close(self) -> None:
        """End the program."""
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
