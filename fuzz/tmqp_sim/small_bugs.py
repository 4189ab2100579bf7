"""The bugs that are planted in the doors of Simple MQ and goMS; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tmqp_server.doors.answers import PlainAnswers
from tmqp_server.doors.goms import session as goms_session
from tmqp_server.doors.goms.message import NotMine
from tmqp_server.doors.goms.session import GomsSession
from tmqp_server.doors.smq.message import QUEUE, SmqMessage
from tmqp_server.doors.smq.session import SmqSession
from tmqp_server.doors.waiting import WaitingSession
from tmqp_server.engine.commands import AcknowledgeRun, Command
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.message import Message
from tmqp_wires.goms.codec import Dialect, Event, ObjectDecoder, Send, _Alike
from tmqp_wires.smq.codec import LineDecoder
from tmqp_wires.smq.events import Done, Publish

__all__ = ["SMALL_BUGS"]


def _newest_first(original: Any) -> Any:
    def done(self: SmqSession, event: Done, commands: list[Command]) -> None:
        for ids in self._in_hand.values():
            ids.reverse()
        original(self, event, commands)
        for ids in self._in_hand.values():
            ids.reverse()

    return done


def _one_more(original: Any) -> Any:
    def done(self: SmqSession, event: Done, commands: list[Command]) -> None:
        event.count += 1
        original(self, event, commands)

    return done


def _counts_half_a_line(original: Any) -> Any:
    def receive_eof(self: Any, now: float) -> Sequence[Command]:
        if isinstance(self, SmqSession):
            return [*self.take(self._decoder.receive(b"\n", now), now), *original(self, now)]
        rest: Sequence[Command] = original(self, now)
        return rest

    return receive_eof


def _row_without_the_last(original: Any) -> Any:
    def take_row(self: LineDecoder, lines: bytes, events: list[Any]) -> bool:
        found: bool = original(self, lines, events)
        if found:
            row = events[-1]
            assert isinstance(row, Publish), "that is what a row is"
            if len(row.bodies) > 2:
                row.bodies.pop()
        return found

    return take_row


def _done_at_the_end(original: Any) -> Any:
    def last_commands(self: Any) -> list[Command]:
        found: list[Command] = original(self)
        if isinstance(self, SmqSession):
            for channel, ids in self._in_hand.items():
                answers, notes = PlainAnswers(), self._runs
                found.append(
                    AcknowledgeRun(self._number, channel, QUEUE, list(ids), answers, notes)
                )
        return found

    return last_commands


def _only_what_waits(original: Any) -> Any:
    def count(self: SmqSession, request: Any, effect: Reply) -> None:
        snapshot: Any = effect.body
        if snapshot is not None:
            snapshot.in_flight = 0
        original(self, request, effect)

    return count


def _in_small_letters(original: Any) -> Any:
    def channel(self: SmqSession, queue: bytes) -> str:
        found: str = original(self, queue.lower())
        return found

    return channel


def _goes_on(original: Any) -> Any:
    def replied(self: SmqSession, effect: Reply) -> Sequence[Command]:
        if isinstance(effect.request, SmqMessage):
            return ()
        commands: Sequence[Command] = original(self, effect)
        return commands

    return replied


def _leaves_the_first(original: Any) -> Any:
    def log_out(self: GomsSession, topics: list[str] | None, commands: list[Command]) -> None:
        original(self, None if topics is None else topics[:1], commands)

    return log_out


def _mine_as_well(original: Any) -> Any:
    def accepts(self: NotMine, message: Message) -> bool:
        return True

    return accepts


def _chunk_without_the_last(original: Any) -> Any:
    def receive(self: ObjectDecoder, data: bytes) -> list[Event]:
        events: list[Event] = original(self, data)
        if len(events) > 2 and isinstance(events[-1], Send):
            events.pop()
        return events

    return receive


def _of_the_first_topic(original: Any) -> Any:
    def topic_of(self: GomsSession, channel: str) -> str:
        if not self._topics:
            original(self, channel)
        return next(iter(self._topics.values()))

    return topic_of


def _keeps_its_topics(original: Any) -> Any:
    def note(self: _Alike, line: bytes, event: Send) -> None:
        topics = self._topics
        original(self, line, event)
        if topics:
            self._topics = topics

    return note


def _with_an_empty_line(original: Any) -> Any:
    def error_line(dialect: Dialect, code: str, text: str) -> bytes:
        line: bytes = original(dialect, code, text)
        return line + b"\n"

    return error_line


#: What a mutant is made of.
SMALL_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "smq-newest-first", "D is for the newest messages that a client has",
        SmqSession, "_done", _newest_first,
    ),
    (
        "smq-one-more", "D is for one message more than it says",
        SmqSession, "_done", _one_more,
    ),
    (
        "smq-half-a-line", "what a client that leaves has sent of a line counts as a line",
        WaitingSession, "receive_eof", _counts_half_a_line,
    ),
    (
        "smq-last-forgotten", "the last of several messages in a row is not taken in",
        LineDecoder, "_take_row", _row_without_the_last,
    ),
    (
        "smq-done-at-the-end", "what a consumer that leaves has not counted is done",
        WaitingSession, "last_commands", _done_at_the_end,
    ),
    (
        "smq-only-what-waits", "statistics leave out what consumers have",
        SmqSession, "_count", _only_what_waits,
    ),
    (
        "smq-in-any-case", "queues whose names differ by case are one",
        SmqSession, "_channel", _in_small_letters,
    ),
    (
        "smq-goes-on", "behind a message that has found no room others are taken",
        SmqSession, "_replied", _goes_on,
    ),
    (
        "goms-leaves-the-first", "who logs out of several topics leaves one of them",
        GomsSession, "_log_out", _leaves_the_first,
    ),
    (
        "goms-mine-as-well", "a sender gets its own messages in the dialect messagetype",
        NotMine, "accepts", _mine_as_well,
    ),
    (
        "goms-last-forgotten", "the last of several messages in a chunk is not taken in",
        ObjectDecoder, "receive", _chunk_without_the_last,
    ),
    (
        "goms-first-topic", "every delivery names the same topic",
        GomsSession, "_topic_of", _of_the_first_topic,
    ),
    (
        "goms-keeps-its-topics", "messages that are alike go to the topics of others",
        _Alike, "note", _keeps_its_topics,
    ),
    (
        "goms-empty-line", "an error ends in an empty line",
        goms_session, "error_line", _with_an_empty_line,
    ),
)  # fmt: skip
