"""The terms of subscriptions, told from commands and deliveries: who may have how much, how long.

A part of the ledger: for each session and channel with terms it knows the window, the session's own
timeout, what happens to what it has when it goes, and which deliveries count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tmqp.constants import PUT_BACK_END, PUT_BACK_NO, PUT_BACK_START
from tmqp.extensions import (
    HEADER_ACKNOWLEDGE_TIMEOUT,
    HEADER_CONSUMER_PRIORITY,
    HEADER_EXCLUSIVE,
    HEADER_RETURN,
    HEADER_WINDOW,
    PUT_BACK_WORD_END,
    PUT_BACK_WORD_FRONT,
    RETURN_WORD_TIMEOUT,
)
from tmqp.frames import Frame
from tmqp_server.engine.commands import Block, Command, Release, Terms, Unblock, connection_of
from tmqp_server.engine.model.message import Message
from tmqp_sim.history import Place
from tmqp_sim.world import Violation, World

__all__ = ["Hand", "Promises", "check_said", "is_with"]

_NEVER: Final = float("inf")
#: Words for what happens to what a consumer has when it leaves.
_RETURNS: Final = {
    RETURN_WORD_TIMEOUT: PUT_BACK_NO,
    PUT_BACK_WORD_FRONT: PUT_BACK_START,
    PUT_BACK_WORD_END: PUT_BACK_END,
}
#: More than any consumer's window is.
_ANY_WINDOW: Final = 100
#: Rounding of times.
_EPSILON_S: Final = 1e-9


class Hand:
    """One sending of one message: who has it, and until when nobody else may.

    ``dues`` are the times of those who have their own; ``due`` is that of the others; ``told`` are
    those who were notified that they have it no more.
    """

    __slots__ = ("due", "dues", "holders", "key", "message", "sessions", "step", "told", "uid")

    def __init__(self, key: tuple[str, int], message: Message, due: float, step: int) -> None:
        self.key = key
        self.message = message
        self.uid = message.message_id
        self.due = due
        self.dues: dict[int, float] = {}
        self.step = step
        self.sessions: list[int] = []
        self.holders: list[int] = []
        self.told: list[int] = []

    def due_of(self, session: int) -> float:
        """Until when a session has the message."""
        return self.dues.get(session, self.due)

    def last_due(self) -> float:
        """When the time of all who have it is up."""
        return max([self.due_of(session) for session in self.holders], default=self.due)


class _Promise:
    """What one session was promised in one channel, and what it has in flight."""

    __slots__ = ("exclusive", "hands", "priority", "returns", "wait_s", "window")

    def __init__(self) -> None:
        self.window = -1
        self.wait_s = 0.0
        self.returns = PUT_BACK_NO
        self.priority = 0
        self.exclusive = False
        self.hands: dict[Hand, None] = {}


class Promises:
    """The terms of all sessions."""

    def __init__(self, world: World, max_in_flight: int) -> None:
        self._world = world
        self._max_in_flight = max_in_flight
        self._promises: dict[tuple[str, int], _Promise] = {}
        self._credits: dict[tuple[str, int], int] = {}
        #: Connections to which too much is on its way.
        self._blocked: set[int] = set()
        #: What was in the hands of one who has gone, and is to be there no more.
        self._returned: list[tuple[Hand, int]] = []
        #: Messages that were given back: not to be sent before then; and how often so that it does
        #: not count.
        self._delayed: dict[Message, float] = {}
        self.uncounted: dict[Message, int] = {}

    def release(self, message: Message, command: Release) -> None:
        """A message is given back."""
        if command.delay_ms:
            until = self._world.now + command.delay_ms / 1000
            self._delayed[message] = max(until, self._delayed.get(message, until))
        if not command.counted:
            self.uncounted[message] = self.uncounted.get(message, 0) + 1

    def check_delay(self, message: Message, place: Place) -> None:
        """A message is sent.

        :raises Violation: when the time for which it was given back is not over.
        """
        now = self._world.now
        early = self._delayed.pop(message, now) - now
        if early > _EPSILON_S:
            text = f"{message.message_id} of {place} is sent {early:.4f} s before its delay is over"
            raise Violation("deadline", text)

    def grant(self, channel: str, session: int, credit: int) -> None:
        """A session takes so many more; -1 for no bound."""
        self._credits[(channel, session)] = credit

    def spend(self, channel: str, session: int) -> None:
        """A session is sent one.

        :raises Violation: when it has not granted that.
        """
        credit = self._credits.get((channel, session), -1)
        if credit < 0:
            return
        if credit == 0:
            raise Violation("credit", f"session {session} gets more from {channel} than it granted")
        self._credits[(channel, session)] = credit - 1

    def block(self, command: Command) -> None:
        """A session takes nothing for a while, or again."""
        assert isinstance(command, Block | Unblock)
        if isinstance(command, Block):
            self._blocked.add(command.session)
        else:
            self._blocked.discard(command.session)

    def check_all(self, place: Place, hand: Hand, members: Iterable[int]) -> None:
        """A message was sent, and is for all of these.

        :raises Violation: when one of them missed it who need not.
        """
        for session in members:
            if session in hand.sessions:
                continue
            if not (place.skips and self._is_slow(place, session)):
                raise Violation("audience", f"{hand.uid} of {place} passes over {session}")
            self._world.mark("push queue passes over a slow consumer")

    def _is_slow(self, place: Place, session: int) -> bool:
        """Whether a session can take no more of a place now."""
        key = (place.channel.lower(), session)
        if connection_of(session) in self._blocked or self._credits.get(key) == 0:
            return True
        promise = self._promises.get(key)
        if promise is None or promise.window < 0:
            return False
        return promise.window <= sum(1 for each in promise.hands if session in each.holders)

    def accept(self, channel: str, session: int, terms: Terms | None) -> None:
        """Terms hold from now on."""
        if terms is None:
            return
        promise = self._promises.setdefault((channel, session), _Promise())
        if terms.window is not None:
            promise.window = terms.window
        if terms.ack_timeout_ms is not None:
            wait_ms = terms.ack_timeout_ms
            promise.wait_s = _NEVER if wait_ms < 0 else wait_ms / 1_000
        if terms.returns is not None:
            promise.returns = terms.returns
        if terms.priority is not None:
            promise.priority = terms.priority
        if terms.exclusive is not None:
            promise.exclusive = terms.exclusive

    def check_sole(self, place: Place, uid: str, members: Iterable[int], session: int) -> None:
        """A message that goes to one of these, in the order of their joining, goes to a session.

        :raises Violation: when it is an exclusive consumer's, and that is another.
        """
        sole, highest = 0, -1
        for each in members:
            promise = self._promises.get((place.channel.lower(), each))
            is_exclusive = place.single or (promise is not None and promise.exclusive)
            priority = 0 if promise is None else promise.priority
            if is_exclusive and priority > highest:
                sole, highest = each, priority
        if not sole:
            return
        kind = "the single" if place.single else "an exclusive"
        self._world.mark(f"sent to {kind} consumer")
        if sole != session:
            text = f"{uid} of {place} goes to session {session}, but {sole} is to get all"
            raise Violation("audience", text)

    def refuse(self, channel: str, session: int) -> None:
        """The session has not joined, or is in no longer, for the server says so."""
        self._promises.pop((channel, session), None)

    def deliver(self, channel: str, session: int, hand: Hand, place: Place, bound: bool) -> None:
        """A session is sent something that it is to answer for.

        :param bound: it was not asked for, so that the window holds.
        :raises Violation: when it has too much unanswered.
        """
        promise = self._promises.get((channel, session))
        if promise is None:
            return
        now = self._world.now
        held = [each for each in promise.hands if session in each.holders]
        # What is overdue counts no longer; if its holder leaves first, it goes back (seed 329402).
        promise.hands = dict.fromkeys(held)
        unanswered = sum(1 for each in held if each.due_of(session) > now + _EPSILON_S)
        # Where nobody is waited for, what is past the server's own bound is sent and not tracked:
        # it does not count as unanswered (seeds 4031, 5502, 5577).
        waited_for = place.kind != "fan" and not place.skips
        tracked = waited_for or self._max_in_flight > _ANY_WINDOW
        if bound and tracked and 0 <= promise.window <= unanswered:
            raise Violation(
                "credit",
                f"{hand.uid} of {place} goes to session {session}, which has"
                f" {unanswered} unanswered, and wants no more than {promise.window}",
            )
        if promise.window == unanswered + 1:
            self._world.mark("window full")
        promise.hands[hand] = None
        if promise.wait_s:
            hand.dues[session] = now + promise.wait_s

    def leave(self, channel: str, session: int, timeouts: dict[tuple[str, int], Place]) -> None:
        """A session has left a channel, or is gone: what it has goes back, or times out."""
        promise = self._promises.pop((channel, session), None)
        if promise is None:
            return
        for hand in promise.hands:
            if session not in hand.holders:
                continue
            if promise.returns != PUT_BACK_NO:
                self._world.mark("delivery returned by a leave")
                self._returned.append((hand, session))
            elif hand.due_of(session) == _NEVER:
                hand.dues[session] = self._world.now + timeouts[hand.key].ack_timeout_s

    def forget(self, session: int, timeouts: dict[tuple[str, int], Place]) -> None:
        """The same for all channels of a session."""
        for channel, number in list(self._promises):
            if session in (number, connection_of(number)):
                self.leave(channel, number, timeouts)

    def take_returned(self) -> list[tuple[Hand, int]]:
        """What went back in this step.

        :raises Violation: when it did not.
        """
        returned, self._returned = self._returned, []
        there = [each for each in returned if each[1] in each[0].holders]
        for hand, session in there:
            if is_with(hand.message, session):
                raise Violation(
                    "audience", f"{hand.uid} stays with session {session}, which has left"
                )
        return there


def is_with(message: Message, session: int) -> bool:
    """Whether a session has a message in flight."""
    if message.holder is not None:
        return message.holder.number == session
    return message.holders is not None and session in message.holders


def check_said(request: object, terms: Terms | None) -> None:
    """The terms of a command are those that its client has said in a frame, if it speaks TMQP.

    :raises Violation: when they are not.
    """
    if not isinstance(request, Frame):
        return
    terms = Terms() if terms is None else terms
    returns = request.header(HEADER_RETURN)
    said = (
        _number_of(request, HEADER_WINDOW),
        _number_of(request, HEADER_ACKNOWLEDGE_TIMEOUT),
        None if returns is None else _RETURNS[returns],
        _number_of(request, HEADER_CONSUMER_PRIORITY),
        _number_of(request, HEADER_EXCLUSIVE),
    )
    read = (terms.window, terms.ack_timeout_ms, terms.returns, terms.priority, terms.exclusive)
    if said != read:
        raise Violation("door", f"{request!r} says the terms {said}, and was read as {read}")


def _number_of(frame: Frame, name: str) -> int | None:
    text = frame.header(name)
    return None if text is None else int(text)
