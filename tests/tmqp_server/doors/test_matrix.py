"""What comes in by one door leaves by every other one: the whole matrix.

Nothing is lost and nothing is changed that has a place in both protocols; what has no place in one
of them is the loss that docs/doors/README.md tells, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.docs.pages import page, section, table
from tests.tmqp_server.doors.matrix_adapters import ADAPTERS, declare, feed
from tests.tmqp_server.doors.matrix_parts import CHANNEL, Adapter, Case, times
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tests.tmqp_server.toy_door import FIELDS
from tmqp.codec import FrameDecoder
from tmqp.frames import Frame
from tmqp.names import EXACT_MARK
from tmqp_server.cluster.filters import PatternFilter
from tmqp_server.cluster.relay import ClusterRelay
from tmqp_server.doors.letter import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    Letter,
    Property,
)
from tmqp_server.doors.letter_frames import letter_of_frame
from tmqp_server.doors.port import Door
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.doors.rewriting import exact_target, without_exact_name
from tmqp_server.engine.commands import Command, Push
from tmqp_server.engine.effects import Effect

PRODUCERS: Final = [each for each in ADAPTERS if each.sends]
CONSUMERS: Final = [each for each in ADAPTERS if each.receives]
_REGULAR: Final = Letter(b"")


def _full() -> Letter:
    full = Letter(b"full")
    full.content_type = "application/json"
    full.correlation_id, full.reply_to, full.kind = "c 1", "answers", "order"
    full.group_key, full.timestamp_ms = "customer-7", 1732000000123
    full.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    full.tracestate = "a=1,b=2"
    full.expires_ms = 4_000_000_000_123
    full.headers = [("Mine", "1"), ("Mine", "2"), ("Why", "perché")]
    full.properties = [
        Property("n", INT, -5),
        Property("large", LONG, 1 << 62),
        Property("part", DOUBLE, 0.1),
        Property("yes", BOOLEAN, True),
    ]
    return full


def _with_priority(body: bytes, priority: int) -> Letter:
    letter = Letter(body)
    letter.priority = priority
    return letter


def cases() -> list[Case]:
    """Messages, each with something of its own."""
    octets = bytes(range(256)) * 80
    latin = octets.decode("latin-1")
    return [
        Case("text", Letter("plain text, voilà".encode())),
        Case("lines", Letter(b"one\ntwo\n"), line=rb'"one\ntwo\n"'),
        Case("json", Letter(b'{\n "a": [1, 2]\n}'), line=b'{"a":[1,2]}'),
        Case("octets", Letter(octets), json.dumps(latin).encode(), latin.encode()),
        Case("empty", Letter(b"")),
        Case("full", _full()),
        Case("high", _with_priority(b"high", 9)),
        Case("middle", _with_priority(b"middle", 6)),
        Case("low", _with_priority(b"low", 0)),
        Case("expiring", Letter(b"expiring"), lifetime_ms=60_000),
    ]


def in_a_row() -> list[Case]:
    """Messages that differ in nothing but their bodies."""
    return [Case(f"row-{number}", Letter(b"body %d" % number)) for number in range(12)]


def expected(
    case: Case, producer: Adapter, consumer: Adapter, sent_ms: int, got_ms: int
) -> dict[str, Any]:
    """All of a message that has a place in both protocols."""
    letter = Letter(consumer.body(case), case.letter.message_id, "producer")
    for name in FIELDS:
        if name in producer.gives:
            setattr(letter, name, getattr(case.letter, name))
    for name in ("headers", "properties"):
        if name in producer.gives:
            setattr(letter, name, list(getattr(case.letter, name)))
    # A message of TMQP says how long it lives; it is not written anew to say when it expires.
    same = producer.of_frames and consumer.of_frames
    if case.lifetime_ms and "lifetime" in producer.gives and not same:
        letter.expires_ms = sent_ms + case.lifetime_ms
    producer.said(case, letter, sent_ms)
    for name in (*FIELDS, "headers", "properties"):
        if name not in consumer.shows:
            setattr(letter, name, getattr(_REGULAR, name))
    consumer.shown(letter, got_ms)
    return described(letter, producer, consumer)


def described(letter: Letter, producer: Adapter, consumer: Adapter) -> dict[str, Any]:
    """All that a message says, in no order of names."""
    found: dict[str, Any] = {name: getattr(letter, name) for name in (*FIELDS, "body")}
    found["headers"] = sorted(letter.headers, key=lambda pair: pair[0])
    found["properties"] = sorted(letter.properties, key=lambda each: each.name)
    if "id" in producer.gives & consumer.shows:
        found["id"] = letter.message_id
    if "source" in producer.gives & consumer.shows:
        found["source"] = letter.source
    return found


@contextmanager
def serving(
    producer: Adapter, consumer: Adapter, folder: Path | None = None
) -> Iterator[MatrixStage]:
    """A server with the doors of the two."""
    tables = {table["protocol"]: table for each in (producer, consumer) for table in each.tables}
    stage = MatrixStage(tables.values(), folder)
    yield stage
    stage.close()


def settled(stage: MatrixStage) -> None:
    """Every message is done with, in every queue."""
    found = stage.broker.statistics()
    assert (found.messages, found.in_flight) == (0, 0)


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda each: f"to {each.name}")
@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda each: f"from {each.name}")
def test_a_waiting_consumer_gets_all(producer: Adapter, consumer: Adapter) -> None:
    with serving(producer, consumer) as stage:
        if consumer.status == "pull":
            declare(stage, "pull")
        taker = consumer.consumer(stage)
        for each in cases():
            if not producer.can_send(each):
                continue
            producer.send(stage, [each], in_a_row=False)
            found = [described(letter, producer, consumer) for letter in taker.take()]
            now_ms = stage.unix_ms
            assert found == [expected(each, producer, consumer, now_ms, now_ms)], each.name
        row = in_a_row()
        producer.send(stage, row, in_a_row=True)
        assert [letter.body for letter in taker.take()] == [each.letter.body for each in row]
        settled(stage)


#: What a door must make of what a protocol does not say, for consumers who are told of it.
MADE: Final = [
    pytest.param(producer, consumer, part, id=f"{part} from {producer.name} to {consumer.name}")
    for part in ("id", "source")
    for producer in PRODUCERS
    for consumer in CONSUMERS
    if part in consumer.shows - producer.gives
]


@pytest.mark.parametrize(("producer", "consumer", "part"), MADE)
def test_ids_and_names_that_a_protocol_does_not_have_are_made(
    producer: Adapter, consumer: Adapter, part: str
) -> None:
    with serving(producer, consumer) as stage:
        declare(stage, consumer.status)
        producer.send(stage, in_a_row(), in_a_row=True)
        found = consumer.consumer(stage).take()
        made = [letter.message_id if part == "id" else letter.source for letter in found]
        assert all(made)
        assert len(set(made)) == (len(in_a_row()) if part == "id" else 1)


@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda each: f"from {each.name}")
def test_nsq_shows_the_sequence_of_a_message_of_another_protocol_as_its_id(
    producer: Adapter,
) -> None:
    (nsq,) = [each for each in CONSUMERS if each.name == "nsq"]
    with serving(producer, nsq) as stage:
        taker = nsq.consumer(stage)
        row = in_a_row()
        producer.send(stage, row, in_a_row=True)
        found = [letter.message_id for letter in taker.take()]
        sequences = [f"{sequence:016x}" for sequence in range(1, len(row) + 1)]
        assert len(set(found)) == len(row)
        assert (found == sequences) == (not producer.name.startswith("nsq"))


def reaches_a_later_consumer(
    producer: Adapter, consumer: Adapter, *, restarts: bool, folder: Path | None = None
) -> None:
    """What is in a durable queue reaches a consumer that comes later: the high ones first, what
    has expired not at all."""
    with serving(producer, consumer, folder) as stage:
        declare(stage, consumer.status)
        pushed = [each for each in cases() if producer.can_send(each)]
        sent_ms = stage.unix_ms
        producer.send(stage, pushed, in_a_row=False)
        row = in_a_row()
        producer.send(stage, row, in_a_row=True)
        if "lifetime" in producer.gives:
            late = Case("late", Letter(b"late"), lifetime_ms=500)
            producer.send(stage, [late], in_a_row=False)
        stage.sleep(1.0)
        if restarts:
            stage.restart()
        found = consumer.consumer(stage).take()
        ranked = "priority" in producer.gives
        high = [each for each in pushed if ranked and each.letter.high_priority]
        order = [*high, *[each for each in pushed if each not in high]]
        assert [letter.body for letter in found] == [consumer.body(each) for each in [*order, *row]]
        for each, letter in zip(order, found, strict=False):
            wanted = expected(each, producer, consumer, sent_ms, stage.unix_ms)
            assert described(letter, producer, consumer) == wanted, each.name
        settled(stage)


@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "after a restart"])
@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda each: f"to {each.name}")
@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda each: f"from {each.name}")
def test_what_is_kept_reaches_a_later_consumer(
    producer: Adapter, consumer: Adapter, restarts: bool
) -> None:
    reaches_a_later_consumer(producer, consumer, restarts=restarts)


def books(stage: MatrixStage, channel: str) -> tuple[int, int]:
    """The messages of a queue, and what counts of them against its quota of the disk."""
    found = stage.broker._core.channels.find(channel)
    assert found is not None
    queue = found.queues[0]
    return queue.live(), queue.disk_bytes


@pytest.mark.parametrize("copies", [False, True], ids=["", "copied by a feed"])
@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda each: f"from {each.name}")
def test_what_is_kept_counts_as_many_bytes_before_and_after_a_restart(
    producer: Adapter, copies: bool
) -> None:
    (tmqp,) = [each for each in CONSUMERS if each.name == "tmqp"]
    with serving(producer, tmqp) as stage:
        channel = "a-copy-with-a-longer-name" if copies else CHANNEL
        declare(stage, "push")
        if copies:
            declare(stage, "push", channel=channel)
            feed(stage, channel)
        pushed = [each for each in cases() if producer.can_send(each)]
        producer.send(stage, pushed, in_a_row=False)
        row = in_a_row()
        producer.send(stage, row, in_a_row=True)
        before = books(stage, channel)
        assert before[0] == len(pushed) + len(row)
        stage.restart()
        assert books(stage, channel) == before


@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda each: f"from {each.name}")
def test_what_is_not_durable_ends_with_the_server(producer: Adapter) -> None:
    (toy,) = [each for each in CONSUMERS if each.name == "toy"]
    with serving(producer, toy) as stage:
        declare(stage, toy.status, durable=False)
        row = in_a_row()
        producer.send(stage, row, in_a_row=True)
        assert stage.broker.statistics().messages == len(row)
        stage.restart()
        assert toy.consumer(stage).take() == []
        settled(stage)


@pytest.mark.parametrize("place", range(len(PRODUCERS)), ids=[each.name for each in PRODUCERS])
def test_what_is_on_disk_reaches_a_later_consumer(place: int, tmp_path: Path) -> None:
    """What is kept is the producing door's, so each of them, and each consumer, is here once."""
    consumer = CONSUMERS[-1 - place % len(CONSUMERS)]
    reaches_a_later_consumer(PRODUCERS[place], consumer, restarts=True, folder=tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda each: f"from {each.name}")
