"""What a supervisor such as systemd hears from the server."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.tmqp_server.processes import configured_server
from tmqp_server.io.notifying import Notifier

pytestmark = [
    pytest.mark.cold,
    pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets"),
]

_PATIENCE_S: Final = 20.0


class Supervisor:
    """Reads what services tell."""

    def __init__(self, address: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.settimeout(_PATIENCE_S)
        self.sock.bind(address)

    def hear(self, *, signs_of_life: bool = False) -> dict[str, str]:
        """The next message; by default the next that is no mere sign of life."""
        while True:
            lines = self.sock.recv(4_096).decode().split("\n")
            found = dict(line.split("=", 1) for line in lines)
            if signs_of_life or found != {"WATCHDOG": "1"}:
                return found


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(str(tmp_path / "notify"))
    yield made
    made.sock.close()


def test_a_server_says_that_it_is_ready_alive_reloading_and_stopping(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    path = tmp_path / "tmqp.toml"
    path.write_text('listen = ["tmq://127.0.0.1:0"]\n', encoding="utf-8")
    place = str(tmp_path / "notify")
    with configured_server(path, NOTIFY_SOCKET=place, WATCHDOG_USEC="100000") as process:
        ready = supervisor.hear()
        assert ready["READY"] == "1"
        assert ready["STATUS"].startswith("serving on tmq://127.0.0.1:")
        assert [supervisor.hear(signs_of_life=True) for _ in range(3)] == [{"WATCHDOG": "1"}] * 3

        # A configuration that cannot be used, too: otherwise systemd would wait until it gives up.
        path.write_text("listen = 5\n", encoding="utf-8")
        before_us = time.monotonic_ns() // 1_000
        process.send_signal(signal.SIGHUP)
        reloading = supervisor.hear()
        assert reloading.keys() == {"RELOADING", "MONOTONIC_USEC"}
        assert before_us <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1_000
        assert supervisor.hear() == ready

        process.terminate()
        assert supervisor.hear() == {"STOPPING": "1", "STATUS": "stopping"}
        _, said = process.communicate(timeout=_PATIENCE_S)
        assert process.returncode == 0
    assert "the old one stays" in said
    assert "supervisor" not in said


def test_names_without_a_file() -> None:
    name = f"tmqp-test-{os.getpid()}"
    supervisor = Supervisor(f"\0{name}")
    Notifier({"NOTIFY_SOCKET": f"@{name}"}, "one\nREADY=0").ready()
    assert supervisor.hear() == {"READY": "1", "STATUS": "one READY=0"}
    supervisor.sock.close()


def test_the_watchdog_of_another_process_is_not_fed(tmp_path: Path) -> None:
    place = {"NOTIFY_SOCKET": str(tmp_path / "x"), "WATCHDOG_USEC": "3000000"}
    assert Notifier(place, "").watchdog_s == 3.0
    assert Notifier({**place, "WATCHDOG_PID": str(os.getpid())}, "").watchdog_s == 3.0
    assert Notifier({**place, "WATCHDOG_PID": "1"}, "").watchdog_s == 0.0
    assert Notifier({**place, "WATCHDOG_USEC": "soon"}, "").watchdog_s == 0.0
    assert Notifier({**place, "NOTIFY_SOCKET": "vsock:2:99"}, "").watchdog_s == 0.0


def test_a_supervisor_that_is_gone_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}, "").stopping()
    assert "cannot notify the supervisor of STOPPING=1" in caplog.text
    Notifier({}, "").stopping()
    assert caplog.text.count("the supervisor") == 1
