"""Examines the health of a server by its metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tmqp_client.cli._admin import AdminDeniedError, AdminError, Samples
from tmqp_client.cli._asking import Where
from tmqp_client.cli._findings import BAD, GOOD, NOTE, WARNING, Report

__all__ = ["examine", "examine_memory"]

#: Descriptors that a server needs besides one for each connection: listeners, files and others.
_SPARE_FILES: Final = 100
#: Writes to disk, or turns of the event loop, are slow if one in a hundred takes longer.
_SLOW_WRITE_S: Final = 0.1
_SLOW_LOOP_S: Final = 0.25
#: The share of a container's memory that the server's limit for messages may have.
_MEMORY_SHARE: Final = 0.7
#: The file with the memory limit of a container, seen from inside.
_CONTAINER: Final = Path("/sys/fs/cgroup/memory.max")


async def examine(report: Report, where: Where, max_connections: int) -> None:
    """Report what the metrics show.

    :param max_connections: the server's limit of connections; 0 if unknown.
    """
    try:
        metrics = await where.admin.metrics()
    except AdminDeniedError as error:
        report.say("metrics", NOTE, str(error), "the token needs the right see-metrics")
        return
    except AdminError as error:
        level = BAD if where.http_given else NOTE
        remedy = "start the server with --door admin, or say where it is with --http"
        report.say("metrics", level, str(error), remedy)
        return
    report.say("metrics", GOOD, f"{where.http} shows them to this client")
    _readiness(report, metrics)
    _files(report, metrics, max_connections)
    _disk(report, metrics)
    _speed(report, metrics)
    _queues(report, metrics)


def _readiness(report: Report, metrics: Samples) -> None:
    if not metrics.total("tmqp_ready"):
        report.say("ready", BAD, "the server is not ready", "tmqp server check ready says why")
    if metrics.total("tmqp_config_reload_success") == 0:
        remedy = "its log says what is wrong; tmqp-server config check FILE does, too"
        report.say("configuration", WARNING, "the last reload failed, the old one counts", remedy)


def _files(report: Report, metrics: Samples, max_connections: int) -> None:
    most = metrics.total("tmqp_process_max_fds")
    if most is None or not max_connections:
        return
    words = f"{most:,.0f} for {max_connections:,} connections"
    if most < max_connections + _SPARE_FILES:
        remedy = "raise LimitNOFILE (ulimit -n), or lower max_connections"
        report.say("descriptors", WARNING, words, remedy)
    else:
        report.say("descriptors", GOOD, words)


def _disk(report: Report, metrics: Samples) -> None:
    saving = metrics.total("tmqp_storage_saving")
    if saving is None:
        return
    if not saving:
        words, remedy = "durable messages are not saved", "the server's log says why"
        report.say("disk", BAD, words, remedy)
        return
    free = metrics.total("tmqp_storage_free_bytes")
    floor = metrics.total("tmqp_storage_floor_bytes") or 0.0
    if free is None:
        return
    words = f"{free / 1e9:,.1f} GB are free, below {floor / 1e9:,.2f} GB nothing is saved"
    level = BAD if free < floor else WARNING if free < 2 * floor else GOOD
    report.say("disk", level, words, "" if level == GOOD else "add space, or consume messages")


def _speed(report: Report, metrics: Samples) -> None:
    for check, metric, bound_s, remedy in (
        ("disk", "storage_write_seconds", _SLOW_WRITE_S, "durable messages wait for the disk"),
        (
            "event loop",
            "event_loop_lag_seconds",
            _SLOW_LOOP_S,
            "something blocks the server: an extension in Python, or too small a machine",
        ),
    ):
        slow_s = metrics.quantile(f"tmqp_{metric}", 0.99)
        if slow_s is not None and slow_s > bound_s:
            words = f"one in a hundred takes {slow_s * 1_000:,.0f} ms or more"
            report.say(check, WARNING, words, remedy)
    for labels, _ in metrics.all("tmqp_build_info", build="interpreted"):
        words = f"tmqp {labels.get('version', '')} runs interpreted"
        report.say("build", NOTE, words, "a wheel for this platform is compiled and faster")


def _queues(report: Report, metrics: Samples) -> None:
    alone = metrics.total("tmqp_queues_without_consumers") or 0.0
    if alone:
        words = f"{alone:,.0f} have messages and no consumers"
        report.say("queues", NOTE, words, "tmqp top shows them")


def examine_memory(report: Report, most: int, *, local: bool, limit: Path = _CONTAINER) -> None:
    """Compare the server's limit for messages with the memory of this container, if it runs in it.

    :param most: the server's limit in bytes.
    :param local: whether the server is on this machine.
    :param limit: the file with the container's limit.
    """
    try:
        allowed = int(limit.read_text(encoding="ascii")) if local else 0
    except (OSError, ValueError):
        return  # no container, or one without a limit
    if allowed and most > _MEMORY_SHARE * allowed:
        words = f"max_total_bytes is {most:,}, and this container may use {allowed:,}"
        remedy = "the system would end the server: lower the one or raise the other"
        report.say("memory", WARNING, words, remedy)
