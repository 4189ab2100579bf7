"""What is counted, as ``/metrics`` tells it: it is right, and no counter ever falls."""

from __future__ import annotations

import gzip
from collections import deque
from itertools import pairwise
from typing import Final

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from tests.tmqp_server.admin.api_stage import ApiStage
from tests.tmqp_server.admin.stage import Stage, value_of, values_of
from tests.tmqp_server.doors.http.stage import request
from tests.tmqp_server.peers import operation, push
from tests.tmqp_server.shell.stage import StubWire
from tmqp.constants import (
    OP_CREATE_QUEUE,
    OP_JOIN,
    OP_REMOVE_CHANNEL,
    TYPE_ACKNOWLEDGE,
)
from tmqp.frames import Frame
from tmqp_server.access.gate import Question
from tmqp_server.admin.metrics.catalogue import CATALOGUE, COUNTER
from tmqp_server.engine.commands import RemoveQueue
from tmqp_server.shell.saving import Saving
from tmqp_server.storage.journal import Journal

CREATE: Final = operation(
    OP_CREATE_QUEUE,
    "c",
    b'{"RequestAcknowledge":true}',
    headers=[("Queue-Id", "1"), ("Queue-Status", "push")],
)
JOIN: Final = operation(OP_JOIN, "c")


def ack(message_id: str, source: str) -> Frame:
    return Frame.build(TYPE_ACKNOWLEDGE, "c", 1, message_id=message_id, source=source)


def one_of(text: str, name: str) -> float:
    """The sum of all values of a metric."""
    return sum(values_of(text, name).values())


def with_messages(stage: Stage) -> tuple[int, int]:
    """A producer and a consumer, three messages of which one is acknowledged."""
    producer, consumer = stage.connect("p"), stage.connect("k")
    stage.say(producer, CREATE)
    stage.say(consumer, JOIN)
    for number in range(3):
        stage.say(producer, push("c", 1, f"m{number}", pending_acknowledge=True, source="p"))
    stage.say(consumer, ack("m0", "k"))
    return producer, consumer


def test_messages_are_counted_by_door_and_by_queue() -> None:
    stage = Stage(metrics_queues=("c",))
    with_messages(stage)
    text = stage.metrics()
    assert value_of(text, "tmqp_messages_received_total", 'door="tmqp"') == 3
    assert value_of(text, "tmqp_messages_delivered_total", 'door="tmqp"') == 3
    assert value_of(text, "tmqp_acknowledges_total", 'door="tmqp",kind="positive"') == 1
    assert value_of(text, "tmqp_sessions", 'door="tmqp"') == 2
    assert value_of(text, "tmqp_subscriptions", 'door="tmqp"') == 1
    assert value_of(text, "tmqp_queues_done_total") == 1
    assert value_of(text, "tmqp_queues_messages", 'state="in_flight"') == 2
    assert value_of(text, "tmqp_confirms_total", 'result="positive"') == 3
    chosen = 'channel="c",queue="1"'
    assert value_of(text, "tmqp_queue_received_total", chosen) == 3
    assert value_of(text, "tmqp_queue_messages", f'{chosen},state="in_flight"') == 2
    assert value_of(text, "tmqp_queue_consumers", chosen) == 1


def test_queues_that_nobody_chose_are_only_summed() -> None:
    stage = Stage(metrics_queues=("d*", "c/7"))
    with_messages(stage)
    text = stage.metrics()
    assert not values_of(text, "tmqp_queue_received_total")
    assert value_of(text, "tmqp_queues_received_total") == 3


def test_queues_beyond_the_most_are_summed() -> None:
    stage = Stage(metrics_queues=("*",), max_metrics_queues=2)
    producer = stage.connect("p")
    for number in range(5):
        stage.say(producer, push("c", number, f"m{number}", source="p"))
    text = stage.metrics()
    received = values_of(text, "tmqp_queue_received_total")
    assert received == {
        'channel="c",queue="0"': 1,
        'channel="c",queue="1"': 1,
        'channel="(others)",queue=""': 3,
    }
    assert value_of(text, "tmqp_metrics_queues_left_out") == 3


