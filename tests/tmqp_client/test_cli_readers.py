"""The commands of readers with the real server and a data directory."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import start, tmqp
from tests.tmqp_client.test_cli_more import good, rows
from tmqp.models import QueueOptions
from tmqp_client import sync

KEPT = QueueOptions(durable=True, retain_for_readers=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data: Path = tmp_path_factory.mktemp("data")
    with running_server("--data", str(data)) as (tcp, _):
        yield tcp


def fill(place: str, channel: str, payloads: list[bytes]) -> list[int]:
    """Push what is kept; the sequences."""
    with sync.connect(place) as client:
        client.create_queue(channel, 1, KEPT, status="push")
        for payload in payloads:
            client.push(channel, 1, payload)
        return [each.sequence for each in client.read_range(channel, 1)]


def test_what_can_be_read(place: str) -> None:
    sequences = fill(place, "known", [b"a", b"b"])
    (row,) = rows(tmqp(place, "offsets", "kno*", "--queue", "1", "--json"))
    assert (row["channel"], row["queue"], row["count"]) == ("known", 1, 2)
    assert [row["earliest"], row["latest"]] == sequences
    assert good(tmqp(place, "offsets", "known")).startswith("known\t1\t")
    assert good(tmqp(place, "offsets", "nobody")) == ""


def test_a_range(place: str) -> None:
    first, second, third, _ = fill(place, "ranges", [b"one", b"two", b"\xff", b"four"])
    assert good(tmqp(place, "read", "ranges", "1", "--count", "2")) == "one\ntwo\n"
    words = ("read", "ranges", "1", "--first", str(second), "--last", str(third), "--json")
    found = rows(tmqp(place, *words))
    assert [each["sequence"] for each in found] == [second, third]
    assert found[0]["payload"] == "two"
    assert found[1]["payload_base64"] == "/w=="
    assert len(found[0]["message_id"]) == 32
    assert found[0]["timestamp_us"] > 1_600_000_000_000_000
    everything = tmqp(place, "read", "ranges", "1", "--first", str(first), "--json")
    assert len(rows(everything)) == 4, "to read takes nothing away"


def test_a_range_that_is_gone_said_a_number_only(place: str) -> None:
    sequences = fill(place, "gone", [b"one", b"two"])
    for wanted, far in (("gone", "1000"), ("gone", str(sequences[-1] + 2))):
        said = tmqp(place, "read", wanted, "1", "--first", far)
        assert said.exit_code == 1
        words = f"sequences that can be read: {sequences[0]} to {sequences[1]}"
        assert words in said.output


def test_a_cursor(place: str) -> None:
    sequences = fill(place, "cursors", [b"one", b"two", b"three"])
    (at,) = rows(tmqp(place, "cursor", "open", "cursors", "1", "audit", "--json"))
    assert at["sequence"] < sequences[0]
    by_cursor = ("read", "cursors", "1", "--cursor", "audit")
    assert good(tmqp(place, *by_cursor, "--count", "2")) == "one\ntwo\n"
    (there,) = rows(tmqp(place, "cursor", "ls", "cursors", "1", "--json"))
    assert (there["name"], there["sequence"]) == ("audit", sequences[1])
    assert good(tmqp(place, *by_cursor)) == "three\n"
    assert good(tmqp(place, *by_cursor)) == ""
    assert good(tmqp(place, "cursor", "ls", "cursors", "1")).startswith(f"audit\t{sequences[2]}\t")
    late = ("cursor", "open", "cursors", "1", "late", "--start", "latest", "--json")
    assert rows(tmqp(place, *late))[0]["sequence"] == sequences[2]
    other = ("cursor", "commit", "cursors", "1", "other", str(sequences[0]), "--json")
    assert rows(tmqp(place, *other))[0]["sequence"] == sequences[0]
    removed = good(tmqp(place, "cursor", "rm", "cursors", "1", "other", "--json"))
    assert json.loads(removed)["removed"] is True
    assert tmqp(place, "cursor", "rm", "cursors", "1", "other").exit_code == 1
    assert tmqp(place, "cursor", "commit", "cursors", "1", "late", "999999").exit_code == 1


def test_following_until_ctrl_c_misses_nothing(place: str) -> None:
    (sequence,) = fill(place, "followed", [b"first"])
    with start(place, "read", "followed", "1", "--cursor", "tail", "--follow") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        later = fill(place, "followed", [b"second"])
        assert process.stdout.readline() == b"second\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"tmqp: interrupted\n")
    (there,) = rows(tmqp(place, "cursor", "ls", "followed", "1", "--json"))
    # The write itself may have been interrupted: then the line comes again, and none is missed.
    assert there["sequence"] in (sequence, later[-1])


@pytest.mark.parametrize(
    "words",
    [
        ("read", "orders", "1", "--cursor", "a", "--first", "3"),
        ("read", "orders", "1", "--follow"),
        ("read", "orders", "1", "--first", "-1"),
        ("cursor", "open", "orders", "1", "a", "--start", "middle"),
    ],
)
def test_what_was_typed_wrongly(place: str, words: tuple[str, ...]) -> None:
    assert tmqp(place, *words).exit_code == 2


def test_a_range_that_is_not_there_and_a_queue_that_is_not(place: str) -> None:
    (sequence,) = fill(place, "short", [b"x"])
    gone = tmqp(place, "read", "short", "1", "--first", str(sequence + 1_000))
    assert gone.exit_code == 1
    assert "416" in gone.stderr
    assert tmqp(place, "read", "short", "9").exit_code == 1
    assert tmqp(place, "cursor", "ls", "nobody", "1").exit_code == 1


def test_a_server_that_keeps_nothing() -> None:
    with running_server() as (place, _):
        refused = tmqp(place, "read", "orders", "1")
        assert refused.exit_code == 1
        assert "501" in refused.stderr
