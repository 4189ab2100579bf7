"""The register of slugs: none vanishes, and a renamed one is found under its old name."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result
from tools import make_register

from tests.tmqp_conformance.serving import served
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance import register as registers
from tmqp_conformance.__main__ import main
from tmqp_conformance.compare import compare_reports
from tmqp_conformance.packs import PACKS
from tmqp_conformance.register import (
    NATIVE,
    Move,
    Register,
    current,
    former,
    parse_register,
    register,
)
from tmqp_conformance.settings import Deviation
from tmqp_conformance.suite import ALL_CASES, SUITE_VERSION, chosen, find
from tmqp_conformance.zoo.broken_servers import BROKEN_SERVERS

#: The slugs of the versions that are closed, as a digest: they can neither vanish nor join.
CLOSED: Final = {
    "1.0": "adc4e35af9c4d21561728bd9c5bea795fec0f548a7dd9e7a0ebd321cb0651bc3",
    "1.1": "e006f9e96518f9597c336b8581ad748097b7dda3263bc30579783c6597a9975a",
}
NEW: Final = "server.channel.create-existing"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def cases() -> dict[str, set[str]]:
    """The ids that there are, by pack."""
    found = {NATIVE: {each.id for each in ALL_CASES}}
    return found | {pack.name: {each.id for each in pack.cases} for pack in PACKS.values()}


def test_every_case_is_registered_and_no_slug_has_vanished() -> None:
    found = register()
    for pack, ids in cases().items():
        missing = ids - {*found.since[pack]}
        assert not missing, f"run python -m tools.make_register for {missing}"
        gone = {*found.since[pack]} - ids - {*found.renames} - {*found.retired}
        assert not gone, f"vanished, without an entry in renames or retired: {gone}"
    assert {*found.since} == {*cases()}


def test_what_was_renamed_or_retired_is_known_and_not_used_again() -> None:
    found = register()
    present = {each for ids in cases().values() for each in ids}
    ever = {each for ids in found.since.values() for each in ids}
    moved = [*found.renames, *found.retired]
    assert len(moved) == len({*moved})
    assert {*moved} <= ever
    assert not {*moved} & present
    for name in found.renames:
        assert current(name) in present | {*found.retired}
    assert all(move.reason.endswith(".") for move in found.retired.values())


def test_versions_are_those_of_suites() -> None:
    found = register()
    versions = {each for ids in found.since.values() for each in ids.values()}
    versions |= {move.suite for move in (*found.renames.values(), *found.retired.values())}
    numbers = {tuple(map(int, each.split("."))) for each in versions}
    assert max(numbers) <= tuple(map(int, SUITE_VERSION.split(".")))
    assert {*CLOSED} | {SUITE_VERSION} >= versions
    assert SUITE_VERSION not in CLOSED


@pytest.mark.parametrize("version", CLOSED)
def test_the_slugs_of_a_closed_version_are_the_same_for_ever(version: str) -> None:
    ids = sorted(
        f"{pack} {name}"
        for pack, found in register().since.items()
        for name, since in found.items()
        if since == version
    )
    assert hashlib.sha256("\n".join(ids).encode()).hexdigest() == CLOSED[version]


# -- what renaming does ---------------------------------------------------------------------------


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case was renamed twice, and another one was retired."""
    made = Register(
        register().since,
        {
            "server.channel.first": Move("1.1", to="server.channel.second"),
            "server.channel.second": Move("1.2", to=NEW),
        },
        {"server.channel.gone": Move("1.2", reason="Nobody needs it.")},
    )
    monkeypatch.setattr(registers, "register", lambda: made)


@pytest.mark.usefixtures("renamed")
def test_an_old_name_leads_to_the_case() -> None:
    assert current("server.channel.first") == current("server.channel.second") == NEW
    assert former(NEW) == ("server.channel.first", "server.channel.second")
    for old in former(NEW):
        case = find(old)
        assert case is not None
        assert case.id == NEW
        assert Deviation(old, "x").covers(NEW)
        assert Deviation(f"{old[:-2]}*", "x").covers(NEW)
        assert [each.id for each in chosen(SERVER_CASES, [old])] == [NEW]
        assert NEW not in [each.id for each in chosen(SERVER_CASES, (), [old])]
    assert not Deviation("server.channel.third", "x").covers(NEW)


@pytest.mark.usefixtures("renamed")
def test_a_renamed_case_is_the_same_in_two_reports() -> None:
    before = {"cases": [{"id": "server.channel.first", "verdict": "pass"}]}
    after = {"cases": [{"id": NEW, "verdict": "fail"}]}
    changes = compare_reports(before, after)
    assert changes.regressions == [(NEW, "pass", "fail")]
    assert (changes.added, changes.removed) == ([], [])


@pytest.mark.usefixtures("renamed")
def test_commands_honour_old_names(tmp_path: Path) -> None:
    told = run("explain", "server.channel.first")
    assert told.output.startswith(f"{NEW}  (must, since suite 1.0)\nCalled before: server.chan")
    retired = run("explain", "server.channel.gone")
    assert retired.exit_code == 3
    assert "was retired in suite 1.2: Nobody needs it." in retired.output
    deviations = tmp_path / "deviations.toml"
    deviations.write_text(
        '[[deviations]]\ncase = "server.channel.first"\nreason = "409 is our code."\n', "utf-8"
    )
    with served(BROKEN_SERVERS["conflict-for-duplicate"][1]()) as address:
        played = run("replay", address, "server.channel.second")
        assert played.exit_code == 1
        assert played.output.startswith(f"wrong-code  {NEW}")
        gone = run("replay", address, "server.channel.gone")
        assert (gone.exit_code, "was retired in suite 1.2" in gone.output) == (3, True)
        words = ("server", address, "--only", "server.channel.second", "--timeout", "0.3")
        assert run(*words).exit_code == 1
        excused = run(*words, "--deviations", deviations)
    assert "1 excused" in excused.output


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"cases": {}}',
        '{"cases": {}, "renames": {"a": {"to": "b"}}, "retired": {}}',
        '{"cases": {}, "renames": {}, "retired": {"a": 5}}',
    ],
)
def test_a_file_that_is_no_register_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="register"):
        parse_register(text)


def test_a_slug_that_vanishes_stops_the_maker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = json.loads(make_register.PAGE.read_text("utf-8"))
    table["cases"][NATIVE]["server.channel.lost"] = "1.0"
    page = tmp_path / "register.json"
    monkeypatch.setattr(make_register, "PAGE", page)
    page.write_text(json.dumps(table), "utf-8")
    with pytest.raises(ValueError, match=re.escape("server.channel.lost: a slug never vanishes")):
        make_register.render()
    table["retired"]["server.channel.lost"] = {"suite": "1.2", "reason": "x."}
    page.write_text(json.dumps(table), "utf-8")
    assert "server.channel.lost" in make_register.render()
