"""The part of a connection of Throttr that writes: replies in their order, and pushes.

A push is sent whole, and never after a reply in the same write, because clients of the original
recognize a push only at the beginning of what they read.  They also expect their own message before
the reply to its PUBLISH, so this reply is late: it is written after everything else of the step.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp_server.doors.ordered import OrderedAnswers, Slot
from tmqp_server.doors.throttr.context import ThrottrClient, ThrottrContext
from tmqp_server.doors.throttr.message import DOOR, QUEUE
from tmqp_server.doors.waiting import WaitingSession
from tmqp_server.engine.commands import Acknowledge, Command
from tmqp_server.engine.effects import Deliver
from tmqp_wires.throttr.requests import Event

__all__ = ["ThrottrWriter"]

#: Pushes are joined up to so many bytes, because clients of the original cannot read one that
#: arrives in two pieces.
_MOST_JOINED: Final = 32_768


class ThrottrWriter(WaitingSession[Event]):
    """The writing part of a session.

    :param context: what all connections share.
    :param now: when it was opened, in seconds.
    """

    def __init__(self, context: ThrottrContext, number: int, now: float) -> None:
        super().__init__(number, DOOR, context.new_id, context.limits.max_early_bytes)
        self._context = context
        self._client = ThrottrClient(bytes.fromhex(context.new_id()), "", "", context.unix_ns(now))
        self._answers = OrderedAnswers()
        #: The names of this client's channels, by the channels' names in the engine.
        self._names: dict[str, bytes] = {}
        self._portions: deque[bytes] = deque()
        self._open: list[bytes] = []
        self._open_bytes = 0
        self._ends_with_reply = False
        #: Replies that are written after the pushes of this step.
        self._late: list[tuple[Slot | None, bytes]] = []
        #: The acknowledgements for deliveries that have not been written.
        self._acknowledges: list[Command] = []

    def waits_for_replies(self) -> bool:
        """Whether something continues after late replies are written."""
        raise NotImplementedError

    def _settle_late(self) -> None:
        """Write the late replies; requests that wait for them may continue then."""
        late = self._late
        if late:
            self._late = []
            for slot, data in late:
                self._finish(slot, data)
            if self.waits_for_replies():
                self.wants_written = True

    def _forget_channel(self, name: bytes) -> None:
        """Forget the name of a channel in the engine."""
        subscription = self._client.subscriptions.get(name)
        if subscription is not None:
            self._names.pop(subscription.spelt, None)

    def _finish(self, slot: Slot | None, data: bytes) -> None:
        """Answer a request, and queue all replies that are ready then."""
        if slot is None:
            return
        self.outbound_bytes += len(data)
        self._answers.finish(slot, data)
        ready = self._answers.take()
        if ready:
            self._open.append(ready)
            self._open_bytes += len(ready)
            self._ends_with_reply = True

    def deliver(self, data: bytes) -> None:
        """Queue another client's message for this client alone."""
        if data:
            self._count_push(self._client.own_channel, len(data))
            self._push(data)

    def _push(self, data: bytes) -> None:
        if self._ends_with_reply or self._open_bytes + len(data) > _MOST_JOINED:
            self._close_portion()
        self._open.append(data)
        self._open_bytes += len(data)
        self.outbound_bytes += len(data)

    def _close_portion(self) -> None:
        if self._open:
            self._portions.append(b"".join(self._open))
            self._open = []
            self._open_bytes = 0
        self._ends_with_reply = False

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery."""
        channel = effect.channel
        name = self._names.get(channel)
        if name is None:
            name = self._context.names.foreign_name(channel)
            subscription = self._client.subscriptions.get(name)
            if subscription is not None:
                subscription.spelt = channel
                self._names[channel] = name
        if shared[0] != 0:
            self._count_push(name, len(shared))
            self._push(shared)
        if effect.wants_acknowledge:
            message_id = effect.message.message_id
            self._acknowledges.append(
                Acknowledge(
                    self._number, message_id, self._context.names.exact_channel(name), QUEUE
                )
            )
            self.wants_written = True

    def _count_push(self, name: bytes, size: int) -> None:
        """Count the payload of a push for the client and its subscription."""
        size -= 1 + self._context.width
        if self._context.serves_publishers:
            size -= 1 + len(name)
        self._client.received_bytes += size
        subscription = self._client.subscriptions.get(name)
        if subscription is not None:
            subscription.read_bytes += size

    def data_to_send(self) -> bytes:
        """Everything queued."""
        data = b""
        while piece := self.next_to_send():
            data += piece
        return data

    def next_to_send(self) -> bytes:
        """The next bytes that may be sent in one piece."""
        self._settle_late()
        if not self._portions:
            self._close_portion()
            if not self._portions:
                return b""
        data = self._portions.popleft()
        self.outbound_bytes -= len(data)
        self._client.write_bytes += len(data)
        self._context.written.add(len(data), self._context.now_ns)
        return data
