"""A small server of Simple MQ, right in what it does, and copies that are broken in one thing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from tmqp_conformance.zoo.small import SmallMachine, SmallSession
from tmqp_wires.smq import LineDecoder
from tmqp_wires.smq.codec import UNKNOWN_TYPE
from tmqp_wires.smq.events import Consume, Done, Event, Publish, Stats, Unknown

__all__ = ["BROKEN_SMQ", "SmallSmq"]

_MOST_BYTES: Final = 1_048_576


class Session(SmallSession):
    """One connection; ``hand`` is what it got and has not counted as done, oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = LineDecoder(_MOST_BYTES)
        self.queues: list[bytes] = []
        self.hand: list[tuple[bytes, bytes]] = []


class SmallSmq(SmallMachine[Session]):
    """The server: what waits in each queue, and its consumers in the order of their turns."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[bytes, list[bytes]] = {}
        self.consumers: dict[bytes, list[Session]] = {}

    def made(self) -> Session:
        """See :class:`SmallMachine`."""
        return Session()

    def heard(self, session: Session, data: bytes) -> None:
        """See :class:`SmallMachine`."""
        for event in session.decoder.receive(data, 0.0):
            if not session.closed and not self.crashed:
                self.on_event(session, event)

    # -- what the broken ones change ------------------------------------------------------------

    def on_event(self, session: Session, event: Event) -> None:
        """Carry out a line."""
        if isinstance(event, Publish):
            for body in event.bodies:
                self.publish(session, event.queue, body)
        elif isinstance(event, Consume):
            self.consume(session, event.queue)
        elif isinstance(event, Done):
            self.done(session, event)
        elif isinstance(event, Stats):
            session.out += json.dumps(self.counts()).encode() + b"\n"
        elif isinstance(event, Unknown):
            self.on_unknown(session)

    def publish(self, session: Session, queue: bytes, body: bytes) -> None:
        """Store a message."""
        self.waiting.setdefault(queue, []).append(body)
        self.pump(queue)

    def consume(self, session: Session, queue: bytes) -> None:
        """A new consumer, behind the others."""
        self.waiting.setdefault(queue, [])
        if queue not in session.queues:
            session.queues.append(queue)
            self.consumers.setdefault(queue, []).append(session)
        self.pump(queue)

    def done(self, session: Session, event: Done) -> None:
        """The oldest messages of a queue are done."""
        mine = [each for each in session.hand if each[0] == event.queue]
        for each in mine[: event.count]:
            session.hand.remove(each)

    def counts(self) -> dict[str, int]:
        """Messages of each queue that wait or are not done."""
        found = {queue: len(bodies) for queue, bodies in self.waiting.items()}
        for session in self.sessions.values():
            for queue, _ in session.hand:
                found[queue] += 1
        return {queue.decode("latin-1"): count for queue, count in found.items()}

    def on_unknown(self, session: Session) -> None:
        """A line of another letter."""
        session.out += UNKNOWN_TYPE

    def delivery(self, queue: bytes, body: bytes) -> bytes:
        """What a consumer reads."""
        return body + b"\n"

    def turns(self, queue: bytes) -> list[Session]:
        """Who gets the next message: the one whose turn it is, who goes behind the others."""
        first, *others = self.consumers[queue]
        self.consumers[queue] = [*others, first]
        return [first]

    def next_body(self, queue: bytes) -> bytes:
        """Take the message that is next."""
        return self.waiting[queue].pop(0)

    def left(self, session: Session) -> None:
        """A consumer is gone: what it had in flight comes again."""
        for queue in session.queues:
            self.consumers[queue].remove(session)
            unfinished = [body for name, body in session.hand if name == queue]
            self.waiting[queue][:0] = unfinished
        session.hand = []
        for queue in session.queues:
            self.pump(queue)

    def pump(self, queue: bytes) -> None:
        """Deliver what waits."""
        while self.waiting[queue] and self.consumers.get(queue):
            body = self.next_body(queue)
            for session in self.turns(queue):
                session.hand.append((queue, body))
                session.out += self.delivery(queue, body)


# -- the broken ones ------------------------------------------------------------------------------


class _NamesTheQueue(SmallSmq):
    def delivery(self, queue: bytes, body: bytes) -> bytes:
        return queue + b":" + body + b"\n"


class _SplitsBodies(SmallSmq):
    def publish(self, session: Session, queue: bytes, body: bytes) -> None:
        super().publish(session, queue, body.split(b":")[0])


class _Broadcasts(SmallSmq):
    def turns(self, queue: bytes) -> list[Session]:
        return self.consumers[queue]


class _FirstConsumerOnly(SmallSmq):
    def turns(self, queue: bytes) -> list[Session]:
        return self.consumers[queue][:1]


class _LosesUnfinished(SmallSmq):
    def left(self, session: Session) -> None:
        session.hand = []
        super().left(session)


class _ForgetsEmptyQueues(SmallSmq):
    def counts(self) -> dict[str, int]:
        return {queue: count for queue, count in super().counts().items() if count}


class _CountsOneLess(SmallSmq):
    """It does not count what is on its way."""

    def counts(self) -> dict[str, int]:
        return {queue.decode("latin-1"): len(bodies) for queue, bodies in self.waiting.items()}


class _DoneIsAll(SmallSmq):
    def done(self, session: Session, event: Done) -> None:
        session.hand = [each for each in session.hand if each[0] != event.queue]


class _IgnoresUnknown(SmallSmq):
    def on_unknown(self, session: Session) -> None:
        return


class _ClosesOnUnknown(SmallSmq):
    def on_unknown(self, session: Session) -> None:
        super().on_unknown(session)
        session.closed = True


class _CrashesOnUnknown(SmallSmq):
    def on_unknown(self, session: Session) -> None:
        self.crashed = True


class _ConfirmsMessages(SmallSmq):
    def publish(self, session: Session, queue: bytes, body: bytes) -> None:
        session.out += b"OK\n"
        super().publish(session, queue, body)


class _DropsEmpty(SmallSmq):
    def publish(self, session: Session, queue: bytes, body: bytes) -> None:
        if body:
            super().publish(session, queue, body)


class _LastInFirstOut(SmallSmq):
    def next_body(self, queue: bytes) -> bytes:
        return self.waiting[queue].pop()


class _OneQueueForAll(SmallSmq):
    def publish(self, session: Session, queue: bytes, body: bytes) -> None:
        super().publish(session, next(iter(self.waiting), queue), body)


class _CutsLongLines(SmallSmq):
    def publish(self, session: Session, queue: bytes, body: bytes) -> None:
        super().publish(session, queue, body[:65_536])


class _ReadsSegments(SmallSmq):
    """It takes each segment for one line, as the original does."""

    def heard(self, session: Session, data: bytes) -> None:
        line = data.split(b"\n")[0]
        super().heard(session, line + b"\n")


#: name -> what is wrong with it, and how to make one.
BROKEN_SMQ: Final[dict[str, tuple[str, Callable[[], SmallSmq]]]] = {
    "names-the-queue": ("writes the queue's name before each message", _NamesTheQueue),
    "splits-bodies": ("ends a body at its first colon", _SplitsBodies),
    "broadcasts": ("gives each message to all consumers", _Broadcasts),
    "first-consumer-only": ("gives all messages to the first consumer", _FirstConsumerOnly),
    "loses-unfinished": ("loses what a consumer leaves unfinished", _LosesUnfinished),
    "forgets-empty-queues": ("takes empty queues out of the statistics", _ForgetsEmptyQueues),
    "counts-one-less": ("does not count what is not done", _CountsOneLess),
    "done-is-all": ("takes D for all messages", _DoneIsAll),
    "ignores-unknown": ("does not answer an unknown letter", _IgnoresUnknown),
    "closes-on-unknown": ("closes behind an unknown letter", _ClosesOnUnknown),
    "crashes-on-unknown": ("dies of an unknown letter", _CrashesOnUnknown),
    "confirms-messages": ("answers M with OK", _ConfirmsMessages),
    "drops-empty": ("drops empty messages", _DropsEmpty),
    "last-in-first-out": ("delivers what waits from its end", _LastInFirstOut),
    "one-queue-for-all": ("puts every message into the first queue", _OneQueueForAll),
    "cuts-long-lines": ("cuts bodies after 65,536 bytes", _CutsLongLines),
    "reads-segments": ("takes each segment for one line", _ReadsSegments),
}
