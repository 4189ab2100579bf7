"""What operators do from afar: the log and how much of it there is, TLS, backups."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.tmqp_server.access.kept import Kept
from tests.tmqp_server.admin.api_stage import ApiStage
from tests.tmqp_server.admin.stage import value_of
from tmqp_client import connect
from tmqp_server import ServerConfig, running
from tmqp_server.access.auditing import Auditor
from tmqp_server.config import parse_config
from tmqp_server.settings.log import LogSettings
from tmqp_server.storage.sqlite import SqliteStore
from tmqp_server.wiring.log_lines import LogLines, log_level, set_log_level
from tmqp_server.wiring.logs import set_up_log


class Desk:
    """Makes no backups."""

    def __init__(self, *, possible: bool = True) -> None:
        self.possible = possible
        self.last: Mapping[str, Any] | None = None
        self.complete_s: float | None = None
        self.begun: list[str] = []

    def begin(self, directory: str) -> bool:
        """Note it."""
        if self.begun:
            return False
        self.begun.append(directory)
        self.last = {
            "name": "now",
            "running": True,
            "complete": False,
            "began_at_ms": 1,
            "ended_at_ms": None,
            "said": "",
        }
        return True


# --- The log --------------------------------------------------------------------------------------


def test_the_last_lines_are_kept_with_their_numbers() -> None:
    lines = LogLines()
    for number in range(1_100):
        lines.emit(logging.makeLogRecord({"msg": f"line {number}"}))
    lines.emit(logging.makeLogRecord({"msg": "%d", "args": ("no number",)}))
    lines.begin()
    logger = logging.getLogger("tmqp_server.test")
    try:
        logger.warning("%s is %s", "this", "long" * 1_000)
        try:
            raise KeyError(5)
        except KeyError:
            logger.exception("it failed")
    finally:
        lines.end()
    logger.error("nobody hears this")
    found = lines.last()
    assert (len(found), found[-1]["number"]) == (1_000, 1_103)
    assert [each["text"][:7] for each in found[-4:]] == ["line 10", "%d", "this is", "it fail"]
    assert len(found[-2]["text"]) == 2_000
    assert (found[-1]["exception"], found[-2]["level"]) == ("KeyError", "warning")


def test_the_log_is_shown_from_a_line_and_a_level_on() -> None:
    stage = ApiStage()
    lines = [
        {"number": number, "at_ms": 1, "level": level, "logger": "x", "text": "t"}
        for number, level in ((7, "debug"), (8, "info"), (9, "critical"), (10, "warning"))
    ]
    stage.world.log = lambda: lines
    caller = stage.caller()

    def numbers(query: str) -> list[int]:
        return [each["number"] for each in caller.get(f"/api/v1/logs{query}").items]

    assert numbers("") == [7, 8, 9, 10]
    assert numbers("?level=warning") == [9, 10]
    assert numbers("?after=8") == [9, 10]
    assert numbers("?max=1") == [10]
    assert caller.get("/api/v1/logs?after=10").json == {"items": [], "last": 10}
    assert caller.get("/api/v1/logs?level=loud").status == 400


def test_the_level_that_an_operator_sets_holds_until_the_configuration_is_read_again() -> None:
    set_log_level("debug")
    assert log_level() == "debug"
    set_up_log(LogSettings(level="warning"))
    assert log_level() == "warning"


def test_how_much_is_logged_is_told_and_changed_and_audited() -> None:
    stage = ApiStage()
    levels = ["info"]
    kept = Kept()
    stage.hub.auditor = Auditor(kept)
    stage.world.log_level = lambda: levels[-1]
    stage.world.set_log_level = levels.append
    caller = stage.caller()
    assert caller.ask("PUT", "/api/v1/server/log-level", {"level": "debug"}).status == 200
    assert caller.get("/api/v1/server/log-level").json == {"level": "debug"}
    assert caller.ask("PUT", "/api/v1/server/log-level", {"level": "loud"}).status == 422
    assert [each[1:] for each in kept.told()] == [("set-log-level", "", 200)]
    assert kept.records[0].after == {"level": "debug"}
    assert kept.records[0].before == {"level": "info"}


# --- TLS ------------------------------------------------------------------------------------------


def test_a_certificate_is_read_again_and_a_bad_one_leaves_the_old_one() -> None:
    stage = ApiStage()
    caller = stage.caller()
    assert caller.get("/api/v1/server/tls").json["enabled"] is False
    assert caller.ask("POST", "/api/v1/server/tls").status == 409
    stage.world.tls = lambda: {
        "minimum_version": "1.3",
        "ciphers": "",
        "client_certificates": "none",
    }
    stage.world.certificate_expires_s = lambda: 2.0
    wrong = ["", "the key does not fit"]
    stage.world.renew_tls = lambda: wrong.pop(0)
    shown = caller.ask("POST", "/api/v1/server/tls").json
    assert (shown["certificate_expires_at_ms"], shown["minimum_version"]) == (2_000, "1.3")
    refused = caller.ask("POST", "/api/v1/server/tls")
    assert refused.status == 409
    assert "the old certificate stays in use: the key does not fit" in refused.json["detail"]


# --- Backups --------------------------------------------------------------------------------------


def test_a_backup_is_made_where_the_configuration_says_and_nowhere_else() -> None:
    for desk, directory, status in (
        (None, "/backups", 501),
        (Desk(possible=False), "/backups", 501),
        (Desk(), "", 501),
        (Desk(), "/backups", 202),
    ):
        stage = ApiStage(backups=directory)
        stage.world.backups = desk
        caller = stage.caller()
        answer = caller.ask("POST", "/api/v1/server/backup")
        assert answer.status == status
        if desk is not None and status == 202:
            assert desk.begun == ["/backups"]
            assert answer.json == {"possible": True, "last": desk.last}
            assert caller.ask("POST", "/api/v1/server/backup").status == 409


async def ended(web: httpx.AsyncClient) -> dict[str, Any]:
    """The backup that runs, when it has ended."""
    while True:
        last: dict[str, Any] = (await web.get("server/backup")).json()["last"]
        if not last["running"]:
            return last
        await anyio.sleep(0.05)


async def gone(web: httpx.AsyncClient, path: str) -> None:
    """Until there is nothing at a path."""
    while (await web.get(path)).status_code != 404:  # noqa: ASYNC110 - nothing tells of it
        await anyio.sleep(0.1)


@pytest.mark.long
async def test_a_running_server_is_backed_up_and_tells_its_log(tmp_path: Path) -> None:
    config = f"""
