"""What runs before a change is taken: ``.ci/run``, with a ``make`` that only pretends."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.project import ROOT

pytestmark = pytest.mark.cold

#: What is asked for, in the order in which it stands in the file.
STAGES: Final = (
    "setup", "wheel", "sim-compiled", "sim-replicas", "lint", "typecheck", "imports", "docs",
    "interop", "test", "test-wheel", "test-compiled", "test-long",
)  # fmt: skip

#: Notes what it is asked for.  One thing lasts, in a process of its own; one fails, once that one
#: is at work.
_MAKE: Final = """#!/bin/sh
echo "$@" >> asked
echo "said by $1"
case $1 in
  "$FAILS") while [ "$LASTS" ] && [ ! -e lasting ]; do sleep 0.01; done; exit 3;;
  "$LASTS") sh -c 'touch lasting; sleep 500';;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text(_MAKE, encoding="utf-8")
    make.chmod(0o755)
    return tmp_path


def run(
    checkout: Path, fails: str = "", lasts: str = "", kept: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [checkout / ".ci" / "run"],
        env={**os.environ, "PATH": path, "FAILS": fails, "LASTS": lasts},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        pass_fds=kept,
    )


def asked(checkout: Path) -> list[str]:
    return (checkout / "asked").read_text(encoding="utf-8").splitlines()


def test_everything_is_asked_for_and_told(checkout: Path) -> None:
    done = run(checkout)
    assert done.returncode == 0, done.stdout
    assert "=== all passed" in done.stdout
    words = [each.partition(" ")[0] for each in asked(checkout)]
    assert sorted(words) == sorted(STAGES)
    for word in words:
        assert f"said by {word}" in done.stdout
    assert words[0] == "setup"
    assert words.index("test") < words.index("test-wheel") < words.index("test-compiled")


@pytest.mark.parametrize("name", ["lint", "test-long", "wheel", "sim-compiled", "sim-replicas"])
def test_whatever_fails_ends_it(checkout: Path, name: str) -> None:
    done = run(checkout, fails=name)
    assert done.returncode != 0
    assert f"said by {name}" in done.stdout
    assert "all passed" not in done.stdout


def test_the_simulation_outlived_a_stage_that_failed(checkout: Path) -> None:
    """It went on for minutes: the make that had started it was killed, and nothing else."""
    reading, writing = os.pipe()
    done = run(checkout, fails="test", lasts="sim-compiled", kept=(writing,))
    os.close(writing)
    assert done.returncode == 3
    # Every process of the run has the other end, until it ends.
    assert select.select([reading], [], [], 30.0)[0] == [reading]
    assert os.read(reading, 1) == b""
    os.close(reading)
