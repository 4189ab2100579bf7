"""Publications of a session of NSQ, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_DUPLICATE, RESULT_OK, RESULT_UNAUTHORIZED
from tmqp_server.doors.answers import RunChoice
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.message import NsqRun, size_of
from tmqp_server.doors.nsq.publications import PendingPublication, PendingPublications
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_server.doors.nsq.writing import CONNECTED, NOTHING, WritingSession
from tmqp_server.engine.commands import Command, Push, PushRun
from tmqp_server.engine.effects import Confirm, ConfirmRun
from tmqp_wires.nsq.events import Event, Publish, PublishDeferred, PublishMany
from tmqp_wires.nsq.names import quoted
from tmqp_wires.nsq.writing import OK, message_frame

__all__ = ["MadeTopic", "PublishingSession"]

#: So many topics are remembered by a session.
_MOST_MADE: Final = 1_000


@final
class MadeTopic:
    """The token of the command that creates a topic."""

    __slots__ = ("topic",)

    def __init__(self, topic: bytes) -> None:
        self.topic = topic


class PublishingSession(WritingSession):
    """The publishing part of a session."""

    def __init__(self, context: NsqContext, number: int) -> None:
        super().__init__(context, number)
        self._source = b""
        self._publications = PendingPublications()
        #: The result codes of refused messages, until their publications are answered.
        self._codes: dict[str, int] = {}
        #: Topics that exist, as far as the session knows.
        self._made: set[bytes] = set()
        self._runs = RunChoice()

    def _forget_publications(self) -> None:
        """Forget all publications; no answers will be sent."""
        self._publications.clear()
        self._codes.clear()

    def _publication(self, word: bytes, topic: bytes, ids: list[str], *, each: bool) -> None:
        self._orders += 1
        slot = self._answers.open()
        publication = PendingPublication(word, topic, ids, each, slot, self._orders)
        self._publications.add(publication)
        if self._publications.count >= self._context.limits.max_unanswered:
            self.reads = False

    def _publish(self, events: list[Event], at: int, commands: list[Command], now: float) -> int:
        """Carry out one PUB, or consecutive ones to one topic; returns the index of the next
        command."""
        first = events[at]
        assert isinstance(first, Publish)
        bodies = [first.body]
        at += 1
        if not self._runs.singly_for:
            while at < len(events):
                event = events[at]
                if not isinstance(event, Publish) or event.topic != first.topic:
                    break
                bodies.append(event.body)
                at += 1
        self._push(b"PUB", first.topic, bodies, commands, now)
        return at

    def _publish_many(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, PublishMany)
        self._push(b"MPUB", event.topic, event.bodies, commands, now)

    def _publish_deferred(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, PublishDeferred)
        self._push(b"DPUB", event.topic, [event.body], commands, now, event.delay_ms)

    def _push(
        self,
        word: bytes,
        topic: bytes,
        bodies: list[bytes],
        commands: list[Command],
        now: float,
        delay_ms: int = 0,
    ) -> None:
        """Create the topic if it may not exist, and push messages into it (N55)."""
        context = self._context
        number = self._number
        timestamp_ns = context.unix_ns(now)
        shapes = context.shapes
        if topic not in self._made:
            commands.append(shapes.create_topic(number, topic, MadeTopic(topic)))
        # The topic may be removed at any time, and the client may have only the right to push, so
        # the push creates it.
        extras = shapes.extras(topic, delay_ms)
        channel = shapes.channel_of(topic)
        if len(bodies) == 1:
            context.world.published(self._row, topic, 1, len(bodies[0]))
            name = context.ids.new()
            frame = message_frame(timestamp_ns, 1, name.encode("ascii"), bodies[0])
            self._publication(word, topic, [name], each=False)
            size = size_of(self._source, bodies[0])
            commands.append(Push(number, name, channel, QUEUE, False, True, size, frame, extras))
            return
        context.world.published(self._row, topic, len(bodies), sum([len(body) for body in bodies]))
        ids = context.ids.several(len(bodies))
        run = NsqRun(ids, bodies, timestamp_ns, self._source, extras)
        self._publication(word, topic, ids, each=word == b"PUB")
        command = PushRun(
            number,
            channel,
            QUEUE,
            False,
            True,
            len(ids),
            run.size(),
            run.largest(),
            run,
            self._runs,
        )
        if self._runs.singly_for:
            commands.extend(run.pushes(command))
        else:
            commands.append(command)

    def _topic_made(self, made: MadeTopic, code: int) -> None:
        """Remember a topic that exists, unless it could not be created."""
        if code in (RESULT_OK, RESULT_DUPLICATE):
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            self._made.add(made.topic)

    def _run_confirmed(self, effect: ConfirmRun, now: float) -> Sequence[Command]:
        ids = effect.message_ids
        whole = self._publications.whole(ids)
        if whole is None:
            commands: list[Command] = []
            for confirm in effect.confirms():
                commands.extend(self._confirmed(confirm, now))
            return commands
        self._publications.remove(whole)
        self._settle(whole, OK * len(ids) if whole.each else OK)
        return self._end_if_answered()

    def _confirmed(self, effect: Confirm, now: float) -> Sequence[Command]:
        publications = self._publications
        name = effect.message_id
        publication = publications.find(name)
        if publication is None:
            return NOTHING  # its publication was answered with an error
        if not effect.positive:
            code = self._codes.pop(name, 0)
            publications.remove(publication)
            return self._not_published(publication, code, effect.reason, now)
        publications.take(publication, name)
        if publication.left == 0:
            self._settle(publication, OK)
            return self._end_if_answered()
        if publication.each and publication.order <= self._ended_at:
            self._answers.add(publication.slot, OK)
            self._note()
        return NOTHING

    def _settle(self, publication: PendingPublication, data: bytes) -> None:
        """Answer a publication whose messages were all accepted."""
        is_void = publication.order > self._ended_at
        self._answers.finish(publication.slot, b"" if is_void else data)
        room = self._publications.count < self._context.limits.max_unanswered
        if room and not self.reads and not self._ends and self._standing == CONNECTED:
            self.reads = True
            self.hurried = True
        self._note()

    def _not_published(
        self, publication: PendingPublication, code: int, reason: str, now: float
    ) -> Sequence[Command]:
        word = publication.word
        if code == RESULT_UNAUTHORIZED:
            topic = quoted(publication.topic)
            text = b'E_UNAUTHORIZED AUTH failed for %s on %s ""' % (word, topic)
        else:
            told = f"{word.decode()} failed {reason or code}".encode()
            text = b"E_%s_FAILED %s" % (word, told)
        if publication.order > self._ended_at:
            self._answers.finish(publication.slot)
            return self._end_if_answered()
        return self._fatal(text, publication.slot, publication.order, now)
