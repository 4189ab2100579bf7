"""The alert rules and the dashboard in ``deploy``: they ask for metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.project import ROOT
from tests.tmqp_server.admin.stage import Stage
from tests.tmqp_server.peers import push
from tmqp_server.admin.metrics.catalogue import CATALOGUE, HISTOGRAM, Metric

pytestmark = pytest.mark.cold

PROMETHEUS: Final = ROOT / "deploy" / "prometheus"
ALERTS: Final = (PROMETHEUS / "alerts.yml").read_text(encoding="utf-8")
BOARD: Final[dict[str, Any]] = json.loads(
    (ROOT / "deploy" / "grafana" / "tmqp.json").read_text(encoding="utf-8")
)
#: Labels that Prometheus gives.
_GIVEN: Final = {"instance", "job", "le"}

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)"
)


def samples() -> dict[str, Metric]:
    """The metrics by the names of their samples."""
    found: dict[str, Metric] = {}
    for metric in CATALOGUE:
        ends = ("_bucket", "_sum", "_count") if metric.kind == HISTOGRAM else ("",)
        found.update({metric.full_name + end: metric for end in ends})
    return found


def uses(text: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics that a text names, each with the labels that it selects by."""
    for name, selector in re.findall(r"\b(tmqp_[a-z_]+)\b(?:\{([^}]*)\})?", text):
        yield name, set(re.findall(r"([a-z_]+)=", selector))


def faults(text: str) -> list[str]:
    """What is wrong with the metrics that a text names."""
    known = samples()
    found = []
    for name, labels in uses(text):
        if name not in known:
            found.append(f"there is no metric {name}")
        elif unknown := labels - set(known[name].labels) - _GIVEN:
            found.append(f"{name} has no label {', '.join(sorted(unknown))}")
    return found


def test_a_wrong_name_and_a_wrong_label_are_found() -> None:
    assert faults("rate(tmqp_connections_closed_total{reason=~'x'}[5m]) or tmqp_ready") == []
    assert faults("tmqp_conections") == ["there is no metric tmqp_conections"]
    assert faults('tmqp_ready{door="x"}') == ["tmqp_ready has no label door"]


def expressions() -> list[str]:
    """Everything that the dashboard asks for."""
    found = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    return found + [each["query"] for each in BOARD["templating"]["list"]]


def test_the_dashboard_names_metrics_that_there_are() -> None:
    assert [fault for each in expressions() for fault in faults(each)] == []


def test_the_dashboard_shows_all_but_single_queues() -> None:
    shown = {samples()[name].name for each in expressions() for name, _ in uses(each)}
    hidden = {
        each.name
        for each in CATALOGUE
        if not each.name.startswith(("queue_", "queues_", "metrics_", "process_"))
    } - shown
    assert hidden == {
        "acknowledges",
        "admin_busy_seconds",
        "admin_pauses",
        "admin_requests_at_work",
        "admin_requests_refused",
        "admin_requests_waiting",
        "admin_sessions",
        "audit_failing",
        "channels",
        "config_reload_success",
        "config_reloads",
        "confirms",
        "confirms_skipped",
        "conversions",
        "draining",
        "draining_unacknowledged",
        "cluster_messages",
        "cluster_buffer_bytes",
        "events",
        "event_streams",
        "events_lost",
        "http_binding_calls",
        "http_binding_seconds",
        "http_request_seconds",
        "http_requests",
        "log_lines",
        "log_suppressed",
        "queues",
        "readers",
        "router_failures",
        "router_published",
        "routers",
        "storage_failures",
        "storage_saving",
        "tls_certificate_expiry_timestamp_seconds",
        "transactions",
        "websockets",
    }


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (place["x"] + right, place["y"] + down)
            for right in range(place["w"])
            for down in range(place["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells


def test_alerts_name_metrics_that_there_are() -> None:
    assert faults(re.sub(r"name: tmqp\b", "", ALERTS)) == []


def test_each_alert_has_its_section_in_the_runbook() -> None:
    page = (ROOT / "docs" / "operate" / "runbook.md").read_text(encoding="utf-8")
    alerts = re.findall(r"- alert: (\w+)", ALERTS)
    books = re.findall(r"runbook: docs/operate/runbook\.md#(\w+)", ALERTS)
    assert books == [each.lower() for each in alerts]
    assert re.findall(r"^## (Tmqp\w+)$", page, re.MULTILINE) == alerts


def promtool(*arguments: str, text: str | None = None) -> str:
    """What promtool has to say; nothing if it is content."""
    command = ["promtool", *arguments]
    ended = subprocess.run(
        command, input=text, cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


@needs_promtool
def test_promtool_takes_the_alert_rules() -> None:
    assert promtool("check", "rules", "alerts.yml") == ""


@needs_promtool
def test_recorded_series_raise_the_alerts() -> None:
    assert promtool("test", "rules", "alerts_test.yml") == ""


@needs_promtool
def test_promtool_has_no_advice_about_the_metrics() -> None:
    stage = Stage(metrics_queues=("*",))
    stage.say(stage.connect("p"), push("c", 1, "m", source="p"))
    assert promtool("check", "metrics", text=stage.metrics()) == ""


@needs_promtool
def test_prometheus_can_read_what_the_dashboard_asks(tmp_path: Path) -> None:
    found = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    rules = [
        {"record": f"r{number}", "expr": each.replace("$__rate_interval", "5m")}
        for number, each in enumerate(found)
    ]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}), encoding="utf-8")
    assert promtool("check", "rules", "--lint=none", str(path)) == ""
