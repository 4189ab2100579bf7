"""``tmqp server check``, ``tmqp server info`` and ``tmqp doctor`` with a real server."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import click
import pytest
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families

from tests.certificates import make_certificate
from tests.tmqp_client.server import running_server
from tmqp.address import parse_address
from tmqp_client import sync
from tmqp_client.cli import cli
from tmqp_client.cli._admin import Admin, Samples, default_url
from tmqp_client.cli._examining import examine_memory
from tmqp_client.cli._findings import Report
from tmqp_client.cli._ranges import read_range
from tmqp_client.cli._verdicts import FORMATS, Measure, State, Verdict, render
from tmqp_client.cli.checks import check

pytestmark = pytest.mark.cold

_CONFIG: Final = """\
data = "{data}"

[admin]
listen = "unix:{folder}/admin"

[access.roles.little]
rights = ["join"]
channels = ["nothing"]
[[access.tokens]]
name = "boss"
token = "boss-token"
roles = ["admin"]
[[access.tokens]]
name = "poor"
token = "poor-token"
roles = ["little"]
"""


BOSS: Final = "boss-token"


class Place:
    """A server, and how the commands reach it."""

    def __init__(self, tcp: str, folder: Path) -> None:
        self.tcp = tcp
        self.http = f"unix:{folder}/admin"

    def run(self, *words: str, token: str = BOSS, **more: str) -> Result:
        """Run a command."""
        environment = {"TMQP_ADDRESS": self.tcp, "TMQP_HTTP": self.http, "TMQP_TOKEN": token}
        result = CliRunner().invoke(cli, words, env={**environment, **more})
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result

    def check(self, *words: str, token: str = BOSS) -> dict[str, Any]:
        """What a check says, in JSON; its exit code must be that of its state."""
        result = self.run("server", "check", *words, "--json", token=token)
        found: dict[str, Any] = json.loads(result.stdout)
        assert found["code"] == result.exit_code == State[found["state"].upper()]
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("s")
    path = folder / "tmqp.toml"
    path.write_text(_CONFIG.format(data=folder / "data", folder=folder), encoding="utf-8")
    with running_server("--config", str(path)) as (tcp, _):
        yield Place(tcp, folder)


@pytest.fixture(autouse=True)
def contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMQP_CONFIG", str(tmp_path / "contexts.json"))


# --- Ranges and formats --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("10", [0, 10], [-1, 10.5]),
        ("10:", [10, 1e9], [9]),
        ("~:10", [-99, 10], [11]),
        ("10:20", [10, 20], [9, 21]),
        ("@10:20", [9, 21], [10, 20]),
        (":5", [0, 5], [-1, 6]),
        ("-3:-1", [-2], [0, -4]),
    ],
)
def test_ranges_are_those_of_the_monitoring_plugins(
    text: str, good: list[float], bad: list[float]
) -> None:
    wanted = read_range(text)
    assert [each for each in good if not wanted.has(each)] == []
    assert [each for each in bad if wanted.has(each)] == []


@pytest.mark.parametrize("text", ["", ":", "x", "20:10", "1:2:3", "~", "nan", "@", "10:~"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a range"):
        read_range(text)


HOSTILE: Final = Verdict(
    "queue",
    State.WARNING,
    'a | "b"\n\x1b[31m',
    (Measure("messages", 12.5, "", read_range("1:"), None), Measure("size", 3e12, "B")),
    'x"\\\n/1',
    server="tmq://127.0.0.1:1",
)


def test_a_name_cannot_add_a_line_or_a_number_to_what_is_printed() -> None:
    line = render(HOSTILE, "nagios")
    assert line == 'TMQP QUEUE WARNING - a / "b" \\x1b[31m | messages=12.5;1: size=3000000000000B'
    assert "\n" not in render(HOSTILE, "text")
    assert json.loads(render(HOSTILE, "json"))["text"] == HOSTILE.sentence


def test_prometheus_reads_the_text_file() -> None:
    families = {
        each.name: each
        for each in text_string_to_metric_families(render(HOSTILE, "prometheus") + "\n")
    }
    (state,) = families["tmqp_check_state"].samples
    assert (state.value, state.labels["subject"]) == (1, HOSTILE.subject)
    values = {each.labels["measure"]: each.value for each in families["tmqp_check_value"].samples}
    assert values == {"messages": 12.5, "size": 3e12}


def test_the_metrics_are_read_as_the_official_parser_reads_them(place: Place) -> None:
    async def page() -> Samples:
        return await Admin(place.http, "boss-token", 10).metrics()

    ours = anyio.run(page)
    text = 'a_total{x="1",y="q\\"\\\\\\n"} 3\n# HELP b x\nb 1e-3\nc_bucket{le="+Inf"} 2\n'
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert Samples(text).all(sample.name) == [(sample.labels, sample.value)]
    assert ours.total("tmqp_ready") == 1
    assert ours.total("tmqp_nothing") is None
    assert ours.quantile("tmqp_nothing", 0.5) is None
    assert Samples('h_bucket{le="1"} 0\nh_bucket{le="+Inf"} 0\n').quantile("h", 0.5) is None
    lag = 'h_bucket{le="+Inf"} 100\nh_bucket{le="0.5"} 98\nh_bucket{le="2"} 99\n'
    assert [Samples(lag).quantile("h", share) for share in (0.98, 0.99, 0.5)] == [0.5, 2.0, 0.5]


# --- Checks --------------------------------------------------------------------------------------


def test_a_healthy_server_is_ok(place: Place) -> None:
    for name in ("connection", "ready", "storage", "memory"):
        assert place.check(name)["state"] == "ok", name
    assert place.run("server", "check", "ready").stdout.startswith("TMQP READY OK - ")
    assert place.check("connection", "--crit", "10:")["state"] == "critical"
    assert place.check("memory", "--warn", "99:")["state"] == "warning"
    assert place.check("storage", "--crit", "~:1")["state"] == "critical"


def test_a_queue_is_judged_by_what_waits_and_who_has_joined(place: Place) -> None:
    with sync.connect(place.tcp, token="boss-token", name="judge") as client:
        place.run("queue", "create", "orders", "1", "--status", "paused")
        for _ in range(3):
            client.push("orders", 1, "x")
        assert place.check("queue", "orders", "1")["measures"]["messages"]["value"] == 3
        assert place.check("queue", "orders", "1", "--warn", "2")["state"] == "warning"
        assert place.check("queue", "orders", "1", "--warn", "2", "--crit", "2")["code"] == 2
        assert place.check("queue", "orders", "1", "--consumers", "1:")["state"] == "critical"
        client.join("orders")
        assert place.check("queue", "orders", "1", "--consumers", "1:")["state"] == "ok"
        assert place.check("client", "judge")["state"] == "ok"
    found = place.check("queue", "orders", "9")
    assert (found["state"], found["subject"]) == ("critical", "orders/9")
    assert "404" in found["text"]
    assert place.check("client", "judge")["state"] == "critical"
    assert place.check("client", "type:tmqp-cli", "--crit", "2:")["state"] == "critical"


def test_what_the_client_may_not_ask_is_unknown(place: Place) -> None:
    for words in (("storage",), ("memory",), ("client", "x"), ("queue", "orders", "1")):
        assert place.check(*words, token="poor-token")["state"] == "unknown", words
    assert place.check("ready", token="poor-token")["state"] == "ok"
    assert place.check("connection", token="wrong")["state"] == "critical"
    assert place.check("cluster")["text"] == "the server has no other nodes"


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("queue", "orders"),
        ("memory", "--warn", "x"),
        ("ready", "--http", "ftp://x"),
        ("ready", "--format", "xml"),
    ],
)
def test_a_wrong_call_is_unknown(place: Place, words: tuple[str, ...]) -> None:
    """A monitoring system takes 2, with which other commands end, for critical."""
    result = place.run("server", "check", *words)
    assert result.exit_code == State.UNKNOWN
    assert "Error: " in result.stderr


def test_no_server_is_critical(place: Place) -> None:
    for words in (
        ("connection", "-a", "tmq://127.0.0.1:1"),
        ("ready", "--http", "http://127.0.0.1:1"),
        ("ready", "--http", "unix:/nowhere"),
        ("certificate", "-a", "tmqs://127.0.0.1:1"),
    ):
        assert place.check(*words)["state"] == "critical", words


def test_a_server_that_accepts_and_says_nothing_is_critical_in_time(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for words in (
            ("ready", "--http", f"http://127.0.0.1:{port}"),
            ("connection", "-a", f"tmq://127.0.0.1:{port}"),
            ("certificate", "-a", f"tmqs://127.0.0.1:{port}"),
        ):
            found = place.check(*words, "--timeout", "0.2")
            assert (found["state"], "0.2 s" in found["text"]) == ("critical", True), found


def test_every_check_has_an_example_and_every_format() -> None:
    assert set(FORMATS) == {"nagios", "json", "prometheus", "text"}
    for name, command in check.commands.items():
        assert f"tmqp server check {name}" in (command.epilog or ""), name
        (form,) = [each for each in command.params if each.name == "form"]
        assert isinstance(form.type, click.Choice)
        assert set(form.type.choices) == set(FORMATS)


def test_the_certificate_is_judged_by_the_days_that_are_left(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with running_server(*options, scheme="tmqs") as (tls, _):
        place = Place(tls.replace("127.0.0.1", "localhost"), tmp_path)
        untrusted = place.check("certificate")
        assert (untrusted["state"], "not accepted" in untrusted["text"]) == ("critical", True)
        trusting = {"SSL_CERT_FILE": str(certificate)}
        for ranges, state in (
            ((), 2),
            (("--crit", "1:"), 1),
            (("--warn", "1:", "--crit", "1:"), 0),
        ):
            result = place.run("server", "check", "certificate", *ranges, **trusting)
            assert result.exit_code == state, result.output
        examined = place.run("doctor", "--read-only", **trusting)
        assert "problem tls: TLSv1.3, the certificate is valid for 2 more days" in examined.stdout
        assert place.run("doctor").exit_code == 3


# --- Info ----------------------------------------------------------------------------------------


def test_info_tells_what_the_server_tells(place: Place) -> None:
    lines = place.run("server", "info").stdout.splitlines()
    for wanted in ("# server", "# memory", "# messages", "# storage", "saving:1", "ready:1"):
        assert wanted in lines
    told = json.loads(place.run("server", "info", "storage", "clients", "--json").stdout)
    assert set(told) == {"storage", "clients"}
    assert told["clients"]["max"] == 10_000
    wrong = place.run("server", "info", "nothing")
    assert (wrong.exit_code, "there is no section 'nothing'" in wrong.stderr) == (2, True)


def test_info_without_metrics_is_what_tmqp_tells(place: Place) -> None:
    result = place.run("server", "info", "-a", place.tcp, TMQP_HTTP="")
    assert result.exit_code == 0
    assert "# memory" in result.stdout
    assert "# storage" not in result.stdout
    assert "no metrics: no answer from http://127.0.0.1:2680" in result.stderr
    assert place.run("server", "info", "--http", "unix:/nowhere").exit_code == 3


def test_info_says_what_it_may_not_see(place: Place) -> None:
    result = place.run("server", "info", token="poor-token")
    assert "cannot show the server: " in result.stderr
    assert "does not allow this client to see /metrics" in result.stderr


# --- Doctor --------------------------------------------------------------------------------------


def findings(result: Result) -> dict[str, str]:
    """The worst level of each check."""
    found: dict[str, str] = {}
    for line in result.stdout.splitlines():
        level, name = line[:8].strip(), line[8:].partition(":")[0]
        levels = ("ok", "note", "warning", "problem")
        found[name] = max(found.get(name, "ok"), level, key=levels.index)
    return found


def test_the_doctor_examines_the_server_too(place: Place) -> None:
    result = place.run("doctor")
    found = findings(result)
    for name in ("socket", "connection", "clock", "rights", "queue", "storage", "metrics", "disk"):
        assert found[name] == "ok", result.stdout
    assert found["build"] in ("note", "ok") or "build" not in found
    assert "queue" not in findings(place.run("doctor", "--read-only"))


def test_the_doctor_of_a_client_that_may_do_little(place: Place) -> None:
    result = place.run("doctor", token="poor-token")
    found = findings(result)
    assert (found["rights"], found["queue"], found["metrics"]) == ("note", "note", "note")
    assert result.exit_code == 0
    wrong = place.run("doctor", token="wrong")
    assert (findings(wrong)["connection"], wrong.exit_code) == ("problem", 3)


def test_the_doctor_says_at_which_step_the_way_ends(place: Place) -> None:
    for address, step in (
        ("tmq://no-such-host.invalid", "name"),
        ("tmq://127.0.0.1:1", "socket"),
        ("unix:/nowhere", "socket"),
        (place.tcp.replace("tmq:", "tmqs:"), "tls"),
    ):
        result = place.run("doctor", "-a", address)
        assert (findings(result)[step], result.exit_code) == ("problem", 3), result.stdout
        assert list(findings(result))[-1] == step


SICK: Final = """\
tmqp_ready 0
tmqp_config_reload_success 0
tmqp_process_max_fds 1024
tmqp_storage_saving 1
tmqp_storage_free_bytes 100
tmqp_storage_floor_bytes 90
tmqp_storage_write_seconds_bucket{le="0.1"} 1
tmqp_storage_write_seconds_bucket{le="0.25"} 100
tmqp_storage_write_seconds_bucket{le="+Inf"} 100
tmqp_build_info{version="1",build="interpreted"} 1
tmqp_queues_without_consumers 4
"""


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """An HTTP server that answers everything so."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_the_doctor_finds_what_the_metrics_of_a_sick_server_tell(
    place: Place, tmp_path: Path
) -> None:
    with answering(200, SICK.encode()) as url:
        result = place.run("doctor", "--http", url)
    found = findings(result)
    assert result.exit_code == 2
    assert found["ready"] == "problem"
    assert found["configuration"] == found["descriptors"] == found["disk"] == "warning"
    assert found["queues"] == found["build"] == "note"
    assert "one in a hundred takes 250 ms or more" in result.stdout