def test_what_is_on_disk_reaches_every_later_consumer(producer: Adapter, tmp_path: Path) -> None:
    for place, consumer in enumerate(CONSUMERS):
        folder = tmp_path / str(place)
        folder.mkdir()
        reaches_a_later_consumer(producer, consumer, restarts=True, folder=folder)


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda each: f"to {each.name}")
@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda each: f"from {each.name}")
def test_a_deferred_message_keeps_its_time_over_a_restart(
    producer: Adapter, consumer: Adapter
) -> None:
    with serving(producer, consumer) as stage:
        declare(stage, consumer.status)
        later = Case("later", Letter(b"later"), delay_ms=30_000)
        producer.send(stage, [later], in_a_row=False)
        stage.sleep(10.0)
        stage.restart()
        taker = consumer.consumer(stage)
        at_once = [letter.body for letter in taker.take()]
        stage.sleep(18.0)
        assert taker.take() == []
        stage.sleep(2.0)
        behind = [letter.body for letter in taker.take()]
        both = (at_once, behind)
        assert both == (([], [b"later"]) if "delay" in producer.gives else ([b"later"], []))
        settled(stage)


class Uplink(ClusterRelay):
    """Notes what is passed on to another server."""

    def __init__(self) -> None:
        nothing = PatternFilter([], ())
        super().__init__("here", "token", False, [], nothing, nothing)
        self.frames: list[Frame] = []

    def meet(
        self, number: int, door: Door, command: Command, now: float
    ) -> Sequence[Effect] | None:
        if isinstance(command, Push):
            data = door.encode_for_node(command)
            assert data is not None, "every door passes its messages on"
            self.frames += FrameDecoder().feed(data)
        return super().meet(number, door, command, now)


