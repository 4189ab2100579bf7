"""Items of lists are written as the models write them, byte for byte (F65, F67-F69)."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machine import Stopwatch, thrice
from tmqp.constants import BindingInteraction, BindingType, RouteMethod
from tmqp.models import (
    BindingInformation,
    ChannelInformation,
    ClientInformation,
    CursorInformation,
    OffsetsInformation,
    PartInformation,
    QueueInformation,
    RouterInformation,
    TransactionInformation,
    dump_list,
)
from tmqp_server.doors.native.information import AnswerTooLargeError, rendered
from tmqp_server.doors.native.listing import written
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Connect,
    CreateQueue,
    KeptPart,
    ListChannels,
    ListClients,
    ListQueues,
    Push,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.nodes import NodeSnapshot
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import (
    ChannelSnapshot,
    ClientSnapshot,
    CursorSnapshot,
    KeptOffsets,
    OffsetsSnapshot,
    QueueSnapshot,
    RouterSnapshot,
    TransactionSnapshot,
)
from tmqp_server.engine.options import BindingOptions, ChannelOptions, QueueChanges, QueueOptions

OFFSET_S = 1_700_000_000.0
#: Whatever a client may call itself: quotes, line separators, control characters.
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"', "\\", "\x00\x1f\x7f", "\u2028\u2029\x85", "ü✓", "%s", "{}", "plain"]
)
COUNTS = st.integers(0, 2**31 - 1)
IDS = st.lists(st.integers(0, 65_535), max_size=4).map(tuple)

QUEUE_OPTIONS = st.builds(
    QueueOptions,
    status=st.integers(0, 6),
    request_acknowledge=st.booleans(),
    acknowledge_timeout_ms=COUNTS,
    message_timeout_ms=COUNTS,
    use_message_id=st.booleans(),
    wait_for_acknowledge=st.booleans(),
    hide_client_names=st.booleans(),
    send_only_first_acquirer=st.booleans(),
    message_limit=COUNTS,
    message_size_limit=COUNTS,
    bytes_limit=COUNTS,
    disk_limit_bytes=COUNTS,
    dead_letter=st.none() | st.tuples(st.sampled_from(["dead", "ü✓"]), st.integers(0, 65_535)),
    when_full=st.sampled_from(["refuse", "drop-oldest"]),
    expired_to_dead_letter=st.booleans(),
    put_back_limit=st.sampled_from([20, 0, 7]),
    tag=st.none() | NAMES,
    durable=st.booleans(),
    overflow=st.booleans(),
    ephemeral=st.booleans(),
    memory_limit=COUNTS,
    retain_bytes=COUNTS,
    retain_time_ms=COUNTS,
    retain_for_readers=st.booleans(),
)
CHANNEL_OPTIONS = st.builds(
    ChannelOptions,
    allow_multiple_queues=st.booleans(),
    allowed_queues=st.none() | IDS,
    client_limit=COUNTS,
    queue_limit=COUNTS,
    destroy_when_empty=st.booleans(),
    lifetime=st.sampled_from(["", "owner", "consumers"]),
    idle_timeout_ms=COUNTS,
    owner_only=st.booleans(),
    single_consumer=st.booleans(),
    queue=QUEUE_OPTIONS,
)

SEQUENCES = st.integers(0, 2**63 - 1)


@given(NAMES, st.none() | NAMES, st.none() | NAMES, st.booleans(), st.integers(0, 2**40))
def test_a_client(
    client_id: str, name: str | None, kind: str | None, known: bool, online_s: int
) -> None:
    session = Session(1, client_id, name, kind, "tmqp", None, known, 0.0)
    data = written(ClientSnapshot(session, 0.0, float(online_s)), OFFSET_S)
    expected = ClientInformation(
        id=client_id, name=name, type=kind, online_ms=online_s * 1000, is_authenticated=known
    )
    assert data == expected.to_json()


@given(NAMES, CHANNEL_OPTIONS, IDS, st.none() | NAMES)
def test_a_channel(
    name: str, options: ChannelOptions, queue_ids: tuple[int, ...], owner: str | None
) -> None:
    channel = Channel(name, name.lower(), options)
    channel.queues = dict.fromkeys(queue_ids)  # type: ignore[assignment]
    queue = options.queue
    expected = ChannelInformation(
        name=name,
        queues=tuple(channel.queues),
        allow_multiple_queues=options.allow_multiple_queues,
        allowed_queues=options.allowed_queues,
        only_first_acquirer=queue.send_only_first_acquirer,
        request_acknowledge=queue.request_acknowledge,
        acknowledge_timeout_ms=queue.acknowledge_timeout_ms,
        message_timeout_ms=queue.message_timeout_ms,
        use_message_id=queue.use_message_id,
        wait_for_acknowledge=queue.wait_for_acknowledge,
        hide_client_names=queue.hide_client_names,
        active_clients=0,
        client_limit=options.client_limit,
        queue_limit=options.queue_limit,
        destroy_when_empty=options.destroy_when_empty,
        lifetime=options.lifetime or None,
        idle_timeout_ms=options.idle_timeout_ms or None,
        owner_only=options.owner_only or None,
        single_consumer=options.single_consumer or None,
        owner=owner,
    )
    if owner is not None:
        channel.owner = Session(1, owner, None, None, "tmqp", None, False, 0.0)
    assert written(ChannelSnapshot(channel), OFFSET_S) == expected.to_json()


@given(QUEUE_OPTIONS)
def test_a_queue(options: QueueOptions) -> None:
    """Every counter has a value of its own, so none can stand in another's place."""
    broker = Broker()
    broker.step(Connect(1, None, "a"), 0.0)
    broker.step(CreateQueue(1, None, "Ch", 7), 0.0)
    (queue,) = broker.queues()
    for high in (True, False):  # or there would be no oldest
        broker.step(Push(1, f"m{high}", "Ch", 7, high, False, 1, None), 0.0)
    queue.options = options
    counters = ("received", "sent", "deliveries", "negative_acks", "acks", "expired", "saved")
    for number, counter in enumerate((*counters, "removed", "errors"), 101):
        setattr(queue.counters, counter, number)
    queue.high_count, queue.regular_count = 90, 91
    queue.counters.last_received, queue.counters.last_sent = 1.5, -1.0
    data = written(QueueSnapshot(queue), OFFSET_S)
    assert data is not None
    model = QueueInformation.from_json(data)
    assert model.to_json() == data
    shown = json.loads(data)
    assert list(shown.values())[:6] == [
        "Ch",
        options.tag,
        7,
        90,
        91,
        ("broadcast", "push", "roundrobin", "pull", "cache", "paused", "stopped")[options.status],
    ]
    assert list(shown.values())[13:24] == [*range(101, 110), 1_700_000_001_500, 0]
    assert model == QueueInformation(
        **{name: getattr(model, name) for name in ("channel", "tag_name", "id", "status")},
        **{f"{name}": getattr(model, name) for name in ("priority_messages", "messages")},
        only_first_acquirer=options.send_only_first_acquirer,
        request_acknowledge=options.request_acknowledge,
        acknowledge_timeout_ms=options.acknowledge_timeout_ms,
        message_timeout_ms=options.message_timeout_ms,
        use_message_id=options.use_message_id,
        wait_for_acknowledge=options.wait_for_acknowledge,
        hide_client_names=options.hide_client_names,
        received_messages=101,
        sent_messages=102,
        deliveries=103,
        negative_acks=104,
        acks=105,
        timeout_messages=106,
        saved_messages=107,
        removed_messages=108,
        errors=109,
        last_message_received_ms=1_700_000_001_500,
        message_limit=options.message_limit,
        message_size_limit=options.message_size_limit,
        durable=options.durable or None,
        overflow=options.overflow or None,
        ephemeral=options.ephemeral or None,
        memory_limit=options.memory_limit or None,
        bytes_limit=options.bytes_limit or None,
        disk_limit_bytes=options.disk_limit_bytes or None,
        dead_letter_queue=options.dead_letter and "{};{}".format(*options.dead_letter),
        when_full=None if options.when_full == "refuse" else options.when_full,
        expired_to_dead_letter=options.expired_to_dead_letter or None,
        put_back_limit=None if options.put_back_limit == 20 else options.put_back_limit,
        retain_bytes=options.retain_bytes or None,
        retain_time_ms=options.retain_time_ms or None,
        retain_for_readers=options.retain_for_readers or None,
    )


