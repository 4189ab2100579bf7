"""Queues over plain HTTP, alone and together with TMQP clients."""

from __future__ import annotations

import base64

import pytest

from tests.tmqp_server.doors.http.stage import QUEUE, Stage, request
from tests.tmqp_server.outputs import questions
from tests.tmqp_server.peers import ack, operation, push
from tmqp.blocks import FLAG_DOOR_SHIFT
from tmqp.constants import (
    OP_JOIN,
    OP_REMOVE_CHANNEL,
    OP_REMOVE_QUEUE,
    STATUS_PULL,
    TYPE_ACKNOWLEDGE,
    TYPE_QUEUE_MESSAGE,
)
from tmqp_server.access.gate import AUTHENTICATE, Verdict
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.engine.commands import Connect, CreateQueue
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges
from tmqp_server.storage.port import StoreBatch


def test_a_tmqp_consumer_gets_what_was_published_by_http() -> None:
    stage = Stage()
    consumer = stage.open_native("ann")
    consumer.say(operation(OP_JOIN, "orders"))
    peer = stage.open()
    peer.ask("POST", f"{QUEUE}/messages?id=m1&priority=high", b"\x00\xff", ("Content-Type", "a/b"),
             ("Tmqp-Header-Country", "fr\u00e9".encode().decode("latin-1")))  # fmt: skip
    [_, delivery] = consumer.frames()
    assert (delivery.type, delivery.message_id) == (TYPE_QUEUE_MESSAGE, "m1")
    assert (delivery.target, delivery.content_type) == ("orders", 1)
    assert (delivery.payload, delivery.high_priority) == (b"\x00\xff", True)
    assert delivery.header("content-type") == "a/b"
    assert delivery.header("Country") is not None
    assert delivery.source
    assert delivery.ttl == 15


def test_an_http_consumer_gets_what_was_pushed_by_tmqp() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    producer = stage.open_native("bob")
    producer.say(
        push("orders", 1, "m1", b"hello", source="bob", headers=[("Country", "fr\u00e9")]),
        push("orders", 1, "m2", b"\xff\x00", source="bob"),
    )
    answer = stage.open().ask("POST", f"{QUEUE}/deliveries?max=5")
    first, second = answer.items
    assert first == {
        "id": "m1",
        "source": "bob",
        "sequence": 1,
        "attempt": 1,
        "headers": [["Country", "fr\u00e9"]],
        "text": "hello",
    }
    assert base64.b64decode(second["base64"]) == b"\xff\x00"
    [queue] = stage.broker.queues()
    assert queue.live() == 0  # ack=auto


def test_one_message_comes_raw_to_who_wants_it_so() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    peer = stage.open()
    raw = ("Accept", "application/octet-stream")
    empty = peer.ask("POST", f"{QUEUE}/deliveries", None, raw)
    assert (empty.status, empty.body) == (204, b"")
    fields = [("Content-Type", "image/png"), ("Tmqp-Header-Country", "fr")]
    peer.ask("POST", f"{QUEUE}/messages?id=m1", b"\x89PNG\xff", *fields)
    answer = peer.ask("POST", f"{QUEUE}/deliveries", None, raw)
    assert (answer.status, answer.body) == (200, b"\x89PNG\xff")
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["tmqp-message-id"] == "m1"
    assert answer.headers["tmqp-header-country"] == "fr"
    assert peer.ask("POST", f"{QUEUE}/deliveries?max=2", None, raw).status == 406
    assert peer.ask("POST", f"{QUEUE}/deliveries", None, ("Accept", "text/html")).status == 406


def test_a_header_that_no_field_can_carry_is_left_out_of_a_raw_answer() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    headers = [("Content-Type", "a\x01b"), ("not a token", "x"), ("Ok", "y"), ("Odd", "a\x00")]
    stage.open_native("bob").say(push("orders", 1, "m1", b"x", source="bob", headers=headers))
    raw = ("Accept", "application/octet-stream")
    answer = stage.open().ask("POST", f"{QUEUE}/deliveries", None, raw)
    assert answer.headers["content-type"] == "application/octet-stream"
    names = [name for name in answer.headers if name.startswith("tmqp-header-")]
    assert names == ["tmqp-header-ok"]


