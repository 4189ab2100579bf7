"""The proof that the order of ten priorities is judged by what producers wrote."""

from __future__ import annotations

import pytest

from tests.tmqp_sim.histories import WORK
from tmqp import MessageType
from tmqp.extensions import HEADER_PRIORITY
from tmqp.frames import Frame
from tmqp_server.engine.commands import Push
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_HIGH, Message
from tmqp_sim.precedence import Precedence
from tmqp_sim.world import Violation, World


class Desk:
    """The judge, and a hand that tells it things, each a second after the one before."""

    def __init__(self) -> None:
        self.world = World(1)
        self.judge = Precedence(self.world)
        self.producer = Origin(9, "producer", None, None, "tmqp")

    def push(self, uid: str, priority: int | None, *, high: bool = False) -> Message:
        """A message comes."""
        self.world.now += 1.0
        headers = [] if priority is None else [(HEADER_PRIORITY, str(priority))]
        frame = Frame.build(
            MessageType.QUEUE_MESSAGE, WORK[0], WORK[1], b"x", message_id=uid, headers=headers
        )
        self.judge.comes(WORK, Push(9, uid, *WORK, high, True, 1, frame), has_ten=True)
        return Message(uid, self.producer, *WORK, 1, frame, MARK_HIGH if high else 0, 1)

    def send(self, message: Message, likes: str = "abc") -> None:
        """It is sent, and those of these names would go to the same consumers."""
        self.world.now += 1.0
        self.judge.passes(WORK, message.message_id)
        self.judge.check(WORK, message, lambda uid: uid in likes)


def test_the_higher_one_goes_first() -> None:
    desk = Desk()
    low, high = desk.push("a", 3), desk.push("b", 4)
    with pytest.raises(Violation, match="a of priority 3 overtakes b of 4"):
        desk.send(low)
    desk.send(high)
    desk.send(low)


@pytest.mark.parametrize(("high", "level"), [(True, 9), (False, 4)])
def test_without_the_header_the_flag_counts(high: bool, level: int) -> None:
    desk = Desk()
    desk.push("a", None, high=high)
    with pytest.raises(Violation, match=f"b of priority 0 overtakes a of {level}"):
        desk.send(desk.push("b", 0))


def test_who_does_not_want_it_may_have_another() -> None:
    desk = Desk()
    desk.push("a", 9, high=True)
    desk.send(desk.push("b", 0), likes="b")


def test_what_is_there_twice_waits_until_both_are_sent() -> None:
    desk = Desk()
    first, low = desk.push("a", 8, high=True), desk.push("b", 1)
    desk.push("a", 8, high=True)
    desk.send(first)
    with pytest.raises(Violation, match="b of priority 1 overtakes a of 8"):
        desk.send(low)


def test_what_was_removed_is_overtaken_by_nothing() -> None:
    desk = Desk()
    desk.push("a", 9, high=True)
    desk.judge.removed(WORK, "a")
    desk.send(desk.push("b", 1))
    desk.push("c", 9, high=True)
    desk.judge.cleared(WORK)
    desk.send(desk.push("b", 1))
