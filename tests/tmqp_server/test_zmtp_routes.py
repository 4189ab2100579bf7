"""``route = "first-frame"`` with sockets of libzmq: every pattern, and who may write where."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import zmq

from tests.tmqp_server.zmtp_sockets import (
    Sockets,
    config,
    in_thread,
    messages,
    port_of,
    with_sockets,
)
from tmqp_client import connect
from tmqp_server import ServerConfig, running

RIGHTS: Final = {
    "roles": {
        "some": {"rights": ["push", "join"], "channels": ["open-*"], "clients": []},
        "client": {"rights": ["all"], "channels": ["*"], "clients": ["*"], "routers": ["*"]},
    },
    "tokens": [
        {"name": "sockets", "token": "nobody has it", "roles": ["some"]},
        {"name": "client", "token": "client", "roles": ["client"]},
    ],
}


def routed(*, data: Path | None = None, **more: Any) -> ServerConfig:
    options = {"route": "first-frame", **more.pop("options", {})}
    return config(data, options=options, **more)


def from_channel(found: Sockets, kind: int, name: bytes) -> zmq.Socket[bytes]:
    return found.make(kind, METADATA=b"X-Channel:" + name)


async def test_push_into_many_channels() -> None:
    def work(found: Sockets) -> list[list[list[bytes]]]:
        push = found.make(zmq.PUSH)
        for each in messages():
            push.send_multipart([b"left", *each])
            push.send_multipart([b"Left", *each])
        pulls = [from_channel(found, zmq.PULL, name) for name in (b"left", b"Left")]
        return [[pull.recv_multipart() for _ in messages()] for pull in pulls]

    assert await with_sockets(work, routed()) == [messages(), messages()]


async def test_publish_and_subscribe_by_name() -> None:
    def work(found: Sockets) -> list[list[bytes]]:
        subscriber, publisher = found.make(zmq.SUB), found.make(zmq.PUB)
        subscriber.subscribe(b"weather")
        time.sleep(0.5)
        publisher.send_multipart([b"news", b"not wanted"])
        for each in messages():
            publisher.send_multipart([b"weather", *each])
        return [subscriber.recv_multipart() for _ in messages()]

    assert await with_sockets(work, routed()) == [[b"weather", *each] for each in messages()]


async def test_requests_to_services_by_name() -> None:
    def work(found: Sockets) -> list[bytes]:
        asker = found.make(zmq.REQ)
        workers = {name: from_channel(found, zmq.REP, name) for name in (b"add", b"subtract")}
        answers = []
        for name, worker in workers.items():
            asker.send_multipart([name, b"6", b"7"])
            assert worker.recv_multipart() == [b"6", b"7"]
            worker.send(b"by " + name)
            answers.append(asker.recv())
        asker.send(b"a name alone")
        return [*answers, asker.recv()]

    expected = [b"by add", b"by subtract", b"TMQP-ERROR 400"]
    assert await with_sockets(work, routed()) == expected


async def test_other_protocols_see_the_message_alone() -> None:
    async with running(routed()) as server:
        port = port_of(server, "zmtp")
        async with connect(str(server.addresses[0])) as client:
            await in_thread(lambda found: found.send(zmq.PUSH, [b"jobs;1", b"x"]), port)
            async with client.consume("jobs", 1) as consumer:
                with anyio.fail_after(20):
                    message = await anext(aiter(consumer))
                assert message.payload == b"x"
                await message.ack()
            await client.create_queue("news", 0, status="broadcast")

            def subscribe(found: Sockets) -> list[bytes]:
                subscriber = found.make(zmq.SUB)
                subscriber.subscribe(b"News")
                time.sleep(0.4)
                anyio.from_thread.run(client.push, "news", 0, b"from TMQP")
                return subscriber.recv_multipart()

            assert await in_thread(subscribe, port) == [b"News", b"from TMQP"]


async def test_the_right_to_write_is_asked_for_each_message() -> None:
    door: dict[str, Any] = {"access": RIGHTS, "as": "sockets"}
    settings = routed(**door)
    async with running(settings) as server:
        port = port_of(server, "zmtp")

        def work(found: Sockets) -> tuple[list[bytes], list[bytes]]:
            push = found.make(zmq.PUSH)
            for number in range(5):
                push.send_multipart([b"closed", b"%d" % number])
                push.send_multipart([b"open-1", b"%d" % number])
            pull = from_channel(found, zmq.PULL, b"open-1")
            taken = [pull.recv() for _ in range(5)]
            asker = found.make(zmq.REQ)
            asker.send_multipart([b"closed", b"question"])
            return taken, [asker.recv()]

        expected = ([b"%d" % number for number in range(5)], [b"TMQP-ERROR 401"])
        assert await in_thread(work, port) == expected
        async with connect(str(server.addresses[0]), token="client") as client:
            names = [each.name for each in await client.channels()]
            assert "closed" not in names
            assert "open-1" in names


@pytest.mark.parametrize("queue", [0, 4])
async def test_durable_messages_survive(tmp_path: Path, queue: int) -> None:
    settings = routed(data=tmp_path, options={"durable": True})
    name = b"kept" + (b";%d" % queue if queue else b"")

    def send(found: Sockets) -> None:
        push = found.make(zmq.PUSH)
        for each in messages():
            push.send_multipart([name, *each])
        push.close(linger=5_000)
        time.sleep(0.5)

    def take(found: Sockets) -> list[list[bytes]]:
        pull = from_channel(found, zmq.PULL, b"kept")
        return [pull.recv_multipart() for _ in messages()]

    await with_sockets(send, settings)
    assert await with_sockets(take, settings) == messages()