def test_what_waits_on_disk_and_what_was_lost() -> None:
    broker = Broker()
    broker.step(Connect(1, None, "a"), 0.0)
    broker.step(CreateQueue(1, None, "Ch", 7), 0.0)
    (queue,) = broker.queues()
    queue.spilled, queue.counters.overflowed, queue.counters.damaged = 3, 4, 5
    queue.counters.refused, queue.counters.skipped = 6, 7
    queue.deferred.add(Message("m", Origin(1, "a", None, None, ""), "Ch", 7, 9, None, 0, 1), 5.0)
    data = written(QueueSnapshot(queue), OFFSET_S)
    assert data is not None
    model = QueueInformation.from_json(data)
    assert (model.spilled_messages, model.dropped_messages, model.durable) == (3, 9, None)
    assert model.deferred_messages == 1
    assert (model.refused_messages, model.skipped_deliveries) == (6, 7)
    assert model.to_json() == data


@given(NAMES, COUNTS, st.none() | COUNTS, st.sampled_from(["open", "committed"]), COUNTS)
def test_transactions(name: str, number: int, part: int | None, state: str, at_s: int) -> None:
    snapshot = TransactionSnapshot(number, name, 2, part, 3, state, 4, 5, float(at_s))
    expected = TransactionInformation(
        id=number,
        application=name,
        epoch=2,
        part=part,
        attempt=3,
        state=state,
        count=4,
        bytes=5,
        time_ms=int((at_s + OFFSET_S) * 1000),
    )
    assert written(snapshot, OFFSET_S) == expected.to_json()


