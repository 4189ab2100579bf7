"""Make ``tmqp_client.sync``, the blocking client, from the signatures of the async one.

    python -m tools.make_sync            write the modules
    python -m tools.make_sync --check    only tell whether they are up to date

Each public method and property of the async classes has a blocking form with the same name and the
same parameters.  What cannot be generated from a signature (opening and closing, decorators,
iterables that block) is written by hand: see :data:`BY_HAND`.

A method runs in the event loop's thread if it is async, returns an object that belongs to the loop
(:data:`CLASSES`), or returns None, because it may wake tasks.  All others only look something up,
and run in the calling thread, because a call in another thread takes a thousand times as long.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from tmqp_client.batch import Batch
from tmqp_client.client import Client
from tmqp_client.connection_events import ConnectionEvents
from tmqp_client.consumer import Consumer, ConsumerIterator, TemporaryQueue
from tmqp_client.custom import CustomMessage, CustomMessages
from tmqp_client.direct import DirectMessage, DirectMessages
from tmqp_client.events import Events
from tmqp_client.message import Message
from tmqp_client.operations.browsing import Browsing, PeekedMessages
from tmqp_client.operations.cells import Cells, ListedCells
from tmqp_client.operations.channels import Channels
from tmqp_client.operations.groups import Groups
from tmqp_client.operations.messages import Messages
from tmqp_client.operations.reading import KeptMessages, Reading
from tmqp_client.pull import Pull
from tmqp_client.unclaimed import Unclaimed
from tools.generated import write_or_check

__all__ = ["BY_HAND", "CLASSES", "main", "render"]

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "src" / "tmqp_client" / "sync"

#: The classes that a client returns, which have blocking forms.
CLASSES: Final[tuple[type, ...]] = (
    Message,
    DirectMessage,
    ConsumerIterator,
    Consumer,
    Batch,
    TemporaryQueue,
    Pull,
    DirectMessages,
    CustomMessage,
    CustomMessages,
    Events,
    Unclaimed,
    ConnectionEvents,
    KeptMessages,
    PeekedMessages,
    Cells,
    ListedCells,
)
#: The first of the classes that get a separate module.
_STREAMS: Final = CLASSES.index(CustomMessage)
#: Written by hand in ``tmqp_client.sync._client``.
BY_HAND: Final = frozenset({"aclose", "handler", "responder", "run", "push_many"})
_NOTE: Final = "\n\nMade by ``python -m tools.make_sync``: edit the async side, and run that.\n"
_SPECIAL: Final = frozenset({"__aenter__", "__aexit__", "__aiter__", "__anext__"})


def members(kind: type) -> dict[str, Any]:
    """Return the public members of a class and its bases in this project, its own first."""
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if not base.__module__.startswith("tmqp_client"):
            continue
        for name, value in vars(base).items():
            if isinstance(value, FunctionType | property) and (
                not name.startswith("_") or name in _SPECIAL
            ):
                found.setdefault(name, value)
    return found


def is_plain(function: FunctionType) -> bool:
    """Whether a function only looks something up, and can be called in any thread."""
    if inspect.iscoroutinefunction(function):
        return False
    returns = function.__annotations__["return"]
    return returns not in {"None", *(kind.__name__ for kind in CLASSES)}


def _node(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
    return tree


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the arguments that pass the parameters on."""
    spec = node.args
    parts = [argument.arg for argument in [*spec.posonlyargs, *spec.args] if argument.arg != "self"]
    parts += [f"{argument.arg}={argument.arg}" for argument in spec.kwonlyargs]
    return "".join(f", {part}" for part in parts)


def _annotations(function: Any, names: dict[str, str]) -> None:
    """Note the origin of each name in the annotations and defaults of a function."""
    node = _node(function)
    module = importlib.import_module(function.__module__)
    origins = _origins(module)
    parts: list[ast.expr] = [argument.annotation for argument in _all(node) if argument.annotation]
    parts += [default for default in [*node.args.defaults, *node.args.kw_defaults] if default]
    if node.returns is not None:
        parts.append(node.returns)
    for part in parts:
        for leaf in ast.walk(part):
            if isinstance(leaf, ast.Name) and leaf.id in origins:
                names[leaf.id] = origins[leaf.id]


