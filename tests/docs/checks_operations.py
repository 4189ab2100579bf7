"""The checks of the cases about operations and options."""

from __future__ import annotations

import json

import pytest

from tests.docs.broker import World
from tests.docs.cases import case, queue_information
from tmqp import (
    Operation,
    QueueStatus,
)
from tmqp.extensions import ExtensionOperation
from tmqp.models import (
    ChannelOptions,
    ModelError,
    QueueEvent,
    QueueOptions,
)
from tmqp_server import EngineLimits

__all__: list[str] = []


@case(5)
def queue_id_in_header_or_payload() -> None:
    client = World().connect()
    client.create_queue("ch", 258)
    client.create_queue("ch", 3)
    ask = client.ask
    assert ask(Operation.QUEUE_INFORMATION, "ch", b"\x02\x01") == [0]
    assert ask(Operation.QUEUE_INFORMATION, "ch", headers=[("Queue-Id", "258")]) == [0]
    assert ask(Operation.REMOVE_QUEUE, "ch", b"\x02\x01", [("Queue-Id", "3")]) == [0]
    assert ask(Operation.QUEUE_INFORMATION, "ch", b"\x02\x01") == [0]
    assert ask(Operation.QUEUE_INFORMATION, "ch", b"\x03\x00") == [404]


@case(6)
def filter_in_header_or_target() -> None:
    client = World().connect()
    for name in ("one", "two"):
        assert client.ask(Operation.CREATE_CHANNEL, name) == [0]

    def names(target: str, *headers: tuple[str, str]) -> list[str]:
        body = client.answer(Operation.CHANNEL_LIST, target, headers=headers)
        return [item["Name"] for item in json.loads(body)]

    assert names("o*") == ["one"]
    assert names("", ("Channel-Name", "o*")) == ["one"]
    assert names("o*", ("Channel-Name", "t*")) == ["two"]
    assert names("") == ["one", "two"]


@case(7)
def options_of_a_new_queue() -> None:
    world = World()
    client = world.connect()
    client.ask(Operation.CREATE_CHANNEL, "ch")
    client.create_queue("ch", 1, b'{"AcknowledgeTimeout":1234,"Status":3}')
    shown = queue_information("ch", 1, world)
    assert (shown["AcknowledgeTimeout"], shown["Status"]) == (1234, "pull")


@case(8)
def options_the_original_ignores() -> None:
    world = World()
    client = world.connect()
    body = (
        b'{"MessageLimit":1,"ClientLimit":1,"QueueLimit":1,"MessageDeliveryHandler":"reject-nack"}'
    )
    assert client.ask(Operation.CREATE_CHANNEL, "ch", body) == [0]
    client.create_queue("ch", 1)
    assert client.ask(Operation.CREATE_QUEUE, "ch", headers=[("Queue-Id", "2")]) == [482]
    assert client.ask(Operation.JOIN, "ch") == [0]
    assert world.connect("other").ask(Operation.JOIN, "ch") == [482]
    client.take()
    client.push("ch", 1, "m")
    assert [frame.header("Nack-Reason") for frame in client.take()] == ["none"]
    client.create_queue("limited", 1, b'{"MessageLimit":1}')
    client.take()
    client.push("limited", 1, "m1")
    client.push("limited", 1, "m2")
    assert [frame.content_type for frame in client.take()] == [482]
    client.ask(Operation.CREATE_CHANNEL, "fleeting", b'{"DestroyWhenEmpty":true}')
    client.ask(Operation.JOIN, "fleeting")
    client.ask(Operation.LEAVE, "fleeting")
    assert client.ask(Operation.CHANNEL_INFORMATION, "fleeting") == [404]
    # That one who is registered is asked and told: tests/tmqp_server/access/test_channel_hooks.py.
    for body in (b'{"Authenticator":"nobody"}', b'{"ChannelEventHandler":"nobody"}'):
        assert client.ask(Operation.CREATE_CHANNEL, "new", body) == [406]


@case(74)
def what_an_update_leaves_out() -> None:
    world = World()
    client = world.connect()
    body = b'{"AcknowledgeTimeout":1234,"MessageLimit":5,"UseMessageId":false}'
    client.create_queue("ch", 1, body)
    headers = [("Queue-Id", "1")]
    assert client.ask(Operation.UPDATE_QUEUE, "ch", b'{"MessageTimeout":7}', headers) == [0]
    shown = queue_information("ch", 1, world)
    names = ("AcknowledgeTimeout", "MessageLimit", "MessageTimeout", "UseMessageId")
    assert [shown[name] for name in names] == [1234, 5, 7, True]


