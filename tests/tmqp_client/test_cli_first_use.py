"""What new users of the command ``tmqp`` stumbled over, each as they typed it."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.shell_completion import ShellComplete

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import commands, start, tmqp
from tmqp import __version__ as tmqp_version
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client import sync
from tmqp_client.cli import cli
from tmqp_client.cli._kinds import Number
from tmqp_client.cli._output import readable
from tmqp_client.cli.top import SORTS, sort_rows


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server("--data", str(tmp_path_factory.mktemp("data"))) as (tcp, _):
        yield tcp


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


@pytest.fixture(autouse=True)
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMQP_CONFIG", str(tmp_path / "contexts.json"))


def said(place: str, *words: str, status: int = 0) -> str:
    result = tmqp(place, *words)
    assert result.exit_code == status, result.output
    return result.output


# --- Commands that did not do what they said -----------------------------------------------------


def test_a_responder_survives_a_command_that_does_not_read_its_input(place: str) -> None:
    """The example of its own help, ``tmqp reply --name clock -- date +%T``, ended it."""
    process = start(place, "reply", "--name", "clock", "--count", "3", "--", "date", "+%T")
    try:
        with sync.connect(place) as client:
            deadline = time.monotonic() + 30
            while not any(each.name == "clock" for each in client.clients()):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            for size in (0, 10, 300_000):  # more than a pipe holds
                answer = client.request("@name:clock", b"x" * size)
                assert re.fullmatch(rb"\d\d:\d\d:\d\d\n", answer.payload)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def examples() -> list[str]:
    """The examples of every help that can be run once, as they are printed there."""
    found: list[str] = []
    for words in commands():
        command: click.Command = cli
        for word in words:
            assert isinstance(command, click.Group)
            command = command.commands[word]
        for line in (command.epilog or "").splitlines():
            if re.match(r"  tmqp ", line):
                found.append(line.strip())
    return found


@pytest.mark.parametrize("line", examples())
def test_an_example_of_the_help_can_be_parsed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of options change, and examples are forgotten."""
    monkeypatch.chdir(tmp_path)
    line = re.split(r"\s+(?:#|<|>|\||&)", line)[0]
    words = shlex.split(line)[1:]
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        command = command.commands[words.pop(0)]
    for word in words:
        if re.fullmatch(r"[a-z]+\.[a-z]+", word):
            Path(word).touch()  # a file of the reader's
    with command.make_context("tmqp", words):
        pass


@pytest.mark.parametrize("model", [QueueOptions, ChannelOptions])
def test_every_option_of_the_models_can_be_typed(
    on_disk: str, channel: str, model: type[QueueOptions]
) -> None:
    """``queue create`` had neither --durable nor half of the others."""
    group = "queue" if model is QueueOptions else "channel"
    inner = cli.commands[group]
    assert isinstance(inner, click.Group)
    for command in ("create", "update") if model is QueueOptions else ("create",):
        names = {each.name for each in inner.commands[command].params}
        assert names >= {field.name for field in dataclasses.fields(model)}
    more = ("--durable", "--retain-time", "1.5", "--no-use-message-id", "--memory-limit", "7")
    if model is QueueOptions:
        said(on_disk, "queue", "create", channel, "1", *more)
        with sync.connect(on_disk) as client:
            information = client.queue_information(channel, 1)
        assert (information.durable, information.retain_time_ms) == (True, 1_500)
        assert (information.use_message_id, information.memory_limit) == (False, 7)
        said(on_disk, "queue", "update", channel, "1", "--retain-time", "9", "--status", "paused")
        with sync.connect(on_disk) as client:
            assert client.queue_information(channel, 1).retain_time_ms == 9_000
    else:
        said(on_disk, "channel", "create", channel, "--allowed-queues", "1,5", *more)
        assert "406" in said(on_disk, "queue", "create", channel, "2", status=1)
        with sync.connect(on_disk) as client:
            assert client.channel_information(channel).allowed_queues == (1, 5)


def test_the_address_may_stand_before_the_command(place: str, channel: str) -> None:
    said("tmq://127.0.0.1:1", "-a", place, "channel", "create", channel)
    said("tmq://127.0.0.1:1", "-a", "tmq://127.0.0.1:2", "channel", "info", "-a", place, channel)
    assert "127.0.0.1:2:" in said(place, "-a", "tmq://127.0.0.1:2", "ping", status=3)


