"""What a connection does for a peer of one type: PUSH, PULL, PUB, SUB, PAIR.

Those that ask and answer are in ``services.py``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from tmqp.constants import RESULT_OK
from tmqp_server.doors.answers import PlainAnswers, RunChoice
from tmqp_server.doors.zmtp.context import ZmtpContext
from tmqp_server.doors.zmtp.filters import TopicFilter
from tmqp_server.doors.zmtp.message import QUEUE, ZmtpRun, size_of
from tmqp_server.doors.zmtp.routing import QUEUE_MARK, Routes
from tmqp_server.engine.commands import (
    AcknowledgeRun,
    Command,
    CreateQueue,
    Join,
    Leave,
    Miss,
    Push,
    PushExtras,
    PushRun,
    RunNotes,
)
from tmqp_server.engine.effects import Confirm, Deliver, DeliverRun, Reply
from tmqp_wires.zmtp.frames import more_frames

__all__ = [
    "NamedSubscribingRole",
    "PairRole",
    "Peer",
    "PublishingRole",
    "PullRole",
    "PushRole",
    "SocketRole",
    "SubscribingRole",
]

_NOTHING: Final[Sequence[Command]] = ()


class Peer(Protocol):
    """The session, as a role sees it."""

    wants_written: bool
    said: int
    """How many bytes were ever queued."""

    def say(self, data: bytes) -> None:
        """Queue bytes of a message."""

    def subscribe(self, prefix: bytes) -> None:
        """Ask a publisher for what begins so."""


class SocketRole:
    """What is done for the peer of one connection.

    Attributes: ``client_id``, the client's; ``fault``, why the connection is to end, or empty.
    """

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, channel: str) -> None:
        self._context = context
        self._number = number
        self._peer = peer
        self._channel = channel
        self.client_id = ""
        self.fault = ""

    def begin(self) -> Sequence[Command]:
        """The client was let in."""
        return _NOTHING

    def take(self, raws: list[bytes]) -> Sequence[Command]:
        """Messages have come in a row; those of a peer that only receives count for nothing."""
        return _NOTHING

    def subscribe(self, prefix: bytes) -> None:
        """The peer wants what begins so."""

    def cancel(self, prefix: bytes) -> None:
        """The peer does not want it any more."""

    def settle(self) -> Sequence[Command]:
        """A chunk is over."""
        return _NOTHING

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """A message for the peer."""
        self._peer.say(shared)

    def deliver_run(self, effect: DeliverRun, raws: list[bytes], shared: bytes) -> None:
        """Messages of a run for the peer: each of them, and all in one piece."""
        for each, raw in zip(effect.deliveries(), raws, strict=True):
            self.deliver(each, raw)

    def hear(self, data: bytes) -> None:
        """A reply for the peer: ``ZmtpDoor.encode_forward``."""

    def handed_over(self) -> None:
        """All that was queued is about to be written."""

    def written(self) -> Sequence[Command]:
        """All that was queued has left."""
        return _NOTHING

    def last_words(self) -> Sequence[Command]:
        """What is to be said before the client disconnects."""
        return _NOTHING

    def left(self, sent: int) -> None:
        """So many of the bytes that were ever queued have left."""

    def take_back(self, sent: int) -> tuple[int, Sequence[Command]]:
        """The connection ends, and so many of the bytes that were ever queued have left.  Returns
        how many are to be sent, -1 for all, and what is to be done."""
        return -1, _NOTHING

    def replied(self, effect: Reply) -> None:
        """A command was refused, or answered."""
        if effect.code != RESULT_OK:
            self._context.refused += 1

    def confirmed(self, effect: Confirm) -> None:
        """What happened to a message, if the role has asked."""


class PushRole(SocketRole):
    """A PUSH socket: its messages go into a queue, and wait for room as long as it takes.

    :param routes: where each message goes, if it says so itself.
    """

    def __init__(
        self,
        context: ZmtpContext,
        number: int,
        peer: Peer,
        channel: str,
        routes: Routes | None = None,
    ) -> None:
        super().__init__(context, number, peer, channel)
        self._routes = routes
        self._runs = RunChoice()

    def extras(self) -> PushExtras:
        """What each push says."""
        return self._context.waiting

    def begin(self) -> Sequence[Command]:
        """Make the queue, if it is known."""
        if self._routes is not None:
            return _NOTHING
        changes = self.extras().changes
        return [CreateQueue(self._number, None, self._channel, QUEUE, changes)]

    def take(self, raws: list[bytes]) -> Sequence[Command]:
        """Push them."""
        singly = self._runs.begin_chunk()
        if self._routes is None:
            return self._pushes(self._channel, QUEUE, raws, singly)
        commands: list[Command] = []
        for target, row in self._routes.divided(raws):
            commands += self._pushes(target.channel, target.queue_id, row, singly)
        return commands

    def _pushes(
        self, channel: str, queue_id: int, raws: list[bytes], singly: bool
    ) -> Sequence[Command]:
        """The commands for messages in a row to one queue."""
        ids = self._context.ids.several(len(raws))
        extras = self.extras()
        number = self._number
        if len(raws) == 1 or singly:
            return [
                Push(number, name, channel, queue_id, False, False, size_of(raw), raw, extras)
                for name, raw in zip(ids, raws, strict=True)
            ]
        run = ZmtpRun(ids, raws, extras)
        count, size, largest, notes = len(raws), run.size(), run.largest(), self._runs
        return [PushRun(number, channel, queue_id, False, False, count, size, largest, run, notes)]


class PublishingRole(PushRole):
    """A PUB socket: its messages go to all who have subscribed, and wait for nobody."""

    def extras(self) -> PushExtras:
        """What each push says."""
        return self._context.publishing

    def begin(self) -> Sequence[Command]:
        """Make the topic, and ask for everything: a publisher sends what it was asked for."""
        self._peer.subscribe(b"")
        return super().begin()


class PullRole(SocketRole):
    """A PULL socket: it gets messages of a queue, each at most once.

    A message is acknowledged when the kernel has it: nobody hears whether the program reads it.  At
    the end of the connection one that has begun to leave counts as gone, too; the others are not
    sent, and go to somebody else.
    """

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, channel: str) -> None:
        super().__init__(context, number, peer, channel)
        #: What waits to leave, with its queue: other queues have their messages from elsewhere.
        self._ids: list[tuple[int, str]] = []
        #: Of each, how many bytes were queued before it.
        self._begins: list[int] = []
        self._is_over = False
        self._notes = RunNotes()

    def begin(self) -> Sequence[Command]:
        """Make the queue, and join it."""
        context = self._context
        terms = context.terms(context.limits.high_water_mark)
        channel = self._channel
        return [
            CreateQueue(self._number, None, channel, QUEUE, context.of_queue),
            Join(self._number, None, channel, terms=terms),
        ]

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """Queue it, and answer for it when it has left."""
        if self._is_over:
            return  # nothing is sent any more: it goes to somebody else
        peer = self._peer
        if effect.wants_acknowledge:
            message = effect.message
            self._ids.append((message.queue_id, message.message_id))
            self._begins.append(peer.said)
            peer.wants_written = True
        peer.say(shared)

    def deliver_run(self, effect: DeliverRun, raws: list[bytes], shared: bytes) -> None:
        """Queue them, and answer for them when they have left."""
        if self._is_over:
            return
        peer = self._peer
        if effect.wants_acknowledge:
            queue_id = effect.run.queue_id
            begins = peer.said
            for name, raw in zip(effect.message_ids(), raws, strict=True):
                self._ids.append((queue_id, name))
                self._begins.append(begins)
                begins += len(raw)
            peer.wants_written = True
        peer.say(shared)

    def written(self) -> Sequence[Command]:
        """Answer for what has left."""
        gone, self._ids = self._ids, []
        self._begins = []
        return self._answers(gone)

    def _answers(self, gone: list[tuple[int, str]]) -> Sequence[Command]:
        """Acknowledge what has left, a queue at a time."""
        found: dict[int, list[str]] = {}
        for queue_id, message_id in gone:
            found.setdefault(queue_id, []).append(message_id)
        number, channel = self._number, self._channel
        return [
            AcknowledgeRun(number, channel, queue_id, ids, PlainAnswers(), self._notes)
            for queue_id, ids in found.items()
        ]

    def take_back(self, sent: int) -> tuple[int, Sequence[Command]]:
        """Answer for what has begun to leave, and keep the rest back."""
        if self._is_over:
            return -1, _NOTHING
        self._is_over = True
        begins = self._begins
        count = bisect_left(begins, sent)
        end = begins[count] if count < len(begins) else -1
        gone, self._ids, self._begins = self._ids[:count], [], []
        return end, self._answers(gone)


class SubscribingRole(SocketRole):
    """A SUB socket: it gets what is published, if it begins as it wants.

    Subscriptions are counted, as one may come twice.  What a slow subscriber cannot take is
    dropped: beside those that are passed on there are never more than the high-water mark.  The
    queue counts what was dropped as skipped, as soon as what was passed on has left.
    """

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, channel: str) -> None:
        super().__init__(context, number, peer, channel)
        self._prefixes: dict[bytes, int] = {}
        self._prefixes_bytes = 0
        self._changed = False
        self._joined = False
        #: Messages that are queued, and those that were passed on and have not left: of each how
        #: many bytes were ever queued with it.
        self._queued: list[int] = []
        self._handed: deque[int] = deque()
        #: Messages that were dropped and are not counted yet.
        self._missed = 0

    def subscribe(self, prefix: bytes) -> None:
        """Want what begins so."""
        known = self._prefixes.get(prefix, 0)
        self._prefixes[prefix] = known + 1
        if known:
            return
        self._changed = True
        self._prefixes_bytes += len(prefix)
        limits = self._context.limits
        if len(self._prefixes) > limits.max_subscriptions:
            self.fault = f"more than {limits.max_subscriptions} subscriptions"
        elif self._prefixes_bytes > limits.max_subscription_bytes:
            self.fault = f"subscriptions of more than {limits.max_subscription_bytes} bytes"

    def cancel(self, prefix: bytes) -> None:
        """Want it once less."""
        known = self._prefixes.get(prefix, 0)
        if known > 1:
            self._prefixes[prefix] = known - 1
        elif known:
            del self._prefixes[prefix]
            self._prefixes_bytes -= len(prefix)
            self._changed = True

    def settle(self) -> Sequence[Command]:
        """Join, with what is wanted now, or leave."""
        if not self._changed or self.fault:
            return _NOTHING
        self._changed = False
        context = self._context
        number, channel = self._number, self._channel
        if not self._prefixes:
            self._joined = False
            return [Leave(number, None, channel)]
        chosen: TopicFilter | None = None
        if b"" not in self._prefixes:
            chosen = TopicFilter(self._prefixes, context.letters)
        join = Join(number, None, channel, filter=chosen)
        if self._joined:
            return [join]
        self._joined = True
        return [CreateQueue(number, None, channel, QUEUE, context.of_topic), join]

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """Queue it, unless too many wait."""
        if len(self._handed) >= self._context.limits.high_water_mark:
            self._missed += 1
            return
        self._peer.wants_written = True
        self._peer.say(shared)
        self._queued.append(self._peer.said)

    def handed_over(self) -> None:
        """What was queued waits in the socket now, or behind it."""
        self._handed += self._queued
        self._queued = []

    def left(self, sent: int) -> None:
        """What has left does not count any more."""
        handed = self._handed
        while handed and handed[0] <= sent:
            handed.popleft()

    def written(self) -> Sequence[Command]:
        """Nothing waits."""
        self._handed.clear()
        return self.last_words()

    def last_words(self) -> Sequence[Command]:
        """Count what was dropped."""
        missed, self._missed = self._missed, 0
        return [Miss(self._number, self._channel, QUEUE, missed)] if missed else _NOTHING


class NamedSubscribingRole(SubscribingRole):
    """A SUB socket that subscribes to channels by their names, which it sees before the messages.

    :param routes: which channels these are.
    """

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, routes: Routes) -> None:
        super().__init__(context, number, peer, "")
        self._routes = routes
        #: The channels that were joined, by their names.
        self._channels: dict[bytes, str] = {}
        #: What their messages begin with, by their real names.
        self._heads: dict[str, bytes] = {}

    def settle(self) -> Sequence[Command]:
        """Join what is wanted now, and leave what is not wanted any more."""
        if not self._changed or self.fault:
            return _NOTHING
        self._changed = False
        self._heads = {}
        commands: list[Command] = []
        for name in [name for name in self._channels if name not in self._prefixes]:
            commands.append(Leave(self._number, None, self._channels.pop(name)))
        for name in self._prefixes:
            if name not in self._channels:
                commands += self._join(name)
        return commands

    def _join(self, name: bytes) -> Sequence[Command]:
        """Join a channel; a name that is none is counted, and wants nothing."""
        target = None if QUEUE_MARK in name else self._routes.read(name)
        if target is None:
            self._context.refused += 1
            return _NOTHING
        channel = target.channel
        self._channels[name] = channel
        changes = self._context.of_topic
        return [
            CreateQueue(self._number, None, channel, QUEUE, changes),
            Join(self._number, None, channel),
        ]

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """Queue it behind the name of its channel, unless too many wait."""
        head = self._heads.get(effect.channel)
        if head is None:
            head = self._heads[effect.channel] = more_frames((self._spelt(effect.channel),))
        super().deliver(effect, head + shared)

    def _spelt(self, channel: str) -> bytes:
        """The name by which the socket has joined a channel: one made by another protocol is met
        by every spelling, and libzmq drops what begins otherwise than a subscription."""
        found = self._context.names.foreign_name(channel)
        if found not in self._channels:
            for name in self._channels:
                if name.lower() == found.lower():
                    return name
        return found


class PairRole(PushRole):
    """A PAIR socket: it sends into one queue, and gets the messages of another."""

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, channel: str) -> None:
        super().__init__(context, number, peer, channel)
        self._pull = PullRole(context, number, peer, f"{channel}.out")

    def begin(self) -> Sequence[Command]:
        """Make both queues, and join one."""
        return [*super().begin(), *self._pull.begin()]

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """A message for the peer."""
        self._pull.deliver(effect, shared)

    def written(self) -> Sequence[Command]:
        """Answer for what has left."""
        return self._pull.written()

    def take_back(self, sent: int) -> tuple[int, Sequence[Command]]:
        """Answer for what has begun to leave, and keep the rest back."""
        return self._pull.take_back(sent)
