"""The work whose cost is counted: so many messages through the codec, the hub or the shell.

As a program it does works once, for who counts the instructions of a process: its arguments are the
name of a work and how many messages, and so on.  One is done by the process itself, several each by
a copy of it, whose number is printed before them.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from tests.tmqp_server.mixed_costs import TURNS, answer_to, in_turn, varied
from tests.tmqp_server.nsq_costs import (
    nsq_consumed,
    nsq_durable,
    nsq_prepared,
    nsq_published,
)
from tests.tmqp_server.outputs import sent, touched
from tests.tmqp_server.small_door_costs import goms_lines, goms_sent, smq_consumed, smq_lines
from tmqp.codec import FrameDecoder
from tmqp.constants import (
    OP_CREATE_QUEUE,
    OP_JOIN,
    STATUS_ROUND_ROBIN,
    TYPE_ACKNOWLEDGE,
    TYPE_DIRECT_MESSAGE,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_SERVER,
)
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.access.auditing import AuditLog, Auditor, AuditRecord
from tmqp_server.admin.metrics.collect import Collector
from tmqp_server.admin.metrics.exposition import TEXT
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import AddFeed, CreateQueue, Grant
from tmqp_server.engine.options import BrokerOptions, QueueChanges
from tmqp_server.hub.hub import Hub
from tmqp_server.io.connection import Connection
from tmqp_server.io.shell import Shell
from tmqp_server.io.transport import Bytes, Transport
from tmqp_server.shell.outbound import Marks
from tmqp_server.shell.rates import RateLimits
from tmqp_server.shell.turn import Turn
from tmqp_server.storage.journal import Journal, Writing
from tmqp_server.storage.sqlite.front import SqliteStore

__all__ = ["WORKS", "connect", "hub_with_queue"]

_CHUNK_BYTES: Final = 65_536
_PRODUCER, _CONSUMER = 1, 2
_UNDER_WAY: Final = 256
#: How fast peers may send: as they like, and a hundred thousand messages of each kind.
_NO_RATES: Final = RateLimits()
_RATES: Final = RateLimits(1e5, 1e8, 1e5, 1e8)


#: Requests that wait for their responses at one time.
_IN_FLIGHT: Final = 256

#: Headers of the message of a number: none, its own, the same in all, one of a hundred keys.
_HEADERS: Final[dict[str, Callable[[int], list[tuple[str, str]]]]] = {
    "": lambda _: [],
    "own": lambda number: [("Trace", f"{number * 7919:032x}"), ("Kind", "order")],
    "equal": lambda _: [("Trace", "1" * 32), ("Kind", "order")],
    "keys": lambda number: [("Group-Key", f"customer {number % 100}")],
}


def _frames(count: int, *, confirm: bool, headers: str = "") -> list[bytes]:
    headers_of = _HEADERS[headers]
    return [
        Frame.build(
            TYPE_QUEUE_MESSAGE,
            "c",
            1,
            number.to_bytes(4, "big") * 25,
            message_id=f"{number:032x}",
            source="client1",
            pending_acknowledge=confirm,
            headers=headers_of(number),
        ).raw
        for number in range(count)
    ]


def _pushes(count: int, *, confirm: bool, headers: str = "") -> list[bytes]:
    return _chunks(b"".join(_frames(count, confirm=confirm, headers=headers)))


def _mixture(
    count: int, frames: Callable[..., list[bytes]], *, answered: bool
) -> tuple[list[bytes], bytes]:
    """Such messages in chunks, and their answers."""
    messages = frames(count, confirm=answered)
    answers = b"".join([answer_to(each) for each in messages]) if answered else b""
    return _chunks(b"".join(messages)), answers


def _prepare_mixture(
    count: int, frames: Callable[..., list[bytes]], *, answered: bool = False
) -> None:
    assert _mixture(count, frames, answered=answered)


def _through_mixed(
    count: int, frames: Callable[..., list[bytes]], *, answered: bool = False
) -> None:
    """Such messages through the hub, and their answers."""
    chunks, answers = _mixture(count, frames, answered=answered)
    hub = Hub(Broker(), 1 << 20)
    connect(hub, (_PRODUCER, _CONSUMER))
    status = "push" if answered else "broadcast"
    options = b'{"RequestAcknowledge":true}' if answered else b'{"RequestAcknowledge":false}'
    for number in range(TURNS):
        hub.receive(_PRODUCER, _create(status, options, 1 + number), 0.0)
    hub.receive(_CONSUMER, _JOIN, 0.0)
    _sent(hub)
    size = _push_all(hub, chunks)
    if answered:
        hub.receive(_CONSUMER, answers, 2.0)
    counters = [queue.counters for queue in hub.broker.queues()]
    assert sum([each.received for each in counters]) == count
    assert sum([each.done for each in counters]) == count
    assert size > count * 100


def _chunks(stream: bytes) -> list[bytes]:
    return [stream[at : at + _CHUNK_BYTES] for at in range(0, len(stream), _CHUNK_BYTES)]


def _answers(count: int, channel: str = "c") -> bytes:
    return b"".join(
        [
            Frame.build(
                TYPE_ACKNOWLEDGE, channel, 1, message_id=f"{number:032x}", source="client2"
            ).raw
            for number in range(count)
        ]
    )


def connect(hub: Hub, numbers: Iterable[int]) -> None:
    """Let clients in, named after their sessions' numbers."""
    ids = itertools.count()
    door = NativeDoor(lambda: f"{next(ids):032x}", Limits())
    for number in numbers:
        hub.open(number, door, 0.0)
        hub.receive(number, _hello(number), 0.0)
    _sent(hub)


