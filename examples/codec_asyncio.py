"""The codec on asyncio: push one message, join its channel to receive it, close.

python examples/codec_asyncio.py 127.0.0.1 2622
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

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


async def talk(host: str, port: int, limits: Limits | None = None) -> None:
    """Exchange a few messages and print every event, until the server answers JOIN.

    :raises OSError: if there is no server, or the network fails.
    """
    now = asyncio.get_running_loop().time
    reader, writer = await asyncio.open_connection(host, port)
    with contextlib.closing(writer):
        connection = Connection(Role.CLIENT, limits, now=now())
        connection.initiate(ConnectionInformation(name="example"))
        connection.send(PUSH)
        connection.send(JOIN)
        while connection.state is not State.CLOSED:
            writer.write(connection.data_to_send())
            try:
                async with asyncio.timeout_at(connection.next_deadline()):
                    await writer.drain()
                    data = await reader.read(65_536)
                events = connection.receive(data, now()) if data else connection.receive_eof(now())
            except TimeoutError:
                events = connection.on_deadline(now())
            for event in events:
                print(event)
                if isinstance(event, ResponseReceived):
                    print(*connection.close())
        writer.write(connection.data_to_send())
    await writer.wait_closed()


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdecimal():
        sys.exit("usage: codec_asyncio.py HOST PORT")
    try:
        asyncio.run(talk(sys.argv[1], int(sys.argv[2])))
    except OSError as error:
        sys.exit(f"no conversation with {sys.argv[1]}:{sys.argv[2]}: {error}")
