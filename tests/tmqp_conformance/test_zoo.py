"""The suite is tested by peers that are broken on purpose, and the runner by crashes."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tmqp.testing.conformance import Case, MemoryStage, Result, Verdict
from tmqp_conformance.__main__ import main
from tmqp_conformance.runner import Plan, Runner
from tmqp_conformance.settings import Deviation
from tmqp_conformance.suite import find
from tmqp_conformance.zoo import check
from tmqp_conformance.zoo.broken_servers import BROKEN_SERVERS
from tmqp_conformance.zoo.server import SmallServer

EXISTING = "server.channel.create-existing"


def found(name: str) -> Case:
    each = find(name)
    assert each is not None
    return each


def run(server: SmallServer, *names: str, deviations: tuple[Deviation, ...] = ()) -> list[Result]:
    """Run cases against one server."""
    stage = MemoryStage(server)
    plan = Plan([found(name) for name in names], "z", frozenset(), deviations)
    return [result for result, _ in Runner(plan, lambda: stage).results()]


def test_each_broken_peer_gets_its_verdicts_and_no_others() -> None:
    result = CliRunner().invoke(main, ["self-test"])
    assert result.exit_code == 0, result.output
    count = len(check.animals()) - sum(each.name == check.WHOLE for each in check.animals())
    assert count >= 40
    assert f"{count} of {count} broken peers" in result.output


def test_a_peer_that_gets_another_verdict_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = {"no-pong": ("answers pings", SmallServer)}
    monkeypatch.setattr(check, "BROKEN_SERVERS", faults)
    servers = [each for each in check.animals() if each.role == "server"]
    monkeypatch.setattr(check, "animals", lambda: servers)
    result = CliRunner().invoke(main, ["self-test", "--verbose"])
    assert result.exit_code == 2
    assert "WRONG server no-pong: answers pings" in result.output
    assert ": pass, not hang" in result.output


def test_a_crash_is_the_verdict_of_its_case_and_the_rest_is_not_run() -> None:
    server = BROKEN_SERVERS["crashes-on-long-ids"][1]()
    names = ("server.frame.id-254-bytes", "server.frame.id-255-bytes", EXISTING)
    results = run(server, *names)
    assert [result.verdict for result in results] == [Verdict.PASS, Verdict.CRASH, Verdict.ERROR]
    assert "does not serve a new client" in results[1].message


def test_an_explained_deviation_is_excused() -> None:
    server = BROKEN_SERVERS["conflict-for-duplicate"][1]
    deviation = Deviation("server.channel.*", "409 is the code of our product")
    (plain,) = run(server(), EXISTING)
    (excused,) = run(server(), EXISTING, deviations=(deviation,))
    assert (plain.verdict, excused.verdict) == (Verdict.WRONG_CODE, Verdict.EXCUSED)
    assert excused.message.startswith("wrong-code: ")


def test_a_crash_cannot_be_excused() -> None:
    server = BROKEN_SERVERS["crashes-on-long-ids"][1]()
    (result,) = run(server, "server.frame.id-255-bytes", deviations=(Deviation("*", "x"),))
    assert result.verdict is Verdict.CRASH


def test_a_fault_of_the_tool_is_not_counted_against_the_peer() -> None:
    class Broken(SmallServer):
        def receive(self, number: int, data: bytes, now: float) -> None:
            raise RuntimeError("the stage is broken")

    plan = Plan([found(EXISTING)], "z", frozenset(), probe=False)
    ((result, _),) = Runner(plan, lambda: MemoryStage(Broken())).results()
    assert result.verdict is Verdict.ERROR
    assert "RuntimeError: the stage is broken" in result.message


def test_a_needed_capability_is_named() -> None:
    (result,) = run(SmallServer(), "server.channel.information")
    assert result.verdict is Verdict.UNIMPLEMENTED
    assert result.message == "the peer does not have: admin"