def test_a_message_taken_by_hand_is_acknowledged_once() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    peer = stage.open()
    for name in ("m1", "m2"):
        peer.ask("POST", f"{QUEUE}/messages?id={name}", b"x")
    items = peer.ask("POST", f"{QUEUE}/deliveries?max=2&ack=manual").items
    assert [each["id"] for each in items] == ["m1", "m2"]
    [queue] = stage.broker.queues()
    assert queue.live() == 2
    assert stage.open().ask("POST", f"{QUEUE}/deliveries/m1/ack").status == 404
    assert peer.ask("POST", f"{QUEUE}/deliveries/m1/ack").status == 204
    assert peer.ask("POST", f"{QUEUE}/deliveries/m1/ack").status == 404
    assert peer.ask("POST", f"{QUEUE}/deliveries/m2/nack?reason=odd").status == 204
    assert queue.live() == 0  # its handler does not put refused messages back


def test_what_a_lost_connection_had_taken_comes_again() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull", AcknowledgeTimeout=5_000)
    peer = stage.open()
    peer.ask("POST", f"{QUEUE}/messages?id=m1", b"x")
    assert peer.ask("POST", f"{QUEUE}/deliveries?ack=manual").items
    peer.hang_up()
    other = stage.open()
    assert other.ask("POST", f"{QUEUE}/deliveries").items == []
    other.say(request("POST", f"{QUEUE}/deliveries?wait=20"))
    stage.sleep(16.0)
    [item] = other.answer("POST").items
    assert (item["id"], item["attempt"]) == ("m1", 2)


def test_the_consumers_acknowledge_reaches_an_http_producer() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push", handler="ack-consumer")
    consumer = stage.open_native("ann")
    consumer.say(operation(OP_JOIN, "orders"))
    peer = stage.open()
    for name, reason, status in (("m1", None, 201), ("m2", "no oven", 409)):
        peer.say(request("POST", f"{QUEUE}/messages?id={name}", b"x"))
        assert peer.raw() == b""
        consumer.say(ack(consumer.frames()[-1], reason, source="ann"))
        answer = peer.answer("POST")
        assert answer.status == status
        assert (reason or "") in answer.json.get("detail", "")


def test_the_acknowledge_of_an_http_consumer_reaches_a_tmqp_producer() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull", handler="ack-consumer")
    producer = stage.open_native("bob")
    for name in ("m1", "m2"):
        producer.say(push("orders", 1, name, source="bob", pending_acknowledge=True))
    peer = stage.open()
    peer.ask("POST", f"{QUEUE}/deliveries?max=2&ack=manual")
    peer.ask("POST", f"{QUEUE}/deliveries/m1/ack")
    peer.ask("POST", f"{QUEUE}/deliveries/m2/nack?reason=sold%20out")
    good, bad = producer.frames()
    assert (good.type, good.message_id, good.header("Nack-Reason")) == (
        TYPE_ACKNOWLEDGE, "m1", None,
    )  # fmt: skip
    assert (bad.message_id, bad.header("Nack-Reason")) == ("m2", "sold out")


def test_a_durable_message_is_confirmed_when_it_is_saved_and_read_again_after_a_restart() -> None:
    stage = Stage(storage=True)
    stage.make_queue("orders", 1, "pull", durable=True)
    peer = stage.open().say(request("POST", f"{QUEUE}/messages?id=m1", b"kept"))
    assert peer.raw() == b""
    assert stage.journal is not None
    writing = stage.journal.take()
    assert isinstance(writing.batch, StoreBatch)
    [[kept]] = writing.batch.appended.values()
    answer = stage.journal.finished(writing, True)
    assert answer is not None
    stage.hub.perform(answer, stage.now)
    stage.settle()
    assert peer.answer("POST").status == 201
    assert kept.body[kept.payload_offset :] == b"kept"
    _, message_id, source, channel, size = stage.door.restored(kept.body)
    assert (message_id, channel, size) == ("m1", "orders", len(kept.body))
    assert source
    assert (kept.flags >> FLAG_DOOR_SHIFT) & 0xFF == 9
    with pytest.raises(ValueError, match="not exactly one message"):
        stage.door.restored(kept.body[:-1])
    assert stage.door.restored(kept.body)[1] == "m1"


def test_a_message_that_could_not_be_saved_is_answered_with_503() -> None:
    stage = Stage(storage=True)
    stage.make_queue("orders", 1, "pull", durable=True)
    peer = stage.open().say(request("POST", f"{QUEUE}/messages?id=m1", b"x"))
    stage.save(good=False)
    answer = peer.answer("POST")
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"


