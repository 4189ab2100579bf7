"""Machines without I/O behind real sockets, for tests of commands that need an address."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tmqp.testing.conformance import Case, Machine
from tmqp_conformance.keeper import PROBE

__all__ = ["served"]

_WAKES_S = 0.02


class _Server:
    """Serves a machine at a port, in one thread; its time is the number of its rounds."""

    def __init__(self, machine: Machine, case: Case) -> None:
        self.over = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self._machine = machine
        self._case = case
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.listener, selectors.EVENT_READ)
        self._sockets: dict[int, socket.socket] = {}
        self._now = 1_000.0

    def run(self) -> None:
        """Serve until it is over."""
        while not self.over:
            for key, _ in self._selector.select(_WAKES_S):
                self._now += 0.001
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            self._write()
        for number in [*self._sockets]:
            self._close(number)
        self.listener.close()
        self._selector.close()

    def _accept(self) -> None:
        sock, _ = self.listener.accept()
        number = self._machine.open(self._case, self._now)
        if number is None:
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets[number] = sock
        self._selector.register(sock, selectors.EVENT_READ, number)

    def _read(self, number: int) -> None:
        sock = self._sockets.get(number)
        if sock is None:
            return
        try:
            data = sock.recv(65_536)
        except OSError:
            data = b""
        if data:
            self._machine.receive(number, data, self._now)
            return
        self._machine.end(number, self._now)
        self._write()
        self._machine.lose(number, self._now)
        self._close(number)

    def _write(self) -> None:
        """Send what there is to send, and close what the machine has closed."""
        for number, sock in [*self._sockets.items()]:
            with contextlib.suppress(OSError):
                sock.sendall(self._machine.take(number))
            if self._machine.is_closed(number):
                self._close(number)

    def _close(self, number: int) -> None:
        sock = self._sockets.pop(number, None)
        if sock is not None:
            self._selector.unregister(sock)
            sock.close()


@contextmanager
def served(machine: Machine) -> Iterator[str]:
    """Serve a machine; its address."""
    server = _Server(machine, PROBE)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"127.0.0.1:{server.listener.getsockname()[1]}"
    finally:
        server.over = True
        thread.join(10)
        assert not thread.is_alive()
