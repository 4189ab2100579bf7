"""What is compared with what: the workloads, who takes part in each, and the aims.

Those of :mod:`.traffic` are loads that nothing was made for; each of the others shows one thing.
"""

from __future__ import annotations

from typing import Final

from tmqp_bench.broker import (
    amqp_wire,
    door_wires,
    mqtt_wire,
    nats_wire,
    nsq_wire,
    redis_wire,
    stomp_wire,
    tmqp_wire,
)
from tmqp_bench.broker.comparison import (
    Aim,
    Connect,
    Contender,
    Cost,
    Ends,
    Workload,
    both_builds,
)
from tmqp_bench.broker.jms import JMS
from tmqp_bench.broker.traffic import TRAFFIC, our_pairs

__all__ = ["WORKLOADS"]

#: What a Java broker takes to compile its hot path.
_JVM_S: Final = 8.0
#: The largest RDY that NSQ's consumers may send, and messages of an MPUB.
_MOST_READY: Final = 2_500
_MANY: Final = 200
#: What a consumer of the credited row grants.
_CREDIT: Final = 2_048
_BROADCAST: Final = '{"RequestAcknowledge":false}'
_ACKED: Final = '{"RequestAcknowledge":true}'
_DURABLE: Final = '{"RequestAcknowledge":true,"Durable":true}'


# --- ours ----------------------------------------------------------------------------------------


def _ours(status: str, options: str, *, confirms: bool, acks: bool) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        tmqp_wire.create_queue(port, status, options)
        takers = [
            tmqp_wire.Taker(port, f"taker{number:04}", "teller", payload_bytes, acks=acks)
            for number in range(consumers)
        ]
        return [tmqp_wire.Teller(port, "teller", payload_bytes, confirms=confirms)], takers

    return connect


def _ours_several(*terms: tuple[str, str]) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        tmqp_wire.create_queue(port, "roundrobin", _ACKED)
        takers = [
            tmqp_wire.Taker(
                port, f"taker{number:04}", "teller0", payload_bytes, acks=True, terms=terms
            )
            for number in range(consumers)
        ]
        tellers = [
            tmqp_wire.Teller(port, f"teller{number}", payload_bytes, confirms=True)
            for number in range(consumers)
        ]
        return tellers, takers

    return connect


def _ours_credited(port: int, payload_bytes: int, consumers: int) -> Ends:
    tmqp_wire.create_queue(port, "roundrobin", _ACKED)
    takers = [
        tmqp_wire.CreditedTaker(port, f"taker{number:04}", "teller0", payload_bytes, _CREDIT)
        for number in range(consumers)
    ]
    tellers = [
        tmqp_wire.Teller(port, f"teller{number}", payload_bytes, confirms=True)
        for number in range(consumers)
    ]
    return tellers, takers


def _ours_fed(port: int, payload_bytes: int, consumers: int) -> Ends:
    tmqp_wire.create_queue(port, "push", _ACKED)
    tmqp_wire.create_queue(port, "push", _ACKED, "fed")
    tmqp_wire.feed(port, "fed")
    takers = [
        tmqp_wire.Taker(
            port, f"taker{number:04}", "teller", payload_bytes, acks=True, channel="fed"
        )
        for number in range(consumers)
    ]
    return [tmqp_wire.Teller(port, "teller", payload_bytes, confirms=True)], takers


def _ours_request(port: int, payload_bytes: int, consumers: int) -> Ends:
    responder = tmqp_wire.Responder(port, "responder", "asker", payload_bytes)
    asker = tmqp_wire.Teller(port, "asker", payload_bytes, confirms=True, target="responder")
    return [asker], [responder]


def _ours_pull(batch: int) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        tmqp_wire.create_queue(port, "pull", _BROADCAST)
        takers = [tmqp_wire.Puller(port, f"taker{number}", batch) for number in range(consumers)]
        return [tmqp_wire.Teller(port, "teller", payload_bytes, confirms=True)], takers

    return connect


