"""A hub in this process, without a network, for what is measured of it alone.

Whatever it imports is that build's which the process was given.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["open_hub", "outbound"]

_NO_END = 1 << 50


def open_hub(clients: int, most: int) -> Any:
    """A hub with so many clients, whose sessions have the numbers from 1 on, and their ids are
    ``client1`` and so on; a queue of it may hold so many messages."""
    constants: Any = importlib.import_module("tmqp.constants")
    hello: Any = importlib.import_module("tmqp.hello")
    frames: Any = importlib.import_module("tmqp.frames")
    limits: Any = importlib.import_module("tmqp_server.engine.limits")
    doors: Any = importlib.import_module("tmqp_server.doors.native.door")
    hubs: Any = importlib.import_module("tmqp_server.hub.hub")
    brokers: Any = importlib.import_module("tmqp_server.engine.broker")
    letters: Any = importlib.import_module("tmqp_server.doors.letters")
    wires: Any = importlib.import_module("tmqp_server.doors.wires")
    bounds: Any = importlib.import_module("tmqp.limits")
    broker = brokers.Broker(
        limits.EngineLimits(
            max_messages_per_queue=most, max_queue_bytes=_NO_END, max_total_bytes=_NO_END
        )
    )
    broker.know_wires(wires.LetterWires(letters.Letters()))
    hub = hubs.Hub(broker)
    door = doors.NativeDoor(lambda: "id", bounds.Limits())
    for number in range(1, clients + 1):
        hub.open(number, door, 0.0)
        who = hello.ConnectionInformation(f"client{number}").encode()
        greeting = frames.Frame.build(constants.TYPE_SERVER, "", constants.SERVER_HELLO, who)
        hub.receive(number, constants.PREAMBLE + greeting.raw, 0.0)
    outbound(hub)
    return hub


def outbound(hub: Any) -> int:
    """Take what all sessions have to send; returns how many bytes that is."""
    size = 0
    while pieces := hub.take_outbound():
        size += sum([len(data) for _, data in pieces])
    return size
