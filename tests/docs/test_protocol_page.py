"""The test that ``docs/protocol.md`` and the code say the same, in both directions."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import blocks, page, section, table
from tests.project import ROOT, source_files
from tmqp import Frame, FrameDecoder, models
from tmqp.constants import (
    DOCUMENT_OPERATION_OF_WIRE,
    BindingHttpMethod,
    BindingInteraction,
    BindingType,
    DocumentOperation,
    EventName,
    HeaderName,
    MessageType,
    NackReason,
    NoContent,
    Operation,
    QueueStatus,
    ResultCode,
    RouteMethod,
)

pytestmark = pytest.mark.cold

PROTOCOL: Final = page("protocol.md")
LAST_RULE: Final = 134
ERRORS: Final = ("RemoteProtocolError", "AbuseError")


def test_every_rule_has_its_id_once() -> None:
    ids = Counter(
        int(number) for number in re.findall(r'<a id="f(\d+)"></a>\*\*F\d+\*\*', PROTOCOL)
    )
    assert sorted(ids) == list(range(1, LAST_RULE + 1))
    assert set(ids.values()) == {1}
    for number, shown in re.findall(r'<a id="f(\d+)"></a>\*\*F(\d+)\*\*', PROTOCOL):
        assert number == shown


def cited(text: str) -> set[int]:
    """The numbers of all rules a text names; both ends of a range, and what is between."""
    found = {int(number) for number in re.findall(r"\bF(\d+)\b", text)}
    for first, last in re.findall(r"\bF(\d+) ?[-–] ?F(\d+)\b", text):
        found.update(range(int(first), int(last) + 1))
    return found


@pytest.mark.parametrize("path", source_files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_rules_cited_in_code_exist(path: Path) -> None:
    assert cited(path.read_text(encoding="utf-8")) <= set(range(1, LAST_RULE + 1))


def test_citations_are_found() -> None:
    assert cited("(F6), F21-F23; 0xF2, AF5 F") == {6, 21, 22, 23}


# --- The rules that end a connection -------------------------------------------------------------


class RuleFinder(ast.NodeVisitor):
    """Collects the rules a module names: the first arguments of the errors' constructors.

    A function that hands its own parameter on as the rule stands for the constructor: then the
    rules are what it is called with.
    """

    def __init__(self) -> None:
        self.rules: set[str] = set()
        self.unclear: list[int] = []
        self.forwarders: dict[str, int] = {}
        self._parameters: list[tuple[str, list[str]]] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        names = [argument.arg for argument in node.args.args if argument.arg != "self"]
        self._parameters.append((node.name, names))
        self.generic_visit(node)
        self._parameters.pop()

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Name):
            name = node.func.id
        if name in ERRORS:
            self._take(node, 0)
        elif name in self.forwarders:
            self._take(node, self.forwarders[name])
        self.generic_visit(node)

    def _take(self, node: ast.Call, place: int) -> None:
        rule = node.args[place] if place < len(node.args) else None
        function, parameters = self._parameters[-1] if self._parameters else ("", [])
        if isinstance(rule, ast.Constant) and isinstance(rule.value, str):
            self.rules.add(rule.value)
        elif isinstance(rule, ast.Name) and rule.id in parameters:
            self.forwarders[function] = parameters.index(rule.id)
        else:
            self.unclear.append(node.lineno)


def rules_of(source: str) -> tuple[set[str], list[int]]:
    """The rules a module names, and the lines where they are not plain to see."""
    tree = ast.parse(source)
    finder = RuleFinder()
    finder.visit(tree)
    again = RuleFinder()
    again.forwarders = finder.forwarders
    again.visit(tree)
    return again.rules, again.unclear


def rules_in_code() -> Iterator[str]:
    for path in source_files():
        rules, unclear = rules_of(path.read_text(encoding="utf-8"))
        assert not unclear, f"{path}: a rule must be a plain string, in lines {unclear}"
        yield from rules


def test_rules_in_code_and_page_are_the_same() -> None:
    shown = [row[0] for row in table(PROTOCOL, "rule", "who")]
    named = [re.fullmatch(r'<a id="rule-([a-z0-9-]+)"></a>`\1`', cell) for cell in shown]
    assert all(named), shown
    page_rules = [found.group(1) for found in named if found is not None]
    assert len(set(page_rules)) == len(page_rules)
    assert set(page_rules) == set(rules_in_code())


def test_rules_are_found() -> None:
    source = (
        "raise RemoteProtocolError('a', 'x')\n"
        "errors.AbuseError('b', 'x')\n"
        "class C:\n"
        "    def late(self): self.fault(1, 'c')\n"
        "    def fault(self, x, rule): return RemoteProtocolError(rule, x)\n"
        "RemoteProtocolError(f'{x}')\n"
    )
    assert rules_of(source) == ({"a", "b", "c"}, [6])


# --- Examples in bytes ---------------------------------------------------------------------------


def read_example(block: str) -> tuple[bytes, str]:
    """The bytes of an example, and what the page says they are."""
    *lines, said = block.strip().split("\n")
    data = b"".join(bytes.fromhex(line[:48].split("  ")[0]) for line in lines)
    return data, said


@pytest.mark.parametrize("block", blocks(PROTOCOL, "tmqp"))
def test_example_is_what_it_says(block: str) -> None:
    data, said = read_example(block)
    decoder = FrameDecoder()
    frames: list[Frame] = decoder.feed(data)
    assert decoder.error is None
    assert decoder.buffered == 0
    assert [f"= {frame!r}" for frame in frames] == [said]
    head = block.split("\n", 1)[0]
    names = f"id {data[2]}, source {data[3]}, target {data[4]};"
    assert f"TTL {frames[0].ttl}; {names} content type {frames[0].content_type};" in head


def test_there_are_examples_of_every_kind() -> None:
    shown = {read_example(block)[0][0] & 0x3F for block in blocks(PROTOCOL, "tmqp")}
    assert shown == set(MessageType) - {MessageType.CUSTOM}


# --- Tables --------------------------------------------------------------------------------------


def test_message_types() -> None:
    rows = {int(row[0], 16): row[1] for row in table(PROTOCOL, "type", "name")}
    assert rows == {kind.value: kind.name.replace("_", " ").title() for kind in MessageType}


def test_result_codes() -> None:
    cells = table(PROTOCOL, "code", "name", "code")
    codes = [int(row[at]) for row in cells for at in (0, 2, 4) if row[at]]
    assert sorted(codes) == sorted(ResultCode)


def test_operations() -> None:
    rows = table(PROTOCOL, "operation", "wire", "specification")
    shown = {int(row[1]): (row[0].upper().replace(" ", "_"), row[2]) for row in rows}
    assert {number: name for number, (name, _) in shown.items()} == {
        item.value: item.name for item in Operation
    }
    document = {number: text for number, (_, text) in shown.items() if text != "–"}
    assert document == {wire: str(int(doc)) for wire, doc in DOCUMENT_OPERATION_OF_WIRE.items()}
    assert {int(text) for text in document.values()} == set(DocumentOperation)


def test_headers() -> None:
    rows = table(section(PROTOCOL, "Headers"), "header", "on")
    shown = {name for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    assert shown == set(HeaderName)


def test_statuses() -> None:
    rows = table(PROTOCOL, "status", "number")
    shown = {row[0].upper(): int(row[1]) for row in rows}
    assert shown == {item.name.replace("_", ""): item.value for item in QueueStatus}


def test_words() -> None:
    assert {row[0].strip("`") for row in table(PROTOCOL, "`No-Content`")} == set(NoContent)
    rule = PROTOCOL.split('<a id="f81">')[1].split("<a id=")[0]
    assert set(re.findall(r"`([a-z-]+)`", rule)) == set(NackReason)
    assert {row[0].strip("`") for row in table(PROTOCOL, "event", "when")} == set(EventName)


def test_routing_numbers() -> None:
    rows = table(PROTOCOL, "number", "router method")
    for column, kind in enumerate(
        (RouteMethod, BindingType, BindingInteraction, BindingHttpMethod), 1
    ):
        shown = {int(row[0]): row[column].split(":")[0].upper() for row in rows if row[column]}
        assert shown == {item.value: item.name.replace("_", "") for item in kind}


MODELS: Final = [
    getattr(models, name)
    for name in models.__all__
    if name.endswith(("Options", "Information", "Event", "Decision", "Offsets"))
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_model(model: type[models.Model]) -> None:
    rows = table(section(PROTOCOL, model.__name__), "property", "type")
    shown = [row[0].strip("`") for row in rows]
    declared = models.properties_of(model)
    if model is models.ChannelOptions:  # its own first, then those of the other table
        inherited = models.properties_of(models.QueueOptions)
        assert [item.name for item in declared[len(shown) :]] == [item.name for item in inherited]
        declared = declared[: len(shown)]
    assert shown == [item.name for item in declared]
    optional = {row[0].strip("`"): "?" in row[1] or row[1] == "word" for row in rows}
    assert optional == {item.name: item.nullable for item in declared}


def test_all_models_are_there() -> None:
    assert len(MODELS) == 23