def _nsq(batch: int, producers: int = 1) -> Connect:
    """NSQ's producers, and its consumers with the largest RDY; a channel without any if nobody is
    to consume."""

    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        nsq_wire.make_channel(port)
        takers = [nsq_wire.Consumer(port, payload_bytes, _MOST_READY) for _ in range(consumers)]
        tellers = [nsq_wire.Publisher(port, payload_bytes, batch) for _ in range(producers)]
        return tellers, takers

    return connect


def _one_taker(connect: Connect) -> Connect:
    """The same with one consumer, whether the other protocol has none, for what is pushed is
    delivered at once, or several."""

    def with_one(port: int, payload_bytes: int, consumers: int) -> Ends:
        return connect(port, payload_bytes, 1)

    return with_one


def _zmtp(port: int, payload_bytes: int, consumers: int) -> Ends:
    takers = [door_wires.ZmtpPull(port, payload_bytes) for _ in range(consumers)]
    return [door_wires.ZmtpPush(port, payload_bytes)], takers


def _throttr(port: int, payload_bytes: int, consumers: int) -> Ends:
    return [door_wires.ThrottrClient(port)], []


def _goms(port: int, payload_bytes: int, consumers: int) -> Ends:
    takers = [door_wires.GomsConsumer(port, payload_bytes) for _ in range(consumers)]
    return [door_wires.GomsSender(port, payload_bytes)], takers


def _smq(port: int, payload_bytes: int, consumers: int) -> Ends:
    takers = [door_wires.SmqConsumer(port, payload_bytes) for _ in range(consumers)]
    return [door_wires.SmqProducer(port, payload_bytes)], takers


def _ours_producers(producers: int) -> Connect:
    """Several of our producers, whose messages are durable."""

    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        tmqp_wire.create_queue(port, "push", _DURABLE)
        names = [f"teller{number:02}" for number in range(producers)]
        takers = [
            tmqp_wire.Taker(port, f"taker{number}", names[0], payload_bytes, acks=True)
            for number in range(consumers)
        ]
        tellers = [tmqp_wire.Teller(port, name, payload_bytes, confirms=True) for name in names]
        return tellers, takers

    return connect


def _on_uvloop(connect: Connect) -> Contender:
    return Contender("tmqp on uvloop", "tmqp", "compiled+uvloop", connect)


# --- peers ---------------------------------------------------------------------------------------


def _nats_core(port: int, payload_bytes: int, consumers: int) -> Ends:
    takers = [nats_wire.Subscriber(port, payload_bytes) for _ in range(consumers)]
    return [nats_wire.Publisher(port, payload_bytes, confirms=False)], takers


def _nats_request(port: int, payload_bytes: int, consumers: int) -> Ends:
    taker = nats_wire.Subscriber(port, payload_bytes, replies=True)
    return [nats_wire.Asker(port, payload_bytes)], [taker]


def _jetstream(*, on_file: bool) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        # The consumer first: a stream delivers as soon as its subject is listened to.
        nats_wire.create_stream(port, on_file=on_file)
        taker = nats_wire.StreamSubscriber(port)
        return [nats_wire.Publisher(port, payload_bytes, confirms=True)], [taker]

    return connect


def _redis_pubsub(port: int, payload_bytes: int, consumers: int) -> Ends:
    takers = [redis_wire.Subscriber(port, payload_bytes) for _ in range(consumers)]
    return [redis_wire.Publisher(port, payload_bytes)], takers


def _redis_stream(port: int, payload_bytes: int, consumers: int) -> Ends:
    redis_wire.create_groups(port)
    taker = redis_wire.GroupReader(port)
    return [redis_wire.Adder(port, payload_bytes)], [taker]


def _mqtt(quality: int) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        takers = [
            mqtt_wire.Subscriber(port, payload_bytes, quality, f"consumer{number}")
            for number in range(consumers)
        ]
        return [mqtt_wire.Publisher(port, payload_bytes, quality)], takers

    return connect


