"""Each bound of the engine: at the limit it works, one above is refused with its own code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Final

import pytest

from tests.tmqp_server.engine.letters import Letter
from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_PULL
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import (
    BY_ID,
    AddBinding,
    AddFeed,
    Batch,
    Block,
    Connect,
    CreateChannel,
    CreateRouter,
    ListChannels,
    PassAnswer,
    Publish,
    Push,
    PushExtras,
    SendDirect,
    SubscribeEvent,
)
from tmqp_server.engine.limits import LASTING_LIMITS, EngineLimits
from tmqp_server.engine.options import (
    ASKS_NOTHING,
    ASKS_RESPONSE,
    TO_CLIENTS,
    TO_QUEUE,
    TO_TAG,
    TO_URL,
    BindingOptions,
    BrokerOptions,
    QueueChanges,
)

Case = tuple[EngineLimits, Callable[[World, int], list[str]], str]


def fill(world: World, count: int, size: int = 10, queues: int = 1) -> list[str]:
    """Push so many messages; the words of the last push."""
    words: list[str] = []
    for number in range(count):
        words = world.push(f"m{number}", size=size, queue_id=number % queues)
    return words


def deferred(world: World, message_id: str, size: int = 1) -> list[str]:
    return world.push(message_id, size=size, extras=PushExtras(delay_ms=60_000))


def sessions(world: World, count: int) -> list[str]:
    words: list[str] = []
    for number in range(1, count + 1):
        world.names[number] = f"c{number}"
        words = world.step(Connect(number, None, f"c{number}"))
    return words


def named(world: World, count: int) -> list[str]:
    world.connect("admin")
    return world.step(CreateChannel(1, "r", "x" * count))


def batch(world: World, count: int) -> list[str]:
    world.connect("admin")
    pushes = [Push(1, f"m{n}", "ch", 1, False, False, 1, "w") for n in range(count)]
    return world.step(Batch(1, "r", list(pushes)))


def feeds(world: World, count: int, each: int) -> list[str]:
    """Add so many feeds, so many of each queue."""
    words: list[str] = []
    for queue_id in range(1, count + 1):
        world.create(channel="to", queue_id=queue_id)
        source = 1 + (queue_id - 1) // each
        world.create(queue_id=source)
        command = AddFeed(world.numbers["admin"], "feed", "ch", source, "to", queue_id)
        words = world.step(command)
    return words


def feeds_into(world: World, count: int) -> list[str]:
    """Let so many queues feed one."""
    world.create(channel="to")
    words: list[str] = []
    for source in range(1, count + 1):
        world.create(queue_id=source)
        words = world.step(AddFeed(world.numbers["admin"], "feed", "ch", source, "to", 1))
    return words


def routers(world: World, number: int) -> list[str]:
    if not world.numbers:
        world.connect("admin")
    return world.step(CreateRouter(1, "r", f"r{number}", 0))


def bindings(world: World, number: int) -> list[str]:
    routers(world, 0)
    options = BindingOptions(f"b{number}", TO_QUEUE, "ch", 1, 0, ASKS_NOTHING, 0)
    return world.step(AddBinding(1, "b", "r0", options))


def calling(world: World, count: int, size: int = 1) -> list[str]:
    """Publish so many messages to a router that calls a program."""
    routers(world, 0)
    options = BindingOptions("b", TO_URL, "http://here/", None, 0, ASKS_NOTHING, 0)
    world.step(AddBinding(1, "b", "r0", options))
    words: list[str] = []
    for number in range(count):
        words = world.step(Publish(1, "p", "r0", size, Letter(f"m{number}")))
    return words


def listed(world: World, count: int) -> list[str]:
    """List so many channels."""
    world.connect("admin")
    for number in range(count):
        world.step(CreateChannel(1, None, f"c{number}"))
    return world.step(ListChannels(1, "r"))


def published(world: World, kind: int, target: str) -> list[str]:
    """Publish to a router with this one binding."""
    routers(world, 0)
    options = BindingOptions("b", kind, target, 1, 0, ASKS_NOTHING, 0)
    world.step(AddBinding(1, "b", "r0", options))
    return world.step(Publish(1, "p", "r0", 1, Letter("m")))


def published_to_tag(world: World, count: int) -> list[str]:
    """Publish to so many queues of one tag."""
    for number in range(count):
        world.create(QueueChanges(tag="t"), queue_id=number)
    return published(world, TO_TAG, "t")


def published_to_name(world: World, count: int) -> list[str]:
    """Publish to so many clients of one name."""
    for number in range(1, count + 1):
        world.names[number] = f"c{number}"
        world.step(Connect(number, None, f"c{number}", "many"))
    world.numbers["admin"] = 1
    return published(world, TO_CLIENTS, "~many")


def listening(world: World, count: int) -> list[str]:
    """Subscribe to so many events."""
    world.connect("admin")
    words: list[str] = []
    for number in range(count):
        words = world.step(SubscribeEvent(1, "r", 1 << number, "ch"))
        if number == 0:
            world.create()
    return words


def asking(world: World, count: int) -> list[str]:
    """Ask another client so often, then have the first question answered."""
    world.connect("a", "b")
    for number in range(count):
        asked = SendDirect(1, BY_ID, "b", False, 1, "question", None, f"m{number}", ASKS_RESPONSE)
        world.step(asked)
    answered = world.step(PassAnswer(2, "a", 1, "answer", "m0", ASKS_RESPONSE))
    return [] if answered == ["a <- forward answer"] else ["the answer to m0 is dropped"]


def answering(world: World, count: int) -> list[str]:
    """Bring so many bytes of answers to a client that does not read."""
    world.connect("a", "b")
    world.step(Block(1))
    for number in range(count):
        asked = SendDirect(1, BY_ID, "b", False, 1, "question", None, f"m{number}", ASKS_RESPONSE)
        world.step(asked)
        world.step(PassAnswer(2, "a", 1, "answer", f"m{number}", ASKS_RESPONSE))
    dropped = world.broker.statistics().answers_dropped
    return [f"dropped {dropped}"] if dropped else []


def in_flight(world: World, count: int) -> list[str]:
    world.join("a")
    return fill(world, count)


def pulls(world: World, times: int, count: int) -> list[str]:
    """Pull so often while the client does not read."""
    world.create(QueueChanges(status=STATUS_PULL), queue_id=0)
    world.join("a")
    fill(world, times)
    world.step(Block(world.numbers["a"]))
    return [word for _ in range(times) for word in world.pull("a", count, queue_id=0)]


def hops(world: World, count: int) -> list[str]:
    """Let one message die in so many queues; who gets it from the last one's dead letters."""
    for queue_id in range(1, count + 2):
        changes = QueueChanges(
            delivery_handler="putback-start", put_back_limit=1, dead_letter=("ch", queue_id + 1)
        )
        world.create(changes, queue_id=queue_id)
    world.join("a")
    words = world.push("m")
    for queue_id in range(1, count + 1):
        for _ in range(2):
            words = world.nack("a", "m", queue_id=queue_id)
        words += world.finish()
    return words


