"""Slow readers on real sockets: what they cost, when they are cut, and that nobody else pays (F1 of
the reliability cases, in small)."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.tmqp_server.peers import greeting, operation, push
from tests.tmqp_server.wires import Wire, dial, serving, settled, wire
from tmqp.constants import MessageType, Operation, QueueStatus
from tmqp_server.config import OutboundLimits
from tmqp_server.io.event_loop import clock
from tmqp_server.io.shell import Shell
from tmqp_server.wiring.app import Server

pytestmark = pytest.mark.anyio

#: Messages of this size, so that they fill the sockets' buffers soon.
SIZE = 10_000
#: What one step of the broker may send of stored messages, and a little more.
ONE_STEP = (1_000 << 10) + 2 * SIZE


class Watch:
    """What was seen of the sessions: the most that waited, and who was held back how often."""

    def __init__(self) -> None:
        self.most_bytes = 0
        self.blocked = 0
        self.unblocked = 0


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    seen = Watch()
    shells: list[Shell] = []
    blocked: set[int] = set()
    made, attend = Shell.__init__, Shell.attend

    def look(shell: Shell) -> None:
        for number in list(shell._connections):
            out = shell.turn.outbound(number)
            if out is None:
                continue
            seen.most_bytes = max(seen.most_bytes, out.bytes)
            if out.blocked and number not in blocked:
                blocked.add(number)
                seen.blocked += 1
            elif not out.blocked and number in blocked:
                blocked.remove(number)
                seen.unblocked += 1

    def make(self: Shell, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        shells.append(self)

    def watched_clock() -> Callable[[], float]:
        now = clock()

        def watched_now() -> float:
            for shell in shells:
                look(shell)
            return now()

        return watched_now

    monkeypatch.setattr(Shell, "__init__", make)

    def watched_attend(self: Shell) -> None:
        look(self)
        attend(self)

    monkeypatch.setattr(Shell, "attend", watched_attend)
    monkeypatch.setattr("tmqp_server.io.shell.clock", watched_clock)  # asked before each turn
    return seen


@asynccontextmanager
async def narrow(server: Server, *join: str) -> AsyncIterator[Wire]:
    """A client whose kernel takes little for it."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    sock.connect((server.addresses[0].host, server.addresses[0].port))
    async with Wire(await anyio.abc.SocketStream.from_socket(sock)) as client:
        await (await client.greet("narrow")).join(*join)
        yield client


async def create(client: Wire, channel: str, status: QueueStatus, **headers: str) -> None:
    """Create queue 1 of a channel, without acknowledges."""
    pairs = [("Queue-Id", "1"), ("Queue-Status", status.name.lower())]
    answer = await client.ask(
        Operation.CREATE_QUEUE, channel, b'{"RequestAcknowledge":false}', headers=pairs
    )
    assert answer.content_type == 0


async def stream(client: Wire, channel: str, numbers: range) -> None:
    """Push messages m0, m1 ... and wait until the last is processed."""
    for number in numbers:
        await client.say(push(channel, 1, f"m{number}", b"x" * SIZE))
    await client.ask(Operation.CHANNEL_LIST, "none")


async def test_one_who_does_not_read_is_cut_while_twenty_others_go_on(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    outbound = OutboundLimits(stall_timeout_s=1.0)
    async with (
        serving(outbound=outbound) as server,
        wire(server, "producer") as producer,
        AsyncExitStack() as stack,
    ):
        for channel in ("slow", "fast"):
            await create(producer, channel, QueueStatus.PUSH)
        others = [await stack.enter_async_context(wire(server, "", "fast")) for _ in range(20)]
        await stack.enter_async_context(narrow(server, "slow"))
        began = anyio.current_time()
        await stream(producer, "slow", range(1_000))  # 10 MB nobody reads
        round_number = 0
        while server.sessions == 22:
            await producer.say(push("fast", 1, f"r{round_number}"))
            for other in others:
                assert (await other.hear()).message_id == f"r{round_number}"
            round_number += 1
        assert anyio.current_time() - began < 5
        assert round_number > 5
        assert watch.blocked == 1
        assert watch.most_bytes < outbound.high_water_bytes + 100_000
    reasons = [r.getMessage() for r in caplog.records if "slow reader" in r.getMessage()]
    assert len(reasons) == 1
    assert reasons[0].endswith("closed: slow reader: no progress for 1 seconds")


async def test_a_push_queue_goes_on_when_the_slow_one_is_cut(watch: Watch) -> None:
    """C65: all consumers of a push queue wait for the slowest, but not for ever."""
    outbound = OutboundLimits(stall_timeout_s=0.5)
    async with serving(outbound=outbound) as server, wire(server, "producer") as producer:
        await create(producer, "c", QueueStatus.PUSH)
        async with narrow(server, "c"), wire(server, "quick", "c") as quick:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream, producer, "c", range(1_000))
                received = [(await quick.hear()).message_id for _ in range(1_000)]
            assert received == [f"m{number}" for number in range(1_000)]
    assert watch.most_bytes < outbound.high_water_bytes + ONE_STEP


