"""Writes generated files, or checks that they are up to date."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["write_or_check"]


def write_or_check(made: Mapping[Path, str], arguments: Sequence[str], maker: str) -> int:
    """Write generated files, or with ``--check`` print which ones are out of date.

    :param made: the text of each file.
    :param maker: the module under ``tools`` that makes them.
    :returns: the exit code: 1 if ``--check`` found a file out of date.
    """
    stale = [
        path
        for path, text in made.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" not in arguments:
        for path in stale:
            path.write_text(made[path], encoding="utf-8")
        return 0
    for path in stale:
        sys.stderr.write(f"{path} is out of date: run python -m tools.{maker}\n")
    return 1 if stale else 0
