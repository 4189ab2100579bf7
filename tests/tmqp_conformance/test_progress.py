"""The progress bar: on a terminal, and nowhere else."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.tmqp_conformance.serving import served
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.__main__ import main
from tmqp_conformance.suite import chosen
from tmqp_conformance.zoo.server import SmallServer
from tmqp_conformance.zoo.smq import SmallSmq

SERVER: Final = ("--only", "server.frame.flags-*", "--timeout", "0.5")
FUZZ: Final = ("--pack", "smq", "--budget", "0.5s", "--seed", "1")


def told(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[], str], *, terminal: bool
) -> tuple[str, str]:
    """What a command writes to stdout and to stderr: a terminal of 80 columns, or a pipe."""
    monkeypatch.setenv("TERM", "xterm-256color")
    reader, writer = pty.openpty() if terminal else os.pipe()
    if terminal:
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    parts: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(reader, 65_536)
            except OSError:  # how a terminal ends
                return
            if not data:
                return
            parts.append(data)

    thread = threading.Thread(target=read)
    thread.start()
    with os.fdopen(writer, "w", encoding="utf-8") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        try:
            said = run()
        finally:
            monkeypatch.undo()
    thread.join(10)
    os.close(reader)
    return said, b"".join(parts).decode()


def command(*words: str) -> Callable[[], str]:
    """A command, to be run; what it writes to stdout."""

    def run() -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit):
            main.main([*words], standalone_mode=False)
        return out.getvalue()

    return run


def test_a_terminal_shows_how_many_cases_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    every = len(chosen(SERVER_CASES, [SERVER[1]]))
    with served(SmallServer()) as address:
        said, text = told(monkeypatch, command("server", address, *SERVER), terminal=True)
    assert re.search(r"cases.*━", text)
    counts = [int(done) for done, total in re.findall(r"(\d+)/(\d+)", text)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, every)
    assert text.rstrip().endswith("\x1b[2K"), "it is gone at the end"
    assert "cases pass" in said, "the summary is on stdout, without the bar"


@pytest.mark.parametrize("option", ["--no-bar", "--quiet"])
def test_nothing_is_shown_if_nothing_is_wanted(
    monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    with served(SmallServer()) as address:
        said, text = told(monkeypatch, command("server", address, *SERVER, option), terminal=True)
    assert text == ""
    assert "cases pass" in said


def test_nothing_is_shown_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(SmallServer()) as address:
        said, text = told(monkeypatch, command("server", address, *SERVER), terminal=False)
    assert text == ""
    assert "cases pass" in said


def test_a_fuzzer_shows_its_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with served(SmallSmq()) as address:
        words = ("fuzz", "wire", address, *FUZZ, "--out", str(tmp_path))
        _, shown = told(monkeypatch, command(*words), terminal=True)
        _, hidden = told(monkeypatch, command(*words, "--no-bar"), terminal=True)
    assert re.search(r"fuzzing.*━", shown)
    assert hidden == ""
