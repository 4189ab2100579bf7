"""Owns the test that the guides' programs run on both event loops, and print what pages say."""

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


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("name", NAMES)
def test_a_guides_program(name: str, backend: str, tmp_path: Path) -> None:
    with running_server("--data", str(tmp_path / "data")) as (address, _):
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
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert [done.stdout] == blocks(page, "text")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_its_program(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    program = (ROOT / "examples" / "guides" / f"{name}.py").read_text(encoding="utf-8")
    assert blocks(page, "python")[0] == program


def test_every_page_has_its_program_and_is_listed() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    # That of the simulation is no program: tests/tmqp_sim/test_guide.py has its page, and
    # tests/tmqp_spark/test_guides.py those of Spark.
    others = {page for page in pages if page.partition("_")[0] in ("simulation", "spark")}
    assert pages - others == set(NAMES)
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in index for name in pages)
