"""Transports: the same promises from a real socket and from a stream."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import anyio
import pytest

from tmqp_server.io.transport import SocketTransport, StreamTransport, Transport, peer_name

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["tcp", "unix", "stream"])
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Transport, socket.socket]]:
    """A transport and the plain socket at its other end."""
    if request.param == "tcp":
        with socket.create_server(("127.0.0.1", 0)) as listener:
            far = socket.create_connection(listener.getsockname())
            near, _ = listener.accept()
    else:
        near, far = socket.socketpair()
    transport: Transport
    if request.param == "stream":
        near.setblocking(False)
        stream = await anyio.abc.UNIXSocketStream.from_socket(near)
        transport = StreamTransport(stream, "stream")
    else:
        transport = SocketTransport(near, peer_name(near))
    far.settimeout(5)
    yield transport, far
    await transport.aclose()
    far.close()


async def test_it_receives_what_was_sent_then_the_end(
    pair: tuple[Transport, socket.socket],
) -> None:
    transport, far = pair
    far.sendall(b"hello")
    with anyio.fail_after(5):
        assert await transport.receive() == b"hello"
        far.shutdown(socket.SHUT_WR)
        assert await transport.receive() == b""


async def test_waiting_for_bytes_does_not_block_the_loop(
    pair: tuple[Transport, socket.socket],
) -> None:
    transport, far = pair

    async def later() -> None:
        await anyio.sleep(0.02)
        far.sendall(b"late")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(later)
            assert await transport.receive() == b"late"


async def test_what_send_leaves_send_some_sends(
    pair: tuple[Transport, socket.socket],
) -> None:
    transport, far = pair
    data = bytes(range(256)) * 16_384  # 4 MiB: more than any socket buffer here
    received = bytearray()
    offset = transport.send(data)

    def read_all() -> None:
        while len(received) < len(data):
            received.extend(far.recv(1_048_576))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, read_all)
            while offset < len(data):
                sent = await transport.send_some(data[offset : offset + 1_000_000])
                assert sent > 0
                offset += sent
    assert bytes(received) == data


async def test_a_reset_is_an_oserror(pair: tuple[Transport, socket.socket]) -> None:
    transport, far = pair
    far.close()

    async def send_for_ever() -> None:
        while True:
            await transport.send_some(b"x" * 65_536)

    with anyio.fail_after(5), pytest.raises(OSError):
        await send_for_ever()


async def test_a_reset_while_reading_is_an_oserror(
    pair: tuple[Transport, socket.socket],
) -> None:
    """Left unread at the other end, what was sent turns its close into a reset."""
    transport, far = pair
    assert await transport.send_some(b"never read") == 10
    far.close()
    with anyio.fail_after(5), pytest.raises(OSError):
        await transport.receive()


async def test_closing_ends_a_wait() -> None:
    """Anyio would otherwise wait for a descriptor that may be somebody else's by then."""
    near, far = socket.socketpair()
    transport = SocketTransport(near, "x")
    failed = anyio.Event()

    async def wait() -> None:
        with pytest.raises(OSError):
            await transport.receive()
        failed.set()

    with far, anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.sleep(0.01)
            await transport.aclose()
            await failed.wait()


def test_a_peer_has_a_name() -> None:
    near, far = socket.socketpair()
    with near, far:
        assert peer_name(near) == "unix"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with pytest.raises(OSError):
            listener.getpeername()
        assert peer_name(listener) == "unknown"
        with socket.create_connection(listener.getsockname()) as client:
            port = listener.getsockname()[1]
            assert peer_name(client) == f"127.0.0.1:{port}"


async def test_sending_some_of_much_does_not_wait_for_all(
    pair: tuple[Transport, socket.socket],
) -> None:
    """Or a peer that reads steadily would look stalled while a large piece goes out."""
    transport, far = pair
    far.settimeout(5)
    data = b"x" * 64_000_000  # more than Linux ever keeps for both sides
    with anyio.fail_after(5):
        sent = await transport.send_some(data)  # nobody reads
    assert 0 < sent < len(data)


async def test_a_watched_socket_calls_again_and_again_until_it_is_watched_no_more(
    pair: tuple[Transport, socket.socket], anyio_backend: str
) -> None:
    transport, far = pair
    came: list[bytes | None] = []
    called = anyio.Event()

    def ready() -> None:
        came.append(transport.receive_now())
        anyio.current_time()  # who is called may ask anyio
        called.set()

    can = isinstance(transport, SocketTransport) and anyio_backend == "asyncio"
    assert transport.watch(ready) is can
    if not can:
        assert transport.receive_now() is None
        transport.unwatch()
        return
    for number in range(3):
        called = anyio.Event()
        far.sendall(b"%d" % number)
        with anyio.fail_after(5):
            await called.wait()
    assert came == [b"0", b"1", b"2"]
    assert transport.receive_now() is None
    transport.unwatch()
    far.sendall(b"more")
    await anyio.sleep(0.05)
    assert len(came) == 3
    assert transport.receive_now() == b"more"
    assert transport.watch(ready)
    await transport.aclose()  # with the watch still there
    assert not transport.watch(ready)
