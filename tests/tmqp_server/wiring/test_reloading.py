"""A configuration that is read again while the server runs."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.certificates import make_certificate
from tmqp_client import Client, ConnectFailed, ConnectionLost, OperationFailed, connect
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.reloading import changes, reload_config
from tmqp_server.wiring.running import running


def access(*names: str, rights: tuple[str, ...] = ("push", "create-queue")) -> dict[str, Any]:
    return {
        "roles": {"r": {"rights": list(rights), "channels": ["*"]}},
        "tokens": [{"name": each, "token": f"token of {each}", "roles": ["r"]} for each in names],
    }


async def keep_pushing(client: Client) -> None:
    """Push until that fails."""
    while True:
        await client.push("c", 1, b"x")
        await anyio.sleep(0.01)


def config_of(**more: Any) -> ServerConfig:
    return ServerConfig(**read_config({"listen": ["tmq://127.0.0.1:0"], **more}))


def reload_to(server: Server, **more: Any) -> bool:
    """Reload a configuration that differs in this."""
    return reload_config(server, lambda: config_of(**more))


async def test_rights_that_are_taken_away_are_gone_at_once() -> None:
    config = config_of(access=access("a"))
    async with (
        running(config) as server,
        connect(str(server.addresses[0]), token="token of a") as client,
    ):
        await client.push("c", 1, b"x")
        assert reload_to(server, access=access("a", rights=("join",)))
        with pytest.raises(OperationFailed):
            await client.create_queue("c", 2)


async def test_clients_whose_token_is_removed_are_disconnected_and_new_ones_get_in() -> None:
    config = config_of(access=access("a", "b"))
    async with running(config) as server:
        there = str(server.addresses[0])
        async with (
            connect(there, token="token of a", reconnect=None) as gone,
            connect(there, token="token of b") as stays,
        ):
            assert reload_to(server, access=access("b", "c"))
            with anyio.fail_after(10), pytest.raises(ConnectionLost):
                await keep_pushing(gone)
            await stays.push("c", 1, b"x")
            async with connect(there, token="token of c") as new:
                await new.push("c", 1, b"x")
        with pytest.raises(ConnectFailed):
            async with connect(there, token="token of a", reconnect=None):
                pass


async def test_a_broken_configuration_changes_nothing_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = config_of(access=access("a"))
    broken: dict[str, dict[str, Any]] = {
        "max_connections": {"max_connections": 0},
        "unknown": {"max_conections": 3},
        "access": {"access": {"tokens": [{"name": "a", "roles": ["none"], "token": "x"}]}},
        "limits": {"outbound": {"high_water_bytes": 1}},
        "tls": {"tls": {"certificate": "/nowhere", "key": "/nowhere"}},
    }
    async with running(config) as server:
        for name, more in broken.items():
            caplog.clear()
            assert not reload_to(server, **{"access": access("z"), "max_connections": 5, **more})
            lines = [each for each in caplog.records if each.name == "tmqp_server.config"]
            assert len(lines) == 1, name
            assert "the old one stays" in lines[0].getMessage()
        assert server.config is config
        assert server.world.last_reload_failed
        async with connect(str(server.addresses[0]), token="token of a") as client:
            await client.push("c", 1, b"x")


async def test_limits_of_connections_are_changed() -> None:
    async with running(config_of()) as server:
        there = str(server.addresses[0])
        async with connect(there) as client:
            assert reload_to(server, max_connections=1)
            await client.push("c", 1, b"x")
            with pytest.raises(ConnectFailed):
                async with connect(there, reconnect=None):
                    pass
            assert reload_to(server, max_connections=2)
            async with connect(there):
                pass


async def test_certificates_are_changed_and_no_connection_is_lost(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    first = ssl.create_default_context(cafile=str(certificate))
    tls = {"tls": {"certificate": str(certificate), "key": str(key)}}
    config = ServerConfig(**read_config({"listen": ["tmqs://127.0.0.1:0"], **tls}))
    async with running(config) as server:
        there = f"tmqs://localhost:{server.addresses[0].port}"
        async with connect(there, ssl_context=first) as before:
            await before.push("c", 1, b"x")
            (tmp_path / "new").mkdir()
            newer_key, newer = make_certificate(tmp_path / "new")
            key.write_bytes(newer_key.read_bytes())

            def again() -> ServerConfig:
                return ServerConfig(**read_config({"listen": ["tmqs://127.0.0.1:0"], **tls}))

            assert not reload_config(server, again), "the key is not the certificate's"
            certificate.write_bytes(newer.read_bytes())
            assert reload_config(server, again)
            await before.push("c", 1, b"x")
            second = ssl.create_default_context(cafile=str(newer))
            async with connect(there, ssl_context=second) as after:
                await after.push("c", 1, b"x")
            with pytest.raises(ConnectFailed):
                async with connect(there, ssl_context=first, reconnect=None):
                    pass


def test_the_difference_names_no_secret() -> None:
    old = config_of(access=access("a", "b"), max_connections=5, broker={"max_sessions": 3})
    table = access("b", "c")
    table["tokens"][0]["token"] = "another secret"
    new = config_of(access=table, max_connections=6, log={"level": "debug"})
    now, later = changes(old, new)
    assert sorted(now) == [
        "access: added c; removed a; changed b",
        "broker.max_sessions: 3 -> 10000",
        "log.level: 'info' -> 'debug'",
        "max_connections: 5 -> 6",
    ]
    assert later == []
    assert "secret" not in repr(now)


def test_what_is_equal_is_no_difference() -> None:
    one, other = (config_of(access=access("a"), admin={"listen": "127.0.0.1:1"}) for _ in range(2))
    assert changes(one, other) == ([], [])
