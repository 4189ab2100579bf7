"""A worker that uses JSON over a WebSocket: it pushes, consumes, acknowledges and receives events.

Start a server, then run it::

    pip install websockets
    tmqp-server --door admin
    python examples/websocket_client.py 127.0.0.1:2680

``TMQP_TOKEN`` is the token of a server that has an access table.  A page of the server itself can
do the same with the browser's ``WebSocket``; the session cookie identifies it.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from typing import Any

from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

PLACE = {"channel": "orders", "queue": 1}


class Broker:
    """The broker as this client sees it; messages that arrive before an answer are kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._refs = itertools.count(1)
        self._kept: list[dict[str, Any]] = []

    def ask(self, op: str, **members: Any) -> None:
        """Send a request, and wait until it is done."""
        ref = next(self._refs)
        self._socket.send(json.dumps({"op": op, "ref": ref, **members}))
        while True:
            said: dict[str, Any] = json.loads(self._socket.recv(timeout=30))
            if said.get("ref") != ref:
                self._kept.append(said)
            elif said["op"] == "problem":
                raise SystemExit(f"{op}: {said['code']} {said['detail']}")
            else:
                return

    def hear(self, op: str) -> dict[str, Any]:
        """Return the next message or event."""
        while True:
            for place, said in enumerate(self._kept):
                if said["op"] == op:
                    return self._kept.pop(place)
            self._kept.append(json.loads(self._socket.recv(timeout=30)))


def main(admin: str) -> None:
    """Push three orders and process them, two at a time."""
    token = os.environ.get("TMQP_TOKEN", "")
    fields = {"Authorization": f"Bearer {token}"} if token else {}
    protocol = Subprotocol("tmqp.json.v1")
    url = f"ws://{admin}/api/v1/ws"
    with connect(url, subprotocols=[protocol], additional_headers=fields) as socket:
        broker = Broker(socket)
        broker.ask("subscribe", event="ChannelCreated")
        for number in (1, 2, 3):
            broker.ask("push", **PLACE, text=f"order {number}")
        event = broker.hear("event")
        print(f"{event['event']}: {event['about']['Name']}")
        broker.ask("join", channel="orders", window=2)
        for _ in range(3):
            order = broker.hear("message")
            print(f"{order['text']}: done")
            broker.ask("ack", **PLACE, id=order["id"])


if __name__ == "__main__":
    main(sys.argv[1])
