"""Information through the native door: the bodies are what the models read, times are dates."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.machine import Stopwatch
from tests.tmqp_server.peers import Peer, ack, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import TYPE_EVENT, DocumentOperation, MessageType, Operation, QueueStatus
from tmqp.extensions import ExtensionOperation
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.models import (
    ChannelEvent,
    ChannelInformation,
    ClientInformation,
    QueueInformation,
    QueueOptions,
    dump_list,
    parse_list,
)
from tmqp_server.doors.native.information import AnswerTooLargeError, rendered
from tmqp_server.engine.model.snapshots import QueueSnapshot
from tmqp_server.engine.options import BrokerOptions

TOKEN = "not to be shown"

#: Every option of a queue and of a channel, each unlike its default.
OPTIONS = {
    "AllowMultipleQueues": True,
    "AllowedQueues": [1, 300],
    "ClientLimit": 11,
    "QueueLimit": 12,
    "DestroyWhenEmpty": True,
    "SendOnlyFirstAcquirer": True,
    "RequestAcknowledge": False,
    "AcknowledgeTimeout": 13_000,
    "MessageTimeout": 14_000,
    "UseMessageId": False,
    "WaitForAcknowledge": True,
    "HideClientNames": True,
    "Status": 2,
    "MessageLimit": 15,
}


def furnished() -> tuple[World, Peer]:
    """A channel with every option set, and one queue in it."""
    world = World()
    peer = Peer(world, "me")
    body = json.dumps(OPTIONS).encode()
    assert peer.ask(Operation.CREATE_CHANNEL, "c", body).content_type == 0
    headers = [("Queue-Id", "300"), ("Queue-Tag", "\u00fcber")]
    assert peer.ask(Operation.CREATE_QUEUE, "c", headers=headers).content_type == 0
    return world, peer


def test_a_channel_is_described_by_all_it_was_made_with() -> None:
    _, peer = furnished()
    payload = peer.ask(Operation.CHANNEL_INFORMATION, "C").payload
    shown = ChannelInformation.from_json(payload)
    assert shown == ChannelInformation(
        name="c",
        queues=(300,),
        allow_multiple_queues=True,
        allowed_queues=(1, 300),
        only_first_acquirer=True,
        request_acknowledge=False,
        acknowledge_timeout_ms=13_000,
        message_timeout_ms=14_000,
        use_message_id=False,
        wait_for_acknowledge=True,
        hide_client_names=True,
        active_clients=0,
        client_limit=11,
        queue_limit=12,
        destroy_when_empty=True,
    )
    assert shown.to_json() == payload
    assert peer.ask(Operation.CHANNEL_LIST).payload == b"[" + payload + b"]"


def test_a_queue_is_described_by_its_own_options_and_what_happened_in_it() -> None:
    """F68, contradiction 44."""
    world, peer = furnished()
    consumer = Peer(world, "consumer", ["c"])
    body = json.dumps({"RequestAcknowledge": True, "AcknowledgeTimeout": 99}).encode()
    headers = [("Queue-Id", "300")]
    assert peer.ask(Operation.UPDATE_QUEUE, "c", body, headers=headers).content_type == 0
    peer.say(push("c", 300, "a"), push("c", 300, "b"), push("c", 300, "h", high_priority=True))
    (delivery,) = consumer.take()
    consumer.say(ack(delivery, "no"))
    payload = peer.ask(Operation.QUEUE_INFORMATION, "c", headers=headers).payload
    shown = QueueInformation.from_json(payload)
    assert shown.to_json() == payload
    assert (shown.channel, shown.id, shown.tag_name) == ("c", 300, "\u00fcber")
    assert shown.status is QueueStatus.ROUND_ROBIN
    assert (shown.request_acknowledge, shown.acknowledge_timeout_ms) == (True, 99)
    assert (shown.message_timeout_ms, shown.message_limit) == (14_000, 15)
    assert (shown.received_messages, shown.sent_messages, shown.deliveries) == (3, 2, 2)
    assert (shown.negative_acks, shown.acks, shown.messages, shown.priority_messages) == (
        1,
        0,
        1,
        0,
    )
    assert parse_list(QueueInformation, peer.ask(Operation.QUEUE_LIST, "c").payload) == [shown]


def test_the_limits_of_put_backs_and_sizes_could_be_set_in_the_servers_file_only() -> None:
    """Extensions of operations 610/201 and 612/202, and of a channel's options (F50, F56)."""
    peer = Peer(World(), "me")
    headers = [("Queue-Id", "1")]

    def limits(channel: str) -> tuple[int, int | None]:
        payload = peer.ask(Operation.QUEUE_INFORMATION, channel, headers=headers).payload
        shown = QueueInformation.from_json(payload)
        return shown.message_size_limit, shown.put_back_limit

    body = b'{"MessageSizeLimit":100,"PutBackLimit":3}'
    for create in (Operation.CREATE_QUEUE, DocumentOperation.CREATE_QUEUE):
        channel = f"c{create}"
        assert peer.ask(create, channel, body, headers=headers).content_type == 0
        assert limits(channel) == (100, 3)
        for update in (Operation.UPDATE_QUEUE, DocumentOperation.UPDATE_QUEUE):
            change = b'{"MessageSizeLimit":%d,"PutBackLimit":0}' % update
            assert peer.ask(update, channel, change, headers=headers).content_type == 0
            assert limits(channel) == (update, 0)
            assert peer.ask(update, channel, b"{}", headers=headers).content_type == 0
            assert limits(channel) == (update, 0)
        too_much = b'{"PutBackLimit":1000000}'
        assert (
            peer.ask(Operation.UPDATE_QUEUE, channel, too_much, headers=headers).content_type == 482
        )
    assert peer.ask(Operation.CREATE_CHANNEL, "own", body).content_type == 0
    assert peer.ask(Operation.CREATE_QUEUE, "own", headers=headers).content_type == 0
    assert limits("own") == (100, 3)
    peer.say(push("own", 1, "m", payload=b"x" * 101))
    assert [each.content_type for each in peer.take()] == [482]


