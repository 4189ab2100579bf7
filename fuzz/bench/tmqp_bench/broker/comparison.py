"""What a comparison is made of: contenders, workloads and aims.

A *contender* is one broker in one setting under one workload.  Every contender of a workload gets
the same payload, the same number of connections and the same window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tmqp_bench.broker.loop import Consumer, Producer

__all__ = ["Aim", "Connect", "Contender", "Cost", "Ends", "Workload", "both_builds"]

#: What a load is made of.
Ends = tuple[Sequence[Producer], Sequence[Consumer]]
#: Connects: port, payload size in bytes, number of consumers.
Connect = Callable[[int, int, int], Ends]


@dataclass(frozen=True)
class Contender:
    """``broker`` and ``setting`` are those of :func:`.servers.start`.

    ``warm_up_s``: how long it is loaded before anything counts; what compiles itself needs longer.
    """

    title: str
    broker: str
    setting: str
    connect: Connect
    warm_up_s: float = 0.5


@dataclass(frozen=True)
class Aim:
    """Ours (the first contender) is to make ``times`` as many deliveries a second as ``peer``.

    With ``latency`` its median round trip is to be at most ``times`` the peer's.
    """

    peer: str
    times: float
    latency: bool = False


@dataclass(frozen=True)
class Cost:
    """A message of ours is to cost at most ``times`` as much as under another workload of the same
    run, by deliveries a second."""

    workload: str
    times: float


@dataclass(frozen=True)
class Workload:
    """One comparison; ``copies`` 0 stands for "as many as there are consumers".

    ``window``: messages in progress at most; with ``each``, of each producer.  ``group``: those of
    one group are plotted together.
    """

    name: str
    title: str
    contenders: tuple[Contender, ...]
    aims: tuple[Aim, ...] = ()
    costs: tuple[Cost, ...] = ()
    consumers: int = 1
    copies: int = 1
    window: int = 4_096
    payload_bytes: int = 100
    group: str = "push"
    each: bool = False


def both_builds(connect: Connect, more: str = "") -> tuple[Contender, ...]:
    """This project's server, compiled and interpreted; ``more`` is added to both settings."""
    return (
        Contender("tmqp", "tmqp", f"compiled{more}", connect),
        Contender("tmqp, interpreted", "tmqp", f"interpreted{more}", connect),
    )
