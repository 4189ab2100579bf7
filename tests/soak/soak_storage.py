"""The SQLite store, cut off at every step and failing at every call; not bounded by time.

Nothing is left out, so it takes what it takes: six minutes on an idle machine.  The least counts
are those of a life of 200 batches: with fewer the disk was not watched.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tmqp_server.storage.disk import build_shim, run_breaking


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = build_shim(tmp_path_factory.mktemp("disk"))
    if built is None:
        pytest.skip("the disk of these tests needs Linux and a C compiler")
    return built


def test_a_power_cut_at_every_step(shim: Path) -> None:
    assert int(run_breaking(shim, "cut", "1").split()[0]) >= 18_000


def test_every_call_fails_once_and_for_good(shim: Path) -> None:
    assert int(run_breaking(shim, "fail", "1").split()[0]) >= 2_500
