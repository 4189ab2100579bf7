"""Reading again what a server keeps: all of it comes, and the table says so."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import pytest

from tmqp_bench import ranges

if TYPE_CHECKING:
    from pathlib import Path


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    ranges.add_arguments(parser.add_subparsers(dest="command"))
    return parser.parse_args(["ranges", "--build", "interpreted", *words])


def test_everything_is_read_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--messages", "3000", "--payload", "700", "--rounds", "1", "--verify", "--json"]
    assert ranges.run(options(*words, "--directory", str(tmp_path))) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["payload"], row["state"]) for row in rows] == [(700, "owed"), (700, "consumed")]
    for row in rows:
        assert row["messages_per_s"] > 0
        # Each has a frame around its payload and an entry in the index.
        assert row["bytes_per_s"] > 750 * row["messages_per_s"]
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("0", "-1", "many"):
        with pytest.raises(SystemExit):
            options("--messages", word)
        assert "a number is 1..100000000" in capsys.readouterr().err
