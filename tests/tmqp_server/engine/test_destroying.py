"""DestroyWhenEmpty: an emptied queue goes, and its channel with the last one (F101).

The specification promises it twice, for the queue ("Channel Options") and for the channel ("Channel
Information").  Whatever empties the queue counts, as long as nobody has joined the channel.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.model.desk import Settings
from tests.tmqp_server.engine.model.duel import Duel
from tests.tmqp_server.engine.model.things import BROADCAST, CACHE, PULL, PUSH, ROUND_ROBIN, Word
from tests.tmqp_server.engine.staging import commit, message_set, opened, push
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_BROADCAST, STATUS_CACHE, STATUS_PULL, STATUS_STOPPED
from tmqp_server.engine.commands import (
    Acknowledge,
    ClearMessages,
    Connect,
    CreateChannel,
    CreateQueue,
    Join,
    Leave,
    OpenCursor,
    Pull,
    Push,
    PushExtras,
    RemoveCursor,
    RemoveQueue,
    UpdateChannel,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import ChannelChanges, QueueChanges


def fleeting(world: World, changes: QueueChanges | None = None, *more: int) -> World:
    """A channel that is destroyed when it is empty, with queue 1 and perhaps others."""
    if "admin" not in world.numbers:
        world.connect("admin")
    number = world.numbers["admin"]
    world.step(CreateChannel(number, None, "ch", ChannelChanges(destroy_when_empty=True)))
    for queue_id in (1, *more):
        world.step(CreateQueue(number, None, "ch", queue_id, changes))
    return world


def places(world: World) -> list[str]:
    """What there is: each channel with its queues."""
    channels = world.broker._core.channels.by_key.values()
    return [f"{each.name}: {list(each.queues)}" for each in channels]


def clear(world: World) -> None:
    world.step(ClearMessages(world.numbers["admin"], "clear", "ch", 1, True, True))
    world.finish()


def test_a_channel_emptied_by_a_clear_stayed_for_ever() -> None:
    world = fleeting(World())
    world.push("m1")
    assert places(world) == ["ch: [1]"]
    clear(world)
    assert places(world) == []


def test_a_channel_emptied_by_an_expiry_stayed_for_ever() -> None:
    world = fleeting(World(), QueueChanges(message_timeout_ms=1_000))
    world.push("m1")
    world.wait(3)
    assert places(world) == []


def test_a_channel_emptied_by_a_pull_stayed_for_ever() -> None:
    """The last message is answered for when its consumer has left."""
    world = fleeting(World(), QueueChanges(status=STATUS_PULL))
    world.push("m1")
    world.join("a")
    world.pull("a")
    world.leave("a")
    assert places(world) == ["ch: [1]"]
    world.ack("a", "m1")
    assert places(world) == []


def test_a_channel_cleared_by_the_pull_of_one_who_leaves_stayed_for_ever() -> None:
    limits = EngineLimits(max_work_per_step=2)  # the clearing outlasts the subscription
    world = fleeting(World(limits), QueueChanges(status=STATUS_PULL, request_acknowledge=False))
    for each in range(20):
        world.push(f"m{each}")
    world.join("a")
    world.pull("a", clear="hr")
    world.leave("a")
    world.finish()
    assert places(world) == []


@pytest.mark.parametrize("positive", [True, False])
def test_a_late_answer_empties_a_deserted_queue(positive: bool) -> None:
    world = fleeting(World())
    world.join("a")
    world.push("m1")
    world.leave("a")
    assert places(world) == ["ch: [1]"]
    if positive:
        world.ack("a", "m1")
    else:
        world.nack("a", "m1")
    assert places(world) == []


def test_a_message_dropped_at_its_time_out_empties_the_channel() -> None:
    world = fleeting(World(), QueueChanges(acknowledge_timeout_ms=1_000))
    world.join("a")
    world.push("m1")
    world.leave("a")  # connected still: nobody puts the message back
    world.wait(3)
    assert places(world) == []


def test_a_dead_letter_empties_the_channel() -> None:
    world = fleeting(
        World(),
        QueueChanges(delivery_handler="putback-start", put_back_limit=1, dead_letter=("g", 7)),
    )
    world.join("a")
    world.push("m1")
    world.nack("a", "m1")
    world.leave("a")
    assert places(world) == ["ch: [1]"]
    world.nack("a", "m1")
    world.finish()
    assert places(world) == ["g: [7]"]


def test_a_queue_that_is_stopped_or_removed_with_messages_takes_its_channel_along() -> None:
    world = fleeting(World())
    world.push("m1")
    world.update(QueueChanges(status=STATUS_STOPPED))
    world.finish()
    assert places(world) == []
    world = fleeting(World(), None, 2)
    world.push("m1")
    world.step(RemoveQueue(world.numbers["admin"], "remove", "ch", 1))
    world.finish()
    assert places(world) == []


def test_a_queue_goes_alone_while_others_have_messages() -> None:
    """The specification's variant for queues, which was absent."""
    world = fleeting(World(), None, 2, 3)
    world.push("m1")
    world.push("m2", queue_id=2)
    clear(world)
    assert places(world) == ["ch: [2, 3]"]
    world.join("a")
    world.ack("a", "m2", queue_id=2)
    world.push("m3", queue_id=3)
    assert places(world) == ["ch: [2, 3]"]
    world.leave("a")
    assert places(world) == ["ch: [3]"]  # 2 is empty, and nobody is there any more
    world.ack("a", "m3", queue_id=3)
    assert places(world) == []


