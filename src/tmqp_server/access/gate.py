"""The gate: what is asked about a command, which answers are kept, how a refusal is told.

Theory of operation.  The hub shows the gate every command of a session before the broker sees it.
The gate says one of three things: continue; no, and then it knows the effects that tell the peer
so, in the way each command is refused on the wire; or that somebody must be asked.  Who is asked,
and how long that takes, is not its business: it makes a :class:`Question`, and later is given the
:class:`Verdict`.  A decision may be kept for a time, for this session and this very question; so a
producer costs one question a queue, and one dict look-up a message.

A channel may have an authenticator of its own, which is asked about it instead of the server-wide
one (F70); the question names it.  Kept answers are forgotten when it may be another's turn, and an
answer that comes after that is asked for again.

What a command needs is in one table (``needs.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final

from tmqp.constants import (
    RESULT_FAILED,
    RESULT_UNAUTHORIZED,
    NoContent,
)
from tmqp.names import EXACT_MARK
from tmqp_server.access.needs import (
    FREE,
    NO_QUEUE,
    OF_CHANNELS,
    SEVERAL,
    Need,
    all_needs,
    need_of_feed,
    need_of_message_set,
    need_of_place,
    needed,
)
from tmqp_server.access.rights import ANSWER, PULL, PUSH, SEE_CHANNEL
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    AddFeed,
    AskRight,
    Batch,
    Command,
    Connect,
    GroupCommand,
    ListChannels,
    ListGroups,
    ListOffsets,
    Pull,
    Push,
    PushRun,
    PushTransaction,
    SubscribeEvent,
    SurveyChannels,
    SurveyQueues,
)
from tmqp_server.engine.delivery.intake import refused_push
from tmqp_server.engine.effects import Effect, EndPull, HandOver, Refuse, Reply

__all__ = [
    "ALLOWED",
    "ASK",
    "AUTHENTICATE",
    "MAX_KEPT_ANSWERS",
    "MESSAGE",
    "REFUSED",
    "Authorities",
    "Gate",
    "Question",
    "Verdict",
]

#: What the gate says of a command.
ALLOWED: Final = 0
REFUSED: Final = 1
ASK: Final = 2

#: Questions that are about no right: may this client connect; here is a custom message for you.
AUTHENTICATE: Final = "authenticate"
MESSAGE: Final = "message"

#: Answers kept for one session; the oldest goes first.
MAX_KEPT_ANSWERS: Final = 256

_OTHER: Final = "other"

#: Lists, of which the decision says what may be seen.
_LISTS: Final[frozenset[type[Command]]] = frozenset(
    {ListChannels, ListGroups, ListOffsets, SurveyChannels, SurveyQueues}
)


class Authorities(Protocol):
    """Knows which channels have authenticators of their own; the broker."""

    def authenticator_of(self, channel: str) -> str:
        """The name of who is asked about a channel; empty for the server-wide one."""

    def authenticator_changes(self) -> int:
        """A number that increases whenever an answer of :meth:`authenticator_of` may be another."""


@final
class Question:
    """Something only the server's own code can decide; the session's commands wait for it.

    ``right`` is one of ``rights.py``, ``AUTHENTICATE`` or ``MESSAGE``; ``subject`` and ``queue_id``
    say what it is about, ``event`` which event a subscription is for.  ``command`` is what waits.
    ``names`` are the channels of a list, of which the decision names those to be seen.
    ``authenticator`` is whose question it is, empty for the server-wide one; ``authenticators`` the
    same for those of a list's channels that have one.
    """

    __slots__ = (
        "session",
        "ticket",
        "right",
        "subject",
        "queue_id",
        "event",
        "command",
        "handed_over",
        "place",
        "names",
        "authenticator",
        "authenticators",
    )

    def __init__(self, session: int, need: Need, command: Command | None, place: int = 0) -> None:
        self.session = session
        #: Set when it is asked: which decision belongs to it.
        self.ticket = 0
        self.right, self.subject, self.queue_id, self.event = need
        self.command = command
        #: What a custom message came as.
        self.handed_over: HandOver | None = None
        #: Which command of a batch it is about.
        self.place = place
        self.names: tuple[str, ...] = ()
        self.authenticator = ""
        self.authenticators: dict[str, str] = {}

    @property
    def about(self) -> str:
        """The subject as people write it: a channel's exact name without its mark."""
        return self.subject.removeprefix(EXACT_MARK)

    @property
    def need(self) -> Need:
        """What the answer is kept under."""
        return (self.right, self.subject, self.queue_id, self.event)

    def __repr__(self) -> str:
        return f"<Question {self.ticket} of session {self.session}: {self.right} {self.subject!r}>"


