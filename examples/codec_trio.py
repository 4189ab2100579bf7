"""The codec on trio: push one message, join its channel to receive it, close.

python examples/codec_trio.py 127.0.0.1 2622
"""

from __future__ import annotations

import sys

import trio

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
    now = trio.current_time
    async with await trio.open_tcp_stream(host, port) as stream:
        connection = Connection(Role.CLIENT, limits, now=now())
        connection.initiate(ConnectionInformation(name="example"))
        connection.send(PUSH)
        connection.send(JOIN)
        while connection.state is not State.CLOSED:
            await stream.send_all(connection.data_to_send())
            try:
                with trio.fail_at(connection.next_deadline() or now()):
                    data = await stream.receive_some(65_536)
                events = connection.receive(data, now()) if data else connection.receive_eof(now())
            except trio.TooSlowError:
                events = connection.on_deadline(now())
            for event in events:
                print(event)
                if isinstance(event, ResponseReceived):
                    print(*connection.close())
        await stream.send_all(connection.data_to_send())


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdecimal():
        sys.exit("usage: codec_trio.py HOST PORT")
    try:
        trio.run(talk, sys.argv[1], int(sys.argv[2]))
    except (OSError, trio.BrokenResourceError) as error:
        sys.exit(f"no conversation with {sys.argv[1]}:{sys.argv[2]}: {error}")