def test_nothing_goes_that_never_held_a_message_or_has_a_consumer() -> None:
    world = fleeting(World(), QueueChanges(message_timeout_ms=1_000))
    world.wait(60)
    clear(world)
    assert places(world) == ["ch: [1]"]
    world.join("a")
    world.push("m1")
    world.ack("a", "m1")
    world.wait(60)
    assert places(world) == ["ch: [1]"]
    # A channel without the option keeps all its queues.
    world = World()
    world.create()
    world.push("m1")
    clear(world)
    assert places(world) == ["ch: [1]"]


def test_a_broadcast_that_nobody_hears_destroys_nothing() -> None:
    """The message never was in the queue; its producer may have created the queue for later."""
    world = fleeting(World(), QueueChanges(status=STATUS_BROADCAST))
    world.push("m1")
    world.finish()
    assert places(world) == ["ch: [1]"]


def test_a_message_that_takes_anothers_place_does_not_empty_a_cache() -> None:
    world = fleeting(World(), QueueChanges(status=STATUS_CACHE))
    world.push("m1")
    world.push("m2")
    world.finish()
    assert places(world) == ["ch: [1]"]
    clear(world)
    assert places(world) == []


def test_a_deferred_message_keeps_its_queue() -> None:
    world = fleeting(World(), QueueChanges(message_timeout_ms=5_000))
    world.push("m1", extras=PushExtras(delay_ms=2_000))
    world.push("m2")
    clear(world)
    assert places(world) == []
    fleeting(world, QueueChanges(message_timeout_ms=5_000))
    world.push("m3", extras=PushExtras(delay_ms=2_000))
    world.wait(1)
    assert places(world) == ["ch: [1]"]
    world.wait(10)
    assert places(world) == []


def test_a_removal_in_portions_spares_the_queue_that_got_a_message_meanwhile() -> None:
    """It was removed with the message, whose producer had been told that all is well."""
    world = World(EngineLimits(max_queues_per_channel=5_000))
    world.connect("admin", "p", "a")
    number = world.numbers["admin"]
    step = world.broker.step
    step(CreateChannel(number, None, "ch", ChannelChanges(destroy_when_empty=True)), 0.0)
    for queue_id in range(1_500):
        step(CreateQueue(number, None, "ch", queue_id), 0.0)
    step(Join(world.numbers["a"], None, "ch"), 0.0)
    step(Leave(world.numbers["a"], None, "ch"), 0.0)
    assert len(world.broker.queues()) == 500
    step(Push(world.numbers["p"], "m1", "ch", 1_400, False, False, 10, b""), 0.0)
    world.broker.on_deadline(0.0)
    assert places(world) == ["ch: [1400]"]


# --- With a storage ------------------------------------------------------------------------------


def test_a_durable_queue_goes_from_the_disk_too_whatever_is_outstanding() -> None:
    """Its only message is answered for before the storage has it."""
    world = KeptWorld()
    fleeting(world, QueueChanges(durable=True))
    world.sync()
    world.join("a")
    assert "append" in world.push("m1", wants=True)[0]
    world.leave("a")
    world.ack("a", "m1")
    assert places(world) == []
    assert "p: m1 ok F" in world.sync()
    world.crash()
    assert places(world) == []


def test_what_waits_on_disk_only_keeps_its_queue_until_it_is_cleared() -> None:
    world = KeptWorld()
    fleeting(world, QueueChanges(durable=True, memory_limit=1, status=STATUS_PULL))
    world.sync()
    for each in range(5):
        world.push(f"m{each}")
    world.sync()
    assert places(world) == ["ch: [1]"]
    clear(world)
    world.sync()
    assert places(world) == []
    world.crash()
    assert places(world) == []


def test_what_expires_on_disk_empties_the_channel_after_a_restart_as_well() -> None:
    world = KeptWorld()
    fleeting(world, QueueChanges(durable=True, message_timeout_ms=5_000))
    world.push("m1")
    world.sync()
    world.crash()
    world.sync()
    assert places(world) == ["ch: [1]"]
    world.wait(10)
    world.sync()
    assert places(world) == []