def test_a_publish_that_is_not_confirmed_in_time_is_accepted() -> None:
    stage = Stage(storage=True)
    stage.make_queue("orders", 1, "pull", durable=True)
    peer = stage.open().say(request("POST", f"{QUEUE}/messages?id=m1&wait=2", b"x"))
    stage.sleep(1.9)
    assert peer.raw() == b""
    stage.sleep(0.2)
    answer = peer.answer("POST")
    assert (answer.status, answer.json) == (202, {"id": "m1"})
    stage.save()  # the late confirm is nobody's
    assert peer.ask("GET", "/healthz").status == 200


def test_an_id_under_way_is_not_published_again() -> None:
    stage = Stage(storage=True)
    stage.make_queue("orders", 1, "pull", durable=True)
    peer = stage.open().say(request("POST", f"{QUEUE}/messages?id=m1", b"x") * 2)
    stage.save()
    assert [each.status for each in peer.answers("POST")] == [201, 409]


def test_a_take_waits_for_messages() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    peer, other = stage.open(), stage.open()
    peer.say(request("POST", f"{QUEUE}/deliveries?wait=10"))
    stage.sleep(5.0)
    assert peer.raw() == b""
    other.ask("POST", f"{QUEUE}/messages?id=m1", b"x")
    stage.sleep(0.5)
    assert [each["id"] for each in peer.answer("POST").items] == ["m1"]


def test_a_cache_queue_shows_its_latest_message_and_keeps_it() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "cache")
    peer = stage.open()
    assert peer.ask("GET", f"{QUEUE}/messages/latest").status == 404
    for body in (b"old", b"new"):
        peer.ask("POST", f"{QUEUE}/messages", body)
    for _ in range(2):
        [item] = peer.ask("GET", f"{QUEUE}/messages/latest").items
        assert item["text"] == "new"
    raw = peer.ask("GET", f"{QUEUE}/messages/latest", None, ("Accept", "application/octet-stream"))
    assert raw.body == b"new"


def test_looking_for_the_latest_takes_nothing_from_a_pull_queue() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    peer = stage.open()
    peer.ask("POST", f"{QUEUE}/messages", b"x")
    assert peer.ask("GET", f"{QUEUE}/messages/latest").status == 409
    [queue] = stage.broker.queues()
    assert queue.waiting_count() == 1


def test_asking_creates_nothing() -> None:
    stage = Stage()
    peer = stage.open()
    assert peer.ask("POST", f"{QUEUE}/deliveries?wait=5").status == 404
    assert peer.ask("GET", f"{QUEUE}/messages/latest").status == 404
    assert stage.broker.statistics().channels == 0


def test_an_http_client_leaves_other_queues_of_a_channel_alone() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    stage.make_queue("orders", 2, "push")
    stage.make_queue("orders", 3, "broadcast")
    peer = stage.open()
    assert peer.ask("POST", f"{QUEUE}/deliveries").items == []
    peer.say(request("POST", f"{QUEUE}/deliveries?wait=30"))
    producer = stage.open_native("bob")
    producer.say(push("orders", 2, "m2", source="bob"), push("orders", 3, "m3", source="bob"))
    stage.sleep(1.0)
    assert peer.raw() == b""
    consumer = stage.open_native("ann")
    consumer.say(operation(OP_JOIN, "orders"))
    frames = [each for each in consumer.frames() if each.type == TYPE_QUEUE_MESSAGE]
    assert [each.message_id for each in frames] == ["m2"]


def test_the_times_of_a_publish_stood_in_no_header_of_its_message() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    peer = stage.open()
    target = f"{QUEUE}/messages?expires_ms=60000&deliver_at_ms=1"
    # What the query says counts, and is said once.
    fields = [("Tmqp-Header-message-timeout", "1"), ("Tmqp-Header-Kind", "order")]
    assert peer.ask("POST", target, b"x", *fields).status == 201
    (item,) = peer.ask("POST", f"{QUEUE}/deliveries", b"").items
    assert item["headers"] == [
        ["Kind", "order"],
        ["Deliver-At", "1"],
        ["Message-Timeout", "60000"],
    ]


