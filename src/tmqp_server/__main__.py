"""The command ``tmqp-server``: reads its options, runs the server, and reports a failure in one
line.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path

import anyio
import click

import tmqp
from tmqp.errors import LocalProtocolError
from tmqp_server.access.auth import load_access
from tmqp_server.access.custom import load_hook
from tmqp_server.access.tokens import hash_token, new_token
from tmqp_server.admin.world import AdminWorld
from tmqp_server.commands.configuring import Given, config_command
from tmqp_server.commands.late import LateCommands
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.io.event_loop import BACKENDS, how_to_run
from tmqp_server.io.listener import ListenError
from tmqp_server.io.tls import server_context
from tmqp_server.settings.log import FORMATS, LEVELS, LogSettings
from tmqp_server.storage.port import DamageError, StoreError
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.assembly import build_broker, declare, summary
from tmqp_server.wiring.doors import Doors
from tmqp_server.wiring.logs import set_up_log
from tmqp_server.wiring.serving import serve_forever
from tmqp_server.wiring.watched import make_registry

__all__ = ["hash_token_command", "main", "settle_collector"]

logger = logging.getLogger("tmqp_server")


@click.group(
    cls=LateCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  tmqp-server                                    listen on tmq://127.0.0.1:2622
  tmqp-server -l tmq://127.0.0.1:0 -l unix:/tmp/tmqp.sock
  tmqp-server --data ./tmqp-data                 durable queues are stored there
  tmqp-server --data ./a --replicate etcd://e1:2379,e2:2379,e3:2379/shop
  tmqp-server --config tmqp.toml                 keys: see docs/server.md
  tmqp-server config check tmqp.toml             print what would be served, and exit
  tmqp-server hash-token --new                   a token for the table [access]

Ctrl-C stops it, after closing connections cleanly.  SIGTERM drains it first: it accepts no more
messages and waits for acknowledgements.  SIGHUP makes it reload its configuration and certificates.

Without a command the broker runs.""",
)
@click.option(
    "-l",
    "--listen",
    multiple=True,
    metavar="ADDRESS",
    help="tmq://HOST:PORT, tmqs://HOST:PORT for TLS, or unix:PATH; may be repeated; port 0 takes a"
    " free one."
    "  [default: tmq://127.0.0.1:2622]",
)
@click.option(
    "--door",
    "doors",
    multiple=True,
    metavar="PROTOCOL[=ADDRESS]",
    help="Serve another protocol beside TMQP: http; ADDRESS is HOST:PORT or unix:PATH, the"
    " protocol's own port on 127.0.0.1 if it is not given; may be repeated.",
)
@click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A TOML file with further settings; command-line options take precedence.",
)
@click.option(
    "-d",
    "--data",
    "data",
    type=click.Path(file_okay=False),
    help="A directory for durable queues, created if it is missing.  Without it nothing is stored.",
)
@click.option(
    "--replicate",
    metavar="ETCD",
    help="etcd://HOST:PORT,HOST:PORT,HOST:PORT/NAME: be one of a group of servers whose durable"
    " queues survive the loss of any of them; needs --data.",
)
@click.option(
    "--tls-cert",
    "tls_certificate",
    type=click.Path(dir_okay=False),
    help="The server's certificate, in PEM, for addresses tmqs://.",
)
@click.option(
    "--tls-key",
    type=click.Path(dir_okay=False),
    help="Its private key, in PEM, if the certificate's file does not have it.",
)
@click.option(
    "--check-config",
    "checked_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Check a TOML file as --config would use it, print the resulting doors and channels, and "
    "stop.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Listen on addresses that other machines can reach, although clients are not "
    "authenticated.",
)
@click.option(
    "--max-payload",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="Largest payload accepted.  [default: 1048576]",
)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="asyncio",
    show_default=True,
    help="The event loop to run on; uvloop and trio must be installed.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    help="The log level.  [default: info]",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    help="Plain lines, or a JSON object per line.  [default: plain]",
)
@click.version_option(tmqp.__version__, prog_name="tmqp-server")
@click.pass_context
def main(
    context: click.Context,
    listen: tuple[str, ...],
    doors: tuple[str, ...],
    config_path: Path | None,
    data: str | None,
    replicate: str | None,
    tls_certificate: str | None,
    tls_key: str | None,
    checked_path: Path | None,
    allow_remote: bool,
    max_payload: int | None,
    backend: str,
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Run the TMQP/2.0 reference broker.

    It prints one line with its addresses on standard output when it is ready.  Exit status: 0 after
    a clean stop, 2 when the configuration is invalid, 1 when the server cannot listen on an address
    or cannot read its data.
    """
    if context.invoked_subcommand is not None:
        return
    if checked_path is not None and config_path is not None:
        raise click.UsageError("--check-config takes the place of --config")
    log: dict[str, str | None] = {"level": log_level, "format": log_format}
    set_up_log(LogSettings(**{key: value for key, value in log.items() if value is not None}))
    given = Given(
        path=config_path or checked_path,
        environment=os.environ,
        listen=listen,
        doors=doors,
        data=data,
        replicate=replicate,
        tls={"certificate": tls_certificate, "key": tls_key},
        allow_remote=allow_remote,
        max_payload=max_payload,
        log=log,
    )
    try:
        config = given.config()
        if checked_path is not None:
            _print_check(config)
            return
        set_up_log(config.log)
        anyio.run(serve_forever, config, _announce, given.config, **how_to_run(backend))
    except (ConfigError, LocalProtocolError) as error:
        raise click.UsageError(given.words(error)) from error
    except (ListenError, StoreError) as error:
        click.echo(f"tmqp-server: {error}", err=True)
        if isinstance(error, DamageError):
            click.echo(
                "tmqp-server: 'tmqp-server check' names everything that is damaged; restore a"
                " backup, or add --repair to keep what can be read",
                err=True,
            )
        sys.exit(1)


@main.command("hash-token")
@click.option("--new", is_flag=True, help="Generate a random token, and print it as well.")
@click.option(
    "--slow",
    is_flag=True,
    help="For a token that a person chose: each guess costs time (scrypt).",
)
def hash_token_command(new: bool, slow: bool) -> None:
    """Print the hash of a token for the table [access].

    The command prompts for the token, or reads it from standard input, because others could see it
    on the command line.
    """
    if new:
        token = new_token()
    elif sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True, err=True)
    else:
        token = sys.stdin.readline().rstrip("\r\n")
    try:
        line = hash_token(token, slow=slow)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if new:
        click.echo(f"token: {token}")
        click.echo(f"hash:  {line}")
    else:
        click.echo(line)


def _given(path: Path | None) -> Given:
    """The command's settings without options: only a file and the environment."""
    return Given(path=path, environment=os.environ)


def _print_check(config: ServerConfig) -> None:
    """Build everything except the listeners, and print the result.

    :raises ConfigError: as a start would.
    """
    Doors(config, make_registry(AdminWorld()), lambda: "", 0.0)
    broker = build_broker(config)
    declare(broker, config, 0.0)
    load_access(config.access)
    if config.tls.certificate:
        server_context(config.tls)
    if config.custom_messages:
        load_hook(config.custom_messages)
    for line in summary(config):
        click.echo(line)


def settle_collector() -> None:
    """Set Python's garbage collector for a process that only runs a server.

    By default, it looks for cycles among all objects whenever 70,000 more exist.  Each waiting
    message is several objects, so with a million of them the collector suspends the server for 230
    ms, again and again, and finds nothing (F8).  With this function, objects that exist after the
    start are never looked at again.  The rest is examined in larger and rarer portions: for at most
    15 ms, and a quarter of the time in all.  Real garbage, such as the remains of connections, is
    freed after 2,500,000 further objects.  This changes the whole process, so do not use it for a
    server within another program.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 5, 50)


def _announce(server: Server) -> None:
    settle_collector()
    build = "compiled" if tmqp.compiled else "interpreted"
    try:
        click.echo(f"tmqp-server {tmqp.__version__} ({build}) ready on {server.served}")
    except OSError as error:
        logger.warning("cannot print that the server is ready: %s", error.strerror)
        # What is left in the buffer would fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


main.add_command(config_command(_given, _print_check))

if __name__ == "__main__":
    main()
