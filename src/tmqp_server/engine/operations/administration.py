"""The operations on channels and queues: create, remove, join, leave, update, clear.

Each is answered exactly once, and the connection stays open (F43, F44).  Messages that an operation
releases are delivered before its answer (F48; observed: a queue set to push delivers, then
answers).

A channel with very many queues is removed in portions: it exists, with fewer and fewer queues,
until the last one is removed; then the channel is removed, and only then the operation is answered
(F51).

A *temporary* channel ends with its owner or its last consumer, and is never stored.  Any channel
may end because it is idle: a timer compares counters with those of its last run, so a push costs
nothing extra, and the channel ends between one and two timeouts after its last use.
"""

from __future__ import annotations

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_DUPLICATE,
    RESULT_FORBIDDEN,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
    STATUS_CACHE,
    STATUS_STOPPED,
)
from tmqp_server.engine.books import SUBSCRIPTION_BYTES, cursor_bytes, queue_bytes
from tmqp_server.engine.commands import (
    ClearMessages,
    Command,
    CreateChannel,
    CreateQueue,
    Grant,
    Join,
    Leave,
    RemoveChannel,
    RemoveChannels,
    RemoveFeed,
    RemoveQueue,
    SetTerms,
    UpdateChannel,
    UpdateQueue,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.delivery.feeds import Feeds, stored
from tmqp_server.engine.delivery.pump import Pump
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import ForgetChannel, ForgetQueue, Left, StoreChannel
from tmqp_server.engine.events import (
    CHANNEL_REMOVED,
    CLIENT_JOINED,
    CLIENT_LEFT,
    QUEUE_REMOVED,
    QUEUE_UPDATED,
)
from tmqp_server.engine.model.channels import Channel, IdleTimer, is_disposable
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.removals import Removal
from tmqp_server.engine.model.sessions import Session, Subscription
from tmqp_server.engine.operations.branches import with_branches
from tmqp_server.engine.options import NO_KEYS, WITH_CONSUMERS, QueueChanges

__all__ = ["Administration"]


class Administration:
    """Carries out operations on channels and queues."""

    __slots__ = (
        "_core",
        "_directory",
        "_feeds",
        "_most_closed",
        "_most_work",
        "_pump",
        "_workflow",
    )

    def __init__(
        self, core: Core, directory: Directory, pump: Pump, workflow: Workflow, feeds: Feeds
    ) -> None:
        self._core = core
        self._directory = directory
        self._feeds = feeds
        self._pump = pump
        self._workflow = workflow
        #: Queues that one step closes at most.
        self._most_closed = core.limits.max_work_per_step
        #: Units of work after which a step closes no more queues: each may have many subscribers.
        self._most_work = 2 * core.limits.max_work_per_step

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            CreateChannel: self.create_channel,
            UpdateChannel: self.update_channel,
            RemoveChannel: self.remove_channel,
            RemoveChannels: self.remove_channels,
            Join: self.join,
            Leave: self.leave,
            Grant: self.grant,
            SetTerms: self.set_terms,
            CreateQueue: self.create_queue,
            UpdateQueue: self.update_queue,
            RemoveQueue: self.remove_queue,
            RemoveFeed: self.remove_feed,
            ClearMessages: self.clear_messages,
        }

    def reply(self, session: Session, request: object, code: int) -> None:
        """Answer an operation, if it has a *request*."""
        self._core.reply(session, request, code)

    # --- Channels --------------------------------------------------------------------------------

    def create_channel(self, command: Command, session: Session) -> None:
        """Create a channel (F50)."""
        assert isinstance(command, CreateChannel)
        options = self._core.options.channel
        if command.changes is not None:
            options = command.changes.applied_to(options)
        code = RESULT_OK
        if self._directory.create_channel(command.channel, options, session) is None:
            code = self._directory.problem
        self.reply(session, command.request, code)

    def update_channel(self, command: Command, session: Session) -> None:
        """Change options of a channel (F20)."""
        assert isinstance(command, UpdateChannel)
        core = self._core
        channel = core.channels.find(command.channel)
        code = RESULT_NOT_FOUND
        if channel is not None:
            options = command.changes.applied_to(channel.options)
            core.charge_names(len(channel.queues))  # each is notified of the change
            code = core.channels.problem_of_change(channel, options)
            if code == RESULT_OK:
                core.channels.change_rules(channel, options)
                core.wake_audience(channel.audience)  # another may be the one that takes all
                core.watch_channel(channel)
                core.watch_idle(channel)
                if core.stores and not options.lifetime:
                    core.keep(StoreChannel(channel.stored_name, options))
                self._pump.wake_waiting(core.now)
        self.reply(session, command.request, code)

    def remove_channel(self, command: Command, session: Session) -> None:
        """Remove a channel with all its queues (F51)."""
        assert isinstance(command, RemoveChannel)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            self.reply(session, command.request, RESULT_NOT_FOUND)
            return
        self._remove(Removal(channel, session, command.request, False))

    def remove_channels(self, command: Command, session: Session) -> None:
        """Remove several channels, in portions if they have very many queues."""
        assert isinstance(command, RemoveChannels)
        core = self._core
        removals: list[Removal] = []
        for name in dict.fromkeys(command.channels):
            channel = core.channels.find(name)
            if channel is not None:
                removals.append(Removal(channel, None, None, False))
        if not removals:
            self.reply(session, command.request, RESULT_NOT_FOUND)
            return
        last = removals[-1]
        last.session, last.request, last.others = session, command.request, removals[:-1]
        self._remove_several(removals)

    def _remove_several(self, removals: list[Removal]) -> None:
        core = self._core
        before = core.work
        for removal in removals:
            if core.work - before < self._most_work:
                self._remove(removal)
                core.work += 1
            else:
                core.removals.append(removal)

    def _remove(self, removal: Removal) -> None:
        """Continue a removal, and answer when it is over and saved."""
        core = self._core
        is_over = self._remove_portion(removal)
        if core.change:
            removal.change = core.change
        if not is_over:
            return
        removal.over = True
        if removal.waits():
            core.removals.append(removal)
            return
        session = removal.session
        if session is not None and session.alive:
            # This step may have changed nothing, while an earlier change is not saved yet.
            last = removal.last_change()
            code = RESULT_OK
            if last and not core.change:
                if last in core.tickets:
                    core.change = last
                elif not core.storage_ok:
                    code = RESULT_BUSY
            self.reply(session, removal.request, code)

    def _remove_portion(self, removal: Removal) -> bool:
        """Close queues, all if there are not too many, and then remove their channel; return True
        if the removal is over."""
        core = self._core
        channel = removal.channel
        looked_at = 0
        before = core.work  # events: each queue's removal may have many subscribers
        if core.channels.by_key.get(channel.key) is channel and not removal.is_void():
            while channel.queues:
                queue = removal.next_queue()
                if queue is None:
                    self._feeds.tell_changes()
                    return False  # some are not empty: they are removed later, the channel last
                if queue.closed:
                    continue
                if looked_at == self._most_closed or core.work - before >= self._most_work:
                    channel.leaving.append(queue)
                    core.removals.append(removal)
                    self._feeds.tell_changes()
                    return False
                looked_at += 1
                core.work += 1
                if not removal.deserted or is_disposable(queue):
                    self._close_queue(channel, queue)
            self._feeds.tell_changes()
            self._discard(channel)
        return True

    def go_on(self) -> None:
        """Continue one removal that is not over."""
        core = self._core
        if core.removals:
            core.change = 0
            self._remove(core.removals.popleft())

    def destroy_emptied(self) -> None:
        """Destroy the queues that have become empty and have no consumers, if their channel's
        options say so; and a channel when all its queues are empty (F101, specification "Channel
        Options")."""
        core = self._core
        emptied = core.emptied
        core.emptied = {}
        for queue in emptied.values():
            channel = core.channels.find(queue.channel_name)
            if (
                channel is None
                or channel.audience is not queue.audience
                or channel.audience.subscriptions
                or not channel.options.destroy_when_empty
            ):
                continue
            if channel.is_disposable():
                self._remove(Removal(channel, None, None, True))
            elif not queue.closed and is_disposable(queue):
                self._close_queue(channel, queue)
                self._feeds.tell_changes()

    def _discard(self, channel: Channel) -> None:
        core = self._core
        core.notify_channel(CHANNEL_REMOVED, channel)
        core.channels.remove(channel)
        core.forget_idle(channel)
        owner = channel.owner
        if owner is not None and owner.owned is not None:
            del owner.owned[channel.key]
        if core.stores and not channel.options.lifetime:
            core.keep(ForgetChannel(channel.stored_name))
        core.work += core.notices.forget_channel(core.out, channel.key)
        for subscription in list(channel.audience.subscriptions.values()):
            channel.audience.remove(subscription)
            core.refund(SUBSCRIPTION_BYTES)
            del subscription.session.subscriptions[channel.key]
            core.out.append(Left(subscription.session.number, channel.name))
            core.work += 1

    def join(self, command: Command, session: Session) -> None:
        """Subscribe (F48)."""
        assert isinstance(command, Join)
        code = self._join(session, command)
        if code == RESULT_OK and command.hears_lapses:
            session.hears_lapses = True
        self._pump.wake_waiting(self._core.now)
        self.reply(session, command.request, code)

    def _join(self, session: Session, command: Join) -> int:
        core = self._core
        terms = command.terms
        if terms is not None:
            problem = terms.problem(core.limits)
            if problem != RESULT_OK:
                return problem
        if command.creates:
            channel = self._directory.open_channel(command.channel)
            if channel is None:
                return self._directory.problem
        else:
            channel = core.channels.find(command.channel)
            if channel is None:
                return RESULT_NOT_FOUND
        if not channel.may_consume(session):
            return RESULT_FORBIDDEN
        audience = channel.audience
        subscription = session.subscriptions.get(channel.key)
        if not audience.has_room_for(command.filter):
            return RESULT_LIMIT_EXCEEDED
        if subscription is not None:
            subscription.credit = command.credit
            subscription.filter = command.filter
            if terms is not None:
                subscription.accept(terms)
            audience.recount(subscription)
            core.wake_audience(audience)
            return RESULT_OK
        client_limit = channel.options.client_limit
        if 0 < client_limit <= len(audience.subscriptions):
            return RESULT_LIMIT_EXCEEDED
        if self._joined(session) >= core.limits.max_subscriptions_per_session:
            return core.reached("max_subscriptions_per_session")
        if not core.has_room_for_client(SUBSCRIPTION_BYTES):
            return core.no_room()
        core.charge(SUBSCRIPTION_BYTES)
        subscription = Subscription(session, audience, command.credit, command.filter, core.now)
        session.subscriptions[channel.key] = subscription
        audience.add(subscription)
        if terms is not None:
            subscription.accept(terms)
        core.notify_subscription(CLIENT_JOINED, channel, session)
        core.wake_audience(audience)
        return RESULT_OK

    def _joined(self, session: Session) -> int:
        """How many channels a client and its branches have joined."""
        if session.parent is None and session.branches is None:
            return len(session.subscriptions)
        count = 0
        everybody = with_branches(session)
        self._core.charge_names(len(everybody))
        for each in everybody:
            count += len(each.subscriptions)
        return count

    def leave(self, command: Command, session: Session) -> None:
        """End a subscription (F49)."""
        assert isinstance(command, Leave)
        channel = self._core.channels.find(command.channel)
        code = RESULT_NOT_FOUND
        if channel is not None and channel.key in session.subscriptions:
            self._part(session, channel)
            code = RESULT_OK
        self.reply(session, command.request, code)

    def leave_all(self, session: Session) -> None:
        """End all subscriptions of a session that has ended (F102)."""
        for key in list(session.subscriptions):
            self._part(session, self._core.channels.by_key[key])

    def _part(self, session: Session, channel: Channel) -> None:
        core = self._core
        audience = channel.audience
        subscription = session.subscriptions.pop(channel.key)
        audience.remove(subscription)
        core.refund(SUBSCRIPTION_BYTES)
        core.notify_subscription(CLIENT_LEFT, channel, session)
        if subscription.holds:
            self._workflow.take_back(subscription, core.now)
        # The others may have waited only for this one.
        core.wake_audience(audience)
        if audience.subscriptions:
            return
        if channel.options.lifetime == WITH_CONSUMERS:
            if not channel.is_used():
                self._remove(Removal(channel, None, None, False))
        elif channel.options.destroy_when_empty:
            self._remove(Removal(channel, None, None, True))  # F101

    def remove_owned(self, session: Session) -> None:
        """Remove the channels that end with a session, in portions if there are very many."""
        owned, session.owned = session.owned, None
        if not owned:
            return
        by_key = self._core.channels.by_key
        self._remove_several([Removal(by_key[key], None, None, False) for key in owned])

    def wake_idle(self, timer: IdleTimer) -> None:
        """Remove a channel that was not used for its idle timeout."""
        channel = timer.channel
        if channel is not None and not self._core.still_used(timer):
            self._remove(Removal(channel, None, None, False))

    def grant(self, command: Command, session: Session) -> None:
        """Set the delivery credit of a subscription."""
        assert isinstance(command, Grant)
        subscription = self._subscription(session, command.channel)
        if subscription is not None:
            subscription.credit = max(command.credit, -1)
            subscription.audience.recount(subscription)
            self._core.wake_audience(subscription.audience)
            self._pump.wake_waiting(self._core.now)
        code = RESULT_NOT_FOUND if subscription is None else RESULT_OK
        self.reply(session, command.request, code)

    def set_terms(self, command: Command, session: Session) -> None:
        """Change the terms of a subscription."""
        assert isinstance(command, SetTerms)
        code = command.terms.problem(self._core.limits)
        subscription = self._subscription(session, command.channel)
        if subscription is None:
            code = RESULT_NOT_FOUND
        elif code == RESULT_OK:
            subscription.accept(command.terms)
            self._core.wake_audience(subscription.audience)
            self._pump.wake_waiting(self._core.now)
        self.reply(session, command.request, code)

    def _subscription(self, session: Session, name: str) -> Subscription | None:
        """The session's subscription to the channel of that name, or None."""
        channel = self._core.channels.find(name)
        return None if channel is None else session.subscriptions.get(channel.key)

    # --- Queues ----------------------------------------------------------------------------------

    def create_queue(self, command: Command, session: Session) -> None:
        """Create a queue, and its channel if it is missing (F54)."""
        assert isinstance(command, CreateQueue)
        self.reply(session, command.request, self._create_queue(command, session))

    def _create_queue(self, command: CreateQueue, session: Session) -> int:
        core = self._core
        source = command.source
        if source is not None and self._directory.find_queue(source[0], source[1]) is None:
            return RESULT_NOT_FOUND
        channel = core.channels.find(command.channel)
        rules = core.options.channel
        if channel is not None:
            if command.request is None and command.queue_id in channel.queues:
                return RESULT_DUPLICATE  # without an answer, other problems do not matter
            rules = channel.options
        elif command.channel_changes is not None:
            rules = command.channel_changes.applied_to(rules)
        changes = command.changes
        if _buries_in_itself(command.channel, command.queue_id, changes):
            return RESULT_BAD_REQUEST
        options = rules.queue if changes is None else changes.applied_to(rules.queue)
        if channel is None:
            # The client that creates a queue requests its channel, too: that is not automatic
            # (F54).
            problem = core.channels.problem_of_new(command.channel, rules)
            if problem != RESULT_OK:
                return problem
            # Nothing is created unless both are possible.
            problem = core.channels.problem_of_new_queue(
                command.channel, None, rules, command.queue_id, options
            )
            if problem != RESULT_OK:
                return problem
            channel = self._directory.create_channel(command.channel, rules, session)
            if channel is None:
                return self._directory.problem
        if self._directory.create_queue(channel, command.queue_id, options) is None:
            return self._directory.problem
        return RESULT_OK

    def update_queue(self, command: Command, session: Session) -> None:
        """Change options of a queue (F56)."""
        assert isinstance(command, UpdateQueue)
        queue = self._directory.find_queue(command.channel, command.queue_id)
        code = RESULT_NOT_FOUND
        if queue is not None:
            code = self._update(queue, command)
        self.reply(session, command.request, code)

    def _update(self, queue: Queue, command: UpdateQueue) -> int:
        core = self._core
        was = queue.options.status
        retained = queue.options.retains()
        if _buries_in_itself(command.channel, command.queue_id, command.changes):
            return RESULT_BAD_REQUEST
        options = command.changes.applied_to(queue.options)
        problem = core.channels.problem_of_options(options)
        if problem != RESULT_OK:
            return problem
        if queue.temporary and options.needs_storage():
            return RESULT_BAD_REQUEST
        more = queue_bytes(options) - queue_bytes(queue.options)
        if more > 0 and not core.has_room(more):
            return core.no_room()
        if queue.spilled and options.status == STATUS_CACHE:
            return RESULT_UNACCEPTABLE  # the latest message may be on disk only
        if queue.feeds is not None and options.group_keys != NO_KEYS:
            return RESULT_UNACCEPTABLE
        core.channels.reconfigure(queue, options)
        core.notify_queue(QUEUE_UPDATED, queue, options.status)
        if core.stores and not queue.temporary:
            core.keep(stored(queue))
        self._workflow.reconfigured(queue, was, core.now)
        if queue.fleeting and retained and not options.retains():
            core.note_emptied(queue)
        return RESULT_OK

    def remove_queue(self, command: Command, session: Session) -> None:
        """Remove a queue and its messages (F57)."""
        assert isinstance(command, RemoveQueue)
        channel = self._core.channels.find(command.channel)
        queue = None if channel is None else channel.queues.get(command.queue_id)
        code = RESULT_NOT_FOUND
        if channel is not None and queue is not None:
            self._close_queue(channel, queue)
            self._feeds.tell_changes()
            code = RESULT_OK
        self.reply(session, command.request, code)

    def _close_queue(self, channel: Channel, queue: Queue) -> None:
        queue.closed = True
        self._workflow.clear(queue, True, True, True)
        if self._core.stores and not queue.temporary:
            self._core.keep(ForgetQueue(queue.key))
        self._core.channels.remove_queue(channel, queue)
        for name in list(queue.cursors):
            self._core.refund(cursor_bytes(name))
        queue.timer.queue = None
        self._core.wakeups.disarm(queue.timer)
        self._core.notify_queue(QUEUE_REMOVED, queue, STATUS_STOPPED)  # F93
        notices = self._core.notices
        self._core.work += notices.forget_queue(self._core.out, channel.key, queue.queue_id)
        if queue.feeds is not None or queue.fed_by:
            for source in self._feeds.forget(queue):
                self._lost_feed(source)

    # --- Feeds -----------------------------------------------------------------------------------

    def remove_feed(self, command: Command, session: Session) -> None:
        """Remove the feed from one queue to another."""
        assert isinstance(command, RemoveFeed)
        source = self._directory.find_queue(command.channel, command.queue_id)
        target = self._directory.find_queue(command.target, command.target_queue)
        code = RESULT_NOT_FOUND
        if source is not None and target is not None and self._feeds.remove(source, target):
            code = RESULT_OK
            self._lost_feed(source)
        self.reply(session, command.request, code)

    def _lost_feed(self, source: Queue) -> None:
        """Handle the loss of a queue's feed: its channel may end with the last consumer or feed."""
        core = self._core
        channel = core.channels.find(source.channel_name)
        if (
            channel is not None
            and channel.options.lifetime == WITH_CONSUMERS
            and not channel.is_used()
        ):
            removal = Removal(channel, None, None, False)
            removal.unused = True
            core.removals.append(removal)  # as its queues may feed others that end so

    def clear_messages(self, command: Command, session: Session) -> None:
        """Clear waiting messages (F58), and those in flight if requested."""
        assert isinstance(command, ClearMessages)
        queue = self._directory.find_queue(command.channel, command.queue_id)
        code = RESULT_NOT_FOUND
        if queue is not None:
            high, regular, in_flight = command.high_priority, command.regular, command.in_flight
            if high or regular or in_flight:
                self._workflow.clear(queue, high, regular, in_flight)
            code = RESULT_OK
        self.reply(session, command.request, code)


def _buries_in_itself(channel: str, queue_id: int, changes: QueueChanges | None) -> bool:
    """Whether a queue would be its own dead letter queue."""
    target = None if changes is None else changes.dead_letter
    return target is not None and target[1] == queue_id and target[0].lower() == channel.lower()