def _hello(number: int) -> bytes:
    who = ConnectionInformation(f"client{number}").encode()
    return b"TMQP/2.0" + Frame.build(TYPE_SERVER, "", 101, who).raw


def _create(status: str, options: bytes, queue_id: int = 1) -> bytes:
    headers = [("Queue-Id", str(queue_id)), ("Queue-Status", status)]
    return Frame.build(
        TYPE_SERVER, "c", OP_CREATE_QUEUE, options, message_id="o", headers=headers
    ).raw


_JOIN: Final = Frame.build(TYPE_SERVER, "c", OP_JOIN, message_id="j").raw


def _push_all(hub: Hub, chunks: list[bytes]) -> int:
    """Let the producer say this; how many bytes are sent for it."""
    size = 0
    for chunk in chunks:
        more = hub.receive(_PRODUCER, chunk, 1.0)
        size += _sent(hub)
        while more:
            more = hub.go_on(_PRODUCER, 1.0)
            size += _sent(hub)
    return size


def _round_robin(
    count: int, *, stalled: int = 0, headers: str = "", wanted: str = "", keys: str = "none"
) -> None:
    """Messages to four consumers in turn, each answered by the one that has it; before them so many
    have joined that take nothing.  All have a filter, where something is *wanted*."""
    hub = Hub(Broker(), 1 << 20)
    others = range(_CONSUMER, _CONSUMER + stalled)
    consumers = range(others.stop, others.stop + 4)
    connect(hub, (_PRODUCER, *others, *consumers))
    options = f'{{"RequestAcknowledge":true,"GroupKeys":"{keys}"}}'
    hub.receive(_PRODUCER, _create("roundrobin", options.encode()), 0.0)
    filters = [("Filter", wanted)] if wanted else []
    join = Frame.build(TYPE_SERVER, "c", OP_JOIN, message_id="j", headers=filters).raw
    for number in (*others, *consumers):
        hub.receive(number, join, 0.0)
    _sent(hub)
    for number in others:
        hub.block(number, 0.0)
    size = _push_all(hub, _pushes(count, confirm=True, headers=headers))
    (queue,) = hub.broker.queues()
    for number in consumers:
        answers = [
            Frame.build(TYPE_ACKNOWLEDGE, "c", 1, message_id=each, source=f"client{number}").raw
            for each, message in queue.flights.items()
            if message.holder is not None and message.holder.number == number
        ]
        hub.receive(number, b"".join(answers), 2.0)
    assert queue.counters.received == queue.counters.sent == queue.counters.done == count
    assert size > count * 100


def _conversation(count: int) -> list[tuple[bytes, bytes]]:
    """Requests of the first client to the second and the responses, 256 at a time."""
    parts: list[tuple[bytes, bytes]] = []
    for first in range(0, count, _IN_FLIGHT):
        ids = [f"{number:032x}" for number in range(first, min(first + _IN_FLIGHT, count))]
        asked = [
            Frame.build(
                TYPE_DIRECT_MESSAGE,
                "client2",
                payload=bytes(100),
                message_id=each,
                source="client1",
                pending_response=True,
            ).raw
            for each in ids
        ]
        told = [
            Frame.build(
                TYPE_RESPONSE, "client1", payload=bytes(100), message_id=each, source="client2"
            ).raw
            for each in ids
        ]
        parts.append((b"".join(asked), b"".join(told)))
    return parts


