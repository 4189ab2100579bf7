"""The roles of a session for peers of the types PUSH, PULL, PUB, SUB and PAIR.

The roles for requests and replies are in ``services.py``.
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
        """Subscribe to a prefix at a publisher."""


class SocketRole:
    """The behaviour of a session for its peer's type.

    Attributes: ``client_id``, the peer's id; ``fault``, why the connection must end, empty if it
    need not.
    """

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, channel: str) -> None:
        self._context = context
        self._number = number
        self._peer = peer
        self._channel = channel
        self.client_id = ""
        self.fault = ""

    def begin(self) -> Sequence[Command]:
        """The peer was accepted; returns the first commands."""
        return _NOTHING

    def take(self, raws: list[bytes]) -> Sequence[Command]:
        """Carry out consecutive messages; those of a peer that only receives are ignored."""
        return _NOTHING

    def subscribe(self, prefix: bytes) -> None:
        """The peer subscribes to a prefix."""

    def cancel(self, prefix: bytes) -> None:
        """The peer cancels a subscription to a prefix."""

    def settle(self) -> Sequence[Command]:
        """Called at the end of each chunk."""
        return _NOTHING

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """Queue a message for the peer."""
        self._peer.say(shared)

    def deliver_run(self, effect: DeliverRun, raws: list[bytes], shared: bytes) -> None:
        """Queue a run of messages: *raws* has each of them, *shared* all in one piece."""
        for each, raw in zip(effect.deliveries(), raws, strict=True):
            self.deliver(each, raw)

    def hear(self, data: bytes) -> None:
        """Queue a reply, as from ``ZmtpDoor.encode_forward``."""

    def handed_over(self) -> None:
        """Everything queued is about to be written."""

    def written(self) -> Sequence[Command]:
        """The kernel has taken everything queued."""
        return _NOTHING

    def last_words(self) -> Sequence[Command]:
        """The last commands before the client disconnects."""
        return _NOTHING

    def left(self, sent: int) -> None:
        """The kernel has taken *sent* of all bytes that were ever queued."""

    def take_back(self, sent: int) -> tuple[int, Sequence[Command]]:
        """The connection ends, and the kernel has taken *sent* of all bytes that were ever queued.
        Returns how many of these bytes must be sent in total, -1 for all, and the last commands."""
        return -1, _NOTHING

    def replied(self, effect: Reply) -> None:
        """Handle the answer to a command; count refusals."""
        if effect.code != RESULT_OK:
            self._context.refused += 1

    def confirmed(self, effect: Confirm) -> None:
        """Handle the confirm of a message, if the role asked for one."""


class PushRole(SocketRole):
    """A PUSH socket: its messages go into a queue, and wait for room without a limit.

    :param routes: the queue of each message, if messages name it.
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
        """The extras of each push."""
        return self._context.waiting

    def begin(self) -> Sequence[Command]:
        """Create the queue, unless each message names one."""
        if self._routes is not None:
            return _NOTHING
        changes = self.extras().changes
        return [CreateQueue(self._number, None, self._channel, QUEUE, changes)]

    def take(self, raws: list[bytes]) -> Sequence[Command]:
        """Push the messages."""
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
        """The commands for consecutive messages to one queue."""
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
    """A PUB socket: its messages go to all subscribers, and do not wait for room."""

    def extras(self) -> PushExtras:
        """The extras of each push."""
        return self._context.publishing

    def begin(self) -> Sequence[Command]:
        """Create the topic, and subscribe to everything, because a publisher sends only what is
        subscribed."""
        self._peer.subscribe(b"")
        return super().begin()


