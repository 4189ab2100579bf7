"""``tmqp audit``: who asked a server for which change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from tmqp_client.cli._asking import Where, asking, needing_admin
from tmqp_client.cli._run import json_option, printable, run_alone

__all__ = ["audit"]


@click.command(
    epilog="""\b
Examples:
  tmqp audit
  tmqp audit -n 1000 --json | jq 'select(.action == "remove-queue")'
""",
)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1, 1_000),
    default=100,
    show_default=True,
    help="The maximum number of records.",
)
@json_option("Print each record as a JSON object.")
@asking
def audit(count: int, as_json: bool, where: Where) -> None:
    """Print the last changes that clients requested, the newest last.

    Each line has the time, client, door, action, subject and result code.  The command uses the
    admin door (--http) and needs the right see-audit.
    """

    async def work() -> None:
        with needing_admin():
            found = await where.admin.ask("GET", f"/audit?max={count}")
        for each in reversed(found["items"]):
            click.echo(json.dumps(each) if as_json else printable(_shown(each)))

    run_alone(work)


def _shown(record: Mapping[str, Any]) -> str:
    code = "-" if record["code"] is None else record["code"]
    what = " ".join(each for each in (record["action"], record["subject"]) if each)
    before, after = record.get("before", {}), record.get("after", {})
    values = [
        f"{key}={value} (was {before[key]})" if key in before else f"{key}={value}"
        for key, value in after.items()
    ]
    values += [f"was {key}={value}" for key, value in before.items() if key not in after]
    who = f"{record['who'] or '-'} ({record['door'] or '-'} {record['address'] or '-'})"
    return f"{record['ts']}  {code}  {who}  {what}  {' '.join(values)}".rstrip()
