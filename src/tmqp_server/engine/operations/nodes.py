"""The other nodes of a cluster and their decisions, as the broker knows them (F63, F69).

A slave of this server is a session like a client's, marked as a node; of a master, the broker knows
only what the world reports.  Messages from slaves are handled like all messages (F133).
"""

from __future__ import annotations

from tmqp.constants import RESULT_OK
from tmqp_server.engine.commands import (
    ApplyDecision,
    AskRight,
    Command,
    Configure,
    DescribeServer,
    Drain,
    ListNodes,
    Manage,
    Permission,
    ReportMaster,
    SeeAudit,
    SeeMetrics,
    SeeServer,
)
from tmqp_server.engine.core import Core, Master, Performers
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.sharing import must_be_fed
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import DrainAsked, Reply
from tmqp_server.engine.events import NODE_CONNECTED, NODE_DISCONNECTED, NodeFact
from tmqp_server.engine.model.message import MARK_DECIDED, MARK_NEGATIVE
from tmqp_server.engine.model.nodes import NodeSnapshot
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import ServerSnapshot
from tmqp_server.engine.model.times import AT_ONCE

__all__ = ["Nodes"]


class Nodes:
    """Keeps the list of nodes and applies their decisions.

    Attributes: ``members``, those of this server's group, as they were reported.
    """

    __slots__ = ("_core", "_directory", "_outcomes", "members")

    def __init__(self, core: Core, directory: Directory, outcomes: Outcomes) -> None:
        self._core = core
        self._directory = directory
        self._outcomes = outcomes
        self.members: list[NodeSnapshot] = []

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            ListNodes: self.list_nodes,
            DescribeServer: self.describe_server,
            AskRight: self.permit,
            Drain: self.drain,
            Configure: self.permit,
            Manage: self.permit,
            SeeAudit: self.permit,
            SeeMetrics: self.permit,
            SeeServer: self.permit,
        }

    def report_master(self, command: ReportMaster) -> None:
        """Record whether a master is connected, and report a change."""
        core = self._core
        node_id = command.node_id
        before = core.masters.get(node_id)
        was_connected = before is not None and before.connected
        core.masters[node_id] = Master(node_id, command.host, command.connected, core.now)
        if was_connected != command.connected:
            event = NODE_CONNECTED if command.connected else NODE_DISCONNECTED
            core.notify_node(event, NodeFact(node_id, None, command.host, False))

    def apply_decision(self, command: ApplyDecision) -> None:
        """Settle a message that another node has settled (F63)."""
        core = self._core
        queue = self._directory.find_queue(command.channel, command.queue_id)
        message = None if queue is None else queue.shared.get(command.message_id)
        if queue is None or message is None or must_be_fed(queue, message):
            core.counters.decisions_unknown += 1
            return
        core.counters.decisions_applied += 1
        deferred = message.rare is not None and message.rare.due_at != AT_ONCE
        if message.holder is not None or message.holders or deferred:
            # The consumer here may answer as well; the message is only not sent again.
            message.marks |= MARK_DECIDED
            if not command.positive:
                message.marks |= MARK_NEGATIVE
            return
        queue.withdraw(message)
        self._outcomes.dequeued(queue, message)
        self._outcomes.settle_elsewhere(queue, message, command.positive)
        queue.tidy()

    def describe_server(self, command: Command, session: Session) -> None:
        """Answer with this server: what a client needs to compare clocks, and to see how close the
        limits are."""
        assert isinstance(command, DescribeServer)
        if command.request is None:
            return
        core = self._core
        limits = core.limits
        body = ServerSnapshot(
            core.now,
            core.client_count(),
            limits.max_sessions,
            core.total_bytes,
            limits.max_total_bytes,
        )
        core.out.append(Reply(session.number, command.request, RESULT_OK, body))

    def drain(self, command: Command, session: Session) -> None:
        """Pass the request to drain on to the world, and answer it."""
        assert isinstance(command, Drain)
        core = self._core
        core.out.append(DrainAsked(command.stops))
        core.reply(session, command.request, RESULT_OK)

    def permit(self, command: Command, session: Session) -> None:
        """Answer that the client may: clients without the right were refused before."""
        assert isinstance(command, Permission)
        self._core.reply(session, command.request, RESULT_OK)

    def list_nodes(self, command: Command, session: Session) -> None:
        """Answer with the masters in the order in which they were reported, then the slaves in the
        order of connecting; in a group, with its members."""
        assert isinstance(command, ListNodes)
        if command.request is None:
            return
        core = self._core
        core.charge_names(len(core.sessions))
        body = list(self.members)
        for master in core.masters.values():
            age_s = core.now - master.since if master.connected else 0.0
            body.append(
                NodeSnapshot(master.node_id, None, master.host, False, master.connected, age_s)
            )
        for slave in core.sessions.values():
            if slave.node:
                age_s = core.now - slave.connected_at
                body.append(
                    NodeSnapshot(slave.client_id, slave.name, slave.host, True, True, age_s)
                )
        core.out.append(Reply(session.number, command.request, RESULT_OK, body))
