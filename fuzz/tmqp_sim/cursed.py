"""A door with a bug: its sessions fail now and then, and only theirs may end for it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Deliver, DeliverRun, Effect, Forward, Inform
from tmqp_server.engine.model.message import Message

__all__ = ["CURSED", "Cursed", "CursedDoor"]

#: How hosts begin whose clients come in by such a door.
CURSED: Final = "cursed"
#: One call in so many fails.
_RARITY: Final = 15


class Cursed(Exception):  # noqa: N818 - it says what the door is
    """The bug."""


class _CursedSession(DoorSession):
    """Passes everything on to a session without the bug, or fails.

    :raises Cursed: from most of its methods, now and then.
    """

    def __init__(self, inner: DoorSession, chance: Random) -> None:
        super().__init__()
        self._inner = inner
        self._chance = chance

    def _after(self, commands: Sequence[Command]) -> Sequence[Command]:
        self.closed = self._inner.closed
        self.close_reason = self._inner.close_reason
        self.outbound_bytes = self._inner.outbound_bytes
        return commands

    def _may_fail(self) -> None:
        if self._chance.randrange(_RARITY) == 0:
            raise Cursed("a bug of the door")

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        self._may_fail()
        return self._after(self._inner.receive(data, now))

    def receive_eof(self, now: float) -> Sequence[Command]:
        self._may_fail()
        return self._after(self._inner.receive_eof(now))

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        self._may_fail()
        return self._after(self._inner.apply(effect, now))

    def deliver(self, data: bytes) -> None:
        self._may_fail()
        self._inner.deliver(data)
        self._after(())

    def close(self, reason: str, now: float) -> Sequence[Command]:
        self._may_fail()
        return self._after(self._inner.close(reason, now))

    def data_to_send(self) -> bytes:
        data = self._inner.data_to_send()
        self._after(())
        return data

    def held_bytes(self) -> int:
        return self._inner.held_bytes()

    def forget_hello(self) -> None:
        self._inner.forget_hello()

    def next_deadline(self) -> float | None:
        return self._inner.next_deadline()

    def on_deadline(self, now: float) -> Sequence[Command]:
        self._may_fail()
        return self._after(self._inner.on_deadline(now))


class CursedDoor(Door):
    """Opens such sessions; what they share with others is made by the door without the bug."""

    def __init__(self, inner: Door, chance: Random) -> None:
        self.name = inner.name
        self.number = inner.number
        self._inner = inner
        self._chance = chance

    def encode_delivery(self, effect: Deliver) -> bytes:
        return self._inner.encode_delivery(effect)

    def encode_run(self, effect: DeliverRun) -> bytes:
        return self._inner.encode_run(effect)

    def encode_forward(self, effect: Forward) -> bytes:
        return self._inner.encode_forward(effect)

    def encode_event(self, effect: Inform) -> bytes:
        return self._inner.encode_event(effect)

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        return self._inner.stored(message)

    def open(self, session: int, now: float) -> DoorSession:
        return _CursedSession(self._inner.open(session, now), self._chance)
