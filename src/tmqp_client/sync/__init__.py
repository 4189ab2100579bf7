"""A blocking client with the same names, for threads, scripts and a prompt.

::

    from tmqp_client.sync import connect

    with connect("tmq://127.0.0.1:2622") as client:
        client.create_queue("orders", 1, status="push")
        client.push("orders", 1, "one pizza")
        with client.consume("orders", 1) as messages:
            for message in messages:
                print(message.text)

Without ``with``, ``client = connect(...).open()`` connects and ``client.close()`` ends it.  Any
number of threads may use a client at a time.  It is the async client, in an event loop in a
separate thread, so reading, pongs and reconnecting continue between calls.
"""

from __future__ import annotations

from tmqp_client.sync._client import Client, connect
from tmqp_client.sync._generated_received import (
    Batch,
    Consumer,
    ConsumerIterator,
    DirectMessage,
    DirectMessages,
    Message,
    Pull,
    TemporaryQueue,
)
from tmqp_client.sync._generated_streams import (
    Cells,
    ConnectionEvents,
    CustomMessage,
    CustomMessages,
    Events,
    KeptMessages,
    ListedCells,
    PeekedMessages,
    Unclaimed,
)

__all__ = [
    "Batch",
    "Cells",
    "Client",
    "ConnectionEvents",
    "Consumer",
    "ConsumerIterator",
    "CustomMessage",
    "CustomMessages",
    "DirectMessage",
    "DirectMessages",
    "Events",
    "KeptMessages",
    "ListedCells",
    "Message",
    "PeekedMessages",
    "Pull",
    "TemporaryQueue",
    "Unclaimed",
    "connect",
]
