"""A hub with a producer and consumers, to which the same is said with runs and without."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from hypothesis import strategies as st

from tests.tmqp_server.outputs import faults, sent, touched
from tmqp import ConnectionInformation, Frame, Limits, MessageType
from tmqp.constants import Operation
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.door import NativeDoor, NativeSession
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Grant
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.hub.hub import Hub

#: The books of a queue that every push touches.
BOOKS: Final = ("bytes", "count", "high_count", "regular_count", "sequence")
COUNTERS: Final = (
    "accepted", "acks", "cleared", "dead", "deliveries", "done", "dropped", "expired",
    "last_received", "last_sent", "overflowed", "received", "refused", "removed", "requeued",
    "saved", "sent", "skipped", "untracked",
)  # fmt: skip
#: What consumers want when they join.
TERMS: Final = (
    "",
    "Window=1",
    "Window=7 Return=front",
    "Window=25 Acknowledge-Timeout=200000",
    "Acknowledge-Timeout=5000 Return=end",
    "Window=3 Consumer-Priority=2",
    "Consumer-Priority=1 Acknowledge-Timeout=-1",
)
#: Which messages they want.
FILTERS: Final = (
    "",
    "Filter=trace=1",
    "Filter=!trace",
    "Filter=kind=order Window=7",
    "Filter-Language=prefix Filter=xx",
)
PRODUCER: Final = 1
CONSUMERS: Final = (2, 3, 4, 5)
#: Queues that are pushed to in turn, and how many messages with priority stand among others.
IN_TURN: Final = 3
HIGH_AMONG: Final = 4
#: Kinds of pushes: into these queues in turn, some with priority, both, and both to be confirmed.
TURNS, PRIORITIES, BOTH, ASKED = 12, 13, 14, 15
#: The kind of answers to what was pushed into these queues in turn.
IN_THEIR_TURN = 6

QUEUES: Final = (
    ("broadcast", b'{"RequestAcknowledge":false}'),
    ("push", b'{"RequestAcknowledge":false}'),
    ("push", b'{"RequestAcknowledge":true}'),
    ("broadcast", b'{"RequestAcknowledge":true}'),
    ("roundrobin", b'{"RequestAcknowledge":false}'),
    ("broadcast", b'{"RequestAcknowledge":false,"HideClientNames":true}'),
    ("push", b'{"RequestAcknowledge":false,"MessageLimit":3}'),
    ("broadcast", b'{"RequestAcknowledge":false,"MessageSizeLimit":180}'),
    ("push", b'{"RequestAcknowledge":false,"SendOnlyFirstAcquirer":true}'),
    ("push", b'{"RequestAcknowledge":false,"MessageTimeout":1000}'),
    ("push", b'{"RequestAcknowledge":true,"WaitForAcknowledge":true}'),
    ("roundrobin", b'{"RequestAcknowledge":true,"WaitForAcknowledge":true}'),
    ("push", b'{"RequestAcknowledge":true,"MessageDeliveryHandler":"ack-consumer"}'),
    ("pull", b'{"RequestAcknowledge":false}'),
    ("cache", b"{}"),
    ("stopped", b"{}"),
    ("paused", b'{"RequestAcknowledge":false}'),
    ("roundrobin", b'{"RequestAcknowledge":true}'),
    ("push", b'{"RequestAcknowledge":true,"SendOnlyFirstAcquirer":true}'),
    ("roundrobin", b'{"RequestAcknowledge":false,"HideClientNames":true}'),
    ("roundrobin", b'{"RequestAcknowledge":true,"MessageLimit":5}'),
    ("roundrobin", b'{"RequestAcknowledge":true,"MessageDeliveryHandler":"ack-consumer"}'),
)  # fmt: skip


class Stage:
    """A hub with a producer and consumers, all in memory."""

    def __init__(
        self,
        queue: int,
        *,
        runs: bool,
        limits: EngineLimits,
        portion: int,
        packs_behind: int | None = None,
    ) -> None:
        ids = itertools.count()
        self.runs = runs
        self.broker = Broker(limits)
        if packs_behind is not None:
            self.broker.know_wires(LetterWires(Letters()), packs_behind)
        self.hub = Hub(self.broker, portion)
        self.door = NativeDoor(lambda: f"{next(ids):032}", Limits())
        self.heard: dict[int, bytes] = {}
        status, options = QUEUES[queue]
        for number in (PRODUCER, *CONSUMERS):
            self.hub.open(number, self.door, 0.0)
            self.say(number, b"TMQP/2.0" + hello(f"client{number}"))
            session = self.hub._sessions[number]
            assert isinstance(session, NativeSession)
            session._connection.makes_runs = runs
            if not runs:
                session._runs.singly_for = 1 << 30
        for number in range(1, IN_TURN + 1):
            create = operation(Operation.CREATE_QUEUE, options, status, queue=number)
            self.say(PRODUCER, create)

    def say(self, number: int, data: bytes, now: float = 0.0) -> None:
        more = self.hub.receive(number, data, now)
        self.listen()
        while more:
            more = self.hub.go_on(number, now)
            self.listen()

    def bring(self) -> None:
        """Let every chunk hold runs, whatever was divided before."""
        if self.runs:
            for number in (PRODUCER, *CONSUMERS):
                session = self.hub._sessions.get(number)
                if isinstance(session, NativeSession):
                    session._connection.makes_runs = True
                    session._connection.mix_runs(True)
                    session._runs.singly_for = session._runs.unmixed_for = 0
                    session._runs.divided = session._runs.unmixed = False

    def listen(self) -> None:
        for number in touched(self.hub):
            data = sent(self.hub, number)
            self.heard[number] = self.heard.get(number, b"") + data

    def books(self) -> list[object]:
        queues = [
            [queue.channel_name, queue.queue_id, *books_of(queue, BOOKS)]
            for queue in self.broker.queues()
        ]
        flights = [
            (
                key,
                (each.attempts, each.marks, each.sequence, each.sent_at, each.size),
                (each.wire.raw if isinstance(each.wire, Frame) else None),
                (None if each.holder is None else each.holder.number),
            )
            for queue in self.broker.queues()
            for key, each in (*queue.flights.items(), *sorted(timed_of(queue).items()))
        ]
        core = self.broker._core
        clients = [
            (
                (session.pushed, session.delivered_in_all(), session.in_flight),
                [
                    (each.credit, [held.message_id for held in each.holds or ()])
                    for each in session.subscriptions.values()
                ],
            )
            for session in core.sessions.values()
        ]
        return [queues, flights, clients, core.total_bytes, repr(self.broker.statistics())]


def timed_of(queue: Queue) -> dict[str, Message]:
    """What is in flight with times of its own; in no order."""
    return {} if queue.timed is None else queue.timed.messages


def books_of(queue: Queue, names: Iterable[str]) -> list[object]:
    """What a queue has in these attributes, and all it has counted."""
    counted = [getattr(queue.counters, name) for name in COUNTERS]
    return [*[getattr(queue, name) for name in names], *counted]


def hello(name: str) -> bytes:
    return Frame.build(int(MessageType.SERVER), "", 101, ConnectionInformation(name).encode()).raw


def operation(
    number: Operation, body: bytes = b"", status: str = "", terms: str = "", queue: int = 1
) -> bytes:
    headers = [("Queue-Id", str(queue)), ("Queue-Status", status)] if status else []
    headers += [(name, value) for name, _, value in [term.partition("=") for term in terms.split()]]
    return Frame.build(
        int(MessageType.SERVER), "c", int(number), body, message_id="o", headers=headers
    ).raw


def headers_of(kind: int, number: int) -> list[tuple[str, str]]:
    """None, the same in all, others in each, or one that the server reads."""
    if kind == 8:
        return [("Trace", "1")]
    if kind == 9:
        return [("Trace", f"{number:0{number % 9}}"), ("Kind", "order")]
    if kind == 10 and number % 5 == 3:
        return [("Trace", "1"), ("CC", "elsewhere;1")]
    if kind == 11 and number % 5 == 3:
        return [("Queue-Tag", "red")]
    return []


def pushes(first: int, count: int, kind: int) -> bytes:
    """Pushes in a row: to the queue, with what makes them different, or elsewhere."""
    return b"".join(
        [
            Frame.build(
                int(MessageType.QUEUE_MESSAGE),
                "elsewhere" if kind == 1 else "c",
                1 + (first + each) % IN_TURN if kind in (TURNS, BOTH, ASKED) else 1,
                b"x" * ((first + each) % 3 * (600 if kind == BOTH else 60)),
                message_id=f"m{(first + each) % 7 if kind == 7 else first + each}",
                source="" if kind == 2 else "client9" if kind == 3 else "client1",
                high_priority=kind == 4
                or (kind in (PRIORITIES, BOTH, ASKED) and (first + each) % HIGH_AMONG == 2),
                pending_acknowledge=kind in (5, ASKED),
                ttl=1 if kind == 6 else 16,
                headers=headers_of(kind, first + each),
            ).raw
            for each in range(count)
        ]
    )


def answers(number: int, last: int, kind: int) -> bytes:
    """Answers to all pushes up to one, each again and again; or to something else."""
    return b"".join(
        [
            Frame.build(
                int(MessageType.ACKNOWLEDGE),
                "client1" if kind == 1 else "nowhere" if kind == 2 else "c",
                1 + each % IN_TURN if kind == IN_THEIR_TURN else 1,
                message_id=f"m{each}",
                source="client9" if kind == 3 else f"client{number}",
                high_priority=kind == 4,
                headers=[("Nack-Reason", "no")] if kind == 5 else (),
            ).raw
            for each in range(max(0, last - 70), last)
        ]
    )


acts = st.one_of(
    st.tuples(st.just("push"), st.integers(1, 90), st.integers(0, ASKED)),
    st.tuples(st.just("push"), st.integers(1, 90), st.integers(TURNS, ASKED)),
    st.tuples(st.just("push"), st.integers(1, 90), st.sampled_from((8, 9))),
    st.tuples(st.just("push"), st.integers(1, 90), st.just(0)),
    st.tuples(
        st.sampled_from(["join", "leave", "block", "unblock"]), st.integers(1, 5), st.just(0)
    ),
    st.tuples(st.just("grant"), st.integers(2, 5), st.sampled_from((-1, 0, 1, 2, 7, 25, 60))),
    st.tuples(st.just("listen"), st.just(2), st.integers(0, 1)),
    st.tuples(st.just("answer"), st.integers(2, 5), st.integers(0, IN_THEIR_TURN)),
    st.tuples(st.just("answer"), st.integers(1, 5), st.sampled_from((0, IN_THEIR_TURN))),
)


def play(stage: Stage, script: list[tuple[str, int, int]]) -> None:
    first = 0
    for now, (what, number, kind) in enumerate(script, 1):
        stage.bring()
        if what == "push":
            stage.say(PRODUCER, pushes(first, number, kind), float(now))
            first += number
        elif what == "answer":
            stage.say(number, answers(number, first, kind), float(now))
        elif what == "join":
            stage.say(number, operation(Operation.JOIN, terms=TERMS[kind]), float(now))
        elif what == "choose":
            stage.say(number, operation(Operation.JOIN, terms=FILTERS[kind]), float(now))
        elif what == "leave":
            stage.say(number, operation(Operation.LEAVE), float(now))
        elif what == "grant":
            stage.hub._run(number, [Grant(number, "c", kind)], float(now))
        elif what == "listen":
            event = Frame.build(
                int(MessageType.EVENT),
                "MessageProduced",
                kind,
                message_id="e",
                headers=[("Channel-Name", "c"), ("Queue-Id", "1")],
            )
            stage.say(number, event.raw, float(now))
        elif what == "block":
            stage.hub.block(number, float(now))
        else:
            stage.hub.unblock(number, float(now))
        stage.listen()


def wait(stage: Stage, now: float) -> None:
    """Let come due what is due until then."""
    while (due := stage.hub.broker_deadline()) is not None and due <= now:
        stage.hub.on_broker_deadline(max(due, 100.0))
        stage.listen()


def compare(
    queue: int, script: list[tuple[str, int, int]], portion: int, limits: EngineLimits
) -> None:
    """Play it with runs and with single pushes; it must come to the same."""
    single, together = [
        Stage(queue, runs=runs, limits=limits, portion=portion) for runs in (False, True)
    ]
    compare_stages(single, together, script)


def compare_stages(single: Stage, together: Stage, script: list[tuple[str, int, int]]) -> None:
    """Play it on both; it must come to the same."""
    stages = [single, together]
    for stage in stages:
        play(stage, script)
    assert together.books() == single.books()
    for stage in stages:
        wait(stage, 400.0)
    assert together.heard == single.heard
    assert together.books() == single.books()
    assert faults(together.hub) == faults(single.hub) == {}
    for stage in stages:
        assert [queue.imbalance() for queue in stage.broker.queues()] == [0] * len(
            stage.broker.queues()
        )