def test_a_queue_is_looked_at() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    peer = stage.open()
    peer.ask("POST", f"{QUEUE}/messages?id=m1&priority=high&expires_ms=60000", b"one")
    peer.ask("POST", f"{QUEUE}/messages?id=m2&delay_ms=5000", b"\xff")
    now_ms = (stage.now + stage.door.context.offset_s) * 1_000
    first, second = peer.ask("GET", f"{QUEUE}/messages").items
    assert peer.ask("GET", f"{QUEUE}/messages").items == [first, second]
    source = first.pop("source")
    assert source
    assert abs(first.pop("expires_at_ms") - now_ms - 60_000) <= 1
    assert first == {
        "id": "m1",
        "sequence": 1,
        "state": "waiting",
        "attempts": 0,
        "priority": "high",
        "headers": [["Message-Timeout", "60000"]],
        "text": "one",
    }
    assert (second["state"], second["base64"]) == ("deferred", "/w==")
    assert abs(second["due_at_ms"] - now_ms - 5_000) <= 1
    for query, expected in (
        ("max=1", ["m1"]),
        ("from=2", ["m2"]),
        ("state=deferred", ["m2"]),
        ("state=in-flight", []),
        ("id=m1", ["m1"]),
        ("filter=message-timeout%3D6*", ["m1"]),
        ("filter=!message-timeout", ["m2"]),
        ("filter=on&filter_language=prefix", ["m1"]),
    ):
        found = peer.ask("GET", f"{QUEUE}/messages?{query}").items
        assert [each["id"] for each in found] == expected
    for query in ("state=gone", "filter=%3Dx", "filter_language=prefix"):
        assert peer.ask("GET", f"{QUEUE}/messages?{query}").status == 400
    assert peer.ask("GET", "/api/v1/channels/none/queues/1/messages").status == 404


def test_receivers_are_counted_if_asked() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push")
    consumer = stage.open_native("ann")
    consumer.say(operation(OP_JOIN, "orders"))
    peer = stage.open()
    answer = peer.ask("POST", f"{QUEUE}/messages?id=m1&receivers=yes", b"x")
    assert (answer.status, answer.json) == (201, {"id": "m1", "receivers": 1})
    assert peer.ask("POST", f"{QUEUE}/messages?id=m2", b"x").json == {"id": "m2"}
    assert peer.ask("POST", f"{QUEUE}/messages?receivers=1", b"x").status == 400


def test_a_message_is_deferred_and_cancelled() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    peer = stage.open()
    at_ms = int((stage.now + stage.door.context.offset_s) * 1_000) + 2_000
    for query in ("id=m1&delay_ms=1000", f"id=m2&deliver_at_ms={at_ms}", "id=m3&deliver_at_ms=1"):
        assert peer.ask("POST", f"{QUEUE}/messages?{query}", b"x").status == 201
    peer.ask("POST", f"{QUEUE}/messages?id=m4&delay_ms=1000", b"x")
    assert peer.ask("DELETE", f"{QUEUE}/messages/m4").status == 204
    assert peer.ask("DELETE", f"{QUEUE}/messages/m4").status == 404
    come = []
    for _ in range(3):
        come.append([each["id"] for each in peer.ask("POST", f"{QUEUE}/deliveries?max=9").items])
        stage.sleep(1.1)
    assert come == [["m3"], ["m1"], ["m2"]]
    assert peer.ask("POST", f"{QUEUE}/messages?delay_ms=1000000000000", b"x").status == 409


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("POST", f"{QUEUE}/messages?wait=-1", 400),
        ("POST", f"{QUEUE}/messages?wait=nan", 400),
        ("POST", f"{QUEUE}/messages?wait=61", 400),
        ("POST", f"{QUEUE}/messages?priority=odd", 400),
        ("POST", f"{QUEUE}/messages?delay_ms=x", 400),
        ("POST", f"{QUEUE}/messages?deliver_at_ms=x", 400),
        ("POST", f"{QUEUE}/messages?deliver_at_ms=1&delay_ms=1", 400),
        ("DELETE", f"{QUEUE}/messages/none?now=1", 400),
        ("DELETE", f"{QUEUE}/messages/none", 404),
        ("POST", f"{QUEUE}/messages?id={'x' * 256}", 400),
        ("POST", f"{QUEUE}/messages?id=a%0ab", 400),
        ("POST", "/api/v1/channels/a%00b/queues/1/messages", 400),
        ("POST", f"/api/v1/channels/{'x' * 256}/queues/1/messages", 400),
        ("POST", "/api/v1/channels/a*b/queues/1/messages", 400),
        ("POST", "/api/v1/channels/a/queues/65536/messages", 404),
        ("POST", "/api/v1/channels/a/queues/x/messages", 404),
        ("POST", f"{QUEUE}/deliveries?max=0", 400),
        ("POST", f"{QUEUE}/deliveries?max=101", 400),
        ("POST", f"{QUEUE}/deliveries?ack=maybe", 400),
        ("POST", f"{QUEUE}/deliveries/x/ack", 404),
        ("POST", f"{QUEUE}/deliveries/x/nack?reason={'x' * 201}", 400),
        ("GET", "/api/v1/events", 400),
        ("GET", "/api/v1/events?kind=Nothing", 400),
        ("GET", "/api/v1/events?kind=QueueCreated", 403),
    ],
)
def test_each_wrong_parameter_is_named(method: str, target: str, status: int) -> None:
    stage = Stage()
    body = b"x" if target.partition("?")[0].endswith("/messages") else None
    peer = stage.open()
    answer = peer.ask(method, target, body)
    assert answer.status == status, answer
    assert stage.broker.statistics().messages == 0


