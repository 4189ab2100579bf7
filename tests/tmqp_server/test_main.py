"""The command tmqp-server as a process of its own: what it prints, how it ends, what it leaves."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

import tmqp
from tests.project import ROOT
from tests.tmqp_server.peers import greeting, push
from tmqp.codec import FrameDecoder
from tmqp.constants import MessageType
from tmqp.frames import Frame
from tmqp_server.access.tokens import TokenHash
from tmqp_server.config import ConfigError
from tmqp_server.io.event_loop import how_to_run

PATIENCE_S = 20.0

BACKENDS: Final = (
    "asyncio",
    "trio",
    pytest.param(
        "uvloop",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed"
        ),
    ),
)
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the command; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str, **more: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tmqp_server", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            **more,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> list[str]:
    """The addresses of its one line on standard output."""
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"tmqp-server (\S+) \((interpreted|compiled)\) ready on (.+)\n", line)
    assert found is not None, line + finish(process)[1]
    assert found[1] == tmqp.__version__
    assert found[2] == ("compiled" if tmqp.compiled else "interpreted")
    return found[3].split(" ")


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The rest of its output, when it has ended."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return out, err


def dial(address: str) -> socket.socket:
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(address.removeprefix("unix:"))
    else:
        host, _, port = address.removeprefix("tmq://").rpartition(":")
        sock = socket.create_connection((host, int(port)))
    sock.settimeout(PATIENCE_S)
    return sock


def hear_to_the_end(sock: socket.socket) -> list[Frame]:
    """What the server says after its preamble, until it closes."""
    data = b""
    while chunk := sock.recv(65_536):
        data += chunk
    assert data[:8] == b"TMQP/2.0"
    return FrameDecoder().feed(data[8:])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("backend", BACKENDS)
def test_it_serves_until_it_is_told_to_stop(
    start: Start, backend: str, number: signal.Signals
) -> None:
    process = start("-l", "tmq://127.0.0.1:0", "--backend", backend)
    (address,) = ready(process)
    with dial(address) as client:
        client.sendall(greeting("a"))
        data = b""
        while len(data) < 17:
            data += client.recv(1_000)
        process.send_signal(number)
        rest = b""
        while chunk := client.recv(1_000):
            rest += chunk
        assert rest.endswith(Frame.build(MessageType.TERMINATE).raw)
    out, err = finish(process)
    assert process.returncode == 0
    assert out == ""
    assert f"{number.name}: stopping" in err
    assert "closed: the server stops" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_stops_in_time_under_load(start: Start, backend: str) -> None:
    """H3 of the reliability cases, in small."""
    process = start("-l", "tmq://127.0.0.1:0", "--backend", backend, "--log-level", "warning")
    (address,) = ready(process)
    told: list[signal.Signals] = []

    def push_for_ever() -> None:
        with suppress(OSError), dial(address) as client:
            client.sendall(greeting(""))
            while True:
                client.sendall(push("c", 1, "m", b"x" * 1_000).raw * 50)
                if not told:
                    told.append(signal.SIGTERM)
                    process.send_signal(signal.SIGTERM)

    threads = [threading.Thread(target=push_for_ever) for _ in range(4)]
    for thread in threads:
        thread.start()
    out, err = finish(process)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_second_signal_changes_nothing(start: Start) -> None:
    process = start("-l", "tmq://127.0.0.1:0", "--log-level", "error")
    (address,) = ready(process)
    with dial(address) as client:
        client.sendall(greeting("a"))
        client.recv(8)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        out, err = finish(process)
    assert (process.returncode, out, err) == (0, "", "")


def test_it_listens_on_several_addresses_and_removes_its_unix_socket(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "tmqp.sock"
    process = start("-l", f"unix:{path}", "-l", "tmq://127.0.0.1:0", "--log-level", "warning")
    addresses = ready(process)
    assert addresses[0] == f"unix:{path}"
    for address in addresses:
        with dial(address) as client:
            client.sendall(greeting("a") + Frame.build(MessageType.TERMINATE).raw)
            assert hear_to_the_end(client)[0].content_type == 202
    process.terminate()
    out, err = finish(process)
    assert (process.returncode, out, err) == (0, "", "")
    assert not path.exists()


def test_the_largest_payload_can_be_set(start: Start) -> None:
    process = start("-l", "tmq://127.0.0.1:0", "--max-payload", "100")
    (address,) = ready(process)
    for size, code in ((100, None), (101, 482)):
        with dial(address) as client:
            client.sendall(greeting("a") + push("c", 1, "m", b"x" * size).raw)
            client.shutdown(socket.SHUT_WR)
            codes = [
                frame.content_type
                for frame in hear_to_the_end(client)
                if frame.type == MessageType.TERMINATE
            ]
        assert codes == ([] if code is None else [code])


def test_options_win_over_the_file(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "tmqp.toml"
    path.write_text(
        'listen = "tmq://192.0.2.1:1"\n[connection]\nmax_payload_bytes = 7\nmax_name_bytes = 9\n'
    )
    process = start("-c", str(path), "-l", "tmq://127.0.0.1:0", "--max-payload", "50")
    (address,) = ready(process)
    with dial(address) as client:  # 50 bytes pass, a name of 10 does not
        client.sendall(greeting("a") + push("c", 1, "m", b"x" * 50).raw)
        client.sendall(push("0123456789", 1, "m").raw)
        assert hear_to_the_end(client)[-1].content_type == 482


def test_it_says_what_it_can_do(start: Start) -> None:
    process = start("--help")
    out, err = finish(process)
    assert (process.returncode, err) == (0, "")
    for word in ("--listen", "--config", "--allow-remote", "--max-payload", "--backend", "SIGTERM"):
        assert word in out
    assert "tmqp-server -l tmq://127.0.0.1:0 -l unix:/tmp/tmqp.sock" in out
    assert max(len(line) for line in out.splitlines()) <= 100
    process = start("--version")
    out, err = finish(process)
    assert (process.returncode, out) == (0, f"tmqp-server, version {tmqp.__version__}\n")


BAD_TOML: dict[str, tuple[str | bytes, str]] = {
    "syntax": ("listen = ", "not a TOML file"),
    "unknown": ("max_conections = 1", "did you mean max_connections?"),
    "type": ('max_connections = "many"', "max_connections must be a positive whole number"),
    "table": ("broker = 3", "broker must be a table: [broker]"),
    "value": ("[connection]\nmax_payload_bytes = 0", "connection: max_payload_bytes must be"),
    "remote": ('listen = "tmq://0.0.0.0:1"', "can be reached from other machines"),
    "text": (b"\xff\xfe", "cannot read"),
}


@pytest.mark.parametrize("name", BAD_TOML)
def test_a_bad_file_is_one_line_and_status_2(start: Start, tmp_path: Path, name: str) -> None:
    text, reason = BAD_TOML[name]
    path = tmp_path / "tmqp.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    line = complaint(start("--config", str(path)), 2)
    assert line.startswith("Error: ")
    assert reason in line
    assert str(path) in line


def test_the_error_of_a_configuration_did_not_name_its_file(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "tmqp.toml"
    path.write_text('[[queues]]\nchannel = "c"\nid = 1\ndurable = true\n')
    for options in (["--check-config", str(path)], ["--config", str(path)]):
        line = complaint(start(*options), 2)
        assert line.startswith(f"Error: {path}: ")
    path.write_text("")
    line = complaint(start("-c", str(path), "-l", "http://x"), 2)
    assert line.startswith(f"Error: {path}, with the options given: ")


def complaint(process: subprocess.Popen[str], status: int) -> str:
    """The last line of standard error; for status 2, usage and a hint at --help before it."""
    out, err = finish(process)
    assert (process.returncode, out) == (status, "")
    lines = [line for line in err.splitlines() if line]
    assert len(lines) == (3 if status == 2 else 1), err
    return lines[-1]


BAD_OPTIONS: dict[str, tuple[list[str], str]] = {
    "scheme": (["-l", "http://x"], "an address must begin with tmq://"),
    "port": (["-l", "tmq://127.0.0.1:65536"], "the port must be 0 to 65535"),
    "empty": (["-l", ""], "the host is missing"),
    "tls": (
        ["-l", "tmqs://127.0.0.1:1"],
        "needs a certificate: the table [tls], or --tls-cert",
    ),
    "remote": (["-l", "tmq://0.0.0.0:0"], "set allow_remote (--allow-remote)"),
    "payload": (["--max-payload", "0"], "0 is not in the range"),
    "huge payload": (["--max-payload", str(2**63)], "max_payload_bytes must be below 2**63"),
    "backend": (["--backend", "twisted"], "'twisted' is not one of"),
    "file": (["-c", "/nonexistent/tmqp.toml"], "cannot read /nonexistent/tmqp.toml: No such file"),
    "option": (["--lisen", "x"], "No such option"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_option_is_one_line_and_status_2(start: Start, name: str) -> None:
    arguments, reason = BAD_OPTIONS[name]
    assert reason in complaint(start(*arguments), 2)


def test_an_event_loop_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"uvloop is not installed: pip install 'tmqp\[speed\]'"):
        how_to_run("uvloop")
    with pytest.raises(ConfigError, match="trio is not installed"):
        how_to_run("trio")


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_address_that_is_taken_is_one_line_and_status_1(start: Start, backend: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tmq://127.0.0.1:{taken.getsockname()[1]}"
        process = start("-l", "tmq://127.0.0.1:0", "-l", address, "--backend", backend)
        line = complaint(process, 1)
    assert line == f"tmqp-server: cannot listen on {address}: Address already in use"


@pytest.mark.parametrize("place", ["/nonexistent/sock", "/tmp/" + "x" * 200])
def test_a_unix_socket_that_cannot_be_made_is_one_line_and_status_1(
    start: Start, place: str
) -> None:
    assert f"cannot listen on unix:{place}: " in complaint(start("-l", f"unix:{place}"), 1)


def test_a_remote_address_needs_to_be_asked_for(start: Start) -> None:
    process = start("-l", "tmq://0.0.0.0:0", "--allow-remote", "--log-level", "error")
    (address,) = ready(process)
    assert address.startswith("tmq://0.0.0.0:")
    process.terminate()
    assert finish(process) == ("", "")


def test_it_serves_although_nobody_reads_what_it_prints(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.sock"
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [sys.executable, "-m", "tmqp_server", "-l", f"unix:{path}", "--log-level", "warning"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    os.close(write)
    try:
        assert process.stderr is not None
        assert "cannot print that the server is ready" in process.stderr.readline()
        with dial(f"unix:{path}") as client:
            client.sendall(greeting("a") + Frame.build(MessageType.TERMINATE).raw)
            assert hear_to_the_end(client)[0].content_type == 202
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, err) == (0, "")


# --- Checking a configuration --------------------------------------------------------------------


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tmqp_server", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_configuration_is_checked_without_serving_it() -> None:
    done = check("--check-config", "examples/interoperability.toml")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "listen          tmq://127.0.0.1:2622"
    assert "router          r-rr: round-robin to rt-a rt-b" in lines
    assert lines[-1] == "HTTP bindings   http://127.0.0.1:8080/tmqp/"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[queue]\nstatus = 'oops'", "queue.status must be one of"),
        ("[handlers]\nx = 'no_such_module:X'", "handlers.x: no_such_module:X cannot be imported"),
        ("[[routers]]\nname = 'a b'", "routers.a b: a name or a value is not possible (400)"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_one_sentence(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "tmqp.toml"
    path.write_text(text, encoding="utf-8")
    for option in ("--check-config", "--config"):
        done = check(option, str(path))
        assert done.returncode == 2
        assert done.stdout == ""
        assert f"Error: {path}: {reason}" in done.stderr
        assert "Traceback" not in done.stderr
    assert "takes the place" in check("--config", str(path), "--check-config", str(path)).stderr


def test_a_data_directory_serves_one_process_and_the_next_after_it(
    start: Start, tmp_path: Path
) -> None:
    data = str(tmp_path / "new" / "data")
    first = start("-l", "tmq://127.0.0.1:0", "--data", data)
    ready(first)
    second = start("-l", "tmq://127.0.0.1:0", "--data", data)
    out, err = finish(second)
    assert second.returncode == 1
    assert out == ""
    (line,) = [each for each in err.splitlines() if each.startswith("tmqp-server: ")]
    assert data in line
    assert "Traceback" not in err
    first.terminate()
    _, err = finish(first)
    assert first.returncode == 0
    assert "the last stop was clean" in err
    third = start("-l", "tmq://127.0.0.1:0", "--data", data)
    ready(third)
    third.kill()
    finish(third)
    fourth = start("-l", "tmq://127.0.0.1:0", "--data", data)
    ready(fourth)
    fourth.terminate()
    assert "the last stop was not clean" in finish(fourth)[1]


# --- Tokens --------------------------------------------------------------------------------------


def hashed(*options: str, token: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tmqp_server", "hash-token", *options],
        input=token,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_token_is_hashed_as_the_configuration_keeps_it() -> None:
    for options, kind in ((), "sha256"), (("--slow",), "scrypt"):
        done = hashed(*options, token="open sesame\n")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{kind}:")
        assert TokenHash(done.stdout.strip()).fits("open sesame")


def test_a_new_token_is_printed_with_its_hash() -> None:
    lines = dict(line.split(maxsplit=1) for line in hashed("--new").stdout.splitlines())
    assert TokenHash(lines["hash:"]).fits(lines["token:"])


def test_what_is_no_token_is_a_wrong_use() -> None:
    done = hashed(token="\n")
    assert done.returncode == 2
    assert "a token is one line without spaces around it" in done.stderr
    assert "Traceback" not in done.stderr


def test_code_that_cannot_be_used_is_a_wrong_configuration(start: Start, tmp_path: Path) -> None:
    for line, reason in (
        (
            'custom_messages = "their_nowhere:hook"',
            "custom_messages: their_nowhere:hook cannot be imported",
        ),
        ('[access]\nkind = "their_nowhere:X"', "access.kind: their_nowhere:X cannot be imported"),
    ):
        path = tmp_path / "tmqp.toml"
        path.write_text(f'listen = "tmq://127.0.0.1:0"\n{line}\n', encoding="utf-8")
        process = start("--config", str(path))
        said = finish(process)[1]
        assert process.returncode == 2
        assert reason in said
        assert "Traceback" not in said


COLLECTOR = """
import anyio, gc
from tmqp.address import Address
from tmqp_server import __main__ as command
from tmqp_server.wiring.running import running
from tmqp_server.config import ServerConfig

async def as_a_library():
    async with running(ServerConfig(listen=(Address("127.0.0.1", 0),))):
        print(gc.get_threshold(), gc.get_freeze_count())

before = gc.get_threshold()
anyio.run(as_a_library)
assert gc.get_threshold() == before

class Server:
    served = "here"

command._announce(Server())
print(gc.get_threshold(), gc.get_freeze_count() > 10_000)
"""


def test_the_command_sets_the_garbage_collector_and_the_library_does_not() -> None:
    """F8; 700 objects are Python's own threshold."""
    result = subprocess.run(
        [sys.executable, "-c", COLLECTOR], capture_output=True, text=True, check=True, timeout=60
    )
    library, ready, command = result.stdout.splitlines()
    assert library.endswith(", 10, 10) 0")
    assert ready.startswith("tmqp-server ")
    assert command == "(10000, 5, 50) True"
