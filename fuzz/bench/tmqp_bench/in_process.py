"""A broker or a hub in this process, without a network, for measurements of it alone.

All modules are imported from the build that the process measures.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

__all__ = ["broker_for", "create_pull_queue", "open_hub", "outbound"]

#: Bytes that no limit reaches.
_NO_END: Final = 1 << 50


def broker_for(messages: int) -> Any:
    """A broker of the build under test that takes this number of messages into a queue."""
    limits: Any = importlib.import_module("tmqp_server.engine.limits")
    brokers: Any = importlib.import_module("tmqp_server.engine.broker")
    letters: Any = importlib.import_module("tmqp_server.doors.letters")
    wires: Any = importlib.import_module("tmqp_server.doors.wires")
    broker = brokers.Broker(
        limits.EngineLimits(
            max_messages_per_queue=messages, max_queue_bytes=_NO_END, max_total_bytes=_NO_END
        )
    )
    broker.know_wires(wires.LetterWires(letters.Letters()))
    return broker


def create_pull_queue(broker: Any) -> None:
    """Create the queue 1 of the channel ``bench``, as the session 1."""
    commands: Any = importlib.import_module("tmqp_server.engine.commands")
    constants: Any = importlib.import_module("tmqp.constants")
    options: Any = importlib.import_module("tmqp_server.engine.options")
    changes = options.QueueChanges(status=constants.STATUS_PULL, request_acknowledge=False)
    broker.step(commands.CreateQueue(1, "create", "bench", 1, changes), 0.0)


def open_hub(clients: int, most: int) -> Any:
    """A hub with this number of clients, whose sessions are 1 and so on, and their ids ``client1``
    and so on; a queue takes *most* messages."""
    constants: Any = importlib.import_module("tmqp.constants")
    hello: Any = importlib.import_module("tmqp.hello")
    frames: Any = importlib.import_module("tmqp.frames")
    doors: Any = importlib.import_module("tmqp_server.doors.native.door")
    hubs: Any = importlib.import_module("tmqp_server.hub.hub")
    bounds: Any = importlib.import_module("tmqp.limits")
    hub = hubs.Hub(broker_for(most))
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