def test_a_ping_waits_for_a_server_that_is_starting() -> None:
    """``tmqp-server &`` and the next line of the README came too early."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    address = f"tmq://127.0.0.1:{port}"
    assert "connection refused" in said(address, "ping", status=3)
    assert "for 0.2 s" in said(address, "ping", "--wait", "0.2", status=3)
    servers: list[subprocess.Popen[bytes]] = []

    def later() -> None:
        time.sleep(0.4)
        command = [sys.executable, "-m", "tmqp_server", "-l", address, "--log-level", "error"]
        servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))

    starting = threading.Thread(target=later)
    starting.start()
    try:
        assert "pong from" in said(address, "ping", "--wait", "40")
    finally:
        starting.join()
        servers[0].terminate()
        servers[0].wait(20)


# --- Errors that did not say what is wrong -------------------------------------------------------


def test_tls_at_a_plain_server_is_one_line(place: str) -> None:
    """It was sixty lines of traceback."""
    text = said(place, "ping", "-a", place.replace("tmq:", "tmqs:"), status=3)
    assert len(text.splitlines()) == 1
    assert "instead of speaking TLS" in text


def test_what_is_not_there_is_named(place: str, channel: str) -> None:
    assert "there is no such channel" in said(place, "channel", "rm", channel, status=1)
    said(place, "queue", "create", channel, "1", "--status", "push")
    assert "no such channel or queue" in said(place, "queue", "info", channel, "2", status=1)
    assert "status pull" in said(place, "pull", channel, "1", status=1)


def test_a_durable_queue_without_a_data_directory_says_what_to_do(place: str, channel: str) -> None:
    text = said(place, "queue", "create", channel, "1", "--durable", status=1)
    assert "start the server with --data DIR" in text


def test_options_that_are_not_possible_say_why(place: str, channel: str) -> None:
    """It was a bare 400; or a channel was reported created that had gone with its creator."""
    text = said(place, "queue", "create", channel, "1", "--when-full", "dead-letter", status=1)
    assert "dead letters need a queue" in text
    text = said(place, "queue", "create", channel, "1", "--when-full", "wait", status=2)
    assert "'refuse', 'drop-oldest', 'dead-letter'" in text
    for words in (("--lifetime", "owner"), ("--owner-only",)):
        text = said(place, "channel", "create", channel, *words, status=2)
        assert "would end with the connection" in text
    said(place, "channel", "create", channel)
    text = said(place, "channel", "update", channel, "--lifetime", "consumers", status=1)
    assert "fixed when a channel is created" in text
    text = said(place, "channel", "update", channel + "x", "--client-limit", "2", status=1)
    assert "there is no such channel" in text


def numeric_options() -> Iterator[tuple[list[str], click.FloatRange | click.IntRange]]:
    """Every option that takes a number and has a range, behind the words of its command."""
    groups: list[tuple[list[str], click.Command]] = [([], cli)]
    while groups:
        words, command = groups.pop()
        if isinstance(command, click.Group):
            groups += [([*words, name], each) for name, each in command.commands.items()]
            continue
        arguments = [each for each in command.params if isinstance(each, click.Argument)]
        words = [*words, *["1" for each in arguments if each.required]]
        for option in command.params:
            kind = option.type
            if isinstance(option, click.Option) and isinstance(
                kind, click.FloatRange | click.IntRange
            ):
                yield [*words, option.opts[0]], kind


def test_numbers_out_of_every_range_are_refused_before_anything_is_sent() -> None:
    """Some ended in a traceback: of the model that they did not fit, or of their conversion."""
    tried = 0
    for words, kind in numeric_options():
        values = ["nan", "x"]
        if isinstance(kind, Number) and not kind.infinite:
            values += ["inf"]
        if kind.max is not None:
            values += ["9" * 30]
        for value in values:
            status = 3 if words[:2] == ["server", "check"] else 2
            text = said("tmq://127.0.0.1:1", *words, value, status=status)
            assert "Error: Invalid value for" in text
            tried += 1
    assert tried > 200


def test_an_acknowledgement_may_take_for_ever(place: str, channel: str) -> None:
    """The help says so; it was refused with the other infinite numbers."""
    said(place, "queue", "create", channel, "1")
    said(place, "pub", channel, "1", "hello", "--no-wait")
    waiting = ("sub", channel, "--queue", "1", "--count", "1", "--ack-timeout", "inf")
    assert "hello" in said(place, *waiting)


def test_what_a_model_refuses_is_a_wrong_command(channel: str) -> None:
    """It ended in a traceback."""
    long = "é" * 70_000
    text = said("tmq://127.0.0.1:1", "queue", "update", channel, "1", "--handler", long, status=2)
    assert "must be Unicode text of at most 65535 characters" in text


# --- What people and shells read -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 s"),
        (1_500, "1.5 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (93_784_000, "1 d 2 h"),
    ],
)
def test_times_are_lengths_that_people_read(milliseconds: int, text: str) -> None:
    assert readable("online_ms", milliseconds) == text
    assert readable("count", milliseconds) == milliseconds


def test_lists_in_a_pipe_have_headers_where_they_are_wanted(
    place: str, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(place, "channel", "create", channel)
    assert said(place, "channel", "ls", channel).startswith(f"{channel}\t")
    monkeypatch.setenv("TMQP_HEADERS", "1")
    assert said(place, "channel", "ls", channel).startswith("name\tqueues\t")


def completed(place: str, *words: str) -> list[str]:
    *before, incomplete = words
    complete = ShellComplete(cli, {}, "tmqp", "_TMQP_COMPLETE")
    return [item.value for item in complete.get_completions(["-a", place, *before], incomplete)]


def test_a_shell_completes_names(place: str, channel: str) -> None:
    said(place, "queue", "create", channel, "17", "--status", "push")
    said(place, "queue", "create", channel, "18", "--status", "push")
    said(place, "router", "create", f"router-{channel}")
    assert completed(place, "sub", channel[:-1]) == [channel]
    assert completed(place, "queue", "info", channel, "1") == ["17", "18"]
    assert completed(place, "router", "rm", "router-") == [f"router-{channel}"]
    assert completed("tmq://127.0.0.1:1", "sub", "") == []


def test_rows_are_sorted_as_the_keys_say() -> None:
    def row(channel: str, **counts: float) -> dict[str, object]:
        zeros = {"in_per_s": 0.0, "out_per_s": 0.0, "depth": 0, "in_flight": 0}
        return {"channel": channel, "queue": 1, **zeros, **counts}

    rows = [row("b", depth=9), row("c", in_per_s=5.0), row("a", out_per_s=2.0, in_flight=3)]
    firsts = {key: sort_rows(rows, key)[0]["channel"] for key in SORTS}
    assert firsts == {"b": "c", "d": "b", "f": "a", "i": "c", "o": "a", "n": "a"}


# --- tmqp doctor ---------------------------------------------------------------------------------


def checks(place: str, status: int = 0) -> dict[str, str]:
    lines = said(place, "doctor", "--json", status=status).splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return {f"{each['check']} {each['text'].split(':')[0]}": each["verdict"] for each in found}


def test_the_doctor_says_what_works_and_what_is_near_its_end(
    place: str, on_disk: str, channel: str
) -> None:
    healthy = checks(on_disk)
    assert healthy["storage queues can be durable"] == "ok"
    assert {healthy[f"rights list {what}"] for what in ("channels", "clients", "routers")} == {"ok"}
    assert checks(place)["storage none"] == "note"
    options = ("--status", "paused", "--message-limit", "10")
    said(place, "queue", "create", channel, "1", *options)
    said(place, "pub", channel, "1", "x", "--count", "9")
    assert checks(place, status=1)[f"limits messages of {channel}/1"] == "warning"
    said(place, "pub", channel, "1", "x")
    assert checks(place, status=2)[f"limits messages of {channel}/1"] == "problem"
    said(place, "channel", "rm", channel)


def test_the_doctor_told_neither_the_version_of_the_server_nor_its_clock(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = said(place, "doctor").splitlines()
    (version,) = [line for line in lines if "version" in line]
    assert version.startswith(f"ok      version: server tmqp {tmqp_version}, client tmqp")
    assert "ok      clock: the server's agrees with this machine's to a second" in lines
    assert any(each.startswith("ok      limits: neither the server nor one of") for each in lines)
    for ahead_s, words in ((-3_600, "3,600.0 s ahead of"), (3_600, "3,600.0 s behind")):
        clock = SimpleNamespace(
            time=lambda ahead_s=ahead_s: time.time() + ahead_s, monotonic=time.monotonic
        )
        monkeypatch.setattr(sys.modules["tmqp_client.cli.doctor"], "time", clock)
        shown = said(place, "doctor", status=1)
        assert f"warning clock: the server's is {words} this machine's" in shown


def test_the_doctor_tells_when_the_servers_own_limits_are_near(
    tmp_path: Path, channel: str
) -> None:
    path = tmp_path / "small.toml"
    path.write_text("[broker]\nmax_sessions = 3\nmax_total_bytes = 200_000\n")
    with running_server("--config", str(path)) as (place, _):
        with sync.connect(place), sync.connect(place):
            assert checks(place, status=2)["limits clients of the server"] == "problem"
        said(place, "queue", "create", channel, "1", "--status", "paused")
        said(place, "pub", channel, "1", "x" * 165_000)
        near = checks(place, status=2)
        assert near["limits bytes of the server's memory"] == "warning"
        assert near["queue 503 busy"] == "problem"


def test_the_doctor_of_a_server_that_does_not_tell_its_version(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know the operation, as any server does a number that nobody uses."""
    monkeypatch.setattr("tmqp_client.operations.nodes.OP_DESCRIBE_SERVER", 799)
    lines = said(place, "doctor").splitlines()
    (version,) = [line for line in lines if "version" in line]
    assert version.startswith("note")
    assert version.endswith("the server does not report its own")
    assert "note    clock: the server does not report its clock" in lines
    assert any(each.startswith("ok      limits") for each in lines)


def test_the_doctor_of_a_server_that_is_not_there() -> None:
    assert "cannot connect" in said("tmq://127.0.0.1:1", "doctor", status=3)


def test_a_channel_could_not_be_changed(place: str, channel: str) -> None:
    said(place, "channel", "create", channel, "--client-limit", "5", "--queue-limit", "7")
    changed = ("channel", "update", channel, "--client-limit", "9")
    assert said(place, *changed) == f"channel {channel} updated\n"
    told = json.loads(said(place, "channel", "info", channel, "--json"))
    assert (told["client_limit"], told["queue_limit"]) == (9, 7)
    assert json.loads(said(place, *changed, "--json")) == {"channel": channel, "updated": True}
    assert "name at least one option" in said(place, "channel", "update", channel, status=2)
    assert "404" in said(place, "channel", "update", "nope", *changed[3:], status=1)
    said(place, "channel", "rm", channel)
