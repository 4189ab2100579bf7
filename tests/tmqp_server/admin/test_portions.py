"""What a page costs is divided: no step of it is longer where there is more of everything.

Lines of Python are counted, and not time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import pytest

import tmqp
from tests.tmqp_server.admin.stage import Stage
from tests.tmqp_server.shell.stage import StubWire
from tmqp_server.admin.api.overview import Overview
from tmqp_server.admin.metrics.collect import Collector
from tmqp_server.admin.metrics.exposition import TEXT
from tmqp_server.engine.commands import Connect, CreateQueue

pytestmark = pytest.mark.skipif(tmqp.compiled, reason="lines of compiled code are not seen")

#: What there is in a small server and in a large one, of everything that is counted.
FEW: Final = 400
MANY: Final = 1_200
#: Lines of one step: one takes about 50 ns, so this is a millisecond.
MOST_LINES: Final = 20_000


def lines_of(work: Callable[[], object]) -> int:
    """How many lines are run."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def crowded(count: int) -> Stage:
    """So many queues in channels of ten and of their own, clients and connections."""
    stage = Stage(metrics_queues=("*",))
    broker = stage.hub.broker
    for number in range(1, count + 1):
        stage.turn.opened(number + 1_000_000, stage.native, StubWire(), "host", stage.now)
        broker.step(Connect(number, None, f"c{number}"), stage.now)
        channel = f"ten{number // 10}" if number % 2 else f"one{number}"
        broker.step(CreateQueue(number, None, channel, number), stage.now)
    stage.turn.take_effects()
    assert len(list(broker.queues())) == count
    return stage


def longest_step(begin: Callable[[], object], go_on: Callable[[float], float]) -> tuple[int, int]:
    """The lines of the longest step of something, and how many steps there are."""
    lines = [lines_of(begin)]
    now = 1.0
    while now < float("inf"):
        due = now

        def step(due: float = due) -> None:
            nonlocal now
            now = go_on(due)

        lines.append(lines_of(step))
    return max(lines), len(lines)


def of_metrics(stage: Stage) -> tuple[int, int]:
    """A page of metrics."""
    collector = Collector(stage.world, [], 1_000)
    pages: list[Any] = []
    return longest_step(
        lambda: pages.append(collector.page(TEXT, 1.0)), lambda now: float(pages[0].go_on(now))
    )


def of_server(stage: Stage) -> tuple[int, int]:
    """``GET /server``."""
    found: list[Overview] = []
    return longest_step(
        lambda: found.append(Overview(stage.world, 1.0, 0.0)),
        lambda now: found[0].go_on(now),  # noqa: PLW0108 - it is not there before
    )


@pytest.mark.parametrize("work", [of_metrics, of_server], ids=["metrics", "server"])
def test_no_step_is_longer_where_there_is_more(work: Callable[[Stage], tuple[int, int]]) -> None:
    """To find the queues of ten thousand channels took 3.5 ms, and to add up connections 1 ms."""
    few, few_steps = work(crowded(FEW))
    many, many_steps = work(crowded(MANY))
    assert many <= few * 1.05
    assert few < MOST_LINES
    assert many_steps > 2 * few_steps
