"""The plots of the comparison of brokers: one file a group, the same bytes for the same figures."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tmqp_bench.__main__ import main
from tmqp_bench.broker import plot
from tmqp_bench.broker.loop import Sample
from tmqp_bench.broker.suite import BrokerPlan, BrokerResults, Figures
from tmqp_bench.broker.workloads import WORKLOADS

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib"
)


def results(*names: str) -> BrokerResults:
    """As after a run of these workloads, the contenders ever slower."""
    found = BrokerResults(BrokerPlan(names, 1, 1.0, True, ("compiled", "interpreted")))
    for workload in WORKLOADS:
        if workload.name in names:
            for number, contender in enumerate(workload.contenders, 1):
                sample = Sample(1_000, 1_000_000 // number, 1.0, 0.5, 0.5, [0.000_05 * number])
                found.figures[workload.name, contender.title] = Figures([sample], [1])
    return found


@needs_matplotlib
def test_each_group_has_its_file_and_it_says_what_was_measured(tmp_path: Path) -> None:
    found = results("broadcast", "request-1", "request-16", "push-acks")
    del found.figures["broadcast", "amqtt QoS 0"]
    made = plot.draw(found, tmp_path / "made.svg")
    assert [path.name for path in made] == [
        "made-broadcast.svg",
        "made-push.svg",
        "made-request.svg",
    ]
    text = {path.stem: "".join(ET.parse(path).getroot().itertext()) for path in made}  # noqa: S314
    assert "1 to 1 broadcast, at most once: deliveries/s" in text["made-broadcast"]
    assert "Mosquitto QoS 0" in text["made-broadcast"]
    assert "amqtt" not in text["made-broadcast"]
    assert "333,333" in text["made-request"]
    assert "p50 150 us" in text["made-request"]
    assert "request and response, 16 in flight" in text["made-request"]
    assert max(path.stat().st_size for path in made) < 60_000


@needs_matplotlib
def test_the_same_figures_make_the_same_file(tmp_path: Path) -> None:
    found = results("durable-256")
    files: list[bytes] = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (path,) = plot.draw(found, folder / "plot.svg")
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert b" \n" not in files[0]


@needs_matplotlib
def test_a_plot_may_be_a_png(tmp_path: Path) -> None:
    (path,) = plot.draw(results("pull-1"), tmp_path / "plot.png")
    assert path.name == "plot-pull.png"
    assert path.read_bytes().startswith(b"\x89PNG")


@needs_matplotlib
def test_nothing_measured_is_no_file(tmp_path: Path) -> None:
    empty = BrokerResults(BrokerPlan(("broadcast",), 1, 1.0, False, ()))
    assert plot.draw(empty, tmp_path / "plot.svg") == []
    with pytest.raises(plot.PlotError, match="cannot be written: No such file"):
        plot.draw(results("pull-1"), tmp_path / "nowhere" / "plot.svg")


def test_what_cannot_be_drawn_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "tmqp_bench.broker.command.compare_brokers", lambda *_: pytest.fail("it measures")
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    for name, reason in (
        ("plot.pdf", "a plot is an .svg or a .png, not plot.pdf"),
        ("nowhere/plot.svg", "there is no folder"),
    ):
        assert main(["brokers", "--plot", str(tmp_path / name)]) == 2
        assert reason in capsys.readouterr().err
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert main(["brokers", "--plot", str(tmp_path / "plot.svg")]) == 2
    assert "plots need matplotlib: pip install 'tmqp[bench-peers]'" in capsys.readouterr().err


@needs_matplotlib
def test_the_command_measures_and_draws(tmp_path: Path) -> None:
    arguments = ["--workload", "request-1", "--rounds", "1", "--seconds", "0.1"]
    arguments += ["--build", "interpreted", "--plot", str(tmp_path / "plot.svg")]
    assert main(["brokers", *arguments]) == 0
    assert "request and response" in (tmp_path / "plot-request.svg").read_text()


def test_every_workload_has_a_group() -> None:
    groups = {workload.group for workload in WORKLOADS}
    assert groups == {
        *(
            "broadcast",
            "push",
            "pull",
            "request",
            "sizes",
            "durable",
            "nsq",
            "doors",
            "watched",
            "jms",
            "traffic",
        ),
    }
