"""What users read in the code has the words of the documents: messages, and public docstrings.

A message is any text with a space in it that is neither a docstring nor the reason of an assertion.
Public are the names that a package exports, with the methods that their classes have or inherit,
and commands, which show their docstrings with ``--help``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from tests.phrases import DOCUMENT_PHRASES, PHRASES
from tests.project import ROOT, public_list
from tests.test_tidy import phrase_pattern

#: Each pattern with the end of its phrase, which is found sooner, and a plain phrase.
PLAIN: Final = [
    (phrase_pattern(phrase), phrase.split()[-1][1:], better)
    for phrase, better in {**PHRASES, **DOCUMENT_PHRASES}.items()
]
#: The folders of the packages that users meet.
PACKAGES: Final = [
    *sorted(path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("src/*/__init__.py")),
    "fuzz/tmqp_conformance",
]
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, *_FUNCTIONS)

Texts = Iterator[tuple[int, str]]


def trees_of(package: str) -> dict[str, ast.Module]:
    """The modules of a package, by their names as seen from the project's root."""
    files = sorted((ROOT / package).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_bytes()) for path in files}


def messages(tree: ast.Module) -> Texts:
    """The messages in a module, and what its commands show with ``--help``, with their lines."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            value = node.value
            if isinstance(value, str) and " " in value and node not in skipped:
                yield node.lineno, value
        elif isinstance(node, _DOCUMENTED):
            skipped.update(each.value for each in node.body if isinstance(each, ast.Expr))
            if isinstance(node, _FUNCTIONS) and is_command(node):
                yield node.lineno, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assert) and node.msg is not None:
            skipped.update(ast.walk(node.msg))


def is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is a command of a command line, or a group of commands."""
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("command", "group")
        for each in node.decorator_list
    )


def public_docstrings(trees: dict[str, ast.Module], exported: list[str]) -> dict[str, Texts]:
    """By module, the docstrings of what a package exports."""
    places = {
        node.name: (module, node)
        for module, tree in trees.items()
        for node in tree.body
        if isinstance(node, (ast.ClassDef, *_FUNCTIONS))
    }
    waiting, seen = list(exported), set[str]()
    found: dict[str, list[tuple[int, str]]] = {}
    while waiting:
        name = waiting.pop()
        if name in seen or name not in places:
            continue
        seen.add(name)
        module, node = places[name]
        found.setdefault(module, []).extend(docstrings(node))
        if isinstance(node, ast.ClassDef):
            waiting += [each.id for each in node.bases if isinstance(each, ast.Name)]
    return {module: iter(texts) for module, texts in found.items()}


def docstrings(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Texts:
    """The docstring of a class or function, and those of its public methods."""
    yield node.lineno, ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        for each in node.body:
            if isinstance(each, _FUNCTIONS) and not each.name.startswith("_"):
                yield each.lineno, ast.get_docstring(each) or ""


def riddles(module: str, texts: Texts) -> Iterator[str]:
    """Complaints about phrases for which there is a plain one."""
    for line, text in texts:
        for pattern, end, better in PLAIN:
            if end in text and (found := pattern.search(text)) is not None:
                yield f"{module}:{line}: {found.group()!r}: write {better!r}, or the like"


def complaints_about(package: str, trees: dict[str, ast.Module]) -> list[str]:
    """All complaints about the modules of a package."""
    exported = public_list(trees[f"{package}/__init__.py"]) or []
    found = [each for module, tree in trees.items() for each in riddles(module, messages(tree))]
    for module, texts in public_docstrings(trees, exported).items():
        found += riddles(module, texts)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_users_read_plain_words(package: str) -> None:
    complaints = complaints_about(package, trees_of(package))
    assert not complaints, "\n" + "\n".join(complaints)


def test_messages_and_public_docstrings_are_read_and_no_others() -> None:
    trees = {
        "a/__init__.py": ast.parse('__all__ = ["Public"]'),
        "a/b.py": ast.parse(
            'class Base:\n    def run(self):\n        """For somebody."""\n'
            'class Public(Base):\n    """For nobody."""\n'
            'class Private:\n    """For nobody."""\n    assert 1, "for nobody"\n'
            'raise ValueError(f"{1} is gone")\n'
            '@click.command()\ndef run():\n    """Run anybody."""\n'
        ),
    }
    assert [each.split(": write")[0] for each in complaints_about("a", trees)] == [
        "a/b.py:11: 'anybody'",
        "a/b.py:9: 'is gone'",
        "a/b.py:4: 'nobody'",
        "a/b.py:2: 'somebody'",
    ]
