"""Print the requirements of some extras of the package, one per line.

``requirements.py server client`` reads ``pyproject.toml``, so that commands that need only some
tools do not list packages.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

__all__ = ["requirements"]

ROOT: Final = Path(__file__).resolve().parent.parent


def requirements(*extras: str) -> list[str]:
    """Return the sorted requirements of these extras, including those of extras that they name.

    :raises KeyError: for an unknown extra.
    """
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    found: set[str] = set(project["dependencies"])
    waiting = list(extras)
    while waiting:
        for each in project["optional-dependencies"][waiting.pop()]:
            own = re.fullmatch(rf"{project['name']}\[(.+)\]", each)
            if own is None:
                found.add(each)
            else:
                waiting += own[1].split(",")
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(requirements(*sys.argv[1:])))
