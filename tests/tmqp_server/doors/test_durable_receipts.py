"""A client was told that it has a durable subscription before that was on disk."""

from __future__ import annotations

from tests.tmqp_server.doors.door_world import DoorWorld
from tests.tmqp_server.doors.openwire.talk import Client as OpenwireClient
from tests.tmqp_server.doors.openwire.talk import T, dispatches, error, fine, text_of
from tests.tmqp_server.doors.stomp.talk import Client as StompClient
from tests.tmqp_server.doors.stomp.talk import error as refusal
from tests.tmqp_server.doors.stomp.talk import receipts
from tmqp_server.doors.openwire.door import OpenwireDoor
from tmqp_server.doors.openwire.message import OpenwireBodies
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompBodies

_NEWS = {"activemq.subscriptionName": "news", "receipt": "s"}


def stomp() -> StompClient:
    world = DoorWorld(
        lambda new_id, letters: StompDoor(new_id, letters=letters, durable=True),
        StompBodies(),
        stores=True,
    )
    return StompClient(world, **{"client-id": "me"})


def openwire() -> OpenwireClient:
    world = DoorWorld(
        lambda new_id, letters: OpenwireDoor(new_id, letters=letters, durable=True),
        OpenwireBodies(),
        stores=True,
    )
    return OpenwireClient(world, "me")


def test_the_receipt_of_a_new_subscription_of_stomp_comes_from_the_disk() -> None:
    client = stomp()
    assert client.subscribe("/topic/t", **_NEWS) == []
    client.world.save()
    assert receipts(client.hear()) == ["s"]
    client.say("UNSUBSCRIBE", id="1")
    assert receipts(client.subscribe("/topic/t", **_NEWS)) == ["s"], "it is there"


def test_a_subscription_of_stomp_that_the_disk_refuses() -> None:
    client = stomp()
    client.subscribe("/topic/t", **_NEWS)
    client.world.save(fails=True)
    assert "busy, or out of room" in refusal(client.hear())


def test_another_selector_of_stomp_is_on_disk_before_its_receipt() -> None:
    client = stomp()
    client.subscribe("/topic/t", **_NEWS)
    client.world.save()
    client.hear()
    client.say("UNSUBSCRIBE", id="1")
    assert client.subscribe("/topic/t", selector="n = 1", **_NEWS) == []
    client.world.save()
    assert receipts(client.hear()) == ["s"]


def test_the_response_to_a_new_subscription_of_openwire_comes_from_the_disk() -> None:
    client = openwire()
    assert client.consume(T, subscription="s") == []
    client.world.save()
    assert fine(client.hear())
    client.end()
    assert fine(client.consume(T, number=2, subscription="s")), "it is there"
    client.end(2)
    assert client.consume(T, number=3, subscription="s", selector="n = 1") == []
    client.world.save()
    assert fine(client.hear())


def test_a_subscription_of_openwire_that_the_disk_refuses_is_free_again() -> None:
    client = openwire()
    client.consume(T, subscription="s")
    client.world.save(fails=True)
    assert error(client.hear()) == "ResourceAllocationException"
    assert fine(client.consume(T, number=2, subscription="s"))


def test_a_persistent_message_to_a_topic_is_answered_when_its_subscriptions_have_it() -> None:
    client = openwire()
    client.consume(T, subscription="s")
    client.world.save()
    client.hear()
    (found,) = client.send("1", T)
    assert text_of(dispatches([found])[0]) == "1"
    client.world.save()
    assert fine(client.hear())
    client.ask(client.message("2", T))
    client.world.save(fails=True)
    assert error(client.hear()) == "JMSException"
