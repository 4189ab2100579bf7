"""Each book of the engine is changed by one module: found in the sources, by ``ast``.

What is looked for is an assignment, a deletion, or a call that changes a table.  A book belongs to
a class; its first value is given there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.project import ROOT

ENGINE: Final = ROOT / "src" / "tmqp_server" / "engine"
FLIGHTS: Final = "flights/flights.py"
OUTCOMES: Final = "delivery/outcomes.py"
DIRECT: Final = "delivery/direct.py"
NODES: Final = "operations/nodes.py"
QUEUES: Final = "model/queues.py"

#: Which module changes a book; the names of its owner in the code are those of no other thing.
BOOKS: Final = {
    "flights": FLIGHTS,
    "duplicates": FLIGHTS,
    "in_flight": FLIGHTS,
    "full": FLIGHTS,
    "holder": FLIGHTS,
    "holders": FLIGHTS,
    "message_bytes": FLIGHTS,
    "state_bytes": "books.py",
    "disk_bytes": FLIGHTS,
    "withheld": FLIGHTS,
    "high_count": QUEUES,
    "regular_count": QUEUES,
}
#: One class in three modules.
SAME: Final = {"flights/runs.py": FLIGHTS, "flights/deferred.py": FLIGHTS}
#: The same, of names that other things have too: by what the owner is called.
SHARED_BOOKS: Final = {("queue", name): FLIGHTS for name in ("count", "bytes", "spilled")}
#: And those of a ``Tail``.
TAIL_BOOKS: Final = frozenset({"count", "bytes"})
#: Other owners of such names.  Whoever is neither here nor called a queue is taken for one.
OTHERS: Final = frozenset(
    {"self", "tail", "staged", "there", "command", "transaction", "message_set"}
)
#: Which module changes a counter of ``QueueCounters``.
QUEUE_COUNTERS: Final = {
    **dict.fromkeys(
        (
            "accepted", "ack_timeouts", "acks", "cleared", "damaged", "deliveries", "done",
            "dropped", "last_received", "last_sent", "missed", "negative_acks", "received",
            "redelivered", "released", "removed", "restored", "saved", "sent", "skipped", "undone",
            "unknown_acks", "untracked",
        ),
        FLIGHTS,
    ),
    **dict.fromkeys(
        ("dead", "displaced", "errors", "expired", "overflowed", "refused", "requeued"), OUTCOMES
    ),
    "starved": "delivery/choosing.py",
}  # fmt: skip
#: Which module changes a counter of ``BrokerCounters``.
BROKER_COUNTERS: Final = {
    "confirms_skipped": "core/core.py",
    "dead_lettered": OUTCOMES,
    "stray_commands": "core/core.py",
    "unknown_tickets": "core/core.py",
    "withheld": "core/core.py",
    "unknown_acks": "delivery/intake.py",
    "directs_skipped": DIRECT,
    "answers_dropped": DIRECT,
    "decisions_applied": NODES,
    "decisions_unknown": NODES,
}
CHANGES: Final = frozenset(
    {"add", "append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault",
     "update"}
)  # fmt: skip


def called(owner: ast.expr) -> str:
    """The last name of an expression: ``queue`` of ``entry.queue``."""
    if isinstance(owner, ast.Attribute):
        return owner.attr
    return owner.id if isinstance(owner, ast.Name) else ""


def attributes(target: ast.expr) -> Iterator[ast.Attribute]:
    """The attributes that an assignment to *target* changes, entries of a table included."""
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from attributes(element)
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from attributes(target.value)
    elif isinstance(target, ast.Attribute):
        yield target


def changed(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Whatever a module changes, but for what ``__init__`` gives its own object at first."""
    own: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            own.update(ast.walk(node))
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            targets = [node.func.value] if node.func.attr in CHANGES else []
        for target in targets:
            for found in attributes(target):
                if node not in own or called(found.value) != "self":
                    yield found


