"""The test that the examples of the documentation do what they say, over real sockets."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import trio

import tmqp
from tests.docs.peer import Peer, running
from tests.project import ROOT
from tmqp import (
    AcknowledgeReceived,
    Connection,
    ConnectionClosed,
    ConnectionInformation,
    Frame,
    HandshakeAccepted,
    HandshakeReceived,
    Limits,
    MessageType,
    PreambleReceived,
    QueueMessageReceived,
    ServerMessageReceived,
    TerminateReceived,
)

EXAMPLES: Final = ("codec_sockets", "codec_asyncio", "codec_trio")
#: The loop of each example, from waiting to closing: about ten lines.
MAX_LOOP_LINES: Final = 13


def path_of(name: str) -> Path:
    return ROOT / "examples" / f"{name}.py"


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start an example as a reader would."""
    package = str(Path(tmqp.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, str(path_of(name)), *arguments],
        env={**os.environ, "PYTHONPATH": package, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", path_of(name))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def talk(name: str, port: int, limits: Limits) -> None:
    """Hold an example's conversation in this process, with other limits."""
    function: Callable[..., Any] = load(name).talk
    if name == "codec_asyncio":
        asyncio.run(function("127.0.0.1", port, limits))
    elif name == "codec_trio":
        trio.run(function, "127.0.0.1", port, limits)
    else:
        function("127.0.0.1", port, limits)


def kinds(text: str) -> list[str]:
    """The events an example printed, by the names of their classes."""
    return re.findall(r"^<(\w+)", text, re.MULTILINE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_holds_its_conversation(name: str) -> None:
    with running(Peer()) as peer:
        done = run(name, "127.0.0.1", str(peer.port))
    assert done.stderr == ""
    assert done.returncode == 0
    assert kinds(done.stdout) == [
        "PreambleReceived",
        "HandshakeAccepted",
        "QueueMessageReceived",
        "ResponseReceived",
        "ConnectionClosed",
    ]
    assert "<HandshakeAccepted 'given-id'>" in done.stdout
    assert "QUEUE_MESSAGE FA ttl=15" in done.stdout
    assert "<ConnectionClosed local>" in done.stdout
    assert [type(event) for event in peer.events] == [
        PreambleReceived,
        HandshakeReceived,
        QueueMessageReceived,
        ServerMessageReceived,
        TerminateReceived,
        ConnectionClosed,
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_refused(name: str) -> None:
    with running(Peer(refuse_with=503)) as peer:
        done = run(name, "127.0.0.1", str(peer.port))
    assert (done.stderr, done.returncode) == ("", 0)
    assert kinds(done.stdout) == ["PreambleReceived", "HandshakeRefused", "ConnectionClosed"]
    assert "<HandshakeRefused 503>" in done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_sees_a_torn_stream(name: str) -> None:
    with running(Peer(cut=True)) as peer:
        done = run(name, "127.0.0.1", str(peer.port))
    assert (done.stderr, done.returncode) == ("", 0)
    assert kinds(done.stdout)[-2:] == ["ProtocolViolated", "ConnectionClosed"]
    assert "'torn'" in done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_gives_a_mute_server_up(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    with running(Peer(mute=True)) as peer:
        talk(name, peer.port, Limits(handshake_timeout_s=0.2))
    assert time.monotonic() - begun >= 0.2
    assert kinds(capsys.readouterr().out) == ["ProtocolViolated", "ConnectionClosed"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_without_a_server_or_arguments(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free_port = listener.getsockname()[1]
    for arguments in ((), ("127.0.0.1", "port"), ("127.0.0.1", str(free_port))):
        done = run(name, *arguments)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_short(name: str) -> None:
    lines = path_of(name).read_text(encoding="utf-8").splitlines()
    first = next(at for at, line in enumerate(lines) if "while connection.state" in line)
    last = next(at for at, line in enumerate(lines) if "connection.close()" in line)
    assert last - first + 1 <= MAX_LOOP_LINES


def driver() -> dict[str, Any]:
    """The driver of docs/io-contract.md, as the page prints it."""
    page = (ROOT / "docs" / "io-contract.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(compile(blocks[0], "io-contract.md", "exec"), names)  # noqa: S102 - our own page
    return names


def test_the_printed_driver_serves() -> None:
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=driver()["serve"], args=(theirs,), daemon=True)
    thread.start()
    client = Connection()
    client.initiate(ConnectionInformation())
    for number in range(3):
        client.send(
            Frame.build(
                MessageType.QUEUE_MESSAGE,
                "demo",
                7,
                message_id=f"m{number}",
                pending_acknowledge=True,
            )
        )
    seen: list[tmqp.Event] = []
    with ours:
        ours.settimeout(10)
        ours.sendall(client.data_to_send())
        while len([event for event in seen if isinstance(event, AcknowledgeReceived)]) < 3:
            seen += client.receive(ours.recv(65_536), 0.0)
        client.close()
        ours.sendall(client.data_to_send())
        assert ours.recv(1) == b""  # the driver closed its transport
    thread.join(10)
    assert not thread.is_alive()
    accepted = [event for event in seen if isinstance(event, HandshakeAccepted)]
    assert [len(event.client_id) for event in accepted] == [32]
    acknowledges = [event for event in seen if isinstance(event, AcknowledgeReceived)]
    assert [event.frame.message_id for event in acknowledges] == ["m0", "m1", "m2"]


def test_the_printed_driver_survives_a_peer_that_breaks_off() -> None:
    for sent in (b"", b"GET / HTTP/1.1\r\n\r\n", b"TMQP/2.0\x10\x10"):
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=driver()["serve"], args=(theirs,), daemon=True)
        thread.start()
        ours.sendall(sent)
        ours.close()
        thread.join(10)
        assert not thread.is_alive()
        assert theirs.fileno() == -1


def test_the_custom_handler_and_router_decide() -> None:
    done = run("custom_handler")
    assert (done.stderr, done.returncode) == ("", 0)
    assert sorted(done.stdout.splitlines()) == [
        "consumer: one lamp",
        "consumer: one lamp",
        "consumer: two chairs",
        "consumer: two chairs",
        "producer: accepted",
        "producer: not routed, no-consumers",
        "producer: refused, empty",
        "producer: routed",
    ]
