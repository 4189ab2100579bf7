"""``tmqp server check``: one question about a server, answered for a monitoring system."""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

import anyio
import click

from tmqp import ResultCode, TmqpError
from tmqp_client import Client, OperationFailed
from tmqp_client.cli._admin import AdminDeniedError, AdminError
from tmqp_client.cli._asking import Where, asking
from tmqp_client.cli._certificates import CertificateError, look_at
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._ranges import RANGE, Range, read_range
from tmqp_client.cli._run import json_option
from tmqp_client.cli._verdicts import FORMATS, Measure, State, Verdict, render

__all__ = ["check"]

#: The shares of the memory that are worth a warning, and critical; percent.
_MEMORY_WARN: Final = read_range("85")
_MEMORY_CRIT: Final = read_range("95")
#: Days that are left of a certificate.
_DAYS_WARN: Final = read_range("14:")
_DAYS_CRIT: Final = read_range("3:")
_AT_LEAST_ONE: Final = read_range("1:")
_NONE: Final = read_range("0")

_Finding = tuple[str, tuple[Measure, ...], State]


class _Checks(click.Group):
    """The checks; a usage error is UNKNOWN, as for all monitoring plugins."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a check."""
        return _unknown_if_wrong(super().invoke, ctx)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the options of the group itself."""
        made: click.Context = _unknown_if_wrong(super().make_context, *arguments, **options)
        return made


def _unknown_if_wrong(work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return work(*arguments, **options)
    except click.UsageError as error:
        error.show()
        raise click.exceptions.Exit(State.UNKNOWN) from error


@click.group(
    "check",
    cls=_Checks,
    epilog="""\b
Examples:
  tmqp server check ready
  tmqp server check queue orders 1 --warn 1000 --crit 10000 --consumers 1:
  tmqp server check certificate -a tmqs://broker:2622 --warn 30:
  tmqp server check storage --format prometheus >/var/lib/node_exporter/tmqp_storage.prom

\b
Ranges of good values:
  10      0 to 10            10:20   10 to 20
  10:     10 or more         @10:20  outside 10 to 20
  ~:10    10 or less

\b
Exit codes:
  0  OK
  1  WARNING
  2  CRITICAL, or no answer in time
  3  UNKNOWN: usage error, or the client lacks the right
