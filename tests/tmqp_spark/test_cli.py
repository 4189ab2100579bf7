"""The command line itself: help that teaches, exit codes, errors as one sentence, progress."""

from __future__ import annotations

import io
import json
import os
import signal
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
import pytest
from click.testing import CliRunner

from tests.tmqp_spark.commands import run
from tmqp_spark.cli import cli
from tmqp_spark.cli._run import ends_well, print_table
from tmqp_spark.errors import BrokerUnreachable, DataLost, SparkError
from tmqp_spark.pipelines.reporting import Reporter, explain
from tmqp_spark.pipelines.stopping import Stop


def commands(group: click.Group, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command, those of groups included."""
    found = []
    for name, command in group.commands.items():
        found.append((*words, name))
        if isinstance(command, click.Group):
            found += commands(command, (*words, name))
    return found


ALL: Final = commands(cli)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_teaches_by_examples(words: tuple[str, ...]) -> None:
    text = CliRunner().invoke(cli, [*words, "--help"]).output
    assert "Examples:" in text
    assert f"  tmqp-spark {words[0]}" in text


def test_all_commands_are_in_the_manual() -> None:
    from tests.project import ROOT  # noqa: PLC0415 - only here

    page = (ROOT / "docs" / "spark-commands.md").read_text(encoding="utf-8")
    assert all(f"| `{words[0]}" in page for words in ALL)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["archive", "--to", "x"], "name queues (orders/7, or orders for a channel)"),
        (["archive", "a/1", "--pattern", "b.*", "--to", "x"], "name queues"),
        (["archive", "a/1", "--to", "x", "-o", "groupp=y"], "did you mean group?"),
        (["archive", "a/1", "--to", "x", "-o", "group"], "is not NAME=VALUE"),
        (["archive", "a/1", "--to", "x", "-a", "ftp://x"], "tmq://"),
        (["archive", "a/1", "--to", "x", "--batch-bytes", "few"], "a positive size"),
        (["replay", ".", "--to", "orders"], "is not channel/queue"),
        (["metrics", "a/1", "--archive", "x"], "name no queues"),
        (["groups", "reset", "g", "--to", "earliest", "--to", "latest"], "use it alone"),
        (["groups", "reset", "g", "--to", "a/1=0"], "not a number from 1 on"),
        (["groups", "reset", "g", "--to", "a/x=1"], "is not channel/queue"),
    ],
)
def test_what_was_typed_wrongly_is_said(arguments: list[str], text: str) -> None:
    assert text in run(*arguments, code=2)


def test_a_broker_that_is_not_there() -> None:
    options = ["-a", "tmq://127.0.0.1:1", "-o", "retries=1", "-o", "retryBackoffMs=1"]
    assert "cannot connect" in run("tail", "a/1", *options, code=3)
    assert "127.0.0.1:1" in run("groups", "list", "-a", "tmq://127.0.0.1:1", code=3)


class JvmError(Exception):
    """What comes from the JVM: pages of text with one line that counts."""


JvmError.__module__ = "pyspark.errors"
PAGES: Final = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 3 times
  File "ranges.py", line 234, in _refused
tmqp_spark.errors.DataLost: tmq://x orders/7: messages 1 to 9 are no longer all kept
	at org.apache.spark.scheduler.Task.run(Task.scala:141)"""


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (SparkError("no"), 1, "tmqp-spark: no\n"),
        (DataLost("gone"), 4, "tmqp-spark: gone\n"),
        (BrokerUnreachable("away"), 3, "tmqp-spark: away\n"),
        (JvmError(PAGES), 4, "orders/7: messages 1 to 9 are no longer all kept\n"),
        (JvmError("\n\nout of memory\nat x"), 1, "tmqp-spark: out of memory\n"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_is_a_sentence_and_an_exit_code(
    error: BaseException, code: int, text: str
) -> None:
    @click.command()
    @ends_well
    def failing() -> None:
        raise error

    done = CliRunner().invoke(failing, [])
    assert done.exit_code == code
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mistake_of_our_own_is_not_hidden() -> None:
    @click.command()
    @ends_well
    def failing() -> None:
        raise ZeroDivisionError

    assert isinstance(CliRunner().invoke(failing, []).exception, ZeroDivisionError)
    assert explain(JvmError("")) == ("", "JvmError")


def test_progress_is_text_or_json_or_nothing() -> None:
    lines: dict[str, str] = {}
    for name, options in (("text", {}), ("json", {"as_json": True}), ("quiet", {"quiet": True})):
        stream = io.StringIO()
        reporter = Reporter(stream=stream, **options)
        reporter.say("batch", "batch 1: 5 messages", messages=5)
        reporter.warn("odd", "look here", path=Path("x"))
        lines[name] = stream.getvalue()
    assert "s  batch 1: 5 messages\n" in lines["text"]
    told = [json.loads(line) for line in lines["json"].splitlines()]
    assert (told[0]["event"], told[0]["level"], told[0]["messages"]) == ("batch", "info", 5)
    assert (told[1]["level"], told[1]["path"]) == ("warning", "x")
    assert "look here" in lines["quiet"]
    assert "batch" not in lines["quiet"]


def test_the_first_signal_asks_and_the_second_ends() -> None:
    said = io.StringIO()
    before = signal.getsignal(signal.SIGTERM)
    with Stop(Reporter(stream=said)) as stop:
        wanted = stop.wanted
        assert not wanted
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wanted
        stop.sleep(60)  # returns at once
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert "SIGTERM: ending after what is being done" in said.getvalue()
    assert signal.getsignal(signal.SIGTERM) is before


def test_tables_stand_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[list[Any]] = [["orders\x1b/7", 1_234, None], ["x", 5, 0.25]]
    print_table(["QUEUE", "COUNT", "MS"], rows)
    assert capsys.readouterr().out.splitlines() == [
        "QUEUE      COUNT   MS",
        "orders\N{REPLACEMENT CHARACTER}/7  1,234    -",
        "x              5  0.2",
    ]


@pytest.mark.parametrize(("words", "patient"), [(["--follow"], True), ([], False)])
def test_an_archive_that_follows_counted_retries(
    words: list[str], patient: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the engine arrow it gave up after 26 s of outage, where streams wait for ten minutes."""
    seen: list[Any] = []

    def archived(_spark: Any, connection: Any, *_: Any, **__: Any) -> None:
        seen.append(connection.outage_timeout_ms)

    module = import_module("tmqp_spark.cli.archive")  # the package has the command by that name
    monkeypatch.setattr(module, "spark_for", lambda *_, **__: nullcontext())
    monkeypatch.setattr("tmqp_spark.pipelines.archive.archive_with_arrow", archived)
    address = "tmq://127.0.0.1:1"
    command = ["archive", "a/1", "--to", str(tmp_path), "-a", address, *words]
    CliRunner().invoke(cli, command)
    assert seen == [600_000 if patient else None]


@pytest.mark.parametrize(
    "words", [("replay", "archive", "--rate", "nan"), ("archive", "archive", "--every", "nan")]
)
def test_what_is_not_a_number_is_refused(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert "'nan' is not a value that this option can have" in done.output