def test_a_full_queue_refuses_with_409() -> None:
    stage = Stage(engine_limits=EngineLimits(max_queues_per_channel=1))
    peer = stage.open()
    assert peer.ask("POST", f"{QUEUE}/messages", b"x").status == 201
    refused = peer.ask("POST", "/api/v1/channels/orders/queues/2/messages", b"x")
    assert (refused.status, refused.json["code"]) == (409, 482)


def test_too_many_held_deliveries_are_refused_with_429() -> None:
    stage = Stage(HttpLimits(max_held_deliveries=2, max_deliveries=2))
    stage.make_queue("orders", 1, "pull")
    peer = stage.open()
    for _ in range(3):
        peer.ask("POST", f"{QUEUE}/messages", b"x")
    target = f"{QUEUE}/deliveries?max=2&ack=manual"
    items = peer.ask("POST", target).items
    assert peer.ask("POST", target).status == 429
    peer.ask("POST", f"{QUEUE}/deliveries/{items[0]['id']}/ack")
    assert len(peer.ask("POST", target).items) == 1


# -- who it is -----------------------------------------------------------------------------------


def _admit(stage: Stage, *, allowed: bool = True) -> Connect:
    [question] = questions(stage.hub)
    assert question.right == AUTHENTICATE
    connect = question.command
    assert isinstance(connect, Connect)
    decision = Verdict(allowed, connect=connect if allowed else None)
    stage.hub.decide(question.session, question.ticket, decision, stage.now)
    stage.hub.go_on(question.session, stage.now)
    stage.settle()
    return connect


def _basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("value", "name", "token"),
    [
        ("Bearer s3cret", "", "s3cret"),
        ("bearer s3cret", "", "s3cret"),
        (_basic("ann:s3:cret"), "ann", "s3:cret"),
        (_basic(":s3cret"), "", "s3cret"),
    ],
)
def test_credentials_are_what_the_access_rules_judge(value: str, name: str, token: str) -> None:
    stage = Stage(guarded=True)
    peer = stage.open()
    peer.say(request("POST", f"{QUEUE}/messages", b"x", ("Authorization", value)))
    who = _admit(stage)
    assert who.credentials is not None
    assert (who.name or "", who.credentials.secret, who.client_type) == (name, token, "http")
    assert who.credentials.kind == ("token" if value[:6].lower() == "bearer" else "password")
    [question] = questions(stage.hub)
    assert (question.right, question.subject, question.queue_id) == ("push", "orders", 1)
    stage.hub.decide(question.session, question.ticket, Verdict(False), stage.now)
    stage.settle()
    refused = peer.answer("POST")
    assert (refused.status, refused.json["code"]) == (403, 401)
    assert not peer.over


def test_who_may_not_connect_is_told_401_and_which_schemes_there_are() -> None:
    stage = Stage(guarded=True)
    peer = stage.open().say(request("POST", f"{QUEUE}/messages", b"x"))
    _admit(stage, allowed=False)
    answer = peer.answer("POST")
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert peer.over


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("Digest x", 401),
        ("Basic !", 400),
        (_basic("x"), 400),
        ("Bearer", 400),
        ("Bearer \xe9", 400),
    ],
)
def test_credentials_that_cannot_be_read_are_refused(value: str, status: int) -> None:
    peer = Stage(guarded=True).open()
    raw = request("POST", f"{QUEUE}/messages", b"x", ("Authorization", "?"))
    peer.say(raw.replace(b"Authorization: ?", b"Authorization: " + value.encode("latin-1")))
    assert peer.answer("POST").status == status


