"""The gate: which right a command needs, which answers are cached, and how a refusal is reported.

Theory of operation.  The hub shows the gate every command of a session before the broker sees it.
The gate returns one of three results: continue; refuse, and then it knows the effects that report
the refusal to the peer; or ask.  It does not know who is asked, or how long that takes: it makes a
:class:`Question`, and later gets a :class:`Verdict`.  A verdict may be cached for some time, for
this session and this question; so a producer costs one question for each queue, and one dict
look-up for each message.

A channel may have its own authenticator, which decides about it instead of the server-wide one
(F70); the question names it.  Cached answers are dropped when another authenticator may have to
decide, and an answer that arrives after that is requested again.

``needs.py`` has the table of what each command needs.
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

#: The gate's results for a command.
ALLOWED: Final = 0
REFUSED: Final = 1
ASK: Final = 2

#: Questions that are not about a right: whether a client may connect, and a custom message.
AUTHENTICATE: Final = "authenticate"
MESSAGE: Final = "message"

#: The most cached answers of one session; the oldest is dropped first.
MAX_KEPT_ANSWERS: Final = 256

_OTHER: Final = "other"

#: Lists, for which the verdict has the visible names.
_LISTS: Final[frozenset[type[Command]]] = frozenset(
    {ListChannels, ListGroups, ListOffsets, SurveyChannels, SurveyQueues}
)


class Authorities(Protocol):
    """Knows which channels have their own authenticators: the broker."""

    def authenticator_of(self, channel: str) -> str:
        """The authenticator that decides about a channel; empty for the server-wide one."""

    def authenticator_changes(self) -> int:
        """A number that increases whenever :meth:`authenticator_of` may return something else."""


@final
class Question:
    """A question for the server's own code; the session's commands wait for the answer.

    ``right`` is one of ``rights.py``, ``AUTHENTICATE`` or ``MESSAGE``; ``subject`` and ``queue_id``
    are its object, ``event`` is the event of a subscription.  ``command`` is the waiting command.
    ``names`` are the channels of a list, of which the verdict names the visible ones.
    ``authenticator`` decides about the question, empty for the server-wide one; ``authenticators``
    are those of the list's channels that have their own.
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
        #: Identifies the answer to the question; set when it is asked.
        self.ticket = 0
        self.right, self.subject, self.queue_id, self.event = need
        self.command = command
        #: The custom message as it arrived.
        self.handed_over: HandOver | None = None
        #: The index of the command in a batch, or of the right that is checked.
        self.place = place
        self.names: tuple[str, ...] = ()
        self.authenticator = ""
        self.authenticators: dict[str, str] = {}

    @property
    def about(self) -> str:
        """The subject for messages: a channel's exact name without its mark."""
        return self.subject.removeprefix(EXACT_MARK)

    @property
    def need(self) -> Need:
        """The key under which the answer is cached."""
        return (self.right, self.subject, self.queue_id, self.event)

    def __repr__(self) -> str:
        return f"<Question {self.ticket} of session {self.session}: {self.right} {self.subject!r}>"


@final
class Verdict:
    """The answer to a question.

    :param keep_s: for how many seconds to cache the answer; 0 for this time only.
    :param names: for a list, the visible names.
    :param connect: the command to connect with, instead of the client's own.
    :param known_as: the client's name in the audit.
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
    """Checks the commands of one hub, and caches answers for each of its sessions.

    :param passes_on: whether an acknowledgement for this target goes to a client (F116).
    :param authorities: knows the channels' own authenticators; None if no channel has one.

    Attributes: ``refused``, the number of refused commands; ``denied``, the same by the right that
    they need, without log-ins, and "other" if there is no single right; ``dropped``, how many of
    the refusals could not be reported, because the command has no answer.
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
        #: By session: until when an answer is valid, negative for a refusal.  None: no checks.
        self._kept: dict[int, dict[Need, float] | None] = {}

    # -- sessions -------------------------------------------------------------------------------

    def open(self, number: int, trusted: bool = False) -> None:
        """Begin a session; nothing is checked for a *trusted* one."""
        self._kept[number] = None if trusted else {}

    def trust(self, number: int) -> None:
        """Stop checking a session: it is a node, which has checked its clients."""
        self._kept[number] = None

    def close(self, number: int) -> None:
        """Forget a session that has ended."""
        self._kept.pop(number, None)

    def forget_answers(self, number: int | None = None) -> None:
        """Drop the cached answers of one session or of all."""
        for each, kept in self._kept.items():
            if kept is not None and (number is None or each == number):
                kept.clear()

    # -- commands -------------------------------------------------------------------------------

    def check(self, number: int, command: Command, now: float) -> int:
        """Return ALLOWED, REFUSED, or ASK; after ASK, call :meth:`question`."""
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
        """Check the commands of a batch, from a place on; return the result, and its place."""
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
        """Check the queues of a group, from a place on; return the result, and its place.

        If the command has a filter, queues that the client may not use are skipped.
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
        """Drop all cached answers if other authenticators may have to decide now."""
        changes = authorities.authenticator_changes()
        if changes != self._changes_seen:
            self._changes_seen = changes
            self.forget_answers()

    def authenticator_of(self, need: Need) -> str:
        """The authenticator that decides about a need; empty for the server-wide one."""
        if self._authorities is None or need[0] not in OF_CHANNELS or not need[1]:
            return ""
        return self._authorities.authenticator_of(need[1])

    def note_names(self, question: Question, names: list[str]) -> None:
        """Add the channels of a list to the question about it (F52)."""
        question.names = tuple(names)
        for name in names:
            authenticator = self.authenticator_of((SEE_CHANNEL, name, NO_QUEUE, 0))
            if authenticator:
                question.authenticators[name] = authenticator

    def question(self, number: int, command: Command, now: float) -> Question:
        """Make the question about a command for which :meth:`check` has returned ASK."""
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
        """Take the answer to a question about a right.  Return ALLOWED or REFUSED, or the next
        question about the same command.
        """
        number = question.session
        command = question.command
        if self._authorities is not None and command is not None:
            self._refresh(self._authorities)
            if question.authenticator != self.authenticator_of(question.need):
                # The channel was created or removed meanwhile: another authenticator must decide.
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
        """The effects that report a refused command to the peer; only a refused Connect ends the
        connection.
        """
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
        # F128: a refused subscription gets the same answer as one to a missing channel.
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
    """Check the rights that a command needs, from a place on; return the result, and its place."""
    needs = all_needs(command)
    for place in range(start, len(needs)):
        verdict = _held(kept, needs[place], now)
        if verdict != ALLOWED:
            return verdict, place
    return ALLOWED, len(needs)


def _check_feed(
    kept: dict[Need, float], command: AddFeed, start: int, now: float
) -> tuple[int, int]:
    """Check the queues of a feed, from a place on; return the result, and its place."""
    for place in range(start, 2):
        verdict = _held(kept, need_of_feed(command, place), now)
        if verdict != ALLOWED:
            return verdict, place
    return ALLOWED, 2


def _check_message_sets(
    kept: dict[Need, float], command: PushTransaction, start: int, now: float
) -> tuple[int, int]:
    """Check a push into a transaction, from a place on; return the result, and its place.

    The first place is the transaction, then come the message sets.
    """
    for place in range(start, len(command.message_sets) + 1):
        verdict = _held(kept, need_of_message_set(command, place), now)
        if verdict != ALLOWED:
            return verdict, place
    return ALLOWED, len(command.message_sets)
