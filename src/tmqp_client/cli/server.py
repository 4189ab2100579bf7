"""``tmqp server``: a server's information about itself, for people and for monitoring systems."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import click

from tmqp import TmqpError
from tmqp_client import Client, OperationError
from tmqp_client.cli._admin import AdminError, Samples
from tmqp_client.cli._asking import Where, asking
from tmqp_client.cli._run import EXIT_CONNECTION, CommandError, json_option, printable, run_alone
from tmqp_client.cli.checks import check

__all__ = ["server"]

_Section = dict[str, Any]

#: The metrics that are shown: the section, the name there, the metric, and the labels to select.
#: Each is the sum of the metric's samples.
_SUMS: Final[tuple[tuple[str, str, str, Mapping[str, str]], ...]] = (
    ("server", "ready", "ready", {}),
    ("server", "draining", "draining", {}),
    ("process", "cpu_seconds", "process_cpu_seconds_total", {}),
    ("process", "resident_bytes", "process_resident_memory_bytes", {}),
    ("process", "open_files", "process_open_fds", {}),
    ("process", "max_open_files", "process_max_fds", {}),
    ("connections", "open", "connections", {}),
    ("connections", "blocked", "connections_blocked", {}),
    ("connections", "opened", "connections_opened_total", {}),
    ("connections", "refused", "connections_refused_total", {}),
    ("connections", "slow_readers_cut", "connections_closed_total", {"reason": "slow_reader"}),
    ("connections", "received_bytes", "received_bytes_total", {}),
    ("connections", "sent_bytes", "sent_bytes_total", {}),
    ("connections", "waiting_bytes", "outbound_waiting_bytes", {}),
    ("messages", "waiting", "queues_messages", {"state": "waiting"}),
    ("messages", "spilled", "queues_messages", {"state": "spilled"}),
    ("messages", "deferred", "queues_messages", {"state": "deferred"}),
    ("messages", "in_flight", "queues_messages", {"state": "in_flight"}),
    ("messages", "oldest_age_seconds", "queues_oldest_age_seconds", {}),
    ("messages", "received", "queues_received_total", {}),
    ("messages", "delivered", "queues_delivered_total", {}),
    ("messages", "done", "queues_done_total", {}),
    ("messages", "redelivered", "queues_redelivered_total", {}),
    ("messages", "expired", "queues_expired_total", {}),
    ("messages", "dead", "queues_dead_total", {}),
    ("messages", "dropped", "queues_dropped_total", {}),
    ("messages", "refused", "queues_refused_total", {}),
    ("queues", "channels", "channels", {}),
    ("queues", "queues", "queues", {}),
    ("queues", "without_consumers", "queues_without_consumers", {}),
    ("queues", "routers", "routers", {}),
    ("storage", "saving", "storage_saving", {}),
    ("storage", "failures", "storage_failures_total", {}),
    ("storage", "bytes", "storage_bytes", {}),
    ("storage", "free_bytes", "storage_free_bytes", {}),
    ("storage", "floor_bytes", "storage_floor_bytes", {}),
    ("storage", "unsynced_messages", "storage_unsynced_messages", {}),
)
#: Histograms, whose quantiles are shown.
_TIMES: Final = (
    ("latency", "push_to_delivery", "push_to_delivery_seconds"),
    ("latency", "push_to_confirm", "push_to_confirm_seconds"),
    ("latency", "storage_write", "storage_write_seconds"),
    ("latency", "event_loop_lag", "event_loop_lag_seconds"),
)


@click.group("server")
def server() -> None:
    """Show a server's information about itself, or check one aspect for a monitoring system."""


server.add_command(check)


