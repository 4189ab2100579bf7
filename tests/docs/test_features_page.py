"""The test that ``docs/features.md`` is whole and true: sections, and tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

import pytest

from tests.docs.pages import page, table
from tests.project import ROOT

#: The sections of the specification that say what a server or a client does, in its order.
SECTIONS: Final = (
    "Overview",
    "Features and Limitations",
    "Protocol Limitations",
    "Protocol Frame",
    "Message Types",
    "Version and Handshaking",
    "PING and PONG Messages",
    "Queue Statuses",
    "Broadcast",
    "Push",
    "Round Robin",
    "Pull",
    "Cache",
    "Pause",
    "Stop",
    "Decisions",
    "Delivery Workflow",
    "Message Lifecycle",
    "Routers and Bindings",
    "Acknowledge Messages",
    "Response Messages",
    "Message Source and Target",
    "Clusters and Message Workflow",
    "Server Operations",
    "Create New Channel",
    "Delete Existing Channel",
    "Get Channel List",
    "Get Channel Information",
    "Join to a Channel",
    "Leave From a Channel",
    "Create New Queue",
    "Update Queue Options",
    "Delete Existing Queue",
    "Get Queue List of a Channel",
    "Get Queue Information",
    "Get Online Nodes",
    "Get Online Clients",
    "Pushing Messages Into Queues",
    "Pulling Messages From Cache Queues",
    "Pulling Messages From Pull Queues",
    "Receiving Messages From Queues",
    "Send Direct Message",
    "Receive Direct Message Response",
    "Receive Acknowledge Message",
    "Subscribe and Unsubscribe",
    "Receive Messages of Events",
    "Event Types",
    "Client Event",
    "Channel Event",
    "Subscription Event",
    "Queue Event",
    "Message Event",
    "Channel Queue Options",
    "Channel Options",
    "Channel Information",
    "Queue Information",
    "Node Information",
    "Client Information",
)

#: What is not served in this version, by section.
NOT_YET: Final[tuple[tuple[str, str], ...]] = ()

MARK: Final = "not yet"
COLUMNS: Final = ("feature", "served by", "rules", "test")
PAGE: Final = page("features.md")
#: The text under each heading of the page.
PARTS: Final = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", PAGE, re.MULTILINE))


def rows(section: str) -> list[list[str]]:
    """The features of a section."""
    return table(PARTS[section], *COLUMNS)


ROWS: Final = [(section, row) for section in PARTS for row in rows(section)]


@cache
def names_in(path: str) -> set[str]:
    """The tests of a file: functions, classes, and what a module gives a test's name."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if name.startswith(("test_", "Test"))}


def test_every_section_has_rows_in_the_order_of_the_specification() -> None:
    assert tuple(PARTS) == SECTIONS
    assert all(rows(section) for section in SECTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_row_is_whole_and_every_feature_stands_once(section: str) -> None:
    features = [row[0] for row in rows(section)]
    assert len(set(features)) == len(features)
    for row in rows(section):
        assert len(row) == len(COLUMNS)
        assert all(row)
        assert re.fullmatch(r"\[F\d+\]\(protocol\.md#f\d+\)([,-] ?\[F\d+\]\([^)]+\))*", row[2]), row


def test_every_named_test_exists() -> None:
    named = 0
    for section, row in ROWS:
        if row[3] == MARK:
            continue
        for test in row[3].split("<br>"):
            path, _, name = test.strip("`").partition("::")
            assert (ROOT / path).is_file(), f"{section}: {test}"
            assert name in names_in(path), f"{section}: {test}"
            named += 1
    assert named > 200


def test_what_is_not_served_yet_is_known() -> None:
    assert tuple((section, row[0]) for section, row in ROWS if row[3] == MARK) == NOT_YET
