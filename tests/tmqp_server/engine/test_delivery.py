"""Decisions, handlers of users, their order of being asked, and what happens when they raise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tmqp_server.engine.world import World
from tmqp.constants import (
    DECIDE_ACK_ALWAYS,
    DECIDE_ACK_IF_SAVED,
    DECIDE_ACK_NEGATIVE,
    DECIDE_ACK_NONE,
    PUT_BACK_END,
    PUT_BACK_NO,
    PUT_BACK_START,
    STATUS_BROADCAST,
    STATUS_PAUSED,
)
from tmqp_server.engine.commands import Block
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import (
    ACKNOWLEDGE,
    ALLOW,
    HOOK_CAN_RECEIVE,
    HOOK_END_SEND,
    HOOKS,
    NEGATIVE,
    PUT_BACK_AT_END,
    PUT_BACK_AT_START,
    REFUSE,
    Decision,
    DeliveryHandler,
    HandlerRegistry,
    QueueFacts,
    combine,
    hooks_of,
)
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import QueueChanges

HOOKS_OF_A_SENDING = [
    "received_from_producer",
    "begin_send",
    "can_consumer_receive",
    "consumer_received",
    "end_send",
    "message_dequeued",
]


class Scripted(DeliveryHandler):
    """Notes what it is asked; answers ALLOW, or what the script says for a method."""

    def __init__(self, **script: Any) -> None:
        self.script = script
        self.calls: list[str] = []

    def _answer(self, name: str, detail: str = "") -> Decision:
        self.calls.append(f"{name} {detail}".rstrip())
        answer = self.script.get(name, ALLOW)
        if isinstance(answer, list):
            answer = answer.pop(0) if answer else ALLOW
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        return self._answer("received_from_producer")

    def begin_send(self, queue: QueueFacts, message: Message) -> Decision:
        return self._answer("begin_send")

    def can_consumer_receive(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        return self._answer("can_consumer_receive", consumer.client_id)

    def consumer_received(self, queue: QueueFacts, message: Message, consumer: Client) -> Decision:
        return self._answer("consumer_received", consumer.client_id)

    def consumer_receive_failed(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        return self._answer("consumer_receive_failed", consumer.client_id)

    def end_send(self, queue: QueueFacts, message: Message) -> Decision:
        return self._answer("end_send")

    def message_dequeued(self, queue: QueueFacts, message: Message) -> None:
        self._answer("message_dequeued")

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: Client, positive: bool, reason: str
    ) -> Decision:
        return self._answer("acknowledge_received", f"{consumer.client_id} {positive} {reason}")

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        return self._answer("acknowledge_timed_out", consumer.client_id)

    def message_timed_out(self, queue: QueueFacts, message: Message) -> Decision:
        return self._answer("message_timed_out")

    def exception_thrown(self, queue: QueueFacts, message: Message, error: Exception) -> Decision:
        self.calls.append(f"exception_thrown {type(error).__name__}")
        answer = self.script.get("exception_thrown")
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer  # type: ignore[no-any-return]
        return super().exception_thrown(queue, message, error)

    def save_message(self, queue: QueueFacts, message: Message) -> bool:
        self._answer("save_message")
        return True


def scripted(changes: QueueChanges | None = None, **script: Any) -> tuple[World, Scripted]:
    handler = Scripted(**script)
    world = World(handlers={"scripted": handler})
    world.create(QueueChanges(delivery_handler="scripted"))
    if changes is not None:
        world.update(changes)
    return world, handler


# --- Decisions -----------------------------------------------------------------------------------


def test_decisions_are_checked() -> None:
    with pytest.raises(ValueError, match="put_back"):
        Decision(True, False, 3)
    with pytest.raises(ValueError, match="acknowledge"):
        Decision(True, False, 0, 4)
    with pytest.raises(ValueError, match="acknowledge"):
        Decision(True, False, 0, -1)


def test_combining() -> None:
    assert combine(ALLOW, ALLOW) is ALLOW
    places = (PUT_BACK_NO, PUT_BACK_START, PUT_BACK_END)
    for one in places:
        for other in places:
            where = combine(Decision(put_back=one), Decision(put_back=other)).put_back
            wanted = {one, other} - {PUT_BACK_NO}
            assert where == min(wanted, default=PUT_BACK_NO), (one, other)
    order = [DECIDE_ACK_ALWAYS, DECIDE_ACK_IF_SAVED, DECIDE_ACK_NEGATIVE, DECIDE_ACK_NONE]
    for one in order:
        for other in order:
            told = combine(
                Decision(acknowledge=one, reason=str(one)),
                Decision(acknowledge=other, reason=str(other)),
            )
            best = min(one, other, key=order.index)
            assert (told.acknowledge, told.reason) == (best, str(best))
    for allow in (False, True):
        for save in (False, True):
            both = combine(Decision(allow, save), REFUSE)
            assert (both.allow, both.save) == (allow, save)


# --- The registry --------------------------------------------------------------------------------


def test_the_registry() -> None:
    registry = HandlerRegistry()
    handler = DeliveryHandler()
    registry.register("mine", handler)
    assert registry.find("mine") is handler
    assert registry.find("Mine") is None
    assert registry.names() == ["mine"]
    with pytest.raises(ValueError, match="'mine' is registered already"):
        registry.register("mine", handler)
    with pytest.raises(ValueError, match="needs a name"):
        registry.register("", handler)


def test_hooks_are_the_overridden_methods() -> None:
    class Two(DeliveryHandler):
        def can_consumer_receive(
            self, queue: QueueFacts, message: Message, consumer: Client
        ) -> Decision:
            return ALLOW

        def end_send(self, queue: QueueFacts, message: Message) -> Decision:
            return ALLOW

    class Inherits(Two):
        pass

    assert hooks_of(DeliveryHandler()) == 0
    assert hooks_of(Two()) == HOOK_CAN_RECEIVE | HOOK_END_SEND
    assert hooks_of(Inherits()) == HOOK_CAN_RECEIVE | HOOK_END_SEND
    assert hooks_of(Scripted()) == sum(HOOKS.values())


def test_the_plain_handler_allows_everything() -> None:
    world = World(handlers={"plain": DeliveryHandler()})
    world.create(QueueChanges(delivery_handler="plain", acknowledge_timeout_ms=1000))
    world.join("a")
    assert world.push("m1", wants=True) == ["a <- m1 FA"]
    world.ack("a", "m1")
    world.push("m2")
    assert world.wait(2) == []
    plain = DeliveryHandler()
    queue = world.queue()
    message = queue.take() if queue.regular_count else None
    assert message is None
    world.leave("a")
    world.push("m3")
    message = world.queue().take()
    client = Client(1, "a", None, None, "", None, False, 0.0)
    assert plain.received_from_producer(queue, message) is ALLOW
    assert plain.begin_send(queue, message) is ALLOW
    assert plain.can_consumer_receive(queue, message, client) is ALLOW
    assert plain.consumer_received(queue, message, client) is ALLOW
    assert plain.consumer_receive_failed(queue, message, client) is ALLOW
    assert plain.end_send(queue, message) is ALLOW
    assert plain.acknowledge_received(queue, message, client, True, "") is ALLOW
    assert plain.acknowledge_timed_out(queue, message, client) is ALLOW
    assert plain.message_timed_out(queue, message) is ALLOW
    assert plain.save_message(queue, message)
    plain.message_dequeued(queue, message)
    assert "ch/1" in repr(queue)


# --- The order of being asked (F103) -------------------------------------------------------------


def test_the_order() -> None:
    world, handler = scripted()
    world.join("a")
    world.join("b")
    assert world.push("m1") == ["a <- m1 FA", "b <- m1 A"]
    assert handler.calls == [
        "received_from_producer",
        "begin_send",
        "can_consumer_receive a",
        "can_consumer_receive b",
        "consumer_received a",
        "consumer_received b",
        "end_send",
        "message_dequeued",
    ]
    handler.calls.clear()
    world.nack("b", "m1", "why")
    world.wait(16)
    assert handler.calls == ["acknowledge_received b False why", "acknowledge_timed_out a"]


def test_a_consumer_that_cannot_take_it_fails() -> None:
    world, handler = scripted(QueueChanges(status=STATUS_BROADCAST))
    world.join("a")
    world.join("b")
    world.step(Block(world.numbers["a"]))
    assert world.push("m1") == ["b <- m1 FA"]
    assert "consumer_receive_failed a" in handler.calls
    assert "consumer_received b" in handler.calls


def test_begin_send_may_end_the_pass() -> None:
    world, handler = scripted(begin_send=REFUSE)
    world.join("a")
    assert world.push("m1") == []
    assert handler.calls == ["received_from_producer", "begin_send", "message_dequeued"]
    assert world.books()["dropped"] == 1


def test_begin_send_is_told_before_the_delivery() -> None:
    world, _ = scripted(begin_send=ACKNOWLEDGE)
    world.join("a")
    assert world.push("m1") == ["p: m1 ok F", "a <- m1 FA"]


def test_a_refused_consumer_is_passed_over() -> None:
    world, handler = scripted(can_consumer_receive=[REFUSE, ALLOW])
    world.join("a")
    world.join("b")
    assert world.push("m1") == ["b <- m1 FA"]
    assert "consumer_received a" not in handler.calls


def test_a_message_for_nobody_is_dropped_or_put_back() -> None:
    world, _ = scripted(can_consumer_receive=REFUSE)
    world.join("a")
    assert world.push("m1") == []
    assert world.books()["dropped"] == 1
    world, handler = scripted(can_consumer_receive=[Decision(False, False, PUT_BACK_END)])
    world.join("a")
    assert world.push("m1") == ["a <- m1 FA"]
    assert handler.calls.count("begin_send") == 2


def test_a_put_back_in_the_pass_waits_for_the_acknowledges() -> None:
    world, _ = scripted(end_send=[PUT_BACK_AT_END])
    world.join("a")
    assert world.push("m1") == ["a <- m1 FA"]
    assert world.books()["in_flight"] == 1
    assert world.ack("a", "m1") == ["a <- m1 AR"]


def test_a_put_back_in_the_pass_goes_round_until_its_limit_where_nobody_answers() -> None:
    world, _ = scripted(
        QueueChanges(request_acknowledge=False, put_back_limit=2), end_send=PUT_BACK_AT_START
    )
    world.join("a")
    assert world.push("m1") == ["a <- m1 F", "a <- m1 R", "a <- m1 R"]
    assert world.books()["dropped"] == 1


def test_one_put_back_is_enough() -> None:
    world, _ = scripted(
        QueueChanges(request_acknowledge=False), consumer_received=[PUT_BACK_AT_START, ALLOW]
    )
    world.join("a")
    world.join("b")
    assert world.push("m1")[2:] == ["a b <- m1 R"]


def test_the_best_of_several_decisions_is_told() -> None:
    world, _ = scripted(consumer_received=[NEGATIVE, ACKNOWLEDGE])
    world.join("a")
    world.join("b")
    assert world.push("m1") == ["a <- m1 FA", "b <- m1 A", "p: m1 ok"]


def test_not_allowed_but_put_back_is_kept_and_has_its_turn() -> None:
    for where in (PUT_BACK_START, PUT_BACK_END):
        world, _ = scripted(received_from_producer=[ALLOW, Decision(False, False, where)])
        world.update(QueueChanges(status=STATUS_PAUSED))
        world.push("m1")
        assert world.push("m2") == []
        first = world.queue().take().message_id
        assert first == ("m2" if where == PUT_BACK_START else "m1")
    world, _ = scripted(received_from_producer=[Decision(False, False, PUT_BACK_END)])
    world.join("a")
    assert world.push("m1") == ["a <- m1 FA"]


def test_an_expired_message_may_wait_on_in_its_place() -> None:
    world, handler = scripted(
        QueueChanges(message_timeout_ms=1000), message_timed_out=[PUT_BACK_AT_END]
    )
    world.push("m1")
    world.push("m2", high=True)
    world.push("m3")
    world.wait(2)
    assert handler.calls.count("message_timed_out") == 3
    # m1 was asked about after the high-priority one.
    books = world.books()
    assert (books["expired"], books["requeued"]) == (2, 1)
    assert world.wait(60) == []
    assert world.join("a") == ["a <- m2 FA", "a join: 0"]


def test_a_regular_message_waits_on_in_its_place_too() -> None:
    world, _ = scripted(
        QueueChanges(message_timeout_ms=1000), message_timed_out=[ALLOW, PUT_BACK_AT_END]
    )
    for name in ("m1", "m2", "m3"):
        world.push(name)
    world.wait(2)
    assert world.join("a") == ["a <- m2 FA", "a join: 0"]


def test_a_time_out_may_save_and_tell() -> None:
    both = Decision(True, True, PUT_BACK_NO, DECIDE_ACK_NEGATIVE)
    world, _ = scripted(QueueChanges(acknowledge_timeout_ms=1000), acknowledge_timed_out=both)
    world.join("a")
    world.push("m1")
    assert world.wait(2) == ["append 1 m1", "p: m1 no timeout", "erase 1"]


def test_an_expired_message_may_be_sent_after_all() -> None:
    world, _ = scripted(QueueChanges(message_timeout_ms=1000), message_timed_out=[PUT_BACK_AT_END])
    world.push("m1")
    world.push("m2")
    world.now += 1.0
    assert world.join("a") == ["a <- m1 FA", "a join: 0"]
    assert world.books()["expired"] == 1


def test_an_expired_message_may_be_told_of() -> None:
    world, _ = scripted(QueueChanges(message_timeout_ms=1000), message_timed_out=NEGATIVE)
    world.push("m1")
    assert world.wait(2) == ["p: m1 no timeout F"]


# --- Handlers that raise -------------------------------------------------------------------------


@pytest.mark.parametrize("step", HOOKS_OF_A_SENDING)
@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("failure", [RuntimeError("boom"), None, "nonsense"])
def test_a_raising_handler_hurts_its_message_only(step: str, wants: bool, failure: Any) -> None:
    if step == "message_dequeued":
        failure = RuntimeError("boom")  # it returns nothing, so nothing can be wrong with that
    script: dict[str, Any] = {step: [failure]}
    world, handler = scripted(None, **script)
    world.join("a")
    words = world.push("bad", wants=wants)
    world.finish()
    error = "RuntimeError" if isinstance(failure, Exception) else "TypeError"
    assert f"exception_thrown {error}" in handler.calls
    assert world.books()["errors"] == 1
    told = [word for word in words if word.startswith("p:")]
    if wants:
        assert told in (["p: bad no error F"], ["p: bad no error"])
    else:
        assert told == []
    assert world.push("good") == ["a <- good FA"]


def test_a_handler_raises_at_an_answer() -> None:
    world, _ = scripted(acknowledge_received=[RuntimeError("boom")])
    world.join("a")
    world.push("m1", wants=True)
    # The rescue's decision stands for the failed one; the consumer's answer is passed on.
    assert world.ack("a", "m1", wire="raw") == ["p: m1 ok from a"]
    assert world.books()["done"] == 1


def test_a_handler_raises_at_a_time_out() -> None:
    world, _ = scripted(acknowledge_timed_out=[RuntimeError("boom")])
    world.join("a")
    world.push("m1", wants=True)
    assert world.wait(16) == ["p: m1 no error"]
    assert world.books()["dropped"] == 1


def test_the_rescue_may_put_the_message_back() -> None:
    world, _ = scripted(begin_send=[RuntimeError("boom")], exception_thrown=PUT_BACK_AT_END)
    world.join("a")
    assert world.push("m1") == ["a <- m1 FA"]


@pytest.mark.parametrize("rescue", [ValueError("too"), "nonsense"])
def test_the_rescue_may_fail_too(rescue: Any) -> None:
    world, _ = scripted(begin_send=[RuntimeError("boom")], exception_thrown=rescue)
    world.join("a")
    assert world.push("m1", wants=True) == ["p: m1 no error F"]
    assert world.books()["errors"] == 2
    assert world.push("m2") == ["a <- m2 FA"]


def test_saving_fails_in_the_handler() -> None:
    world, _ = scripted(
        received_from_producer=Decision(True, True), save_message=RuntimeError("boom")
    )
    assert world.push("m1", wants=True) == ["p: m1 no error F"]
    assert world.books()["messages"] == 1
