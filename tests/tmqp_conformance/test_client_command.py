"""The command tmqp-conformance client: programs that it starts, and drivers that ask for cases."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sys
import threading
import time

import pytest
from click.testing import CliRunner, Result

from tests.project import ROOT
from tmqp import (
    Connection,
    ConnectionInformation,
    Frame,
    HandshakeAccepted,
    MessageType,
    ResponseReceived,
    Role,
    State,
)
from tmqp.address import Address
from tmqp.testing.conformance import UnreachableError
from tmqp.testing.conformance.clients import CLIENT_CASES
from tmqp_conformance.__main__ import main
from tmqp_conformance.clients import COUNT, FINISH, NEXT, ClientStage, Listener

NODE = f"node {ROOT / 'examples/conformance/client.mjs'} {{url}} {{task}}"
PYTHON = f"{sys.executable} {ROOT / 'examples/conformance/client.py'} {{url}} {{task}}"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["client", *arguments])


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_example_for_node_passes() -> None:
    tasks = ("echo", "consume", "push", "pull")
    first = [next(case.id for case in CLIENT_CASES if case.task == task) for task in tasks]
    result = run("--exec", NODE, *[f"--only={name}" for name in first])
    assert result.exit_code == 0, result.output
    assert "TMQP/2.0 client: strict" in result.output


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_example_for_node_is_strict() -> None:
    result = run("--exec", NODE)
    assert result.exit_code == 0, result.output
    assert "TMQP/2.0 client: strict" in result.output


@pytest.mark.long
def test_our_client_passes_what_tasks_need() -> None:
    groups = [f"--only=client.{group}" for group in ("echo", "consume", "push", "pull")]
    result = run("--exec", PYTHON, "--ready", "0.5", *groups)
    assert result.exit_code == 0, result.output


def test_a_client_that_does_not_come_fails() -> None:
    command = f"{sys.executable} -c pass"
    result = run("--exec", command, "--connect-timeout", "0.2", "--only", CLIENT_CASES[0].id)
    assert result.exit_code == 1
    assert "no client connected within 0.2 s" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--listen", "192.0.2.1:0"], "--i-own-this-target"),
        (["--without", "luck"], "is not a capability"),
        (["--only", "none"], "no case fits"),
    ],
)
def test_wrong_use_is_status_3(arguments: list[str], sentence: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 3, result.output
    assert sentence in " ".join(result.output.split())


class Driver:
    """A client under test that asks for its cases, and stays in each until the tool closes."""

    def __init__(self, port: int, most: int = 1_000) -> None:
        self.port = port
        self.most = most
        self.cases: list[str] = []
        self.counts: dict[str, int] = {}

    def run(self) -> None:
        """Do every case."""
        self.counts = json.loads(self._ask(COUNT)[1])
        while True:
            code, payload = self._ask(NEXT)
            if code != 0:
                return
            if len(self.cases) == self.most:
                self._ask(FINISH)
                return
            self.cases.append(json.loads(payload)["case"])
            self._stay()

    def _open(self, path: str) -> tuple[socket.socket, Connection]:
        sock = socket.create_connection(("127.0.0.1", self.port), 5)
        connection = Connection(Role.CLIENT)
        connection.initiate(ConnectionInformation("driver", path=path))
        sock.sendall(connection.data_to_send())
        return sock, connection

    def _stay(self) -> None:
        sock, connection = self._open("/")
        with sock, contextlib.suppress(ConnectionError):  # cases reset connections, too
            while connection.state is not State.CLOSED and (data := sock.recv(65_536)):
                connection.receive(data, 0.0)
                sock.sendall(connection.data_to_send())

    def _ask(self, what: int) -> tuple[int, bytes]:
        sock, connection = self._open("/control")
        with sock:
            while data := sock.recv(65_536):
                for event in connection.receive(data, 0.0):
                    if isinstance(event, HandshakeAccepted):
                        request = Frame.build(
                            MessageType.DIRECT_MESSAGE,
                            "conformance",
                            what,
                            message_id="ask",
                            pending_response=True,
                        )
                        connection.send(request)
                        sock.sendall(connection.data_to_send())
                    elif isinstance(event, ResponseReceived):
                        return event.frame.content_type, event.frame.payload
        return 404, b""


@pytest.mark.parametrize("most", [1_000, 2])
def test_a_driver_asks_for_cases_and_may_end_the_run(most: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    driver = Driver(port, most)

    def drive() -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                driver.run()
            except ConnectionRefusedError:
                time.sleep(0.02)
            else:
                return

    thread = threading.Thread(target=drive)
    thread.start()
    only = ("--only", "client.hello", "--level", "must", "--skip", "*.takes-the-given-id")
    result = run("--listen", f"127.0.0.1:{port}", "--connect-timeout", "5", *only)
    thread.join(20)
    assert not thread.is_alive()
    if most == 2:
        assert (result.exit_code, len(driver.cases)) == (1, 2)
        assert "the driver has ended the run" in result.output
    else:
        assert result.exit_code == 0, result.output
        assert driver.counts["cases"] == len(driver.cases) > 5


def test_a_command_that_cannot_be_started_is_told() -> None:
    listener = Listener(Address("127.0.0.1", 0))
    try:
        stage = ClientStage(listener, "/nonexistent {url}", 1.0)
        with pytest.raises(UnreachableError, match="/nonexistent"):
            stage.open("a", CLIENT_CASES[0])
    finally:
        listener.close()


def test_a_client_that_was_ended_was_taken_for_the_next() -> None:
    """It had connected once more, and its connection was the first of the next case."""
    listener = Listener(Address("127.0.0.1", 0))
    program = "import socket, sys; [socket.create_connection(('127.0.0.1', int(sys.argv[1])))]"
    stage = ClientStage(listener, f'{sys.executable} -c "{program}" {listener.address.port}', 5.0)
    try:
        stage.open("a", CLIENT_CASES[0]).close("end")
        with socket.create_connection(("127.0.0.1", listener.address.port)):
            stage.finish()
        assert listener.accept(0.0) is None
    finally:
        listener.close()