def _prepare_conversation(count: int) -> None:
    assert _conversation(count)


def _converse(count: int) -> None:
    """Each request comes to the second client, and its response to the first."""
    hub = Hub(Broker(), 1 << 20)
    connect(hub, (_PRODUCER, _CONSUMER))
    size = 0
    for asked, told in _conversation(count):
        for number, data in ((_PRODUCER, asked), (_CONSUMER, told)):
            assert not hub.receive(number, data, 1.0)
            size += _sent(hub)
    assert size > count * 200
    assert hub.broker.statistics().answers_dropped == 0


def _credit_by_credit(count: int) -> None:
    """Messages to a thousand consumers in turn, each of which asks for one at a time."""
    hub = Hub(Broker(), 1 << 20)
    consumers = range(_CONSUMER, _CONSUMER + 1_000)
    connect(hub, (_PRODUCER, *consumers))
    hub.receive(_PRODUCER, _create("roundrobin", b'{"RequestAcknowledge":false}'), 0.0)
    for number in consumers:
        hub.receive(number, _JOIN, 0.0)
        hub.broker.step(Grant(number, "c", 1), 0.0)
    _sent(hub)
    size = 0
    for place, frame in enumerate(_frames(count, confirm=False)):
        hub.receive(_PRODUCER, frame, 1.0)
        size += _sent(hub)
        hub.broker.step(Grant(consumers[place % len(consumers)], "c", 1), 1.0)
    (queue,) = hub.broker.queues()
    assert queue.counters.received == queue.counters.sent == queue.counters.done == count
    assert size > count * 100


def hub_with_queue(status: str, options: bytes, journal: Journal | None = None) -> Hub:
    """A hub with a producer (1), and a consumer (2) of a queue."""
    broker = Broker(options=BrokerOptions(storage=journal is not None))
    hub = Hub(broker, 1 << 20, journal)
    connect(hub, (_PRODUCER, _CONSUMER))
    hub.receive(_PRODUCER, _create(status, options), 0.0)
    if status != "pull":
        hub.receive(_CONSUMER, _JOIN, 0.0)
    _sent(hub)
    return hub


def _sent(hub: Hub) -> int:
    return sum([len(sent(hub, number)) for number in touched(hub)])


def _prepare(count: int, *, answers: bool, headers: str = "") -> None:
    assert _pushes(count, confirm=answers, headers=headers)
    assert not answers or _answers(count)


def _nsq_prepare(count: int, *, answers: bool, singly: bool = False) -> None:
    assert nsq_prepared(count, answers=answers, singly=singly)[0]


def _decode(count: int, *, makes_runs: bool) -> None:
    decoder = FrameDecoder()
    decoder.makes_runs = makes_runs
    seen = 0
    for chunk in _pushes(count, confirm=False):
        seen += len(decoder.feed(chunk)) + sum([run.count - 1 for run in decoder.runs])
    assert seen == count


def _through(status: str, options: bytes, count: int, *, answered: bool, headers: str = "") -> None:
    hub = hub_with_queue(status, options)
    size = _push_all(hub, _pushes(count, confirm=answered, headers=headers))
    if answered:
        hub.receive(_CONSUMER, _answers(count), 2.0)
    (queue,) = hub.broker.queues()
    assert queue.counters.received == queue.counters.sent == queue.counters.done == count
    assert size > count * 100


def _through_a_feed(count: int, *, runs: bool) -> None:
    """Messages into a queue that feeds another, answered for by the consumer of that one; as they
    come in a chunk, or one by one."""
    hub = Hub(Broker(), 1 << 20)
    connect(hub, (_PRODUCER, _CONSUMER))
    hub.receive(_PRODUCER, _create("push", b'{"RequestAcknowledge":true}'), 0.0)
    options = QueueChanges(status=STATUS_ROUND_ROBIN, request_acknowledge=True)
    hub.broker.step(CreateQueue(_PRODUCER, None, "fed", 1, options), 0.0)
    hub.broker.step(AddFeed(_PRODUCER, None, "c", 1, "fed", 1), 0.0)
    hub.receive(_CONSUMER, Frame.build(TYPE_SERVER, "fed", OP_JOIN, message_id="j").raw, 0.0)
    _sent(hub)
    frames = _frames(count, confirm=True)
    size = _push_all(hub, _chunks(b"".join(frames)) if runs else frames)
    answers = _answers(count, "fed")
    hub.receive(_CONSUMER, answers, 2.0)
    source, target = hub.broker.queues()
    assert source.counters.received == source.counters.done == count
    assert target.counters.received == target.counters.sent == target.counters.done == count
    assert size > count * 100


