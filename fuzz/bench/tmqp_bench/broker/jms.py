"""What programs of JMS ask of a broker: of ours, by the door of OpenWire, and of ActiveMQ."""

from __future__ import annotations

from typing import Final

from tmqp_bench.broker.comparison import Aim, Connect, Contender, Ends, Workload, both_builds
from tmqp_bench.broker.openwire_wire import Consumer, Producer

__all__ = ["JMS"]

#: What a Java broker takes to compile its hot path.
_JVM_S: Final = 8.0
#: What clients of ActiveMQ ask for by themselves.
_PREFETCH: Final = 1_000
_TOPIC_PREFETCH: Final = 32_767


def _queue(*, persistent: bool, confirms: bool, together: bool = False) -> Connect:
    def connect(port: int, payload_bytes: int, consumers: int) -> Ends:
        takers = [
            Consumer(port, number, topic=False, together=together, prefetch=_PREFETCH)
            for number in range(consumers)
        ]
        teller = Producer(
            port, payload_bytes, topic=False, persistent=persistent, confirms=confirms
        )
        return [teller], takers

    return connect


def _topic(port: int, payload_bytes: int, consumers: int) -> Ends:
    takers = [
        Consumer(port, number, topic=True, together=True, prefetch=_TOPIC_PREFETCH)
        for number in range(consumers)
    ]
    return [Producer(port, payload_bytes, topic=True, persistent=False, confirms=False)], takers


def _load(
    name: str, title: str, connect: Connect, times: float, *, durable: bool = False,
    stored: bool = False, window: int = 4_096, consumers: int = 1,
) -> Workload:  # fmt: skip
    """The same bytes to both brokers."""
    kept = "+durable" if durable else ""
    spoken = "+openwire+stored" if stored else "+openwire"
    peer = Contender(
        "ActiveMQ", "activemq", ("kahadb" if durable else "memory") + spoken, connect, _JVM_S
    )
    return Workload(
        name,
        title,
        (*both_builds(connect, f"{kept}{spoken}"), peer),
        (Aim("ActiveMQ", times),),
        consumers=consumers,
        copies=0,
        window=window,
        group="jms",
    )


#: In the order of the report.
JMS: Final[tuple[Workload, ...]] = (
    _load("jms", "JMS: a queue, not persistent, each message acknowledged",
          _queue(persistent=False, confirms=False), 1.0),
    _load("jms-dups-ok", "JMS: a queue, not persistent, DUPS_OK_ACKNOWLEDGE",
          _queue(persistent=False, confirms=False, together=True), 1.0),
    _load("jms-persistent", "JMS: a queue, persistent, sent without waiting",
          _queue(persistent=True, confirms=False), 4.0, durable=True),
    _load("jms-persistent-sync", "JMS: a queue, persistent, each message waited for",
          _queue(persistent=True, confirms=True), 1.0, durable=True, window=1),
    _load("jms-persistent-stored", "JMS: the same, each message stored whatever its consumer says",
          _queue(persistent=True, confirms=True), 1.0, durable=True, stored=True, window=1),
    _load("jms-topic-50", "JMS: a topic of 50 subscribers",
          _topic, 2.0, consumers=50, window=400),
)  # fmt: skip
