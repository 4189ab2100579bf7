"""``tmqp-conformance fuzz model`` against the real server, on TCP and on a Unix socket.

It takes the whole ``SOAK_SECONDS``, one half for each.  A failure is written to a file that
``tmqp-conformance replay`` plays; ``make soak SOAK_SEED=n`` goes on where another has ended.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak.share import first_seed, whole
from tmqp.address import parse_address
from tmqp.testing.conformance import Patience
from tmqp_conformance.fuzzing.findings import write_model
from tmqp_conformance.fuzzing.search import ModelFuzzer
from tmqp_conformance.sockets import ServerStage

STEPS = 40
JOBS = 4
#: Conversations for each second of the tool's own processor time, whatever else the machine does.
LEAST_RATE = 60


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """A server that is a process of its own."""
    path = tmp_path_factory.mktemp("server") / "sock"
    command = [sys.executable, "-m", "tmqp_server", "--log-level", "error"]
    command += ["-l", "tmq://127.0.0.1:0", "-l", f"unix:{path}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-2:]
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()


@pytest.mark.parametrize("number", [0, 1])
def test_the_model_agrees_with_the_server(
    addresses: list[str], tmp_path: Path, number: int
) -> None:
    stage = ServerStage(parse_address(addresses[number]))
    began, used = time.monotonic(), time.process_time()
    until = began + whole() / 2
    first = first_seed() + number * 10_000_000
    fuzzer = ModelFuzzer(stage, f"soak{number}", first, STEPS, Patience(quiet_s=0.05), jobs=JOBS)
    finding = fuzzer.search(lambda: time.monotonic() < until)
    rate = fuzzer.played / (time.monotonic() - began)
    print(
        f"{addresses[number]}: {fuzzer.played} conversations, {rate:.0f}/s,"
        f" {sum(fuzzer.done.values())} actions, {int(finding is not None)} findings;"
        f" the next seed is {first + fuzzer.played}"
    )
    if finding is not None:
        pytest.fail(f"{finding.message}: {write_model(tmp_path, finding)}")
    assert fuzzer.played / (time.process_time() - used) >= LEAST_RATE
