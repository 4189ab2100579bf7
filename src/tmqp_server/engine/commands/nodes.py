"""The commands about other nodes: their decisions, and whether they are connected.

They do not come from clients: the door of a node's connection, or this server's connection to a
master, creates them.
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands.base import Command
from tmqp_server.engine.model.nodes import NodeSnapshot

__all__ = ["ApplyDecision", "ReportMaster", "ReportMembers"]


@mypyc_attr(acyclic=True)
class ApplyDecision(Command):
    """Another node's queue of this name is done with a message (F63).

    The copy here is removed if it waits, and not sent again if it is in flight; it is not told on.
    Nothing happens, and it is counted, when this broker does not share decisions or knows no such
    message.  ``positive`` says whether the consumer there accepted the message.
    """

    __slots__ = ("channel", "queue_id", "message_id", "positive")

    def __init__(self, channel: str, queue_id: int, message_id: str, positive: bool = True) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id
        self.positive = positive


class ReportMaster(Command):
    """This server has a master of this name, and is connected to it or not (F69).

    ``node_id`` is what this server calls it; ``host`` is where it is.
    """

    __slots__ = ("node_id", "host", "connected")

    def __init__(self, node_id: str, host: str, connected: bool) -> None:
        self.node_id = node_id
        self.host = host
        self.connected = connected


class ReportMembers(Command):
    """The servers of this server's group with one log are these, as far as it knows.

    ``members`` are NodeSnapshots; the list replaces what was reported before.
    """

    __slots__ = ("members",)

    def __init__(self, members: list[NodeSnapshot]) -> None:
        self.members = members
