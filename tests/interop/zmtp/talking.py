"""A program with ZeroMQ sockets of a foreign library, and how a test talks with it: words, a line.

Parts of messages are in hexadecimal digits, ``-`` for an empty one.  The test writes

    open NAME TYPE connect|bind ADDRESS [USER PASSWORD]
    subscribe NAME PREFIX
    unsubscribe NAME PREFIX
    send NAME PART ...
    recv NAME MILLISECONDS
    close NAME

The program answers each line with ``did``, ``got PART ...``, ``none`` (nothing came in time) or
``refused`` and the reason.  A library that connects while its caller waits is answered for when it
has connected: :meth:`Talk.opening` does not wait for that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.interop.programs import MOST_S, Program

__all__ = ["Talk", "talking"]

_PATIENCE_MS: Final = 20_000


def _word(part: bytes) -> str:
    return part.hex() or "-"


def _part(word: str) -> bytes:
    return b"" if word == "-" else bytes.fromhex(word)


class Talk(Program[str]):
    """A program that runs."""

    def heard(self, text: str) -> None:
        """Every line is an answer."""
        self.answered(text.rstrip("\n"))

    def ask(self, line: str) -> str:
        """Have something done; gives the answer."""
        self.tell(line)
        return self.wait(line)

    def wait(self, line: str) -> str:
        """Wait for the answer to a line."""
        answer = self.answer()
        assert answer is not None, f"no answer to {line[:100]}\n{self.log()}"
        return answer

    def do(self, line: str) -> None:
        """Have something done that must be done."""
        answer = self.ask(line)
        assert answer == "did", f"{line[:100]}: {answer[:300]}\n{self.log()}"

    @contextmanager
    def opening(self, *lines: str) -> Iterator[None]:
        """Open sockets, whose peer comes in the block: ``NAME TYPE connect|bind ADDRESS``."""
        for line in lines:
            self.tell(f"open {line}")
        yield
        for line in lines:
            answer = self.wait(line)
            assert answer == "did", f"{line}: {answer}\n{self.log()}"

    def open(self, line: str) -> None:
        """Open one: ``NAME TYPE connect|bind ADDRESS [USER PASSWORD]``."""
        self.do(f"open {line}")

    def send(self, name: str, parts: list[bytes]) -> None:
        """Send a message."""
        self.do(" ".join(["send", name, *map(_word, parts)]))

    def attempt(self, name: str, parts: list[bytes]) -> bool:
        """Whether the library takes a message, which it may not while it has no connection."""
        return self.ask(" ".join(["send", name, *map(_word, parts)])) == "did"

    def recv(self, name: str, ms: int = _PATIENCE_MS) -> list[bytes] | None:
        """A message; None if none comes in time."""
        answer = self.ask(f"recv {name} {ms}")
        if answer == "none":
            return None
        word, _, rest = answer.partition(" ")
        assert word == "got", f"{name}: {answer[:300]}\n{self.log()}"
        return [_part(each) for each in rest.split(" ")]

    def again(self, name: str, parts: list[bytes], to: str) -> list[bytes]:
        """Send a message again and again, until something comes: what was lost on a connection that
        has just ended is nobody's to keep."""
        end = time.monotonic() + MOST_S
        while time.monotonic() < end:
            self.attempt(name, parts)
            found = self.recv(to, 300)
            if found is not None:
                return found
        raise AssertionError(f"nothing sent by {name} came to {to}\n{self.log()}")


@contextmanager
def talking(command: list[str], folder: Path, log: Path) -> Iterator[Talk]:
    """Run a program for the time of the block."""
    program = Talk(command, folder, log)
    try:
        yield program
    finally:
        program.close()
