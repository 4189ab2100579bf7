"""The command tmqp-conformance replay against real servers, right and wrong ones."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from click.testing import CliRunner, Result

import tmqp
from tests.project import ROOT
from tests.support import CAPTURES
from tmqp.address import Address
from tmqp.constants import MessageType
from tmqp.frames import Frame
from tmqp_conformance.__main__ import main
from tmqp_server import ServerConfig, running

CONNECT = "real-000-connect-producer"
CREATE = "real-005-channel-create"


def recording(beginning: str) -> str:
    """The path of the one recording whose name begins so."""
    (path,) = CAPTURES.glob(f"{beginning}*.json")
    return str(path)


def replay(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", *arguments])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Our server; its addresses."""
    path = tmp_path_factory.mktemp("server") / "sock"
    listen = [Address("127.0.0.1", 0), Address(socket_path=str(path))]
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running(ServerConfig(listen=listen))) as ours,
    ):
        yield [str(address) for address in ours.addresses]


@contextmanager
def broken_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does one thing with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def serve() -> None:
            try:
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(10)
                        answer(connection)
            except OSError:
                return  # closed: the test is over

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"tmq://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            assert not thread.is_alive()


def test_what_is_answered_as_recorded_matches(server: list[str]) -> None:
    result = replay(server[0], recording(CONNECT), recording(CREATE), "--patience", "0.3")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        "matched  real-000-connect-producer  (2 answers compared)",
        "matched  real-005-channel-create  (1 answers compared)",
    ]


def test_a_unix_socket_will_do(server: list[str]) -> None:
    result = replay(server[1], recording(CONNECT), "--patience", "0.3")
    assert result.exit_code == 0, result.output


def test_what_is_answered_otherwise_differs_and_how_is_told(server: list[str]) -> None:
    """A client id in use is refused by ours (F32); the recorded server let it in."""
    names = [recording("probe-014"), recording(CONNECT)]
    result = replay(server[0], *names, "--patience", "0.3")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0].startswith("DIFFERS  probe-014")
    assert lines[1].startswith("    connection ")
    assert lines[-1].startswith("matched  real-000")


def _refuse(connection: socket.socket) -> None:
    connection.recv(65_536)
    refusal = Frame.build(MessageType.SERVER, content_type=401, first_acquirer=True)
    connection.sendall(b"TMQP/2.0" + refusal.raw)


def _shout(connection: socket.socket) -> None:
    connection.recv(65_536)
    while True:
        connection.sendall(b"\xff" * 65_536)


def _drain(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


BROKEN: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "refuses": (_refuse, "content_type: expected 202, got 401"),
    "closes": (lambda _connection: None, "preamble b''"),
    "is silent": (_drain, "preamble b''"),
    "speaks HTTP": (
        lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "preamble b'HTTP/1.1'",
    ),
    "shouts": (_shout, "preamble b'\\xff\\xff"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_server_that_is_wrong_is_told_apart_from_one_that_cannot_be_reached(name: str) -> None:
    answer, sentence = BROKEN[name]
    with broken_server(answer) as address:
        result = replay(address, recording(CONNECT), "--patience", "0.3")
    assert result.exit_code == 1, result.output
    assert sentence in result.output


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_nobody_there_is_status_2(kind: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    address = f"tmq://127.0.0.1:{port}" if kind == "tcp" else f"unix:{tmp_path / 'none'}"
    result = replay(address, recording(CONNECT))
    assert result.exit_code == 2
    assert result.output.startswith(f"tmqp-conformance: {address}: ")
    assert len(result.output.splitlines()) == 1


def _item(**more: object) -> dict[str, object]:
    return {"dir": "c2s", "conn": 1, "hex": "00", "note": "", **more}


BAD_RECORDINGS: dict[str, tuple[bytes, str]] = {
    "text": (b"hello", "not JSON"),
    "binary": (b"\xff\xfe\x00", "not JSON"),
    "object": (b"{}", "a recording is a list"),
    "direction": (json.dumps([_item(dir="up")]).encode(), "dir must be c2s or s2c"),
    "hex": (json.dumps([_item(hex="zz")]).encode(), "hexadecimal"),
    "connection": (json.dumps([_item(conn="1")]).encode(), "conn must be a whole number"),
}


@pytest.mark.parametrize("name", BAD_RECORDINGS)
def test_a_bad_recording_is_status_3_before_anything_is_sent(name: str, tmp_path: Path) -> None:
    data, sentence = BAD_RECORDINGS[name]
    path = tmp_path / "recording.json"
    path.write_bytes(data)
    result = replay("tmq://127.0.0.1:1", recording(CONNECT), str(path))
    assert result.exit_code == 3
    assert sentence in result.output
    assert "127.0.0.1" not in result.output


def test_a_recording_that_breaks_the_frame_cannot_be_played(
    server: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "recording.json"
    broken = (b"TMQP/2.0" + b"\xff" * 40).hex()
    path.write_text(json.dumps([_item(hex=broken)]))
    result = replay(server[0], str(path), "--patience", "0.1")
    assert result.exit_code == 2
    assert len(result.output.splitlines()) == 1


def test_a_recording_that_is_not_there_is_status_3() -> None:
    result = replay("tmq://127.0.0.1:1", "/nonexistent.json")
    assert result.exit_code == 3
    assert "No such file" in result.output


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("tmq://192.0.2.1:2622", "is on another machine; --i-own-this-target"),
        ("http://x", "an address must begin with"),
    ],
)
def test_an_address_that_will_not_be_tested_is_status_3(address: str, sentence: str) -> None:
    result = replay(address, recording(CONNECT))
    assert result.exit_code == 3
    assert sentence in " ".join(result.output.split())


def test_another_machine_is_tested_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def refuse(place: object, timeout: float) -> socket.socket:
        asked.append(place)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    result = replay("tmq://192.0.2.1:2622", recording(CONNECT), "--allow-remote")
    assert result.exit_code == 2
    assert asked == [("192.0.2.1", 2622)]


def test_as_a_command_of_its_own(server: list[str]) -> None:
    command = [sys.executable, "-m", "tmqp_conformance"]
    path = f"{ROOT / 'fuzz'}"
    environment = {"PYTHONPATH": f"{Path(tmqp.__file__).parent.parent}:{path}", "PATH": ""}
    done = subprocess.run(
        [*command, "replay", server[0], recording(CONNECT), "--patience", "0.3"],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "matched  real-000-connect-producer  (2 answers compared)\n"
    helped = subprocess.run(
        [*command, "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment,
        check=True,
    )
    assert "Exit status: 0 it conforms, 1 it does not, 2 it could not be tested, 3" in helped.stdout
