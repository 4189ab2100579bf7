"""Small HTTP programs for tests, on threads: what bindings call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Asked", "Program", "program"]


class Asked:
    """One request that came."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body


class Program(ThreadingHTTPServer):
    """A program called by HTTP.

    The last part of the path says how it answers: a number is the status; ``huge`` answers with
    more than anybody reads, ``slow`` a byte in a while, ``never`` not at all, ``garbage`` with
    something that is not HTTP, ``redirect`` sends elsewhere, ``cookie`` sets one, ``wait`` takes a
    moment, and anything else is answered with 200 and the method.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[Asked] = []
        self.stopping = threading.Event()
        self.now = 0
        self.most = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """What its URLs begin with."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that gives up is nothing to talk about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Program  # type: ignore[mutable-override]

    def _serve(self) -> None:
        program = self.server
        size = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(size)
        headers = {name.lower(): value for name, value in self.headers.items()}
        with program.lock:
            program.asked.append(Asked(self.command, self.path, headers, body))
            program.now += 1
            program.most = max(program.most, program.now)
        try:
            self._answer(self.path.partition("?")[0].rpartition("/")[2])
        finally:
            with program.lock:
                program.now -= 1

    def _answer(self, word: str) -> None:
        if word == "never":
            self.server.stopping.wait(30)
            self.close_connection = True
        elif word == "garbage":
            self.wfile.write(b"\x00\x01 this is not HTTP\r\n\r\n")
            self.close_connection = True
        elif word in ("huge", "slow"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            piece = b"x" * (65_536 if word == "huge" else 1)
            for _ in range(10_000):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                if word == "slow" and self.server.stopping.wait(0.05):
                    return
        elif word == "wait":
            self.server.stopping.wait(0.1)
            self._say(200, b"waited")
        elif word == "redirect":
            self._say(302, b"", ("Location", self.server.url + "elsewhere"))
        elif word == "cookie":
            self._say(200, b"", ("Set-Cookie", "a=b"))
        elif word.isdigit():
            self._say(int(word), f"status {word}".encode())
        else:
            self._say(200, self.command.encode())

    def _say(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@contextmanager
def program() -> Iterator[Program]:
    """Run a program for the time of the block."""
    with Program() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()
