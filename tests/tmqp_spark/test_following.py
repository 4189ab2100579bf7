"""A streaming query's plan, driven as Spark drives it, against a real broker."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.tmqp_spark.reading import LinkTo, look, sequences, source
from tmqp_client import sync
from tmqp_spark.errors import DataLost, GroupShared, InvalidOption
from tmqp_spark.following import Following, check_stream, share_out
from tmqp_spark.planning import check_batch
from tmqp_spark.testing import Broker
from tmqp_spark.transport import BrokerLink

UNLIMITED = True


class Query:
    """What Spark does of a query: its offsets are recorded, its batches read."""

    def __init__(self, link: BrokerLink, recorded: Any = None, **options: Any) -> None:
        options.setdefault("pollWaitMs", 0)
        self.link = link
        self.options = source(**options)
        self.following = Following(link, self.options)
        #: As JSON, each the end of a batch; the first is where the query began.
        self.recorded: list[str] = recorded if recorded is not None else []
        self.read: dict[str, list[int]] = {}

    def trigger(self) -> bool:
        """One trigger; False when there was no batch."""
        if not self.recorded:
            self.following.initial()
            self.recorded.append(json.dumps(self.following.initial()))
        start = json.loads(self.recorded[-1])
        limited = self.options.max_offsets is not None or self.options.max_bytes is not None
        end = self.following.latest(start, not limited)
        if json.dumps(end) == self.recorded[-1]:
            return False
        self.recorded.append(json.dumps(end))
        self.process(start, json.loads(self.recorded[-1]))
        return True

    def process(self, start: Any, end: Any) -> None:
        for part in self.following.plan(start, end):
            found = sequences(self.link, part, self.options)
            self.read.setdefault(f"{part.channel}/{part.queue}", []).extend(found)

    def cursor(self, group: str, channel: str, queue: int) -> int | None:
        with sync.connect(self.link.options.url) as client:
            for found in client.cursors(channel, queue):
                if found.name == group:
                    return found.sequence
        return None


def test_messages_come_once_batch_after_batch(broker: Broker, link_to: LinkTo) -> None:
    broker.push("steady", 1, [b"x"] * 10)
    query = Query(link_to(broker), subscribe="steady/1", startingOffsets="earliest")
    assert query.trigger()
    assert not query.trigger(), "nothing new"
    broker.push("steady", 1, [b"x"] * 5)
    assert query.trigger()
    assert query.read == {"steady/1": list(range(1, 16))}
    assert not query.trigger()


def test_latest_is_pinned_by_the_group(broker: Broker, link_to: LinkTo) -> None:
    """A query that ended before its first batch begins where it first began."""
    broker.push("pinned", 1, [b"old"] * 3)
    options = {"subscribe": "pinned/1", "startingOffsets": "latest", "group": "g"}
    assert not Query(link_to(broker), **options).trigger()
    broker.push("pinned", 1, [b"new"] * 2)
    again = Query(link_to(broker), **options)
    assert again.trigger()
    assert again.read == {"pinned/1": [4, 5]}


def test_the_group_is_told_what_is_done_with_on_the_next_trigger(
    broker: Broker, link_to: LinkTo
) -> None:
    broker.push("told", 1, [b"x"] * 4)
    query = Query(link_to(broker), subscribe="told/1", startingOffsets="earliest", group="g")
    assert query.trigger()
    assert query.cursor("g", "told", 1) == 0, "not recorded by Spark yet"
    assert not query.trigger()
    assert query.cursor("g", "told", 1) == 4, "no backlog is left when there is nothing to do"


@pytest.mark.parametrize(("mode", "after_batches"), [("lagged", [0, 4]), ("none", [0, 0])])
def test_other_ways_to_commit(
    broker: Broker, link_to: LinkTo, mode: str, after_batches: list[int]
) -> None:
    broker.push(mode, 1, [b"x"] * 4)
    options = {"subscribe": f"{mode}/1", "startingOffsets": "earliest", "group": "g"}
    query = Query(link_to(broker), commitMode=mode, **options)
    seen = []
    for _ in range(2):
        assert query.trigger()
        seen.append(query.cursor("g", mode, 1))
        query.following.commit(json.loads(query.recorded[-1]))
        broker.push(mode, 1, [b"x"])
    assert seen == after_batches


def test_the_group_can_stay_some_batches_behind(broker: Broker, link_to: LinkTo) -> None:
    options = {"subscribe": "behind/1", "startingOffsets": "earliest", "group": "g"}
    broker.create("behind", 1)
    query = Query(link_to(broker), commitDelayBatches=2, **options)
    seen = []
    for _ in range(5):
        broker.push("behind", 1, [b"x"])
        assert query.trigger()
        seen.append(query.cursor("g", "behind", 1))
    assert seen == [0, 0, 0, 1, 2]


def test_a_batch_that_was_recorded_is_the_same_again(broker: Broker, link_to: LinkTo) -> None:
    """After a crash Spark asks for the recorded batch first, without asking what is newest."""
    broker.push("again", 1, [b"x"] * 30)
    options = {"subscribe": "again/1", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 12}
    before = Query(link_to(broker), **options)
    assert before.trigger()
    assert before.trigger()
    start, end = (json.loads(text) for text in before.recorded[-2:])
    broker.push("again", 1, [b"x"] * 30)
    after = Query(link_to(broker), list(before.recorded), **options)
    after.process(start, end)
    assert after.read == {"again/1": list(range(13, 25))}
    while after.trigger():
        pass
    assert after.read == {"again/1": list(range(13, 61))}


def test_a_batch_has_so_many_messages_of_all_queues_together(
    broker: Broker, link_to: LinkTo
) -> None:
    for queue, count in ((1, 90), (2, 9), (3, 1)):
        broker.push("spread", queue, [b"x"] * count)
    query = Query(
        link_to(broker), subscribe="spread", startingOffsets="earliest", maxOffsetsPerTrigger=10
    )
    sizes = []
    while query.trigger():
        sizes.append(sum(map(len, query.read.values())))
    assert [after - before for before, after in zip([0, *sizes], sizes, strict=False)] == [10] * 10
    assert query.read == {
        "spread/1": list(range(1, 91)),
        "spread/2": list(range(1, 10)),
        "spread/3": [1],
    }


def test_share_out_is_fair_and_never_more_than_allowed() -> None:
    assert share_out({"a": 5, "b": 5}, 10) == {"a": 5, "b": 5}
    assert share_out({"a": 1_000_000, "b": 1}, 1_000) == {"a": 999, "b": 1}
    for most in range(1, 40):
        shares = share_out({"a": 30, "b": 7, "c": 0, "d": 2}, most)
        assert sum(shares.values()) == min(most, 39)
        assert shares["c"] == 0


def test_a_batch_waits_for_enough_messages_or_long_enough(broker: Broker, link_to: LinkTo) -> None:
    broker.push("enough", 1, [b"x"] * 3)
    clock = [100.0]
    query = Query(
        link_to(broker),
        subscribe="enough/1",
        startingOffsets="earliest",
        minOffsetsPerTrigger=5,
        maxTriggerDelay="10s",
    )
    query.following = Following(query.link, query.options, lambda: clock[0])
    assert not query.trigger()
    broker.push("enough", 1, [b"x"] * 2)
    assert query.trigger()
    broker.push("enough", 1, [b"x"])
    assert not query.trigger()
    clock[0] += 10
    assert query.trigger()
    assert query.read == {"enough/1": [1, 2, 3, 4, 5, 6]}


def test_available_now_ends_with_what_was_there(broker: Broker, link_to: LinkTo) -> None:
    broker.push("now", 1, [b"x"] * 25)
    query = Query(
        link_to(broker),
        subscribe="now",
        startingOffsets="earliest",
        maxOffsetsPerTrigger=10,
        minOffsetsPerTrigger=1_000,
        group="g",
    )
    query.following.prepare_available_now()
    batches = 0
    while query.trigger():
        batches += 1
        broker.push("now", 1, [b"later"])
        broker.push("now", 2, [b"another queue"])
    assert batches == 3
    assert query.read == {"now/1": list(range(1, 26))}
    assert query.cursor("g", "now", 1) == 25, "the last look committed everything"


def test_available_now_goes_on_with_a_queue_that_came_later(
    broker: Broker, link_to: LinkTo
) -> None:
    broker.push("nowish", 1, [b"x"] * 2)
    options = {"subscribe": "nowish", "startingOffsets": "earliest"}
    first = Query(link_to(broker), **options)
    first.following.prepare_available_now()
    while first.trigger():
        pass
    broker.push("nowish", 2, [b"y"] * 2)
    second = Query(link_to(broker), list(first.recorded), **options)
    second.following.prepare_available_now()
    while second.trigger():
        pass
    assert second.read == {"nowish/2": [1, 2]}


def test_a_queue_that_appears_is_read_from_its_beginning(broker: Broker, link_to: LinkTo) -> None:
    broker.push("appear", 1, [b"x"])
    query = Query(
        link_to(broker), subscribePattern="appear/[12]", startingOffsets="latest", group="g"
    )
    assert not query.trigger()
    broker.push("appear", 2, [b"y"] * 3)
    broker.push("appear", 30, [b"not ours"])
    assert query.trigger()
    assert query.read == {"appear/2": [1, 2, 3]}
    assert query.cursor("g", "appear", 2) == 0, "the group holds it from now on"
    assert query.cursor("g", "appear", 30) is None
    # The same batch, after a crash: its beginning is in the offset.
    start, end = (json.loads(text) for text in query.recorded[-2:])
    again = Query(link_to(broker), subscribePattern="appear/[12]", startingOffsets="latest")
    again.process(start, end)
    assert again.read == query.read
    assert not query.trigger()


def test_a_queue_that_is_removed_or_created_anew_is_data_loss(
    broker: Broker, link_to: LinkTo
) -> None:
    options = {"subscribe": "changed", "startingOffsets": "earliest"}
    broker.push("changed", 1, [b"x"] * 3)
    broker.push("changed", 2, [b"x"])
    query = Query(link_to(broker), **options)
    assert query.trigger()
    with sync.connect(broker.url) as client:
        client.remove_queue("changed", 1)
    with pytest.raises(DataLost, match=r"changed/1: .* removed after message 3 was read"):
        query.trigger()
    broker.push("changed", 1, [b"y"] * 2)
    with pytest.raises(DataLost, match=r"changed/1: the queue was removed and re-created"):
        query.trigger()
    going_on = Query(link_to(broker), list(query.recorded), failOnDataLoss="false", **options)
    assert going_on.trigger()
    assert going_on.read == {"changed/1": [1, 2]}, "the new one, from its beginning"
    assert not going_on.trigger()


def test_a_queue_that_has_less_than_was_read_is_data_loss(broker: Broker, link_to: LinkTo) -> None:
    """As after an older copy of the broker's data was put back."""
    broker.push("older", 1, [b"x"] * 3)
    options = {"subscribe": "older/1", "startingOffsets": "earliest", "group": "g"}
    query = Query(link_to(broker), **options)
    assert query.trigger()
    offset = json.loads(query.recorded[-1])
    offset["q"]["older/1"]["s"] = 50
    recorded = [json.dumps(offset)]
    with pytest.raises(DataLost, match=r"message 49 was read, and .* only got to 3"):
        Query(link_to(broker), list(recorded), **options).trigger()
    going_on = Query(link_to(broker), list(recorded), failOnDataLoss="false", **options)
    going_on.trigger()
    broker.push("older", 1, [b"y"] * 2)
    going_on.trigger()
    assert going_on.read == {"older/1": [4, 5]}