def test_no_counter_falls_when_queues_and_sessions_end() -> None:
    """What queues and sessions have counted went with them."""
    stage = Stage()
    producer, consumer = with_messages(stage)
    pages = [stage.metrics()]
    stage.end(consumer)
    pages.append(stage.metrics())
    stage.say(producer, operation(OP_REMOVE_CHANNEL, "c"))
    stage.now += 1.0
    stage.turn.on_deadline(stage.now)
    pages.append(stage.metrics())
    stage.end(producer)
    pages.append(stage.metrics())
    counters = {each.full_name for each in CATALOGUE if each.kind == COUNTER}
    for before, after in pairwise(pages):
        for name in counters:
            old, new = values_of(before, name), values_of(after, name)
            for labels, value in old.items():
                assert new[labels] >= value, f"{name}{{{labels}}} fell"
    assert value_of(pages[-1], "tmqp_queues_received_total") == 3
    assert value_of(pages[-1], "tmqp_messages_delivered_total", 'door="tmqp"') == 3
    # The queue's messages are counted as cleared after it has gone.
    assert value_of(pages[-1], "tmqp_queues_cleared_total") == 2
    assert value_of(pages[-1], "tmqp_queues") == 0


def test_a_queue_that_goes_while_a_survey_is_taken_is_counted_once() -> None:
    stage = Stage()
    producer = stage.connect("p")
    for number in range(4):
        stage.say(producer, push("c", number, f"m{number}", source="p"))
    survey = stage.hub.broker.survey()
    assert not survey.go_on(stage.now, 2)  # the channel, and a queue
    for number in (0, 3):  # one that was looked at, and one that was not
        stage.hub.broker.step(RemoveQueue(producer, None, "c", number), stage.now)
    while not survey.go_on(stage.now, 1):
        pass
    assert survey.total.counters.received == 4
    assert survey.queues == 3


def test_messages_that_wait_are_observed_with_their_age() -> None:
    stage = Stage()
    producer, consumer = stage.connect("p"), stage.connect("k")
    stage.say(producer, CREATE)
    stage.say(producer, push("c", 1, "m0", source="p"))
    stage.now += 3.0
    text = stage.metrics()
    assert value_of(text, "tmqp_queues_oldest_age_seconds") == pytest.approx(5.0)
    assert value_of(text, "tmqp_queues_without_consumers") == 1
    assert value_of(text, "tmqp_push_to_delivery_seconds_count") == 0
    stage.say(consumer, JOIN)
    stage.say(producer, push("c", 1, "m1", source="p"))
    text = stage.metrics()
    assert value_of(text, "tmqp_push_to_delivery_seconds_count") == 2
    assert value_of(text, "tmqp_push_to_delivery_seconds_bucket", 'le="0.0005"') == 1
    assert value_of(text, "tmqp_push_to_delivery_seconds_sum") == pytest.approx(5.0)
    assert value_of(text, "tmqp_queues_without_consumers") == 0


def test_a_message_that_is_sent_again_is_redelivered_and_observed_once() -> None:
    stage = Stage()
    _, consumer = with_messages(stage)
    stage.end(consumer)
    for _ in range(40):
        stage.now += 5.0
        stage.turn.on_deadline(stage.now)
    stage.say(stage.connect("again"), JOIN)
    text = stage.metrics()
    again = value_of(text, "tmqp_queues_redelivered_total")
    assert again == value_of(text, "tmqp_queues_sent_total") - 3
    assert value_of(text, "tmqp_push_to_delivery_seconds_count") == 3