def foreign_changes(source: str, module: str) -> list[str]:
    """What a module changes that is another's."""
    found = []
    for each in changed(ast.parse(source)):
        name, owner = each.attr, called(each.value)
        writer = BOOKS.get(name)
        if ("queue", name) in SHARED_BOOKS and owner not in OTHERS:
            writer = SHARED_BOOKS["queue", name]
        if owner.endswith("tail") and name in TAIL_BOOKS:
            writer = FLIGHTS
        if owner == "counters":
            holder = called(each.value.value) if isinstance(each.value, ast.Attribute) else "queue"
            of_broker = holder in {"core", "_core"} or module == "core/core.py"
            writer = (BROKER_COUNTERS if of_broker else QUEUE_COUNTERS).get(name, "nobody")
        if writer not in {None, SAME.get(module, module)}:
            found.append(f"{module}:{each.lineno}: {ast.unparse(each)} is changed by {writer}")
    return found


def lowered_counters(source: str) -> list[str]:
    """What a module takes from a counter."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Sub)
        and isinstance(node.target, ast.Attribute)
        and called(node.target.value) == "counters"
    ]


def local_tables(source: str) -> Iterator[str]:
    """Books that a module has under a name of its own, through which it could change them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            name = node.value.attr
            if name in {"counters", "flights", "duplicates"} and called(node.targets[0]) != name:
                yield ast.unparse(node)


MODULES: Final = sorted(path.relative_to(ENGINE).as_posix() for path in ENGINE.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_each_book_has_one_writer(module: str) -> None:
    source = (ENGINE / module).read_text(encoding="utf-8")
    assert foreign_changes(source, module) == []
    if module != FLIGHTS:
        names = [each for each in local_tables(source) if not each.endswith("_flights = flights")]
        assert names == []


@pytest.mark.parametrize("module", MODULES)
def test_no_counter_is_ever_lowered(module: str) -> None:
    assert lowered_counters((ENGINE / module).read_text(encoding="utf-8")) == []


def test_every_counter_has_a_writer_that_writes() -> None:
    path = ENGINE / "model" / "counters.py"
    slots: dict[str, set[str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            (listed,) = (each for each in node.body if isinstance(each, ast.Assign))
            slots[node.name] = set(ast.literal_eval(listed.value))
    assert slots == {"QueueCounters": set(QUEUE_COUNTERS), "BrokerCounters": set(BROKER_COUNTERS)}
    for table in (BOOKS, QUEUE_COUNTERS, BROKER_COUNTERS):
        for name, module in table.items():
            parts = [module, *[part for part, whole in SAME.items() if whole == module]]
            sources = [(ENGINE / part).read_text(encoding="utf-8") for part in parts]
            names = {each.attr for source in sources for each in changed(ast.parse(source))}
            assert name in names, f"{module} never changes {name}"


@pytest.mark.parametrize(
    "line",
    [
        "queue.count -= 1",
        "entry.queue.bytes = 0",
        "q.count += 1",
        "del queue.flights[key]",
        "queue.flights[key], x = message, 1",
        "queue.duplicates.setdefault(key, []).append(message)",
        "session.in_flight -= 1",
        "core.message_bytes += 1",
        "tail.count -= 1",
        "queue.spilled += 1",
        "queue.counters.done += 1",
        "counters.done += 1",
        "core.counters.dead_lettered += 1",
        "message.holder = None",
    ],
)
def test_a_second_writer_is_seen(line: str) -> None:
    assert foreign_changes(f"{line}\n", Path("delivery/push_runs.py").as_posix()) != []


def test_a_lowered_counter_is_seen() -> None:
    assert lowered_counters("entry.queue.counters.received -= 1\ncounters.done += 1\n") == [
        "entry.queue.counters.received -= 1"
    ]


def test_a_book_under_another_name_is_seen() -> None:
    assert list(local_tables("counted = queue.counters\n")) == ["counted = queue.counters"]
