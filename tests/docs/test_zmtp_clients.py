"""The table of ZeroMQ's libraries is true, and so are the versions that are fetched."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Final

import pytest

from tests.docs.pages import page, table
from tests.interop.zmtp.clients import CLIENTS, FOLDER

pytestmark = pytest.mark.cold

HEAD: Final = ("library", "version", "language", "not tested, because of the library")


def test_the_table_of_libraries() -> None:
    rows = [[cell.strip("`") for cell in row] for row in table(page("doors/zmtp.md"), *HEAD)]
    assert rows == [client.row() for client in CLIENTS]


def test_the_versions_of_the_table_are_those_that_are_fetched() -> None:
    packages = json.loads((FOLDER / "node" / "package.json").read_text("utf-8"))["dependencies"]
    crates = tomllib.loads((FOLDER / "rust" / "Cargo.toml").read_text("utf-8"))["dependencies"]
    modules = (FOLDER / "go" / "go.mod").read_text(encoding="utf-8")
    fetched = {"zeromq.js": packages["zeromq"], "zmq.rs": crates["zeromq"]["version"].lstrip("=")}
    fetched |= dict(re.findall(r"/(zmq4) v(\S+)", modules))
    expected = {client.name: client.version for client in CLIENTS if client.language != "Java"}
    assert fetched == expected
    assert all(each.name == f"jeromq-{each.version}" for each in CLIENTS if each.language == "Java")
