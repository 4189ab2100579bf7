"""The command ``tmqp`` with the real server: what it prints, how it ends, and never a traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.tmqp_client.server import running_server
from tmqp import LocalProtocolError
from tmqp_client import (
    ClientClosed,
    ConnectFailed,
    ConnectionLost,
    NegativeAcknowledge,
    OperationFailed,
    OperationTimeout,
)
from tmqp_client.cli import cli
from tmqp_client.cli._output import show_rows
from tmqp_client.cli._run import exit_code, printable


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


def tmqp(place: str, *words: str, given: bytes | None = None) -> Result:
    """Run one command in this process."""
    result = CliRunner().invoke(cli, words, input=given, env={"TMQP_ADDRESS": place})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def start(place: str, *words: str, **how: int) -> subprocess.Popen[bytes]:
    """Run one command as a program of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tmqp_client.cli", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TMQP_ADDRESS": place,
        },
    )


# --- Help ----------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, ...]]:
    yield ()
    for name, command in cli.commands.items():
        yield (name,)
        if isinstance(command, click.Group):
            for inner in command.commands:
                yield (name, inner)


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*words, "--help"])
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")
    if words not in [
        (name,) for name, each in cli.commands.items() if isinstance(each, click.Group)
    ]:
        assert "tmqp" in result.output.split("Example")[1], "with an example"


def test_the_exit_codes_are_documented_and_the_version_said() -> None:
    text = CliRunner().invoke(cli, ["--help"]).output
    assert [line.split()[0] for line in text.split("Exit codes:")[1].split("\n") if line] == [
        *("0", "1", "2", "3", "4", "130", "141")
    ]
    assert re.match(r"tmqp, version \d", CliRunner().invoke(cli, ["--version"]).output)


# --- Commands ------------------------------------------------------------------------------------


def test_ping(place: str) -> None:
    result = tmqp(place, "ping")
    assert re.fullmatch(rf"pong from {place}: \d+\.\d{{3}} ms\n", result.output)
    result = tmqp(place, "ping", "--count", "3", "--interval", "0")
    assert result.output.count("pong from") == 3
    assert "3 pings, min " in result.output


def test_channels_and_queues(place: str, channel: str) -> None:
    assert tmqp(place, "channel", "create", channel).output == f"channel {channel} created\n"
    again = tmqp(place, "channel", "create", channel, "--client-limit", "3")
    assert again.output == f"channel {channel} already exists\n"
    new = tmqp(place, "channel", "create", channel, "--new")
    assert new.exit_code == 1
    assert new.output == f"tmqp: create channel '{channel}': the server answered 481 duplicate\n"
    queue = tmqp(
        place,
        *("queue", "create", channel, "1", "--status", "round-robin", "--tag", "t"),
        *("--acknowledge-timeout", "1.5", "--message-limit", "10", "--request-acknowledge"),
        *("--wait-for-acknowledge", "--handler", "ack-received", "-H", "X: y"),
    )
    assert queue.output == f"queue 1 of {channel} created\n"
    assert tmqp(place, "queue", "rm", channel, "1").output == f"queue 1 of {channel} removed\n"
    gone = tmqp(place, "queue", "rm", channel, "1")
    assert (gone.exit_code, "404 not found" in gone.output) == (1, True)
    assert tmqp(place, "channel", "rm", channel).output == f"channel {channel} removed\n"


def test_a_message_there_and_back(place: str, channel: str) -> None:
    pushed = tmqp(place, "pub", channel, "1", "größe", "-H", "Kind: test")
    assert pushed.exit_code == 0
    assert pushed.stdout == ""
    assert re.match(r"1 pushed, 1 confirmed, \d", pushed.stderr)
    taken = tmqp(place, "sub", channel, "--queue", "1", "--count", "1", "--json")
    message = json.loads(taken.stdout)
    assert message["channel"] == channel
    assert message["queue"] == 1
    assert message["payload"] == "größe"
    assert message["headers"] == [["Kind", "test"]]
    assert len(message["message_id"]) == 32


