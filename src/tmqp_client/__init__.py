"""An async client for TMQP/2.0, on asyncio and on trio.

::

    import anyio
    from tmqp_client import connect


    async def main():
        async with connect("tmq://127.0.0.1:2622") as client:
            await client.create_queue("orders", 1, status="push")
            await client.push("orders", 1, b"one pizza")
            async with client.consume("orders", 1) as messages:
                async for message in messages:
                    print(message.text)


    anyio.run(main)

Reading order: ``_core`` (what a client knows, without I/O), ``_io`` (sockets, tasks, reconnecting),
``session`` (sending and waiting for answers), ``operations``, ``client`` and ``consumer`` (what a
program calls), ``sync`` (the same for threads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmqp._lazy import loading as _loading
from tmqp_client._core.arguments import Headers, Payload
from tmqp_client._io.admission import WhenFull
from tmqp_client._report import BatchFailure, BatchReport, Pushed
from tmqp_client.batch import Batch
from tmqp_client.binding import Converter, JsonConverter
from tmqp_client.client import Client, connect
from tmqp_client.config import ClientLimits
from tmqp_client.connection_events import (
    ConnectionEvent,
    ConnectionEvents,
    ConnectionState,
    Disconnected,
    GaveUp,
    Reconnected,
    RestoreRefused,
)
from tmqp_client.consumer import AcknowledgeMode, Consumer, ConsumerIterator, TemporaryQueue
from tmqp_client.custom import CustomMessage, CustomMessages
from tmqp_client.dead_letters import DeadLetter
from tmqp_client.direct import DirectMessage, DirectMessages, Response, to_name, to_type
from tmqp_client.errors import (
    AlreadyAcknowledged,
    AlreadyConsuming,
    AlreadyListening,
    BatchFailed,
    ClientClosed,
    ClientError,
    ConnectFailed,
    ConnectionLost,
    ConnectRefused,
    MalformedParts,
    NegativeAcknowledge,
    OperationError,
    OperationFailed,
    OperationTimeout,
    OutOfRange,
    PullRefused,
    Refuse,
    Unreadable,
    WouldBlock,
)
from tmqp_client.events import Events
from tmqp_client.handling import HandlerAcknowledge, RetryPolicy
from tmqp_client.message import Message
from tmqp_client.operations.browsing import PeekedMessages
from tmqp_client.operations.cells import CellContents, Cells, ListedCells
from tmqp_client.operations.reading import KeptMessages
from tmqp_client.parts import Multipart
from tmqp_client.pull import Pull
from tmqp_client.reading import KeptEntry, KeptMessage, PeekedMessage
from tmqp_client.reconnect import FAIL_OVER, ReconnectPolicy
from tmqp_client.statistics import ClientStatistics
from tmqp_client.unclaimed import Unclaimed

if TYPE_CHECKING:
    from tmqp_client.any_event import AnyEvent

__all__ = [
    "FAIL_OVER",
    "AcknowledgeMode",
    "AlreadyAcknowledged",
    "AlreadyConsuming",
    "AlreadyListening",
    "AnyEvent",
    "Batch",
    "BatchFailed",
    "BatchFailure",
    "BatchReport",
    "CellContents",
    "Cells",
    "Client",
    "ClientClosed",
    "ClientError",
    "ClientLimits",
    "ClientStatistics",
    "ConnectFailed",
    "ConnectRefused",
    "ConnectionEvent",
    "ConnectionEvents",
    "ConnectionLost",
    "ConnectionState",
    "Consumer",
    "ConsumerIterator",
    "Converter",
    "CustomMessage",
    "CustomMessages",
    "DeadLetter",
    "DirectMessage",
    "DirectMessages",
    "Disconnected",
    "Events",
    "GaveUp",
    "HandlerAcknowledge",
    "Headers",
    "JsonConverter",
    "KeptEntry",
    "KeptMessage",
    "KeptMessages",
    "ListedCells",
    "MalformedParts",
    "Message",
    "Multipart",
    "NegativeAcknowledge",
    "OperationError",
    "OperationFailed",
    "OperationTimeout",
    "OutOfRange",
    "Payload",
    "PeekedMessage",
    "PeekedMessages",
    "Pull",
    "PullRefused",
    "Pushed",
    "ReconnectPolicy",
    "Reconnected",
    "Refuse",
    "Response",
    "RestoreRefused",
    "RetryPolicy",
    "TemporaryQueue",
    "Unclaimed",
    "Unreadable",
    "WhenFull",
    "WouldBlock",
    "connect",
    "to_name",
    "to_type",
]

__getattr__, __dir__ = _loading(globals(), {"any_event": "AnyEvent"})
