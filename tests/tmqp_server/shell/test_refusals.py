"""Refused clients: one line each, and not too many about one address."""

from __future__ import annotations

from tests.tmqp_server.admin.stage import Stage
from tmqp_server.shell.refusals import Refusals
from tmqp_server.shell.world import Log


def lines(stage: Stage) -> list[str]:
    return [effect.text for effect in stage.logs if effect.topic == "refusals"]


def test_ten_lines_a_minute_and_then_how_many_were_suppressed() -> None:
    refusals = Refusals()
    assert [refusals.note("a", 1.0) for _ in range(12)] == [0] * 10 + [-1, -1]
    assert refusals.note("b", 1.0) == 0
    assert refusals.note("a", 60.9) == -1
    assert refusals.note("a", 61.0) == 3
    assert refusals.note("a", 61.0) == 0


def test_addresses_are_forgotten_when_there_are_many() -> None:
    refusals = Refusals()
    for number in range(3_000):
        assert refusals.note(str(number), 1.0) == 0
    assert len(refusals._windows) <= 1_024


def test_a_refused_client_is_logged_with_its_id_and_the_code() -> None:
    """The log said ``closed: refused`` and nothing else."""
    stage = Stage(guarded=True)
    stage.policy = lambda _: False
    stage.connect("bad")
    for _ in range(8):
        stage.now += 1.0
        stage.turn.on_deadline(stage.now)
        stage.attend()
    assert lines(stage) == ["unknown: refused client 'bad': 401 its log-in failed"]


def test_a_client_whose_id_is_in_use_is_logged() -> None:
    stage = Stage()
    stage.connect("me")
    stage.connect("me")
    assert lines(stage) == ["unknown: refused client 'me': 503 a client with this id is connected"]
    assert all(isinstance(each, Log) for each in stage.logs)
