"""Durable queues: what is confirmed is on disk, and comes back after any end of the server."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.kept import DURABLE, KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_CACHE, STATUS_PAUSED, STATUS_PULL
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    AddBinding,
    ClearMessages,
    CreateRouter,
    ListBindings,
    PushExtras,
    RemoveChannel,
    RemoveChannels,
    RemoveQueue,
    RemoveRouter,
    SubscribeEvent,
)
from tmqp_server.engine.effects import Effect, Inform, Reply
from tmqp_server.engine.events import MESSAGE_PRODUCED, MessageFact
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import (
    TO_QUEUE,
    BindingOptions,
    BrokerOptions,
    ChannelOptions,
    QueueChanges,
    QueueOptions,
)


def durable(**options: object) -> KeptWorld:
    world = KeptWorld()
    world.create(QueueChanges(durable=True, **options))  # type: ignore[arg-type]
    assert world.sync() == ["admin create: 0"]
    return world


def test_an_operation_is_answered_when_its_change_is_safe() -> None:
    world = KeptWorld()
    assert world.create(DURABLE) == ["StoreChannel 1", "StoreQueue 2"]
    assert world.write() == ["admin create: 0"]
    number = world.numbers["admin"]
    assert world.step(RemoveQueue(number, "remove", "ch", 1)) == ["ForgetQueue 3"]
    assert world.write("no space") == ["admin remove: 503"]
    assert world.write() == []  # it is owed to the store all the same
    world.crash()
    assert [queue.queue_id for queue in world.broker.queues()] == []
    assert world.broker._core.channels.find("ch") is not None


def test_a_push_is_confirmed_when_it_is_safe() -> None:
    world = durable()
    world.join("a")
    assert world.push("m1", wants=True) == ["append 3 m1", "a <- m1 FA"]
    assert world.write() == ["p: m1 ok F"]
    assert world.ack("a", "m1") == ["erase 3"]
    assert world.sync() == []
    world.crash()
    assert world.books() == {}


def test_a_producer_that_goes_first_hears_nothing_and_loses_nothing() -> None:
    world = durable()
    world.push("m1", wants=True)
    world.disconnect("p")
    assert world.sync() == []
    world.crash()
    assert world.join("a") == ["a <- m1 AR", "a join: 0"]


def test_everything_comes_back_in_order_with_priorities() -> None:
    world = durable(status=STATUS_PAUSED)
    for each in range(1, 6):
        world.push(f"m{each}", high=each in (3, 5))
    world.sync()
    world.restart()
    assert world.books() == {"priority_messages": 2, "messages": 3, "accepted": 5}
    world.update(QueueChanges(status=STATUS_PULL))
    world.join("a")
    words = world.pull("a", 5)
    assert [word.split()[3] for word in words if word.startswith("a pull ") and "/" in word] == [
        "m3",
        "m5",
        "m1",
        "m2",
        "m4",
    ]


def test_what_was_not_written_is_gone_and_was_not_confirmed() -> None:
    world = durable()
    assert world.push("m1", wants=True) == ["append 3 m1"]
    world.crash()
    assert world.books() == {}


def test_after_a_clean_stop_the_numbers_are_exact() -> None:
    world = durable(delivery_handler="putback-start", put_back_limit=5)
    world.join("a")
    for each in ("m1", "m2"):
        world.push(each)
    world.nack("a", "m2")
    world.disconnect("a")
    world.sync()
    world.restart()
    # Both were sent: neither comes as if it never was.
    assert world.join("b") == ["b <- m1 AR", "b <- m2 AR", "b join: 0"]
    assert [(m.attempts, m.put_backs) for m in world.queue().flights.values()] == [(2, 0), (3, 1)]
    world = durable()
    world.push("m1")
    world.sync()
    world.restart()
    assert world.join("b") == ["b <- m1 FA", "b join: 0"]


def test_what_was_sent_before_its_copy_was_answered_for_is_noted_at_a_clean_stop() -> None:
    world = durable()
    world.join("a")
    assert world.push("m1") == ["append 3 m1", "a <- m1 FA"]
    world.journal.notes(world.broker.notes())
    world.write()
    world.store.close(clean=True)
    world.crash()
    assert world.join("b") == ["b <- m1 AR", "b join: 0"]


def test_after_an_unclean_stop_everything_is_flagged_even_after_a_clean_one() -> None:
    world = durable()
    world.push("m1")
    world.sync()
    world.crash()
    world.sync()
    world.restart()
    world.push("m2")
    assert world.join("b")[0:2] == ["b <- m1 AR", "b <- m2 FA"]


def test_what_expired_before_the_clock_started_is_not_delivered() -> None:
    """After a reboot the saved expiry lies before the monotonic clock's start; it is no "never"."""
    world = durable(message_timeout_ms=500)
    for each in range(5):
        world.push(f"m{each}")
    world.sync()
    world.reboot(down_s=3_600.0)
    assert world.join("a") == ["a join: 0"]
    assert world.books() == {"accepted": 5, "expired": 5, "timeout_messages": 5}


