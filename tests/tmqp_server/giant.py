"""The largest server that the limits allow, in memory, and a stopwatch for each of its steps."""

from __future__ import annotations

import os
import time
from itertools import count
from typing import Any

from tests.tmqp_server.outputs import asked_of_storage, wants_storage
from tests.tmqp_server.peers import greeting
from tmqp.constants import STATUS_PULL, STATUS_PUSH, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    AddBinding,
    AddFeed,
    Command,
    CreateQueue,
    CreateRouter,
    GroupPlace,
    Join,
    KeptPart,
    MakeCounter,
    NameStore,
    OffsetsFound,
    OpenGroup,
    OpenTransaction,
    Push,
    PushExtras,
    RangeRead,
    RangeSplit,
    RestoreMark,
    StoredMeasured,
    SubscribeEvent,
    Synced,
)
from tmqp_server.engine.effects import FindOffsets, MeasureStored, ReadStored, StoredChange
from tmqp_server.engine.events import ALL_EVENTS, MESSAGE_PRODUCED
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.snapshots import KeptOffsets
from tmqp_server.engine.options import BindingOptions, BrokerOptions, ChannelChanges, QueueChanges
from tmqp_server.hub.hub import Hub
from tmqp_server.storage.journal import Journal

__all__ = ["CROWD", "MESSAGES", "Giant"]

#: As many cells as one space may have.
CELLS = 500_000
CROWD = 9_900
CHANNELS = 9_900
QUEUES_OF_A_CHANNEL = 65_535
#: Messages of each of eight queues.
MESSAGES = int(os.environ.get("TMQP_F8_MESSAGES", "20000"))
#: As the configuration has it.
PORTION_BYTES = 262_144
#: Steps of one pipelined chunk that are looked at.
MOST_STEPS = 12


