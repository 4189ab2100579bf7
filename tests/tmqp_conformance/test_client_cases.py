"""The cases of the conformance suite for clients, against a client of ours in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tmqp_conformance.machines import ClientUnderTest
from tmqp import Frame, MessageType
from tmqp.testing.conformance import Machine, MemoryStage, Verdict, play
from tmqp.testing.conformance.clients import CLIENT_CASES
from tmqp_conformance.zoo.client import SmallClient


@pytest.mark.parametrize("make", [ClientUnderTest, SmallClient])
def test_our_client_passes_in_memory(make: Callable[[], Machine]) -> None:
    """Every case: also those of a client that connects again."""
    results = [
        play(each, MemoryStage(make()), f"c{number}") for number, each in enumerate(CLIENT_CASES)
    ]
    bad = [f"{each.case.id}: {each.message}" for each in results if each.verdict != Verdict.PASS]
    assert bad == []


class _Silent(SmallClient):
    """Connects and does nothing of its task."""

    def _begin(self, connection: object, task: str) -> None:
        pass

    def _act(self, connection: object, task: str, event: object) -> None:
        pass


@pytest.mark.parametrize("task", ["push", "consume", "pull", "join", "echo"])
def test_a_client_that_does_nothing_of_its_task_fails(task: str) -> None:
    cases = [each for each in CLIENT_CASES if each.task == task]
    for each in cases:
        result = play(each, MemoryStage(_Silent()), "silent")
        asked = any("nothing" not in answer.describe() for answer in each.outcomes[1:])
        closes = each.id.startswith("client.keepalive") or each.group in ("preamble", "reconnect")
        if asked and not closes:
            assert result.verdict not in (Verdict.PASS, Verdict.NON_STRICT), each.id


def test_a_client_that_speaks_for_another_fails() -> None:
    class Forger(SmallClient):
        def take(self, number: int) -> bytes:
            data = super().take(number)
            if not data or data.startswith(b"TMQP"):
                return data
            return Frame.build(MessageType.ACKNOWLEDGE, "x", source="another").raw + data

    case = next(each for each in CLIENT_CASES if each.id == "client.push.acknowledged")
    result = play(case, MemoryStage(Forger()), "forger")
    assert result.verdict is Verdict.FAIL
