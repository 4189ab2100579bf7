"""A rate limiter of Throttr's clients, and the same counters seen by TMQP.

Start a server, then run it::

    tmqp-server --door throttr
    python examples/throttr.py 127.0.0.1:9000 tmq://127.0.0.1:2622

The codec is that of this package; any client of Throttr with two-byte values sends the same bytes.
"""

from __future__ import annotations

import socket
import sys

from tmqp_client.sync import connect
from tmqp_wires.throttr import ClientConnection, Reply, Request, words


class Limiter:
    """A connection on which the replies have the order of the requests."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._wire = ClientConnection("7.1", 2)

    def ask(self, *requests: Request) -> list[Reply]:
        """Send requests together, and wait for all replies."""
        self._socket.sendall(b"".join(self._wire.send(request) for request in requests))
        replies: list[Reply] = []
        while len(replies) < len(requests):
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionError("the server has closed the connection")
            replies += [each for each in self._wire.receive(data) if isinstance(each, Reply)]
        return replies

    def close(self) -> None:
        """Close the connection; the counters stay."""
        self._socket.close()


def main(throttr: str, tmqp: str) -> None:
    """Allow ann three calls a minute; she tries four times."""
    host, _, port = throttr.rpartition(":")
    limiter = Limiter(host, int(port))
    key = b"ann"
    call = Request(words.UPDATE, key, amount=1, change=words.CHANGE_DECREASE)
    limiter.ask(Request(words.INSERT, key, amount=3, ttl_type=words.TTL_SECONDS, ttl=60))
    for number, reply in enumerate(limiter.ask(*[call] * 4), start=1):
        print(f"call {number}: {'allowed' if reply.ok else 'refused'}")
    with connect(tmqp) as client:
        for cell in client.cells.listed("throttr-2"):
            print(f"TMQP: {cell.key} {cell.count}")
    limiter.ask(Request(words.PURGE, key))
    limiter.close()


if __name__ == "__main__":
    main(*(sys.argv[1:] or ("127.0.0.1:9000", "tmq://127.0.0.1:2622")))
