"""The command ``tmqp-conformance``: holds a server against recorded exchanges."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import tmqp
from tmqp.address import Address, parse_address
from tmqp.testing.replay import Player
from tmqp.testing.vectors import Exchange, RecordingError, parse_exchange
from tmqp_conformance.link import connect

__all__ = ["main"]

_CONFORMS = 0
_DIFFERS = 1
_COULD_NOT_TEST = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(tmqp.__version__, prog_name="tmqp-conformance")
def main() -> None:
    """Find out whether a TMQP/2.0 server does what the protocol says.

    Exit status: 0 it does, 1 it does not, 2 it could not be tested (2 also for a wrong command).
    """


@main.command(
    epilog="""\b
Example: the connections of the first two recordings are used by the third.
  tmqp-conformance replay tmq://127.0.0.1:2622 \\
      real-000-connect-producer.json real-001-connect-consumer.json real-012-channel-join.json"""
)
@click.argument("address")
@click.argument(
    "recordings", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path)
)
@click.option(
    "--patience",
    default=1.0,
    show_default=True,
    type=click.FloatRange(min=0.01, max=60),
    help="Seconds without any byte after which an answer counts as missing.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Test a server that is not on this machine. Only test servers that are yours.",
)
def replay(address: str, recordings: tuple[Path, ...], patience: float, allow_remote: bool) -> None:
    """Say to the server at ADDRESS what the clients in RECORDINGS said, compare the answers.

    Recordings are JSON files of exchanges between the original client and server; they are played
    in the order given, on connections that later ones may go on using.  Message ids, client ids
    made by the server and times are not compared.
    """
    target = _target(address, allow_remote)
    exchanges = [_read(path) for path in recordings]
    player = Player(lambda _number: connect(target, patience))
    failed = False
    try:
        for exchange in exchanges:
            outcome = player.play(exchange)
            verdict = "matched" if outcome.matched else "DIFFERS"
            click.echo(f"{verdict}  {exchange.name}  ({outcome.compared} answers compared)")
            for difference in outcome.differences:
                click.echo(f"    {difference}")
            failed = failed or not outcome.matched
    except (OSError, ValueError) as error:
        click.echo(f"tmqp-conformance: {target}: {error}", err=True)
        sys.exit(_COULD_NOT_TEST)
    finally:
        player.close()
    sys.exit(_DIFFERS if failed else _CONFORMS)


def _target(text: str, allow_remote: bool) -> Address:
    try:
        target = parse_address(text)
    except tmqp.LocalProtocolError as error:
        raise click.BadParameter(str(error), param_hint="ADDRESS") from error
    if target.tls:
        raise click.BadParameter("TLS is not spoken yet", param_hint="ADDRESS")
    if not target.is_local and not allow_remote:
        raise click.BadParameter(
            f"{target} is another machine; --allow-remote tests it all the same",
            param_hint="ADDRESS",
        )
    return target


def _read(path: Path) -> Exchange:
    try:
        return parse_exchange(path.stem, path.read_bytes())
    except (OSError, RecordingError) as error:
        raise click.BadParameter(str(error), param_hint="RECORDINGS") from error


if __name__ == "__main__":
    main()
