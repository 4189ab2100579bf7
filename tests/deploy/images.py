"""What the image of the server is made of, as its Dockerfile and its .dockerignore say."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
from pathlib import Path
from typing import Final

from tests.project import ROOT, project_files

__all__ = ["DOCKERFILE", "copy_context", "in_context", "instructions", "words"]

DOCKERFILE: Final = ROOT / "deploy" / "docker" / "Dockerfile"


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile: word and arguments."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    found = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(word.upper(), rest.strip()) for word, rest in found]


def in_context(name: str) -> bool:
    """Whether a file of the checkout is sent to the build, by ``.dockerignore``."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        places = [Path(name), *Path(name).parents]
        anywhere = pattern.startswith("**/")
        names = [each.name if anywhere else str(each) for each in places]
        if any(fnmatch.fnmatch(each, pattern.removeprefix("**/")) for each in names):
            sent = line.startswith("!")
    return sent


def copy_context(target: Path) -> None:
    """Copy to a folder what would be sent to the build."""
    for path in project_files():
        name = path.relative_to(ROOT)
        if in_context(str(name)):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / name)


def words(argument: str) -> list[str]:
    """The words of an instruction in exec form.

    :raises ValueError: for the shell form.
    """
    found: list[str] = json.loads(argument)
    return found
