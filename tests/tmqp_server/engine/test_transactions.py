"""Transactions in the engine: staged in silence, there at once when safe, and only once."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.staging import (
    DURABLE,
    all_of,
    answer,
    commit,
    committed,
    listed,
    message_set,
    opened,
    push,
    ready,
    t,
)
from tests.tmqp_server.engine.test_spilling import delivered
from tmqp.constants import (
    STATUS_BROADCAST,
    STATUS_CACHE,
    STATUS_PAUSED,
    STATUS_PULL,
    STATUS_PUSH,
    STATUS_STOPPED,
)
from tmqp_server.engine.commands import (
    AbortTransaction,
    ClearMessages,
    CommitTransaction,
    OpenTransaction,
    PushTransaction,
    RemoveQueue,
)
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import ALLOW, Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import QueueChanges

# --- The way through -----------------------------------------------------------------------------


def test_nothing_is_seen_before_it_is_safe() -> None:
    world = ready()
    world.join("a")
    one, two = opened(world, part=0), opened(world, part=1)
    assert push(world, one, message_set("m1", "m2")) == ["t push: 0 with body"]
    assert (answer(world).count, answer(world).size) == (2, 20)
    push(world, two, message_set("m3"))
    assert world.sync() == []
    (word,) = commit(world, 1, one, two)
    assert word.startswith("CommitStored")
    assert listed(world) == [("app", 1, "committing"), ("app", 1, "committing")]
    words = world.write()
    assert "t commit: 0 with body" in words
    assert (answer(world).state, answer(world).count, answer(world).size) == ("committed", 3, 30)
    assert delivered(words + world.sync()) == ["m1", "m2", "m3"]
    assert listed(world) == [("app", 1, "committed")]
    assert world.queue().counters.received == world.queue().counters.saved == 3


def test_a_crash_before_it_is_safe_leaves_nothing_and_one_after_it_everything() -> None:
    world = ready()
    number = opened(world)
    push(world, number, message_set("m1", "m2"))
    commit(world, 1, number)
    world.crash()
    world.connect("t")
    assert commit(world, 1, number) == ["t commit: 404"]
    assert listed(world) == []
    committed(world, 1, "m1", "m2")
    world.crash()
    world.connect("t")
    assert commit(world, 1, number) == ["t commit: 0 with body"]
    assert (answer(world).state, answer(world).count) == ("committed", 0)
    assert world.step(OpenTransaction(t(world), "open", "app", 1)) == ["t open: 0 with body"]
    assert (answer(world).state, answer(world).number) == ("committed", 0)
    assert all_of(world) == ["m1", "m2"]


def test_a_write_that_fails_is_void_as_a_whole_and_can_be_tried_again() -> None:
    world = ready()
    world.join("a")
    number = opened(world)
    push(world, number, message_set("m1", "!m2"))
    commit(world, 1, number)
    assert world.write(fails="no luck") == ["t commit: 503"]
    assert world.store.offsets([1])[0].count == 0
    assert listed(world) == [("app", 1, "open")]
    assert world.books() == {}
    assert world.sync() == []
    assert all_of(world, "b") == []
    world.crash()
    world.connect("t")
    assert listed(world) == [], "no mark without its messages"
    committed(world, 1, "m1", "!m2")
    assert all_of(world, "b") == ["!m2", "m1"]


def test_while_the_storage_fails_no_commit_begins() -> None:
    world = ready()
    number = opened(world)
    push(world, number, message_set("m1"))
    world.state(ok=False)
    assert commit(world, 1, number) == ["t commit: 503"]
    world.state(ok=True)
    assert commit(world, 1, number)[0].startswith("CommitStored")


def test_whoever_repeats_a_commit_under_way_waits_with_it_and_another_epoch_does_not() -> None:
    world = ready()
    number, later = opened(world, 1), opened(world, 2)
    push(world, number, message_set("m1"))
    push(world, later, message_set("m2"))
    commit(world, 1, number)
    assert commit(world, 1, number) == []
    assert commit(world, 2, later) == ["t commit: 503"]
    words = world.write()
    assert words.count("t commit: 0 with body") == 2
    assert commit(world, 2, later)[0].startswith("CommitStored")
    for _ in range(16):
        world.step(CommitTransaction(t(world), "more", "app", 2, [later], [-1]))
    assert commit(world, 2, later) == ["t commit: 503"], "not any number of them"
    world.sync()
    assert all_of(world) == ["m1", "m2"]


def test_attempts_that_nobody_named_go_with_the_commit() -> None:
    world = ready()
    stray, number = opened(world, 1, 0, attempt=0), opened(world, 1, 0, attempt=1)
    older, next_one = opened(world, 0), opened(world, 2)
    push(world, stray, message_set("m1"))
    push(world, number, message_set("m1"))
    commit(world, 1, number)
    world.sync()
    assert listed(world) == [("app", 2, "open"), ("app", 1, "committed")]
    assert push(world, older, message_set("m2")) == ["t push: 404"]
    assert push(world, next_one, message_set("m2")) == ["t push: 0 with body"]
    assert all_of(world) == ["m1"]


def test_the_same_attempt_begins_anew() -> None:
    world = ready()
    first = opened(world, 1, 3)
    push(world, first, message_set("m1"))
    second = opened(world, 1, 3)
    assert push(world, first, message_set("m2")) == ["t push: 404"]
    push(world, second, message_set("m3"))
    commit(world, 1, second)
    again = world.step(OpenTransaction(t(world), "open", "app", 1, 3))
    assert again == ["t open: 409"], "it is being committed"
    world.sync()
    assert all_of(world) == ["m3"]


# --- Among other messages ------------------------------------------------------------------------


def test_what_comes_later_stands_behind_it() -> None:
    world = ready(changes=QueueChanges(durable=True, status=STATUS_PAUSED))
    world.push("before")
    number = opened(world)
    push(world, number, message_set("m1", "m2", "!high"))
    commit(world, 1, number)
    world.push("behind")
    world.push("!later", high=True)
    world.push("last")
    world.sync()
    world.update(DURABLE)
    assert all_of(world) == ["!high", "!later", "before", "m1", "m2", "behind", "last"]


@pytest.mark.parametrize("fails", [False, True])
def test_pushes_and_commits_in_one_batch_come_back_after_a_crash(fails: bool) -> None:
    world = ready(changes=QueueChanges(durable=True, status=STATUS_PAUSED))
    world.push("a1")
    first, second = opened(world, 1), opened(world, 2)
    push(world, first, message_set("m1", "m2"))
    commit(world, 1, first)
    world.push("a2")
    if fails:
        world.write(fails="no luck")
        commit(world, 1, first)
    world.sync()
    push(world, second, message_set("m3"))
    commit(world, 2, second)
    world.push("a3")
    world.write()
    world.crash()
    world.update(DURABLE)
    lost = {"a1", "a2"} if fails else set()
    expected = ["a1", "m1", "m2", "a2", "m3", "a3"]
    assert all_of(world) == [each for each in expected if each not in lost]


def test_a_queue_that_is_cleared_meanwhile_is_clear() -> None:
    world = ready(changes=QueueChanges(durable=True, status=STATUS_PAUSED))
    number = opened(world)
    push(world, number, message_set("m1", "!m2"))
    commit(world, 1, number)
    world.step(ClearMessages(t(world), "clear", "ch", 1, False, True))
    world.sync()
    assert listed(world) == [("app", 1, "committed")]
    world.update(DURABLE)
    assert all_of(world) == ["!m2"]
    world.crash()
    assert all_of(world) == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_queue_that_is_cleared_while_it_is_written(fails: bool) -> None:
    world = ready(changes=QueueChanges(durable=True, status=STATUS_PAUSED))
    number = opened(world)
    push(world, number, message_set("m1", "m2"))
    commit(world, 1, number)
    writing = world.journal.take()
    world.step(ClearMessages(t(world), "clear", "ch", 1, True, True))
    if not fails:
        world.store.write(writing.batch, 1)
    answered = world.journal.finished(writing, not fails)
    assert answered is not None
    world.step(answered)
    world.sync()
    world.crash()
    world.update(DURABLE)
    assert all_of(world) == []


def test_a_queue_that_is_removed_meanwhile_is_gone() -> None:
    world = ready()
    number = opened(world)
    push(world, number, message_set("m1"))
    commit(world, 1, number)
    world.step(RemoveQueue(t(world), "remove", "ch", 1))
    assert "t commit: 0 with body" in world.sync()
    world.crash()
    assert world.broker.queues() == []
    world.connect("t")
    assert listed(world) == [("app", 1, "committed")]


def test_a_pull_waits_for_what_is_being_committed() -> None:
    world = ready(changes=QueueChanges(durable=True, status=STATUS_PULL))
    world.join("a")
    committed(world, 1, "m1", "m2")
    words = world.pull("a", 2) + world.sync()
    assert [word.split()[3] for word in words if "pull " in word and "/2" in word] == ["m1", "m2"]


def test_messages_expire_from_the_commit_on() -> None:
    world = ready(
        changes=QueueChanges(durable=True, status=STATUS_PAUSED, message_timeout_ms=5_000)
    )
    number = opened(world)
    push(world, number, message_set("m1"))
    world.wait(10.0)
    commit(world, 1, number)
    world.sync()
    world.wait(4.0)
    assert world.queue().live() == 1
    world.wait(2.0)
    assert world.queue().live() == 0


def test_what_nobody_answers_for_is_sent_again_for_it_was_promised() -> None:
    changes = QueueChanges(durable=True, status=STATUS_PUSH, acknowledge_timeout_ms=1_000)
    world = ready(changes=changes)
    world.join("a")
    committed(world, 1, "m1")
    assert delivered(world.sync()) == ["m1"]
    assert delivered(world.wait(1.5) + world.sync()) == ["m1"]


# --- Refusals ------------------------------------------------------------------------------------


class Deciding(DeliveryHandler):
    """Wants to see every message that comes."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        return ALLOW