@given(NAMES, st.booleans(), st.sampled_from(RouteMethod))
def test_routers(name: str, enabled: bool, method: RouteMethod) -> None:
    expected = RouterInformation(name=name, is_enabled=enabled, method=method)
    assert written(RouterSnapshot(name, int(method), enabled), 0.0) == expected.to_json()


@given(
    NAMES,
    NAMES,
    st.none() | st.integers(0, 65_535),
    st.integers(-5, 5),
    st.sampled_from(BindingInteraction),
    st.sampled_from(BindingType),
    st.sampled_from(RouteMethod),
)
def test_bindings(
    name: str,
    target: str,
    content_type: int | None,
    priority: int,
    interaction: BindingInteraction,
    kind: BindingType,
    method: RouteMethod,
) -> None:
    expected = BindingInformation(
        name=name,
        target=target,
        content_type=content_type,
        priority=priority,
        interaction=interaction,
        binding_type=kind,
        method=method,
    )
    options = BindingOptions(
        name, int(kind), target, content_type, priority, int(interaction), int(method)
    )
    assert written(options, 0.0) == expected.to_json()


def test_what_is_never_many_is_not_written_here() -> None:
    assert written(NodeSnapshot("a", None, "h", True, True, 5), 0.0) is None
    assert rendered([NodeSnapshot("a", None, "h", True, True, 5)], 0.0, 1_000).startswith(b'[{"Id"')


