"""Programs whose broker is stopped, killed and started again: at our server and at ActiveMQ, with
the same verdicts.  Each option of ``failover:`` has a check of its own."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.interop.openwire.clients import VERSIONS, Command, failover, reference
from tests.interop.openwire.talking import MARKS, failures, verdicts
from tests.tmqp_server.killing import Process

pytestmark = MARKS

_ASKS: Final = b"BROKER "
_CONFIG: Final = """\
[[doors]]
protocol = "openwire"
listen = ["127.0.0.1:{port}"]
"""


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: a list takes minutes."""
    return "asyncio"


class Broker:
    """A broker that is stopped, killed and started again, always at one port, with one folder."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def start(self) -> None:
        """Have it running."""
        raise NotImplementedError

    def kill(self) -> None:
        """End it without warning."""
        raise NotImplementedError

    def stop(self) -> None:
        """End it as an operator does."""
        raise NotImplementedError


class OurServer(Broker):
    """tmqp-server with a data directory."""

    process: Process | None = None

    def start(self) -> None:
        config = self.folder / "server.toml"
        config.write_text(_CONFIG.format(port=self.port), encoding="utf-8")
        self.process = Process(self.folder, "--config", str(config))

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()

    def stop(self) -> None:
        assert self.process is not None
        self.process.process.send_signal(signal.SIGTERM)
        assert self.process.process.wait(20) == 0
        self.process.kill()


class ActiveMq(Broker):
    """ActiveMQ with its journal."""

    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words, place = reference()
        self.process = subprocess.Popen(
            [*words, str(self.port), str(self.folder / "kaha")],
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith(b"tcp://")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self._end()

    def stop(self) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._end()

    def _end(self) -> None:
        assert self.process is not None
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def played(command: Command, broker: Broker, *more: str) -> dict[str, str]:
    """What a program finds that asks for its broker to be ended and started."""
    words, folder = command
    url = f"tcp://127.0.0.1:{broker.port}"
    broker.start()
    said: list[bytes] = []
    with subprocess.Popen(
        [*words, url, *more],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(_ASKS):
                getattr(broker, line.removeprefix(_ASKS).strip().decode())()
                process.stdin.write(b"done\n")
                process.stdin.flush()
            else:
                said.append(line)
    broker.kill()
    return verdicts(b"".join(said))


@pytest.mark.parametrize("version", VERSIONS[:1] + VERSIONS[-1:])
async def test_failover_at_our_server(version: str, tmp_path: Path, free_tcp_port: int) -> None:
    command = failover(version)
    found = await anyio.to_thread.run_sync(played, command, OurServer(tmp_path, free_tcp_port))
    assert len(found) >= 40
    assert not failures(found)


async def test_failover_at_activemq(tmp_path: Path, free_tcp_port: int) -> None:
    command = failover(VERSIONS[0])
    broker = ActiveMq(tmp_path, free_tcp_port)
    assert not failures(await anyio.to_thread.run_sync(played, command, broker))