def test_a_filter_chooses(place: str, channel: str) -> None:
    tmqp(place, "queue", "create", channel, "1", "--status", "round-robin")
    for kind in ("bill", "order"):
        tmqp(place, "pub", channel, "1", kind, "-H", f"Kind: {kind}")
    taken = tmqp(place, "sub", channel, "-n", "1", "--filter", "kind=order")
    assert taken.stdout == "order\n"
    prefix = ("--filter", "bi", "--filter-language", "prefix")
    assert tmqp(place, "sub", channel, "-n", "1", *prefix).stdout == "bill\n"
    refused = tmqp(place, "sub", channel, "--filter", 'kind="order')
    assert refused.exit_code != 0
    assert "a quote in the filter is not closed" in refused.stderr


def test_repeating_and_reporting(place: str, channel: str) -> None:
    pushed = tmqp(place, "pub", channel, "1", "x", "--count", "3", "--json")
    report = json.loads(pushed.stdout)
    assert (report["sent"], report["confirmed"], report["failed"]) == (3, 3, 0)
    assert tmqp(place, "pub", channel, "1", "x", "-q").output == ""
    assert tmqp(place, "sub", channel, "-n", "4").stdout == "x\n" * 4


def test_lines_and_standard_input(place: str, channel: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\ntwo\r\n\n\xff\nlast")
    assert tmqp(place, "pub", channel, "1", "--lines", str(file)).exit_code == 0
    assert tmqp(place, "pub", channel, "1", "--lines", "-", given=b"four\n").exit_code == 0
    assert tmqp(place, "pub", channel, "1", "-", given=b"all\nof it\n").exit_code == 0
    taken = tmqp(place, "sub", channel, "-n", "7", "--json").stdout.splitlines()
    messages = [json.loads(line) for line in taken]
    assert [message.get("payload") for message in messages] == [
        *("one", "two", "", None, "last", "four", "all\nof it\n")
    ]
    assert messages[3]["payload_base64"] == "/w=="
    missing = tmqp(place, "pub", channel, "1", "--lines", str(tmp_path / "none"))
    assert missing.exit_code == 2


def test_payloads_go_to_a_pipe_as_they_are(place: str, channel: str) -> None:
    tmqp(place, "pub", channel, "1", "-", given=b"\x1b[31m\xff")
    taken = tmqp(place, "sub", channel, "-n", "1")
    assert taken.stdout_bytes == b"\x1b[31m\xff\n"


def test_a_terminal_is_not_commanded_by_strangers() -> None:
    assert printable("a\x1b[31mb\x07\tc\nd\x9b") == "a\\x1b[31mb\\x07\tc\nd\\x9b"
    assert printable("größe 漢字") == "größe 漢字"
    assert printable("\N{RIGHT-TO-LEFT OVERRIDE}\U000e0001") == "\\u202e\\U000e0001"


def test_a_list_in_a_table_was_printed_as_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(["names"], [{"names": ["a\x9bb", "\u202ec"]}], as_json=False)
    assert capsys.readouterr().out == "a\\x9bb,\\u202ec\n"


# --- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", ["--wait", "--no-wait"])
def test_refused_messages(place: str, channel: str, wait: str) -> None:
    tmqp(place, "queue", "create", channel, "9", "--status", "stopped")
    result = tmqp(place, "pub", channel, "9", "x", "--count", "7", wait)
    assert result.exit_code == 1
    assert result.stderr.count("tmqp: message") == 5, "some of them are shown"
    assert re.search(r"tmqp: 7 of 7 were (not confirmed|refused)\n$", result.stderr)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("pub", "c", "1"), "give one of TEXT"),
        (("pub", "c", "1", "x", "--lines", "-"), "give one of TEXT"),
        (("pub", "c", "1", "--lines", "-", "-n", "2"), "--count repeats one message"),
        (("pub", "c", "70000", "x"), "70000 is not in the range"),
        (("pub", "c", "1", "x", "-H", "novalue"), "write KEY:VALUE"),
        (("pub", "two words", "1", "x"), "a channel name must not contain"),
        (("pub", "c", "1", "x", "-H", "A:b\r\nC:d"), "must not contain CR or LF"),
        (("sub", "c", "--address", "http://x"), "an address must begin with tmq://"),
        (("queue", "create", "c", "1", "--status", "fast"), "'fast' is not one of"),
        (("ping", "--timeout", "0"), "0.0 is not in the range"),
        (("frobnicate",), "No such command"),
    ],
)
def test_what_was_typed_wrongly(place: str, words: tuple[str, ...], complaint: str) -> None:
    result = tmqp(place, *words)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stdout == ""