def test_refused_pushes_are_counted_by_what_their_producers_were_told() -> None:
    stage = Stage()
    producer = stage.connect("p")
    limited = b'{"MessageLimit":1}'
    headers = [("Queue-Id", "1"), ("Queue-Status", "pull")]
    stage.say(producer, operation(OP_CREATE_QUEUE, "c", limited, headers=headers))
    for number in range(3):
        stage.say(producer, push("c", 1, f"m{number}", source="p"))
    text = stage.metrics()
    assert value_of(text, "tmqp_pushes_refused_total", 'reason="limit"') == 2
    assert value_of(text, "tmqp_queues_refused_total") == 2


def test_limits_that_pushes_reach_are_counted_and_those_that_wait_are_not() -> None:
    """A push that waits for room was counted each time that it was tried."""
    stage = Stage()
    producer = stage.connect("p")
    limited = b'{"MessageLimit":1}'
    headers = [("Queue-Id", "1"), ("Queue-Status", "pull")]
    stage.say(producer, operation(OP_CREATE_QUEUE, "c", limited, headers=headers))
    for number in range(3):
        stage.say(producer, push("c", 1, f"m{number}", source="p"))
    waits = push("c", 1, "w", source="p", pending_acknowledge=True, headers=[("Wait", "10000")])
    stage.say(producer, waits)
    for _ in range(20):
        stage.now += 0.3
        stage.turn.on_deadline(stage.now)
    text = stage.metrics()
    assert value_of(text, "tmqp_limit_reached_total", 'limit="queue_options"') == 2
    assert value_of(text, "tmqp_limit_used_ratio", 'limit="max_channels"') == 1 / 10_000


def test_connections_whose_peers_broke_the_protocol_are_counted_by_the_rule() -> None:
    stage = Stage()
    for said in (b"\xff" * 64, b"TMQP/9.9" + b"x" * 64):
        stage.turn.opened(number := stage.new_number(), stage.native, StubWire(), "h", stage.now)
        stage.say(number, said)
    stage.get("/healthz", ("Content-Length", "-"))
    text = stage.metrics()
    assert values_of(text, "tmqp_protocol_errors_total") == {
        'door="admin",rule="syntax"': 1,
        'door="tmqp",rule="preamble"': 2,
    }


def test_streams_are_counted_while_they_go_on_however_they_end() -> None:
    """One whose connection was cut was counted for ever."""
    stage = Stage()
    numbers = []
    for _ in range(2):
        numbers.append(number := stage.new_number())
        stage.turn.opened(number, stage.admin, StubWire(), "host", stage.now)
        stage.say(number, request("GET", "/api/v1/events?kind=ClientConnected", None))
    assert value_of(stage.metrics(), "tmqp_event_streams") == 2
    stage.end(numbers[0])
    stage.turn.broken(numbers[1], "reset", stage.now)
    text = stage.metrics()
    assert value_of(text, "tmqp_event_streams") == 0
    assert value_of(text, "tmqp_metrics_collect_seconds_count") >= 1


def test_events_are_counted_by_their_names_and_routers_with_what_is_published() -> None:
    stage = Stage()
    stage.say(stage.connect("p"), CREATE)
    text = stage.metrics()
    assert value_of(text, "tmqp_events_total", 'event="QueueCreated"') == 1
    assert value_of(text, "tmqp_routers") == 0
    assert value_of(text, "tmqp_transactions") == 0
    assert value_of(text, "tmqp_readers", 'kind="held_reads"') == 0
    assert value_of(text, "tmqp_router_published_total") == 0


def test_connections_are_counted_by_how_they_ended() -> None:
    stage = Stage()
    stage.end(stage.connect("a"))
    broken = stage.connect("b")
    stage.turn.broken(broken, "reset", stage.now)
    wrong = stage.connect("c")
    stage.say(wrong, b"\xff" * 64)
    stage.count_refused("memory")
    stage.connect("stays")
    text = stage.metrics()
    closed = values_of(text, "tmqp_connections_closed_total")
    assert {labels: count for labels, count in closed.items() if "tmqp" in labels} == {
        'door="tmqp",reason="client"': 1,
        'door="tmqp",reason="broken"': 1,
        'door="tmqp",reason="server"': 1,
    }
    assert value_of(text, "tmqp_connections", 'door="tmqp"') == 1
    assert value_of(text, "tmqp_connections_opened_total", 'door="tmqp"') == 4
    assert value_of(text, "tmqp_connections_refused_total", 'reason="memory"') == 1


