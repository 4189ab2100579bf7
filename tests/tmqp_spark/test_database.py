"""A broker's database is read where it lies: the same rows as over the network, or a clear no."""

from __future__ import annotations

import logging
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from tests.ports import free_port
from tests.tmqp_spark.reading import LinkTo, source, whole
from tmqp.blocks import split_blocks
from tmqp.references import DATABASE_NAME
from tmqp_client import sync
from tmqp_spark.arrow import BatchBuilder
from tmqp_spark.database import BrokerDatabase, check_database, open_database
from tmqp_spark.errors import DatabaseUnusable, DataLost
from tmqp_spark.options import SourceOptions
from tmqp_spark.ranges import QueueRange, _Reader, read_answers, read_range
from tmqp_spark.schema import default_columns, project
from tmqp_spark.testing import Broker
from tmqp_spark.transport import BrokerLink


def data_of(broker: Broker) -> str:
    return str(broker.data)


def table(
    link: BrokerLink,
    wanted: QueueRange,
    database: BrokerDatabase | None = None,
    options: SourceOptions | None = None,
) -> pa.Table:
    """All columns of a range."""
    columns = project(default_columns(True, True))
    builder = BatchBuilder(columns, wanted.channel, wanted.queue, wanted.incarnation, "test")
    portions = read_range(link, wanted, options or source(), True, database)
    batches = [builder.build(portion) for portion in portions]
    return pa.Table.from_batches(batches, columns.schema).combine_chunks()


@pytest.fixture
def database(broker: Broker) -> Iterator[BrokerDatabase]:
    with BrokerDatabase(data_of(broker)) as opened:
        yield opened


def sent_bytes(link: BrokerLink, wanted: QueueRange, references: bool) -> int:
    """What the broker sends of a range."""
    reader = _Reader(link, wanted, source(), True, references)
    total = 0
    while (answer := reader.next()) is not None:
        total += len(answer[0]) - answer[1]
    return total


def test_the_rows_are_those_that_come_over_the_network(
    broker: Broker, link_to: LinkTo, database: BrokerDatabase
) -> None:
    broker.push("local", 1, [b"%06d" % number * (number % 40) for number in range(5_000)])
    broker.push("local", 1, [b"urgent"], high_priority=True, headers={"Colour": "blau"})
    broker.push("local", 1, [b"z" * 900_000, b"", b"last"])
    link = link_to(broker)
    wanted = whole(link, "local/1")
    remote, local = table(link, wanted), table(link, wanted, database)
    assert local.num_rows == 5_004
    assert local == remote
    part = QueueRange("local", 1, wanted.incarnation, 1_111, 4_999, 100)
    assert table(link, part, database) == table(link, part)
    small = source(batchBytes=4_000)
    assert table(link, wanted, database, small) == remote
    assert link.is_quiet(), "another task can use it"


def test_the_broker_sends_next_to_nothing(broker: Broker, link_to: LinkTo) -> None:
    broker.push("sent", 1, [b"%0300d" % number for number in range(3_000)])
    link = link_to(broker)
    wanted = whole(link, "sent/1")
    assert sent_bytes(link, wanted, False) > 900_000
    assert sent_bytes(link, wanted, True) < 5_000


def test_what_was_pushed_a_moment_ago_is_there(
    broker: Broker, link_to: LinkTo, database: BrokerDatabase
) -> None:
    """It is in the log of recent writes when the question comes."""
    link = link_to(broker)
    for number in range(1, 6):
        broker.push("recent", 1, [b"%d" % number])
        values = table(link, whole(link, "recent/1"), database)["value"].to_pylist()
        assert values == [b"%d" % each for each in range(1, number + 1)]


def test_blocks_that_were_merged_meanwhile_are_asked_for_again(
    broker: Broker, link_to: LinkTo
) -> None:
    """Small blocks become one under the hands of a reader that holds references to them."""
    link, asks = link_to(broker), link_to(broker)
    broker.create("merge", 1)
    for number in range(12):
        broker.push("merge", 1, [b"%d-%d" % (number, each) for each in range(3)])
        whole(asks, "merge/1")  # which carries them into the database as a block of their own
    wanted = whole(asks, "merge/1")
    with BrokerDatabase(data_of(broker)) as database:
        answers = read_answers(link, wanted, source(), True, database)
        found = [next(answers)]
        for number in range(12, 40):
            broker.push("merge", 1, [b"%d" % number])
            whole(asks, "merge/1")
        found += answers
    sequences = [each for data, _ in found for each in _sequences(bytes(data))]
    assert sequences == list(range(1, 37))
    assert link.requests == 2, "what was gone was asked for again"


def _sequences(data: bytes) -> list[int]:
    return [block.sequence(place) for block in split_blocks(data) for place in range(block.count)]


def test_messages_of_other_protocols_had_lost_their_headers(
    tmp_path: Path, link_to: LinkTo
) -> None:
    """The broker translates them; its database has them in the other protocol's form."""
    port = free_port()
    door = f'[[doors]]\nprotocol = "stomp"\nlisten = ["127.0.0.1:{port}"]\n'
    with Broker(tmp_path / "stomp", door) as broker:
        broker.create("mixed", 0)
        broker.push("mixed", 0, [b"%d" % number for number in range(10)])
        with socket.create_connection(("127.0.0.1", port), 10) as sock:
            sock.sendall(b"CONNECT\naccept-version:1.2\nhost:h\n\n\0")
            sock.sendall(b"SEND\ndestination:mixed\ncolour:red\nreceipt:1\n\nten\0")
            said = b""
            while b"RECEIPT" not in said:
                said += sock.recv(4_096)
        broker.push("mixed", 0, [b"eleven"])
        link = link_to(broker)
        wanted = whole(link, "mixed/0")
        remote = table(link, wanted)
        with BrokerDatabase(data_of(broker)) as database:
            assert table(link, wanted, database) == remote
    assert remote.num_rows == 12
    assert {"key": "colour", "value": "red"} in remote["headers"].to_pylist()[10]


