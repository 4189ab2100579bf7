"""The command tmqp-conformance against our server: runs, reports, exit codes and files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from click.testing import CliRunner, Result

from tests.tmqp_conformance.schema import violations
from tests.tmqp_conformance.test_reports import SCHEMA
from tmqp.address import Address
from tmqp_conformance.__main__ import main
from tmqp_server import ServerConfig, running

FEW = ("--only", "server.error.options-array", "--only", "server.channel.create")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Our server."""
    config = ServerConfig(listen=[Address("127.0.0.1", 0)])
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running(config)) as ours,
    ):
        yield str(ours.addresses[0])


def test_a_run_writes_all_reports(address: str, tmp_path: Path) -> None:
    result = run("server", address, *FEW, "--out", str(tmp_path), "--name", "ours")
    assert result.exit_code == 0, result.output
    assert "TMQP/2.0 server: strict, 2 of 2 cases pass" in result.output
    made = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert violations(made, SCHEMA) == []
    assert made["target"]["name"] == "ours"
    assert {"admin", "pull", "extensions"} <= set(made["capabilities"])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"run.jsonl", "report.json", "report.html", "junit.xml", "summary.md"}
    again = run("report", str(tmp_path / "run.jsonl"), "--out", str(tmp_path / "again"))
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again/report.json").read_text() == (tmp_path / "report.json").read_text()
    same = run("compare", str(tmp_path / "report.json"), str(tmp_path / "again/report.json"))
    assert (same.exit_code, same.output.splitlines()[0][:13]) == (0, "0 regressions")


def test_what_a_run_creates_is_removed(address: str) -> None:
    result = run("server", address, "--only", "server.channel", "--jobs", "3")
    assert result.exit_code == 0, result.output
    listed = run("replay", address, "server.channel.filter-no-match")
    assert "payload=b'[]'" in listed.output
    assert listed.exit_code == 0


def test_a_capability_that_is_not_there_is_unimplemented(address: str) -> None:
    result = run("server", address, *FEW, "--only", "server.queue.tag", "--capabilities", "pull")
    assert result.exit_code == 0, result.output
    assert "1 unimplemented" in result.output


def test_a_server_that_does_not_answer_hangs(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmqp_conformance.sockets.SocketWire.receive", lambda _wire, _wait: b"")
    result = run("server", address, *FEW)
    assert result.exit_code == 1
    assert "H hang        must    server.channel.create: the peer did not answer" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["server"], "--config names no target"),
        (["server", "http://x"], "an address must begin with"),
        (["server", "192.0.2.1:2622"], "--i-own-this-target"),
        (["server", "127.0.0.1:1", "--only", "none"], "no case fits"),
        (["server", "127.0.0.1:1", "--level", "best"], "'best' is not one of"),
        (["server", "127.0.0.1:1", "--config", "/none.toml"], "No such file"),
        (["explain", "server.nothing"], "no case has the id"),
        (["report", "/none", "--out", "x"], "does not exist"),
        (["nothing"], "No such command"),
    ],
)
def test_wrong_use_is_status_3(arguments: list[str], sentence: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 3, result.output
    assert sentence in " ".join(result.output.split())


def test_nobody_there_is_status_2() -> None:
    result = run("server", "127.0.0.1:1")
    assert result.exit_code == 2
    assert "cannot connect" in result.output


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", "unknown option 'x'"),
        ("jobs = true", "jobs has the wrong type"),
        ("[[deviations]]\ncase = 'a'", "needs a case and a reason"),
        ("deviations = [1]", "has case, reason and link"),
        ("capabilities = ['luck']", "unknown capability 'luck'"),
        ("only = [1]", "only must be a list of strings"),
        ("= 1", "Invalid statement"),
    ],
)
def test_a_wrong_file_is_status_3(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "conformance.toml"
    path.write_text(text, encoding="utf-8")
    result = run("server", "127.0.0.1:1", "--config", str(path))
    assert result.exit_code == 3, result.output
    assert sentence in " ".join(result.output.split())


def test_options_of_the_file_count_unless_given(address: str, tmp_path: Path) -> None:
    path = tmp_path / "conformance.toml"
    text = f'target = "{address}"\nonly = ["server.channel.create"]\nlevel = "must"\n'
    path.write_text(text, encoding="utf-8")
    # The address in the file was not read: the command asked for one all the same.
    result = run("server", "--config", str(path))
    assert "1 of 1 cases pass" in result.output
    result = run("server", address, "--config", str(path), *FEW)
    assert "2 of 2 cases pass" in result.output


def test_the_suite_is_listed_and_explained() -> None:
    listed = run("list", "--group", "preamble")
    assert listed.output.splitlines()[0].startswith("server.preamble.answered-at-once")
    made = json.loads(run("list", "--group", "preamble", "--format", "json").output)
    assert made[0]["requires"] == ["F21"]
    explained = run("explain", "server.preamble.answered-at-once").output
    assert "docs/protocol.md#f21" in explained
    assert "a: expect the preamble b'TMQP/2.0'" in explained
    rules = run("list", "--rules").output
    assert "F21" in rules
