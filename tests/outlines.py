"""The project's files as the checks of the tree read them: text, and what they define."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.project import public_list

__all__ = ["Definition", "File", "Outline"]


@dataclass(frozen=True)
class File:
    """A file of the project: where it is, and its name as seen from the project's root."""

    path: Path
    name: str

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders above the file, outermost first."""
        return Path(self.name).parts[:-1]

    @property
    def suffix(self) -> str:
        """The file's last extension, with its dot."""
        return self.path.suffix

    @cached_property
    def _text(self) -> str:
        return self.path.read_bytes().decode("utf-8")

    @cached_property
    def outline(self) -> Outline:
        """What the file defines, as Python.  The tree itself is large, and is not kept."""
        tree = ast.parse(self.path.read_bytes())
        return Outline(list(definitions_in(tree)), public_list(tree))

    def text(self) -> str:
        """The file's contents, its line ends as they are."""
        return self._text


@dataclass(frozen=True)
class Definition:
    """A module, class or function, and where it stands."""

    kind: type[ast.AST]
    name: str
    line: int
    last_line: int
    docstring: str


@dataclass(frozen=True)
class Outline:
    """The definitions of a module, itself first, and its ``__all__`` if that is a plain list."""

    definitions: list[Definition]
    public: list[str] | None


def definitions_in(tree: ast.Module) -> Iterator[Definition]:
    """The module, and every class and function in it, also those within others."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Module):
            yield Definition(ast.Module, "the module", 1, 1, ast.get_docstring(node) or "")
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            last = node.end_lineno or node.lineno
            words = ast.get_docstring(node) or ""
            yield Definition(type(node), node.name, node.lineno, last, words)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):  # that of a lambda is an expression
                waiting.extend(inner)
