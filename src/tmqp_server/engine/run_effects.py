"""Owns the effect that stands for the deliveries of a run of pushes."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.client import Client
from tmqp_server.engine.effects import Deliver, Effect
from tmqp_server.engine.message import MARK_HIGH, Message
from tmqp_server.engine.run_commands import PushRun

__all__ = ["DeliverRun"]


@mypyc_attr(acyclic=True)
class DeliverRun(Effect):
    """Send the messages of a run to all of ``sessions``, which get the very same bytes.

    As so many ``Deliver`` of messages of ``producer``, from ``sequence`` on, that want no
    acknowledge, hide nothing, and were never sent.  The list may be shared with other effects:
    never change it.
    """

    __slots__ = ("sessions", "run", "producer", "sequence", "channel", "first_acquirer")

    def __init__(
        self,
        sessions: list[int],
        run: PushRun,
        producer: Client,
        sequence: int,
        channel: str,
        first_acquirer: bool,
    ) -> None:
        self.sessions = sessions
        self.run = run
        self.producer = producer
        self.sequence = sequence
        self.channel = channel
        self.first_acquirer = first_acquirer

    def deliveries(self) -> list[Deliver]:
        """The same as single deliveries, for who needs a look at each message."""
        found: list[Deliver] = []
        sequence = self.sequence
        for push in self.run.wire.pushes(self.run):
            message = Message(
                push.message_id,
                self.producer,
                push.channel,
                push.queue_id,
                push.size,
                push.wire,
                MARK_HIGH if push.high_priority else 0,
                sequence,
            )
            sequence += 1
            first = self.first_acquirer
            found.append(Deliver(self.sessions, message, self.channel, first, False, False, False))
        return found
