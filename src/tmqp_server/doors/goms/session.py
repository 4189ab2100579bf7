"""One connection of goMS, or one source of datagrams.

Theory of operation.  With the first request, the session asks the broker to accept the client;
further requests wait for its answer.  The dialect of a client is that of its first request.  A
registered topic is a joined channel.  A message to several topics is one push for each; consecutive
messages to one topic are one push together.  Nothing is confirmed: the protocol relies on TCP.  If
the queue of a topic wants acknowledgements, because another door or the configuration created it
so, a message is acknowledged when the kernel has taken it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import final

from tmqp.constants import RESULT_OK
from tmqp_server.doors.answers import PlainAnswers, RunChoice
from tmqp_server.doors.bodies import bytes_around
from tmqp_server.doors.goms.context import GomsContext
from tmqp_server.doors.goms.message import DOOR, QUEUE, GomsRun, NotMine
from tmqp_server.doors.port import SYNTAX
from tmqp_server.doors.waiting import NOTHING, WaitingSession
from tmqp_server.engine.commands import (
    AcknowledgeRun,
    Command,
    CreateQueue,
    Join,
    Leave,
)
from tmqp_server.engine.effects import Deliver, DeliverRun, Effect, Left, Reply
from tmqp_wires.goms import Dialect, ObjectDecoder
from tmqp_wires.goms.codec import (
    ALREADY_REGISTERED,
    UNKNOWN_TOPIC,
    Event,
    Logout,
    Register,
    Send,
    Violation,
    error_line,
    message_lines,
)

__all__ = ["GomsSession"]


@final
class GomsSession(WaitingSession[Event]):
    """One connection.

    :param context: what all connections share.
    """

    def __init__(self, context: GomsContext, number: int) -> None:
        super().__init__(number, DOOR, context.new_id, context.limits.max_early_bytes)
        self._context = context
        self._decoder = ObjectDecoder(context.limits.max_message_bytes)
        self._dialect = Dialect.TYPE
        #: The topics of this client, by channel.
        self._registered: dict[str, str] = {}
        self._topics: dict[str, str] = {}
        #: The bytes of this client's stored messages besides id and data, by channel.
        self._around: dict[str, int] = {}
        #: The acknowledgements for deliveries that have not been written.
        self._answers: list[Command] = []
        self._out: deque[bytes] = deque()
        self._runs = RunChoice()

    # -- bytes in -------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        if self.closed:
            return NOTHING
        if self._context.datagrams:
            return self.take(self._decoder.receive_datagram(data), now)
        return self.take(self._decoder.receive(data), now)

    def fault_of(self, event: Event) -> str:
        """Why the connection ends, if the first object violates the protocol."""
        return event.text if isinstance(event, Violation) else ""

    def begin(self, event: Event) -> None:
        """Take over the dialect of the first request."""
        assert not isinstance(event, Violation), "that would have been a fault"
        self._dialect = event.dialect

    def text_bytes_of(self, event: Event) -> int:
        """The length of a message's data."""
        return len(event.data) if isinstance(event, Send) else 0

    def forget_input(self) -> None:
        """Drop an incomplete object."""
        self._decoder.forget()

    def commands_of(self, events: list[Event], now: float) -> Sequence[Command]:
        """The commands for requests."""
        commands: list[Command] = []
        singly = self._runs.begin_chunk()
        at = 0
        while at < len(events):
            event = events[at]
            at += 1
            if isinstance(event, Send):
                data = [event.data]
                if len(event.topics) == 1:
                    at = _take_row(events, at, event.topics, data)
                self._send(event.topics, data, singly, commands)
            elif isinstance(event, Register):
                self._register(event.topics, commands)
            elif isinstance(event, Logout):
                self._log_out(event.topics, commands)
            else:
                why = "the client closed"
                if isinstance(event, Violation):
                    self.violation, why = SYNTAX, event.text
                commands += self.end(why)
                break
        return commands

    def _register(self, topics: list[str], commands: list[Command]) -> None:
        """Join the channels.  Report unknown topics and, in the newer dialect, those to which the
        client is already registered."""
        context = self._context
        unknown: list[str] = []
        known: list[str] = []
        for topic in topics[: context.limits.max_topics]:
            channel = context.channels.get(topic)
            if channel is None:
                unknown.append(topic)
            elif channel in self._registered:
                known.append(topic)
            else:
                self._registered[channel] = topic
                commands.append(self._creation(channel))
                # In a dialect that echoes, the client wants all messages.
                wanted = None if self._echoes() else NotMine(self._client_id)
                commands.append(Join(self._number, channel, channel, filter=wanted))
        if unknown:
            self._say(error_line(self._dialect, UNKNOWN_TOPIC, ",".join(unknown)))
        if known and self._dialect is Dialect.MESSAGETYPE:
            self._say(error_line(self._dialect, ALREADY_REGISTERED, ",".join(known)))

    def _log_out(self, topics: list[str] | None, commands: list[Command]) -> None:
        """Leave the channels of *topics*, or all channels if that is None."""
        channels = self._context.channels
        wanted = list(self._registered)
        if topics is not None:
            named = {channels.get(topic) for topic in topics}
            wanted = [channel for channel in wanted if channel in named]
        for channel in wanted:
            del self._registered[channel]
            commands.append(Leave(self._number, None, channel))

    def _creation(self, channel: str) -> Command:
        return CreateQueue(self._number, None, channel, QUEUE, self._context.changes())

    def _echoes(self) -> bool:
        """Whether this client gets what it sends."""
        return self._context.echoes(self._dialect)

    def _send(
        self, topics: list[str], data: list[str], singly: bool, commands: list[Command]
    ) -> None:
        """Push consecutive messages.  In the dialect of the document, the sender must be registered
        to the topic."""
        context = self._context
        must_register = self._dialect is Dialect.TYPE
        for topic in topics[: context.limits.max_topics]:
            channel = context.channels.get(topic)
            if channel is None or (must_register and channel not in self._registered):
                continue
            around = self._around.get(channel)
            if around is None:
                around = self._around[channel] = bytes_around(self._client_id, channel)
            if channel not in self._registered:
                commands.append(self._creation(channel))
            ids = context.ids.several(len(data))
            client_id = self._client_id
            run = GomsRun(ids, client_id, channel, data, around, echoes=self._echoes())
            commands += run.command(self._number, self._runs, singly=singly)

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        if self.closed:
            return NOTHING
        decided = self.decided(effect, now)
        if decided is not None:
            return decided
        if isinstance(effect, Reply):
            self._replied(effect)
        elif isinstance(effect, Left):
            topic = self._topic_of(effect.channel)
            self._registered.pop(self._context.channels.get(topic, ""), None)
        return NOTHING

    def _replied(self, effect: Reply) -> None:
        """Report the topic of a refused join as unknown."""
        channel = effect.request
        if isinstance(channel, str) and effect.code != RESULT_OK:
            topic = self._registered.pop(channel, None)
            if topic is not None:
                self._say(error_line(self._dialect, UNKNOWN_TOPIC, topic))

    # -- bytes out ------------------------------------------------------------------------------

    def deliver(self, data: bytes) -> None:
        """Nothing: all deliveries come through ``deliver_own``."""

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Queue a delivery in the client's dialect."""
        topic = self._told(effect.channel, shared)
        if effect.wants_acknowledge:
            self._answer(topic, effect.channel, [effect.message.message_id])

    def deliver_own_run(self, effect: DeliverRun, shared: bytes, number: int) -> None:
        """Queue the deliveries of a run."""
        topic = self._told(effect.channel, shared)
        if effect.wants_acknowledge:
            self._answer(topic, effect.channel, effect.message_ids())

    def _told(self, channel: str, lines: bytes) -> str:
        """Queue messages of a channel; returns the channel's topic."""
        topic = self._topic_of(channel)
        self._say(message_lines(self._dialect, topic, lines))
        return topic

    def _answer(self, topic: str, channel: str, ids: list[str]) -> None:
        """Prepare the acknowledgement of deliveries, for when the kernel has taken them."""
        place = self._context.channels.get(topic, channel)
        answers, notes = PlainAnswers(), self._runs
        self._answers.append(AcknowledgeRun(self._number, place, QUEUE, ids, answers, notes))
        self.wants_written = True

    def written(self, now: float) -> Sequence[Command]:
        """Acknowledge the deliveries that the kernel has taken."""
        answers = self._answers
        self._answers = []
        return answers

    def _topic_of(self, channel: str) -> str:
        found = self._topics.get(channel)
        if found is None:
            found = self._topics[channel] = self._context.topic_of(channel).lower()
        return found

    def _say(self, lines: bytes) -> None:
        if self._context.datagrams:
            self._out.extend(lines.splitlines(keepends=True))
        else:
            self._out.append(lines)
        self.outbound_bytes += len(lines)

    def data_to_send(self) -> bytes:
        """Everything queued."""
        data = b"".join(self._out)
        self._out.clear()
        self.outbound_bytes = 0
        return data

    def next_to_send(self) -> bytes:
        """Everything queued, or one object if the transport is UDP."""
        if not self._context.datagrams or not self._out:
            return self.data_to_send()
        line = self._out.popleft()
        self.outbound_bytes -= len(line)
        return line

    def held_bytes(self) -> int:
        """Bytes of an incomplete object, and of input that waits for the decision about the
        client."""
        return self._decoder.held_bytes + super().held_bytes()

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """None: the protocol has no timeouts."""
        return None

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Nothing is ever due."""
        return NOTHING


def _take_row(events: list[Event], at: int, topics: list[str], data: list[str]) -> int:
    """Collect the data of the following messages to the same topics; returns the index after
    them."""
    while at < len(events):
        event = events[at]
        if not isinstance(event, Send) or event.topics is not topics:
            break
        data.append(event.data)
        at += 1
    return at