def test_what_has_not_expired_yet_expires_after_a_reboot_at_its_time() -> None:
    world = durable(message_timeout_ms=60_000)
    world.push("m1")
    world.sync()
    world.reboot(down_s=20.0)
    assert world.books()["messages"] == 1
    world.wait(39.0)
    assert world.books()["messages"] == 1
    world.wait(2.0)
    assert "messages" not in world.books()


def test_a_delay_goes_on_over_a_reboot() -> None:
    world = durable()
    world.join("a")
    world.push("m1", extras=PushExtras(delay_ms=60_000))
    world.sync()
    world.reboot(down_s=20.0)
    world.join("a")
    assert world.wait(38.0) == []
    assert world.wait(2.0) == ["a <- m1 AR"]  # it may have been sent before the power went


def test_what_expired_meanwhile_is_gone() -> None:
    world = durable(message_timeout_ms=500)
    world.push("m1")
    world.update(QueueChanges(message_timeout_ms=5_000))
    world.push("m2")
    world.sync()
    world.crash()  # which takes a second
    assert world.books() == {"messages": 1, "accepted": 2, "expired": 1, "timeout_messages": 1}
    world.wait(5)
    assert world.books()["expired"] == 2
    world.sync()
    world.crash()
    assert world.books() == {}


def test_a_deferred_message_is_deferred_again() -> None:
    world = durable()
    world.push("m1", extras=PushExtras(delay_ms=3_000))
    world.push("m2", extras=PushExtras(delay_ms=500))
    world.sync()
    world.restart()
    assert world.books()["deferred"] == 1
    assert world.join("a") == ["a <- m2 FA", "a join: 0"]
    assert world.wait(2.5) == ["a <- m1 FA"]


def test_sequences_and_keys_go_on() -> None:
    world = durable()
    for each in range(5):
        world.push(f"m{each}")
    world.create(DURABLE, queue_id=2)
    number = world.numbers["admin"]
    world.step(RemoveQueue(number, "remove", "ch", 2))
    world.sync()
    world.restart()
    assert world.queue().sequence == 5
    world.create(DURABLE, queue_id=3)
    assert world.queue(queue_id=3).key == 3


def test_put_back_at_the_end_it_stands_at_the_end_after_a_restart() -> None:
    world = durable(delivery_handler="putback-end", status=STATUS_PULL)
    for each in range(1, 4):
        world.push(f"m{each}")
    world.sync()
    world.join("a")
    world.pull("a", 1)
    assert world.nack("a", "m1") == ["append 6 m1 for 1/1"]
    world.sync()
    world.crash()
    world.update(QueueChanges(status=2))
    words = [word for word in world.join("b") if "<-" in word]
    assert [word.split()[2] for word in words] == ["m2", "m3", "m1"]


def test_a_failed_move_to_the_end_leaves_the_old_copy() -> None:
    world = durable(delivery_handler="putback-end", status=STATUS_PULL)
    world.push("m1", wants=True)
    world.push("m2", wants=True)
    world.sync()
    world.join("a")
    world.pull("a", 1)
    world.nack("a", "m1")
    assert world.write("no space") == []
    world.crash()
    assert world.books()["messages"] == 2


def test_a_message_that_could_not_be_saved_is_not_half_alive() -> None:
    world = durable()
    assert world.push("m1", wants=True) == ["append 3 m1"]
    assert world.write("no space") == ["p: m1 no error F"]
    assert world.books()["dropped"] == 1
    assert "messages" not in world.books()
    assert world.join("a") == ["a join: 0"]
    # A consumer that has it already keeps it.
    assert world.push("m2", wants=True) == ["append 4 m2", "a <- m2 FA"]
    assert world.write("no space") == ["p: m2 no error F"]
    assert world.ack("a", "m2") == []
    assert world.books()["done"] == 1


def test_a_cleared_message_that_could_not_be_saved_is_cleared() -> None:
    world = durable()
    world.push("m1", wants=True)
    number = world.numbers["admin"]
    world.step(ClearMessages(number, "clear", "ch", 1, True, True))
    assert world.write("no space") == ["p: m1 no error F"]
    world.finish()
    assert world.books()["cleared"] == 1
    assert world.broker.statistics().bytes == 0


def test_while_the_storage_fails_durable_pushes_are_refused_and_consumers_go_on() -> None:
    world = durable()
    world.create(queue_id=2)
    world.push("m1")
    world.sync()
    world.state(False)
    assert world.push("m2", wants=True) == ["p wire of m2: 503", "p: m2 no storage F"]
    assert world.push("m3", queue_id=2, wants=True) == ["p: m3 ok F"]
    assert world.join("a") == ["a <- m1 FA", "a <- m3 FA", "a join: 0"]
    assert world.ack("a", "m1") == ["erase 4"]
    world.state(True)
    assert world.push("m4")[0].startswith("append")