def _state_bytes() -> int:
    """What a producer, a channel and two queues take, with the options of the cases."""
    world = World(EngineLimits(), case_options())
    fill(world, 2, queues=2)
    return world.broker.statistics().state_bytes


def case_options() -> BrokerOptions:
    """What a broker does by itself in the cases."""
    options = queue_defaults(put_back_limit=1, acknowledge_timeout_ms=1)
    options.http_prefixes = ("http://here/",)
    return options


STATE_BYTES: Final = _state_bytes()

CASES: dict[str, Case] = {
    "max_sessions": (
        EngineLimits(max_sessions=3),
        sessions,
        "session 4 refused 482",
    ),
    "max_channels": (
        EngineLimits(max_channels=3),
        lambda world, n: [world.create(channel=f"c{i}") for i in range(n)][-1],
        "admin create: 482",
    ),
    "max_queues_per_channel": (
        EngineLimits(max_queues_per_channel=3),
        lambda world, n: [world.create(queue_id=i) for i in range(n)][-1],
        "admin create: 482",
    ),
    "max_routers": (
        EngineLimits(max_routers=3),
        lambda world, n: [routers(world, i) for i in range(n)][-1],
        "admin r: 482",
    ),
    "max_bindings_per_router": (
        EngineLimits(max_bindings_per_router=3),
        lambda world, n: [bindings(world, i) for i in range(n)][-1],
        "admin b: 482",
    ),
    "max_http_calls": (EngineLimits(max_http_calls=3), calling, "admin p: 404"),
    "max_http_call_bytes": (
        EngineLimits(max_http_call_bytes=3),
        lambda world, n: calling(world, 1, n),
        "admin p: 404",
    ),
    "max_event_subscriptions_per_session": (
        EngineLimits(max_event_subscriptions_per_session=3),
        listening,
        "admin r: 482",
    ),
    "max_answer_bytes_while_blocked": (
        EngineLimits(max_answer_bytes_while_blocked=3),
        answering,
        "dropped 1",
    ),
    "max_questions_per_session": (
        EngineLimits(max_questions_per_session=3),
        asking,
        "the answer to m0 is dropped",
    ),
    "max_list_items": (EngineLimits(max_list_items=3), listed, "admin r: 482"),
    "max_queues_per_publish": (
        EngineLimits(max_queues_per_publish=3),
        published_to_tag,
        "admin p: 404",
    ),
    "max_clients_per_publish": (
        EngineLimits(max_clients_per_publish=3),
        published_to_name,
        "c1 p: 404",
    ),
    "max_subscriptions_per_session": (
        EngineLimits(max_subscriptions_per_session=3),
        lambda world, n: [world.join("a", f"c{i}") for i in range(n)][-1],
        "a join: 482",
    ),
    "max_delay_ms": (
        EngineLimits(max_delay_ms=3),
        lambda world, n: world.push("m", extras=PushExtras(delay_ms=n)),
        "p wire of m: 482",
    ),
    "max_deferred_per_queue": (
        EngineLimits(max_deferred_per_queue=3),
        lambda world, n: [deferred(world, f"m{i}") for i in range(n)][-1],
        "p wire of m3: 482",
    ),
    "max_deferred_bytes_per_queue": (
        EngineLimits(max_deferred_bytes_per_queue=3),
        lambda world, n: deferred(world, "m", n),
        "p wire of m: 482",
    ),
    "max_messages_per_queue": (EngineLimits(max_messages_per_queue=3), fill, "p wire of m3: 482"),
    "max_message_bytes": (
        EngineLimits(max_message_bytes=3),
        lambda world, n: fill(world, 1, n),
        "p wire of m0: 482",
    ),
    "max_queue_bytes": (
        EngineLimits(max_queue_bytes=3),
        lambda world, n: fill(world, n, 1),
        "p wire of m3: 482",
    ),
    "max_total_bytes": (
        EngineLimits(max_total_bytes=STATE_BYTES + 2 * (3 + MESSAGE_OVERHEAD_BYTES)),
        lambda world, n: fill(
            world, 2, (n - STATE_BYTES + 1) // 2 - MESSAGE_OVERHEAD_BYTES, queues=2
        ),
        "p wire of m1: 503",
    ),
    "max_in_flight_per_session": (EngineLimits(max_in_flight_per_session=3), in_flight, ""),
    "max_name_bytes": (EngineLimits(max_name_bytes=5), named, "admin r: 400"),
    "max_feeds": (
        EngineLimits(max_feeds=3),
        lambda world, n: feeds(world, n, 1),
        "admin feed: 482",
    ),
    "max_feeds_per_queue": (
        EngineLimits(max_feeds_per_queue=3),
        lambda world, n: feeds(world, n, 100),
        "admin feed: 482",
    ),
    "max_feeds_into_queue": (
        EngineLimits(max_feeds_into_queue=3),
        feeds_into,
        "admin feed: 482",
    ),
    "max_batch_length": (EngineLimits(max_batch_length=3), batch, "admin r: 482"),
    "max_batch_bytes": (EngineLimits(max_batch_bytes=3), batch, "admin r: 482"),
    "max_pull_count": (
        EngineLimits(max_pull_count=3),
        lambda world, n: pulls(world, 1, n),
        "a pull Unacceptable",
    ),
    "max_pulls_per_session": (
        EngineLimits(max_pulls_per_session=3),
        lambda world, n: pulls(world, n, 1),
        "a pull Unacceptable",
    ),
    "max_put_backs": (
        EngineLimits(max_put_backs=3),
        lambda world, n: world.create(QueueChanges(put_back_limit=n)),
        "admin create: 482",
    ),
    "max_dead_letter_hops": (EngineLimits(max_dead_letter_hops=3), hops, ""),
    "max_acknowledge_timeout_ms": (
        EngineLimits(max_acknowledge_timeout_ms=3),
        lambda world, n: world.create(QueueChanges(acknowledge_timeout_ms=n)),
        "admin create: 482",
    ),
}


