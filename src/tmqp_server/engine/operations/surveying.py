"""Surveys of all channels, queues and clients, in portions; and one client."""

from __future__ import annotations

from typing import Final

from tmqp.constants import RESULT_LIMIT_EXCEEDED, RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.engine.commands import (
    Command,
    DescribeClient,
    DisconnectClient,
    SurveyChannels,
    SurveyClients,
    SurveyCommand,
    SurveyQueues,
    connection_of,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.effects import CloseSession
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import ChannelSnapshot, QueueSnapshot
from tmqp_server.engine.model.surveyed import (
    ClientDetails,
    SubscriptionSnapshot,
    SurveyedClient,
)
from tmqp_server.engine.model.walks import ChannelWalk, ClientWalk
from tmqp_server.engine.operations.branches import with_branches
from tmqp_server.engine.operations.clients import Clients
from tmqp_server.engine.operations.survey import levels_of
from tmqp_server.engine.options import ChannelOptions, QueueOptions

__all__ = ["Surveying"]

#: The most queues or clients that are shown together by name.
_MOST_NAMED: Final = 128


class Surveying:
    """Answers surveys in portions."""

    __slots__ = ("_clients", "_core")

    def __init__(self, core: Core, clients: Clients) -> None:
        self._core = core
        self._clients = clients

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            SurveyChannels: self.survey_channels,
            SurveyQueues: self.survey_queues,
            SurveyClients: self.survey_clients,
            DescribeClient: self.describe_client,
            DisconnectClient: self.disconnect_client,
        }

    def number_of(self, client_id: str) -> int:
        """The number of a client's connection; 0 when it is not connected."""
        session = self._core.clients.get(client_id)
        return 0 if session is None else connection_of(session.number)

    def client_id_of(self, number: int) -> str:
        """The id of the client of a session; empty if there is no such session."""
        session = self._core.sessions.get(number)
        return "" if session is None else session.client_id

    def options_of(self, channel_name: str, queue_id: int) -> QueueOptions | ChannelOptions | None:
        """The options of a queue, or of a channel if the id is below 0; None if it is missing."""
        if queue_id < 0:
            channel = self._core.channels.find(channel_name)
            return None if channel is None else channel.options
        queue = self._queue_of(channel_name, queue_id)
        return None if queue is None else queue.options

    def feed_of(self, source: tuple[str, int], target: tuple[str, int]) -> Feed | None:
        """The feed from one queue to another, each given by channel name and queue id, or None."""
        queue, other = self._queue_of(*source), self._queue_of(*target)
        if queue is None or other is None:
            return None
        return next((feed for feed in queue.feeds or () if feed.target is other), None)

    def _queue_of(self, channel_name: str, queue_id: int) -> Queue | None:
        channel = self._core.channels.find(channel_name)
        return None if channel is None else channel.queues.get(queue_id)

    def limits_reached(self) -> dict[str, int]:
        """How often each limit was reached, for those that were reached."""
        return dict(self._core.limits_reached)

    def levels(self) -> dict[str, int]:
        """The present numbers of everything except queues and messages."""
        return levels_of(self._core)

    def prepare(self, command: SurveyCommand) -> list[str]:
        """Take the portion that a command requests, before the rights to see its channels are
        checked; return the names of these channels."""
        if isinstance(command, SurveyQueues) and command.places is not None:
            return list(dict.fromkeys([queue.channel_name for queue in self._named(command)]))
        if isinstance(command, SurveyChannels) and command.names is not None:
            return [channel.name for channel in self._channels_named(command)]
        walk = command.walk
        if walk is None:
            walk = command.walk = ChannelWalk(self._core.channels.by_key.values())
        names = walk.take(command.filter, queues=isinstance(command, SurveyQueues))
        self._core.charge_names(names)
        command.prepared = True
        return [channel.name for channel in walk.channels]

    def _named(self, command: SurveyQueues) -> list[Queue]:
        """The existing ones of the queues that a command names."""
        found: list[Queue] = []
        for name, queue_id in (command.places or [])[:_MOST_NAMED]:
            channel = self._core.channels.find(name)
            queue = None if channel is None else channel.queues.get(queue_id)
            if queue is not None:
                found.append(queue)
        return found

    def _channels_named(self, command: SurveyChannels) -> list[Channel]:
        """The existing ones of the channels that a command names."""
        found = [self._core.channels.find(name) for name in (command.names or [])[:_MOST_NAMED]]
        return [channel for channel in found if channel is not None]

    def _walk_of(self, command: SurveyCommand) -> ChannelWalk:
        """The walk, at the portion that the command requests."""
        if not command.prepared:
            self.prepare(command)
        command.prepared = False
        assert command.walk is not None, "it is prepared"
        return command.walk

    def survey_channels(self, command: Command, session: Session) -> None:
        """Answer with a portion of the channels."""
        assert isinstance(command, SurveyChannels)
        core = self._core
        visible = command.visible
        if command.names is None:
            channels = self._walk_of(command).channels
        elif len(command.names) > _MOST_NAMED:
            core.reply(session, command.request, RESULT_LIMIT_EXCEEDED)
            return
        else:
            channels = self._channels_named(command)
        body: list[ChannelSnapshot] = []
        for channel in channels:
            there = core.channels.by_key.get(channel.key) is channel
            if there and (visible is None or channel.name in visible):
                body.append(ChannelSnapshot(channel))
        core.work += 1 + len(body)
        core.reply(session, command.request, RESULT_OK, body)

    def survey_queues(self, command: Command, session: Session) -> None:
        """Answer with a portion of the queues."""
        assert isinstance(command, SurveyQueues)
        core = self._core
        if command.places is None:
            queues = self._walk_of(command).queues
        elif len(command.places) > _MOST_NAMED:
            core.reply(session, command.request, RESULT_LIMIT_EXCEEDED)
            return
        else:
            queues = self._named(command)
        visible = command.visible
        body: list[QueueSnapshot] = []
        for queue in queues:
            if not queue.closed and (visible is None or queue.channel_name in visible):
                body.append(QueueSnapshot(queue))
        core.work += 1 + len(body)
        core.reply(session, command.request, RESULT_OK, body)

    def survey_clients(self, command: Command, session: Session) -> None:
        """Answer with a portion of the clients."""
        assert isinstance(command, SurveyClients)
        core = self._core
        if command.ids is None:
            if command.walk is None:
                command.walk = ClientWalk(core.sessions.values())
            sessions = command.walk.take()
        elif len(command.ids) > _MOST_NAMED:
            core.reply(session, command.request, RESULT_LIMIT_EXCEEDED)
            return
        else:
            found = [core.clients.get(each) for each in command.ids]
            sessions = [each for each in found if each is not None and not each.node]
        body = [SurveyedClient(each, core.now) for each in sessions]
        core.work += 1 + len(body)
        core.reply(session, command.request, RESULT_OK, body)

    def describe_client(self, command: Command, session: Session) -> None:
        """Answer with one client, and the channels that it has joined."""
        assert isinstance(command, DescribeClient)
        core = self._core
        client = core.clients.get(command.client_id)
        if client is None or client.node:
            core.reply(session, command.request, RESULT_NOT_FOUND)
            return
        joined: list[SubscriptionSnapshot] = []
        for each in with_branches(client):
            for key, subscription in each.subscriptions.items():
                channel: Channel = core.channels.by_key[key]
                joined.append(SubscriptionSnapshot(channel, subscription, core.now))
        core.work += 1 + len(joined)
        if len(joined) > core.limits.max_list_items:
            core.reply(session, command.request, core.reached("max_list_items"))
            return
        body = ClientDetails(SurveyedClient(client, core.now), joined)
        core.reply(session, command.request, RESULT_OK, body)

    def disconnect_client(self, command: Command, session: Session) -> None:
        """End a client's connection."""
        assert isinstance(command, DisconnectClient)
        core = self._core
        client = core.clients.get(command.client_id)
        if client is None or client.node:
            core.reply(session, command.request, RESULT_NOT_FOUND)
            return
        core.reply(session, command.request, RESULT_OK)
        self._clients.let_go(client)
        core.out.append(CloseSession(client.number, "an operator ended the connection"))
