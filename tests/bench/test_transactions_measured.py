"""The check of the measurement of transactions: it does the work, and says what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmqp_bench import __main__ as command


def test_transactions_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["transactions", "--messages", "300", "--directory", str(tmp_path)]
    assert command.main(arguments) == 0  # it looks whether all messages are kept
    said = capsys.readouterr().out
    assert "300 messages of 100 bytes, processor time" in said
    assert "a transaction costs " in said
    assert list(tmp_path.iterdir()) == []


def test_a_number_of_messages_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["transactions", "--messages", "1"])
    assert "messages are 100..1000000, got 1" in capsys.readouterr().err


def test_a_large_commit_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["large-commit", "--megabytes", "40", "--directory", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "40,000 messages committed, 40,000 in the queue" in text
    (line,) = [each for each in text.splitlines() if each.startswith("put aside")]
    assert int(line.split()[2]) > 5, "not all of it was in memory"
    with pytest.raises(SystemExit):
        command.main(["large-commit", "--megabytes", "0"])