def _durably(count: int) -> None:
    """Messages that are answered for while they are written: as many at a time as may be under way
    between a client and a disk."""
    door = NativeDoor(lambda: "", Limits())
    journal = Journal([door])
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder))
        store.recover()
        hub = hub_with_queue("push", b'{"RequestAcknowledge":true,"Durable":true}', journal)
        _write(hub, journal, store)
        pushes = b"".join(_pushes(count, confirm=True))
        answers = _answers(count)
        push_bytes, answer_bytes = len(pushes) // count, len(answers) // count
        size = 0
        for at in range(0, count, _UNDER_WAY):
            end = at + _UNDER_WAY
            hub.receive(_PRODUCER, pushes[at * push_bytes : end * push_bytes], 1.0)
            size += _sent(hub)
            writing = journal.take()
            hub.receive(_CONSUMER, answers[at * answer_bytes : end * answer_bytes], 2.0)
            size += _sent(hub)
            _write(hub, journal, store, writing)
            size += _sent(hub)
        (queue,) = hub.broker.queues()
        assert queue.counters.received == queue.counters.saved == queue.counters.done == count
        assert size > count * 150
        store.close(True)


def _write(hub: Hub, journal: Journal, store: SqliteStore, writing: Writing | None = None) -> None:
    if writing is None:
        writing = journal.take()
    store.write(writing.batch, 1)
    for answer in journal.answers(writing, True, 1_000):
        hub.perform(answer, 2.0)


class _Peer(Transport):
    """A socket in a loop that watches it: brings chunk after chunk, and takes all that is sent."""

    def __init__(self) -> None:
        self.peer = "peer"
        self.secure = False
        self.waited = True
        self.chunk = b""
        self.taken = 0
        self.ready: Callable[[], None] | None = None

    def watch(self, ready: Callable[[], None]) -> bool:
        self.ready = ready
        return True

    def unwatch(self) -> None:
        self.ready = None

    def receive_now(self) -> bytes:
        return self.chunk

    def send(self, data: Bytes) -> int:
        self.taken += len(data)
        return len(data)

    async def aclose(self) -> None:
        pass

    def say(self, chunk: bytes) -> None:
        self.chunk = chunk
        assert self.ready is not None
        self.ready()


async def _chunks_through_the_shell(
    count: int, consumers: int, rates: RateLimits, *, audited: bool, watched: bool
) -> None:
    """Messages of a chunk each, from a socket to the sockets of all consumers; if it is *watched*,
    a page of metrics is made before and after them."""
    hub = Hub(Broker(), 1 << 20)
    ids = itertools.count()
    shell = Shell(
        Turn(hub, Marks(1 << 22, 1 << 18, 1 << 16, 10.0, 2.0)),
        NativeDoor(lambda: f"{next(ids):032x}", Limits()),
    )
    shell.turn.limit_rates(rates, 0.0)
    if audited:
        hub.auditor = Auditor(_Forgetful())
    world = AdminWorld()
    world.turn = shell.turn
    pages = Collector(world, [], 1)
    peers = [_Peer() for _ in range(1 + consumers)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shell.run)
        for number, peer in enumerate(peers, _PRODUCER):
            tasks.start_soon(Connection(number, peer, "host", shell).run)
        await anyio.wait_all_tasks_blocked()
        for number, peer in enumerate(peers, _PRODUCER):
            peer.say(_hello(number))
        producer = peers[0]
        producer.say(_create("broadcast", b'{"RequestAcknowledge":false}'))
        for peer in peers[1:]:
            peer.say(_JOIN)
        if watched:
            _take_page(pages, 1.0)
        for chunk in _frames(count, confirm=False):
            producer.say(chunk)
        if watched:
            _take_page(pages, 3.0)
        tasks.cancel_scope.cancel()
    (queue,) = hub.broker.queues()
    assert queue.counters.received == queue.counters.sent == count
    out = shell.turn.outbound(_PRODUCER)
    assert out is None or (out.flow is not None) == rates.limit_traffic()
    assert all(peer.taken > count * 100 for peer in peers[1:])


def _take_page(pages: Collector, now: float) -> None:
    page = pages.page(TEXT, now)
    while not page.done:
        now = page.go_on(now)
    assert page.text


class _Forgetful(AuditLog):
    """Keeps no record."""

    def write(self, record: AuditRecord) -> None:
        pass


