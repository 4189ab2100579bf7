"""Tenants: clients whose channels end with them, with their consumers, or unused; or are too small.

Each creates a channel of one lifetime, joins it, pushes to it and takes what comes, over and over;
meanwhile connections are cut, the server crashes and its disk fails.  What must hold is examined
again and again, in the broker itself: nothing stays that should have gone, nothing goes before, and
no life of the server begins with anything that is temporary.  Some push into a queue in which what
has waited longest makes way: it never refuses them, and has what came last.
"""

from __future__ import annotations

from typing import Final

from tmqp.errors import LocalProtocolError
from tmqp.extensions import LIFETIME_CONSUMERS, LIFETIME_OWNER, WHEN_FULL_DROP_OLDEST
from tmqp.frames import Frame
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client._core import requests
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.outcomes import NotRestored
from tmqp_client._core.pending import Pending
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.queues import Queue
from tmqp_sim.clients import SimClient
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["TENANTS", "Tenant", "Tenants"]

#: The lifetimes of channels, by the roles of those who create them.
TENANTS: Final = {
    "tenant-owner": LIFETIME_OWNER,
    "tenant-consumers": LIFETIME_CONSUMERS,
    "tenant-idle": "",
    "tenant-full": LIFETIME_OWNER,
}

#: How often the broker is examined.
_LOOK_S: Final = 0.05
#: The idle timeout of the channels that have one, and what lateness and looking may add to twice
#: the time; and the broker, where it fails at a deadline, for the next one then waits a second, and
#: may fail as well (seed 97966).
_IDLE_S: Final = 1.0
_SLACK_S: Final = 0.5
_FAILING_S: Final = 2.0
#: How many messages wait in a queue that is too small, and its options.
_ROOM: Final = 3
_TOO_SMALL: Final = QueueOptions(message_limit=_ROOM, when_full=WHEN_FULL_DROP_OLDEST)
#: With less memory than this for messages the server may refuse anything.
_ENOUGH_BYTES: Final = 1_000_000


