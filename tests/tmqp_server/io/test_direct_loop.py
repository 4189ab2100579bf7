"""The event loop that calls readers straight from its selector: nothing else may be missed."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from types import FrameType
from typing import Any

import anyio
import pytest

from tests.tmqp_server.wires import serving
from tmqp import compiled
from tmqp.constants import TYPE_DIRECT_MESSAGE, TYPE_RESPONSE
from tmqp.frames import Frame
from tmqp_bench.broker.tmqp_wire import greet
from tmqp_server.io.direct_loop import DirectLoop, _DirectSelector, direct_loop
from tmqp_server.io.event_loop import how_to_run
from tmqp_server.io.transport import SocketTransport
from tmqp_server.io.worker import Worker
from tmqp_server.shell.pulse import Pulse, SlowTurn

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="needs epoll")

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two ends of a connection, the first one non-blocking."""
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        yield near, far


def run(main: Callable[[DirectLoop], Coroutine[Any, Any, None]]) -> None:
    """Run it on a direct loop, for ten seconds at the most."""

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        with anyio.fail_after(10):
            await main(loop)

    anyio.run(whole, **how_to_run("asyncio"))


async def until(true: Callable[[], bool]) -> None:
    """Let the loop turn until it is so."""
    for _ in range(5_000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never is")


def read_directly(loop: DirectLoop, sock: socket.socket, reader: Callable[[], None]) -> None:
    loop.add_reader(sock.fileno(), reader)
    loop.read_directly(sock.fileno(), reader)


def test_a_reader_is_called_as_often_as_there_is_something_and_no_longer(pair: Pair) -> None:
    near, far = pair

    async def main(loop: DirectLoop) -> None:
        came: list[bytes] = []
        read_directly(loop, near, lambda: came.append(near.recv(1)))
        far.sendall(b"abc")
        await until(lambda: len(came) >= 3)
        assert loop.remove_reader(near.fileno())
        assert not loop.remove_reader(near.fileno())
        far.sendall(b"d")
        await asyncio.sleep(0.02)
        assert came == [b"a", b"b", b"c"]
        read_directly(loop, near, lambda: came.append(near.recv(1)))
        await until(lambda: len(came) >= 4)

    run(main)


def test_readers_of_several_sockets_are_a_round_and_one_alone_is_none(pair: Pair) -> None:
    near, far = pair
    other, there = socket.socketpair()
    other.setblocking(False)

    async def main(loop: DirectLoop) -> None:
        came: list[object] = []

        def end() -> None:
            came.append("end")
            raise ValueError("a fault in one does not end the loop")

        faults: list[object] = []
        loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
        begin = partial(came.append, "begin")
        loop.add_rounds(begin, end)
        read_directly(loop, near, lambda: came.append(near.recv(1)))
        read_directly(loop, other, lambda: came.append(other.recv(1)))
        far.sendall(b"a")
        await until(lambda: len(came) >= 1)
        assert came == [b"a"]
        far.sendall(b"b")
        there.sendall(b"b")  # the loop has not looked at its sockets in between
        await until(lambda: len(faults) >= 1)
        assert came == [b"a", "begin", b"b", b"b", "end"]
        loop.remove_rounds(begin)
        far.sendall(b"c")
        there.sendall(b"c")
        await until(lambda: len(came) >= 7)
        assert came[5:] == [b"c", b"c"]

    with other, there:
        run(main)


def test_turns_are_measured_and_slow_ones_told_of(pair: Pair) -> None:
    near, far = pair
    pulse = Pulse()
    pulse.slow_s = 0.02
    told: list[SlowTurn] = []

    async def main(loop: DirectLoop) -> None:
        faults: list[object] = []
        loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))

        def tell(slow: SlowTurn) -> None:
            told.append(slow)
            raise ValueError("a fault in who is told does not end the loop")

        def read() -> None:
            near.recv(1)
            pulse.at, pulse.number = time.monotonic(), 7
            time.sleep(0.03)

        loop.note_turns(pulse, tell)
        read_directly(loop, near, read)
        far.sendall(b"a")
        await until(lambda: len(faults) >= 1)
        loop.call_soon(time.sleep, 0.03)
        await until(lambda: len(told) >= 2)
        loop.note_turns(None, None)
        counted = pulse.quick + sum(pulse.turns.counts)
        await asyncio.sleep(0.002)
        assert pulse.quick + sum(pulse.turns.counts) == counted

    run(main)
    assert {each.session for each in told} == {7, 0}
    assert all(each.took_s > 0.02 for each in told)
    assert pulse.quick + sum(pulse.turns.counts) > 2


