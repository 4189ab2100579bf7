"""Owns the meeting of doors and broker: carries commands in, effects out, and nothing else.

Theory of operation.  The hub knows the broker and, by number, the sessions of all doors.  Bytes
that came in become commands (the session's work), each command is one step of the broker, and each
effect goes to the session it names; what a session answers to an effect (a Disconnect, say) is
worked off in the same way.  Sessions with something to send are remembered in the order they were
touched, so that the caller writes to each of them once a turn.

One chunk can ask for far more than itself: thousands of lists, or channels to join that are full.
So when a session has ``portion_bytes`` to send, the rest of the commands of the chunk waits until
the caller has sent what there is and calls :meth:`Hub.go_on`.

A fault in one session's door must not hurt the session whose command led to it: it is kept for
:meth:`Hub.take_faults`, and everybody else's effects are carried out.

It is pure: the driver around it brings bytes and the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, final

from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Block,
    Command,
    Disconnect,
    Synced,
    Unblock,
)
from tmqp_server.engine.effects import (
    Accept,
    AnswerPull,
    Append,
    CloseSession,
    Confirm,
    Deliver,
    DeliverPulled,
    Effect,
    EndPull,
    Erase,
    Forward,
    Inform,
    Notify,
    Refuse,
    Reply,
)
from tmqp_server.engine.router_commands import HttpAnswered
from tmqp_server.engine.router_effects import AnswerRouted, CallHttp, RouterFailed
from tmqp_server.engine.storage_effects import Fetch, StoredChange
from tmqp_server.runs import Run, Runs
from tmqp_server.storage.journal import Journal

__all__ = ["Hub"]

#: Effects that one session carries out.
_FOR_ONE = (
    Reply,
    Confirm,
    DeliverPulled,
    EndPull,
    AnswerPull,
    Accept,
    Refuse,
    CloseSession,
    AnswerRouted,
)
_ForOne: TypeAlias = (
    Reply
    | Confirm
    | DeliverPulled
    | EndPull
    | AnswerPull
    | Accept
    | Refuse
    | CloseSession
    | AnswerRouted
)

#: A run of so many bytes goes out; joining copies them.
_MOST_RUN_BYTES: Final = 262_144
#: More than any session has to send.
_NO_PORTIONS: Final = 1 << 60


@final
class Hub:
    """Broker and door sessions, joined.

    :param broker: the engine; the hub is its only caller.
    :param portion_bytes: how much a session may have to send before further commands wait for
        :meth:`go_on`; 0 for no bound.
    :param journal: takes what the broker wants kept; None where nothing is kept.

    Attribute: ``notified``, how many events of the broker there were.
    """

    def __init__(
        self, broker: Broker, portion_bytes: int = 0, journal: Journal | None = None
    ) -> None:
        self.broker = broker
        self.journal = journal
        self._fetches: list[Fetch] = []
        self.notified: int = 0
        self._portion_bytes = portion_bytes or _NO_PORTIONS
        self._sessions: dict[int, DoorSession] = {}
        self._doors: dict[int, Door] = {}
        self._touched: dict[int, None] = {}
        self._full = False
        self._following: deque[Command] = deque()
        self._rest: dict[int, deque[Command]] = {}
        self._faults: dict[int, Exception] = {}
        self._calls: list[CallHttp] = []
        self._router_failures: list[RouterFailed] = []
        self._runs = Runs()

    # -- sessions -------------------------------------------------------------------------------

    def open(self, number: int, door: Door, now: float) -> None:
        """A connection with this number, never used before, speaks the door's protocol."""
        assert number > 0, "0 stands for no session"
        assert number not in self._sessions, "session numbers are not used twice"
        self._sessions[number] = door.open(number, now)
        self._doors[number] = door

    def receive(self, number: int, data: bytes, now: float) -> bool:
        """Bytes came in.

        :returns: True when a part of what they ask for waits: send first, then :meth:`go_on`.
        """
        session = self._sessions.get(number)
        if session is None:
            return False
        commands = session.receive(data, now)
        self._touched[number] = None
        return self._run(number, commands, now)

    def go_on(self, number: int, now: float) -> bool:
        """Work on what waits of a session's last bytes; returns as :meth:`receive`."""
        rest = self._rest.pop(number, None)
        return rest is not None and self._run(number, list(rest), now)

    def receive_eof(self, number: int, now: float) -> None:
        """The peer will send no more."""
        session = self._sessions.get(number)
        if session is not None:
            self._touched[number] = None
            self._run(number, session.receive_eof(now), now)

    def close(self, number: int, reason: str, now: float) -> None:
        """Close a session from this side, politely."""
        session = self._sessions.get(number)
        if session is not None:
            self._touched[number] = None
            self._run(number, session.close(reason, now), now)

    def forget(self, number: int, now: float) -> None:
        """The transport is gone, for whatever reason; whatever the session held is given back."""
        session = self._sessions.pop(number, None)
        if session is not None:
            del self._doors[number]
            self._touched.pop(number, None)
            self._rest.pop(number, None)
            self._step(Disconnect(number), now)

    def block(self, number: int, now: float) -> None:
        """The session's peer does not read: hold its deliveries back."""
        if number in self._sessions:
            self._step(Block(number), now)

    def unblock(self, number: int, now: float) -> None:
        """The session's peer reads again."""
        if number in self._sessions:
            self._step(Unblock(number), now)

    def close_reason(self, number: int) -> str:
        """Why the session's protocol is closed; empty while it is not."""
        session = self._sessions.get(number)
        return "" if session is None else session.close_reason

    # -- what is to be sent ---------------------------------------------------------------------

    def take_touched(self) -> Sequence[int]:
        """The sessions that may have something to send, in the order they were touched."""
        touched = list(self._touched)
        self._touched.clear()
        self._full = False
        return touched

    def data_to_send(self, number: int) -> bytes:
        """Everything a session has queued."""
        session = self._sessions.get(number)
        return b"" if session is None else session.data_to_send()

    def take_faults(self) -> dict[int, Exception]:
        """What went wrong since the last call, by session; end these.  0 stands for a delivery
        that could not be encoded for anybody."""
        faults = self._faults
        if faults:
            self._faults = {}
        return faults

    # -- calls to other programs ----------------------------------------------------------------

    def take_calls(self) -> Sequence[CallHttp]:
        """The HTTP calls to make since the last call; each is answered by :meth:`answered`."""
        calls = self._calls
        if calls:
            self._calls = []
        return calls

    def set_router_enabled(self, name: str, enabled: bool, now: float) -> bool:
        """Let a router work, or not; False when there is none of that name."""
        found = self.broker.set_router_enabled(name, enabled)
        self._carry_out(self.broker.take_effects(), now)
        return found

    def answered(self, answer: HttpAnswered, now: float) -> None:
        """A call has come to its end."""
        self._step(answer, now)

    def take_router_failures(self) -> Sequence[RouterFailed]:
        """The failures of users' routers since the last call, for the log."""
        failures = self._router_failures
        if failures:
            self._router_failures = []
        return failures

    # -- time -----------------------------------------------------------------------------------

    def session_deadline(self, number: int) -> float | None:
        """When a session wants :meth:`on_session_deadline`; None for never or when it is gone."""
        session = self._sessions.get(number)
        return None if session is None else session.next_deadline()

    def on_session_deadline(self, number: int, now: float) -> None:
        """A session's deadline may have come."""
        session = self._sessions.get(number)
        if session is not None:
            self._touched[number] = None
            self._run(number, session.on_deadline(now), now)

    def broker_deadline(self) -> float | None:
        """When the broker wants :meth:`on_broker_deadline`; None for never."""
        return self.broker.next_deadline()

    def on_broker_deadline(self, now: float) -> None:
        """The broker's deadline may have come."""
        self._carry_out(self.broker.on_deadline(now), now)
        if self._runs.open:
            self._hand_over()

    # -- the storage ----------------------------------------------------------------------------

    @property
    def wants_storage(self) -> bool:
        """Whether something is to be written or fetched."""
        return bool(self._fetches) or (self.journal is not None and not self.journal.is_empty)

    def take_fetches(self) -> list[Fetch]:
        """What the broker wants to have back from the storage, oldest first."""
        fetches = self._fetches
        self._fetches = []
        return fetches

    def take_down(self, effects: Iterable[Effect], now: float) -> None:
        """Have kept what must be of effects that are for nobody else."""
        for effect in effects:
            self._keep(effect, now)

    def answer(self, command: Command, now: float) -> None:
        """The storage has something to say."""
        self._step(command, now)

    # -- the machine ----------------------------------------------------------------------------

    def _run(self, number: int, commands: Sequence[Command], now: float) -> bool:
        """Work off commands of a session until a portion is full; True if some are left."""
        broker = self.broker
        at = 0
        count = len(commands)
        while at < count:
            at, effects = broker.steps(commands, at, now, self._portion_bytes)
            if effects:
                self._carry_out(effects, now)
                if self._full and at < count:
                    rest = self._rest.setdefault(number, deque())
                    rest.extend(commands[at:])
                    break
        if self._runs.open:
            self._hand_over()
        if self._full:
            return number in self._rest
        return number in self._rest and self.go_on(number, now)

    def _step(self, command: Command, now: float) -> None:
        self._carry_out(self.broker.step(command, now), now)
        if self._runs.open:
            self._hand_over()

    def _carry_out(self, effects: Iterable[Effect], now: float) -> None:
        """Carry effects out, and whatever follows from them, until nothing does; runs stay open."""
        following = self._following
        while True:
            for effect in effects:
                if isinstance(effect, Deliver):
                    self._deliver(effect)
                elif isinstance(effect, _FOR_ONE):
                    if self._runs.open and self._runs.meets(effect.session):
                        self._hand_over()
                    self._apply(effect, now)
                elif isinstance(effect, (Forward, Inform)):
                    if self._runs.open and self._runs.meets_any(effect.sessions):
                        self._hand_over()
                    self._hand_out(effect)
                elif isinstance(effect, Notify):
                    self.notified += 1
                elif isinstance(effect, CallHttp):
                    self._calls.append(effect)
                elif isinstance(effect, RouterFailed):
                    self._router_failures.append(effect)
                else:
                    self._keep(effect, now)
            if not following:
                return
            effects = self.broker.step(following.popleft(), now)

    def _keep(self, effect: Effect, now: float) -> None:
        """Hand on what is for the storage."""
        journal = self.journal
        if journal is None:
            if isinstance(effect, Append):
                # Nothing is stored, so nothing is ever confirmed as saved (nor erased).
                self._following.append(Synced(effect.ticket, False))
        elif isinstance(effect, Append):
            journal.append(effect, now)
        elif isinstance(effect, Erase):
            journal.erase(effect)
        elif isinstance(effect, StoredChange):
            journal.change(effect)
        elif isinstance(effect, Fetch):
            self._fetches.append(effect)

    def _deliver(self, effect: Deliver) -> None:
        """Deliver now, or with others of a run."""
        runs = self._runs
        run = runs.find(effect.sessions)
        if run is None:
            if not runs.comes_again(effect.sessions):
                if runs.open and runs.meets_any(effect.sessions):
                    self._hand_over()
                self._hand_out(effect)
                return
            run = self._open_run(effect.sessions)
        fault = runs.add(run, effect)
        if fault is not None:
            self._faults.setdefault(0, fault)
        if run.size >= self._portion_bytes or run.size >= _MOST_RUN_BYTES:
            self._hand_over()

    def _open_run(self, numbers: list[int]) -> Run:
        run = Run(numbers)
        if not self._runs.has_room_for(run):
            self._hand_over()
        for number in numbers:
            session = self._sessions.get(number)
            if session is not None:
                run.admit(number, session, self._doors[number])
        self._runs.open.append(run)
        return run

    def _hand_over(self) -> None:
        """Give what runs hold to their sessions."""
        touched = self._touched
        portion_bytes = self._portion_bytes
        for run in self._runs.take():
            for part in run.parts:
                data = part.pieces[0] if len(part.pieces) == 1 else b"".join(part.pieces)
                for number, session in part.sessions:
                    touched[number] = None
                    try:
                        session.deliver(data)
                    except Exception as error:  # noqa: BLE001 - hurts this session only
                        self._faults.setdefault(number, error)
                    if session.outbound_bytes >= portion_bytes:
                        self._full = True

    def _apply(self, effect: _ForOne, now: float) -> None:
        """Let the one session an effect is for carry it out."""
        number = effect.session
        session = self._sessions.get(number)
        if session is None:
            return
        self._touched[number] = None
        try:
            commands = session.apply(effect, now)
        except Exception as error:  # noqa: BLE001 - hurts this session, not the one that asked
            self._faults.setdefault(number, error)
            return
        if session.outbound_bytes >= self._portion_bytes:
            self._full = True
        if not commands:
            return
        if isinstance(effect, Accept):
            # What the client sent ahead is worked off like any chunk, in portions.
            self._rest.setdefault(number, deque()).extend(commands)
        else:
            self._following.extend(commands)

    def _hand_out(self, effect: Deliver | Forward | Inform) -> None:
        """Encode once a door, share the bytes among its sessions."""
        sessions = self._sessions
        touched = self._touched
        portion_bytes = self._portion_bytes
        encoded: dict[str, bytes] = {}
        for number in effect.sessions:
            session = sessions.get(number)
            if session is None:
                continue
            door = self._doors[number]
            data = encoded.get(door.name)
            if data is None:
                data = encoded[door.name] = self._encoded(door, effect)
            touched[number] = None
            try:
                session.deliver(data)
            except Exception as error:  # noqa: BLE001 - hurts this session, not the producer's
                self._faults.setdefault(number, error)
            if session.outbound_bytes >= portion_bytes:
                self._full = True

    def _encoded(self, door: Door, effect: Deliver | Forward | Inform) -> bytes:
        try:
            if isinstance(effect, Forward):
                return door.encode_forward(effect)
            if isinstance(effect, Inform):
                return door.encode_event(effect)
            return door.encode_delivery(effect)
        except Exception as error:  # noqa: BLE001 - hurts this message, not the producer's session
            self._faults.setdefault(0, error)
            return b""
