"""``tmqp bench``: how many messages per second, and how long each takes."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import anyio
import click

from tmqp_client import Client, connect
from tmqp_client.cli._output import to_line
from tmqp_client.cli._run import connected, json_option, places_of, run

__all__ = ["Advance", "bench", "bench_pub", "bench_request", "bench_sub", "percentiles", "summary"]

_SHARES: Final = (50.0, 90.0, 99.0, 99.9)
Advance = Callable[[], None]


def percentiles(times_s: list[float]) -> dict[str, float]:
    """Return percentiles in milliseconds, by the nearest rank, so each is one of the times."""
    if not times_s:
        return {}
    ordered = sorted(times_s)
    found = {}
    for share in _SHARES:
        # Rounded, because 99.9 is not exact in binary.
        rank = max(math.ceil(round(share * len(ordered) / 100, 6)), 1)
        found[f"p{share:g}_ms"] = round(ordered[rank - 1] * 1_000, 3)
    return found | {"max_ms": round(ordered[-1] * 1_000, 3)}


def summary(
    what: str, count: int, size: int, seconds: float, times_s: list[float]
) -> dict[str, Any]:
    """Return the results of a run."""
    rate = count / seconds if seconds > 0 else 0.0
    return {
        "what": what,
        "messages": count,
        "payload_bytes": size,
        "seconds": round(seconds, 3),
        "messages_per_s": round(rate),
        "mib_per_s": round(rate * size / 1_048_576, 2),
        **percentiles(times_s),
    }


def _show(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(to_line(result))
        return
    click.echo(
        f"{result['what']}: {result['messages']:,} messages of {result['payload_bytes']} bytes in"
        f" {result['seconds']:.3f} s: {result['messages_per_s']:,}/s, {result['mib_per_s']} MiB/s"
    )
    times = [f"{key[:-3]} {value:.3f} ms" for key, value in result.items() if key.endswith("_ms")]
    if times:
        click.echo(f"  latency: {', '.join(times)}")


@contextmanager
def _progress(what: str, total: int, *, shown: bool) -> Iterator[Advance]:
    """A progress bar on a terminal; nothing elsewhere."""
    if not (shown and sys.stderr.isatty()):
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415 - it takes long to load
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        done = 0

        def advance() -> None:
            nonlocal done
            done += 1
            if done % 100 == 0 or done == total:
                progress.update(task, completed=done)

        yield advance


@click.group("bench")
def bench() -> None:
    """Measure a server from this machine.  Each run creates its own channel and removes it."""


def _measured(command: Any) -> Any:
    for option in (
        json_option(),
        click.option(
            "-s", "--size", type=click.IntRange(0), default=128, show_default=True, help="Bytes."
        ),
        click.option(
            "--in-flight", type=click.IntRange(1), default=100, show_default=True, help="At a time."
        ),
        click.option("-n", "--count", type=click.IntRange(1), default=10_000, show_default=True),
    ):
        command = option(command)
    return command


@bench.command("pub", epilog="\b\nExample:\n  tmqp bench pub --count 100000 --in-flight 1000\n")
@_measured
@connected
def bench_pub(count: int, in_flight: int, size: int, as_json: bool, **where: Any) -> None:
    """Push and wait for each acknowledgement."""

    async def work(client: Client) -> None:
        channel = f"bench-{uuid4().hex[:12]}"
        await client.create_queue(channel, 1, status="push", delivery_handler="ack-received")
        try:
            with _progress("pub", count, shown=not as_json) as advance:
                push = _pusher(client, channel, bytes(size))
                seconds, times_s = await _many(push, count, in_flight, advance)
            _show(summary("pub", count, size, seconds, times_s), as_json=as_json)
        finally:
            with anyio.move_on_after(5, shield=True):
                await client.remove_channel(channel)

    run(work, **where)


def _pusher(client: Client, channel: str, payload: bytes) -> Callable[[], Any]:
    async def push() -> None:
        await client.push(channel, 1, payload)

    return push


async def _many(
    call: Callable[[], Any], count: int, in_flight: int, advance: Advance
) -> tuple[float, list[float]]:
    """Call a function ``count`` times, ``in_flight`` at a time; return the total seconds, and those
    of each call."""
    times_s: list[float] = []
    left = iter(range(count))

    async def caller() -> None:
        for _ in left:
            began = time.perf_counter()
            await call()
            times_s.append(time.perf_counter() - began)
            advance()

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(min(in_flight, count)):
            tasks.start_soon(caller)
    return time.perf_counter() - began, times_s


@bench.command("sub", epilog="\b\nExample:\n  tmqp bench sub --count 100000\n")
@_measured
@connected
def bench_sub(count: int, in_flight: int, size: int, as_json: bool, **where: Any) -> None:
    """Push from one connection, consume on another: from push to consumption."""

    async def work(client: Client) -> None:
        channel = f"bench-{uuid4().hex[:12]}"
        payload = bytes(max(size - 8, 0))
        await client.create_queue(channel, 1, status="push", delivery_handler="allow-all")
        room = anyio.Semaphore(in_flight)
        times_s: list[float] = []

        async def push() -> None:
            for _ in range(count):
                await room.acquire()
                now = time.perf_counter_ns().to_bytes(8, "big")
                await client.push(channel, 1, now + payload, wait=False)

        try:
            async with connect(
                places_of(where["address"]), token=where["token"], reconnect=None
            ) as other:
                with _progress("sub", count, shown=not as_json) as advance:
                    async with other.consume(channel, 1) as messages:
                        began = time.perf_counter()
                        async with anyio.create_task_group() as tasks:
                            tasks.start_soon(push)
                            async for message in messages:
                                sent_ns = int.from_bytes(message.payload[:8], "big")
                                times_s.append((time.perf_counter_ns() - sent_ns) / 1e9)
                                room.release()
                                advance()
                                if len(times_s) == count:
                                    break
                        seconds = time.perf_counter() - began
            _show(summary("sub", count, max(size, 8), seconds, times_s), as_json=as_json)
        finally:
            with anyio.move_on_after(5, shield=True):
                await client.remove_channel(channel)

    run(work, **where)


@bench.command("request", epilog="\b\nExample:\n  tmqp bench request --in-flight 1\n")
@_measured
@connected
def bench_request(count: int, in_flight: int, size: int, as_json: bool, **where: Any) -> None:
    """Send requests to another connection and wait for each response."""

    async def work(client: Client) -> None:
        async with connect(
            places_of(where["address"]), token=where["token"], reconnect=None
        ) as other:

            async def answer(*, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
                async with other.direct_messages() as messages:
                    task_status.started()
                    async for message in messages:
                        await message.respond(0, message.payload)

            async def ask() -> None:
                await client.request(other.client_id, bytes(size))

            async with anyio.create_task_group() as tasks:
                await tasks.start(answer)
                with _progress("request", count, shown=not as_json) as advance:
                    seconds, times_s = await _many(ask, count, in_flight, advance)
                tasks.cancel_scope.cancel()
        _show(summary("request", count, size, seconds, times_s), as_json=as_json)

    run(work, **where)
