"""Direct messages between clients, their acknowledgements, and responses.

Theory of operation.  Nothing is stored: a message is forwarded in the step in which it arrives, or
not at all.  So the cost of a slow client must be bounded here.  A direct message is not sent to a
client whose outbound buffer is full; a sender that waits for an answer gets 503.  An answer (a
response or an acknowledgement) was requested and must not be lost because of a short delay, so
answers are still sent, up to ``max_answer_bytes_while_blocked`` until the buffer has drained;
further ones are dropped and counted.  An answer is forwarded only to a client that requested it,
and only from a client that received the request (``questions.py``); others are dropped and counted,
too.

A run of messages, or of answers, is forwarded in one piece (:meth:`Direct.take`) if all of them
have the same outcome; otherwise it is divided.
"""

from __future__ import annotations

from tmqp.constants import RESULT_BUSY, RESULT_NOT_FOUND
from tmqp_server.engine.books import question_bytes
from tmqp_server.engine.commands import (
    BY_ID,
    BY_NAME,
    Acknowledge,
    ClientRun,
    Command,
    Decline,
    PassAnswer,
    PassAnswerRun,
    SendCustom,
    SendDirect,
    SendDirectRun,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.effects import Forward, ForwardRun, HandOver, Reply
from tmqp_server.engine.model.questions import Questions
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE

__all__ = ["Direct"]


class Direct:
    """Forwards messages between clients."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    def performers(self) -> Performers:
        """Which method serves which command; the broker calls the methods for frequent ones
        directly."""
        return {
            SendCustom: self.hand_over,
            Decline: self.decline,
        }

    def send(self, command: SendDirect, session: Session) -> None:
        """Forward a message to the clients that it names, or answer why not (F113-F115)."""
        core = self._core
        if command.size > core.limits.max_message_bytes:
            code = core.reached("max_message_bytes")
            core.out.append(Reply(session.number, command.request, code))
            return
        receivers = self.receivers(command.by, command.who)
        if receivers:
            if command.first_only:
                receivers = receivers[:1]
            if not self.bring(receivers, command, session):
                core.out.append(Reply(session.number, command.request, RESULT_BUSY))
        else:
            found = self._named(command.by, command.who)
            if not found and command.elsewhere:
                self._expect([], command, session)
                return
            code = RESULT_BUSY if found else RESULT_NOT_FOUND
            core.out.append(Reply(session.number, command.request, code))

    def bring(self, receivers: list[int], command: SendDirect, session: Session) -> bool:
        """Forward a message to some clients, and expect their answers if it requests any; return
        False if there is no memory for that."""
        if command.asks and not session.node:
            size = question_bytes(command.message_id, len(receivers))
            if not self._core.has_room(size):
                self._core.no_room()
                return False
        self._core.out.append(Forward(receivers, command.wire, session.door))
        self._expect(receivers, command, session)
        return True

    def _expect(self, receivers: list[int], command: SendDirect, session: Session) -> None:
        # A node forwards what was asked on another server, which knows who waits.
        if command.asks and not session.node:
            asked = self._questions_of(session)
            until = self._until()
            asked.ask(command.message_id, receivers, command.asks, command.elsewhere, until)

    def _questions_of(self, session: Session) -> Questions:
        core = self._core
        if session.asked is None:
            session.asked = Questions(core.limits.max_questions_per_session, core)
        return session.asked

    def _until(self) -> float:
        """Until when answers to what is asked now are awaited, in monotonic seconds."""
        return self._core.now + self._core.limits.max_answer_wait_ms / 1000

    def take(self, run: ClientRun, most_bytes: int) -> int:
        """Carry out the whole run, if that is possible and it has no more than *most_bytes*;
        otherwise its next message.  Return how many bytes were handled."""
        core = self._core
        session = core.sessions.get(run.session)
        if not run.left:
            if session is not None and run.size <= most_bytes and self.take_whole(run, session):
                return run.size
            run.divide()
        single = run.left.pop()
        core.change = 0
        core.work += 1
        if session is None:
            core.count_stray()
        elif isinstance(single, SendDirect):
            self.send(single, session)
        else:
            self.pass_answer(single, session)
        return single.size

    def take_whole(self, run: ClientRun, session: Session) -> bool:
        """Carry out a run as a whole; if it has to be divided, return False and do nothing."""
        if isinstance(run, SendDirectRun):
            return self._send_all(run, session)
        assert isinstance(run, PassAnswerRun), "there are no others"
        return self._pass_all(run, session)

    def _send_all(self, run: SendDirectRun, session: Session) -> bool:
        core = self._core
        if run.largest > core.limits.max_message_bytes:
            return False
        named = self._named(run.by, run.who)
        receivers = self._able(named)
        if not receivers:
            return False  # each message is answered
        skipped = len(named) - len(receivers)
        if run.first_only and len(receivers) > 1:
            receivers = receivers[:1]
        if run.asks and not session.node:
            if len(receivers) > 1:
                return False
            ids = run.wire.message_ids()
            if not self._questions_of(session).ask_all(ids, receivers, run.asks, self._until()):
                return False
        core.counters.directs_skipped += skipped * run.count
        core.work += len(named) + run.count
        core.out.append(ForwardRun(receivers, run.wire, session.door, 0, run.count))
        return True

    def receivers(self, by: int, who: str) -> list[int]:
        """The sessions among those named that can take a message; the others are counted as
        skipped."""
        core = self._core
        named = self._named(by, who)
        core.work += len(named)
        receivers = self._able(named)
        core.counters.directs_skipped += len(named) - len(receivers)
        return receivers

    def _able(self, named: list[Session]) -> list[int]:
        """The sessions among those named that can take a message."""
        if len(named) == 1 and not named[0].blocked:
            return named[0].alone
        receivers: list[int] = []
        for client in named:
            if not client.blocked:
                receivers.append(client.number)
        return receivers

    def count(self, by: int, who: str) -> int:
        """How many clients are named, whether or not they can take a message; an id counts as one,
        even if no client has it."""
        core = self._core
        if by == BY_ID:
            return 1
        group = (core.by_name if by == BY_NAME else core.by_type).get(who)
        return 0 if group is None else len(group)

    def _named(self, by: int, who: str) -> list[Session]:
        """The clients of an id, a name or a type, in the order of connecting."""
        core = self._core
        if by == BY_ID:
            client = core.clients.get(who)
            return [] if client is None or client.node else [client]
        groups = core.by_name if by == BY_NAME else core.by_type
        group = groups.get(who)
        return [] if group is None else list(group.values())

    def pass_answer(self, command: PassAnswer, session: Session) -> None:
        """Forward an answer to the client that waits for it (F116, F117)."""
        client = self._core.clients.get(command.client_id)
        if client is None or not self._waits(client, command.message_id, command.kind, session):
            self._core.counters.answers_dropped += 1
        else:
            self._pass(client, command.size, command.wire, session.door)

    def _pass_all(self, run: PassAnswerRun, session: Session) -> bool:
        core = self._core
        client = core.clients.get(run.client_id)
        asked = None if client is None else client.asked
        if client is None or asked is None:
            core.counters.answers_dropped += run.count
            return True
        if client.blocked or session.node:
            return False
        refused = asked.takes_all(run.wire.message_ids(), session.number, run.kind, core.now)
        core.counters.answers_dropped += len(refused)
        core.work += run.count
        start = 0
        for place in [*refused, run.count]:
            if start < place:
                core.out.append(ForwardRun(client.alone, run.wire, session.door, start, place))
            start = place + 1
        return True

    def _waits(self, client: Session, message_id: str, kind: int, session: Session) -> bool:
        """Whether a client waits for an answer of this kind from a session; if so, the answer is
        counted as taken."""
        asked = client.asked
        return asked is not None and asked.takes(
            message_id, session.number, kind, session.node, self._core.now
        )

    def decline(self, command: Command, session: Session) -> None:
        """Answer a request that the door could not understand."""
        assert isinstance(command, Decline)
        body = command.words or None
        self._core.out.append(Reply(session.number, command.request, command.code, body))

    def hand_over(self, command: Command, session: Session) -> None:
        """Pass a custom message to the user code (F17)."""
        assert isinstance(command, SendCustom)
        self._core.out.append(HandOver(session.number, session, command.wire))

    def pass_acknowledge(self, command: Acknowledge, session: Session) -> bool:
        """Forward an acknowledgement whose ``channel`` is the id of a client to that client (F116).

        :returns: False if there is no such client, or if it does not wait for this acknowledgement.
        """
        client = self._core.clients.get(command.channel)
        if client is None or command.wire is None:
            return False
        if not self._waits(client, command.message_id, ASKS_ACKNOWLEDGE, session):
            return False
        self._pass(client, command.size, command.wire, session.door)
        return True

    def _pass(self, client: Session, size: int, wire: object, door: str) -> None:
        core = self._core
        if client.blocked:
            if client.answer_bytes + size > core.limits.max_answer_bytes_while_blocked:
                core.counters.answers_dropped += 1
                return
            client.answer_bytes += size
        core.out.append(Forward(client.alone, wire, door))
