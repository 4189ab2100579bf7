"""The test that the guides' programs run on both event loops, and print what pages say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import tmqp
from tests.project import ROOT
from tests.tmqp_client.server import running_server

PAGES: Final = ROOT / "docs" / "guides"
PROGRAMS: Final = sorted((ROOT / "examples" / "guides").glob("*.py"))
NAMES: Final = [program.stem for program in PROGRAMS]


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in a language."""
    parts = page.split(f"```{language}\n")[1:]
    return [part.split("```\n")[0] for part in parts]


def run_guide(name: str, address: str, backend: str) -> str:
    """What a guide's program prints."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "guides" / f"{name}.py")],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(tmqp.__file__).parent.parent),
            "TMQP_ADDRESS": address,
            "TMQP_BACKEND": backend,
        },
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def promised(name: str) -> list[str]:
    """What a guide's page says that its program prints."""
    return blocks((PAGES / f"{name}.md").read_text(encoding="utf-8"), "text")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("name", NAMES)
def test_a_guides_program(name: str, backend: str, tmp_path: Path) -> None:
    with running_server("--data", str(tmp_path / "data")) as (address, _):
        assert [run_guide(name, address, backend)] == promised(name)


@pytest.mark.long
@pytest.mark.timeout(180)  # each program twice
def test_guides_on_one_server_took_each_others_queues(tmp_path: Path) -> None:
    """Two had the queue orders/1, and the second one found the options of the first."""
    with running_server("--data", str(tmp_path / "data")) as (address, _):
        for name in (*NAMES, *NAMES):  # who likes one tries it again
            assert [run_guide(name, address, "asyncio")] == promised(name), name


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_its_program(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    program = (ROOT / "examples" / "guides" / f"{name}.py").read_text(encoding="utf-8")
    assert blocks(page, "python")[0] == program


def test_every_page_has_its_program_and_is_listed() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    # That of the simulation is no program: tests/tmqp_sim/test_guide.py has its page, and
    # tests/tmqp_spark/test_guides.py those of Spark, tests/tmqp_nsq/test_quick_start.py NSQ's, and
    # tests/tmqp_conformance that of the conformance tool, tests/tmqp_server/wiring that of groups.
    programs = ("certify-your-implementation", "console", "high-availability")
    without = (*programs, "from", "simulation", "spark")
    others = {page for page in pages if page.partition("_")[0] in without}
    assert pages - others == set(NAMES)
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in index for name in pages)