def test_bytes_are_counted_that_were_sent_at_once_and_later() -> None:
    stage = Stage()
    producer, consumer = stage.connect("p"), stage.connect("k")
    stage.say(producer, CREATE)
    stage.say(consumer, JOIN)
    wire = stage.wires[consumer]
    wire.room = 100
    stage.say(producer, push("c", 1, "m", b"x" * 1_000, source="p"))
    text = stage.metrics()
    waiting = value_of(text, "tmqp_outbound_waiting_bytes")
    assert waiting > 900
    wire.room = 1_000_000
    while piece := stage.turn.piece(consumer):
        count = wire.send(piece[stage.turn.offset(consumer) :])
        stage.turn.taken(consumer, count, stage.now)
    sent = sum(len(stage.wires[each].sent) for each in (producer, consumer))
    assert value_of(stage.metrics(), "tmqp_sent_bytes_total", 'door="tmqp"') == sent


def test_log_ins_and_refusals_are_counted() -> None:
    stage = Stage(guarded=True)
    stage.connect("good")
    stage.policy = lambda question: question.right != "authenticate"
    stage.connect("bad")
    stage.policy = lambda _: True
    stage.now += 1.0
    stage.turn.on_deadline(stage.now)
    stage.attend()
    text = stage.metrics()
    assert value_of(text, "tmqp_authentications_total", 'door="tmqp",result="admitted"') == 1
    assert value_of(text, "tmqp_authentications_total", 'door="tmqp",result="refused"') == 1
    assert value_of(text, "tmqp_connections_closed_total", 'door="tmqp",reason="refused"') == 1


# --- Who may see it ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "right"),
    [("/metrics", "see-metrics"), ("/api/v1/server/health", "see-server")],
)
def test_admin_needs_its_right_and_no_other(target: str, right: str) -> None:
    def only(question: Question) -> bool:
        return question.right in ("authenticate", right)

    def all_but(question: Question) -> bool:
        return question.right != right

    stage = Stage(guarded=True)
    stage.policy = only
    assert stage.get(target)[0] == 200
    stage.policy = all_but
    assert stage.get(target)[0] == 403
    stage.policy = lambda _: True
    assert value_of(stage.metrics(), "tmqp_permission_denied_total", f'right="{right}"') == 1


def test_a_client_that_may_not_log_in_sees_nothing() -> None:
    stage = Stage(guarded=True)
    stage.policy = lambda _: False
    assert stage.get("/metrics")[0] == 401
    assert stage.get("/api/v1/server/health")[0] == 401
    assert stage.get("/healthz") == (200, "alive\n")
    assert stage.get("/readyz") == (200, "ready\n")


def test_anonymous_metrics_ask_nobody() -> None:
    stage = Stage(guarded=True, anonymous_metrics=True)
    stage.policy = lambda _: False
    assert stage.get("/metrics")[0] == 200
    assert stage.get("/api/v1/server/health")[0] == 401


# --- The formats ---------------------------------------------------------------------------------


def test_prometheus_reads_both_formats() -> None:
    stage = Stage(metrics_queues=("*",))
    with_messages(stage)
    stage.metrics()  # whose connection is over, and counted as such
    text = stage.metrics()
    older = {family.name: family for family in prometheus(text)}
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    stage.now += 2.0
    newer_text = stage.get("/metrics", ("Accept", accept))[1]
    newer = {family.name: family for family in openmetrics(newer_text)}
    assert older.keys() == newer.keys()
    declared = {each.family: each for each in CATALOGUE}
    for name, family in newer.items():
        assert family.type == declared[name].kind
        assert family.documentation == declared[name].text
        assert family.unit == declared[name].unit
    series = sum(len(family.samples) for family in older.values())
    assert value_of(text, "tmqp_metrics_series") == series


