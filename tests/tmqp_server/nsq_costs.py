"""The work of NSQ's door whose cost is counted: so many messages published, consumed, finished."""

from __future__ import annotations

import itertools
from typing import Final

from tests.tmqp_server.outputs import sent, touched
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.door import NsqDoor
from tmqp_server.doors.nsq.message import NsqBodies, NsqIds
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.writes import TURN_SIZE, encode_write
from tmqp_wires.nsq.writing import MAGIC, fin, mpub, pub, rdy, sub

__all__ = ["nsq_consumed", "nsq_durable", "nsq_prepared", "nsq_published"]

_TOPIC: Final = b"topic"
_CHANNEL: Final = b"channel"
_PRODUCER, _CONSUMER = 1, 2
_BATCH: Final = 200
_READY: Final = 2_500
_DRAWN: Final = "0" * 8
#: Producers that each have one message under way.
_PRODUCERS: Final = range(3, 3 + 64)


def nsq_prepared(
    count: int, *, answers: bool, singly: bool = False
) -> tuple[list[bytes], list[bytes]]:
    """The publications, and FIN for what each brings; the ids are those that a new door gives."""
    bodies = [b"%0200d" % number for number in range(count)]
    if singly:
        chunks = [pub(_TOPIC, body) for body in bodies]
    else:
        chunks = [mpub(_TOPIC, bodies[at : at + _BATCH]) for at in range(0, count, _BATCH)]
    if not answers:
        return chunks, []
    ids = [fin(name.encode()) for name in NsqIds(_DRAWN, 0.0).several(count)]
    step = 1 if singly else _BATCH
    return chunks, [b"".join(ids[at : at + step]) for at in range(0, count, step)]


def _hub(journal: Journal | None = None) -> Hub:
    """A hub with a producer and the consumer of a channel, which is not ready yet; many producers
    where messages are durable."""
    hub = Hub(Broker(options=BrokerOptions(storage=journal is not None)), 1 << 20, journal)
    options = NsqOptions(durable=journal is not None)
    ids = itertools.count()
    context = NsqContext(
        lambda: f"{next(ids):08x}", NsqLimits(), options, durable=journal is not None
    )
    door = NsqDoor(context)
    said = {_PRODUCER: MAGIC, _CONSUMER: MAGIC + sub(_TOPIC, _CHANNEL)}
    if journal is not None:
        said |= dict.fromkeys(_PRODUCERS, MAGIC)
    for number, command in said.items():
        hub.open(number, door, 0.0)
        hub.receive(number, command, 0.0)
        while hub.has_more(number):
            hub.go_on(number, 0.0)
    _settle(hub)
    return hub


def _settle(hub: Hub) -> None:
    """Let what is sent leave, and be told so."""
    hub.take_outbound()
    for number in list(hub.awaited):
        hub.written(number, 0.0)
    _sent(hub)


def _sent(hub: Hub) -> int:
    return sum([len(sent(hub, number)) for number in touched(hub)])


def _say(hub: Hub, number: int, chunk: bytes) -> int:
    """Let a client say this; how many bytes are sent for it."""
    more = hub.receive(number, chunk, 1.0)
    size = _sent(hub)
    while more:
        more = hub.go_on(number, 1.0)
        size += _sent(hub)
    return size


def nsq_published(count: int) -> None:
    """Messages by MPUB into a channel that nobody consumes."""
    hub = _hub()
    chunks, _ = nsq_prepared(count, answers=False)
    for chunk in chunks:
        _say(hub, _PRODUCER, chunk)
    topic, channel = hub.broker.queues()
    assert topic.counters.received == topic.counters.done == channel.waiting_count() == count


def nsq_consumed(count: int, *, singly: bool = False) -> None:
    """Messages by MPUB, or by PUB one by one, each delivered and finished."""
    hub = _hub()
    chunks, answers = nsq_prepared(count, answers=True, singly=singly)
    _say(hub, _CONSUMER, rdy(_READY))
    size = 0
    for chunk, answer in zip(chunks, answers, strict=True):
        size += _say(hub, _PRODUCER, chunk)
        _say(hub, _CONSUMER, answer)
    _, channel = hub.broker.queues()
    assert channel.counters.sent == channel.counters.done == count
    assert size > count * 200


def nsq_durable(count: int) -> None:
    """Messages by PUB of many producers, which wait for the disk together, and FIN for each."""
    journal = Journal([NsqBodies()])
    hub = _hub(journal)

    def save() -> None:
        writing = journal.take()
        assert encode_write(1, bytes(TURN_SIZE), 0, writing.batch)
        for answer in journal.answers(writing, True, 1_000):
            hub.perform(answer, 2.0)

    save()
    _settle(hub)
    chunks, answers = nsq_prepared(count, answers=True, singly=True)
    _say(hub, _CONSUMER, rdy(_READY))
    size = 0
    for at in range(0, count, len(_PRODUCERS)):
        for number, chunk in zip(_PRODUCERS, chunks[at : at + len(_PRODUCERS)], strict=False):
            size += _say(hub, number, chunk)
        save()
        size += _sent(hub)
        _say(hub, _CONSUMER, b"".join(answers[at : at + len(_PRODUCERS)]))
    topic, channel = hub.broker.queues()
    assert channel.counters.saved == channel.counters.done == topic.counters.done == count
    assert size > count * 200
