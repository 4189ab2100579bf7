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

    The copy here is removed if it waits, and not sent again if it is in flight; the decision is not
    passed on.  If this broker does not share decisions or has no such message, the command is only
    counted.  ``positive`` says whether the consumer there accepted the message.
    """

    __slots__ = ("channel", "queue_id", "message_id", "positive")

    def __init__(self, channel: str, queue_id: int, message_id: str, positive: bool = True) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id
        self.positive = positive


class ReportMaster(Command):
    """Report that this server has a master of this name, and whether it is connected to it (F69).

    ``node_id`` is this server's name for the master; ``host`` is its machine.
    """

    __slots__ = ("node_id", "host", "connected")

    def __init__(self, node_id: str, host: str, connected: bool) -> None:
        self.node_id = node_id
        self.host = host
        self.connected = connected


class ReportMembers(Command):
    """Report the known servers of this server's group, which shares one log.

    ``members`` are NodeSnapshots; the list replaces what was reported before.
    """

    __slots__ = ("members",)

    def __init__(self, members: list[NodeSnapshot]) -> None:
        self.members = members
