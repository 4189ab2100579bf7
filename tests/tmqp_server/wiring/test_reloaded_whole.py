"""A reload is applied as a whole or not at all: bugs that would apply it by half are planted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tmqp_server.access.auth import TableAccess
from tmqp_server.config import ConfigError, ServerConfig, read_config
from tmqp_server.wiring import app, reloading
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.auditing import Audit
from tmqp_server.wiring.running import running


def settings_of(number: int, directory: Path, **more: object) -> ServerConfig:
    """One of two configurations that differ in everything that a reload changes but TLS."""
    data: dict[str, object] = {
        "listen": ["tmq://127.0.0.1:0"],
        "access": {
            "roles": {"r": {"rights": ["push"]}},
            "tokens": [{"name": f"n{number}", "token": f"t{number}", "roles": ["r"]}],
        },
        "audit": {"file": str(directory / f"audit-{number}"), "required": bool(number)},
        "broker": {"max_sessions": 500 + number, "max_total_bytes": 100_000_000 + number},
        "drain_timeout_s": 10.0 + number,
        "max_connections": 100 + number,
        "max_connections_per_address": 50 + number,
        "outbound": {"high_water_bytes": 70_000 + number},
        "rates": {"client_bytes_per_s": 1_000_000 + number, "address_connections_per_s": number},
        "log": {"level": ("info", "warning")[number]},
        "slow_turn_ms": 100 + number,
        "shutdown_timeout_s": 1.0 + number,
        **more,
    }
    return ServerConfig(**read_config(data))


class Judged:
    """A server that runs, and what a reload has made of it.

    ``levels`` are those that its log was set up with.
    """

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        self.levels: list[str] = []
        # The log is the whole process's, so it is not changed.
        monkeypatch.setattr(reloading, "set_up_log", lambda log: self.levels.append(log.level))

    def found(self) -> dict[str, object]:
        """What each part of the server goes by, told by the part itself."""
        server, turn = self.server, self.server._turn
        access = server.access
        assert isinstance(access, TableAccess)
        rates = turn.rates
        return {
            "access": list(access._by_name),
            "audit.file": server.audit.file._path[-1:],
            "audit.required": server.audit.auditor._required,
            "broker": server.broker.limits.max_sessions - 500,
            "memory": server.broker._core.most_bytes - 100_000_000,
            "limits that are shown": server.world.limits.max_sessions - 500,
            "drain": turn.draining.bound_s - 10,
            "connections": server._connected_now._most - 100,
            "connections of an address": server._connected_now._most_per_host - 50,
            "world": server.world.max_connections - 100,
            "outbound": turn.marks.high_bytes - 70_000,
            "rates": None if rates is None else rates.limits.client_bytes - 1_000_000,
            "arrivals": server._arrivals.limits.address_connections,
            "slow": round(turn.pulse.slow_s * 1_000) - 100,
            "config": server.config.shutdown_timeout_s - 1.0,
        }

    def wrong(self, number: int) -> list[str]:
        """What is not as one of the configurations has it."""
        found = self.found()
        right: dict[str, object] = {
            **dict.fromkeys(found, number),
            "access": [f"n{number}"],
            "audit.file": str(number),
            "audit.required": bool(number),
        }
        return [f"{name}: {found[name]}" for name in found if found[name] != right[name]]


async def judge(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Reload what cannot be used, and then what can; what is wrong after that."""
    async with running(settings_of(0, directory)) as server:
        judged = Judged(server, monkeypatch)
        wrong = judged.wrong(0)
        nowhere = {"certificate": "/nowhere", "key": "/nowhere"}
        unwritable = {"file": str(directory / "no folder" / "audit")}
        tight = {"max_sessions": 501, "max_acknowledge_timeout_ms": 1}
        for broken in (
            {"tls": nowhere},
            {"audit": unwritable},
            {"broker": tight},
            {"max_connections": 0},
        ):
            if reloading.reload_config(server, partial(settings_of, 1, directory, **broken)):
                wrong.append(f"{broken} is used")
            wrong += judged.wrong(0)
        if not reloading.reload_config(server, partial(settings_of, 1, directory)):
            wrong.append("what is right is not used")
        wrong += judged.wrong(1)
        if judged.levels != ["warning"]:
            wrong.append(f"levels of the log: {judged.levels}")
    return wrong


Patch = pytest.MonkeyPatch


def _nothing(*_: object) -> None:
    """Is done."""


def access_stays(patch: Patch) -> None:
    """Who had access keeps it."""
    patch.setattr(TableAccess, "reload", lambda _self, _config: lambda _who: False)


def access_comes_first(patch: Patch) -> None:
    """Access is changed before the rest is checked."""
    right: Callable[..., bool] = reloading.reload_config

    def wrong(server: Server, read: Callable[[], ServerConfig]) -> bool:
        access = server.access
        assert isinstance(access, TableAccess)
        with suppress(ConfigError):
            access.reload(read().access)
        return right(server, read)

    patch.setattr(reloading, "reload_config", wrong)


def audit_stays(patch: Patch) -> None:
    """Audit goes on as before."""
    patch.setattr(Audit, "use", _nothing)


def audit_comes_half(patch: Patch) -> None:
    """What audit requires is changed before its file is opened."""
    right = Audit.use

    def wrong(self: Audit, settings: Any) -> None:
        self.auditor.change(required=not self.auditor._required)
        right(self, settings)

    patch.setattr(Audit, "use", wrong)


def limits_stay(patch: Patch) -> None:
    """The limits of the turn stay."""
    patch.setattr(app, "limit_turn", _nothing)


def rates_stay(patch: Patch) -> None:
    """Rates stay."""
    patch.setattr(Server, "_limit_rates", _nothing)


def nothing_is_applied(patch: Patch) -> None:
    """The server is told nothing."""
    patch.setattr(Server, "apply", _nothing)


FAULTS: tuple[Callable[[Patch], None], ...] = (
    access_stays,
    access_comes_first,
    audit_stays,
    audit_comes_half,
    limits_stay,
    rates_stay,
    nothing_is_applied,
)


async def test_a_reload_is_applied_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await judge(tmp_path, monkeypatch) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.__name__))
async def test_a_reload_by_half_is_found(
    fault: Callable[[Patch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    assert await judge(tmp_path, monkeypatch) != []