def test_a_page_is_shared_for_a_second() -> None:
    stage = Stage()
    stage.metrics()
    first = stage.metrics()
    producer = stage.connect("p")
    stage.say(producer, push("c", 1, "m", source="p"))
    stage.now += 0.5
    assert stage.get("/metrics")[1] == first
    assert value_of(stage.metrics(), "tmqp_queues_received_total") == 1


@pytest.mark.parametrize(
    ("queues", "accepted", "packed"),
    [
        (120, "br, gzip;q=0.8", True),
        (120, "gzip;q=0", False),
        (120, "br", False),
        (1, "gzip", False),
    ],
)
def test_a_large_page_is_compressed_for_who_takes_that(
    queues: int, accepted: str, packed: bool
) -> None:
    stage = ApiStage(metrics_queues=("*",))
    producer = stage.connect("p")
    for number in range(queues):
        stage.say(producer, push("c", number, f"{number}", source="p"))
    plain = stage.caller().get("/metrics")
    answer = stage.caller().get("/metrics", Accept_Encoding=accepted)
    assert (answer.headers.get("Content-Encoding") == "gzip") == packed
    assert "Accept-Encoding" in answer.headers["Vary"]
    if packed:
        assert len(plain.body) > 5 * len(answer.body)
    assert (gzip.decompress(answer.body) if packed else answer.body) == plain.body


def test_a_long_page_is_made_in_portions() -> None:
    """Ten thousand queues were walked together, and nobody was served meanwhile."""
    stage = Stage()
    producer = stage.connect("p")
    for number in range(1_200):
        channel = f"c{number % 3}"
        stage.say(producer, push(channel, number, f"{number}", source="p"))
    survey = stage.hub.broker.survey()
    portions = 1
    while not survey.go_on(stage.now):
        portions += 1
    assert portions == 10
    assert survey.queues == 1_200


# --- Probes --------------------------------------------------------------------------------------


def test_probes_tell_whether_the_server_is_alive_and_ready() -> None:
    stage = Stage()
    world = stage.world
    world.beat_s = stage.now
    assert stage.get("/healthz") == (200, "alive\n")
    stage.now += 11.0
    assert stage.get("/healthz") == (503, "stuck\n")
    assert stage.get("/readyz") == (200, "ready\n")
    world.draining = True
    assert stage.get("/readyz") == (503, "unready\n")
    status, text = stage.get("/api/v1/server/health")
    assert (status, '"draining"' in text, '"alive":false' in text) == (200, True, True)


def test_a_server_is_not_ready_while_it_starts_or_cannot_save() -> None:
    """Whether it is alive has nothing to do with either."""
    stage = Stage()
    world = stage.world
    world.beat_s = stage.now
    world.listening = False
    assert stage.get("/readyz") == (503, "unready\n")
    assert '"starting"' in stage.get("/api/v1/server/health")[1]
    world.listening = True
    saving = stage.turn.saving = Saving(Journal([]), [], deque())
    assert stage.get("/readyz") == (200, "ready\n")
    saving.failing = "the disk is full"
    assert stage.get("/readyz") == (503, "unready\n")
    assert stage.get("/readyz?storage=ignore") == (200, "ready\n")
    assert '"storage"' in stage.get("/api/v1/server/health")[1]
    assert stage.get("/healthz") == (200, "alive\n")
    saving.failing = ""
    assert stage.get("/readyz") == (200, "ready\n")


@pytest.mark.parametrize("target", ["/metrics?x=1", "/healthz?x", "/readyz?storage=maybe"])
def test_unknown_parameters_are_refused(target: str) -> None:
    assert Stage().get(target)[0] == 400
