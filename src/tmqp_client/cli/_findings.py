"""The findings of an examination of a server: each is printed immediately and counted."""

from __future__ import annotations

import json
from typing import Final, final

import click

from tmqp_client.cli._run import printable

__all__ = ["BAD", "GOOD", "NOTE", "WARNING", "Report"]

GOOD: Final = "ok"
#: Worth knowing; nothing has to be done.
NOTE: Final = "note"
#: It works, but not well, or not for long.
WARNING: Final = "warning"
#: It does not work.
BAD: Final = "problem"


@final
class Report:
    """The findings.

    Attributes: ``counts`` of them by level.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.counts = dict.fromkeys((GOOD, NOTE, WARNING, BAD), 0)
        self._as_json = as_json

    def say(self, check: str, level: str, words: str, remedy: str = "") -> None:
        """Print a finding.

        :param remedy: what to do about it.
        """
        self.counts[level] += 1
        if self._as_json:
            found = {"check": check, "verdict": level, "text": words, "remedy": remedy or None}
            click.echo(json.dumps(found))
        else:
            whole = f"{words}; {remedy}" if remedy else words
            click.echo(printable(f"{level:<8}{check}: {whole}"))

    @property
    def status(self) -> int:
        """The exit code: 2 for a problem, 1 for a warning, else 0."""
        return 2 if self.counts[BAD] else 1 if self.counts[WARNING] else 0
