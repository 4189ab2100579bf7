"""The rest of the command ``tmqp`` with the real server: looking, asking, measuring, contexts."""

from __future__ import annotations

import json
import re
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import start, tmqp
from tmqp_client import sync
from tmqp_client.cli import contexts
from tmqp_client.cli._output import plain
from tmqp_client.cli.bench import percentiles, summary
from tmqp_client.cli.pub import filled
from tmqp_client.cli.top import rates


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


@pytest.fixture(autouse=True)
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "deep" / "contexts.json"
    monkeypatch.setenv("TMQP_CONFIG", str(path))
    return path


def good(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in good(result).splitlines()]


# --- Looking -------------------------------------------------------------------------------------


def test_channels_and_queues(place: str, channel: str) -> None:
    good(tmqp(place, "queue", "create", channel, "1", "--status", "push"))
    good(tmqp(place, "queue", "create", channel, "7", "--status", "pull"))
    (found,) = rows(tmqp(place, "channel", "ls", f"{channel}*", "--json"))
    assert (found["name"], found["queues"]) == (channel, [1, 7])
    assert good(tmqp(place, "channel", "ls", channel)).startswith(f"{channel}\t1,7\t")
    assert json.loads(good(tmqp(place, "channel", "info", channel, "--json")))["name"] == channel
    assert re.search(
        rf"^name +{channel}$", good(tmqp(place, "channel", "info", channel)), re.MULTILINE
    )
    assert rows(tmqp(place, "channel", "consumers", channel, "--json")) == []
    listed = rows(tmqp(place, "queue", "ls", channel, "--json"))
    assert [(each["id"], each["status"]) for each in listed] == [(1, "push"), (7, "pull")]


def test_changing_and_clearing_a_queue(place: str, channel: str) -> None:
    good(tmqp(place, "queue", "create", channel, "1", "--status", "push"))
    good(tmqp(place, "queue", "update", channel, "1", "--status", "paused", "--message-limit", "9"))
    good(tmqp(place, "pub", channel, "1", "x", "--count", "3"))
    info = json.loads(good(tmqp(place, "queue", "info", channel, "1", "--json")))
    assert (info["status"], info["message_limit"], info["messages"]) == ("paused", 9, 3)
    good(tmqp(place, "queue", "clear", channel, "1", "--only", "high"))
    assert json.loads(good(tmqp(place, "queue", "info", channel, "1", "--json")))["messages"] == 3
    good(tmqp(place, "queue", "clear", channel, "1"))
    assert json.loads(good(tmqp(place, "queue", "info", channel, "1", "--json")))["messages"] == 0
    assert tmqp(place, "queue", "update", channel, "1").exit_code == 2
    assert tmqp(place, "queue", "info", channel, "99").exit_code == 1


def test_a_limit_that_may_be_none_takes_minus_one(place: str, channel: str) -> None:
    """The help promised -1 for no limit, and the option refused it."""
    good(tmqp(place, "queue", "create", channel, "1", "--put-back-limit", "-1"))
    info = json.loads(good(tmqp(place, "queue", "info", channel, "1", "--json")))
    assert info["put_back_limit"] == -1
    refused = tmqp(place, "queue", "create", channel, "1", "--put-back-limit", "-2")
    assert refused.exit_code == 2


def test_what_was_done_as_json(place: str, channel: str) -> None:
    made = json.loads(good(tmqp(place, "channel", "create", channel, "--json")))
    assert made == {"channel": channel, "created": True}
    made = json.loads(good(tmqp(place, "queue", "create", channel, "1", "--json")))
    assert made == {"channel": channel, "queue": 1, "created": True}
    made = json.loads(good(tmqp(place, "queue", "clear", channel, "1", "--json")))
    assert made == {"channel": channel, "queue": 1, "cleared": True}
    words = ("queue", "update", channel, "1", "--status", "pull", "--json")
    made = json.loads(good(tmqp(place, *words)))
    assert made == {"channel": channel, "queue": 1, "updated": True}
    made = json.loads(good(tmqp(place, "queue", "rm", channel, "1", "--json")))
    assert made == {"channel": channel, "queue": 1, "removed": True}
    made = json.loads(good(tmqp(place, "channel", "rm", channel, "--json")))
    assert made == {"channel": channel, "removed": True}
    made = json.loads(good(tmqp(place, "router", "create", channel, "--json")))
    assert made == {"router": channel}
    made = json.loads(good(tmqp(place, "router", "rm", channel, "--json")))
    assert made == {"router": channel, "removed": True}
    assert [row["milliseconds"] > 0 for row in rows(tmqp(place, "ping", "--json"))] == [True]