@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda each: f"from {each.name}")
def test_another_server_of_the_cluster_is_told_all(producer: Adapter) -> None:
    relay = Uplink()
    stage = MatrixStage(producer.tables, relay=relay)
    declare(stage, "push")
    relay.frames.clear()
    pushed = [each for each in cases() if producer.can_send(each)]
    pushed.append(Case("later", Letter(b"later"), delay_ms=30_000))
    producer.send(stage, pushed, in_a_row=False)
    row = in_a_row()
    producer.send(stage, row, in_a_row=True)
    (tmqp,) = [each for each in CONSUMERS if each.name == "tmqp"]
    for case, frame in zip([*pushed, *row], relay.frames, strict=True):
        assert (exact_target(frame).removeprefix(EXACT_MARK), frame.content_type) == ("letters", 0)
        wanted = expected(case, producer, tmqp, stage.unix_ms, stage.unix_ms)
        found = letter_of_frame(without_exact_name(frame))
        if not producer.of_frames:
            # It is said in the headers of a push, for the other server counts from then on.
            wanted["expires_ms"] = case.letter.expires_ms if "expires_ms" in producer.gives else 0
            wanted["headers"] = sorted(
                wanted["headers"] + [pair for pair in times(case) if carries(producer, pair[0])]
            )
        assert described(found, producer, tmqp) == wanted, case.name
    stage.close()


