"""What tests of the command do: run it in this process, and look at what a broker keeps."""

from __future__ import annotations

import json
from typing import Any

import click
from click.testing import CliRunner

from tmqp_client import sync
from tmqp_spark.cli import cli
from tmqp_spark.testing import Broker

__all__ = ["kept", "run", "text_of"]


def run(*arguments: str, code: int = 0, command: click.Command = cli) -> Any:
    """Run the command in this process, with the session of the tests; the summary that it prints,
    or what it says on standard error."""
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


def text_of(*arguments: str, command: click.Command = cli) -> str:
    """What the command prints, which ends well."""
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def kept(broker: Broker, channel: str, queue: int) -> list[Any]:
    """The messages that are kept of a queue, in order."""
    found: list[Any] = []
    with sync.connect(broker.url, name="test") as client:
        while more := client.read_range(channel, queue, found[-1].sequence + 1 if found else None):
            found += more
    return found
