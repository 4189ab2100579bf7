"""The public face: a module lists what it defines, and what the package promises is there.

Everything is read from the sources, because a compiled module keeps no docstrings; then the names
are looked up in the modules that are really loaded, compiled or not.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.project import ROOT, module_name, public_list, settings, source_files

MODULES: Final = source_files()
#: Names whose meaning is Python's, so they may be listed and need no explanation.
DUNDERS: Final = frozenset({"__version__"})
#: A module's logger is reached through ``logging``, by the module's name: no part of its face.
UNLISTED: Final = frozenset({"logger"})


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, those under a condition included."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and not is_type_checking(node.test):
            yield from statements(node.body)
        if isinstance(node, ast.If):
            yield from statements(node.orelse)
        if isinstance(node, ast.Try):
            yield from statements([*node.body, *node.orelse, *node.finalbody])
            for handler in node.handlers:
                yield from statements(handler.body)
        if isinstance(node, ast.With):
            yield from statements(node.body)


def is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is ``TYPE_CHECKING``, so that what it guards never runs."""
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def target_names(target: ast.expr) -> Iterator[str]:
    """The plain names that an assignment binds."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from target_names(element)


def defined_names(node: ast.stmt) -> Iterator[str]:
    """The names that one statement defines; an import defines nothing."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from target_names(target)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from target_names(node.target)


def imported_names(node: ast.stmt) -> Iterator[str]:
    """The names that one statement takes from other modules."""
    if isinstance(node, ast.ImportFrom) and node.module != "__future__":
        yield from (alias.asname or alias.name for alias in node.names)


def lazy_names(node: ast.stmt) -> Iterator[str]:
    """What a package imports for type checkers alone: at run time its ``__getattr__`` finds it."""
    if isinstance(node, ast.If) and is_type_checking(node.test):
        for inner in node.body:
            yield from imported_names(inner)


def deleted_names(tree: ast.Module) -> set[str]:
    """The names that a module takes back (``del``) when it is done with them."""
    found: set[str] = set()
    for node in statements(tree.body):
        if isinstance(node, ast.Delete):
            found.update(name for target in node.targets for name in target_names(target))
        if isinstance(node, ast.For):
            found.update(target_names(node.target))
    return found


def public_names(path: Path, tree: ast.Module) -> set[str]:
    """What a module may list: what it defines, and for a package what it takes from elsewhere."""
    names: set[str] = set()
    for node in statements(tree.body):
        names.update(defined_names(node))
        if path.name == "__init__.py":
            names.update(imported_names(node))
            names.update(lazy_names(node))
    names -= deleted_names(tree) | UNLISTED
    return {name for name in names if not name.startswith("_")}


def names_for_own_use(tree: ast.Module) -> set[str]:
    """What a module imports and uses itself; a package only passes on what it does not use."""
    imported = {name for node in statements(tree.body) for name in imported_names(node)}
    used = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return imported & used


def complaints_about(path: Path) -> list[str]:
    """Where a module's list and its contents differ."""
    tree = ast.parse(path.read_bytes())
    listed = public_list(tree)
    if listed is None:
        return ["has no __all__"]
    real = public_names(path, tree)
    found = [f"lists {name}, which is not there" for name in sorted({*listed} - real - DUNDERS)]
    unlisted = real - {*listed} - names_for_own_use(tree)
    found += [f"has {name}, which is not listed" for name in sorted(unlisted)]
    found += [f"lists {name} twice" for name in sorted(listed) if listed.count(name) > 1]
    return found


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_module_lists_what_it_defines(path: Path) -> None:
    assert complaints_about(path) == []


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_every_listed_name_can_be_imported(path: Path) -> None:
    module = importlib.import_module(module_name(path))
    for name in module.__all__:
        assert hasattr(module, name), f"{module.__name__} lists {name}"