def carries(producer: Adapter, header: str) -> bool:
    """Whether a protocol can say when a message may be delivered, or how long it lives."""
    return ("delay" if header == "Delay" else "lifetime") in producer.gives


def test_a_client_of_goms_left_what_a_queue_wants_answered_in_flight_for_ever() -> None:
    (nsq,) = [each for each in PRODUCERS if each.name == "nsq"]
    (goms,) = [each for each in CONSUMERS if each.name == "goms"]
    with serving(nsq, goms) as stage:
        # The topic is NSQ's, so what nobody finishes is sent again until somebody does.
        nsq.send(stage, [Case("first", Letter(b"first"))], in_a_row=False)
        taker = goms.consumer(stage)
        nsq.send(stage, [Case("second", Letter(b"second"))], in_a_row=False)
        assert [letter.body for letter in taker.take()] == [b"first", b"second"]
        settled(stage)
        stage.sleep(120.0)
        assert taker.take() == []


# --- The page that says so -----------------------------------------------------------------------

#: Columns of the tables, and what a door must carry for a yes there.
PARTS: Final[dict[str, set[str]]] = {
    "id": {"id"},
    "source": {"source"},
    "fields": {
        *("content_type", "correlation_id", "reply_to", "kind", "group_key"),
        *("traceparent", "tracestate"),
    },
    "headers": {"headers"},
    "properties": {"properties"},
    "priority": {"priority"},
    "time to live": {"lifetime"},
    "delay": {"delay"},
    "time": {"timestamp_ms"},
    "expiry": {"expires_ms"},
}
_BOTH: Final = ["id", "source", "fields", "headers", "properties", "priority"]


def told(title: str, columns: list[str]) -> dict[str, set[str]]:
    """What a table of the page says, by door."""
    rows = table(section(page("doors/README.md"), title), "door", *columns)
    found: dict[str, set[str]] = {}
    for name, *marks in rows:
        assert set(marks) <= {"yes", ""}
        found[name.strip("`")] = {
            column for column, mark in zip(columns, marks, strict=True) if mark
        }
    return found


def carried(adapter: Adapter, what: frozenset[str], columns: list[str]) -> set[str]:
    """The columns of a table in which a door has a yes."""
    assert what <= set().union(*PARTS.values()), adapter.name
    return {name for name in columns if PARTS[name] <= what}


def test_the_page_says_what_each_door_carries() -> None:
    # The tests' own door is not on the page, nor is a second way of taking the same messages.
    doors = [each for each in ADAPTERS if each.name != "toy" and "," not in each.name]
    say, show = [*_BOTH, "time to live", "delay"], [*_BOTH, "time", "expiry"]
    gives = {each.name: carried(each, each.gives, say) for each in doors if each.sends}
    shows = {each.name: carried(each, each.shows, show) for each in doors if each.receives}
    assert told("What clients can send", say) == gives
    assert told("What clients receive", show) == shows


def test_every_protocol_with_messages_has_an_adapter() -> None:
    without = {"nsqlookupd", "nsqlookupd-http"}
    kinds = {kind.name for kind in DoorRegistry()} - without
    assert kinds <= {each.name for each in ADAPTERS}
