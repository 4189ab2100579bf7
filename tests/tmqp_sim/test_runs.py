"""The share of simulated runs that belongs to the tests, and what every run must be like."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import Final

import pytest

from tests.project import ROOT
from tmqp_sim import Simulation, draw_plan, run
from tmqp_sim.marks import MARKS, missing, table
from tmqp_sim.plan import FAULT_KINDS
from tmqp_sim.runner import run_many

#: Histories take processor time, whoever else wants it.
pytestmark = pytest.mark.timeout(300)

#: Seeds of this share, interpreted; CI runs many more, compiled (``make sim-compiled``).
SEEDS: Final = 130
#: Seeds that failed although nothing was wrong but the simulation, and what that was.
BLAMELESS: Final = {
    296: "who waits behind an exclusive consumer was to be ready",
    39062: "a branch of a connection that had ended was still to hear of lapses",
    12_082: "who had said goodbye was taken over before the last words were processed",
    1_026_722: "a producer pushed all that was refused again for each refusal",
    1_034_511: "bulk went one message at a time over a slow network, and was not through in time",
    1_037_200: "answers of a run were judged before what the first of them had sent",
    1_040_932: "strangers filled a tiny memory with queues of their own, for ever",
    1_051_951: "the same",
    1_196_956: "at a stop with a full disk, what could not be settled was taken for settled",
    1_011_595: "what was pushed without asking was on its way when everything seemed to be at home",
    1_286_092: "one slow consumer needed more than a minute for what was pushed again and again",
    1_386_348: "a client that was closing when the server closed read the end again and again",
    232_274: "the broker that is watched did not end steps with the queues that runs emptied",
    245_890: "a server that stopped said so to who acknowledged by HTTP",
    234_845: "a delivery at the very moment at which the one before timed out was too early",
    11441: "a batch was written again in a crash, before the frozen server had heard of it",
    8430: "what a full queue refuses is delivered all the same, and its repetitions never ended",
    757: "a dead letter of a life before was held against its message, which was pushed again",
    2817: "an NSQ client finished a message at the very moment its time was up",
    10574: "what an NSQ client read after a restart, and was sent before it, was unknown",
    329402: "what was overdue when its consumer left was not taken for returned",
    301380: "what is being spilled for a queue that has gone counted as lost memory",
    41313: "a push that was asked about before it waited for room seemed to be in its queue",
    50092: "what a goMS client read after a restart was taken for a message of another topic",
}
#: Marks that so many seeds need not reach: one in eight, however many there are.
RARE: Final = len(MARKS) // 8


@pytest.mark.long
@pytest.mark.cold
def test_every_promise_is_kept() -> None:
    summary = run_many(range(SEEDS), twice_of=0)
    assert [result.report() for result in summary.failures] == []
    assert summary.runs == SEEDS
    assert summary.simulated_s > 600.0
    unreached = missing(summary.marks)
    print(f"{summary.runs} seeds, {summary.events:,} events, marks unreached: {len(unreached)}")
    assert len(unreached) <= RARE, unreached


@pytest.mark.cold
def test_the_same_seed_is_the_same_history() -> None:
    summary = run_many(range(1_000, 1_010), twice_of=1)
    assert summary.again == 10
    assert summary.differing == []


@cache
def unwatched(seed: int) -> str:
    """The digest of a seed when nobody watches."""
    return run(seed, watched=False).digest


def digests(*arguments: str, hash_seed: str) -> list[str]:
    """What another process makes of seeds, interpreted, with another hash of text."""
    environment = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(ROOT / "fuzz")]),
        PYTHONHASHSEED=hash_seed,
    )
    command = [sys.executable, "-m", "tmqp_sim", "digests", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.hot
def test_neither_the_hash_of_text_nor_the_build_changes_a_history() -> None:
    """Compiled, this compares the two builds."""
    here = [f"{seed} {unwatched(seed)}" for seed in range(20)]
    for hash_seed in ("1", "2"):
        assert digests("--seeds", "0..19", "--unwatched", hash_seed=hash_seed) == here


@pytest.mark.cold
def test_watching_changes_nothing() -> None:
    """And several commands at once come to the same as one after the other."""
    for seed in range(40):
        plan = draw_plan(seed)
        # In these, those who watch also change what the broker does.  And only they know of which
        # topic a message of goMS is, in the older dialect.
        if not (plan.take_over or plan.divides_runs or plan.trusting or plan.goms):
            assert run(seed).digest == unwatched(seed), seed


@pytest.mark.long
@pytest.mark.cold
def test_runs_come_to_the_same_as_their_messages_one_by_one() -> None:
    """Byte for byte, where nothing bounds a step (a run is one effect, its messages are many) and
    nothing but the runs is pushed (or a turn may write to its sessions in another order)."""
    compared = 0
    marks: Counter[str] = Counter()
    for seed in range(400):
        drawn = draw_plan(seed)
        if drawn.bulk_producer < 0 or drawn.trusting:
            continue  # no runs, or forged acknowledgements are passed on one by one
        digests = []
        for divides in (False, True):
            plan = draw_plan(seed)
            plan.divides_runs = divides
            plan.buffers = (262_144, 65_536, 4_194_304)
            plan.work_per_step = 1_000
            plan.web_sockets = ()  # a run is one message of a WebSocket
            others = [each for each in plan.messages if each.producer != plan.bulk_producer]
            plan.without([*(each.name for each in others), "epochs", "nsq", "zmtp"])
            result = Simulation(plan).go()
            assert not result.failed, result.report()
            assert divides or "run divided on purpose" not in result.marks
            digests.append(result.digest)
            marks.update(result.marks)
        # Where consumers take turns, or clients answer one another, a turn of the server may write
        # to them in another order; test_push_runs and test_client_runs compare their bytes.
        takes_turns = any(place.kind == "bulk" and place.exclusive for place in drawn.places)
        if not takes_turns and not any(client.role == "forger" for client in drawn.clients):
            assert digests[0] == digests[1], seed
            compared += 1
    assert compared > 60
    for name in MARKS:
        # Where nothing else is pushed somebody takes every run: none waits in one piece.
        if name.startswith("run taken whole") and not name.endswith("waits"):
            assert marks[name] > 2, f"{name}: {marks[name]}"


@pytest.mark.cold
@pytest.mark.parametrize("seed", list(BLAMELESS), ids=str)
def test_the_server_is_not_blamed_for_what_the_simulation_does(seed: int) -> None:
    result = Simulation(draw_plan(seed)).go()  # some are seeds of clusters by now
    assert not result.failed, f"{BLAMELESS[seed]}\n{result.report()}"


@pytest.mark.cold
def test_what_is_refused_is_pushed_again_once_not_once_for_each_refusal() -> None:
    """Seed 1010132: each refusal of a busy server had all that was refused pushed again, which was
    refused: after a hundred thousand events it was three simulated milliseconds on."""
    result = run(1_010_132)
    assert not result.failed, result.report()
    assert result.marks["push refused"] > 100
    assert result.events < 10_000


@pytest.mark.cold
def test_a_saved_message_stays_in_its_place_when_moving_it_to_the_end_fails() -> None:
    """Seed 310977: a copy that was saved should move behind others on the disk, which was full; it
    waited in memory instead, and overtook them."""
    result = run(310_977)
    assert not result.failed, result.report()
    assert result.marks["sync failed"] > 0


def test_a_good_share_pushes_in_bulk() -> None:
    plans = [draw_plan(seed) for seed in range(400)]
    bulk = [plan for plan in plans if plan.bulk_producer >= 0]
    assert 80 < len(bulk) < 160
    assert 10 < sum(plan.divides_runs for plan in bulk) < len(bulk) // 3
    assert {plan.quiet for plan in bulk} == {True, False}
    for plan in bulk:
        place = plan.places[-1]
        given = [each for each in plan.messages if each.producer == plan.bulk_producer]
        assert given
        # Mixed runs go to further queues of the same channel.
        assert {plan.places[each.place].channel for each in given} == {place.channel}
    assert {plan.places[-1].durable for plan in bulk} == {True, False}
    assert all(not plan.divides_runs for plan in plans if plan not in bulk)


@pytest.mark.long
@pytest.mark.cold
def test_processes_come_to_the_same_as_one() -> None:
    one = run_many(range(60), jobs=1, twice_of=0)
    two = run_many(range(60), jobs=2, twice_of=0)
    assert (one.events, one.simulated_s, one.marks) == (two.events, two.simulated_s, two.marks)


def test_every_kind_of_fault_has_a_mark_and_a_line_in_the_table() -> None:
    assert [kind for kind in FAULT_KINDS if f"fault: {kind}" not in MARKS] == []
    lines = table({"fault: cut": 1_234, "unheard of": 1})
    assert len(lines) == len(MARKS) + 1
    assert any("1,234  fault: cut: a connection is reset" in line for line in lines)
    assert lines[-1].endswith("unheard of: not in the list")


def test_a_quarter_is_quiet() -> None:
    plans = [draw_plan(seed) for seed in range(400)]
    quiet = [plan for plan in plans if plan.quiet]
    assert 60 < len(quiet) < 140
    assert all(not plan.faults for plan in quiet)
    assert {fault.kind for plan in plans for fault in plan.faults} == set(FAULT_KINDS)


def test_a_plan_without_something_is_otherwise_the_same() -> None:
    whole, smaller = draw_plan(5), draw_plan(5)
    gone = whole.names()[:3]
    smaller.without(gone)
    assert smaller.names() == whole.names()[3:]
    assert smaller.left_out == tuple(sorted(gone))


@pytest.mark.cold
def test_a_frozen_server_looked_at_a_slow_reader_a_million_times() -> None:
    """Each time a session had to wait it was to be looked at once more, and each of these looks
    came again every millisecond while the server stood still."""
    assert run(1_011_102).events < 50_000
