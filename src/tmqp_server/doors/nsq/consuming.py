"""The commands of a consumer of NSQ: SUB, RDY, FIN, REQ, TOUCH, CLS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import (
    PUT_BACK_END,
    PUT_BACK_START,
    RESULT_BUSY,
    RESULT_DUPLICATE,
    RESULT_FORBIDDEN,
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNAUTHORIZED,
)
from tmqp_server.doors.nsq.message import NsqAnswers
from tmqp_server.doors.nsq.publishing import PublishingSession
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_server.doors.nsq.writing import NOTHING
from tmqp_server.doors.nsq_world import CLOSING, SUBSCRIBED
from tmqp_server.doors.ordered import Slot
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Command,
    Extend,
    Join,
    Release,
    SetTerms,
    Terms,
)
from tmqp_wires.nsq.events import Event, Finish, Ready, Requeue, Subscribe, Touch
from tmqp_wires.nsq.names import quoted
from tmqp_wires.nsq.writing import CLOSE_WAIT, OK, error_frame

__all__ = ["AnswerRequest", "ConsumingSession", "LastError", "PendingSub"]

#: The digit 0, with which ids of other protocols' messages begin.
_ZERO: Final = 48


_ANSWERS_TO_SUB: Final = 4
#: Why a SUB failed, in the words of PUB's errors; the last ones are the original's (N74).
_REASONS: Final[dict[int, bytes]] = {
    RESULT_BUSY: b"busy",
    RESULT_FORBIDDEN: b"forbidden",
    RESULT_LIMIT_EXCEEDED: b"limit-exceeded",
    RESULT_NOT_FOUND: b"to deleted topic/channel",
}


@final
class AnswerRequest:
    """The token of a FIN, REQ or TOUCH."""

    __slots__ = ("name", "word")

    def __init__(self, word: bytes, name: bytes) -> None:
        self.word = word
        self.name = name


@final
class PendingSub:
    """The token of a SUB, with its four answers: for the topic, the channel, the feed and the
    join."""

    __slots__ = ("channel", "codes", "slot", "topic")

    def __init__(self, topic: bytes, channel: bytes, slot: Slot) -> None:
        self.topic = topic
        self.channel = channel
        self.slot = slot
        #: The codes of the answers so far.
        self.codes: list[int] = []

    def code(self) -> int:
        """The result of the SUB, once it has all answers.

        A client needs no right to create what exists, so a refusal to create the topic or the
        channel counts only if one of them is missing; then its code is the result.  The channel is
        "not found" if its topic does not exist.
        """
        topic, channel, feed, join = self.codes
        if feed == RESULT_DUPLICATE:
            feed = RESULT_OK
        if RESULT_NOT_FOUND in (feed, join):
            made = topic if channel == RESULT_NOT_FOUND else channel
            if made not in (RESULT_OK, RESULT_DUPLICATE):
                return made
        return join or feed


@final
class LastError:
    """The token for an error that ends the connection once all earlier commands are answered."""

    __slots__ = ("answer", "slot")

    def __init__(self, slot: Slot, answer: bytes) -> None:
        self.slot = slot
        self.answer = answer


class ConsumingSession(PublishingSession):
    """The consuming part of a session."""

    def _subscribe(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Subscribe)
        topic, channel = event.topic, event.channel
        shapes = self._context.shapes
        row = self._row
        if row is not None:
            row.topic, row.channel, row.state = topic, channel, SUBSCRIBED
        self._channel = shapes.names.channel(topic, channel)
        asked = PendingSub(topic, channel, self._answers.open())
        self._subscribing = True
        commands.append(shapes.create_topic(self._number, topic, asked))
        commands.extend(shapes.create_channel(self._number, topic, channel, asked))
        terms = Terms(0, self._who.msg_timeout_ms, PUT_BACK_START)
        commands.append(Join(self._number, asked, self._channel, terms=terms, creates=False))

    def _ready(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Ready)
        self._count(ready=event.count)
        commands.append(SetTerms(self._number, None, self._channel, Terms(event.count)))

    def _finish(self, events: list[Event], at: int, commands: list[Command]) -> int:
        """Carry out one FIN, or several consecutive ones; returns the index of the next command."""
        ids: list[str] = []
        while at < len(events):
            event = events[at]
            if not isinstance(event, Finish) or event.message_id[0] == _ZERO:
                break
            ids.append(event.message_id.decode("latin-1"))
            at += 1
        number, channel = self._number, self._channel
        if not ids:
            event = events[at]
            assert isinstance(event, Finish)
            commands.append(self._finish_foreign(event.message_id))
            return at + 1
        self._count(finished=len(ids))
        if len(ids) == 1:
            name = ids[0]
            commands.append(Acknowledge(number, name, channel, QUEUE, True, "", None, 0, name))
            return at
        run = AcknowledgeRun(number, channel, QUEUE, ids, NsqAnswers(), self._runs, True)
        if self._runs.singly_for:
            commands.extend(run.singles())
        else:
            commands.append(run)
        return at

    def _finish_foreign(self, name: bytes) -> Command:
        """The command for a FIN of another protocol's message, which has a different id at this
        door."""
        channel = self._channel
        message_id = self._context.message_id(self._number, name)
        self._context.forget_foreign(self._number, name)
        self._count(finished=1)
        question = AnswerRequest(b"FIN", name)
        return Acknowledge(self._number, message_id, channel, QUEUE, True, "", None, 0, question)

    def _requeue(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Requeue)
        self._count(requeued=1)
        name = event.message_id
        commands.append(
            Release(
                self._number,
                AnswerRequest(b"REQ", name),
                self._context.message_id(self._number, name),
                self._channel,
                QUEUE,
                PUT_BACK_END,
                event.delay_ms,
            )
        )

    def _touch(self, event: Event, commands: list[Command], now: float) -> None:
        assert isinstance(event, Touch)
        name = event.message_id
        commands.append(
            Extend(
                self._number,
                AnswerRequest(b"TOUCH", name),
                self._context.message_id(self._number, name),
                self._channel,
                QUEUE,
                self._who.msg_timeout_ms,
                self._context.terms.max_msg_timeout_ms,
            )
        )

    def _close_wait(self, event: Event, commands: list[Command], now: float) -> None:
        commands.append(SetTerms(self._number, None, self._channel, Terms(0)))
        if self._row is not None:
            self._row.state = CLOSING
        self._count(ready=0)
        self._answer(CLOSE_WAIT)

    def _count(
        self, ready: int = -1, finished: int = 0, requeued: int = 0, lapsed: int = 0
    ) -> None:
        """Update the statistics of the client."""
        row = self._row
        if row is not None:
            if ready >= 0:
                row.ready_count = ready
            self._lapsed += lapsed
            row.finish_count += finished
            row.requeue_count += requeued
            self._tell_in_flight(row)

    def _answer_failed(self, word: bytes, name: bytes, code: int) -> None:
        """Report that FIN, REQ or TOUCH named a message that the client does not have (N86)."""
        if word == b"FIN" and self._row is not None:
            self._row.failed_finishes += 1
        if word == b"FIN":
            self._count(finished=-1)
        elif word == b"REQ":
            self._count(requeued=-1)
        why = b"client does not own message" if code == RESULT_FORBIDDEN else b"ID not in flight"
        text = b"E_%s_FAILED %s %s failed %s" % (word, word, name, why)
        if self._subscribing and not self._leaving:
            self._answer(error_frame(text))
            return
        self._queue(error_frame(text))
        self._note()

    def _subscribed(self, asked: PendingSub, code: int, now: float) -> Sequence[Command]:
        asked.codes.append(code)
        if len(asked.codes) < _ANSWERS_TO_SUB:
            return NOTHING
        code = asked.code()
        if code == RESULT_OK:
            self._answers.finish(asked.slot, OK)
            self._note()
            self._leaving = True
            return self._end_if_answered()
        topic, channel = asked.topic, asked.channel
        most = self._context.options.max_channel_consumers
        if code == RESULT_UNAUTHORIZED:
            names = (quoted(topic), quoted(channel))
            text = b"E_UNAUTHORIZED AUTH failed for SUB on %s %s" % names
        elif code == RESULT_LIMIT_EXCEEDED and most:
            text = b"E_SUB_FAILED SUB failed consumers for %s:%s exceeds limit of %d"
            text %= (topic, channel, most)
        else:
            text = b"E_SUB_FAILED SUB failed %s" % _REASONS.get(code, b"(%d)" % code)
        return self._fatal(text, asked.slot, self._orders, now)
