"""What a message costs, counted in ways that do not depend on how busy the machine is.

Interpreted: calls of functions, Python's and C's.  Compiled: instructions of the processor, where
something can count them.  Both: pieces of memory that are kept.  Each is counted for two numbers of
messages; the difference is what the further messages cost.  A bound is what was counted when it was
written down, and a quarter more: who makes something dearer on purpose writes down another.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

import tmqp
from tests.project import ROOT
from tests.tmqp_server.costs import WORKS, connect, hub_with_queue
from tmqp.constants import TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.wires import LetterWires
from tmqp_server.hub.hub import Hub

#: A work and how many messages; and the instructions of each.
Wanted: TypeAlias = tuple[str, int]
Counts: TypeAlias = dict[Wanted, int]

FEW: Final = 1_000
MANY: Final = 3_000
TOLERANCE: Final = 1.25

#: Calls for a message, interpreted.
CALLS: Final = {
    "decode": 3.03,
    "decode in runs": 2.07,
    "broadcast": 2.57,
    "push with both acknowledges": 20.6,
    "round robin with both acknowledges": 20.9,
    "push with headers and both acknowledges": 33.8,
    "round robin past one that is stalled, with both acknowledges": 20.9,
    "round robin past filters, equal headers, with both acknowledges": 24.6,
    "round robin past filters, own headers, with both acknowledges": 202.0,
    "round robin by keys in headers, with both acknowledges": 185.0,
    "mixed messages, at most once": 21.7,
    "mixed messages with both acknowledges": 44.1,
    "fifty queues in turn, at most once": 5.35,
    "round robin by credit": 146.0,
    "durable push with both acknowledges": 26.7,
    "request and response": 12.3,
    "NSQ: MPUB": 22.1,
    "NSQ: MPUB and FIN": 70.8,
    "NSQ: a durable PUB and FIN": 492.0,
    "goMS: a row of 200 to one that is registered": 20.0,
    "Simple MQ: a row of 200, counted as done": 52.6,
    "pushes through a feed with both acknowledges": 69.9,
    "a push through a feed with both acknowledges": 257.0,
    "a chunk through the shell": 171.0,
    "a chunk to ten consumers": 432.0,
}
#: Instructions for a message, compiled, x86-64.
INSTRUCTIONS: Final = {
    "decode in runs": 870.0,
    "broadcast": 1_370.0,
    "push with both acknowledges": 6_680.0,
    "mixed messages, at most once": 7_450.0,
    "mixed messages with both acknowledges": 13_500.0,
    "fifty queues in turn, at most once": 1_520.0,
    "durable push with both acknowledges": 11_000.0,
    "request and response": 5_010.0,
    "NSQ: a durable PUB and FIN": 72_200.0,
    "a chunk through the shell": 22_700.0,
    "a chunk to ten consumers": 68_000.0,
}


#: Pieces of memory of a session, by build: interpreted, compiled.
SESSION_BLOCKS: Final = (20.1, 20.1)


def calls_of(work: Callable[[], None]) -> int:
    """How many functions are called."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        if event in {"call", "c_call"}:
            count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def prepared(name: str) -> str:
    """The work that only prepares what another one needs."""
    if name == "request and response":
        return "requests and responses"
    if name.startswith("mixed"):
        return "mixed messages and answers" if "both" in name else "mixed messages"
    if name.startswith("fifty"):
        return "messages in turn"
    if name.startswith("NSQ: a"):
        return "NSQ single publications and answers"
    if name.startswith("NSQ"):
        return "NSQ publications and answers" if "FIN" in name else "NSQ publications"
    if name.startswith(("goMS", "Simple MQ")):
        return f"lines of {name.partition(':')[0]}"
    if "both" not in name:
        return "pushes"
    return "headed pushes and answers" if "headers" in name else "pushes and answers"


def for_each(count: Callable[[str, int], float], name: str) -> float:
    """What one more message costs, without what its preparation does."""

    def growth(work: str) -> float:
        return (count(work, MANY) - count(work, FEW)) / (MANY - FEW)

    return growth(name) - growth(prepared(name))


@pytest.mark.skipif(tmqp.compiled, reason="compiled code calls without being seen")
@pytest.mark.parametrize("name", CALLS)
def test_calls_for_a_message(name: str) -> None:
    found = for_each(lambda work, count: calls_of(lambda: WORKS[work](count)), name)
    assert 0 < found <= CALLS[name] * TOLERANCE


@pytest.mark.skipif(tmqp.compiled, reason="compiled code calls without being seen")
@pytest.mark.parametrize("what", ["with rates", "audited", "with metrics"])
def test_what_may_be_on_costs_one_hundredth_of_a_chunk_at_most(what: str) -> None:
    """A chunk is one message here, so that it is a hundredth of a push, too."""

    def calls(name: str) -> int:
        work = WORKS[name]
        work(FEW)  # what is made once
        return calls_of(lambda: work(MANY)) - calls_of(lambda: work(FEW))

    plain = "a chunk through the shell"
    assert calls(f"{plain}, {what}") <= calls(plain) * 1.01


