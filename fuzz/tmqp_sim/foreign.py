"""A door whose messages are of another kind: every client may come in by it and notice nothing.

It speaks TMQP, so that all clients of a simulation can use it, but keeps messages in a form that
only itself can read.  So what comes in by it and leaves by the TMQP door, or the other way, leaves
as a letter; and every rule for messages, confirms and restarts holds for those as well.

From time to time it stops its peer for a moment, and it wants to know when its answers have left.
Every third connection changes to TLS when it is accepted, which here is only a while in which
nothing may be read or sent.  Every second connection has a branch for each channel that it joins,
so all that is promised to a consumer is promised to one of several of a connection as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, final

from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letter_frames import frame_of_letter, letter_of_frame
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.native.rewriting import without_dead_letter_headers
from tmqp_server.doors.port import Door, DoorSession, IdSource
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Batch,
    CloseBranch,
    Command,
    Connect,
    Extend,
    Grant,
    Join,
    Leave,
    OpenBranch,
    Pull,
    Push,
    PushRun,
    Release,
    SetTerms,
    branch_number,
)
from tmqp_server.engine.effects import (
    Accept,
    BranchClosed,
    BranchOpened,
    Deliver,
    DeliverPulled,
    Effect,
    Forward,
    Inform,
    Reply,
)
from tmqp_server.engine.model.message import Message
from tmqp_sim.world import Violation

__all__ = ["FOREIGN_NAME", "MARK", "ForeignDoor", "ForeignWire"]

FOREIGN_NAME: Final = "foreign"
#: It stops its peer after so many chunks, for so many seconds or until it is answered.
_CHUNKS: Final = 5
_STOP_S: Final = 0.05
#: What its messages begin with on disk; no TMQP message does.
MARK: Final = b"\xff"


@final
class ForeignWire:
    """A message as this door keeps it; ``frame`` is nobody else's business."""

    __slots__ = ("frame",)

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __repr__(self) -> str:
        return f"foreign {self.frame!r}"


class Branches:
    """The branches of one connection: one for each channel it joins, until the next join.

    ``had`` is who of the connection got a message last.
    """

    def __init__(self, session: int) -> None:
        self._session = session
        self._of: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._opened = 0
        self.had: dict[str, int] = {}

    def asked(self, commands: list[Command]) -> list[Command]:
        """The commands of a client as those of its branches."""
        found: list[Command] = []
        for command in commands:
            if isinstance(command, Join):
                self._join(command, found)
            elif isinstance(command, (Grant, Leave, Pull, SetTerms)):
                command.session = self._of.get(command.channel.lower(), self._session)
                if isinstance(command, Leave):
                    self._left[command.channel.lower()] = command.session
            elif isinstance(command, (Acknowledge, Extend, Release)):
                command.session = self.had.get(command.message_id, self._session)
            elif isinstance(command, Batch):
                command.commands = self.asked([*command.commands])
            elif isinstance(command, AcknowledgeRun):
                found.extend(self.asked([*command.singles()]))
                continue
            found.append(command)
        return found

    def _join(self, command: Join, found: list[Command]) -> None:
        """Open the branch that joins; one that has left the channel is over then."""
        key = command.channel.lower()
        if key in self._left:
            del self._of[key]
            found.append(CloseBranch(self._session, None, self._left.pop(key)))
        if key not in self._of:
            self._opened += 1
            self._of[key] = branch_number(self._session, self._opened)
            found.append(OpenBranch(self._session, None, self._of[key]))
        command.session = self._of[key]

    def told(self, effect: Effect) -> None:
        """What was pulled is answered by who pulled it."""
        if isinstance(effect, DeliverPulled):
            self.had[effect.message.message_id] = effect.session


