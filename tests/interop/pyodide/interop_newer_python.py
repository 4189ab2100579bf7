"""The protocol on a newer Python than this one: Pyodide's, which runs as WebAssembly in Node."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.interop.building import CACHE, EXPECTED, npm
from tests.project import ROOT

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("npm"),
    pytest.mark.skipif(
        bool(EXPECTED) and "pyodide" not in EXPECTED, reason="only other clients are asked for"
    ),
]

FOLDER: Final = Path(__file__).parent
#: pytest, with what it imports: all of it pure Python, copied from this environment.
PACKAGES: Final = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")
_MOST_S: Final = 280


def copied_packages(folder: Path) -> Path:
    """A folder with pytest and nothing else."""
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        place = Path(spec.origin)
        if place.name == "__init__.py":
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(place.parent, folder / name, ignore=left_out)
        else:
            shutil.copy(place, folder)
    return folder


def chosen_tests() -> list[str]:
    """The tests that need no processes, and no Hypothesis, which has a compiled part."""
    chosen = []
    for path in sorted((ROOT / "tests" / "tmqp").glob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\b(hypothesis|subprocess)\b", text) and path.name != "test_hostile.py":
            chosen.append(str(path.relative_to(ROOT)))
    return chosen


def test_the_protocol_passes_its_tests_on_a_newer_python(tmp_path: Path) -> None:
    folder = CACHE / "pyodide"
    npm("pyodide", FOLDER / "node", folder)
    packages = copied_packages(tmp_path)
    told = subprocess.run(
        [
            *("node", FOLDER / "node" / "run.mjs", ROOT, packages),
            *("-q", "-c", "/checkout/tests/interop/pyodide/settings.ini", "--rootdir", "/checkout"),
            *("-m", "not long and not alone", *chosen_tests()),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=_MOST_S,
    )
    said = told.stdout[-4_000:] + told.stderr[-2_000:]
    assert told.returncode == 0, said
    version = re.search(r"^Python 3\.(\d+)", told.stdout, re.MULTILINE)
    assert version, said
    assert int(version[1]) > sys.version_info.minor
    passed = re.search(r"(\d+) passed", told.stdout)
    assert passed, said
    assert int(passed[1]) > 500