@pytest.mark.parametrize(
    ("name", "source", "complaints"),
    [
        ("a.py", "__all__ = ['b']\nb = 1\n_c = 2\nfrom d import e\n", []),
        ("a.py", "__all__ = []\ndef f(): ...\n", ["has f, which is not listed"]),
        ("a.py", "__all__ = []\nclass C: ...\n", ["has C, which is not listed"]),
        ("a.py", "__all__ = []\nx: int = 1\n", ["has x, which is not listed"]),
        ("a.py", "__all__ = []\na, b = 1, 2\ndel a\n", ["has b, which is not listed"]),
        (
            "a.py",
            "__all__ = []\ntry:\n    x = 1\nfinally:\n    pass\n",
            ["has x, which is not listed"],
        ),
        ("a.py", "__all__ = ['e']\nfrom d import e\n", ["lists e, which is not there"]),
        ("a.py", "__all__ = ['x', 'x']\nx = 1\n", ["lists x twice", "lists x twice"]),
        ("a.py", "__all__ = [*b]\n", ["has no __all__"]),
        ("a.py", "x = 1\n", ["has no __all__"]),
        ("__init__.py", "__all__ = ['e']\nfrom d import e\nimport f\n", []),
        ("__init__.py", "__all__ = []\nfrom d import e\n", ["has e, which is not listed"]),
        ("__init__.py", "__all__ = []\nfrom d import e\n_f = e()\n", []),
        ("__init__.py", "__all__ = ['e']\nif TYPE_CHECKING:\n    from d import e\n", []),
        (
            "__init__.py",
            "__all__ = []\nif TYPE_CHECKING:\n    from d import e\n",
            ["has e, which is not listed"],
        ),
        (
            "a.py",
            "__all__ = ['e']\nif TYPE_CHECKING:\n    from d import e\n",
            ["lists e, which is not there"],
        ),
    ],
)
def test_a_difference_is_found(
    name: str, source: str, complaints: list[str], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    assert complaints_about(path) == complaints


# --- The packages' own faces ---------------------------------------------------------------------


def has_comment(lines: list[str], number: int) -> bool:
    """Whether a ``#:`` comment stands above a line (counted from 1) or at its end."""
    above = lines[number - 2].strip() if number > 1 else ""
    return above.startswith("#:") or "#:" in lines[number - 1]


def is_documented(source: str, name: str) -> bool:
    """Whether the definition of ``name`` says what it is: a docstring, or a ``#:`` comment."""
    lines = source.split("\n")
    body = list(statements(ast.parse(source).body))
    for node, after in zip(body, [*body[1:], None], strict=True):
        if name not in defined_names(node):
            continue
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            return bool(ast.get_docstring(node))
        text = after.value if isinstance(after, ast.Expr) else None
        said = isinstance(text, ast.Constant) and isinstance(text.value, str)
        return said or has_comment(lines, node.lineno)
    return False


def origin(package: ModuleType, name: str) -> tuple[Path, str]:
    """The file that defines what a package passes on as ``name``, and its name there."""
    path = Path(inspect.getfile(package))
    while True:
        tree = ast.parse(path.read_bytes())
        nodes = list(statements(tree.body))
        for node in tree.body:
            if isinstance(node, ast.If) and is_type_checking(node.test):
                nodes += node.body
        if any(name in defined_names(node) for node in nodes):
            return path, name
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module and name in imported_names(node):
                names = {alias.asname or alias.name: alias.name for alias in node.names}
                name = names[name]
                path = source_of(node.module)
                break
        else:
            raise LookupError(f"{path} neither defines nor imports {name}")


def source_of(module: str) -> Path:
    """The source file of one of our modules, by its dotted name."""
    stem = ROOT / "src" / Path(*module.split("."))
    package = stem / "__init__.py"
    return package if package.is_file() else stem.with_suffix(".py")


def test_the_package_offers_something() -> None:
    package = importlib.import_module("tmqp")
    assert len(package.__all__) >= 20
    assert package.__version__ == settings()["project"]["version"]


@pytest.mark.parametrize(
    ("package", "name"),
    [
        (package, name)
        for package in map(importlib.import_module, ("tmqp", "tmqp_server"))
        for name in sorted({*package.__all__} - DUNDERS)
    ],
)
def test_every_public_name_of_the_package_is_explained(package: ModuleType, name: str) -> None:
    path, real_name = origin(package, name)
    assert is_documented(path.read_text(encoding="utf-8"), real_name), f"{name}, in {path}"


@pytest.mark.parametrize(
    ("source", "documented"),
    [
        ('def f():\n    """Says."""\n', True),
        ("def f():\n    pass\n", False),
        ('class f:\n    """Says."""\n', True),
        ("class f:\n    x = 1\n", False),
        ('f = 1\n"""Says."""\n', True),
        ("#: Says.\nf = 1\n", True),
        ("f = 1  #: Says.\n", True),
        ("# Says.\nf = 1\n", False),
        ("g = 1\n", False),
    ],
)
def test_a_missing_explanation_is_found(source: str, documented: bool) -> None:
    assert is_documented(source, "f") is documented


def test_the_engine_alone_does_not_load_the_network() -> None:
    code = (
        "import sys, tmqp_server, tmqp_server.engine.broker as b;"
        " assert b.Broker; print('anyio' in sys.modules);"
        " assert tmqp_server.running and 'running' in dir(tmqp_server);"
        " print('anyio' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"]


def test_the_server_has_no_name_that_it_does_not_offer() -> None:
    package = importlib.import_module("tmqp_server")
    with pytest.raises(AttributeError, match="module 'tmqp_server' has no attribute 'Broker'"):
        _ = package.Broker


def python_in(path: Path) -> str:
    """The program that a file is, or the programs that stand in a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


def inner_modules(source: str) -> list[str]:
    """The modules of the server that a program imports beside its public face."""
    return re.findall(r"^\s*(?:from|import) (tmqp_server\.[\w.]+)", source, re.MULTILINE)


def test_examples_and_guides_import_the_servers_public_face_only() -> None:
    paths = [
        path
        for folder in ("examples", "docs")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".md"}
    ]
    users = [path for path in paths if "tmqp_server import" in python_in(path)]
    assert len(users) >= 5
    assert {path.name: found for path in paths if (found := inner_modules(python_in(path)))} == {}


def test_an_inner_module_is_found() -> None:
    assert inner_modules("from tmqp_server import running\n") == []
    assert inner_modules("x = 1\nfrom tmqp_server.config import y\n") == ["tmqp_server.config"]