@final
class Verdict:
    """What came of a question.

    :param keep_s: for how many seconds the answer holds, 0 for this once.
    :param names: of a list's names, those that may be seen.
    :param connect: the command to connect with, in the place of the client's own.
    :param known_as: who that is, for the audit.
    """

    __slots__ = ("allowed", "keep_s", "names", "connect", "known_as")

    def __init__(
        self,
        allowed: bool,
        keep_s: float = 0.0,
        names: frozenset[str] | None = None,
        connect: Connect | None = None,
        known_as: str = "",
    ) -> None:
        self.allowed = allowed
        self.keep_s = keep_s
        self.names = names
        self.connect = connect
        self.known_as = known_as


@final
class Gate:
    """The rules of one hub, and the answers kept for each of its sessions.

    :param passes_on: whether an acknowledgement for this target goes to a client (F116).
    :param authorities: who knows the channels' own authenticators; None where no channel has one.

    Attributes: ``refused``, how many commands were; ``denied``, the same by the right that they
    need, without log-ins, and "other" for those that need several; ``dropped``, how many of them
    could not be told so, because nothing answers them.
    """

    def __init__(
        self, passes_on: Callable[[str], bool], authorities: Authorities | None = None
    ) -> None:
        self.refused = 0
        self.denied: dict[str, int] = {}
        self.dropped = 0
        self._authorities = authorities
        self._changes_seen = 0
        self._passes_on = passes_on
        #: By session: until when an answer holds, below zero for a no.  None: nothing is asked.
        self._kept: dict[int, dict[Need, float] | None] = {}

    # -- sessions -------------------------------------------------------------------------------

    def open(self, number: int, trusted: bool = False) -> None:
        """A session begins; nothing is asked about one that is *trusted*."""
        self._kept[number] = None if trusted else {}

    def trust(self, number: int) -> None:
        """Ask nothing about this session any more: it is a node, whose clients were asked."""
        self._kept[number] = None

    def close(self, number: int) -> None:
        """A session is over."""
        self._kept.pop(number, None)

    def forget_answers(self, number: int | None = None) -> None:
        """Ask again about everything, of one session or of all."""
        for each, kept in self._kept.items():
            if kept is not None and (number is None or each == number):
                kept.clear()

    # -- commands -------------------------------------------------------------------------------

    def check(self, number: int, command: Command, now: float) -> int:
        """ALLOWED, REFUSED, or ASK: then :meth:`question`."""
        kept = self._kept.get(number)
        if kept is None:
            return ALLOWED
        if self._authorities is not None:
            self._refresh(self._authorities)
        kind = type(command)
        if kind is Push:
            assert isinstance(command, Push)
            return _held(kept, (PUSH, command.channel, command.queue_id, 0), now)
        if kind is PushRun:
            assert isinstance(command, PushRun)
            return _held(kept, (PUSH, command.channel, command.queue_id, 0), now)
        if kind is Acknowledge or kind is AcknowledgeRun:
            assert isinstance(command, (Acknowledge, AcknowledgeRun))
            if not self._passes_on(command.channel):
                return ALLOWED
            return _held(kept, (ANSWER, command.channel, NO_QUEUE, 0), now)
        if kind is Batch:
            assert isinstance(command, Batch)
            return self._check_batch(number, command, 0, now)[0]
        if kind is AddFeed:
            assert isinstance(command, AddFeed)
            return _check_feed(kept, command, 0, now)[0]
        if kind is PushTransaction:
            assert isinstance(command, PushTransaction)
            return _check_message_sets(kept, command, 0, now)[0]
        if kind is Connect or kind in _LISTS:
            return ASK
        if isinstance(command, GroupCommand):
            return self._check_group(kept, command, 0, now)[0]
        if kind in FREE:
            return ALLOWED
        if isinstance(command, SEVERAL):
            return _check_several(kept, command, 0, now)[0]
        need = needed(command)
        if need is None:
            return REFUSED
        return ALLOWED if not need[0] else _held(kept, need, now)

    def _check_batch(self, number: int, batch: Batch, start: int, now: float) -> tuple[int, int]:
        """What is to be said of a batch from a place on, and at which place."""
        commands = batch.commands
        for place in range(start, len(commands)):
            each = commands[place]
            # The engine takes no other kinds; it refuses the batch for them.
            if type(each) is Push or type(each) is Acknowledge:
                verdict = self.check(number, each, now)
                if verdict != ALLOWED:
                    return verdict, place
        return ALLOWED, len(commands)

    def _check_group(
        self, kept: dict[Need, float], command: GroupCommand, start: int, now: float
    ) -> tuple[int, int]:
        """What is to be said of the queues of a group from a place on, and at which place.

        Of those that pass a filter, the ones that are not for this client are skipped.
        """
        places = command.places
        if places is None:
            return (ALLOWED if command.too_many else REFUSED), 0
        for place in range(start, len(places)):
            each = places[place]
            verdict = _held(kept, (PULL, each.channel, each.queue_id, 0), now)
            if verdict == REFUSED and command.filter is not None:
                each.allowed = False
            elif verdict != ALLOWED:
                return verdict, place
        return ALLOWED, len(places)

    def _refresh(self, authorities: Authorities) -> None:
        """Forget all answers when somebody else may have to give them now."""
        changes = authorities.authenticator_changes()
        if changes != self._changes_seen:
            self._changes_seen = changes
            self.forget_answers()

    def authenticator_of(self, need: Need) -> str:
        """Who is asked for a right: the channel's authenticator, or empty."""
        if self._authorities is None or need[0] not in OF_CHANNELS or not need[1]:
            return ""
        return self._authorities.authenticator_of(need[1])

    def note_names(self, question: Question, names: list[str]) -> None:
        """Let a question about a list be about these channels (F52)."""
        question.names = tuple(names)
        for name in names:
            authenticator = self.authenticator_of((SEE_CHANNEL, name, NO_QUEUE, 0))
            if authenticator:
                question.authenticators[name] = authenticator

    def question(self, number: int, command: Command, now: float) -> Question:
        """What is to be asked about a command for which :meth:`check` has said ASK."""
        return self._question(number, command, 0, now)

    def _question(self, number: int, command: Command, start: int, now: float) -> Question:
        if isinstance(command, Connect):
            return Question(number, (AUTHENTICATE, command.client_id, NO_QUEUE, 0), command)
        if isinstance(command, Batch):
            place = self._check_batch(number, command, start, now)[1]
            need = needed(command.commands[place])
            assert need is not None, "pushes and acknowledges need something"
            return self._about(number, need, command, place)
        if isinstance(command, AddFeed):
            place = _check_feed(self._kept.get(number) or {}, command, start, now)[1]
            return self._about(number, need_of_feed(command, place), command, place)
        if isinstance(command, PushTransaction):
            kept = self._kept.get(number)
            place = 0 if kept is None else _check_message_sets(kept, command, start, now)[1]
            return self._about(number, need_of_message_set(command, place), command, place)
        if isinstance(command, GroupCommand):
            place = self._check_group(self._kept[number] or {}, command, start, now)[1]
            return self._about(number, need_of_place(command, place), command, place)
        if isinstance(command, SEVERAL):
            place = _check_several(self._kept[number] or {}, command, start, now)[1]
            return self._about(number, all_needs(command)[place], command, place)
        need = needed(command)
        assert need is not None, f"nothing is to be asked about {command!r}"
        return self._about(number, need, command, 0)

    def _about(self, number: int, need: Need, command: Command, place: int) -> Question:
        question = Question(number, need, command, place)
        question.authenticator = self.authenticator_of(need)
        return question

    def decided(self, question: Question, decision: Verdict, now: float) -> Question | int:
        """A question about a right is answered: ALLOWED or REFUSED, or the next question about the
        same command."""
        number = question.session
        command = question.command
        if self._authorities is not None and command is not None:
            self._refresh(self._authorities)
            if question.authenticator != self.authenticator_of(question.need):
                # The channel came or went meanwhile: this was not the one to say it.
                return self._about(number, question.need, command, question.place)
        kept = self._kept.get(number)
        # What is seen of a list depends on the list.
        if kept is not None and decision.keep_s > 0 and decision.names is None:
            if len(kept) >= MAX_KEPT_ANSWERS:
                del kept[next(iter(kept))]
            until = now + decision.keep_s
            kept[question.need] = until if decision.allowed else -until
        following = question.place + 1
        verdict = ALLOWED
        if isinstance(command, GroupCommand) and kept is not None:
            if not decision.allowed:
                if command.filter is None or command.places is None:
                    return REFUSED
                command.places[question.place].allowed = False
            verdict, following = self._check_group(kept, command, following, now)
        elif not decision.allowed:
            return REFUSED
        elif isinstance(command, Batch):
            verdict, following = self._check_batch(number, command, following, now)
        elif isinstance(command, AddFeed) and kept is not None:
            verdict, following = _check_feed(kept, command, following, now)
        elif isinstance(command, PushTransaction) and kept is not None:
            verdict, following = _check_message_sets(kept, command, following, now)
        elif isinstance(command, SEVERAL) and kept is not None:
            verdict, following = _check_several(kept, command, following, now)
        if verdict == ASK:
            assert command is not None, "one that needs several rights"
            return self._question(number, command, following, now)
        return verdict

    # -- refusals -------------------------------------------------------------------------------

    def _count_denied(self, command: Command) -> None:
        """Count a command by the right that it needs; a log-in needs none."""
        if isinstance(command, Connect):
            return
        need = needed(command)
        right = need[0] if need is not None and need[0] else _OTHER
        self.denied[right] = self.denied.get(right, 0) + 1

    def refusal(self, command: Command) -> list[Effect]:
        """What tells the peer that a command was refused; the connection stays, but for Connect."""
        if not isinstance(command, AskRight):  # that one only wants to know
            self.refused += 1
            self._count_denied(command)
        if isinstance(command, Push):
            return refused_push(command, RESULT_UNAUTHORIZED)
        if isinstance(command, Pull):
            return [EndPull(command.session, command.request, NoContent.UNAUTHORIZED.value)]
        if isinstance(command, Connect):
            client_id = command.client_id
            return [Refuse(command.session, command.request, RESULT_UNAUTHORIZED, client_id)]
        # F128: who may not subscribe is told what he is told who names no channel.
        code = RESULT_FAILED if isinstance(command, SubscribeEvent) else RESULT_UNAUTHORIZED
        request = getattr(command, "request", None)
        session = getattr(command, "session", 0)
        if request is None:
            self.dropped += 1
            return []
        return [Reply(session, request, code)]


