"""A server with an admin door on a Unix socket, and the command run against it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from click.testing import CliRunner, Result

from tests.tmqp_client.server import running_server
from tmqp_client.cli import cli

__all__ = ["Place", "admin_place"]

_CONFIG: Final = """\
[admin]
listen = "unix:{folder}/admin"
"""


class Place:
    """A server, and how the commands reach it."""

    def __init__(self, tcp: str, folder: Path) -> None:
        self.tcp = tcp
        self._environment = {
            "TMQP_ADDRESS": tcp,
            "TMQP_HTTP": f"unix:{folder}/admin",
            "TMQP_CONFIG": str(folder / "contexts.json"),
        }

    def run(self, *words: str) -> Result:
        """Run a command."""
        return CliRunner().invoke(cli, words, env=self._environment)


@contextmanager
def admin_place(folder: Path) -> Iterator[Place]:
    """One that runs, and ends."""
    config = folder / "server.toml"
    config.write_text(_CONFIG.format(folder=folder))
    with running_server("--config", str(config)) as (tcp, _):
        yield Place(tcp, folder)
