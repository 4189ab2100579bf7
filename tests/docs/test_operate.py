"""The operator's guide: its commands exist, its backup is rehearsed, its figures are right."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
import click
import pytest
from tools.measure_sizing import measure, measure_connections

from tests.docs.pages import blocks, links, page, pages, section, table
from tests.project import ROOT
from tests.tmqp_client.server import running_server
from tmqp.models import QueueOptions
from tmqp_client import sync
from tmqp_client.cli import cli
from tmqp_server.__main__ import main

pytestmark = pytest.mark.cold

PAGES: Final = [each for each in pages() if each.parent == ROOT / "docs" / "operate"]
PROGRAMS: Final[dict[str, click.Command]] = {"tmqp": cli, "tmqp-server": main}


def commands() -> list[str]:
    """The commands of ours on the pages: in blocks, and in the text."""
    found = []
    for each in PAGES:
        text = each.read_text(encoding="utf-8")
        for block in blocks(text, "sh"):
            found += block.replace("\\\n", " ").splitlines()
        found += re.findall(r"`(tmqp(?:-server)? [^`]+)`", text)
    return [line for line in found if line.split()[0].rpartition("/")[2] in PROGRAMS]


def unknown(line: str) -> str:
    """The first word of a command that its program does not know; empty if it knows all."""
    name, *words = shlex.split(line.split(" >", maxsplit=1)[0])
    command = PROGRAMS[name.rpartition("/")[2]]
    context = click.Context(command)
    options = {option for each in command.params for option in each.opts}
    for word in words:
        there = command.get_command(context, word) if isinstance(command, click.Group) else None
        if there is not None:
            command = there
            options |= {
                option for each in command.params for option in (*each.opts, *each.secondary_opts)
            }
        elif word not in options and (word.startswith("-") or isinstance(command, click.Group)):
            return word
    return ""


@pytest.mark.parametrize("line", sorted(set(commands())))
def test_a_command_of_the_guide_exists(line: str) -> None:
    assert unknown(line) == ""


def test_a_command_that_does_not_exist_is_found() -> None:
    assert unknown("tmqp server chek ready") == "chek"
    assert unknown("tmqp queue ls --nope x") == "--nope"
    assert len(set(commands())) > 20


def test_every_page_is_named_on_the_first() -> None:
    rows = table(page("operate/README.md"), "you want to")
    named = {links(row[1])[0] for row in rows} - {"../production.md"}
    assert named == {each.name for each in PAGES} - {"README.md"}


def test_every_comparison_names_a_test_that_there_is() -> None:
    tested = re.findall(r"`(tests/[^`]+)`", page("operate/comparison.md"))
    assert len(tested) > 30
    for each in tested:
        path, _, name = each.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text, each
    for heading in (
        "RabbitMQ's management plugin",
        "nsqadmin",
        "NATS' monitoring endpoints and CLI",
        "Redis' INFO and its relatives",
    ):
        rows = table(section(page("operate/comparison.md"), heading), "there", "here", "tested in")
        assert all(len(row) == 3 and row[2].startswith("`tests/") for row in rows)


def sh(script: str, **variables: str) -> None:
    """Run a block of a page, with our programs in the path; every line must succeed."""
    environment = {
        **os.environ,
        **variables,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    told = subprocess.run(
        ["sh", "-e", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.long
def test_a_backup_is_made_and_restored_as_the_page_says(tmp_path: Path) -> None:
    """The commands of the page, with a server that goes on meanwhile."""
    guide = page("operate/backup.md")
    (backup,) = blocks(section(guide, "Backup"), "sh")
    (restore,) = blocks(section(guide, "Restore"), "sh")
    data = tmp_path / "data"
    (tmp_path / "backups").mkdir()
    places = {"DATA": str(data), "BACKUPS": str(tmp_path / "backups")}
    with running_server("--data", str(data)) as (address, _), sync.connect(address) as client:
        client.create_queue("kept", 1, QueueOptions(durable=True), status="pull")
        for number in range(20):
            client.push("kept", 1, f"before {number}")
        sh(backup, **places)
        client.push("kept", 1, "after")
    sh(restore, **places)
    with running_server("--data", str(data)) as (address, _), sync.connect(address) as client:
        found = [each.text for each in client.peek("kept", 1)]
    assert found == [f"before {number}" for number in range(20)]


@pytest.mark.long
def test_the_figures_of_the_page_are_about_right() -> None:
    rows = table(page("operate/sizing.md"), "size of a message (bytes)")
    told = {
        int(row[0].replace(",", "")): [int(x.replace(",", "")) for x in row[1:]] for row in rows
    }
    found = anyio.run(measure, 4_000, 1_000)
    memory, charged, disk = told[1_000]
    # Memory is taken from the system in large pieces, which so few messages show.
    assert 0.5 * memory < found.resident < 1.6 * memory
    assert found.charged == pytest.approx(charged, rel=0.02)
    assert found.disk == pytest.approx(disk, rel=0.5)
    _, idle = anyio.run(measure_connections, 50)
    text = page("operate/sizing.md").replace(",", "")
    assert f"the server charges {idle:.0f} bytes for it" in text
