"""The thread that does what blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tmqp_server.io.direct_loop import direct_loop
from tmqp_server.io.worker import Worker

#: On the server's own loop the thread has its own way back.
DIRECT = pytest.param(("asyncio", {"loop_factory": direct_loop}), id="direct")

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio", DIRECT])


class Told:
    """Takes what comes of work."""

    def __init__(self) -> None:
        self.failures: list[BaseException | None] = []
        self.threads: set[int] = set()
        self.event = anyio.Event()

    def __call__(self, failure: BaseException | None) -> None:
        self.failures.append(failure)
        self.threads.add(threading.get_ident())
        self.event.set()


async def do(worker: Worker, work: Callable[[], object]) -> BaseException | None:
    """Have something done; returns what it raised."""
    told = Told()
    worker.give(work, told)
    with anyio.fail_after(10):
        await told.event.wait()
    assert told.threads == {threading.get_ident()}, "in the event loop"
    (failure,) = told.failures
    return failure


async def test_work_is_done_in_one_thread_in_order() -> None:
    worker = Worker("the worker")
    names: list[str] = []
    done: list[int] = []
    told = Told()
    for number in range(50):

        def work(number: int = number) -> None:
            names.append(threading.current_thread().name)
            done.append(number)

        worker.give(work, told)
    assert await do(worker, lambda: None) is None
    assert set(names) == {"the worker"}
    assert done == list(range(50))
    assert told.failures == [None] * 50
    worker.stop()


async def test_who_gave_the_work_is_told_what_it_raised() -> None:
    worker = Worker("the worker")

    def fail() -> None:
        raise ValueError("as the test wants it")

    for _ in range(2):
        assert str(await do(worker, fail)) == "as the test wants it"
    assert await do(worker, lambda: 7) is None
    worker.stop()


async def test_the_loop_goes_on_while_the_thread_works() -> None:
    worker = Worker("the worker")
    go = threading.Event()
    found: list[bool] = []
    told = Told()
    worker.give(lambda: found.append(go.wait(10)), told)
    await anyio.sleep(0.01)
    assert told.failures == []
    go.set()
    with anyio.fail_after(10):
        await told.event.wait()
    assert found == [True]
    worker.stop()


async def test_what_is_called_may_use_the_event_loop() -> None:
    worker = Worker("the worker")
    ran = anyio.Event()

    async def run() -> None:
        ran.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:

            def told(_: BaseException | None) -> None:
                tasks.start_soon(run)

            worker.give(lambda: None, told)
            await ran.wait()
    worker.stop()


def test_a_loop_that_ended_is_no_trouble(
    anyio_backend_name: str, anyio_backend_options: dict[str, Any]
) -> None:
    worker = Worker("the worker")
    go = threading.Event()
    told: list[BaseException | None] = []

    async def leave() -> None:
        worker.give(lambda: go.wait(10), told.append)

    anyio.run(leave, backend=anyio_backend_name, backend_options=anyio_backend_options)
    (thread,) = [each for each in threading.enumerate() if each.name == "the worker"]
    go.set()
    worker.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert told == []
