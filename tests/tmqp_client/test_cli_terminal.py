"""The command ``tmqp`` on a terminal: live tables, bars, and Ctrl-C that leaves it as it was."""

from __future__ import annotations

import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import tmqp

pty = pytest.importorskip("pty", reason="there are no terminals of this kind here")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

_PATIENCE_S = 40.0
_ROWS_AND_COLUMNS = (30, 120)
#: What a terminal is told besides text: colours, places, and which screen it shows.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
OTHER_SCREEN, FIRST_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
CURSOR_GONE, CURSOR_BACK = "\x1b[?25l", "\x1b[?25h"
#: What would say something else about the terminal.
_ASIDE = ("COLUMNS", "LINES", "NO_COLOR")
CTRL_C = b"\x03"


class Terminal:
    """A terminal with a command in it: what is typed, and what is seen."""

    def __init__(self, place: str, words: tuple[str, ...], **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *_ROWS_AND_COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tmqp_client.cli", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - Ctrl-C
            env={
                **{key: value for key, value in os.environ.items() if key not in _ASIDE},
                "PYTHONPATH": os.pathsep.join(sys.path),
                "TERM": "xterm-256color",
                "TMQP_ADDRESS": place,
                **environment,
            },
        )
        os.close(theirs)
        self.raw = ""

    @property
    def text(self) -> str:
        """All that was seen, without what commands the terminal."""
        return _CONTROL.sub("", self.raw).replace("\r\n", "\n")

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._ours, keys)

    def read(self) -> bool:
        """Read what is there, or comes in a moment; False at the end."""
        ready, _, _ = select.select([self._ours], [], [], 0.2)
        if not ready:
            return True
        try:
            data = os.read(self._ours, 65_536)
        except OSError:  # Linux says so when the last process has closed it
            return False
        self.raw += data.decode("utf-8", "replace")
        return len(data) > 0

    def until(self, pattern: str) -> None:
        """Wait until something was seen."""
        deadline = time.monotonic() + _PATIENCE_S
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.text!r}"
            assert self.read(), f"it ended without {pattern!r}: {self.text!r}"

    def ends(self) -> int:
        """Wait for the end; the exit code."""
        deadline = time.monotonic() + _PATIENCE_S
        while self.read():
            assert time.monotonic() < deadline, f"it does not end: {self.text!r}"
        return self.process.wait(_PATIENCE_S)

    def close(self) -> None:
        """End the process if it has not ended."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextmanager
def terminal(place: str, *words: str, **environment: str) -> Iterator[Terminal]:
    made = Terminal(place, words, **environment)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


def good(result: Any) -> str:
    assert result.exit_code == 0, result.output
    said: str = result.stdout
    return said


def test_top_is_live_and_leaves_the_terminal_as_it_was(place: str) -> None:
    good(tmqp(place, "queue", "create", "live", "7", "--status", "paused"))
    with terminal(place, "top", "live", "--interval", "0.2") as seen:
        seen.until(r"live +7 +paused +0 ")
        assert OTHER_SCREEN in seen.raw
        assert re.search(r"channel +queue +status +depth", seen.text)
        good(tmqp(place, "pub", "live", "7", "x", "--count", "3", "--no-wait"))
        seen.until(r"live +7 +paused +3 ")
        seen.type(CTRL_C)
        assert seen.ends() == 130
        after = seen.raw.rsplit(FIRST_SCREEN, 1)[1]
        assert CURSOR_BACK in seen.raw.rsplit(CURSOR_GONE, 1)[1]
        assert _CONTROL.sub("", after).replace("^C", "").strip() == "tmqp: interrupted"


def test_top_ends_by_itself(place: str) -> None:
    with terminal(place, "top", "nothing*", "--interval", "0.1", "--count", "2") as seen:
        assert seen.ends() == 0
        assert seen.raw.count(OTHER_SCREEN) == seen.raw.count(FIRST_SCREEN) == 1


@pytest.mark.parametrize("what", ["pub", "sub", "request"])
def test_a_bar_shows_the_progress_and_goes(place: str, what: str) -> None:
    with terminal(place, "bench", what, "--count", "300", "--in-flight", "5") as seen:
        assert seen.ends() == 0
        assert re.search(rf"{what} .*\d+%", seen.text), "a bar"
        last = seen.text.rstrip().splitlines()
        assert re.search(rf"{what}: 300 messages of 128 bytes in [\d.]+ s", last[-2])
        assert "latency: p50" in last[-1]
        assert CURSOR_BACK in seen.raw.rsplit(CURSOR_GONE, 1)[1]


def test_ctrl_c_ends_a_measurement_and_removes_its_channel(place: str) -> None:
    with terminal(place, "bench", "pub", "--count", "10000000", "--in-flight", "2") as seen:
        seen.until(r"pub .*\d+%")
        assert "bench-" in good(tmqp(place, "channel", "ls"))
        seen.type(CTRL_C)
        assert seen.ends() == 130
        assert "Traceback" not in seen.text
        assert seen.text.rstrip().endswith("tmqp: interrupted")
        assert CURSOR_BACK in seen.raw.rsplit(CURSOR_GONE, 1)[1]
    assert "bench-" not in good(tmqp(place, "channel", "ls"))


def test_lists_are_tables_on_a_terminal_and_columns_in_a_pipe(place: str) -> None:
    good(tmqp(place, "channel", "create", "listed"))
    with terminal(place, "channel", "ls", "listed") as seen:
        assert seen.ends() == 0
        head, row = seen.text.rstrip().splitlines()
        assert head.split()[:2] == ["name", "queues"]
        assert row.split()[0] == "listed"
        assert "\x1b[1m" in seen.raw, "its head is bold"
    with terminal(place, "channel", "ls", "listed", NO_COLOR="1", TERM="dumb") as seen:
        assert seen.ends() == 0
        assert not _CONTROL.search(seen.raw), "unless the terminal cannot show that"
    piped = good(tmqp(place, "channel", "ls", "listed"))
    assert piped.startswith("listed\t")
    assert "\x1b" not in piped
