"""Programs of ZeroMQ as users write them: the example, the users' notes, sockets that bind."""

from __future__ import annotations

import contextlib
import sys
import time

import anyio
import pytest
import zmq

from tests.ports import free_port
from tests.project import ROOT
from tests.tmqp_server.zmtp_sockets import (
    Sockets,
    address_of,
    bind,
    config,
    in_thread,
    port_of,
    sockets,
    with_sockets,
)
from tmqp_server import running

# --- The example, and the programs of the users' notes -------------------------------------------


async def test_the_example_says_what_happens() -> None:
    async with running(config()) as server:
        with anyio.fail_after(60):
            done = await anyio.run_process(
                [sys.executable, str(ROOT / "examples" / "zeromq.py"), address_of(server)]
            )
    assert done.stdout.decode().splitlines() == [
        "task: resize picture-0",
        "task: resize picture-1",
        "task: resize picture-2",
        "news: sports 2:1",
        "taken: 6 * 7",
        "reply: 6 * 7 = 42",
    ]


async def test_a_send_that_must_not_block_fails_only_when_the_queue_is_full() -> None:
    """Notes: NOBLOCK gives EAGAIN where a message cannot be queued."""

    def work(found: Sockets) -> bytes:
        asker = found.make(zmq.REQ)
        asker.setsockopt(zmq.RCVTIMEO, 300)
        asker.send(b"nobody works", zmq.NOBLOCK)  # a broker is there: it is queued
        with pytest.raises(zmq.Again):
            asker.recv()
        with pytest.raises(zmq.Again):
            asker.recv(zmq.NOBLOCK)
        return found.make(zmq.REP).recv()

    assert await with_sockets(work) == b"nobody works"


async def test_the_parts_of_sndmore_come_together_or_not_at_all() -> None:
    def work(found: Sockets) -> list[list[bytes]]:
        push, pull = found.make(zmq.PUSH), found.make(zmq.PULL)
        broken = found.make(zmq.PUSH)
        broken.send(b"half", zmq.SNDMORE)
        broken.close(linger=1_000)
        for number in range(3):
            push.send(b"a%d" % number, zmq.SNDMORE)
            push.send(b"b", zmq.SNDMORE)
            push.send(b"c")
        return [pull.recv_multipart() for _ in range(3)]

    assert await with_sockets(work) == [[b"a%d" % each, b"b", b"c"] for each in range(3)]


@pytest.mark.parametrize("linger", [-1, 2_000])
async def test_a_socket_that_closes_at_once_leaves_its_messages_within_its_linger(
    linger: int,
) -> None:
    def work(found: Sockets) -> list[bytes]:
        push = found.make(zmq.PUSH)
        for number in range(100):
            push.send(b"%d" % number)
        push.close(linger=linger)
        pull = found.make(zmq.PULL)
        return [pull.recv() for _ in range(100)]

    assert await with_sockets(work) == [b"%d" % number for number in range(100)]


async def test_a_socket_without_linger_closes_at_once_and_leaves_a_part_in_order() -> None:
    """Notes: with 0 what is pending is discarded; what the server has taken stays in its queue."""

    def work(found: Sockets) -> list[bytes]:
        push = found.make(zmq.PUSH)
        sent = [b"%d" % number + bytes(2_000) for number in range(200)]
        for each in sent:
            push.send(each)
        began = time.monotonic()
        push.close(linger=0)
        assert time.monotonic() - began < 5
        pull = found.make(zmq.PULL, RCVTIMEO=300)
        came: list[bytes] = []
        with contextlib.suppress(zmq.Again):
            while True:
                came.append(pull.recv())
        assert came == sent[: len(came)]
        return came

    assert len(await with_sockets(work)) <= 200


# --- Sockets that bind ---------------------------------------------------------------------------


@pytest.mark.parametrize("server_first", [True, False])
async def test_it_does_not_matter_who_binds(server_first: bool) -> None:
    """Notes: a REP socket binds and a REQ socket connects; and a PUSH socket binds."""
    with sockets(0) as found:
        worker, producer = found.unconnected(zmq.REP), found.unconnected(zmq.PUSH)
        if server_first:
            ports = [free_port(), free_port()]
        else:
            ports = [each.bind_to_random_port("tcp://127.0.0.1") for each in (worker, producer)]
        addresses = [f"tcp://127.0.0.1:{port}" for port in ports]
        async with running(config(options={"connect": addresses})) as server:
            if server_first:
                await anyio.sleep(0.3)
                worker.bind(addresses[0])
                producer.bind(addresses[1])

            def work(others: Sockets) -> tuple[bytes, bytes]:
                asker, pull = others.make(zmq.REQ), others.make(zmq.PULL)
                asker.send(b"question")
                worker.send(b"re:" + worker.recv())
                producer.send(b"task")
                return asker.recv(), pull.recv()

            port = port_of(server, "zmtp")
            assert await in_thread(work, port) == (b"re:question", b"task")


async def test_a_socket_that_binds_again_is_connected_again() -> None:
    port = free_port()
    async with running(config(options={"connect": [f"tcp://127.0.0.1:{port}"]})) as server:

        def work(found: Sockets) -> list[bytes]:
            pull = found.make(zmq.PULL)
            taken = []
            for number in range(3):
                producer = found.unconnected(zmq.PUSH)
                bind(producer, port)
                producer.send(b"%d" % number)
                taken.append(pull.recv())
                producer.close(linger=0)
            return taken

        assert await in_thread(work, port_of(server, "zmtp")) == [b"0", b"1", b"2"]