def test_the_question_is_held_until_something_comes(broker: Broker, link_to: LinkTo) -> None:
    broker.push("held", 1, [b"x"])
    broker.push("heldother", 1, [b"x"])
    query = Query(link_to(broker), subscribe="held/1", startingOffsets="earliest", pollWaitMs=300)
    assert query.trigger()
    asked = query.link.requests
    began = time.monotonic()
    assert not query.trigger()
    assert time.monotonic() - began > 0.25
    assert query.link.requests - asked == 1, "it waits without asking again"


def test_progress_says_what_lies_behind(broker: Broker, link_to: LinkTo) -> None:
    broker.push("progress", 1, [b"x"] * 10)
    query = Query(
        link_to(broker), subscribe="progress/1", startingOffsets="earliest", maxOffsetsPerTrigger=4
    )
    assert query.following.report() is None
    assert query.trigger()
    report = query.following.report()
    assert report is not None
    assert report["q"]["progress/1"]["s"] == 11
    assert report["behind"]["messages"] == 6
    assert report["behind"]["bytes"] > 0


def test_the_batch_that_is_being_read_was_counted_as_lag(broker: Broker, link_to: LinkTo) -> None:
    """Spark asks for the progress between ``latestOffset`` and ``partitions``."""
    broker.push("lag", 1, [b"x"] * 10)
    query = Query(
        link_to(broker), subscribe="lag/1", startingOffsets="earliest", maxOffsetsPerTrigger=4
    )
    start = query.following.initial()
    told = []
    for _ in range(4):
        end = query.following.latest(start, unlimited=False)
        report = query.following.report()
        assert report is not None
        told.append(report["behind"])
        query.following.plan(start, end)
        assert query.following.report() == report, "planning changes nothing"
        start = end
    assert [behind["messages"] for behind in told] == [6, 2, 0, 0]
    assert told[-1]["bytes"] == 0


