"""The workflow of releases, judged by actionlint, which Go builds."""

from __future__ import annotations

import os
import subprocess
from typing import Final

import pytest

from tests.interop.building import CACHE, EXPECTED, made, need, run, unavailable
from tests.project import ROOT

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        bool(EXPECTED) and "actionlint" not in EXPECTED, reason="only others are asked for"
    ),
]

_MODULE: Final = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


def test_actionlint_has_no_advice() -> None:
    need("actionlint", "go")
    folder = CACHE / "actionlint"
    with made(folder, []) as is_due:
        if is_due:
            words = ["env", f"GOBIN={folder}", "go", "install", _MODULE]
            if run(words, ROOT).returncode != 0:
                unavailable("actionlint", "its modules cannot be fetched")
    told = subprocess.run(
        [folder / "actionlint", *sorted((ROOT / ".github" / "workflows").glob("*.yml"))],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