def test_the_options_of_a_channel_could_not_be_changed() -> None:
    """F20: by an operation of ours, for the specification has none."""
    _, peer = furnished()
    body = json.dumps({"ClientLimit": 5, "AllowedQueues": [], "MessageTimeout": 7}).encode()
    update = ExtensionOperation.UPDATE_CHANNEL
    before = ChannelInformation.from_json(peer.ask(Operation.CHANNEL_INFORMATION, "c").payload)
    assert peer.ask(update, "C", body).content_type == 0
    after = ChannelInformation.from_json(peer.ask(Operation.CHANNEL_INFORMATION, "c").payload)
    assert after == replace(
        before, client_limit=5, allowed_queues=(), message_timeout_ms=7, use_message_id=True
    )
    headers = [("Queue-Id", "300")]
    shown = QueueInformation.from_json(
        peer.ask(Operation.QUEUE_INFORMATION, "c", headers=headers).payload
    )
    assert shown.message_timeout_ms == 14_000  # a queue that is there stays as it is
    for target, change, code in (
        ("nowhere", b"{}", 404),
        ("c", b"", 400),
        ("c", b"[]", 400),
        ("c", b'{"ClientLimit":-1}', 400),
        ("c", b'{"Authenticator":"nobody"}', 406),
        ("c", b'{"ChannelEventHandler":"nobody"}', 406),
        ("c", b'{"MessageDeliveryHandler":"nobody"}', 406),
        ("c", b'{"AcknowledgeTimeout":2000000000}', 482),
        ("c", b'{"Durable":true}', 406),
    ):
        assert peer.ask(update, target, change).content_type == code, change
    again = ChannelInformation.from_json(peer.ask(Operation.CHANNEL_INFORMATION, "c").payload)
    assert again == after


@pytest.mark.parametrize("specified", [False, True])
def test_events_lacked_the_headers_that_the_text_promises(specified: bool) -> None:
    """F129, F130: on request only, so that the original's client gets what it got."""
    world = World()
    admin, listener = Peer(world, "admin"), Peer(world, "listener")
    admin.ask(Operation.CREATE_QUEUE, "Demo", headers=[("Queue-Id", "1500")])
    form = [("Event-Form", "Specified")] if specified else []
    place = [("Channel-Name", "DEMO"), ("Queue-Id", "1500"), *form]
    for name in ("ChannelCreated", "ClientJoined", "QueueUpdated", "MessageProduced"):
        headers = form if name == "ChannelCreated" else place
        listener.say(Frame.build(TYPE_EVENT, name, 1, message_id="s", headers=headers))
        assert [each.content_type for each in listener.take()] == [0]
    admin.ask(Operation.CREATE_CHANNEL, "other")
    admin.ask(Operation.UPDATE_QUEUE, "demo", b"{}", headers=[("Queue-Id", "1500")])
    admin.say(push("demo", 1500, "m"))
    admin.ask(Operation.JOIN, "demo")
    told = listener.take()
    assert [(each.source, each.target) for each in told] == [
        ("ChannelCreated", ""),
        ("QueueUpdated", "DEMO"),
        ("MessageProduced", "DEMO"),
        ("ClientJoined", "DEMO"),
    ]
    channel, queue = ("Channel-Name", "DEMO"), ("Queue-Id", "1500")
    wanted: list[list[tuple[str, str]]] = [[], [channel, queue], [channel, queue], [channel]]
    assert [each.headers for each in told] == (wanted if specified else [[], [], [], []])
    assert ("ActiveClient" in json.loads(told[0].payload)) is specified
    assert json.loads(told[0].payload)["ActiveClients"] == 0
    event = ChannelEvent.from_json(told[0].payload)
    assert (event.name, event.active_clients) == ("other", 0)