@pytest.mark.alone
@thrice
def test_f8_the_largest_lists_are_written_in_a_step() -> None:
    """The measure is 20 ms; five times that is no machine's fault."""
    watch = Stopwatch()
    broker = Broker(EngineLimits(max_queues_per_channel=5_000))
    broker.step(Connect(1, None, "admin"), 0.0)
    for number in range(2_100):
        broker.step(CreateQueue(1, None, "queues", number, QueueChanges(tag="t")), 0.0)
    for number in range(3_000):
        broker.step(CreateQueue(1, None, f'"{number}"', 1), 0.0)
    for number in range(9_000):
        broker.step(Connect(number + 2, None, f"client-{number:032x}"), 0.0)
    for command in (
        ListQueues(1, "r", "queues"),
        ListChannels(1, "r"),
        ListClients(1, "r"),
    ):
        (reply,) = broker.step(command, 0.0)
        assert isinstance(reply, Reply)
        assert len(watch.run(rendered, reply.body, OFFSET_S, 1_100_000)) > 900_000
    watch.within(4)


@cache
def some_queue() -> Queue:
    broker = Broker()
    broker.step(Connect(1, None, "me"), 0.0)
    broker.step(CreateQueue(1, None, "Ch", 7), 0.0)
    (queue,) = broker.queues()
    return queue


@given(NAMES, st.integers(0, 65_535), SEQUENCES, st.none() | SEQUENCES, st.none() | SEQUENCES)
def test_offsets(
    name: str, queue_id: int, number: int, committed: int | None, at: int | None
) -> None:
    item = OffsetsSnapshot(some_queue(), "", KeptOffsets(0, 0, 0, 0, 0), 0)
    item.channel, item.queue_id, item.incarnation = name, queue_id, f"{name}-1"
    item.earliest, item.latest, item.count, item.bytes = number, number // 2, number // 3, 7
    item.oldest_us, item.committed, item.at = number, committed, at
    expected = OffsetsInformation(
        channel=name,
        queue=queue_id,
        incarnation=f"{name}-1",
        earliest=number,
        latest=number // 2,
        count=number // 3,
        bytes=7,
        oldest_ms=number // 1_000,
        committed=committed,
        at=at,
    )
    assert written(item, OFFSET_S) == expected.to_json()


@given(NAMES, NAMES, st.integers(0, 65_535), SEQUENCES, st.none() | SEQUENCES)
def test_a_cursor(
    name: str, channel: str, queue_id: int, sequence: int, behind: int | None
) -> None:
    item = CursorSnapshot("", some_queue(), "", 0)
    item.name, item.channel, item.queue_id, item.incarnation = name, channel, queue_id, "i"
    item.sequence, item.behind = sequence, behind
    item.behind_bytes = None if behind is None else sequence
    expected = CursorInformation(
        name=name,
        channel=channel,
        queue=queue_id,
        incarnation="i",
        sequence=sequence,
        behind=behind,
        behind_bytes=item.behind_bytes,
    )
    assert written(item, OFFSET_S) == expected.to_json()


@given(st.lists(st.tuples(NAMES, NAMES, SEQUENCES, st.none() | SEQUENCES), max_size=4))
def test_a_list_of_cursors(rows: list[tuple[str, str, int, int | None]]) -> None:
    items: list[CursorSnapshot] = []
    models: list[CursorInformation] = []
    for name, channel, sequence, behind in rows:
        item = CursorSnapshot(name, some_queue(), "i-7", sequence)
        item.channel, item.behind = channel, behind
        item.behind_bytes = behind
        items.append(item)
        models.append(
            CursorInformation(
                name=name,
                channel=channel,
                queue=item.queue_id,
                incarnation="i-7",
                sequence=sequence,
                behind=behind,
                behind_bytes=behind,
            )
        )
    expected = dump_list(models)
    assert rendered(items, OFFSET_S, len(expected)) == expected
    if rows:
        with pytest.raises(AnswerTooLargeError):
            rendered(items, OFFSET_S, len(expected) - 1)


@given(SEQUENCES, SEQUENCES)
def test_a_part(first: int, last: int) -> None:
    expected = PartInformation(first=first, last=last, count=3, bytes=first)
    assert written(KeptPart(first, last, 3, first), OFFSET_S) == expected.to_json()
