"""Prometheus scrapes our server, with a token, and answers with what the server has counted."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest

import tmqp_client
from tests.interop.building import EXPECTED
from tests.ports import free_port
from tmqp_server import ServerConfig, running
from tmqp_server.access.tokens import hash_token
from tmqp_server.config import read_config

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        shutil.which("prometheus") is None, reason="prometheus is not installed (Debian)"
    ),
    pytest.mark.skipif(
        bool(EXPECTED) and "prometheus" not in EXPECTED, reason="only other clients are asked for"
    ),
]

TOKEN: Final = "a-token-of-prometheus"
CONFIG: Final = {
    "listen": ["tmq://127.0.0.1:0"],
    "admin": {"listen": "127.0.0.1:0", "metrics_queues": ["orders"]},
    "access": {
        "roles": {
            "monitor": {"rights": ["see-metrics"]},
            "work": {"rights": ["push", "join"], "channels": ["*"]},
        },
        "tokens": [{"name": "prometheus", "hash": hash_token(TOKEN), "roles": ["monitor"]}],
        "anonymous": {"roles": ["work"]},
    },
}
#: Seconds in which Prometheus has started and scraped.
_MOST_S: Final = 60
_RULES: Final = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "alerts.yml"


def _written(folder: Path, target: str, token: str) -> Path:
    """Prometheus' configuration."""
    path = folder / "prometheus.yml"
    job = {
        "job_name": "tmqp",
        "authorization": {"credentials": token},
        "static_configs": [{"targets": [target]}],
    }
    rules = [str(_RULES)]
    settings = {"global": {"scrape_interval": "1s"}, "scrape_configs": [job], "rule_files": rules}
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


async def _asked(http: httpx.AsyncClient, query: str) -> list[Any]:
    """What a query finds; nothing while Prometheus does not answer."""
    try:
        answer = await http.get("/api/v1/query", params={"query": query})
        return list(answer.json()["data"]["result"]) if answer.status_code == 200 else []
    except httpx.TransportError:
        return []


async def _found(http: httpx.AsyncClient, query: str) -> list[Any]:
    """The same, as soon as there is something."""
    with anyio.fail_after(_MOST_S):
        while not (found := await _asked(http, query)):  # noqa: ASYNC110 - of another program
            await anyio.sleep(0.2)
    return found


@pytest.mark.parametrize(("token", "up"), [(TOKEN, "1"), ("a-wrong-one", "0")])
async def test_prometheus_scrapes_the_server(tmp_path: Path, token: str, up: str) -> None:
    async with running(ServerConfig(**read_config(CONFIG))) as server:
        (admin,) = server.door_addresses("admin")
        target = admin.partition("://")[2]
        async with tmqp_client.connect(str(server.addresses[0])) as client:
            for _ in range(7):
                await client.push("orders", 1, b"x")
        port = free_port()
        command = [
            "prometheus",
            f"--config.file={_written(tmp_path, target, token)}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
        program = subprocess.Popen(  # noqa: ASYNC220 - it is quick
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
                (state,) = await _found(http, "up")
                assert state["value"][1] == up
                if up == "0":
                    return
                (pushed,) = await _found(http, "tmqp_queue_received_total")
                assert pushed["metric"]["channel"] == "orders"
                assert pushed["value"][1] == "7"
                (kind,) = (
                    await http.get("/api/v1/metadata", params={"metric": "tmqp_received_bytes"})
                ).json()["data"]["tmqp_received_bytes"]
                assert kind["type"] == "counter"
        finally:
            program.terminate()
            program.wait()
