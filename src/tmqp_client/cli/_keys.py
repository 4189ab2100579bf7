"""Single keys from a terminal, without Enter, while a command shows something."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

__all__ = ["next_key", "single_keys"]


@contextmanager
def single_keys() -> Iterator[bool]:
    """Switch the terminal to single keys without echo; yield whether standard input is a
    terminal."""
    try:
        import termios  # noqa: PLC0415 - some systems have none
        import tty  # noqa: PLC0415
    except ImportError:
        yield False
        return
    if not sys.stdin.isatty():
        yield False
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield True
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


async def next_key() -> str:
    """Wait for a key; return an empty string at the end of the input."""
    number = sys.stdin.fileno()
    await anyio.wait_readable(number)
    return os.read(number, 1).decode("ascii", "replace")