def test_a_connection_serves_one_client_only() -> None:
    stage = Stage()
    peer = stage.open()
    mine = ("Authorization", "Bearer mine")
    assert peer.ask("POST", f"{QUEUE}/messages", b"x", mine).status == 201
    assert peer.ask("GET", "/healthz").status == 200  # asks nobody
    for other in ([("Authorization", "Bearer other")], []):
        assert peer.ask("POST", f"{QUEUE}/messages", b"x", *other).status == 421
    assert peer.ask("POST", f"{QUEUE}/messages", b"x", mine).status == 201


# -- events --------------------------------------------------------------------------------------


def test_events_are_streamed() -> None:
    stage = Stage(HttpLimits(event_interval_s=15.0))
    stage.make_queue("orders", 1, "push")
    peer = stage.open()
    peer.say(
        request("GET", "/api/v1/events?kind=MessageProduced,ClientJoined&channel=orders&queue=1")
    )
    head, _, rest = peer.raw().partition(b"\r\n\r\n")
    assert b"200 OK" in head
    assert b"text/event-stream" in head
    assert rest == b"3\r\n:\n\n\r\n"
    other = stage.open()
    other.ask("POST", f"{QUEUE}/messages?id=m1", b"x")
    consumer = stage.open_native("ann")
    consumer.say(operation(OP_JOIN, "orders"))
    text = peer.raw().decode()
    assert "event: MessageProduced\ndata: {" in text
    assert '"m1"' in text
    assert "event: ClientJoined\ndata: {" in text
    before = text.count(":\n\n")
    stage.sleep(31.0)
    assert peer.raw().decode().count(":\n\n") == before + 2
    stage.hub.close(peer.number, "the server stops", stage.now)
    stage.settle()
    assert peer.answer().body.endswith(b":\n\n")  # a whole answer


def test_a_stream_ends_with_the_last_thing_that_it_is_about() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push")
    peer = stage.open()
    target = "/api/v1/events?kind=MessageProduced,ClientJoined&channel=orders&queue=1"
    peer.say(request("GET", target))
    peer.raw()
    other = stage.open_native("ann")
    other.say(operation(OP_REMOVE_QUEUE, "orders", b"\x01\x00"))
    assert peer.raw().endswith(b":\n\n\r\n"), "who joins is still to be heard of"
    other.say(operation(OP_REMOVE_CHANNEL, "orders"))
    answer = peer.answer()  # a whole answer
    assert answer.body.endswith(
        b'event: end\ndata: {"reason":"the channel or the queue was removed"}\n\n'
    )
    assert peer.ask("GET", target).status == 403, "the connection goes on"


def test_each_step_of_a_take_and_each_pipelined_request_is_asked_about() -> None:
    guarded = Stage(guarded=True)
    changes = QueueChanges(status=STATUS_PULL)
    for command in (Connect(99, None, "maker"), CreateQueue(99, None, "orders", 1, changes)):
        guarded.broker.step(command, guarded.now)
    peer = guarded.open()
    peer.say(
        request("POST", f"{QUEUE}/deliveries"),
        request("POST", "/api/v1/channels/bills/queues/1/messages", b"x"),
    )
    _admit(guarded)
    asked = []
    while found := questions(guarded.hub):
        [question] = found
        asked.append((question.right, question.subject))
        allowed = question.right != "push"
        guarded.hub.decide(question.session, question.ticket, Verdict(allowed, 10.0), guarded.now)
        guarded.hub.go_on(question.session, guarded.now)
        guarded.settle()
    assert asked == [("pull", "orders"), ("join", "orders"), ("push", "bills")]
    assert [each.status for each in peer.answers("POST")] == [200, 403]


def test_who_waits_is_answered_when_the_channel_is_removed() -> None:
    stage = Stage()
    options = QueueChanges(status=STATUS_PULL, wait_for_acknowledge=True)
    stage.broker.step(Connect(99, None, "maker"), stage.now)
    stage.broker.step(CreateQueue(99, None, "orders", 1, options), stage.now)
    producer = stage.open_native("bob")
    producer.say(push("orders", 1, "m1", b"one"), push("orders", 1, "m2", b"two"))
    first = stage.open()
    assert len(first.ask("POST", f"{QUEUE}/deliveries?ack=manual").items) == 1
    second = stage.open()
    second.say(request("POST", f"{QUEUE}/deliveries?wait=30", b""))
    assert second.answers() == [], "m1 is not acknowledged"
    producer.say(operation(OP_REMOVE_CHANNEL, "orders"))
    [answer] = second.answers()
    assert (answer.status, answer.json["detail"]) == (404, "the channel was removed")
