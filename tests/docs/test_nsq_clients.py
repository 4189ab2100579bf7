"""The guide's table of NSQ's clients is true, and so are the versions that are fetched."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Final

import pytest

from tests.docs.pages import page, table
from tests.interop.nsq.clients import CLIENTS, FOLDER
from tests.project import ROOT

pytestmark = pytest.mark.cold

HEAD: Final = ("client", "version", "language", "not tested, because the library cannot")


def test_the_table_of_clients() -> None:
    rows = [[cell.strip("`") for cell in row] for row in table(page("guides/from_nsq.md"), *HEAD)]
    assert rows == [client.row() for client in CLIENTS]


def test_the_versions_of_the_table_are_those_that_are_fetched() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extra = project["project"]["optional-dependencies"]["interop"]
    fetched = dict(re.findall(r"(\w+)~=(\d+\.\d+)", " ".join(extra)))
    fetched |= json.loads((FOLDER / "node" / "package.json").read_text("utf-8"))["dependencies"]
    modules = (FOLDER / "go" / "go.mod").read_text(encoding="utf-8")
    fetched |= dict(re.findall(r"/(go-nsq) v(\S+)", modules))
    pom = (FOLDER / "java" / "pom.xml").read_text(encoding="utf-8")
    pattern = r"<artifactId>(nsq-client)</artifactId>\s*<version>(.*)</version>"
    fetched |= dict(re.findall(pattern, pom))
    assert fetched == {client.name: client.version for client in CLIENTS}
