"""The page about the architecture names files and code that exist, and its maps are up to date."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from tools import make_map

from tests.docs.pages import page, section
from tests.project import ROOT

pytestmark = pytest.mark.cold

PAGE: Final = page("architecture.md")
TASKS: Final = (
    "Add a queue option",
    "Add an operation",
    "Add a door",
    "Add a pack of conformance cases",
    "Add a CLI command",
)
#: A file to be written has a placeholder in its path.
PLACEHOLDER: Final = "<name>"


def steps(text: str) -> list[str]:
    """The items of a numbered list, each on one line."""
    items = re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]
    return [" ".join(item.split()) for item in items]


def problems(step: str) -> list[str]:
    """Files of a step that do not exist, and names before its colon that its files do not have."""
    before = re.split(r":(?: |$)", step, maxsplit=1)[0]
    words = re.findall(r"`([^`]+)`", before)
    paths = [word for word in words if "/" in word or (ROOT / word).is_file()]
    if not paths:
        return [f"no file: {step}"]
    missing = [f"no {path}" for path in paths if PLACEHOLDER not in path and not exists(path)]
    texts = [(ROOT / path).read_text("utf-8") for path in paths if (ROOT / path).is_file()]
    names = [word for word in words if word not in paths]
    missing += [
        f"{name} is not in {', '.join(paths)}"
        for name in names
        if not any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for text in texts)
    ]
    return missing


def exists(path: str) -> bool:
    return (ROOT / path).is_file()


@pytest.mark.parametrize("task", TASKS)
def test_every_step_names_files_and_code_that_exist(task: str) -> None:
    found = steps(section(PAGE, task))
    assert len(found) >= 5
    assert [problem for step in found for problem in problems(step)] == []


def test_wrong_steps_are_found() -> None:
    assert problems("`src/tmqp/frames.py`, `Frame`: the frame.") == []
    assert problems("`src/tmqp/frames.py`, `Fram`: the frame.") != []
    assert problems("`src/tmqp/no_such_file.py`: the frame.") != []
    assert problems("Think about it: `Frame`.") != []


def test_every_part_of_the_maps_has_a_row_and_every_row_is_on_a_map() -> None:
    parts = {part for drawing in make_map.MAPS for part in make_map.imports(drawing.package)}
    assert set(make_map.captions()) == parts


@pytest.mark.parametrize("drawing", make_map.MAPS, ids=lambda drawing: drawing.picture.name)
def test_the_maps_are_up_to_date(drawing: make_map.Map) -> None:
    picture = drawing.picture.read_text(encoding="utf-8")
    assert picture == make_map.render(drawing), "run make pictures"
    assert f"({drawing.picture.name})" in PAGE
    names = {name.rpartition(".")[2] for name in make_map.imports(drawing.package)}
    assert names <= set(re.findall(r'class="name"[^>]*>([^<]+)<', picture))


def test_a_stale_map_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = make_map.Map("", tmp_path / "map.svg", "Packages")
    monkeypatch.setattr(make_map, "MAPS", (stale,))
    assert make_map.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert make_map.main([]) == 0
    assert make_map.main(["--check"]) == 0


def test_a_part_without_a_row_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_map, "captions", dict)
    with pytest.raises(ValueError, match="no row in a table for tmqp, tmqp_client"):
        make_map.render(make_map.MAPS[0])


def test_floors_and_arrows() -> None:
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set[str]()}
    assert make_map.ranks(graph) == {"a": 3, "b": 2, "c": 1, "d": 0}
    assert make_map.reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()}
    with pytest.raises(ValueError, match="have a cycle"):
        make_map.ranks({"a": {"b"}, "b": {"a"}})


def test_parts_floors_and_arrows_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_map.main(["--count"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["package", "modules", "lines", "parts", "floors", "arrows"]
    told = {name: [int(each) for each in row] for name, *row in map(str.split, rows)}
    graph = make_map.imports("tmqp_server.engine")
    modules, _, *others = told["tmqp_server.engine"]
    assert modules > len(graph)
    floors = max(make_map.ranks(graph).values()) + 1
    assert others == [len(graph), floors, sum(map(len, graph.values()))]
    assert told["tmqp"][0] > 30


def test_imports_of_a_package_are_those_of_its_parts() -> None:
    server = make_map.imports("tmqp_server")
    assert "tmqp_server.engine" in server["tmqp_server.hub"]
    assert "tmqp_server.hub" not in server["tmqp_server.engine"]


def test_the_way_of_a_message_names_files_of_the_server() -> None:
    way = section(PAGE, "The way of a message")
    picture = (ROOT / "docs" / "message.svg").read_text(encoding="utf-8")
    drawn = re.findall(r'class="file"[^>]*>([^<]+)<', picture)
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", way)
    assert len(drawn) >= 5
    for name in drawn:
        assert list((ROOT / "src" / "tmqp_server").glob(name)), name
    for name in named:
        found = list((ROOT / "src" / "tmqp_server").glob(f"**/{name}"))
        assert found, name
    words = {word for word in re.findall(r"`(\w+)`", way) if word[0].isupper()}
    engine = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "src" / "tmqp_server" / "engine").glob("**/*.py")
    )
    assert {"Push", "Append", "Synced", "Confirm", "Deliver", "Erase"} <= words
    assert all(f"class {word}(" in engine for word in words)