def _amqp(*, persistent: bool) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        taker = amqp_wire.Deliveries(port, payload_bytes, acks=True, persistent=persistent)
        teller = amqp_wire.Publisher(
            port, payload_bytes, confirms=True, persistent=persistent, declare=False
        )
        return [teller], [taker]

    return connect


def _stomp(*, persistent: bool) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        taker = stomp_wire.Subscription(port, acks=True)
        teller = stomp_wire.Sender(port, payload_bytes, confirms=True, persistent=persistent)
        return [teller], [taker]

    return connect


_ACTIVEMQ_ON_DISK: Final = Contender(
    "ActiveMQ, persistent", "activemq", "kahadb", _stomp(persistent=True), _JVM_S
)
_ACTIVEMQ_IN_MEMORY: Final = Contender(
    "ActiveMQ, non-persistent", "activemq", "memory", _stomp(persistent=False), _JVM_S
)
_OUR_BROADCAST: Final = _ours("broadcast", _BROADCAST, confirms=False, acks=False)
_BROADCASTERS: Final = (
    *both_builds(_OUR_BROADCAST),
    Contender("nats-server", "nats", "core", _nats_core),
    Contender("Redis pub/sub", "redis", "memory", _redis_pubsub),
    Contender("Mosquitto QoS 0", "mosquitto", "", _mqtt(0)),
)
_AMQTT: Final = Contender("amqtt QoS 0", "amqtt", "", _mqtt(0))


def _fan_out(consumers: int, window: int, aims: tuple[Aim, ...]) -> Workload:
    return Workload(
        f"broadcast-{consumers}-{window}",
        f"1 to {consumers:,} broadcast, {window} in flight",
        _BROADCASTERS[:4],
        aims,
        consumers=consumers,
        copies=0,
        window=window,
        group="broadcast",
    )


def _request(window: int, aims: tuple[Aim, ...] = ()) -> Workload:
    return Workload(
        f"request-{window}",
        f"request and response, {window} in flight",
        (
            *both_builds(_ours_request),
            Contender("nats-server", "nats", "core", _nats_request),
            _on_uvloop(_ours_request),
        ),
        aims,
        window=window,
        group="request",
    )


def _pull(batch: int) -> Workload:
    return Workload(
        f"pull-{batch}",
        f"pull queue, {batch} with each request",
        both_builds(_ours_pull(batch)),
        group="pull",
    )


def _durable(window: int, aims: tuple[Aim, ...] = ()) -> Workload:
    return Workload(
        f"durable-{window}",
        f"durable push with both acknowledgements, {window} in flight",
        (
            *both_builds(_ours("push", _DURABLE, confirms=True, acks=True), "+durable"),
            Contender("NATS JetStream on file", "nats", "jetstream", _jetstream(on_file=True)),
            Contender("Redis stream, AOF always", "redis", "always", _redis_stream),
            Contender("RabbitMQ, persistent", "rabbitmq", "", _amqp(persistent=True)),
            _ACTIVEMQ_ON_DISK,
        ),
        aims,
        window=window,
        group="durable",
    )


def _of_nsq(
    name: str, title: str, connect: Connect, native: Connect, aims: tuple[Aim, ...], setting: str,
    *, consumers: int, window: int,
) -> Workload:  # fmt: skip
    """A load by NSQ beside the same by TMQP, on the same build."""
    return Workload(
        name,
        title,
        (
            *both_builds(connect, f"{setting}+nsq"),
            Contender(_NATIVE, "tmqp", f"compiled{setting}", native),
        ),
        aims,
        consumers=consumers,
        copies=consumers,
        window=window,
        payload_bytes=200,
        group="nsq",
    )