class PullRole(SocketRole):
    """A PULL socket: it gets messages of a queue, each at most once.

    A message is acknowledged when the kernel has taken it, because the protocol does not tell
    whether the program reads it.  At the end of the connection, a message that has been sent in
    part counts as delivered; the others are not sent, and go to other consumers.
    """

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, channel: str) -> None:
        super().__init__(context, number, peer, channel)
        #: The ids of messages that wait to be written, with the number of their queue.
        self._ids: list[tuple[int, str]] = []
        #: For each of them, how many bytes were queued before it.
        self._begins: list[int] = []
        self._is_over = False
        self._notes = RunNotes()

    def begin(self) -> Sequence[Command]:
        """Create the queue, and join it."""
        context = self._context
        terms = context.terms(context.limits.high_water_mark)
        channel = self._channel
        return [
            CreateQueue(self._number, None, channel, QUEUE, context.of_queue),
            Join(self._number, None, channel, terms=terms),
        ]

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """Queue a message, to be acknowledged when it has been sent."""
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
        """Queue messages, to be acknowledged when they have been sent."""
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
        """Acknowledge messages, those of one queue together."""
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
    """A SUB socket: it gets published messages that begin with one of its prefixes.

    Subscriptions are counted, because a peer may send one twice.  Messages that a slow subscriber
    cannot take are dropped: at most the high-water mark of messages that were passed to the socket
    wait to be sent.  When these have been sent, the queue counts the dropped messages as skipped.
    """

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, channel: str) -> None:
        super().__init__(context, number, peer, channel)
        self._prefixes: dict[bytes, int] = {}
        self._prefixes_bytes = 0
        self._changed = False
        self._joined = False
        #: Queued messages, and those that were passed to the socket but not sent: for each, how
        #: many bytes had been queued up to its end.
        self._queued: list[int] = []
        self._handed: deque[int] = deque()
        #: Messages that were dropped and are not counted yet.
        self._missed = 0

    def subscribe(self, prefix: bytes) -> None:
        """Add a subscription to a prefix."""
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
        """Remove a subscription to a prefix."""
        known = self._prefixes.get(prefix, 0)
        if known > 1:
            self._prefixes[prefix] = known - 1
        elif known:
            del self._prefixes[prefix]
            self._prefixes_bytes -= len(prefix)
            self._changed = True

    def settle(self) -> Sequence[Command]:
        """Join with the current prefixes, or leave if there are none."""
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
        """Queue a message, unless too many wait; then it counts as missed."""
        if len(self._handed) >= self._context.limits.high_water_mark:
            self._missed += 1
            return
        self._peer.wants_written = True
        self._peer.say(shared)
        self._queued.append(self._peer.said)

    def handed_over(self) -> None:
        """Count the queued messages as passed to the socket."""
        self._handed += self._queued
        self._queued = []

    def left(self, sent: int) -> None:
        """Forget the messages that have been sent."""
        handed = self._handed
        while handed and handed[0] <= sent:
            handed.popleft()

    def written(self) -> Sequence[Command]:
        """Forget all messages, which have been sent, and report the missed ones."""
        self._handed.clear()
        return self.last_words()

    def last_words(self) -> Sequence[Command]:
        """The command that reports how many messages were dropped."""
        missed, self._missed = self._missed, 0
        return [Miss(self._number, self._channel, QUEUE, missed)] if missed else _NOTHING


class NamedSubscribingRole(SubscribingRole):
    """A SUB socket that subscribes to channels by their names, which it sees before the messages.

    :param routes: finds the channels by their names.
    """

    def __init__(self, context: ZmtpContext, number: int, peer: Peer, routes: Routes) -> None:
        super().__init__(context, number, peer, "")
        self._routes = routes
        #: The channels that were joined, by their names.
        self._channels: dict[bytes, str] = {}
        #: The first frames of their messages, by the channels' names in the engine.
        self._heads: dict[str, bytes] = {}

    def settle(self) -> Sequence[Command]:
        """Join new channels, and leave those whose subscriptions were cancelled."""
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
        """Join a channel; an invalid name is counted as refused."""
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
        """Queue a message after the name of its channel, unless too many wait."""
        head = self._heads.get(effect.channel)
        if head is None:
            head = self._heads[effect.channel] = more_frames((self._spelt(effect.channel),))
        super().deliver(effect, head + shared)

    def _spelt(self, channel: str) -> bytes:
        """The name in the socket's subscription to a channel.  It may differ in case from the
        channel's name if another protocol created the channel, and libzmq drops messages that do
        not begin with a subscription."""
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
        """Create both queues, and join one."""
        return [*super().begin(), *self._pull.begin()]

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """Queue a message for the peer."""
        self._pull.deliver(effect, shared)

    def written(self) -> Sequence[Command]:
        """Answer for what has left."""
        return self._pull.written()

    def take_back(self, sent: int) -> tuple[int, Sequence[Command]]:
        """Answer for what has begun to leave, and keep the rest back."""
        return self._pull.take_back(sent)
