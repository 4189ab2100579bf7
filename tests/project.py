"""What tests know about the project itself: its root, its settings, its source files."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = [
    "ROOT",
    "SOURCE_ROOTS",
    "hot_modules",
    "imported_by",
    "module_name",
    "path_of",
    "project_files",
    "public_list",
    "settings",
    "source_files",
    "source_packages",
]

ROOT: Final = Path(__file__).resolve().parent.parent
#: Where importable packages of ours stand.
SOURCE_ROOTS: Final = (ROOT / "src", ROOT / "fuzz")


@cache
def settings() -> dict[str, Any]:
    """What ``pyproject.toml`` says."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def module_name(path: Path) -> str:
    """The dotted name under which a file of ``src/`` or ``fuzz/`` is imported.

    :raises ValueError: for a file that stands elsewhere.
    """
    for root in SOURCE_ROOTS:
        if path.is_relative_to(root):
            parts = path.relative_to(root).with_suffix("").parts
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    raise ValueError(f"{path} is in none of our source roots")


@cache
def hot_modules() -> tuple[str, ...]:
    """The modules that a compiled build compiles: ``[tool.tmqp.compile]``, as setup.py reads it."""
    table = settings()["tool"]["tmqp"]["compile"]
    paths = {
        path
        for pattern in table["modules"]
        for path in ROOT.glob(pattern)
        if path.name not in table["exclude"]
    }
    return tuple(sorted(module_name(path) for path in paths))


def path_of(name: str) -> Path | None:
    """The file of a module of ours; None for any other name."""
    for root in SOURCE_ROOTS:
        path = root.joinpath(*name.split("."))
        for found in (path.with_suffix(".py"), path / "__init__.py"):
            if found.is_file():
                return found
    return None


def imported_by(names: Iterable[str]) -> set[str]:
    """The packages of others that modules of ours import, directly or through one another.

    As mypy sees it that is given these modules: some others it does not follow.
    """
    skipped = [
        pattern
        for override in settings()["tool"]["mypy"]["overrides"]
        if override.get("follow_imports") == "skip"
        for pattern in override["module"]
    ]
    found: set[str] = set()
    waiting = list(names)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        path = path_of(name)
        if name in seen or path is None or any(fnmatch(name, each) for each in skipped):
            continue
        seen.add(name)
        parts = name.split(".")
        waiting += [".".join(parts[:count]) for count in range(1, len(parts))]
        for node in ast.walk(ast.parse(path.read_bytes())):
            imported: list[str] = []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                imported = [node.module, *[f"{node.module}.{each.name}" for each in node.names]]
            for each in imported:
                top = each.partition(".")[0]
                if path_of(top) is not None:
                    waiting.append(each)
                elif top not in sys.stdlib_module_names:
                    found.add(top)
    return found


def source_packages() -> list[str]:
    """The top-level packages that exist, by name."""
    return sorted(path.parent.name for root in SOURCE_ROOTS for path in root.glob("*/__init__.py"))


def source_files() -> list[Path]:
    """Every module under ``src/``."""
    return sorted(ROOT.glob("src/**/*.py"))


def project_files() -> list[Path]:
    """Every file that belongs to the project: known to git, or new and not ignored.

    Without git (an unpacked archive) the folders are walked instead.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        folders = ("src", "tests", "fuzz", "examples", "tools", "docs", ".ci")
        found = [path for name in folders for path in (ROOT / name).rglob("*")]
        found += ROOT.glob("*")
        return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)
    names = answer.stdout.decode("utf-8").split("\0")
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


def public_list(tree: ast.Module) -> list[str] | None:
    """A module's ``__all__``, read from its source; None when it is not a plain list of names."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            continue
        if not isinstance(value, ast.List | ast.Tuple):
            return None
        names = [element.value for element in value.elts if isinstance(element, ast.Constant)]
        found = [name for name in names if isinstance(name, str)]
        return found if len(found) == len(value.elts) else None
    return None
