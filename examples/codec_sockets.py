"""The codec on a plain socket: push one message, join its channel to receive it, close.

python examples/codec_sockets.py 127.0.0.1 2622
"""

from __future__ import annotations

import socket
import sys
import time

from tmqp import (
    Connection,
    ConnectionInformation,
    Frame,
    Limits,
    MessageType,
    Operation,
    ResponseReceived,
    Role,
    State,
)

__all__ = ["talk"]

PUSH = Frame.build(MessageType.QUEUE_MESSAGE, "demo", 1, b"hello", message_id="m1")
JOIN = Frame.build(
    MessageType.SERVER, "demo", Operation.JOIN, message_id="j1", pending_response=True
)


def talk(host: str, port: int, limits: Limits | None = None) -> None:
    """Exchange a few messages and print every event, until the server answers JOIN.

    :raises OSError: if there is no server, or the network fails.
    """
    now = time.monotonic
    with socket.create_connection((host, port), timeout=5) as stream:
        connection = Connection(Role.CLIENT, limits, now=now())
        connection.initiate(ConnectionInformation(name="example"))
        connection.send(PUSH)
        connection.send(JOIN)
        while connection.state is not State.CLOSED:
            stream.sendall(connection.data_to_send())
            stream.settimeout(max((connection.next_deadline() or 0) - now(), 0.001))
            try:
                data = stream.recv(65_536)
                events = connection.receive(data, now()) if data else connection.receive_eof(now())
            except TimeoutError:
                events = connection.on_deadline(now())
            for event in events:
                print(event)
                if isinstance(event, ResponseReceived):
                    print(*connection.close())
        stream.sendall(connection.data_to_send())


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdecimal():
        sys.exit("usage: codec_sockets.py HOST PORT")
    try:
        talk(sys.argv[1], int(sys.argv[2]))
    except OSError as error:
        sys.exit(f"no conversation with {sys.argv[1]}:{sys.argv[2]}: {error}")