listen = ["tmq://127.0.0.1:0"]
data = "{tmp_path / "data"}"

[admin]
listen = ["127.0.0.1:0"]
backups = "{tmp_path / "copies"}"
"""
    (tmp_path / "copies").mkdir()
    async with running(ServerConfig(**parse_config(config))) as server:
        (address,) = server.door_addresses("admin")
        url = f"http://{address.rpartition('/')[2]}/api/v1"
        client = connect(str(server.addresses[0]))
        async with httpx.AsyncClient(base_url=url) as web, client:
            await web.put("server/log-level", json={"level": "info"})
            queue = {"status": "pull", "durable": True}
            await web.put("channels/orders/queues/1", json=queue)
            await client.push("orders", 1, "hello")
            assert (await web.post("server/backup")).status_code == 202
            with anyio.fail_after(30):
                last = await ended(web)
            assert last["complete"], last
            told = (await web.get(url.replace("/api/v1", "/metrics"))).text
            when_s = value_of(told, "tmqp_storage_backup_timestamp_seconds")
            assert int(when_s * 1_000) == last["ended_at_ms"]
            lines = (await web.get("logs?level=info")).json()["items"]
            assert any(f"backup {tmp_path}" in each["text"] for each in lines)
            made = (await web.post("consumers", json={"channel": "orders", "idle_s": 1})).json()
            with anyio.fail_after(10):
                await gone(web, f"consumers/{made['id']}")
    logging.getLogger("tmqp_server").setLevel(logging.NOTSET)
    store = SqliteStore(tmp_path / "copies" / last["name"], floor_bytes=0)
    try:
        assert store.check().messages == 1
    finally:
        store.close()
