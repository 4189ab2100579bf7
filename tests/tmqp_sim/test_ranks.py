"""The proof that the order of priorities is judged: what may go first, and what may not."""

from __future__ import annotations

import pytest

from tmqp_sim.ranks import Ranks, Waiting, level_of
from tmqp_sim.world import Violation, World

_QUEUE = b"q"


def _judge(*, ten: bool) -> Ranks:
    world = World(1)
    world.now = 5.0
    ranks = Ranks(world, "jms", "JMS")
    ranks.has_ten = lambda _queue: ten
    return ranks


def _waiting(*levels: int, at: float = 1.0) -> list[Waiting]:
    return [(level, at, f"m{level}") for level in levels]


@pytest.mark.parametrize(
    ("ten", "level", "others"),
    [(True, 5, (5, 3, 0)), (True, 9, (8,)), (False, 3, (4, 0)), (False, 5, (9, 7, 0))],
)
def test_what_has_no_lower_priority_may_go_first(ten: bool, level: int, others: tuple[int]) -> None:
    _judge(ten=ten).check(_QUEUE, level, "m", _waiting(*others))


@pytest.mark.parametrize(
    ("ten", "level", "others"), [(True, 5, (3, 6)), (True, 0, (1,)), (False, 4, (0, 5))]
)
def test_what_has_a_lower_priority_may_not(ten: bool, level: int, others: tuple[int]) -> None:
    judge = _judge(ten=ten)
    with pytest.raises(Violation, match=f"m of priority {level} overtakes m{others[-1]} of"):
        judge.check(_QUEUE, level, "m", _waiting(*others))


def test_what_came_at_the_same_moment_may_stand_behind() -> None:
    _judge(ten=True).check(_QUEUE, 0, "m", _waiting(9, at=5.0))


def test_a_message_without_a_priority_has_the_usual_one() -> None:
    assert (level_of(-1), level_of(0), level_of(9)) == (4, 0, 9)
