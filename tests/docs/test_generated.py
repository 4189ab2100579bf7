"""The test that generated pages are up to date, and that their makers notice."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest
from tools import (
    make_api,
    make_limits,
    make_metrics,
    make_nsq_flags,
    make_register,
    make_rules,
    make_speed,
    make_state_diagram,
)

from tests.project import ROOT
from tmqp import Limits
from tmqp.state import TABLE, Action, Input, Role, State

pytestmark = pytest.mark.cold

MAKERS = (
    make_api,
    make_limits,
    make_metrics,
    make_nsq_flags,
    make_register,
    make_rules,
    make_speed,
    make_state_diagram,
)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_up_to_date(maker: ModuleType) -> None:
    name = maker.__name__
    assert maker.PAGE.read_text(encoding="utf-8") == maker.render(), f"run python -m {name}"
    assert maker.main(["--check"]) == 0


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_a_stale_page_is_noticed(
    maker: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stale = tmp_path / "page"
    monkeypatch.setattr(maker, "PAGE", stale)
    assert maker.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert maker.main([]) == 0
    assert stale.read_text(encoding="utf-8") == maker.render()
    assert maker.main(["--check"]) == 0


def test_every_limit_stands_on_the_page() -> None:
    text = make_limits.render()
    for field in dataclasses.fields(Limits):
        assert f"| `{field.name}` | {field.default:,.10g} |" in text


def test_a_limit_without_explanation_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "limits.py"
    source.write_text('class Limits:\n    a: int = 1\n    """A."""\n    b: int = 2\n')
    with pytest.raises(ValueError, match=r"Limits\.b needs a default and an explanation"):
        make_limits.documented_fields(source, "Limits")
    with pytest.raises(ValueError, match="no class Other"):
        make_limits.documented_fields(source, "Other")
    source.write_text("MAX_A: Final = 1\n")
    with pytest.raises(ValueError, match="MAX_A needs a comment"):
        make_limits.commented_constants(source)


def test_a_limit_without_outcome_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(make_limits.OUTCOMES, "max_name_bytes")
    with pytest.raises(ValueError, match="different bounds"):
        make_limits.render()


def drawn_text() -> str:
    root = ET.fromstring(make_state_diagram.render())  # noqa: S314 - our own picture
    return " ".join(" ".join(root.itertext()).split())


def test_the_picture_has_every_state_input_and_action() -> None:
    text = drawn_text()
    for role in Role:
        for state, row in TABLE[role].items():
            assert state.name in text
            if state is State.CLOSED:
                continue
            for item, (action, _following) in row.items():
                assert item.name in text
                assert action.name.lower().replace("_", " ") in text


def test_the_picture_has_every_edge() -> None:
    for role in Role:
        for state in make_state_diagram.chain(role):
            drawn = {
                item: (edge.action, edge.following)
                for edge in make_state_diagram.edges(role, state)
                for item in edge.inputs
            }
            assert TABLE[role][state].items() <= drawn.items()


def test_another_form_of_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    crooked = {**TABLE[Role.SERVER]}
    crooked[State.OPEN] = {
        **crooked[State.OPEN],
        Input.HELLO: (Action.RECEIVE_HELLO, State.AWAIT_DECISION),
    }
    monkeypatch.setitem(TABLE, Role.SERVER, crooked)
    with pytest.raises(ValueError, match="OPEN leads to"):
        make_state_diagram.chain(Role.SERVER)


def test_the_picture_is_linked() -> None:
    assert "states.svg" in (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