def test_the_times_of_the_last_messages_are_dates() -> None:
    world = World(wall_clock_offset_s=1_700_000_000.0)
    peer = Peer(world, "me")
    peer.ask(Operation.CREATE_QUEUE, "c", headers=[("Queue-Id", "1")])

    def times() -> tuple[int, int]:
        payload = peer.ask(Operation.QUEUE_INFORMATION, "c", b"\1\0").payload
        shown = QueueInformation.from_json(payload)
        return shown.last_message_received_ms, shown.last_message_sent_ms

    assert times() == (0, 0)
    world.advance_to(2.5)
    peer.say(push("c", 1, "m"))
    received = int((1_700_000_000.0 + world.began + 2.5) * 1_000)
    assert times() == (received, 0)
    world.advance_to(4)
    peer.ask(Operation.JOIN, "c")
    assert times() == (received, received + 1_500)


def test_clients_are_described_by_what_they_said_of_themselves() -> None:
    """F69: online since connecting, or since joining."""
    world = World()
    peer = Peer(world)
    peer.say(
        b"TMQP/2.0",
        _hello(ConnectionInformation("id \u00fc", name="n\u00e4me", type="ty", token=TOKEN)),
    )
    peer.take()
    world.advance_to(10)
    other = Peer(world, "other")
    other.ask(Operation.JOIN, "c")
    peer.ask(Operation.JOIN, "c")
    world.advance_to(12)
    payload = other.ask(Operation.CLIENT_LIST).payload
    assert TOKEN.encode() not in payload
    first, second = parse_list(ClientInformation, payload)
    assert first == ClientInformation(id="id \u00fc", name="n\u00e4me", type="ty", online_ms=12_000)
    assert second == ClientInformation(id="other", online_ms=2_000)
    joined = parse_list(ClientInformation, other.ask(Operation.CHANNEL_CONSUMERS, "c").payload)
    assert [(client.id, client.online_ms) for client in joined] == [
        ("other", 2_000),
        ("id \u00fc", 2_000),
    ]
    only = parse_list(ClientInformation, other.ask(Operation.CLIENT_LIST, "ty").payload)
    assert only == [first]


def _hello(information: ConnectionInformation) -> bytes:
    return Frame.build(MessageType.SERVER, "", 101, information.encode()).raw


def test_an_empty_list_is_a_list() -> None:
    peer = Peer(World(), "me")
    assert peer.ask(Operation.CHANNEL_LIST).payload == b"[]"
    peer.ask(Operation.CREATE_CHANNEL, "c")
    assert peer.ask(Operation.QUEUE_LIST, "c").payload == b"[]"
    assert peer.ask(Operation.CHANNEL_CONSUMERS, "c").payload == b"[]"


def test_a_list_is_written_as_the_models_write_it() -> None:
    world, peer = furnished()
    for number in range(20):
        peer.ask(Operation.CREATE_CHANNEL, f"\u00e4{number}")
    payload = peer.ask(Operation.CHANNEL_LIST).payload
    assert dump_list(parse_list(ChannelInformation, payload)) == payload
    assert world.broker.statistics().channels == 21


def test_a_list_is_not_worked_out_beyond_the_largest_answer() -> None:
    """Ten thousand channels, of which the first few fill the answer."""
    world, peer = furnished()
    peer.ask(Operation.CREATE_CHANNEL, "d")
    snapshot = QueueSnapshot(world.broker.queues()[0])
    one = len(rendered(snapshot, 0.0, 10_000))
    assert rendered(snapshot, 0.0, one)
    with pytest.raises(AnswerTooLargeError):
        rendered(snapshot, 0.0, one - 1)
    assert rendered([snapshot] * 3, 0.0, 3 * one + 4)
    with pytest.raises(AnswerTooLargeError):
        rendered([snapshot] * 3, 0.0, 3 * one + 3)
    watch = Stopwatch()
    many = [snapshot] * 1_000_000
    with pytest.raises(AnswerTooLargeError):
        watch.run(rendered, many, 0.0, 10 * one)
    watch.within(10)
    assert rendered(None, 0.0, 0) == b""


def test_a_queue_on_disk_says_so_and_another_does_not() -> None:
    world = World(BrokerOptions(storage=True))
    peer = Peer(world, "a")
    body = QueueOptions(
        durable=True, memory_limit=2, retain_time_ms=5_000, status=QueueStatus.PAUSED
    ).to_json()
    headers = [("Queue-Id", "1")]
    peer.say(
        operation(Operation.CREATE_QUEUE, "c", body, headers=headers),
        operation(Operation.CREATE_QUEUE, "d", headers=headers),
        *[push("c", 1, f"m{each}") for each in range(5)],
    )
    kept = peer.ask(Operation.QUEUE_LIST, "c").payload
    (about,) = parse_list(QueueInformation, kept)
    assert (about.durable, about.memory_limit, about.retain_time_ms) == (True, 2, 5_000)
    assert (about.messages, about.spilled_messages) == (5, 3)
    assert about.overflow is None
    plain = peer.ask(Operation.QUEUE_LIST, "d").payload
    for word in (b"Durable", b"MemoryLimit", b"Overflow", b"Spilled", b"Dropped", b"Retain"):
        assert word not in plain
