"""What Spark demands of a source, without a JVM: it travels, it lists, it never raises unasked."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    InputPartition,
    IsNotNull,
    Not,
    StringContains,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType

from tests.project import ROOT
from tmqp_spark import source as source_module
from tmqp_spark import workers
from tmqp_spark.errors import InvalidOption
from tmqp_spark.source import (
    RangePartition,
    TmqpDataSource,
    TmqpFilteringReader,
    TmqpReader,
    TmqpStreamReader,
    borrow_link,
    return_link,
)
from tmqp_spark.testing import Broker

SEQ = StructType([StructField("seq", LongType(), True)])


def made(broker: Broker | None = None, **options: Any) -> TmqpDataSource:
    given = {"url": "tmq://nowhere:1" if broker is None else broker.url}
    return TmqpDataSource({**given, **{name: str(value) for name, value in options.items()}})


def sent(thing: Any) -> Any:
    """What arrives at an executor."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own


def rows_of(reader: DataSourceReader, part: InputPartition) -> int:
    batches: Any = reader.read(part)
    return sum(batch.num_rows for batch in batches)


@pytest.fixture(autouse=True)
def no_idle_links() -> Iterator[None]:
    """Leave no connections of one test to another."""
    yield
    for links in source_module._IDLE.values():
        for link in links:
            link.close()
    source_module._IDLE.clear()


def test_readers_travel_even_after_they_were_used(broker: Broker) -> None:
    broker.push("travel", 1, [b"x"] * 5)
    batch = made(broker, subscribe="travel/1").reader(schema=SEQ)
    parts = batch.partitions()
    assert isinstance(parts, list)
    arrived, (part,) = sent(batch), sent(parts)
    (found,) = arrived.read(part)
    assert found["seq"].to_pylist() == [1, 2, 3, 4, 5]
    stream = made(broker, subscribe="travel/1", startingOffsets="earliest").streamReader(schema=SEQ)
    assert isinstance(sent(stream), TmqpStreamReader)


def test_no_partition_reads_nothing(broker: Broker) -> None:
    """Spark puts a partition without a value where a source has none."""
    broker.create("empty", 1)
    reader = made(broker, subscribe="empty/1").reader(schema=SEQ)
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_the_schema_is_given_by_its_name_and_is_text_without_one() -> None:
    plain = made(subscribe="a/1").schema()
    assert plain.startswith("channel string NOT NULL, queue int NOT NULL, seq bigint NOT NULL")
    assert "headers" not in plain
    assert "headers array<struct" in made(subscribe="a/1", includeHeaders="true").schema()


def test_the_read_limit_is_what_the_options_say() -> None:
    def limit(**options: Any) -> Any:
        return made(subscribe="a/1", **options).streamReader(schema=SEQ).getDefaultReadLimit()

    assert limit() == ReadAllAvailable()
    assert limit(maxOffsetsPerTrigger=5) == ReadMaxRows(5)
    assert limit(maxBytesPerTrigger="2k") == ReadMaxBytes(2048)


def test_filters_are_taken_only_when_asked_for() -> None:
    """Spark uses the plan of a filtered read again for other queries of the same DataFrame."""
    assert type(made(subscribe="a/1").reader(schema=SEQ)) is TmqpReader
    filtering = made(subscribe="a/1", filterPushdown="true").reader(schema=SEQ)
    assert type(filtering) is TmqpFilteringReader


def test_the_filters_that_are_not_taken_are_the_same_objects() -> None:
    reader = made(subscribe="a/1", filterPushdown="true").reader(schema=SEQ)
    taken: list[Filter] = [
        EqualTo(("queue",), 1),
        GreaterThan(("seq",), 5),
        IsNotNull(("channel",)),
    ]
    left: list[Filter] = [
        EqualTo(("value",), b"x"),
        StringContains(("channel",), "x"),
        Not(EqualTo(("queue",), 1)),
        EqualTo(("headers", "key"), "x"),
    ]
    found = list(reader.pushFilters([*taken, *left]))
    assert [id(each) for each in found] == [id(each) for each in left]


def test_mistakes_are_found_when_the_source_is_made() -> None:
    with pytest.raises(InvalidOption, match="did you mean subscribePattern"):
        made(subscribePatern="x")
    with pytest.raises(InvalidOption, match="the tmqp source has no option 'guarantee'"):
        made(subscribe="a/1", guarantee="exactly_once").schema()


def test_a_connection_serves_one_task_after_another(broker: Broker) -> None:
    broker.push("tasks", 1, [b"x"] * 5)
    reader = made(broker, subscribe="tasks/1").reader(schema=SEQ)
    (part,) = reader.partitions()
    assert isinstance(part, RangePartition)
    for _ in range(3):
        assert rows_of(reader, part) == 5
    ((link,),) = source_module._IDLE.values()
    assert link.connections == 1
    assert borrow_link(link.options) is link
    link.close()
    return_link(link)
    assert not any(source_module._IDLE.values()), "a closed one is not kept"


def test_a_task_that_is_left_early_gives_its_connection_back(broker: Broker) -> None:
    broker.push("early", 1, [b"x" * 1_000] * 3_000)
    reader = made(broker, subscribe="early/1", batchBytes="50k").reader(schema=SEQ)
    (part,) = reader.partitions()
    batches: Any = reader.read(part)
    next(batches)
    batches.close()
    assert rows_of(reader, part) == 3_000


def test_what_was_loaded_is_out_of_the_collectors_sight(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = made(broker, subscribe="a/1").reader(schema=SEQ)
    loaded: list[list[int]] = []
    workers._settled[:] = 0, 0
    counts = [gc.get_freeze_count()]
    for number in range(4):
        if number != 2:
            loaded += [[] for _ in range(1_000)]
            monkeypatch.setitem(sys.modules, f"loaded_{number}", workers)
        list(reader.read(InputPartition(None)))
        counts.append(gc.get_freeze_count())
    assert counts[0] + 900 < counts[1]
    assert counts[1] + 900 < counts[2]
    assert counts[3] <= counts[2]  # nothing was loaded
    assert counts[3] + 900 < counts[4]
    gc.unfreeze()


def test_the_shim_never_raises(tmp_path: Path) -> None:
    """One broken module called pyspark_... hides all formats: ours is none, whatever is missing."""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("raise RuntimeError('broken')")
    program = "import pyspark_tmqp; print(hasattr(pyspark_tmqp, 'DefaultSource'))"

    def said(*places: Path) -> str:
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": ":".join(map(str, places))},
            capture_output=True,
            text=True,
            check=True,
        )
        return found.stdout.strip()

    assert said(tmp_path, ROOT / "src") == "False"
    assert said(ROOT / "src") == "True"
