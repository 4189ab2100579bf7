"""Messages of a load that differ in their queue, size, headers and priority, for every broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

__all__ = ["HEADERS", "Mixture", "alike", "subject", "varied"]

#: The two headers of a message that has any.
HEADERS: Final = ("Customer", "Trace")
#: Messages encoded beforehand; they come round again, so a window must be smaller.
_PREPARED: Final = 8_192
_SIZES: Final = (16, 2_000)
_HIGH_SHARE: Final = 0.1


@dataclass(frozen=True)
class Mixture:
    """Messages that come round again and again.

    Each goes to the next of so many queues.  ``values``, where there are any: what stands in the
    headers of each; ``high``: whether it goes before others, where the broker can do that.
    """

    ids: Sequence[str]
    bodies: Sequence[bytes]
    queues: int = 1
    values: Sequence[tuple[str, str]] = ()
    high: Sequence[bool] = ()

    def headers_of(self, number: int) -> list[tuple[str, str]]:
        """The headers of one message."""
        return [*zip(HEADERS, self.values[number], strict=True)] if self.values else []


def alike(payload_bytes: int, queues: int) -> Mixture:
    """Messages of one size, into so many queues in turn."""
    count = _PREPARED // queues * queues
    ids = [f"{number:032x}" for number in range(count)]
    return Mixture(ids, [b"x" * payload_bytes] * count, queues)


@cache
def varied() -> Mixture:
    """Messages of 16 to 2,000 bytes with two random headers each, some of high priority; the same
    ones each time."""
    chance = Random(1)
    every = range(_PREPARED)
    return Mixture(
        [f"{chance.getrandbits(128):032x}" for _ in every],
        [b"x" * chance.randint(*_SIZES) for _ in every],
        values=[
            (f"customer-{chance.randrange(100_000)}", f"{chance.getrandbits(64):016x}")
            for _ in every
        ],
        high=[chance.random() < _HIGH_SHARE for _ in every],
    )


def subject(number: int) -> bytes:
    """What a queue is called at a broker without queue numbers; all names have one length."""
    return b"bench.%03d" % number