def test_too_much_that_is_not_yet_saved_is_refused() -> None:
    world = KeptWorld(EngineLimits(max_unsynced_bytes=20))
    world.create(DURABLE)
    world.sync()
    assert world.push("m1", wants=True) == ["append 3 m1"]
    assert world.push("m2", wants=True) == ["append 4 m2"]
    assert world.push("m3", wants=True) == ["p wire of m3: 503", "p: m3 no storage F"]
    assert world.write() == ["p: m1 ok F", "p: m2 ok F"]
    assert world.push("m3", wants=True) == ["append 5 m3"]


def test_without_a_storage_no_queue_is_durable() -> None:
    world = World()
    for options in (
        QueueChanges(durable=True),
        QueueChanges(overflow=True),
        QueueChanges(retain_time_ms=1),
    ):
        assert world.create(options)[-1] == "admin create: 406"
    assert world.create()[-1] == "admin create: 0"
    assert world.update(DURABLE) == ["admin update: 406"]
    with pytest.raises(ValueError, match="durable"):
        Broker(None, BrokerOptions(channel=ChannelOptions(queue=QueueOptions(durable=True))))


def test_contradicting_options_are_refused() -> None:
    world = KeptWorld()
    assert world.create(QueueChanges(durable=True, ephemeral=True))[-1] == "admin create: 400"
    assert world.create(QueueChanges(memory_limit=-1))[-1] == "admin create: 400"


def test_a_cache_keeps_its_latest() -> None:
    world = durable(status=STATUS_CACHE)
    for each in ("m1", "m2", "m3"):
        world.push(each)
    world.sync()
    world.crash()
    world.join("a")
    assert world.pull("a") == ["a pull: answer m3"]


def test_a_dead_letter_is_in_one_of_both_queues_whatever_happens() -> None:
    world = KeptWorld()
    world.create(
        QueueChanges(
            durable=True, delivery_handler="putback-start", put_back_limit=1, dead_letter=("g", 1)
        )
    )
    world.create(DURABLE, channel="g")
    world.push("m1", wants=True)
    world.sync()
    world.join("a")
    world.nack("a", "m1")
    world.nack("a", "m1")
    assert world.books(channel="g")["messages"] == 1
    assert world.write("no space") == []
    world.crash()
    assert world.books()["messages"] == 1  # still where it was
    world.join("b")
    world.nack("b", "m1")
    world.nack("b", "m1")
    world.sync()
    world.crash()
    assert world.books() == {}
    (message,) = world.queue("g").regular._messages
    assert message.readdressed
    assert (message.channel, message.queue_id) == ("g", 1)


def put_back_twice(world: KeptWorld, ok: bool) -> None:
    """A saved message goes to the end of its queue twice; the copy in between is written, or not,
    and the last one is not."""
    world.nack("a", "m1")
    between = world.journal.take()
    world.nack("a", "m1")
    if ok:
        world.store.write(between.batch, 1)
    answer = world.journal.finished(between, ok)
    assert answer is not None
    world.step(answer)
    world.write("no space")


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize("end", ["crash", "again", "ack"])
def test_a_saved_message_that_was_put_back_twice_had_no_copy_after_a_failed_write(
    ok: bool, end: str
) -> None:
    world = durable(delivery_handler="putback-end", put_back_limit=9)
    world.join("a")
    world.push("m1")
    world.sync()
    put_back_twice(world, ok)
    if end == "again":
        put_back_twice(world, ok)
    elif end == "ack":
        world.update(QueueChanges(delivery_handler="ack-if-asked"))
        world.ack("a", "m1")
    world.sync()
    assert len(world.store._queues[1].owed) == (end != "ack")
    world.crash()
    world.sync()
    assert world.books().get("messages", 0) == (end != "ack"), "it was gone, or came again"


def test_a_dead_letter_of_what_was_just_put_back_had_no_copy_after_a_failed_write() -> None:
    world = KeptWorld()
    again = QueueChanges(
        durable=True, delivery_handler="putback-end", put_back_limit=1, dead_letter=("g", 1)
    )
    world.create(again)
    world.create(DURABLE, channel="g")
    world.join("a")
    world.push("m1")
    world.sync()
    put_back_twice(world, ok=True)
    assert world.books(channel="g")["messages"] == 1
    world.wait(0.0)
    world.write()  # what the failed batch had to settle, and no more
    world.crash()
    world.sync()
    assert world.books().get("messages", 0) + world.books(channel="g").get("messages", 0) == 1