def test_a_batch_has_so_many_bytes(broker: Broker, link_to: LinkTo) -> None:
    broker.push("bytes", 1, [b"x" * 1_000] * 50)
    query = Query(
        link_to(broker), subscribe="bytes/1", startingOffsets="earliest", maxBytesPerTrigger="10k"
    )
    sizes = []
    while query.trigger():
        sizes.append(len(query.read["bytes/1"]))
    assert query.read == {"bytes/1": list(range(1, 51))}
    steps = [after - before for before, after in zip([0, *sizes], sizes, strict=False)]
    assert max(steps) <= 10
    assert len(steps) <= 8


def test_offsets_by_queue_and_time_say_where_to_begin(broker: Broker, link_to: LinkTo) -> None:
    for queue in (1, 2, 3):
        broker.push("begin", queue, [b"x"] * 5)
    offsets = json.dumps({"begin/1": 3, "begin/2": -2, "begin/3": -1})
    query = Query(link_to(broker), subscribe="begin", startingOffsets=offsets, group="g")
    assert query.trigger()
    assert query.read == {"begin/1": [3, 4, 5], "begin/2": [1, 2, 3, 4, 5]}
    # The group is there now, and stays where it is.
    assert not query.trigger()
    fresh = Query(link_to(broker), subscribe="begin", startingOffsets="committed", group="g")
    assert not fresh.trigger()
    now_ms = int(time.time() * 1000) + 60_000
    later = Query(link_to(broker), subscribe="begin/1", startingTimestamp=now_ms)
    with pytest.raises(InvalidOption, match="begin/1: no message came at"):
        later.trigger()
    since = Query(link_to(broker), subscribe="begin/1", startingTimestamp=1)
    assert since.trigger()
    assert since.read == {"begin/1": [1, 2, 3, 4, 5]}