def _all(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _origins(module: Any) -> dict[str, str]:
    """Return the origins of a module's global names."""
    origins: dict[str, str] = {}
    tree = ast.parse(inspect.getsource(module))
    body = tree.body
    for guarded in [each for each in body if isinstance(each, ast.If)]:
        body = [*body, *guarded.body]  # imports for annotations only
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            for alias in node.names:
                origins[alias.asname or alias.name] = f"from {node.module} import {alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                origins[alias.name.split(".")[0]] = f"import {alias.name}"
        elif isinstance(node, ast.ClassDef):
            origins[node.name] = f"from {module.__name__} import {node.name}"
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            for target in targets:
                if isinstance(target, ast.Name):
                    origins[target.id] = f"from {module.__name__} import {target.id}"
    return origins


def _method(kind: type, name: str, value: Any) -> str:
    """Return the blocking form of one member."""
    whose = f"tmqp_client.{kind.__name__}.{name}"
    if isinstance(value, property):
        returns = ast.unparse(_node(value.fget).returns or ast.Name("Any"))
        if returns in {kind.__name__ for kind in CLASSES}:
            return (
                f"    @property\n    def {name}(self) -> {returns}:\n"
                f'        """As :attr:`{whose}`, blocking."""\n'
                f"        result: {returns} = self._wrap(self._wrapped.{name})\n"
                "        return result\n"
            )
        return (
            f"    @property\n    def {name}(self) -> {returns}:\n"
            f'        """As :attr:`{whose}`."""\n'
            f"        return self._wrapped.{name}\n"
        )
    if name == "__aenter__":
        return (
            "    def __enter__(self) -> Self:\n        self._loop.call(self._wrapped.__aenter__)\n"
            "        return self\n"
        )
    if name == "__aexit__":
        return (
            "    def __exit__(self, exc_type: type[BaseException] | None,"
            " exc: BaseException | None, traceback: TracebackType | None) -> None:\n"
            "        self._loop.call(self._wrapped.__aexit__, exc_type, exc, traceback)\n"
        )
    if name == "__aiter__":
        if issubclass(kind, Consumer):
            return (
                "    def __iter__(self) -> ConsumerIterator:\n"
                "        result: ConsumerIterator = self._wrap(self._wrapped.__aiter__())\n"
                "        return result\n"
            )
        return "    def __iter__(self) -> Self:\n        return self\n"
    node = _node(value)
    returns = ast.unparse(node.returns) if node.returns else "None"
    if name == "__anext__":
        return (
            f"    def __next__(self) -> {returns}:\n"
            f"        result: {returns} = self._next()\n        return result\n"
        )
    head = f"    def {name}({ast.unparse(node.args)}) -> {returns}:\n"
    passed = _arguments(node)
    plain = is_plain(value)
    call = f"self._call(self._wrapped.{name}{passed})"
    if plain:
        call = f"self._wrapped.{name}({passed.removeprefix(', ')})"
    if plain:
        body = f"        return {call}\n"
    elif returns == "None":
        body = f"        {call}\n"
    else:
        body = f"        result: {returns} = {call}\n        return result\n"
    words = f"As :meth:`{whose}`." if plain else f"As :meth:`{whose}`, blocking."
    return f'{head}        """{words}"""\n{body}'


def _class(kind: type, skip: frozenset[str], base: str, names: dict[str, str], only: Any) -> str:
    lines = [f"class {base}:\n"]
    lines.append(f'    """The blocking form of :class:`tmqp_client.{kind.__name__}`."""\n')
    for name, value in members(kind).items():
        if name in skip or (only is not None and not only(name)):
            continue
        function = value.fget if isinstance(value, property) else value
        if name not in _SPECIAL or name == "__anext__":
            _annotations(function, names)
        lines.append(_method(kind, name, value))
    return "\n".join(lines)


def _module(words: str, imports: list[str], names: dict[str, str], body: str, public: str) -> str:
    froms = "\n".join(sorted(set(names.values())))
    fixed = "\n".join(imports)
    return (
        f'"""{words[:1].upper()}{words[1:]}.{_NOTE}"""\n\nfrom __future__ import annotations\n\n'
        f"{fixed}\n{froms}\n\n__all__ = [{public}]\n\n\n{body}"
    )


def render() -> dict[str, str]:
    """Return the modules by file name."""
    result = {
        file: _received(kinds, words)
        for file, kinds, words in (
            ("_generated_received.py", CLASSES[:_STREAMS], "what the blocking client returns"),
            ("_generated_streams.py", CLASSES[_STREAMS:], "streams of the blocking client"),
        )
    }
    result.update(_operations())
    return {name: _tidy(text) for name, text in result.items()}


def _received(kinds: tuple[type, ...], words: str) -> str:
    """Return a module with the blocking forms of some classes."""
    names: dict[str, str] = {}
    bodies: list[str] = []
    for kind in kinds:
        base = f"{kind.__name__}(Blocking[_async.{kind.__name__}])"
        bodies.append(_class(kind, frozenset(), base, names, None))
    for kind in kinds:
        names.pop(kind.__name__, None)
    public = ", ".join(f'"{name}"' for name in sorted(kind.__name__ for kind in kinds))
    aliases = "\n".join(
        f"from {kind.__module__} import {kind.__name__} as Async{kind.__name__}" for kind in kinds
    )
    body = "\n\n".join(bodies)
    for kind in kinds:
        body = body.replace(f"_async.{kind.__name__}]", f"Async{kind.__name__}]")
    imports = [
        "from types import TracebackType",
        "from typing import Any, Self",
        "from tmqp_client.sync._blocking import Blocking",
        aliases,
    ]
    return _module(words, imports, names, body, public)


def _operations() -> dict[str, str]:
    """Return the modules with the client's methods, divided by subject."""
    result: dict[str, str] = {}
    mine = (*vars(Client), *vars(Channels), *vars(Messages))
    own = {name for name in mine if not name.startswith("_")}
    kept = {
        name
        for name in (*vars(Reading), *vars(Groups), *vars(Browsing))
        if not name.startswith("_")
    }
    other = set(members(Client)) - own - kept
    modules = {kind.__name__: "received" for kind in CLASSES[:_STREAMS]}
    modules.update({kind.__name__: "streams" for kind in CLASSES[_STREAMS:]})
    for file, base, words, only in (
        ("_generated_own.py", "Own", "the client's own operations, blocking", own),
        ("_generated_kept.py", "Kept", "what a client can do with what is kept, blocking", kept),
        ("_generated_more.py", "More", "what else a client can do, blocking", other),
    ):
        names: dict[str, str] = {}
        skip = BY_HAND | _SPECIAL
        text = _class(
            Client,
            skip,
            f"{base}(Blocking[Client])",
            names,
            only.__contains__,
        )
        for name in list(names):
            if name in modules:
                where = f"tmqp_client.sync._generated_{modules[name]}"
                names[name] = f"from {where} import {name}"
        names["Client"] = "from tmqp_client.client import Client"
        imports = ["from typing import Any", "from tmqp_client.sync._blocking import Blocking"]
        result[file] = _module(words, imports, names, text, f'"{base}"')
    return result


def _tidy(text: str) -> str:
    """Format the source with ruff."""
    rules = ["check", "--fix", "--quiet", "--select", "I,F401", "--stdin-filename"]
    for command in ([*rules, "src/tmqp_client/sync/x.py"], ["format", "--stdin-filename", "x.py"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        if not done.stdout:
            raise RuntimeError(done.stderr)
        text = done.stdout
    return text


def main(arguments: list[str]) -> int:
    """Write the modules, or with ``--check`` compare them; 1 if one is out of date."""
    modules = {FOLDER / name: text for name, text in render().items()}
    return write_or_check(modules, arguments, "make_sync")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
