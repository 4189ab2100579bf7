"""The SQLite store on a disk that is cut off, or fails, at every place (D1, D2, D4 to D8).

A share runs here; `make soak` runs all (TMQP_SOAK=1).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT
from tests.tmqp_server.storage.disk import build_shim

SOAK = bool(os.environ.get("TMQP_SOAK"))


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = build_shim(tmp_path_factory.mktemp("disk"))
    if built is None:
        pytest.skip("the disk of these tests needs Linux and a C compiler")
    return built


def run(shim: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "LD_PRELOAD": str(shim),
        "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", "src"), str(ROOT)]),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tests.tmqp_server.storage.breaking", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    print(ended.stdout)
    return ended.stdout


@pytest.mark.timeout(3_600 if SOAK else 120)
def test_a_power_cut_anywhere_loses_nothing_confirmed(shim: Path) -> None:
    said = run(shim, "cut", "1" if SOAK else "67")
    assert int(said.split()[0]) >= 300
    assert int(said.split()[6]) >= 40


@pytest.mark.timeout(3_600 if SOAK else 120)
def test_a_call_that_fails_loses_nothing_and_brings_nothing_back(shim: Path) -> None:
    said = run(shim, "fail", "1" if SOAK else "67")
    assert int(said.split()[0]) >= 50
    assert int(said.split()[3]) >= 20


def test_one_write_is_one_sync(shim: Path) -> None:
    said = run(shim, "count", "1")
    assert said.strip() == "1 sync each, 2 for the first of a new log"