@pytest.mark.parametrize(
    ("channel", "begin"),
    [
        ("second-a", {"startingOffsets": "earliest"}),
        ("second-b", {"startingOffsets": '{"second-b/1":2}'}),
        ("second-c", {"startingTimestamp": 1}),
    ],
)
def test_a_second_query_with_a_group_read_nothing(
    broker: Broker, link_to: LinkTo, channel: str, begin: dict[str, Any]
) -> None:
    """It got none of the messages that the first had committed, and nobody said so."""
    broker.push(channel, 1, [b"x"] * 10)
    options = {"subscribe": f"{channel}/1", "group": "g"}
    first = Query(link_to(broker), **options, **begin)
    assert first.trigger()
    assert not first.trigger(), "this one commits"
    with pytest.raises(InvalidOption, match=r"already committed message 10.* its own group"):
        Query(link_to(broker), **options, **begin).trigger()
    going_on = Query(link_to(broker), startingOffsets="committed", **options)
    assert not going_on.trigger()
    assert not Query(link_to(broker), first.recorded, **options, **begin).trigger()


def test_a_query_that_ended_before_its_first_batch_keeps_its_group(
    broker: Broker, link_to: LinkTo
) -> None:
    broker.push("ended-early", 1, [b"x"] * 3)
    for start in ("earliest", '{"ended-early/1":2}'):
        options = {
            "subscribe": "ended-early/1",
            "startingOffsets": start,
            "group": f"g-{start[:3]}",
        }
        Query(link_to(broker), **options).following.initial()
        again = Query(link_to(broker), **options)
        assert again.trigger()
        assert again.read["ended-early/1"][-1] == 3