def _of_door(name: str, title: str, connect: Connect, consumers: int) -> Workload:
    """A load by clients of one more door, compared with a push by TMQP with both acknowledgements
    on the same build: each message is delivered once."""
    return Workload(
        name,
        title,
        (
            *both_builds(connect, f"+{name}"),
            Contender(_NATIVE, "tmqp", "compiled", _one_taker(_PUSHED)),
        ),
        consumers=consumers,
        copies=min(consumers, 1),
        payload_bytes=200,
        group="doors",
    )


def _of_stomp(name: str, title: str, setting: str, other: Contender) -> Workload:
    """The same bytes to the door of STOMP and to ActiveMQ: each message has a receipt, and is
    acknowledged by itself."""
    return Workload(
        name,
        title,
        (
            *both_builds(_stomp(persistent=bool(setting)), f"{setting}+stomp"),
            other,
        ),
        (Aim(other.title, 2.0),),
        group="doors",
    )


def _watched(name: str, title: str, connect: Connect, setting: str = "") -> Workload:
    """The same load while operators watch, and while nobody does: both in turn, in one run."""
    return Workload(
        name,
        title,
        (
            Contender("tmqp", "tmqp", f"compiled{setting}+watched", connect),
            Contender(_UNWATCHED, "tmqp", f"compiled{setting}", connect),
        ),
        (Aim(_UNWATCHED, 0.98),),
        group="watched",
    )


def _sized(payload_bytes: int, window: int) -> Workload:
    return Workload(
        f"push-{payload_bytes}",
        f"push with both acknowledgements, {payload_bytes:,} bytes",
        (
            *both_builds(_ours("push", _ACKED, confirms=True, acks=True)),
            Contender("NATS JetStream in memory", "nats", "jetstream", _jetstream(on_file=False)),
        ),
        window=window,
        payload_bytes=payload_bytes,
        group="sizes",
    )


_NATIVE: Final = "tmqp, TMQP"
_UNWATCHED: Final = "tmqp, not monitored"
_PUSHED: Final = _ours("push", _ACKED, confirms=True, acks=True)

