"""Owns the answers to questions: describe and list, as snapshots.

Who may ask what is decided before a question becomes a command (F66).
"""

from __future__ import annotations

from tmqp.constants import RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.engine.channels import matches
from tmqp_server.engine.commands import (
    Command,
    DescribeChannel,
    DescribeQueue,
    ListChannels,
    ListClients,
    ListConsumers,
    ListQueues,
)
from tmqp_server.engine.core import Core, PendingRun
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.sessions import Session
from tmqp_server.engine.snapshots import (
    BrokerStatistics,
    ChannelSnapshot,
    ClientSnapshot,
    QueueSnapshot,
)

__all__ = ["Information"]


class Information:
    """Takes snapshots."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    def _reply(self, session: Session, request: object, code: int, body: object) -> None:
        if request is not None:
            self._core.out.append(Reply(session.number, request, code, body))

    def describe_channel(self, command: Command, session: Session) -> None:
        """One channel (F52)."""
        assert isinstance(command, DescribeChannel)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            self._reply(session, command.request, RESULT_NOT_FOUND, None)
        else:
            body = ChannelSnapshot(channel)
            self._reply(session, command.request, RESULT_OK, body)

    def list_channels(self, command: Command, session: Session) -> None:
        """The channels whose name passes a filter, in the order of creation (F52, F53)."""
        assert isinstance(command, ListChannels)
        body: list[ChannelSnapshot] = []
        for channel in self._core.channels.by_key.values():
            if matches(channel.name, command.filter):
                body.append(ChannelSnapshot(channel))
        self._reply(session, command.request, RESULT_OK, body)

    def list_consumers(self, command: Command, session: Session) -> None:
        """Who has joined a channel, in that order (F52)."""
        assert isinstance(command, ListConsumers)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            self._reply(session, command.request, RESULT_NOT_FOUND, None)
            return
        body: list[ClientSnapshot] = []
        now = self._core.now
        for subscription in channel.audience.subscriptions.values():
            body.append(ClientSnapshot(subscription.session, subscription.joined_at, now))
        self._reply(session, command.request, RESULT_OK, body)

    def describe_queue(self, command: Command, session: Session) -> None:
        """One queue (F57)."""
        assert isinstance(command, DescribeQueue)
        channel = self._core.channels.find(command.channel)
        queue = None if channel is None else channel.queues.get(command.queue_id)
        if queue is None:
            self._reply(session, command.request, RESULT_NOT_FOUND, None)
        else:
            self._reply(session, command.request, RESULT_OK, QueueSnapshot(queue))

    def list_queues(self, command: Command, session: Session) -> None:
        """The queues of a channel, in the order of creation (F57)."""
        assert isinstance(command, ListQueues)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            self._reply(session, command.request, RESULT_NOT_FOUND, None)
            return
        body: list[QueueSnapshot] = []
        for queue in channel.queues.values():
            body.append(QueueSnapshot(queue))
        self._reply(session, command.request, RESULT_OK, body)

    def list_clients(self, command: Command, session: Session) -> None:
        """The clients whose type passes a filter, in the order of connecting (F53, F59)."""
        assert isinstance(command, ListClients)
        body: list[ClientSnapshot] = []
        for client in self._core.sessions.values():
            if not client.node and matches(client.client_type or "", command.filter):
                body.append(ClientSnapshot(client, client.connected_at, self._core.now))
        self._reply(session, command.request, RESULT_OK, body)

    def statistics(self) -> BrokerStatistics:
        """The whole broker."""
        core = self._core
        queues = 0
        messages = 0
        in_flight = 0
        for channel in core.channels.by_key.values():
            for queue in channel.queues.values():
                queues += 1
                messages += queue.waiting_count() + queue.spilled + len(queue.deferred)
                in_flight += len(queue.flights)
        unsynced = 0
        for pending in core.tickets.values():
            unsynced += len(pending.messages) if isinstance(pending, PendingRun) else 1
        return BrokerStatistics(
            len(core.sessions),
            len(core.channels.by_key),
            queues,
            messages,
            in_flight,
            core.total_bytes - core.state_bytes,
            unsynced,
            core.dead_lettered,
            core.confirms_skipped,
            core.stray_commands,
            core.unknown_acks,
            core.unknown_tickets,
            core.directs_skipped,
            core.answers_dropped,
            core.notices.skipped,
            core.decisions_applied,
            core.decisions_unknown,
            core.state_bytes,
        )
