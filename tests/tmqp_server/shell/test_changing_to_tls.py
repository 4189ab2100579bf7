"""A connection that changes to TLS in the middle: when it may, and what waits meanwhile."""

from __future__ import annotations

from tests.tmqp_server.shell.stage import Stage, marks
from tmqp_server.engine.books import TLS_BYTES
from tmqp_server.shell.steps import EFFECTS, END, READ, WAIT
from tmqp_server.shell.world import Secure


def asked(stage: Stage) -> list[int]:
    """Whose connections are to change."""
    found = [each.session for each in stage.others if isinstance(each, Secure)]
    stage.others.clear()
    return found


def test_it_changes_once_all_that_was_queued_before_has_left() -> None:
    stage = Stage()
    stage.open(1, room=50)
    assert stage.hear(1, "list; tls") == WAIT
    assert asked(stage) == [], "half of the answer is still to be sent"
    stage.read(50)
    assert asked(stage) == [1]
    assert bytes(stage.wires[1].sent) == b"." * 100


def test_what_is_queued_meanwhile_is_for_a_writer_and_nothing_is_read() -> None:
    stage = Stage()
    session = stage.open(1, "join c")
    assert stage.hear(1, "tls") == WAIT
    assert asked(stage) == [1]
    stage.open(2)
    stage.hear(2, "push c m1")
    assert session.words() == ["line:m1"]
    assert bytes(stage.wires[1].sent) == b"", "not in the clear"
    assert stage.writing == [1]
    assert stage.resumed == []
    stage.now = 3.0
    step = stage.turn.secured(1, stage.now)
    assert session.secured_at == [3.0]
    stage._follow(1, step)
    stage.go_on()
    assert (stage.resumed, step & ~EFFECTS) in (([1], WAIT), ([], READ))
    assert session.words() == ["Reply"], "what the session wants then is processed"
    assert stage.hear(1, "list") == READ
    stage.read(1_000)
    assert bytes(stage.wires[1].sent).startswith(b"line:m1\n")


def test_a_connection_may_end_before_it_has_changed() -> None:
    stage = Stage()
    session = stage.open(1)
    stage.hear(1, "tls")
    assert asked(stage) == [1]
    stage._follow(1, stage.turn.broken(1, "the TLS handshake failed: no", stage.now))
    assert stage.closed == {1: "the TLS handshake failed: no"}
    assert stage.turn.secured(1, stage.now) == END
    assert session.secured_at == []


def test_tls_is_charged_until_the_connection_ends() -> None:
    stage = Stage()
    stage.open(1)
    before = stage.hub.broker.statistics().state_bytes
    stage.hear(1, "tls")
    assert stage.hub.broker.statistics().state_bytes == before + TLS_BYTES
    stage.turn.secured(1, stage.now)
    stage.hear(1, "tls")
    assert asked(stage) == [1, 1], "a layer in a layer is the door's business"
    assert stage.hub.broker.statistics().state_bytes == before + TLS_BYTES
    stage.end(1)
    assert stage.hub.broker.statistics().state_bytes < before


def test_without_memory_for_tls_the_connection_is_closed() -> None:
    stage = Stage()
    stage.open(1)
    core = stage.hub.broker._core
    stage.hub.broker.charge(2 * core.limits.max_total_bytes)
    stage.hear(1, "tls")
    assert asked(stage) == []
    assert stage.closed == {1: "there is no memory for TLS"}


def test_a_fault_of_the_session_then_ends_it_alone() -> None:
    stage = Stage()
    session = stage.open(1)
    session.fault = "secured"
    stage.hear(1, "tls")
    stage._follow(1, stage.turn.secured(1, stage.now))
    assert stage.closed == {1: "an internal error"}
    assert [str(each.error) for each in stage.logs] == ["a fault of the door: secured"]


def test_a_peer_that_never_shakes_hands_stalls() -> None:
    """The world gives up the handshake; if it did not, bytes that wait would end it."""
    stage = Stage(marks(stall_s=10.0))
    stage.open(1, "join c")
    stage.hear(1, "tls")
    stage.open(2)
    stage.hear(2, "push c m1")
    stage.pass_time(11.0)
    assert stage.closed == {1: "slow reader: no progress for 10 seconds"}