#: What is refused without being counted as a limit that was reached: values that no option may
#: have, what is left out of something, and what is only not sent.
UNCOUNTED: Final = {
    "max_acknowledge_timeout_ms",
    "max_answer_bytes_while_blocked",
    "max_clients_per_publish",
    "max_dead_letter_hops",
    "max_in_flight_per_session",
    "max_name_bytes",
    "max_pull_count",
    "max_put_backs",
    "max_questions_per_session",
    "max_queues_per_publish",
}


@pytest.mark.parametrize("name", CASES)
def test_at_the_limit_it_works_and_one_above_is_refused(name: str) -> None:
    limits, attempt, refusal = CASES[name]
    options = case_options()
    limit = getattr(limits, name)
    below, beyond = World(limits, options), World(limits, options)
    at_limit = attempt(below, limit)
    above = attempt(beyond, limit + 1)
    assert below.broker.survey().limits_reached == {}
    counted = {} if name in UNCOUNTED else {name: 1}
    assert beyond.broker.survey().limits_reached == counted
    if refusal:
        assert refusal not in at_limit
        assert refusal in above
    else:
        # A bound on what is sent: nothing is refused, it is only not sent.
        assert at_limit != []
        assert above == []


@pytest.mark.parametrize("name", [each for each in CASES if each not in LASTING_LIMITS])
def test_a_limit_holds_that_was_set_while_the_broker_works(name: str) -> None:
    limits, attempt, refusal = CASES[name]
    found: list[list[str]] = []
    for more in (0, 1):
        world = World(EngineLimits(), case_options())
        world.broker.limit_to(limits)
        found.append(attempt(world, getattr(limits, name) + more))
    at_limit, above = found
    if refusal:
        assert refusal not in at_limit
        assert refusal in above
    else:
        assert at_limit != []
        assert above == []


