"""Listening: addresses, clashes, stale files, and bad moments."""

from __future__ import annotations

import errno
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

import anyio
import pytest

from tmqp.address import Address
from tmqp_server.io.listener import Listener, ListenError, open_listener

pytestmark = pytest.mark.anyio


async def _accept_one(listener: Listener) -> None:
    """Serve until a client was handed over."""
    connected = anyio.Event()

    def handle(sock: socket.socket) -> None:
        sock.close()
        connected.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            await connected.wait()
            tasks.cancel_scope.cancel()


async def test_port_zero_becomes_the_port_chosen() -> None:
    listener = await open_listener(Address("127.0.0.1", 0))
    try:
        assert listener.address.port > 0
        with socket.create_connection(("127.0.0.1", listener.address.port)):
            await _accept_one(listener)
    finally:
        listener.close()


async def test_an_address_in_use_is_an_error_that_names_it() -> None:
    listener = await open_listener(Address("127.0.0.1", 0))
    try:
        with pytest.raises(ListenError, match=str(listener.address)):
            await open_listener(listener.address)
    finally:
        listener.close()


async def test_a_host_that_is_not_here_is_an_error() -> None:
    with pytest.raises(ListenError, match=r"192\.0\.2\.1"):
        await open_listener(Address("192.0.2.1", 0))


async def test_a_unix_socket_is_private_and_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.sock"
    listener = await open_listener(Address(socket_path=str(path)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        await _accept_one(listener)
    listener.close()
    assert not path.exists()


async def test_the_file_of_a_server_that_died_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    listener = await open_listener(Address(socket_path=str(path)))
    listener.close()


async def test_a_live_server_keeps_its_socket(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.sock"
    listener = await open_listener(Address(socket_path=str(path)))
    with pytest.raises(ListenError, match="another server listens there"):
        await open_listener(Address(socket_path=str(path)))
    assert path.exists()
    listener.close()


async def test_the_socket_of_another_kind_of_program_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        with pytest.raises(ListenError):
            await open_listener(Address(socket_path=str(path)))
        assert path.exists()


async def test_a_file_that_is_no_socket_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(ListenError):
        await open_listener(Address(socket_path=str(path)))
    assert path.read_text() == "data"


class _Troubled:
    """A listening socket whose ``accept`` fails once, then works."""

    def __init__(self, sock: socket.socket, error: int) -> None:
        self._socket = sock
        self._error = error
        self.failures = 1
        self.failed = anyio.Event()

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            self.failed.set()
            raise OSError(self._error, "trouble")
        return self._socket.accept()

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize(
    "error", [errno.EMFILE, errno.ENOMEM, errno.EPROTO, errno.ENETDOWN, errno.EPERM]
)
async def test_a_bad_moment_is_survived(error: int) -> None:
    """F6 of the reliability cases, in small: the listener pauses and goes on.

    The kernel hands errors of the network and the firewall over as accept's own.
    """
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        troubled = _Troubled(sock, error)
        listener = Listener(troubled, Address("127.0.0.1", 0))  # type: ignore[arg-type]
        with socket.create_connection(sock.getsockname()):
            await _accept_one(listener)
        assert troubled.failures == 0


async def test_a_socket_that_cannot_accept_at_all_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        troubled = _Troubled(sock, errno.EINVAL)
        listener = Listener(troubled, Address("127.0.0.1", 0))  # type: ignore[arg-type]
        with socket.create_connection(sock.getsockname()), pytest.raises(OSError, match="trouble"):
            with anyio.fail_after(5):
                await listener.serve(lambda _sock: None)


async def test_closing_ends_the_waiting_for_clients() -> None:
    listener = await open_listener(Address("127.0.0.1", 0))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, lambda _sock: None)
            await anyio.wait_all_tasks_blocked()
            listener.close()


async def test_closing_in_a_bad_moment_ends_it_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        troubled = _Troubled(sock, errno.EMFILE)
        listener = Listener(troubled, Address("127.0.0.1", 0))  # type: ignore[arg-type]
        with socket.create_connection(sock.getsockname()), anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, lambda _sock: None)
                await troubled.failed.wait()
                listener.close()


async def test_a_closed_listener_leaves_its_descriptor_to_others() -> None:
    """The next socket gets the same number: waiting for it must not meet the old wait."""
    listener = await open_listener(Address("127.0.0.1", 0))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, lambda _sock: None)
            await anyio.wait_all_tasks_blocked()
            listener.close()
            near, far = socket.socketpair()
            with near, far:
                far.sendall(b"x")
                await anyio.wait_readable(near)


async def test_a_live_server_with_a_full_backlog_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.sock"
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(path))
        server.listen(0)
        for _ in range(3):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            with suppress(BlockingIOError):
                client.connect(str(path))
        with pytest.raises(ListenError, match="another server listens there"):
            await open_listener(Address(socket_path=str(path)))
        assert path.exists()
