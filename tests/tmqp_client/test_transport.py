"""Ways to the server: TCP and Unix sockets and TLS, several addresses, and each way to fail."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream, SocketListener
from anyio.streams.tls import TLSListener

from tests.certificates import make_certificate
from tests.tmqp_client.peer import Peer, broker, connect
from tmqp import Frame, FrameDecoder, MessageType
from tmqp.address import Address
from tmqp_client import ClientLimits, ConnectFailed
from tmqp_client._io.transport import READ_BYTES, SocketTransport, StreamTransport, open_transport


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


@pytest.fixture
def listening() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, server.getsockname()[1]


# --- The fast side -------------------------------------------------------------------------------


async def test_a_socket_takes_what_fits_and_says_when_there_is_room_again() -> None:
    left, right = socket.socketpair()
    transport = SocketTransport(left)
    data = memoryview(b"x" * 10_000_000)
    sent = transport.try_send(data)
    assert 0 < sent < len(data)
    while count := transport.try_send(data[sent:]):
        sent += count
    assert not transport.sending
    received = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(transport.wait_sendable)
        await anyio.wait_all_tasks_blocked()
        while received < sent:
            received += len(right.recv(1_000_000))
    assert transport.try_send(data[:10]) == 10
    await transport.aclose()
    await transport.aclose()
    right.close()


async def test_a_socket_reads_to_the_end() -> None:
    left, right = socket.socketpair()
    transport = SocketTransport(left)
    right.sendall(b"x" * 100_000)
    right.close()
    received = b""
    while data := await transport.receive():
        assert len(data) <= READ_BYTES
        received += data
    assert received == b"x" * 100_000
    await transport.aclose()


async def test_closing_wakes_whoever_reads() -> None:
    async def read() -> None:
        with pytest.raises(OSError, match="closed on this side"):
            await transport.receive()
        with pytest.raises(OSError, match="closed on this side"):
            await transport.receive()

    left, right = socket.socketpair()
    transport = SocketTransport(left)
    with right:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            await transport.aclose()


async def test_a_broken_socket_is_an_os_error() -> None:
    left, right = socket.socketpair()
    transport = SocketTransport(left)
    right.close()
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        transport.try_send(memoryview(b"x"))
    await transport.aclose()


# --- Connecting ----------------------------------------------------------------------------------


async def test_every_address_of_a_host_is_tried(
    monkeypatch: pytest.MonkeyPatch, unused_port: int, listening: tuple[socket.socket, int]
) -> None:
    async def addresses(host: str, port: int, **_: Any) -> list[Any]:
        assert host == "several.example"
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", unused_port)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

    monkeypatch.setattr(anyio, "getaddrinfo", addresses)
    transport = await open_transport(Address("several.example", listening[1]), 5.0)
    await transport.aclose()
    with pytest.raises(ConnectFailed, match=r"several.example:.*: connection refused$"):
        await open_transport(Address("several.example", unused_port), 5.0)


async def test_a_host_without_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: Any, **__: Any) -> list[Any]:
        return []

    monkeypatch.setattr(anyio, "getaddrinfo", none)
    with pytest.raises(ConnectFailed, match="has no address"):
        await open_transport(Address("nobody.example"), 5.0)


async def test_a_name_that_is_none() -> None:
    with pytest.raises(ConnectFailed, match="cannot connect to tmq://no such host:2622: "):
        await open_transport(Address("no such host"), 5.0)
    with pytest.raises(ConnectFailed):
        await open_transport(Address("x" * 300 + ".example"), 5.0)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_a_server_that_takes_nobody_in_is_given_up(kind: str, tmp_path: Path) -> None:
    family = socket.AF_INET if kind == "tcp" else socket.AF_UNIX
    with socket.socket(family) as server:
        server.bind(("127.0.0.1", 0) if kind == "tcp" else str(tmp_path / "s"))
        server.listen(0)
        name = server.getsockname()
        address = Address("127.0.0.1", name[1]) if kind == "tcp" else Address(socket_path=name)
        waiting = [socket.socket(family) for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(name)
        try:
            with pytest.raises(ConnectFailed, match=r"no answer in 0\.\d+ s"):
                await open_transport(address, 0.2)
        finally:
            for sock in waiting:
                sock.close()


async def test_a_full_unix_backlog_is_waited_for(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
        connected = [sock.connect_ex(str(tmp_path / "s")) for sock in waiting].count(0)
        assert connected < 4, "the backlog is full"
        async with anyio.create_task_group() as tasks:

            async def connect_late() -> None:
                transport = await open_transport(Address(socket_path=str(tmp_path / "s")), 5.0)
                assert transport.try_send(memoryview(b"x")) == 1
                await transport.aclose()

            tasks.start_soon(connect_late)
            await anyio.sleep(0.05)
            for _ in range(connected):
                server.accept()[0].close()
        for sock in waiting:
            sock.close()


async def test_where_there_are_no_unix_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(ConnectFailed, match="no Unix sockets"):
        await open_transport(Address(socket_path="/x"), 5.0)


async def test_cancelling_while_connecting_closes_the_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Were it left open, its ResourceWarning would be an error.
    monkeypatch.setattr(anyio, "wait_writable", lambda _: anyio.sleep_forever())
    with socket.create_server(("127.0.0.1", 0)) as server:
        with anyio.move_on_after(0.05) as scope:
            await open_transport(Address("127.0.0.1", server.getsockname()[1]), 5.0)
        assert scope.cancelled_caught


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


async def secure_listener(certificate: tuple[Path, Path]) -> tuple[TLSListener, int]:
    key, cert = certificate
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    plain = socket.create_server(("127.0.0.1", 0))
    listener = await SocketListener.from_socket(plain)
    return TLSListener(listener, context, standard_compatible=False), plain.getsockname()[1]


async def test_tls(certificate: tuple[Path, Path]) -> None:
    client_context = ssl.create_default_context(cafile=str(certificate[1]))

    async def handle(stream: ByteStream) -> None:
        async with stream:
            await broker(Peer(stream))

    listener, port = await secure_listener(certificate)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        async with connect(f"tmqs://localhost:{port}", ssl_context=client_context) as client:
            assert client._line.link is not None
            assert isinstance(client._line.link.transport, StreamTransport)
            report = await client.push_many("orders", 1, [b"x" * 5_000] * 500)
            assert report.confirmed == 500
            await client.push("orders", 1, b"x" * 900_000)
            assert await client.ping() > 0
        with pytest.raises(ConnectFailed, match="certificate verify failed"):
            async with connect(f"tmqs://localhost:{port}"):
                pytest.fail("it cannot be entered")
        with pytest.raises(ConnectFailed, match=r"IP address mismatch|doesn't match"):
            async with connect(f"tmqs://127.0.0.1:{port}", ssl_context=client_context):
                pytest.fail("it cannot be entered")
        limits = ClientLimits(connect_timeout_s=0.5)
        with pytest.raises(ConnectFailed):
            async with connect(f"tmq://127.0.0.1:{port}", limits=limits):
                pytest.fail("it cannot be entered")
        tasks.cancel_scope.cancel()


async def test_a_client_on_tls_closed_before_it_had_sent_its_reason(
    certificate: tuple[Path, Path],
) -> None:
    """Where a write has to be waited for, Terminate was still unsent when the client closed."""
    context = ssl.create_default_context(cafile=str(certificate[1]))
    heard = bytearray()
    over = anyio.Event()

    async def handle(stream: ByteStream) -> None:
        async with stream:
            not_utf8 = b"\x11\x10\x02\x00\x00\x00\x00\x00\xc3("
            accepted = Frame.build(MessageType.SERVER, "c1", 202)
            await stream.send(b"TMQP/2.0" + accepted.raw + not_utf8)
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    heard.extend(await stream.receive())
        over.set()

    listener, port = await secure_listener(certificate)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        with pytest.raises(ConnectFailed, match="not UTF-8"):
            async with connect(f"tmqs://localhost:{port}", ssl_context=context):
                pytest.fail("it cannot be entered")
        with anyio.fail_after(20):
            await over.wait()
        tasks.cancel_scope.cancel()
    last = FrameDecoder().feed(bytes(heard[8:]))[-1]
    assert (last.type, last.content_type) == (MessageType.TERMINATE, 400)
