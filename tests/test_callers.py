"""No function of the server without a caller: what only tests would call is not tested code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Final

from tests.project import ROOT

#: Called from outside the sources, each with its reason.
CALLED_ELSEWHERE: Final = {
    "get_key": "the interface of Python's selectors",
    "get_map": "the interface of Python's selectors",
    "web_addresses": "part of the public face",
    "imbalance": "the books of a queue, for every checker of them",
}

_DOCSTRING: Final = re.compile(r'"""(?:.|\n)*?"""')
_NAME: Final = re.compile(r"\b[a-z_][A-Za-z0-9_]*\b")


def _sources(package: str) -> list[Path]:
    return sorted((ROOT / "src" / package).rglob("*.py"))


def _functions(path: Path) -> list[str]:
    """The public functions and methods of a module, but for commands of a command line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            is_command = any("command" in ast.dump(each) for each in node.decorator_list)
            if not node.name.startswith("_") and not is_command:
                found.append(node.name)
    return found


def test_every_public_function_of_the_server_has_a_caller() -> None:
    words: Counter[str] = Counter()
    for path in _sources(""):
        words.update(_NAME.findall(_DOCSTRING.sub("", path.read_text(encoding="utf-8"))))
    defined: Counter[str] = Counter()
    for path in _sources("tmqp_server"):
        defined.update(_functions(path))
    lonely = {name for name, count in defined.items() if words[name] <= count}
    assert lonely == set(CALLED_ELSEWHERE)
