"""The SQLite store on a disk that is cut off, or fails, at every place (D1, D2, D4 to D8).

A share runs here; `make soak` runs all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tmqp_server.storage.disk import build_shim
from tests.tmqp_server.storage.disk import run_breaking as run


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = build_shim(tmp_path_factory.mktemp("disk"))
    if built is None:
        pytest.skip("the disk of these tests needs Linux and a C compiler")
    return built


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_power_cut_anywhere_loses_nothing_confirmed(shim: Path) -> None:
    said = run(shim, "cut", "29")
    assert int(said.split()[0]) >= 300
    assert int(said.split()[6]) >= 40


@pytest.mark.timeout(120)
def test_a_call_that_fails_loses_nothing_and_brings_nothing_back(shim: Path) -> None:
    said = run(shim, "fail", "31")
    assert int(said.split()[0]) >= 50
    assert int(said.split()[3]) >= 20


def test_one_write_is_one_sync(shim: Path) -> None:
    said = run(shim, "count", "1")
    assert said.strip() == "1 sync each, 2 where the log is made longer"