def test_no_server() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    result = tmqp(f"tmq://127.0.0.1:{port}", "ping")
    assert result.exit_code == 3
    assert result.output == f"tmqp: cannot connect to tmq://127.0.0.1:{port}: connection refused\n"


def test_a_server_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"tmq://127.0.0.1:{server.getsockname()[1]}"
        result = tmqp(place, "ping", "--timeout", "0.2")
    assert result.exit_code == 3
    assert "not connected within 0.2 seconds" in result.output


def test_a_push_that_nobody_confirms(place: str, channel: str) -> None:
    tmqp(place, "queue", "create", channel, "1", "--handler", "allow-all")
    result = tmqp(place, "pub", channel, "1", "x", "--timeout", "0.2")
    assert result.exit_code == 4
    assert "no answer within 0.2 s" in result.output
    assert "delivery handler" in result.output
    assert tmqp(place, "pub", channel, "1", "x", "--no-wait").exit_code == 0


def test_each_error_has_its_exit_code() -> None:
    codes = {
        NegativeAcknowledge("push", "id", "no"): 1,
        OperationFailed("push", "id", 404): 1,
        LocalProtocolError("bad"): 2,
        ConnectFailed("tmq://x", "no"): 3,
        ConnectionLost("terminated", "gone"): 3,
        ClientClosed("closed"): 3,
        OperationTimeout("push", "id", 1.0): 4,
    }
    assert {type(error): exit_code(error) for error in codes} == {
        type(error): code for error, code in codes.items()
    }


# --- Being stopped -------------------------------------------------------------------------------


def test_ctrl_c_while_waiting_for_messages(place: str, channel: str) -> None:
    with start(place, "sub", channel) as process:
        tmqp(place, "pub", channel, "1", "x")
        assert process.stdout is not None
        assert process.stdout.readline() == b"x\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == b"tmqp: interrupted\n"


def test_ctrl_c_while_reading_standard_input(place: str, channel: str) -> None:
    tmqp(place, "queue", "create", channel, "1", "--status", "push")
    with start(place, "pub", channel, "1", "--lines", "-") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        # Once the first line has come it waits for the second; before, Python may be starting.
        assert tmqp(place, "sub", channel, "--count", "1").stdout == "first\n"
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert process.stderr.read() == b"tmqp: interrupted\n"
    assert process.returncode == 130


def test_a_reader_that_has_gone(place: str, channel: str) -> None:
    with start(place, "sub", channel) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        tmqp(place, "pub", channel, "1", "first")
        assert process.stdout.readline() == b"first\n"
        process.stdout.close()
        tmqp(place, "pub", channel, "1", "second")
        assert process.wait(10) == 141
        assert process.stderr.read() == b""
    taken = tmqp(place, "pub", channel, "1", "third")
    assert taken.exit_code == 0


def test_a_server_that_goes_away() -> None:
    with ExitStack() as stack:
        with running_server() as (place, _):
            process = stack.enter_context(start(place, "sub", "orders"))
            tmqp(place, "pub", "orders", "1", "x")
            assert process.stdout is not None
            assert process.stdout.readline() == b"x\n"
        _, said = process.communicate(timeout=10)
    assert process.returncode == 3
    assert said.startswith(b"tmqp: connection lost: the server ")
    assert said.count(b"\n") == 1