def _held(kept: dict[Need, float], need: Need, now: float) -> int:
    until = kept.get(need, 0.0)
    if until > now:
        return ALLOWED
    return REFUSED if -until > now else ASK


def _check_several(
    kept: dict[Need, float], command: Command, start: int, now: float
) -> tuple[int, int]:
    """What is to be said of the rights that a command needs from a place on, and at which place."""
    needs = all_needs(command)
    for place in range(start, len(needs)):
        verdict = _held(kept, needs[place], now)
        if verdict != ALLOWED:
            return verdict, place
    return ALLOWED, len(needs)


def _check_feed(
    kept: dict[Need, float], command: AddFeed, start: int, now: float
) -> tuple[int, int]:
    """What is to be said of the queues of a feed from a place on, and at which place."""
    for place in range(start, 2):
        verdict = _held(kept, need_of_feed(command, place), now)
        if verdict != ALLOWED:
            return verdict, place
    return ALLOWED, 2


def _check_message_sets(
    kept: dict[Need, float], command: PushTransaction, start: int, now: float
) -> tuple[int, int]:
    """What is to be said of a push into a transaction from a place on, and at which place.

    The first place is the transaction, then come the message sets.
    """
    for place in range(start, len(command.message_sets) + 1):
        verdict = _held(kept, need_of_message_set(command, place), now)
        if verdict != ALLOWED:
            return verdict, place
    return ALLOWED, len(command.message_sets)