@case(75)
def destroy_when_empty() -> None:
    world = World()
    client = world.connect()
    client.ask(Operation.CREATE_CHANNEL, "ch", b'{"DestroyWhenEmpty":true}')
    client.create_queue("ch", 1)
    client.create_queue("ch", 2)
    client.push("ch", 1, "m")
    client.push("ch", 2, "m")
    client.take()

    def clear(queue_id: int) -> None:
        headers = [("Queue-Id", str(queue_id)), ("Messages", "yes")]
        assert client.ask(Operation.CLEAR_MESSAGES, "ch", headers=headers) == [0]
        world.pass_time(0.0)

    clear(1)
    assert client.ask(Operation.QUEUE_INFORMATION, "ch", b"\1\0") == [404]
    assert client.ask(Operation.QUEUE_INFORMATION, "ch", b"\2\0") == [0]
    clear(2)
    assert client.ask(Operation.CHANNEL_INFORMATION, "ch") == [404]


@case(76)
def a_star_inside_a_filter() -> None:
    client = World().connect()
    for name in ("orders.eu.new", "orders.us.new", "orders.eu.old"):
        assert client.ask(Operation.CREATE_CHANNEL, name) == [0]
    body = client.answer(Operation.CHANNEL_LIST, "orders.*.new")
    assert [item["Name"] for item in json.loads(body)] == ["orders.eu.new", "orders.us.new"]


@case(77)
def changing_a_channels_options() -> None:
    client = World().connect()
    client.ask(Operation.CREATE_CHANNEL, "ch", b'{"ClientLimit":7}')
    assert client.ask(ExtensionOperation.UPDATE_CHANNEL, "ch", b'{"QueueLimit":1}') == [0]
    shown = json.loads(client.answer(Operation.CHANNEL_INFORMATION, "ch"))
    assert (shown["ClientLimit"], shown["QueueLimit"]) == (7, 1)
    client.create_queue("ch", 1)
    assert client.ask(Operation.CREATE_QUEUE, "ch", headers=[("Queue-Id", "2")]) == [482]


@case(78)
def number_of_queues() -> None:
    assert EngineLimits().max_queues_per_channel == 1_000
    client = World(EngineLimits(max_queues_per_channel=2)).connect()
    for queue_id, code in ((1, 0), (65_535, 0), (3, 482)):
        headers = [("Queue-Id", str(queue_id))]
        assert client.ask(Operation.CREATE_QUEUE, "ch", headers=headers) == [code]


@case(9)
def name_of_the_event_handler() -> None:
    for name in (b"EventHandler", b"ChannelEventHandler"):
        assert ChannelOptions.from_json(b'{"%s":"x"}' % name).event_handler == "x"
    assert b'"ChannelEventHandler":"x"' in ChannelOptions(event_handler="x").to_json()


@case(10)
def numbers_of_status() -> None:
    options = [QueueOptions.from_json(b'{"Status":%d}' % number) for number in range(7)]
    assert [item.status for item in options] == list(QueueStatus)
    assert [item.name for item in QueueStatus][4:] == ["CACHE", "PAUSED", "STOPPED"]
    with pytest.raises(ModelError):
        QueueOptions.from_json(b'{"Status":7}')


@case(11)
def channel_exists() -> None:
    client = World().connect()
    assert client.ask(Operation.CREATE_CHANNEL, "ch") == [0]
    assert client.ask(Operation.CREATE_CHANNEL, "CH") == [481]


@case(12)
def forbidden_queues() -> None:
    client = World().connect()
    client.ask(Operation.CREATE_CHANNEL, "some", b'{"AllowedQueues":[1,2]}')
    client.ask(Operation.CREATE_CHANNEL, "single", b'{"AllowMultipleQueues":false}')
    assert client.ask(Operation.CREATE_QUEUE, "some", headers=[("Queue-Id", "3")]) == [406]
    assert client.ask(Operation.CREATE_QUEUE, "single", headers=[("Queue-Id", "1")]) == [0]
    assert client.ask(Operation.CREATE_QUEUE, "single", headers=[("Queue-Id", "2")]) == [482]


