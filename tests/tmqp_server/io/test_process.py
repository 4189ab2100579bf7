"""What the operating system says of this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tmqp_server.io.process import process_facts

pytestmark = pytest.mark.cold


def test_the_data_directory_is_measured(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1_000)
    (tmp_path / "b").write_bytes(b"x" * 234)
    (tmp_path / "folder").mkdir()
    found = process_facts(str(tmp_path))
    assert found.storage_bytes == 1_234
    assert found.free_bytes is not None
    assert found.free_bytes > 0


def test_a_directory_that_is_missing_is_left_out(tmp_path: Path) -> None:
    found = process_facts(str(tmp_path / "nowhere"))
    assert (found.storage_bytes, found.free_bytes) == (None, None)


def test_without_a_directory_there_is_no_disk() -> None:
    found = process_facts(None)
    assert (found.storage_bytes, found.free_bytes) == (None, None)
    assert found.cpu_s is not None
    assert found.cpu_s > 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_linux_tells_memory_and_descriptors() -> None:
    found = process_facts(None)
    assert found.resident_bytes is not None
    assert found.resident_bytes > 1_000_000
    with Path(__file__).open("rb"):
        more = process_facts(None)
    assert found.open_fds is not None
    assert more.open_fds == found.open_fds + 1
    assert found.max_fds is not None
    assert found.max_fds >= found.open_fds
