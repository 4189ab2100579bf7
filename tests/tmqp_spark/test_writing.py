"""What a sink's task does with its rows, and the commit, with a real broker and without Spark."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tmqp_client import sync
from tmqp_spark import writing
from tmqp_spark.committing import Staging, TaskKey, abort, commit
from tmqp_spark.encoding import SINK_COLUMNS
from tmqp_spark.errors import BrokerRefused, InvalidOption, InvalidSchema, SparkError
from tmqp_spark.options import ConnectionOptions, SinkOptions
from tmqp_spark.pushing import Pusher
from tmqp_spark.testing import Broker
from tmqp_spark.writing import (
    borrow_pusher,
    check_sink,
    return_pusher,
    write_once,
    write_plain,
)

VALUE = ("value", "string")


# --- Columns and options --------------------------------------------------------------------------


def test_columns_that_a_message_has_are_sent_and_others_can_be_passed_over() -> None:
    fields = [VALUE, ("queue", "bigint"), ("headers", "map<string,string>"), ("day", "date")]
    options = SinkOptions(channel="c", ignore_unknown=True)
    assert check_sink(fields, options) == ["value", "queue", "headers"]


def test_each_column_that_is_sent_has_its_types() -> None:
    assert writing._TYPES.keys() == SINK_COLUMNS.keys()


def test_what_plans_and_commits_loads_no_more_than_it_needs() -> None:
    """Spark starts a process for it: with pandas each took twice the time to begin."""
    program = (
        "import sys, tmqp_spark.source;"
        "print([name for name in ('tmqp_spark.encoding', 'pandas') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("fields", "options", "error", "says"),
    [
        ([("payload", "binary")], {}, InvalidSchema, "no column 'payload'"),
        ([("valeu", "binary")], {}, InvalidSchema, r"did you mean value\? Else leave it out"),
        ([VALUE, ("source", "string")], {}, InvalidSchema, "broker writes who pushed"),
        ([VALUE, ("seq", "bigint")], {}, InvalidSchema, r"its place; leave it out with drop\("),
        ([("value", "int")], {}, InvalidSchema, r"binary or string, not int: .*to_json"),
        ([("queue", "int")], {}, InvalidSchema, "needs a column value"),
        ([VALUE], {"channel": ""}, InvalidOption, "Set the option channel"),
        ([VALUE], {"queue": None}, InvalidOption, "Set the option queue"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is(
    fields: list[tuple[str, str]], options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        check_sink(fields, SinkOptions(**{"channel": "c", "queue": 1, **options}))


# --- Tasks ----------------------------------------------------------------------------------------


@pytest.fixture
def pusher(broker: Broker) -> Iterator[Pusher]:
    made = Pusher(ConnectionOptions(url=broker.url, retries=3), 4)
    yield made
    made.close()


def _rows(*values: str, **more: list[Any]) -> Iterator[pa.RecordBatch]:
    columns = {"value": pa.array(values), **{name: pa.array(more[name]) for name in more}}
    return iter([pa.record_batch(list(columns.values()), names=list(columns))])


def _kept(broker: Broker, channel: str, queue: int = 1) -> list[str]:
    with sync.connect(broker.url, name="test") as client:
        return [message.payload.decode() for message in client.read_range(channel, queue)]


def _key(application: str, epoch: int = 0, part: int = 0, attempt: int = 0) -> TaskKey:
    return TaskKey(application, epoch, part, attempt)


def _once(channel: str, **more: Any) -> SinkOptions:
    return SinkOptions(channel=channel, queue=1, **more)


def test_what_is_staged_is_seen_when_it_is_committed_and_only_then(
    broker: Broker, pusher: Pusher
) -> None:
    broker.create("w-seen", 1)
    staged = []
    for part, rows in enumerate([("a", "b"), ("c",)]):
        number, written = write_once(
            pusher, _once("w-seen"), ["value"], _key("w-seen", 5, part), _rows(*rows)
        )
        staged.append((number, written.rows))
    assert _kept(broker, "w-seen") == []
    assert commit(pusher, "w-seen", 5, staged) == 3
    assert _kept(broker, "w-seen") == ["a", "b", "c"]
    # Whoever does not know whether the commit arrived does it again, or the whole epoch.
    assert commit(pusher, "w-seen", 5, staged) == 0
    again = write_once(pusher, _once("w-seen"), ["value"], _key("w-seen", 5), _rows("a", "b"))
    assert (again[0], again[1].rows) == (0, 0)
    assert _kept(broker, "w-seen") == ["a", "b", "c"]


def test_only_the_attempts_that_are_named_count(broker: Broker, pusher: Pusher) -> None:
    broker.create("w-named", 1)
    options = _once("w-named")
    attempts = [
        write_once(pusher, options, ["value"], _key("w-named", 0, 0, attempt), _rows("x"))
        for attempt in range(3)
    ]
    assert commit(pusher, "w-named", 0, [(attempts[1][0], 1)]) == 1
    abort(pusher, "w-named", [attempts[0][0], 999_999])
    assert _kept(broker, "w-named") == ["x"]
    with sync.connect(broker.url, name="test") as client:
        left = [each.id for each in client.list_transactions("w-named") if each.state == "open"]
    assert attempts[0][0] not in left


def test_a_task_without_rows_opens_nothing(broker: Broker, pusher: Pusher) -> None:
    empty = pa.record_batch([pa.array([], pa.string())], names=["value"])
    number, written = write_once(
        pusher, _once("w-empty"), ["value"], _key("w-empty"), iter([empty])
    )
    assert (number, written.rows) == (0, 0)
    with sync.connect(broker.url, name="test") as client:
        assert client.list_transactions("w-empty") == []


def test_rows_that_fail_leave_nothing_behind(broker: Broker, pusher: Pusher) -> None:
    broker.create("w-fail", 1)
    good, bad = next(_rows("a")), pa.record_batch([pa.array([None], pa.string())], names=["value"])
    with pytest.raises(SparkError, match="rows 1 to 2: column value is null"):
        write_once(pusher, _once("w-fail"), ["value"], _key("w-fail"), iter([good, bad]))
    with sync.connect(broker.url, name="test") as client:
        assert client.list_transactions("w-fail") == []


def test_a_queue_that_is_not_durable_is_refused_with_what_to_do(
    broker: Broker, pusher: Pusher
) -> None:
    with sync.connect(broker.url, name="test") as client:
        client.create_queue("w-soft", 1, status="push")
    with pytest.raises(BrokerRefused, match=r"w-soft/1 .*406 .*durable queue"):
        write_once(pusher, _once("w-soft"), ["value"], _key("w-soft"), _rows("a"))
    plain = _once("w-soft", guarantee="at_least_once")
    with pytest.raises(BrokerRefused, match=r"w-soft/1 is not durable.*ack=accepted"):
        write_plain(pusher, plain, ["value"], _key("w-soft"), _rows("a"))
    accepted = _once("w-soft", guarantee="at_least_once", ack="accepted")
    assert write_plain(pusher, accepted, ["value"], _key("w-soft"), _rows("a")).rows == 1


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_queues_are_created_where_rows_go_and_durable(
    broker: Broker, pusher: Pusher, guarantee: str
) -> None:
    name = f"w-made-{guarantee}"
    options = SinkOptions(channel=name, queue=3, guarantee=guarantee, create_queue=True)
    rows = _rows("a", "b", "c", channel=[f"{name}-x", None, None], queue=[1, 2, None])
    columns = ["value", "channel", "queue"]
    if guarantee == "exactly_once":
        number, written = write_once(pusher, options, columns, _key(name), rows)
        commit(pusher, name, 0, [(number, written.rows)])
    else:
        write_plain(pusher, options, columns, _key(name), rows)
    with sync.connect(broker.url, name="test") as client:
        for channel, queue in [(f"{name}-x", 1), (name, 2), (name, 3)]:
            found = client.queue_information(channel, queue)
            assert (found.durable, found.messages) == (True, 1)


def test_a_queue_that_is_not_there_is_named(broker: Broker, pusher: Pusher) -> None:
    plain = _once("w-none", guarantee="at_least_once")
    with pytest.raises(BrokerRefused, match=r"no queue w-none/1: .*createQueue=true"):
        write_plain(pusher, plain, ["value"], _key("w-none"), _rows("a"))


def test_a_commit_of_what_a_restart_forgot_says_that_nothing_was_written(
    own_broker: Broker,
) -> None:
    own_broker.create("w-gone", 1)
    pusher = Pusher(ConnectionOptions(url=own_broker.url), 4)
    number, _ = write_once(pusher, _once("w-gone"), ["value"], _key("w-gone", 3), _rows("a"))
    own_broker.kill()
    own_broker.start()
    with pytest.raises(BrokerRefused, match=r"404 .*Nothing was written. Restart the query"):
        commit(pusher, "w-gone", 3, [(number, 1)])
    # The batch is computed again, and counts once.
    number, _ = write_once(pusher, _once("w-gone"), ["value"], _key("w-gone", 3), _rows("a"))
    assert commit(pusher, "w-gone", 3, [(number, 1)]) == 1
    own_broker.kill()
    own_broker.start()
    assert commit(pusher, "w-gone", 3, [(number, 1)]) == 0
    pusher.close()
    assert _kept(own_broker, "w-gone") == ["a"]


def test_a_task_whose_connection_is_lost_is_to_be_done_again(own_broker: Broker) -> None:
    own_broker.create("w-lost", 1)
    pusher = Pusher(ConnectionOptions(url=own_broker.url, retries=0), 4)

    def rows() -> Iterator[pa.RecordBatch]:
        yield next(_rows("a"))
        own_broker.kill()
        for _ in range(3):
            yield next(_rows("b"))

    with pytest.raises(SparkError, match=r"tried again as a whole.*nothing of it was written"):
        write_once(pusher, _once("w-lost"), ["value"], _key("w-lost"), rows())
    pusher.close()


@pytest.mark.timeout(120)
def test_rows_that_are_long_in_coming_lose_no_connection(tmp_path: Path) -> None:
    """The broker asks twice whether anybody is there before the next batch comes."""
    with Broker(tmp_path, "[connection]\nping_interval_s = 1\n") as impatient:
        impatient.create("w-slow", 1)
        pusher = Pusher(ConnectionOptions(url=impatient.url, retries=0), 4)

        def rows() -> Iterator[pa.RecordBatch]:
            yield next(_rows("a"))
            time.sleep(4)
            yield next(_rows("b"))

        number, written = write_once(pusher, _once("w-slow"), ["value"], _key("w-slow"), rows())
        assert written.rows == 2
        assert not [each for each in threading.enumerate() if each.name == "tmqp-attendant"]
        assert commit(pusher, "w-slow", 0, [(number, 2)]) == 2
        pusher.close()
        assert _kept(impatient, "w-slow") == ["a", "b"]


def test_a_connection_that_is_lost_while_rows_are_awaited_is_noticed(own_broker: Broker) -> None:
    own_broker.create("w-away", 1)
    pusher = Pusher(ConnectionOptions(url=own_broker.url, retries=0), 4)
    waited: list[bool] = []

    def rows() -> Iterator[pa.RecordBatch]:
        yield next(_rows("a"))
        own_broker.kill()
        own_broker.start()  # what was staged is gone, and a new connection would not know it
        deadline = time.monotonic() + 20
        while pusher.is_open and time.monotonic() < deadline:
            time.sleep(0.05)
        waited.append(pusher.is_open)
        yield next(_rows("b"))

    with pytest.raises(SparkError, match=r"tried again as a whole.*nothing of it was written"):
        write_once(pusher, _once("w-away"), ["value"], _key("w-away"), rows())
    assert waited == [False], "it was found out while rows were awaited"
    pusher.close()
    assert _kept(own_broker, "w-away") == []


def test_without_acknowledges_refusals_are_noticed_all_the_same(
    broker: Broker, pusher: Pusher
) -> None:
    broker.create("w-none-full", 1, message_limit=2)
    options = _once("w-none-full", guarantee="at_least_once", ack="none")
    assert write_plain(pusher, options, ["value"], _key("w"), _rows("a", "b")).rows == 2
    with pytest.raises(BrokerRefused, match="482"):
        write_plain(pusher, options, ["value"], _key("w"), _rows("c"))


def test_the_same_rows_have_the_same_ids_when_they_are_written_again(broker: Broker) -> None:
    broker.create("w-ids", 1)
    options = _once("w-ids", guarantee="at_least_once")
    for attempt in range(2):
        made = borrow_pusher(ConnectionOptions(url=broker.url), 4)
        write_plain(made, options, ["value"], _key("q", 7, 1, attempt), _rows("a", "b"))
        return_pusher(made)
    with sync.connect(broker.url, name="test") as client:
        ids = [message.message_id for message in client.read_range("w-ids", 1)]
    assert len(ids) == 4
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


def test_a_connection_is_used_again_by_the_next_task(broker: Broker) -> None:
    options = ConnectionOptions(url=broker.url, client_name="pooled")
    first = borrow_pusher(options, 4)
    first.connect()
    return_pusher(first)
    second = borrow_pusher(options, 4)
    assert second is first
    assert borrow_pusher(options, 4) is not first
    second.close()
    return_pusher(second)
    assert borrow_pusher(options, 4) is not first


def _push_and_finish(staging: Staging, block: memoryview) -> None:
    staging.push(block)
    staging.finish(1)


def test_a_message_too_large_for_the_broker_is_explained(broker: Broker, pusher: Pusher) -> None:
    broker.create("w-large", 1)
    staging = Staging(pusher, _key("w-large"), "w-large/1", 2)
    staging.open(60_000)
    block = memoryview(bytes((1 << 20) + 1))
    with pytest.raises(SparkError, match=r"piece of 1048577 bytes .*max_payload_bytes"):
        _push_and_finish(staging, block)