class _ForeignSession(DoorSession):
    """A TMQP session whose messages are kept in the other form."""

    def __init__(self, inner: DoorSession, branches: Branches | None, door: Door | None) -> None:
        super().__init__()
        self._inner = inner
        self._branches = branches
        self._door = door
        self._chunks = 0
        self._goes_on_at = math.inf
        self.changes_to_tls = False

    def _after(self, commands: Sequence[Command]) -> Sequence[Command]:
        inner = self._inner
        self.closed = inner.closed
        self.close_reason = inner.close_reason
        self.outbound_bytes = inner.outbound_bytes
        self.work += inner.work
        inner.work = 0
        found: list[Command] = []
        for command in commands:
            if isinstance(command, PushRun):
                found.extend(_wrapped(each) for each in command.wire.pushes(command))
            elif isinstance(command, Push):
                found.append(_wrapped(command))
            else:
                if isinstance(command, Connect):
                    command.door = FOREIGN_NAME
                elif isinstance(command, Batch):
                    for each in command.commands:
                        if isinstance(each, Push):
                            _wrapped(each)
                found.append(command)
        return found if self._branches is None else self._branches.asked(found)

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        if not self.reads or self.wants_tls:
            raise Violation("stopped", "a peer is read from although its session stopped it")
        self._chunks += 1
        if self._chunks % _CHUNKS == 0:
            self.reads = False
            self._goes_on_at = now + _STOP_S
            self.wants_written = True
        return self._after(self._inner.receive(data, now))

    def written(self, now: float) -> Sequence[Command]:
        """What it said has left: its peer may continue."""
        self._go_on()
        return ()

    def secured(self, now: float) -> Sequence[Command]:
        """Its peer may continue."""
        if self.wants_tls:
            raise Violation("stopped", "its session is told too early that TLS has begun")
        return ()

    def _go_on(self) -> None:
        if not self.reads:
            self.reads = self.hurried = True
            self._goes_on_at = math.inf

    def receive_eof(self, now: float) -> Sequence[Command]:
        return self._after(self._inner.receive_eof(now))

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        self._go_on()
        if isinstance(effect, Accept) and self.changes_to_tls:
            self.wants_tls = self.wants_written = True
        if isinstance(effect, Reply) and isinstance(effect.request, ForeignWire):
            effect = Reply(effect.session, effect.request.frame, effect.code, effect.body)
        if self._branches is not None:
            self._branches.told(effect)
            if isinstance(effect, (BranchClosed, BranchOpened)):
                return ()
        return self._after(self._inner.apply(effect, now))

    def encoder(self) -> Door | None:
        return self._door

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        assert self._branches is not None, "the other door shares all of a delivery"
        self._branches.had[effect.message.message_id] = number
        self.deliver(shared)

    def deliver(self, data: bytes) -> None:
        self._inner.deliver(data)
        self._after(())

    def close(self, reason: str, now: float) -> Sequence[Command]:
        return self._after(self._inner.close(reason, now))

    def data_to_send(self) -> bytes:
        data = self._inner.data_to_send()
        self._after(())
        return data

    def next_to_send(self) -> bytes:
        data = self._inner.next_to_send()
        self._after(())
        return data

    def held_bytes(self) -> int:
        return self._inner.held_bytes()

    def forget_hello(self) -> None:
        self._inner.forget_hello()

    def next_deadline(self) -> float | None:
        due = self._inner.next_deadline()
        return due if due is not None and due < self._goes_on_at else self._goes_on_at

    def on_deadline(self, now: float) -> Sequence[Command]:
        if now >= self._goes_on_at:
            self._go_on()
        due = self._inner.next_deadline()
        if due is None or due > now:
            return ()
        return self._after(self._inner.on_deadline(now))


def _wrapped(push: Push) -> Push:
    """The push of a message in the other form."""
    assert isinstance(push.wire, Frame), "the inner door makes frames"
    push.wire = ForeignWire(push.wire)
    push.size += len(MARK)
    extras = push.extras
    if extras is not None and isinstance(extras.nameless, Frame):
        extras.nameless = ForeignWire(extras.nameless)
    return push


class ForeignDoor(Door):
    """Opens such sessions.

    :param letters: reads the messages of other doors; this door adds itself.
    """

    name = FOREIGN_NAME
    number = 251

    def __init__(
        self, new_id: IdSource, limits: Limits, letters: Letters, *, branching: bool = False
    ) -> None:
        self._letters = letters
        self._inner = NativeDoor(new_id, limits, letters=letters)
        self.per_session = branching
        self._branching = self
        if not branching:
            letters.add(self)
            self._branching = ForeignDoor(new_id, limits, letters, branching=True)

    def open(self, session: int, now: float) -> _ForeignSession:
        """A new connection."""
        inner = self._inner.open(session, now)
        if session % 2:
            opened = _ForeignSession(inner, None, None)
        else:
            opened = _ForeignSession(inner, Branches(session), self._branching)
        opened.changes_to_tls = session % 3 == 0
        return opened

    def letter(self, wire: object) -> Letter:
        """What a message of this door says."""
        assert isinstance(wire, ForeignWire), "nobody else's messages are read here"
        return letter_of_frame(wire.frame)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """A message of this door with these headers."""
        assert isinstance(wire, ForeignWire), "nobody else's messages are written here"
        letter = letter_of_frame(wire.frame)
        letter.headers = headers
        frame = frame_of_letter(letter, high_priority=wire.frame.high_priority)
        return ForeignWire(frame), len(frame.raw) - len(wire.frame.raw)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """Its own messages as they came in, others by their letters."""
        message = effect.message
        wire = message.wire
        if isinstance(wire, ForeignWire):
            frame = wire.frame
            if frame.has_header and not message.readdressed:
                frame = without_dead_letter_headers(frame)
        else:
            letter = self._letters.of(message, effect.channel)
            frame = frame_of_letter(letter, high_priority=message.high_priority)
        if effect.hide_source or message.readdressed:
            frame = frame.replace(
                source="" if effect.hide_source else None,
                target=message.channel if message.readdressed else None,
                content_type=message.queue_id if message.readdressed else None,
            )
        return frame.forwarded(effect.first_acquirer, effect.wants_acknowledge, frame.ttl - 1)

    def encode_forward(self, effect: Forward) -> bytes:
        """What another client said."""
        return self._inner.encode_forward(effect)

    def encode_event(self, effect: Inform) -> bytes:
        """An event."""
        return self._inner.encode_event(effect)

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """A form that no other door reads."""
        wire = message.wire
        assert isinstance(wire, ForeignWire), "nobody else's messages are kept here"
        size = wire.frame.payload_size
        body = MARK + wire.frame.raw
        return body, len(body) - size, size

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """Nothing: what is staged is TMQP's.

        :raises ValueError: always.
        """
        raise ValueError("this door stages nothing")

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """The message again.

        :raises ValueError: when it is not one of this door.
        """
        if not body.startswith(MARK):
            raise ValueError("a message of another door")
        frame, message_id, source, channel, _ = self._inner.restored(body[1:])
        assert isinstance(frame, Frame), "the inner door keeps frames"
        return ForeignWire(frame), message_id, source, channel, len(body)