def test_an_answer_that_is_no_server_of_ours_is_a_sentence(place: Place) -> None:
    with answering(404, b"") as url:
        assert "answers with 404" in place.check("storage", "--http", url)["text"]
    with answering(200, b"[" * 100_000) as url:
        assert place.check("storage", "--http", url)["state"] == "unknown"
        assert place.check("ready", "--http", url)["state"] == "ok"


def test_a_limit_that_a_container_cannot_hold_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report(as_json=False)
    limit = tmp_path / "memory.max"
    examine_memory(report, 1_000, local=True, limit=limit)
    limit.write_text("max\n")
    examine_memory(report, 1_000, local=True, limit=limit)
    limit.write_text("2000\n")
    examine_memory(report, 1_000, local=True, limit=limit)
    assert report.status == 0
    limit.write_text("1200\n")
    examine_memory(report, 1_000, local=False, limit=limit)
    assert report.status == 0
    examine_memory(report, 1_000, local=True, limit=limit)
    assert report.status == 1
    assert "this container may use 1,200" in capsys.readouterr().out


def test_the_admin_door_is_looked_for_on_the_same_host() -> None:
    urls = {
        "tmq://broker:5": "http://broker:2680",
        "tmqs://[::1]:5": "http://[::1]:2680",
        "unix:/x": "http://127.0.0.1:2680",
    }
    assert {each: default_url(parse_address(each)) for each in urls} == urls
