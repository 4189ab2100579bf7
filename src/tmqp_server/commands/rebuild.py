"""``tmqp-server rebuild``: replaces a store with a copy from another server of the group."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import attrs
import click

from tmqp_server.commands.common import failing_politely
from tmqp_server.commands.configuring import Given
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.settings.replication import ReplicationConfig
from tmqp_server.storage.log import SharedLog
from tmqp_server.storage.port import DamageError
from tmqp_server.wiring.rebuilding import Rebuilder, can_follow
from tmqp_server.wiring.replicating import open_log

__all__ = ["rebuild"]


@click.command(
    epilog="""\b
Examples:
  tmqp-server rebuild -c tmqp.toml               from the servers that its key copies names
  tmqp-server rebuild -c tmqp.toml --from http://m2:2680
  tmqp-server rebuild -c tmqp.toml --if-needed   before each start

Exit status: 0 the server can be started; 2 it cannot, and its directory is unchanged."""
)
@click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The server's configuration file; environment variables are read as well.",
)
@click.option(
    "-d",
    "--data",
    type=click.Path(file_okay=False),
    help="The server's data directory, if the configuration does not name it.",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="URL",
    help="The admin door of another server of the group; may be repeated.  [default: those that"
    " the key copies names]",
)
@click.option(
    "--if-needed", is_flag=True, help="Do nothing if the log still has what the server needs."
)
def rebuild(
    config_path: Path | None, data: str | None, sources: tuple[str, ...], if_needed: bool
) -> None:
    """Replace the store of a server with a copy from another server of its group.

    Use it for a new disk, and for one that is damaged or was offline for longer than the log is
    kept.  The server must not be running.  The group continues to serve clients, and keeps the log
    for this server.  The token needs the right manage-server, and browse for all channels.
    """
    given = Given(path=config_path, environment=os.environ, data=data)
    try:
        config, part = _read(given, sources)
        log = open_log(part)
    except ConfigError as error:
        raise click.UsageError(given.words(error)) from error
    assert config.data is not None, "it was checked"
    directory = Path(config.data)
    with failing_politely(), closing(log):
        # A store that belongs to no group is refused here, and stays.
        if _is_fine(directory, log) and if_needed:
            click.echo(f"{directory} needs no copy")
            return
        address = str(part.told(config.listen))
        number = Rebuilder(part, address, directory, log, _tell).rebuild()
    click.echo(f"{directory} has a copy up to entry {number} of the log")


def _read(given: Given, sources: tuple[str, ...]) -> tuple[ServerConfig, ReplicationConfig]:
    """Read the configuration, and return it with the server's part in its group.

    :raises ConfigError: when it has none, or no servers to fetch a copy from.
    """
    config = given.config()
    part = config.replication
    if part is None:
        raise ConfigError("there is no [replication]")
    if sources:
        part = attrs.evolve(part, copies=sources)
    if not part.copies:
        raise ConfigError("replication: copies does not say where a copy is; or use --from")
    return config, part


def _is_fine(directory: Path, log: SharedLog) -> bool:
    try:
        return can_follow(directory, log)
    except DamageError:
        return False


def _tell(text: str) -> None:
    click.echo(f"tmqp-server: {text}", err=True)