class Tenant(SimClient):
    """A client with a channel of its own."""

    def __init__(self, simulation: Stage, name: str, limits: ClientLimits, role: str) -> None:
        self.lifetime = TENANTS[role]
        #: Its queue is too small, and nobody takes anything out of it.
        self.crams = role == "tenant-full"
        self.channel = f"tenant.{name}"
        #: The connection on which the channel was created, was joined.
        self.created_on = 0
        self.joined_on = 0
        super().__init__(simulation, name, limits)
        self.inbox: Inbox[Frame] = self.machine.subscribe(self.channel, None)

    def forgets(self) -> None:
        """A new machine has nothing to create again."""
        self.inbox = self.machine.subscribe(self.channel, None)

    def options(self) -> ChannelOptions:
        """What its channel is created with, whatever others start from."""
        owned = self.lifetime == LIFETIME_OWNER
        return ChannelOptions(
            message_limit=_TOO_SMALL.message_limit if self.crams else None,
            when_full=_TOO_SMALL.when_full if self.crams else None,
            lifetime=self.lifetime,
            owner_only=owned,
            idle_timeout_ms=0 if owned or self.lifetime else round(_IDLE_S * 1000),
            durable=False,
            overflow=False,
            destroy_when_empty=False,
        )

    def begin(self) -> None:
        """Create the channel and join it; the machine does that by itself where it was granted."""
        options = self.options()
        status = "pull" if self.crams else "push"
        self._ask(requests.create_queue(self.channel, 0, options, status, None, None, None, ()))
        if self.lifetime:
            self._ask(requests.join(self.channel))
        self.later(0.1, self._work)

    def _ask(self, request: requests.Request) -> None:
        try:
            self.machine.request(request, self.world.now)
        except (ClientError, LocalProtocolError):
            return
        self.flush()

    def _work(self) -> None:
        try:
            self.machine.push(self.channel, 0, b"rent", (), self.world.now, confirm=False)
        except (ClientError, LocalProtocolError):
            return
        self.flush()
        draw = self.random.random()
        if draw < 0.1 and self.lifetime and self.joined_on == self.connection:
            self.joined_on = 0
            self._ask(requests.leave(self.channel))
            self.later(0.3, self.begin)
        elif draw < 0.2 and not self.lifetime:
            self.later(3.0 * _IDLE_S, self.begin)
        else:
            pause_s = self.random.random()
            self.later(0.02 + 0.1 * pause_s if self.crams else 0.1 + pause_s, self._work)

    def settled(self, pending: Pending) -> None:
        """Note what was granted on this connection."""
        if pending.error is not None or not isinstance(pending.request, requests.Request):
            return
        if pending.request.word == "create queue":
            self.created_on = self.connection
            self.world.mark("temporary channel created")
        elif pending.request.word == "join channel":
            self.joined_on = self.connection

    def not_restored(self, outcome: NotRestored) -> None:
        """The server does not want it now, or has it still."""
        self.world.mark("temporary channel not created again")

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Answer for what comes."""
        while len(self.inbox):
            frame = self.inbox.take()
            if frame.pending_acknowledge and self.usable:
                try:
                    self.machine.acknowledge(frame, None)
                except (ClientError, LocalProtocolError):
                    return
        self.flush()


class Tenants:
    """Looks at the channels of all tenants of one run."""

    def __init__(self, simulation: Stage, memory_bytes: int, *, fails: bool) -> None:
        self._simulation = simulation
        self._memory_bytes = memory_bytes
        self._slack_s = _SLACK_S + _FAILING_S * fails
        self._world = simulation.world
        self.clients: list[Tenant] = []
        #: Channels that had consumers when they were examined.
        self._joined: dict[int, Channel] = {}
        #: When each channel with an idle timeout was seen used last, and how.
        self._used: dict[int, tuple[Channel, float, tuple[int, int]]] = {}

    def add(self, tenant: Tenant) -> None:
        """One more; the first begins the watching."""
        if not self.clients:
            self._world.after(_LOOK_S, self._look)
        self.clients.append(tenant)

    def begin(self, broker: Broker) -> None:
        """A life of the server begins, with what was stored.

        :raises Violation: when something temporary was.
        """
        self._joined = {}
        self._used = {}
        for channel in broker._core.channels.by_key.values():
            if channel.options.lifetime:
                raise Violation("lifetime", f"{channel.name} was stored")

    def _look(self) -> None:
        self._world.after(_LOOK_S, self._look)
        server = self._simulation.server
        if not server.up:
            return
        broker = self._simulation.broker
        leaving = {id(each.channel) for each in broker._core.removals}
        if server.asleep:
            self._used = {}  # nobody looks at the clock
            return
        for channel in broker._core.channels.by_key.values():
            if id(channel) not in leaving:
                self._check(broker, channel)
        for tenant in self.clients:
            self._check_there(broker, tenant)

    def _check(self, broker: Broker, channel: Channel) -> None:
        """Nothing stays that should have gone."""
        options = channel.options
        consumers = channel.audience.subscriptions
        owner = channel.owner
        if options.lifetime == LIFETIME_OWNER and (
            owner is None or broker._core.sessions.get(owner.number) is not owner
        ):
            raise Violation("lifetime", f"{channel.name} is there, but its owner {owner!r} is not")
        if options.owner_only:
            for subscription in consumers.values():
                session = subscription.session
                if session is not owner and session.parent is not owner:
                    raise Violation("lifetime", f"{session!r} is in {channel.name}")
        if options.lifetime == LIFETIME_CONSUMERS:
            if consumers:
                self._joined[id(channel)] = channel
            elif id(channel) in self._joined:
                raise Violation("lifetime", f"{channel.name} is there, and nobody is in it")
        if options.idle_timeout_ms:
            self._check_use(channel)
        for queue in channel.queues.values():
            if options.lifetime and queue.options.when_full == WHEN_FULL_DROP_OLDEST:
                self._check_room(queue)

    def _check_room(self, queue: Queue) -> None:
        """What waits came last, and nothing was refused."""
        there = [each.sequence for each in queue.regular.messages()]
        last = list(range(queue.sequence - len(there) + 1, queue.sequence + 1))
        if there != last or len(there) > _ROOM:
            raise Violation("room", f"{queue!r} has {there} of {queue.sequence}")
        if queue.counters.displaced:
            self._world.mark("message made way")
        refused = queue.counters.refused
        if refused and self._memory_bytes >= _ENOUGH_BYTES:
            raise Violation("room", f"{queue!r} refused {refused} messages")

    def _check_use(self, channel: Channel) -> None:
        now = self._world.now
        use = (channel.pushed(), len(channel.audience.subscriptions))
        known = self._used.get(id(channel))
        if known is None or known[2] != use or use[1]:
            self._used[id(channel)] = (channel, now, use)
            return
        unused_s = now - known[1]
        if unused_s > 2 * channel.options.idle_timeout_ms / 1000 + self._slack_s:
            raise Violation("lifetime", f"{channel.name} is there, unused for {unused_s:.3f} s")

    def _check_there(self, broker: Broker, tenant: Tenant) -> None:
        """Nothing goes before: while its owner or a consumer is connected it is there."""
        if not tenant.usable or not tenant.lifetime:
            return
        on = tenant.created_on if tenant.lifetime == LIFETIME_OWNER else tenant.joined_on
        session = broker._core.clients.get(tenant.machine.client_id)
        if on != tenant.connection or session is None:
            return
        if session.number == tenant.link.number and (
            broker._core.channels.find(tenant.channel) is None
        ):
            raise Violation("lifetime", f"{tenant.channel} has gone before {tenant.name}")
        self._world.mark("temporary channel there")
