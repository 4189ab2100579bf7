"""Damaged traffic of the packs' protocols, against our doors and a broken server in memory."""

from __future__ import annotations

import pytest

from tests.tmqp_conformance.pack_machines import MACHINES
from tmqp.testing.conformance import Patience
from tmqp_conformance.fuzzing.packs import PackFuzzer
from tmqp_conformance.packs import PACKS
from tmqp_conformance.packs.memory import PackMemoryStage
from tmqp_conformance.zoo.nsq import BROKEN_NSQ
from tmqp_wires.nsq import CommandDecoder, ServerTerms
from tmqp_wires.nsq.events import Violation

#: The original takes an IDENTIFY as long as any other body.
TERMS = ServerTerms(max_identify_bytes=5_242_880)


def breaks(data: bytes) -> bool:
    """Whether a client of nsqd that says this has broken the protocol."""
    return any(isinstance(each, Violation) for each in CommandDecoder(TERMS).feed(data))


def fuzzer(name: str, stage: PackMemoryStage, places: tuple[str, ...], seed: int = 7) -> PackFuzzer:
    judge = breaks if name == "nsq" else None
    return PackFuzzer(PACKS[name], stage, seed, Patience(quiet_s=0.01), places, judge)


@pytest.mark.parametrize("name", PACKS)
def test_our_doors_live_and_stay_right(name: str) -> None:
    stage = PackMemoryStage(MACHINES[name]())
    tried = fuzzer(name, stage, tuple(PACKS[name].ears))
    assert [*tried.run(400)] == []
    assert tried.played == 400
    assert len(tried.mutations) == 7
    assert len(tried.signatures) >= 5


def test_a_server_that_never_closes_is_found() -> None:
    stage = PackMemoryStage(BROKEN_NSQ["never-closes"][1]())
    kinds = {finding.kind for finding in fuzzer("nsq", stage, ("",)).run(60)}
    assert kinds == {"open"}


def test_a_server_that_sends_what_nobody_can_read_is_found() -> None:
    stage = PackMemoryStage(BROKEN_NSQ["little-endian"][1]())
    kinds = {finding.kind for finding in fuzzer("nsq", stage, ("",)).run(400)}
    assert "undecodable" in kinds