class Picky(DeliveryHandler):
    """Wants to be asked whether a message is saved."""

    def save_message(self, queue: QueueFacts, message: Message) -> bool:
        return True


class Late(DeliveryHandler):
    """Has a say afterwards only."""

    def message_timed_out(self, queue: QueueFacts, message: Message) -> Decision:
        return ALLOW

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        return ALLOW


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (QueueChanges(status=STATUS_PUSH), 406),
        (QueueChanges(durable=True, status=STATUS_BROADCAST), 406),
        (QueueChanges(durable=True, status=STATUS_CACHE), 406),
        (QueueChanges(durable=True, delivery_handler="deciding"), 406),
        (QueueChanges(durable=True, delivery_handler="picky"), 406),
        (QueueChanges(durable=True, status=STATUS_STOPPED), 401),
        (QueueChanges(durable=True, message_size_limit=9), 482),
        (QueueChanges(durable=True, delivery_handler="late"), 0),
        (QueueChanges(durable=True, message_size_limit=10), 0),
        (QueueChanges(durable=True, status=STATUS_PULL), 0),
    ],
)
def test_queues_that_take_part_and_queues_that_do_not(changes: QueueChanges, code: int) -> None:
    handlers: dict[str, DeliveryHandler] = {
        "deciding": Deciding(),
        "picky": Picky(),
        "late": Late(),
    }
    world = ready(changes=changes, handlers=handlers)
    number = opened(world)
    words = push(world, number, message_set("m1"))
    assert words == [f"t push: {code}" + ("" if code else " with body")]
    if code:
        assert push(world, number, message_set("m2")) == ["t push: 409"], "it is broken"
        assert commit(world, 1, number) == ["t commit: 409"]
        assert listed(world) == [("app", 1, "broken")]
    else:
        assert commit(world, 1, number)[0].startswith("CommitStored")


