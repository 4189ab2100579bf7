"""The audit of a server on real sockets: whatever door a change comes by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tmqp.models import QueueOptions
from tmqp_client import ConnectFailed, OperationFailed, connect
from tmqp_server.config import ConfigError, ServerConfig, read_config
from tmqp_server.engine.options import QueueOptions as OldOptions
from tmqp_server.io import audit_file
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.reloading import reload_config
from tmqp_server.wiring.running import running

pytestmark = pytest.mark.cold

ACCESS = {
    "roles": {
        "few": {"rights": ["create-queue", "update-queue", "push", "join"], "channels": ["c"]}
    },
    "tokens": [
        {"name": "ann", "token": "token of ann", "roles": ["few"]},
        {"name": "boss", "token": "token of boss", "roles": ["admin"]},
    ],
}


def config_of(**more: Any) -> ServerConfig:
    return ServerConfig(**read_config({"listen": ["tmq://127.0.0.1:0"], **more}))


def told(server: Server) -> list[tuple[Any, ...]]:
    keys = ("who", "door", "action", "subject", "code")
    return [tuple(each[key] for key in keys) for each in server.world.audit]


async def test_each_change_is_one_line_by_whatever_door_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    config = config_of(
        access=ACCESS,
        audit={"file": str(path), "required": True},
        web={"listen": ["http://127.0.0.1:0"]},
    )
    async with running(config) as server:
        there = str(server.addresses[0])
        async with connect(there, client_id="web-1", token="token of ann") as client:
            await client.create_queue("c", 1, status="push")
            await client.update_queue("c", 1, QueueOptions(message_limit=50))
            await client.push_many("c", 1, [b"x"] * 20)
            with pytest.raises(OperationFailed):
                await client.remove_queue("c", 1)
            async with client.consume("c", 1) as messages:
                await messages.get()
        with pytest.raises(ConnectFailed):
            async with connect(there, client_id="x", token="wrong", reconnect=None):
                raise AssertionError("nobody has that")
        async with httpx.AsyncClient(headers={"Authorization": "Bearer token of boss"}) as client:
            url = f"{server.web_addresses[0]}/api/v1/channels/c/queues/1/messages"
            assert (await client.get(url)).status_code == 200
        assert reload_config(server, lambda: config)
    found = [each for each in told(server) if each[1] != "http" or each[2] != "log-in"]
    assert found[:6] == [
        ("ann", "tmqp", "log-in", "web-1", 200),
        ("ann", "tmqp", "create-queue", "c/1", 200),
        ("ann", "tmqp", "update-queue", "c/1", 200),
        ("ann", "tmqp", "remove-queue", "c/1", 401),
        ("ann", "tmqp", "log-out", "", 200),
        ("x", "tmqp", "log-in", "x", 401),
    ]
    assert ("boss", "http", "browse", "c/1", 200) in found
    assert ("SIGHUP", "", "reload", "", 200) in found
    lines = [json.loads(each) for each in path.read_text("ascii").splitlines()]
    assert lines == list(server.world.audit)
    (update,) = [each for each in lines if each["action"] == "update-queue"]
    assert update["after"]["message_limit"] == 50
    assert update["before"] == {"message_limit": OldOptions().message_limit}


async def test_a_server_without_access_audits_changes_and_no_log_ins() -> None:
    async with (
        running(config_of()) as server,
        connect(str(server.addresses[0]), client_id="me") as client,
    ):
        await client.create_queue("c", 1, status="push")
        await client.push("c", 1, b"x")
        assert [each.payload async for each in client.peek("c", 1)] == [b"x"]
    first, *looks = [each[2:] for each in told(server)]
    assert first == ("create-queue", "c/1", 200)
    assert set(looks) == {("browse", "c/1", 200)}, "one for each portion"


async def test_where_it_is_required_and_cannot_be_written_changes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [True]
    real = audit_file._write

    def write(file: int, data: bytes) -> int:
        if fails[0]:
            raise OSError(28, "No space left on device")
        return real(file, data)

    monkeypatch.setattr(audit_file, "_write", write)
    audit = {"file": str(tmp_path / "audit.jsonl"), "required": True}
    async with (
        running(config_of(audit=audit)) as server,
        connect(str(server.addresses[0])) as client,
    ):
        await client.create_queue("c", 1, status="push")  # nobody knew yet
        with pytest.raises(OperationFailed) as refused:
            await client.create_queue("c", 2, status="push")
        assert refused.value.code == 503
        await client.push("c", 1, b"messages are no changes")
        fails[0] = False
        await client.create_queue("c", 3, status="push")
    assert [each[3:] for each in told(server)] == [("c/1", 200), ("c/2", 503), ("c/3", 200)]


async def test_the_audit_can_be_off_and_is_reloaded() -> None:
    async with (
        running(config_of(audit={"enabled": False})) as server,
        connect(str(server.addresses[0])) as client,
    ):
        await client.create_queue("c", 1, status="push")
        assert not server.world.audit
        assert reload_config(server, config_of)
        await client.create_queue("c", 2, status="push")
        assert [each[2] for each in told(server)] == ["reload", "create-queue"]
        nowhere = {"file": "/nowhere/audit"}
        assert not reload_config(server, lambda: config_of(audit=nowhere))
        await client.create_queue("c", 3, status="push")
        assert told(server)[-1][3] == "c/3"


@pytest.mark.parametrize(
    ("audit", "words"),
    [
        ({"required": True}, "audit.required needs audit.file"),
        ({"enabled": 1}, "audit.enabled is true or false"),
        ({"file": 7}, "audit.file must be the name of a file"),
        ({"flie": "x"}, "did you mean audit.file"),
    ],
)
def test_what_is_wrong_with_the_table_is_one_sentence(audit: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config_of(audit=audit)
