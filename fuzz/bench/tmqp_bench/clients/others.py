"""The other client libraries under the same load, each used as its documentation shows.

They are loaded by name: who does not have them can still measure ours.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

__all__ = ["aio_pika_link", "nats_link", "redis_link"]

_NAME = "bench"
_READ_COUNT = 256


# --- nats-py -------------------------------------------------------------------------------------


class _Nats:
    def __init__(self, client: Any, stream: Any) -> None:
        self._client = client
        self._stream = stream

    async def send(self, payload: bytes) -> None:
        await self._client.publish(_NAME, payload)

    async def confirm(self, payload: bytes) -> None:
        await self._stream.publish(_NAME, payload)

    async def confirm_many(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            await self._stream.publish_async(_NAME, payload)
        await self._stream.publish_async_completed()

    async def ask(self, payload: bytes) -> bytes:
        answer: bytes = (await self._client.request(_NAME, payload, timeout=10)).data
        return answer


@asynccontextmanager
async def nats_link(
    port: int, kind: str, window: int, taken: Callable[[bytes], None]
) -> AsyncIterator[_Nats]:
    """nats-py: subscriptions with callbacks; JetStream, in memory, for what is confirmed."""
    nats = import_module("nats")
    api = import_module("nats.js.api")
    url = f"nats://127.0.0.1:{port}"
    client, other = await nats.connect(url), await nats.connect(url)

    async def take(message: Any) -> None:
        taken(message.data)

    async def acknowledge(message: Any) -> None:
        taken(message.data)
        await message.ack()

    async def answer(message: Any) -> None:
        await message.respond(message.data)

    try:
        stream = client.jetstream(publish_async_max_pending=2 * window + 2)
        if kind == "stream":
            await other.subscribe(_NAME, cb=take)
        elif kind == "request":
            await other.subscribe(_NAME, cb=answer)
        else:
            await stream.add_stream(
                name=_NAME, subjects=[_NAME], storage=api.StorageType.MEMORY, retention="workqueue"
            )
            config = api.ConsumerConfig(max_ack_pending=65_536, ack_wait=60)
            await other.jetstream().subscribe(
                _NAME, durable=_NAME, cb=acknowledge, manual_ack=True, config=config
            )
        await other.flush()
        yield _Nats(client, stream)
    finally:
        await client.close()
        await other.close()


# --- aio-pika ------------------------------------------------------------------------------------


class _AioPika:
    def __init__(self, exchange: Any, to_message: Callable[..., Any], callbacks: str) -> None:
        self._exchange = exchange
        self._to_message = to_message
        self._callbacks = callbacks
        self._numbers = itertools.count()
        self.waiting: dict[str, asyncio.Future[bytes]] = {}

    async def send(self, payload: bytes) -> None:
        await self._exchange.publish(self._to_message(payload), _NAME)

    async def confirm(self, payload: bytes) -> None:
        await self._exchange.publish(self._to_message(payload), _NAME)

    async def confirm_many(self, payloads: list[bytes]) -> None:
        await asyncio.gather(*[self.confirm(payload) for payload in payloads])

    async def ask(self, payload: bytes) -> bytes:
        number = str(next(self._numbers))
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        message = self._to_message(payload, correlation_id=number, reply_to=self._callbacks)
        await self._exchange.publish(message, _NAME)
        return await answer


@asynccontextmanager
async def aio_pika_link(
    port: int, kind: str, window: int, taken: Callable[[bytes], None]
) -> AsyncIterator[_AioPika]:
    """aio-pika: transient messages; consumers with callbacks, confirms for what is confirmed."""
    aio_pika = import_module("aio_pika")
    url = f"amqp://guest:guest@127.0.0.1:{port}/"
    confirms = kind in {"confirmed", "batch"}
    async with await aio_pika.connect(url) as client, await aio_pika.connect(url) as other:
        channel = await client.channel(publisher_confirms=confirms)
        there = await other.channel(publisher_confirms=False)
        await there.set_qos(prefetch_count=max(window, 1))
        queue = await there.declare_queue(_NAME, auto_delete=True)

        async def take(message: Any) -> None:
            taken(message.body)

        async def acknowledge(message: Any) -> None:
            taken(message.body)
            await message.ack()

        async def answer(message: Any) -> None:
            reply = aio_pika.Message(message.body, correlation_id=message.correlation_id)
            await there.default_exchange.publish(reply, message.reply_to)

        callbacks = await channel.declare_queue(exclusive=True)
        link = _AioPika(channel.default_exchange, aio_pika.Message, callbacks.name)

        async def answered(message: Any) -> None:
            link.waiting.pop(message.correlation_id).set_result(message.body)

        if kind == "request":
            await callbacks.consume(answered, no_ack=True)
            await queue.consume(answer, no_ack=True)
        else:
            await queue.consume(acknowledge if confirms else take, no_ack=not confirms)
        yield link


# --- redis-py ------------------------------------------------------------------------------------


class _Redis:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._numbers = itertools.count()

    async def send(self, payload: bytes) -> None:
        await self._client.publish(_NAME, payload)

    async def confirm(self, payload: bytes) -> None:
        await self._client.xadd(_NAME, {b"p": payload})

    async def confirm_many(self, payloads: list[bytes]) -> None:
        async with self._client.pipeline(transaction=False) as pipeline:
            for payload in payloads:
                pipeline.xadd(_NAME, {b"p": payload})
            await pipeline.execute()

    async def ask(self, payload: bytes) -> bytes:
        callbacks = b"%d" % next(self._numbers)
        await self._client.lpush(_NAME, callbacks + b" " + payload)
        _, answer = await self._client.brpop([callbacks], timeout=10)
        return bytes(answer)


@asynccontextmanager
async def redis_link(
    port: int, kind: str, window: int, taken: Callable[[bytes], None]
) -> AsyncIterator[_Redis]:
    """redis-py: pub/sub, streams with a consumer group, lists for requests; a pool of connections
    for what waits."""
    redis = import_module("redis.asyncio")
    client = redis.Redis(host="127.0.0.1", port=port, max_connections=window + 8)
    other = redis.Redis(host="127.0.0.1", port=port)
    pubsub = other.pubsub(ignore_subscribe_messages=True)

    async def listen() -> None:
        async for message in pubsub.listen():
            taken(message["data"])

    async def read_group() -> None:
        while not stopping.is_set():  # it does not always see a cancellation
            found = await other.xreadgroup(_NAME, "c", {_NAME: ">"}, count=_READ_COUNT, block=1_000)
            for _, entries in found or []:
                for _, fields in entries:
                    taken(fields[b"p"])
                await other.xack(_NAME, _NAME, *[number for number, _ in entries])

    async def answer() -> None:
        while not stopping.is_set():
            found = await other.brpop([_NAME], timeout=1)
            if found is not None:
                callbacks, _, payload = bytes(found[1]).partition(b" ")
                await other.lpush(callbacks, payload)

    stopping = asyncio.Event()
    consume = {"stream": listen, "request": answer}.get(kind, read_group)
    if kind == "stream":
        await pubsub.subscribe(_NAME)
    elif kind != "request":
        await other.xgroup_create(_NAME, _NAME, mkstream=True)
    consuming = asyncio.create_task(consume())
    try:
        yield _Redis(client)
    finally:
        stopping.set()
        consuming.cancel()
        await asyncio.wait([consuming], timeout=5)
        await pubsub.aclose()
        await client.aclose()
        await other.aclose()
