"""The test that ``docs/conformance.md`` tells the truth: a check for each case in force."""

from __future__ import annotations

import importlib
import re
from typing import Final

import pytest

from tests.docs.broker import World
from tests.docs.cases import CHECKS
from tests.docs.pages import page
from tmqp import Frame, MessageType, Operation

MODULES: Final = [
    f"tests.docs.checks_{subject}"
    for subject in ("access", "clients", "clusters", "connection", "operations", "messages")
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


SERVED: Final = [
    *range(601, 608),
    *range(610, 614),
    615,
    616,
    621,
    631,
    *range(651, 654),
    *range(661, 664),
]


def test_the_table_of_what_is_served() -> None:
    client = World().connect(join="ch")
    queue = [("Queue-Id", "1")]
    answers = {number: client.ask(number, "ch", headers=queue) for number in map(int, Operation)}
    assert {number for number, codes in answers.items() if codes != [501]} == set(SERVED)
    assert client.ask(701, "r", headers=[("Router-Enabled", "1")]) == [404]
    assert all(len(codes) == 1 for codes in answers.values())
    assert "651-653, 661-663" in PAGE
    assert client.answer(Operation.INSTANCE_LIST) == b"[]"


def test_the_table_of_what_is_not_served() -> None:
    client = World().connect(join="ch")
    client.create_queue("ch", 2, Delivery_Handler="ack-ifsaved")
    build = Frame.build
    client.take()
    client.send(build(MessageType.ROUTER, "r", message_id="r", pending_response=True))
    assert [frame.content_type for frame in client.take()] == [404]
    client.push("ch", 2, "m", pending_acknowledge=True)
    kinds = [(frame.type, frame.header("Nack-Reason")) for frame in client.take()]
    assert (MessageType.ACKNOWLEDGE, "error") in kinds