def test_what_is_there_stays_when_a_limit_is_lowered_and_there_is_room_when_it_is_raised() -> None:
    world = World(EngineLimits(max_messages_per_queue=2), case_options())
    fill(world, 3)
    [queue] = world.broker.queues()
    assert queue.live() == 2
    for most, there in ((3, 3), (1, 3)):
        world.broker.limit_to(EngineLimits(max_messages_per_queue=most))
        for number in range(2):
            world.push(f"{most}-{number}", queue_id=0)
        assert queue.live() == there


def test_no_limit_is_forgotten() -> None:
    # How much a step works is measured in test_bounded_steps.py, for how long answers are passed on
    # in test_direct.py, looks in test_browsing.py; the others need a storage:
    # test_durable.py, test_spilling.py, test_readers.py, test_watching.py, test_groups.py and
    # test_transaction_limits.py.
    names = {field.name for field in fields(EngineLimits)}
    elsewhere = {"max_work_per_step", "max_unsynced_bytes", "max_messages_in_memory"}
    elsewhere |= {"max_answer_wait_ms", "max_browse_messages", "max_browses"}
    elsewhere |= {"max_branches_per_session"}  # hub/test_branches.py
    # test_lifetimes.py
    elsewhere |= {"max_owned_channels_per_session", "min_idle_timeout_ms"}
    elsewhere |= {"max_reads", "max_reads_per_session", "max_read_messages", "max_read_bytes"}
    elsewhere |= {"max_queues_per_read", "max_cursors_per_queue", "max_parts_per_split"}
    elsewhere |= {"max_held_reads", "max_held_reads_per_session", "max_read_wait_ms"}
    elsewhere |= {each for each in names if "cell" in each}  # test_cells.py
    elsewhere |= {"max_mark_age_ms", *[each for each in names if "transaction" in each]}
    assert names == {*CASES, *elsewhere}


@pytest.mark.parametrize("name", [field.name for field in fields(EngineLimits)])
def test_values_that_are_no_limit(name: str) -> None:
    for value in (0, -1):
        with pytest.raises(ValueError, match=f"{name} must be a positive whole number"):
            EngineLimits(**{name: value})
    for wrong in (1.5, "7", None):
        # A compiled build checks types by itself.
        with pytest.raises((TypeError, ValueError)):
            EngineLimits(**{name: wrong})  # type: ignore[arg-type]


def test_values_past_the_protocols_own() -> None:
    EngineLimits(max_queues_per_channel=65_536, max_name_bytes=255)
    with pytest.raises(ValueError, match="max_queues_per_channel is at most 65536"):
        EngineLimits(max_queues_per_channel=65_537)
    with pytest.raises(ValueError, match="max_name_bytes is at most 255"):
        EngineLimits(max_name_bytes=256)


def test_limits_do_not_change() -> None:
    with pytest.raises(AttributeError):
        EngineLimits().max_sessions = 5  # type: ignore[misc]
