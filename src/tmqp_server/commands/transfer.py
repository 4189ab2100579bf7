"""``tmqp-server export`` and ``import``: convert a store to lines of JSON, and back.

The first line identifies the format.  Then follow channels, routers, queues and cursors, and then
messages, each on one line under its kind.  A value that is text is written as it is, any other as
base64 under its name with ``_base64`` appended.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import click

from tmqp.blocks import StoredMessage
from tmqp_server.commands.common import (
    DIRECTORY,
    Progress,
    existing_store,
    failing_politely,
    number_of,
    progress,
)
from tmqp_server.storage.port import (
    ANY_PRIORITY,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Recovered,
    RecoveredQueue,
    Retention,
    StoreBatch,
    StoreError,
    TopologyChange,
)
from tmqp_server.storage.records import decode_block
from tmqp_server.storage.sqlite import DATABASE_NAME, SqliteStore

__all__ = ["export_messages", "import_messages"]

_FORMAT: Final = "tmqp-server export"
_VERSION: Final = 1
_AT_ONCE: Final = 1_000
_BYTES_AT_ONCE: Final = 4 << 20
_EVER: Final = (1 << 63) - 1
#: The numbers of a message that are in its line as they are.
_NUMBERS: Final = (
    "sequence",
    "timestamp_us",
    "expires_us",
    "due_us",
    "flags",
    "attempts",
    "put_backs",
    "hops",
    "payload_offset",
    "payload_size",
)


# --- Out -----------------------------------------------------------------------------------------


@click.command(
    "export",
    epilog="""\b
Examples:
  tmqp-server export ./tmqp-data > all.jsonl
  tmqp-server export ./tmqp-data --queue orders/7 | jq -r 'select(.kind == "message").body'

Exit status: 0, or 2 when the store could not be read.""",
)
@click.argument("directory", type=DIRECTORY)
@click.option(
    "-q", "--queue", "name", metavar="CHANNEL/NUMBER", help="Only this queue, such as orders/7."
)
@click.option(
    "--skip-damaged",
    is_flag=True,
    help="Skip damaged messages and report them, instead of stopping.",
)
def export_messages(directory: Path, name: str | None, skip_damaged: bool) -> None:
    """Write the contents of DIRECTORY to standard output, as lines of JSON.

    Topology comes first, then every unsettled or retained message.  Nothing is changed; no server
    may use DIRECTORY.
    """
    out = sys.stdout
    with failing_politely(), existing_store(directory, skip_damage=skip_damaged) as store:
        found = store.recover(looking=True)
        queues = [each for each in found.queues if name in (None, _name_of(each.queue))]
        if name is not None and not queues:
            raise StoreError(f"there is no queue {name} in {directory}")
        _write_head(out, found, queues, name is not None)
        total = sum([offsets.count for offsets in store.offsets([q.queue.key for q in queues])])
        with progress("exporting", total) as bar:
            count = _write_messages(out, store, queues, bar)
        out.flush()
        for problem in store.problems:
            click.echo(f"skipped: {problem}", err=True)
    click.echo(
        f"exported {number_of(len(queues), 'queue')}, {number_of(count, 'message')}", err=True
    )


def _name_of(queue: KeepQueue) -> str:
    return f"{queue.channel}/{queue.queue_id}"


def _put(out: IO[str], kind: str, fields: dict[str, Any]) -> None:
    out.write(json.dumps({"kind": kind, **fields}, separators=(",", ":")) + "\n")


def _coded(name: str, value: bytes) -> dict[str, str]:
    try:
        return {name: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode("ascii")}


def _write_head(
    out: IO[str], found: Recovered, queues: list[RecoveredQueue], is_part: bool
) -> None:
    _put(out, "head", {"format": _FORMAT, "version": _VERSION, "clean": found.clean})
    channels = {each.queue.channel for each in queues}
    for channel in found.channels:
        if not is_part or channel.name in channels:
            _put(out, "channel", {"name": channel.name, **_coded("options", channel.options)})
    for router in found.routers if not is_part else []:
        _put(out, "router", {"name": router.name, **_coded("value", router.value)})
    for each in queues:
        queue, kept = each.queue, each.queue.retention
        _put(
            out,
            "queue",
            {
                "key": queue.key,
                "channel": queue.channel,
                "id": queue.queue_id,
                "sequence": each.sequence,
                "retention": [
                    kept.retain_bytes,
                    kept.retain_time_ms,
                    kept.retain_for_readers,
                ],
                **_coded("options", queue.options),
            },
        )
    for mark in found.marks if not is_part else []:
        fields = {"application": mark.application, "epoch": mark.epoch, "at_us": mark.at_us}
        _put(out, "mark", fields)
    keys = {each.queue.key for each in queues}
    for cursor in found.cursors:
        if cursor.key in keys:
            _put(
                out,
                "cursor",
                {"name": cursor.name, "queue": cursor.key, "sequence": cursor.sequence},
            )


def _write_messages(
    out: IO[str], store: SqliteStore, queues: list[RecoveredQueue], bar: Progress
) -> int:
    count = 0
    for each in queues:
        key = each.queue.key
        first = 0
        while True:
            messages = [
                message
                for block in store.read(key, first, _EVER, _AT_ONCE, _BYTES_AT_ONCE)
                for message in decode_block(block).messages()
            ]
            if not messages:
                break
            last = messages[-1].sequence
            owed = {
                message.sequence
                for message in store.fetch(key, first - 1, last, _AT_ONCE, 1 << 62, ANY_PRIORITY)
            }
            for message in messages:
                numbers = {name: getattr(message, name) for name in _NUMBERS}
                is_owed = message.sequence in owed
                fields = {"queue": key, **numbers, "owed": is_owed, **_coded("body", message.body)}
                _put(out, "message", fields)
            count += len(messages)
            first = last + 1
            bar.reach(count)
    return count


# --- In ------------------------------------------------------------------------------------------


@click.command(
    "import",
    epilog="""\b