def test_a_queue_that_changes_after_the_push_keeps_the_whole_from_being_committed() -> None:
    world = ready()
    world.create(DURABLE, queue_id=2)
    world.sync()
    number = opened(world)
    push(world, number, message_set("m1"), message_set("m2", queue_id=2))
    world.update(QueueChanges(durable=False), queue_id=2)
    world.sync()
    assert commit(world, 1, number) == ["t commit: 406"]
    world.update(QueueChanges(durable=True, message_limit=1, status=STATUS_PAUSED), queue_id=2)
    world.push("before", queue_id=2)
    world.sync()
    assert commit(world, 1, number) == ["t commit: 482"]
    world.update(QueueChanges(message_limit=2), queue_id=2)
    world.sync()
    assert commit(world, 1, number)[0].startswith("CommitStored")
    world.sync()
    other = opened(world, 2)
    push(world, other, message_set("m3"))
    world.step(RemoveQueue(t(world), "remove", "ch", 1))
    world.sync()
    assert commit(world, 2, other) == ["t commit: 404"]
    assert world.queue(queue_id=2).live() == 2


def test_a_queue_is_made_where_that_is_allowed() -> None:
    world = ready()
    number = opened(world)
    new = QueueChanges(durable=True)
    words = push(world, number, message_set("m1", queue_id=9, changes=new))
    assert [word.split()[0] for word in words] == ["StoreQueue"], "the answer waits for it"
    assert world.write() == ["t push: 0 with body"]
    plain = push(world, opened(world), message_set("m1", queue_id=8))
    assert [word.split()[0] for word in plain] == ["StoreQueue"]
    assert world.write() == ["t push: 406"]


