"""The thread that does what blocks."""

from __future__ import annotations

import threading
import time

import anyio
import pytest

from tmqp_server.io.worker import Worker

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def test_work_is_done_in_one_thread_in_order() -> None:
    worker = Worker("the worker")
    names = [await worker.do(lambda: threading.current_thread().name) for _ in range(3)]
    assert names == ["the worker"] * 3
    done: list[int] = []

    async def add(number: int) -> None:
        await worker.do(lambda: done.append(number))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(add, number)
    assert sorted(done) == list(range(50))
    worker.stop()


async def test_what_is_raised_is_raised_where_it_is_waited_for() -> None:
    worker = Worker("the worker")

    def fail() -> None:
        raise ValueError("as the test wants it")

    for _ in range(2):
        with pytest.raises(ValueError, match="as the test wants it"):
            await worker.do(fail)
    assert await worker.do(lambda: 7) == 7
    worker.stop()


async def test_one_that_hangs_keeps_nobody() -> None:
    worker = Worker("the worker")
    go = threading.Event()
    begun = time.monotonic()
    with anyio.move_on_after(0.05) as scope:
        await worker.do(lambda: go.wait(30))
    assert scope.cancelled_caught
    assert time.monotonic() - begun < 10
    go.set()
    # What nobody waited for is not taken for the answer to what comes next.
    with anyio.fail_after(10):
        assert await worker.do(lambda: "next") == "next"
    worker.stop()


async def test_the_loop_goes_on_while_the_thread_works() -> None:
    worker = Worker("the worker")
    go = threading.Event()

    async def release() -> None:
        await anyio.sleep(0.01)
        go.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(release)
            assert await worker.do(lambda: go.wait(10))
    worker.stop()


def test_a_loop_that_ended_is_no_trouble(anyio_backend: str) -> None:
    worker = Worker("the worker")
    go = threading.Event()

    async def leave() -> None:
        with anyio.move_on_after(0.02):
            await worker.do(lambda: go.wait(10))

    anyio.run(leave, backend=anyio_backend)
    (thread,) = [each for each in threading.enumerate() if each.name == "the worker"]
    go.set()
    worker.stop()
    thread.join(10)
    assert not thread.is_alive()
