"""The stage of cases for clients: one port on which clients under test connect.

Either a command starts a client for each case, or the client is a *driver* that requests cases: it
connects with the path ``/control``, sends a direct message to ``conformance`` with the content type
2, and gets the next case and its task as JSON; then it connects again and carries out the task.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tmqp import (
    Connection,
    DirectMessageReceived,
    Event,
    Frame,
    HandshakeReceived,
    MessageType,
    Role,
    State,
)
from tmqp.address import Address
from tmqp.testing.conformance import Case, UnreachableError
from tmqp_conformance.sockets import SocketWire

__all__ = ["COUNT", "FINISH", "NEXT", "STATUS", "ClientStage", "Listener"]

#: Content types of control requests.
COUNT: Final = 1
NEXT: Final = 2
STATUS: Final = 3
FINISH: Final = 4
_CONTROL_PATH: Final = "/control"
_CONTROL_TARGET: Final = "conformance"
_NO_MORE: Final = 404
_READ_BYTES: Final = 65_536
#: How long a hello may take before a connection is taken for a case's.
_HELLO_S: Final = 1.0
_HANDSHAKE_S: Final = 5.0
_END_S: Final = 3.0


class Listener:
    """The port, or the Unix socket; ``address`` is where it listens.

    :param address: port 0 for any that is free.
    :param tls: the TLS context, if the address requires TLS.
    """

    def __init__(self, address: Address, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        if address.socket_path:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._socket.bind(address.socket_path)
                self._socket.listen()
            except OSError:
                self._socket.close()
                raise
            self.address = address
        else:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            self._socket = socket.create_server((address.host, address.port), family=family)
            port = self._socket.getsockname()[1]
            self.address = Address(address.host, port, tls=address.tls)

    def accept(self, wait_s: float) -> socket.socket | None:
        """Return the next connection; None if there is none within this time."""
        deadline = time.monotonic() + wait_s
        while True:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.000_1))
            try:
                sock = self._socket.accept()[0]
            except TimeoutError:
                return None
            if self._tls is None:
                return sock
            try:
                sock.settimeout(_HANDSHAKE_S)
                return self._tls.wrap_socket(sock, server_side=True)
            except OSError:
                sock.close()  # this was no client

    def drain(self) -> None:
        """Drop the connections that were not accepted: those of a client that has been
        terminated."""
        while True:
            self._socket.settimeout(0.0)
            try:
                self._socket.accept()[0].close()
            except OSError:
                return

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
        if self.address.socket_path:
            Path(self.address.socket_path).unlink(missing_ok=True)


class _Begun(SocketWire):
    """A connection from which some bytes have already been read."""

    def __init__(self, sock: socket.socket, begin: bytes) -> None:
        super().__init__(sock)
        self._begin = begin

    def receive(self, wait_s: float) -> bytes:
        """Return the bytes that were read before, then further bytes."""
        if self._begin:
            begin, self._begin = self._begin, b""
            return begin
        return super().receive(wait_s)


class ClientStage:
    """Plays cases with the clients that connect to a listener.

    :param command: starts a client for a case, with ``{url}``, ``{case}`` and ``{task}`` in it;
        None if a driver requests cases.
    :param wait_s: how long a client may take to connect.
    :param counts: for drivers: the number of cases, and how many are done.
    """

    def __init__(
        self,
        listener: Listener,
        command: str | None,
        wait_s: float,
        counts: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:
        self._listener = listener
        self._command = command
        self._wait_s = wait_s
        self._counts = counts
        self._process: subprocess.Popen[bytes] | None = None
        self._control: _Control | None = None
        self._finished = False
        self._started = ""

    def open(self, line: str, case: Case) -> SocketWire:
        """Wait until the client under test connects.

        :raises UnreachableError: if it does not connect.
        """
        if self._started != case.id:
            self._started = case.id
            self._begin(case)
        deadline = time.monotonic() + self._wait_s
        while True:
            sock = self._listener.accept(deadline - time.monotonic())
            if sock is None:
                raise UnreachableError(f"no client connected within {self._wait_s:g} s")
            if self._command is not None:
                return SocketWire(sock)
            begin, control = _classify(sock)
            if not control:
                return _Begun(sock, begin)
            # The driver has finished the case and requests the next one.
            self._control = _Control(sock, begin)
            raise UnreachableError("the client does not connect for this case")

    def finish(self) -> None:
        """Terminate the client that was started for the last case."""
        if self._process is not None:
            _end(self._process)
            self._process = None
            self._listener.drain()
        self._started = ""

    def dismiss(self) -> None:
        """Tell a driver that there are no more cases."""
        if self._command is None:
            with contextlib.suppress(UnreachableError):
                self._answer(None)

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def restart(self) -> None:
        """See :class:`tmqp.testing.conformance.Stage`."""
        raise UnreachableError("a client cannot be restarted")

    def _begin(self, case: Case) -> None:
        if self._command is None:
            self._answer(case)
            return
        self.finish()
        self._started = case.id
        words = {"url": str(self._listener.address), "case": case.id, "task": case.task or "stay"}
        parts = [_fill(part, words) for part in shlex.split(self._command)]
        try:
            self._process = subprocess.Popen(
                parts, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        except OSError as error:
            raise UnreachableError(f"{parts[0]}: {error}") from error

    def _answer(self, case: Case | None) -> None:
        """Wait until the driver requests a case, and send it one; None makes it end."""
        if self._finished:
            raise UnreachableError("the driver has ended the run")
        control, self._control = self._control, None
        deadline = time.monotonic() + self._wait_s
        while True:
            if control is None:
                sock = self._listener.accept(deadline - time.monotonic())
                if sock is None:
                    raise UnreachableError("no driver requested a case")
                begin, is_control = _classify(sock)
                if not is_control:
                    sock.close()
                    continue
                control = _Control(sock, begin)
            done = control.serve(case, self._counts(), deadline)
            self._finished = control.finished
            control.close()
            if self._finished:
                raise UnreachableError("the driver has ended the run")
            control = None
            if done:
                return


def _fill(part: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        part = part.replace(f"{{{word}}}", value)
    return part


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a client that was started, if it still runs."""
    try:
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _classify(sock: socket.socket) -> tuple[bytes, bool]:
    """Read the hello; return the bytes, and whether it is a control connection."""
    reader = Connection(Role.SERVER)
    begin = b""
    deadline = time.monotonic() + _HELLO_S
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            data = sock.recv(_READ_BYTES)
        except OSError:
            break
        begin += data
        events = reader.receive(data, 0.0)
        hellos = [event for event in events if isinstance(event, HandshakeReceived)]
        if hellos:
            return begin, hellos[0].information.path == _CONTROL_PATH
        if not data or reader.state == State.CLOSED:
            break
    return begin, False