class Giant:
    """A server that is full of everything; ``longest`` is the longest step of the last question.

    Session 1 fills it; the crowd has the numbers from 2 on.
    """

    def __init__(self) -> None:
        ids = count(1)
        self.now = 1_000.0
        self.broker = Broker(
            EngineLimits(max_queues_per_channel=65_536, max_total_bytes=1 << 33),
            BrokerOptions(storage=True),
        )
        self.door = NativeDoor(lambda: f"{next(ids):032x}", Limits())
        self.journal = Journal([self.door])
        self.hub = Hub(self.broker, PORTION_BYTES, self.journal)
        self.longest_s = 0.0
        self.step = ""
        self._last = 0
        self.broker.step(NameStore("disk"), self.now)
        self.connect("filler")
        self._queues()
        self._crowd()
        self._routers_and_readers()
        for queue_id in range(1, 9):
            self._messages(queue_id)
        self._deferred(9)
        self._messages(10, 3_500)
        self._feeds()
        self._cells()
        self.finish()
        self.longest_s = 0.0

    # -- filling --------------------------------------------------------------------------------

    def _do(self, command: Command) -> None:
        for effect in self.broker.step(command, self.now):
            if isinstance(effect, StoredChange):
                self.broker.step(Synced(effect.ticket, True), self.now)

    def _queues(self) -> None:
        many = ChannelChanges(allow_multiple_queues=True)
        tagged = QueueChanges(tag="tagged")
        for queue_id in range(QUEUES_OF_A_CHANNEL):
            self._do(CreateQueue(1, None, "wide", queue_id, None, many))
        for number in range(CHANNELS):
            for queue_id in range(4 if number % 2 else 3):
                changes = tagged if number < 250 else None
                self._do(CreateQueue(1, None, f"channel-{number}", queue_id, changes, many))

    def _cells(self) -> None:
        for number in range(CELLS):
            self._do(MakeCounter(1, None, "cells", b"key-%d" % number, number, 60_000 + number))

    def _crowd(self) -> None:
        crowd = [self.connect(f"client-{number:024}", "crowd") for number in range(CROWD)]
        for session in crowd:
            self._do(Join(session, None, "crowded"))
        for session in crowd:
            bit = 1
            while bit <= ALL_EVENTS:
                place = 1 if bit == MESSAGE_PRODUCED else None
                self._do(SubscribeEvent(session, None, bit, "crowded", place))
                bit *= 2

    def _routers_and_readers(self) -> None:
        for number in range(1_000):
            self._do(CreateRouter(1, None, f"router-{number}", 0))
        for number in range(100):
            options = BindingOptions(f"b{number}", 3, "*agge*" if number else "tagged", 1, 0, 0, 0)
            self._do(AddBinding(1, None, "router-0", options))
        self._do(AddBinding(1, None, "router-1", BindingOptions("b", 0, "@type:crowd", 1, 0, 0, 0)))
        for number in range(10_000):
            self._do(RestoreMark(f"application-{number}", 1, self.now))
        for number in range(998):
            self._do(OpenTransaction(1, None, f"opened-{number}", 1))
        places = OpenGroup(1, None, "group", "wide", None, False)
        places.places = [GroupPlace("wide", number, 0, "") for number in range(10_000)]
        self._do(places)

    def _messages(self, queue_id: int, count: int = MESSAGES) -> None:
        changes = QueueChanges(status=STATUS_PUSH, acknowledge_timeout_ms=1_000)
        if queue_id == 3:
            changes.message_timeout_ms = 50_000
        if queue_id == 4:
            changes.status = STATUS_PULL
        self._do(CreateQueue(1, None, "full", queue_id, changes, ChannelChanges(True)))
        for number in range(count):
            message_id = f"m{number}"
            frame = Frame.build(TYPE_QUEUE_MESSAGE, "full", queue_id, b"x", message_id=message_id)
            self._do(Push(1, message_id, "full", queue_id, False, False, 30, frame))

    def _deferred(self, queue_id: int) -> None:
        """Messages that are due long after everything, a part of them with one id."""
        self._do(CreateQueue(1, None, "full", queue_id, None, None))
        extras = PushExtras(delay_ms=1_000_000_000)
        for number in range(MESSAGES):
            message_id = "same" if number < MESSAGES // 2 else f"m{number}"
            frame = Frame.build(TYPE_QUEUE_MESSAGE, "full", queue_id, b"x", message_id=message_id)
            self._do(Push(1, message_id, "full", queue_id, False, False, 30, frame, extras))

    def _feeds(self) -> None:
        """As many as there may be: a queue feeds others, of which each feeds as many as it may."""
        many = ChannelChanges(allow_multiple_queues=True)
        push = QueueChanges(status=STATUS_PUSH)
        self._do(CreateQueue(1, None, "hub", 0, push))
        for queue_id in range(1, 39):
            self._do(CreateQueue(1, None, "feeding", queue_id, push, many))
            for place in range(256):
                target = 256 * queue_id + place
                self._do(AddFeed(1, None, "feeding", queue_id, "wide", target))
            self._do(AddFeed(1, None, "hub", 0, "feeding", queue_id))

    # -- asking ---------------------------------------------------------------------------------

    def connect(self, client_id: str, kind: str = "") -> int:
        """A client; returns its number."""
        self._last += 1
        number = self._last
        self.hub.open(number, self.door, self.now)
        hello = ConnectionInformation(client_id, type=kind).encode()
        self.hub.receive(number, greeting(payload=hello), self.now)
        self.hub.take_outbound()
        assert not self.hub.close_reason(number), self.hub.close_reason(number)
        return number

    def timed(self, name: str, call: Any, *args: Any) -> Any:
        """Call, and note how long it took if it was the longest."""
        started = time.thread_time()
        result = call(*args)
        took = time.thread_time() - started
        if took > self.longest_s:
            self.longest_s = took
            self.step = name
        return result

    def ask(self, data: bytes) -> None:
        """A new client says something, and goes; each step is timed."""
        number = self.connect(f"asker-{self._last}")
        self.longest_s = 0.0
        more = self.timed("the chunk", self.hub.receive, number, data, self.now)
        left = MOST_STEPS
        while left and (more or self._has_work()):
            left -= 1
            self.hub.take_outbound()
            if more:
                more = self.timed("a portion", self.hub.go_on, number, self.now)
            self._storage()
            self._deadline()
        self.hub.take_outbound()
        self.timed("its end", self.hub.forget, number, self.now)
        for _ in range(left):
            self._deadline()

    def finish(self) -> None:
        """Do what is left over or due."""
        while self._has_work():
            self.hub.take_outbound()
            self._storage()
            self._deadline()

    def _has_work(self) -> bool:
        due = self.hub.broker_deadline()
        return wants_storage(self.hub) or (due is not None and due <= self.now)

    def _deadline(self) -> None:
        due = self.hub.broker_deadline()
        if due is not None and due <= self.now:
            self.timed("a deadline", self.hub.on_broker_deadline, self.now)

    def _storage(self) -> None:
        if not self.journal.is_empty:
            writing = self.journal.take()
            for synced in self.journal.answers(writing, True, 256):
                self.timed("a sync", self.hub.perform, synced, self.now)
        for question in asked_of_storage(self.hub):
            answer = self._answer(question)
            if answer is not None:
                self.timed(
                    f"an answer to {type(question).__name__}", self.hub.perform, answer, self.now
                )

    def _answer(self, question: object) -> Command:
        number = getattr(question, "number", 0)
        if isinstance(question, FindOffsets):
            kept = [KeptOffsets(1, 9, 9, 900, 0) for _ in question.keys]
            return OffsetsFound(number, 0, kept)
        if isinstance(question, MeasureStored):
            return StoredMeasured(number, 0, [KeptPart(1, 9, 9, 900) for _ in question.keys])
        if isinstance(question, ReadStored):
            return RangeRead(number, 416, None, KeptOffsets(1, 9, 9, 900, 0))
        parts = [KeptPart(at, at, 1, 100) for at in range(10_000)]
        return RangeSplit(number, 0, parts)
