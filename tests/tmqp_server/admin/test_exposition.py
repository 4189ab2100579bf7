"""How metrics are written and declared, judged by Prometheus' own parser."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from tests.tmqp_server.admin.stage import Stage, value_of, values_of
from tmqp_server.admin.metrics.catalogue import BY_NAME, CATALOGUE, COUNTER, Metric
from tmqp_server.admin.metrics.exposition import (
    OPENMETRICS,
    TEXT,
    Family,
    wants_openmetrics,
    written,
)
from tmqp_server.admin.options import read_choice
from tmqp_server.doors.http.door import HttpDoor
from tmqp_server.engine.model.histograms import SHORT_BOUNDS_US, Histogram

pytestmark = pytest.mark.cold


@given(channel=st.text(max_size=20), value=st.integers(0, 10**15))
def test_labels_are_read_as_they_were_written(channel: str, value: int) -> None:
    family = Family("queue_received", [((channel, "1"), value)])
    end = "# EOF\n"
    for form, read in ((TEXT, prometheus), (OPENMETRICS, openmetrics)):
        text = "".join(written(family, form)) + (end if form == OPENMETRICS else "")
        (found,) = read(text)
        (sample,) = found.samples
        assert sample.labels == {"channel": channel, "queue": "1"}
        assert sample.value == value


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.integers(1, 5))))
def test_a_histogram_counts_each_value_in_all_larger_buckets(
    values: list[tuple[float, int]],
) -> None:
    histogram = Histogram(SHORT_BOUNDS_US)
    for seconds, weight in values:
        histogram.observe(seconds, weight)
    text = "".join(written(Family("storage_write_seconds", [((), histogram)]), OPENMETRICS))
    (family,) = openmetrics(text + "# EOF\n")
    for sample in family.samples:
        if sample.name.endswith("_bucket"):
            bound = float(sample.labels["le"])
            exact = sum(weight for seconds, weight in values if int(seconds * 1e6) <= bound * 1e6)
            assert sample.value == exact
        elif sample.name.endswith("_count"):
            assert sample.value == sum(weight for _, weight in values)


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda each: each.name)
def test_a_metric_is_named_as_prometheus_asks(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", metric.name)
    assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_created"))
    assert not re.search(r"_(ms|milliseconds|minutes|kilobytes|mb|percent)$", metric.name)
    assert metric.text.endswith(".")
    assert '"' not in metric.text
    for label in metric.labels:
        assert re.fullmatch(r"[a-z]+", label)
        assert label not in ("le", "job", "instance")
    if metric.kind == COUNTER:
        assert metric.full_name.endswith("_total")


def test_no_two_metrics_have_one_name() -> None:
    assert len(BY_NAME) == len(CATALOGUE)


def test_the_series_without_queues_are_bounded() -> None:
    """Whatever clients do: labels have as many values as the operator has doors."""
    there = [each for each in CATALOGUE if "channel" not in each.labels]
    assert sum(each.bound for each in there if "route" not in each.labels) < 1_300


def test_a_route_is_a_template_and_a_method_one_that_there_is() -> None:
    """What requests name would be series that clients make."""
    stage = Stage()
    assert isinstance(stage.admin, HttpDoor)
    routes = {each.template for each in stage.admin.context.routes.routes}
    assert len(routes) < BY_NAME["http_requests"].labels["route"]
    stage.get("/api/v1/channels/one")
    stage.get("/api/v1/channels/two")
    stage.get("/three")
    stage.get("/healthz", method="BREW")
    text = stage.metrics()
    one = '/api/v1/channels/{channel}"'
    assert values_of(text, "tmqp_http_requests_total") == {
        f'route="{one},method="GET",code="4xx"': 2,
        'route="(none)",method="GET",code="4xx"': 1,
        'route="(none)",method="other",code="4xx"': 1,
    }
    assert value_of(text, "tmqp_http_request_seconds_count", f'route="{one}') == 2


@pytest.mark.parametrize(
    ("accept", "newer"),
    [
        (b"", False),
        (b"*/*", False),
        (b"text/plain", False),
        (b"application/openmetrics-text", True),
        (b"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3", True),
        (b"text/plain;q=0.9,application/openmetrics-text;q=0.1", False),
        (b"application/openmetrics-text;version=2.0.0", False),
        (b"application/openmetrics-text;q=x", False),
        (b"application/openmetrics-text;q=nan", False),
        (b"\xff;;=,", False),
    ],
)
def test_the_format_is_the_one_that_the_client_prefers(accept: bytes, newer: bool) -> None:
    assert wants_openmetrics(accept) is newer


@pytest.mark.parametrize(
    ("text", "pattern", "queue_id"),
    [("orders", "orders", -1), ("bills-*/1", "bills-*", 1), ("a/b", "a/b", -1), ("*", "*", -1)],
)
def test_a_choice_of_queues(text: str, pattern: str, queue_id: int) -> None:
    found = read_choice(text)
    assert (found.pattern, found.queue_id) == (pattern, queue_id)


@pytest.mark.parametrize("text", ["", "/1", "a*b", "a/99999999"])
def test_a_choice_that_cannot_be_used(text: str) -> None:
    with pytest.raises(ValueError, match="metrics_queues"):
        read_choice(text)
