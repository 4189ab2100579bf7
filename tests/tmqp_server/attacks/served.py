"""A server in a process of its own that says, when asked, what it takes.

Its arguments are a socket's path, a settings file and more addresses.  It prints a line when it
listens, with those addresses; to each line that it reads it answers with its resident memory and
with what its books say, in bytes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread

from tmqp_server import Server, ServerConfig, parse_config, running
from tmqp_server.__main__ import settle_collector

__all__ = ["Served"]


class Served:
    """Such a process.

    :param more: addresses to listen on beside the socket; ``addresses`` has them with their ports.
    """

    def __init__(self, folder: Path, settings: str, more: tuple[str, ...] = ()) -> None:
        self.path = str(folder / "socket")
        self.address = f"unix:{self.path}"
        (folder / "server.toml").write_text(settings)
        command = [sys.executable, "-m", __name__, self.path, str(folder / "server.toml")]
        self.process = subprocess.Popen(
            [*command, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        ready, *self.addresses = self._line().split()
        assert ready == "ready"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def figures(self) -> tuple[int, int]:
        """Resident memory, and what the books say."""
        assert self.process.stdin is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        resident, books = self._line().split()
        return int(resident), int(books)

    def kill(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


def _said(server: Server) -> str:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    core = server.broker._core
    return f"{pages * os.sysconf('SC_PAGE_SIZE')} {core.total_bytes}"


async def _main(path: str, settings: str, more: tuple[str, ...]) -> None:
    given = parse_config(await anyio.Path(settings).read_text())
    config = ServerConfig(listen=(f"unix:{path}", *more), **given)
    async with running(config) as server:
        settle_collector()
        print("ready", *server.addresses[1:], flush=True)
        while await anyio.to_thread.run_sync(sys.stdin.readline):
            print(_said(server), flush=True)


if __name__ == "__main__":
    path, settings, *others = sys.argv[1:]
    anyio.run(_main, path, settings, tuple(others))
