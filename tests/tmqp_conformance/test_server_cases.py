"""The cases of the conformance suite against our server, in memory and over a socket."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from tests.project import ROOT
from tests.tmqp_conformance.machines import HubMachine
from tmqp.address import Address
from tmqp.testing.conformance import Case, MemoryStage, Patience, Result, Verdict, case, play
from tmqp.testing.conformance.clients import CLIENT_CASES
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp.testing.conformance.steps import Answer, Open
from tmqp.testing.conformance.talk import hear
from tmqp_conformance.rules import WITHOUT_CASE, coverage
from tmqp_conformance.sockets import ServerStage
from tmqp_server import ServerConfig, running

ALL_CASES = (*SERVER_CASES, *CLIENT_CASES)
RULES = {
    rule["id"]
    for rule in json.loads((ROOT / "fuzz/tmqp_conformance/rules.json").read_text("utf-8"))["rules"]
}
#: What the case of each result may be instead of a pass: with our server nothing is.
GOOD = frozenset({Verdict.PASS, Verdict.INFORMATIONAL})


def complaint(result: Result) -> str:
    """What went wrong, for a failed test."""
    return f"{result.verdict} {result.case.id}: {result.message} (expected {result.expected})"


def test_ids_are_unique_and_rules_exist() -> None:
    ids = Counter(each.id for each in ALL_CASES)
    assert [name for name, count in ids.items() if count > 1] == []
    for each in ALL_CASES:
        assert set(each.requires) <= RULES, each.id


def test_every_rule_has_a_case_or_a_reason_why_not() -> None:
    found = coverage(ALL_CASES)
    # A new extension (x-...) may be tested elsewhere until its behaviour has settled.
    assert [rule for rule in found.uncovered if not rule.startswith("x-")] == []
    assert set(WITHOUT_CASE) & set(found.covered) == set(), "a reason is out of date"
    assert set(WITHOUT_CASE) <= RULES


def test_texts_are_sentences_of_their_own() -> None:
    titles = Counter((each.role, each.title) for each in ALL_CASES)
    assert [title for title, count in titles.items() if count > 1] == []
    for each in ALL_CASES:
        assert each.why[0].isupper(), each.id
        assert each.why.endswith("."), each.id
        assert len(each.title) <= 90, each.id


def test_our_server_passes_in_memory() -> None:
    stage = MemoryStage(HubMachine())
    results = [
        play(each, stage, f"r{number}")
        for number, each in enumerate(SERVER_CASES)
        if "restart-hook" not in each.needs
    ]
    assert [complaint(result) for result in results if result.verdict not in GOOD] == []


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Address]]:
    """Our server on TCP and on a Unix socket."""
    path: Path = tmp_path_factory.mktemp("server") / "sock"
    listen = [Address("127.0.0.1", 0), Address(socket_path=str(path))]
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running(ServerConfig(listen=listen))) as ours,
    ):
        yield list(ours.addresses)


@pytest.mark.parametrize("number", [0, 1])
def test_a_few_cases_pass_over_sockets(addresses: list[Address], number: int) -> None:
    stage = ServerStage(addresses[number])
    patience = Patience(quiet_s=0.02)
    chosen = [each for each in SERVER_CASES if not {"keep-alive", "restart-hook"} & {*each.needs}]
    for place, each in enumerate(chosen[number::9]):
        result = play(each, stage, f"s{place}x{number}", patience)
        assert result.verdict in GOOD, complaint(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "server.x"}, "role.group.name"),
        ({"requires": "48"}, "rules are written"),
        ({"needs": "luck"}, "unknown capability"),
        ({"why": "because"}, "a reason that is a sentence"),
    ],
)
def test_a_case_of_the_wrong_form_is_refused(arguments: dict[str, str], message: str) -> None:
    texts = {"id": "server.x.y", "title": "T", "why": "W.", "requires": "F1", **arguments}
    needs = texts.pop("needs", "")
    script = (Open("a"), hear("a", Answer()))
    with pytest.raises(ValueError, match=message):
        case(texts["id"], texts["title"], texts["why"], texts["requires"], *script, needs=needs)


def test_a_case_without_expectation_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot fail"):
        case("server.x.y", "T", "W.", "F1", Open("a"))


def test_levels_have_roles() -> None:
    each: Case = SERVER_CASES[0]
    assert (each.role, each.group) == ("server", "preamble")
