"""The model of queues: what a server may send after each action, and what it must send.

Several clients act on queues that no other client uses.  The model tracks the clients that have
joined, the waiting messages, and the messages in flight.  If the protocol leaves a choice (which
consumer of a round robin queue, what happens to a refused message), the model allows every outcome
and records the actual one.

An :class:`Act` is data, so a session is a list that can be saved, minimised and replayed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["CHANNELS", "LINES", "Act", "Delivered", "Due", "Model", "WrongError"]

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

        :raises ValueError: if it is not an action.
        """
        texts = [entry.get(key, "") for key in ("what", "line", "channel", "message")]
        number = entry.get("number", 0)
        if not all(isinstance(each, str) for each in texts) or type(number) is not int:
            raise ValueError(f"not an action: {entry!r}")
        return cls(texts[0], texts[1], texts[2], number, texts[3])


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message that a client received."""

    line: str
    channel: str
    message: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Due:
    """A message that must come: to each of these clients, or to one of them."""

    channel: str
    message: str
    lines: frozenset[str]
    to_each: bool


@dataclass(slots=True)
class _Queue:
    """What the model knows of the queue of one channel."""

    name: str
    status: str
    joined: list[str] = field(default_factory=list)
    waiting: deque[str] = field(default_factory=deque)
    #: Message -> consumers to which it is in flight.
    flying: dict[str, set[str]] = field(default_factory=dict)
    #: Messages that may come again, or not.
    doubtful: set[str] = field(default_factory=set)
    #: Messages that some consumer has acknowledged or refused.
    answered: set[str] = field(default_factory=set)
    #: Unanswered messages whose receivers have disconnected: they return to the queue after their
    #: timeout (F99), in any order.
    returning: set[str] = field(default_factory=set)


class Model:
    """The state of all queues, as the protocol requires it."""

    def __init__(self) -> None:
        self.queues = {name: _Queue(name, status) for name, status in CHANNELS.items()}
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
        """Return the messages that can be acknowledged: (client, channel, message)."""
        return [
            (line, name, message)
            for name, queue in self.queues.items()
            for message, lines in queue.flying.items()
            for line in sorted(lines)
        ]

    # -- what must follow -----------------------------------------------------------------------

    def act(self, act: Act, payload: bytes = b"") -> list[Due]:
        """Carry an action out; returns the deliveries that must follow, in order for each queue."""
        queue = self.queues.get(act.channel)
        if act.what == "connect":
            self.connected.add(act.line)
        elif act.what == "vanish":
            self._disconnect(act.line)
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

    def _drain(self, queue: _Queue) -> list[Due]:
        """Deliver all waiting messages to the clients that have joined."""
        if not queue.joined or queue.status == "pull":
            return []
        due = [self._due(queue, message) for message in queue.waiting]
        queue.waiting.clear()
        return due

    @staticmethod
    def _due(queue: _Queue, message: str) -> Due:
        return Due(queue.name, message, frozenset(queue.joined), queue.status == "push")

    def _disconnect(self, line: str) -> None:
        """Handle that a client has disconnected: messages in flight only to it return, sooner or
        later (F99)."""
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

    def expire(self) -> list[Due]:
        """Handle the acknowledgement timeout: returned messages are due if a client has joined."""
        due = []
        for queue in self.queues.values():
            queue.doubtful.update(queue.flying)
            if queue.joined:
                due += [self._due(queue, message) for message in sorted(queue.returning)]
                queue.returning.clear()
        return due

    # -- what came ------------------------------------------------------------------------------

    def settle(self, due: list[Due], came: list[Delivered]) -> None:
        """Compare the received deliveries with the required ones.

        :raises WrongError: if they differ from what the protocol allows.
        """
        self.check_payloads(came)
        rest = list(came)
        for each in due:
            mine = [delivered for delivered in rest if delivered.message == each.message]
            self._deliver(each, mine)
            rest = [delivered for delivered in rest if delivered.message != each.message]
        for delivered in rest:
            self._unexpected(delivered)
        if len(due) > 1:
            self._order([each.message for each in due], came)

    def check_payloads(self, came: list[Delivered]) -> None:
        """Compare payloads with the pushed ones.

        :raises WrongError: if no client has pushed such a message.
        """
        for delivered in came:
            if self.payloads.get(delivered.message) != delivered.payload:
                raise WrongError(f"invented or changed: {delivered}")

    def _deliver(self, due: Due, came: list[Delivered]) -> None:
        """Hold the deliveries of one message against who must get it."""
        lines = sorted(due.lines)
        if not came:
            raise WrongError(f"lost: {due.message} was not delivered to {' or '.join(lines)}")
        if any(each.channel != due.channel for each in came):
            raise WrongError(f"delivered on a channel other than {due.channel}: {came}")
        receivers = [each.line for each in came]
        if len(set(receivers)) != len(receivers):
            raise WrongError(f"delivered twice: {due.message} to {receivers}")
        if due.to_each and set(receivers) != due.lines:
            raise WrongError(f"{due.message} came to {sorted(receivers)}, not {lines}")
        if not due.to_each and (len(receivers) != 1 or not set(receivers) <= due.lines):
            raise WrongError(f"{due.message} came to {receivers}, not one of {lines}")
        self.queues[due.channel].flying[due.message] = set(receivers)

    def _unexpected(self, delivered: Delivered) -> None:
        queue = self.queues[delivered.channel]
        if delivered.message not in queue.doubtful:
            raise WrongError(f"unexpected: {delivered}")
        if delivered.line not in queue.joined:
            raise WrongError(f"delivered to a client that has not joined: {delivered}")
        queue.returning.discard(delivered.message)
        queue.flying.setdefault(delivered.message, set()).add(delivered.line)

    def _order(self, order: list[str], came: list[Delivered]) -> None:
        """The first deliveries of a queue to one client are in the order of the pushes."""
        heard: dict[tuple[str, str], list[str]] = {}
        for each in came:
            if each.message in order and each.message not in self.queues[each.channel].doubtful:
                heard.setdefault((each.line, each.channel), []).append(each.message)
        for (line, _), fresh in heard.items():
            if fresh != sorted(fresh, key=order.index):
                raise WrongError(f"out of order: {fresh} to {line}")

    def pulled(self, act: Act, found: list[Delivered]) -> None:
        """Check the messages that a pull of ``act.number`` messages returned.

        :raises WrongError: if they are not the stored ones, the oldest first.
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
        self.check_payloads(found)
        for each in found:
            queue.flying[each.message] = {act.line}
            queue.doubtful.discard(each.message)
