"""The effects for runs: deliveries, confirms, requests to save and erase, forwarded messages."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands import PushRun, RunWire
from tmqp_server.engine.effects.base import Effect
from tmqp_server.engine.effects.messages import Confirm, Deliver, Forward
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_COPY, MARK_HIGH, Message

__all__ = ["AppendRun", "ConfirmRun", "DeliverRun", "EraseRun", "ForwardRun"]


@mypyc_attr(acyclic=True)
class DeliverRun(Effect):
    """Send messages of a run to all of ``sessions``, which get the same bytes.

    Like a ``Deliver`` for each of the messages at ``start``, ``start + step`` and so on before
    ``stop``; they are from ``producer``, hide nothing and were never sent.  ``sequence`` is that of
    the run's first message, if all go into one queue.  The list may be shared with other effects:
    never change it.
    """

    __slots__ = (
        "sessions",
        "run",
        "producer",
        "sequence",
        "channel",
        "first_acquirer",
        "wants_acknowledge",
        "start",
        "step",
        "stop",
    )

    def __init__(
        self,
        sessions: list[int],
        run: PushRun,
        producer: Origin,
        sequence: int,
        channel: str,
        first_acquirer: bool,
        wants_acknowledge: bool,
        start: int,
        step: int,
        stop: int,
    ) -> None:
        self.sessions = sessions
        self.run = run
        self.producer = producer
        self.sequence = sequence
        self.channel = channel
        self.first_acquirer = first_acquirer
        self.wants_acknowledge = wants_acknowledge
        self.start = start
        self.step = step
        self.stop = stop

    def is_whole(self) -> bool:
        """Whether all messages of the run are sent."""
        return self.start == 0 and self.step == 1 and self.stop == self.run.count

    def message_ids(self) -> list[str]:
        """The ids of the messages that are sent."""
        ids, _, _ = self.run.wire.contents()
        return ids if self.is_whole() else ids[self.start : self.stop : self.step]

    def deliveries(self) -> list[Deliver]:
        """Return the same as single deliveries, for code that needs each message."""
        found: list[Deliver] = []
        run = self.run
        ids, sizes, wires = run.wire.contents()
        marks = MARK_HIGH if run.high_priority else 0
        if run.copied:
            marks |= MARK_COPY
        odd = set(run.odd)
        following = dict(run.sequences)
        for place in range(self.start, self.stop, self.step):
            queue_id, sequence = run.queue_id, self.sequence + place
            if run.queues:
                # A run for several queues is sent whole, so every index is visited.
                queue_id = run.queues[place]
                sequence = following[queue_id]
                following[queue_id] = sequence + 1
            message = Message(
                ids[place],
                self.producer,
                run.channel,
                queue_id,
                sizes[place],
                wires[place],
                marks ^ MARK_HIGH if place in odd else marks,
                sequence,
            )
            found.append(
                Deliver(
                    self.sessions,
                    message,
                    self.channel,
                    self.first_acquirer,
                    self.wants_acknowledge,
                    False,
                    False,
                )
            )
        return found


@mypyc_attr(acyclic=True)
class ConfirmRun(Effect):
    """Tell a producer that the messages of its run were accepted; only its own door gets this
    effect.

    Like a positive ``Confirm`` for each message, none of which was sent yet.  ``queues`` has the
    queue of each message in order, or is empty if all went into one.
    """

    __slots__ = ("session", "message_ids", "channel", "queue_id", "queues")

    def __init__(
        self,
        session: int,
        message_ids: list[str],
        channel: str,
        queue_id: int,
        queues: list[int] | None = None,
    ) -> None:
        self.session = session
        self.message_ids = message_ids
        self.channel = channel
        self.queue_id = queue_id
        self.queues: list[int] = [] if queues is None else queues

    def confirms(self) -> list[Confirm]:
        """Return the same as single confirms."""
        found: list[Confirm] = []
        for place, name in enumerate(self.message_ids):
            queue_id = self.queues[place] if self.queues else self.queue_id
            found.append(
                Confirm(self.session, name, self.channel, queue_id, True, "", True, "", None)
            )
        return found


@mypyc_attr(acyclic=True)
class AppendRun(Effect):
    """Save the messages of a run; all have one ticket, answered by one ``Synced`` (rule 1).

    Like an ``Append`` for each message, under sequences from ``sequence`` on; none is stored yet.
    Never change the list.
    """

    __slots__ = ("ticket", "run", "messages", "channel", "key", "sequence")

    def __init__(
        self,
        ticket: int,
        run: PushRun,
        messages: list[Message],
        channel: str,
        key: int,
        sequence: int,
    ) -> None:
        self.ticket = ticket
        self.run = run
        self.messages = messages
        self.channel = channel
        self.key = key
        self.sequence = sequence


@mypyc_attr(acyclic=True)
class EraseRun(Effect):
    """Messages of one queue are settled and need not be kept.

    Like an ``Erase`` for each, in order.  Each ``Append`` came before.
    """

    __slots__ = ("key", "sequences")

    def __init__(self, key: int, sequences: list[int]) -> None:
        self.key = key
        self.sequences = sequences


@mypyc_attr(acyclic=True)
class ForwardRun(Effect):
    """Forward messages of a run from one client to others, from the index ``start`` to before
    ``stop``, like a ``Forward`` for each.

    The list may be shared with other effects: never change it.
    """

    __slots__ = ("sessions", "wire", "door", "start", "stop")

    def __init__(
        self, sessions: list[int], wire: RunWire, door: str, start: int, stop: int
    ) -> None:
        self.sessions = sessions
        self.wire = wire
        self.door = door
        self.start = start
        self.stop = stop

    def forwards(self) -> list[Forward]:
        """Return the same as single effects."""
        _, _, wires = self.wire.contents()
        return [Forward(self.sessions, each, self.door) for each in wires[self.start : self.stop]]
