"""Pull and cache queues: what is given to those who ask, and what never gets lost by it."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import (
    STATUS_CACHE,
    STATUS_PAUSED,
    STATUS_PULL,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
    STATUS_STOPPED,
)
from tmqp_server.engine.commands import (
    Block,
    ClearMessages,
    Pull,
    Push,
    RemoveQueue,
    Unblock,
    UpdateQueue,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import (
    ALLOW,
    PUT_BACK_AT_START,
    REFUSE,
    Decision,
    DeliveryHandler,
    QueueFacts,
)
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import QueueChanges

PULL = QueueChanges(status=STATUS_PULL)
PLAIN = QueueChanges(status=STATUS_PULL, request_acknowledge=False)
CACHE = QueueChanges(status=STATUS_CACHE)


def stocked(
    *messages: str, changes: QueueChanges = PLAIN, limits: EngineLimits | None = None
) -> World:
    """A world with a pull queue that holds these, high priority where the name begins with h, and
    the joined consumers a and b."""
    world = World(limits, queue_defaults())
    world.create(changes)
    for message in messages:
        world.push(message, high=message.startswith("h"))
    world.join("a")
    world.join("b")
    return world


# --- What is given -------------------------------------------------------------------------------


def test_nothing_is_sent_that_nobody_asked_for() -> None:
    world = stocked("m1")
    assert world.push("m2") == []
    assert world.books() == {"messages": 2, "accepted": 2, "received_messages": 2}


@pytest.mark.parametrize(
    ("newest_first", "order"),
    [(False, ["h1", "h2", "m1", "m2"]), (True, ["h2", "h1", "m2", "m1"])],
)
def test_order_has_high_priority_first_either_way(newest_first: bool, order: list[str]) -> None:
    world = stocked("m1", "h1", "m2", "h2")
    assert world.pull("a", 4, newest_first=newest_first) == [
        *(f"a pull {index}/4 {message} F" for index, message in enumerate(order, 1)),
        "a pull End",
    ]
    assert world.books()["done"] == 4


def test_the_count_is_what_will_be_sent() -> None:
    world = stocked("m1", "m2")
    assert world.pull("a", 10) == ["a pull 1/2 m1 F", "a pull 2/2 m2 F", "a pull End"]
    assert world.pull("a", 10) == ["a pull Empty"]


def test_a_pull_takes_no_more_than_it_sends() -> None:
    world = stocked("m1", "m2", "m3")
    assert world.pull("a", 1) == ["a pull 1/1 m1 F", "a pull End"]
    assert world.books()["messages"] == 2
    assert world.pull("b", 2) == ["b pull 1/2 m2 F", "b pull 2/2 m3 F", "b pull End"]


def test_information_counts_what_is_left_after_each_message() -> None:
    world = stocked("m1", "h1", "m2")
    assert world.pull("a", 2, info=True) == [
        "a pull 1/2 h1 F left 0+2",
        "a pull 2/2 m1 F left 0+1",
        "a pull End",
    ]


@pytest.mark.parametrize(
    ("clear", "left"), [("", 4), ("h", 2), ("r", 2), ("hr", 0)], ids=["none", "h", "r", "hr"]
)
def test_clear_comes_after_the_pull(clear: str, left: int) -> None:
    world = stocked("m1", "m2", "h1", "h2", "h3")
    assert world.pull("a", 1, clear=clear) == ["a pull 1/1 h1 F", "a pull End"]
    queue = world.queue()
    assert queue.high_count + queue.regular_count == left
    world.finish()
    assert world.books().get("cleared", 0) == 4 - left


def test_clear_does_not_ask_whether_the_count_was_reached() -> None:
    world = stocked("m1", changes=QueueChanges(status=STATUS_PULL, delivery_handler="allow-all"))
    assert world.pull("a", 5, clear="hr") == ["a pull 1/1 m1 FA", "a pull End"]
    assert world.queue().is_empty() is False  # what is in flight is not cleared
    world.ack("a", "m1")
    assert world.queue().is_empty()


def test_names_are_hidden_where_the_queue_hides_them() -> None:
    world = stocked("m1", changes=QueueChanges(status=STATUS_PULL, hide_client_names=True))
    assert world.pull("a")[0] == "a pull 1/1 m1 FA hidden"


# --- Refusals ------------------------------------------------------------------------------------


def test_each_refusal_has_its_word() -> None:
    world = stocked("m1", limits=EngineLimits(max_pull_count=7))
    world.connect("stranger")
    assert world.pull("a", channel="other") == ["a pull No-Channel"]
    assert world.pull("a", queue_id=2) == ["a pull No-Queue"]
    assert world.pull("stranger") == ["stranger pull Unauthorized"]
    assert world.pull("a", 0) == ["a pull Unacceptable"]
    assert world.pull("a", 8) == ["a pull Unacceptable"]
    assert world.books()["messages"] == 1
    assert world.pull("a", 7) == ["a pull 1/1 m1 F", "a pull End"]
    assert [queue.channel_name for queue in world.broker.queues()] == ["ch"]


@pytest.mark.parametrize("status", [STATUS_PUSH, STATUS_ROUND_ROBIN, STATUS_PAUSED, STATUS_STOPPED])
def test_other_queues_are_not_pulled_from(status: int) -> None:
    world = stocked(changes=QueueChanges(status=status))
    assert world.pull("a") == ["a pull Unacceptable"]


# --- Acknowledges --------------------------------------------------------------------------------


def test_pulled_messages_are_acknowledged_as_any() -> None:
    world = stocked(
        "m1", "m2", changes=QueueChanges(status=STATUS_PULL, delivery_handler="putback-end")
    )
    assert world.pull("a", 2)[0] == "a pull 1/2 m1 FA"
    world.ack("a", "m1")
    world.nack("a", "m2")
    assert world.books() == {
        "messages": 1,
        "accepted": 2,
        "done": 1,
        "received_messages": 2,
        "sent_messages": 2,
        "deliveries": 2,
        "acks": 1,
        "negative_acks": 1,
        "removed_messages": 2,
        "requeued": 1,
    }
    assert world.pull("b") == ["b pull 1/1 m2 A", "b pull End"]


def test_what_a_vanished_client_pulled_comes_back() -> None:
    world = stocked("m1", changes=PULL)
    world.pull("a")
    world.disconnect("a")
    world.wait(15.0)
    assert world.pull("b") == ["b pull 1/1 m1 A", "b pull End"]


def test_a_queue_that_waits_gives_one_message_at_a_time() -> None:
    world = stocked(
        "m1", "m2", "m3", changes=QueueChanges(status=STATUS_PULL, wait_for_acknowledge=True)
    )
    assert world.pull("a", 2) == ["a pull 1/2 m1 FA"]
    assert world.pull("b", 5) == []
    world.ack("a", "m1")
    assert world.finish() == ["a pull 2/2 m2 FA", "a pull End"]
    world.ack("a", "m2")
    assert world.finish() == ["b pull 1/1 m3 FA", "b pull End"]


def test_a_waiting_pull_goes_on_when_the_acknowledge_times_out() -> None:
    world = stocked("m1", "m2", changes=QueueChanges(status=STATUS_PULL, wait_for_acknowledge=True))
    assert world.pull("a", 2) == ["a pull 1/2 m1 FA"]
    assert world.wait(14.9) == []
    assert world.wait(0.1) == ["a pull 2/2 m2 FA", "a pull End"]


def test_a_waiting_pull_ends_when_nothing_is_left_for_it() -> None:
    world = stocked("m1", "m2", changes=QueueChanges(status=STATUS_PULL, wait_for_acknowledge=True))
    world.pull("a", 2)
    world.step(ClearMessages(world.numbers["a"], "clear", "ch", 1, True, True))
    assert world.finish() == []
    world.ack("a", "m1")
    assert world.finish() == ["a pull End"]


def test_a_waiting_pull_of_a_queue_that_became_a_cache_waited_for_the_acknowledge() -> None:
    world = stocked("m1", "m2", changes=QueueChanges(status=STATUS_PULL, wait_for_acknowledge=True))
    assert world.pull("a", 2) == ["a pull 1/2 m1 FA"]
    update = UpdateQueue(world.numbers["b"], None, "ch", 1, QueueChanges(status=STATUS_CACHE))
    assert world.step(update) + world.finish() == ["a pull End"]


# --- Slow consumers and long pulls ---------------------------------------------------------------


def test_a_blocked_client_keeps_its_promise_and_nobody_else_waits() -> None:
    world = stocked("m1", "m2", "m3")
    number = world.numbers["a"]
    world.step(Block(number))
    assert world.pull("a", 2) == []
    assert world.pull("b", 9) == ["b pull 1/1 m1 F", "b pull End"]
    assert world.pull("b", 9) == ["b pull Empty"]
    world.step(Unblock(number))
    assert world.finish() == ["a pull 1/2 m2 F", "a pull 2/2 m3 F", "a pull End"]


def test_what_a_client_that_leaves_had_reserved_is_there_for_others() -> None:
    world = stocked("m1", "m2")
    world.step(Block(world.numbers["a"]))
    world.pull("a", 2)
    world.disconnect("a")
    assert world.pull("b", 9) == ["b pull 1/2 m1 F", "b pull 2/2 m2 F", "b pull End"]


def test_a_client_that_does_not_answer_gets_no_more() -> None:
    world = stocked(
        *(f"m{number}" for number in range(6)),
        changes=PULL,
        limits=EngineLimits(max_in_flight_per_session=4),
    )
    assert len(world.pull("a", 6)) == 4
    world.ack("a", "m0")
    assert world.finish() == ["a pull 5/6 m4 FA"]
    world.ack("a", "m1")
    assert world.finish() == ["a pull 6/6 m5 FA", "a pull End"]


def test_a_long_pull_goes_on_over_steps_in_order() -> None:
    world = stocked(limits=EngineLimits(max_work_per_step=10))
    for number in range(35):
        world.push(f"m{number}")
    words = world.pull("a", 30)
    assert len(words) == 10
    assert world.push("late", high=True) == []
    assert world.pull("b", 30, request="other") == [
        f"b other {index}/6 {message} F"
        for index, message in enumerate(["late", "m10", "m11", "m12", "m13", "m14"], 1)
    ] + ["b other End"]
    words += world.finish()
    assert words[-1] == "a pull End"
    assert [word.split()[2] for word in words[:-1]] == [f"{n}/30" for n in range(1, 31)]
    assert world.queue().is_empty()


def test_a_pull_of_100_000_is_cut_into_steps() -> None:
    world = stocked()
    broker = world.broker
    number = world.numbers["a"]
    for each in range(20_000):
        broker.step(Push(number, f"m{each}", "ch", 1, False, False, 10, "w"), world.now)
    most = effects = len(broker.step(Pull(number, "r", "ch", 1, 100_000), world.now))
    steps = 0
    while broker.next_deadline() == world.now:
        sent = len(broker.on_deadline(world.now))
        most = max(most, sent)
        effects += sent
        steps += 1
    assert effects == 20_001
    assert most <= 1_000
    assert steps >= 20
    assert world.queue().is_empty()


def test_large_messages_are_more_work() -> None:
    world = stocked(limits=EngineLimits(max_work_per_step=100))
    for number in range(20):
        world.push(f"m{number}", size=160_000)
    assert len(world.pull("a", 20)) == 10
    assert len(world.finish()) == 11


def test_one_pull_too_many() -> None:
    world = stocked("m1", "m2", "m3", limits=EngineLimits(max_pulls_per_session=2))
    world.step(Block(world.numbers["a"]))
    assert world.pull("a") == []
    assert world.pull("a") == []
    assert world.pull("a") == ["a pull Unacceptable"]
    assert world.books()["messages"] == 3


# --- Whatever happens meanwhile ------------------------------------------------------------------


@pytest.mark.parametrize("status", [STATUS_PAUSED, STATUS_STOPPED, STATUS_CACHE])
def test_a_pull_ends_when_the_status_changes(status: int) -> None:
    world = stocked("m1", "m2", "m3", limits=EngineLimits(max_work_per_step=1))
    assert world.pull("a", 3, clear="hr") == ["a pull 1/3 m1 F"]
    world.update(QueueChanges(status=status))
    assert "a pull End" in world.finish()
    kept = {STATUS_PAUSED: 2, STATUS_STOPPED: 0, STATUS_CACHE: 0}[status]
    assert world.queue().waiting_count() == kept


def test_a_pull_ends_when_the_queue_is_removed() -> None:
    world = stocked("m1", "m2")
    world.step(Block(world.numbers["a"]))
    world.pull("a", 2)
    world.step(RemoveQueue(world.numbers["b"], "remove", "ch", 1))
    world.step(Unblock(world.numbers["a"]))
    assert world.finish() == ["a pull Empty"]


def test_messages_too_old_are_not_given() -> None:
    changes = QueueChanges(status=STATUS_PULL, message_timeout_ms=1_000)
    world = stocked("m1", changes=changes)
    world.now += 0.5
    world.push("m2")
    world.now += 0.6
    assert world.pull("a", 2) == ["a pull 1/2 m2 FA", "a pull End"]
    assert world.books()["expired"] == 1


# --- Delivery handlers ---------------------------------------------------------------------------


class Recorder(DeliveryHandler):
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def begin_send(self, queue: QueueFacts, message: Message) -> Decision:
        self.asked.append("begin")
        return ALLOW

    def can_consumer_receive(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        self.asked.append(f"can {consumer.client_id}")
        return ALLOW

    def consumer_received(self, queue: QueueFacts, message: Message, consumer: Client) -> Decision:
        self.asked.append(f"received {consumer.client_id}")
        return ALLOW

    def end_send(self, queue: QueueFacts, message: Message) -> Decision:
        self.asked.append("end")
        return ALLOW

    def message_dequeued(self, queue: QueueFacts, message: Message) -> None:
        self.asked.append("dequeued")


class Chooser(DeliveryHandler):
    """Keeps some messages from the client a, and puts some back."""

    def begin_send(self, queue: QueueFacts, message: Message) -> Decision:
        if message.message_id == "bad":
            return REFUSE
        return Decision(False, put_back=1) if message.message_id == "later" else ALLOW

    def can_consumer_receive(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        mine = message.message_id != "secret" or consumer.client_id != "a"
        return ALLOW if mine else REFUSE

    def end_send(self, queue: QueueFacts, message: Message) -> Decision:
        return PUT_BACK_AT_START if message.message_id == "again" else ALLOW


def handled(handler: DeliveryHandler, *messages: str, status: int = STATUS_PULL) -> World:
    world = World(None, queue_defaults(request_acknowledge=False), {"test": handler})
    world.create(QueueChanges(status=status, delivery_handler="test"))
    for message in messages:
        world.push(message)
    world.join("a")
    world.join("b")
    return world


@pytest.mark.parametrize("status", [STATUS_PULL, STATUS_CACHE])
def test_the_handler_is_asked_as_for_a_push(status: int) -> None:
    handler = Recorder()
    world = handled(handler, "m1", status=status)
    assert handler.asked == []
    world.pull("a", 2)
    removed = ["dequeued"] if status == STATUS_PULL else []
    assert handler.asked == ["begin", "can a", "received a", "end", *removed]


@pytest.mark.parametrize("newest_first", [False, True])
def test_what_one_client_may_not_have_stays_for_others(newest_first: bool) -> None:
    world = handled(Chooser(), "secret")
    assert world.pull("a", 3, newest_first=newest_first, clear="hr") == ["a pull Unauthorized"]
    assert world.pull("b", 3) == ["b pull 1/1 secret F", "b pull End"]
    world = handled(Chooser(), "m1", "secret", "m2")
    assert world.pull("a", 3)[-2:] == ["a pull 1/3 m1 F", "a pull End"]
    assert world.pull("b", 3)[0] == "b pull 1/2 secret F"


def test_a_message_that_goes_back_at_once_comes_once_in_a_pull() -> None:
    world = handled(Chooser(), "again", "m2")
    assert world.pull("a", 2) == ["a pull 1/2 again F", "a pull End"]
    assert world.books()["messages"] == 2
    world = handled(Chooser(), "later", "m2")
    assert world.pull("a", 2) == ["a pull Empty"]
    assert world.books()["messages"] == 2


def test_a_refused_message_is_dropped_and_the_next_one_given() -> None:
    world = handled(Chooser(), "bad", "m2")
    assert world.pull("a", 2) == ["a pull 1/2 m2 F", "a pull End"]
    assert world.books()["dropped"] == 1


def test_a_producer_hears_of_it_as_its_handler_decides() -> None:
    world = stocked("m1", changes=QueueChanges(status=STATUS_PULL, delivery_handler="ack-sent"))
    assert world.pull("a") == ["a pull 1/1 m1 FA", "p: m1 ok", "a pull End"]


# --- Cache queues --------------------------------------------------------------------------------


def test_a_cache_answers_with_the_latest_as_often_as_it_is_asked() -> None:
    world = stocked("m1", "h1", "m2", changes=CACHE)
    for _ in range(3):
        assert world.pull("a", 0) == ["a pull: answer m2"]
    world.finish()
    assert world.books() == {
        "messages": 1,
        "accepted": 3,
        "cleared": 2,
        "received_messages": 3,
        "sent_messages": 3,
        "deliveries": 3,
    }
    world.push("h3", high=True)
    world.push("m4")
    assert world.pull("b", 1) == ["b pull: answer m4"]


def test_a_cache_that_cannot_answer_says_why() -> None:
    world = stocked(changes=CACHE)
    assert world.pull("a") == ["a pull: 404"]
    world.push("m1")
    world.connect("stranger")
    assert world.pull("stranger") == ["stranger pull: 401"]
    world = handled(Chooser(), "secret", status=STATUS_CACHE)
    assert world.pull("a") == ["a pull: 401"]
    assert world.pull("b") == ["b pull: answer secret"]
    world = handled(Chooser(), "bad", status=STATUS_CACHE)
    assert world.pull("b") == ["b pull: 401"]


def test_what_is_cached_becomes_too_old() -> None:
    world = stocked("m1", changes=QueueChanges(status=STATUS_CACHE, message_timeout_ms=1_000))
    assert world.pull("a") == ["a pull: answer m1"]
    world.now += 1.0
    assert world.pull("a") == ["a pull: 404"]


@pytest.mark.parametrize(
    ("messages", "latest"),
    [(["m1", "m2"], "m2"), (["m1", "h1", "m2"], "m2"), (["m1", "m2", "h1"], "h1"), (["m1"], "m1")],
)
def test_a_queue_that_becomes_a_cache_keeps_the_latest(messages: list[str], latest: str) -> None:
    world = stocked(*messages)
    world.update(CACHE)
    assert world.queue().waiting_count() == 1
    assert world.pull("a") == [f"a pull: answer {latest}"]
    world.finish()
    assert world.books().get("cleared", 0) == len(messages) - 1


@pytest.mark.parametrize(("first", "kept"), [("m1", "m2"), ("m2", "m2")])
def test_what_comes_back_into_a_cache_replaces_only_what_is_older(first: str, kept: str) -> None:
    back = QueueChanges(status=STATUS_PULL, delivery_handler="putback-start")
    world = stocked("m1", "m2", changes=back)
    world.pull("a", 1, newest_first=first == "m2")
    world.update(CACHE)
    world.nack("a", first)
    world.finish()
    assert world.queue().waiting_count() == 1
    assert world.pull("a") == [f"a pull: answer {kept}"]


def test_what_is_given_up_on_its_way_back_into_a_cache_replaces_nothing() -> None:
    back = QueueChanges(
        status=STATUS_PULL, delivery_handler="putback-end", put_back_limit=1, dead_letter=("g", 1)
    )
    world = stocked("m1", "m2", changes=back)
    for _ in range(2):
        world.pull("a", 1, newest_first=True)
        if world.queue().flights and world.books().get("requeued"):
            world.update(CACHE)
        world.nack("a", "m2")
    assert world.books()["dead"] == 1
    assert world.pull("a") == ["a pull: answer m1"]


def test_a_cache_becomes_a_push_queue_with_what_it_holds() -> None:
    world = stocked("m1", changes=CACHE)
    world.pull("a")
    words = world.update(QueueChanges(status=STATUS_PUSH))
    assert words[0] == "a b <- m1 AR"