class _Control:
    """A control connection of a driver."""

    def __init__(self, sock: socket.socket, begin: bytes) -> None:
        self.finished = False
        self._socket = sock
        self._connection = Connection(Role.SERVER)
        self._events: list[Event] = self._connection.receive(begin, 0.0)
        self._events += self._connection.accept("driver")
        self._flush()

    def serve(self, case: Case | None, counts: tuple[int, int], deadline: float) -> bool:
        """Answer requests until a case was requested; return False if the driver disconnects
        before."""
        while True:
            for event in self._events:
                if isinstance(event, DirectMessageReceived) and self._reply(
                    event.frame, case, counts
                ):
                    return True
            if self._connection.state == State.CLOSED:
                return False
            self._socket.settimeout(max(deadline - time.monotonic(), 0.000_1))
            try:
                data = self._socket.recv(_READ_BYTES)
            except OSError:
                return False
            if not data:
                return False
            self._events = self._connection.receive(data, 0.0)

    def _reply(self, frame: Frame, case: Case | None, counts: tuple[int, int]) -> bool:
        """Answer one request; return True if it was for a case, or the last one."""
        code = 0
        found: dict[str, object] = {}
        if frame.target != _CONTROL_TARGET:
            code = _NO_MORE
        elif frame.content_type == NEXT and case is not None:
            found = {"case": case.id, "task": case.task or "stay", "title": case.title}
        elif frame.content_type in (COUNT, STATUS, FINISH):
            found = {"cases": counts[0], "done": counts[1]}
        else:
            code = _NO_MORE
        answer = Frame.build(
            MessageType.RESPONSE,
            "driver",
            code,
            json.dumps(found).encode() if found else b"",
            message_id=frame.message_id,
        )
        self._connection.send(answer)
        self._flush()
        if frame.target != _CONTROL_TARGET:
            return False
        self.finished = frame.content_type == FINISH
        return self.finished or frame.content_type == NEXT

    def close(self) -> None:
        """Leave."""
        self._socket.close()

    def _flush(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(self._connection.data_to_send())
