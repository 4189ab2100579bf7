"""``tmqp slowlog`` and ``tmqp trace`` with a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from tests.tmqp_client.admin_place import Place, admin_place
from tmqp_client import sync
from tmqp_client.cli.slow import _moment, _shown

pytestmark = pytest.mark.cold


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with admin_place(tmp_path_factory.mktemp("slow")) as found:
        yield found


def test_what_was_slow_is_told(place: Place) -> None:
    result = place.run("slowlog")
    assert result.exit_code == 0, result.output
    assert "turns took more than 50 ms" in result.stdout
    told = json.loads(place.run("slowlog", "--json").stdout)
    assert told["consumers"] == []


def test_a_client_that_is_not_there_is_not_traced(place: Place) -> None:
    result = place.run("trace", "a/b c", "--seconds", "1")
    assert result.exit_code == 3
    assert "no client with this id is connected" in result.stderr


def test_a_line_of_a_trace_is_read_by_people() -> None:
    head = {"channel": "c", "queue_id": 1, "message_id": "m1"}
    line = {"at_ms": 1_000, "way": "in", "what": "Push", "head": head}
    assert _shown(line) == f"{_moment(1_000)} > Push channel=c queue_id=1 message_id=m1"
    assert _shown({**line, "way": "end", "head": {}}).endswith(" - Push")


@pytest.mark.long
def test_what_a_client_does_is_shown_while_it_does_it(place: Place) -> None:
    with sync.connect(place.tcp, client_id="clerk") as client:
        is_over = threading.Event()

        def push() -> None:
            while not is_over.wait(0.05):
                client.push("orders", 1, b"secret")

        worker = threading.Thread(target=push)
        worker.start()
        try:
            result = place.run("trace", "clerk", "--seconds", "1", "--json")
        finally:
            is_over.set()
            worker.join()
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert "secret" not in result.stdout
    assert [each["number"] for each in lines] == list(range(1, len(lines) + 1))
    pushes = [each["head"] for each in lines if each["what"] == "Push"]
    assert len(pushes) > 3
    assert {each["channel"] for each in pushes} == {"orders"}
    assert place.run("trace", "clerk").exit_code == 3, "it is not connected any more"
