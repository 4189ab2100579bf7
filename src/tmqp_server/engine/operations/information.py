"""Replies to requests for information: describe and list, as snapshots.

Rights are checked before a request becomes a command (F66).  A list that is too long to be sent, or
too much work, is refused before its items are collected.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.engine.commands import (
    Command,
    DescribeChannel,
    DescribeQueue,
    ListChannels,
    ListClients,
    ListCommand,
    ListConsumers,
    ListQueues,
)
from tmqp_server.engine.core import Core, PendingRun, Performers
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.channel_names import matches
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import (
    BrokerStatistics,
    ChannelSnapshot,
    ClientSnapshot,
    QueueSnapshot,
)

__all__ = ["Information"]

#: Queue ids that take as long to write as an item of a list.
_IDS_PER_ITEM: Final = 32


class Information:
    """Answers with snapshots."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            DescribeChannel: self.describe_channel,
            ListChannels: self.list_channels,
            ListConsumers: self.list_consumers,
            DescribeQueue: self.describe_queue,
            ListQueues: self.list_queues,
            ListClients: self.list_clients,
        }

    def _reply(self, session: Session, request: object, code: int, body: object) -> None:
        if request is not None:
            self._core.out.append(Reply(session.number, request, code, body))

    def describe_channel(self, command: Command, session: Session) -> None:
        """Answer with one channel (F52)."""
        assert isinstance(command, DescribeChannel)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            self._reply(session, command.request, RESULT_NOT_FOUND, None)
        else:
            self._core.work += _size(channel)
            self._reply(session, command.request, RESULT_OK, ChannelSnapshot(channel))

    def _may_list(self, session: Session, command: ListCommand, items: int, size: int) -> bool:
        """Whether a list may be collected; if not, answer with 482.

        :param items: the number of its items, of which at most ``most_items`` fit into an answer.
        :param size: the same, with large items counted several times.
        """
        if self._is_too_long(command, items, size):
            code = self._core.reached("max_list_items")
            self._reply(session, command.request, code, None)
            return False
        self._core.work += size
        return True

    def _is_too_long(self, command: ListCommand, items: int, size: int) -> bool:
        most = command.most_items
        return (0 < most < items) or size > self._core.limits.max_list_items

    def list_channels(self, command: Command, session: Session) -> None:
        """Answer with the channels that pass a filter, in the order of creation (F52, F53)."""
        assert isinstance(command, ListChannels)
        core = self._core
        pattern = command.filter
        visible = command.visible
        there = core.channels.by_key
        items = 0 if pattern or visible is not None else len(there)
        if self._is_too_long(command, items, items):
            self._reply(session, command.request, core.reached("max_list_items"), None)
            return
        core.charge_names(len(there))
        channels: list[Channel] = []
        size = 0
        for channel in there.values():
            if (visible is None or channel.name in visible) and matches(channel.name, pattern):
                channels.append(channel)
                size += _size(channel)
        if self._may_list(session, command, len(channels), size):
            body = [ChannelSnapshot(channel) for channel in channels]
            self._reply(session, command.request, RESULT_OK, body)

    def list_consumers(self, command: Command, session: Session) -> None:
        """Answer with the consumers of a channel, in join order (F52)."""
        assert isinstance(command, ListConsumers)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            self._reply(session, command.request, RESULT_NOT_FOUND, None)
            return
        count = len(channel.audience.subscriptions)
        if not self._may_list(session, command, count, count):
            return
        body: list[ClientSnapshot] = []
        now = self._core.now
        for subscription in channel.audience.subscriptions.values():
            body.append(ClientSnapshot(subscription.session, subscription.joined_at, now))
        self._reply(session, command.request, RESULT_OK, body)

    def describe_queue(self, command: Command, session: Session) -> None:
        """Answer with one queue (F57)."""
        assert isinstance(command, DescribeQueue)
        channel = self._core.channels.find(command.channel)
        queue = None if channel is None else channel.queues.get(command.queue_id)
        if queue is None:
            self._reply(session, command.request, RESULT_NOT_FOUND, None)
        else:
            self._reply(session, command.request, RESULT_OK, QueueSnapshot(queue))

    def list_queues(self, command: Command, session: Session) -> None:
        """Answer with the queues of a channel, in the order of creation (F57)."""
        assert isinstance(command, ListQueues)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            self._reply(session, command.request, RESULT_NOT_FOUND, None)
            return
        count = len(channel.queues)
        if self._may_list(session, command, count, count):
            body = [QueueSnapshot(queue) for queue in channel.queues.values()]
            self._reply(session, command.request, RESULT_OK, body)

    def list_clients(self, command: Command, session: Session) -> None:
        """Answer with the clients whose type passes a filter, in the order of connecting (F53,
        F59)."""
        assert isinstance(command, ListClients)
        core = self._core
        pattern = command.filter
        core.charge_names(len(core.sessions))
        clients: list[Session] = []
        for client in core.sessions.values():
            if (
                client.parent is None
                and not client.node
                and matches(client.client_type or "", pattern)
            ):
                clients.append(client)
        if self._may_list(session, command, len(clients), len(clients)):
            now = core.now
            body = [ClientSnapshot(client, client.connected_at, now) for client in clients]
            self._reply(session, command.request, RESULT_OK, body)

    def statistics(self) -> BrokerStatistics:
        """The counters of the whole broker."""
        core = self._core
        queues = 0
        messages = 0
        in_flight = 0
        for channel in core.channels.by_key.values():
            for queue in channel.queues.values():
                queues += 1
                messages += queue.waiting_count() + queue.spilled + len(queue.deferred)
                in_flight += queue.in_flight()
        unsynced = 0
        for pending in core.tickets.values():
            unsynced += len(pending.messages) if isinstance(pending, PendingRun) else 1
        return BrokerStatistics(
            core.client_count(),
            len(core.channels.by_key),
            queues,
            messages,
            in_flight,
            core.message_bytes,
            unsynced,
            core.counters.dead_lettered,
            core.counters.confirms_skipped,
            core.counters.stray_commands,
            core.counters.unknown_acks,
            core.counters.unknown_tickets,
            core.counters.directs_skipped,
            core.counters.answers_dropped,
            core.notices.skipped,
            core.counters.decisions_applied,
            core.counters.decisions_unknown,
            core.state_bytes,
            core.counters.withheld,
        )


def _size(channel: Channel) -> int:
    """How many items of a list a channel counts for."""
    allowed = channel.options.allowed_queues
    ids = len(channel.queues) + (0 if allowed is None else len(allowed))
    return 1 + ids // _IDS_PER_ITEM