def test_what_cannot_be_committed_together() -> None:
    world = ready()
    one, two, other = opened(world, 1, 0), opened(world, 1, 0, attempt=1), opened(world, 2)
    push(world, one, message_set("m1"))
    assert commit(world, 1, one, 99) == ["t commit: 404"]
    assert commit(world, 1, one, one) == ["t commit: 409"]
    assert commit(world, 1, one, two) == ["t commit: 409"], "two attempts of one part"
    assert commit(world, 1, one, other) == ["t commit: 409"], "another epoch's"
    assert commit(world, 1, one, counts=[2]) == ["t commit: 409"], "not all of it"
    stranger = CommitTransaction(t(world), "commit", "else", 1, [one], [-1])
    assert world.step(stranger) == ["t commit: 409"]
    assert push(world, 99, message_set("m1")) == ["t push: 404"]
    wrong = PushTransaction(t(world), "push", "else", one, [message_set("m1")])
    assert world.step(wrong) == ["t push: 404"]
    assert commit(world, 1, one, counts=[1])[0].startswith("CommitStored")
    assert push(world, one, message_set("m2")) == ["t push: 409"]


def test_a_block_that_cannot_be_read_breaks_its_transaction() -> None:
    world = ready()
    number = opened(world)
    assert world.step(PushTransaction(t(world), "push", "", number, [], 400)) == ["t push: 400"]
    assert commit(world, 1, number) == ["t commit: 409"]
    assert world.step(AbortTransaction(t(world), "abort", "app", number)) == ["t abort: 0"]


def test_giving_up() -> None:
    world = ready()
    one, two, three = opened(world, 1), opened(world, 1), opened(world, 2)
    assert world.step(AbortTransaction(t(world), "abort", "", one)) == ["t abort: 0"]
    assert world.step(AbortTransaction(t(world), "abort", "app", one)) == ["t abort: 404"]
    assert world.step(AbortTransaction(t(world), "abort", "else", two)) == ["t abort: 404"]
    assert world.step(AbortTransaction(t(world), "abort", "app", None, 1)) == ["t abort: 0"]
    assert listed(world) == [("app", 2, "open")]
    commit(world, 2, three)
    assert world.step(AbortTransaction(t(world), "abort", "app", None, 2)) == ["t abort: 409"]
    assert listed(world, "b*") == []
    assert listed(world, "a*") == [("app", 2, "committing")]


def test_a_disconnect_ends_no_transaction_and_its_time_does() -> None:
    world = ready()
    number = opened(world, timeout_ms=2_000)
    world.disconnect("t")
    world.connect("t")
    world.wait(1.5)
    assert push(world, number, message_set("m1")) == ["t push: 0 with body"]
    world.wait(1.5)
    assert listed(world) == [("app", 1, "open")], "a push begins the time anew"
    world.wait(1.0)
    assert listed(world) == []
    assert commit(world, 1, number) == ["t commit: 404"]
    assert world.broker._transactions._holdings.held == 0


def test_one_that_is_being_committed_does_not_time_out() -> None:
    world = ready()
    number = opened(world, timeout_ms=1_000)
    push(world, number, message_set("m1"))
    commit(world, 1, number)
    world.wait(5.0)
    world.write(fails="no luck")
    assert listed(world) == [("app", 1, "open")]
    world.wait(2.0)
    assert listed(world) == []


def test_whoever_has_gone_is_told_nothing() -> None:
    world = ready()
    number = opened(world)
    push(world, number, message_set("m1"))
    commit(world, 1, number)
    world.disconnect("t")
    assert [word for word in world.write() if "commit" in word] == []
    world.connect("t")
    assert listed(world) == [("app", 1, "committed")]
