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

Reading order: ``_machine`` (what a client knows, without I/O), ``session`` (one connection's I/O),
``client`` and ``consumer`` (what a program calls).
"""

from __future__ import annotations

from tmqp_client._custom import CustomMessage, CustomMessages
from tmqp_client._report import BatchFailure, BatchReport
from tmqp_client._requests import Headers, Payload
from tmqp_client.client import Client, Unclaimed, connect
from tmqp_client.config import ClientLimits
from tmqp_client.consumer import AcknowledgeMode, Consumer, ConsumerIterator
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
    NegativeAcknowledge,
    OperationError,
    OperationFailed,
    OperationTimeout,
    OutOfRange,
    PullRefused,
)
from tmqp_client.events import AnyEvent, Events
from tmqp_client.message import Message
from tmqp_client.pull import Pull
from tmqp_client.reading import KeptMessage
from tmqp_client.statistics import ClientStatistics

__all__ = [
    "AcknowledgeMode",
    "AlreadyAcknowledged",
    "AlreadyConsuming",
    "AlreadyListening",
    "AnyEvent",
    "BatchFailed",
    "BatchFailure",
    "BatchReport",
    "Client",
    "ClientClosed",
    "ClientError",
    "ClientLimits",
    "ClientStatistics",
    "ConnectFailed",
    "ConnectRefused",
    "ConnectionLost",
    "Consumer",
    "ConsumerIterator",
    "CustomMessage",
    "CustomMessages",
    "DirectMessage",
    "DirectMessages",
    "Events",
    "Headers",
    "KeptMessage",
    "Message",
    "NegativeAcknowledge",
    "OperationError",
    "OperationFailed",
    "OperationTimeout",
    "OutOfRange",
    "Payload",
    "Pull",
    "PullRefused",
    "Response",
    "Unclaimed",
    "connect",
    "to_name",
    "to_type",
]
