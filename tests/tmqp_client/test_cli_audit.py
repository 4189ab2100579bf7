"""``tmqp audit`` with a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.tmqp_client.admin_place import Place, admin_place
from tmqp.models import QueueOptions
from tmqp_client import sync

pytestmark = pytest.mark.cold


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with admin_place(tmp_path_factory.mktemp("audit")) as found:
        yield found


def test_who_changed_what_is_told_the_latest_last(place: Place) -> None:
    with sync.connect(place.tcp, client_id="clerk") as client:
        client.create_queue("orders", 1, status="push")
        client.update_queue("orders", 1, QueueOptions(message_limit=5))
    result = place.run("audit", "-n", "2")
    assert result.exit_code == 0, result.output
    made, changed = result.stdout.splitlines()
    assert "create-queue orders/1" in made
    assert "  200  " in changed
    assert "(tmqp 127.0.0.1:" in changed
    assert "update-queue orders/1" in changed
    assert "message_limit=5" in changed
    lines = place.run("audit", "--json").stdout.splitlines()
    assert [json.loads(each)["action"] for each in lines[-2:]] == ["create-queue", "update-queue"]


def test_what_was_removed_is_told(place: Place) -> None:
    with sync.connect(place.tcp, client_id="clerk") as client:
        client.create_router("r")
        client.remove_router("r")
    line = place.run("audit", "-n", "1").stdout
    assert "remove-router r  was enabled=True was method=distribute was bindings=0" in line