def test_decisions_save_in_any_queue() -> None:
    class SaveWhenSent(DeliveryHandler):
        def consumer_received(
            self, queue: QueueFacts, message: Message, consumer: Client
        ) -> Decision:
            return Decision(True, True)

    world = KeptWorld(handlers={"late": SaveWhenSent()})
    world.create(QueueChanges(delivery_handler="late"))
    world.push("m1")
    world.push("m2")
    world.sync()
    world.join("a", credit=1)
    world.sync()
    world.crash()
    assert world.join("b") == ["b <- m1 AR", "b join: 0"]
    assert world.ack("b", "m1")[-1].startswith("erase")


def test_routers_and_their_bindings_come_back() -> None:
    world = KeptWorld()
    world.connect("admin")
    number = world.numbers["admin"]
    world.step(CreateRouter(number, "r", "one", 1))
    world.step(CreateRouter(number, "r", "two", 0))
    for name, priority in (("low", 1), ("high", 5)):
        binding = BindingOptions(name, TO_QUEUE, "ch", 3, priority, 0, 0)
        world.step(AddBinding(number, "r", "one", binding))
    world.step(RemoveRouter(number, "r", "two"))
    world.sync()
    world.crash()
    world.connect("admin")
    number = world.numbers["admin"]
    world.step(ListBindings(number, "r", "one"))
    (reply,) = world.last
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, list)
    assert [each.name for each in reply.body] == ["high", "low"]
    assert world.step(ListBindings(number, "r", "two")) == ["admin r: 404"]


def test_a_removed_channel_does_not_come_back() -> None:
    world = durable()
    world.push("m1", wants=True)
    number = world.numbers["admin"]
    assert world.step(RemoveChannel(number, "remove", "ch")) == ["ForgetQueue 4", "ForgetChannel 5"]
    assert world.sync() == ["p: m1 ok F", "admin remove: 0"]
    world.crash()
    assert world.broker.queues() == []
    assert world.broker.statistics().channels == 0


@pytest.mark.parametrize("fails", ["", "full"])
def test_a_removal_of_several_channels_was_answered_before_it_was_on_the_disk(fails: str) -> None:
    """The last one was over first, so the step that answered had changed nothing (seed 51566)."""
    world = KeptWorld(EngineLimits(max_work_per_step=1))
    for channel, queues in (("x", 5), ("y", 1)):
        for queue_id in range(queues):
            world.create(DURABLE, channel=channel, queue_id=queue_id)
    world.sync()
    world.connect("a")
    told = world.step(RemoveChannels(world.numbers["a"], "r", ["x", "y"])) + world.finish()
    assert told.count("ForgetChannel 12") == told.count("ForgetChannel 16") == 1
    assert not any(word.startswith("a r") for word in told)
    assert world.write(fails) == ["a r: 503" if fails else "a r: 0"]


def test_options_come_back() -> None:
    world = KeptWorld()
    options = QueueChanges(
        durable=True,
        status=STATUS_PULL,
        tag="blue",
        memory_limit=7,
        dead_letter=("g", 2),
        retain_bytes=99,
        retain_for_readers=True,
    )
    world.create(options)
    world.update(QueueChanges(acknowledge_timeout_ms=77))
    world.sync()
    before = repr(world.queue().options)
    world.crash()
    assert repr(world.queue().options) == before
    assert "acknowledge_timeout_ms=77" in before


def test_a_decision_to_save_fails_at_once_while_the_storage_fails() -> None:
    world = KeptWorld(EngineLimits(max_unsynced_bytes=15))
    world.create(QueueChanges(delivery_handler="ack-ifsaved"))
    world.sync()
    assert world.push("m1") == ["append 3 m1"]
    assert world.push("m2") == ["p: m2 no storage F"]  # too much to do already
    assert world.write() == ["p: m1 ok F"]
    world.state(False)
    assert world.push("m3") == ["p: m3 no storage F"]
    assert world.books()["messages"] == 3  # nobody promised that they are on disk


def test_the_event_of_a_saved_message_comes_when_it_is_saved_and_says_so() -> None:
    world = durable()
    heard: list[MessageFact] = []

    def told(effects: list[Effect]) -> list[str]:
        for effect in effects:
            if isinstance(effect, Inform) and isinstance(effect.fact, MessageFact):
                heard.append(effect.fact)
        return KeptWorld.told(world, effects)

    world.told = told  # type: ignore[method-assign]
    world.connect("e")
    world.step(SubscribeEvent(world.numbers["e"], "r", MESSAGE_PRODUCED, "ch", 1))
    world.push("m1")
    assert not heard
    world.write()
    assert [(fact.message_id, fact.saved) for fact in heard] == [("m1", True)]
    world.push("m2")
    world.write("the disk is full")
    assert [(fact.message_id, fact.saved) for fact in heard[1:]] == [("m2", False)]
