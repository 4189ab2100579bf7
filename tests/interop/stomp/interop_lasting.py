"""Programs with clients of STOMP by others that live through restarts of the server, with a queue
and a durable subscription, in each version of STOMP that they speak."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import stompman

from tests.interop.programs import Program
from tests.interop.stomp.interop_node import SOURCES, packages
from tests.interop.stomp.interop_node import pytestmark as _marks
from tests.tmqp_server.stomp_clients import Clients, config, in_thread
from tmqp_server import running

__all__ = ["packages"]

pytestmark = _marks

VERSIONS: Final = ("1.0", "1.1", "1.2")
_MOST_S: Final = 60


class Lasting(Program[str]):
    """A program, whose lines are its answers."""

    def __init__(self, command: list[str], folder: Path, log: Path) -> None:
        self.said: set[str] = set()
        super().__init__(command, folder, log)

    def heard(self, text: str) -> None:
        self.answered(text.strip())

    async def says(self, *lines: str) -> None:
        """Wait for these lines, in any order; others may come again whose answer was under way
        when the server was stopped."""
        missing = {*lines}
        while missing:
            line = await anyio.to_thread.run_sync(self.answer)
            assert line is not None, (missing, self.log())
            assert line in missing or line in self.said, (line, missing)
            missing.discard(line)
            self.said.add(line)


def sent(name: str, *bodies: str) -> Callable[[Clients], None]:
    """Send to the queue and to the topic of a program, by a client of Python."""

    def work(clients: Clients) -> None:
        producer = clients.make()
        for body in bodies:
            producer.send(f"/queue/{name}", body, f"q{body}", persistent="true")
            producer.send(f"/topic/{name}", body, f"t{body}", persistent="true")

    return work


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("library", ["stompjs", "stompit"])
async def test_a_program_lives_through_restarts(
    library: str, version: str, packages: Path, tmp_path: Path, free_tcp_port: int
) -> None:
    name = f"{library}-{version}"
    source = str(SOURCES / f"lasting_{library}.js")
    command = ["node", source, "127.0.0.1", str(free_tcp_port), version]
    settings = config(tmp_path / "data", free_tcp_port)
    with anyio.fail_after(_MOST_S):
        async with running(settings):
            program = Lasting(command, packages, tmp_path / "log")
            await program.says(f"ready {version}")
            await in_thread(sent(name, "1"), free_tcp_port)
            await program.says("queue 1", "topic 1")
        try:
            async with running(settings):
                await program.says(f"ready {version}")
                await in_thread(sent(name, "2"), free_tcp_port)
                await program.says("queue 2", "topic 2")
                program.close()
                await in_thread(sent(name, "3", "4"), free_tcp_port)
            async with running(settings):
                program = Lasting(command, packages, tmp_path / "log")
                await program.says(f"ready {version}", "queue 3", "topic 3", "queue 4", "topic 4")
        finally:
            program.close()


# --- Clients of Python ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_durable_subscription_of_stomp_py_outlives_the_server(
    version: str, tmp_path: Path, free_tcp_port: int
) -> None:
    settings = config(tmp_path, free_tcp_port)

    def member(clients: Clients) -> Any:
        client = clients.unconnected(version)
        client.connect(**{"client-id": "me"})
        client.subscribe("/topic/t", ack="client", **{"activemq.subscriptionName": "s"})
        return client

    def begin(clients: Clients) -> None:
        member(clients).connection.disconnect()
        sent("t", "1", "2")(clients)

    def take(clients: Clients) -> list[str]:
        client = member(clients)
        frames = [client.take() for _ in range(2)]
        client.ack(frames[-1])
        return [each.body for each in frames]

    def nothing_more(clients: Clients) -> bool:
        client = member(clients)
        sent("t", "3")(clients)
        return bool(client.take().body == "3")

    async with running(settings):
        await in_thread(begin, free_tcp_port)
    async with running(settings):
        assert await in_thread(take, free_tcp_port) == ["1", "2"]
    async with running(settings):
        assert await in_thread(nothing_more, free_tcp_port)


@asynccontextmanager
async def listening(port: int, heard: list[str]) -> AsyncIterator[stompman.Client]:
    """A client of stompman that notes what it gets from its queue and its durable subscription."""

    async def handle(frame: Any) -> None:
        kind = frame.headers["destination"].split("/")[1]
        heard.append(f"{kind} {frame.body.decode()}")
        await frame.ack()

    where = stompman.ConnectionParameters(
        "127.0.0.1", port, "ann", "x", connect_headers={"client-id": "stompman"}
    )
    async with stompman.Client(
        [where],
        connect_retry_attempts=50,
        write_retry_attempts=50,
        keep_alive_on_connection_failure=True,
    ) as client:
        durable = {"activemq.subscriptionName": "s"}
        begun = [
            await client.subscribe_with_manual_ack("/queue/stompman", handle),
            await client.subscribe_with_manual_ack("/topic/stompman", handle, headers=durable),
        ]
        yield client
        for each in begun:
            await each.unsubscribe()


async def heard_all(heard: list[str], port: int, body: str) -> None:
    """Send to both, and wait for it."""
    await in_thread(sent("stompman", body), port)
    while {f"queue {body}", f"topic {body}"} - {*heard}:  # noqa: ASYNC110 - it is no event
        await anyio.sleep(0.05)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_stompman_lives_through_a_restart(tmp_path: Path, free_tcp_port: int) -> None:
    settings = config(tmp_path, free_tcp_port)
    heard: list[str] = []
    with anyio.fail_after(_MOST_S):
        async with AsyncExitStack() as stack:
            async with running(settings):
                await stack.enter_async_context(listening(free_tcp_port, heard))
                await heard_all(heard, free_tcp_port, "1")
            async with running(settings):
                await heard_all(heard, free_tcp_port, "2")
                await stack.aclose()
                await in_thread(sent("stompman", "3"), free_tcp_port)
                async with listening(free_tcp_port, heard):
                    await heard_all(heard, free_tcp_port, "4")
    assert {"topic 3", "queue 3"} <= {*heard}, "it was sent while nobody was there"