def test_what_a_reader_asks_for_is_done_at_once(pair: Pair) -> None:
    near, far = pair

    async def main(loop: DirectLoop) -> None:
        soon, later, woken = asyncio.Event(), asyncio.Event(), asyncio.Event()

        def reader() -> None:
            asked = near.recv(1)
            if asked == b"s":
                loop.call_soon(soon.set)
            elif asked == b"l":
                loop.call_later(0.01, later.set)
            else:
                woken.set()

        read_directly(loop, near, reader)
        # The test itself waits without any timer but the ten seconds of all.
        for letter, event in ((b"s", soon), (b"l", later), (b"e", woken)):
            started = time.monotonic()
            far.sendall(letter)
            await event.wait()
            assert time.monotonic() - started < 5

    run(main)


def test_timers_threads_and_other_readers_have_their_turn_in_a_storm(pair: Pair) -> None:
    near, far = pair
    other, there = socket.socketpair()

    async def main(loop: DirectLoop) -> None:
        calls = 0

        def reader() -> None:
            nonlocal calls
            calls += 1  # what is there stays there, so the next poll finds it again

        far.sendall(b"x")
        read_directly(loop, near, reader)
        started = time.monotonic()
        await asyncio.sleep(0.05)
        assert time.monotonic() - started < 5
        assert await asyncio.get_running_loop().run_in_executor(None, lambda: 7) == 7
        heard = asyncio.Event()
        loop.add_reader(other.fileno(), heard.set)
        there.sendall(b"y")
        await heard.wait()
        loop.remove_reader(other.fileno())
        assert calls > 100

    with other, there:
        run(main)


def test_a_thread_and_a_signal_wake_a_loop_that_only_reads(pair: Pair) -> None:
    near, far = pair

    async def main(loop: DirectLoop) -> None:
        came: list[bytes] = []
        read_directly(loop, near, lambda: came.append(near.recv(9)))
        for by_signal in (False, True):
            woken = asyncio.Event()
            loop.add_signal_handler(signal.SIGUSR1, woken.set)
            far.sendall(b"once")
            if by_signal:
                thread = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1))
            else:
                thread = threading.Timer(0.02, loop.call_soon_threadsafe, (woken.set,))
            thread.start()
            await woken.wait()
            thread.join()
        loop.remove_signal_handler(signal.SIGUSR1)

    run(main)


def test_writing_and_reading_directly_on_one_socket(pair: Pair) -> None:
    near, far = pair
    far.setblocking(False)

    async def main(loop: DirectLoop) -> None:
        transport = SocketTransport(near, "pair")
        came: list[bytes | None] = []
        assert transport.watch(lambda: came.append(transport.receive_now()))
        data = bytes(2_000_000)
        sent = got = 0
        while sent < len(data) or got < len(data):
            while (count := transport.send(data[sent:])) and sent < len(data):
                sent += count
            far.send(b"r")
            with anyio.move_on_after(0.005):
                await transport.send_some(data[sent:] or b".")
                sent += 1
            try:
                got += len(far.recv(1_000_000))
            except BlockingIOError:
                await asyncio.sleep(0)
        assert b"".join([each or b"" for each in came]).strip(b"r") == b""
        assert came
        before = len(came)
        far.send(b"r")
        await until(lambda: len(came) > before)
        far.close()
        await until(lambda: b"" in came)
        await transport.aclose()

    run(main)


def test_a_reader_that_another_takes_away_is_not_called(pair: Pair) -> None:
    near, far = pair
    other, there = socket.socketpair()

    async def main(loop: DirectLoop) -> None:
        calls: list[str] = []

        def first() -> None:
            calls.append("one")
            for sock in (near, other):
                loop.remove_reader(sock.fileno())

        read_directly(loop, near, first)
        read_directly(loop, other, first)
        far.sendall(b"x")
        there.sendall(b"x")
        await asyncio.sleep(0.05)
        assert calls == ["one"]

    with other, there:
        run(main)


def test_a_reader_that_fails_is_reported_and_the_others_go_on(pair: Pair) -> None:
    near, far = pair
    told: list[dict[str, Any]] = []

    async def main(loop: DirectLoop) -> None:
        loop.set_exception_handler(lambda _loop, context: told.append(context))

        def reader() -> None:
            near.recv(1)
            raise ValueError("as the test wants it")

        read_directly(loop, near, reader)
        far.sendall(b"xy")
        await until(lambda: len(told) >= 2)

    run(main)
    assert str(told[0]["exception"]) == "as the test wants it"
    assert told[0]["message"] == "a direct reader failed"


def test_what_threads_hand_over_comes_in_its_order_and_behind_what_was_readable(pair: Pair) -> None:
    near, far = pair

    async def main(loop: DirectLoop) -> None:
        came: list[object] = []
        loop.watch_bell()
        loop.watch_bell()
        read_directly(loop, near, lambda: came.append(near.recv(1)))

        def hand_over() -> None:
            for number in range(3):
                loop.call_directly_threadsafe(partial(came.append, number))
            far.sendall(b"a")

        thread = threading.Thread(target=hand_over)
        thread.start()
        thread.join(10)  # the loop has not looked meanwhile
        await until(lambda: len(came) >= 4)
        assert came == [b"a", 0, 1, 2]

    run(main)


