"""Judging the shell from outside: what is read too early, and what only looks like it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from tmqp_sim.host import Host
from tmqp_sim.promptness import Promptness
from tmqp_sim.world import Violation


def test_a_session_that_was_resumed_may_ask_by_itself_again() -> None:
    """Each time it was done with what it had asked for before it was read from (seed 202861)."""
    busy = {7: True}
    hub = SimpleNamespace(has_more=lambda number: busy[number])
    promptness = Promptness(cast("Host", SimpleNamespace(hub=hub)), 0.0)
    promptness.check_reading(7, asks_by_itself=True)  # answers led to commands: one chunk may come
    promptness.resumed(7)  # it is not done: one more chunk would be too much
    with pytest.raises(Violation, match="before its last chunk is done"):
        promptness.check_reading(7, asks_by_itself=True)
    busy[7] = False
    promptness.resumed(7)
    busy[7] = True
    promptness.check_reading(7, asks_by_itself=True)
    with pytest.raises(Violation, match="before its last chunk is done"):
        promptness.check_reading(7, asks_by_itself=True)
