"""The command ``tmqp cell``; what the client does is tested with the door of Throttr."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import tmqp


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


def told(place: str, *words: str, code: int = 0, given: bytes | None = None) -> str:
    """What a command prints; it must end with this exit code."""
    ended = tmqp(place, "cell", *words, given=given)
    assert ended.exit_code == code, ended.output
    return ended.stdout.strip()


def test_a_counter_is_made_changed_and_counted_down(place: str) -> None:
    told(place, "make", "calls", "ann", "5", "--ttl", "60")
    told(place, "make", "calls", "ann", "--ttl", "60", code=1)
    assert told(place, "get", "calls", "ann") == "5"
    assert told(place, "add", "calls", "ann") == "6"
    assert json.loads(told(place, "subtract", "calls", "ann", "4", "--json")) == {"count": 2}
    told(place, "subtract", "calls", "ann", "3", code=1)
    told(place, "set", "calls", "ann", "9")
    assert told(place, "get", "calls", "ann") == "9"
    told(place, "rm", "calls", "ann")
    for words in (
        ("rm", "ann"),
        ("get", "ann"),
        ("info", "ann"),
        ("add", "ann"),
        ("set", "ann", "1"),
    ):
        told(place, words[0], "calls", *words[1:], code=1)


def test_the_calls_of_a_minute_are_counted_from_a_shell(place: str) -> None:
    words = ("subtract", "limit", "bob", "--initial", "2", "--ttl", "60")
    assert [told(place, *words), told(place, *words)] == ["1", "0"]
    told(place, *words, code=1)


def test_a_value_is_put_read_and_listed(place: str) -> None:
    told(place, "put", "sessions", "ann", "since noon", "--ttl", "600")
    told(place, "put", "sessions", "bob", "-", "--ttl", "600", given=b"\xff")
    assert told(place, "get", "sessions", "ann") == "since noon"
    found = json.loads(told(place, "get", "sessions", "bob", "--json"))
    assert 590 < found.pop("ttl_s") <= 600
    assert found == {"space": "sessions", "key": "bob", "payload_base64": "/w=="}
    told(place, "add", "sessions", "ann", code=1)
    listed = [json.loads(line) for line in told(place, "ls", "sessions", "--json").splitlines()]
    assert [(each["key"], each["kind"], each["bytes"]) for each in listed] == [
        ("ann", "value", 10),
        ("bob", "value", 1),
    ]
    assert told(place, "ls", "nothing") == ""
    shown = json.loads(told(place, "info", "sessions", "ann", "--json"))
    assert (shown["reads"], shown["writes"]) == (1, 1)


def test_a_cell_lives_as_long_as_it_is_told(place: str) -> None:
    def left_s() -> float:
        return float(json.loads(told(place, "get", "times", "k", "--json"))["ttl_s"])

    told(place, "make", "times", "k", "--ttl", "100")
    told(place, "ttl", "times", "k", "1000")
    assert 900 < left_s() <= 1_000
    told(place, "ttl", "times", "k", "1000", "--extend")
    assert 1_900 < left_s() <= 2_000
    told(place, "ttl", "times", "k", "3000", "--shorten")
    told(place, "get", "times", "k", code=1)


@pytest.mark.parametrize(
    "words",
    [
        ("make", "s", "k"),
        ("make", "s", "k", "-1", "--ttl", "1"),
        ("make", "s", "k", "--ttl", "nan"),
        ("add", "s", "k", "--initial", "1"),
        ("put", "", "k", "v", "--ttl", "1"),
    ],
)
def test_what_was_typed_wrongly_is_told(place: str, words: tuple[str, ...]) -> None:
    told(place, *words, code=2)
