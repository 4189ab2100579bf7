"""The same commands give the same effects: under any hash seed, by either way of sending."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from hashlib import sha256

import pytest

from tests.project import ROOT
from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Acknowledge,
    Batch,
    Block,
    ClearMessages,
    Command,
    Connect,
    CreateQueue,
    Disconnect,
    Grant,
    Join,
    Leave,
    ListClients,
    ListQueues,
    Push,
    PushExtras,
    RemoveChannel,
    Synced,
    Unblock,
    UpdateQueue,
)
from tmqp_server.engine.events import ALL_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import ALLOW, Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.handlers import AllowAll, built_in_handlers
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import BrokerOptions, QueueChanges

LIMITS = EngineLimits(max_work_per_step=50, max_in_flight_per_session=20)
NAMES = built_in_handlers().names()


def some_changes(draw: random.Random) -> QueueChanges:
    return QueueChanges(
        status=draw.choice([0, 1, 1, 1, 2, 2, 3, 4, 5, 6]),
        request_acknowledge=draw.random() < 0.8,
        acknowledge_timeout_ms=draw.choice([500, 2_000]),
        message_timeout_ms=draw.choice([0, 0, 1_500]),
        wait_for_acknowledge=draw.random() < 0.2,
        send_only_first_acquirer=draw.random() < 0.2,
        put_back_limit=draw.choice([1, 3]),
        dead_letter=draw.choice([None, ("graves", 1)]),
        delivery_handler=draw.choice(NAMES),
    )


def one_command(draw: random.Random, count: int) -> Command:
    """Some command; sessions 1 to 9 come and go."""
    session = draw.randint(1, 9)
    channel = draw.choice(["ch", "CH", "other"])
    queue_id = draw.randint(1, 3)
    roll = draw.random()
    if roll < 0.40:
        extras = draw.choice([None, None, PushExtras(expires_in_ms=900), PushExtras(delay_ms=400)])
        high, wants = draw.random() < 0.2, draw.random() < 0.5
        return Push(session, f"m{count}", channel, queue_id, high, wants, 10, b"w", extras)
    if roll < 0.70:
        name = f"m{max(count - draw.randint(1, 40), 0)}"
        return Acknowledge(session, name, channel, queue_id, draw.random() < 0.7, "no", b"a")
    if roll < 0.78:
        return Join(session, count, channel, draw.choice([-1, -1, -1, 5]))
    rare: list[Command] = [
        Leave(session, count, channel),
        Grant(session, channel, draw.choice([-1, 3])),
        Block(session),
        Unblock(session),
        Unblock(session),
        CreateQueue(session, count, channel, queue_id, some_changes(draw)),
        UpdateQueue(session, count, channel, queue_id, some_changes(draw)),
        ClearMessages(session, count, channel, queue_id, True, draw.random() < 0.5),
        Synced(draw.randint(1, 1 + count // 10), draw.random() < 0.8),
        Batch(session, count, [Push(session, f"b{count}", "ch", 1, False, False, 5, b"b")]),
        ListQueues(session, count, channel),
        ListClients(session, count, "*"),
        Disconnect(session),
    ]
    if draw.random() < 0.02:
        return RemoveChannel(session, count, channel)
    return draw.choice(rare)


def digest(seed: int, commands: int) -> str:
    """A print of all effects of a drawn run."""
    draw = random.Random(seed)
    broker = Broker(LIMITS, BrokerOptions(events=ALL_EVENTS))
    found = sha256()
    now = 0.0
    connected: set[int] = set()
    for count in range(commands):
        now += draw.choice([0.0, 0.01, 0.05, 0.3])
        command = one_command(draw, count)
        number = getattr(command, "session", 0)
        if number and number not in connected:
            connected.add(number)
            hello = Connect(number, None, f"client-{number}", door="test")
            found.update(repr(broker.step(hello, now)).encode())
        if isinstance(command, Disconnect):
            connected.discard(number)
        found.update(repr(broker.step(command, now)).encode())
        deadline = broker.next_deadline()
        if deadline is not None and deadline <= now:
            found.update(repr(broker.on_deadline(now)).encode())
        for queue in broker.queues():
            assert queue.imbalance() == 0
    found.update(repr(broker.statistics()).encode())
    return found.hexdigest()


def test_two_runs_are_one() -> None:
    assert digest(1, 1_500) == digest(1, 1_500)
    assert digest(1, 1_500) != digest(2, 1_500)


@pytest.mark.parametrize("hash_seed", ["0", "1", "12345"])
def test_the_hash_seed_does_not_matter(hash_seed: str) -> None:
    program = "from tests.tmqp_server.engine.test_determinism import digest; print(digest(3, 1500))"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    environment["PYTHONPATH"] = os.pathsep.join([*sys.path, str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=50,
    )
    assert done.stdout.strip() == digest(3, 1_500)


class AllowsAtLength(DeliveryHandler):
    """Overrides everything a send pass asks and decides nothing: sends the long way."""

    def begin_send(self, queue: QueueFacts, message: Message) -> Decision:
        return ALLOW

    def can_consumer_receive(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        return ALLOW

    def consumer_received(self, queue: QueueFacts, message: Message, consumer: Client) -> Decision:
        return ALLOW

    def end_send(self, queue: QueueFacts, message: Message) -> Decision:
        return ALLOW


@pytest.mark.parametrize("seed", range(24))
def test_the_short_way_comes_to_the_same_as_the_long_one(seed: int) -> None:
    """The same run with a handler that decides nothing and with one that decides so at length."""
    books = []
    told = []
    for handler in (AllowAll(), AllowsAtLength()):
        draw = random.Random(seed)
        options = queue_defaults(delivery_handler="tested", acknowledge_timeout_ms=800)
        world = World(EngineLimits(max_in_flight_per_session=6), options, {"tested": handler})
        first = seed % 4 == 3
        world.create(
            QueueChanges(
                status=seed % 3,
                wait_for_acknowledge=seed % 5 == 0,
                send_only_first_acquirer=first,
            )
        )
        unanswered = QueueChanges(
            status=(seed + 1) % 3, request_acknowledge=False, send_only_first_acquirer=first
        )
        world.create(unanswered, queue_id=2)
        words: list[str] = []
        for count in range(300):
            name = draw.choice("abc")
            roll = draw.random()
            if roll < 0.1:
                words += world.join(name)
            elif name in world.numbers and roll < 0.13:
                words += world.leave(name)
            elif name in world.numbers and roll < 0.5:
                words += world.ack(name, f"m{max(count - draw.randint(1, 6), 0)}")
            elif roll < 0.9:
                words += world.push(f"m{count}", queue_id=draw.randint(1, 2))
            else:
                words += world.wait(draw.choice([0.1, 0.5]))
        told.append(words)
        books.append([world.books(), world.books(queue_id=2)])
    assert told[0] == told[1]
    assert books[0] == books[1]
