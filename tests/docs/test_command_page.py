"""The test that the page about the command names what there is, and its exit codes."""

from __future__ import annotations

import re
from typing import Final

import click
import pytest

from tests.docs.pages import page, section, table
from tmqp_client.cli import cli
from tmqp_client.cli.checks import check

pytestmark = pytest.mark.cold

PAGE: Final = page("command.md")


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_command_is_on_the_page() -> None:
    found: dict[str, list[str]] = {}
    for names, does in table(section(PAGE, "Commands"), "command"):
        for name in words(names):
            found[name] = words(does)
    assert set(found) == set(cli.commands)
    for name, command in cli.commands.items():
        if isinstance(command, click.Group):
            assert set(found[name]) == set(command.commands), name


def test_the_exit_codes_are_those_of_the_help() -> None:
    assert cli.epilog is not None
    lines = cli.epilog.split("Exit codes:\n")[1].splitlines()
    said = [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]
    assert [tuple(row) for row in table(section(PAGE, "Exit codes"), "code", "meaning")] == said


def leaves(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(name, command)]
    found: list[tuple[str, click.Command]] = []
    for word, inner in command.commands.items():
        found += leaves(inner, f"{name} {word}".strip())
    return found


@pytest.mark.parametrize(("name", "command"), leaves(cli, ""))
def test_every_command_has_json(name: str, command: click.Command) -> None:
    options = [option for parameter in command.params for option in parameter.opts]
    assert ("--json" in options) == (name != "completion")


def test_every_check_is_on_the_page_with_its_command() -> None:
    rows = table(section(PAGE, "Checks for monitoring systems"), "check")
    assert {words(row[0])[0] for row in rows} == set(check.commands)