def test_the_only_copy_of_a_dead_letter_keeps_the_queue_it_is_in() -> None:
    """The letter is moved but not yet safe elsewhere: destroying the queue would lose it."""
    world = KeptWorld()
    world.create(QueueChanges(durable=True), channel="g")
    fleeting(
        world,
        QueueChanges(
            durable=True, delivery_handler="putback-start", put_back_limit=1, dead_letter=("g", 1)
        ),
    )
    world.push("m1", wants=True)
    world.sync()
    world.join("a")
    world.nack("a", "m1")
    world.leave("a")
    world.nack("a", "m1")
    assert world.books(channel="g")["messages"] == 1
    assert places(world) == ["g: [1]", "ch: [1]"]
    world.write("no space")
    assert places(world) == ["g: [1]", "ch: [1]"]
    world.crash()
    assert world.books()["messages"] == 1
    world.join("b")
    world.nack("b", "m1")
    world.leave("b")
    world.nack("b", "m1")
    world.sync()
    assert places(world) == ["g: [1]"]
    world.crash()
    assert world.books(channel="g")["messages"] == 1


def test_an_open_transaction_keeps_the_queues_it_has_messages_for() -> None:
    world = KeptWorld()
    fleeting(world, QueueChanges(durable=True))
    world.sync()
    world.connect("t")
    number = opened(world)
    push(world, number, message_set("t1"))
    world.push("m1")
    world.sync()
    clear(world)
    world.sync()
    assert places(world) == ["ch: [1]"]
    commit(world, 1, number)
    world.sync()
    assert world.books()["messages"] == 1
    clear(world)
    world.sync()
    assert places(world) == []


def test_a_queue_that_is_kept_for_readers_stays() -> None:
    world = KeptWorld()
    fleeting(world, QueueChanges(durable=True, retain_for_readers=True))
    world.connect("r")
    number = world.numbers["r"]
    world.step(OpenCursor(number, "c", "ch", 1, "reader", True))
    world.push("m1")
    world.sync()
    clear(world)
    world.sync()
    assert places(world) == ["ch: [1]"]
    world.update(QueueChanges(retain_for_readers=False))
    world.sync()
    assert places(world) == ["ch: [1]"]
    world.step(RemoveCursor(number, "c", "ch", 1, "reader"))
    world.sync()
    assert places(world) == []


def test_changed_options_of_a_channel_come_back_and_count_for_its_queues() -> None:
    """Update channel (F20): the option counts from the next message that ends."""
    world = KeptWorld()
    world.create(QueueChanges(durable=True))
    number = world.numbers["admin"]
    update = UpdateChannel(number, "update", "ch", ChannelChanges(destroy_when_empty=True))
    assert world.step(update) == ["StoreChannel 3"]
    assert "admin update: 0" in world.write()
    world.sync()
    assert places(world) == ["ch: [1]"]
    world.crash()
    world.push("m1")
    world.sync()
    world.connect("admin")
    clear(world)
    world.sync()
    assert places(world) == []
    missing = UpdateChannel(world.numbers["admin"], "update", "ch", ChannelChanges())
    assert world.step(missing) == ["admin update: 404"]


# --- Beside the model ----------------------------------------------------------------------------


@settings(max_examples=200)
@given(
    st.sampled_from([PUSH, ROUND_ROBIN, PULL, BROADCAST, CACHE]),
    st.lists(
        st.tuples(
            st.sampled_from(
                ["push", "push", "join", "leave", "answer", "clear", "pull", "remove", "wait"]
            ),
            st.sampled_from([1, 2]),
        ),
        max_size=40,
    ),
)
def test_queues_and_channels_go_when_the_model_says_so(
    status: int, happened: list[tuple[str, int]]
) -> None:
    """Words and books are compared after each command."""
    duel = Duel(Settings(), {})
    for number in (1, 2):
        duel.do(Connect(number, None, f"c{number}"))
    count = 0
    held: list[tuple[int, str, int]] = []
    options = QueueChanges(status=status, message_timeout_ms=700, acknowledge_timeout_ms=1_000)
    rules = ChannelChanges(destroy_when_empty=True)
    for what, each in happened:
        words: list[Word] = []
        # Who comes when it is gone makes it anew.
        words += duel.do(CreateChannel(1, None, "ch", rules))
        words += duel.do(CreateQueue(1, None, "ch", each, options))
        if what == "push":
            count += 1
            words += duel.do(Push(1, f"m{count}", "ch", each, False, False, 10, f"m{count}"))
        elif what == "join":
            words += duel.do(Join(each, None, "ch"))
        elif what == "leave":
            words += duel.do(Leave(each, None, "ch"))
        elif what == "answer" and held:
            number, name, queue_id = held.pop(0)
            words += duel.do(Acknowledge(number, name, "ch", queue_id, True, "", "w"))
        elif what == "clear":
            words += duel.do(ClearMessages(1, None, "ch", each, True, True))
        elif what == "pull":
            words += duel.do(Pull(each, "pull", "ch", each, 1))
        elif what == "remove":
            words += duel.do(RemoveQueue(1, None, "ch", each))
        elif what == "wait":
            words += duel.wait(0.5)
        held += [
            (int(str(word[1])), str(word[4]), int(str(word[2][1])))  # type: ignore[index]
            for word in words
            if word[0] in ("deliver", "pulled")
        ]