def _through_the_shell(
    count: int,
    *,
    consumers: int,
    rates: RateLimits = _NO_RATES,
    audited: bool = False,
    watched: bool = False,
) -> None:
    work = partial(_chunks_through_the_shell, audited=audited, watched=watched)
    anyio.run(work, count, consumers, rates)


#: What is counted, for so many messages.
def _write_lines(lines: Callable[[int], list[bytes]], count: int) -> None:
    """What the work of a door begins with."""
    assert lines(count)


WORKS: Final[dict[str, Callable[[int], None]]] = {
    "pushes": lambda count: _prepare(count, answers=False),
    "pushes and answers": lambda count: _prepare(count, answers=True),
    "headed pushes and answers": lambda count: _prepare(count, answers=True, headers="own"),
    "decode": lambda count: _decode(count, makes_runs=False),
    "decode in runs": lambda count: _decode(count, makes_runs=True),
    "broadcast": lambda count: _through(
        "broadcast", b'{"RequestAcknowledge":false}', count, answered=False
    ),
    "push with both acknowledges": lambda count: _through(
        "push", b'{"RequestAcknowledge":true}', count, answered=True
    ),
    "push with headers and both acknowledges": lambda count: _through(
        "push", b'{"RequestAcknowledge":true}', count, answered=True, headers="own"
    ),
    "round robin with both acknowledges": _round_robin,
    "round robin past one that is stalled, with both acknowledges": lambda count: _round_robin(
        count, stalled=1
    ),
    "round robin past filters, equal headers, with both acknowledges": lambda count: _round_robin(
        count, headers="equal", wanted="kind=order"
    ),
    "round robin past filters, own headers, with both acknowledges": lambda count: _round_robin(
        count, headers="own", wanted="kind=order"
    ),
    "round robin by keys in headers, with both acknowledges": lambda count: _round_robin(
        count, headers="keys", keys="sticky"
    ),
    "mixed messages": partial(_prepare_mixture, frames=varied),
    "mixed messages and answers": partial(_prepare_mixture, frames=varied, answered=True),
    "messages in turn": partial(_prepare_mixture, frames=in_turn),
    "mixed messages, at most once": partial(_through_mixed, frames=varied),
    "mixed messages with both acknowledges": partial(_through_mixed, frames=varied, answered=True),
    "fifty queues in turn, at most once": partial(_through_mixed, frames=in_turn),
    "round robin by credit": _credit_by_credit,
    "durable push with both acknowledges": _durably,
    "requests and responses": _prepare_conversation,
    "request and response": _converse,
    "NSQ publications": lambda count: _nsq_prepare(count, answers=False),
    "NSQ publications and answers": lambda count: _nsq_prepare(count, answers=True),
    "lines of goMS": lambda count: _write_lines(goms_lines, count),
    "goMS: a row of 200 to one that is registered": goms_sent,
    "lines of Simple MQ": lambda count: _write_lines(smq_lines, count),
    "Simple MQ: a row of 200, counted as done": smq_consumed,
    "NSQ: MPUB": nsq_published,
    "NSQ: MPUB and FIN": nsq_consumed,
    "NSQ single publications and answers": lambda count: _nsq_prepare(
        count, answers=True, singly=True
    ),
    "NSQ: a durable PUB and FIN": nsq_durable,
    "pushes through a feed with both acknowledges": lambda count: _through_a_feed(count, runs=True),
    "a push through a feed with both acknowledges": lambda count: _through_a_feed(
        count, runs=False
    ),
    "a chunk through the shell": lambda count: _through_the_shell(count, consumers=1),
    "a chunk through the shell, with rates": lambda count: _through_the_shell(
        count, consumers=1, rates=_RATES
    ),
    "a chunk through the shell, audited": lambda count: _through_the_shell(
        count, consumers=1, audited=True
    ),
    "a chunk through the shell, with metrics": lambda count: _through_the_shell(
        count, consumers=1, watched=True
    ),
    "a chunk to ten consumers": lambda count: _through_the_shell(count, consumers=10),
}


def main(arguments: list[str]) -> None:
    """Do the works that are named."""
    wanted = list(zip(arguments[::2], map(int, arguments[1::2]), strict=True))
    if len(wanted) == 1:
        WORKS[wanted[0][0]](wanted[0][1])
        return
    for name, count in wanted:
        copy = os.fork()
        if not copy:
            WORKS[name](count)
            return
        print(copy, name, count, sep="\t", flush=True)
        if os.waitpid(copy, 0)[1]:
            sys.exit(f"{name!r} failed")


if __name__ == "__main__":
    main(sys.argv[1:])