#: In the order of the report.
WORKLOADS: Final[tuple[Workload, ...]] = (
    Workload(
        "broadcast",
        "1 to 1 broadcast, at most once",
        (*_BROADCASTERS, _AMQTT, _on_uvloop(_OUR_BROADCAST)),
        (
            Aim("nats-server", 1.0),
            Aim("Redis pub/sub", 2.0),
            Aim("Mosquitto QoS 0", 20.0),
            Aim("amqtt QoS 0", 100.0),
        ),
        group="broadcast",
    ),
    _fan_out(100, 400, ()),
    _fan_out(1_000, 1, (Aim("nats-server", 1.3),)),
    _fan_out(1_000, 16, (Aim("nats-server", 2.0), Aim("Redis pub/sub", 1.2))),
    _fan_out(1_000, 400, (Aim("nats-server", 3.5), Aim("Redis pub/sub", 3.0))),
    Workload(
        "push-no-acks",
        "push 1 to 1 without acknowledges",
        both_builds(_ours("push", _BROADCAST, confirms=False, acks=False)),
    ),
    Workload(
        "push-consumer-acks",
        "push 1 to 1 with the consumer's acknowledges",
        both_builds(_ours("push", _ACKED, confirms=False, acks=True)),
    ),
    Workload(
        "push-acks",
        "push 1 to 1 with both acknowledgements, in memory",
        (
            *both_builds(_ours("push", _ACKED, confirms=True, acks=True)),
            Contender("NATS JetStream in memory", "nats", "jetstream", _jetstream(on_file=False)),
            Contender("Redis stream", "redis", "memory", _redis_stream),
            Contender("Mosquitto QoS 1", "mosquitto", "", _mqtt(1)),
            Contender("RabbitMQ, transient", "rabbitmq", "", _amqp(persistent=False)),
            _ACTIVEMQ_IN_MEMORY,
        ),
        (
            Aim("NATS JetStream in memory", 4.0),
            Aim("Mosquitto QoS 1", 10.0),
            Aim("RabbitMQ, transient", 10.0),
            Aim("ActiveMQ, non-persistent", 4.0),
        ),
    ),
    Workload(
        "push-acks-4",
        "4 pairs, each push 1 to 1 with both acknowledges through a queue of its own",
        both_builds(our_pairs("push", _ACKED, acks=True)),
        consumers=4,
    ),
    Workload(
        "round-robin",
        "round robin 4 to 4 with both acknowledgements",
        both_builds(_ours_several()),
        costs=(Cost("push-acks", 1.05),),
        consumers=4,
    ),
    Workload(
        "round-robin-window",
        "round robin 4 to 4 with both acknowledgements, consumers with a window of 1,024",
        both_builds(_ours_several(("Window", "1024"))),
        consumers=4,
    ),
    Workload(
        "round-robin-credit",
        "round robin 4 to 4 with both acknowledgements, consumers with a credit of 2,048",
        both_builds(_ours_credited),
        consumers=4,
    ),
    Workload(
        "round-robin-1",
        "round robin 1 to 1 with both acknowledgements",
        both_builds(_ours("roundrobin", _ACKED, confirms=True, acks=True)),
    ),
    Workload(
        "fed",
        "push into a queue that feeds another, 1 to 1 with both acknowledgements",
        both_builds(_ours_fed),
    ),
    _pull(1),
    _pull(100),
    _request(1, (Aim("nats-server", 1.5, latency=True),)),
    _request(16),
    _request(256),
    _sized(16, 4_096),
    _sized(1_024, 4_096),
    _sized(65_536, 64),
    _sized(4_194_304, 4),
    _durable(1),
    _durable(32),
    _durable(
        256,
        (
            Aim("NATS JetStream on file", 2.0),
            Aim("Redis stream, AOF always", 1.0),
            Aim("RabbitMQ, persistent", 10.0),
            Aim("ActiveMQ, persistent", 10.0),
        ),
    ),
    _durable(1_024),
    _of_nsq(
        "nsq-mpub", "NSQ: MPUB of 200 into a channel without consumers",
        _nsq(_MANY), _one_taker(_PUSHED), (Aim(_NATIVE, 1 / 2),), "", consumers=0, window=4_096,
    ),
    _of_nsq(
        "nsq", "NSQ: MPUB of 200, RDY 2,500 and FIN",
        _nsq(_MANY), _PUSHED, (Aim(_NATIVE, 1 / 4.5),), "", consumers=1, window=4_096,
    ),
    _of_nsq(
        "nsq-durable-64", "NSQ: durable PUB by 64 producers, RDY 2,500 and FIN",
        _nsq(1, 64), _ours_producers(64), (), "+durable", consumers=1, window=64,
    ),
    _of_door("zmtp", "ZeroMQ: a PUSH socket and two PULL sockets", _zmtp, 2),
    _of_door("throttr", "Throttr: UPDATE behind UPDATE, pipelined", _throttr, 0),
    _of_door("goms", "goMS: a sender and one that is registered", _goms, 1),
    _of_stomp("stomp", "STOMP: receipts and single ACKs", "", _ACTIVEMQ_IN_MEMORY),
    _of_stomp(
        "stomp-durable", "STOMP: the same, on disk", "+durable", _ACTIVEMQ_ON_DISK
    ),
    _of_door("smq", "Simple MQ: a producer, and a consumer that says what it has done", _smq, 1),
    _watched("watched-broadcast", "1 to 1 broadcast, metrics and console on", _OUR_BROADCAST),
    _watched("watched-push", "push with both acknowledgements, metrics and console on", _PUSHED),
    _watched(
        "watched-durable", "durable push with both acknowledgements, metrics and console on",
        _ours("push", _DURABLE, confirms=True, acks=True), "+durable",
    ),
    *JMS,
    *TRAFFIC,
)  # fmt: skip