async def test_a_broadcast_passes_a_slow_reader_over(watch: Watch) -> None:
    async with serving() as server, wire(server, "producer") as producer:
        await create(producer, "c", QueueStatus.BROADCAST)
        async with narrow(server, "c") as slow, wire(server, "quick", "c") as quick:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream, producer, "c", range(1_000))
                received = [(await quick.hear()).message_id for _ in range(1_000)]
            assert received == [f"m{number}" for number in range(1_000)]
            # The slow one has missed some, reads on, and gets what is sent from then on.
            assert watch.blocked == 1
            heard = []
            while watch.unblocked == 0:
                heard.append((await slow.hear()).message_id)
            await stream(producer, "c", range(1_000, 1_001))
            while heard[-1] != "m1000":
                heard.append((await slow.hear()).message_id)
            assert len(heard) < 1_000
            assert heard == sorted(heard, key=lambda name: int(name[1:]))
    assert watch.most_bytes < OutboundLimits().high_water_bytes + 100_000


async def test_a_slow_but_living_reader_gets_all_that_waited_for_it(watch: Watch) -> None:
    """It joins a queue with 30 MB in it: sent at one go, they cut it as a slow reader."""
    outbound = OutboundLimits(stall_timeout_s=2.0)
    async with serving(outbound=outbound) as server, wire(server, "producer") as producer:
        await create(producer, "c", QueueStatus.PUSH)
        await stream(producer, "c", range(3_000))
        async with narrow(server) as slow:
            await slow.say(operation(Operation.JOIN, "c"))
            received: list[str] = []
            while len(received) < 3_000:
                frame = await slow.hear()
                if frame.type == MessageType.QUEUE_MESSAGE:
                    received.append(frame.message_id)
                if len(received) % 300 == 0:
                    await anyio.sleep(0.02)
            assert received == [f"m{number}" for number in range(3_000)]
            assert (await slow.ask(Operation.CHANNEL_LIST)).content_type == 0
    assert watch.most_bytes < outbound.high_water_bytes + ONE_STEP
    assert watch.blocked == watch.unblocked > 0


async def test_one_chunk_of_requests_cannot_make_the_server_hold_their_answers(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    """64 KiB of requests asked for 500 MB of lists, all made before any was sent."""
    caplog.set_level(logging.INFO)
    outbound = OutboundLimits(stall_timeout_s=0.5)
    async with serving(outbound=outbound) as server, wire(server, "honest") as honest:
        for number in range(1_000):
            await honest.say(operation(Operation.CREATE_CHANNEL, f"channel-{number:04}"))
            await honest.hear()
        size = len((await honest.ask(Operation.CHANNEL_LIST)).payload)
        assert size > 300_000
        ask = operation(Operation.CHANNEL_LIST, message_id="l").raw
        async with await dial(server.addresses[0]) as greedy:
            await greedy.say(greeting("greedy"), ask * 1_500)
            await settled(server, 2)
            while server.sessions == 2:
                assert (await honest.ask(Operation.CHANNEL_LIST, "none")).content_type == 0
    assert outbound.high_water_bytes < watch.most_bytes < outbound.high_water_bytes + 2 * size
    reasons = [r.getMessage() for r in caplog.records if "slow reader" in r.getMessage()]
    assert len(reasons) == 1
    assert reasons[0].endswith("slow reader: no progress for 0.5 seconds")


async def test_one_who_reads_its_answers_gets_them_all() -> None:
    async with serving() as server, wire(server, "a") as client:
        for number in range(300):
            await client.say(operation(Operation.CREATE_CHANNEL, f"channel-{number:04}"))
            await client.hear()
        ask = [operation(Operation.CHANNEL_LIST, message_id=f"l{n}") for n in range(200)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.say, *ask)
            answers = [await client.hear() for _ in range(200)]
        assert [answer.message_id for answer in answers] == [f"l{n}" for n in range(200)]
        assert len({answer.payload for answer in answers}) == 1