@server.command(
    "info",
    epilog="""\b
Examples:
  tmqp server info
  tmqp server info memory storage
  tmqp server info --json | jq .messages.waiting
""",
)
@click.argument("sections", nargs=-1, metavar="[SECTION]...")
@json_option("Print one JSON object with an object for each section.")
@asking
def _info(sections: tuple[str, ...], as_json: bool, where: Where) -> None:
    """Print everything that a server reports about itself, or only some sections.

    Each section begins with a # and its name; each line of it is name:value.  The sections server,
    memory, clients and nodes come over TMQP; all others, and more of the first, from the metrics of
    the admin door, if it is open.  Sections that the client may not see are omitted, with a message
    on standard error.
    """

    async def work() -> None:
        found = await _told(where)
        chosen = {name: found[name] for name in sections or found if name in found}
        if missing := [name for name in sections if name not in found]:
            known = ", ".join(found)
            raise click.UsageError(f"there is no section {missing[0]!r}; the sections are {known}")
        if as_json:
            click.echo(json.dumps(chosen))
        else:
            click.echo("\n\n".join(_lines(name, values) for name, values in chosen.items()))

    run_alone(work)


def _lines(name: str, values: _Section) -> str:
    shown = (f"{key}:{_shown(value)}" for key, value in values.items())
    return printable("\n".join([f"# {name}", *shown]))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return str(value).replace("\n", " ")


async def _told(where: Where) -> dict[str, _Section]:
    """Collect everything that the server reports to this client, by section."""
    found: dict[str, _Section] = {"server": {"address": str(where.address)}}
    problem: TmqpError | None = None
    try:
        await where.ask(lambda client: _ask_all(client, found))
    except TmqpError as error:
        problem = error
    try:
        _add_metrics(await where.admin.metrics(), found)
    except AdminError as error:
        if problem is not None:
            raise problem from error
        if where.http_given:
            raise CommandError(str(error), EXIT_CONNECTION) from error
        click.echo(f"tmqp: no metrics: {error}", err=True)
    else:
        if problem is not None:
            click.echo(f"tmqp: no answer over TMQP: {problem}", err=True)
    return found


async def _ask_all(client: Client, found: dict[str, _Section]) -> None:
    """Request the information that TMQP offers."""

    async def about(what: str, question: Callable[[], Awaitable[None]]) -> None:
        try:
            await question()
        except OperationError as error:
            click.echo(f"tmqp: cannot show {what}: {error}", err=True)

    async def itself() -> None:
        told = await client.server_information()
        moment = datetime.fromtimestamp(told.time_ms / 1_000, UTC)
        found["server"].update(version=told.version, time=moment.isoformat(timespec="seconds"))
        found["memory"] = {"used_bytes": told.memory_bytes, "max_bytes": told.max_memory_bytes}
        found["clients"] = {"connected": told.clients, "max": told.max_clients}

    async def nodes() -> None:
        told = await client.nodes()
        gone = sum(not each.connected for each in told)
        found["nodes"] = {"known": len(told), "disconnected": gone}

    await about("the server", itself)
    await about("nodes", nodes)


def _add_metrics(metrics: Samples, found: dict[str, _Section]) -> None:
    """Add the information from the metrics."""
    for labels, _ in metrics.all("tmqp_build_info"):
        found["server"].update(labels)
    begun_s = metrics.total("tmqp_start_time_seconds")
    if begun_s is not None:
        moment = datetime.fromtimestamp(begun_s, UTC)
        found["server"]["started"] = moment.isoformat(timespec="seconds")
    for section, name, metric, labels in _SUMS:
        value = metrics.total(f"tmqp_{metric}", **labels)
        if value is not None:
            whole = int(value) if value == int(value) else value
            found.setdefault(section, {})[name] = whole
    for section, name, metric in _TIMES:
        for word, share in (("p50", 0.5), ("p99", 0.99)):
            value = metrics.quantile(f"tmqp_{metric}", share)
            if value is not None and value != float("inf"):
                found.setdefault(section, {})[f"{name}_{word}_seconds"] = value
    for labels, value in metrics.all("tmqp_limit_used_ratio"):
        found.setdefault("limits", {})[f"{labels['limit']}_used"] = value
    for labels, value in metrics.all("tmqp_permission_denied_total"):
        found.setdefault("denied", {})[labels["right"]] = int(value)