def test_what_was_consumed_is_left_out_as_over_the_network(broker: Broker, link_to: LinkTo) -> None:
    broker.create("owed", 1, retain_time_ms=0, acknowledge_timeout_ms=600_000)
    broker.push("owed", 1, [b"%d" % number for number in range(3_000)])
    link = link_to(broker)
    whole(link, "owed/1")
    with (
        sync.connect(broker.url) as client,
        client.consume("owed", 1, acknowledge="manual") as messages,
    ):
        for number, message in enumerate(messages):
            if 1_100 <= number < 2_500:
                message.ack()
            if number == 2_999:
                break
        client.read_range("owed", 1)  # answered when the broker has taken what came before it
    wanted = whole(link, "owed/1")
    with BrokerDatabase(data_of(broker)) as database:
        local = table(link, wanted, database)
    assert local == table(link, wanted)
    assert local.num_rows == 1_600


def test_what_is_not_kept_any_more_is_data_loss_as_over_the_network(
    broker: Broker, link_to: LinkTo
) -> None:
    broker.create("lost", 1, retain_time_ms=0)
    broker.push("lost", 1, [b"x"] * 100)
    link = link_to(broker)
    wanted = whole(link, "lost/1")
    with sync.connect(broker.url) as client, client.consume("lost", 1) as messages:
        for number, _ in enumerate(messages, 1):
            if number == 60:
                break
    with BrokerDatabase(data_of(broker)) as database, pytest.raises(DataLost, match="earliest"):
        table(link, wanted, database)


def test_reading_goes_on_when_the_broker_was_killed_and_came_back(
    own_broker: Broker, link_to: LinkTo
) -> None:
    own_broker.push("back", 1, [b"%06d" % number for number in range(6_000)])
    link = link_to(own_broker)
    wanted = whole(link_to(own_broker), "back/1")
    expected = table(link_to(own_broker), wanted)["seq"]
    found: list[int] = []
    with BrokerDatabase(data_of(own_broker)) as database:
        portions = read_range(link, wanted, source(batchBytes=50_000), True, database)
        for number, portion in enumerate(portions):
            found += [int(sequence) for sequence in portion.entry["sequence"]]
            if number == 1:
                own_broker.kill()
                own_broker.start()
                own_broker.push("back", 1, [b"more"])
        # The write-ahead log of the broker that was killed is carried over in spite of the reader.
        again = whole(link_to(own_broker), "back/1")
        assert table(link, again, database).num_rows == 6_001
    assert found == expected.to_pylist()


def test_a_slow_reader_does_not_hold_the_brokers_log(broker: Broker, link_to: LinkTo) -> None:
    broker.push("slow", 1, [b"%0200d" % number for number in range(4_000)])
    link = link_to(broker)
    with BrokerDatabase(data_of(broker)) as database:
        answers = read_answers(link, whole(link, "slow/1"), source(), True, database)
        next(answers)  # and then nothing for a while
        path = Path(data_of(broker)) / DATABASE_NAME
        with closing(sqlite3.connect(path)) as db:
            busy, pages, moved = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert (busy, pages, moved) == (0, 0, 0)


# --- Where it cannot be ---------------------------------------------------------------------------


def test_a_copy_of_the_data_is_not_the_brokers(
    broker: Broker, link_to: LinkTo, tmp_path: Path
) -> None:
    """A backup has the id of the store, and perhaps other messages under the same sequences."""
    broker.push("copy", 1, [b"x"] * 5)
    link = link_to(broker)
    wanted = whole(link, "copy/1")
    shutil.copytree(data_of(broker), tmp_path / "copy")
    with (
        BrokerDatabase(str(tmp_path / "copy")) as database,
        pytest.raises(DatabaseUnusable, match="is not the database of tmq://"),
    ):
        table(link, wanted, database)


def test_on_another_machine_the_network_is_used_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "tmqp_spark"):
        assert open_database(source(journalDir=tmp_path / "none")) is None
    assert "is not the broker's machine" in caplog.text
    assert open_database(source()) is None


def test_a_directory_without_a_broker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match="journalDir is the data directory of the broker"):
        check_database(source(journalDir=tmp_path))


def test_files_of_another_user_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"")

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tmqp_spark.database.os.open", refuse)
    with pytest.raises(DatabaseUnusable, match="by the user that the broker runs as"):
        check_database(source(journalDir=tmp_path))


@pytest.mark.parametrize(
    ("pragma", "words"),
    [
        ("application_id = 7", "of another program"),
        ("user_version = 99", "has the format version 99, this program knows 1 to 2"),
    ],
)
def test_another_format_is_refused(broker: Broker, tmp_path: Path, pragma: str, words: str) -> None:
    broker.create("format", 1)
    with (
        closing(sqlite3.connect(Path(data_of(broker)) / DATABASE_NAME)) as db,
        closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as copy,
    ):
        db.backup(copy)
        copy.execute(f"PRAGMA {pragma}")
    with pytest.raises(DatabaseUnusable, match=words):
        check_database(source(journalDir=tmp_path))


def test_nothing_can_be_written_through_it(broker: Broker, database: BrokerDatabase) -> None:
    with pytest.raises(sqlite3.OperationalError, match="attempt to write a readonly database"):
        database._db.execute("DELETE FROM bodies")