""",
)
def check() -> None:
    """Check one aspect of a server, for Nagios, Prometheus or a health check.

    A value outside the range of --crit is CRITICAL, one outside the range of --warn is WARNING.
    Both are optional.
    """


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every check."""
    options = (
        click.option("--warn", type=RANGE, metavar="RANGE", help="Values that cause no warning."),
        click.option("--crit", type=RANGE, metavar="RANGE", help="Values that are not critical."),
        click.option(
            "--format",
            "form",
            type=click.Choice(sorted(FORMATS)),
            default="nagios",
            show_default=True,
            help="The output format.",
        ),
        json_option("The same as --format json."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _check(
    name: str, *examples: str
) -> Callable[[Callable[..., Awaitable[_Finding]]], click.Command]:
    """Make a command from a function that returns a sentence, numbers and a state.

    :param examples: arguments to show in its help.
    """

    def make(work: Callable[..., Awaitable[_Finding]]) -> click.Command:
        @functools.wraps(work)
        def command(where: Where, form: str, as_json: bool, **given: Any) -> NoReturn:
            parts = [str(given[key]) for key in ("channel", "queue_id", "who") if key in given]
            finding = functools.partial(work, where, **given)
            sentence, measures, state = anyio.run(_found, finding, where)
            verdict = Verdict(
                name, state, sentence, measures, "/".join(parts), server=str(where.address)
            )
            click.echo(render(verdict, "json" if as_json else form))
            sys.exit(state)

        shown = [f"  tmqp server check {name} {each}".rstrip() for each in examples]
        epilog = "\b\nExamples:\n" + "\n".join(shown)
        return check.command(name, epilog=epilog)(_common(asking(command)))

    return make


async def _found(finding: Callable[[], Awaitable[_Finding]], where: Where) -> _Finding:
    """Run a check; an error also becomes a result."""
    try:
        with anyio.fail_after(where.timeout_s):
            return await finding()
    except TimeoutError:
        return f"no answer in {where.timeout_s:g} s", (), State.CRITICAL
    except AdminDeniedError as error:
        return f"{error}; give a --token with the right see-metrics", (), State.UNKNOWN
    except AdminError as error:
        return str(error), (), State.CRITICAL
    except OperationFailed as error:
        denied = error.code == ResultCode.UNAUTHORIZED
        return str(error), (), State.UNKNOWN if denied else State.CRITICAL
    except (TmqpError, OSError) as error:
        return str(error), (), State.CRITICAL


def _judged(sentence: str, *measures: Measure, at_least: State = State.OK) -> _Finding:
    return sentence, measures, max([at_least, *[each.state for each in measures]])


@_check("connection", "", "--warn 0.1 --crit 1")
async def _connection(where: Where, warn: Range | None, crit: Range | None) -> _Finding:
    """Connect, log in and ping; the value is the slowest of three round trips in seconds."""

    async def work(client: Client) -> float:
        return max([await client.ping() for _ in range(3)])

    took_s = await where.ask(work)
    return _judged(
        f"{where.address} answers in {took_s * 1_000:.1f} ms",
        Measure("round_trip", took_s, "s", warn, crit),
    )


@_check("ready", "", "--http http://broker:2680 --format text")
async def _ready(where: Where, warn: Range | None, crit: Range | None) -> _Finding:
    """Ask /readyz whether clients can be served; the value is how long the answer took."""
    before_s = anyio.current_time()
    good, word = await where.admin.ready()
    took_s = anyio.current_time() - before_s
    sentence = f"{where.http} says {word}"
    if not good:
        try:
            sentence += f": {', '.join((await where.admin.health()).get('problems', ()))}"
        except AdminError:
            sentence += "; the right see-server shows the reason"
    state = State.OK if good else State.CRITICAL
    return _judged(sentence, Measure("time", took_s, "s", warn, crit), at_least=state)


@_check("storage", "--warn 20000000000:")
async def _storage(where: Where, warn: Range | None, crit: Range | None) -> _Finding:
    """Whether durable messages are saved; the value is the free space of the disk in bytes.

    Without --warn, less than twice the space below which durable messages are refused is a
    warning.
    """
    metrics = await where.admin.metrics()
    saving = metrics.total("tmqp_storage_saving")
    if saving is None:
        return "the server keeps nothing: it was started without --data", (), State.UNKNOWN
    free = metrics.total("tmqp_storage_free_bytes") or 0.0
    floor = metrics.total("tmqp_storage_floor_bytes") or 0.0
    size = metrics.total("tmqp_storage_bytes") or 0.0
    measures = (
        Measure("free", free, "B", warn or read_range(f"{2 * floor:.0f}:"), crit),
        Measure("floor", floor, "B"),
        Measure("size", size, "B"),
    )
    if not saving:
        return "the storage does not save: see the server's log", measures, State.CRITICAL
    sentence = f"saving, {_bytes(free)} are free and {_bytes(floor)} are left free"
    critical = State.CRITICAL if free < floor else State.OK
    return _judged(sentence, *measures, at_least=critical)


def _bytes(count: float) -> str:
    """A number of bytes in a suitable unit."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1_024:
            return f"{size:.3g} {unit}" if size < 1_000 else f"{size:.0f} {unit}"
        size /= 1_024
    return f"{size:,.1f} TiB"


@_check("memory", "", "--warn 70 --crit 90")
async def _memory(where: Where, warn: Range | None, crit: Range | None) -> _Finding:
    """The share of its memory that the server uses, in percent.

    Without other ranges, more than 85 is a warning and more than 95 is critical.
    """
    server = await where.ask(Client.server_information)
    used, most = server.memory_bytes, server.max_memory_bytes
    share = 100.0 * used / most if most else 0.0
    return _judged(
        f"{share:.1f} % of the memory is used: {_bytes(used)} of {_bytes(most)}",
        Measure("used", round(share, 3), "%", warn or _MEMORY_WARN, crit or _MEMORY_CRIT),
        Measure("bytes", used, "B"),
    )


@_check("queue", "orders 1 --warn 1000 --crit 10000", "orders 1 --consumers 1:")
@click.argument("channel", type=CHANNEL)
@click.argument("queue_id", type=QUEUE_ID, metavar="ID")
@click.option(
    "--consumers",
    type=RANGE,
    metavar="RANGE",
    help="How many clients must have joined the channel; another number is critical.",
)
async def _queue(
    where: Where,
    channel: str,
    queue_id: int,
    warn: Range | None,
    crit: Range | None,
    consumers: Range | None,
) -> _Finding:
    """How many messages wait in a queue."""

    async def work(client: Client) -> tuple[Any, Any]:
        found = await client.queue_information(channel, queue_id)
        return found, await client.channel_information(channel)

    found, about = await where.ask(work)
    waiting = found.messages + found.priority_messages
    return _judged(
        f"{waiting:,} messages wait in {channel}/{queue_id}, {about.active_clients:,} consumers",
        Measure("messages", waiting, "", warn, crit),
        Measure("consumers", about.active_clients, "", None, consumers),
        Measure("dead", found.dead_messages or 0),
    )


@_check("client", "billing", "type:worker --warn 5: --crit 2:")
@click.argument("who", metavar="NAME")
async def _client(where: Where, who: str, warn: Range | None, crit: Range | None) -> _Finding:
    """How many clients have a name, or a type with --crit 3: for three or more.

    NAME is a name, or type:TYPE.  Without --crit, at least one must be connected.
    """
    kind = who.removeprefix("type:") if who.startswith("type:") else ""
    clients = await where.ask(lambda client: client.clients(kind))
    count = len(clients) if kind else sum(each.name == who for each in clients)
    return _judged(
        f"{count:,} clients with the {'type ' + kind if kind else 'name ' + who} are connected",
        Measure("clients", count, "", warn, crit or _AT_LEAST_ONE),
    )


@_check("certificate", "-a tmqs://broker:2622", "-a tmqs://broker:2622 --warn 30: --crit 7:")
async def _certificate(where: Where, warn: Range | None, crit: Range | None) -> _Finding:
    """Check for how many days the certificate is valid.

    Without other ranges, less than 14 is a warning and less than 3 is critical.

    It must be valid now, for the host of the address, and signed by an authority of this system, or
    of the file that SSL_CERT_FILE names.
    """
    if not where.address.tls:
        return f"{where.address} does not speak TLS: give -a tmqs://HOST:PORT", (), State.UNKNOWN
    try:
        found = await look_at(where.address)
    except CertificateError as error:
        return f"{where.address}: {error}", (), State.CRITICAL
    return _judged(
        f"{where.address}: valid for {found.days_left:.0f} days, issued by {found.issuer}",
        Measure("days", round(found.days_left, 2), "", warn or _DAYS_WARN, crit or _DAYS_CRIT),
    )


@_check("cluster", "", "--crit 1")
async def _cluster(where: Where, warn: Range | None, crit: Range | None) -> _Finding:
    """How many nodes of the cluster are not connected.

    Without another range, one is a warning.  If none is connected at all, that is critical.
    """
    nodes = await where.ask(Client.nodes)
    gone = [each for each in nodes if not each.connected]
    if not nodes:
        return "the server has no other nodes", (), State.UNKNOWN
    sentence = f"{len(nodes) - len(gone)} of {len(nodes)} nodes are connected"
    if gone:
        sentence += f"; not {', '.join(each.host or each.name or '-' for each in gone[:10])}"
    return _judged(
        sentence,
        Measure("disconnected", len(gone), "", warn or _NONE, crit),
        at_least=State.CRITICAL if len(gone) == len(nodes) else State.OK,
    )
