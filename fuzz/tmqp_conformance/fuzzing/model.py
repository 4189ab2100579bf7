"""The model of queues: what a server may send after each action, and what it must.

Several clients act on queues that nobody else uses.  The model knows who has joined, what waits,
and what is in flight; where the protocol leaves a choice (which consumer of a round robin queue,
what becomes of a refused message) it allows every outcome and learns which one it was.

An :class:`Act` is data, so that a session is a list that can be kept, shortened and played again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["CHANNELS", "LINES", "Act", "Delivered", "Model", "WrongError"]

#: Clients of a session, and the channels with the status of their queue 1.
LINES: Final = ("a", "b", "c")
CHANNELS: Final = {"push": "push", "round": "round-robin", "pull": "pull"}


class WrongError(Exception):
    """The server did what the protocol does not allow."""


@dataclass(frozen=True, slots=True)
class Act:
    """One action: what, by which client, on which channel, and a number or an id."""

    what: str
    line: str
    channel: str = ""
    number: int = 0
    message: str = ""

    def as_json(self) -> dict[str, Any]:
        """The action as JSON."""
        return {
            "what": self.what,
            "line": self.line,
            "channel": self.channel,
            "number": self.number,
            "message": self.message,
        }

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Act:
        """Read an action.

        :raises ValueError: when it is none.
        """
        texts = [entry.get(key, "") for key in ("what", "line", "channel", "message")]
        number = entry.get("number", 0)
        if not all(isinstance(each, str) for each in texts) or type(number) is not int:
            raise ValueError(f"not an action: {entry!r}")
        return cls(texts[0], texts[1], texts[2], number, texts[3])


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message that came to a client."""

    line: str
    channel: str
    message: str
    payload: bytes


@dataclass(slots=True)
class _Queue:
    """What the model knows of the queue of one channel."""

    status: str
    joined: list[str] = field(default_factory=list)
    waiting: deque[str] = field(default_factory=deque)
    #: Message -> consumers to which it is in flight.
    flying: dict[str, set[str]] = field(default_factory=dict)
    #: Messages that may come again, or not.
    doubtful: set[str] = field(default_factory=set)
    #: Messages that some consumer has acknowledged or refused.
    answered: set[str] = field(default_factory=set)
    #: Messages that nobody has answered and whose receivers are gone: they come back when their
    #: time is over (F99), in which order nobody says.
    returning: set[str] = field(default_factory=set)


