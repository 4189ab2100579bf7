"""What ``/metrics`` tells of a server that runs: drains, rates, turns, calls, the audit."""

from __future__ import annotations

from tests.tmqp_server.admin.stage import Stage, value_of, values_of
from tests.tmqp_server.peers import operation, push
from tmqp.constants import OP_CREATE_QUEUE, OP_JOIN
from tmqp_server.access.auditing import AuditLog, Auditor, AuditRecord
from tmqp_server.cluster.relay import ClusterStatistics
from tmqp_server.engine.effects import CallHttp, RouterFailed
from tmqp_server.shell.rates import RateLimits
from tmqp_server.shell.world import Call

CREATE = operation(
    OP_CREATE_QUEUE,
    "c",
    b'{"RequestAcknowledge":true}',
    headers=[("Queue-Id", "1"), ("Queue-Status", "push")],
)


class Nowhere(AuditLog):
    """Keeps nothing."""

    def write(self, record: AuditRecord) -> None:
        """Forget it."""


def test_a_drain_is_seen_with_what_it_waits_for() -> None:
    stage = Stage()
    consumer, producer = stage.connect("k"), stage.connect("p")
    stage.say(consumer, CREATE, operation(OP_JOIN, "c"))
    stage.say(producer, push("c", 1, "m", source="p"))
    assert value_of(stage.metrics(), "tmqp_draining") == 0
    stage.turn.drain(False, stage.now)
    stage.turn.take_effects()
    text = stage.metrics()
    assert value_of(text, "tmqp_draining") == 1
    assert value_of(text, "tmqp_draining_unacknowledged") == 1


def test_rates_that_make_clients_wait_are_counted() -> None:
    stage = Stage()
    producer = stage.connect("p")
    stage.turn.limit_rates(RateLimits(client_messages=1.0, burst_s=1.0), stage.now)
    stage.say(producer, *[push("c", 1, f"m{each}", source="p") for each in range(3)])
    text = stage.metrics()
    assert value_of(text, "tmqp_rate_waits_total", 'rate="client_messages"') == 1
    assert value_of(text, "tmqp_rate_waits_total", 'rate="log_ins"') == 0


def test_turns_are_a_histogram_and_slow_ones_a_counter() -> None:
    stage = Stage()
    pulse = stage.turn.pulse
    pulse.quick, pulse.quick_s = 10, 0.001
    pulse.woke = 1.0
    pulse.end(1.2)
    text = stage.metrics()
    assert value_of(text, "tmqp_turn_seconds_count") == 11
    assert value_of(text, "tmqp_turn_seconds_bucket", 'le="0.0005"') == 10
    assert value_of(text, "tmqp_slow_turns_total") == 1


def test_calls_of_bindings_and_failures_of_routers_are_counted() -> None:
    stage = Stage()
    turn = stage.turn
    for ticket in range(3):
        stage.hub.outside.append(CallHttp(ticket, "GET", "http://h/", [], b""))
    stage.hub.outside.append(RouterFailed("r", ValueError("no")))
    turn.perform((), stage.now)
    calls = [each for each in turn.take_effects() if isinstance(each, Call)]
    for call, status in zip(calls, (200, 503), strict=False):
        turn.answered(call, status, b"", stage.now + 0.2)
    stage.now += 60.0
    turn.on_deadline(stage.now)
    turn.take_effects()
    text = stage.metrics()
    assert values_of(text, "tmqp_http_binding_calls_total") == {
        'result="2xx"': 1,
        'result="5xx"': 1,
        'result="given_up"': 1,
    }
    assert value_of(text, "tmqp_http_binding_seconds_count") == 2
    assert value_of(text, "tmqp_router_failures_total") == 1


def test_the_audit_the_cluster_and_the_certificate_are_seen() -> None:
    stage = Stage()
    stage.hub.auditor = Auditor(Nowhere())
    stage.world.cluster = ClusterStatistics()
    stage.world.cluster.forwarded = 7
    stage.world.certificate_expires_s = lambda: 2e9
    stage.world.audit_fails = lambda: True
    stage.say(stage.connect("p"), CREATE, CREATE)
    text = stage.metrics()
    allowed = 'action="create-queue",result="allowed"'
    assert value_of(text, "tmqp_audit_records_total", allowed) == 1
    assert value_of(text, "tmqp_audit_records_total", allowed.replace("allowed", "refused")) == 1
    assert value_of(text, "tmqp_audit_failing") == 1
    assert value_of(text, "tmqp_cluster_messages_total", 'what="forwarded"') == 7
    assert value_of(text, "tmqp_tls_certificate_expiry_timestamp_seconds") == 2e9
    assert sum(values_of(text, "tmqp_events_total").values()) > 0


def test_lines_that_are_left_out_of_the_log_are_counted() -> None:
    stage = Stage()
    for number in range(15):
        stage.turn.pulse.woke = float(number)
        slow = stage.turn.pulse.end(number + 0.5)
        assert slow is not None
        stage.turn.turn_was_slow(slow)
    assert value_of(stage.metrics(), "tmqp_log_suppressed_total") == 5
