"""Whatever a client can ask for, the broker's resident memory stays near what its books say."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tmqp
from tests.project import ROOT
from tests.tmqp_server.engine.filling import CASES, MOST_BYTES, kinds
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Connect,
    PassAnswer,
    Push,
    PushRun,
    SendDirect,
)

#: Resident memory for each byte in the books, and what a process takes anyway.
FACTOR = 1.5
SLACK_BYTES = 1_048_576
#: What is refused in its own words, or by its own bound.
OTHER_REFUSALS = {"Connect": "482", "Publish": "404"}


@functools.cache
def measured() -> dict[str, dict[str, Any]]:
    """The figures of all cases, each from a process of its own."""
    place = str(Path(tmqp.__file__).parents[1])
    paths = [place, str(ROOT), str(ROOT / "fuzz")]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.tmqp_server.engine.filling"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(found) == len(CASES), ended.stderr
    return {each["case"]: each for each in found}


def test_every_command_of_a_client_has_a_case() -> None:
    # These have a way of their own through the broker.
    others = {Push, PushRun, Acknowledge, AcknowledgeRun, Connect, SendDirect, PassAnswer}
    commands = {*Broker()._performers, *others}
    assert {kinds(case) for case in CASES} == {each.__name__ for each in commands}


@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="how large a process is, it says in /proc")
@pytest.mark.parametrize("case", CASES)
def test_memory_beside_the_books(case: str) -> None:
    """A queue took 3.7 kB and was not counted, a message kept 206 kB of its producer's session, and
    one in the hands of many consumers a table of them: 1.5 GB where the books said 17 MB."""
    figures = measured()[case]
    books, grown = figures["books"], figures["books"] - figures["prepared"]
    assert figures["resident"] <= books * FACTOR + SLACK_BYTES, figures
    if grown > MOST_BYTES // 100:
        # Whatever grows is refused in the end, and before it is made: but for what is in flight.
        assert figures["refused"] == OTHER_REFUSALS.get(kinds(case), "503"), figures
        assert books <= MOST_BYTES * 17 / 16 + 65_536, figures
    else:
        assert figures["refused"] == "", figures
