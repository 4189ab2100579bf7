"""What a writer must know and must not: pickled, made twice, and asked who a task is."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from tmqp_spark.committing import TaskKey
from tmqp_spark.errors import InvalidOption, SparkError
from tmqp_spark.sink import TmqpCommitMessage, batch_writer, stream_writer

URL = {"url": "tmq://127.0.0.1:9", "channel": "c", "queue": "1"}


def _schema(**columns: str) -> Any:
    """A schema as Spark hands it over, without a JVM."""
    fields = [
        SimpleNamespace(name=name, dataType=SimpleNamespace(simpleString=kind.strip))
        for name, kind in (columns or {"value": "string"}).items()
    ]
    return SimpleNamespace(fields=fields)


class _Context:
    """A task of Spark's."""

    def __init__(self, **properties: str) -> None:
        self._properties = {name.replace("_", "."): properties[name] for name in properties}

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's name
        return self._properties.get(name)

    def partitionId(self) -> int:  # noqa: N802 - Spark's name
        return 3

    def taskAttemptId(self) -> int:  # noqa: N802 - Spark's name
        return 77


def test_a_streams_writer_holds_nothing_that_was_made_up() -> None:
    """Spark makes another one for the commit: what both know comes from Spark."""
    one, other = (stream_writer(URL, _schema(), False) for _ in range(2))
    assert vars(one).keys() == vars(other).keys()
    assert all(vars(one)[name] == vars(other)[name] for name in vars(one))
    copy = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert vars(copy) == vars(one)


def test_a_stream_writes_for_its_query_and_micro_batch() -> None:
    context: Any = _Context(sql_streaming_queryId="q-1", streaming_sql_batchId="12")
    key = stream_writer(URL, _schema(), False)._key(context)
    assert (key.application, key.epoch, key.part, key.attempt) == ("q-1", 12, 3, 77)


@pytest.mark.parametrize(
    "properties", [{}, {"sql_streaming_queryId": "q"}, {"streaming_sql_batchId": "1"}]
)
def test_without_them_nothing_can_be_written_exactly_once(properties: dict[str, str]) -> None:
    context: Any = _Context(**properties)
    with pytest.raises(SparkError, match="set guarantee=at_least_once"):
        stream_writer(URL, _schema(), False)._key(context)
    plain = stream_writer({**URL, "guarantee": "at_least_once"}, _schema(), False)
    assert plain._key(context).application != plain._key(context).application


def test_a_batchs_writer_has_one_name_in_all_processes() -> None:
    writer = batch_writer(URL, _schema(), False)
    copy = pickle.loads(pickle.dumps(writer))  # noqa: S301 - our own
    context: Any = _Context()
    assert copy._key(context).application == writer._key(context).application
    another = batch_writer(URL, _schema(), False)
    assert another._key(context).application != writer._key(context).application
    named = batch_writer({**URL, "txnAppId": "a", "txnVersion": "4"}, _schema(), False)
    key = named._key(context)
    assert (key.application, key.epoch) == ("a", 4)


def test_an_answer_for_another_micro_batch_is_not_committed() -> None:
    writer = stream_writer(URL, _schema(), False)
    message = TmqpCommitMessage(TaskKey("q", 4, 0, 0), 9, 1, 30)
    with pytest.raises(SparkError, match="micro-batch 4 answered for micro-batch 5"):
        writer.commit([message, None], 5)


def test_nothing_staged_is_nothing_to_commit_or_forget() -> None:
    """No connection is opened: there is no broker at that address."""
    writer = stream_writer(URL, _schema(), False)
    empty = TmqpCommitMessage(TaskKey("q", 4, 0, 0), 0, 0, 0)
    writer.commit([empty, None], 4)
    writer.abort([empty, None], 4)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"txnAppId": "a", "txnVersion": "1"}, "streaming query has its own id"),
        ({"txnVersion": "1"}, "streaming query has its own id"),
    ],
)
def test_names_of_batches_are_not_for_streams(options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        stream_writer({**URL, **options}, _schema(), False)


def test_sparks_own_options_are_passed_over() -> None:
    stream_writer({**URL, "checkpointLocation": "x", "queryname": "y"}, _schema(), False)


def test_a_name_belongs_to_exactly_once() -> None:
    options = {**URL, "txnAppId": "a", "txnVersion": "1", "guarantee": "at_least_once"}
    with pytest.raises(InvalidOption, match="txnAppId is for guarantee=exactly_once"):
        batch_writer(options, _schema(), False)