Examples:
  tmqp-server import ./new-data all.jsonl
  tmqp-server export ./old-data | tmqp-server import ./new-data -

Exit status: 0, or 2 if it failed; then remove the incomplete directory.""",
)
@click.argument("directory", type=DIRECTORY)
@click.argument("file", type=click.File("r", encoding="utf-8"))
def import_messages(directory: Path, file: IO[str]) -> None:
    """Create a store in DIRECTORY from an exported FILE.

    A FILE named - is standard input.  DIRECTORY is created; it must not have a store.  Queues keep
    their keys and messages their sequences, so that the positions of readers stay valid.
    """
    with failing_politely():
        if (directory / DATABASE_NAME).exists():
            raise StoreError(f"{directory} already has a store")
        lines = _read_lines(file)
        head = next(lines, {})
        if head.get("format") != _FORMAT:
            raise StoreError(f"{file.name} was not exported by tmqp-server")
        if head.get("version") != _VERSION:
            raise StoreError(
                f"{file.name} has the version {head.get('version')}, this program knows {_VERSION}"
            )
        store = SqliteStore(directory)
        clean = False
        try:
            store.recover()
            with progress("importing", _size(file)) as bar:
                queues, count = _import(store, lines, bar)
            clean = bool(head.get("clean"))
        finally:
            store.close(clean=clean)
    click.echo(f"imported {number_of(queues, 'queue')}, {number_of(count, 'message')}", err=True)


def _size(file: IO[str]) -> int:
    try:
        return Path(file.name).stat().st_size
    except OSError:
        return 0


def _read_lines(file: IO[str]) -> Iterator[dict[str, Any]]:
    try:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise StoreError(f"line {number} is not JSON: {error}") from error
            if not isinstance(found, dict):
                raise StoreError(f"line {number} is not a JSON object")
            yield {**found, "": (number, len(line.encode()))}
    except UnicodeDecodeError as error:
        raise StoreError(f"{file.name} is not text: {error}") from error


def _import(store: SqliteStore, lines: Iterator[dict[str, Any]], bar: Progress) -> tuple[int, int]:
    batch = StoreBatch()
    sequences: dict[int, int] = {}
    count = done = waiting = waiting_bytes = now_us = 0
    for line in lines:
        number, size = line[""]
        done += size
        try:
            if line["kind"] == "message":
                key, message = int(line["queue"]), _message(line)
                batch.appended.setdefault(key, []).append(message)
                if not line["owed"]:
                    batch.settled.setdefault(key, []).append(message.sequence)
                now_us = max(now_us, message.timestamp_us)
                count += 1
                waiting += 1
                waiting_bytes += len(message.body)
            else:
                change = _change(line)
                batch.changes.append(change)
                if isinstance(change, KeepQueue):
                    sequences[change.key] = int(line["sequence"])
        except (KeyError, ValueError, TypeError) as error:
            raise StoreError(f"line {number} cannot be understood: {error!r}") from error
        if waiting >= _AT_ONCE or waiting_bytes >= _BYTES_AT_ONCE:
            store.write(batch, now_us)
            batch = StoreBatch()
            waiting = waiting_bytes = 0
            bar.reach(done)
    store.write(batch, now_us)
    for key, sequence in sequences.items():
        store.reserve(key, sequence)
    store.write(StoreBatch(), now_us)
    bar.reach(done)
    return len(sequences), count


def _decoded(line: dict[str, Any], name: str) -> bytes:
    if name in line:
        return str(line[name]).encode("utf-8")
    return b64decode(line[f"{name}_base64"], validate=True)


def _message(line: dict[str, Any]) -> StoredMessage:
    made = StoredMessage(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, _decoded(line, "body"))
    for name in _NUMBERS:
        setattr(made, name, int(line[name]))
    return made


def _change(line: dict[str, Any]) -> TopologyChange:
    kind = line["kind"]
    if kind == "channel":
        return KeepChannel(str(line["name"]), _decoded(line, "options"))
    if kind == "router":
        return KeepRouter(str(line["name"]), _decoded(line, "value"))
    if kind == "cursor":
        return KeepCursor(str(line["name"]), int(line["queue"]), int(line["sequence"]))
    if kind == "mark":
        return KeepMark(str(line["application"]), int(line["epoch"]), int(line["at_us"]))
    if kind == "queue":
        size, time_ms, for_readers = line["retention"]
        retention = Retention(int(size), int(time_ms), bool(for_readers))
        key, number = int(line["key"]), int(line["id"])
        return KeepQueue(key, str(line["channel"]), number, _decoded(line, "options"), retention)
    raise ValueError(f"the kind {kind!r} is not known")