class Model:
    """The state of all queues, as the protocol requires it."""

    def __init__(self) -> None:
        self.queues = {name: _Queue(status) for name, status in CHANNELS.items()}
        self.connected: set[str] = set()
        self.payloads: dict[str, bytes] = {}

    # -- what may be done -----------------------------------------------------------------------

    def allows(self, act: Act) -> bool:
        """Whether an action makes sense now; a session that was shortened skips the others."""
        if act.what == "connect":
            return act.line not in self.connected
        if act.line not in self.connected:
            return False
        if act.what in ("join", "leave", "pull"):
            joined = act.line in self.queues[act.channel].joined
            return joined is (act.what != "join")
        if act.what in ("acknowledge", "refuse"):
            return act.line in self.queues[act.channel].flying.get(act.message, ())
        return True

    def in_flight(self) -> list[tuple[str, str, str]]:
        """What can be acknowledged: (client, channel, message)."""
        return [
            (line, name, message)
            for name, queue in self.queues.items()
            for message, lines in queue.flying.items()
            for line in sorted(lines)
        ]

    # -- what must follow -----------------------------------------------------------------------

    def act(self, act: Act, payload: bytes = b"") -> list[tuple[str, set[str]]]:
        """Carry an action out; returns the deliveries that must follow, in order for each queue:
        the message, and the clients of which each (push) or one (round robin) must get it."""
        queue = self.queues.get(act.channel)
        if act.what == "connect":
            self.connected.add(act.line)
        elif act.what == "vanish":
            return self._vanish(act.line)
        elif act.what == "join" and queue is not None:
            queue.joined.append(act.line)
            return self._drain(queue)
        elif act.what == "leave" and queue is not None:
            queue.joined.remove(act.line)
        elif act.what == "push" and queue is not None:
            self.payloads[act.message] = payload
            queue.waiting.append(act.message)
            return self._drain(queue)
        elif act.what in ("acknowledge", "refuse") and queue is not None:
            queue.answered.add(act.message)
            queue.flying[act.message].discard(act.line)
            if not queue.flying[act.message]:
                del queue.flying[act.message]
            if act.what == "refuse":
                queue.doubtful.add(act.message)
        return []

    def _drain(self, queue: _Queue) -> list[tuple[str, set[str]]]:
        """Everything that waits goes to who has joined."""
        if not queue.joined or queue.status == "pull":
            return []
        due = [(message, {*queue.joined}) for message in queue.waiting]
        queue.waiting.clear()
        return due

    def _vanish(self, line: str) -> list[tuple[str, set[str]]]:
        """A client is gone: what only it had comes back, sooner or later (F99)."""
        self.connected.discard(line)
        for queue in self.queues.values():
            if line in queue.joined:
                queue.joined.remove(line)
            for message, lines in list(queue.flying.items()):
                if line in lines:
                    # At the timeout the delivery handler decides whether the message returns.
                    queue.doubtful.add(message)
                    lines.discard(line)
                if lines:
                    continue
                del queue.flying[message]
                if message not in queue.answered and queue.status != "pull":
                    queue.returning.add(message)
        return []

    def expire(self) -> list[tuple[str, set[str]]]:
        """The time for acknowledgements is over: what nobody had is due, if somebody has joined."""
        due = []
        for queue in self.queues.values():
            queue.doubtful.update(queue.flying)
            if queue.joined:
                due += [(message, {*queue.joined}) for message in sorted(queue.returning)]
                queue.returning.clear()
        return due

    # -- what came ------------------------------------------------------------------------------

    def settle(self, due: list[tuple[str, set[str]]], came: list[Delivered]) -> None:
        """Hold the deliveries that came against those that must.

        :raises WrongError: when they differ from what the protocol allows.
        """
        rest = list(came)
        for delivered in came:
            if self.payloads.get(delivered.message) != delivered.payload:
                raise WrongError(f"invented or changed: {delivered}")
        for message, lines in due:
            mine = [each for each in rest if each.message == message]
            queue = self.queues[mine[0].channel] if mine else None
            if queue is None:
                raise WrongError(
                    f"lost: {message} was not delivered to {' or '.join(sorted(lines))}"
                )
            receivers = [each.line for each in mine]
            if len(set(receivers)) != len(receivers):
                raise WrongError(f"delivered twice: {message} to {receivers}")
            if queue.status == "push" and set(receivers) != lines:
                raise WrongError(f"{message} came to {sorted(receivers)}, not {sorted(lines)}")
            if queue.status != "push" and (len(receivers) != 1 or not set(receivers) <= lines):
                raise WrongError(f"{message} came to {receivers}, not one of {sorted(lines)}")
            queue.flying[message] = set(receivers)
            rest = [each for each in rest if each.message != message]
        for delivered in rest:
            self._unexpected(delivered)
        self._order(due, came)

    def _unexpected(self, delivered: Delivered) -> None:
        queue = self.queues[delivered.channel]
        if delivered.message not in queue.doubtful:
            raise WrongError(f"unexpected: {delivered}")
        if delivered.line not in queue.joined:
            raise WrongError(f"delivered to who has not joined: {delivered}")
        queue.returning.discard(delivered.message)
        queue.flying.setdefault(delivered.message, set()).add(delivered.line)

    def _order(self, due: list[tuple[str, set[str]]], came: list[Delivered]) -> None:
        """The first deliveries of a queue to one client are in the order of the pushes."""
        order = [message for message, _ in due]
        for line in LINES:
            for name in CHANNELS:
                mine = [
                    each.message
                    for each in came
                    if each.line == line and each.channel == name and each.message in order
                ]
                fresh = [each for each in mine if self._is_fresh(name, each)]
                if fresh != sorted(fresh, key=order.index):
                    raise WrongError(f"out of order: {fresh} to {line}")

    def _is_fresh(self, name: str, message: str) -> bool:
        return message not in self.queues[name].doubtful

    def pulled(self, act: Act, found: list[Delivered]) -> None:
        """A pull of ``act.number`` messages has given these.

        :raises WrongError: when it is not what is stored, the oldest first.
        """
        queue = self.queues[act.channel]
        came = [each.message for each in found]
        sure = [message for message in came if message not in queue.doubtful]
        wanted = list(queue.waiting)[: act.number]
        extra = len(came) - len(sure)
        if sure != wanted[: len(sure)] or len(came) > act.number:
            raise WrongError(f"a pull of {act.number} gave {came}, not {wanted}")
        if len(came) < act.number and len(sure) != len(queue.waiting):
            raise WrongError(f"a pull of {act.number} gave {came} of {list(queue.waiting)}")
        if not extra and len(sure) != len(wanted):
            raise WrongError(f"a pull of {act.number} gave {came}, not {wanted}")
        for _ in sure:
            queue.waiting.popleft()
        for each in found:
            if self.payloads.get(each.message) != each.payload:
                raise WrongError(f"invented or changed: {each}")
            queue.flying[each.message] = {act.line}
            queue.doubtful.discard(each.message)