# --- Instructions --------------------------------------------------------------------------------


def _perf(command: list[str], wanted: list[Wanted], environment: dict[str, str]) -> Counts | None:
    counts: Counts = {}
    for name, count in wanted:
        counted = ["perf", "stat", "-x,", "-e", "instructions:u", *command, name, str(count)]
        ended = subprocess.run(
            counted, env=environment, capture_output=True, text=True, check=False
        )
        found = re.search(r"^(\d+),.*instructions", ended.stderr, re.MULTILINE)
        if found is None:
            return None
        assert ended.returncode == 0, ended.stderr
        counts[name, count] = int(found[1])
    return counts


def _valgrind(
    command: list[str], wanted: list[Wanted], environment: dict[str, str]
) -> Counts | None:
    # Cachegrind without its caches counts as callgrind does, in half the time.  Nearly all of that
    # is Python's start, so there is one: each work is done by a copy, which has its count, too.
    tool = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    works = [str(part) for each in wanted for part in each]
    counted = ["valgrind", *tool, *command, *works]
    ended = subprocess.run(counted, env=environment, capture_output=True, text=True, check=False)
    if not ended.stdout:
        return None
    assert ended.returncode == 0, ended.stderr
    told = re.findall(r"^==(\d+)== I\s+refs:\s+([\d,]+)", ended.stderr, re.MULTILINE)
    by_process = {process: int(count.replace(",", "")) for process, count in told}
    lines = [line.split("\t") for line in ended.stdout.splitlines()]
    return {(name, int(count)): by_process[process] for process, name, count in lines}


def instructions_of(wanted: list[Wanted]) -> Counts | None:
    """Instructions of a process that does each work; None where nothing counts them."""
    place = str(Path(tmqp.__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([place, str(ROOT)]),
        "PYTHONHASHSEED": "0",
    }
    command = [sys.executable, "-m", "tests.tmqp_server.costs"]
    for program, counter in (("perf", _perf), ("valgrind", _valgrind)):
        if shutil.which(program) is not None:
            found = counter(command, wanted, environment)
            if found is not None:
                return found
    return None


@pytest.fixture(scope="module")
def instructions() -> Counts:
    """The instructions of each work and number."""
    works = {*INSTRUCTIONS, *map(prepared, INSTRUCTIONS)}
    found = instructions_of([(work, count) for work in sorted(works) for count in (FEW, MANY)])
    if found is None:
        pytest.skip("neither perf nor valgrind can count here")
    return found


@pytest.mark.alone
@pytest.mark.timeout(900)
@pytest.mark.skipif(not tmqp.compiled, reason="counted of the compiled build")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="counted on x86-64")
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions_for_a_message(name: str, instructions: Counts) -> None:
    found = for_each(lambda work, count: instructions[work, count], name)
    assert 0 < found <= INSTRUCTIONS[name] * TOLERANCE


# --- Memory --------------------------------------------------------------------------------------


def blocks_of(work: Callable[[], Any]) -> int:
    """How many more pieces of memory are held after the work; what it returns is held."""
    gc.collect()
    before = sys.getallocatedblocks()
    held = work()
    gc.collect()
    found = sys.getallocatedblocks() - before
    del held
    return found


def blocks_of_a_message_that_waits(hub: Hub) -> float:
    def fill(first: int) -> None:
        for number in range(first, first + 1_000):
            frame = Frame.build(
                TYPE_QUEUE_MESSAGE, "c", 1, bytes(100), message_id=f"{number:032}", source="client1"
            )
            hub.receive(1, frame.raw, 1.0)

    fill(0)
    found = blocks_of(lambda: fill(1_000)) / 1_000
    (queue,) = hub.broker.queues()
    assert queue.waiting_count() == 2_000
    return found


def test_memory_of_a_message_that_waits() -> None:
    hub = hub_with_queue("pull", b'{"RequestAcknowledge":false}')
    # The bytes, the frame, its id, the message, its number, and here and there a size.
    assert blocks_of_a_message_that_waits(hub) <= 7


def test_memory_of_a_message_deep_in_a_queue() -> None:
    hub = hub_with_queue("pull", b'{"RequestAcknowledge":false}')
    hub.broker.know_wires(LetterWires(Letters()), 1_000)
    # Of 64 messages the part, its lists and their bytes; forty of the last are still apart.
    assert blocks_of_a_message_that_waits(hub) <= 0.3


def test_memory_of_a_session_that_does_nothing() -> None:
    hub = hub_with_queue("pull", b"{}")
    connect(hub, range(10, 110))
    found = blocks_of(lambda: connect(hub, range(110, 210))) / 100
    assert hub.broker.statistics().sessions == 202
    assert found <= SESSION_BLOCKS[tmqp.compiled] * TOLERANCE
