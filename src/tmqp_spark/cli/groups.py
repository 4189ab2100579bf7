"""The commands ``tmqp-spark groups list|reset|delete``."""

from __future__ import annotations

from typing import Any

import click

from tmqp.models import GroupOffsets
from tmqp_spark.cli._run import (
    EXIT_CODES,
    blocking_client,
    connected,
    connection_options,
    ends_well,
    example_text,
    print_json,
    print_table,
)
from tmqp_spark.errors import InvalidOption
from tmqp_spark.offsets import parse_key

__all__ = ["delete_group", "groups", "list_groups", "reset_group"]


@click.group(
    epilog=example_text("""
tmqp-spark groups list
tmqp-spark groups reset archive --to earliest --channel orders
tmqp-spark groups delete archive
""")
)
def groups() -> None:
    """Show and move named groups of readers.

    A group has a cursor with its name in each queue that it reads.  In queues with RetainForReaders
    the broker keeps messages that a group has not read.
    """


@groups.command(
    "list",
    epilog=example_text("tmqp-spark groups list archive --channel 'shop-*' --json")
    + "\n\n"
    + EXIT_CODES,
)
@click.argument("name", default="")
@click.option("--channel", "channels", default="*", help="Only in channels that match: x, x*, *x.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@connected
@ends_well
def list_groups(
    name: str, channels: str, as_json: bool, address: str, token: str | None, more: dict[str, str]
) -> None:
    """List groups, or one, with their lag."""
    with blocking_client(connection_options(address, token, more)) as client:
        found = client.list_groups(channels, name)
    found.sort(key=lambda each: (each.name, each.channel, each.queue))
    if as_json:
        for each in found:
            print_json(
                {
                    "group": each.name,
                    "channel": each.channel,
                    "queue": each.queue,
                    "sequence": each.sequence,
                    "behind": each.behind,
                    "behind_bytes": each.behind_bytes,
                }
            )
        return
    print_table(
        ["GROUP", "QUEUE", "READ UP TO", "BEHIND", "BYTES"],
        [
            [
                each.name,
                f"{each.channel}/{each.queue}",
                each.sequence,
                each.behind,
                each.behind_bytes,
            ]
            for each in found
        ],
    )


@groups.command(
    "reset",
    epilog=example_text("""
tmqp-spark groups reset archive --to earliest
tmqp-spark groups reset archive --to 1700000000000ms --channel orders
tmqp-spark groups reset archive --to orders/7=1200 --to orders/8=40
""")
    + "\n\n"
    + EXIT_CODES,
)
@click.argument("name")
@click.option(
    "--to",
    "places",
    multiple=True,
    required=True,
    metavar="PLACE",
    help="earliest, latest, a time (ms since 1970, written 1700000000000ms), or the next message "
    "to read of a queue (orders/7=1200), repeated for each queue.",
)
@click.option("--channel", "channels", default="*", help="Only in channels that match: x, x*, *x.")
@connected
@ends_well
def reset_group(
    name: str,
    places: tuple[str, ...],
    channels: str,
    address: str,
    token: str | None,
    more: dict[str, str],
) -> None:
    """Move a group, also back, within the kept messages.

    A query with a checkpoint continues there; a group determines where new queries begin.
    """
    how: dict[str, Any] = {"channel_filter": channels}
    numbers: dict[tuple[str, int], int] = {}
    for place in places:
        key, equals, number = place.rpartition("=")
        if equals:
            numbers[_queue(key, place)] = _number(number, place)
        elif len(places) > 1:
            raise click.UsageError(f"{place} means all queues: use it alone")
        elif place in ("earliest", "latest"):
            how["start"] = place
        elif place.endswith("ms"):
            how["timestamp_ms"] = _number(place[:-2], place)
        else:
            raise click.UsageError(
                f"--to is earliest, latest, 1700000000000ms or orders/7=1200, not {place!r}"
            )
    with blocking_client(connection_options(address, token, more)) as client:
        offsets: list[Any] = []
        if numbers:
            offsets = [
                GroupOffsets(channel=channel, queue=queue, sequence=number - 1)
                for (channel, queue), number in numbers.items()
            ]
            how = {}
        found = client.reset_group(name, offsets, **how)
    print_json(
        {"group": name, "queues": {f"{each.channel}/{each.queue}": each.sequence for each in found}}
    )


@groups.command(
    "delete", epilog=example_text("tmqp-spark groups delete archive") + "\n\n" + EXIT_CODES
)
@click.argument("name")
@click.option("--channel", "channels", default="*", help="Only in channels that match: x, x*, *x.")
@connected
@ends_well
def delete_group(
    name: str, channels: str, address: str, token: str | None, more: dict[str, str]
) -> None:
    """Remove a group; messages kept only for it are released."""
    with blocking_client(connection_options(address, token, more)) as client:
        client.drop_group(name, channels)
    print_json({"group": name, "deleted": True})


def _queue(key: str, place: str) -> tuple[str, int]:
    try:
        return parse_key(key)
    except ValueError as error:
        raise InvalidOption(f"--to {place}: {error}") from None


def _number(text: str, place: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 2**63:
        raise InvalidOption(f"--to {place}: {text!r} is not a number from 1 on")
    return int(text)
