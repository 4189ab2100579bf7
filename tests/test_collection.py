"""What is left out when the tests of the hot modules are collected alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_ignore_collect
from tests.project import ROOT

pytestmark = pytest.mark.cold


def ignored(path: Path, marks: str) -> bool:
    config: Any = SimpleNamespace(option=SimpleNamespace(markexpr=marks))
    return pytest_ignore_collect(path, config) is True


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("import json\n", True),
        ("from tmqp import constants\n", False),
        ("from tmqp_server.engine.broker import Broker\n", False),
        ("import pytest\n\n@pytest.mark.hot\ndef test_it(): ...\n", False),
    ],
)
def test_a_file_without_a_hot_test_is_not_read_for_hot_tests(
    tmp_path: Path, text: str, left_out: bool
) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(text, encoding="utf-8")
    assert ignored(path, "hot and not long") is left_out
    assert not ignored(path, "not long")


def test_folders_and_other_modules_are_not_left_out() -> None:
    assert not ignored(ROOT / "tests", "hot")
    assert not ignored(ROOT / "tests" / "conftest.py", "hot")