def test_clients(place: str) -> None:
    with sync.connect(place, client_id="me-here", type="visitor"):
        (found,) = rows(tmqp(place, "clients", "--type", "visitor", "--json"))
    assert found["id"] == "me-here"


def test_routers(place: str, channel: str) -> None:
    good(tmqp(place, "queue", "create", channel, "1", "--status", "push"))
    good(tmqp(place, "router", "create", channel, "--method", "only-first"))
    good(tmqp(place, "router", "bind", channel, "first", channel, "--queue", "1"))
    found = rows(tmqp(place, "router", "ls", "--json"))
    assert {"name": channel, "method": "only-first"}.items() <= found[-1].items()
    (binding,) = rows(tmqp(place, "router", "info", channel, "--json"))
    assert (binding["name"], binding["binding_type"]) == ("first", "queue")
    with sync.connect(place) as client:
        client.publish(channel, "through the router")
    assert good(tmqp(place, "sub", channel, "--count", "1")) == "through the router\n"
    good(tmqp(place, "router", "unbind", channel, "first"))
    assert tmqp(place, "router", "unbind", channel, "first").exit_code == 1
    good(tmqp(place, "router", "rm", channel))


def test_top(place: str, channel: str) -> None:
    good(tmqp(place, "queue", "create", channel, "1", "--status", "paused"))
    good(tmqp(place, "pub", channel, "1", "x", "--count", "5"))
    (row,) = rows(tmqp(place, "top", channel, "--once", "--interval", "0.1", "--json"))
    assert (row["depth"], row["status"], row["in_per_s"]) == (5, "paused", 0.0)
    assert "\t5\t" in good(tmqp(place, "top", channel, "--count", "1", "--interval", "0.1"))


def test_rates() -> None:
    assert rates((10, 5, 0), (30, 5, 1), 2.0) == [10.0, 0.0, 0.5]
    assert rates(None, (30, 5, 1), 2.0) == [0.0, 0.0, 0.0]
    assert rates((30, 5, 1), (0, 0, 0), 2.0) == [0.0, 0.0, 0.0], "a queue made anew"


# --- Messages ------------------------------------------------------------------------------------


def test_pull_and_cache(place: str, channel: str) -> None:
    good(tmqp(place, "queue", "create", channel, "1", "--status", "pull"))
    good(tmqp(place, "pub", channel, "1", "{n}", "--template", "--count", "4", "--no-wait"))
    assert good(tmqp(place, "pull", channel, "1", "--count", "2")) == "1\n2\n"
    (found,) = rows(tmqp(place, "pull", channel, "1", "--order", "lifo", "--json"))
    assert found["payload"] == "4"
    assert good(tmqp(place, "pull", channel, "1", "--count", "9", "--clear", "all")) == "3\n"
    assert good(tmqp(place, "pull", channel, "1")) == "", "empty is no error"
    good(tmqp(place, "queue", "create", channel, "2", "--status", "cache"))
    assert tmqp(place, "cache", channel, "2").exit_code == 1
    good(tmqp(place, "pub", channel, "2", "sunny", "--no-wait"))
    assert good(tmqp(place, "cache", channel, "2")) == "sunny\n"
    assert tmqp(place, "pull", channel, "2").exit_code == 1


def test_files_and_rate(place: str, channel: str, tmp_path: Path) -> None:
    good(tmqp(place, "queue", "create", channel, "1", "--status", "push"))
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"first\nfile")
    two.write_bytes(b"second")
    words = ("pub", channel, "1", "--file", str(one), "--file", str(two), "--rate", "10")
    began = time.monotonic()
    good(tmqp(place, *words))
    assert time.monotonic() - began >= 0.1
    assert good(tmqp(place, "sub", channel, "-n", "2")) == "first\nfile\nsecond\n"
    assert tmqp(place, "pub", channel, "1", "x", "--file", str(one)).exit_code == 2
    assert tmqp(place, "pub", channel, "1", "--file", str(one), "--count", "2").exit_code == 2


def test_a_template_leaves_all_else_alone() -> None:
    assert filled(b"{n} {m} {{n}} {", 3) == b"3 {m} {3} {"
    first, second = filled(b"{uuid}", 1), filled(b"{uuid}", 1)
    assert first != second
    assert re.fullmatch(rb"[0-9a-f]{32}", first)
    assert re.fullmatch(rb"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", filled(b"{time}", 1))


