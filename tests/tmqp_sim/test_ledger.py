"""The proof that the ledger sees: each promise is broken once, beside a step that keeps it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tmqp_sim.histories import WORK, share, work
from tmqp.constants import TYPE_SERVER
from tmqp.extensions import HEADER_GROUP_KEY, KEYS_STICKY
from tmqp.frames import Frame
from tmqp_server.engine.commands import (
    Acknowledge,
    Command,
    Join,
    Leave,
    Push,
    RemoveMessage,
    Synced,
    Terms,
    UpdateChannel,
)
from tmqp_server.engine.effects import Accept, Append, Confirm, Deliver, Effect, Reply
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_HIGH, Message
from tmqp_server.engine.options import ChannelChanges
from tmqp_sim.appointments import Appointments
from tmqp_sim.history import Place
from tmqp_sim.lapses import SentByLink
from tmqp_sim.ledger import Ledger
from tmqp_sim.lifetimes import Lifetimes
from tmqp_sim.world import Violation, World


class Desk:
    """A ledger, and a hand that writes into it."""

    def __init__(self, place: Place | None = None, max_in_flight: int = 10) -> None:
        self.place = work() if place is None else place
        self.world = World(1)
        self.pushes: dict[str, int] = {}
        self.sent = SentByLink()

        def pushes(uid: str) -> int:
            return self.pushes.get(uid, 0)

        self.ledger = Ledger(
            self.world,
            {self.place.key: self.place},
            max_in_flight,
            self.sent,
            pushes,
            Lifetimes(self.world, {self.place.key: self.place}, fails=False),
            Appointments(self.world, pushes),
        )
        self.client = Origin(9, "producer", None, None, "tmqp")
        for number in (1, 2, 9):
            self.step(None, Accept(number, None, f"client-{number}"))
        self.step(Join(1, "join", "work"))
        self.step(Join(2, "join", "work"))

    def step(self, command: Command | None, *effects: Effect) -> None:
        """One step of a broker that answers so."""
        if command is not None:
            self.ledger.before(command)
        else:
            self.ledger.steps += 1
        self.ledger.after(command, list(effects))

    def push(self, uid: str, *effects: Effect, high: bool = False, asks: bool = True) -> Message:
        """A message comes in."""
        self.pushes[uid] = self.pushes.get(uid, 0) + 1
        self.step(Push(9, uid, *WORK, high, asks, 1, "wire"), *effects)
        marks = MARK_HIGH if high else 0
        return Message(uid, self.client, *WORK, 1, "wire", marks, len(self.pushes))

    def deliver(
        self, message: Message, *sessions: int, first: bool = True, wants: bool = True
    ) -> Deliver:
        """A delivery of it."""
        return Deliver(list(sessions), message, "work", first, wants, not first, False)

    def answer(self, uid: str, session: int = 1) -> None:
        """A consumer answers."""
        self.step(Acknowledge(session, uid, *WORK))


def broken(checker: str, act: Callable[[], None]) -> str:
    """What the ledger says against a step."""
    with pytest.raises(Violation) as caught:
        act()
    assert caught.value.checker == checker
    return caught.value.text


def confirm(uid: str, positive: bool = True) -> Confirm:
    """What tells the producer."""
    return Confirm(9, uid, *WORK, positive, "", True, "", None)


def test_a_message_has_one_owner_until_its_time_is_up() -> None:
    desk = Desk()
    message = desk.push("a")
    desk.step(None, desk.deliver(message, 1))
    again = desk.deliver(message, 2, first=False)
    assert "sent again while sessions [1]" in broken("exclusivity", lambda: desk.step(None, again))
    desk.world.now = 1.0
    desk.step(None, again)


def test_an_answer_makes_it_free() -> None:
    desk = Desk()
    message = desk.push("a")
    desk.step(None, desk.deliver(message, 1))
    desk.answer("a")
    desk.step(None, desk.deliver(message, 2, first=False))


def test_what_was_pushed_twice_may_be_in_two_hands() -> None:
    desk = Desk()
    one, other = desk.push("a"), desk.push("a")
    desk.step(None, desk.deliver(one, 1))
    desk.step(None, desk.deliver(other, 2))
    third = Message("a", desk.client, *WORK, 1, "wire", 0, 3)
    broken("exclusivity", lambda: desk.step(None, desk.deliver(third, 1)))


def test_one_receiver_where_it_is_for_one() -> None:
    desk = Desk()
    message = desk.push("a")
    broken("exclusivity", lambda: desk.step(None, desk.deliver(message, 1, 2)))


def test_everybody_where_it_is_for_all() -> None:
    desk = Desk(share())
    message = desk.push("a")
    desk.step(None, desk.deliver(message, 1), desk.deliver(message, 2, first=False))
    other = desk.push("b")
    text = broken("audience", lambda: desk.step(None, desk.deliver(other, 1)))
    assert "passes over 2" in text


def test_nobody_gets_what_he_has_not_joined() -> None:
    desk = Desk()
    desk.step(Leave(1, "leave", "WORK"))
    message = desk.push("a")
    broken("audience", lambda: desk.step(None, desk.deliver(message, 1)))


def test_a_refused_join_is_none() -> None:
    desk = Desk()
    desk.step(Leave(1, "leave", "work"))
    again = Join(1, "again", "work")
    desk.step(again, Reply(1, "again", 482))
    message = desk.push("a")
    broken("audience", lambda: desk.step(None, desk.deliver(message, 1)))


def test_a_queue_that_waits_sends_one_at_a_time() -> None:
    desk = Desk(work("polite", waits=True))
    one, other = desk.push("a"), desk.push("b")
    desk.step(None, desk.deliver(one, 1))
    assert "while a is unanswered" in broken(
        "exclusivity", lambda: desk.step(None, desk.deliver(other, 2))
    )
    desk.answer("a")
    desk.step(None, desk.deliver(other, 2))


def test_the_older_comes_first() -> None:
    desk = Desk()
    older, younger = desk.push("a"), desk.push("b")
    desk.step(None, desk.deliver(younger, 1))
    broken("order", lambda: desk.step(None, desk.deliver(older, 1)))


def test_high_priority_comes_first() -> None:
    desk = Desk()
    regular = desk.push("a")
    high = desk.push("b", high=True)
    text = broken("order", lambda: desk.step(None, desk.deliver(regular, 1)))
    assert "overtakes ['b'] of high priority" in text
    desk = Desk()
    regular = desk.push("a")
    high = desk.push("b", high=True)
    desk.step(None, desk.deliver(high, 1))
    desk.step(None, desk.deliver(regular, 1))


def test_what_was_removed_is_not_overtaken() -> None:
    desk = Desk()
    regular = desk.push("a")
    desk.push("b", high=True)
    desk.step(RemoveMessage(9, "remove", *WORK, "b"))
    desk.step(None, desk.deliver(regular, 1))


def test_the_first_acquirer_is_the_first() -> None:
    desk = Desk()
    message = desk.push("a")
    broken("flags", lambda: desk.step(None, desk.deliver(message, 1, first=False)))
    desk = Desk()
    message = desk.push("a")
    desk.step(None, desk.deliver(message, 1))
    desk.answer("a")
    broken("flags", lambda: desk.step(None, desk.deliver(message, 2)))


def test_acknowledges_are_asked_where_they_should_be() -> None:
    desk = Desk()
    message = desk.push("a")
    broken("flags", lambda: desk.step(None, desk.deliver(message, 1, wants=False)))


def test_nobody_is_told_twice() -> None:
    desk = Desk()
    desk.push("a", confirm("a"))
    assert "more often than it asked" in broken("confirm", lambda: desk.step(None, confirm("a")))


def test_safe_is_what_the_storage_has_said() -> None:
    place = work("saved", saves=True)
    desk = Desk(place)
    message = desk.push("a")
    append = Append(1, message, *WORK, 1, 1, False, 0, 0)
    desk.step(None, append)
    assert "safe before it is" in broken("confirm", lambda: desk.step(None, confirm("a")))
    for ok, checker in ((True, ""), (False, "confirm")):
        desk = Desk(place)
        message = desk.push("a", Append(1, desk.push("b"), *WORK, 1, 1, False, 0, 0))
        desk.step(None, Append(2, message, *WORK, 1, 2, False, 0, 0))
        if checker:
            broken(checker, lambda: desk.step(Synced(1, ok, 2), confirm("a")))  # noqa: B023
        else:
            desk.step(Synced(1, ok, 2), confirm("a"))


def test_time_outs_come_in_time() -> None:
    desk = Desk()
    message = desk.push("a")
    desk.step(None, desk.deliver(message, 1))
    desk.world.now = 0.999
    broken("deadline", lambda: desk.ledger.timed_out(WORK, 1, []))
    desk = Desk()
    message = desk.push("a")
    desk.step(None, desk.deliver(message, 1))
    desk.world.now = 1.0
    desk.ledger.timed_out(WORK, 1, [])
    broken("deadline", lambda: desk.ledger.timed_out(WORK, 1, []))


def test_an_answer_between_two_time_outs_of_a_moment_is_for_the_older_of_duplicates() -> None:
    """A step may come to a part of what is due; the other part can still be answered for."""
    desk = Desk()
    one, other, duplicate = desk.push("a"), desk.push("b"), desk.push("b")
    desk.step(None, desk.deliver(one, 1), desk.deliver(other, 1))
    desk.world.now = 1.0
    desk.step(None, desk.deliver(duplicate, 1))
    desk.ledger.timed_out(WORK, 1, [other, duplicate])
    desk.answer("b")
    broken("deadline", lambda: desk.ledger.timed_out(WORK, 1, [duplicate]))
    desk.world.now = 2.0
    desk.ledger.timed_out(WORK, 1, [])


def test_what_is_too_old_is_not_sent() -> None:
    desk = Desk(work("brief", "none", expiry_s=1.0))
    message = desk.push("a")
    desk.world.now = 1.5
    text = broken("deadline", lambda: desk.step(None, desk.deliver(message, 1)))
    assert "0.5000 s too old" in text


def test_credit_is_spent() -> None:
    desk = Desk()
    desk.step(Join(1, "join", "work", 1))
    one, other = desk.push("a"), desk.push("b")
    desk.step(None, desk.deliver(one, 1))
    broken("credit", lambda: desk.step(None, desk.deliver(other, 1)))


def test_put_backs_have_their_limit() -> None:
    desk = Desk(work("retry", "accepted", put_back_limit=2))
    message = desk.push("a")
    message.attempts = 4
    broken("put-back", lambda: desk.step(None, desk.deliver(message, 1)))


def test_a_client_id_has_one_session() -> None:
    desk = Desk()
    broken("take-over", lambda: desk.step(None, Accept(3, None, "client-1")))


def test_one_consumer_takes_all_where_the_channel_says_so() -> None:
    place = work()
    desk = Desk(place)
    desk.step(None, desk.deliver(desk.push("a"), 2))
    place.single = True
    text = broken("audience", lambda: desk.step(None, desk.deliver(desk.push("b"), 2)))
    assert "goes to session 2, but 1 is to get all" in text
    desk.step(Leave(1, "leave", "work"))
    desk.step(None, desk.deliver(desk.push("c"), 2))


def test_the_single_consumer_is_the_first_of_the_highest_priority() -> None:
    place = work()
    place.single = True
    desk = Desk(place)
    desk.step(None, Accept(3, None, "client-3"))
    desk.step(Join(3, "join", "work", terms=Terms(priority=2)))
    desk.step(None, desk.deliver(desk.push("a"), 3))
    broken("audience", lambda: desk.step(None, desk.deliver(desk.push("b"), 1)))


def test_buckets_change_their_owners_when_one_consumer_takes_all_no_longer() -> None:
    place = work()
    place.groups, place.keys = 1, KEYS_STICKY
    desk = Desk(place)
    frame = Frame.build(TYPE_SERVER, "work", headers=[(HEADER_GROUP_KEY, "k")])

    def deliver(uid: str, session: int) -> None:
        desk.push(uid)
        message = Message(uid, desk.client, *WORK, 1, frame, 0, len(desk.pushes))
        desk.step(None, desk.deliver(message, session))
        desk.answer(uid, session)

    deliver("a", 1)
    desk.step(UpdateChannel(9, "update", "work", ChannelChanges(single_consumer=True)))
    deliver("b", 2)
    assert "and is session 2's" in broken("keys", lambda: deliver("c", 1))
    desk.step(UpdateChannel(9, "update", "work", ChannelChanges(single_consumer=False)))
    deliver("d", 1)
    desk.step(UpdateChannel(9, "update", "work", ChannelChanges()))
    assert "and is session 1's" in broken("keys", lambda: deliver("e", 2))
