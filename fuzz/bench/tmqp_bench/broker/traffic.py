"""Loads as real programs make them, which nothing was tuned to: many pairs, queues in turn,
messages that differ, consumers that compete or never read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tmqp_bench.broker import nats_wire, redis_wire, tmqp_wire
from tmqp_bench.broker.comparison import (
    Aim,
    Connect,
    Contender,
    Cost,
    Ends,
    Workload,
    both_builds,
)
from tmqp_bench.broker.mixture import Mixture, alike, subject, varied
from tmqp_bench.broker.redis_wire import STREAM
from tmqp_bench.broker.tmqp_mixed import MixedTaker, MixedTeller

__all__ = ["TRAFFIC", "our_pairs"]

_ONCE: Final = '{"RequestAcknowledge":false}'
#: What a broadcast does anyway; a push queue waits for a slow consumer without it.
_SKIPPING: Final = '{"RequestAcknowledge":false,"SkipSlowConsumers":true}'
_ACKED: Final = '{"RequestAcknowledge":true}'
_DURABLE: Final = '{"RequestAcknowledge":true,"Durable":true}'
_NATS: Final = "nats-server"
_REDIS: Final = "Redis stream"
_REDIS_SYNCED: Final = "Redis stream, AOF always"
_JETSTREAM: Final = "NATS JetStream in memory"
_JETSTREAM_SYNCED: Final = "NATS JetStream on file, synced"
_PAIRS: Final = 200
_TURNS: Final = 50
_COMPETING: Final = 16
#: What a consumer that competes reads at once, so that the others have some, too.
_SHARE: Final = 16
_READING: Final = 99


def _in_turn() -> Mixture:
    return alike(100, _TURNS)


def _queues(count: int) -> list[bytes]:
    return [subject(number) for number in range(count)]


# --- ours ----------------------------------------------------------------------------------------


def our_pairs(status: str, options: str, *, acks: bool, queues: int = 0) -> Connect:
    """As many producers as consumers, or with ``queues`` as they: each pair has its own channel."""

    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        names = [f"bench{number:03}" for number in range(consumers)]
        for channel in names:
            tmqp_wire.create_queue(port, status, options, channel)
        takers = [
            tmqp_wire.Taker(
                port, f"taker{number:03}", "teller000", payload_bytes, acks=acks, channel=channel
            )
            for number, channel in enumerate(names)
        ]
        tellers = [
            tmqp_wire.Teller(
                port,
                f"teller{number:03}",
                payload_bytes,
                confirms=acks,
                channel=names[number % consumers],
            )
            for number in range(queues or consumers)
        ]
        return tellers, takers

    return connect


def _our_mixture(make: Callable[[], Mixture], status: str, options: str, *, acks: bool) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        mixture = make()
        for number in range(mixture.queues):
            queue = tmqp_wire.QUEUE + number
            tmqp_wire.create_queue(port, status, options, tmqp_wire.CHANNEL, queue)
        takers = [
            MixedTaker(port, f"taker{number}", "teller", acks=acks) for number in range(consumers)
        ]
        return [MixedTeller(port, "teller", mixture, confirms=acks)], takers

    return connect


def _our_competitors(port: int, payload_bytes: int, consumers: int) -> Ends:
    tmqp_wire.create_queue(port, "roundrobin", _ACKED)
    takers = [
        tmqp_wire.Taker(port, f"taker{number:02}", "teller", payload_bytes, acks=True)
        for number in range(consumers)
    ]
    return [tmqp_wire.Teller(port, "teller", payload_bytes, confirms=True)], takers


def _our_crowd(status: str, *, stalled: bool) -> Connect:
    """One producer, and consumers of which one more may have joined that never reads."""

    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        tmqp_wire.create_queue(port, status, _SKIPPING if stalled else _ONCE)
        takers = [
            tmqp_wire.Taker(port, f"taker{number:02}", "teller", payload_bytes, acks=False)
            for number in range(consumers)
        ]
        if stalled:
            takers[0].beside = tmqp_wire.join(port, "stalled")
        return [tmqp_wire.Teller(port, "teller", payload_bytes, confirms=False)], takers

    return connect


# --- peers ---------------------------------------------------------------------------------------


def _nats_pairs(port: int, payload_bytes: int, consumers: int) -> Ends:
    names = _queues(consumers)
    takers = [nats_wire.Subscriber(port, payload_bytes, subject=name) for name in names]
    tellers = [
        nats_wire.Publisher(port, payload_bytes, confirms=False, subject=name) for name in names
    ]
    return tellers, takers


def _nats_mixture(make: Callable[[], Mixture]) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        takers = [nats_wire.MixedSubscriber(port)]
        return [nats_wire.MixedPublisher(port, make(), confirms=False)], takers

    return connect


def _nats_crowd(*, stalled: bool) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        takers = [nats_wire.Subscriber(port, payload_bytes) for _ in range(consumers)]
        if stalled:
            takers[0].beside = nats_wire.Subscriber(port, payload_bytes).socket
        return [nats_wire.Publisher(port, payload_bytes, confirms=False)], takers

    return connect


def _jetstream_pairs(*, on_file: bool = False, producers: int = 0) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        names = _queues(consumers)
        nats_wire.create_stream(port, on_file=on_file, subjects=names)
        takers = [nats_wire.StreamSubscriber(port, name) for name in names]
        tellers = [
            nats_wire.Publisher(
                port, payload_bytes, confirms=True, subject=names[number % consumers]
            )
            for number in range(producers or consumers)
        ]
        return tellers, takers

    return connect


def _jetstream_mixture(make: Callable[[], Mixture]) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        mixture = make()
        names = _queues(mixture.queues)
        nats_wire.create_stream(port, on_file=False, subjects=names, together=True)
        takers = [nats_wire.StreamSubscriber(port)]
        return [nats_wire.MixedPublisher(port, mixture, confirms=True)], takers

    return connect


def _jetstream_competitors(port: int, payload_bytes: int, consumers: int) -> Ends:
    (name,) = names = _queues(1)
    nats_wire.create_stream(port, on_file=False, subjects=names, shared=True)
    takers = [nats_wire.StreamSubscriber(port, name, b"all") for _ in range(consumers)]
    return [nats_wire.Publisher(port, payload_bytes, confirms=True, subject=name)], takers


def _redis_pairs(producers: int = 0) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        names = _queues(consumers)
        redis_wire.create_groups(port, names)
        takers = [redis_wire.GroupReader(port, [name]) for name in names]
        tellers = [
            redis_wire.Adder(port, payload_bytes, names[number % consumers])
            for number in range(producers or consumers)
        ]
        return tellers, takers

    return connect


def _redis_mixture(make: Callable[[], Mixture]) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        mixture = make()
        names = _queues(mixture.queues)
        redis_wire.create_groups(port, names)
        return [redis_wire.MixedAdder(port, mixture)], [redis_wire.GroupReader(port, names)]

    return connect


def _redis_competitors(port: int, payload_bytes: int, consumers: int) -> Ends:
    redis_wire.create_groups(port)
    takers = [
        redis_wire.GroupReader(port, [STREAM], b"c%d" % number, _SHARE)
        for number in range(consumers)
    ]
    return [redis_wire.Adder(port, payload_bytes)], takers


# --- workloads -----------------------------------------------------------------------------------


def _at_least_once(
    name: str,
    title: str,
    ours: Connect,
    redis: Connect,
    jetstream: Connect,
    times: float,
    *,
    consumers: int = 1,
    window: int,
    each: bool = False,
    payload_bytes: int = 100,
) -> Workload:
    return Workload(
        name,
        f"{title}, both acknowledgements",
        (
            *both_builds(ours),
            Contender(_REDIS, "redis", "memory", redis),
            Contender(_JETSTREAM, "nats", "jetstream", jetstream),
        ),
        (Aim(_REDIS, times),),
        consumers=consumers,
        window=window,
        payload_bytes=payload_bytes,
        group="traffic",
        each=each,
    )


def _at_most_once(
    name: str,
    title: str,
    ours: Connect,
    nats: Connect,
    aims: Sequence[Aim],
    *,
    costs: Sequence[Cost] = (),
    consumers: int = 1,
    copies: int = 1,
    window: int,
    each: bool = False,
    payload_bytes: int = 100,
) -> Workload:
    return Workload(
        name,
        f"{title}, at most once",
        (*both_builds(ours), Contender(_NATS, "nats", "core", nats)),
        tuple(aims),
        tuple(costs),
        consumers=consumers,
        copies=copies,
        window=window,
        payload_bytes=payload_bytes,
        group="traffic",
        each=each,
    )


def _durable(name: str, title: str, consumers: int) -> Workload:
    return Workload(
        name,
        f"50 producers, durable, one unacknowledged message each, {title}",
        (
            *both_builds(our_pairs("push", _DURABLE, acks=True, queues=_TURNS), "+durable"),
            Contender(_REDIS_SYNCED, "redis", "always", _redis_pairs(_TURNS)),
            Contender(
                _JETSTREAM_SYNCED,
                "nats",
                "jetstream-synced",
                _jetstream_pairs(on_file=True, producers=_TURNS),
            ),
        ),
        (Aim(_REDIS_SYNCED, 1.5),),
        consumers=consumers,
        window=1,
        group="traffic",
        each=True,
    )


def _turns(window: int, times: float) -> Workload:
    return _at_most_once(
        f"turns-once-{window}",
        f"one producer, {_TURNS} queues in turn, {window:,} in flight",
        _our_mixture(_in_turn, "broadcast", _ONCE, acks=False),
        _nats_mixture(_in_turn),
        (Aim(_NATS, times),),
        window=window,
    )


def _crowd(name: str, title: str, status: str, beside: Cost | None = None) -> Workload:
    """One producer and many consumers; with *beside*, one more that never reads, and what a message
    may cost then."""
    stalled = beside is not None
    return _at_most_once(
        name,
        title,
        _our_crowd(status, stalled=stalled),
        _nats_crowd(stalled=stalled),
        (),
        costs=() if beside is None else (beside,),
        consumers=_READING,
        copies=_READING,
        window=400,
    )


_VARIED_TITLE: Final = "16 to 2,000 bytes, two random headers, 10 % with high priority"
_VARIED_BYTES: Final = 1_008

#: In the order of the report.
TRAFFIC: Final[tuple[Workload, ...]] = (
    _at_least_once(
        "pairs",
        f"{_PAIRS} producers, consumers and queues, one unacknowledged message each",
        our_pairs("push", _ACKED, acks=True),
        _redis_pairs(),
        _jetstream_pairs(),
        1.2,
        consumers=_PAIRS,
        window=1,
        each=True,
    ),
    _at_most_once(
        "pairs-once",
        f"{_PAIRS} producers, consumers and queues, one in flight each",
        our_pairs("broadcast", _ONCE, acks=False),
        _nats_pairs,
        (Aim(_NATS, 1.3),),
        consumers=_PAIRS,
        window=1,
        each=True,
    ),
    _at_least_once(
        "turns",
        f"one producer, {_TURNS} queues in turn, 256 in flight",
        _our_mixture(_in_turn, "push", _ACKED, acks=True),
        _redis_mixture(_in_turn),
        _jetstream_mixture(_in_turn),
        2.0,
        window=256,
    ),
    _turns(256, 1.2),
    _turns(4_096, 0.8),
    _at_least_once(
        "varied",
        _VARIED_TITLE,
        _our_mixture(varied, "push", _ACKED, acks=True),
        _redis_mixture(varied),
        _jetstream_mixture(varied),
        2.5,
        window=1_024,
        payload_bytes=_VARIED_BYTES,
    ),
    _at_most_once(
        "varied-once",
        _VARIED_TITLE,
        _our_mixture(varied, "broadcast", _ONCE, acks=False),
        _nats_mixture(varied),
        (Aim(_NATS, 1.0),),
        window=1_024,
        payload_bytes=_VARIED_BYTES,
    ),
    _at_least_once(
        "producers-100",
        "100 producers, one queue and one consumer, 4 unacknowledged messages each",
        our_pairs("push", _ACKED, acks=True, queues=100),
        _redis_pairs(100),
        _jetstream_pairs(producers=100),
        1.2,
        window=4,
        each=True,
    ),
    _at_least_once(
        "competing-16",
        f"one queue, {_COMPETING} consumers that compete, 256 in flight",
        _our_competitors,
        _redis_competitors,
        _jetstream_competitors,
        2.0,
        consumers=_COMPETING,
        window=256,
    ),
    _durable("producers-durable-50", f"{_TURNS} queues", _TURNS),
    _durable("producers-durable-1", "one queue", 1),
    _crowd("reading", f"1 to {_READING} broadcast, 400 in flight", "broadcast"),
    _crowd(
        "stalled",
        f"1 to {_READING} broadcast beside a consumer that never reads",
        "broadcast",
        Cost("reading", 1.05),
    ),
    _crowd(
        "stalled-push",
        f"push that skips slow consumers, 1 to {_READING} beside one that never reads",
        "push",
        Cost("reading", 2.0),
    ),
)
