"""Deliveries in flight for doors that number them, and lookup of lapsed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from tmqp._compat import mypyc_attr
from tmqp.extensions import LAPSE_REMOVED
from tmqp_server.engine.effects import Lapsed

__all__ = ["HeldDelivery", "number_of"]

_Held = TypeVar("_Held", bound="HeldDelivery")


@mypyc_attr(allow_interpreted_subclasses=True)
class HeldDelivery:
    """A delivery that its client has not answered."""

    __slots__ = ("channel", "message_id", "queue_id")

    def __init__(self, message_id: str, channel: str, queue_id: int) -> None:
        self.message_id = message_id
        self.channel = channel
        self.queue_id = queue_id


def number_of(in_hand: dict[int, _Held], lapsed: Lapsed) -> int:
    """The number of a lapsed delivery; 0 if it is not among *in_hand*.

    :param in_hand: deliveries by their numbers, from 1, in the order in which they were sent.
    """
    # The oldest time out first, and the newest are disposed of first when a queue is cleared: so
    # the one that is looked for is nearly always the first that is examined.
    numbers: Iterator[int] = iter(in_hand)
    if lapsed.reason == LAPSE_REMOVED:
        numbers = reversed(in_hand)
    for number in numbers:
        held = in_hand[number]
        if (
            held.message_id == lapsed.message_id
            and held.queue_id == lapsed.queue_id
            and held.channel == lapsed.channel
        ):
            return number
    return 0
