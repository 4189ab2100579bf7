"""Traces of messages that have waited, beside the histogram of how long they did."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.samples import Exemplar

from tests.tmqp_server.admin.stage import Stage
from tests.tmqp_server.peers import operation, push
from tmqp.constants import OP_CREATE_QUEUE, OP_JOIN
from tmqp_server.admin.metrics.exposition import OPENMETRICS, Family, written
from tmqp_server.engine.model import exemplars
from tmqp_server.engine.model.histograms import Histogram

CREATE = operation(OP_CREATE_QUEUE, "c", headers=[("Queue-Id", "1"), ("Queue-Status", "push")])
JOIN = operation(OP_JOIN, "c")
TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER = "1bf7651916cd43dd8448eb211c80319d"


def parent(trace: str) -> tuple[str, str]:
    """The header of a message that is part of a trace."""
    return "traceparent", f"00-{trace}-b7ad6b7169203331-01"


def make_stage(*, wanted: bool = True) -> Stage:
    """A server with a queue c/1, whose metrics somebody has seen."""
    stage = Stage(exemplars=wanted)
    stage.say(stage.connect("ann"), CREATE)
    exemplars_of(stage)
    return stage


def exemplars_of(stage: Stage) -> dict[str, Exemplar]:
    """The exemplars of a new page, by the bounds of their buckets."""
    stage.now += 2.0
    status, text = stage.get("/metrics", ("Accept", "application/openmetrics-text"))
    assert status == 200
    families = {each.name: each for each in openmetrics(text)}
    found = [each for family in families.values() for each in family.samples if each.exemplar]
    for each in found:
        assert each.name == "tmqp_push_to_delivery_seconds_bucket"
    return {each.labels["le"]: each.exemplar for each in found if each.exemplar is not None}


def at_s(exemplar: Exemplar) -> float:
    """When its message was delivered, in Unix time."""
    assert exemplar.timestamp is not None
    return float(exemplar.timestamp)


def wait(stage: Stage, seconds: float, *headers: tuple[str, str]) -> None:
    """A message comes, waits so long and is delivered."""
    producer = stage.connect("bob")
    stage.say(producer, push("c", 1, f"m{stage.now}", source="bob", headers=headers))
    stage.now += seconds
    consumer = stage.connect("eve")
    stage.say(consumer, JOIN)
    stage.end(consumer)
    stage.end(producer)


def test_a_bucket_leads_to_the_trace_of_a_message_that_waited_so_long() -> None:
    stage = make_stage()
    wait(stage, 0.2, parent(TRACE))
    delivered_s = stage.now
    found = exemplars_of(stage)
    assert [*found] == ["0.25"]
    assert found["0.25"].labels == {"trace_id": TRACE}
    assert found["0.25"].value == pytest.approx(0.2)
    assert at_s(found["0.25"]) == pytest.approx(delivered_s)
    assert TRACE not in stage.metrics(), "the older format has none"


def test_a_bucket_has_another_trace_after_a_minute() -> None:
    stage = make_stage()
    for trace in (TRACE, OTHER):
        wait(stage, 0.2, parent(trace))
    wait(stage, 3.0, parent(OTHER))
    found = exemplars_of(stage)
    traces = {bound: each.labels["trace_id"] for bound, each in found.items()}
    assert traces == {"0.25": TRACE, "5.0": OTHER}
    stage.now += exemplars._KEPT_S
    wait(stage, 0.2, parent(OTHER))
    assert exemplars_of(stage)["0.25"].labels == {"trace_id": OTHER}


@pytest.mark.parametrize(
    "said",
    [
        "",
        "no trace",
        f"00-{TRACE.upper()}-b7ad6b7169203331-01",
        f"ff-{TRACE}-b7ad6b7169203331-01",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f'00-{TRACE}-b7ad6b7169203331-01"}} 1 # {{x="',
    ],
)
def test_what_says_no_trace_is_no_exemplar(said: str) -> None:
    stage = make_stage()
    wait(stage, 0.2, ("traceparent", said) if said else ("other", "x"))
    assert exemplars_of(stage) == {}


def test_no_message_is_looked_into_unless_it_is_wanted() -> None:
    stage = make_stage(wanted=False)
    wait(stage, 0.2, parent(TRACE))
    assert exemplars_of(stage) == {}
    assert stage.hub.broker.survey().exemplars == []


def test_times_are_unix_times() -> None:
    histogram = Histogram()
    histogram.observe(0.2)
    family = Family("push_to_delivery_seconds", [((), histogram)])
    family.exemplars = [None] * 7 + [exemplars.Exemplar(TRACE, 0.2, 5.5)]
    family.offset_s = 1_700_000_000.0
    (read,) = openmetrics("".join(written(family, OPENMETRICS)) + "# EOF\n")
    (found,) = [each.exemplar for each in read.samples if each.exemplar is not None]
    assert at_s(found) == 1_700_000_005.5
