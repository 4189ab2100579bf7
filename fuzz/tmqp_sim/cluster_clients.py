"""The honest clients of a cluster: one that pushes, and one that consumes, at each server."""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp.frames import Frame
from tmqp_client._core import requests
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.outcomes import NotRestored
from tmqp_client._core.pending import Kind, Pending
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError
from tmqp_sim.clients import SimClient
from tmqp_sim.passages import Passages
from tmqp_sim.plan import MessagePlan
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["CHANNELS", "ClusterConsumer", "ClusterProducer"]

#: Two channels where their clients tell them by case, else the first alone.
CHANNELS: Final = ("c", "C")
_QUEUE: Final = 1
#: What a message has left of its 16 hops when it comes to a consumer, here and from a slave (F11).
_TTL_HERE: Final = 15
_TTL_FROM_SLAVE: Final = 14


class ClusterProducer(SimClient):
    """Pushes each message once, whatever comes of it."""

    def __init__(
        self, node: Stage, name: str, limits: ClientLimits, server: str, passages: Passages
    ) -> None:
        super().__init__(node, name, limits)
        self.ready: deque[MessagePlan] = deque()
        self._server = server
        self._passages = passages

    def give(self, message: MessagePlan) -> None:
        """A message to send has come up."""
        self.ready.append(message)
        self.begin()

    def begin(self) -> None:
        """Push what there is."""
        while self.usable and self.ready and not self.machine.full:
            message = self.ready.popleft()
            number = message.name.rpartition(" ")[2]
            uid = f"m{number}"
            channel = CHANNELS[int(number) % 2 if self._passages.exact else 0]
            self._passages.push(uid, self._server)
            payload = f"{uid} of {self.name} ".encode().ljust(message.size, b".")
            now = self.world.now
            self.machine.push(
                channel, _QUEUE, payload, (), now, confirm=message.asks, message_id=uid
            )
        self.flush()

    def settled(self, pending: Pending) -> None:
        """There may be room for the next."""
        self.world.after(0.0, self.begin)


class ClusterConsumer(SimClient):
    """Joins the channel and answers for what comes."""

    def __init__(
        self,
        node: Stage,
        name: str,
        limits: ClientLimits,
        server: str,
        passages: Passages,
        channel: str = CHANNELS[0],
    ) -> None:
        super().__init__(node, name, limits)
        self._server = server
        self._passages = passages
        self._channel = channel
        self.inbox: Inbox[Frame] = self.machine.subscribe(channel, None)

    def begin(self) -> None:
        """Join, or join again what the last connection had joined."""
        if not self.machine.joins:
            self.machine.request(requests.join(self._channel), self.world.now)
        self.flush()

    def settled(self, pending: Pending) -> None:
        """Joined, or not: then try on another connection."""
        if pending.kind == Kind.OPERATION and self.machine.lost is None and pending.error:
            self.world.after(0.0, self.leave, False)

    def not_restored(self, outcome: NotRestored) -> None:
        """The channel is not to be had any more: try on another connection."""
        self.world.after(0.0, self.leave, False)

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Check what came, and answer.

        :raises Violation: when it did not come to this server, or is not what was pushed.
        """
        while len(inbox):
            frame = inbox.take()
            giver = self._passages.arrived[self._server].get(frame.message_id)
            if giver is None:
                text = f"{frame.message_id!r} came to {self.name}, and not to {self._server}"
                raise Violation("invented", text)
            if frame.target != self._channel:
                text = f"{frame.message_id} for {frame.target!r} came to {self._channel!r}"
                raise Violation("invented", text)
            said = f"{frame.message_id} of {frame.source} ".encode()
            if frame.source != f"producer-{giver}" or not bytes(frame.payload).startswith(said):
                text = f"{frame.message_id} of {giver} came as {frame.source}'s: {frame.payload!r}"
                raise Violation("invented", text)
            left = _TTL_HERE if giver == self._server else _TTL_FROM_SLAVE
            if frame.ttl != left:
                text = f"{frame.message_id} from {giver} has {frame.ttl} hops left, not {left}"
                raise Violation("door", f"{text} (F11)")
            if frame.pending_acknowledge:
                connection = self.connection
                self.world.after(self.random.random() * 0.05, self._answer, connection, frame)

    def _answer(self, connection: int, frame: Frame) -> None:
        if connection != self.connection or not self.usable:
            return
        try:
            self.machine.acknowledge(frame, None)
        except ClientError:
            return
        self.flush()
