"""Damaged traffic of the packs' protocols, against our doors and a broken server in memory."""

from __future__ import annotations

import pytest

from tests.tmqp_conformance.pack_machines import MACHINES
from tmqp.testing.conformance import Patience
from tmqp_conformance.fuzzing.packs import PackSubject
from tmqp_conformance.fuzzing.wire import WireFuzzer
from tmqp_conformance.packs import PACKS
from tmqp_conformance.packs.memory import PackMachine, PackMemoryStage


def fuzzer(name: str, machine: PackMachine, seed: int = 7) -> WireFuzzer:
    subject = PackSubject(PACKS[name], tuple(PACKS[name].ears))
    return WireFuzzer(PackMemoryStage(machine), subject, seed, Patience(quiet_s=0.01))


@pytest.mark.parametrize("name", PACKS)
def test_our_doors_live_and_stay_right(name: str) -> None:
    tried = fuzzer(name, MACHINES[name]())
    assert [*tried.run(lambda: tried.played < 400)] == []
