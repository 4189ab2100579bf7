"""Owns the test that ``docs/conformance.md`` tells the truth: a check for each case in force."""

from __future__ import annotations

import importlib
import re
from typing import Final

import pytest

from tests.docs.cases import CHECKS
from tests.docs.pages import page

MODULES: Final = [
    f"tests.docs.checks_{subject}" for subject in ("connection", "operations", "messages")
]
for name in MODULES:
    pytest.register_assert_rewrite(name)  # so that a failed check tells its values
    importlib.import_module(name)

PAGE: Final = page("conformance.md")
NOT_YET: Final = "Not yet."
#: The state of each case, by its number: the last words of its paragraph.
CASES: Final = {
    int(number): state
    for number, state in re.findall(
        r'^- <a id="c(\d+)"></a>\*\*C\1 (?:(?!^- ).)*?\*((?:Partly in|In|Not) [^*]*)\*$',
        PAGE,
        re.MULTILINE | re.DOTALL,
    )
}


def test_every_case_has_its_number_once_and_a_state() -> None:
    numbers = [int(number) for number in re.findall(r'<a id="c(\d+)"></a>\*\*C\d+', PAGE)]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert set(CASES) == set(numbers)
    for state in CASES.values():
        assert state in (NOT_YET, "In force.") or state.startswith("Partly in force: ")


def test_every_case_names_both_sources_and_our_way() -> None:
    for paragraph in re.split(r"^- (?=<a id=)", PAGE, flags=re.MULTILINE)[1:]:
        assert "(protocol.md#f" in paragraph or "](protocol.md#f" in paragraph, paragraph
        for word in ("Specification:", "Original:", "Ours:"):
            assert len(re.findall(word, paragraph)) == 1, paragraph


def test_the_cases_in_force_are_those_with_a_check() -> None:
    assert set(CHECKS) == {number for number, state in CASES.items() if state != NOT_YET}


@pytest.mark.parametrize("number", sorted(CHECKS))
def test_case(number: int) -> None:
    CHECKS[number]()
