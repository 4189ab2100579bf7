"""The guide under test: its example runs and shows what the guide says, its table is whole."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.docs.pages import blocks, page
from tests.project import ROOT
from tmqp_sim import run_handler
from tmqp_sim.results import Result

pytestmark = pytest.mark.cold


@pytest.mark.long
def test_the_handler_of_the_guide_breaks_its_promise_and_nothing_else() -> None:
    (example,) = blocks(page("guides/simulation.md"), "python")
    names: dict[str, Any] = {}
    exec(compile(example, "the guide", "exec"), names)  # noqa: S102 - our own page
    results: list[Result] = names["results"]
    failures: list[Result] = names["failures"]
    assert len(results) == 100
    assert failures, "it gives messages up that it has confirmed"
    assert {result.checker for result in failures} == {"lost"}
    handler = names["Hasty"]()
    assert not run_handler(failures[0].seed, "hasty", handler, promise="none").failed


def test_every_checker_is_explained() -> None:
    used: set[str] = set()
    for path in (ROOT / "fuzz" / "tmqp_sim").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        used.update(re.findall(r'Violation\(\s*"([a-z-]+)"', text))
        used.update(re.findall(r'Runaway\(\s*"([a-z-]+)"', text))
    used |= {"lost", "duplicate", "stuck", "exception"}
    table = (
        page("guides/simulation.md").partition("| checker | violation |")[2].partition("\n\n")[0]
    )
    assert sorted(used) == sorted(set(re.findall(r"`([a-z-]+)`", table)))