def test_request_and_reply(place: str) -> None:
    with start(place, "reply", "--name", "shouter", "--", "tr", "a-z", "A-Z") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"answering as ")
        assert good(tmqp(place, "request", "@name:shouter", "quiet")) == "QUIET\n"
        found = json.loads(good(tmqp(place, "request", "@name:shouter", "b", "--json")))
        assert (found["code"], found["payload"]) == (0, "B")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (130, b"tmqp: interrupted\n")
    assert tmqp(place, "request", "@name:shouter", "x").exit_code == 1
    with start(place, "reply", "fixed", "--name", "oracle", "--count", "1") as process:
        assert process.stderr is not None
        process.stderr.readline()
        assert good(tmqp(place, "request", "@name:oracle", "?")) == "fixed\n"
        assert process.wait(10) == 0
    with start(place, "reply", "--name", "broken", "--", "false", "x") as process:
        assert process.stderr is not None
        process.stderr.readline()
        failed = tmqp(place, "request", "@name:broken", "?")
        assert (failed.exit_code, failed.stdout) == (1, "")
        assert "500" in failed.stderr
        process.kill()


def test_events(place: str, channel: str) -> None:
    with start(place, "events", "ChannelCreated", "--count", "1", "--json") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"listening to ChannelCreated\n"
        good(tmqp(place, "channel", "create", channel))
        output, _ = process.communicate(timeout=10)
    assert json.loads(output)["name"] == channel
    assert tmqp(place, "events", "ChannelCreated", channel).exit_code == 2


# --- Measuring -----------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["pub", "sub", "request"])
def test_bench(place: str, what: str) -> None:
    words = ("bench", what, "--count", "200", "--in-flight", "20", "--size", "10")
    found = json.loads(good(tmqp(place, *words, "--json")))
    assert (found["what"], found["messages"]) == (what, 200)
    assert 0 < found["p50_ms"] <= found["p99_ms"] <= found["p99.9_ms"] <= found["max_ms"]
    assert found["messages_per_s"] > 0
    assert "latency: p50" in good(tmqp(place, *words))
    assert rows(tmqp(place, "channel", "ls", "bench-*", "--json")) == []


def test_percentiles_are_of_the_times_there_were() -> None:
    times_s = [number / 1_000 for number in range(1, 1_001)]
    assert percentiles(times_s) == {
        "p50_ms": 500.0,
        "p90_ms": 900.0,
        "p99_ms": 990.0,
        "p99.9_ms": 999.0,
        "max_ms": 1000.0,
    }
    assert percentiles([0.002]) == dict.fromkeys(percentiles([0.002]), 2.0)
    assert percentiles([]) == {}
    assert summary("pub", 10, 1_048_576, 2.0, [])["mib_per_s"] == 5.0


# --- Contexts and completion ---------------------------------------------------------------------


def test_contexts(place: str, config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good(tmqp("", "config", "set", "here", "--address", place, "--token", "secret", "--use"))
    assert stat.S_IMODE(config_file.stat().st_mode) == 0o600
    good(tmqp("", "config", "set", "nowhere", "--address", "unix:/nowhere"))
    found = rows(tmqp("", "config", "ls", "--json"))
    assert [(each["name"], each["in_use"]) for each in found] == [
        ("here", True),
        ("nowhere", False),
    ]
    assert "secret" not in tmqp("", "config", "ls").output
    monkeypatch.delenv("TMQP_ADDRESS", raising=False)
    assert place in good(without_address("ping"))
    assert without_address("ping", "--context", "nowhere").exit_code == 3
    assert place in good(without_address("ping", "--context", "nowhere", "-a", place))
    assert without_address("ping", "--context", "unknown").exit_code == 2
    good(tmqp("", "config", "use", "nowhere"))
    assert without_address("ping").exit_code == 3
    good(tmqp("", "config", "rm", "nowhere"))
    assert tmqp("", "config", "use", "nowhere").exit_code == 1
    assert tmqp("", "config", "rm", "nowhere").exit_code == 1
    assert tmqp("", "config", "set", "bad", "--address", "what?://").exit_code == 2


def without_address(*words: str) -> Result:
    """Run one command with no address in the environment."""
    from click.testing import CliRunner  # noqa: PLC0415

    from tmqp_client.cli import cli  # noqa: PLC0415

    return CliRunner().invoke(cli, words)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"current": 1}', '{"current":"","contexts":[]}'])
def test_a_file_that_is_none_is_told(config_file: Path, text: str) -> None:
    config_file.parent.mkdir()
    config_file.write_text(text)
    for words in (("ping",), ("config", "ls")):
        result = without_address(*words)
        assert result.exit_code in (1, 2)
        assert "not a file of contexts" in result.output
    with pytest.raises(contexts.ContextError):
        contexts.load()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    assert "_TMQP_COMPLETE" in good(tmqp("", "completion", shell))


def test_models_as_json_has_them() -> None:
    assert plain((1, "a", None)) == [1, "a", None]
