"""Tries an installed tmqp in seconds: a server, a durable message, a restart, a check of it.

It is for wheels, right after their build, on every system that they support, and needs only the
extras server, client and http.  ``--compiled`` demands a compiled build.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import tmqp
from tmqp.models import QueueOptions
from tmqp_client.sync import Client, connect

__all__ = ["main"]

_STOP_S: Final = 30


def _server(folder: Path) -> tuple[subprocess.Popen[str], str, str]:
    """Start a server with a store; return its process, its address and that of its admin door."""
    command = ("-l", "tmq://127.0.0.1:0", "--door", "admin=127.0.0.1:0", "--data", str(folder))
    process = subprocess.Popen(
        [sys.executable, "-m", "tmqp_server", *command], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if " ready on " not in line:
        raise SystemExit(f"the server did not start: {line!r}")
    address, admin = line.split(" ready on ")[1].split()
    return process, address, admin.replace("admin://", "http://")


def _stop(process: subprocess.Popen[str]) -> None:
    """Stop a server, cleanly if the system has a signal for that."""
    process.terminate()
    status = process.wait(_STOP_S)
    if sys.platform != "win32" and status != 0:
        raise SystemExit(f"the server ended with {status}")
    if process.stdout is not None:
        process.stdout.close()


def _first(client: Client) -> str:
    """Return the first message of the queue."""
    with client.consume("smoke", 1) as messages:
        return messages.get().text


def main() -> None:
    """Run the test; exit with a sentence if anything is wrong."""
    if "--compiled" in sys.argv[1:] and not tmqp.compiled:
        raise SystemExit(f"{tmqp.__file__} is not compiled")
    with tempfile.TemporaryDirectory() as name:
        process, address, admin = _server(Path(name))
        with connect(address) as client:
            client.create_queue("smoke", 1, QueueOptions(durable=True))
            client.push("smoke", 1, "one pizza")
        command = ("server", "check", "ready", "-a", address, "--http", admin)
        checked = subprocess.run([sys.executable, "-m", "tmqp_client.cli", *command], check=False)
        _stop(process)
        if checked.returncode != 0:
            raise SystemExit(f"tmqp server check ready: {checked.returncode}")
        process, address, _ = _server(Path(name))
        with connect(address) as client:
            found = _first(client)
        _stop(process)
    if found != "one pizza":
        raise SystemExit(f"after the restart the message was {found!r}")
    build = "compiled" if tmqp.compiled else "interpreted"
    print(f"tmqp {tmqp.__version__} ({build}) works on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
