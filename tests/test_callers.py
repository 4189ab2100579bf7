"""No function of the server without a caller: what only tests would call is not tested code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import tmqp_server
from tests.project import ROOT

#: Called from outside the sources, each with its reason.
CALLED_ELSEWHERE: Final = {
    "consuming": "consumers of NSQ in programs of users",
    "get_key": "the interface of Python's selectors",
    "get_map": "the interface of Python's selectors",
    "imbalance": "the books of a queue, for every checker of them",
    "restarted": "a restart without a disk, for programs that embed a server",
    "web_addresses": "part of the public face",
}
#: Where whatever is public must have a caller.  Other packages are libraries: users call them.
SERVED: Final = ("tmqp_server", "tmqp_nsq", "tmqp_client/_core", "tmqp_client/_io")


def _sources(package: str) -> set[Path]:
    return set((ROOT / "src" / package).rglob("*.py"))


def functions(tree: ast.Module) -> Iterator[str]:
    """The public functions and methods of a module, but for commands of a command line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            is_command = any("command" in ast.dump(each) for each in node.decorator_list)
            if not node.name.startswith("_") and not is_command:
                yield node.name


def named(tree: ast.Module) -> Iterator[str]:
    """What a module names where it uses it: also as a text, for ``getattr``.

    Lists of public names, imports and definitions are no use.
    """
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id == "__all__" for each in node.targets)
    ]
    listed = {each for node in lists for each in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in listed:
            yield node.value


def test_every_public_function_of_the_server_has_a_caller() -> None:
    served = {path for each in SERVED for path in _sources(each)}
    used: set[str] = set()
    defined: set[str] = set()
    for path in _sources(""):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used.update(named(tree))
        if path in served:
            defined.update(functions(tree))
    assert defined - used - set(tmqp_server.__all__) == set(CALLED_ELSEWHERE)


@pytest.mark.parametrize(
    ("source", "is_called"),
    [
        ('__all__ = ["f"]\n\ndef f(): ...\n', False),
        ('def f():\n    """Is not what g is, though f is named."""\n', False),
        ("from a import f\n", False),
        ("def f(): ...\n\nf()\n", True),
        ("class C:\n    def f(self): ...\n\nC().f()\n", True),
        ('class C:\n    def f(self): ...\n\ngetattr(C(), "f")()\n', True),
    ],
)
def test_what_counts_as_a_call(source: str, is_called: bool) -> None:
    assert ("f" in set(named(ast.parse(source)))) == is_called
