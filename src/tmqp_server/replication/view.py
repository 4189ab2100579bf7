"""What a server knows about its group at one moment, for operators."""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.model.nodes import NodeSnapshot
from tmqp_server.engine.records import Record
from tmqp_server.replication.life import CLAIMING, COMPLETING, ENDED, LEADER, STANDBY, Life

__all__ = ["GROUP_ROLES", "GroupView", "view_of"]

#: The roles that operators see, by the state of a life.
_ROLES: Final = {
    LEADER: "leader",
    STANDBY: "standby",
    CLAIMING: "claiming",
    COMPLETING: "claiming",
    ENDED: "ended",
}
#: All roles of a server in a group.
GROUP_ROLES: Final = tuple(dict.fromkeys(_ROLES.values()))
#: A member reports every 10 s if there is no news; one that has missed three reports is silent.
_SILENT_S: Final = 30.0


class GroupView(Record):
    """The view of a group from one of its servers.

    Attributes: ``role`` of this server, one of ``GROUP_ROLES``; ``epoch`` of the newest known
    claim, 0 for none; ``leader``, the leader's address for clients, empty if there is none;
    ``applied``, the last entry of the log that this server has, ``behind``, how many later entries
    it knows of; ``members``, all known members, itself included.
    """

    __slots__ = ("applied", "behind", "epoch", "leader", "members", "role")

    def __init__(
        self,
        role: str,
        epoch: int,
        leader: str,
        applied: int,
        behind: int,
        members: list[NodeSnapshot],
    ) -> None:
        self.role = role
        self.epoch = epoch
        self.leader = leader
        self.applied = applied
        self.behind = behind
        self.members = members


def view_of(life: Life, appended: int, now: float) -> GroupView:
    """The current view of a life.

    :param appended: the last entry that the store of a leader has appended.
    """
    role = _ROLES[life.state]
    applied = max(life.read, appended)
    last = max(life.last, applied)
    known = life.leader
    epoch, leader = (0, "") if known is None else (known.epoch, known.address)
    node, address = life.settings.node, life.settings.address
    members = [_member(node, address, role, epoch, applied, last)]
    if life.state == LEADER:
        for each in life.members.members:
            if each.node != node:
                silent = life.members.silent_s(each.node, now) > _SILENT_S
                member = _member(each.node, each.address, "standby", epoch, each.applied, last)
                member.connected = not silent
                members.append(member)
    elif known is not None and known.node != node:
        members.insert(0, _member(known.node, leader, "leader", epoch, last, last))
    return GroupView(role, epoch, leader, applied, last - applied, members)


def _member(
    node: str, address: str, role: str, epoch: int, applied: int, last: int
) -> NodeSnapshot:
    behind = max(last - applied, 0)
    return NodeSnapshot(
        node, None, address, role != "leader", True, 0.0, role, epoch, applied, behind
    )
