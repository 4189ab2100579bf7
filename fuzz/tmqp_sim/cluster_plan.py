"""The plan of a run of several servers: who is whose master, what is pushed where, what fails.

One seed in eight stands for such a run; the others are in ``plan.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from tmqp_sim.network import Shape
from tmqp_sim.plan import ClientPlan, Fault, MessagePlan

__all__ = ["CLUSTER_FAULTS", "ClusterPlan", "draw_cluster", "is_cluster"]

#: The share of the seeds.
_SHARE: Final = 0.125
#: What can happen, and what it does to whom.
CLUSTER_FAULTS: Final[dict[str, str]] = {
    "node-cut": "a connection between servers is reset",
    "node-half-open": "a connection between servers ends without notice to either",
    "node-silence": "one direction of a connection between servers is silent for a while",
    "node-clog": "everything between servers takes longer for a while",
    "node-crash": "a server of a cluster loses its memory and comes back",
    "node-freeze": "the process of a server of a cluster is suspended",
    "node-stop": "a server of a cluster leaves politely and comes back",
    "partition": "two servers do not reach each other for a while",
    "client-cut": "a connection of a client of a cluster is reset",
}
#: Each server's masters, by number.
_TOPOLOGIES: Final = (
    ((1,), (0,)),  # a pair
    ((1,), ()),  # slave and master
    ((1,), (2,), ()),  # a chain
    ((1,), (2,), (0,)),  # a ring
    ((1, 2), (0, 2), (0, 1)),  # a mesh
    ((), (0,), (0,)),  # a star
    ((1, 2), (), ()),  # a leader
)
#: Of these, the share in which clients tell names of channels by their case.
_EXACT_SHARE: Final = 0.25
_SHORTEST_S: Final = 5.0
_LONGEST_S: Final = 12.0
#: Faults that often come right after a message.
_AMID: Final = ("node-cut", "node-half-open", "node-silence", "node-crash")
#: Faults that are drawn once at the most.
_ONCE: Final = ("node-freeze", "node-stop", "node-crash")


class ClusterPlan:
    """All that such a run begins with; a message's producer is the server that it is pushed at."""

    __slots__ = (
        "buffer_bytes", "clients", "duration_s", "exact", "faults", "lateness_s", "left_out",
        "loses_dials", "masters", "messages", "places", "producers", "quiet", "seed", "shape",
        "shares",
    )  # fmt: skip

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.quiet = False
        self.duration_s = 0.0
        self.masters: tuple[tuple[int, ...], ...] = ()
        self.shape = Shape(0.001, 0.01, 65_536, 100)
        self.lateness_s = 0.0
        #: Decisions are shared.
        self.shares = False
        #: Messages go to two channels whose names differ by case.
        self.exact = False
        #: What may wait for one master, in bytes.
        self.buffer_bytes = 65_536
        #: How many dials of a thousand are lost, come too late, or break at once.
        self.loses_dials = 0
        self.messages: list[MessagePlan] = []
        self.faults: list[Fault] = []
        self.left_out: tuple[str, ...] = ()
        #: As those who make plans smaller know them from ``Plan``.
        self.clients: list[ClientPlan] = []
        self.places: list[object] = []
        self.producers = 0

    def names(self) -> list[str]:
        """Everything that can be left out."""
        return [each.name for each in self.faults] + [each.name for each in self.messages]

    def without(self, names: Iterable[str]) -> None:
        """Leave things out."""
        gone = {*names}
        self.left_out = tuple(sorted({*self.left_out, *gone}))
        self.faults = [each for each in self.faults if each.name not in gone]
        self.messages = [each for each in self.messages if each.name not in gone]

    def described(self) -> list[str]:
        """The plan in lines."""
        return [
            (
                f"seed {self.seed}: cluster of {len(self.masters)},"
                f" {'quiet' if self.quiet else 'with faults'}, {self.duration_s:.1f} s,"
                f" {len(self.messages)} messages"
            ),
            (
                f"masters: {self.masters}, decisions {'shared' if self.shares else 'not shared'},"
                f" {'names' if self.exact else 'no names'} that differ by case,"
                f" {self.buffer_bytes} bytes wait for each, {self.loses_dials} of 1000 dials fail"
            ),
            (
                f"network: up to {self.shape.delay_max * 1000:.1f} ms,"
                f" room {self.shape.room} bytes, lateness {self.lateness_s * 1000:.1f} ms"
            ),
            *[f"fault: {each!r}" for each in self.faults],
        ]


def is_cluster(seed: int) -> bool:
    """Whether a seed stands for a run of several servers."""
    return Random(f"{seed}/cluster").random() < _SHARE


def draw_cluster(seed: int) -> ClusterPlan:
    """What such a seed stands for."""
    chance = Random(f"{seed}/cluster-plan")
    plan = ClusterPlan(seed)
    plan.quiet = chance.random() < 0.25
    plan.duration_s = chance.uniform(_SHORTEST_S, _LONGEST_S)
    plan.masters = chance.choice(_TOPOLOGIES)
    plan.producers = len(plan.masters)
    slowest = chance.choice((0.002, 0.01, 0.05))
    plan.shape = Shape(
        0.0005, slowest, chance.choice((512, 2_048, 65_536)), chance.choice((0, 500))
    )
    plan.lateness_s = chance.choice((0.0, 0.0, 0.002, 0.05))
    plan.shares = chance.random() < 0.4
    plan.exact = Random(f"{seed}/exact").random() < _EXACT_SHARE
    plan.buffer_bytes = chance.choice((65_536, 65_536, 65_536, 3_000))
    _draw_messages(plan, chance)
    if not plan.quiet:
        plan.loses_dials = chance.choice((0, 0, 100, 400))
        _draw_faults(plan)
    return plan


def _draw_messages(plan: ClusterPlan, chance: Random) -> None:
    most = chance.choice((0, 100, 1_000))
    at = 0.0
    for number in range(chance.choice((10, 30, 60))):
        if chance.random() > 0.7:
            at = chance.random() * plan.duration_s * 0.9
        producer = chance.randrange(len(plan.masters))
        size = chance.randint(0, most)
        asks = chance.random() < 0.5
        plan.messages.append(MessagePlan(f"message {number}", at, producer, 0, False, size, asks))


def _draw_faults(plan: ClusterPlan) -> None:
    for kind in CLUSTER_FAULTS:
        own = Random(f"{plan.seed}/{kind}")
        if own.random() >= 0.35:
            continue
        for count in range(1 if kind in _ONCE else own.choice((1, 2, 5))):
            lasts_s = own.choice((0.1, 1.0, 5.0))
            at = own.random() * plan.duration_s
            if kind in _AMID and own.random() < 0.7:
                # While something is being written, of which half may be out.
                at = own.choice(plan.messages).at + own.random() * 4 * plan.shape.delay_max
            plan.faults.append(Fault(f"{kind} {count}", kind, at, lasts_s, own.random()))
