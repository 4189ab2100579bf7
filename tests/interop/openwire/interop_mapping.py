"""One queue for JMS, TMQP, STOMP and Spark: text, bytes, map, properties, priority and expiry, as
the guide's tables say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

import tmqp_spark
from tests.interop.openwire.clients import VERSIONS, program
from tests.interop.openwire.talking import MARKS
from tests.tmqp_server.stomp_clients import Clients, in_thread
from tests.tmqp_server.test_doors import config
from tests.tmqp_server.test_small_doors import port_of
from tmqp.models import QueueOptions
from tmqp_client import Client, connect
from tmqp_server import running

pytestmark = MARKS

_MOST_S: Final = 60
_PATIENCE: Final = 10.0
_DOORS: Final = [
    {"protocol": "openwire", "listen": ["127.0.0.1:0"]},
    {"protocol": "stomp", "listen": ["127.0.0.1:0"]},
]
_MAP: Final = {"name": "tea", "count": 3, "raw": "AQI="}


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: Java and Spark take a while."""
    return "asyncio"


async def jms(port: int, way: str) -> list[str]:
    """What the program prints."""
    words, folder = program("Mapped", VERSIONS[0])
    url = f"tcp://127.0.0.1:{port}"
    with anyio.fail_after(_MOST_S):
        done = await anyio.run_process([*words, url, way], cwd=folder)
    lines = done.stdout.decode().splitlines()
    assert lines[-1] == "END"
    return lines[:-1]


def read_by_spark(address: str) -> list[dict[str, Any]]:
    """The rows of the queue."""
    settings = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    spark = tmqp_spark.session("mapping", "local[1]", settings)
    try:
        found = (
            spark.read.format("tmqp")
            .options(url=address, subscribe="mapped/0", includeHeaders="true")
            .load()
        )
        return [row.asDict() for row in found.orderBy("seq").collect()]
    finally:
        spark.stop()


def browsed_by_stomp(clients: Clients) -> list[tuple[Any, dict[str, str]]]:
    """What a browser of STOMP sees."""
    client = clients.make(auto_decode=False)
    client.subscribe("/queue/mapped", browser="true")
    found: list[tuple[Any, dict[str, str]]] = []
    while True:
        frame = client.take()
        if frame.headers.get("browser") == "end":
            return found
        found.append((frame.body, frame.headers))


async def test_what_jms_sends_tmqp_stomp_and_spark_read(tmp_path: Path) -> None:
    async with (
        running(config(*_DOORS, data=tmp_path)) as server,
        connect(server.addresses[0]) as client,
    ):
        options = QueueOptions(durable=True, retain_time_ms=3_600_000)
        await client.create_queue("mapped", 0, options, status="roundrobin")
        began = datetime.now(UTC)
        await jms(port_of(server, "openwire"), "send")

        rows = await anyio.to_thread.run_sync(read_by_spark, str(server.addresses[0]))
        values = [bytes(row["value"]) for row in rows]
        assert values[0] == "täxt".encode()
        assert values[1] == b"\0\1\xff"
        assert json.loads(values[2]) == _MAP
        assert values[-1] == b"urgent"
        assert abs(rows[0]["timestamp"].timestamp() - began.timestamp()) < _MOST_S
        headers = {each["key"]: each["value"] for each in rows[0]["headers"]}
        assert (headers["colour"], headers["n"], headers["Type"]) == ("red", "7", "kind")

        frames = await in_thread(browsed_by_stomp, port_of(server, "stomp"))
        bodies = [body for body, _ in frames]
        assert bodies == ["täxt".encode(), b"\0\1\xff", values[2], b"urgent"], "as they came"
        text, urgent = frames[0][1], frames[-1][1]
        assert (urgent["priority"], int(urgent["expires"]) > 0) == ("9", True)
        assert (text["correlation-id"], text["type"]) == ("c-1", "kind")
        assert (text["colour"], text["n"], text["z"], text["d"]) == ("red", "7", "true", "1.5")
        assert text["reply-to"] == "/queue/answers"

        found = await taken_by_tmqp(client, 4)
        assert [payload for payload, _ in found] == [bodies[-1], *bodies[:-1]]
        said = found[1][1]
        assert (said["Correlation-Id"], said["Type"]) == ("c-1", "kind")
        assert (said["colour"], said["n"]) == ("red", "7")
        assert said["Content-Type"] == "text/plain"
        assert found[2][1]["Content-Type"] == "application/octet-stream"
        assert found[3][1]["Content-Type"] == "application/json"
        assert "z" in said["Property-Types"]
        assert "Priority" not in found[0][1], "the mark of high priority says 9"
        assert "Expires" in found[0][1]


async def taken_by_tmqp(client: Client, count: int) -> list[tuple[bytes, dict[str, str]]]:
    """So many messages of the queue, with their headers."""
    found: list[tuple[bytes, dict[str, str]]] = []
    with anyio.fail_after(_PATIENCE):
        async with client.consume("mapped", 0) as messages:
            async for message in messages:
                found.append((message.payload, dict(message.headers)))
                if len(found) == count:
                    break
    return found


async def test_what_tmqp_and_stomp_send_jms_reads() -> None:
    def send(clients: Clients) -> None:
        headers = {"colour": "red", "priority": "3", "correlation-id": "c-2"}
        clients.make().send("/queue/back", "by stomp", "1", **headers)

    async with (
        running(config(*_DOORS)) as server,
        connect(server.addresses[0]) as client,
    ):
        await in_thread(send, port_of(server, "stomp"))
        typed = [("colour", "blue"), ("n", "7"), ("Property-Types", "n=i")]
        await client.push("back", 0, b"by tmqp", headers=[*typed, ("Correlation-Id", "c-3")])
        await client.push("back", 0, b"\xff\xfe", headers=[("Content-Type", "image/png")])
        assert await jms(port_of(server, "openwire"), "take") == [
            "text by stomp 3 c-2 false {colour=red}",
            "text by tmqp 4 c-3 false {colour=blue, n=7}",
            "bytes 2 4 null false {}",
        ]