def test_two_queries_shared_a_group_silently(broker: Broker, link_to: LinkTo) -> None:
    """Both began before either had committed; the slower one says so."""
    broker.push("twice", 1, [b"x"] * 9)
    options = {"subscribe": "twice/1", "startingOffsets": "earliest", "group": "both"}
    fast = Query(link_to(broker), **options)
    slow = Query(link_to(broker), maxOffsetsPerTrigger=2, **options)
    for query in (fast, slow):
        query.following.initial()
    assert slow.trigger()
    assert fast.trigger()
    assert not fast.trigger(), "this one commits"
    with pytest.raises(GroupShared, match="both is at message 9, and this query has committed 2"):
        slow.trigger()


def test_a_checkpoint_that_was_rolled_back_is_no_second_query(
    broker: Broker, link_to: LinkTo
) -> None:
    broker.push("rolled", 1, [b"x"] * 8)
    options = {"subscribe": "rolled/1", "startingOffsets": "earliest", "group": "g"}
    query = Query(link_to(broker), maxOffsetsPerTrigger=2, **options)
    while query.trigger():
        pass
    back = Query(link_to(broker), query.recorded[:2], maxOffsetsPerTrigger=2, **options)
    while back.trigger():
        pass
    assert back.read == {"rolled/1": [3, 4, 5, 6, 7, 8]}


def test_a_drained_queue_holds_what_is_not_committed_and_nothing_else(
    broker: Broker, link_to: LinkTo
) -> None:
    options = {"subscribe": "drained/1", "startingOffsets": "earliest", "mode": "drain"}
    broker.create("drained", 1, retain_time_ms=0, retain_for_readers=True, message_timeout_ms=300)
    query = Query(link_to(broker), group="only", **options)
    assert not query.trigger()
    broker.push("drained", 1, [b"x"] * 20)
    time.sleep(1)
    assert look(query.link, subscribe="drained/1")["drained/1"].count == 20, "held for the group"
    assert query.trigger()
    assert query.read == {"drained/1": list(range(1, 21))}
    assert not query.trigger(), "this one commits"
    deadline = time.monotonic() + 20
    while look(query.link, subscribe="drained/1")["drained/1"].count:
        # The store gives up what nobody keeps beside its next writes.
        broker.push("drained", 1, [b"y"])
        query.trigger()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_drain_is_refused_where_messages_would_pile_up(broker: Broker, link_to: LinkTo) -> None:
    broker.push("piled", 1, [b"x"])
    drain = {"subscribe": "piled/1", "mode": "drain"}
    with pytest.raises(InvalidOption, match=r"piled/1: mode=drain .* has no MessageTimeout"):
        Query(link_to(broker), group="g", **drain).trigger()
    with pytest.raises(InvalidOption, match="needs the option group"):
        check_stream(source(**drain))
    with pytest.raises(InvalidOption, match="commitMode must be eager or lagged"):
        check_stream(source(group="g", commitMode="none", **drain))
    with pytest.raises(InvalidOption, match="is for streams"):
        check_batch(source(**drain))


def test_a_queue_that_was_named_must_be_there(broker: Broker, link_to: LinkTo) -> None:
    query = Query(link_to(broker), subscribe="nowhere/9")
    with pytest.raises(InvalidOption, match=r"has no queue nowhere/9; create it"):
        query.trigger()
