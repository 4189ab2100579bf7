"""The example with several servers: every channel has one of them, and all messages arrive."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import tmqp
from tests.project import ROOT

PROGRAM: Final = ROOT / "examples" / "several_cores.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("example_several_cores", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_servers_carry_the_channels_between_them() -> None:
    package = str(Path(tmqp.__file__).parent.parent)
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), "--servers", "2", "--messages", "20"],
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = re.fullmatch(
        r"2 servers with (\d+), (\d+) channels: [\d,]+ messages a second,"
        r" [\d.]+ us of the servers for each\n",
        ended.stdout,
    )
    assert found is not None, ended.stdout
    assert int(found[1]) + int(found[2]) == 16


def test_a_channel_has_the_same_server_for_everybody() -> None:
    example = load()
    addresses = ["a", "b", "c"]
    places = [example.server_of(channel, addresses) for channel in example.CHANNELS]
    assert places == [example.server_of(channel, addresses) for channel in example.CHANNELS]
    assert {*places} == {*addresses}


def test_the_page_shows_how_a_server_is_found() -> None:
    page = (ROOT / "docs" / "performance" / "cores.md").read_text(encoding="utf-8")
    shown = page.partition("```python\n")[2].partition("```")[0]
    assert shown in PROGRAM.read_text(encoding="utf-8")
