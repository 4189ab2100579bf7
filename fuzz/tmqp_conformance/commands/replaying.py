"""``replay``: send the messages of a recording, a wire log or a case again, and compare the
answers."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tmqp.address import Address
from tmqp.testing.conformance import FAILURES, Case, Patience, UnreachableError, Verdict, play
from tmqp.testing.conformance.player import speaks_tmqp
from tmqp.testing.replay import Player
from tmqp.testing.vectors import Exchange, RecordingError, parse_exchange
from tmqp_conformance.commands.common import (
    CONFORMS,
    DIFFERS,
    fail,
    local_option,
    read_target,
    run_name,
    tls_context,
)
from tmqp_conformance.commands.fuzzing import play_found, stage_of
from tmqp_conformance.commands.packs import PackStage, at_option, read_places
from tmqp_conformance.fuzzing.findings import Found, read_found
from tmqp_conformance.link import connect
from tmqp_conformance.records import reader_of, wire_record
from tmqp_conformance.register import retirement
from tmqp_conformance.sockets import ServerStage
from tmqp_conformance.suite import find, pack_of

__all__ = ["read_recording", "replay"]

_SHOWN_BYTES = 256


@click.command(
    epilog="""\b
Example: the connections of the first two recordings are used by the third.
  tmqp-conformance replay tmq://127.0.0.1:2622 \\
      real-000-connect-producer.json real-001-connect-consumer.json real-012-channel-join.json"""
)
@click.argument("address")
@click.argument("recordings", nargs=-1, required=True)
@click.option(
    "--patience",
    default=1.0,
    show_default=True,
    type=click.FloatRange(min=0.01, max=60),
    help="Seconds without any byte after which an answer counts as missing.",
)
@click.option(
    "--ca", type=click.Path(dir_okay=False, path_type=Path), help="Certificates to trust."
)
@at_option
@local_option
def replay(
    address: str,
    recordings: tuple[str, ...],
    patience: float,
    ca: Path | None,
    places: tuple[str, ...],
    allow_remote: bool,
) -> None:
    """Replay the clients in RECORDINGS against the server at ADDRESS, and compare the answers.

    Recordings are JSON files of exchanges between client and server, such as the wire logs of a
    run; they are played in the given order, and later ones can continue on earlier connections.
    Message ids, client ids made by the server and times are not compared.  The id of a case plays
    the case and shows the traffic; the file of a fuzzer's finding replays it.
    """
    target = read_target(address, allow_remote=allow_remote)
    tls = tls_context(target, ca)
    items = [_read(text) for text in recordings]
    player = Player(lambda _number: connect(target, patience, tls))
    failed = False
    try:
        for item in items:
            if isinstance(item, Found):
                stage = stage_of(item, target, places, tls, allow_remote=allow_remote)
                failed |= _find_again(item, stage, patience)
            elif isinstance(item, Case):
                pack = pack_of(item.id)
                where = read_places(pack, target, places, allow_remote=allow_remote)
                failed |= _play(item, target, PackStage(where, tls), patience)
            else:
                failed |= _replay(player, item)
    except (OSError, ValueError) as error:
        fail(f"{target}: {error}")
    finally:
        player.close()
    sys.exit(DIFFERS if failed else CONFORMS)


def _replay(player: Player, exchange: Exchange) -> bool:
    outcome = player.play(exchange)
    verdict = "matched" if outcome.matched else "DIFFERS"
    click.echo(f"{verdict}  {exchange.name}  ({outcome.compared} answers compared)")
    for difference in outcome.differences:
        click.echo(f"    {difference}")
    return not outcome.matched


def _play(case: Case, target: Address, stage: PackStage, patience: float) -> bool:
    pack = pack_of(case.id)
    missing = [each for each in case.needs if pack is not None and not stage.has(each)]
    if missing:
        raise click.BadParameter(f"{case.id} needs --at {missing[0]}=...", param_hint="RECORDINGS")
    speaks = speaks_tmqp if pack is None else pack.speaks
    result = play(case, stage, run_name(), Patience(answer_s=patience), speaks=speaks)
    click.echo(f"{result.verdict}  {case.id}  {result.message}")
    for entry in wire_record(result.log, _SHOWN_BYTES, reader_of(result, pack)):
        what = entry["note"] if "hex" not in entry else f"{entry['size']} bytes {entry['hex']}"
        click.echo(f"    {entry['t']:8.4f} {entry['line']:<4} {entry['kind']:<9} {what}")
        for message in entry.get("messages", ()):
            click.echo(f"             {message}")
    if result.step:
        click.echo(f"    step {result.step} expects {result.expected}")
    if result.verdict is Verdict.ERROR:
        fail(f"{target}: {result.message}")
    return result.verdict in FAILURES


def _find_again(found: Found, stage: ServerStage, patience: float) -> bool:
    try:
        wrong = play_found(found, stage, Patience(answer_s=patience, quiet_s=0.05))
    except UnreachableError as error:
        fail(str(error))
    click.echo(f"WRONG  {wrong}" if wrong else "nothing is wrong")
    return bool(wrong)


def _read(text: str) -> Exchange | Case | Found:
    case = find(text)
    why = retirement(text)
    if case is None and why:
        raise click.BadParameter(why, param_hint="RECORDINGS")
    if case is None:
        try:
            return read_found(Path(text))
        except ValueError:
            return read_recording(Path(text))
    if case.role != "server":
        raise click.BadParameter(f"{text} is a case for clients", param_hint="RECORDINGS")
    return case


def read_recording(path: Path) -> Exchange:
    """Read a recording or a wire log.

    :raises click.BadParameter: if the file is neither.
    """
    try:
        return parse_exchange(path.stem, path.read_bytes())
    except (OSError, RecordingError) as error:
        raise click.BadParameter(str(error), param_hint="RECORDINGS") from error
