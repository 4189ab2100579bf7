"""Our doors as machines without I/O, for the cases of the packs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.tmqp_server.doors.door_world import DoorWorld
from tests.tmqp_server.doors.nsq.stage import Stage
from tests.tmqp_server.outputs import sent
from tmqp.testing.conformance import Case
from tmqp_conformance.packs.memory import PackMachine
from tmqp_server.doors.goms.door import GomsDoor
from tmqp_server.doors.goms.message import GomsBodies
from tmqp_server.doors.goms.options import GomsLimits, GomsOptions
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.openwire.door import OpenwireDoor
from tmqp_server.doors.openwire.message import OpenwireBodies
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.smq.door import SmqDoor
from tmqp_server.doors.smq.message import SmqBodies
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompBodies
from tmqp_server.doors.throttr.door import ThrottrDoor
from tmqp_server.doors.throttr.message import ThrottrBodies
from tmqp_server.doors.throttr.options import ThrottrOptions
from tmqp_server.doors.zmtp.door import ZmtpDoor
from tmqp_server.doors.zmtp.message import ZmtpBodies

__all__ = ["MACHINES"]

_NSQ: Final = {
    "": "nsq",
    "http": "nsqd-http",
    "lookup": "nsqlookupd",
    "lookup-http": "nsqlookupd-http",
}


class NsqMachine:
    """Our doors of NSQ."""

    def __init__(self) -> None:
        self.place = ""
        self._stage = Stage()
        self._read: dict[int, int] = {}

    def open(self, case: Case, now: float) -> int:
        """A new connection."""
        self._stage.now = now
        number = self._stage.dial(_NSQ[self.place]).number
        self._read[number] = 0
        return number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        self._stage.now = now
        self._stage.feed(number, data)

    def take(self, number: int) -> bytes:
        """What there is to send."""
        data = bytes(self._stage.sent[number][self._read[number] :])
        self._read[number] += len(data)
        return data

    def is_closed(self, number: int) -> bool:
        """Whether the door has closed."""
        return number in self._stage.ended

    def end(self, number: int, now: float) -> None:
        """The peer sends no more."""
        self._stage.now = now
        if number not in self._stage.ended:
            self._stage.hub.receive_eof(number, now)
            self._stage.settle()

    def lose(self, number: int, now: float) -> None:
        """The transport is gone."""
        self._stage.end(number)
        self._stage.settle()

    def next_deadline(self) -> float | None:
        """The nearest deadline."""
        hub = self._stage.hub
        dues = [
            hub.session_deadline(number) for number in self._read if number not in self._stage.ended
        ]
        dues.append(hub.broker_deadline())
        return min((due for due in dues if due is not None), default=None)

    def on_deadline(self, now: float) -> None:
        """Do what is due."""
        self._stage.now = now
        for number in self._read:
            due = self._stage.hub.session_deadline(number)
            if number not in self._stage.ended and due is not None and due <= now:
                self._stage.hub.on_session_deadline(number, now)
        self._stage.settle()


class DoorMachine:
    """One of our doors alone."""

    def __init__(self, world: DoorWorld) -> None:
        self.place = ""
        self._world = world
        self._open: set[int] = set()

    def open(self, case: Case, now: float) -> int:
        """A new connection."""
        self._world.now = now
        number = self._world.client().number
        self._open.add(number)
        return number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        self._world.now = now
        self._world.hub.receive(number, data, now)

    def take(self, number: int) -> bytes:
        """What there is to send; the door learns that it has left."""
        hub = self._world.hub
        data = sent(hub, number)
        session = hub._sessions.get(number)
        while session is not None and session.wants_written:
            hub.written(number, self._world.now)
            hub.go_on(number, self._world.now)
            data += sent(hub, number)
        return data

    def is_closed(self, number: int) -> bool:
        """Whether the door has closed."""
        return number not in self._open or bool(self._world.hub.close_reason(number))

    def end(self, number: int, now: float) -> None:
        """The peer sends no more."""
        self._world.hub.receive_eof(number, now)

    def lose(self, number: int, now: float) -> None:
        """The transport is gone."""
        self._open.discard(number)
        self._world.hub.forget(number, now)

    def next_deadline(self) -> float | None:
        """The nearest deadline."""
        hub = self._world.hub
        dues = [hub.session_deadline(number) for number in self._open]
        dues.append(hub.broker_deadline())
        return min((due for due in dues if due is not None), default=None)

    def on_deadline(self, now: float) -> None:
        """Do what is due."""
        self._world.now = now
        self._world.hub.on_broker_deadline(now)
        for number in sorted(self._open):
            self._world.hub.on_session_deadline(number, now)


def _smq() -> DoorMachine:
    return DoorMachine(
        DoorWorld(lambda new_id, letters: SmqDoor(new_id, None, None, letters), SmqBodies())
    )


def _zmtp() -> DoorMachine:
    return DoorMachine(
        DoorWorld(lambda new_id, letters: ZmtpDoor(new_id, None, None, letters), ZmtpBodies())
    )


def _goms() -> DoorMachine:
    options = GomsOptions(topics=("conformance-a", "conformance-b"))
    return DoorMachine(
        DoorWorld(
            lambda new_id, letters: GomsDoor(new_id, GomsLimits(), options, letters), GomsBodies()
        )
    )


def _stomp() -> DoorMachine:
    return DoorMachine(
        DoorWorld(lambda new_id, letters: StompDoor(new_id, None, None, letters), StompBodies())
    )


def _openwire() -> DoorMachine:
    return DoorMachine(
        DoorWorld(
            lambda new_id, letters: OpenwireDoor(new_id, None, None, letters), OpenwireBodies()
        )
    )


class ThrottrMachine(DoorMachine):
    """Our doors of Throttr, one for each dialect."""

    def __init__(self) -> None:
        doors: dict[str, ThrottrDoor] = {}

        def make(new_id: IdSource, letters: Letters) -> ThrottrDoor:
            for place, dialect in (("", "7.1"), ("dialect-7.3", "7.3")):
                options = ThrottrOptions(dialect=dialect)
                doors[place] = ThrottrDoor(new_id, None, options, letters)
            return doors[""]

        super().__init__(DoorWorld(make, ThrottrBodies()))
        self._doors = doors

    def open(self, case: Case, now: float) -> int:
        """A new connection."""
        self._world.door = self._doors[self.place]
        return super().open(case, now)


#: A server in memory for each pack.
MACHINES: Final[dict[str, Callable[[], PackMachine]]] = {
    "nsq": NsqMachine,
    "smq": _smq,
    "zmtp": _zmtp,
    "goms": _goms,
    "throttr": ThrottrMachine,
    "stomp": _stomp,
    "openwire": _openwire,
}