@case(13)
def limits_answer() -> None:
    client = World(EngineLimits(max_channels=1, max_queues_per_channel=1)).connect()
    assert client.ask(Operation.CREATE_CHANNEL, "one") == [0]
    assert client.ask(Operation.CREATE_CHANNEL, "two") == [482]
    client.create_queue("one", 1)
    assert client.ask(Operation.CREATE_QUEUE, "one", headers=[("Queue-Id", "2")]) == [482]
    assert client.alive()


@case(14)
def queue_limit_is_a_maximum() -> None:
    client = World().connect()
    client.ask(Operation.CREATE_CHANNEL, "ch", b'{"QueueLimit":2}')
    codes = [
        client.ask(Operation.CREATE_QUEUE, "ch", headers=[("Queue-Id", str(number))])
        for number in (1, 2, 3)
    ]
    assert codes == [[0], [0], [482]]


@case(15)
def mistakes_are_answered() -> None:
    client = World().connect()
    ask = client.ask
    assert ask(Operation.CREATE_CHANNEL, "ch", b'{"Status":"Pull"}') == [400]
    assert ask(Operation.CREATE_CHANNEL, "ch", b"{") == [400]
    assert ask(Operation.CREATE_QUEUE, "ch", headers=[("Queue-Id", "abc")]) == [400]
    assert ask(Operation.UPDATE_QUEUE, "ch", headers=[("Queue-Id", "1")]) == [400]
    handler = [("Queue-Id", "1"), ("Delivery-Handler", "nobody")]
    assert ask(Operation.CREATE_QUEUE, "ch", headers=handler) == [406]
    assert client.alive()


@case(17)
def names() -> None:
    client = World().connect()
    for name in ("", "a b", "a;b", "@x", "a*", "a\x1fb"):
        assert client.ask(Operation.CREATE_CHANNEL, name) == [400]
    assert client.alive()


@case(44)
def information_shows_the_queues_options() -> None:
    world = World()
    client = world.connect()
    client.ask(Operation.CREATE_CHANNEL, "ch", b'{"MessageTimeout":5,"HideClientNames":false}')
    client.create_queue("ch", 1, b'{"MessageTimeout":7,"HideClientNames":true}')
    shown = queue_information("ch", 1, world)
    assert (shown["MessageTimeout"], shown["HideClientNames"]) == (7, True)


@case(32)
def words_for_status() -> None:
    world = World()
    world.connect().create_queue("ch", 1, Queue_Status="ROUND-ROBIN")
    assert queue_information("ch", 1, world)["Status"] == "roundrobin"
    event = QueueEvent(channel="ch", id=1, status=QueueStatus.ROUND_ROBIN)
    assert event.to_object()["Status"] == "RoundRobin"


@case(56)
def unknown_status_word() -> None:
    client = World().connect()
    headers = [("Queue-Id", "1"), ("Queue-Status", "zzz")]
    assert client.ask(Operation.CREATE_QUEUE, "ch", headers=headers) == [400]


@case(57)
def queue_without_an_id() -> None:
    client = World().connect()
    assert client.ask(Operation.CREATE_QUEUE, "ch") == [406]
    assert client.ask(Operation.QUEUE_INFORMATION, "ch", b"\x00\x00") == [404]


@case(58)
def consumers_of_an_unknown_channel() -> None:
    client = World().connect()
    assert client.ask(Operation.CHANNEL_CONSUMERS, "ch") == [404]
    assert client.answer(Operation.CHANNEL_LIST) == b"[]"


@case(59)
def unknown_operations() -> None:
    client = World().connect()
    assert client.ask(777) == [400]
    assert client.ask(Operation.DECISION_OVER_NODE) == [501]
    assert client.alive()


@case(60)
def bounds_on_options() -> None:
    client = World().connect()
    for body, code in (
        (b'{"AcknowledgeTimeout":-1}', 400),
        (b'{"MessageLimit":-1}', 400),
        (b'{"AcknowledgeTimeout":3600001}', 482),
    ):
        headers = [("Queue-Id", "1")]
        assert client.ask(Operation.CREATE_QUEUE, "ch", body, headers) == [code]
