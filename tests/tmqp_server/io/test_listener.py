"""Listening: addresses, clashes, stale files, and bad moments."""

from __future__ import annotations

import errno
import socket
import stat
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


async def test_a_file_that_is_no_socket_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(ListenError):
        await open_listener(Address(socket_path=str(path)))
    assert path.read_text() == "data"


class _Exhausted:
    """A listening socket that runs out of descriptors once, then works."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.failures = 1

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._socket.accept()


async def test_running_out_of_descriptors_is_survived() -> None:
    """F6 of the reliability cases, in small: the listener pauses and goes on."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        exhausted = _Exhausted(sock)
        listener = Listener(exhausted, Address("127.0.0.1", 0))  # type: ignore[arg-type]
        with socket.create_connection(sock.getsockname()):
            await _accept_one(listener)
        assert exhausted.failures == 0