def test_a_fault_in_what_a_thread_hands_over_is_told_and_the_rest_is_called() -> None:
    told: list[dict[str, Any]] = []

    async def main(loop: DirectLoop) -> None:
        came: list[int] = []
        loop.set_exception_handler(lambda _, context: told.append(context))
        loop.watch_bell()
        loop.call_directly_threadsafe(partial(int, "no number"))
        loop.call_directly_threadsafe(partial(came.append, 1))
        loop.call_directly_threadsafe(
            lambda: loop.call_directly_threadsafe(partial(came.append, 2))
        )
        await until(lambda: came == [1, 2])

    run(main)
    assert [each["message"] for each in told] == ["a direct reader failed"]


def test_a_closed_loop_refuses_what_threads_hand_over() -> None:
    loop = DirectLoop()
    loop.watch_bell()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_directly_threadsafe(list)
    loop.close()


def test_work_of_a_thread_takes_no_turn_of_asyncio() -> None:
    """Counted, as the round trip below."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename.replace("\\", "/")] += 1

    async def main(_loop: DirectLoop) -> None:
        worker = Worker("the worker")
        over = asyncio.Event()
        left = 200

        def done(failure: BaseException | None) -> None:
            nonlocal left
            assert failure is None
            left -= 1
            if left:
                worker.give(list, done)
            else:
                over.set()

        worker.give(list, done)
        sys.setprofile(note)
        try:
            await over.wait()
        finally:
            sys.setprofile(None)
        worker.stop()

    run(main)
    in_asyncio = sum([each for name, each in calls.items() if "/asyncio/" in name])
    # For the last one this waits as a task does.
    assert in_asyncio < 100


def test_its_selector_keeps_the_rules_of_selectors(pair: Pair) -> None:
    near, _ = pair
    selector = _DirectSelector(lambda _: None)
    with pytest.raises(KeyError, match="is not registered"):
        selector.get_key(near)
    key = selector.register(near, 1, "data")
    with pytest.raises(KeyError, match="already registered"):
        selector.register(near, 1)
    assert selector.get_key(near) is key
    assert selector.get_map()[near.fileno()] is key
    assert selector.select(0) == []
    assert selector.modify(near, 3).data is None
    assert selector.select(0) == [(selector.get_key(near), 2)]
    fd = near.fileno()
    near.close()
    assert selector.unregister(fd).events == 3  # the kernel has forgotten it before
    with pytest.raises(KeyError):
        selector.unregister(fd)
    selector.close()


def test_a_round_trip_takes_no_turn_of_asyncio() -> None:
    """Counted: a guard that does not depend on the machine's mood."""
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            counts[frame.f_code.co_filename.replace("\\", "/")] += 1

    def ask(port: int, times: int) -> None:
        name = "responder"
        with greet(port, "asker") as asker, greet(port, name) as responder:
            request = Frame.build(
                TYPE_DIRECT_MESSAGE,
                name,
                1,
                b"?",
                message_id="m",
                source="asker",
                pending_response=True,
            ).raw
            answer = Frame.build(TYPE_RESPONSE, "asker", 0, message_id="m", source=name).raw
            for _ in range(times):
                asker.sendall(request)
                assert responder.recv(1_000)
                responder.sendall(answer)
                assert asker.recv(1_000)

    def counted(times: int) -> Counter[str]:
        async def main(_loop: DirectLoop) -> None:
            async with serving() as server:
                port = server.addresses[0].port
                sys.setprofile(note)
                try:
                    await asyncio.get_running_loop().run_in_executor(None, ask, port, times)
                finally:
                    sys.setprofile(None)

        counts.clear()
        run(main)
        return Counter(counts)

    def calls_of_one() -> tuple[float, float]:
        """How many calls of asyncio, and of ours, a round trip takes."""
        few, many = counted(100), counted(600)
        more = {name: (many[name] - few[name]) / 500 for name in many}
        asyncio_calls = sum([each for name, each in more.items() if "/asyncio/" in name])
        return asyncio_calls, sum(
            [each for name, each in more.items() if "/tmqp_server/io/" in name]
        )

    asyncio_calls, ours = calls_of_one()
    for _ in range(4):
        if asyncio_calls >= 1:  # a machine was so slow that timers came in between
            asyncio_calls, ours = calls_of_one()
    assert asyncio_calls < 1
    assert ours < 9
    assert compiled or ours >= 5  # what is compiled calls without being seen


def test_without_epoll_it_is_asyncio_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "epoll")
    loop = direct_loop()
    assert not isinstance(loop, DirectLoop)
    loop.close()
