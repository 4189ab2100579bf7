"""``tmqp sub`` with terms and commands, and ``tmqp pub --batch``, with the real server."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import channel, start, tmqp

__all__ = ["channel"]

#: A program that notes what it was given, and ends as the payload says.
_PROGRAM = """\
import json, os, sys
data = sys.stdin.buffer.read().decode()
names = ("CHANNEL", "QUEUE", "SOURCE", "REDELIVERED")
with open(sys.argv[1], "a") as file:
    file.write(json.dumps([data, [os.environ["TMQP_" + each] for each in names]]) + "\\n")
sys.exit(int(data) if data.isdigit() else 0)
"""


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


def command(file: Path) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", _PROGRAM, str(file))


def noted(file: Path) -> list[tuple[str, list[str]]]:
    return [tuple(json.loads(line)) for line in file.read_text().splitlines()]


def fill(place: str, channel: str, *texts: str) -> None:
    tmqp(place, "queue", "create", channel, "1", "--status", "round-robin")
    for text in texts:
        assert tmqp(place, "pub", channel, "1", text).exit_code == 0


# --- Terms ---------------------------------------------------------------------------------------


def test_what_was_not_printed_goes_back_at_once(place: str, channel: str) -> None:
    fill(place, channel, "one", "two", "three")
    assert tmqp(place, "sub", channel, "-n", "1").stdout == "one\n"
    # The other two were sent as well, and are there again, in order, without a timeout.
    assert tmqp(place, "sub", channel, "-n", "2").stdout == "two\nthree\n"


def test_a_credit_bounds_what_is_taken(place: str, channel: str) -> None:
    fill(place, channel, "one", "two")
    with start(place, "sub", channel, "--credit", "1", "--returns", "timeout") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        assert tmqp(place, "sub", channel, "-n", "1").stdout == "two\n", "it was not sent there"
        process.send_signal(signal.SIGINT)


def test_a_time_of_its_own_and_a_window(place: str, channel: str) -> None:
    fill(place, channel, "one")
    terms = ("--window", "1", "--ack-timeout", "5", "--returns", "end", "--priority", "3")
    assert tmqp(place, "sub", channel, "-n", "1", *terms).stdout == "one\n"
    assert tmqp(place, "sub", channel, "-n", "1", "--ack-timeout", "99999999").exit_code == 1
    assert tmqp(place, "sub", channel, "--window", "0").exit_code == 2


# --- Commands ------------------------------------------------------------------------------------


def test_a_command_is_run_for_each_message(place: str, channel: str, tmp_path: Path) -> None:
    fill(place, channel, "one", "two")
    file = tmp_path / "noted"
    assert tmqp(place, "sub", channel, "-n", "2", *command(file)).exit_code == 0
    found = noted(file)
    assert [text for text, _ in found] == ["one", "two"]
    assert {tuple(where[:2]) for _, where in found} == {(channel, "1")}
    assert {where[3] for _, where in found} == {"0"}
    assert all(where[2] for _, where in found), "each has a source"
    assert json.loads(tmqp(place, "peek", channel, "1", "--json").stdout or "null") is None
    fill(place, channel, "three")
    assert tmqp(place, "sub", channel, "-n", "1", "--json", *command(file)).exit_code == 0
    assert json.loads(noted(file)[-1][0])["payload"] == "three"


def test_a_message_whose_command_fails_is_sent_again_later(
    place: str, channel: str, tmp_path: Path
) -> None:
    fill(place, channel, "3", "fine")
    file = tmp_path / "noted"
    began = time.monotonic()
    words = ("sub", channel, "-n", "3", "--retry-delay", "0.3")
    done = tmqp(place, *words, *command(file))
    assert time.monotonic() - began >= 0.3
    assert [(text, where[3]) for text, where in noted(file)] == [
        ("3", "0"),
        ("fine", "0"),
        ("3", "1"),
    ]
    assert done.exit_code == 0
    assert done.stderr.count("ended with 3 for message") == 2


def test_a_failure_may_stop_everything(place: str, channel: str, tmp_path: Path) -> None:
    fill(place, channel, "7", "next")
    words = ("sub", channel, "--on-failure", "stop", "--retry-delay", "0")
    stopped = tmqp(place, *words, *command(tmp_path / "noted"))
    assert stopped.exit_code == 1
    assert tmqp(place, "sub", channel, "-n", "2").stdout == "next\n7\n", "both are there again"


def test_a_failure_may_be_a_negative_acknowledge(place: str, channel: str, tmp_path: Path) -> None:
    fill(place, channel, "7")
    words = ("sub", channel, "-n", "1", "--on-failure", "nack")
    assert tmqp(place, *words, *command(tmp_path / "noted")).exit_code == 0
    assert tmqp(place, "peek", channel, "1").stdout == "", "the handler took it as an answer"


def test_a_command_that_cannot_be_started_loses_nothing(place: str, channel: str) -> None:
    fill(place, channel, "one")
    failed = tmqp(place, "sub", channel, "--", "/no/such/program")
    assert failed.exit_code == 1
    assert "/no/such/program: No such file" in failed.stderr
    assert tmqp(place, "sub", channel, "-n", "1").stdout == "one\n"


def test_a_command_may_take_longer_than_the_time_to_acknowledge(
    place: str, channel: str, tmp_path: Path
) -> None:
    fill(place, channel, "slow")
    sleeping = ("--", sys.executable, "-c", "import time; time.sleep(1.5)")
    words = ("sub", channel, "-n", "1", "--ack-timeout", "0.6")
    assert tmqp(place, *words, *sleeping).exit_code == 0
    assert tmqp(place, "peek", channel, "1").stdout == "", "it was acknowledged in time"


def test_a_push_waits_for_room_in_a_full_queue(place: str, channel: str) -> None:
    tmqp(place, "queue", "create", channel, "1", "--status", "pull", "--message-limit", "1")
    assert tmqp(place, "pub", channel, "1", "first").exit_code == 0
    refused = tmqp(place, "pub", channel, "1", "second")
    assert (refused.exit_code != 0, "482" in refused.stderr) == (True, True)
    waited = tmqp(place, "pub", channel, "1", "second", "--room", "0.05")
    assert waited.exit_code != 0, "there was none in all that time"
    with start(place, "pub", channel, "1", "third", "--room", "30") as process:
        assert tmqp(place, "pull", channel, "1").stdout == "first\n"
        assert process.wait(30) == 0
    assert tmqp(place, "pull", channel, "1").stdout == "third\n"


def test_a_batch_is_refused_as_a_whole_and_waits_for_no_room(place: str, channel: str) -> None:
    assert tmqp(place, "pub", channel, "1", "x", "--batch", "--room", "1").exit_code == 2


# --- Batches -------------------------------------------------------------------------------------


def test_a_batch_is_pushed_whole(place: str, channel: str) -> None:
    fill(place, channel)
    lines = b"one\ntwo\nthree\n"
    done = tmqp(place, "pub", channel, "1", "--lines", "-", "--batch", "--json", given=lines)
    report = json.loads(done.stdout)
    assert (report["sent"], report["confirmed"], report["failed"]) == (3, 3, 0)
    assert tmqp(place, "sub", channel, "-n", "3").stdout == "one\ntwo\nthree\n"
    more = ("--batch", "--count", "2", "--template", "--delay", "0.2", "-H", "Kind: x")
    assert tmqp(place, "pub", channel, "1", "{n}", *more).exit_code == 0
    taken = tmqp(place, "sub", channel, "-n", "2", "--json").stdout.splitlines()
    assert [json.loads(line)["payload"] for line in taken] == ["1", "2"]
    assert ["Kind", "x"] in json.loads(taken[0])["headers"]


def test_of_a_batch_that_is_refused_nothing_is_there(place: str, channel: str) -> None:
    tmqp(place, "queue", "create", channel, "1", "--status", "pull", "--message-limit", "2")
    refused = tmqp(place, "pub", channel, "1", "--lines", "-", "--batch", given=b"1\n2\n3\n")
    assert refused.exit_code == 1
    assert "none of the 3 messages was pushed: " in refused.stderr
    assert "482" in refused.stderr
    assert tmqp(place, "peek", channel, "1").stdout == ""
    large = tmqp(place, "pub", channel, "1", "x" * 600_000, "--count", "2", "--batch")
    assert large.exit_code == 2
    assert "more than 1048576 bytes together" in large.stderr
    assert tmqp(place, "peek", channel, "1").stdout == ""


@pytest.mark.parametrize("more", [("--no-wait",), ("--rate", "3")])
def test_a_batch_goes_with_some_options_only(place: str, more: tuple[str, ...]) -> None:
    refused = tmqp(place, "pub", "c", "1", "x", "--batch", *more)
    assert (refused.exit_code, more[0] in refused.stderr) == (2, True)


# --- Receivers -----------------------------------------------------------------------------------


def test_it_is_told_to_how_many_consumers_messages_went(place: str, channel: str) -> None:
    tmqp(place, "queue", "create", channel, "1", "--status", "push")
    waiting = tmqp(place, "pub", channel, "1", "one", "--receivers")
    assert "1 pushed, 1 confirmed, to 0 consumers at once, " in waiting.stderr
    assert tmqp(place, "sub", channel, "-n", "1").stdout == "one\n"
    readers = [start(place, "sub", channel, "-n", "2") for _ in range(2)]
    try:
        while tmqp(place, "channel", "consumers", channel, "--json").stdout.count("\n") < 2:
            time.sleep(0.05)
        both = tmqp(place, "pub", channel, "1", "x", "--count", "2", "--receivers", "--json")
        assert json.loads(both.stdout)["receivers"] == 4
    finally:
        for each in readers:
            each.terminate()
            each.communicate()


@pytest.mark.parametrize("more", [("--no-wait",), ("--batch",), ("--delay", "3"), ("--key", "k")])
def test_receivers_are_counted_of_plain_pushes_only(place: str, more: tuple[str, ...]) -> None:
    refused = tmqp(place, "pub", "c", "1", "x", "--receivers", *more)
    assert (refused.exit_code, more[0] in refused.stderr) == (2, True)
