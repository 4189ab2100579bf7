"""The door sessions of a hub, and the effects for them: encoded once, in order, coalesced.

Theory of operation.  An effect for one session is passed to that session.  An effect for several
sessions is encoded once for each of their doors and shared.  Deliveries to the same list of
sessions are coalesced (``coalescing.py``): they are sent before anything else for one of their
sessions, when they are large, and at the end of every turn (:meth:`Outlets.flush`).

Sessions with output are remembered in the order in which they were touched.  When one has a portion
to send, or a portion of work was done, the outlets are *full*: the caller must send first.

A fault in the door of one session must not affect the session whose command caused it: the fault is
noted, and the effects for all other sessions are carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.books import CONNECTION_BYTES, TLS_BYTES
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, connection_of
from tmqp_server.engine.effects import (
    Accept,
    AnswerPull,
    AnswerRouted,
    BranchClosed,
    BranchOpened,
    CloseSession,
    Confirm,
    ConfirmRun,
    Deliver,
    DeliverPulled,
    DeliverRun,
    EndPull,
    EventsEnded,
    Forward,
    ForwardRun,
    Inform,
    Lapsed,
    Left,
    Refuse,
    Reply,
)
from tmqp_server.hub.coalescing import Coalesced, Coalescer
from tmqp_server.hub.questions import Fault, Refusal

__all__ = ["FOR_ONE", "ForOne", "Outlets", "Shared"]

#: Effects that one session carries out.
FOR_ONE: Final = (
    Reply,
    Confirm,
    DeliverPulled,
    EndPull,
    AnswerPull,
    Accept,
    Refuse,
    CloseSession,
    AnswerRouted,
    ConfirmRun,
    Left,
    Lapsed,
    EventsEnded,
)
ForOne: TypeAlias = (
    Reply
    | Confirm
    | DeliverPulled
    | EndPull
    | AnswerPull
    | Accept
    | Refuse
    | CloseSession
    | AnswerRouted
    | ConfirmRun
    | Left
    | Lapsed
    | EventsEnded
    | BranchOpened
    | BranchClosed
)
#: Effects that several sessions carry out, from the same bytes.
Shared: TypeAlias = Deliver | DeliverRun | Forward | ForwardRun | Inform

#: Coalesced deliveries are sent when they have this size, because joining copies them.
_MOST_COALESCED_BYTES: Final = 262_144
#: Units of work that are a portion (``Broker.take_work``): some milliseconds.
_PORTION_WORK: Final = 1_000
#: The beginning of a smaller message is part of what a connection takes.
_SMALL_BYTES: Final = 16_384
#: More than any session has to send.
_NO_PORTIONS: Final = 1 << 60
_NOTHING: Final[tuple[Command, ...]] = ()
_NOBODY: Final[tuple[int, ...]] = ()


@final
class Outlets:
    """The sessions of one hub.

    :param portion_bytes: how much output a session may have before the outlets are full; 0 for no
        limit.
    :param broker: counts the memory of connections.
    :param outside: gets a :class:`Fault` for each fault, and refusals of clients.

    Attributes: ``sessions`` and ``doors`` by the number of a session or of a branch, ``full``,
    ``portion_bytes``, and ``strangers``: the charge for the bytes of each peer that is not yet
    accepted; ``partial``: the charge for incomplete large messages of others; ``secured``: the
    sessions charged for TLS that began later; ``woken`` and ``awaited``: see ``Hub``.
    """

    def __init__(self, portion_bytes: int, broker: Broker, outside: list[Any]) -> None:
        self.strangers: dict[int, int] = {}
        self.partial: dict[int, int] = {}
        self._broker = broker
        self.portion_bytes = portion_bytes or _NO_PORTIONS
        self.sessions: dict[int, DoorSession] = {}
        self.doors: dict[int, Door] = {}
        self.full = False
        self._work_left = _PORTION_WORK
        self._touched: dict[int, None] = {}
        self.woken: dict[int, None] = {}
        self.awaited: dict[int, None] = {}
        self._outside = outside
        self._coalescer = Coalescer()
        #: Sessions whose deliveries begin with their own prefix; they are never coalesced.
        self._apart: dict[int, None] = {}
        #: By connection: its branches, which have places in the three tables above, too.
        self._branches: dict[int, dict[int, None]] = {}
        self.secured: dict[int, None] = {}

    # -- sessions -------------------------------------------------------------------------------

    def open(self, number: int, door: Door, now: float, peer: str) -> None:
        """Open the session of a connection of *peer*, with this number."""
        session = self.sessions[number] = door.open(number, now)
        session.peer = peer
        self.doors[number] = door
        if door.per_session:
            self._apart[number] = None
        self.strangers[number] = 0
        self.touch(number)  # in some protocols the server speaks first
        self._broker.charge(CONNECTION_BYTES)

    def open_branch(self, connection: int, branch: int) -> None:
        """Direct effects for a branch to the session of its connection."""
        session = self.sessions.get(connection)
        if session is not None:
            assert connection in self._apart, "a door with branches writes to each session"
            self.sessions[branch] = session
            self.doors[branch] = self.doors[connection]
            self._apart[branch] = None
            self._branches.setdefault(connection, {})[branch] = None

    def close_branch(self, connection: int, branch: int) -> None:
        """Send nothing to the branch any more."""
        branches = self._branches.get(connection)
        if branches is not None and branch in branches:
            del branches[branch]
            if not branches:
                del self._branches[connection]
            self._drop_branch(branch)

    def _drop_branch(self, branch: int) -> None:
        del self.sessions[branch]
        del self.doors[branch]
        del self._apart[branch]

    def forget(self, number: int) -> None:
        """Remove a connection, which must exist."""
        for branch in self._branches.pop(number, ()):
            self._drop_branch(branch)
        self.sessions.pop(number).gone()
        del self.doors[number]
        self._apart.pop(number, None)
        self._touched.pop(number, None)
        held = self.strangers.pop(number, 0) + self.partial.pop(number, 0)
        if number in self.secured:
            del self.secured[number]
            held += TLS_BYTES
        self._broker.charge(-held - CONNECTION_BYTES)

    def resume(self, number: int, now: float) -> None:
        """Check a session again, because its waiting push has ended."""
        session = self.sessions.get(number)
        if session is not None:
            session.excuse_silence(now)
            self.woken[number] = None

    def begin_tls(self, number: int) -> bool:
        """Charge the memory of TLS; return False if there is none left."""
        if number in self.secured:
            return True
        if not self._broker.has_room_for_client(TLS_BYTES):
            return False
        self.secured[number] = None
        self._broker.charge(TLS_BYTES)
        return True

    def weigh(self, number: int, session: DoorSession) -> bool:
        """Charge the buffered bytes of a peer: all until it is accepted, then an incomplete large
        message.  Return False if there is no memory for them."""
        table = self.strangers
        charged = table.get(number, -1) if table else -1
        held = session.held_bytes()
        if charged < 0:
            table = self.partial
            charged = table.get(number, 0) if table else 0
            if held < _SMALL_BYTES:
                held = 0
                if charged == 0:
                    return True
        if held or table is self.strangers:
            table[number] = held
        else:
            del table[number]
        self._broker.charge(held - charged)
        return held <= charged or self._broker.has_room_for_client(0)

    def _settle(self, number: int) -> None:
        """Remove a peer's charge: its bytes are no longer buffered, or limited in another way."""
        self._broker.charge(-self.strangers.pop(number, 0))

    def touch(self, number: int) -> None:
        """Note that a session may have something to send."""
        self._touched[number] = None

    def take_touched(self) -> Sequence[int]:
        """The sessions that may have something to send, in the order in which they were touched."""
        self.full = False
        self._work_left = _PORTION_WORK
        if not self._touched:
            return _NOBODY
        touched = list(self._touched)
        self._touched.clear()
        if self._branches:
            touched = list(dict.fromkeys([connection_of(number) for number in touched]))
        return touched

    def take_pieces(
        self, number: int, session: DoorSession, pieces: list[tuple[int, bytes]]
    ) -> None:
        """Add the output of a session."""
        try:
            while data := session.next_to_send():
                pieces.append((number, data))
            if session.wants_written:
                self.awaited[number] = None
        except Exception as error:  # noqa: BLE001 - hurts this session, not the others
            self._outside.append(Fault(number, error))

    def charge(self, work: int) -> None:
        """Count work, whether or not it has produced output."""
        self._work_left -= work
        if self._work_left <= 0 and self.portion_bytes < _NO_PORTIONS:
            self.full = True

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: ForOne, now: float) -> Sequence[Command]:
        """Let the session of an effect carry it out; return its commands."""
        number = effect.session
        if self._coalescer.open and self._coalescer.meets(number):
            self.flush()
        session = self.sessions.get(number)
        if session is None:
            return _NOTHING
        self._touched[number] = None
        try:
            commands = session.apply(effect, now)
        except Exception as error:  # noqa: BLE001 - hurts this session, not the one that asked
            self._outside.append(Fault(connection_of(number), error))
            return _NOTHING
        if session.hurried:
            session.hurried = False
            self.woken[connection_of(number)] = None
        if self.strangers and isinstance(effect, (Accept, Refuse)):
            self._settle(number)
            if isinstance(effect, Refuse):
                self._outside.append(Refusal(session.peer, effect.code, effect.client_id))
            encoder = session.encoder()
            if encoder is not None:
                self.doors[number] = encoder
                if encoder.per_session:
                    self._apart[number] = None
        if session.outbound_bytes >= self.portion_bytes:
            self.full = True
        return commands

    def deliver(self, effect: Deliver | Forward) -> None:
        """Deliver a message, or pass it on, now or coalesced with others."""
        coalescer = self._coalescer
        numbers = effect.sessions
        coalesced = coalescer.find(numbers)
        if coalesced is None:
            apart = bool(self._apart) and self._some_apart(numbers)
            if apart or not coalescer.comes_again(numbers):
                self.hand_out(effect)
                return
            coalesced = self._open(numbers)
        fault = coalescer.add(coalesced, effect)
        if fault is not None:
            self._outside.append(Fault(0, fault))
        size = coalesced.size
        if size >= self.portion_bytes or size >= _MOST_COALESCED_BYTES:
            self.flush()

    def _open(self, numbers: list[int]) -> Coalesced:
        new = Coalesced(numbers)
        if not self._coalescer.has_room_for(new):
            self.flush()
        for number in numbers:
            session = self.sessions.get(number)
            if session is not None:
                new.admit(number, session, self.doors[number])
        self._coalescer.open.append(new)
        return new

    def hand_out(self, effect: Shared) -> None:
        """Encode an effect once for each door, and share the bytes among the door's sessions."""
        if self._coalescer.open and self._coalescer.meets_any(effect.sessions):
            self.flush()
        apart = bool(self._apart) and self._some_apart(effect.sessions)
        if len(effect.sessions) == 1 and not apart:
            number = effect.sessions[0]
            session = self.sessions.get(number)
            if session is not None:
                self._give(number, session, self._encoded(self.doors[number], effect))
            return
        encoded: dict[Door, bytes] = {}
        for number in effect.sessions:
            session = self.sessions.get(number)
            if session is None:
                continue
            door = self.doors[number]
            if apart and door.per_session and isinstance(effect, (Deliver, DeliverRun)):
                continue
            data = encoded.get(door)
            if data is None:
                data = encoded[door] = self._encoded(door, effect)
            self._give(number, session, data)
        if apart and isinstance(effect, Deliver):
            self._hand_out_apart(effect, effect.sessions)
        elif apart and isinstance(effect, DeliverRun):
            self._hand_out_run_apart(effect)

    def _some_apart(self, numbers: list[int]) -> bool:
        for number in numbers:  # noqa: SIM110 - any() would make a generator
            if number in self._apart:
                return True
        return False

    def _hand_out_run_apart(self, effect: DeliverRun) -> None:
        """Do the same for a run: as a whole for sessions that accept runs, message by message for
        others."""
        singly: list[int] = []
        encoded: dict[Door, bytes] = {}
        for number in effect.sessions:
            door = self.doors.get(number)
            if door is None or number not in self._apart:
                continue
            if door.own_runs:
                self._give_own(number, door, effect, encoded)
            else:
                singly.append(number)
        if singly:
            for each in effect.deliveries():
                self._hand_out_apart(each, singly)

    def _hand_out_apart(self, effect: Deliver, numbers: list[int]) -> None:
        """Encode the shared part once for each door; each session writes the rest."""
        encoded: dict[Door, bytes] = {}
        for number in numbers:
            door = self.doors.get(number)
            if door is not None and number in self._apart:
                self._give_own(number, door, effect, encoded)

    def _give_own(
        self, number: int, door: Door, effect: Deliver | DeliverRun, encoded: dict[Door, bytes]
    ) -> None:
        """Let a session write its own part of a delivery, or of a run's delivery."""
        data = encoded.get(door)
        if data is None:
            data = encoded[door] = self._encoded(door, effect)
        if not data:
            return  # a bug of the door, which is noted
        session = self.sessions[number]
        self._touched[number] = None
        try:
            if isinstance(effect, DeliverRun):
                session.deliver_own_run(effect, data, number)
            else:
                session.deliver_own(effect, data, number)
        except Exception as error:  # noqa: BLE001 - hurts this session, not the producer's
            self._outside.append(Fault(connection_of(number), error))
        if session.outbound_bytes >= self.portion_bytes:
            self.full = True

    def send(self, numbers: Sequence[int], data: bytes) -> None:
        """Queue whole messages for sessions, as they are to be sent."""
        self.flush()
        for number in numbers:
            session = self.sessions.get(number)
            if session is not None:
                self._give(number, session, data)

    def flush(self) -> None:
        """Pass coalesced deliveries to their sessions."""
        self._coalescer.end_turn()
        if not self._coalescer.open:
            return
        for coalesced in self._coalescer.take():
            for share in coalesced.shares:
                pieces = share.pieces
                data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                for number, session in share.sessions:
                    self._give(number, session, data)

    def _give(self, number: int, session: DoorSession, data: bytes) -> None:
        self._touched[number] = None
        try:
            session.deliver(data)
        except Exception as error:  # noqa: BLE001 - hurts this session, not the producer's
            self._outside.append(Fault(connection_of(number), error))
        if session.outbound_bytes >= self.portion_bytes:
            self.full = True

    def _encoded(self, door: Door, effect: Shared) -> bytes:
        try:
            if isinstance(effect, Forward):
                return door.encode_forward(effect)
            if isinstance(effect, ForwardRun):
                return door.encode_forward_run(effect)
            if isinstance(effect, Inform):
                return door.encode_event(effect)
            if isinstance(effect, DeliverRun):
                return door.encode_run(effect)
            return door.encode_delivery(effect)
        except Exception as error:  # noqa: BLE001 - hurts this message, not the producer's session
            self._outside.append(Fault(0, error))
            return b""
