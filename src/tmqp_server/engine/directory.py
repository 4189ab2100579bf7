"""Finds a channel or a queue, or creates it automatically if that is allowed.

Joins, pushes and dead letters open their channel and queue in this way (F48, F54, F74).  After a
failure, ``problem`` has the result code.
"""

from __future__ import annotations

from tmqp.constants import (
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.engine.commands import Push
from tmqp_server.engine.core import Core
from tmqp_server.engine.effects import StoreChannel, StoreQueue
from tmqp_server.engine.events import CHANNEL_CREATED, QUEUE_CREATED
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.options import (
    ChannelChanges,
    ChannelOptions,
    QueueChanges,
    QueueOptions,
)

__all__ = ["Directory"]


class Directory:
    """Finds channels and queues, and creates what is missing."""

    __slots__ = ("_core", "problem")

    def __init__(self, core: Core) -> None:
        self._core = core
        #: Why the last opening failed, as a result code.
        self.problem = RESULT_OK

    def create_channel(
        self, name: str, options: ChannelOptions, creator: Session | None
    ) -> Channel | None:
        """Create a channel, or return None and set ``problem``.

        :param creator: the session that requested the channel; None if it is created automatically.
        """
        channels = self._core.channels
        self.problem = channels.problem_of_new(name, options)
        if self.problem == RESULT_OK and options.needs_owner():
            self.problem = self._problem_of_owner(creator)
        if self.problem != RESULT_OK:
            return None
        channel = channels.create(name, options)
        if options.needs_owner():
            assert creator is not None
            channel.owner = creator
            if creator.owned is None:
                creator.owned = {}
            creator.owned[channel.key] = None
        self._core.watch_channel(channel)
        self._core.watch_idle(channel)
        self._core.notify_channel(CHANNEL_CREATED, channel)
        if self._core.stores and not options.lifetime:
            self._core.keep(StoreChannel(channel.stored_name, options))
        return channel

    def _problem_of_owner(self, creator: Session | None) -> int:
        """0 if this session can own a channel, otherwise the result code to answer.

        A node acts for many clients, and its connection does not end with theirs.
        """
        if creator is None or creator.node:
            return RESULT_UNACCEPTABLE
        owned = 0 if creator.owned is None else len(creator.owned)
        if owned >= self._core.limits.max_owned_channels_per_session:
            return self._core.reached("max_owned_channels_per_session")
        return RESULT_OK

    def create_queue(self, channel: Channel, queue_id: int, options: QueueOptions) -> Queue | None:
        """Create a queue, or return None and set ``problem``."""
        channels = self._core.channels
        rules = channel.options
        self.problem = channels.problem_of_new_queue(
            channel.name, channel, rules, queue_id, options
        )
        if self.problem != RESULT_OK:
            return None
        queue = channels.create_queue(channel, queue_id, options)
        self._core.notify_queue(QUEUE_CREATED, queue, options.status)
        if self._core.stores and not queue.temporary:
            self._core.keep(StoreQueue(queue.key, channel.name, queue_id, options, 0))
        return queue

    def find_queue(self, channel_name: str, queue_id: int) -> Queue | None:
        """The queue of this name in any case, or None."""
        channel = self._core.channels.find(channel_name)
        return None if channel is None else channel.queues.get(queue_id)

    def open_channel(self, name: str, changes: ChannelChanges | None = None) -> Channel | None:
        """Return the channel of that name, created if it is missing and creation is allowed (F48);
        otherwise return None and set ``problem``."""
        channel = self._core.channels.find(name)
        if channel is not None:
            return channel
        options = self._core.options
        if not options.auto_channel_creation:
            self.problem = RESULT_NOT_FOUND
            return None
        return self.create_channel(name, self._rules_of_new(changes), None)

    def _rules_of_new(self, changes: ChannelChanges | None) -> ChannelOptions:
        """The options of a channel that is created automatically."""
        rules = self._core.options.channel
        return rules if changes is None else changes.applied_to(rules)

    def problem_of_opening(
        self,
        channel_name: str,
        queue_id: int,
        changes: QueueChanges | None,
        channel_changes: ChannelChanges | None = None,
    ) -> int:
        """0 if ``open_queue`` would succeed, otherwise the result code; creates nothing."""
        core = self._core
        channel = core.channels.find(channel_name)
        rules = core.options.channel
        if channel is not None:
            if queue_id in channel.queues:
                return RESULT_OK
            rules = channel.options
        elif not core.options.auto_channel_creation:
            return RESULT_NOT_FOUND
        if not core.options.auto_queue_creation:
            return RESULT_NOT_FOUND
        if channel is None:
            rules = self._rules_of_new(channel_changes)
            problem = core.channels.problem_of_new(channel_name, rules)
            if problem == RESULT_OK and rules.needs_owner():
                problem = self._problem_of_owner(None)
            if problem != RESULT_OK:
                return problem
        options = rules.queue if changes is None else changes.applied_to(rules.queue)
        return core.channels.problem_of_new_queue(channel_name, channel, rules, queue_id, options)

    def open_queue(
        self,
        channel_name: str,
        queue_id: int,
        changes: QueueChanges | None,
        channel_changes: ChannelChanges | None = None,
    ) -> Queue | None:
        """Return the queue of that name, created with its channel if it is missing and creation is
        allowed (F74); otherwise return None and set ``problem``.

        A channel is not created without the queue.
        """
        self.problem = self.problem_of_opening(channel_name, queue_id, changes, channel_changes)
        if self.problem != RESULT_OK:
            return None
        channel = self.open_channel(channel_name, channel_changes)
        assert channel is not None
        queue = channel.queues.get(queue_id)
        if queue is not None:
            return queue
        inherited = channel.options.queue
        options = inherited if changes is None else changes.applied_to(inherited)
        return self.create_queue(channel, queue_id, options)

    def open_queue_of(self, push: Push) -> Queue | None:
        """The same for the queue that a push names, created with the options of the push."""
        extras = push.extras
        if extras is None:
            return self.open_queue(push.channel, push.queue_id, None)
        return self.open_queue(push.channel, push.queue_id, extras.changes, extras.channel_changes)
