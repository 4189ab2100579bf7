"""Facts about another server, of a cluster or of a group."""

from __future__ import annotations

from tmqp_server.engine.records import Record

__all__ = ["NodeSnapshot"]


class NodeSnapshot(Record):
    """One other node of the cluster (F69); ``slave`` says that it connected to this server.

    ``lifetime_ms`` counts from connecting and is 0 while it is not connected.

    A server of a group with one log has a ``role`` as well, itself included: ``leader``,
    ``standby`` or ``claiming``; of such a server ``host`` is its address for clients, ``epoch`` the
    number of the leader's claim, ``applied`` the last entry of the log that it has, and ``behind``
    how many more there are.
    """

    __slots__ = (
        "applied",
        "behind",
        "connected",
        "epoch",
        "host",
        "lifetime_ms",
        "name",
        "node_id",
        "role",
        "slave",
    )

    def __init__(
        self,
        node_id: str,
        name: str | None,
        host: str,
        slave: bool,
        connected: bool,
        age_s: float,
        role: str = "",
        epoch: int = 0,
        applied: int = 0,
        behind: int = 0,
    ) -> None:
        self.node_id = node_id
        self.name = name
        self.host = host
        self.slave = slave
        self.connected = connected
        self.role = role
        self.epoch = epoch
        self.applied = applied
        self.behind = behind
        self.lifetime_ms: int = max(int(age_s * 1000), 0)
