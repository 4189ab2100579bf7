"""Queues where keys count and the storage keeps messages: order over restarts, and on disk."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.keyed import BeforeDash, busy, sent
from tmqp.constants import STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import Unblock
from tmqp_server.engine.options import STICKY, STRICT, QueueChanges


def kept(keys: str, **more: object) -> KeptWorld:
    world = KeptWorld()
    world.broker.know_wires(BeforeDash())
    options: dict[str, object] = {"durable": True, "delivery_handler": "putback-end", **more}
    changes = QueueChanges(status=STATUS_ROUND_ROBIN, **options)  # type: ignore[arg-type]
    changes.group_keys = keys
    world.create(changes)
    world.sync()
    return world


def crash(world: KeptWorld) -> None:
    world.sync()
    world.crash()
    world.broker.know_wires(BeforeDash())


def drain(world: KeptWorld, name: str, words: list[str]) -> list[str]:
    """Acknowledge whatever a client gets, to the end; what that was."""
    found: list[str] = []
    waiting = sent(words)
    while waiting:
        message_id = waiting.pop(0).split()[2]
        found.append(message_id)
        waiting += sent(world.ack(name, message_id) + world.sync())
    return found


def test_a_strict_message_keeps_its_place_over_a_restart() -> None:
    world = kept(STRICT)
    for each in ("k-1", "k-2", "l-1"):
        world.push(each)
    world.sync()
    assert sent(world.join("a")) == ["a <- k-1", "a <- l-1"]
    assert sent(world.nack("a", "k-1")) == ["a <- k-1"]
    crash(world)
    assert world.queue().options.group_keys == STRICT
    assert drain(world, "a", world.join("a") + world.sync()) == ["k-1", "l-1", "k-2"]


def test_a_delayed_release_does_not_lose_its_place_over_a_restart() -> None:
    world = kept(STRICT)
    for each in ("k-1", "k-2"):
        world.push(each)
    world.sync()
    world.join("a")
    assert sent(world.release("a", "k-1", delay_ms=60_000)) == []
    crash(world)
    assert drain(world, "a", world.join("a") + world.sync()) == ["k-1", "k-2"]


@pytest.mark.parametrize("keys", [STICKY, STRICT])
def test_what_was_on_disk_only_keeps_the_order_of_its_key(keys: str) -> None:
    world = kept(keys, memory_limit=3)
    pushed = [f"{key}-{number}" for number in range(6) for key in "klm"]
    for each in pushed:
        world.push(each)
    world.sync()
    assert world.queue().spilled
    found = drain(world, "a", world.join("a") + world.sync())
    assert sorted(found) == sorted(pushed)
    for key in "klm":
        mine = [each for each in found if each.startswith(key)]
        assert mine == [each for each in pushed if each.startswith(key)]


def test_what_others_wait_for_stays_in_memory() -> None:
    world = kept(STRICT, memory_limit=2)
    world.join("a")
    world.push("k-0")
    for number in range(1, 6):
        world.push(f"k-{number}")
    world.sync()
    assert world.queue().spilled
    busy(world, "a")
    world.nack("a", "k-0")
    world.sync()
    assert "k-0" in [each.message_id for each in world.queue().regular.messages()]
    words = world.step(Unblock(world.numbers["a"])) + world.sync()
    assert drain(world, "a", words) == [f"k-{number}" for number in range(6)]


def test_an_overflow_queue_that_is_full_of_one_key_goes_on_with_it() -> None:
    world = kept(STRICT, durable=False, overflow=True, memory_limit=2)
    world.join("a")
    for number in range(8):
        world.push(f"k-{number}")
    world.push("l-1")
    words = world.sync()
    assert not sent(words), "what fills the memory waits for k-0"
    assert world.queue().counters.starved
    words = world.ack("a", "k-0") + world.sync()
    found = drain(world, "a", words)
    assert found.pop(found.index("l-1"))
    assert found == [f"k-{number}" for number in range(1, 8)]
